#include "support/tours.h"

#include <stdio.h>

static const char *keep(const char *text, char *out) {
  assert_non_null(text);
  assert_true(strlen(text) < TOUR_TEXT_MAX);
  (void)snprintf(out, TOUR_TEXT_MAX, "%s", text);
  return out;
}

static void on_servers(belay_request_t *request, int status, const belay_topology_server_t *servers,
                       size_t n) {
  tour_report_t *report = request->data;
  report->bed->wrong += report->told > 0 || report->bed->inside > 0;
  report->told++;
  report->status = status;
  report->n = n;
  assert_true(n <= TOUR_SERVERS_MAX);
  assert_true((servers != NULL) == (status == 0) && (n > 0) == (status == 0));
  for (size_t i = 0; i < n; i++) {
    belay_topology_server_t *kept = &report->server[i];
    *kept = servers[i];
    kept->address = keep(servers[i].address, report->text[i][0]);
    kept->software = keep(servers[i].software, report->text[i][1]);
    kept->version = keep(servers[i].version, report->text[i][2]);
    kept->run_id = keep(servers[i].run_id, report->text[i][3]);
    kept->primary = keep(servers[i].primary, report->text[i][4]);
  }
}

int begin_tour(bed_t *bed, tour_report_t *report, unsigned samples, int64_t timeout_ms) {
  *report = (tour_report_t){.bed = bed, .request = {.data = report, .timeout_ms = timeout_ms}};
  bed->inside++;
  int error = belay_topology_read(bed->client, &report->request, samples, on_servers);
  bed->inside--;
  return error;
}

int tour(bed_t *bed, tour_report_t *report, unsigned samples, int64_t timeout_ms) {
  int error = begin_tour(bed, report, samples, timeout_ms);
  if (error != 0)
    return error;
  bed_until(bed, report->told == 1);
  return report->status;
}

void assert_reached(const belay_topology_server_t *server, belay_role_t role, unsigned samples) {
  assert_non_null(server);
  assert_error(server->status, 0);
  assert_int_equal(server->role, role);
  assert_true(server->software[0] != '\0' && server->version[0] != '\0');
  assert_int_equal(strlen(server->run_id), 40);
  assert_true((server->primary[0] != '\0') == (role == BELAY_ROLE_REPLICA));
  assert_true(server->commands > 0);
  assert_true(server->replicated >= 0 || (role == BELAY_ROLE_REPLICA && !server->in_sync));
  assert_int_equal(server->samples, samples);
  assert_true(server->rtt_min_us >= 0 && server->rtt_min_us <= server->rtt_median_us);
  int64_t off = server->clock_ahead_us < 0 ? -server->clock_ahead_us : server->clock_ahead_us;
  assert_true(off <= server->clock_error_us);
  assert_true(server->clock_error_us <= server->rtt_min_us / 2 + 3);
}

const belay_topology_server_t *toured(const tour_report_t *report, int port) {
  char end[16];
  (void)snprintf(end, sizeof end, ":%d", port);
  for (size_t i = 0; i < report->n; i++) {
    const char *at = strrchr(report->server[i].address, ':');
    if (at != NULL && strcmp(at, end) == 0)
      return &report->server[i];
  }
  return NULL;
}

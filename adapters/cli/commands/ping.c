/* `belay ping`: the servers of a deployment, with role, round-trip time and clock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/query.h"

static struct { int64_t count; } asked = {.count = 5};

static struct {
  belay_request_t request;
  harness_t *h;
  size_t node;
} visits[URLS_MAX];

static table_t table;
static size_t pending, listed, answered;
static int error;

/* ---- output ---- */

static const column_t columns[] = {{"SERVER", false}, {"ROLE", false},  {"VERSION", false},
                                   {"MIN", true},     {"MEDIAN", true}, {"CLOCK", true},
                                   {"ERROR", true},   {"STATE", false}, {NULL, false}};

/* Write microseconds as milliseconds. */
static void cell_ms(bool known, const char *sign, int64_t us) {
  us = us < 0 ? -us : us;
  if (known)
    table_cell(&table, "%s%" PRId64 ".%03" PRId64 "ms", sign, us / 1000, us % 1000);
  else
    table_cell(&table, "-");
}

static const char *state_of(const belay_topology_server_t *server) {
  static char state[512];
  if (server->status != 0) {
    (void)snprintf(state, sizeof state, "%s%s%s", belay_strerror(server->status),
                   *server->detail != '\0' ? ": " : "", server->detail);
    return state;
  }
  if (server->role == BELAY_ROLE_REPLICA)
    return server->in_sync ? "in sync" : "NOT IN SYNC";
  (void)snprintf(state, sizeof state, "%u replica%s", server->replicas,
                 server->replicas == 1 ? "" : "s");
  return server->replicas > 0 ? state : "";
}

static const char *shown(const char *text) {
  return *text != '\0' ? out_shown(text, strlen(text)) : "-";
}

static void add_row(const belay_topology_server_t *server) {
  bool known = server->samples > 0, named = server->software[0] != '\0';
  table_cell(&table, "%s", shown(server->address));
  table_cell(&table, "%s", belay_role_name(server->role));
  table_cell(&table, "%s%s%s", named ? shown(server->software) : "", named ? " " : "",
             shown(server->version));
  cell_ms(known, "", server->rtt_min_us);
  cell_ms(known, "", server->rtt_median_us);
  cell_ms(known, server->clock_ahead_us < 0 ? "-" : "+", server->clock_ahead_us);
  cell_ms(known, "", server->clock_error_us);
  table_cell(&table, "%s", state_of(server));
}

static void out_word(const char *name, const char *word) {
  out_string(name, word[0] != '\0' ? word : NULL);
}

static bool write_json(size_t node, const belay_topology_server_t *server) {
  bool known = server->samples > 0;
  out_begin();
  out_string("deployment", query_server_name(node));
  out_string("server", server->address);
  out_bool("reached", server->status == 0);
  out_string("error", server->status != 0 ? belay_strerror(server->status) : NULL);
  out_word("detail", server->detail);
  out_string("role", belay_role_name(server->role));
  out_word("software", server->software);
  out_word("version", server->version);
  out_word("run_id", server->run_id);
  out_word("primary", server->primary);
  if (server->role == BELAY_ROLE_REPLICA)
    out_bool("in_sync", server->in_sync);
  out_number("replicas", server->replicas);
  out_number_if("replicated", server->replicated >= 0, server->replicated);
  out_number("samples", server->samples);
  out_number_if("rtt_min_us", known, server->rtt_min_us);
  out_number_if("rtt_median_us", known, server->rtt_median_us);
  out_number_if("clock_ahead_us", known, server->clock_ahead_us);
  out_number_if("clock_error_us", known, server->clock_error_us);
  return out_end();
}

/* ---- queries ---- */

static void end(harness_t *h) {
  bool written = out_form() != OUT_PLAIN || listed == 0 || table_write(&table);
  table_free(&table);
  if (!written)
    harness_done(h, STATUS_TROUBLE);
  else if (answered == 0)
    harness_done(h, status_of(error));
  else
    harness_done(h, error == 0 ? STATUS_YES : STATUS_NO);
}

static void on_servers(belay_request_t *request, int status, const belay_topology_server_t *servers,
                       size_t n) {
  size_t node = (size_t)(uintptr_t)request->data;
  harness_t *h = visits[node].h;
  if (harness_is_done(h))
    return;
  if (status != 0) {
    char what[OUT_SHOWN_MAX + 32];
    (void)snprintf(what, sizeof what, "no server found at %s", query_server_name(node));
    harness_complain(h, what, status);
    error = error != 0 ? error : status;
  }
  for (size_t i = 0; status == 0 && i < n; i++) {
    error = error != 0 ? error : servers[i].status;
    answered += servers[i].status == 0;
    listed++;
    add_row(&servers[i]);
    if (out_form() == OUT_JSON && !write_json(node, &servers[i])) {
      harness_done(h, STATUS_TROUBLE);
      return;
    }
  }
  if (--pending == 0)
    end(h);
}

static void begin_ping(harness_t *h) {
  table_begin(&table, columns);
  for (size_t i = 0; i < h->clients; i++) {
    visits[i].h = h;
    visits[i].node = i;
    visits[i].request.data = (void *)(uintptr_t)i;
    int failed =
        belay_topology_read(h->client[i], &visits[i].request, (unsigned)asked.count, on_servers);
    if (failed != 0) {
      harness_fail(h, "cannot query the servers", failed);
      return;
    }
    pending++;
  }
}

const command_t ping_command = {
    .name = "ping",
    .summary = "list the servers: role, version, round-trip time, clock difference",
    .text = "belay queries all servers of the deployment: those that a redis+replicas, "
            "redis+sentinel or redis+cluster URL leads to, including replicas, and those of each "
            "--url. MIN and MEDIAN are round-trip times. CLOCK is the difference between the "
            "server's clock and this machine's: + if the server's clock is ahead. ERROR is the "
            "largest possible error of CLOCK. Sentinels are not listed.\n\n"
            "The status is 0 if all servers have answered, 1 if some have, and 120 if none could "
            "be reached. The whole query takes at most --timeout.",
    .examples = EXAMPLES(
        {"Check the servers of a Redlock", "belay ping -u redis://a -u redis://b -u redis://c"},
        {"Compare the clocks of a cluster",
         "belay ping -u redis+cluster://a --count 50 --json | jq .clock_ahead_us"}),
    .options = OPTIONS(NUMBER("count", 1, BELAY_TOPOLOGY_SAMPLES_MAX, &asked.count,
                              "number of round trips to each server; default 5", .letter = 'c')),
    .urls = URLS_MAX,
    .begin = begin_ping,
};

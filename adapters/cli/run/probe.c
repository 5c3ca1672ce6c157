/* The probe of the servers.
 *
 *   ASKING --a majority has answered--> GATHERING --all have, or GATHER_MS are over--> DECIDED
 *     |                                                                          on_enough runs
 *     +--no majority can answer any more--> DECIDED: the harness ends
 *
 * The user learns at once that no server answers, whatever the wait for a lock is. And the
 * connections exist before the first call of a quorum, which has a short timeout: a lock that only
 * a bare majority has granted is lost with the first of these servers. */
#include "run/probe.h"

#include <stdio.h>

#include "query/query.h"

#define GATHER_MS 100

static struct {
  enum { ASKING, GATHERING, DECIDED } state;
  uv_timer_t timer;
  harness_t *harness;
  probe_cb on_enough;
  size_t answered, failed; /* number of servers */
  struct {
    bool known;
    int error;
    char detail[256]; /* of belay_detail() */
  } result[URLS_MAX]; /* in the order of the clients */
} probe;

/* Returns true if the server can be reached, and refuses. */
static bool is_refusal(int error) {
  return error != 0 && error != BELAY_EUNKNOWN && status_of(error) != STATUS_UNREACHABLE;
}

static size_t majority(void) {
  return probe.harness->clients / 2 + 1;
}

static void report_failure_of_one(void) {
  int error = probe.result[0].error;
  harness_complain(probe.harness, probe.harness->command->what, error);
  harness_done(probe.harness, status_of(is_refusal(error) ? error : BELAY_EUNREACHABLE));
}

static void report_failure(void) {
  harness_t *h = probe.harness;
  size_t refused = 0;
  int error = BELAY_ENOQUORUM, refusal = 0;
  for (size_t i = 0; i < h->clients; i++)
    if (is_refusal(probe.result[i].error)) {
      refused++;
      refusal = refusal != 0 ? refusal : probe.result[i].error;
    }
  if (refused > h->clients - majority())
    error = refusal;
  complain("%s: %s: %zu of %zu", h->command->what, belay_strerror(error), probe.answered,
           h->clients);
  for (size_t i = 0; i < h->clients; i++) {
    const char *detail = probe.result[i].detail;
    if (!probe.result[i].known)
      complain("%s: no answer yet", harness_url(i));
    else if (probe.result[i].error != 0)
      complain("%s: %s%s%s", harness_url(i), belay_strerror(probe.result[i].error),
               *detail != '\0' ? ": " : "", detail);
  }
  harness_done(h, status_of(error));
}

static void decide(void) {
  probe.state = DECIDED;
  uv_close((uv_handle_t *)&probe.timer, NULL);
  if (probe.answered >= majority())
    probe.on_enough(probe.harness);
  else if (probe.harness->clients == 1)
    report_failure_of_one();
  else
    report_failure();
}

static void on_gathered(uv_timer_t *timer) {
  (void)timer;
  if (!harness_is_done(probe.harness))
    decide();
}

static void on_ping(belay_client_t *client, int status) {
  harness_t *h = probe.harness;
  size_t i = 0;
  if (probe.state == DECIDED || harness_is_done(h))
    return;
  while (h->client[i] != client)
    i++;
  probe.answered += status == 0;
  probe.failed += status != 0;
  probe.result[i].known = true;
  probe.result[i].error = status;
  (void)snprintf(probe.result[i].detail, sizeof probe.result[i].detail, "%s",
                 belay_detail(h->belay));
  if (probe.answered + probe.failed == h->clients || probe.failed > h->clients - majority()) {
    decide();
  } else if (probe.state == ASKING && probe.answered == majority()) {
    probe.state = GATHERING;
    (void)uv_timer_start(&probe.timer, on_gathered, GATHER_MS, 0);
  }
}

void probe_begin(harness_t *harness, probe_cb on_enough) {
  probe.harness = harness;
  probe.on_enough = on_enough;
  (void)uv_timer_init(&harness->loop, &probe.timer);
  int error = 0;
  for (size_t i = 0; i < harness->clients && error == 0; i++)
    error = belay_client_ping(harness->client[i], BELAY_DEFAULT, on_ping);
  harness_ok(harness, error);
}

void probe_end(void) {
  if (probe.harness == NULL || probe.state == DECIDED)
    return;
  probe.state = DECIDED;
  uv_close((uv_handle_t *)&probe.timer, NULL);
}

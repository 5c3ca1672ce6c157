/* Whether enough servers answer.
 *
 *   ASKING --a majority has answered--> GATHERING --all have answered or failed, or GATHER_MS are over--> DECIDED: on_enough
 *     |
 *     +--so many have failed that no majority can answer--> DECIDED: the harness ends
 *
 *   DECIDED --an answer or a failure--> DECIDED: ignored
 *
 * The user learns at once that no server is there, however long the command would wait for a lock. And the connections
 * exist when the first call is made, for which a quorum leaves little time: a lock that only a bare majority has
 * granted is lost with the first of them. */
#include "run/probe.h"

#include <stdio.h>

#include "query/query.h"

#define GATHER_MS 100

static struct {
  enum { ASKING, GATHERING, DECIDED } state;
  uv_timer_t timer;
  harness_t *harness;
  probe_cb on_enough;
  size_t answered, failed,
      refused; /* servers; refused: those of the failed ones that can be reached */
  int refusal; /* the first one */
  bool has_answered[URLS_MAX];
  struct {
    int error;
    char detail[256];  /* of belay_detail() */
  } failure[URLS_MAX]; /* in the order of the clients; error 0: none */
} probe;

/* A ping changes nothing on a server: an answer that is not known is no answer. */
static bool is_refusal(int error) {
  return error != BELAY_EUNKNOWN && status_of(error) != STATUS_UNREACHABLE;
}

static void complain_of_each(void) {
  for (size_t i = 0; i < probe.harness->clients; i++) {
    const char *detail = probe.failure[i].detail;
    if (probe.failure[i].error != 0)
      complain("%s: %s%s%s", harness_url(i), belay_strerror(probe.failure[i].error),
               *detail != '\0' ? ": " : "", detail);
    else if (!probe.has_answered[i])
      complain("%s: no answer yet", harness_url(i));
  }
}

static void end(void) {
  harness_t *h = probe.harness;
  size_t majority = h->clients / 2 + 1;
  int error = probe.refused > h->clients - majority ? probe.refusal : BELAY_ENOQUORUM;
  if (h->clients == 1) {
    harness_complain(h, h->command->what, probe.failure[0].error);
    error = is_refusal(probe.failure[0].error) ? probe.failure[0].error : BELAY_EUNREACHABLE;
  } else {
    complain("%s: %s: %zu of %zu", h->command->what, belay_strerror(error), probe.answered,
             h->clients);
    complain_of_each();
  }
  harness_done(h, status_of(error));
}

static void note_failure(size_t i, int error) {
  probe.failed++;
  probe.failure[i].error = error;
  (void)snprintf(probe.failure[i].detail, sizeof probe.failure[i].detail, "%s",
                 belay_detail(probe.harness->belay));
  if (!is_refusal(error))
    return;
  probe.refused++;
  probe.refusal = probe.refusal != 0 ? probe.refusal : error;
}

static void decide(void) {
  harness_t *h = probe.harness;
  probe.state = DECIDED;
  uv_close((uv_handle_t *)&probe.timer, NULL);
  if (probe.answered > h->clients / 2)
    probe.on_enough(h);
  else
    end();
}

static void on_gathered(uv_timer_t *timer) {
  (void)timer;
  if (!harness_is_done(probe.harness))
    decide();
}

static void on_ping(belay_client_t *client, int status) {
  harness_t *h = probe.harness;
  size_t i = 0, majority = h->clients / 2 + 1;
  if (probe.state == DECIDED || harness_is_done(h))
    return;
  while (h->client[i] != client)
    i++;
  probe.has_answered[i] = status == 0;
  if (status == 0)
    probe.answered++;
  else
    note_failure(i, status);
  if (probe.answered + probe.failed == h->clients || probe.failed > h->clients - majority) {
    decide();
  } else if (probe.state == ASKING && probe.answered == majority) {
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

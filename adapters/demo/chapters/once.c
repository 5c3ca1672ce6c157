/* Chapter: a payment that is sent three times, while the process that works on it does not run. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { DEADLINE_MS = 200, TTL_MS = 60000, RETRY_MS = 20 };
static const char key[] = "order-4711", hash[] = "buy 1 rope", other_hash[] = "buy 2 ropes";

typedef struct answer {
  belay_idempotency_outcome_t outcome;
  belay_idempotency_token_t token;
  int64_t attempt;
  char result[16];
} answer_t;

static void on_answer(belay_request_t *request, int status,
                      const belay_idempotency_state_t *state) {
  demo_t *demo = request->data;
  answer_t *answer = demo->out;
  if (status == 0) {
    *answer = (answer_t){state->outcome, state->token, state->attempt, ""};
    (void)snprintf(answer->result, sizeof answer->result, "%.*s", (int)state->result_len,
                   (const char *)state->result);
  }
  demo_done(demo, status);
}

static int begin(demo_t *demo, belay_idempotency_t *records, const char *fingerprint,
                 answer_t *answer) {
  demo->out = answer;
  return demo_status(demo,
                     belay_idempotency_begin(records, &demo->request, belay_string(key),
                                             belay_string(fingerprint), DEADLINE_MS, on_answer));
}

static int finish(demo_t *demo, belay_idempotency_t *records, answer_t *answer,
                  const char *result) {
  demo->out = answer;
  return demo_status(
      demo, belay_idempotency_finish(
                records, &demo->request, belay_string(key), &answer->token,
                &(belay_idempotency_finish_t){.result = belay_string(result), .ttl_ms = TTL_MS},
                on_answer));
}

static void play(demo_t *demo, belay_idempotency_t *records) {
  answer_t first = {0}, second = {0}, third = {0};
  unsigned turned_away = 0;
  uint64_t began = uv_hrtime();
  int error = begin(demo, records, hash, &first);
  demo_event(demo, 0, "a process begins, with a deadline of %d ms, and then does not run",
             DEADLINE_MS);
  while (error == 0 && second.outcome != BELAY_IDEMPOTENCY_TAKEN_OVER) {
    error = begin(demo, records, hash, &second);
    turned_away += second.outcome == BELAY_IDEMPOTENCY_IN_PROGRESS;
    DEMO_WAIT(demo, second.outcome == BELAY_IDEMPOTENCY_IN_PROGRESS ? RETRY_MS : 0, false);
  }
  double seconds = demo_seconds(began, uv_hrtime());
  if (error == 0)
    error = finish(demo, records, &second, "paid");
  if (!demo_check(demo, "an order", error))
    return;
  demo_event(demo, 0, "the order comes again: attempt %lld takes it over, and pays it",
             (long long)second.attempt);
  int late = finish(demo, records, &first, "late");
  demo_event(demo, 0, "the first process runs again and finishes: %s", belay_err_name(late));
  error = begin(demo, records, hash, &third);
  demo_event(demo, 0, "sent a third time: nothing is done, and the answer is \"%s\"", third.result);
  int other = begin(demo, records, other_hash, &(answer_t){0});
  demo_print("\n");
  demo_fact(demo, turned_away > 0 && seconds >= (DEADLINE_MS - 2) / 1e3,
            "%u times it was in progress; taken over after %.3f s, and not before", turned_away,
            seconds);
  demo_fact(demo,
            late == BELAY_ENOTOWNER && error == 0 && third.outcome == BELAY_IDEMPOTENCY_DONE &&
                strcmp(third.result, "paid") == 0,
            "the late finish has overwritten nothing");
  demo_fact(demo, other == BELAY_EMISMATCH, "another request with the same key: %s",
            belay_err_name(other));
}

void chapter_once(demo_t *demo) {
  belay_idempotency_t *records;
  belay_idempotency_options_t options;
  belay_idempotency_options_init(&options);
  if (!demo_check(demo, "making a handle",
                  belay_idempotency_new(demo->client[DEMO_A], &options, &records)))
    return;
  play(demo, records);
  (void)belay_idempotency_close(records, NULL);
}

/* Chapter: a payment that is sent three times, while one who processes it dies. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { DEADLINE_MS = 200, TTL_MS = 60000, RETRY_MS = 20 };
static const char key[] = "order-4711", hash[] = "buy 1 rope", other_hash[] = "buy 2 ropes";

typedef struct once {
  demo_t *demo;
  belay_idempotency_t *records;
  belay_request_t request;
  uv_timer_t retry;
  belay_idempotency_token_t first, second; /* who processes it */
  unsigned turned_away;
  uint64_t began, taken;
  bool late_refused, told, refused;
} once_t;

static void on_retry(uv_timer_t *timer);

static void begin(once_t *once, const char *fingerprint, belay_idempotency_cb cb) {
  int error = belay_idempotency_begin(once->records, &once->request, key, strlen(key), fingerprint,
                                      strlen(fingerprint), DEADLINE_MS, cb);
  if (error == 0)
    return;
  demo_trouble(once->demo, "beginning", error);
  demo_timer_close(&once->retry);
}

static void on_forgotten(belay_request_t *request, int status,
                         const belay_idempotency_state_t *state) {
  const once_t *once = request->data;
  (void)state;
  if (status != 0)
    demo_trouble(once->demo, "forgetting", status);
}

static void on_other(belay_request_t *request, int status, const belay_idempotency_state_t *state) {
  once_t *once = request->data;
  (void)state;
  once->refused = status == BELAY_EMISMATCH;
  demo_event(once->demo, 0, "another order with the same key: %s", belay_err_name(status));
  (void)belay_idempotency_forget(once->records, request, key, strlen(key), on_forgotten);
}

static void on_again(belay_request_t *request, int status, const belay_idempotency_state_t *state) {
  once_t *once = request->data;
  if (status == 0 && state->outcome == BELAY_IDEMPOTENCY_DONE) {
    once->told = state->result_len == 4 && memcmp(state->result, "paid", 4) == 0;
    demo_event(once->demo, 0, "sent a third time: nothing is done, and the answer is \"%.*s\"",
               (int)state->result_len, (const char *)state->result);
  }
  begin(once, other_hash, on_other);
}

static void on_late(belay_request_t *request, int status, const belay_idempotency_state_t *state) {
  once_t *once = request->data;
  (void)state;
  once->late_refused = status == BELAY_ENOTOWNER;
  demo_event(once->demo, 0, "the first one comes to life and wants to finish: %s",
             belay_err_name(status));
  begin(once, hash, on_again);
}

static void on_paid(belay_request_t *request, int status, const belay_idempotency_state_t *state) {
  once_t *once = request->data;
  (void)state;
  if (status != 0)
    demo_trouble(once->demo, "finishing", status);
  (void)belay_idempotency_finish(once->records, request, key, strlen(key), &once->first, "late", 4,
                                 TTL_MS, on_late);
}

/* It comes again until it is told something else than that it is in progress. */
static void on_second(belay_request_t *request, int status,
                      const belay_idempotency_state_t *state) {
  once_t *once = request->data;
  if (status == 0 && state->outcome == BELAY_IDEMPOTENCY_IN_PROGRESS) {
    once->turned_away++;
    demo_timer_start(once->demo, &once->retry, on_retry, RETRY_MS, 0);
    return;
  }
  demo_timer_close(&once->retry);
  once->taken = uv_hrtime();
  if (status != 0 || state->outcome != BELAY_IDEMPOTENCY_TAKEN_OVER) {
    demo_trouble(once->demo, "taking over", status);
    return;
  }
  once->second = state->token;
  demo_event(once->demo, 0, "taken over by who was sent it again: attempt %lld, and it is paid",
             (long long)state->attempt);
  (void)belay_idempotency_finish(once->records, request, key, strlen(key), &once->second, "paid", 4,
                                 TTL_MS, on_paid);
}

static void on_retry(uv_timer_t *timer) {
  begin(timer->data, hash, on_second);
}

static void on_first(belay_request_t *request, int status, const belay_idempotency_state_t *state) {
  once_t *once = request->data;
  if (status != 0) {
    demo_trouble(once->demo, "beginning", status);
    demo_timer_close(&once->retry);
    return;
  }
  once->first = state->token;
  demo_event(once->demo, 0, "begun, with %d ms to do it in; and who has begun it stands still",
             DEADLINE_MS);
  begin(once, hash, on_second);
}

void chapter_once(demo_t *demo) {
  once_t once = {.demo = demo, .began = uv_hrtime()};
  belay_idempotency_options_t options;
  belay_idempotency_options_init(&options);
  int error = belay_idempotency_new(demo->client[DEMO_A], &options, &once.records);
  if (error != 0) {
    demo_trouble(demo, "making a handle", error);
    return;
  }
  once.request.data = &once;
  demo_timer_open(demo, &once.retry, &once);
  begin(&once, hash, on_first);
  demo_run(demo);
  term_print(&demo->term, "\n");
  double seconds = demo_seconds(once.began, once.taken);
  demo_fact(demo, once.turned_away > 0 && seconds >= (DEADLINE_MS - 2) / 1e3,
            "%u times it was in progress; taken over after %.3f s, and not before",
            once.turned_away, seconds);
  demo_fact(demo, once.late_refused && once.told, "who came too late has overwritten nothing");
  demo_fact(demo, once.refused, "and another request is not given its answer");
  (void)belay_idempotency_close(once.records, NULL);
  demo_run(demo);
}

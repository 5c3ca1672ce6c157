/* The waiter.
 *
 *   IDLE --start--> ASKING --not yet, or no answer--> WAITING --time; heard something--> ASKING
 *    ^                | |                               |
 *    |<--the answer---+ |                               |
 *    |                  +--cancel, end of the wait, <---+
 *    |                  |  a refusal that lasts, forgotten
 *    |<--nothing left---+
 *    |                  v
 *    +--answer, or-- LEAVING
 *       none
 *
 *   any --stop--> IDLE
 *
 * Only step() writes the state. The question is asked at once; then whenever something is heard
 * on the channel, when its subscription is confirmed (what was said before was missed), and now
 * and then all the same, because messages are lost. What is heard while a question is out may
 * have happened after it was answered: it is asked once more. */
#include "sync/waiter.h"

#include <assert.h>

#include "core/call/refusal.h"
#include "core/key/key.h"
#include "core/loop/backoff.h"

#define RECONNECT_MS 200        /* spreads the questions of waiters whose connection was lost */
#define ASKS_BEFORE_FORGOTTEN 4 /* at least, while a server may still know of us */

typedef enum event {
  EV_START,
  EV_ANSWER, /* arg: what it says */
  EV_TIMER,
  EV_HEARD,  /* arg: within how many milliseconds to ask */
  EV_CANCEL, /* arg: the status */
  EV_STOP
} event_t;

static void on_answer(belay__call_t *call, const belay__result_t *result);

static belay_t *host_of(const belay__waiter_t *waiter) {
  return waiter->client->belay;
}

/* ---- leaves: time ---------------------------------------------------------------------------------------- */

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* From when on what the server says cannot be trusted to be about us. */
static uint64_t forgotten_at(const belay__waiter_t *waiter) {
  if (!waiter->maybe || waiter->terms.forgotten_after == 0)
    return BELAY__NEVER;
  return waiter->sure_at + waiter->terms.forgotten_after * BELAY__MS;
}

/* After the question was answered "not yet", or not at all, for the n-th time in a row. */
static uint64_t poll_delay(const belay__waiter_t *waiter, uint32_t n, uint64_t most_ms) {
  const belay__waiter_terms_t *terms = &waiter->terms;
  return belay__delay_draw(host_of(waiter), belay__delay_poll(terms->retry_min, terms->retry_max,
                                                              n > 0 ? n - 1 : 0, most_ms));
}

/* When to ask again. holds_ms: how long the answer stays what it is; -1: not known. */
static uint64_t next_question(const belay__waiter_t *waiter, int64_t holds_ms, uint64_t now) {
  const belay__waiter_terms_t *terms = &waiter->terms;
  uint64_t when;
  if (waiter->again)
    when = now + belay__spread(host_of(waiter), BELAY__SPREAD_MS * BELAY__MS);
  else if (waiter->failures > 0)
    when = now + poll_delay(waiter, waiter->failures, BELAY__BACKOFF_MAX_MS);
  else
    when = now + poll_delay(waiter, waiter->vain, terms->backoff_max);
  if (terms->most_apart > 0)
    when = earlier(when, now + terms->most_apart * BELAY__MS);
  if (holds_ms >= 0)
    when = earlier(when, now + ((uint64_t)holds_ms + 1) * BELAY__MS +
                             belay__spread(host_of(waiter), BELAY__SPREAD_MS * BELAY__MS));
  return earlier(when, waiter->wait_until);
}

/* ---- leaves: talking ------------------------------------------------------------------------------------- */

static void listen(belay__waiter_t *waiter) {
  if (waiter->ear.channel == NULL && waiter->wait_until != 0)
    (void)belay__listen(waiter->client, waiter->channel, waiter->channel_len, &waiter->ear);
}

static void stop_asking(belay__waiter_t *waiter) {
  if (belay__call_cancel(&waiter->call))
    waiter->maybe = waiter->astray = true;
}

/* Sends what `fill` fills in; 0 or an error. */
static int send(belay__waiter_t *waiter, void (*fill)(belay__waiter_t *, belay__call_t *),
                uint64_t deadline, bool urgent) {
  belay__call_t *call = belay__call_new(waiter->client, BELAY__LANE_DATA);
  if (call == NULL)
    return BELAY_ENOMEM;
  fill(waiter, call);
  call->deadline = deadline;
  call->affinity = waiter->affinity;
  call->urgent = urgent;
  return belay__call_start(&waiter->call, call, on_answer, waiter);
}

static uint64_t answer_by(const belay__waiter_t *waiter) {
  return belay__now(host_of(waiter)) + waiter->terms.timeout * BELAY__MS;
}

/* ---- transitions: each returns the state to go to ---------------------------------------------------------- */

static belay__waiter_state_t end(belay__waiter_t *waiter, int status) {
  waiter->status = status;
  stop_asking(waiter);
  belay__timer_stop(host_of(waiter), BELAY__RANK_OTHER, &waiter->timer);
  belay__unlisten(&waiter->ear);
  waiter->ops->over(waiter);
  return BELAY__WAITER_IDLE;
}

/* It could not be said that nobody waits any more. Who only stopped waiting does not know
 * whether the answer had come. */
static int unsaid(int status) {
  bool stopped = status == BELAY_ETIMEDOUT || status == BELAY_ECANCELED;
  return stopped ? BELAY_EUNKNOWN : status;
}

/* It has been said. After the server may have forgotten it proves nothing. */
static int said(const belay__waiter_t *waiter) {
  return belay__now(host_of(waiter)) < forgotten_at(waiter) ? waiter->last : unsaid(waiter->last);
}

/* Ends at once. */
static belay__waiter_state_t stop(belay__waiter_t *waiter) {
  stop_asking(waiter);
  if (waiter->state == BELAY__WAITER_LEAVING)
    return end(waiter, unsaid(waiter->last));
  bool may_stay = waiter->ops->leave != NULL && waiter->maybe;
  return end(waiter, may_stay ? BELAY_EUNKNOWN : BELAY_ECANCELED);
}

/* The wait ends without the answer. */
static belay__waiter_state_t give_up(belay__waiter_t *waiter, int status) {
  stop_asking(waiter);
  if (waiter->ops->leave == NULL || !waiter->maybe)
    return end(waiter, status);
  belay__timer_stop(host_of(waiter), BELAY__RANK_OTHER, &waiter->timer);
  waiter->last = status;
  if (send(waiter, waiter->ops->leave, answer_by(waiter), true) != 0)
    return end(waiter, unsaid(status));
  return BELAY__WAITER_LEAVING;
}

/* The end of the wait cut a question short: that it was not answered says nothing, and what the
 * one before it found still stands. */
static bool cut_short(const belay__waiter_t *waiter, int status, uint64_t now) {
  return waiter->limited && now >= waiter->wait_until &&
         (status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE);
}

static belay__waiter_state_t not_answered(belay__waiter_t *waiter, int status);

static belay__waiter_state_t ask(belay__waiter_t *waiter) {
  uint64_t now = belay__now(host_of(waiter));
  if (now >= forgotten_at(waiter))
    return give_up(waiter, BELAY_EUNKNOWN);
  listen(waiter);
  waiter->again = false;
  waiter->asked_at = now;
  if (!waiter->maybe)
    waiter->sure_at = now;
  uint64_t deadline = earlier(answer_by(waiter), forgotten_at(waiter));
  bool first =
      waiter->vain == 0 && waiter->failures == 0; /* which is answered, or has its timeout */
  waiter->limited = waiter->wait_until != 0 && !first && waiter->wait_until < deadline;
  if (waiter->limited)
    deadline = waiter->wait_until;
  int error = send(waiter, waiter->ops->ask, deadline, false);
  return error == 0 ? BELAY__WAITER_ASKING : not_answered(waiter, error);
}

/* Waits for the next question, if there is time for one. */
static belay__waiter_state_t wait(belay__waiter_t *waiter, int64_t holds_ms) {
  uint64_t now = belay__now(host_of(waiter));
  if (now >= waiter->wait_until)
    return give_up(waiter, waiter->last);
  belay__timer_set(host_of(waiter), BELAY__RANK_OTHER, &waiter->timer,
                   next_question(waiter, holds_ms, now));
  return BELAY__WAITER_WAITING;
}

static belay__waiter_state_t answered_not_yet(belay__waiter_t *waiter, int64_t holds_ms) {
  waiter->maybe = true;
  waiter->sure_at = waiter->asked_at;
  waiter->failures = 0;
  waiter->vain++;
  waiter->last = BELAY_ETIMEDOUT;
  return wait(waiter, holds_ms);
}

static belay__waiter_state_t not_answered(belay__waiter_t *waiter, int status) {
  if (!cut_short(waiter, status, belay__now(host_of(waiter))))
    waiter->last = status;
  waiter->failures++;
  waiter->vain = 0;
  if (waiter->ops->missed != NULL)
    waiter->ops->missed(waiter, status);
  if (belay__refusal_is_lasting(status) && !waiter->terms.stubborn)
    return give_up(waiter, status);
  return wait(waiter, -1);
}

/* Something was heard while it waits. */
static belay__waiter_state_t hurry(belay__waiter_t *waiter, int within_ms) {
  belay__delay_t delay = belay__delay_ms(0, (uint64_t)within_ms);
  uint64_t soon = belay__now(host_of(waiter)) + belay__delay_draw(host_of(waiter), delay);
  if (soon < waiter->timer.when)
    belay__timer_set(host_of(waiter), BELAY__RANK_OTHER, &waiter->timer, soon);
  return BELAY__WAITER_WAITING;
}

/* ---- the machine ----------------------------------------------------------------------------------------- */

/* The state after an event. holds_ms: with an answer. */
static belay__waiter_state_t next_state(belay__waiter_t *waiter, event_t event, int arg,
                                        int64_t holds_ms) {
  belay__waiter_state_t state = (belay__waiter_state_t)waiter->state;
  if (event == EV_STOP)
    return state == BELAY__WAITER_IDLE ? state : stop(waiter);
  switch (state) {
  case BELAY__WAITER_IDLE:
    assert(event == EV_START);
    return ask(waiter);

  case BELAY__WAITER_ASKING:
    if (event == EV_CANCEL)
      return give_up(waiter, arg);
    if (event == EV_HEARD) {
      waiter->again = true;
      return state;
    }
    assert(event == EV_ANSWER);
    if (arg == 0)
      return end(waiter, 0);
    if (arg == BELAY__FORGOTTEN)
      return give_up(waiter, BELAY_EUNKNOWN);
    return arg == BELAY__NOT_YET ? answered_not_yet(waiter, holds_ms) : not_answered(waiter, arg);

  case BELAY__WAITER_WAITING:
    if (event == EV_CANCEL)
      return give_up(waiter, arg);
    if (event == EV_HEARD)
      return hurry(waiter, arg);
    assert(event == EV_TIMER);
    return belay__now(host_of(waiter)) < waiter->wait_until ? ask(waiter)
                                                            : give_up(waiter, waiter->last);

  case BELAY__WAITER_LEAVING:
    if (event == EV_CANCEL)
      waiter->last = arg;
    if (event != EV_ANSWER)
      return state;
    if (arg == 0)
      return end(waiter, 0);
    return end(waiter, arg == BELAY__NOT_YET ? said(waiter) : unsaid(waiter->last));
  }
  return state;
}

static void step(belay__waiter_t *waiter, event_t event, int arg, int64_t holds_ms) {
  waiter->state = (uint8_t)next_state(waiter, event, arg, holds_ms);
}

/* ---- what happens ---------------------------------------------------------------------------------------- */

/* What a call was answered with. */
static int read(belay__waiter_t *waiter, belay__call_t *call, const belay__result_t *result,
                int64_t *holds_ms) {
  if (result->outcome == BELAY_OUTCOME_UNKNOWN)
    waiter->maybe = waiter->astray = true;
  if (result->outcome != BELAY_OUTCOME_REPLY)
    return result->error;
  int status = waiter->state == BELAY__WAITER_LEAVING
                   ? waiter->ops->left(waiter, result->reply)
                   : waiter->ops->read(waiter, result->reply, holds_ms);
  if (status == BELAY_EPROTO)
    belay__call_distrust(call, result->reply);
  return status;
}

static void on_answer(belay__call_t *call, const belay__result_t *result) {
  belay__waiter_t *waiter = call->owner;
  int64_t holds_ms = -1;
  int status = read(waiter, call, result, &holds_ms);
  step(waiter, EV_ANSWER, status, holds_ms);
}

static void on_timer(belay__timer_t *timer) {
  step(BELAY__CONTAINER(timer, belay__waiter_t, timer), EV_TIMER, 0, -1);
}

/* After a gap everybody asks again: over a longer time. */
static void on_heard(belay__ear_t *ear, belay__heard_t what, const char *data, size_t len,
                     int status) {
  belay__waiter_t *waiter = BELAY__CONTAINER(ear, belay__waiter_t, ear);
  (void)data;
  (void)len;
  (void)status;
  bool gap = waiter->gap;
  waiter->gap = what == BELAY__HEARD_GAP || (gap && what != BELAY__HEARD_UP);
  if (what != BELAY__HEARD_GAP && belay__waiter_is_on(waiter))
    step(waiter, EV_HEARD, gap ? RECONNECT_MS : (int)BELAY__SPREAD_MS, -1);
}

/* ---- the owner's side ------------------------------------------------------------------------------------ */

void belay__waiter_init(belay__waiter_t *waiter, const belay__waiter_ops_t *ops,
                        belay_client_t *client, const belay__waiter_terms_t *terms,
                        const char *channel, size_t channel_len) {
  *waiter = (belay__waiter_t){
      .ops = ops,
      .client = client,
      .terms = *terms,
      .ear = {.hear = on_heard},
      .timer = {.fire = on_timer},
      .channel = channel,
      .channel_len = channel_len,
      .affinity = belay__key_affinity(channel, channel_len),
  };
  uint32_t often = terms->forgotten_after / ASKS_BEFORE_FORGOTTEN;
  if (often > 0 && (terms->most_apart == 0 || terms->most_apart > often))
    waiter->terms.most_apart = often;
}

void belay__waiter_start(belay__waiter_t *waiter, int64_t wait_ms) {
  waiter->wait_until = wait_ms == 0 ? 0 : belay__after_ms(host_of(waiter), wait_ms);
  waiter->vain = waiter->failures = 0;
  waiter->last = BELAY_ETIMEDOUT;
  waiter->status = 0;
  waiter->again = waiter->maybe = waiter->astray = waiter->gap = false;
  step(waiter, EV_START, 0, -1);
}

void belay__waiter_cancel(belay__waiter_t *waiter, int status) {
  step(waiter, EV_CANCEL, status, -1);
}

void belay__waiter_look(belay__waiter_t *waiter) {
  if (belay__waiter_is_on(waiter))
    step(waiter, EV_HEARD, 0, -1);
}

void belay__waiter_stop(belay__waiter_t *waiter) {
  step(waiter, EV_STOP, 0, -1);
}

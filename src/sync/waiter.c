/* The vigil.
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
 * Only step() writes the state. The question is asked at once; then whenever something is heard on the channel,
 * when its subscription is confirmed (what was said before was missed), and now and then all the same, because
 * messages are lost. What is heard while a question is out may have happened after it was answered: it is asked
 * once more. */
#include "sync/waiter.h"

#include <assert.h>

#include "core/key/key.h"
#include "core/loop/backoff.h"
#include "lease/quorum/round.h"

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

static belay_t *host_of(const belay__vigil_t *vigil) {
  return vigil->client->belay;
}

/* ---- leaves: time ---------------------------------------------------------------------------------------- */

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* From when on what the server says cannot be trusted to be about us. */
static uint64_t forgotten_at(const belay__vigil_t *vigil) {
  if (!vigil->maybe || vigil->terms.forgotten_after == 0)
    return BELAY__NEVER;
  return vigil->sure_at + vigil->terms.forgotten_after * BELAY__MS;
}

/* After the question was answered "not yet", or not at all, for the n-th time in a row. */
static uint64_t poll_delay(const belay__vigil_t *vigil, uint32_t n, uint64_t most) {
  belay__delay_t delay = belay__delay_ms(vigil->terms.retry_min, vigil->terms.retry_max);
  delay = belay__delay_grow(delay, n > 0 ? n - 1 : 0, most > delay.max ? most : delay.max);
  return belay__delay_draw(host_of(vigil), delay);
}

/* When to ask again. holds_ms: how long the answer stays what it is; -1: not known. */
static uint64_t next_question(const belay__vigil_t *vigil, int64_t holds_ms, uint64_t now) {
  const belay__vigil_terms_t *terms = &vigil->terms;
  uint64_t when;
  if (vigil->again)
    when = now + belay__spread(host_of(vigil), BELAY__SPREAD_MS * BELAY__MS);
  else if (vigil->failures > 0)
    when = now + poll_delay(vigil, vigil->failures, BELAY__BACKOFF_MAX_MS * BELAY__MS);
  else
    when = now + poll_delay(vigil, vigil->vain, terms->backoff_max * BELAY__MS);
  if (terms->most_apart > 0)
    when = earlier(when, now + terms->most_apart * BELAY__MS);
  if (holds_ms >= 0)
    when = earlier(when, now + ((uint64_t)holds_ms + 1) * BELAY__MS +
                             belay__spread(host_of(vigil), BELAY__SPREAD_MS * BELAY__MS));
  return earlier(when, vigil->wait_until);
}

/* ---- leaves: talking ------------------------------------------------------------------------------------- */

static void listen(belay__vigil_t *vigil) {
  if (vigil->ear.channel == NULL && vigil->wait_until != 0)
    (void)belay__listen(vigil->client, vigil->channel, vigil->channel_len, &vigil->ear);
}

static void stop_asking(belay__vigil_t *vigil) {
  if (belay__call_cancel(&vigil->call))
    vigil->maybe = vigil->astray = true;
}

/* Sends what `fill` fills in; 0 or an error. */
static int send(belay__vigil_t *vigil, void (*fill)(belay__vigil_t *, belay__call_t *),
                uint64_t deadline, bool urgent) {
  belay__call_t *call = belay__call_new(vigil->client, BELAY__LANE_DATA);
  if (call == NULL)
    return BELAY_ENOMEM;
  fill(vigil, call);
  call->deadline = deadline;
  call->affinity = vigil->affinity;
  call->urgent = urgent;
  return belay__call_start(&vigil->call, call, on_answer, vigil);
}

static uint64_t answer_by(const belay__vigil_t *vigil) {
  return belay__now(host_of(vigil)) + vigil->terms.timeout * BELAY__MS;
}

/* ---- transitions: each returns the state to go to ---------------------------------------------------------- */

static belay__vigil_state_t end(belay__vigil_t *vigil, int status) {
  vigil->status = status;
  stop_asking(vigil);
  belay__timer_stop(host_of(vigil), BELAY__RANK_OTHER, &vigil->timer);
  belay__unlisten(&vigil->ear);
  vigil->ops->over(vigil);
  return BELAY__VIGIL_IDLE;
}

/* It could not be said that nobody waits any more. Who only stopped waiting does not know whether the answer had
 * come. */
static int unsaid(int status) {
  bool stopped = status == BELAY_ETIMEDOUT || status == BELAY_ECANCELED;
  return stopped ? BELAY_EUNKNOWN : status;
}

/* It has been said. After the server may have forgotten it proves nothing. */
static int said(const belay__vigil_t *vigil) {
  return belay__now(host_of(vigil)) < forgotten_at(vigil) ? vigil->last : unsaid(vigil->last);
}

/* Ends at once. */
static belay__vigil_state_t stop(belay__vigil_t *vigil) {
  stop_asking(vigil);
  if (vigil->state == BELAY__VIGIL_LEAVING)
    return end(vigil, unsaid(vigil->last));
  bool may_stay = vigil->ops->leave != NULL && vigil->maybe;
  return end(vigil, may_stay ? BELAY_EUNKNOWN : BELAY_ECANCELED);
}

/* The wait ends without the answer. */
static belay__vigil_state_t give_up(belay__vigil_t *vigil, int status) {
  stop_asking(vigil);
  if (vigil->ops->leave == NULL || !vigil->maybe)
    return end(vigil, status);
  belay__timer_stop(host_of(vigil), BELAY__RANK_OTHER, &vigil->timer);
  vigil->last = status;
  if (send(vigil, vigil->ops->leave, answer_by(vigil), true) != 0)
    return end(vigil, unsaid(status));
  return BELAY__VIGIL_LEAVING;
}

/* The end of the wait cut a question short: that it was not answered says nothing, and what the one before it found
 * still stands. */
static bool cut_short(const belay__vigil_t *vigil, int status, uint64_t now) {
  return vigil->limited && now >= vigil->wait_until &&
         (status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE);
}

static belay__vigil_state_t not_answered(belay__vigil_t *vigil, int status);

static belay__vigil_state_t ask(belay__vigil_t *vigil) {
  uint64_t now = belay__now(host_of(vigil));
  if (now >= forgotten_at(vigil))
    return give_up(vigil, BELAY_EUNKNOWN);
  listen(vigil);
  vigil->again = false;
  vigil->asked_at = now;
  if (!vigil->maybe)
    vigil->sure_at = now;
  uint64_t deadline = earlier(answer_by(vigil), forgotten_at(vigil));
  bool first = vigil->vain == 0 && vigil->failures == 0; /* which is answered, or has its timeout */
  vigil->limited = vigil->wait_until != 0 && !first && vigil->wait_until < deadline;
  if (vigil->limited)
    deadline = vigil->wait_until;
  int error = send(vigil, vigil->ops->ask, deadline, false);
  return error == 0 ? BELAY__VIGIL_ASKING : not_answered(vigil, error);
}

/* Waits for the next question, if there is time for one. */
static belay__vigil_state_t wait(belay__vigil_t *vigil, int64_t holds_ms) {
  uint64_t now = belay__now(host_of(vigil));
  if (now >= vigil->wait_until)
    return give_up(vigil, vigil->last);
  belay__timer_set(host_of(vigil), BELAY__RANK_OTHER, &vigil->timer,
                   next_question(vigil, holds_ms, now));
  return BELAY__VIGIL_WAITING;
}

static belay__vigil_state_t answered_not_yet(belay__vigil_t *vigil, int64_t holds_ms) {
  vigil->maybe = true;
  vigil->sure_at = vigil->asked_at;
  vigil->failures = 0;
  vigil->vain++;
  vigil->last = BELAY_ETIMEDOUT;
  return wait(vigil, holds_ms);
}

static belay__vigil_state_t not_answered(belay__vigil_t *vigil, int status) {
  if (!cut_short(vigil, status, belay__now(host_of(vigil))))
    vigil->last = status;
  vigil->failures++;
  vigil->vain = 0;
  if (vigil->ops->missed != NULL)
    vigil->ops->missed(vigil, status);
  if (belay__round_is_lasting(status) && !vigil->terms.stubborn)
    return give_up(vigil, status);
  return wait(vigil, -1);
}

/* Something was heard while it waits. */
static belay__vigil_state_t hurry(belay__vigil_t *vigil, int within_ms) {
  belay__delay_t delay = belay__delay_ms(0, (uint64_t)within_ms);
  uint64_t soon = belay__now(host_of(vigil)) + belay__delay_draw(host_of(vigil), delay);
  if (soon < vigil->timer.when)
    belay__timer_set(host_of(vigil), BELAY__RANK_OTHER, &vigil->timer, soon);
  return BELAY__VIGIL_WAITING;
}

/* ---- the machine ----------------------------------------------------------------------------------------- */

/* The state after an event. holds_ms: with an answer. */
static belay__vigil_state_t next_state(belay__vigil_t *vigil, event_t event, int arg,
                                       int64_t holds_ms) {
  belay__vigil_state_t state = (belay__vigil_state_t)vigil->state;
  if (event == EV_STOP)
    return state == BELAY__VIGIL_IDLE ? state : stop(vigil);
  switch (state) {
  case BELAY__VIGIL_IDLE:
    assert(event == EV_START);
    return ask(vigil);

  case BELAY__VIGIL_ASKING:
    if (event == EV_CANCEL)
      return give_up(vigil, arg);
    if (event == EV_HEARD) {
      vigil->again = true;
      return state;
    }
    assert(event == EV_ANSWER);
    if (arg == 0)
      return end(vigil, 0);
    if (arg == BELAY__FORGOTTEN)
      return give_up(vigil, BELAY_EUNKNOWN);
    return arg == BELAY__NOT_YET ? answered_not_yet(vigil, holds_ms) : not_answered(vigil, arg);

  case BELAY__VIGIL_WAITING:
    if (event == EV_CANCEL)
      return give_up(vigil, arg);
    if (event == EV_HEARD)
      return hurry(vigil, arg);
    assert(event == EV_TIMER);
    return belay__now(host_of(vigil)) < vigil->wait_until ? ask(vigil)
                                                          : give_up(vigil, vigil->last);

  case BELAY__VIGIL_LEAVING:
    if (event == EV_CANCEL)
      vigil->last = arg;
    if (event != EV_ANSWER)
      return state;
    if (arg == 0)
      return end(vigil, 0);
    return end(vigil, arg == BELAY__NOT_YET ? said(vigil) : unsaid(vigil->last));
  }
  return state;
}

static void step(belay__vigil_t *vigil, event_t event, int arg, int64_t holds_ms) {
  vigil->state = (uint8_t)next_state(vigil, event, arg, holds_ms);
}

/* ---- what happens ---------------------------------------------------------------------------------------- */

/* What a call was answered with. */
static int read(belay__vigil_t *vigil, belay__call_t *call, const belay__result_t *result,
                int64_t *holds_ms) {
  if (result->outcome == BELAY_OUTCOME_UNKNOWN)
    vigil->maybe = vigil->astray = true;
  if (result->outcome != BELAY_OUTCOME_REPLY)
    return result->error;
  int status = vigil->state == BELAY__VIGIL_LEAVING
                   ? vigil->ops->left(vigil, result->reply)
                   : vigil->ops->read(vigil, result->reply, holds_ms);
  if (status == BELAY_EPROTO)
    belay__call_distrust(call, result->reply);
  return status;
}

static void on_answer(belay__call_t *call, const belay__result_t *result) {
  belay__vigil_t *vigil = call->owner;
  int64_t holds_ms = -1;
  int status = read(vigil, call, result, &holds_ms);
  step(vigil, EV_ANSWER, status, holds_ms);
}

static void on_timer(belay__timer_t *timer) {
  step(BELAY__CONTAINER(timer, belay__vigil_t, timer), EV_TIMER, 0, -1);
}

/* After a gap everybody asks again: over a longer time. */
static void on_heard(belay__ear_t *ear, belay__heard_t what, const char *data, size_t len,
                     int status) {
  belay__vigil_t *vigil = BELAY__CONTAINER(ear, belay__vigil_t, ear);
  (void)data;
  (void)len;
  (void)status;
  bool gap = vigil->gap;
  vigil->gap = what == BELAY__HEARD_GAP || (gap && what != BELAY__HEARD_UP);
  if (what != BELAY__HEARD_GAP && belay__vigil_is_on(vigil))
    step(vigil, EV_HEARD, gap ? RECONNECT_MS : (int)BELAY__SPREAD_MS, -1);
}

/* ---- the owner's side ------------------------------------------------------------------------------------ */

void belay__vigil_init(belay__vigil_t *vigil, const belay__vigil_ops_t *ops, belay_client_t *client,
                       const belay__vigil_terms_t *terms, const char *channel, size_t channel_len) {
  *vigil = (belay__vigil_t){
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
    vigil->terms.most_apart = often;
}

void belay__vigil_start(belay__vigil_t *vigil, int64_t wait_ms) {
  vigil->wait_until = wait_ms == 0 ? 0 : belay__after_ms(host_of(vigil), wait_ms);
  vigil->vain = vigil->failures = 0;
  vigil->last = BELAY_ETIMEDOUT;
  vigil->status = 0;
  vigil->again = vigil->maybe = vigil->astray = vigil->gap = false;
  step(vigil, EV_START, 0, -1);
}

void belay__vigil_cancel(belay__vigil_t *vigil, int status) {
  step(vigil, EV_CANCEL, status, -1);
}

void belay__vigil_look(belay__vigil_t *vigil) {
  if (belay__vigil_is_on(vigil))
    step(vigil, EV_HEARD, 0, -1);
}

void belay__vigil_stop(belay__vigil_t *vigil) {
  step(vigil, EV_STOP, 0, -1);
}

/* The waiter.
 *
 *    IDLE --start--> ASKING --not yet, or no reply--> WAITING --time; a message--> ASKING
 *     ^                | |                               |
 *     |<--the reply----+ |                               |
 *     |                  +--cancel, end of the wait, <---+
 *     |                  |  a lasting refusal, forgotten
 *     |<--nothing left---+
 *     |                  v
 *     +--reply, or---- LEAVING
 *        none
 *
 *    any --stop--> IDLE
 *
 * Only step() writes the state. The waiter asks at the start, after each message on the channel,
 * and when the subscription is confirmed, because it got no messages before. It also polls, because
 * messages can be lost. A message while a question is pending may report a change after the
 * question was executed, so the waiter asks once more. */
#include "sync/waiter.h"

#include <assert.h>

#include "core/call/refusal.h"
#include "core/key/key.h"
#include "core/loop/backoff.h"

/* longest delay of a query after a gap, so that waiters do not query all at once */
#define RECONNECT_MS 200
/* Smallest number of queries that a waiter sends before the server may have forgotten it. */
#define QUERIES_BEFORE_FORGOTTEN 4

typedef enum event {
  EV_START,
  EV_ANSWER, /* arg: the status of the reply */
  EV_TIMER,
  EV_MESSAGE, /* arg: longest delay of the next query, in ms */
  EV_CANCEL,  /* arg: the status of the wait */
  EV_STOP
} event_t;

static void on_answer(belay__call_t *call, const belay__result_t *result);

static belay_t *belay_of(const belay__waiter_t *waiter) {
  return waiter->client->belay;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* Returns the time from which the server may have forgotten the waiter. From then on, a reply of
 * the server proves nothing. */
static uint64_t forgotten_at(const belay__waiter_t *waiter) {
  if (!waiter->may_exist || waiter->config.forgotten_after == 0)
    return BELAY__NEVER;
  return waiter->known_at + waiter->config.forgotten_after * BELAY__MS;
}

/* Draws the delay of the next query after n consecutive replies of "not yet", or n consecutive
 * failures. */
static uint64_t poll_delay(const belay__waiter_t *waiter, uint32_t n, uint64_t most_ms) {
  const belay__waiter_config_t *config = &waiter->config;
  return belay__delay_draw(belay_of(waiter), belay__delay_poll(config->retry_min, config->retry_max,
                                                               n > 0 ? n - 1 : 0, most_ms));
}

/* Time of the next query. holds_ms: time for which the reply stays true; -1: unknown. */
static uint64_t next_query_at(const belay__waiter_t *waiter, int64_t holds_ms, uint64_t now) {
  const belay__waiter_config_t *config = &waiter->config;
  uint64_t when;
  if (waiter->ask_again)
    when = now + belay__spread(belay_of(waiter), BELAY__SPREAD_MS * BELAY__MS);
  else if (waiter->failures > 0)
    when = now + poll_delay(waiter, waiter->failures, BELAY__BACKOFF_MAX_MS);
  else
    when = now + poll_delay(waiter, waiter->not_yet_count, config->backoff_max);
  if (config->max_interval > 0)
    when = earlier(when, now + config->max_interval * BELAY__MS);
  if (holds_ms >= 0)
    when = earlier(when, now + ((uint64_t)holds_ms + 1) * BELAY__MS +
                             belay__spread(belay_of(waiter), BELAY__SPREAD_MS * BELAY__MS));
  return earlier(when, waiter->wait_until);
}

static void subscribe(belay__waiter_t *waiter) {
  if (waiter->subscription.channel == NULL && waiter->wait_until != 0)
    (void)belay__listen(waiter->client, waiter->channel, waiter->channel_len,
                        &waiter->subscription);
}

static void cancel_call(belay__waiter_t *waiter) {
  if (belay__call_cancel(&waiter->call))
    waiter->may_exist = waiter->may_run_late = true;
}

/* Builds and sends a call. Returns 0 or an error. */
static int send_call(belay__waiter_t *waiter, void (*build)(belay__waiter_t *, belay__call_t *),
                     uint64_t deadline, bool urgent) {
  belay__call_t *call = belay__call_new(waiter->client, BELAY__CLASS_DATA);
  if (call == NULL)
    return BELAY_ENOMEM;
  build(waiter, call);
  call->deadline = deadline;
  call->route = waiter->route;
  call->urgent = urgent;
  return belay__call_start(&waiter->call, call, on_answer, waiter);
}

static uint64_t call_deadline(const belay__waiter_t *waiter) {
  return belay__now(belay_of(waiter)) + waiter->config.timeout * BELAY__MS;
}

/* ---- transitions: each returns the next state ---- */

static belay__waiter_state_t end_wait(belay__waiter_t *waiter, int status) {
  waiter->status = status;
  cancel_call(waiter);
  belay__timer_stop(belay_of(waiter), BELAY__RANK_OTHER, &waiter->timer);
  belay__unlisten(&waiter->subscription);
  waiter->ops->finished(waiter);
  return BELAY__WAITER_IDLE;
}

/* Returns the status of a wait whose withdrawal was not confirmed. After a timeout or a cancel it
 * is unknown whether the condition was met. */
static int withdraw_failed(int status) {
  bool stopped = status == BELAY_ETIMEDOUT || status == BELAY_ECANCELED;
  return stopped ? BELAY_EUNKNOWN : status;
}

/* Returns the status of a wait whose withdrawal was confirmed. After forgotten_at() the
 * confirmation proves nothing, so the status is that of withdraw_failed(). */
static int withdraw_done(const belay__waiter_t *waiter) {
  return belay__now(belay_of(waiter)) < forgotten_at(waiter) ? waiter->last
                                                             : withdraw_failed(waiter->last);
}

static belay__waiter_state_t stop_wait(belay__waiter_t *waiter) {
  cancel_call(waiter);
  if (waiter->state == BELAY__WAITER_LEAVING)
    return end_wait(waiter, withdraw_failed(waiter->last));
  bool may_stay = waiter->ops->build_withdraw != NULL && waiter->may_exist;
  return end_wait(waiter, may_stay ? BELAY_EUNKNOWN : BELAY_ECANCELED);
}

/* Ends the wait without the wanted reply, after a withdrawal if one is needed. */
static belay__waiter_state_t give_up(belay__waiter_t *waiter, int status) {
  cancel_call(waiter);
  if (waiter->ops->build_withdraw == NULL || !waiter->may_exist)
    return end_wait(waiter, status);
  belay__timer_stop(belay_of(waiter), BELAY__RANK_OTHER, &waiter->timer);
  waiter->last = status;
  if (send_call(waiter, waiter->ops->build_withdraw, call_deadline(waiter), true) != 0)
    return end_wait(waiter, withdraw_failed(status));
  return BELAY__WAITER_LEAVING;
}

/* True if the end of the wait cut a question short. The missing reply says nothing, so the result
 * of the question before it stays the status. */
static bool cut_short(const belay__waiter_t *waiter, int status, uint64_t now) {
  return waiter->limited && now >= waiter->wait_until &&
         (status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE);
}

static belay__waiter_state_t not_answered(belay__waiter_t *waiter, int status);

static belay__waiter_state_t send_query(belay__waiter_t *waiter) {
  uint64_t now = belay__now(belay_of(waiter));
  if (now >= forgotten_at(waiter))
    return give_up(waiter, BELAY_EUNKNOWN);
  subscribe(waiter);
  waiter->ask_again = false;
  waiter->asked_at = now;
  if (!waiter->may_exist)
    waiter->known_at = now;
  uint64_t deadline = earlier(call_deadline(waiter), forgotten_at(waiter));
  bool first = waiter->not_yet_count == 0 && waiter->failures == 0; /* it has its whole timeout */
  waiter->limited = waiter->wait_until != 0 && !first && waiter->wait_until < deadline;
  if (waiter->limited)
    deadline = waiter->wait_until;
  int error = send_call(waiter, waiter->ops->build_query, deadline, false);
  return error == 0 ? BELAY__WAITER_ASKING : not_answered(waiter, error);
}

static belay__waiter_state_t wait_for_query(belay__waiter_t *waiter, int64_t holds_ms) {
  uint64_t now = belay__now(belay_of(waiter));
  if (now >= waiter->wait_until)
    return give_up(waiter, waiter->last);
  belay__timer_set(belay_of(waiter), BELAY__RANK_OTHER, &waiter->timer,
                   next_query_at(waiter, holds_ms, now));
  return BELAY__WAITER_WAITING;
}

static belay__waiter_state_t answered_not_yet(belay__waiter_t *waiter, int64_t holds_ms) {
  waiter->may_exist = true;
  waiter->known_at = waiter->asked_at;
  waiter->failures = 0;
  waiter->not_yet_count++;
  waiter->last = BELAY_ETIMEDOUT;
  return wait_for_query(waiter, holds_ms);
}

static belay__waiter_state_t not_answered(belay__waiter_t *waiter, int status) {
  if (!cut_short(waiter, status, belay__now(belay_of(waiter))))
    waiter->last = status;
  waiter->failures++;
  waiter->not_yet_count = 0;
  if (waiter->ops->failed != NULL)
    waiter->ops->failed(waiter, status);
  if (belay__refusal_is_lasting(status) && !waiter->config.retry_lasting)
    return give_up(waiter, status);
  return wait_for_query(waiter, -1);
}

static belay__waiter_state_t advance_query(belay__waiter_t *waiter, int within_ms) {
  belay__delay_t delay = belay__delay_ms(0, (uint64_t)within_ms);
  uint64_t soon = belay__now(belay_of(waiter)) + belay__delay_draw(belay_of(waiter), delay);
  if (soon < waiter->timer.when)
    belay__timer_set(belay_of(waiter), BELAY__RANK_OTHER, &waiter->timer, soon);
  return BELAY__WAITER_WAITING;
}

static belay__waiter_state_t next_state(belay__waiter_t *waiter, event_t event, int arg,
                                        int64_t holds_ms) {
  belay__waiter_state_t state = (belay__waiter_state_t)waiter->state;
  if (event == EV_STOP)
    return state == BELAY__WAITER_IDLE ? state : stop_wait(waiter);
  switch (state) {
  case BELAY__WAITER_IDLE:
    assert(event == EV_START);
    return send_query(waiter);

  case BELAY__WAITER_ASKING:
    if (event == EV_CANCEL)
      return give_up(waiter, arg);
    if (event == EV_MESSAGE) {
      waiter->ask_again = true;
      return state;
    }
    assert(event == EV_ANSWER);
    if (arg == 0)
      return end_wait(waiter, 0);
    if (arg == BELAY__FORGOTTEN)
      return give_up(waiter, BELAY_EUNKNOWN);
    return arg == BELAY__NOT_YET ? answered_not_yet(waiter, holds_ms) : not_answered(waiter, arg);

  case BELAY__WAITER_WAITING:
    if (event == EV_CANCEL)
      return give_up(waiter, arg);
    if (event == EV_MESSAGE)
      return advance_query(waiter, arg);
    assert(event == EV_TIMER);
    return belay__now(belay_of(waiter)) < waiter->wait_until ? send_query(waiter)
                                                             : give_up(waiter, waiter->last);

  case BELAY__WAITER_LEAVING:
    if (event == EV_CANCEL)
      waiter->last = arg;
    if (event != EV_ANSWER)
      return state;
    if (arg == 0)
      return end_wait(waiter, 0);
    return end_wait(waiter,
                    arg == BELAY__NOT_YET ? withdraw_done(waiter) : withdraw_failed(waiter->last));
  }
  return state;
}

static void step(belay__waiter_t *waiter, event_t event, int arg, int64_t holds_ms) {
  waiter->state = (uint8_t)next_state(waiter, event, arg, holds_ms);
}

/* ---- events ---- */

static int read(belay__waiter_t *waiter, belay__call_t *call, const belay__result_t *result,
                int64_t *holds_ms) {
  if (result->outcome == BELAY_OUTCOME_UNKNOWN)
    waiter->may_exist = waiter->may_run_late = true;
  if (result->outcome != BELAY_OUTCOME_REPLY)
    return result->error;
  int status = waiter->state == BELAY__WAITER_LEAVING
                   ? waiter->ops->read_withdraw(waiter, result->reply)
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

/* Lets the waiter query again soon after a message or a confirmation. After a gap all waiters of
 * the connection query again, so their delays are longer. */
static void on_message(belay__subscription_t *subscription, belay__channel_event_t what,
                       const char *data, size_t len, int status) {
  belay__waiter_t *waiter = BELAY__CONTAINER(subscription, belay__waiter_t, subscription);
  (void)data;
  (void)len;
  (void)status;
  bool gap = waiter->gap;
  waiter->gap = what == BELAY__CHANNEL_GAP || (gap && what != BELAY__CHANNEL_UP);
  if (what != BELAY__CHANNEL_GAP && belay__waiter_is_on(waiter))
    step(waiter, EV_MESSAGE, gap ? RECONNECT_MS : (int)BELAY__SPREAD_MS, -1);
}

/* ---- functions for the owner ---- */

void belay__waiter_init(belay__waiter_t *waiter, const belay__waiter_ops_t *ops,
                        belay_client_t *client, const belay__waiter_config_t *config,
                        const char *channel, size_t channel_len) {
  *waiter = (belay__waiter_t){
      .ops = ops,
      .client = client,
      .config = *config,
      .subscription = {.on_event = on_message},
      .timer = {.fire = on_timer},
      .channel = channel,
      .channel_len = channel_len,
      .route = belay__key_route(channel, channel_len),
  };
  uint32_t interval = config->forgotten_after / QUERIES_BEFORE_FORGOTTEN;
  if (interval > 0 && (config->max_interval == 0 || config->max_interval > interval))
    waiter->config.max_interval = interval;
}

void belay__waiter_start(belay__waiter_t *waiter, int64_t wait_ms) {
  waiter->wait_until = wait_ms == 0 ? 0 : belay__after_ms(belay_of(waiter), wait_ms);
  waiter->not_yet_count = waiter->failures = 0;
  waiter->last = BELAY_ETIMEDOUT;
  waiter->status = 0;
  waiter->ask_again = waiter->may_exist = waiter->may_run_late = waiter->gap = false;
  step(waiter, EV_START, 0, -1);
}

void belay__waiter_cancel(belay__waiter_t *waiter, int status) {
  step(waiter, EV_CANCEL, status, -1);
}

void belay__waiter_ask_soon(belay__waiter_t *waiter) {
  if (belay__waiter_is_on(waiter))
    step(waiter, EV_MESSAGE, 0, -1);
}

void belay__waiter_stop(belay__waiter_t *waiter) {
  step(waiter, EV_STOP, 0, -1);
}

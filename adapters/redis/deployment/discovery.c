/* A scout.
 *
 *   IDLE --ask--> WAITING --its turn--> DIALING --connected--> ASKING --DONE--> READY --ask--> ASKING
 *    ^              ^                      |                     |                |
 *    |              |                      v                     v                |
 *    |              +---the next one---- lost, late, refused, NEXT                |
 *    |                                     |                                      |
 *    +-------------none is left------------+              +----------lost---------+
 *    +----------------------------------------------------+
 *
 *   any --close--> CLOSED
 *
 * A round asks everybody once, whoever answered last first. */
#include "redis/deployment/discovery.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/call/refusal.h"
#include "redis/conn/cause.h"

/* All have together the time in which a connection must be made; each has at least this. */
#define PATIENCE_MIN_MS 50
#define SHARES_MIN 4 /* parts of that time, of which each has one */
#define SHARES_MAX 10

static void on_dialed(belay__dial_t *dial, int error, int fd, belay__uv_handle_t *handle);
static void on_ready(belay__wire_t *wire);
static void on_gone(belay__wire_t *wire, int error);
static void on_timer(belay__timer_t *timer);
static void on_turn(belay__turn_t *turn);
static void on_pushed(belay__wire_t *wire, const belay__reply_t *reply);

static belay_t *belay_of(const belay__scout_t *scout) {
  return &scout->trunk->host->base;
}

static belay__scout_t *scout_of(const redisAsyncContext *ac) {
  return BELAY__CONTAINER(ac->data, belay__scout_t, wire);
}

static void on_dial_over(belay__dial_t *dial) {
  belay__scout_t *scout = BELAY__CONTAINER(dial, belay__scout_t, dial);
  scout->trunk->ops->quiet(scout->trunk, NULL);
}

static void on_heard(belay__wire_t *wire) {
  (void)wire;
}

void belay__scout_init(belay__scout_t *scout, belay__trunk_t *trunk, const belay__scout_ops_t *ops,
                       belay__identity_t identity, const belay__place_t *places, size_t n) {
  scout->trunk = trunk;
  scout->ops = ops;
  scout->identity = identity;
  scout->state = BELAY__SCOUT_IDLE;
  scout->timer.fire = on_timer;
  belay__turn_init(&scout->turn, on_turn);
  scout->target = (belay__target_t){.keepalive_ms = trunk->keepalive_ms,
                                    .tcp_user_timeout_ms = trunk->tcp_user_timeout_ms};
  scout->wire = (belay__wire_t){.host = trunk->host,
                                .stats = &trunk->client->stats,
                                .max_reply = trunk->max_reply,
                                .ready = on_ready,
                                .heard = on_heard,
                                .pushed = scout->channels != NULL ? on_pushed : NULL,
                                .gone = on_gone,
                                .dial = &scout->dial};
  belay__wire_init(&scout->wire);
  belay__dial_init(&scout->dial, trunk->host, &scout->target, &scout->handles, on_dialed,
                   on_dial_over);
  belay__scout_set(scout, places, n);
}

/* ---- places -------------------------------------------------------------------------------------------- */

/* The connection leads to somebody who is not to be asked. */
static void hang_up(belay__scout_t *scout) {
  if (scout->state != BELAY__SCOUT_READY)
    return;
  scout->state = BELAY__SCOUT_IDLE;
  belay__wire_break(&scout->wire, BELAY_EUNREACHABLE);
}

static bool is_busy(const belay__scout_t *scout) {
  return scout->state != BELAY__SCOUT_IDLE && scout->state != BELAY__SCOUT_READY;
}

/* Index of the place; count if there is none. */
static size_t find_place(const belay__scout_t *scout, const belay__place_t *place) {
  size_t i = 0;
  while (i < scout->count && !belay__place_is(&scout->places[i], place))
    i++;
  return i;
}

static void move_to(belay__scout_t *scout, size_t at) {
  if (scout->at == at)
    return;
  scout->at = at;
  hang_up(scout);
}

void belay__scout_set(belay__scout_t *scout, const belay__place_t *places, size_t n) {
  if (n == 0)
    return;
  belay__place_t here = *belay__scout_place(scout);
  scout->count = scout->at = 0;
  for (size_t i = 0; i < n; i++)
    if (scout->count < BELAY__SCOUT_PLACES && find_place(scout, &places[i]) == scout->count)
      scout->places[scout->count++] = places[i];
  if (scout->left > scout->count)
    scout->left = scout->count;
  scout->at = find_place(scout, &here);
  if (scout->at == scout->count)
    move_to(scout, 0);
}

const belay__place_t *belay__scout_place(const belay__scout_t *scout) {
  return &scout->places[scout->at];
}

/* ---- the round ----------------------------------------------------------------------------------------- */

static void set_patience(belay__scout_t *scout) {
  int64_t shares = (int64_t)scout->count + 1;
  if (shares < SHARES_MIN)
    shares = SHARES_MIN;
  if (shares > SHARES_MAX)
    shares = SHARES_MAX;
  int64_t ms = scout->trunk->connect_timeout_ms / shares;
  belay__timer_set(belay_of(scout), BELAY__RANK_OTHER, &scout->timer,
                   belay__after_ms(belay_of(scout), ms > PATIENCE_MIN_MS ? ms : PATIENCE_MIN_MS));
}

/* It may be asked for from anywhere: so it is only begun from the loop. Who asks goes ahead of who only dials and does not
 * know better, as long as he is answered. */
static void wait_for_turn(belay__scout_t *scout) {
  belay_t *belay = belay_of(scout);
  scout->state = BELAY__SCOUT_WAITING;
  belay__timer_stop(belay, BELAY__RANK_OTHER, &scout->timer);
  if (scout->knocked)
    belay__pace_queue(&scout->trunk->host->pace, &scout->turn, scout->met);
  else
    belay__timer_set(belay, BELAY__RANK_OTHER, &scout->timer, belay__now(belay));
}

static void dial(belay__scout_t *scout) {
  scout->state = BELAY__SCOUT_DIALING;
  scout->knocked = true;
  scout->met = false;
  scout->target.place = *belay__scout_place(scout);
  set_patience(scout);
  belay__dial_start(&scout->dial, scout->timer.when);
}

static void end_round(belay__scout_t *scout, int error) {
  belay__timer_stop(belay_of(scout), BELAY__RANK_OTHER, &scout->timer);
  if (error == 0)
    scout->told = 0;
  scout->ops->over(scout, error);
}

/* What somebody has said outweighs that another one says nothing, or is a replica. */
void belay__scout_blame(belay__scout_t *scout, int error, const char *words) {
  if (scout->said && (words == NULL || error == BELAY_EREADONLY))
    return;
  scout->said = words != NULL;
  scout->error = error;
  scout->blamed = *belay__scout_place(scout);
  if (words == NULL)
    words = scout->reason != 0 ? uv_strerror(scout->reason) : belay_strerror(error);
  snprintf(scout->why, sizeof scout->why, "%s", words);
}

/* The log has each reason once, whoever it is that gives it next. */
void belay__scout_explain(belay__scout_t *scout, int error) {
  belay_client_t *client = scout->trunk->client;
  char text[BELAY__WORDS_MAX], place[BELAY__TARGET_WORDS];
  bool news = error != scout->told || strcmp(scout->why, scout->told_why) != 0;
  int n =
      snprintf(text, sizeof text, "%s: %s", belay__place_words(&scout->blamed, place), scout->why);
  belay__client_refused(client, error, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
  if (!news)
    return;
  scout->told = error;
  memcpy(scout->told_why, scout->why, sizeof scout->why);
  belay__log(client->belay, belay__link_is_lasting(error) ? BELAY_LOG_ERROR : BELAY_LOG_WARNING,
             "asked %zu where to connect to, in vain: %s: %s", scout->count, belay_strerror(error),
             client->refused.text);
}

/* The one that is being asked is of no use; its connection is gone. */
static void next(belay__scout_t *scout, int error, const char *why) {
  belay__scout_blame(scout, error, why);
  scout->at = (scout->at + 1) % scout->count;
  if (--scout->left > 0) {
    wait_for_turn(scout);
    return;
  }
  scout->state = BELAY__SCOUT_IDLE;
  end_round(scout, scout->error);
}

static void done(belay__scout_t *scout) {
  scout->state = BELAY__SCOUT_READY;
  end_round(scout, 0);
}

void belay__scout_ask(belay__scout_t *scout) {
  bool connected = scout->state == BELAY__SCOUT_READY;
  assert(scout->count > 0);
  if (!connected && scout->state != BELAY__SCOUT_IDLE)
    return;
  scout->left = scout->count;
  scout->said = false;
  if (connected) {
    scout->state = BELAY__SCOUT_ASKING;
    set_patience(scout);
    scout->ops->ask(scout);
  } else {
    wait_for_turn(scout);
  }
}

void belay__scout_first(belay__scout_t *scout) {
  move_to(scout, 0);
}

bool belay__scout_prefer(belay__scout_t *scout, const belay__place_t *place) {
  size_t at = find_place(scout, place);
  if (is_busy(scout) || at == scout->count)
    return false;
  move_to(scout, at);
  return true;
}

void belay__scout_turn(belay__scout_t *scout) {
  if (scout->count == 1 || is_busy(scout))
    return;
  size_t step = 1 + belay__random_below(belay_of(scout), scout->count - 1);
  move_to(scout, (scout->at + step) % scout->count);
}

static void fail_to_connect(belay__scout_t *scout, int error) {
  scout->reason = scout->dial.reason;
  scout->trunk->client->stats.connect_errors++;
  next(scout, error, NULL);
}

static void on_turn(belay__turn_t *turn) {
  dial(BELAY__CONTAINER(turn, belay__scout_t, turn));
}

static void on_timer(belay__timer_t *timer) {
  belay__scout_t *scout = BELAY__CONTAINER(timer, belay__scout_t, timer);
  if (scout->state == BELAY__SCOUT_WAITING) {
    dial(scout);
  } else if (scout->state == BELAY__SCOUT_DIALING) {
    fail_to_connect(scout, belay__dial_expire(&scout->dial));
  } else {
    scout->wire.reason = UV_ETIMEDOUT;
    belay__wire_drop(&scout->wire, BELAY_EUNREACHABLE);
  }
}

/* ---- the connection ------------------------------------------------------------------------------------ */

static void on_gone(belay__wire_t *wire, int error) {
  belay__scout_t *scout = BELAY__CONTAINER(wire, belay__scout_t, wire);
  scout->reason = wire->reason;
  if (scout->state == BELAY__SCOUT_ASKING) {
    scout->trunk->client->stats.connect_errors += !scout->met;
    next(scout, error, wire->why);
  } else if (scout->state == BELAY__SCOUT_READY) {
    scout->state = BELAY__SCOUT_IDLE;
    if (scout->ops->lost != NULL)
      scout->ops->lost(scout);
  }
}

/* Who does not let us in is asked no more. */
static void on_auth(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__scout_t *scout = scout_of(ac);
  const belay_client_t *client = scout->trunk->client;
  const belay__reply_t *reply = belay__wire_reply(&scout->wire, object);
  if (reply == NULL)
    return;
  int error = belay__auth_read(&scout->identity, scout->trunk->client, reply);
  if (error == 0)
    return;
  bool explained = client->refused.error == error;
  belay__scout_blame(scout, error, explained ? client->refused.text : belay_strerror(error));
  belay__wire_break(&scout->wire, error);
}

/* Each for itself, so that each is answered once. */
static void subscribe(belay__scout_t *scout) {
  scout->wire.reader.pushed = true;
  for (const char *const *channel = scout->channels; *channel != NULL; channel++) {
    belay__wire_say(&scout->wire, 2, (const char *const[]){"SUBSCRIBE", *channel}, NULL, true);
    scout->subscribes++;
  }
}

/* Who cannot speak and be asked on one connection is only asked. */
static void on_hello(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__scout_t *scout = scout_of(ac);
  const belay__reply_t *reply = belay__wire_reply(&scout->wire, object);
  if (reply == NULL || scout->state != BELAY__SCOUT_ASKING)
    return;
  scout->subscribes = 0;
  if (reply->type == BELAY__REPLY_ARRAY)
    subscribe(scout);
  scout->ops->ask(scout);
}

static void on_dialed(belay__dial_t *dialed, int error, int fd, belay__uv_handle_t *handle) {
  belay__scout_t *scout = BELAY__CONTAINER(dialed, belay__scout_t, dial);
  scout->state = BELAY__SCOUT_ASKING;
  if (error == 0)
    error = belay__wire_open(&scout->wire, fd, handle, scout->trunk->tls, scout->target.place.host);
  if (error != 0)
    fail_to_connect(scout, error);
}

static void on_ready(belay__wire_t *wire) {
  belay__scout_t *scout = BELAY__CONTAINER(wire, belay__scout_t, wire);
  int error = belay__auth_send(&scout->identity, scout->trunk->client, wire, on_auth);
  scout->trunk->client->stats.connects++;
  if (error != 0)
    belay__wire_break(wire, error);
  else if (scout->channels != NULL)
    belay__wire_command(&scout->wire, on_hello, NULL, 2, (const char *const[]){"HELLO", "3"});
  else
    scout->ops->ask(scout);
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static void answered(belay__scout_t *scout, const belay__reply_t *reply) {
  int error = BELAY_EUNREACHABLE;
  if (reply == NULL || scout->state != BELAY__SCOUT_ASKING || scout->wire.broken)
    return;
  scout->met |= reply->type != BELAY__REPLY_ERROR;
  switch (scout->ops->answer(scout, reply)) {
  case BELAY__SCOUT_DONE:
    done(scout);
    break;
  case BELAY__SCOUT_MORE:
    break;
  case BELAY__SCOUT_NEXT:
    if (reply->type == BELAY__REPLY_ERROR) {
      error = belay__refusal_find(reply->str, reply->len)->error;
      belay__scout_blame(scout, error, reply->str);
    }
    belay__wire_break(&scout->wire, error);
    break;
  }
}

static void on_answer(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__scout_t *scout = scout_of(ac);
  answered(scout, belay__wire_reply(&scout->wire, object));
}

/* Where it listens, answers come the same way as what is said unasked (reader.h). */
void belay__scout_say(belay__scout_t *scout, size_t argc, const char *const *argv) {
  if (scout->wire.reader.pushed)
    belay__wire_say(&scout->wire, argc, argv, NULL, true);
  else
    belay__wire_command(&scout->wire, on_answer, NULL, argc, argv);
}

static bool is_message(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_ARRAY && reply->count == 3 &&
         belay__reply_is(reply->items[0], "message", 7) &&
         reply->items[2]->type == BELAY__REPLY_STRING;
}

/* Answers come in order; the first ones are to SUBSCRIBE. Who may not listen asks all the same. */
static void on_pushed(belay__wire_t *wire, const belay__reply_t *reply) {
  belay__scout_t *scout = BELAY__CONTAINER(wire, belay__scout_t, wire);
  if (is_message(reply)) {
    scout->ops->heard(scout, reply->items[1], reply->items[2]);
    return;
  }
  if (wire->owed == 0) /* nor is it an answer */
    return;
  wire->owed--;
  if (scout->subscribes > 0)
    scout->subscribes--;
  else
    answered(scout, reply);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

void belay__scout_close(belay__scout_t *scout) {
  belay__pace_leave(&scout->trunk->host->pace, &scout->turn);
  belay__timer_stop(belay_of(scout), BELAY__RANK_OTHER, &scout->timer);
  belay__dial_close(&scout->dial);
  scout->state = BELAY__SCOUT_CLOSED;
  belay__wire_drop(&scout->wire, BELAY_ECANCELED);
}

bool belay__scout_is_over(const belay__scout_t *scout) {
  return scout->state == BELAY__SCOUT_CLOSED && scout->wire.ac == NULL && scout->handles == 0 &&
         !belay__dial_busy(&scout->dial);
}

void belay__scout_fini(belay__scout_t *scout) {
  belay__wire_fini(&scout->wire);
}

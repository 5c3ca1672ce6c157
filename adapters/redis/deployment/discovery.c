/* Discovery.
 *
 *    IDLE --ask--> WAITING --slot--> DIALING --connected--> ASKING --DONE--> READY
 *     ^               ^                 |                    |  ^             |  |
 *     |               |                 v                    v  +-----ask-----+  |
 *     |               +--next server-- lost, late, refused, NEXT                 |
 *     |                                 |                                        |
 *     +----------none is left-----------+                                        |
 *     +----------------------------------lost------------------------------------+
 *
 *    any --close--> CLOSED
 *
 * A query asks each server once, beginning with the last one that answered. */
#include "redis/deployment/discovery.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/call/refusal.h"
#include "redis/conn/cause.h"

/* All servers share the connect timeout; each gets at least this many ms. */
#define PATIENCE_MIN_MS 50
#define SHARES_MIN 4 /* fewest and most shares of the connect timeout */
#define SHARES_MAX 10

static void on_dialed(belay__dial_t *dial, int error, int fd, belay__uv_handle_t *handle);
static void on_ready(belay__transport_t *transport);
static void on_closed(belay__transport_t *transport, int error);
static void on_timer(belay__timer_t *timer);
static void on_connect_slot(belay__connect_slot_t *turn);
static void on_push(belay__transport_t *transport, const belay__reply_t *reply);

static belay_t *belay_of(const belay__discovery_t *discovery) {
  return &discovery->settings->host->base;
}

static belay__discovery_t *discovery_of(const redisAsyncContext *ac) {
  return BELAY__CONTAINER(ac->data, belay__discovery_t, transport);
}

static void on_dial_over(belay__dial_t *dial) {
  belay__discovery_t *discovery = BELAY__CONTAINER(dial, belay__discovery_t, dial);
  discovery->settings->ops->handle_closed(discovery->settings, NULL);
}

static void on_read(belay__transport_t *transport) {
  (void)transport;
}

void belay__discovery_init(belay__discovery_t *discovery, belay__settings_t *settings,
                           const belay__discovery_ops_t *ops, belay__login_t login,
                           const belay__place_t *places, size_t n) {
  discovery->settings = settings;
  discovery->ops = ops;
  discovery->login = login;
  discovery->state = BELAY__DISCOVERY_IDLE;
  discovery->timer.fire = on_timer;
  belay__connect_slot_init(&discovery->turn, on_connect_slot);
  discovery->target =
      (belay__target_t){.keepalive_ms = settings->options.keepalive_ms,
                        .tcp_user_timeout_ms = settings->options.tcp_user_timeout_ms};
  discovery->transport =
      (belay__transport_t){.host = settings->host,
                           .stats = &settings->client->stats,
                           .max_reply = settings->options.max_reply,
                           .on_ready = on_ready,
                           .on_read = on_read,
                           .on_push = discovery->channels != NULL ? on_push : NULL,
                           .on_closed = on_closed,
                           .dial = &discovery->dial};
  belay__transport_init(&discovery->transport);
  belay__dial_init(&discovery->dial, settings->host, &discovery->target, &discovery->handles,
                   on_dialed, on_dial_over);
  belay__discovery_set_places(discovery, places, n);
}

/* ---- places ---- */

static void disconnect(belay__discovery_t *discovery) {
  if (discovery->state != BELAY__DISCOVERY_READY)
    return;
  discovery->state = BELAY__DISCOVERY_IDLE;
  belay__transport_break(&discovery->transport, BELAY_EUNREACHABLE);
}

static bool is_busy(const belay__discovery_t *discovery) {
  return discovery->state != BELAY__DISCOVERY_IDLE && discovery->state != BELAY__DISCOVERY_READY;
}

/* Index of the place; count if there is none. */
static size_t find_place(const belay__discovery_t *discovery, const belay__place_t *place) {
  size_t i = 0;
  while (i < discovery->count && !belay__place_is(&discovery->places[i], place))
    i++;
  return i;
}

static void move_to(belay__discovery_t *discovery, size_t at) {
  if (discovery->at == at)
    return;
  discovery->at = at;
  disconnect(discovery);
}

void belay__discovery_set_places(belay__discovery_t *discovery, const belay__place_t *places,
                                 size_t n) {
  if (n == 0)
    return;
  belay__place_t here = *belay__discovery_place(discovery);
  discovery->count = discovery->at = 0;
  for (size_t i = 0; i < n; i++)
    if (discovery->count < BELAY__DISCOVERY_PLACES &&
        find_place(discovery, &places[i]) == discovery->count)
      discovery->places[discovery->count++] = places[i];
  if (discovery->places_left > discovery->count)
    discovery->places_left = discovery->count;
  discovery->at = find_place(discovery, &here);
  if (discovery->at == discovery->count)
    move_to(discovery, 0);
}

const belay__place_t *belay__discovery_place(const belay__discovery_t *discovery) {
  return &discovery->places[discovery->at];
}

/* ---- the query ---- */

static void set_patience(belay__discovery_t *discovery) {
  int64_t shares = (int64_t)discovery->count + 1;
  if (shares < SHARES_MIN)
    shares = SHARES_MIN;
  if (shares > SHARES_MAX)
    shares = SHARES_MAX;
  int64_t ms = discovery->settings->options.connect_timeout_ms / shares;
  belay__timer_set(
      belay_of(discovery), BELAY__RANK_OTHER, &discovery->timer,
      belay__after_ms(belay_of(discovery), ms > PATIENCE_MIN_MS ? ms : PATIENCE_MIN_MS));
}

/* Discovery starts from the loop only, because it may be requested anywhere. It goes ahead of
 * other connection attempts in the connect limiter, as long as its servers answer. */
static void wait_for_turn(belay__discovery_t *discovery) {
  belay_t *belay = belay_of(discovery);
  discovery->state = BELAY__DISCOVERY_WAITING;
  belay__timer_stop(belay, BELAY__RANK_OTHER, &discovery->timer);
  if (discovery->has_dialed)
    belay__connect_limiter_queue(&discovery->settings->host->connect_limiter, &discovery->turn,
                                 discovery->was_answered);
  else
    belay__timer_set(belay, BELAY__RANK_OTHER, &discovery->timer, belay__now(belay));
}

static void dial(belay__discovery_t *discovery) {
  discovery->state = BELAY__DISCOVERY_DIALING;
  discovery->has_dialed = true;
  discovery->was_answered = false;
  discovery->target.place = *belay__discovery_place(discovery);
  set_patience(discovery);
  belay__dial_start(&discovery->dial, discovery->timer.when);
}

static void end_query(belay__discovery_t *discovery, int error) {
  belay__timer_stop(belay_of(discovery), BELAY__RANK_OTHER, &discovery->timer);
  if (error == 0)
    discovery->logged_error = 0;
  discovery->ops->on_over(discovery, error);
}

/* A definite answer outweighs silence and the answer of a replica. */
void belay__discovery_set_cause(belay__discovery_t *discovery, int error, const char *words) {
  if (discovery->has_cause && (words == NULL || error == BELAY_EREADONLY))
    return;
  discovery->has_cause = words != NULL;
  discovery->error = error;
  discovery->cause_place = *belay__discovery_place(discovery);
  if (words == NULL)
    words =
        discovery->system_error != 0 ? uv_strerror(discovery->system_error) : belay_strerror(error);
  snprintf(discovery->cause_text, sizeof discovery->cause_text, "%s", words);
}

/* Each reason is logged once, even if several servers give it. */
void belay__discovery_report(belay__discovery_t *discovery, int error) {
  belay_client_t *client = discovery->settings->client;
  char text[BELAY__WORDS_MAX], place[BELAY__TARGET_WORDS];
  bool is_new = error != discovery->logged_error ||
                strcmp(discovery->cause_text, discovery->logged_cause) != 0;
  int n = snprintf(text, sizeof text, "%s: %s", belay__place_words(&discovery->cause_place, place),
                   discovery->cause_text);
  belay__client_refused(client, error, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
  if (!is_new)
    return;
  discovery->logged_error = error;
  memcpy(discovery->logged_cause, discovery->cause_text, sizeof discovery->cause_text);
  belay__log(client->belay, belay__error_is_lasting(error) ? BELAY_LOG_ERROR : BELAY_LOG_WARNING,
             "asked %zu where to connect to, in vain: %s: %s", discovery->count,
             belay_strerror(error), client->refused.text);
}

/* The present server is of no use. Its connection has ended. */
static void ask_next(belay__discovery_t *discovery, int error, const char *why) {
  belay__discovery_set_cause(discovery, error, why);
  discovery->at = (discovery->at + 1) % discovery->count;
  if (--discovery->places_left > 0) {
    wait_for_turn(discovery);
    return;
  }
  discovery->state = BELAY__DISCOVERY_IDLE;
  end_query(discovery, discovery->error);
}

static void finish_query(belay__discovery_t *discovery) {
  discovery->state = BELAY__DISCOVERY_READY;
  end_query(discovery, 0);
}

void belay__discovery_ask(belay__discovery_t *discovery) {
  bool connected = discovery->state == BELAY__DISCOVERY_READY;
  assert(discovery->count > 0);
  if (!connected && discovery->state != BELAY__DISCOVERY_IDLE)
    return;
  discovery->places_left = discovery->count;
  discovery->has_cause = false;
  if (connected) {
    discovery->state = BELAY__DISCOVERY_ASKING;
    set_patience(discovery);
    discovery->ops->ask(discovery);
  } else {
    wait_for_turn(discovery);
  }
}

void belay__discovery_restart_list(belay__discovery_t *discovery) {
  move_to(discovery, 0);
}

bool belay__discovery_prefer(belay__discovery_t *discovery, const belay__place_t *place) {
  size_t at = find_place(discovery, place);
  if (is_busy(discovery) || at == discovery->count)
    return false;
  move_to(discovery, at);
  return true;
}

void belay__discovery_pick_other(belay__discovery_t *discovery) {
  if (discovery->count == 1 || is_busy(discovery))
    return;
  size_t step = 1 + belay__random_below(belay_of(discovery), discovery->count - 1);
  move_to(discovery, (discovery->at + step) % discovery->count);
}

static void fail_to_connect(belay__discovery_t *discovery, int error) {
  discovery->system_error = discovery->dial.system_error;
  discovery->settings->client->stats.connect_errors++;
  ask_next(discovery, error, NULL);
}

static void on_connect_slot(belay__connect_slot_t *turn) {
  dial(BELAY__CONTAINER(turn, belay__discovery_t, turn));
}

static void on_timer(belay__timer_t *timer) {
  belay__discovery_t *discovery = BELAY__CONTAINER(timer, belay__discovery_t, timer);
  if (discovery->state == BELAY__DISCOVERY_WAITING) {
    dial(discovery);
  } else if (discovery->state == BELAY__DISCOVERY_DIALING) {
    fail_to_connect(discovery, belay__dial_expire(&discovery->dial));
  } else {
    discovery->transport.system_error = UV_ETIMEDOUT;
    belay__transport_drop(&discovery->transport, BELAY_EUNREACHABLE);
  }
}

/* ---- the connection ---- */

static void on_closed(belay__transport_t *transport, int error) {
  belay__discovery_t *discovery = BELAY__CONTAINER(transport, belay__discovery_t, transport);
  discovery->system_error = transport->system_error;
  if (discovery->state == BELAY__DISCOVERY_ASKING) {
    discovery->settings->client->stats.connect_errors += !discovery->was_answered;
    ask_next(discovery, error, transport->cause);
  } else if (discovery->state == BELAY__DISCOVERY_READY) {
    discovery->state = BELAY__DISCOVERY_IDLE;
    if (discovery->ops->lost != NULL)
      discovery->ops->lost(discovery);
  }
}

/* A server that refuses the login is of no use. */
static void on_auth(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__discovery_t *discovery = discovery_of(ac);
  const belay_client_t *client = discovery->settings->client;
  const belay__reply_t *reply = belay__transport_take_reply(&discovery->transport, object);
  if (reply == NULL)
    return;
  int error = belay__auth_read(&discovery->login, discovery->settings->client, reply);
  if (error == 0)
    return;
  bool explained = client->refused.error == error;
  belay__discovery_set_cause(discovery, error,
                             explained ? client->refused.text : belay_strerror(error));
  belay__transport_break(&discovery->transport, error);
}

/* Sends one command for each channel, so that each gets one reply. */
static void subscribe(belay__discovery_t *discovery) {
  discovery->transport.reader.push_mode = true;
  for (const char *const *channel = discovery->channels; *channel != NULL; channel++) {
    belay__transport_send(&discovery->transport, 2, (const char *const[]){"SUBSCRIBE", *channel},
                          NULL, true);
    discovery->subscribes++;
  }
}

/* Without RESP3 there are no subscriptions. */
static void on_hello(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__discovery_t *discovery = discovery_of(ac);
  const belay__reply_t *reply = belay__transport_take_reply(&discovery->transport, object);
  if (reply == NULL || discovery->state != BELAY__DISCOVERY_ASKING)
    return;
  discovery->subscribes = 0;
  if (reply->type == BELAY__REPLY_ARRAY)
    subscribe(discovery);
  discovery->ops->ask(discovery);
}

static void on_dialed(belay__dial_t *dialed, int error, int fd, belay__uv_handle_t *handle) {
  belay__discovery_t *discovery = BELAY__CONTAINER(dialed, belay__discovery_t, dial);
  discovery->state = BELAY__DISCOVERY_ASKING;
  if (error == 0)
    error = belay__transport_open(&discovery->transport, fd, handle, discovery->settings->tls,
                                  discovery->target.place.host);
  if (error != 0)
    fail_to_connect(discovery, error);
}

static void on_ready(belay__transport_t *transport) {
  belay__discovery_t *discovery = BELAY__CONTAINER(transport, belay__discovery_t, transport);
  int error = belay__auth_send(&discovery->login, discovery->settings->client, transport, on_auth);
  discovery->settings->client->stats.connects++;
  if (error != 0)
    belay__transport_break(transport, error);
  else if (discovery->channels != NULL)
    belay__transport_command(&discovery->transport, on_hello, NULL, 2,
                             (const char *const[]){"HELLO", "3"});
  else
    discovery->ops->ask(discovery);
}

/* ---- answers ---- */

static void on_reply(belay__discovery_t *discovery, const belay__reply_t *reply) {
  int error = BELAY_EUNREACHABLE;
  if (reply == NULL || discovery->state != BELAY__DISCOVERY_ASKING || discovery->transport.broken)
    return;
  discovery->was_answered |= reply->type != BELAY__REPLY_ERROR;
  switch (discovery->ops->answer(discovery, reply)) {
  case BELAY__DISCOVERY_DONE:
    finish_query(discovery);
    break;
  case BELAY__DISCOVERY_MORE:
    break;
  case BELAY__DISCOVERY_NEXT:
    if (reply->type == BELAY__REPLY_ERROR) {
      error = belay__refusal_find(reply->str, reply->len)->error;
      belay__discovery_set_cause(discovery, error, reply->str);
    }
    belay__transport_break(&discovery->transport, error);
    break;
  }
}

static void on_answer(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__discovery_t *discovery = discovery_of(ac);
  on_reply(discovery, belay__transport_take_reply(&discovery->transport, object));
}

/* In push mode replies come the same way as messages (reader.h). */
void belay__discovery_send(belay__discovery_t *discovery, size_t argc, const char *const *argv) {
  if (discovery->transport.reader.push_mode)
    belay__transport_send(&discovery->transport, argc, argv, NULL, true);
  else
    belay__transport_command(&discovery->transport, on_answer, NULL, argc, argv);
}

static bool is_message(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_ARRAY && reply->count == 3 &&
         belay__reply_is(reply->items[0], "message", 7) &&
         reply->items[2]->type == BELAY__REPLY_STRING;
}

/* Replies come in order, and the first ones belong to SUBSCRIBE. Without the right to subscribe,
 * discovery still asks. */
static void on_push(belay__transport_t *transport, const belay__reply_t *reply) {
  belay__discovery_t *discovery = BELAY__CONTAINER(transport, belay__discovery_t, transport);
  if (is_message(reply)) {
    discovery->ops->on_message(discovery, reply->items[1], reply->items[2]);
    return;
  }
  if (transport->replies_due == 0) /* no reply, either */
    return;
  transport->replies_due--;
  if (discovery->subscribes > 0)
    discovery->subscribes--;
  else
    on_reply(discovery, reply);
}

/* ---- the end ---- */

void belay__discovery_close(belay__discovery_t *discovery) {
  belay__connect_limiter_leave(&discovery->settings->host->connect_limiter, &discovery->turn);
  belay__timer_stop(belay_of(discovery), BELAY__RANK_OTHER, &discovery->timer);
  belay__dial_close(&discovery->dial);
  discovery->state = BELAY__DISCOVERY_CLOSED;
  belay__transport_drop(&discovery->transport, BELAY_ECANCELED);
}

bool belay__discovery_is_over(const belay__discovery_t *discovery) {
  return discovery->state == BELAY__DISCOVERY_CLOSED && discovery->transport.ac == NULL &&
         discovery->handles == 0 && !belay__dial_busy(&discovery->dial);
}

void belay__discovery_deinit(belay__discovery_t *discovery) {
  belay__transport_deinit(&discovery->transport);
}

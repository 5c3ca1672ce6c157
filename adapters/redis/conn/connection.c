/* A link.
 *
 *   DOWN --a call--> FINDING --found--> DIALING --connected--> SHAKING --shaken--> UP --idle, then a call--> CHECKING
 *    ^                 |  ^                |                      |                | ^                          |  |
 *    |                 |  |                |                      |                | +-----------PONG-----------+  |
 *    |                 v  | time, and turn v                      v                v (DRAINING, if it is READONLY) |
 *    |                BACKOFF <------------+----------------------+----------------+-------------------------------+
 *    |                 |           (REFUSED if the reason is a lasting one)
 *    +--nobody waits---+
 *
 *   any --close--> CLOSED
 *
 * FINDING is passed at once where the server of the cable is always in the same place; elsewhere it takes as long as its
 * owner needs. Who dials again waits for a turn (uv/connect_limiter.h): if everybody loses a server at once, not everybody knocks at
 * once.
 *
 * When a connection ends, the wire gives back the calls that were not answered; each is judged by its place in
 * the stream of bytes: what left is UNKNOWN, what did not is queued again, in order, before everything that
 * has been queued since. The connection's number is kept as a ghost until it is known to be dead on the
 * server's side too (handshake.c). */
#include "redis/conn/connection.h"

#include <assert.h>

#include "core/client/lifecycle.h"
#include "redis/conn/batch.h"
#include "redis/conn/cause.h"
#include "redis/conn/handshake.h"
#include "redis/conn/liveness.h"
#include "redis/conn/loss.h"
#include "redis/conn/outage.h"
#include "redis/conn/queue.h"

static void on_dialed(belay__dial_t *dial, int error, int fd, belay__uv_handle_t *handle);
static void on_gone(belay__wire_t *wire, int error);
static void on_heard(belay__wire_t *wire);
static void on_ready(belay__wire_t *wire);
static void on_timer(belay__timer_t *timer);
static void on_turn(belay__turn_t *turn);

static belay__link_t *link_of(const belay__wire_t *wire) {
  return BELAY__CONTAINER(wire, belay__link_t, wire);
}

static void set_timer(belay__link_t *link, int64_t ms) {
  belay__timer_set(belay__link_loop(link), BELAY__RANK_OTHER, &link->timer,
                   belay__after_ms(belay__link_loop(link), ms));
}

static void on_dial_over(belay__dial_t *dial) {
  belay__link_t *link = BELAY__CONTAINER(dial, belay__link_t, dial);
  link->cable->trunk->ops->quiet(link->cable->trunk, link->cable);
}

void belay__link_init(belay__link_t *link, belay__cable_t *cable, bool extra) {
  *link = (belay__link_t){
      .cable = cable,
      .extra = extra,
      .timer = {.fire = on_timer},
      .wire = {.host = cable->trunk->host,
               .stats = &cable->trunk->client->stats,
               .max_reply = cable->trunk->max_reply,
               .ready = on_ready,
               .heard = on_heard,
               .gone = on_gone,
               .dial = &link->dial},
  };
  belay__turn_init(&link->turn, on_turn);
  belay__list_init(&link->urgent);
  belay__list_init(&link->queue);
  belay__convoy_init(&link->convoy);
  belay__list_init(&link->dropped);
  belay__list_init(&link->parted);
  belay__wire_init(&link->wire);
  belay__dial_init(&link->dial, cable->trunk->host, &link->target, &cable->handles, on_dialed,
                   on_dial_over);
}

void belay__link_fini(belay__link_t *link) {
  belay__wire_fini(&link->wire);
}

/* ---- a connection ends --------------------------------------------------------------------------------- */

static void remember_ghost(belay__link_t *link) {
  if (link->peer.server.epoch == 0)
    return;
  link->several_ghosts = link->ghost.server.epoch != 0;
  link->ghost = link->peer;
  link->peer.server.epoch = 0;
}

static void on_gone(belay__wire_t *wire, int error) {
  belay__link_t *link = link_of(wire);
  belay_client_t *client = link->cable->trunk->client;
  link->in_flight = 0;
  link->cable->trunk->can_known = false;
  if (link->state == BELAY__LINK_DOWN) { /* retired: nothing was owed, so nothing can haunt us */
    link->peer.server.epoch = 0;
    return;
  }
  remember_ghost(link);
  belay__link_blame_wire(link, error);
  if (belay__link_is_up(link)) {
    client->stats.drops++;
    belay__link_lose(link, error);
    if (!link->listens)
      belay__client_lost_connection(client);
  } else if (link->state != BELAY__LINK_CLOSED) {
    belay__link_fail(link, error);
  }
  belay__link_settle(link, error);
}

/* ---- a connection begins ------------------------------------------------------------------------------- */

static void stop_waiting(belay__link_t *link) {
  belay__pace_leave(&link->cable->trunk->host->pace, &link->turn);
  belay__timer_stop(belay__link_loop(link), BELAY__RANK_OTHER, &link->timer);
}

/* The timer covers all of it, the handshake too. */
static void dial(belay__link_t *link) {
  set_timer(link, link->cable->trunk->connect_timeout_ms);
  link->state = BELAY__LINK_DIALING;
  link->blamed = false;
  link->dialed = ++link->cable->trunk->dials;
  link->target = link->cable->target;
  belay__dial_start(&link->dial, link->timer.when);
}

static void begin(belay__link_t *link) {
  const belay__trunk_ops_t *ops = link->cable->trunk->ops;
  link->wanted = false;
  link->attempt_since = belay__now(belay__link_loop(link));
  stop_waiting(link);
  if (ops->find == NULL) {
    dial(link);
    return;
  }
  link->state = BELAY__LINK_FINDING;
  ops->find(link->cable);
}

void belay__link_found(belay__link_t *link, int error) {
  if (link->state != BELAY__LINK_FINDING)
    return;
  if (error == 0) {
    dial(link);
    return;
  }
  link->cause[0] = '\0';
  link->blamed = true; /* the client has the finder's words */
  belay__link_fail(link, error);
}

/* It has waited for long enough to dial again: does, when it is its turn. */
static void knock(belay__link_t *link) {
  belay__timer_stop(belay__link_loop(link), BELAY__RANK_OTHER, &link->timer);
  belay__pace_queue(&link->cable->trunk->host->pace, &link->turn, false);
}

/* The time, or the turn, has come: to go on, if anybody still waits for a connection. */
static void go_on(belay__link_t *link, void (*on)(belay__link_t *link)) {
  if (link->queue_len > 0 || link->wanted || link->channels > 0 || belay__outage_probes(link)) {
    on(link);
    return;
  }
  link->state = BELAY__LINK_DOWN;
  belay__outage_rests(link);
}

static void on_turn(belay__turn_t *turn) {
  go_on(BELAY__CONTAINER(turn, belay__link_t, turn), begin);
}

/* Somebody wants it. The first time nobody needs to wait, unless all come at once, or there is no end of first times. */
static void start(belay__link_t *link) {
  if (link->error == 0 && !link->cable->rushed) {
    begin(link);
  } else {
    link->state = BELAY__LINK_BACKOFF;
    knock(link);
  }
}

static void on_dialed(belay__dial_t *dialed, int error, int fd, belay__uv_handle_t *handle) {
  belay__link_t *link = BELAY__CONTAINER(dialed, belay__link_t, dial);
  assert(link->state == BELAY__LINK_DIALING);
  link->in_flight = 0;
  link->brought = (belay__scripts_t){.bits = {0}};
  link->convoy.off = false;
  link->state = BELAY__LINK_SHAKING;
  if (error == 0)
    error =
        belay__wire_open(&link->wire, fd, handle, link->cable->trunk->tls, link->target.place.host);
  else if (dialed->reason != 0)
    belay__link_blame(link, "%s", uv_strerror(dialed->reason));
  if (error != 0)
    belay__link_fail(link, error);
}

static void on_shaken(belay__link_t *link, int error) {
  belay__cable_t *cable = link->cable;
  belay__trunk_t *trunk = cable->trunk;
  char place[BELAY__TARGET_WORDS];
  if (error != 0) {
    belay__wire_drop(&link->wire, error);
    return;
  }
  trunk->client->stats.connects++;
  trunk->can_known = false;
  link->peer.server.epoch = ++trunk->epochs;
  link->error = 0;
  link->state = BELAY__LINK_UP;
  if (belay__outage_connected(link))
    cable->ops->hurry(cable);
  belay__log(trunk->client->belay, BELAY_LOG_INFO, "%s to %s",
             link->listens ? "listening" : "connected", belay__target_words(&link->target, place));
  cable->ops->up(link);
  belay__client_connected(trunk->client);
  belay__link_watch(link);
  belay__link_pump(link);
}

static void on_ready(belay__wire_t *wire) {
  belay__handshake_start(link_of(wire), on_shaken);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void on_heard(belay__wire_t *wire) {
  belay__outage_heard(link_of(wire));
  belay__link_pump(link_of(wire));
}

int belay__link_admits(const belay__link_t *link, bool urgent, size_t n) {
  const belay__trunk_t *trunk = link->cable->trunk;
  if (link->state == BELAY__LINK_CLOSED)
    return BELAY_ECLOSING;
  if (link->state == BELAY__LINK_REFUSED)
    return link->error;
  /* Two that belong together are let in if there is nothing else. */
  size_t pending = link->in_flight + link->queue_len;
  bool full = pending > 0 && pending + n > trunk->max_pending;
  return full && !urgent && trunk->on_full == BELAY_FULL_REFUSE ? BELAY_EBUSY : 0;
}

int belay__link_fail_fast(belay__link_t *link) {
  int error = belay__outage_check(link);
  if (error != 0)
    belay__link_want(link);
  return error;
}

int belay__link_submit(belay__link_t *link, belay__call_t *const *calls, size_t n) {
  int error = belay__link_admits(link, calls[0]->urgent, n);
  if (error == 0 && calls[0]->fail_fast)
    error = belay__link_fail_fast(link);
  if (error != 0)
    return error;
  for (size_t i = 0; i < n; i++) {
    *belay__trip(calls[i]) = (belay__trip_t){.at = link};
    calls[i]->no_rest = belay__outage_refuses(link, calls[i]);
    belay__list_push(calls[0]->urgent ? &link->urgent : &link->queue, &calls[i]->node);
  }
  link->queue_len += n;
  if (link->state == BELAY__LINK_DOWN)
    start(link);
  belay__link_pump(link);
  return 0;
}

void belay__link_adopt(belay__link_t *link, belay__call_t *call) {
  if (link->state == BELAY__LINK_CLOSED || link->state == BELAY__LINK_REFUSED) {
    belay__call_refused(call, link->error != 0 ? link->error : BELAY_EUNREACHABLE);
    return;
  }
  belay__trip(call)->at = link;
  call->no_rest = belay__outage_refuses(link, call);
  if (call->fail_fast && belay__link_fail_fast(link) != 0)
    belay__outage_refuse_soon(link->cable);
  belay__list_push(call->urgent ? &link->urgent : &link->queue, &call->node);
  link->queue_len++;
  if (link->state == BELAY__LINK_DOWN)
    start(link);
  if (!call->followed)
    belay__link_pump(link);
}

int belay__link_withdraw(belay__link_t *link, belay__call_t *call) {
  belay__convoy_forget(link, call);
  belay__list_remove(&call->node);
  link->queue_len--;
  if (link->state == BELAY__LINK_UP)
    return BELAY_EBUSY; /* it was not its turn yet */
  return belay__outage_unsent(link);
}

void belay__link_hurry(belay__link_t *link) {
  link->failures = 0;
  if (link->state == BELAY__LINK_BACKOFF && !belay__turn_is_awaited(&link->turn))
    on_timer(&link->timer);
}

void belay__link_leave(belay__link_t *link, int error, const char *cause) {
  link->failures = 0;
  if (link->state == BELAY__LINK_DIALING) {
    belay__dial_cancel(&link->dial);
    link->state = BELAY__LINK_BACKOFF;
    knock(link);
  } else if (link->wire.ac != NULL) {
    belay__link_blame(link, "%s", cause);
    belay__wire_break(&link->wire, error);
  }
}

void belay__link_drain(belay__link_t *link, int error, const char *cause) {
  if (link->state == BELAY__LINK_UP && link->in_flight > 0)
    link->state = BELAY__LINK_DRAINING;
  else if (link->state != BELAY__LINK_DRAINING)
    belay__link_leave(link, error, cause);
}

void belay__link_distrust(belay__link_t *link, uint32_t epoch) {
  if (link->peer.server.epoch == epoch)
    belay__wire_drop(&link->wire, BELAY_EPROTO);
}

/* ---- time ---------------------------------------------------------------------------------------------- */

static void on_timer(belay__timer_t *timer) {
  belay__link_t *link = BELAY__CONTAINER(timer, belay__link_t, timer);
  int error;
  switch (link->state) {
  case BELAY__LINK_DIALING:
    error = belay__dial_expire(&link->dial);
    belay__link_blame(link, "timed out: %s within %lld ms",
                      error == BELAY_ERESOLVE ? "the name was not looked up" : "not connected",
                      (long long)link->cable->trunk->connect_timeout_ms);
    belay__link_fail(link, error);
    break;
  case BELAY__LINK_SHAKING:
    link->wire.reason = UV_ETIMEDOUT;
    belay__wire_drop(&link->wire, BELAY_EUNREACHABLE);
    break;
  case BELAY__LINK_CHECKING:
    belay__link_blame(link, "timed out: the connection was idle, and PING is not answered");
    belay__wire_drop(&link->wire, BELAY_EUNREACHABLE);
    break;
  case BELAY__LINK_UP:
  case BELAY__LINK_DRAINING:
    belay__link_watch(link);
    break;
  case BELAY__LINK_BACKOFF:
  case BELAY__LINK_REFUSED:
    go_on(link, knock);
    break;
  case BELAY__LINK_DOWN:
  case BELAY__LINK_FINDING:
  case BELAY__LINK_CLOSED:
    break;
  }
}

/* ---- by others than calls ------------------------------------------------------------------------------- */

void belay__link_want(belay__link_t *link) {
  link->wanted = link->wanted || link->state == BELAY__LINK_DOWN ||
                 link->state == BELAY__LINK_BACKOFF || link->state == BELAY__LINK_REFUSED;
  if (link->state == BELAY__LINK_DOWN)
    start(link);
}

void belay__link_try_again(belay__link_t *link) {
  if (link->state == BELAY__LINK_REFUSED)
    begin(link);
}

void belay__link_retire(belay__link_t *link) {
  if (link->state == BELAY__LINK_DIALING)
    belay__dial_cancel(&link->dial);
  else if (link->state != BELAY__LINK_FINDING && link->state != BELAY__LINK_SHAKING &&
           !belay__link_is_up(link))
    return; /* who comes back soon waits for his turn */
  belay__timer_stop(belay__link_loop(link), BELAY__RANK_OTHER, &link->timer);
  link->wanted = false;
  link->state = BELAY__LINK_DOWN;
  belay__wire_drop(&link->wire, BELAY_EUNREACHABLE);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

void belay__link_close(belay__link_t *link) {
  stop_waiting(link);
  belay__dial_close(&link->dial);
  link->state = BELAY__LINK_CLOSED;
  belay__wire_drop(&link->wire, BELAY_ECANCELED);
  belay__link_refuse(link, BELAY_ECANCELED);
}

bool belay__link_is_over(const belay__link_t *link) {
  return link->state == BELAY__LINK_CLOSED && link->wire.ac == NULL &&
         !belay__dial_busy(&link->dial);
}

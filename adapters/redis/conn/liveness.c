/* Whether a link that is up is of use still: one that is silent may be dead, and one that nobody uses may be one too many.
 *
 *   UP --idle for long, and there is a call, or it listens--> CHECKING --PONG--> UP
 *    |                                                           |
 *    |                                                           +--time--> dropped
 *    +--owes an answer, silent for long--> dropped
 *    +--idle for long, one too many--> DOWN
 */
#include "redis/conn/liveness.h"

#include "redis/conn/cause.h"

#define REPLICA_STALL_MS 1000

static void on_pong(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__link_t *link = belay__link_of(ac);
  const belay__reply_t *reply = belay__wire_reply(&link->wire, object);
  if (reply == NULL || link->state != BELAY__LINK_CHECKING)
    return;
  if (!belay__reply_is(reply, "PONG", 4)) {
    belay__wire_drop(&link->wire, BELAY_EPROTO);
    return;
  }
  link->state = BELAY__LINK_UP;
  belay__link_watch(link);
}

/* Since bytes last came, or since the server last owed nothing when it was asked; in nanoseconds. */
static uint64_t silence(const belay__link_t *link) {
  return belay__now(belay__link_loop(link)) - link->wire.last_heard;
}

bool belay__link_owes(const belay__link_t *link, uint64_t limit) {
  return belay__link_is_up(link) && link->wire.owed > 0 && silence(link) >= limit;
}

bool belay__link_is_silent(belay__link_t *link, uint64_t limit) {
  const belay__wire_t *wire = &link->wire;
  uint64_t turn = link->cable->trunk->host->turns;
  if (!belay__link_owes(link, limit))
    return false;
  if (link->quiet_since == wire->last_heard)
    return link->quiet_turn != turn;
  link->quiet_since = wire->last_heard;
  link->quiet_turn = turn;
  return false;
}

static uint64_t idle_limit(const belay__link_t *link) {
  int64_t ms = link->cable->trunk->idle_timeout_ms;
  return ms == BELAY_FOREVER ? BELAY__NEVER : (uint64_t)ms * BELAY__MS;
}

void belay__link_ping(belay__link_t *link) {
  if (link->state != BELAY__LINK_UP || link->wire.owed > 0 || link->listens)
    return;
  belay__wire_command(&link->wire, on_pong, NULL, 1, (const char *const[]){"PING"});
  belay__link_owed(link);
}

static void check(belay__link_t *link) {
  static const char *const argv[] = {"PING"};
  link->state = BELAY__LINK_CHECKING;
  int64_t ms = (link->cable->trunk->connect_timeout_ms + 3) / 4; /* leaves time for a new one */
  belay__timer_set(belay__link_loop(link), BELAY__RANK_OTHER, &link->timer,
                   belay__after_ms(belay__link_loop(link), ms));
  if (link->listens)
    belay__wire_say(&link->wire, 1, argv, NULL, true);
  else
    belay__wire_command(&link->wire, on_pong, NULL, 1, argv);
}

void belay__link_check_if_idle(belay__link_t *link) {
  if (link->wire.owed == 0 && silence(link) >= idle_limit(link))
    check(link);
}

/* Of a replica's others may be asked instead. */
static uint64_t stall_limit(const belay__link_t *link) {
  uint64_t ms = (uint64_t)link->cable->trunk->stall_timeout_ms;
  if (link->cable->role == BELAY__ROLE_REPLICA && ms > REPLICA_STALL_MS)
    ms = REPLICA_STALL_MS;
  return ms * BELAY__MS;
}

/* Perhaps its server has been replaced meanwhile. */
static void doubt(belay__link_t *link) {
  const belay__trunk_ops_t *ops = link->cable->trunk->ops;
  if (ops->doubt != NULL)
    ops->doubt(link);
}

/* UP: a link that owes nothing may be one too many; one that owes something must be heard of. A loop that was
 * away itself has heard nothing: so the last quarter of the time begins only when the silence is first
 * noticed. */
void belay__link_watch(belay__link_t *link) {
  belay_t *belay = belay__link_loop(link);
  uint64_t heard = link->wire.last_heard, limit = idle_limit(link), when;
  if (link->wire.owed > 0)
    limit = stall_limit(link) / 4 * 3;
  else if ((!link->extra && !link->listens) || limit == BELAY__NEVER || link->queue_len > 0)
    limit = 0; /* nothing to watch for, or something is about to be handed over */

  if (limit == 0) {
    belay__timer_stop(belay, BELAY__RANK_OTHER, &link->timer);
    return;
  }
  if (link->wire.owed > 0 && silence(link) < limit / 3) {
    when = heard + limit / 3;
  } else if (silence(link) < limit) {
    if (link->wire.owed > 0)
      doubt(link);
    when = heard + limit;
  } else if (link->wire.owed > 0 && link->suspect_since != heard) {
    link->suspect_since = heard;
    when = belay__now(belay) + limit / 3 + 1;
  } else if (link->wire.owed == 0 && link->listens) {
    check(link); /* nothing that is ever sent would find out */
    return;
  } else {
    if (link->wire.owed > 0)
      belay__link_blame(link, "timed out: no answer for %llu ms",
                        (unsigned long long)(silence(link) / BELAY__MS));
    else
      link->state = BELAY__LINK_DOWN; /* one too many: it is retired */
    belay__wire_drop(&link->wire, BELAY_EUNREACHABLE);
    return;
  }
  belay__timer_set(belay, BELAY__RANK_OTHER, &link->timer, when);
}

void belay__link_owed(belay__link_t *link) {
  if (link->state == BELAY__LINK_UP)
    belay__link_watch(link);
}

void belay__link_paid(belay__link_t *link) {
  bool checked = link->state == BELAY__LINK_CHECKING;
  link->failures = 0;
  if (checked)
    link->state = BELAY__LINK_UP;
  if (checked || link->wire.owed == 0)
    belay__link_watch(link);
}

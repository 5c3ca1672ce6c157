#include "lease/quorum/undo.h"

#include <stdio.h>
#include <string.h>

#include "lease/machine/client_leases.h"
#include "lease/quorum/command.h"
#include "core/client/lifecycle.h"
#include "core/loop/backoff.h"

#define UNDO_MAX ((size_t)4096) /* undos under way in one client that nobody waits for */
#define KEPT_MAX ((size_t)4096) /* undos that are KEPT in one client */
#define GHOST_REPEATS 3         /* how often it is repeated where a ghost is possible */

struct belay__undo {
  belay__object_t object;
  belay_client_t *client;
  belay__undo_cb cb;
  void *owner;
  belay__timer_t timer; /* RESTING: time to try again */
  belay__call_t *call;  /* SENDING: the call; NULL while RESTING, KEPT */
  bool kept;            /* it was KEPT before, or is: its owner was told, and nobody waits for it */
  belay__undo_of_t of;
  unsigned tries, answers;
  uint32_t answered_on; /* connection of the last answer; 0: none */
  uint64_t patience;    /* until then it keeps the loop alive */
  bool holds_loop;
  size_t size;
  char key[]; /* and the label */
};

static void send(belay__undo_t *undo);

/* Tells the owner, who does not know of it any more. */
static void tell(belay__undo_t *undo, bool done) {
  belay_client_t *client = undo->client;
  belay_t *belay = client->belay;
  if (done) {
    client->stats.undone++;
  } else {
    client->stats.undo_failed++;
    belay__log(belay, BELAY_LOG_WARNING, "undo given up: a key may live for the rest of its ttl");
  }
  if (undo->cb != NULL)
    undo->cb(undo, undo->owner, done);
  undo->cb = NULL;
  client->stats.undo_pending--;
  if (undo->holds_loop)
    belay__free_loop(belay);
  undo->holds_loop = false;
}

static void over(belay__undo_t *undo, bool done) {
  belay_client_t *client = undo->client;
  belay_t *belay = client->belay;
  (void)belay__call_cancel(&undo->call);
  belay__timer_stop(belay, BELAY__RANK_OTHER, &undo->timer);
  if (undo->kept)
    belay__client_leases(client)->kept_undos--;
  else
    tell(undo, done);
  belay__client_remove(client, &undo->object);
  belay__free(belay, undo, undo->size);
}

static bool may_keep(const belay_client_t *client, const belay__undo_of_t *of) {
  return of->repeat && !client->closing && belay__client_leases(client)->kept_undos < KEPT_MAX &&
         belay__now(client->belay) < of->until;
}

/* It was answered. */
static void keep(belay__undo_t *undo) {
  belay_client_t *client = undo->client;
  if (!undo->kept && !may_keep(client, &undo->of)) {
    over(undo, true);
    return;
  }
  if (!undo->kept) {
    tell(undo, true);
    undo->kept = true;
    belay__client_leases(client)->kept_undos++;
  }
  undo->of.ticket = undo->of.keep_ms = 0; /* a place is given back once */
  belay__timer_set(client->belay, BELAY__RANK_OTHER, &undo->timer, undo->of.until);
}

static void rest(belay__undo_t *undo) {
  belay_t *belay = undo->client->belay;
  uint64_t when =
      belay__now(belay) + belay__backoff(belay, undo->tries++, BELAY__BACKOFF_MAX_MS * BELAY__MS);
  if (undo->of.keep_ms != 0)
    undo->of.ticket = undo->of.keep_ms = 0;
  if (undo->holds_loop && belay__now(belay) >= undo->patience) {
    undo->holds_loop = false;
    belay__free_loop(belay);
  }
  belay__timer_set(belay, BELAY__RANK_OTHER, &undo->timer,
                   when < undo->of.until ? when : undo->of.until);
}

static void on_reply(belay__call_t *call, const belay__result_t *result) {
  belay__undo_t *undo = call->owner;
  int64_t removed;
  bool answered = result->outcome == BELAY_OUTCOME_REPLY;
  if (call->denied) {
    send(undo);
    return;
  }
  if (answered && !belay__release_read(call, result->reply, &removed)) {
    belay__call_distrust(call, result->reply);
    answered = false;
  }
  if (result->error == BELAY_EWRONGTYPE && belay__kind_has_one_key(undo->of.kind))
    answered = true; /* the key holds something that is not ours */
  if (answered)
    undo->answered_on = call->epoch;
  if (answered && (++undo->answers > GHOST_REPEATS ||
                   !belay__client_ghost(undo->client, call, undo->of.epoch))) {
    keep(undo);
    return;
  }
  rest(undo);
}

static void on_timer(belay__timer_t *timer) {
  belay__undo_t *undo = BELAY__CONTAINER(timer, belay__undo_t, timer);
  if (belay__now(undo->client->belay) >= undo->of.until)
    over(undo, undo->answers > 0);
  else
    send(undo);
}

static belay__release_t what_of(const belay__undo_t *undo) {
  const belay__undo_of_t *of = &undo->of;
  belay__release_t release = {.notify = of->notify};
  if (!of->no_token)
    release.token_len = belay__token_text(release.token, &of->token, of->label, of->label_len);
  size_t n = belay__ticket_text(of->ticket, release.other);
  if (of->keep_ms != 0) /* what becomes of the place */
    n +=
        (size_t)snprintf(release.other + n, sizeof release.other - n, "+%u", (unsigned)of->keep_ms);
  release.other_len = n;
  return release;
}

static void send(belay__undo_t *undo) {
  belay_client_t *client = undo->client;
  belay__call_t *call = belay__call_new(client, undo->of.lane);
  if (call == NULL) {
    rest(undo);
    return;
  }
  belay__release_t release = what_of(undo);
  belay__release_build(undo->of.kind, undo->key, undo->of.key_len, &release, call);
  uint64_t deadline = belay__after_ms(client->belay, client->timeout_ms);
  call->deadline = deadline < undo->of.until ? deadline : undo->of.until;
  call->affinity = undo->of.affinity;
  call->urgent = true;
  call->once = undo->of.keep_ms != 0;
  if (belay__call_start(&undo->call, call, on_reply, undo) != 0)
    rest(undo);
}

/* One that was not answered is going as fast as it can. */
static void object_close(belay__object_t *object) {
  belay__undo_t *undo = BELAY__CONTAINER(object, belay__undo_t, object);
  if (undo->kept)
    over(undo, true);
}

static void object_abort(belay__object_t *object) {
  over(BELAY__CONTAINER(object, belay__undo_t, object), false);
}

/* What was answered is repeated because of ghosts, and that takes its time. */
static void object_connected(belay__object_t *object) {
  belay__undo_t *undo = BELAY__CONTAINER(object, belay__undo_t, object);
  belay_t *belay = undo->client->belay;
  uint64_t soon = belay__now(belay) + belay__spread(belay, BELAY__SPREAD_MS * BELAY__MS);
  bool resting = undo->call == NULL && undo->answers == 0;
  if (resting && belay__timer_is_set(&undo->timer) && soon < undo->timer.when &&
      undo->client->node_ops->server(undo->client, undo->of.lane, undo->of.affinity) != NULL)
    belay__timer_set(belay, BELAY__RANK_OTHER, &undo->timer, soon);
}

/* The server that has answered may be replaced by one that does not know of the undo: its
 * connection is lost, or the key belongs to another server. */
static void object_lost(belay__object_t *object) {
  belay__undo_t *undo = BELAY__CONTAINER(object, belay__undo_t, object);
  belay_client_t *client = undo->client;
  belay_t *belay = client->belay;
  if (!undo->kept || undo->call != NULL || undo->answers == 0)
    return;
  const belay__server_info_t *server =
      client->node_ops->server(client, undo->of.lane, undo->of.affinity);
  if (server != NULL && server->epoch == undo->answered_on)
    return;
  undo->answers = undo->tries = 0;
  belay__timer_set(belay, BELAY__RANK_OTHER, &undo->timer,
                   belay__now(belay) + belay__spread(belay, BELAY__SPREAD_MS * BELAY__MS));
}

static const belay__object_ops_t object_ops = {.close = object_close,
                                               .abort = object_abort,
                                               .connected = object_connected,
                                               .lost_connection = object_lost};

/* NULL: memory is out. */
static belay__undo_t *new_undo(belay_client_t *client, const belay__undo_of_t *of) {
  size_t size = sizeof(belay__undo_t) + of->key_len + of->label_len;
  belay__undo_t *undo = belay__alloc(client->belay, size);
  if (undo == NULL)
    return NULL;
  *undo = (belay__undo_t){.object = {.ops = &object_ops},
                          .client = client,
                          .timer = {.fire = on_timer},
                          .of = *of,
                          .size = size};
  memcpy(undo->key, of->key, of->key_len);
  memcpy(undo->key + of->key_len, of->label, of->label_len);
  undo->of.key = undo->key;
  undo->of.label = undo->key + of->key_len;
  belay__client_add(client, &undo->object);
  return undo;
}

void belay__undo_keep(belay_client_t *client, const belay__undo_of_t *of, uint32_t answered_on) {
  belay__undo_t *undo = may_keep(client, of) ? new_undo(client, of) : NULL;
  if (undo == NULL)
    return;
  undo->kept = true;
  undo->answers = 1;
  undo->answered_on = answered_on;
  undo->of.ticket = undo->of.keep_ms = 0;
  belay__client_leases(client)->kept_undos++;
  belay__timer_set(client->belay, BELAY__RANK_OTHER, &undo->timer, of->until);
}

belay__undo_t *belay__undo_start(belay_client_t *client, const belay__undo_of_t *of,
                                 belay__call_t *release, belay__undo_cb cb, void *owner) {
  belay_t *belay = client->belay;
  bool room = cb != NULL || client->stats.undo_pending < UNDO_MAX;
  belay__undo_t *undo = room ? new_undo(client, of) : NULL;
  if (undo == NULL) {
    if (release != NULL)
      belay__call_abandon(release);
    client->stats.undo_failed++;
    belay__log(belay, BELAY_LOG_WARNING,
               "no room for an undo: a key may live for the rest of its ttl");
    return NULL;
  }
  undo->cb = cb;
  undo->owner = owner;
  undo->patience = belay__after_ms(belay, client->close_timeout_ms);
  undo->holds_loop = true;
  client->stats.undo_pending++;
  belay__hold_loop(belay);
  if (release != NULL)
    belay__call_own(&undo->call, release, on_reply, undo);
  else
    send(undo);
  return undo;
}

void belay__undo_detach(belay__undo_t *undo) {
  undo->cb = NULL;
}

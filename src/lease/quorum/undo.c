#include "lease/quorum/undo.h"

#include <stdio.h>
#include <string.h>

#include "lease/machine/client_leases.h"
#include "lease/quorum/command.h"
#include "core/client/lifecycle.h"
#include "core/loop/backoff.h"

#define UNDO_MAX ((size_t)4096) /* maximum number of undos of one client without an owner */
#define KEPT_MAX ((size_t)4096) /* undos that are KEPT in one client */
#define GHOST_REPEATS 3         /* how often it is repeated where a ghost is possible */

struct belay__undo {
  belay__object_t object;
  belay_client_t *client;
  belay__undo_cb cb;
  void *owner;
  belay__timer_t timer; /* RESTING: time to try again */
  belay__call_t *call;  /* SENDING: the call; NULL while RESTING, KEPT */
  bool kept;            /* was KEPT once: its owner was notified, and no caller waits for it */
  belay__undo_target_t target;
  unsigned tries, answers;
  uint32_t answered_on; /* connection of the last answer; 0: none */
  uint64_t close_until; /* until then it keeps the loop alive */
  bool holds_loop;
  size_t size;
  char key[]; /* and the label */
};

static void send_release(belay__undo_t *undo);

/* Notifies the owner and parts from it. */
static void notify_owner(belay__undo_t *undo, bool done) {
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

static void end_undo(belay__undo_t *undo, bool done) {
  belay_client_t *client = undo->client;
  belay_t *belay = client->belay;
  (void)belay__call_cancel(&undo->call);
  belay__timer_stop(belay, BELAY__RANK_OTHER, &undo->timer);
  if (undo->kept)
    belay__client_leases(client)->kept_undos--;
  else
    notify_owner(undo, done);
  belay__client_remove(client, &undo->object);
  belay__free(belay, undo, undo->size);
}

static bool may_keep(const belay_client_t *client, const belay__undo_target_t *target) {
  return target->repeat && !client->closing &&
         belay__client_leases(client)->kept_undos < KEPT_MAX &&
         belay__now(client->belay) < target->until;
}

/* It was answered. */
static void keep_undo(belay__undo_t *undo) {
  belay_client_t *client = undo->client;
  if (!undo->kept && !may_keep(client, &undo->target)) {
    end_undo(undo, true);
    return;
  }
  if (!undo->kept) {
    notify_owner(undo, true);
    undo->kept = true;
    belay__client_leases(client)->kept_undos++;
  }
  undo->target.ticket = undo->target.keep_ms = 0; /* a place is given back once */
  belay__timer_set(client->belay, BELAY__RANK_OTHER, &undo->timer, undo->target.until);
}

static void schedule_retry(belay__undo_t *undo) {
  belay_t *belay = undo->client->belay;
  uint64_t when =
      belay__now(belay) + belay__backoff(belay, undo->tries++, BELAY__BACKOFF_MAX_MS * BELAY__MS);
  if (undo->target.keep_ms != 0)
    undo->target.ticket = undo->target.keep_ms = 0;
  if (undo->holds_loop && belay__now(belay) >= undo->close_until) {
    undo->holds_loop = false;
    belay__free_loop(belay);
  }
  belay__timer_set(belay, BELAY__RANK_OTHER, &undo->timer,
                   when < undo->target.until ? when : undo->target.until);
}

static void on_reply(belay__call_t *call, const belay__result_t *result) {
  belay__undo_t *undo = call->owner;
  int64_t removed;
  bool answered = result->outcome == BELAY_OUTCOME_REPLY;
  if (call->denied) {
    send_release(undo);
    return;
  }
  if (answered && !belay__release_read(call, result->reply, &removed)) {
    belay__call_distrust(call, result->reply);
    answered = false;
  }
  if (result->error == BELAY_EWRONGTYPE && belay__kind_has_one_key(undo->target.kind))
    answered = true; /* the key holds something that is not ours */
  if (answered)
    undo->answered_on = call->epoch;
  if (answered && (++undo->answers > GHOST_REPEATS ||
                   !belay__client_may_run(undo->client, call, undo->target.epoch))) {
    keep_undo(undo);
    return;
  }
  schedule_retry(undo);
}

static void on_timer(belay__timer_t *timer) {
  belay__undo_t *undo = BELAY__CONTAINER(timer, belay__undo_t, timer);
  if (belay__now(undo->client->belay) >= undo->target.until)
    end_undo(undo, undo->answers > 0);
  else
    send_release(undo);
}

static belay__release_t release_of(const belay__undo_t *undo) {
  const belay__undo_target_t *target = &undo->target;
  belay__release_t release = {.notify = target->notify};
  if (!target->no_token)
    release.token_len =
        belay__token_text(release.token, &target->token, target->label, target->label_len);
  size_t n = belay__ticket_text(target->ticket, release.other);
  if (target->keep_ms != 0) /* the new state of the place */
    n += (size_t)snprintf(release.other + n, sizeof release.other - n, "+%u",
                          (unsigned)target->keep_ms);
  release.other_len = n;
  return release;
}

static void send_release(belay__undo_t *undo) {
  belay_client_t *client = undo->client;
  belay__call_t *call = belay__call_new(client, undo->target.conn_class);
  if (call == NULL) {
    schedule_retry(undo);
    return;
  }
  belay__release_t release = release_of(undo);
  belay__release_build(undo->target.kind, undo->key, undo->target.key_len, &release, call);
  uint64_t deadline = belay__after_ms(client->belay, client->timeout_ms);
  call->deadline = deadline < undo->target.until ? deadline : undo->target.until;
  call->route = undo->target.route;
  call->urgent = true;
  call->no_retry = undo->target.keep_ms != 0;
  if (belay__call_start(&undo->call, call, on_reply, undo) != 0)
    schedule_retry(undo);
}

/* One that was not answered is going as fast as it can. */
static void object_close(belay__object_t *object) {
  belay__undo_t *undo = BELAY__CONTAINER(object, belay__undo_t, object);
  if (undo->kept)
    end_undo(undo, true);
}

static void object_abort(belay__object_t *object) {
  end_undo(BELAY__CONTAINER(object, belay__undo_t, object), false);
}

/* An answered undo is repeated because of possible late executions, after a delay. */
static void object_connected(belay__object_t *object) {
  belay__undo_t *undo = BELAY__CONTAINER(object, belay__undo_t, object);
  belay_t *belay = undo->client->belay;
  uint64_t soon = belay__now(belay) + belay__spread(belay, BELAY__SPREAD_MS * BELAY__MS);
  bool resting = undo->call == NULL && undo->answers == 0;
  if (resting && belay__timer_is_set(&undo->timer) && soon < undo->timer.when &&
      undo->client->node_ops->server(undo->client, undo->target.conn_class, undo->target.route) !=
          NULL)
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
      client->node_ops->server(client, undo->target.conn_class, undo->target.route);
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
static belay__undo_t *new_undo(belay_client_t *client, const belay__undo_target_t *target) {
  size_t size = sizeof(belay__undo_t) + target->key_len + target->label_len;
  belay__undo_t *undo = belay__alloc(client->belay, size);
  if (undo == NULL)
    return NULL;
  *undo = (belay__undo_t){.object = {.ops = &object_ops},
                          .client = client,
                          .timer = {.fire = on_timer},
                          .target = *target,
                          .size = size};
  memcpy(undo->key, target->key, target->key_len);
  memcpy(undo->key + target->key_len, target->label, target->label_len);
  undo->target.key = undo->key;
  undo->target.label = undo->key + target->key_len;
  belay__client_add(client, &undo->object);
  return undo;
}

void belay__undo_keep(belay_client_t *client, const belay__undo_target_t *target,
                      uint32_t answered_on) {
  belay__undo_t *undo = may_keep(client, target) ? new_undo(client, target) : NULL;
  if (undo == NULL)
    return;
  undo->kept = true;
  undo->answers = 1;
  undo->answered_on = answered_on;
  undo->target.ticket = undo->target.keep_ms = 0;
  belay__client_leases(client)->kept_undos++;
  belay__timer_set(client->belay, BELAY__RANK_OTHER, &undo->timer, target->until);
}

belay__undo_t *belay__undo_start(belay_client_t *client, const belay__undo_target_t *target,
                                 belay__call_t *release, belay__undo_cb cb, void *owner) {
  belay_t *belay = client->belay;
  bool room = cb != NULL || client->stats.undo_pending < UNDO_MAX;
  belay__undo_t *undo = room ? new_undo(client, target) : NULL;
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
  undo->close_until = belay__after_ms(belay, client->close_timeout_ms);
  undo->holds_loop = true;
  client->stats.undo_pending++;
  belay__hold_loop(belay);
  if (release != NULL)
    belay__call_own(&undo->call, release, on_reply, undo);
  else
    send_release(undo);
  return undo;
}

void belay__undo_detach(belay__undo_t *undo) {
  undo->cb = NULL;
}

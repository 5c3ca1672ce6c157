#include "lease/quorum/undo.h"

#include <stdio.h>
#include <string.h>

#include "core/client/lifecycle.h"
#include "core/loop/backoff.h"
#include "lease/machine/deadline.h"
#include "lease/quorum/command.h"

/* Maximum number of pending undos of one client. Beyond it, a new undo is dropped and counted as
 * failed, unless a lease waits for it. */
#define UNDO_MAX ((size_t)4096)
#define KEPT_MAX ((size_t)4096) /* maximum number of undos of one client that are KEPT */
#define GHOST_REPEATS 3         /* number of repeats after a reply if a ghost is possible */

struct belay__undo {
  belay__object_t object;
  belay_client_t *client;
  belay__member_t *member; /* the member that waits for the undo; NULL: none */
  belay__timer_t timer;    /* RESTING: time to try again. KEPT: `until` */
  belay__call_t *call;     /* SENDING: the call; NULL while RESTING, KEPT */
  const belay__kind_t *kind;
  belay__token_t token;
  bool has_token;
  bool notify; /* true if waiters are notified */
  bool repeat; /* true if the undo is KEPT after its reply: repeat_release, and a token */
  bool kept;   /* true since it was KEPT for the first time; its end was reported then */
  bool holds_loop;
  belay__conn_class_t conn_class;
  uint32_t route;
  uint32_t epoch;   /* connection of an attempt without a reply; 0: none */
  uint32_t keep_ms; /* time for which the ticket keeps its place; 0: it is removed */
  uint64_t ticket;  /* 0: none */
  uint64_t until;   /* end of the undo, in ns: the ttl of the token, else of the ticket, is over */
  unsigned tries, replies;
  uint32_t replied_on;  /* connection of the last reply; 0: none */
  uint64_t close_until; /* time until which retries keep the loop alive, in ns */
  size_t key_len, label_len;
  char key[]; /* followed by the label */
};

static void send_release(belay__undo_t *undo);

static size_t size_of(const belay__undo_t *undo) {
  return sizeof *undo + undo->key_len + undo->label_len;
}

/* Counts the undo as undone or as given up, and notifies the lease that waits for it. */
static void report_end(belay__undo_t *undo, bool done) {
  belay_client_t *client = undo->client;
  belay__member_t *member = undo->member;
  if (done) {
    client->stats.undone++;
  } else {
    client->stats.undo_failed++;
    belay__log(client->belay, BELAY_LOG_WARNING,
               "undo given up: a key may live for the rest of its ttl");
  }
  client->stats.undo_pending--;
  if (undo->holds_loop)
    belay__free_loop(client->belay);
  undo->holds_loop = false;
  if (member == NULL)
    return;
  undo->member = NULL;
  belay__member_exchange(member)->undo = NULL;
  belay__lease_report(belay__member_lease(member), BELAY__EV_UNDONE, 0);
}

static void end_undo(belay__undo_t *undo, bool done) {
  belay_client_t *client = undo->client;
  (void)belay__call_cancel(&undo->call);
  belay__timer_stop(client->belay, BELAY__RANK_OTHER, &undo->timer);
  if (undo->kept)
    belay__client_leases(client)->kept_undos--;
  else
    report_end(undo, done);
  belay__client_remove(client, &undo->object);
  belay__free(client->belay, undo, size_of(undo));
}

static bool may_keep(const belay__undo_t *undo) {
  const belay_client_t *client = undo->client;
  return undo->repeat && !client->closing && belay__client_leases(client)->kept_undos < KEPT_MAX &&
         belay__now(client->belay) < undo->until;
}

static void forget_ticket(belay__undo_t *undo) {
  undo->ticket = undo->keep_ms = 0;
}

/* Continues after the last reply to an undo: the undo is KEPT, or over. */
static void keep_undo(belay__undo_t *undo) {
  if (!undo->kept && !may_keep(undo)) {
    end_undo(undo, true);
    return;
  }
  if (!undo->kept) {
    report_end(undo, true);
    undo->kept = true;
    belay__client_leases(undo->client)->kept_undos++;
  }
  forget_ticket(undo);
  belay__timer_set(undo->client->belay, BELAY__RANK_OTHER, &undo->timer, undo->until);
}

static void schedule_retry(belay__undo_t *undo) {
  belay_t *belay = undo->client->belay;
  uint64_t when =
      belay__now(belay) + belay__backoff(belay, undo->tries++, BELAY__BACKOFF_MAX_MS * BELAY__MS);
  if (undo->keep_ms != 0)
    forget_ticket(undo);
  if (undo->holds_loop && belay__now(belay) >= undo->close_until) {
    undo->holds_loop = false;
    belay__free_loop(belay);
  }
  belay__timer_set(belay, BELAY__RANK_OTHER, &undo->timer, belay__earlier(when, undo->until));
}

static void on_reply(belay__call_t *call, const belay__result_t *result) {
  belay__undo_t *undo = call->owner;
  int64_t removed;
  bool replied = result->outcome == BELAY_OUTCOME_REPLY;
  if (call->denied) {
    send_release(undo);
    return;
  }
  if (replied && !belay__release_read(call, result->reply, &removed)) {
    belay__call_distrust(call, result->reply);
    replied = false;
  }
  if (result->error == BELAY_EWRONGTYPE && belay__kind_has_one_key(undo->kind))
    replied = true; /* a key of another type does not have our token */
  if (replied)
    undo->replied_on = call->epoch;
  if (replied && (++undo->replies > GHOST_REPEATS ||
                  !belay__client_may_run(undo->client, call, undo->epoch))) {
    keep_undo(undo);
    return;
  }
  schedule_retry(undo);
}

static void on_timer(belay__timer_t *timer) {
  belay__undo_t *undo = BELAY__CONTAINER(timer, belay__undo_t, timer);
  if (belay__now(undo->client->belay) >= undo->until)
    end_undo(undo, undo->replies > 0);
  else
    send_release(undo);
}

static belay__release_t release_of(const belay__undo_t *undo) {
  belay__release_t release = {.notify = undo->notify};
  if (undo->has_token)
    release.token_len =
        belay__token_text(release.token, &undo->token, undo->key + undo->key_len, undo->label_len);
  size_t n = belay__ticket_text(undo->ticket, release.other);
  if (undo->keep_ms != 0)
    n += (size_t)snprintf(release.other + n, sizeof release.other - n, "+%u",
                          (unsigned)undo->keep_ms);
  release.other_len = n;
  return release;
}

static void send_release(belay__undo_t *undo) {
  belay_client_t *client = undo->client;
  belay__call_t *call = belay__call_new(client, undo->conn_class);
  if (call == NULL) {
    schedule_retry(undo);
    return;
  }
  belay__release_t release = release_of(undo);
  belay__release_build(undo->kind, undo->key, undo->key_len, &release, call);
  call->deadline = belay__earlier(belay__after_ms(client->belay, client->timeout_ms), undo->until);
  call->route = undo->route;
  call->urgent = true;
  call->no_retry = undo->keep_ms != 0;
  if (belay__call_start(&undo->call, call, on_reply, undo) != 0)
    schedule_retry(undo);
}

/* Ends a KEPT undo, because the client closes. An undo that was never KEPT continues until the
 * client aborts it. */
static void object_close(belay__object_t *object) {
  belay__undo_t *undo = BELAY__CONTAINER(object, belay__undo_t, object);
  if (undo->kept)
    end_undo(undo, true);
}

static void object_abort(belay__object_t *object) {
  end_undo(BELAY__CONTAINER(object, belay__undo_t, object), false);
}

static const belay__server_info_t *server_of(const belay__undo_t *undo) {
  return undo->client->node_ops->server(undo->client, undo->conn_class, undo->route);
}

static uint64_t soon(const belay__undo_t *undo) {
  belay_t *belay = undo->client->belay;
  return belay__now(belay) + belay__spread(belay, BELAY__SPREAD_MS * BELAY__MS);
}

/* Advances the next try of an undo without a reply. An undo that has a reply, and repeats because
 * of a ghost, keeps its delay. */
static void object_connected(belay__object_t *object) {
  belay__undo_t *undo = BELAY__CONTAINER(object, belay__undo_t, object);
  uint64_t when = soon(undo);
  bool resting = undo->call == NULL && undo->replies == 0;
  if (resting && belay__timer_is_set(&undo->timer) && when < undo->timer.when &&
      server_of(undo) != NULL)
    belay__timer_set(undo->client->belay, BELAY__RANK_OTHER, &undo->timer, when);
}

/* Schedules a KEPT undo to be sent again soon, if the connection that last replied to it no longer
 * serves the key. A server without the undo may have replaced the server that replied. */
static void object_lost(belay__object_t *object) {
  belay__undo_t *undo = BELAY__CONTAINER(object, belay__undo_t, object);
  if (!undo->kept || undo->call != NULL || undo->replies == 0)
    return;
  const belay__server_info_t *server = server_of(undo);
  if (server != NULL && server->epoch == undo->replied_on)
    return;
  undo->replies = undo->tries = 0;
  belay__timer_set(undo->client->belay, BELAY__RANK_OTHER, &undo->timer, soon(undo));
}

static const belay__object_ops_t object_ops = {.close = object_close,
                                               .abort = object_abort,
                                               .connected = object_connected,
                                               .lost_connection = object_lost};

/* Returns NULL if memory is out. */
static belay__undo_t *new_undo(const belay__member_t *member, unsigned what) {
  const belay__lease_t *lease = belay__member_lease(member);
  const belay__active_t *active = lease->active; /* NULL: see belay__lease_settle() */
  belay_client_t *client = belay__member_client(member);
  bool has_token = (what & BELAY__UNDO_TOKEN) != 0;
  uint32_t longest = active != NULL ? active->longest_ttl : lease->ttl;
  uint32_t ttl = has_token ? longest : lease->config->waiter_ttl;
  uint64_t ticket = active != NULL ? active->ticket : 0;
  size_t label_len;
  const char *label = belay__lease_label(lease, &label_len);
  belay__undo_t *undo = belay__alloc(client->belay, sizeof *undo + lease->key_len + label_len);
  if (undo == NULL)
    return NULL;
  *undo = (belay__undo_t){
      .object = {.ops = &object_ops},
      .client = client,
      .timer = {.fire = on_timer},
      .kind = lease->config->kind,
      .token = lease->token,
      .has_token = has_token,
      .notify = lease->config->notify,
      .repeat = lease->config->repeat_release && has_token,
      .conn_class = belay__lease_class(lease),
      .route = lease->route,
      .epoch = member->epoch,
      .keep_ms = (what & BELAY__UNDO_PLACE) != 0 ? lease->config->waiter_ttl : 0,
      .ticket = (what & (BELAY__UNDO_TICKET | BELAY__UNDO_PLACE)) != 0 ? ticket : 0,
      .until = belay__lease_now(lease) + belay__lease_forgotten_after(ttl),
      .key_len = lease->key_len,
      .label_len = label_len,
  };
  memcpy(undo->key, belay__lease_key(lease), lease->key_len);
  memcpy(undo->key + lease->key_len, label, label_len);
  belay__client_add(client, &undo->object);
  return undo;
}

void belay__undo_keep(belay__member_t *member) {
  belay_client_t *client = belay__member_client(member);
  belay__undo_t *undo = client->closing || belay__client_leases(client)->kept_undos >= KEPT_MAX
                            ? NULL
                            : new_undo(member, BELAY__UNDO_TOKEN);
  if (undo == NULL)
    return;
  undo->kept = true;
  undo->replies = 1;
  undo->replied_on = member->sent_on;
  belay__client_leases(client)->kept_undos++;
  belay__timer_set(client->belay, BELAY__RANK_OTHER, &undo->timer, undo->until);
}

void belay__undo_start(belay__member_t *member, unsigned what, belay__call_t *release, bool wait) {
  belay_client_t *client = belay__member_client(member);
  bool room = wait || client->stats.undo_pending < UNDO_MAX;
  belay__undo_t *undo = room ? new_undo(member, what) : NULL;
  if (undo == NULL) {
    if (release != NULL)
      belay__call_abandon(release);
    client->stats.undo_failed++;
    belay__log(client->belay, BELAY_LOG_WARNING,
               "no room for an undo: a key may live for the rest of its ttl");
    return;
  }
  if (wait) {
    undo->member = member;
    belay__member_exchange(member)->undo = undo;
  }
  undo->close_until = belay__after_ms(client->belay, client->close_timeout_ms);
  undo->holds_loop = true;
  client->stats.undo_pending++;
  belay__hold_loop(client->belay);
  if (release != NULL)
    belay__call_own(&undo->call, release, on_reply, undo);
  else
    send_release(undo);
}

void belay__undo_detach(belay__member_t *member) {
  belay__exchange_t *exchange = belay__member_exchange(member);
  if (exchange->undo != NULL)
    exchange->undo->member = NULL;
  exchange->undo = NULL;
}

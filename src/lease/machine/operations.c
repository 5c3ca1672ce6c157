#include "lease/machine/operations.h"

#include "core/loop/backoff.h"
#include "core/key/key.h"
#include "lease/machine/deadline.h"
#include "lease/machine/hold.h"
#include "lease/machine/machine.h"
#include "lease/quorum/command.h"
#include "lease/quorum/member.h"
#include "lease/quorum/round.h"

/* ---- operations ---- */

int belay__lease_acquire(belay__lease_t *lease, int64_t wait_ms) {
  if (belay__is_pending(lease->op) ||
      (lease->state != BELAY__LEASE_IDLE && lease->state != BELAY__LEASE_LOST))
    return BELAY_ESTATE;
  belay_t *belay = belay__lease_belay(lease);
  uint64_t ticket = 0;
  if (lease->config->kind->tickets && wait_ms != 0) {
    int error = belay->host->random(belay, &ticket, sizeof ticket);
    if (error != 0)
      return error;
    ticket |= 1; /* 0 is none */
  }
  if (!belay__lease_activate_acquire(lease, wait_ms == 0 ? 0 : belay__after_ms(belay, wait_ms)))
    return BELAY_ENOMEM;
  lease->active->ticket = ticket;
  lease->next_mode = lease->mode;
  lease->mode_uncertain = false;
  lease->op = BELAY__PENDING;
  lease->error = 0;
  belay__lease_step(lease, BELAY__EV_ACQUIRE, 0);
  return 0;
}

int belay__lease_release(belay__lease_t *lease, int64_t timeout_ms) {
  belay_t *belay = belay__lease_belay(lease);
  bool stopped = belay__stop_clock(belay); /* one reading for the check and the step */
  bool held = belay__lease_remaining(lease) > 0;
  if (held) {
    lease->op = BELAY__PENDING;
    belay__lease_step(lease, BELAY__EV_RELEASE, (uint64_t)timeout_ms);
  }
  belay__start_clock(belay, stopped);
  return held ? 0 : BELAY_ENOTOWNER;
}

int belay__lease_extend(belay__lease_t *lease, int64_t ttl_ms, int64_t timeout_ms) {
  if (!belay__lease_is_held(lease) || belay__lease_remaining(lease) == 0)
    return BELAY_ENOTOWNER;
  if (belay__is_pending(lease->extend))
    return BELAY_ESTATE;
  if (!belay__lease_activate(lease))
    return BELAY_ENOMEM;
  lease->extend = BELAY__PENDING;
  belay__lease_change_ttl(lease, (uint32_t)ttl_ms);
  belay__lease_step(lease, BELAY__EV_EXTEND, (uint64_t)timeout_ms);
  return 0;
}

int belay__lease_cancel(belay__lease_t *lease) {
  if (!belay__is_pending(lease->op) || lease->state == BELAY__LEASE_RELEASING ||
      (belay__is_over(lease->op) && lease->state != BELAY__LEASE_GRANTED))
    return BELAY_ESTATE;
  belay__lease_step(lease, BELAY__EV_CANCEL, 0);
  return 0;
}

int belay__lease_close(belay__lease_t *lease) {
  if (lease->state >= BELAY__LEASE_CLOSING)
    return BELAY_ECLOSING;
  belay__lease_step(lease, BELAY__EV_CLOSE, 0);
  return 0;
}

void belay__lease_ref(belay__lease_t *lease, bool ref) {
  lease->ref = ref;
  belay__lease_update_hold(lease);
}

/* ---- timers and the task ---- */

static void on_timer(belay__timer_t *timer) {
  belay__lease_t *lease = BELAY__CONTAINER(timer, belay__lease_t, timer);
  belay__lease_event_t event;
  if (belay__lease_fired(lease, &event))
    belay__lease_step(lease, event, 0);
}

/* Runs the events that other leases have queued: the turn, and the result of a hand-over. If this
 * lease was closed, or its operation has ended, since an event was queued, the event is dropped:
 * then the lease does not acquire, or the state is not RELEASING any more. */
static void run_events(belay__lease_t *lease) {
  if (belay__lease_is_acquiring(lease) && lease->active->turn_queued) {
    lease->active->turn_queued = false;
    belay__lease_step(lease, BELAY__EV_TURN, lease->active->yield);
  }
  if (lease->state == BELAY__LEASE_RELEASING && belay__round_status(lease) != BELAY__PENDING)
    belay__lease_step(lease, BELAY__EV_ANSWER, 0);
}

/* Runs queued events, and notifies the owner. The owner's callback may call any function. It must
 * not free the lease before BELAY__NOTICE_CLOSED. */
static void run_task(belay__task_t *task) {
  belay__lease_t *lease = BELAY__CONTAINER(task, belay__lease_t, task);
  run_events(lease);
  if (lease->loss != 0) {
    int reason = lease->loss;
    lease->loss = 0;
    lease->config->kind->notify_owner(lease, BELAY__NOTICE_LOST, reason);
  }
  if (belay__is_over(lease->extend)) {
    int status = lease->extend;
    lease->extend = BELAY__NO_OPERATION;
    lease->upgrading = false;
    belay__lease_update_hold(lease);
    lease->config->kind->notify_owner(lease, BELAY__NOTICE_EXTENDED, status);
    belay__lease_settle(lease);
  }
  if (belay__is_over(lease->op)) {
    int status = lease->op;
    lease->op = BELAY__NO_OPERATION;
    belay__lease_step(lease, BELAY__EV_NOTIFIED, 0);
    lease->config->kind->notify_owner(lease, BELAY__NOTICE_ENDED, status);
  }
  if (lease->state != BELAY__LEASE_CLOSED || belay__is_over(lease->extend) ||
      belay__is_over(lease->op))
    return; /* if a callback has closed the lease, the task is queued again */
  belay__task_stop(belay__lease_belay(lease), task);
  belay__free_loop(belay__lease_belay(lease));
  belay__lease_settle(lease);
  const belay__lease_config_t *config = lease->config;
  for (unsigned i = 0; i < lease->members; i++)
    belay__client_leases_remove(config->clients[i], &lease->member[i].node);
  config->kind->notify_owner(lease, BELAY__NOTICE_CLOSED, 0);
  belay__lease_config_release(config);
}

/* ---- what the client reports ---- */

/* Calls the function for each member of the client's leases. The function adds and removes none. */
static void for_each_member(belay__object_t *object, void (*report)(belay__member_t *member)) {
  const belay__client_leases_t *leases =
      BELAY__CONTAINER(object, const belay__client_leases_t, object);
  for (belay__list_t *i = leases->members.next; i != &leases->members; i = i->next)
    report(BELAY__CONTAINER(i, belay__member_t, node));
}

static void close_member(belay__member_t *member) {
  (void)belay__lease_close(belay__member_lease(member));
}

static void abort_member(belay__member_t *member) {
  belay__lease_step(belay__member_lease(member), BELAY__EV_CLOSE, 0);
}

/* Advances the next renewal or attempt, because a member has a new connection. This applies only if
 * a quorum is connected, and the last renewal failed or the last attempt ended in an error other
 * than BELAY_EHELD. */
static void member_connected(belay__member_t *member) {
  belay__lease_t *lease = belay__member_lease(member);
  unsigned connected = 0;
  if (lease->active == NULL || lease->active->failures == 0 || !lease->is_due_set)
    return;
  for (unsigned i = 0; i < lease->members; i++)
    connected += belay__member_server(&lease->member[i]) != NULL;
  if (connected < lease->quorum)
    return;
  if (lease->state == BELAY__LEASE_WAITING) {
    belay__lease_step(lease, BELAY__EV_WAKE, BELAY__WOKEN_CONNECTED);
  } else if (lease->state == BELAY__LEASE_HELD) {
    belay_t *belay = belay__lease_belay(lease);
    uint64_t soon = belay__now(belay) + belay__spread(belay, BELAY__SPREAD_MS * BELAY__MS);
    belay__lease_set_timer(lease, belay__earlier(belay__lease_due(lease), soon));
  }
}

/* Checks a held lease after a connection of the client was lost, or keys moved. If the connection
 * that last replied to this member no longer serves the key, the server may have lost the lease. */
static void member_lost_connection(belay__member_t *member) {
  belay__lease_t *lease = belay__member_lease(member);
  const belay__server_info_t *server = belay__member_server(member);
  if (belay__lease_is_held(lease) && (server == NULL || server->epoch != member->sent_on))
    belay__lease_step(lease, BELAY__EV_CHECK, BELAY__CHECK_CONNECTION_LOST);
}

static void object_close(belay__object_t *object) {
  for_each_member(object, close_member);
}

static void object_abort(belay__object_t *object) {
  for_each_member(object, abort_member);
}

static void object_connected(belay__object_t *object) {
  for_each_member(object, member_connected);
}

static void object_lost_connection(belay__object_t *object) {
  for_each_member(object, member_lost_connection);
}

static const belay__object_ops_t object_ops = {.close = object_close,
                                               .abort = object_abort,
                                               .connected = object_connected,
                                               .lost_connection = object_lost_connection};

/* ---- making it ---- */

#define X(name, value, retryable, text)                                                            \
  _Static_assert((value) >= INT16_MIN && (value) < 0, "an error that does not fit 16 bits");
BELAY_ERRORS(X)
#undef X

/* Returns the route of the key; with `many`, of the first key, because all keys are in one slot. */
static uint32_t route_of(const belay__kind_t *kind, const char *key, size_t len) {
  size_t at = 0;
  if (kind->many)
    key = belay__many_next(key, len, &at, &len);
  return belay__key_route(key, len);
}

void belay__lease_init(belay__lease_t *lease, size_t n, const belay__lease_config_t *config,
                       size_t key_len, size_t extra_len) {
  static const belay__machine_t machine = {.step = belay__lease_step};
  *lease = (belay__lease_t){
      .config = config,
      .timer = {.fire = on_timer},
      .ttl = config->ttl,
      .op = BELAY__NO_OPERATION,
      .extend = BELAY__NO_OPERATION,
      .members = (uint8_t)n,
      .quorum = (uint8_t)(n / 2 + 1),
      .key_len = (uint16_t)key_len,
      .extra_len = (uint16_t)extra_len,
  };
  belay__task_init(&lease->task, run_task);
  for (size_t i = 0; i < n; i++) {
    belay__client_leases_t *leases = belay__client_leases(config->clients[i]);
    leases->object.ops = &object_ops;
    leases->machine = &machine;
    leases->extension.rebuild = belay__member_rebuild;
    lease->member[i] = (belay__member_t){.index = (uint8_t)i, .vote = BELAY__NO_VOTE};
    belay__client_leases_add(config->clients[i], &lease->member[i].node);
  }
  belay__lease_set_fence(lease, 0);
  lease->route = route_of(config->kind, belay__lease_key(lease), key_len);
}

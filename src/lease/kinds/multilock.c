/* The lock on several names: a lease (member) for each deployment, in a cluster for each slot,
 * taken one after another.
 *
 *    IDLE --acquire--> ACQUIRING: one member after another --the last is held--> HELD
 *     ^                  |     ^                                                  | |
 *     |   not held, or   |     | all are released, and an acquire is pending      | |
 *     |   canceled:      |     | (also after a loss, if there is time)            | |
 *     |   reported       v     |                                                  | |
 *     +--all are------ ROLLING_BACK: acquired members are released <--a member----+ |
 *     |  released                                                 is lost: reported |
 *     +--all are released-- RELEASING <------------------------------------release--+
 *
 *    ROLLING_BACK, and an acquire is pending --its wait is over--> ROLLING_BACK, reported
 *    any --a client closes--> CLIENT_CLOSED: reported; other members are released; no new acquires
 *    any --close--> CLOSING: all members close
 *    CLIENT_CLOSED, CLOSING --the last member is closed--> freed
 *
 * Only step() writes the state. All multilocks take members in the same order (multilock_names.c),
 * so one of several competing ones can get all of its names. Therefore all members are released if
 * one is lost during an acquire, and the first one is taken again.
 *
 * A member's task notifies the owner. Other decisions (in a call of the owner, in the timer) are
 * reported from the multilock's own task. */
#include "lease/kinds/multilock.h"

#include <assert.h>

#include "core/call/publish.h"
#include "lease/kinds/lock.h"
#include "lease/machine/deadline.h"
#include "lease/wait/wake.h"
#include "scripts.gen.h"

typedef enum state {
  IDLE,          /* new, released or lost, or the acquire failed; all members have ended */
  ACQUIRING,     /* the member `at` is being acquired; those before it are held */
  HELD,          /* all members are held; the owner is notified at once */
  RELEASING,     /* the owner releases the lock, and not all members have ended */
  ROLLING_BACK,  /* an acquire failed or a member was lost, and not all members have ended */
  CLIENT_CLOSED, /* a client closed, so the lock is lost; the handle still exists */
  CLOSING        /* the owner closed the handle */
} state_t;

typedef enum event {
  EV_ACQUIRE,       /* the owner starts an acquire */
  EV_RELEASE,       /* the owner starts a release */
  EV_CANCEL,        /* the owner cancels the acquire */
  EV_CLOSE,         /* the owner closes the handle */
  EV_CLIENT_CLOSED, /* a client is closed */
  EV_ENDED,         /* a member's acquire or release ended */
  EV_LOST,          /* a member is lost */
  EV_TIMER          /* ROLLING_BACK: the wait of the pending acquire is over */
} event_t;

static belay__multilock_member_t *member_of(belay__lease_t *lease) {
  return BELAY__CONTAINER(lease, belay__multilock_member_t, lease);
}

/* Ends the operation; the task notifies the owner. */
static void end_op(belay_multilock_t *multilock, int status) {
  if (!multilock->op_pending || multilock->op_done)
    return;
  multilock->op_done = true;
  multilock->op_status = status;
  belay__defer(multilock->belay, &multilock->task);
}

/* True if no member is held, has a pending operation, or has a notice to give. A late notice would
 * seem to belong to the next operation. */
static bool is_settled(const belay_multilock_t *multilock) {
  for (unsigned i = 0; i < multilock->members; i++) {
    const belay__lease_t *lease = &multilock->member[i].lease;
    bool over = lease->state == BELAY__LEASE_IDLE || lease->state == BELAY__LEASE_LOST;
    if (belay__is_pending(lease->op) || lease->loss != 0 || !over)
      return false;
  }
  return true;
}

/* Nanoseconds for which the first n members are certainly all held. */
static uint64_t remaining(const belay_multilock_t *multilock, unsigned n) {
  uint64_t least = BELAY__NEVER;
  for (unsigned i = 0; i < n; i++) {
    uint64_t left = belay__lease_remaining(&multilock->member[i].lease);
    least = left < least ? left : least;
  }
  return least;
}

static bool wait_is_over(const belay_multilock_t *multilock) {
  return multilock->wait_until != 0 && belay__now(multilock->belay) >= multilock->wait_until;
}

/* The rest of the wait, in milliseconds. */
static int64_t wait_left(const belay_multilock_t *multilock) {
  if (multilock->wait_until == 0 || multilock->wait_until == BELAY__NEVER)
    return multilock->wait_until == 0 ? 0 : BELAY_FOREVER;
  uint64_t left = (multilock->wait_until - belay__now(multilock->belay)) / BELAY__MS;
  return left > 0 ? (int64_t)left : 1;
}

static state_t roll_back(belay_multilock_t *multilock);

/* Ends the acquire. Returns the next state. */
static state_t fail_acquire(belay_multilock_t *multilock, int status) {
  end_op(multilock, status);
  return roll_back(multilock);
}

/* Acquires a member; those before it are held. Returns the next state. */
static state_t acquire_member(belay_multilock_t *multilock, unsigned at) {
  belay__multilock_member_t *member = &multilock->member[at];
  multilock->at = (uint8_t)at;
  if (wait_is_over(multilock))
    return fail_acquire(multilock, BELAY_ETIMEDOUT);
  if (member->client->closing)
    return fail_acquire(multilock, BELAY_ECANCELED);
  int error = belay__lease_acquire(&member->lease, wait_left(multilock));
  return error != 0 ? fail_acquire(multilock, error) : ACQUIRING;
}

/* Releases the members that are held. After that a pending acquire starts again. Returns the next
 * state. */
static state_t roll_back(belay_multilock_t *multilock) {
  for (unsigned i = 0; i < multilock->members; i++) {
    belay__lease_t *lease = &multilock->member[i].lease;
    if (belay__lease_is_held(lease) && !belay__is_pending(lease->op)) /* fails past the deadline */
      (void)belay__lease_release(lease, lease->config->timeout);
  }
  if (!is_settled(multilock))
    return ROLLING_BACK;
  return multilock->op_pending && !multilock->op_done ? acquire_member(multilock, 0) : IDLE;
}

/* Cancels the acquire of the current member, and rolls back. Returns the next state. */
static state_t cancel_member(belay_multilock_t *multilock) {
  (void)belay__lease_cancel(&multilock->member[multilock->at].lease); /* it may have ended */
  return roll_back(multilock);
}

/* Rolls back, because a member was lost before all were held. Without a wait, ends the acquire. */
static state_t lose_member(belay_multilock_t *multilock) {
  if (multilock->wait_until == 0 || wait_is_over(multilock))
    end_op(multilock, BELAY_EEXPIRED);
  return cancel_member(multilock);
}

/* Continues after the acquire of the current member ended. Returns the next state. */
static state_t finish_member(belay_multilock_t *multilock, int status) {
  unsigned next = multilock->at + 1u;
  if (status != 0)
    return fail_acquire(multilock, status);
  if (remaining(multilock, next) == 0)
    return lose_member(multilock);
  if (next < multilock->members)
    return acquire_member(multilock, next);
  multilock->failed = NULL;
  end_op(multilock, 0);
  return HELD;
}

static state_t lose_lock(belay_multilock_t *multilock, int reason) {
  multilock->loss_due = true;
  multilock->lost_reason = reason;
  return roll_back(multilock);
}

/* Ends the release if all members have ended. Returns the next state. */
static state_t finish_release(belay_multilock_t *multilock) {
  int status = 0;
  if (!is_settled(multilock))
    return RELEASING;
  for (unsigned i = 0; i < multilock->members && status == 0; i++)
    status = multilock->member[i].status;
  end_op(multilock, status);
  return IDLE;
}

static state_t start_release(belay_multilock_t *multilock) {
  for (unsigned i = 0; i < multilock->members; i++) {
    belay__lease_t *lease = &multilock->member[i].lease;
    int64_t timeout =
        multilock->timeout_ms == BELAY_DEFAULT ? lease->config->timeout : multilock->timeout_ms;
    multilock->member[i].status = belay__lease_release(lease, timeout);
  }
  return finish_release(multilock);
}

static state_t close_all(belay_multilock_t *multilock) {
  end_op(multilock, BELAY_ECANCELED);
  for (unsigned i = 0; i < multilock->members; i++)
    (void)belay__lease_close(&multilock->member[i].lease); /* its client may close it already */
  return CLOSING;
}

/* Ends the lock for good, because a client closed. Returns the next state. */
static state_t end_with_client(belay_multilock_t *multilock) {
  if (multilock->state == HELD) {
    multilock->loss_due = true;
    multilock->lost_reason = BELAY_LOST_CLOSED;
  }
  end_op(multilock, BELAY_ECANCELED);
  (void)cancel_member(multilock);
  return CLIENT_CLOSED;
}

/* ---- the kind of a member ---- */

static bool same_server(const belay__member_t *a, const belay__member_t *b) {
  return belay__server_info_same(belay__member_server(a), belay__member_server(b)) &&
         belay__member_client(a)->db == belay__member_client(b)->db;
}

/* True if an earlier member has one of the keys on the same server, because two URLs lead to that
 * server. */
static bool holds_common_key(belay__lease_t *lease) {
  const belay__multilock_member_t *member = member_of(lease);
  for (const belay__multilock_member_t *held = member->multilock->member; held < member; held++)
    if (same_server(&held->lease.member[0], &member->lease.member[0]) &&
        belay__multilock_common_key(&held->lease, lease))
      return true;
  return false;
}

static void acquire(const belay__lease_t *lease, belay__call_t *call) {
  belay__lease_begin_acquire(lease, call, &belay__script_multi_acquire, 1);
  belay__wake_put_flag_ttl(lease, call);
}

static int acquired(belay__lease_t *lease, const belay__call_t *call, const belay__reply_t *reply,
                    int64_t *holder_ms) {
  int status = belay__lock_acquired(lease, call, reply, holder_ms);
  return status == BELAY_EHELD && holds_common_key(lease) ? BELAY_EDUPLICATE : status;
}

/* Adds the publish command: if a key is lost, the script releases the others, and wakes waiters. */
static void extend_more(const belay__lease_t *lease, belay__call_t *call) {
  belay__publish_arg(call, lease->config->notify);
}

static void on_notice(belay__lease_t *lease, belay__notice_t news, int status);

const belay__kind_t belay__multi_kind = {
    .family = "lock",
    .extend = &belay__script_multi_extend,
    .release = &belay__script_multi_release,
    .many = true,
    .client_queue = true,
    .acquire = acquire,
    .acquired = acquired,
    .extend_args = 1,
    .extend_more = extend_more,
    .notify_owner = on_notice,
};

/* All transitions. status: result of the member's operation, or the reason of its loss. */
static state_t next_state(belay_multilock_t *multilock, event_t event,
                          belay__multilock_member_t *member, int status) {
  state_t state = (state_t)multilock->state;
  if (event == EV_CLOSE)
    return close_all(multilock);
  if (event == EV_CLIENT_CLOSED && state < CLIENT_CLOSED)
    return end_with_client(multilock);

  switch (state) {
  case IDLE:
    return event == EV_ACQUIRE ? acquire_member(multilock, 0) : state;

  case ACQUIRING:
    if (event == EV_CANCEL) {
      end_op(multilock, BELAY_ECANCELED);
      return cancel_member(multilock);
    }
    if (event == EV_LOST)
      return lose_member(multilock);
    return event == EV_ENDED ? finish_member(multilock, status) : state;

  case HELD:
    if (event == EV_RELEASE)
      return start_release(multilock);
    return event == EV_LOST ? lose_lock(multilock, status) : state;

  case RELEASING:
    if (event == EV_ENDED)
      member->status = status;
    return finish_release(multilock);

  case ROLLING_BACK:
    if (event == EV_CANCEL)
      end_op(multilock, BELAY_ECANCELED);
    if (event == EV_TIMER)
      end_op(multilock, BELAY_ETIMEDOUT);
    return roll_back(multilock);

  case CLIENT_CLOSED:
  case CLOSING:
    return state;
  }
  return state;
}

static void step(belay_multilock_t *multilock, event_t event, belay__multilock_member_t *member,
                 int status) {
  bool refused = event == EV_ENDED && multilock->state == ACQUIRING && status != 0;
  if (refused || event == EV_LOST || event == EV_CLIENT_CLOSED)
    multilock->failed = member;
  multilock->state = (uint8_t)next_state(multilock, event, member, status);
  bool wanted = multilock->state == ROLLING_BACK && multilock->op_pending && !multilock->op_done;
  if (wanted && multilock->wait_until != 0)
    belay__timer_set(multilock->belay, BELAY__RANK_OTHER, &multilock->timer, multilock->wait_until);
  else
    belay__timer_stop(multilock->belay, BELAY__RANK_OTHER, &multilock->timer);
}

static void on_timer(belay__timer_t *timer) {
  step(BELAY__CONTAINER(timer, belay_multilock_t, timer), EV_TIMER, NULL, 0);
}

/* ---- notifications ---- */

/* Sets belay_detail() to the server's error text if the status comes from it. */
static void set_detail(const belay_multilock_t *multilock, int status) {
  multilock->belay->detail[0] = '\0';
  for (unsigned i = 0; i < multilock->members && multilock->belay->detail[0] == '\0'; i++)
    if (!multilock->member[i].closed)
      belay__client_explain(multilock->member[i].client, status, NULL, 0);
}

/* Notifies the owner, in a task. A callback may call any function; only free_if_closed() frees. */
static void notify_owner(belay_multilock_t *multilock) {
  if (multilock->loss_due) {
    multilock->loss_due = false;
    if (multilock->on_lost != NULL)
      multilock->on_lost(multilock, (belay_lost_t)multilock->lost_reason);
  }
  if (!multilock->op_done)
    return;
  belay_multilock_cb cb = multilock->op_cb;
  multilock->op_done = multilock->op_pending = false;
  multilock->op_cb = NULL;
  if (cb == NULL)
    return;
  set_detail(multilock, multilock->op_status);
  cb(multilock, multilock->op_status);
}

static void run_task(belay__task_t *task) {
  notify_owner(BELAY__CONTAINER(task, belay_multilock_t, task));
}

void belay__multilock_init(belay_multilock_t *multilock, belay_t *belay, size_t members,
                           size_t size) {
  *multilock = (belay_multilock_t){
      .belay = belay, .timer = {.fire = on_timer}, .members = (uint8_t)members, .size = size};
  belay__task_init(&multilock->task, run_task);
}

/* Frees the multilock if all members are closed: by the owner, or each by its client. */
static void free_if_closed(belay_multilock_t *multilock) {
  for (unsigned i = 0; i < multilock->members; i++)
    if (!multilock->member[i].closed)
      return;
  belay__task_stop(multilock->belay, &multilock->task);
  if (multilock->close_cb != NULL)
    multilock->close_cb(multilock, multilock->data);
  belay__free(multilock->belay, multilock, multilock->size);
}

/* Handles a member's notice, and notifies the owner at once if it concerns the owner. */
static void on_notice(belay__lease_t *lease, belay__notice_t news, int status) {
  belay__multilock_member_t *member = member_of(lease);
  belay_multilock_t *multilock = member->multilock;
  switch (news) {
  case BELAY__NOTICE_LOST:
    step(multilock, EV_LOST, member, status);
    break;
  case BELAY__NOTICE_ENDED:
    step(multilock, EV_ENDED, member, status);
    break;
  case BELAY__NOTICE_EXTENDED:
    assert(false && "a member is not extended by its owner");
    break;
  case BELAY__NOTICE_CLOSED:
    member->closed = true;
    step(multilock, EV_CLIENT_CLOSED, member, 0);
    break;
  }
  notify_owner(multilock);
  if (news == BELAY__NOTICE_CLOSED)
    free_if_closed(multilock);
}

static int check(belay_multilock_t *multilock) {
  if (multilock == NULL)
    return BELAY_EINVAL;
  int error = belay__check(multilock->belay);
  return error == 0 && multilock->state == CLOSING ? BELAY_ECLOSING : error;
}

static bool has_closed_client(const belay_multilock_t *multilock) {
  for (unsigned i = 0; i < multilock->members; i++)
    if (multilock->member[i].closed || multilock->member[i].client->closing)
      return true;
  return false;
}

int belay_multilock_acquire(belay_multilock_t *multilock, int64_t wait_ms, belay_multilock_cb cb) {
  int error = check(multilock);
  if (error == 0 && has_closed_client(multilock))
    error = BELAY_ECLOSING;
  if (error != 0)
    return error;
  if (cb == NULL)
    return belay__invalid(multilock->belay, "cb: NULL");
  if (wait_ms == BELAY_DEFAULT)
    wait_ms = multilock->member[0].lease.config->wait;
  if ((error = belay__check_range(multilock->belay, "wait_ms", wait_ms, 0, BELAY_FOREVER)) != 0)
    return error;
  if (multilock->op_pending || (multilock->state != IDLE && multilock->state != ROLLING_BACK))
    return BELAY_ESTATE;
  multilock->op_pending = true;
  multilock->op_cb = cb;
  multilock->wait_until = wait_ms == 0 ? 0 : belay__after_ms(multilock->belay, wait_ms);
  step(multilock, EV_ACQUIRE, NULL, 0);
  return 0;
}

int belay_multilock_release(belay_multilock_t *multilock, int64_t timeout_ms,
                            belay_multilock_cb cb) {
  int error = check(multilock);
  if (error == 0 && timeout_ms != BELAY_DEFAULT)
    error = belay__check_range(multilock->belay, "timeout_ms", timeout_ms, 1, 600000);
  if (error != 0)
    return error;
  if (multilock->state != HELD || multilock->op_pending ||
      remaining(multilock, multilock->members) == 0)
    return BELAY_ENOTOWNER;
  multilock->op_pending = true;
  multilock->op_cb = cb;
  multilock->timeout_ms = timeout_ms;
  step(multilock, EV_RELEASE, NULL, 0);
  return 0;
}

int belay_multilock_cancel(belay_multilock_t *multilock) {
  int error = check(multilock);
  if (error != 0)
    return error;
  bool waits = multilock->state == ACQUIRING || multilock->state == ROLLING_BACK;
  if (!waits || !multilock->op_pending || multilock->op_done)
    return BELAY_ESTATE;
  step(multilock, EV_CANCEL, NULL, 0);
  return 0;
}

int belay_multilock_close(belay_multilock_t *multilock, belay_multilock_close_cb cb) {
  int error = check(multilock);
  if (error != 0)
    return error;
  multilock->close_cb = cb;
  step(multilock, EV_CLOSE, NULL, 0);
  return 0;
}

int64_t belay_multilock_remaining_us(const belay_multilock_t *multilock) {
  if (multilock == NULL || multilock->state != HELD ||
      multilock->belay->host->forked(multilock->belay))
    return 0;
  return (int64_t)(remaining(multilock, multilock->members) / 1000);
}

int belay_multilock_error(const belay_multilock_t *multilock, belay_client_t **client) {
  if (client != NULL)
    *client = NULL;
  if (multilock == NULL)
    return BELAY_EINVAL;
  const belay__multilock_member_t *member = multilock->failed;
  for (unsigned i = 0; i < multilock->members && member == NULL; i++)
    if (multilock->member[i].lease.error != 0)
      member = &multilock->member[i];
  if (member == NULL || member->lease.error == 0)
    return 0;
  if (client != NULL && !member->closed)
    *client = member->client;
  return member->lease.error;
}

void belay_multilock_ref(belay_multilock_t *multilock) {
  for (unsigned i = 0; multilock != NULL && i < multilock->members; i++)
    belay__lease_ref(&multilock->member[i].lease, true);
}

void belay_multilock_unref(belay_multilock_t *multilock) {
  for (unsigned i = 0; multilock != NULL && i < multilock->members; i++)
    belay__lease_ref(&multilock->member[i].lease, false);
}

void *belay_multilock_data(const belay_multilock_t *multilock) {
  return multilock == NULL ? NULL : multilock->data;
}

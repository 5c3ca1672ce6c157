/* The lock on several names: a lease for each deployment, and of a cluster for each slot (multilock_slot.c), taken one after the
 * other.
 *
 *   IDLE --acquire--> ACQUIRING: one part after the other --the last one is held--> HELD --release--> RELEASING --> IDLE
 *    ^                  |     ^                                                     |
 *    |   not held, or   |     | all is given back, and an acquire is wanted         | a part is lost:
 *    |   canceled: told |     | (also if a part was lost, and there is time)        | told at once
 *    |   at once        v     |                                                     |
 *    +--all is given-- CLEARING: what was taken is given back <---------------------+
 *       back
 *   CLEARING, and an acquire is wanted --its wait is over--> CLEARING, told
 *   any --one of the clients is closed--> CUT: told; what the others have is given back, and no more is asked
 *   any --close--> CLOSING: all parts close --the last one is closed--> freed; so is CUT, when the last client is closed
 *
 * Only step() writes the state. All take the parts in the same order (multilock_names.c); so of those who want the
 * same ones somebody always has all that he waits for behind him. That is why a part that is lost while others are
 * being waited for is not taken again by itself: all of them are given back, and the first is taken again.
 *
 * What a part tells comes from a task, in which the owner is told as well; what is decided in a call of the owner's
 * is told from our own task. */
#include "lease/kinds/multilock.h"

#include <assert.h>

#include "lease/kinds/lock.h"
#include "lease/machine/deadline.h"

typedef enum state {
  IDLE,      /* made, given back, failed */
  ACQUIRING, /* the part `at` was asked for; those before it are held */
  HELD,      /* the last part was granted, and the owner was told */
  RELEASING, /* the owner gave it back, and not all answers are in */
  CLEARING,  /* an acquire failed, or a part was lost; op_pending: and then it is to be acquired */
  CUT,       /* a client is closed: what it had is gone, and so is the whole */
  CLOSING    /* the owner has closed it */
} state_t;

typedef enum event {
  EV_ACQUIRE, /* the owner wants it */
  EV_RELEASE, /* the owner gives it back */
  EV_CANCEL,  /* the owner does not want to wait any more */
  EV_CLOSE,   /* the owner has no more use for it */
  EV_CUT,     /* a client is closed */
  EV_ENDED,   /* a part's acquire or release is over */
  EV_LOST,    /* a part is lost */
  EV_TIMER    /* CLEARING: the wait of the acquire that is wanted is over */
} event_t;

static belay__multilock_part_t *part_of(belay__lease_t *lease) {
  return BELAY__CONTAINER(lease, belay__multilock_part_t, lease);
}

/* ---- leaves ---------------------------------------------------------------------------------------------- */

/* The owner is to be told, when the machine is at rest. */
static void end_op(belay_multilock_t *whole, int status) {
  if (!whole->op_pending || whole->op_over)
    return;
  whole->op_over = true;
  whole->op_status = status;
  belay__defer(whole->belay, &whole->task);
}

/* Nothing is held, and nothing is going on or still to be told, which would be taken for news of what comes after
 * it. */
static bool is_settled(const belay_multilock_t *whole) {
  for (unsigned i = 0; i < whole->parts; i++) {
    const belay__lease_t *lease = &whole->part[i].lease;
    bool over = lease->state == BELAY__LEASE_IDLE || lease->state == BELAY__LEASE_LOST;
    if (belay__is_pending(lease->op) || lease->loss != 0 || !over)
      return false;
  }
  return true;
}

/* Nanoseconds for which the first n parts are certainly held, all of them. */
static uint64_t remaining(const belay_multilock_t *whole, unsigned n) {
  uint64_t least = BELAY__NEVER;
  for (unsigned i = 0; i < n; i++) {
    uint64_t left = belay__lease_remaining(&whole->part[i].lease);
    least = left < least ? left : least;
  }
  return least;
}

static bool wait_is_over(const belay_multilock_t *whole) {
  return whole->wait_until != 0 && belay__now(whole->belay) >= whole->wait_until;
}

/* What is left of the wait, in milliseconds. */
static int64_t wait_left(const belay_multilock_t *whole) {
  if (whole->wait_until == 0 || whole->wait_until == BELAY__NEVER)
    return whole->wait_until == 0 ? 0 : BELAY_FOREVER;
  uint64_t left = (whole->wait_until - belay__now(whole->belay)) / BELAY__MS;
  return left > 0 ? (int64_t)left : 1;
}

static state_t clear(belay_multilock_t *whole);

/* The acquire comes to this. Returns the state to go to. */
static state_t fail(belay_multilock_t *whole, int status) {
  end_op(whole, status);
  return clear(whole);
}

/* Asks for a part; those before it are held. Returns the state to go to. */
static state_t ask(belay_multilock_t *whole, unsigned at) {
  belay__multilock_part_t *part = &whole->part[at];
  whole->at = (uint8_t)at;
  if (wait_is_over(whole))
    return fail(whole, BELAY_ETIMEDOUT);
  if (part->lease.member[0].client->closing)
    return fail(whole, BELAY_ECANCELED);
  int error = belay__lease_acquire(&part->lease, wait_left(whole));
  return error != 0 ? fail(whole, error) : ACQUIRING;
}

/* Gives back what is held. When all is given back, an acquire that is wanted begins. Returns the state to go to. */
static state_t clear(belay_multilock_t *whole) {
  for (unsigned i = 0; i < whole->parts; i++) {
    belay__lease_t *lease = &whole->part[i].lease;
    if (belay__lease_is_held(lease) && !belay__is_pending(lease->op)) /* or it is just being lost */
      (void)belay__lease_release(lease, lease->terms->timeout);
  }
  if (!is_settled(whole))
    return CLEARING;
  return whole->op_pending && !whole->op_over ? ask(whole, 0) : IDLE;
}

/* Does not wait for the part that was asked for any more. Returns the state to go to. */
static state_t stop_asking(belay_multilock_t *whole) {
  (void)belay__lease_cancel(
      &whole->part[whole->at].lease); /* it may be over, and about to tell so */
  return clear(whole);
}

/* A part is over before all are held. Returns the state to go to. */
static state_t lost_early(belay_multilock_t *whole) {
  if (whole->wait_until == 0 || wait_is_over(whole))
    end_op(whole, BELAY_EEXPIRED);
  return stop_asking(whole);
}

/* The part that was asked for has answered. Returns the state to go to. */
static state_t answered(belay_multilock_t *whole, int status) {
  unsigned next = whole->at + 1u;
  if (status != 0)
    return fail(whole, status);
  if (remaining(whole, next) == 0)
    return lost_early(whole);
  if (next < whole->parts)
    return ask(whole, next);
  whole->failed = NULL;
  end_op(whole, 0);
  return HELD;
}

static state_t lost(belay_multilock_t *whole, int reason) {
  whole->lost_over = true;
  whole->lost_reason = reason;
  return clear(whole);
}

/* Looks at what has come of a release. Returns the state to go to. */
static state_t released(belay_multilock_t *whole) {
  int status = 0;
  if (!is_settled(whole))
    return RELEASING;
  for (unsigned i = 0; i < whole->parts && status == 0; i++)
    status = whole->part[i].status;
  end_op(whole, status);
  return IDLE;
}

static state_t give_back(belay_multilock_t *whole) {
  for (unsigned i = 0; i < whole->parts; i++) {
    belay__lease_t *lease = &whole->part[i].lease;
    int64_t timeout =
        whole->timeout_ms == BELAY_DEFAULT ? lease->terms->timeout : whole->timeout_ms;
    whole->part[i].status = belay__lease_release(lease, timeout);
  }
  return released(whole);
}

static state_t close_all(belay_multilock_t *whole) {
  end_op(whole, BELAY_ECANCELED);
  for (unsigned i = 0; i < whole->parts; i++)
    (void)belay__lease_close(&whole->part[i].lease); /* or its client has begun to */
  return CLOSING;
}

/* Nothing can be had any more. Returns the state to go to. */
static state_t cut(belay_multilock_t *whole) {
  if (whole->state == HELD) {
    whole->lost_over = true;
    whole->lost_reason = BELAY_LOST_CLOSED;
  }
  end_op(whole, BELAY_ECANCELED);
  (void)stop_asking(whole);
  return CUT;
}

/* ---- one server by two ways ------------------------------------------------------------------------------- */

static bool same_server(const belay__member_t *a, const belay__member_t *b) {
  return belay__server_info_same(belay__member_server(a), belay__member_server(b)) &&
         a->client->db == b->client->db;
}

/* Whether two lists have a key in common; both are sorted. */
static bool meet(const belay__lease_t *a, const belay__lease_t *b) {
  size_t a_at = 0, b_at = 0, a_len, b_len;
  const char *one = belay__many_next(a->key, a->key_len, &a_at, &a_len);
  const char *other = belay__many_next(b->key, b->key_len, &b_at, &b_len);
  while (one != NULL && other != NULL) {
    int order = belay__multilock_compare(one, a_len, other, b_len);
    if (order == 0)
      return true;
    if (order < 0)
      one = belay__many_next(a->key, a->key_len, &a_at, &a_len);
    else
      other = belay__many_next(b->key, b->key_len, &b_at, &b_len);
  }
  return false;
}

bool belay__multilock_meets_itself(belay__lease_t *lease) {
  const belay__multilock_part_t *part = part_of(lease);
  for (const belay__multilock_part_t *held = part->whole->part; held < part; held++)
    if (same_server(&held->lease.member[0], &part->lease.member[0]) && meet(&held->lease, lease))
      return true;
  return false;
}

/* ---- the machine ----------------------------------------------------------------------------------------- */

/* The state after an event. status: how a part's operation ended, or why it was lost. */
static state_t next_state(belay_multilock_t *whole, event_t event, belay__multilock_part_t *part,
                          int status) {
  state_t state = (state_t)whole->state;
  if (event == EV_CLOSE)
    return close_all(whole);
  if (event == EV_CUT && state < CUT)
    return cut(whole);

  switch (state) {
  case IDLE:
    return event == EV_ACQUIRE ? ask(whole, 0) : state;

  case ACQUIRING:
    if (event == EV_CANCEL) {
      end_op(whole, BELAY_ECANCELED);
      return stop_asking(whole);
    }
    if (event == EV_LOST)
      return lost_early(whole);
    return event == EV_ENDED ? answered(whole, status) : state;

  case HELD:
    if (event == EV_RELEASE)
      return give_back(whole);
    return event == EV_LOST ? lost(whole, status) : state;

  case RELEASING:
    if (event == EV_ENDED)
      part->status = status;
    return released(whole);

  case CLEARING:
    if (event == EV_CANCEL)
      end_op(whole, BELAY_ECANCELED);
    if (event == EV_TIMER)
      end_op(whole, BELAY_ETIMEDOUT);
    return clear(whole);

  case CUT:
  case CLOSING:
    return state;
  }
  return state;
}

static void step(belay_multilock_t *whole, event_t event, belay__multilock_part_t *part,
                 int status) {
  bool refused = event == EV_ENDED && whole->state == ACQUIRING && status != 0;
  if (refused || event == EV_LOST || event == EV_CUT)
    whole->failed = part;
  whole->state = (uint8_t)next_state(whole, event, part, status);
  bool wanted = whole->state == CLEARING && whole->op_pending && !whole->op_over;
  if (wanted && whole->wait_until != 0)
    belay__timer_set(whole->belay, BELAY__RANK_OTHER, &whole->timer, whole->wait_until);
  else
    belay__timer_stop(whole->belay, BELAY__RANK_OTHER, &whole->timer);
}

void belay__multilock_on_timer(belay__timer_t *timer) {
  step(BELAY__CONTAINER(timer, belay_multilock_t, timer), EV_TIMER, NULL, 0);
}

/* ---- what the owner is told -------------------------------------------------------------------------------- */

/* What a server said, if it is what the status comes from, becomes belay_detail(). */
static void explain(const belay_multilock_t *whole, int status) {
  whole->belay->detail[0] = '\0';
  for (unsigned i = 0; i < whole->parts && whole->belay->detail[0] == '\0'; i++)
    if (!whole->part[i].closed)
      belay__client_explain(whole->part[i].lease.member[0].client, status, NULL, 0);
}

/* From a task. Each callback may do anything; only finish() frees. */
static void tell(belay_multilock_t *whole) {
  if (whole->lost_over) {
    whole->lost_over = false;
    if (whole->on_lost != NULL)
      whole->on_lost(whole, (belay_lost_t)whole->lost_reason);
  }
  if (!whole->op_over)
    return;
  belay_multilock_cb cb = whole->op_cb;
  whole->op_over = whole->op_pending = false;
  whole->op_cb = NULL;
  if (cb == NULL)
    return;
  explain(whole, whole->op_status);
  cb(whole, whole->op_status);
}

void belay__multilock_on_task(belay__task_t *task) {
  tell(BELAY__CONTAINER(task, belay_multilock_t, task));
}

/* Frees it, if all parts are closed: by the owner, or each by its client. */
static void finish(belay_multilock_t *whole) {
  for (unsigned i = 0; i < whole->parts; i++)
    if (!whole->part[i].closed)
      return;
  belay__task_stop(whole->belay, &whole->task);
  if (whole->close_cb != NULL)
    whole->close_cb(whole, whole->data);
  belay__free(whole->belay, whole, whole->size);
}

/* What a part says is told to the owner at once, where it is the owner's business: nothing can come between. */
void belay__multilock_tell(belay__lease_t *lease, belay__news_t news, int status) {
  belay__multilock_part_t *part = part_of(lease);
  belay_multilock_t *whole = part->whole;
  switch (news) {
  case BELAY__NEWS_LOST:
    step(whole, EV_LOST, part, status);
    break;
  case BELAY__NEWS_ENDED:
    step(whole, EV_ENDED, part, status);
    break;
  case BELAY__NEWS_EXTENDED:
    assert(false && "nobody has asked for that");
    break;
  case BELAY__NEWS_CLOSED:
    part->closed = true;
    step(whole, EV_CUT, part, 0);
    break;
  }
  tell(whole);
  if (news == BELAY__NEWS_CLOSED)
    finish(whole);
}

/* ---- operations ------------------------------------------------------------------------------------------ */

static int check(belay_multilock_t *whole) {
  if (whole == NULL)
    return BELAY_EINVAL;
  int error = belay__check(whole->belay);
  return error == 0 && whole->state == CLOSING ? BELAY_ECLOSING : error;
}

static bool is_cut(const belay_multilock_t *whole) {
  for (unsigned i = 0; i < whole->parts; i++)
    if (whole->part[i].closed || whole->part[i].lease.member[0].client->closing)
      return true;
  return false;
}

int belay_multilock_acquire(belay_multilock_t *whole, int64_t wait_ms, belay_multilock_cb cb) {
  int error = check(whole);
  if (error == 0 && is_cut(whole))
    error = BELAY_ECLOSING;
  if (error != 0)
    return error;
  if (cb == NULL)
    return belay__invalid(whole->belay, "cb: NULL");
  if (wait_ms == BELAY_DEFAULT)
    wait_ms = whole->part[0].lease.terms->wait;
  if ((error = belay__check_range(whole->belay, "wait_ms", wait_ms, 0, BELAY_FOREVER)) != 0)
    return error;
  if (whole->op_pending || (whole->state != IDLE && whole->state != CLEARING))
    return BELAY_ESTATE;
  whole->op_pending = true;
  whole->op_cb = cb;
  whole->wait_until = wait_ms == 0 ? 0 : belay__after_ms(whole->belay, wait_ms);
  step(whole, EV_ACQUIRE, NULL, 0);
  return 0;
}

int belay_multilock_release(belay_multilock_t *whole, int64_t timeout_ms, belay_multilock_cb cb) {
  int error = check(whole);
  if (error == 0 && timeout_ms != BELAY_DEFAULT)
    error = belay__check_range(whole->belay, "timeout_ms", timeout_ms, 1, 600000);
  if (error != 0)
    return error;
  if (whole->state != HELD || whole->op_pending || remaining(whole, whole->parts) == 0)
    return BELAY_ENOTOWNER;
  whole->op_pending = true;
  whole->op_cb = cb;
  whole->timeout_ms = timeout_ms;
  step(whole, EV_RELEASE, NULL, 0);
  return 0;
}

int belay_multilock_cancel(belay_multilock_t *whole) {
  int error = check(whole);
  if (error != 0)
    return error;
  bool waits = whole->state == ACQUIRING || whole->state == CLEARING;
  if (!waits || !whole->op_pending || whole->op_over)
    return BELAY_ESTATE;
  step(whole, EV_CANCEL, NULL, 0);
  return 0;
}

int belay_multilock_close(belay_multilock_t *whole, belay_multilock_close_cb cb) {
  int error = check(whole);
  if (error != 0)
    return error;
  whole->close_cb = cb;
  step(whole, EV_CLOSE, NULL, 0);
  return 0;
}

/* ---- the rest -------------------------------------------------------------------------------------------- */

int64_t belay_multilock_remaining_us(const belay_multilock_t *whole) {
  if (whole == NULL || whole->state != HELD || whole->belay->host->forked(whole->belay))
    return 0;
  return (int64_t)(remaining(whole, whole->parts) / 1000);
}

int belay_multilock_error(const belay_multilock_t *whole, belay_client_t **client) {
  if (client != NULL)
    *client = NULL;
  if (whole == NULL)
    return BELAY_EINVAL;
  const belay__multilock_part_t *part = whole->failed;
  for (unsigned i = 0; i < whole->parts && part == NULL; i++)
    if (whole->part[i].lease.error != 0)
      part = &whole->part[i];
  if (part == NULL || part->lease.error == 0)
    return 0;
  if (client != NULL && !part->closed)
    *client = part->lease.member[0].client;
  return part->lease.error;
}

void belay_multilock_ref(belay_multilock_t *whole) {
  for (unsigned i = 0; whole != NULL && i < whole->parts; i++)
    belay__lease_ref(&whole->part[i].lease, true);
}

void belay_multilock_unref(belay_multilock_t *whole) {
  for (unsigned i = 0; whole != NULL && i < whole->parts; i++)
    belay__lease_ref(&whole->part[i].lease, false);
}

void *belay_multilock_data(const belay_multilock_t *whole) {
  return whole == NULL ? NULL : whole->data;
}

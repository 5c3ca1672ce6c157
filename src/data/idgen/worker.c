/* Snowflakes: a worker number whose lock is held, and whose record states until when ids may be
 * issued.
 *
 *          wanted              granted            the record is ours
 *    NONE ------> LOCKING --------------> CLAIMING -------------> READY --+ renewed: until is later
 *     ^  |        |  ^  held by another:     |                      |  ^   |
 *     |  |        +--+  the next number      |                      |  +---+
 *     |  |              is tried <-----------+ record far ahead     |
 *     |  +<--wanted, or requests wait--+                            |
 *     |                                |                            |
 *     +--delay <--held, refused, no reply; lost, fenced-------------+
 *
 * The record outlasts the lock. An owner extends `until` in the record before it issues ids up to
 * the new time. If a lock failure gives a number two owners, the record separates them: the later
 * owner starts above the `until` of the first owner, and the next renewal of the first owner is
 * refused. The wall clock decides the time in an id; the lock's clock and the record decide whether
 * an id may be issued. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "data/idgen/idgen.h"
#include "scripts.gen.h"

#define TIME_MAX ((INT64_C(1) << 41) - 1)
/* Lifetime of a record after `until` or now, whichever is later: longer than clocks differ */
#define RECORD_MS INT64_C(86400000)
/* Longest delay before the wall clock of this process is read again while it is before w->last */
#define BEHIND_MAX_MS INT64_C(100)
#define WAIT_MS INT64_C(1000) /* Timeout of the acquire with options.worker; otherwise 0 */
#define NUMBER_MAX (INT64_C(1) << 53)

enum {
  NONE,     /* No worker number; if the timer is set, the next try waits for it */
  LOCKING,  /* The acquire of a lock is pending */
  CLAIMING, /* The lock is held; a PING or the claim of the record is pending */
  READY     /* Ids may be issued up to `until`; the timer starts the next renewal */
};

typedef enum event {
  WANTED,  /* Ids are wanted, or the delay is over and requests wait */
  LOCKED,  /* The lock is held */
  HELD,    /* Another client holds the lock, or the record is far ahead */
  CLAIMED, /* The record was claimed or renewed */
  FAILED,
  LOST /* The lock or the record is lost */
} event_t;

static void on_event(belay_idgen_t *idgen, event_t event, int status);

static belay_t *belay_of(const belay_idgen_t *idgen) {
  return idgen->handle.client->belay;
}

static int64_t wall_of(const belay_idgen_t *idgen) {
  return belay_of(idgen)->host->wall_us(belay_of(idgen)) / 1000;
}

static void set_timer(belay_idgen_t *idgen, uint64_t ns) {
  belay_t *belay = belay_of(idgen);
  belay__timer_set(belay, BELAY__RANK_OTHER, &idgen->timer, belay__now(belay) + ns);
}

/* ---- the lock ---- */

/* Close the lock in the background. Its callbacks find NULL as data and do nothing. */
static void drop_lock(belay_idgen_t *idgen) {
  belay__worker_t *w = &idgen->worker;
  if (w->lock == NULL)
    return;
  belay_lock_set_data(w->lock, NULL);
  (void)belay_lock_close(w->lock, NULL); /* fails if the client closes the lock already */
  w->lock = NULL;
}

static void on_locked(belay_lock_t *lock, int status) {
  belay_idgen_t *idgen = belay_lock_data(lock);
  if (idgen == NULL || idgen->handle.closing)
    return;
  if (status == BELAY_ETIMEDOUT)
    status = BELAY_EHELD;
  else if (status == BELAY_EEXPIRED) /* the reply came too late */
    status = BELAY_EUNKNOWN;
  on_event(idgen, status == 0 ? LOCKED : status == BELAY_EHELD ? HELD : FAILED, status);
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  belay_idgen_t *idgen = belay_lock_data(lock);
  (void)reason;
  if (idgen != NULL && !idgen->handle.closing)
    on_event(idgen, LOST, BELAY_EHELD);
}

/* Write the name of the lock. The length precedes the handle's name, which may be any bytes. */
static size_t put_name(const belay_idgen_t *idgen, char *out, size_t size) {
  size_t n = (size_t)snprintf(out, size, "idgen/%zu/", idgen->text_len);
  memcpy(out + n, idgen->text, idgen->text_len);
  n += idgen->text_len;
  return n + (size_t)snprintf(out + n, size - n, "/%u", idgen->worker.worker);
}

static void take_lock(belay_idgen_t *idgen) {
  belay__worker_t *w = &idgen->worker;
  belay_lock_options_t options;
  char name[BELAY_IDGEN_NAME_MAX + 32];
  size_t name_len = put_name(idgen, name, sizeof name);
  belay_lock_options_init(&options);
  options.ttl_ms = idgen->options.ttl_ms;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.on_lost = on_lost;
  options.data = idgen;
  int error = belay_lock_new(idgen->handle.client, belay_bytes(name, name_len), &options, &w->lock);
  if (error == 0)
    error = belay_lock_acquire(w->lock, idgen->options.worker < 0 ? 0 : WAIT_MS, on_locked);
  if (error != 0) {
    w->status = error;
    set_timer(idgen, 0);
  }
}

/* ---- the record ---- */

static belay__call_t *new_call(belay_idgen_t *idgen, const belay__script_t *script, size_t args) {
  belay__worker_t *w = &idgen->worker;
  char tail[32];
  belay__call_t *call = belay__call_new(idgen->handle.client, BELAY__CLASS_LEASE);
  if (call == NULL)
    return NULL;
  belay__call_script(call, script, 2, args);
  (void)snprintf(tail, sizeof tail, "}::worker::%u", w->worker);
  belay__handle_arg(&idgen->handle, call, NULL, 0, tail);
  belay__handle_arg(&idgen->handle, call, NULL, 0, "}::workers");
  belay__call_arg(call, w->owner, w->owner_len);
  belay__idgen_ask_identity(idgen, BELAY__CLASS_LEASE, call->route, &w->server);
  return call;
}

static void send_call(belay_idgen_t *idgen, belay__call_t *call, belay__call_cb done) {
  belay__worker_t *w = &idgen->worker;
  w->status = belay__call_start(&w->call, call, done, idgen);
  if (w->status != 0)
    set_timer(idgen, 0);
}

static int read_claim(belay_idgen_t *idgen, belay__call_t *call, const belay__reply_t *reply) {
  static const belay__fault_t faults[] = {
      {BELAY_EMISMATCH, "it holds no record of a worker"},
      {BELAY_EMISMATCH, "it has another epoch_ms"},
      {BELAY_EMISMATCH, "the key with ::workers holds no epoch_ms"},
      {BELAY_EMISMATCH, "the workers of this name have another epoch_ms"},
  };
  belay__worker_t *w = &idgen->worker;
  int64_t floor, until;
  int error = belay__handle_fault(call, reply, faults, sizeof faults / sizeof *faults);
  if (error != 0)
    return error;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 2 ||
      !belay__reply_integer(reply->items[0], 0, NUMBER_MAX, &floor) ||
      !belay__reply_integer(reply->items[1], floor, NUMBER_MAX, &until)) {
    belay__call_distrust(call, reply);
    return BELAY_EPROTO;
  }
  if (!belay__idgen_is_identity(idgen, call, &w->server))
    return BELAY_EUNKNOWN; /* the record of another server may be old */
  w->floor = floor;
  w->until = until;
  return 0;
}

/* true if the record is far ahead of our clock and options.worker does not fix the number. Either
 * the clock of the last owner was ahead, or ours is behind. Another number may be usable now. */
static bool is_far_ahead(const belay_idgen_t *idgen) {
  const belay__worker_t *w = &idgen->worker;
  return idgen->options.worker < 0 && w->floor > wall_of(idgen) + 2 * idgen->options.ahead_ms;
}

static void on_claimed(belay__call_t *call, const belay__result_t *result) {
  belay_idgen_t *idgen = call->owner;
  int status = result->error;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    status = read_claim(idgen, call, result->reply);
  on_event(idgen, status != 0 ? FAILED : is_far_ahead(idgen) ? HELD : CLAIMED, status);
}

static void send_claim(belay_idgen_t *idgen) {
  belay__worker_t *w = &idgen->worker;
  belay__call_t *call = new_call(idgen, &belay__script_idgen_claim, 6);
  belay__call_arg_int(call, wall_of(idgen));
  belay__call_arg_int(call, idgen->options.ahead_ms);
  belay__call_arg_int(call, idgen->options.epoch_ms);
  belay__call_arg(call, w->server.text, w->server.len);
  belay__call_arg_int(call, RECORD_MS);
  send_call(idgen, call, on_claimed);
}

static void on_pinged(belay__call_t *call, const belay__result_t *result) {
  belay_idgen_t *idgen = call->owner;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    send_claim(idgen);
  else
    on_event(idgen, FAILED, result->error);
}

/* Send the claim, after a PING if there is no connection: the script needs the server's identity.
 * The lock may be on another server, so the server of the record may have no connection yet. */
static void ping_and_claim(belay_idgen_t *idgen) {
  belay__identity_t server;
  belay__idgen_ask_identity(idgen, BELAY__CLASS_LEASE, idgen->handle.route, &server);
  if (server.epoch != 0)
    send_claim(idgen);
  else
    send_call(idgen, belay__idgen_new_ping(idgen, BELAY__CLASS_LEASE), on_pinged);
}

static belay__call_t *new_reserve(belay_idgen_t *idgen, int64_t until, bool last) {
  const belay__worker_t *w = &idgen->worker;
  belay__call_t *call = new_call(idgen, &belay__script_idgen_reserve, 5);
  belay__call_arg_int(call, until);
  belay__call_arg_int(call, last);
  belay__call_arg(call, w->server.text, w->server.len);
  belay__call_arg_int(call, RECORD_MS);
  return call;
}

static void on_reserved(belay__call_t *call, const belay__result_t *result) {
  belay_idgen_t *idgen = call->owner;
  belay__worker_t *w = &idgen->worker;
  int64_t ours;
  if (result->outcome != BELAY_OUTCOME_REPLY) {
    on_event(idgen, FAILED, result->error);
  } else if (!belay__reply_integer(result->reply, 0, 1, &ours)) {
    belay__call_distrust(call, result->reply);
    on_event(idgen, FAILED, BELAY_EPROTO);
  } else if (ours == 0) {
    on_event(idgen, LOST, BELAY_EHELD);
  } else {
    w->until = w->requested > w->until ? w->requested : w->until;
    on_event(idgen, CLAIMED, 0);
  }
}

static void renew(belay_idgen_t *idgen) {
  belay__worker_t *w = &idgen->worker;
  if (w->call != NULL)
    return;
  w->requested = wall_of(idgen) + idgen->options.ahead_ms;
  send_call(idgen, new_reserve(idgen, w->requested, false), on_reserved);
}

/* ---- the machine ---- */

static uint8_t begin_locking(belay_idgen_t *idgen) {
  belay__worker_t *w = &idgen->worker;
  belay__timer_stop(belay_of(idgen), BELAY__RANK_OTHER, &idgen->timer);
  w->tried = 1;
  int first = idgen->options.worker < 0 ? idgen->options.first_worker : idgen->options.worker;
  w->worker = first < 0 ? (unsigned)belay__random_below(belay_of(idgen), BELAY_IDGEN_WORKERS)
                        : (unsigned)first;
  take_lock(idgen);
  return LOCKING;
}

/* Drop the lock, store the error, and set the delay of the next try. Returns NONE. */
static uint8_t give_up(belay_idgen_t *idgen, int status) {
  belay__worker_t *w = &idgen->worker;
  drop_lock(idgen);
  (void)belay__call_cancel(&w->call);
  w->tries++;
  belay__idgen_failed(idgen, status);
  set_timer(idgen, belay__idgen_rest(idgen, w->tries));
  return NONE;
}

/* Try the next worker number. If options.worker fixes the number, or all were tried, give up. */
static uint8_t try_next(belay_idgen_t *idgen, int status) {
  belay__worker_t *w = &idgen->worker;
  if (idgen->options.worker >= 0 || w->tried == BELAY_IDGEN_WORKERS)
    return give_up(idgen, status);
  drop_lock(idgen);
  w->tried++;
  w->worker = (w->worker + 1) % BELAY_IDGEN_WORKERS;
  take_lock(idgen);
  return LOCKING;
}

static uint8_t set_ready(belay_idgen_t *idgen) {
  belay__worker_t *w = &idgen->worker;
  w->tries = 0;
  idgen->error = 0;
  if (w->state == CLAIMING) {
    w->last = w->floor > w->last ? w->floor : w->last;
    w->sequence = BELAY__IDGEN_SEQUENCES; /* all ids of the time `last` may have been issued */
  }
  set_timer(idgen, (uint64_t)idgen->options.ahead_ms * BELAY__MS / 3);
  return READY;
}

static void on_event(belay_idgen_t *idgen, event_t event, int status) {
  belay__worker_t *w = &idgen->worker;
  switch (w->state) {
  case NONE:
    assert(event == WANTED);
    w->state = begin_locking(idgen);
    break;
  case LOCKING:
    if (event == LOCKED) {
      w->owner_len = belay_lock_token(w->lock, w->owner, sizeof w->owner);
      w->state = CLAIMING;
      ping_and_claim(idgen);
    } else if (event == HELD) {
      w->state = try_next(idgen, BELAY_EHELD);
    } else if (event != WANTED) {
      w->state = give_up(idgen, status);
    }
    break;
  case CLAIMING:
    if (event == CLAIMED)
      w->state = set_ready(idgen);
    else if (event == HELD)
      w->state = try_next(idgen, BELAY_EHELD);
    else if (event != WANTED)
      w->state = give_up(idgen, status);
    break;
  default:
    assert(w->state == READY);
    if (event == CLAIMED) {
      w->state = set_ready(idgen);
    } else if (event == LOST) {
      w->state = give_up(idgen, status);
    } else if (event == FAILED) { /* a renewal failed; ids may be issued up to w->until */
      belay__idgen_failed(idgen, status);
      set_timer(idgen, (uint64_t)idgen->options.ahead_ms * BELAY__MS / 10);
    }
    break;
  }
  if (w->state == READY)
    belay__idgen_serve(idgen);
}

static void on_timer(belay__timer_t *timer) {
  belay_idgen_t *idgen = BELAY__CONTAINER(timer, belay_idgen_t, timer);
  belay__worker_t *w = &idgen->worker;
  int status = w->status;
  w->status = 0;
  if (w->state == NONE && idgen->waiting_len > 0)
    on_event(idgen, WANTED, 0);
  else if (w->state != NONE && status != 0) /* a call or an acquire could not be sent */
    on_event(idgen, FAILED, status);
  else if (w->state == READY)
    renew(idgen);
}

/* ---- the functions of the mode ---- */

/* Check that an id with the time `wall` may be issued: it is not before w->last, the record permits
 * it, it fits in an id, and the lock is held. Returns 0 or an error. */
static int check_time(belay_idgen_t *idgen, int64_t wall, uint64_t *again_at) {
  belay__worker_t *w = &idgen->worker;
  if (wall < w->last) {
    int64_t behind = w->last - wall < BEHIND_MAX_MS ? w->last - wall : BEHIND_MAX_MS;
    *again_at = belay__now(belay_of(idgen)) + (uint64_t)behind * BELAY__MS;
    return BELAY_EAGAIN;
  }
  if (wall > w->until) {
    renew(idgen);
    return BELAY_EAGAIN;
  }
  if (wall < idgen->options.epoch_ms || wall - idgen->options.epoch_ms > TIME_MAX)
    return BELAY_EOVERFLOW;
  return belay_lock_remaining_us(w->lock) > 0 ? 0 : BELAY_EAGAIN;
}

static int take(belay_idgen_t *idgen, int64_t *id, uint64_t *again_at) {
  belay__worker_t *w = &idgen->worker;
  *again_at = 0;
  if (w->state == NONE && !belay__timer_is_set(&idgen->timer))
    on_event(idgen, WANTED, 0);
  if (w->state != READY)
    return BELAY_EAGAIN;
  int64_t wall = wall_of(idgen);
  int error = check_time(idgen, wall, again_at);
  if (error != 0)
    return error;
  if (wall > w->last) {
    w->last = wall;
    w->sequence = 0;
  }
  if (w->sequence == BELAY__IDGEN_SEQUENCES) {
    *again_at = belay__now(belay_of(idgen)) + BELAY__MS;
    return BELAY_EAGAIN;
  }
  *id = (wall - idgen->options.epoch_ms)
            << (BELAY__IDGEN_WORKER_BITS + BELAY__IDGEN_SEQUENCE_BITS) |
        (int64_t)w->worker << BELAY__IDGEN_SEQUENCE_BITS | w->sequence++;
  return 0;
}

static void want(belay_idgen_t *idgen) {
  belay__worker_t *w = &idgen->worker;
  if (w->state == NONE &&
      (!belay__timer_is_set(&idgen->timer) || !belay__idgen_passes(idgen->error)))
    on_event(idgen, WANTED, 0);
}

/* ---- the end ---- */

static void on_lock_closed(belay_lock_t *lock, void *data) {
  belay_idgen_t *idgen = data;
  (void)lock;
  if (idgen == NULL)
    return;
  idgen->worker.lock = NULL;
  belay__handle_release(&idgen->handle);
}

/* Set `until` of the record to the time of the last id, so that the next owner need not wait for
 * reserved time that was not used. */
static void give_back(belay_idgen_t *idgen) {
  belay__worker_t *w = &idgen->worker;
  const belay_client_t *client = idgen->handle.client;
  belay__call_t *call = new_reserve(idgen, w->last, true);
  if (call != NULL && client->close_timeout_ms < client->timeout_ms)
    call->deadline = belay__after_ms(belay_of(idgen), client->close_timeout_ms);
  belay__handle_give_back(&idgen->handle, call);
}

static void close(belay_idgen_t *idgen) {
  belay__worker_t *w = &idgen->worker;
  (void)belay__call_cancel(&w->call);
  if (w->state == READY)
    give_back(idgen);
  w->state = NONE;
  if (w->lock == NULL)
    return;
  if (belay_lock_close(w->lock, on_lock_closed) == 0)
    belay__handle_retain(&idgen->handle);
  else
    drop_lock(idgen);
}

static void abort_all(belay_idgen_t *idgen) {
  belay__worker_t *w = &idgen->worker;
  if (w->lock != NULL) {
    belay_lock_set_data(w->lock, NULL);
    w->lock = NULL;
    belay__handle_release(&idgen->handle);
  }
}

const belay__idgen_kind_t belay__idgen_worker = {
    .take = take, .want = want, .close = close, .abort = abort_all, .on_timer = on_timer};

int belay_idgen_worker(const belay_idgen_t *idgen) {
  if (idgen == NULL || idgen->kind != &belay__idgen_worker || idgen->worker.state != READY ||
      belay_lock_remaining_us(idgen->worker.lock) == 0)
    return -1;
  return (int)idgen->worker.worker;
}

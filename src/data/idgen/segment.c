/* Segments: ids that are fetched in advance, one step at a time.
 *
 *     ids run out,            the connection                 answered: the ids are present
 *     requests wait           is up
 *    REST ---------> LOOKING --------------> FETCHING ----------------------------------> REST
 *     ^  |              |                    ^  |
 *     |  +--------------|--------------------+  | no reply, refused; or another server than the
 *     |    it was up    |                       | script's argument names has replied
 *     |                 v                       v
 *     +--delay, if the fault may pass-----------+
 *     +--the server's clock is behind-----------+
 *
 * The script needs its server's identity as an argument. The identity is known once there is a
 * connection, so a PING makes one first. The call may still use a later connection, so the reply
 * is compared with the present identity. If they differ, the ids are skipped, and no id is used
 * twice.
 *
 * There are at most two segments: the present one and the spare. */
#include <assert.h>

#include "data/idgen/idgen.h"
#include "scripts.gen.h"

#define JUMPS 1000                  /* gaps of the longest jump */
#define JUMP_MAX (INT64_C(1) << 50) /* unless that is more than this */
#define WAIT_MAX_MS 1000            /* the longest time that the script tells the caller to wait */

enum {
  REST,     /* nothing is under way; after a failure, not before rest_until */
  LOOKING,  /* a PING is, or could not be sent */
  FETCHING, /* the script is, and perhaps a WAIT behind it, or could not be sent */
};

typedef enum event {
  WANTED,   /* more ids are */
  ANSWERED, /* the fetch succeeded */
  LATER,    /* the server's clock is not there yet; wait_ms says when it will be */
  FAILED
} event_t;

static belay_t *belay_of(const belay_idgen_t *idgen) {
  return idgen->handle.client->belay;
}

static belay__conn_class_t class_of(const belay_idgen_t *idgen) {
  return idgen->min_replicas > 0 ? BELAY__CLASS_DURABLE : BELAY__CLASS_DATA;
}

/* ---- what is here -------------------------------------------------------------------------------------- */

static bool has_spare(const belay__segment_t *s) {
  return s->spare < s->spare_end;
}

/* Sets the mark at which the next segment is fetched: a fifth is left, unless a fetch failed
 * there. */
static void set_low(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  int64_t fifth = s->step / 5 + (s->step % 5 != 0);
  idgen->low = s->end;
  if (s->state == REST && !has_spare(s))
    idgen->low = s->end - fifth > s->next ? s->end - fifth : s->next;
}

static void keep(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  assert(!has_spare(s));
  s->spare = s->first;
  s->spare_end = s->floor = s->first + s->step;
  s->tries = 0;
  idgen->error = 0;
}

/* ---- what is asked ------------------------------------------------------------------------------------- */

static void on_event(belay_idgen_t *idgen, event_t event);

/* One of the calls is over. */
static void over(belay_idgen_t *idgen, int status) {
  belay__segment_t *s = &idgen->segment;
  if (s->status == 0)
    s->status = status;
  if (s->call == NULL && s->copy == NULL)
    on_event(idgen, s->status == 0 ? ANSWERED : s->status == BELAY_EAGAIN ? LATER : FAILED);
}

/* A call could not be sent: reports it later, as if it had failed. */
static void on_timer(belay__timer_t *timer) {
  belay_idgen_t *idgen = BELAY__CONTAINER(timer, belay_idgen_t, timer);
  if (idgen->segment.state != REST)
    on_event(idgen, FAILED);
  else if (idgen->waiting_len > 0)
    on_event(idgen, WANTED);
}

static void fail_soon(belay_idgen_t *idgen, int error) {
  idgen->segment.status = error;
  belay__timer_set(belay_of(idgen), BELAY__RANK_OTHER, &idgen->timer, belay__now(belay_of(idgen)));
}

static void on_looked(belay__call_t *call, const belay__result_t *result) {
  over(call->owner, result->error);
}

static int read_next(belay_idgen_t *idgen, belay__call_t *call, const belay__reply_t *reply) {
  belay__segment_t *s = &idgen->segment;
  static const belay__fault_t faults[] = {
      {BELAY_EMISMATCH, "it holds no number of the next id"},
      {BELAY_EMISMATCH, "it has another clock_rate, clock_skew_ms or start"},
  };
  uint64_t next;
  int error = belay__handle_fault(call, reply, faults, sizeof faults / sizeof *faults);
  if (error != 0)
    return error;
  if (s->clock_rate > 0 && belay__reply_integer(reply, 1, WAIT_MAX_MS, &s->wait_ms))
    return BELAY_EAGAIN;
  if (!belay__reply_number(reply, (uint64_t)s->floor + (uint64_t)s->step, INT64_MAX, &next)) {
    belay__call_distrust(call, reply);
    return BELAY_EPROTO;
  }
  s->first = (int64_t)next - s->step;
  return s->gap == 0 || belay__idgen_is_identity(idgen, call, &s->server) ? 0 : BELAY_EUNKNOWN;
}

static void on_fetched(belay__call_t *call, const belay__result_t *result) {
  belay_idgen_t *idgen = call->owner;
  int status = result->error;
  idgen->segment.sent_on = call->epoch;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    status = read_next(idgen, call, result->reply);
  over(idgen, status);
}

static void on_copied(belay__call_t *call, const belay__result_t *result) {
  belay_idgen_t *idgen = call->owner;
  int status = result->error;
  if (result->outcome == BELAY_OUTCOME_REPLY)
    status = belay__idgen_read_wait(idgen, call, result->reply, idgen->segment.sent_on);
  if (result->outcome == BELAY_OUTCOME_REPLY && status == BELAY_EPROTO)
    belay__call_distrust(call, result->reply);
  over(idgen, status);
}

static void send_ping(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  belay__call_t *call = belay__idgen_new_ping(idgen, class_of(idgen));
  s->status = 0;
  int error = belay__call_start(&s->call, call, on_looked, idgen);
  if (error != 0)
    fail_soon(idgen, error);
}

/* Two servers that have forgotten the same must not jump to the same, and cannot know of each other: the second of two
 * failovers, or of two restarts from one file. */
static int64_t draw_jump(const belay_idgen_t *idgen) {
  int64_t gap = idgen->segment.gap, most = gap > 0 ? JUMP_MAX / gap : 0;
  if (most <= 1)
    return gap;
  uint64_t gaps = (uint64_t)(most < JUMPS ? most : JUMPS);
  return gap * (1 + (int64_t)belay__random_below(belay_of(idgen), gaps));
}

static void send_script(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  bool copied = idgen->min_replicas > 0;
  belay__call_t *call = belay__call_new(idgen->handle.client, class_of(idgen)), *copy = NULL;
  if (call != NULL && copied)
    copy = belay__idgen_new_wait(idgen);
  if (call == NULL || (copied && copy == NULL)) {
    if (call != NULL)
      (void)belay__call_abandon(call);
    fail_soon(idgen, BELAY_ENOMEM);
    return;
  }
  (copied ? belay__call_script_text : belay__call_script)(call, &belay__script_idgen_segment, 1, 7);
  belay__handle_arg(&idgen->handle, call, NULL, 0, "}");
  belay__call_arg_int(call, s->step);
  belay__call_arg_int(call, s->step + draw_jump(idgen));
  belay__call_arg_int(call, s->floor);
  belay__call_arg(call, s->server.text, s->gap == 0 ? 0 : s->server.len);
  belay__call_arg_int(call, idgen->start);
  belay__call_arg_int(call, s->clock_rate);
  belay__call_arg_int(call, s->clock_skew);
  belay__call_t *calls[] = {call, copy}, **places[] = {&s->call, &s->copy};
  const belay__call_cb done[] = {on_fetched, on_copied};
  for (size_t i = 0; i < 1u + copied; i++) {
    calls[i]->route = idgen->handle.route;
    calls[i]->place = places[i];
    calls[i]->done = done[i];
    calls[i]->owner = idgen;
  }
  s->status = 0;
  int error = belay__call_send(calls, 1u + copied, true);
  if (error != 0)
    fail_soon(idgen, error);
}

static void refuse(belay_idgen_t *idgen) {
  static const char silent[] = "the server does not tell its run id: INFO is not permitted";
  belay__client_refused(idgen->handle.client, BELAY_EPERM, silent, sizeof silent - 1);
  fail_soon(idgen, BELAY_EPERM);
}

/* ---- the machine --------------------------------------------------------------------------------------- */

static uint8_t begin(belay_idgen_t *idgen, bool looked) {
  belay__segment_t *s = &idgen->segment;
  belay__timer_stop(belay_of(idgen), BELAY__RANK_OTHER, &idgen->timer);
  belay__idgen_ask_identity(idgen, class_of(idgen), idgen->handle.route, &s->server);
  if (s->gap > 0 && s->server.epoch == 0 && !looked) {
    send_ping(idgen);
    return LOOKING;
  }
  if (s->gap > 0 && s->server.epoch == 0)
    fail_soon(idgen, BELAY_EUNKNOWN); /* the connection is gone again */
  else if (s->gap > 0 && s->server.len == 0 && idgen->min_replicas == 0)
    refuse(idgen);
  else
    send_script(idgen);
  return FETCHING;
}

/* Delays the next try until half of the rest is used; not if requests wait or no id is left. */
static void rest(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  bool passes = belay__idgen_failed(idgen, s->status);
  s->tries++;
  s->rest_until = belay__now(belay_of(idgen)) + belay__idgen_rest(idgen, s->tries);
  idgen->low = s->end - (s->end - s->next) / 2;
  if (passes && idgen->waiting_len > 0)
    belay__timer_set(belay_of(idgen), BELAY__RANK_OTHER, &idgen->timer, s->rest_until);
}

/* The ids are there when the server's clock is. Nothing has failed. */
static void wait_for_clock(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  s->tries = 0;
  idgen->error = 0;
  s->rest_until = belay__now(belay_of(idgen)) + (uint64_t)s->wait_ms * BELAY__MS;
  idgen->low = s->end - (s->end - s->next) / 2;
  if (idgen->waiting_len > 0)
    belay__timer_set(belay_of(idgen), BELAY__RANK_OTHER, &idgen->timer, s->rest_until);
}

static void on_event(belay_idgen_t *idgen, event_t event) {
  belay__segment_t *s = &idgen->segment;
  switch (s->state) {
  case REST:
    assert(event == WANTED);
    s->state = begin(idgen, false);
    break;
  case LOOKING:
    if (event == ANSWERED) {
      s->state = begin(idgen, true);
    } else if (event == FAILED) {
      s->state = REST;
      rest(idgen);
    }
    break;
  default:
    assert(s->state == FETCHING);
    if (event == WANTED)
      break;
    s->state = REST;
    if (event == ANSWERED) {
      keep(idgen);
      belay__idgen_serve(idgen);
    } else if (event == LATER) {
      wait_for_clock(idgen);
    } else {
      rest(idgen);
    }
    break;
  }
}

/* ---- what the handle asks of it ------------------------------------------------------------------------ */

static void more(belay_idgen_t *idgen) {
  const belay__segment_t *s = &idgen->segment;
  if (s->state == REST && !has_spare(s) && belay__now(belay_of(idgen)) >= s->rest_until)
    on_event(idgen, WANTED);
}

static int take(belay_idgen_t *idgen, int64_t *id, uint64_t *again_at) {
  belay__segment_t *s = &idgen->segment;
  *again_at = 0;
  if (s->next == s->end && has_spare(s)) {
    s->next = s->spare;
    s->end = s->spare_end;
    s->spare = s->spare_end;
    set_low(idgen);
  }
  if (s->next >= idgen->low || s->next == s->end) {
    more(idgen);
    idgen->low = s->state == REST && !has_spare(s) ? s->end - (s->end - s->next) / 2 : s->end;
  }
  if (s->next == s->end)
    return BELAY_EAGAIN;
  *id = s->next++;
  return 0;
}

static void want(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  if (s->state != REST)
    return;
  if (belay__now(belay_of(idgen)) >= s->rest_until || !belay__idgen_passes(idgen->error))
    on_event(idgen, WANTED);
  else if (!belay__timer_is_set(&idgen->timer))
    belay__timer_set(belay_of(idgen), BELAY__RANK_OTHER, &idgen->timer, s->rest_until);
}

static void close(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  (void)belay__call_cancel(&s->call);
  (void)belay__call_cancel(&s->copy);
  s->next = s->end = s->spare = s->spare_end = 0;
}

void belay__idgen_segment_init(belay_idgen_t *idgen, const belay_idgen_options_t *options) {
  idgen->low = 0;
  idgen->segment = (belay__segment_t){.step = options->step,
                                      .gap = options->gap,
                                      .clock_rate = options->clock_rate,
                                      .clock_skew = options->clock_skew_ms};
  idgen->timer.fire = on_timer;
}

const belay__idgen_kind_t belay__idgen_segment = {.take = take, .want = want, .close = close};

/* Segments: ids that are fetched in advance, one step at a time.
 *
 *    REST --ids run low, requests wait--> FETCHING --answered: the ids are present--> REST
 *     ^                                     |  |
 *     |                                     |  | no reply, refused; or another server than the
 *     |                                     |  | script's argument names has replied
 *     +--delay after an error---------------|--+
 *     +--delay: the server's clock is behind+
 *
 * After a lasting error the delay is the longest possible. Then a new request fetches at once,
 * without waiting for the delay.
 *
 * With a gap, the script needs the identity of its server as an argument. The identity is known
 * once there is a connection, so a PING makes one first. The call may still use a later connection.
 * So after the reply, the argument is compared with the identity of the server that replied. If
 * they differ, the ids are skipped, and no id is used twice.
 *
 * There are at most two segments: the present one and the spare. */
#include <assert.h>

#include "data/idgen/idgen.h"
#include "scripts.gen.h"

#define JUMPS 1000                  /* A jump is at most this number of gaps */
#define JUMP_MAX (INT64_C(1) << 50) /* A jump of more than one gap is at most this number of ids */
#define WAIT_MAX_MS 1000            /* Longest time that the script tells the caller to wait */

enum { PINGING }; /* values of a fetch: 1 if its call is the PING, 0 if it is the script */

static belay_t *belay_of(const belay_idgen_t *idgen) {
  return idgen->handle.client->belay;
}

static belay__conn_class_t class_of(const belay_idgen_t *idgen) {
  return idgen->options.min_replicas > 0 ? BELAY__CLASS_DURABLE : BELAY__CLASS_DATA;
}

static bool has_spare(const belay__segment_t *s) {
  return s->spare < s->spare_end;
}

/* true if the next segment may be fetched. */
static bool has_room(const belay__segment_t *s) {
  return !s->fetching && !has_spare(s);
}

static int read_next(belay_idgen_t *idgen, const belay__call_t *call, const belay__reply_t *reply) {
  belay__segment_t *s = &idgen->segment;
  static const belay__fault_t faults[] = {
      {BELAY_EMISMATCH, "it holds no number of the next id"},
      {BELAY_EMISMATCH, "it has another clock_rate, clock_skew_ms or start"},
  };
  uint64_t next;
  int error = belay__handle_fault(call, reply, faults, sizeof faults / sizeof *faults);
  if (error != 0)
    return error;
  if (idgen->options.clock_rate > 0 && belay__reply_integer(reply, 1, WAIT_MAX_MS, &s->wait_ms))
    return BELAY_EAGAIN;
  if (!belay__reply_number(reply, (uint64_t)s->floor + (uint64_t)idgen->options.step, INT64_MAX,
                           &next))
    return BELAY_EPROTO;
  s->first = (int64_t)next - idgen->options.step;
  return idgen->options.gap == 0 || belay__idgen_is_identity(idgen, call, &s->server)
             ? 0
             : BELAY_EUNKNOWN;
}

/* Read the reply to the PING, the script or the WAIT. */
static int read_fetch(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay_idgen_t *idgen = operation->context;
  if (operation->values[PINGING])
    return 0;
  if (operation->index > 0)
    return belay__idgen_read_wait(idgen, call, reply, idgen->segment.script_epoch);
  idgen->segment.script_epoch = call->epoch;
  return read_next(idgen, call, reply);
}

/* Draw the jump, a random number of gaps. Two servers may lose the same ids one after the other, in
 * two failovers or two restarts from one file. With equal jumps both would continue at the same
 * number, and ids would be issued twice. */
static int64_t draw_jump(const belay_idgen_t *idgen) {
  int64_t gap = idgen->options.gap, most = gap > 0 ? JUMP_MAX / gap : 0;
  if (most <= 1)
    return gap;
  uint64_t gaps = (uint64_t)(most < JUMPS ? most : JUMPS);
  return gap * (1 + (int64_t)belay__random_below(belay_of(idgen), gaps));
}

static int send_script(belay__operation_t *operation) {
  belay_idgen_t *idgen = operation->context;
  belay__segment_t *s = &idgen->segment;
  bool copied = idgen->options.min_replicas > 0;
  belay__call_t *call = belay__call_new(idgen->handle.client, class_of(idgen));
  (copied ? belay__call_script_text : belay__call_script)(call, &belay__script_idgen_segment, 1, 7);
  belay__handle_arg(&idgen->handle, call, NULL, 0, "}");
  belay__call_arg_int(call, idgen->options.step);
  belay__call_arg_int(call, idgen->options.step + draw_jump(idgen));
  belay__call_arg_int(call, s->floor);
  belay__call_arg(call, s->server.text, idgen->options.gap == 0 ? 0 : s->server.len);
  belay__call_arg_int(call, idgen->options.start);
  belay__call_arg_int(call, idgen->options.clock_rate);
  belay__call_arg_int(call, idgen->options.clock_skew_ms);
  belay__call_t *calls[2] = {call, copied ? belay__idgen_new_wait(idgen) : NULL};
  return belay__request_send_all(operation, calls, 1u + copied);
}

static int send_fetch(belay__operation_t *operation, bool pinged) {
  static const char silent[] = "the server does not tell its run id: INFO is not permitted";
  belay_idgen_t *idgen = operation->context;
  belay__segment_t *s = &idgen->segment;
  belay__idgen_ask_identity(idgen, class_of(idgen), idgen->handle.route, &s->server);
  operation->values[PINGING] = idgen->options.gap > 0 && s->server.epoch == 0;
  if (operation->values[PINGING])
    return pinged ? BELAY_EUNKNOWN /* the connection is gone again */
                  : belay__request_send(operation, belay__idgen_new_ping(idgen, class_of(idgen)));
  if (idgen->options.gap == 0 || s->server.len > 0 || idgen->options.min_replicas > 0)
    return send_script(operation);
  belay__client_refused(idgen->handle.client, BELAY_EPERM, silent, sizeof silent - 1);
  return BELAY_EPERM;
}

/* Store the ids of the reply as the spare segment. Serve waiting requests at once, before the
 * program can take an id. */
static void keep_spare(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  assert(!has_spare(s));
  s->spare = s->first;
  s->spare_end = s->floor = s->first + idgen->options.step;
  s->tries = 0;
  idgen->error = 0;
  belay__idgen_serve(idgen);
}

static int next_step(belay__operation_t *operation) {
  if (!operation->values[PINGING]) {
    keep_spare(operation->context);
    return 0;
  }
  operation->deadline = 0; /* each step has the client's timeout */
  int error = send_fetch(operation, true);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

/* Delay the next fetch by `ns`, and until half of the remaining ids of the segment are used. If
 * requests wait or no id is left, only the time counts. */
static void delay_fetch(belay_idgen_t *idgen, uint64_t ns) {
  belay__segment_t *s = &idgen->segment;
  s->rest_until = belay__now(belay_of(idgen)) + ns;
  idgen->low = s->end - (s->end - s->next) / 2;
  if (idgen->waiting_len > 0)
    belay__timer_set(belay_of(idgen), BELAY__RANK_OTHER, &idgen->timer, s->rest_until);
}

/* Set idgen->low, the id at which the next segment is fetched. At this id a fifth of a step is
 * left. If less is left already, idgen->low is the present id. If no fetch is possible, idgen->low
 * is the end of the segment. */
static void set_low(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  int64_t fifth = idgen->options.step / 5 + (idgen->options.step % 5 != 0);
  idgen->low = s->end;
  if (has_room(s))
    idgen->low = s->end - fifth > s->next ? s->end - fifth : s->next;
}

static void on_fetched(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay_idgen_t *idgen = answer->context;
  belay__segment_t *s = &idgen->segment;
  (void)request;
  (void)cb;
  s->fetching = false;
  if (idgen->handle.closing)
    return;
  if (answer->status == 0) {
    set_low(idgen);
    belay__idgen_serve(idgen); /* fetches the next segment if requests still wait */
  } else if (answer->status == BELAY_EAGAIN) {
    s->tries = 0;
    idgen->error = 0;
    delay_fetch(idgen, (uint64_t)s->wait_ms * BELAY__MS);
  } else {
    belay__idgen_failed(idgen, answer->status);
    delay_fetch(idgen, belay__idgen_rest(idgen, ++s->tries));
  }
}

static const belay__request_ops_t fetch_ops = {
    .read = read_fetch, .next = next_step, .notify = on_fetched, .joined = true};

static void fetch(belay_idgen_t *idgen) {
  belay__operation_t *operation;
  belay__timer_stop(belay_of(idgen), BELAY__RANK_OTHER, &idgen->timer);
  if (belay__handle_begin(&idgen->handle, &idgen->request, &fetch_ops, NULL, &operation) != 0)
    return;
  idgen->segment.fetching = true;
  int error = send_fetch(operation, false);
  if (error != 0)
    belay__request_end(operation, error);
}

static void on_timer(belay__timer_t *timer) {
  belay_idgen_t *idgen = BELAY__CONTAINER(timer, belay_idgen_t, timer);
  if (!idgen->segment.fetching && idgen->waiting_len > 0)
    fetch(idgen);
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
    if (has_room(s) && belay__now(belay_of(idgen)) >= s->rest_until)
      fetch(idgen);
    idgen->low = has_room(s) ? s->end - (s->end - s->next) / 2 : s->end;
  }
  if (s->next == s->end)
    return BELAY_EAGAIN;
  *id = s->next++;
  return 0;
}

static void want(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  if (s->fetching)
    return;
  if (belay__now(belay_of(idgen)) >= s->rest_until || !belay__idgen_passes(idgen->error))
    fetch(idgen);
  else if (!belay__timer_is_set(&idgen->timer))
    belay__timer_set(belay_of(idgen), BELAY__RANK_OTHER, &idgen->timer, s->rest_until);
}

static void close(belay_idgen_t *idgen) {
  belay__segment_t *s = &idgen->segment;
  s->next = s->end = s->spare = s->spare_end = 0;
}

const belay__idgen_kind_t belay__idgen_segment = {
    .take = take, .want = want, .close = close, .on_timer = on_timer};

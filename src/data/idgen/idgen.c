/* Ids: the handle, requests that are served from memory, and waiting requests.
 *
 *    a request: begun --ids are present, and no request waits--> ended
 *                 |
 *                 v
 *               waiting, in order --ids arrive--> ended, when it has all of its ids
 *                 |--timeout, lasting error, canceled--> ended; the ids that it has are skipped
 *
 * The hashes of segments (NAMESPACE::idgen::{NAME}) and sequences
 * (NAMESPACE::idgen::{NAME}::sequence) have no ttl, because they must outlive all ids. The only
 * other key of belay without a ttl is the quarantine's marker (lease/quorum/quarantine.c). */
#include "data/idgen/idgen.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "core/loop/backoff.h"

static const belay__idgen_kind_t *const kinds[] = {
    [BELAY_IDGEN_SEGMENT] = &belay__idgen_segment,
    [BELAY_IDGEN_SNOWFLAKE] = &belay__idgen_worker,
    [BELAY_IDGEN_SEQUENCE] = &belay__idgen_sequence,
};

/* ---- waiting requests ---- */

static void remove_waiting(belay_idgen_t *idgen, belay__operation_t *operation) {
  belay__timer_stop(operation->client->belay, BELAY__RANK_OTHER, &operation->timer);
  belay__list_remove(&operation->queued);
  idgen->waiting_len--;
}

static void on_left(belay__operation_t *operation, bool sent) {
  (void)sent;
  remove_waiting(operation->context, operation);
}

static void on_deadline(belay__timer_t *timer) {
  belay__operation_t *operation = BELAY__CONTAINER(timer, belay__operation_t, timer);
  belay_idgen_t *idgen = operation->context;
  remove_waiting(idgen, operation);
  belay__request_end(operation, idgen->error != 0 ? idgen->error : BELAY_ETIMEDOUT);
}

static belay__operation_t *first_of(const belay_idgen_t *idgen) {
  return BELAY__CONTAINER(idgen->waiting.next, belay__operation_t, queued);
}

/* Give ids to a request. Returns 0 if the request has all of its ids, else the error of take. */
static int fill_request(belay_idgen_t *idgen, belay__operation_t *operation, uint64_t *again_at) {
  int64_t *ids = operation->room != NULL ? operation->room : &operation->values[BELAY__IDGEN_ID];
  int64_t *has = &operation->values[BELAY__IDGEN_HAS],
          wanted = operation->values[BELAY__IDGEN_WANTED];
  int error = 0;
  while (*has < wanted && error == 0) {
    error = idgen->kind->take(idgen, &ids[*has], again_at);
    *has += error == 0;
  }
  return error;
}

void belay__idgen_serve(belay_idgen_t *idgen) {
  belay_t *belay = idgen->handle.client->belay;
  belay__timer_stop(belay, BELAY__RANK_OTHER, &idgen->tick);
  while (idgen->waiting_len > 0) {
    belay__operation_t *operation = first_of(idgen);
    uint64_t again_at = 0;
    int error = fill_request(idgen, operation, &again_at);
    if (error == BELAY_EAGAIN) {
      if (again_at != 0)
        belay__timer_set(belay, BELAY__RANK_OTHER, &idgen->tick, again_at);
      return;
    }
    remove_waiting(idgen, operation);
    belay__request_end(operation, error);
  }
}

static void on_tick(belay__timer_t *timer) {
  belay__idgen_serve(BELAY__CONTAINER(timer, belay_idgen_t, tick));
}

bool belay__idgen_passes(int status) {
  return status == BELAY_EUNKNOWN || belay_err_retryable(status);
}

void belay__idgen_failed(belay_idgen_t *idgen, int status) {
  idgen->error = status;
  while (idgen->waiting_len > 0 && !belay__idgen_passes(status)) {
    belay__operation_t *operation = first_of(idgen);
    remove_waiting(idgen, operation);
    belay__request_end(operation, status);
  }
}

uint64_t belay__idgen_rest(belay_idgen_t *idgen, unsigned tries) {
  unsigned failures = belay__idgen_passes(idgen->error) ? tries : UINT_MAX;
  return belay__backoff(idgen->handle.client->belay, failures, BELAY__BACKOFF_MAX_MS * BELAY__MS);
}

/* ---- calls of all modes ---- */

static void identify(const belay__server_info_t *server, belay__identity_t *out) {
  out->epoch = server == NULL ? 0 : server->epoch;
  out->len = 0;
  if (server == NULL || server->run_id_len == 0)
    return;
  memcpy(out->text, server->run_id, server->run_id_len);
  memcpy(out->text + server->run_id_len, server->data_id, server->data_id_len);
  out->len = server->run_id_len + server->data_id_len;
}

void belay__idgen_ask_identity(const belay_idgen_t *idgen, belay__conn_class_t conn_class,
                               uint32_t route, belay__identity_t *out) {
  const belay_client_t *client = idgen->handle.client;
  identify(client->node_ops->server(client, conn_class, route), out);
}

bool belay__idgen_is_identity(const belay_idgen_t *idgen, const belay__call_t *call,
                              const belay__identity_t *identity) {
  belay__identity_t now;
  belay__idgen_ask_identity(idgen, (belay__conn_class_t)call->conn_class, call->route, &now);
  return now.epoch != 0 && now.epoch == call->epoch && now.len == identity->len &&
         memcmp(now.text, identity->text, now.len) == 0;
}

belay__call_t *belay__idgen_new_ping(belay_idgen_t *idgen, belay__conn_class_t conn_class) {
  belay__call_t *call = belay__call_new(idgen->handle.client, conn_class);
  belay__call_command(call, "PING", 1);
  if (call != NULL)
    call->route = idgen->handle.route;
  return call;
}

belay__call_t *belay__idgen_new_wait(const belay_idgen_t *idgen) {
  belay__call_t *call = belay__call_new(idgen->handle.client, BELAY__CLASS_DURABLE);
  belay__call_command(call, "WAIT", 3);
  belay__call_arg_int(call, idgen->options.min_replicas);
  belay__call_arg_int(call, idgen->options.replica_timeout_ms);
  if (call != NULL)
    call->route = idgen->handle.route;
  return call;
}

int belay__idgen_read_wait(const belay_idgen_t *idgen, const belay__call_t *call,
                           const belay__reply_t *reply, uint32_t epoch) {
  int64_t copies;
  if (!belay__reply_integer(reply, 0, INT64_MAX, &copies))
    return BELAY_EPROTO;
  if (call->epoch != epoch)
    return BELAY_EUNKNOWN; /* this server may not be the one that ran the script */
  return copies < idgen->options.min_replicas ? BELAY_ENOREPLICAS : 0;
}

/* ---- closing ---- */

static void on_close(belay__handle_t *handle) {
  belay_idgen_t *idgen = (belay_idgen_t *)handle;
  belay_t *belay = handle->client->belay;
  belay__timer_stop(belay, BELAY__RANK_OTHER, &idgen->timer);
  belay__timer_stop(belay, BELAY__RANK_OTHER, &idgen->tick);
  idgen->low = INT64_MIN;
  if (idgen->kind->close != NULL)
    idgen->kind->close(idgen);
}

static void on_abort(belay__handle_t *handle) {
  belay_idgen_t *idgen = (belay_idgen_t *)handle;
  if (idgen->kind->abort != NULL)
    idgen->kind->abort(idgen);
}

/* ---- creation ---- */

static const belay_idgen_options_t defaults = {.mode = BELAY_IDGEN_SEGMENT,
                                               .start = 1,
                                               .step = 10000,
                                               .gap = BELAY_DEFAULT,
                                               .clock_skew_ms = 1000,
                                               .replica_timeout_ms = BELAY_DEFAULT,
                                               .sequence = {"id", 2},
                                               .worker = -1,
                                               .first_worker = -1,
                                               .ttl_ms = 10000,
                                               .ahead_ms = 1000,
                                               .epoch_ms = BELAY_IDGEN_EPOCH_MS,
                                               .max_waiting = 1024};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_idgen_options_t, mode, BELAY_IDGEN_SEGMENT, BELAY_IDGEN_SEQUENCE),
    BELAY__RANGE(belay_idgen_options_t, max_waiting, 1, 65536),
    {.name = NULL},
};

static const belay__range_t segment_ranges[] = {
    BELAY__RANGE(belay_idgen_options_t, start, 0, INT64_MAX),
    BELAY__RANGE(belay_idgen_options_t, step, 1, BELAY_IDGEN_STEP_MAX),
    BELAY__RANGE_OR(belay_idgen_options_t, gap, DEFAULT, 0, BELAY_IDGEN_GAP_MAX),
    BELAY__RANGE(belay_idgen_options_t, clock_rate, 0, BELAY_IDGEN_CLOCK_RATE_MAX),
    BELAY__RANGE(belay_idgen_options_t, clock_skew_ms, 0, 60000),
    {.name = NULL},
};

static const belay__range_t snowflake_ranges[] = {
    BELAY__RANGE(belay_idgen_options_t, worker, -1, BELAY_IDGEN_WORKERS - 1),
    BELAY__RANGE(belay_idgen_options_t, first_worker, -1, BELAY_IDGEN_WORKERS - 1),
    BELAY__RANGE(belay_idgen_options_t, ttl_ms, 100, 86400000),
    BELAY__RANGE(belay_idgen_options_t, ahead_ms, 100, 60000),
    BELAY__RANGE(belay_idgen_options_t, epoch_ms, 0, INT64_C(1) << 42),
    {.name = NULL},
};

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int check_segment(belay_t *belay, belay_idgen_options_t *o) {
  int error = belay__check_ranges(belay, o, segment_ranges);
  if (error == 0 && o->clock_rate > 0)
    error = belay__check_range(belay, "start", o->start, 0, INT64_C(1) << 52);
  if (o->gap == BELAY_DEFAULT)
    o->gap = 1000 * o->step;
  return error;
}

/* Set the defaults that depend on other options, and check the options of the mode. */
static int check_options(const belay_client_t *client, belay_idgen_options_t *o) {
  belay_t *belay = client->belay;
  if (o->mode == BELAY_IDGEN_SNOWFLAKE)
    return belay__check_ranges(belay, o, snowflake_ranges);
  int64_t longest = least(client->timeout_ms, client->stall_timeout_ms / 2);
  if (o->replica_timeout_ms == BELAY_DEFAULT)
    o->replica_timeout_ms = least((client->timeout_ms + 1) / 2, longest);
  int error = o->mode == BELAY_IDGEN_SEGMENT
                  ? check_segment(belay, o)
                  : belay__check_bytes(belay, "sequence", o->sequence, 1, BELAY_IDGEN_NAME_MAX);
  if (error == 0)
    error = belay__check_range(belay, "min_replicas", o->min_replicas, 0, UINT8_MAX);
  if (error == 0 && o->min_replicas > 0)
    error = belay__check_range(belay, "replica_timeout_ms", o->replica_timeout_ms, 1, longest);
  return error;
}

static void keep_text(belay_idgen_t *idgen, const char *text, size_t len) {
  assert(text != NULL && len <= sizeof idgen->text);
  memcpy(idgen->text, text, len);
  idgen->text_len = len;
}

static int on_init(belay__handle_t *handle, void *options) {
  belay_idgen_t *idgen = (belay_idgen_t *)handle;
  belay_idgen_options_t *o = options;
  bool sequence = o->mode == BELAY_IDGEN_SEQUENCE;
  int error = check_options(handle->client, o);
  if (error != 0)
    return error;
  idgen->kind = kinds[o->mode];
  idgen->low = o->mode == BELAY_IDGEN_SEGMENT ? 0 : INT64_MIN;
  belay__list_init(&idgen->waiting);
  idgen->tick.fire = on_tick;
  idgen->timer.fire = idgen->kind->on_timer;
  keep_text(idgen, sequence ? o->sequence.data : o->name.data,
            sequence ? o->sequence.len : o->name.len);
  return 0;
}

const belay__handle_type_t belay__idgen_type = {
    .family = "idgen",
    .whole = true,
    BELAY__HANDLE_LAYOUT(idgen),
    .defaults = &defaults,
    .ranges = ranges,
    .copy_at = offsetof(belay_idgen_t, options),
    .init = on_init,
    .close = on_close,
    .abort = on_abort,
};

BELAY__HANDLE_FUNCTIONS(idgen)

/* ---- operations ---- */

/* Do the work of belay_idgen_next() for all cases but the fast one. While requests wait, the
 * function takes no id, because these requests come first. */
static __attribute__((noinline)) int next_slowly(belay_idgen_t *idgen, int64_t *id) {
  belay_client_t *client = idgen->handle.client;
  uint64_t again_at;
  int error = belay__handle_check(&idgen->handle);
  if (error == 0 && id == NULL)
    return belay__invalid(client->belay, "id: NULL");
  if (error != 0)
    return error;
  error = BELAY_EAGAIN;
  if (idgen->kind->take != NULL && idgen->waiting_len == 0)
    error = idgen->kind->take(idgen, id, &again_at);
  if (error == BELAY_EAGAIN && idgen->error != 0 && !belay__idgen_passes(idgen->error))
    error = idgen->error;
  if (error != 0 && error != BELAY_EAGAIN)
    belay__client_explain(client, error, NULL, 0);
  return error;
}

int belay_idgen_next(belay_idgen_t *idgen, int64_t *id) {
  if (idgen == NULL)
    return BELAY_EINVAL;
  if (idgen->segment.next >= idgen->low || id == NULL)
    return next_slowly(idgen, id);
  const belay_t *belay = idgen->handle.client->belay;
  if (belay->host->forked(belay))
    return BELAY_EFORK;
  *id = idgen->segment.next++;
  return 0;
}

void belay__idgen_notify_many(belay_request_t *request, void (*cb)(void),
                              const belay__answer_t *answer) {
  bool well = answer->status == 0;
  ((belay_idgen_many_cb)cb)(request, answer->status, well ? answer->room : NULL,
                            well ? (size_t)answer->values[BELAY__IDGEN_WANTED] : 0);
}

static const belay__request_ops_t one_ops = {.notify = belay__request_notify_count,
                                             .left = on_left};
static const belay__request_ops_t many_ops = {.notify = belay__idgen_notify_many, .left = on_left};

int belay__idgen_begin(belay_idgen_t *idgen, belay_request_t *request,
                       const belay__request_ops_t *ops, size_t n, bool many, void (*cb)(void),
                       belay__operation_t **out) {
  int error = belay__handle_begin(&idgen->handle, request, ops, cb, out);
  if (error != 0)
    return error;
  if (many && belay__request_room(*out, n * sizeof(int64_t)) == NULL)
    return belay__request_begun(*out, BELAY_ENOMEM);
  (*out)->values[BELAY__IDGEN_WANTED] = (int64_t)n;
  return 0;
}

static int start_get(belay_idgen_t *idgen, belay_request_t *request, size_t n, bool many,
                     void (*cb)(void)) {
  belay__operation_t *operation;
  belay_t *belay = idgen->handle.client->belay;
  if (idgen->kind->take == NULL)
    return belay__idgen_sequence_get(idgen, request, n, many, cb);
  if (idgen->waiting_len >= idgen->options.max_waiting)
    return BELAY_EBUSY;
  int error =
      belay__idgen_begin(idgen, request, many ? &many_ops : &one_ops, n, many, cb, &operation);
  if (error != 0)
    return error;
  belay__list_push(&idgen->waiting, &operation->queued);
  operation->timer.fire = on_deadline;
  belay__timer_set(belay, BELAY__RANK_OTHER, &operation->timer,
                   belay__after_ms(belay, belay__request_timeout_ms(operation->client, request)));
  if (idgen->waiting_len++ == 0)
    belay__idgen_serve(idgen);
  if (idgen->waiting_len > 0)
    idgen->kind->want(idgen);
  return 0;
}

int belay_idgen_get(belay_idgen_t *idgen, belay_request_t *request, belay_idgen_cb cb) {
  int error = belay__handle_check_request((const belay__handle_t *)idgen, request, cb != NULL);
  return error != 0 ? error : start_get(idgen, request, 1, false, BELAY__CB(cb));
}

int belay_idgen_get_many(belay_idgen_t *idgen, belay_request_t *request, size_t n,
                         belay_idgen_many_cb cb) {
  int error = belay__handle_check_request((const belay__handle_t *)idgen, request, cb != NULL);
  if (error == 0 && (n < 1 || n > BELAY_IDGEN_MANY_MAX)) {
    belay__detail(idgen->handle.client->belay, "n: not 1 to %zu", BELAY_IDGEN_MANY_MAX);
    error = BELAY_EINVAL;
  }
  return error != 0 ? error : start_get(idgen, request, n, true, BELAY__CB(cb));
}

int belay_idgen_decode(int64_t id, int64_t epoch_ms, belay_idgen_parts_t *parts) {
  if (id < 0 || epoch_ms < 0 || epoch_ms > INT64_C(1) << 42 || parts == NULL)
    return BELAY_EINVAL;
  *parts = (belay_idgen_parts_t){
      .unix_ms = epoch_ms + (id >> (BELAY__IDGEN_WORKER_BITS + BELAY__IDGEN_SEQUENCE_BITS)),
      .worker = (unsigned)(id >> BELAY__IDGEN_SEQUENCE_BITS) % BELAY_IDGEN_WORKERS,
      .sequence = (unsigned)id % BELAY__IDGEN_SEQUENCES,
  };
  return 0;
}

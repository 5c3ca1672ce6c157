/* Adds to one key without an operation id: an INCRBY, or a script if there is a ttl or bounds. Adds
 * to one key that begin in the same turn of the loop share one call (core/client/group.h). */
#include "core/client/group.h"
#include "core/key/key.h"
#include "data/counter/counter.h"
#include "scripts.gen.h"

/* Values of an add, behind those of its result. */
enum {
  APPLIED = BELAY__COUNTER_APPLIED,
  VALUE = BELAY__COUNTER_VALUE,
  DELTA = BELAY__COUNTER_VALUE + 1,
  /* In the first request while the call is held: the sum of the group's deltas. After that, in each
   * request: the sum of its delta and all later deltas of the group */
  SUM,
  MIN,
  MAX
};

/* ---- calls ---- */

/* Add the key of a shard to the call. like: another call for the key, whose shard is used again;
 * NULL: use `key` and the next shard. */
static void add_key(belay_counter_t *counter, belay__call_t *call, belay_bytes_t key,
                    const belay__call_t *like) {
  unsigned shard = counter->turn;
  if (like != NULL) {
    belay__handle_arg_like(call, like);
    return;
  }
  counter->turn = (shard + 1) % counter->options.shards;
  belay__counter_arg(counter, call, key, shard);
}

/* Make the call of a script that adds to a shard. least, most: permitted range of the value before
 * the addition. The script does not change a value outside the range. The value is then a result if
 * `bounded` is true, and otherwise the error BELAY_EOVERFLOW. */
static belay__call_t *make_script_add(belay_counter_t *counter, belay_bytes_t key,
                                      const belay__call_t *like, int64_t delta, int64_t least,
                                      int64_t most, bool bounded) {
  belay__call_t *call = belay__handle_script(&counter->handle, &belay__script_counter_add, 1, 6);
  add_key(counter, call, key, like);
  belay__call_arg_int(call, delta);
  belay__call_arg_int(call, least);
  belay__call_arg_int(call, most);
  belay__call_arg_int(call, counter->options.ttl_ms);
  belay__call_arg_int(call, counter->options.extend_ttl);
  belay__call_arg_int(call, bounded);
  return call;
}

static belay__call_t *make_add(belay_counter_t *counter, belay_bytes_t key,
                               const belay__call_t *like, int64_t delta) {
  if (counter->options.ttl_ms > 0)
    return make_script_add(counter, key, like, delta, delta < 0 ? INT64_MIN - delta : INT64_MIN,
                           delta > 0 ? INT64_MAX - delta : INT64_MAX, false);
  belay__call_t *call = belay__handle_command(&counter->handle, "INCRBY", 3);
  add_key(counter, call, key, like);
  belay__call_arg_int(call, delta);
  return call;
}

belay__call_t *belay__counter_add_call(belay_counter_t *counter, belay_bytes_t key, int64_t delta) {
  return make_add(counter, key, NULL, delta);
}

/* Return a - b, or the nearest number in the range of int64_t. */
static int64_t difference(int64_t a, int64_t b) {
  int64_t out;
  if (!__builtin_sub_overflow(a, b, &out))
    return out;
  return b < 0 ? INT64_MAX : INT64_MIN;
}

/* Make the call that adds `sum`, the sum of one or more equal deltas. The script adds if the values
 * after the first and after the last delta are in bounds. Then all values in between are in bounds,
 * too. */
static belay__call_t *make_bounded(belay_counter_t *counter, belay_bytes_t key,
                                   const belay__call_t *like, int64_t delta, int64_t sum,
                                   const int64_t bounds[2]) {
  int64_t min = bounds[0], max = bounds[1], unused;
  /* The range of the value before the addition; empty if no value allows the addition. */
  int64_t least = difference(min, delta < 0 ? sum : delta);
  int64_t most = difference(max, delta < 0 ? delta : sum);
  if ((delta < 0 && __builtin_sub_overflow(min, sum, &unused)) ||
      (delta > 0 && __builtin_sub_overflow(max, sum, &unused))) {
    least = 1;
    most = 0;
  }
  return make_script_add(counter, key, like, sum, least, most, true);
}

/* ---- groups ---- */

/* true if the delta has the same sign as the first one, and the sum stays in the range of int64_t.
 * Then every partial sum is in the range, too. Adds the delta to the sum. */
static bool fits(belay__operation_t *first, const belay__operation_t *joining) {
  int64_t sum, delta = joining->values[DELTA];
  if ((delta < 0) != (first->values[DELTA] < 0) ||
      __builtin_add_overflow(first->values[SUM], delta, &sum))
    return false;
  first->values[SUM] = sum;
  return true;
}

static bool fits_bounds(belay__operation_t *first, const belay__operation_t *joining) {
  const int64_t *a = first->values, *b = joining->values;
  return a[DELTA] == b[DELTA] && a[MIN] == b[MIN] && a[MAX] == b[MAX] && fits(first, joining);
}

/* Set values[SUM] of n requests, from the last to the first. Returns the sum of the first
 * request. */
static int64_t set_sums(belay__operation_t *first, size_t n) {
  int64_t sum = 0;
  for (belay__operation_t *operation = first; n > 0; n--) {
    operation = BELAY__CONTAINER(operation->queued.prev, belay__operation_t, queued);
    operation->values[SUM] = sum += operation->values[DELTA];
  }
  return sum;
}

static belay__call_t *make(belay__operation_t *first, size_t n, const belay__call_t *like) {
  return make_add(first->context, (belay_bytes_t){0}, like, set_sums(first, n));
}

static belay__call_t *make_bounded_group(belay__operation_t *first, size_t n,
                                         const belay__call_t *like) {
  return make_bounded(first->context, (belay_bytes_t){0}, like, first->values[DELTA],
                      set_sums(first, n), &first->values[MIN]);
}

/* Set the value of one request: the value after the last add, less the later deltas. After an
 * overflow nothing was added, and each request is sent alone. */
static int share(belay__operation_t *operation, const int64_t *values, const belay__call_t *call,
                 int status) {
  int64_t *own = operation->values, later = own[SUM] - own[DELTA];
  (void)call;
  if (status == BELAY_EOVERFLOW)
    return BELAY__GROUP_AGAIN;
  if (status != 0)
    return status;
  own[APPLIED] = values[APPLIED];
  return __builtin_sub_overflow(values[VALUE], later, &own[VALUE]) ? BELAY_EPROTO : 0;
}

/* As share(), for bounded adds. The sum may be out of bounds although the first add is not: then
 * each request is sent alone. If the first add is out of bounds, then all are. */
static int share_bounds(belay__operation_t *operation, const int64_t *values,
                        const belay__call_t *call, int status) {
  int64_t *own = operation->values, after;
  if (status != 0 || values[APPLIED])
    return share(operation, values, call, status);
  if (!__builtin_add_overflow(values[VALUE], own[DELTA], &after) && after >= own[MIN] &&
      after <= own[MAX])
    return BELAY__GROUP_AGAIN;
  own[APPLIED] = false;
  own[VALUE] = values[VALUE];
  return 0;
}

static void leave(belay__operation_t *operation, bool sent) {
  (void)sent;
  belay__group_leave(operation);
}

static const belay__group_ops_t add_group_ops = {.fits = fits, .make = make, .share = share};
static const belay__group_ops_t bounded_group_ops = {
    .fits = fits_bounds, .make = make_bounded_group, .share = share_bounds};
static const belay__request_ops_t add_ops = {.read = belay__counter_read_added,
                                             .notify = belay__counter_notify,
                                             .left = leave,
                                             .group = &add_group_ops};
static const belay__request_ops_t bounded_ops = {.read = belay__counter_read_added,
                                                 .notify = belay__counter_notify,
                                                 .left = leave,
                                                 .group = &bounded_group_ops};

/* ---- operations ---- */

static int check(const belay_counter_t *counter, const belay_request_t *request, belay_bytes_t key,
                 belay_counter_cb cb) {
  return belay__handle_check_key((const belay__handle_t *)counter, request, key, cb != NULL);
}

int belay_counter_add(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                      int64_t delta, belay_counter_cb cb) {
  belay__operation_t *operation;
  int error = check(counter, request, key, cb);
  if (error == 0)
    error = belay__handle_begin(&counter->handle, request, &add_ops, BELAY__CB(cb), &operation);
  if (error != 0)
    return error;
  uint64_t hash = belay__key_hash(key.data, key.len);
  operation->values[DELTA] = operation->values[SUM] = delta;
  if (belay__group_join(operation, hash, key))
    return 0;
  belay__call_t *call = belay__counter_add_call(counter, key, delta);
  return belay__request_begun(operation, belay__group_hold(operation, call, hash, key));
}

int belay_counter_add_bounded(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                              int64_t delta, const belay_counter_bounds_t *bounds,
                              belay_counter_cb cb) {
  belay__operation_t *operation;
  int error = check(counter, request, key, cb);
  if (error == 0)
    error = belay__counter_whole(counter, "a bounded add");
  if (error == 0 && bounds == NULL)
    return belay__invalid(counter->handle.client->belay, "bounds: NULL");
  if (error == 0)
    error = belay__check_range(counter->handle.client->belay, "max", bounds->max, bounds->min,
                               INT64_MAX);
  if (error == 0)
    error = belay__handle_begin(&counter->handle, request, &bounded_ops, BELAY__CB(cb), &operation);
  if (error != 0)
    return error;
  uint64_t hash = belay__key_hash(key.data, key.len);
  operation->values[DELTA] = operation->values[SUM] = delta;
  operation->values[MIN] = bounds->min;
  operation->values[MAX] = bounds->max;
  if (belay__group_join(operation, hash, key))
    return 0;
  belay__call_t *call = make_bounded(counter, key, NULL, delta, delta, &operation->values[MIN]);
  return belay__request_begun(operation, belay__group_hold(operation, call, hash, key));
}

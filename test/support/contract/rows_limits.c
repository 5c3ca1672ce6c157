#include "support/contract/contract.h"

/* ---- buckets ---- */

RIG_ANSWER(on_bucket, const belay_bucket_state_t *)
RIG_HANDLE(bucket)
RIG_MAKE(bucket, bucket, o.capacity = 10)

static int bucket_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_bucket_t *b = handle;
  belay_bucket_cb cb = with_cb ? on_bucket : NULL;
  return n == 0   ? belay_bucket_add(b, r, belay_string("k"), 1, 0, cb)
         : n == 1 ? belay_bucket_fetch(b, r, belay_string("k"), 1, cb)
         : n == 2 ? belay_bucket_read(b, r, belay_string("k"), cb)
                  : belay_bucket_delete(b, r, belay_string("k"), cb);
}

/* ---- limiters ---- */

#define SECOND_US INT64_C(1000000)

static const belay_limit_t limit = {
    .kind = BELAY_LIMIT_BUCKET, .count = 10, .period_us = SECOND_US, .burst = 20};

RIG_ANSWER(on_limiter, const belay_limiter_result_t *)
RIG_HANDLE(limiter)
RIG_MAKE(limiter, limiter, o.limits = &limit; o.limits_len = 1)

static int limiter_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_limiter_t *l = handle;
  belay_limiter_cb cb = with_cb ? on_limiter : NULL;
  return n == 0   ? belay_limiter_take(l, r, belay_string("k"), 1, cb)
         : n == 1 ? belay_limiter_peek(l, r, belay_string("k"), cb)
         : n == 2 ? belay_limiter_penalty(l, r, belay_string("k"), 1, cb)
         : n == 3 ? belay_limiter_reserve(l, r, belay_string("k"), 1, SECOND_US, cb)
         : n == 4 ? belay_limiter_wait(l, r, belay_string("k"), 1, SECOND_US, cb)
         : n == 5 ? belay_limiter_ban(l, r, belay_string("k"), SECOND_US, cb)
                  : belay_limiter_reset(l, r, belay_string("k"), cb);
}

/* ---- caches ---- */

RIG_ANSWER(on_cache, const belay_cache_result_t *)
/* Each key has a status of its own. */
static void on_caches(belay_request_t *request, int status, const belay_cache_result_t *results,
                      size_t n) {
  rig_on_ended(request, status == 0 && n > 0 ? results[0].status : status);
}
RIG_ANSWER(on_change, bool)
RIG_HANDLE(cache)
RIG_MAKE(cache, cache, (void)o)

static int cache_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_cache_t *c = handle;
  belay_cache_change_cb changed = with_cb ? on_change : NULL;
  const belay_bytes_t key = {"k", 1};
  return n == 0
             ? belay_cache_put(c, r, belay_string("k"), belay_string("v"), BELAY_DEFAULT, changed)
         : n == 1 ? belay_cache_get(c, r, belay_string("k"), with_cb ? on_cache : NULL)
         : n == 2 ? belay_cache_get_many(c, r, &key, 1, with_cb ? on_caches : NULL)
         : n == 3 ? belay_cache_touch(c, r, belay_string("k"), BELAY_DEFAULT, changed)
         : n == 4 ? belay_cache_invalidate(c, r, belay_string("k"), changed)
                  : belay_cache_invalidate_tag(c, r, belay_string("t"), changed);
}

/* ---- requests of a client, without a handle ---- */

RIG_ANSWER(on_receivers, int64_t)
RIG_ANSWER(on_held, const belay_held_t *)
RIG_ANSWERS(on_holders, const belay_semaphore_holder_t *)

#if BELAY_HAS_TOPOLOGY
RIG_ANSWERS(on_topology, const belay_topology_server_t *)
#endif

static int make_client(belay_client_t *client, void *data, void **out) {
  (void)data;
  *out = client;
  return 0;
}

static int client_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  return n == 0   ? belay_topic_publish(handle, r, belay_string("n"), belay_string("x"),
                                      with_cb ? on_receivers : NULL)
         : n == 1 ? belay_held_read(handle, r, BELAY_HELD_LOCK, belay_string("n"),
                                    with_cb ? on_held : NULL)
#if BELAY_HAS_TOPOLOGY
         : n == 3
             ? belay_topology_read(handle, r, 1, with_cb ? on_topology : NULL)
#endif
             : belay_semaphore_holders(handle, r, belay_string("n"), with_cb ? on_holders : NULL);
}

const contract_t contracts_of_limits[] = {
    RIG_ROW(bucket, bucket, 4),
    RIG_ROW(limiter, limiter, 7),
    RIG_ROW(cache, cache, 6),
    {"client", make_client, client_begin, NULL, NULL, 3 + BELAY_HAS_TOPOLOGY, true},
    {0},
};

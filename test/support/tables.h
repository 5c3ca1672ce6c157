/* Caches with a table. */
#ifndef TEST_TABLES_H
#define TEST_TABLES_H

#include "cache/cache.h"
#include "support/caches.h"

static inline belay_cache_options_t local_options(hoard_t *hoard) {
  belay_cache_options_t options = cache_options(hoard);
  options.local_bytes = 1000000;
  options.local_ttl_ms = 60000;
  return options;
}

/* Another process. */
static inline void hoard_elsewhere(hoard_t *hoard, bed_t *bed,
                                   const belay_cache_options_t *options) {
  hoard_of(hoard, bed, bed_connect(bed, server_url(bed->server), NULL), options);
}

static belay_cache_result_t peeked; /* what the last peek has found */

/* Sends nothing, and takes no memory. */
static inline int peek(hoard_t *hoard, const char *key) {
  const bed_t *bed = hoard->bed;
  uint64_t commands = client_stats(bed).commands;
  unsigned allocations = (unsigned)bed->allocations;
  int status = belay_cache_peek(hoard->cache, key, strlen(key), &peeked);
  assert_int_equal(client_stats(bed).commands, commands);
  assert_int_equal((unsigned)bed->allocations, allocations);
  if (status != BELAY_EAGAIN) {
    assert_int_equal(status, peeked.status);
    assert_int_equal(peeked.from, BELAY_CACHE_FROM_LOCAL);
    assert_false(peeked.stale);
    assert_non_null(peeked.data);
  }
  return status;
}

static inline void expect_peek(hoard_t *hoard, const char *key, const char *value) {
  assert_int_equal(peek(hoard, key), 0);
  assert_int_equal(peeked.len, strlen(value));
  assert_memory_equal(peeked.data, value, peeked.len);
}

/* Gets it, so that it is in the table. */
static inline void warm(hoard_t *hoard, const char *key) {
  fetch_t fetch = {0};
  assert_int_equal(begin_cache_get(hoard, &fetch, key), 0);
  (void)end_of_fetch(&fetch);
  fetch_free(&fetch);
  bed_until(hoard->bed, peek(hoard, key) != BELAY_EAGAIN);
}

/* And that it hears of what is invalidated, from before it is in it. */
static inline void warm_and_hear(hoard_t *hoard, const char *key) {
  fetch_t fetch = {0};
  assert_int_equal(begin_cache_get(hoard, &fetch, "another"), 0);
  (void)end_of_fetch(&fetch);
  fetch_free(&fetch);
  bed_until(hoard->bed, belay__ear_is_up(&hoard->cache->ear));
  bed_settle(hoard->bed);
  warm(hoard, key);
}

#endif /* TEST_TABLES_H */

/* Caches, their loader, and what is heard of them. */
#ifndef TEST_CACHES_H
#define TEST_CACHES_H

#include "support/bed.h"

/* What the loader does. */
typedef enum loading {
  LOADING_AT_ONCE, /* ends the load in the loader; with `value`, or, if that is NULL, with what it loads: "KEY#N", the N-th load */
  LOADING_LATER,   /* the same after delay_ms */
  LOADING_BY_HAND  /* the test does: hoard->loads */
} loading_t;

enum { HOARD_LOADS_MAX = 4096 };

/* A handle with a loader. */
typedef struct hoard {
  bed_t *bed;
  belay_cache_t *cache; /* NULL: closed */
  unsigned pending, closing, closed;

  loading_t loading;
  int64_t delay_ms;
  const char *value; /* what is loaded; NULL: "KEY#N" */
  bool absent;       /* it does not exist */
  int error;         /* it fails; 0: it does not */
  unsigned loaded;   /* calls of the loader, a key each */
  unsigned batches;  /* calls of load_many */
  size_t batch;      /* keys of the last one */
  belay_cache_load_t
      *loads[HOARD_LOADS_MAX]; /* BY_HAND: those that are not ended, in their order */
  unsigned held;
  unsigned timers; /* of LATER, that have not closed */
} hoard_t;

/* A get, and what came of it. */
typedef struct fetch {
  belay_request_t request;
  hoard_t *hoard;
  unsigned begun, ended;
  belay_cache_result_t result;       /* its data are not to be used: */
  char *data;                        /* a copy, with a 0 behind it; NULL unless there is a value */
  void (*then)(struct fetch *fetch); /* runs at the end of the callback; NULL: nothing */
} fetch_t;

/* A change, and what came of it. */
typedef struct change {
  belay_request_t request;
  hoard_t *hoard;
  unsigned begun, ended;
  int status;
  bool applied;
} change_t;

/* With the loader above, the name "pages", and short polls. */
belay_cache_options_t cache_options(hoard_t *hoard);

/* The same, but with load_many instead of load; or with none of them. */
belay_cache_options_t batch_options(hoard_t *hoard);
belay_cache_options_t bare_options(hoard_t *hoard);

/* A handle of the bed's client; options may be NULL; or of another's. The hoard is 0 or was prepared by the test. */
void hoard_new(hoard_t *hoard, bed_t *bed, const belay_cache_options_t *options);
void hoard_of(hoard_t *hoard, bed_t *bed, belay_client_t *client,
              const belay_cache_options_t *options);
belay_cache_stats_t hoard_stats(const hoard_t *hoard);
int begin_close_hoard(hoard_t *hoard);

/* BY_HAND: ends the oldest load that is not ended: with a value, with "it does not exist", with an error. Returns what
 * belay does. */
int hand_over(hoard_t *hoard, const char *value);
int hand_over_bytes(hoard_t *hoard, const void *value, size_t len);
int hand_absent(hoard_t *hoard);
int hand_failure(hoard_t *hoard, int error);

/* Begin it; what belay returned. If it is 0, the callback is counted. */
int begin_cache_get(hoard_t *hoard, fetch_t *fetch, const char *key);
int begin_get_late(hoard_t *hoard, fetch_t *fetch, const char *key, belay_cache_late_t late);
int begin_put(hoard_t *hoard, change_t *change, const char *key, const char *value);
int begin_cache_touch(hoard_t *hoard, change_t *change, const char *key, int64_t ttl_ms);
int begin_invalidate(hoard_t *hoard, change_t *change, const char *key);
int begin_invalidate_tag(hoard_t *hoard, change_t *change, const char *tag);

/* The callbacks of all of them. */
void on_fetched(belay_request_t *request, int status, const belay_cache_result_t *result);
void on_changed(belay_request_t *request, int status, bool applied);

/* Waits for the end of what was begun: its status. A fetch's data are to be given back. */
int end_of_fetch(fetch_t *fetch);
int end_of_change(change_t *change);
void fetch_free(fetch_t *fetch);

/* Waits for what was begun: it must be that, and fresh; or stale, for that reason; or nothing. */
void expect_fetched(fetch_t *fetch, const char *value, belay_cache_from_t from);
void expect_fetched_stale(fetch_t *fetch, const char *value, int reason);
void expect_nothing_fetched(fetch_t *fetch, int status);

/* Begin it, wait for it, and compare: value NULL, and no value is expected. */
void expect_cached(hoard_t *hoard, const char *key, const char *value, belay_cache_from_t from);
void expect_no_value(hoard_t *hoard, const char *key, int status);
void expect_stale(hoard_t *hoard, const char *key, const char *value, int reason);
void expect_put(hoard_t *hoard, const char *key, const char *value, bool applied);
void expect_touch(hoard_t *hoard, const char *key, int64_t ttl_ms, bool applied);
void expect_invalidate(hoard_t *hoard, const char *key);
void expect_invalidate_tag(hoard_t *hoard, const char *tag);

#endif /* TEST_CACHES_H */

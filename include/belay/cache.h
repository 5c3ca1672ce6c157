/* A cache in front of a slow source, shared by many processes (cache-aside). */
#ifndef BELAY_CACHE_H
#define BELAY_CACHE_H

#include <stdbool.h>

#include "belay/bloom.h"
#include "belay/limiter.h"
#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A cache: values of keys, kept on the server for a while. A missing value is loaded by a function
 * of the caller. belay decides which process loads, which gets wait, and which value a get returns.
 *
 * Use it for values that are expensive to compute or fetch, and that may be served a little old. Do
 * not use it as the only store of a value: the server may evict any of them.
 *
 * A get looks into the table of this process (if there is one), then on the server. A value that it
 * finds is
 *
 *   - fresh, for ttl_ms: it is served.
 *   - stale, for stale_ms more: it is served, and one of the callers loads it again in the
 *     background.
 *   - kept, until keep_ms after it was fresh: it is served if the load fails, is limited, or takes
 *     too long.
 *
 * Gets of one key that begin before the first of them is sent to the server share a GET. Each still
 * has its own time limit, cancel and result.
 *
 * If there is no value, or none that can be decoded, it is loaded once per process. With a lock it
 * is loaded once among all processes, while the others wait.
 *
 * Invalidation wins over a load under way. Once belay_cache_invalidate(), belay_cache_put() or
 * belay_cache_invalidate_tag() has ended with 0, no later get in any process returns a value that
 * was loaded before. Exceptions:
 *
 *   - the table of another process, or of another cache of this process: for at most local_ttl_ms,
 *     and less if the invalidation message arrives
 *   - while the server gives no answer: see options.away
 *   - a failover or restart that loses acknowledged writes: until the value that comes back has
 *     expired
 *   - options.replicas: as long as the replica lags behind its primary
 *
 * Without options.replicas belay reads from the primary only.
 *
 * @code
 * static void load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
 *   (void)arg; // a real loader queries a database, and ends the load in a later callback
 *   belay_cache_load_done(load, belay_bytes(key, key_len));
 * }
 *
 * static void on_page(belay_request_t *request, int status, const belay_cache_result_t *page) {
 *   (void)request;
 *   if (status == 0)
 *     fwrite(page->data, 1, page->len, stdout);
 *   else
 *     fprintf(stderr, "no page: %s\n", belay_strerror(status));
 * }
 *
 * int show(belay_client_t *client, belay_cache_t **pages, belay_request_t *request) {
 *   belay_cache_options_t options;
 *   belay_cache_options_init(&options);
 *   options.load = load;
 *   int error = belay_cache_new(client, &options, pages);
 *   return error != 0 ? error : belay_cache_get(*pages, request, belay_string("/"), on_page);
 * }
 * @endcode */
typedef struct belay_cache belay_cache_t;

/** A load under way. The loader owns it, and must end it exactly once, in the loader function or
 * later, with belay_cache_load_done(), belay_cache_load_absent() or belay_cache_load_failed(). It
 * must do so even if belay_cache_load_is_wanted() returns false. */
typedef struct belay_cache_load belay_cache_load_t;

#define BELAY_CACHE_KEY_MAX ((size_t)1024)               /**< bytes of a key */
#define BELAY_CACHE_VALUE_MAX ((size_t)32 * 1024 * 1024) /**< bytes of the largest value */
#define BELAY_CACHE_TAGS_MAX 8                           /**< tags of a key */
#define BELAY_CACHE_TAG_MAX ((size_t)128)                /**< bytes of a tag */
#define BELAY_CACHE_MANY_MAX 1024                        /**< keys of belay_cache_get_many() */

/** Loader: start to load the value of a key. It runs once per load, never inside a call of the
 * program, and may call any function. key is valid until the load has ended. arg is options.arg. */
typedef void (*belay_cache_load_fn)(belay_cache_load_t *load, const char *key, size_t key_len,
                                    void *arg);

/** Loader of several keys: n loads and their keys. Each load must be ended by itself. The arrays
 * are valid until it returns, each key until its load has ended. The rules of belay_cache_load_fn
 * apply.
 */
typedef void (*belay_cache_load_many_fn)(belay_cache_load_t *const *loads,
                                         const belay_bytes_t *keys, size_t n, void *arg);

/** Write the tags of a key to tags, up to BELAY_CACHE_TAGS_MAX tags of 1 to BELAY_CACHE_TAG_MAX
 * bytes, and return their number. belay copies the bytes when the function has returned. belay
 * calls it inside its own functions, so it must not call into belay. It must give the same tags for
 * a key in all processes. arg is options.arg. */
typedef size_t (*belay_cache_tags_fn)(const char *key, size_t key_len,
                                      belay_bytes_t tags[BELAY_CACHE_TAGS_MAX], void *arg);

/** Action for a get that has waited wait_ms for the load of another process. */
typedef enum belay_cache_late {
  BELAY_CACHE_LATE_STALE = 1, /**< serve the stale or kept value; without one BELAY_ETIMEDOUT */
  BELAY_CACHE_LATE_FAIL,      /**< end with BELAY_ETIMEDOUT */
  BELAY_CACHE_LATE_LOAD       /**< load in this process too; serve the value, do not store it */
} belay_cache_late_t;

/** Action for a get while the server gives no answer or refuses. Such a failure is not a miss.
 *
 * With any value except BELAY_CACHE_AWAY_FAIL, only the first get of an outage may wait. Once the
 * client knows that the server is away (belay/client.h), the action is taken at once, until the
 * server is back. */
typedef enum belay_cache_away {
  /** End with the error. */
  BELAY_CACHE_AWAY_FAIL,
  /** Serve the value of this process's table: fresh, stale or kept. Without one, end with the
   * error. */
  BELAY_CACHE_AWAY_STALE,
  /** As BELAY_CACHE_AWAY_STALE, but load a value that the table does not have, and that the server
   * did not have when it last answered for this key. The value is served, not stored. There is one
   * load per key, and at most max_away_loads at a time; further gets end with the error. The call
   * to the server takes at most half of the time of the get, and the load has the rest. */
  BELAY_CACHE_AWAY_LOAD
} belay_cache_away_t;

/** Options; belay_cache_options_init() sets the defaults. */
typedef struct belay_cache_options {
  /** Name of the cache, 0 to 128 bytes; copied. It is part of the keys:
   * NAMESPACE::cache::NAME::{KEY}, and the same plus "::gen" and "::lease"; for a tag plus "::tag".
   * Caches of the same name share their values, across processes, and should have the same options.
   * Default: no name. */
  belay_bytes_t name;

  /** Loader of one key. Default NULL: load_many loads, or nothing is loaded if load_many is NULL
   * too. */
  belay_cache_load_fn load;
  /** Loader of several keys. Default NULL. If load is set too, only belay_cache_get_many() uses
   * load_many. */
  belay_cache_load_many_fn load_many;
  /** Function that returns the tags of a key. Default NULL: keys have no tags. */
  belay_cache_tags_fn tags;
  /** Argument of load, load_many and tags. Default NULL. */
  void *arg;

  /* ---- lifetime ---- */
  /** Time that a value is fresh, in milliseconds, by the server's clock: 1 to 31,536,000,000.
   * Default 300,000. */
  int64_t ttl_ms;
  /** Largest random reduction of ttl_ms (also of a put or touch), absent_ms and error_ms, in
   * percent, 0 to 90, drawn for each value, so that values that were stored together do not expire
   * together. Default 10; 0: no reduction. */
  unsigned jitter_percent;
  /** Time that a value is stale after it was fresh ("stale-while-revalidate"), in milliseconds: 0
   * to 31,536,000,000. Default 0. */
  int64_t stale_ms;
  /** Time that a value is kept after it was fresh, in milliseconds, at least stale_ms
   * ("stale-if-error"). Default 0: same as stale_ms. */
  int64_t keep_ms;
  /** Time that the absence of a value is cached, in milliseconds, 0 to 31,536,000,000. Default 0:
   * absence is not cached. Then all processes that wait for the key load it, with a lock one after
   * the other. */
  int64_t absent_ms;
  /** Time without a new load after a failed load, in milliseconds, 0 to 31,536,000,000. Gets
   * serve the value that is there, or else end with BELAY_ELOAD. When that value is not kept any
   * more (keep_ms), there is a new load at once. Default 0: no such time. */
  int64_t error_ms;

  /* ---- loads ---- */
  /** true if one process at a time loads a key, under a lease that is renewed. Default true. */
  bool lock;
  /** With lock: time of that lease in milliseconds, 100 to 86,400,000. Default 10,000.
   *
   * If the loading process dies, another one loads after at most lease_ms + retry_max_ms. After a
   * failover that lost the end of a load, the process that loaded ends the lease on the new primary
   * too. If that process is dead, has closed its client or does not reach the new primary, the key
   * has no value for the rest of lease_ms. */
  int64_t lease_ms;
  /** Time of a load in milliseconds, 1 to 3,600,000. A longer load has failed with BELAY_ETIMEDOUT.
   * Default 30,000. */
  int64_t load_timeout_ms;
  /** Time of a get whose request has no timeout_ms, in milliseconds, 1 to 600,000. It covers all
   * steps, the load too. Default 10,000. Other operations (put, touch, invalidations) have the
   * client's timeout_ms. See TIME LIMITS in belay/request.h. */
  int64_t timeout_ms;
  /** Shortest time between two lookups of a get that waits for the load of another process, in
   * milliseconds: 1 to 60,000. The time is random, up to retry_max_ms. A message normally ends the
   * wait earlier. Default 20. */
  int64_t retry_min_ms;
  /** Longest time between these lookups, in milliseconds: retry_min_ms to 60,000. Default 200. */
  int64_t retry_max_ms;
  /** Time that a get waits for the load of another process, in milliseconds: 0 to 600,000. Default
   * BELAY_FOREVER: until the get's own deadline. */
  int64_t wait_ms;
  /** Action after wait_ms. Default BELAY_CACHE_LATE_STALE. */
  belay_cache_late_t late;

  /* ---- refresh ahead of time ---- */
  /** Factor of probabilistic early refresh, 0 to 1000. Default 0: none; 1 is the best value of the
   * source below.
   *
   * A get that is served a fresh value also has it loaded again, in the background, with a
   * probability that grows towards the end of the value: if -beta * delta * ln(U) is at least the
   * time that the value is still fresh. delta is the time of the last load, U is random in 0 to 1.
   *
   * Source: Vattani, Chierichetti, Lowenstein: "Optimal Probabilistic Cache Stampede Prevention",
   * VLDB 2015 (XFetch). */
  double beta;
  /** Time before its end at which a value of belay_cache_keep_fresh() is loaded again, in
   * milliseconds: 1 to ttl_ms. Default BELAY_DEFAULT: a fifth of ttl_ms. */
  int64_t refresh_ms;

  /* ---- protection of the source ---- */
  /** Limiter that allows loads; each load takes a token, except while the server is away. If the
   * limiter gets no answer, it does not allow the load. It must have the same belay_t, and be
   * closed after the cache. Default NULL: no limit. */
  belay_limiter_t *limiter;
  /** With limiter: true if loads of a key take from the limiter's key of the same name. Default
   * false: all loads take from the limiter's key "loads". */
  bool limit_per_key;
  /** Bloom filter that contains all keys that exist. A key that is neither on the server nor in the
   * filter is absent, and is not loaded. If the filter gets no answer, the key is loaded. It must
   * have the same belay_t, and be closed after the cache. Default NULL: no filter. */
  belay_bloom_t *filter;

  /* ---- while the server is away ---- */
  /** Action for gets while the server gives no answer. Default BELAY_CACHE_AWAY_FAIL. */
  belay_cache_away_t away;
  /** For BELAY_CACHE_AWAY_LOAD: maximum number of loads at a time, 1 to 65,536. Default 16. */
  unsigned max_away_loads;

  /* ---- the table of this process ---- */
  /** Size of the table in this process, in bytes, bookkeeping included except for 16 KiB. Default
   * 0: no table. */
  size_t local_bytes;
  /** Time that the table may serve a value that another process, or another cache of this process,
   * has invalidated, in milliseconds: 1 to 86,400,000. Default 1000. */
  int64_t local_ttl_ms;
  /** true if invalidations are not published. Only for caches of which no process has a table.
   * Default false. */
  bool quiet;
  /** true if a replica may answer the first look of a get, if the client reads from replicas
   * (belay_client_options_t.read_from). A fresh or stale value of the replica is served. If the
   * replica has neither, the get continues on the primary. Values of a replica are not put into
   * the table of this process. Default false. */
  bool replicas;

  /** Maximum size of a value in bytes: 1 to BELAY_CACHE_VALUE_MAX, and less than max_reply and
   * max_bytes of the client. Default 8 MiB. */
  size_t max_value_bytes;
  /** Size in bytes from which values are compressed (LZ4), if that makes them smaller. Default 0:
   * no compression. */
  size_t compress_bytes;
  /** Pointer of the caller, returned by belay_cache_data(). Default NULL. */
  void *data;
} belay_cache_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_cache_options_init(belay_cache_options_t *options);

/** Make a cache. It sends nothing to the server.
 *
 * Returns 0, BELAY_EINVAL (belay_detail() names the option), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_cache_new(belay_client_t *client, const belay_cache_options_t *options,
                              belay_cache_t **out);

/** Origin of a result: of a value, of an absence, or of a failed load. */
typedef enum belay_cache_from {
  BELAY_CACHE_FROM_NOWHERE, /**< none of the others */
  BELAY_CACHE_FROM_LOCAL,   /**< the table of this process */
  BELAY_CACHE_FROM_SERVER,  /**< the server, also if another process loaded it just now */
  BELAY_CACHE_FROM_LOAD     /**< a load in this process */
} belay_cache_from_t;

/** Result of a get. */
typedef struct belay_cache_result {
  /** 0: there is a value. Otherwise there is none:
   *
   *   BELAY_EABSENT     it does not exist, by the loader, a cached absence or the filter; or there
   *                     is no loader, and no value is stored
   *   BELAY_ELIMITED    it must be loaded, and the limiter does not allow it, or gets no answer
   *   BELAY_ELOAD       the load failed, now or less than error_ms ago; load_error is the reason
   *   BELAY_ETIMEDOUT   the request's deadline has passed, or the get has waited wait_ms
   *   BELAY_ECANCELED   belay_request_cancel() or a close
   *   BELAY_EWRONGTYPE  the key, or the key of one of its tags, does not hold a string
   *   BELAY_EMISMATCH   the key of one of its tags does not hold a generation
   *   BELAY_ENOMEM      no memory in this process
   *   another error     the server gave no answer (BELAY_EUNREACHABLE, BELAY_EUNKNOWN, BELAY_EBUSY)
   *                     or refused; see options.away */
  int status;
  /** Value; never NULL, and empty if there is none. Valid until the callback returns. */
  const void *data;
  /** Length of the value, in bytes. */
  size_t len;
  /** Origin of the result. */
  belay_cache_from_t from;
  /** true if the value is not fresh any more. */
  bool stale;
  /** Error that a stale value replaces. 0: none. */
  int reason;
  /** Argument of belay_cache_load_failed(), if status is BELAY_ELOAD, or if reason is BELAY_ELOAD
   * and the load failed just now. Otherwise 0. */
  int load_error;
  /** Time since the value was loaded or put, in milliseconds. */
  int64_t age_ms;
  /** Time that the value is still fresh, in milliseconds. 0: it is not fresh. */
  int64_t remaining_ms;
} belay_cache_result_t;

/** Receives the result of a get; result->status is status. See CALLBACKS in belay/request.h. */
typedef void (*belay_cache_cb)(belay_request_t *request, int status,
                               const belay_cache_result_t *result);

/* ---- operations ----
 *
 * Each function with a request returns 0, BELAY_EINVAL (belay_detail() names the argument),
 * BELAY_ESTATE (the request is pending), BELAY_EBUSY (too much is pending in the client),
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not run. A key has
 * 1 to BELAY_CACHE_KEY_MAX bytes. Arguments are copied. */

/** Get the value of a key. A get that is canceled, or whose deadline passes, does not end the load
 * that it waits for, and the value is stored. */
BELAY_API int belay_cache_get(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                              belay_cache_cb cb);

/** Get the value of a key, with late instead of options.late. */
BELAY_API int belay_cache_get_late(belay_cache_t *cache, belay_request_t *request,
                                   belay_bytes_t key, belay_cache_late_t late, belay_cache_cb cb);

/** Get the value of a key if the table of this process has a fresh one. It runs no callback, sends
 * nothing and allocates nothing.
 *
 *   0, BELAY_EABSENT, BELAY_ELOAD   *result is set. Its data is valid until the next call of a
 *                                   function of this cache, or the next iteration of the loop
 *   BELAY_EAGAIN                    the table has no fresh result; use belay_cache_get()
 *   BELAY_EINVAL, BELAY_ECLOSING, BELAY_EFORK */
BELAY_API int belay_cache_peek(belay_cache_t *cache, belay_bytes_t key,
                               belay_cache_result_t *result);

/** Receives the results of belay_cache_get_many(): a result for each of the n keys, in their order
 * and with its own status. If status is not 0, each result has that status. */
typedef void (*belay_cache_many_cb)(belay_request_t *request, int status,
                                    const belay_cache_result_t *results, size_t n);

/** Get the values of n keys, 1 to BELAY_CACHE_MANY_MAX. A key may occur several times. Keys that
 * this process must load are loaded by one call of options.load_many, or else by one call of
 * options.load each. Each key waits as options.late says. The callback's status is 0,
 * BELAY_ECANCELED or BELAY_ENOMEM. */
BELAY_API int belay_cache_get_many(belay_cache_t *cache, belay_request_t *request,
                                   const belay_bytes_t *keys, size_t n, belay_cache_many_cb cb);

/** Receives the result of a put, touch or invalidation. status:
 *
 *   0                    done
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, retried until the deadline, and not answered; it may have been
 *                        executed
 *   BELAY_ECANCELED      belay_request_cancel() or a close; it may have been executed. A change
 *                        that is known to be done ends with 0 instead
 *   BELAY_EWRONGTYPE     of put and touch: the key, or the key of a tag, does not hold a string
 *   BELAY_EMISMATCH      of touch: the key does not hold a cached value. Of put and touch: the key
 *                        of a tag does not hold a generation
 *   another error        the server's refusal
 *
 * applied: true if a put stored the value, if a touch found a value of which no tag had been
 * invalidated, or if an invalidation was done. false if status is not 0. */
typedef void (*belay_cache_change_cb)(belay_request_t *request, int status, bool applied);

/** Store a value that is known without a load. Call it after the source was changed. ttl_ms: 1 to
 * 31,536,000,000, or BELAY_DEFAULT for options.ttl_ms; reduced by jitter_percent.
 *
 * If a load or another put of the key starts meanwhile, or the key is invalidated, the newest value
 * is not known. Then the put stores nothing and invalidates the key. A put does not notice an
 * invalidation that happened before the put reached the server: if several programs change the same
 * data, they should invalidate it instead.
 *
 * Retried if a reply is lost, except for the first reply: then the value is not stored either.
 * After an error the old value may still be there: invalidate the key. */
BELAY_API int belay_cache_put(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                              belay_bytes_t value, int64_t ttl_ms, belay_cache_change_cb cb);

/** Make the stored value fresh for ttl_ms from now (as in belay_cache_put()), and then stale and
 * kept. A cached absence or failed load is not changed. Retried if the reply is lost. */
BELAY_API int belay_cache_touch(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                                int64_t ttl_ms, belay_cache_change_cb cb);

/** Delete the value of a key, and discard the result of a load under way. Later gets are served
 * neither. Call it after the source was changed. It deletes the key whatever its type is. */
BELAY_API int belay_cache_invalidate(belay_cache_t *cache, belay_request_t *request,
                                     belay_bytes_t key, belay_cache_change_cb cb);

/** Invalidate all keys that have the tag, whatever their number. tag: 1 to BELAY_CACHE_TAG_MAX
 * bytes. */
BELAY_API int belay_cache_invalidate_tag(belay_cache_t *cache, belay_request_t *request,
                                         belay_bytes_t tag, belay_cache_change_cb cb);

/** Keep a key fresh: load it again whenever at most options.refresh_ms of its time is left, also
 * without gets. With a lock, one of the processes that keep it fresh loads it. The first look
 * happens at once. It does not keep the loop alive.
 *
 * Returns 0 (also if the key is kept fresh already), BELAY_EINVAL (also if there is no loader),
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_cache_keep_fresh(belay_cache_t *cache, belay_bytes_t key);

/** Stop keeping a key fresh. A load under way continues.
 *
 * Returns 0, BELAY_ESTATE (the key is not kept fresh), BELAY_EINVAL, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_cache_let_expire(belay_cache_t *cache, belay_bytes_t key);

/** End a load with a value, which is copied. value.data may be NULL if value.len is 0.
 *
 *   0                 the load has ended, also if its result is not wanted any more
 *   BELAY_EOVERFLOW   the value is larger than options.max_value_bytes; the load has failed with
 *                     this error
 *   BELAY_ENOMEM      the load has failed with this error
 *   BELAY_EINVAL      an invalid argument; the load has not ended */
BELAY_API int belay_cache_load_done(belay_cache_load_t *load, belay_bytes_t value);

/** End a load: the value does not exist. Returns 0 or BELAY_EINVAL. */
BELAY_API int belay_cache_load_absent(belay_cache_load_t *load);

/** End a failed load. error, any number except 0, is passed to the gets that wait (load_error).
 * Returns 0 or BELAY_EINVAL. */
BELAY_API int belay_cache_load_failed(belay_cache_load_t *load, int error);

/** Returns true if the result of the load can still be used. false: the cache is closed, or the
 * load has taken load_timeout_ms. Such a load must still be ended, which then only frees its
 * memory. That is allowed even after the belay_t is gone; its allocator must still work. */
BELAY_API bool belay_cache_load_is_wanted(const belay_cache_load_t *load);

/** Statistics since the cache was made, unless a comment says "now". */
typedef struct belay_cache_stats {
  uint64_t gets;          /**< keys of gets */
  uint64_t local_hits;    /**< fresh values of the table of this process, of peeks too */
  uint64_t hits;          /**< fresh values of the server, served at once */
  uint64_t misses;        /**< keys without a fresh or stale value: the get had to wait */
  uint64_t stale_served;  /**< values served that were not fresh any more */
  uint64_t absent_served; /**< cached absences served, among local_hits and hits */
  uint64_t loads;         /**< calls of the loader, counted per key */
  uint64_t load_failures; /**< loads that failed, those over load_timeout_ms included */
  /** Loads whose result was not to be stored: after wait_ms, and while the server was away. */
  uint64_t losers;
  uint64_t joined;        /**< keys of gets that joined a load or wait of this process */
  uint64_t shared;        /**< gets that shared the lookup of another get */
  uint64_t waits;         /**< waits of this process for the load of another process */
  uint64_t refreshes;     /**< loads for which no get waited at their start */
  uint64_t early;         /**< refreshes by beta, while the value was still fresh */
  uint64_t fills;         /**< results stored */
  uint64_t refused_fills; /**< results not stored: invalidated meanwhile, or a newer load began */
  uint64_t limited;       /**< loads that the limiter did not allow */
  uint64_t filtered;      /**< loads that the filter made unnecessary */
  uint64_t undecodable;   /**< stored values that were not in the format of a cache */
  uint64_t away;          /**< gets that could not ask the server when they began */
  uint64_t bytes_in;      /**< bytes of values read from the server, as stored there */
  uint64_t bytes_out;     /**< bytes of values stored, as stored there */
  size_t loading;         /**< keys that are being loaded or waited for now */
  size_t local_entries;   /**< entries of the table of this process now */
  size_t local_bytes;     /**< bytes of the table of this process now */
} belay_cache_stats_t;

/** Copy the statistics to *out. */
BELAY_API void belay_cache_stats(const belay_cache_t *cache, belay_cache_stats_t *out);

/** Return options.data. */
BELAY_API void *belay_cache_data(const belay_cache_t *cache);

/** Runs when belay_cache_close() has completed; see CLOSING in belay/loop.h. */
typedef void (*belay_cache_close_cb)(belay_cache_t *cache, void *data);

/** Close the cache. Allowed inside any callback. Pending requests end with BELAY_ECANCELED. Leases
 * are released in the background. No load starts any more. The close does not wait for loads under
 * way, whose results are dropped. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_cache_close(belay_cache_t *cache, belay_cache_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_CACHE_H */

/* A cache in front of something slow, shared by many processes: cache-aside. */
#ifndef BELAY_CACHE_H
#define BELAY_CACHE_H

#include <stdbool.h>

#include "belay/bloom.h"
#include "belay/limiter.h"
#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a key stands for is kept on the server for a while, and when it is not there, it is loaded by a function of the
 * caller's. belay decides who loads, who waits, and who gets what is there.
 *
 * A get looks into the table of this process (if there is one), then on the server. What it finds is
 *   - fresh, for ttl_ms: it is served;
 *   - stale, for stale_ms more: it is served, and one of those who got it has it loaded again, in the background;
 *   - kept, until keep_ms after it was fresh: it is served if the load fails, is limited, or takes too long;
 *   - not there, or nothing that can be read: it is loaded, once in each process, and with a lock once among all, while
 *     the others wait for it.
 *
 * Invalidation beats a load that is under way. Once belay_cache_invalidate(), belay_cache_put() or
 * belay_cache_invalidate_tag() has ended with 0, no get that is called after that, in whatever process, is served what
 * was loaded before; except
 *   - from the table of another process, or of another cache of this one: for local_ttl_ms at most, and less if the
 *     message reaches it;
 *   - while the server cannot be asked: what options.away says;
 *   - where a failover or a restart loses what the server had acknowledged: until the value that comes back has
 *     expired;
 *   - from a replica, with options.replicas: for as long as that is behind its primary.
 * Otherwise all is read from the primary.
 *
 * @code
 * static void load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
 *   (void)arg; // here a database would be asked, and belay_cache_load_done() be called when it has answered
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
 * static int begin(belay_client_t *client, belay_cache_t **pages, belay_request_t *request) {
 *   belay_cache_options_t options;
 *   belay_cache_options_init(&options);
 *   options.load = load;
 *   int error = belay_cache_new(client, &options, pages);
 *   return error != 0 ? error : belay_cache_get(*pages, request, belay_string("/"), on_page);
 * }
 * @endcode */
typedef struct belay_cache belay_cache_t;

/** A load that is under way. It is the loader's until it is ended by one of belay_cache_load_done(), belay_cache_load_absent()
 * and belay_cache_load_failed(): once, in the loader itself or in any later callback on the loop, and also when nobody
 * wants it any more (belay_cache_load_is_wanted()). */
typedef struct belay_cache_load belay_cache_load_t;

#define BELAY_CACHE_KEY_MAX ((size_t)1024)               /**< bytes of a key */
#define BELAY_CACHE_VALUE_MAX ((size_t)32 * 1024 * 1024) /**< bytes of the largest value */
#define BELAY_CACHE_TAGS_MAX 8                           /**< tags of a key */
#define BELAY_CACHE_TAG_MAX ((size_t)128)                /**< bytes of a tag */
#define BELAY_CACHE_MANY_MAX 1024                        /**< keys of belay_cache_get_many() */

/** Begins to load what a key stands for. Runs on the loop, never inside a call of the caller's. key is valid until the
 * load is ended. arg: the options'. */
typedef void (*belay_cache_load_fn)(belay_cache_load_t *load, const char *key, size_t key_len,
                                    void *arg);

/** The same for several at once: n loads and their keys, each load to be ended by itself. The arrays are valid until it
 * returns, a key until its load is ended. */
typedef void (*belay_cache_load_many_fn)(belay_cache_load_t *const *loads,
                                         const belay_bytes_t *keys, size_t n, void *arg);

/** Says which tags a key has: fills in up to BELAY_CACHE_TAGS_MAX of 1 to BELAY_CACHE_TAG_MAX bytes, and returns
 * how many. What they point to is copied when it returns. It is called inside belay's functions, calls none
 * itself, and says the same in all processes. */
typedef size_t (*belay_cache_tags_fn)(const char *key, size_t key_len,
                                      belay_bytes_t tags[BELAY_CACHE_TAGS_MAX], void *arg);

/** What is done for a get that has waited for wait_ms for the load of another process. */
typedef enum belay_cache_late {
  BELAY_CACHE_LATE_STALE = 1, /**< it is served what is kept, or else ends with BELAY_ETIMEDOUT */
  BELAY_CACHE_LATE_FAIL,      /**< it ends with BELAY_ETIMEDOUT */
  BELAY_CACHE_LATE_LOAD       /**< what it asks for is loaded here too, served, and not stored */
} belay_cache_late_t;

/** What is done while the server cannot be asked, or refuses: that is not taken for a miss. With any but
 * BELAY_CACHE_AWAY_FAIL only the first get of an outage may wait: once the client knows that the server is away
 * (belay/client.h), the policy is applied at once, until it is back. */
typedef enum belay_cache_away {
  BELAY_CACHE_AWAY_FAIL, /**< the get ends with the error */
  /** it is served what the table of this process has, fresh, stale or kept; else it ends with the error */
  BELAY_CACHE_AWAY_STALE,
  /** the same; and what the table has not, nor the server when it was last asked for it, is loaded, served, and not
   * stored: one load for a key, and max_away_loads at a time; further gets end with the error. The
   * question to the server takes at most half of the time of the get; the load has the rest */
  BELAY_CACHE_AWAY_LOAD
} belay_cache_away_t;

/** Options; belay_cache_options_init() sets the defaults. Times are milliseconds. */
typedef struct belay_cache_options {
  /** part of the keys, NAMESPACE::cache::NAME::{KEY}; the same with "gen" and "lease" behind it, after two colons;
   * and with "tag" behind that of a tag. At most 128 bytes; copied. Those who share a name share what is kept, and
   * should have the same options */
  belay_bytes_t name;

  belay_cache_load_fn
      load; /**< default NULL: then load_many; or, if that is NULL too, nothing is loaded */
  belay_cache_load_many_fn
      load_many; /**< default NULL. With load, it is used for belay_cache_get_many() only */
  belay_cache_tags_fn tags; /**< default NULL: no tags */
  void *arg;                /**< handed to the three */

  /* How long it lives. */
  /** fresh for so long, by the server's clock; default 300,000; 1 to 31,536,000,000. The default of
   * refresh_ms depends on it */
  int64_t ttl_ms;
  /** all is fresh for up to so many percent less, at random, so that what came together does not go together; default
   * 10; 0 to 90 */
  unsigned jitter_percent;
  /** and then stale ("stale-while-revalidate"); default 0; 0 to 31,536,000,000. The default of
   * keep_ms depends on it */
  int64_t stale_ms;
  /** and kept until so long after it was fresh ("stale-if-error"); default 0: stale_ms; else stale_ms and more */
  int64_t keep_ms;
  /** for so long it is remembered that something does not exist; default 0: not at all, and all processes that wait for it
   * load it, with a lock one after the other */
  int64_t absent_ms;
  /** for so long after a load has failed there is no other; what is there is served meanwhile, or else that it failed;
   * but there is one when what was there is not kept any more. Default 0: not at all */
  int64_t error_ms;

  /* Who loads. */
  bool lock; /**< one process at a time, under a lease that is renewed; default true */
  /** of that lease: if its process dies, another one loads after so long, and retry_max_ms, at the latest; default
   * 10,000; 100 to 86,400,000. After a failover that has lost the end of a load, the process that has loaded ends the lease
   * on the new primary too. Only if that process is dead, has closed its client, or does not reach the new primary, the key
   * has no value for what is left of lease_ms. */
  int64_t lease_ms;
  /** a load that takes longer has failed, with BELAY_ETIMEDOUT; default 30,000; 1 to 3,600,000 */
  int64_t load_timeout_ms;
  /** Time of a get whose request.timeout_ms is not given, in milliseconds, all steps included, the
   * load too; default 10,000; 1 to 600,000. Not of a put, a touch or an invalidation, which have
   * the client's. See TIME LIMITS in belay/request.h. */
  int64_t timeout_ms;
  /** who waits for the load of another process is told when it is over; and looks all the same, now and then: after a
   * random time from here ... default 20; 1 to 60,000 */
  int64_t retry_min_ms;
  int64_t retry_max_ms; /**< ... to here; default 200; retry_min_ms to 60,000 */
  /** a get waits for another process for so long; default BELAY_FOREVER: until its time is over; 0 to 600,000 */
  int64_t wait_ms;
  belay_cache_late_t late; /**< and after that; default BELAY_CACHE_LATE_STALE */

  /* Refreshed ahead of time. */
  /** Whoever is served what is still fresh has it loaded again, in the background, with a probability that grows as
   * its end draws near: if -beta * delta * ln(U) is no less than what is left of it, where delta is how long the
   * last load took, and U is random, from 0 to 1. (Vattani, Chierichetti, Lowenstein: "Optimal Probabilistic Cache
   * Stampede Prevention", VLDB 2015: XFetch.) Default 0: never; 1 is what they found best; to 1000 */
  double beta;
  /** What belay_cache_keep_fresh() has pinned is loaded again when no more than this is left of it; default BELAY_DEFAULT:
   * a fifth of ttl_ms; 1 to ttl_ms */
  int64_t refresh_ms;

  /* Lookups of what does not exist. */
  /** each load takes a token of it, except while the server is away; if it cannot be asked, it does not allow the load. Of
   * the same belay_t; outlives the cache. Default NULL */
  belay_limiter_t *limiter;
  /** from the limiter's key of the same name; default false: from "loads", for all */
  bool limit_per_key;
  /** has all keys that exist: one that is found neither on the server nor in it is absent, and not loaded. If it cannot be
   * asked, there is a load. Of the same belay_t; outlives the cache. Default NULL */
  belay_bloom_t *filter;

  /* While the server is away. */
  belay_cache_away_t away; /**< default BELAY_CACHE_AWAY_FAIL */
  unsigned max_away_loads; /**< default 16; 1 to 65,536 */

  /* Close to the request. */
  /** size of the table in this process, bookkeeping included but for 16 KiB; default 0: none */
  size_t local_bytes;
  /** for so long it may serve what was invalidated elsewhere; default 1000; 1 to 86,400,000 */
  int64_t local_ttl_ms;
  bool quiet; /**< changes are not published: for when no process has a table; default false */
  /** the first look of a get may be answered by a replica, if the client reads from them
   * (belay_client_options_t::read_from); who finds nothing good there goes on with the primary. What a replica says is
   * not kept in the table of this process. Default false */
  bool replicas;

  /** default 8 MiB; 1 to BELAY_CACHE_VALUE_MAX, and less than the client's max_reply and max_bytes */
  size_t max_value_bytes;
  /** values of so many bytes or more are compressed (LZ4), if that makes them smaller; default 0: none */
  size_t compress_bytes;
  void *data; /**< belay_cache_data() */
} belay_cache_options_t;

BELAY_API void belay_cache_options_init(belay_cache_options_t *options);

/** Makes a cache. Sends nothing. Returns 0, BELAY_EINVAL (belay_detail() says what), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_cache_new(belay_client_t *client, const belay_cache_options_t *options,
                              belay_cache_t **out);

/** Where a result comes from: a value, that there is none, or that a load has failed. */
typedef enum belay_cache_from {
  BELAY_CACHE_FROM_NOWHERE, /**< none of these */
  BELAY_CACHE_FROM_LOCAL,   /**< the table of this process */
  BELAY_CACHE_FROM_SERVER,  /**< the server: it was there, or another process has loaded it */
  BELAY_CACHE_FROM_LOAD     /**< it was loaded, in this process */
} belay_cache_from_t;

/** What a get came to. */
typedef struct belay_cache_result {
  /** 0: there is a value. Otherwise there is none:
   *   BELAY_EABSENT     it does not exist: the loader says so, or has said so, or the filter does; or there is no
   *                     loader, and nothing is kept
   *   BELAY_ELIMITED    it would have to be loaded, and the limiter does not allow it, or cannot be asked
   *   BELAY_ELOAD       the load has failed, now or less than error_ms ago: load_error says how
   *   BELAY_ETIMEDOUT   the request's time was over; or it waited for wait_ms
   *   BELAY_ECANCELED   belay_request_cancel() or a close
   *   BELAY_EWRONGTYPE  what the key holds, or that of one of its tags, is no string
   *   BELAY_EMISMATCH   that of one of its tags holds no generation
   *   BELAY_ENOMEM      there is no memory left here
   *   another error     the server could not be asked (BELAY_EUNREACHABLE, BELAY_EUNKNOWN, BELAY_EBUSY), or refuses:
   *                     see options.away */
  int status;
  const void *data;        /**< the value, not NULL */
  size_t len;              /**< bytes of it */
  belay_cache_from_t from; /**< where that comes from */
  bool stale;              /**< it is not fresh any more */
  int reason;              /**< the error that a stale value is served in place of; or 0 */
  /** what belay_cache_load_failed() was given, if status is BELAY_ELOAD; or reason is, and the load failed just now; else
   * 0 */
  int load_error;
  int64_t age_ms;       /**< since it was loaded or put */
  int64_t remaining_ms; /**< what is left of its being fresh */
} belay_cache_result_t;

/** A callback of the shape of belay/request.h; result->status is status. */
typedef void (*belay_cache_cb)(belay_request_t *request, int status,
                               const belay_cache_result_t *result);

/* All operations that take a request return 0, and then the callback runs exactly once, later, on the loop; or
 *   BELAY_EINVAL   key: not 1 to BELAY_CACHE_KEY_MAX bytes; or another argument (see belay_detail())
 *   BELAY_ESTATE   the request is pending
 *   BELAY_EBUSY    too much is pending in the client
 *   BELAY_ENOMEM, BELAY_ECLOSING, BELAY_EFORK
 * and then it does not. What they are given is copied. */

/** What a key stands for. A get that is canceled, or runs out of time, does not end the load that it waits for:
 * others, or later ones, may want it. */
BELAY_API int belay_cache_get(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                              belay_cache_cb cb);

/** The same with another policy than options.late. */
BELAY_API int belay_cache_get_late(belay_cache_t *cache, belay_request_t *request,
                                   belay_bytes_t key, belay_cache_late_t late, belay_cache_cb cb);

/** The answer, if the table of this process has it fresh: 0, BELAY_EABSENT or BELAY_ELOAD, and *result is set, its
 * data valid until the next call of this cache's or the loop's next turn. Otherwise BELAY_EAGAIN:
 * belay_cache_get() will ask. Never calls back, sends nothing, allocates nothing. Also BELAY_EINVAL,
 * BELAY_ECLOSING, BELAY_EFORK. */
BELAY_API int belay_cache_peek(belay_cache_t *cache, belay_bytes_t key,
                               belay_cache_result_t *result);

/** results: n of them, in the order of the keys, each with its own status; n is as asked for, whatever the status. If
 * status is not 0, each of them has it. */
typedef void (*belay_cache_many_cb)(belay_request_t *request, int status,
                                    const belay_cache_result_t *results, size_t n);

/** Many at once: 1 to BELAY_CACHE_MANY_MAX keys of 1 to BELAY_CACHE_KEY_MAX bytes; one may be there more than once.
 * Those that this process has to load are loaded by one call of options.load_many; or, if there is none, each by
 * one of load. Each waits as options.late says. status is 0, BELAY_ECANCELED or BELAY_ENOMEM. */
BELAY_API int belay_cache_get_many(belay_cache_t *cache, belay_request_t *request,
                                   const belay_bytes_t *keys, size_t n, belay_cache_many_cb cb);

/** A callback of the shape of belay/request.h: how a change ended. status:
 *   0                    done
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, and not answered, and sent again until its time was over: it may have been executed
 *   BELAY_ECANCELED      belay_request_cancel() or a close: the same; what is known to be done ends with 0
 *   BELAY_EWRONGTYPE     of put and touch: what the key holds, or one of its tags', is no string
 *   BELAY_EMISMATCH      of touch: it holds nothing of a cache's; of both: a tag's holds no generation
 *   another error        the server's refusal
 * applied: false unless status is 0. Of put: it is stored; of touch: there was a value, and none of its tags had been
 * invalidated; of the others: true. */
typedef void (*belay_cache_change_cb)(belay_request_t *request, int status, bool applied);

/** Stores a value that is known without a load. Call it after what the key stands for was changed. ttl_ms: 1 to
 * 31,536,000,000, or BELAY_DEFAULT, the options'. If a load or another put begins meanwhile, or the key is invalidated,
 * it is not known who knows better: then it is not stored, and what is there is invalidated. What was invalidated before
 * the put came to the server is not noticed: where several change the same thing, they should invalidate it.
 * Sent again if an answer is lost, but for the first: then it is not stored either. If it ends with an error, what was
 * there may be there still: invalidate it. */
BELAY_API int belay_cache_put(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                              belay_bytes_t value, int64_t ttl_ms, belay_cache_change_cb cb);

/** The value that is there is fresh for ttl_ms from now, 1 to 31,536,000,000, or BELAY_DEFAULT, the options'; and
 * stale and kept after that. That something does not exist, or that a load failed, is left as it is. Sent again if its
 * answer is lost. */
BELAY_API int belay_cache_touch(belay_cache_t *cache, belay_request_t *request, belay_bytes_t key,
                                int64_t ttl_ms, belay_cache_change_cb cb);

/** Neither what is there nor what is being loaded is served to whoever asks after this. Call it after what the key
 * stands for was changed. Whatever the key holds is deleted. */
BELAY_API int belay_cache_invalidate(belay_cache_t *cache, belay_request_t *request,
                                     belay_bytes_t key, belay_cache_change_cb cb);

/** The same for all keys that have the tag, however many: 1 to BELAY_CACHE_TAG_MAX bytes. */
BELAY_API int belay_cache_invalidate_tag(belay_cache_t *cache, belay_request_t *request,
                                         belay_bytes_t tag, belay_cache_change_cb cb);

/** From now on the key is loaded ahead of time, whether anybody asks for it or not: when no more than refresh_ms is
 * left of what is there; with a lock by one of the processes that have pinned it. The first look is taken at once.
 * Does not keep the loop alive.
 *
 * Returns 0 (also if it is pinned already), BELAY_EINVAL (also if there is no loader), BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_cache_keep_fresh(belay_cache_t *cache, belay_bytes_t key);

/** Not any more; a load that is under way goes on. Returns 0, BELAY_ESTATE (it is not pinned), BELAY_EINVAL,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_cache_let_expire(belay_cache_t *cache, belay_bytes_t key);

/** Ends a load with a value, which is copied; it may be NULL if len is 0. Returns 0; BELAY_EOVERFLOW: it has more than
 * options.max_value_bytes, and the load has failed with that, as by belay_cache_load_failed(); BELAY_ENOMEM: the load has
 * failed with that; BELAY_EINVAL: it is not ended. */
BELAY_API int belay_cache_load_done(belay_cache_load_t *load, belay_bytes_t value);

/** Ends a load: what was to be loaded does not exist. Returns 0 or BELAY_EINVAL. */
BELAY_API int belay_cache_load_absent(belay_cache_load_t *load);

/** Ends a load that has failed: error, any number but 0, is handed to those who wait. Returns 0 or BELAY_EINVAL. */
BELAY_API int belay_cache_load_failed(belay_cache_load_t *load, int error);

/** Whether it is worth going on: false once the cache is closed, or the load has taken load_timeout_ms. It has to
 * be ended all the same, which then only gives its memory back; even if the belay_t is gone, whose allocator must
 * still work. */
BELAY_API bool belay_cache_load_is_wanted(const belay_cache_load_t *load);

/** What happened since the cache was made, unless it says "now". */
typedef struct belay_cache_stats {
  uint64_t gets;          /**< keys that were asked for */
  uint64_t local_hits;    /**< served fresh from the table of this process, by peek too */
  uint64_t hits;          /**< served fresh from the server at once */
  uint64_t misses;        /**< neither, and nothing stale: had to wait */
  uint64_t stale_served;  /**< served what is not fresh any more */
  uint64_t absent_served; /**< of both kinds of hits: that it does not exist */
  uint64_t loads;         /**< calls of the loader, a key each */
  uint64_t load_failures; /**< of them have failed, those that took too long included */
  uint64_t losers; /**< of them were not to be stored: late ones, and while the server was away */
  /** keys that were asked for while this process loaded them, or waited for them, already */
  uint64_t joined;
  uint64_t waits;         /**< times that this process waited for the load of another */
  uint64_t refreshes;     /**< loads that nobody waited for when they began */
  uint64_t early;         /**< of them by beta: what was there was still fresh */
  uint64_t fills;         /**< stored */
  uint64_t refused_fills; /**< not stored: it was invalidated meanwhile, or another load began */
  uint64_t limited;       /**< loads that the limiter did not allow */
  uint64_t filtered;      /**< times that the filter spared a load */
  uint64_t undecodable;   /**< times that what was found was nothing of a cache's */
  uint64_t away;          /**< gets that could not ask the server when they began */
  uint64_t bytes_in;      /**< read from the server: of values, as they are kept there */
  uint64_t bytes_out;     /**< stored: the same */
  size_t loading;         /**< now: keys that are being loaded or waited for */
  size_t local_entries;   /**< now: in the table of this process */
  size_t local_bytes;     /**< now: its size */
} belay_cache_stats_t;

BELAY_API void belay_cache_stats(const belay_cache_t *cache, belay_cache_stats_t *out);

BELAY_API void *belay_cache_data(const belay_cache_t *cache);

/** Runs once when belay_cache_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_cache_close_cb)(belay_cache_t *cache, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED, leases are released in the background.
 * No load begins any more; those that are under way are not waited for: what they bring is dropped. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_cache_close(belay_cache_t *cache, belay_cache_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_CACHE_H */

/* Active users: how many different ones there were on a day, or in an hour, and in any span of them. */
#ifndef BELAY_ACTIVE_H
#define BELAY_ACTIVE_H

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A series: for each day (or hour) a HyperLogLog of the users that were seen in it, of at most 12 KiB. Counts are
 * estimates, with a standard error of 0.81 %; those of a few hundred users are nearly always exact. A day begins at
 * midnight at a stated distance from UTC. All who share a series must say the same unit, distance and ttl.
 *
 * The keys are NAMESPACE::active::{NAME}::20261121, or ...::2026112115 of an hour, in that time zone; and
 * ...::archive::LABEL. All keys of a series are in one slot of a cluster, so that they can be counted together. Each
 * key of a period ends ttl_ms after the period, whenever it was made. A key that was evicted is a period in which
 * nobody was seen: there is no telling.
 *
 * "Now" is by the server's clock, whatever the caller's says: it is learnt once a minute, by an operation that takes
 * one more round trip for it, and is off by at most half a round trip. Which period a mark belongs to is settled when
 * it is sent: one that is sent again after midnight still counts for the day before.
 * @code
 * static void on_marked(belay_request_t *request, int status) {
 *   (void)request;
 *   if (status != 0)
 *     printf("not marked: %s\n", belay_strerror(status));
 * }
 *
 * static void on_counts(belay_request_t *request, int status, const int64_t *counts, size_t n) {
 *   (void)request;
 *   for (size_t i = 0; status == 0 && i < n; i++)
 *     printf("%lld\n", (long long)counts[i]); // of the last 1, 3, 7, 15, 30 days
 * }
 *
 * int see(belay_active_t *site, belay_request_t *mark, belay_request_t *count) {
 *   int error =
 *       belay_active_mark(site, mark, belay_string("user-17"), BELAY_ACTIVE_NOW, on_marked);
 *   return error != 0 ? error
 *                     : belay_active_count_last(site, count, BELAY_ACTIVE_NOW, NULL, 0, on_counts);
 * }
 * @endcode */
typedef struct belay_active belay_active_t;

#define BELAY_ACTIVE_NOW INT64_C(0)                    /**< a time: now, by the server's clock */
#define BELAY_ACTIVE_TIME_MAX INT64_C(253370764799999) /**< the latest: the end of the year 9998 */
#define BELAY_ACTIVE_USERS_MAX 65536                   /**< marked at once */
#define BELAY_ACTIVE_USER_MAX ((size_t)1024)           /**< bytes of a user */
#define BELAY_ACTIVE_PERIODS_MAX 768                   /**< in a span: 32 days of hours */
#define BELAY_ACTIVE_SPANS_MAX 16                      /**< counted at once */
#define BELAY_ACTIVE_LABEL_MAX ((size_t)32)            /**< bytes of an archive's label */
#define BELAY_ACTIVE_LABELS_MAX 64                     /**< archives counted at once */

/** What a period is. */
typedef enum belay_active_unit {
  BELAY_ACTIVE_DAY = 1, /**< from midnight to midnight */
  BELAY_ACTIVE_HOUR     /**< a 24th of it */
} belay_active_unit_t;

/** Options; belay_active_options_init() sets the defaults. */
typedef struct belay_active_options {
  belay_bytes_t name;       /**< of the series, 1 to 128 bytes; copied. Must be given */
  belay_active_unit_t unit; /**< default BELAY_ACTIVE_DAY */
  /** How far the days' time zone is ahead of UTC, all the year: -720 to 840; default 0 */
  int32_t utc_offset_minutes;
  /** A period is kept for so long after its end: 1,000 to 315,360,000,000; default 32 days, 2,764,800,000 */
  int64_t ttl_ms;
  /** An archive is kept for so long after something was last merged into it: 1,000 to 315,360,000,000, or 0: for ever,
   * until belay_active_clear_archives(); default 400 days, 34,560,000,000 */
  int64_t archive_ttl_ms;
  void *data; /**< belay_active_data() */
} belay_active_options_t;

BELAY_API void belay_active_options_init(belay_active_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_active_new(belay_client_t *client, const belay_active_options_t *options,
                               belay_active_t **out);

/** A callback of the shape of belay/request.h: how an operation ended. Whatever it did, it may be
 * done more than once without harm, and says nothing of what was before: so every one is sent again, until its deadline,
 * where an answer was lost.
 *
 *   0                    done
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, and not answered by the deadline: it may have been executed. It can be asked again
 *   BELAY_ELOST          of a mark: the period was over ttl_ms ago or more, so that nothing is kept
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EMISMATCH      a key holds a HyperLogLog that is damaged
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE (also where a key holds a string that is no
 *                        HyperLogLog) */
typedef void (*belay_active_cb)(belay_request_t *request, int status);

/** counts: n of them; n is 0 unless status is 0. */
typedef void (*belay_active_count_cb)(belay_request_t *request, int status, const int64_t *counts,
                                      size_t n);

/* All that follow return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. A time is BELAY_ACTIVE_NOW, or 1 to BELAY_ACTIVE_TIME_MAX milliseconds since
 * 1970-01-01 UTC (so that what was logged can be replayed); it stands for the period that it is in. */

/** This user (1 to BELAY_ACTIVE_USER_MAX bytes) was seen then. */
BELAY_API int belay_active_mark(belay_active_t *active, belay_request_t *request,
                                belay_bytes_t user, int64_t time_ms, belay_active_cb cb);

/** These users were: 1 to BELAY_ACTIVE_USERS_MAX of them, and no more bytes than the client's max_bytes lets go out at
 * once (else BELAY_EBUSY); all or none. */
BELAY_API int belay_active_mark_many(belay_active_t *active, belay_request_t *request,
                                     const belay_bytes_t *users, size_t n, int64_t time_ms,
                                     belay_active_cb cb);

/** How many were seen in the period of that time. One count. A replica may answer (read_from), here and wherever else is
 * only counted. */
BELAY_API int belay_active_count(belay_active_t *active, belay_request_t *request, int64_t time_ms,
                                 belay_active_count_cb cb);

/** How many different ones in the last spans[i] periods up to that of time_ms, which is one of them: a count for each
 * of the 1 to BELAY_ACTIVE_SPANS_MAX spans of 1 to BELAY_ACTIVE_PERIODS_MAX periods. spans NULL and n 0: 1, 3, 7, 15
 * and 30 days (24, 72, ... hours, where the unit is the hour). For each period the server is busy for some 20 us. */
BELAY_API int belay_active_count_last(belay_active_t *active, belay_request_t *request,
                                      int64_t time_ms, const uint32_t *spans, size_t n,
                                      belay_active_count_cb cb);

/** How many different ones from the period of one time to that of another, both included; at most
 * BELAY_ACTIVE_PERIODS_MAX (where one of them is BELAY_ACTIVE_NOW, BELAY_EINVAL may come by the callback). One count. */
BELAY_API int belay_active_count_span(belay_active_t *active, belay_request_t *request,
                                      int64_t from_ms, int64_t to_ms, belay_active_count_cb cb);

/** Adds those periods to an archive (label: 1 to BELAY_ACTIVE_LABEL_MAX bytes, such as 202611), which outlives them:
 * whoever was seen in any of them, or in what was added before, is counted once. One count: of the archive now. */
BELAY_API int belay_active_archive(belay_active_t *active, belay_request_t *request,
                                   int64_t from_ms, int64_t to_ms, belay_bytes_t label,
                                   belay_active_count_cb cb);

/** How many different ones in these archives together, 1 to BELAY_ACTIVE_LABELS_MAX. One count. */
BELAY_API int belay_active_count_archives(belay_active_t *active, belay_request_t *request,
                                          const belay_bytes_t *labels, size_t n,
                                          belay_active_count_cb cb);

/** Forgets those periods, or those archives. The server gives the memory back in the background. */
BELAY_API int belay_active_clear(belay_active_t *active, belay_request_t *request, int64_t from_ms,
                                 int64_t to_ms, belay_active_cb cb);
BELAY_API int belay_active_clear_archives(belay_active_t *active, belay_request_t *request,
                                          const belay_bytes_t *labels, size_t n,
                                          belay_active_cb cb);

BELAY_API void *belay_active_data(const belay_active_t *active);

/** Runs once when belay_active_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_active_close_cb)(belay_active_t *active, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_active_close(belay_active_t *active, belay_active_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ACTIVE_H */

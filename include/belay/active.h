/* Active users: the number of different users of a day or hour, and of any span of them. */
#ifndef BELAY_ACTIVE_H
#define BELAY_ACTIVE_H

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A series of active users: for each period (a day or an hour) a HyperLogLog of the users that
 * were marked in it, of at most 12 KiB. Counts are estimates with a standard error of 0.81 %.
 * Counts of a few hundred users are nearly always exact.
 *
 * Use it for daily, weekly and monthly active users. To know which users are online now, use
 * belay/presence.h. For exact sets, use belay/dedup.h.
 *
 *   - A day begins at midnight of a time zone that is fixed for the series (utc_offset_minutes).
 *     All programs that share a series must use the same unit, utc_offset_minutes and ttl.
 *   - Keys: NAMESPACE::active::{NAME}::20261121 for a day, ...::2026112115 for an hour, and
 *     ...::archive::LABEL. All keys of a series are in one slot of a cluster, so that they can be
 *     counted together.
 *   - The key of a period expires ttl_ms after the end of the period, whenever it was made. A
 *     period whose key was evicted counts as empty; belay cannot notice that.
 *   - "Now" is by the server's clock. belay reads it again after a minute; after 5 s if the read
 *     took more than 100 ms; at once if another server answers. A read is one more round trip of an
 *     operation, and is wrong by at most half of that round trip. Meanwhile other operations use
 *     the last read, if it is at most 10 minutes old.
 *   - The period of a mark is decided when it is sent: a retry after midnight still counts for the
 *     day before.
 *
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
 *     printf("%lld\n", (long long)counts[i]); // of the last 1, 3, 7, 15 and 30 days
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

#define BELAY_ACTIVE_NOW INT64_C(0)                    /**< time: now, by the server's clock */
#define BELAY_ACTIVE_TIME_MAX INT64_C(253370764799999) /**< largest time: end of the year 9998 */
#define BELAY_ACTIVE_USERS_MAX 65536                   /**< users of one belay_active_mark_many() */
#define BELAY_ACTIVE_USER_MAX ((size_t)1024)           /**< bytes of a user */
#define BELAY_ACTIVE_PERIODS_MAX 768                   /**< periods of a span: 32 days of hours */
#define BELAY_ACTIVE_SPANS_MAX 16           /**< spans of one belay_active_count_last() */
#define BELAY_ACTIVE_LABEL_MAX ((size_t)32) /**< bytes of an archive's label */
#define BELAY_ACTIVE_LABELS_MAX 64          /**< archives in one operation */

/** Length of a period. */
typedef enum belay_active_unit {
  BELAY_ACTIVE_DAY = 1, /**< a day, from midnight to midnight */
  BELAY_ACTIVE_HOUR     /**< an hour */
} belay_active_unit_t;

/** Options; belay_active_options_init() sets the defaults. */
typedef struct belay_active_options {
  /** Name of the series, 1 to 128 bytes; copied. Required. */
  belay_bytes_t name;
  /** Length of a period. Default BELAY_ACTIVE_DAY. */
  belay_active_unit_t unit;
  /** Offset of the time zone from UTC, in minutes, east is positive: -720 to 840. It is the same
   * all year. Default 0. */
  int32_t utc_offset_minutes;
  /** Lifetime of a period after its end, in milliseconds: 1,000 to 315,360,000,000. Default
   * 2,764,800,000, 32 days. */
  int64_t ttl_ms;
  /** Lifetime of an archive after the last merge into it, in milliseconds: 1,000 to
   * 315,360,000,000. 0: until belay_active_clear_archives(). Default 34,560,000,000, 400 days. */
  int64_t archive_ttl_ms;
  /** Pointer of the caller, returned by belay_active_data(). Default NULL. */
  void *data;
} belay_active_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_active_options_init(belay_active_options_t *options);

/** Make a handle, without the server. Returns 0, BELAY_EINVAL (belay_detail() names the option),
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_active_new(belay_client_t *client, const belay_active_options_t *options,
                               belay_active_t **out);

/** Receives the result of a mark or clear. CALLBACKS in belay/request.h has the common rules and
 * errors. All operations are retried until the deadline if the reply is lost, because repetition
 * does no harm. Other values of status, for all operations:
 *
 *   0                    done
 *   BELAY_EUNKNOWN       it may have been executed (belay/request.h). The caller may repeat it
 *   BELAY_ELOST          of a mark: the period ended ttl_ms ago or more, so nothing was stored
 *   BELAY_EMISMATCH      a key holds a damaged HyperLogLog
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE (also for a string that is
 *                        not a HyperLogLog) */
typedef void (*belay_active_cb)(belay_request_t *request, int status);

/** Receives n counts; n is 0 if status is not 0. counts is valid until it returns. The rules of
 * belay_active_cb apply. */
typedef void (*belay_active_count_cb)(belay_request_t *request, int status, const int64_t *counts,
                                      size_t n);

/* ---- operations ----
 *
 * Each function returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY,
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not run.
 *
 * A time is BELAY_ACTIVE_NOW, or 1 to BELAY_ACTIVE_TIME_MAX milliseconds since 1970-01-01 UTC, so
 * that logs can be replayed. It stands for the period that contains it. from_ms and to_ms stand for
 * their two periods and all between them, 1 to BELAY_ACTIVE_PERIODS_MAX. Other numbers of periods
 * are BELAY_EINVAL. With BELAY_ACTIVE_NOW the function returns that error if belay knows the
 * server's time already; otherwise the callback gets it.
 *
 * Arguments are copied. A replica may answer each belay_active_count function, but not an archive
 * or a mark (belay_client_options_t.read_from). */

/** Mark a user (1 to BELAY_ACTIVE_USER_MAX bytes) as active at that time. */
BELAY_API int belay_active_mark(belay_active_t *active, belay_request_t *request,
                                belay_bytes_t user, int64_t time_ms, belay_active_cb cb);

/** Mark n users as active at that time, 1 to BELAY_ACTIVE_USERS_MAX: all of them or none.
 * BELAY_EBUSY if they have more bytes than the client's max_bytes allows. */
BELAY_API int belay_active_mark_many(belay_active_t *active, belay_request_t *request,
                                     const belay_bytes_t *users, size_t n, int64_t time_ms,
                                     belay_active_cb cb);

/** Count the users of the period of that time. The callback gets one count. */
BELAY_API int belay_active_count(belay_active_t *active, belay_request_t *request, int64_t time_ms,
                                 belay_active_count_cb cb);

/** Count the different users of the last spans[i] periods, of which the period of time_ms is the
 * last. The callback gets a count for each of the n spans (1 to BELAY_ACTIVE_SPANS_MAX), of 1 to
 * BELAY_ACTIVE_PERIODS_MAX periods each. spans NULL with n 0: 1, 3, 7, 15 and 30 days, with hours
 * as the unit 24, 72, ... hours; with another n: BELAY_EINVAL. A period takes the server about
 * 20 us. */
BELAY_API int belay_active_count_last(belay_active_t *active, belay_request_t *request,
                                      int64_t time_ms, const uint32_t *spans, size_t n,
                                      belay_active_count_cb cb);

/** Count the different users of the periods from from_ms to to_ms. The callback gets one count. */
BELAY_API int belay_active_count_span(belay_active_t *active, belay_request_t *request,
                                      int64_t from_ms, int64_t to_ms, belay_active_count_cb cb);

/** Merge the periods from from_ms to to_ms into an archive, which outlives them. label: 1 to
 * BELAY_ACTIVE_LABEL_MAX bytes, such as 202611. A user of several periods, or of an earlier merge,
 * counts once. The callback gets one count, of the archive after the merge. */
BELAY_API int belay_active_archive(belay_active_t *active, belay_request_t *request,
                                   int64_t from_ms, int64_t to_ms, belay_bytes_t label,
                                   belay_active_count_cb cb);

/** Count the different users of n archives together, 1 to BELAY_ACTIVE_LABELS_MAX. The callback
 * gets one count. */
BELAY_API int belay_active_count_archives(belay_active_t *active, belay_request_t *request,
                                          const belay_bytes_t *labels, size_t n,
                                          belay_active_count_cb cb);

/** Delete the periods from from_ms to to_ms. The server frees the memory in the background. */
BELAY_API int belay_active_clear(belay_active_t *active, belay_request_t *request, int64_t from_ms,
                                 int64_t to_ms, belay_active_cb cb);
/** Delete n archives, 1 to BELAY_ACTIVE_LABELS_MAX. The server frees the memory in the
 * background. */
BELAY_API int belay_active_clear_archives(belay_active_t *active, belay_request_t *request,
                                          const belay_bytes_t *labels, size_t n,
                                          belay_active_cb cb);

/** Return options.data. */
BELAY_API void *belay_active_data(const belay_active_t *active);

/** Runs once, on the loop, after a close. See CLOSING in belay/loop.h. */
typedef void (*belay_active_close_cb)(belay_active_t *active, void *data);

/** Close the handle, as CLOSING in belay/loop.h says. The series stays on the server. Returns 0,
 * BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_active_close(belay_active_t *active, belay_active_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ACTIVE_H */

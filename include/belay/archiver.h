/* An archiver: when a day of a series is over, one of all processes does what is to be done with it. */
#ifndef BELAY_ARCHIVER_H
#define BELAY_ARCHIVER_H

#include <stdbool.h>

#include "belay/active.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Of any number of processes that have an archiver of one series, one is elected (belay/election.h; the election is
 * called active/NAME). It takes the days that are over one by one, in their order: merges a day into the archive of its
 * month, if that is wanted; then tells on_day, which does whatever it likes and says belay_archiver_done(); then writes
 * into the record that this day is done, and no archiver takes it again. Who was away for some days does them when he
 * is back, as far as their keys are kept (ttl_ms of the series); what is older is skipped.
 *
 * What "exactly once a day" means. The record (NAMESPACE::active::{NAME}::archived) is written by a script that checks
 * the term of who writes: once a later leader has looked at the record, an earlier one, however long it was paused, can
 * write nothing. So each day is *completed* exactly once: it goes into the record once, behind the day before it. But
 * it may be *started* more than once: if the process dies, or loses its lease, between on_day and the record, the next
 * leader starts that day again, and if it was only paused, the two may even run at the same time. No library can tell
 * whether what the callback did has happened. So let it do what may be done twice (as the merging into a month is), or
 * let what it writes be guarded by day->term, which is larger than that of any leader before (belay/fence.h). If the
 * record itself is lost (FLUSHALL, an eviction), it begins again as a new one does. Which days are over is told by the
 * server's clock: one that steps ahead by days, and back again, has them done before they are over, and not again.
 * @code
 * static void on_day(belay_archiver_t *archiver, const belay_archiver_day_t *day) {
 *   printf("%d is over, and in its month's archive\n", (int)day->date);
 *   (void)belay_archiver_done(archiver, day->date, true); // or later, when what it takes is done
 * }
 *
 * int keep_months(belay_active_t *site, belay_archiver_t **out) {
 *   belay_archiver_options_t options;
 *   belay_archiver_options_init(&options);
 *   options.on_day = on_day;
 *   options.months = true;
 *   return belay_archiver_new(site, &options, out);
 * }
 * @endcode */
typedef struct belay_archiver belay_archiver_t;

/** A day that is over, by the series' time zone. Valid until the callback returns. */
typedef struct belay_archiver_day {
  int32_t date; /**< such as 20261121 */
  int64_t
      from_ms; /**< its first and its last millisecond, since 1970-01-01 UTC: what belay_active_count_span() */
  int64_t to_ms; /**< and belay_active_archive() take; both are in the day */
  uint64_t term; /**< of the leader that this process is: larger than those of all leaders before */
} belay_archiver_day_t;

/** A day is to be done. belay_archiver_done() says that it is, here or at any time later; until then nothing else
 * happens. May call anything. */
typedef void (*belay_archiver_day_cb)(belay_archiver_t *archiver, const belay_archiver_day_t *day);

/** Options; belay_archiver_options_init() sets the defaults. Milliseconds. */
typedef struct belay_archiver_options {
  belay_archiver_day_cb on_day; /**< may be NULL if months is true */
  /** Merge each day into the archive of its month, called YYYYMM, before on_day is told; default false */
  bool months;
  /** Where there is no record: the day of that time is the first to be done, if it is kept still. Default 0: the last
   * one that is over. Otherwise 1 to BELAY_ACTIVE_TIME_MAX */
  int64_t from_ms;
  /** A day counts as over so long after its end, for marks that are on their way: 0 to 3,600,000; default 10,000 */
  int64_t delay_ms;
  int64_t jitter_ms; /**< and is taken up to so much later: 0 to 3,600,000; default 5,000 */
  int64_t retry_ms;  /**< what failed is tried again after this: 10 to 3,600,000; default 10,000 */
  int64_t lease_ms;  /**< of the election: 1,000 to 600,000; default 10,000 */
  void *data;        /**< belay_archiver_data() */
} belay_archiver_options_t;

BELAY_API void belay_archiver_options_init(belay_archiver_options_t *options);

/** Makes one and begins to stand for election. It keeps the loop alive until it is closed. The series must keep its
 * periods for at least 2 days.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_archiver_new(belay_active_t *active, const belay_archiver_options_t *options,
                                 belay_archiver_t **out);

/** The day that on_day told is done: it goes into the record, however often that must be tried. Or, if well is false,
 * it is not: it is told again after retry_ms.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (this day is not waited for: the lease was lost since it was told, and whoever
 * is elected starts it again), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_archiver_done(belay_archiver_t *archiver, int32_t date, bool well);

/** The term in which this process leads for certain; 0 if it does not. Reads the clock each time. */
BELAY_API uint64_t belay_archiver_term(const belay_archiver_t *archiver);

/** What was done since it was made. */
typedef struct belay_archiver_stats {
  uint64_t elections; /**< how often it was elected */
  uint64_t told;      /**< calls of on_day */
  uint64_t completed; /**< days that it has written into the record, as far as it was answered */
  uint64_t fenced;    /**< times that a later leader's term kept it from the record */
  uint64_t failed;    /**< questions to the server that failed, and were put again */
  uint64_t skipped;   /**< days that were not kept any more when their turn came */
  int32_t last;       /**< the last day in the record, when it was looked at last; 0: none */
} belay_archiver_stats_t;

BELAY_API void belay_archiver_stats(const belay_archiver_t *archiver,
                                    belay_archiver_stats_t *stats);

BELAY_API void *belay_archiver_data(const belay_archiver_t *archiver);

/** Runs once when belay_archiver_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_archiver_close_cb)(belay_archiver_t *archiver, void *data);

/** Ends it, in any callback, and gives leadership back. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_archiver_close(belay_archiver_t *archiver, belay_archiver_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ARCHIVER_H */

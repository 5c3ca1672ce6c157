/* Ids: numbers that nobody else is given. */
#ifndef BELAY_IDGEN_H
#define BELAY_IDGEN_H

#include <stddef.h>
#include <stdint.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A source of ids. All who give the same name and mode draw from the same ids, and none of them comes twice.
 *
 * @code
 * static belay_request_t request;
 *
 * static void serve(int64_t id) {
 *   printf("user %lld\n", (long long)id);
 * }
 *
 * static void on_id(belay_request_t *r, int status, int64_t id) {
 *   (void)r;
 *   if (status == 0)
 *     serve(id);
 * }
 *
 * int give_id(belay_idgen_t *users) {
 *   int64_t id;
 *   int error = belay_idgen_next(users, &id); // from memory, as nearly all are
 *   if (error == 0)
 *     serve(id);
 *   return error == BELAY_EAGAIN ? belay_idgen_get(users, &request, on_id) : error;
 * }
 * @endcode */
typedef struct belay_idgen belay_idgen_t;

/** How ids are made. */
typedef enum belay_idgen_mode {
  /** Many are fetched at a time, and handed out from memory; when a fifth is left the next ones are fetched in the
   * background, while the loop turns, which this does not keep alive. They grow strictly within a handle, and roughly
   * among all. What a process has fetched and not handed out when it ends is skipped; so is a fetch whose answer is
   * lost, which is made anew.
   *
   * One hash, NAMESPACE::idgen::{NAME}, for ever: it has no ttl, since it must outlive all ids. It says what comes
   * next, and which server wrote that, by its run id and by when it became a primary. A server that finds another one's
   * (a replica that was promoted, a restart from an old file) may have forgotten what was fetched last, and jumps ahead
   * by a gap, or several; so it does when a handle was given more than it knows of. How many is drawn at random: another
   * one that has forgotten the same, and the jump too, must come out elsewhere; where a jump is lost with all that came
   * behind it, one time in 1,000 it does not, unless there are min_replicas.
   *
   * Without clock_rate a server cannot tell a key that was lost from one that never was. After
   * FLUSHALL, a deletion or an eviction the next fetch decides. A handle that has ids makes the
   * server jump above all that this handle was given. A handle that has none (a new process) is
   * given ids from `start` on, and those may be in use. clock_rate prevents that. */
  BELAY_IDGEN_SEGMENT,
  /** 41 bits of milliseconds since an epoch, 10 of a worker, 12 of a sequence: made here, and ordered by time. The
   * worker is a number from 0 to 1023 that this handle has a lock of (NAMESPACE::lock::{idgen/LENGTH/NAME/WORKER}, LENGTH
   * that of the name), and a record that says up to when it may issue ids, written ahead and renewed:
   * NAMESPACE::idgen::{NAME}::worker::N, kept until a day after that. Beside the records the key
   * NAMESPACE::idgen::{NAME}::workers says which epoch_ms the name has, until a day after its last
   * worker has ended. Nothing is issued past that time, by this machine's wall clock, nor when the
   * lock could be gone; whoever has the worker next starts above it. So ids are unique even where a
   * lock fails, as long as the record is there. One that is missing, or another server's, counts as
   * if it said ahead_ms from now, which is enough if the clocks of those concerned agree: so the
   * first id of a worker that never was takes so long.
   *
   * Ids never go back: while the wall clock is behind the last id, there is none. A worker whose record is far ahead of
   * it, because somebody's clock was, is passed over if any will do. */
  BELAY_IDGEN_SNOWFLAKE,
  /** Each is asked for: one more than the one before, whoever was given that, but for some that are skipped.
   * One hash of that name, NAMESPACE::idgen::{NAME}::sequence, a field for each kind, for ever: it has no ttl. A server
   * that loses writes gives the ids of those writes again: where that matters, use min_replicas.
   * One that loses the key (FLUSHALL, a deletion) gives all of them again, from `start` on. */
  BELAY_IDGEN_SEQUENCE
} belay_idgen_mode_t;

#define BELAY_IDGEN_NAME_MAX ((size_t)128)          /**< bytes of a name, and of a kind */
#define BELAY_IDGEN_STEP_MAX (INT64_C(1) << 31)     /**< the largest step */
#define BELAY_IDGEN_GAP_MAX (INT64_C(1) << 62)      /**< the largest gap */
#define BELAY_IDGEN_CLOCK_RATE_MAX INT64_C(1000000) /**< ids per second of the server's clock */
#define BELAY_IDGEN_MANY_MAX ((size_t)65536)        /**< ids of one belay_idgen_get_many() */
#define BELAY_IDGEN_WORKERS 1024                    /**< how many of a name can issue at a time */
#define BELAY_IDGEN_EPOCH_MS INT64_C(1704067200000) /**< the beginning of 2024, UTC */

/** Options; belay_idgen_options_init() sets the defaults. What is of one mode is not looked at in another. */
typedef struct belay_idgen_options {
  belay_bytes_t name; /**< of the ids, 1 to BELAY_IDGEN_NAME_MAX bytes; must be given; copied */
  belay_idgen_mode_t mode; /**< default BELAY_IDGEN_SEGMENT */

  /** SEGMENT, SEQUENCE: the first id of all, which counts where nothing is stored yet; default 1; SEGMENT: at least 0 */
  int64_t start;
  /** SEGMENT: how many are fetched at a time; default 10,000; 1 to BELAY_IDGEN_STEP_MAX. The
   * default of gap depends on it */
  int64_t step;
  /** SEGMENT: makes ids follow the server's clock: this many for each second, 1 to
   * BELAY_IDGEN_CLOCK_RATE_MAX. Default 0: they do not. With it:
   *
   *   - The first id of a name is `start` plus the seconds since 1970 times clock_rate; later ones
   *     follow without a gap.
   *   - No id is given before the clock has been past it for clock_skew_ms. So all processes
   *     together get no more than clock_rate ids per second in the long run. What was not used in a
   *     quiet time may be used later. The first fetch of a name takes clock_skew_ms plus step /
   *     clock_rate seconds; a fetch that comes too early waits.
   *   - A server that has lost the key, or may have forgotten a part, goes on at its clock. It does
   *     not jump by a gap.
   *   - Hence ids do not come twice after FLUSHALL, a deletion, an eviction, a restart from an old
   *     file or a failover with lost writes, as long as the clocks of the servers that have the key
   *     neither step back nor differ by more than clock_skew_ms.
   *
   * What it does not cover:
   *
   *   - A primary that is cut off, and gives ids for longer than clock_skew_ms after another server
   *     has begun to (split brain): both may give the same ones. min_replicas stops the first.
   *   - Another program that writes an older value into the hash of a server that keeps running.
   *   - A handle of another clock_rate or `start` that asks first after a loss.
   *
   * A handle whose clock_rate, clock_skew_ms or `start` differs from what the hash says gets
   * BELAY_EMISMATCH. A hash that was made without a clock_rate adopts the first one; ids then wait
   * until the clock is past them. `start` is at most 2^52. */
  int64_t clock_rate;
  /** SEGMENT with clock_rate: how much the clocks of servers may differ or step back, in
   * milliseconds: 0 to 60,000; default 1,000. 0: not at all. */
  int64_t clock_skew_ms;
  /** SEGMENT: a server that may have forgotten jumps by this, times a random number from 1 to 1,000, or to less where
   * that would be more than 2^50. It is to be more than all processes together can have fetched and the server not have
   * heard of, which is the lag of a replica, or the age of a file; and what an old primary goes on giving to those who
   * have not noticed. 0 to BELAY_IDGEN_GAP_MAX; default BELAY_DEFAULT: 1,000 steps. With
   * clock_rate only whether it is 0 counts. 0: for servers that lose nothing. Otherwise a server
   * that does not tell its run id (INFO) is refused with BELAY_EPERM, unless there are
   * min_replicas. */
  int64_t gap;
  /** SEGMENT, SEQUENCE: ids count once so many replicas of the server know that they are gone (WAIT); default 0; at
   * most 255. Fewer: BELAY_ENOREPLICAS, and those ids are skipped. */
  unsigned min_replicas;
  /** how long that may take; default BELAY_DEFAULT: half of the client's timeout_ms; 1 to the client's timeout_ms,
   * and at most half of its stall_timeout_ms */
  int64_t replica_timeout_ms;

  /** SEQUENCE: the field, 1 to BELAY_IDGEN_NAME_MAX bytes; default "id"; copied. */
  belay_bytes_t kind;

  int worker; /**< SNOWFLAKE: this one, 0 to 1023; default -1: any that is free */
  /** SNOWFLAKE, any worker: the worker that is tried first, 0 to 1023; if it is held, the next ones are. Default -1: a
   * random one. The first id of a worker without a record takes ahead_ms: a process that runs for a moment and gives
   * the same number each time finds a record, and does not wait. */
  int first_worker;
  int64_t
      ttl_ms; /**< SNOWFLAKE: of the worker's lock, renewed; default 10,000; 100 to 86,400,000 */
  /** SNOWFLAKE: how far ahead of the clock a worker may be allowed to issue, in milliseconds;
   * renewed after a third of it. For this time ids are issued without a server. 100 to 60,000;
   * default 1,000.
   *
   * The same for all of a name. belay does not check that: where a worker's record is lost, the
   * next owner starts at its own ahead_ms from now, and may give ids again that an owner with a
   * larger one had given. Where it must change, let all workers end first. */
  int64_t ahead_ms;
  /** SNOWFLAKE: when time begins, in milliseconds since 1970; 0 to 2^42. The same for all of a
   * name: another one is BELAY_EMISMATCH as long as the server has a record of the name. Default
   * BELAY_IDGEN_EPOCH_MS, with which ids end in 2093: BELAY_EOVERFLOW. */
  int64_t epoch_ms;

  unsigned
      max_waiting; /**< requests that wait for ids; more are BELAY_EBUSY; default 1,024; 1 to 65,536 */
  void *data;      /**< belay_idgen_data() */
} belay_idgen_options_t;

BELAY_API void belay_idgen_options_init(belay_idgen_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_idgen_new(belay_client_t *client, const belay_idgen_options_t *options,
                              belay_idgen_t **out);

/** The next id, at once, without a callback. *id is set if 0 is returned.
 *
 *   0                    *id is nobody else's
 *   BELAY_EAGAIN         there is none here. It is being fetched, or will come with time, and belay_idgen_get() waits
 *                        for it. Always of a SEQUENCE, whose ids have to be asked for
 *   BELAY_EOVERFLOW      there is none any more: the range is used up, to less than a step; or the clock is before the
 *                        epoch, or 2^41 ms after it
 *   BELAY_EMISMATCH      a key or the field of the kind holds something that belay does not write
 *                        (a hash of another program, no number), or was made with another epoch_ms,
 *                        clock_rate, clock_skew_ms or start; nothing was written. belay_detail()
 *                        says which
 *   BELAY_EINVAL, BELAY_ECLOSING, BELAY_EFORK
 *   another error        why none could be fetched, where that is not expected to pass, such as BELAY_EWRONGTYPE. It is
 *                        tried again all the same, once a second */
BELAY_API int belay_idgen_next(belay_idgen_t *idgen, int64_t *id);

/** A callback of the shape of belay/request.h. id is 0 unless status is 0. status:
 *
 *   0                    id is nobody else's
 *   BELAY_ETIMEDOUT      none came in time, and nothing went wrong: the clock is behind, or the server has not
 *                        answered yet
 *   BELAY_EHELD          all workers, or the one that was asked for, are held by others
 *   BELAY_EUNKNOWN       nor was the last answer known. Ids of a SEQUENCE that were asked for may be gone. A question
 *                        whose answer is lost is asked again while there is time, but for a SEQUENCE with min_replicas:
 *                        that can only skip an id
 *   BELAY_EUNREACHABLE   the server could not be reached (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   another error        as of belay_idgen_next(), or the server's refusal, such as BELAY_ENOREPLICAS */
typedef void (*belay_idgen_cb)(belay_request_t *request, int status, int64_t id);

/** The same for n of them, in ascending order; n is 0 unless status is 0. Some of those
 * that were already set aside for a request that fails are skipped. */
typedef void (*belay_idgen_many_cb)(belay_request_t *request, int status, const int64_t *ids,
                                    size_t n);

/* Both return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */

/** The next id, when there is one. Requests of a handle are served in the order in which they came, and before
 * belay_idgen_next(). */
BELAY_API int belay_idgen_get(belay_idgen_t *idgen, belay_request_t *request, belay_idgen_cb cb);

/** The next n of them, 1 to BELAY_IDGEN_MANY_MAX. */
BELAY_API int belay_idgen_get_many(belay_idgen_t *idgen, belay_request_t *request, size_t n,
                                   belay_idgen_many_cb cb);

/** The worker that a SNOWFLAKE issues ids with now; -1: none. */
BELAY_API int belay_idgen_worker(const belay_idgen_t *idgen);

/** What a SNOWFLAKE's id is made of. */
typedef struct belay_idgen_parts {
  int64_t unix_ms;   /**< when, in milliseconds since 1970 */
  unsigned worker;   /**< 0 to 1023 */
  unsigned sequence; /**< 0 to 4095 */
} belay_idgen_parts_t;

/** Takes an id apart. epoch_ms: that of the options it was made with. Returns 0, or BELAY_EINVAL for a negative id or
 * epoch_ms, or for NULL. */
BELAY_API int belay_idgen_decode(int64_t id, int64_t epoch_ms, belay_idgen_parts_t *parts);

BELAY_API void *belay_idgen_data(const belay_idgen_t *idgen);

/** Runs once when belay_idgen_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_idgen_close_cb)(belay_idgen_t *idgen, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED, a worker is given back. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_idgen_close(belay_idgen_t *idgen, belay_idgen_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_IDGEN_H */

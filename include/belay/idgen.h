/* Id generators: 64-bit numbers that are unique among all processes. */
#ifndef BELAY_IDGEN_H
#define BELAY_IDGEN_H

#include <stddef.h>
#include <stdint.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An id generator. All generators with the same name and mode draw from one set of ids, and no id
 * is given twice.
 *
 * Use it for database keys, order numbers and message ids. Choose the mode by the order of ids that
 * you need: belay_idgen_mode_t. If ids need not be numbers, a UUID needs no server (belay/uuid.h).
 *
 * @code
 * static void serve(int64_t id) {
 *   printf("user %lld\n", (long long)id);
 * }
 *
 * static void on_id(belay_request_t *request, int status, int64_t id) {
 *   (void)request;
 *   if (status == 0)
 *     serve(id);
 * }
 *
 * int give_id(belay_idgen_t *users, belay_request_t *request) {
 *   int64_t id;
 *   int error = belay_idgen_next(users, &id); // nearly always from memory
 *   if (error == 0)
 *     serve(id);
 *   return error == BELAY_EAGAIN ? belay_idgen_get(users, request, on_id) : error;
 * }
 * @endcode */
typedef struct belay_idgen belay_idgen_t;

/** Method that makes ids. */
typedef enum belay_idgen_mode {
  /** Ids are fetched in segments of `step` and handed out from memory; ids are
   * not dense.
   *
   * Order: strictly increasing within a generator, and roughly increasing among all of them. When a
   * fifth of a segment is left, the next one is fetched in the background. The fetch keeps the
   * loop alive until it ends or times out. Ids that a process has fetched and not handed out when
   * it ends are skipped. So are the ids of a fetch whose reply is lost; the fetch is retried.
   *
   * State: one hash, NAMESPACE::idgen::{NAME}, without a ttl, because it must outlive all ids. It
   * contains the next id, and the identity of the server that wrote it.
   *
   * Lost writes: a server that finds another server's state (a promoted replica, a restart from an
   * old file) may lack the last fetches, and jumps ahead. So it does if a generator has been given
   * more ids than the state says. A jump is `gap` times a random number. If a jump and all ids
   * after it are lost, the next one collides with a probability of 1 in 1,000, unless there are
   * min_replicas.
   *
   * Lost key: without clock_rate a server cannot tell a key that was lost from one that never
   * existed. After FLUSHALL, a deletion or an eviction, the next fetch decides. A generator that
   * has ids makes the server jump above all ids that this generator was given. A generator without
   * ids (a new process) gets ids from `start`, which may be in use. clock_rate prevents that. */
  BELAY_IDGEN_SEGMENT,
  /** Ids are made in this process: 41 bits of milliseconds since an epoch, 10 bits of a worker, 12
   * bits of a sequence. They are ordered by time.
   *
   * Worker: a number from 0 to 1023 that the generator owns, by a lock,
   * NAMESPACE::lock::{idgen/LENGTH/NAME/WORKER}, where LENGTH is the length of the name. A record,
   * NAMESPACE::idgen::{NAME}::worker::N, says until when the worker may issue ids; it is written
   * ahead of time, renewed, and kept for one day after its end, as is the key
   * NAMESPACE::idgen::{NAME}::workers with epoch_ms.
   *
   * Uniqueness: a generator issues no id after the time in its record, by the machine's wall clock,
   * nor when it may have lost the lock. The next owner of the worker starts above that time. So ids
   * are unique even if a lock fails, as long as the record exists. A record that is missing, or
   * that another server wrote, counts as ahead_ms from now, which is enough if the clocks of the
   * machines agree. Therefore the first id of a new worker takes ahead_ms.
   *
   * Order: ids never go back. While the wall clock is behind the last id, there is no id. If any
   * worker is allowed, a worker whose record is far ahead, because of a wrong clock, is skipped. */
  BELAY_IDGEN_SNOWFLAKE,
  /** Each id is fetched from the server, and is one more than the id before it, with few gaps.
   *
   * State: one hash, NAMESPACE::idgen::{NAME}::sequence, with a field per sequence and without a
   * ttl. A server that loses writes gives the ids of those writes again: use min_replicas if
   * that matters. A server that loses the key (FLUSHALL, a deletion) gives all ids again, from
   * `start`. */
  BELAY_IDGEN_SEQUENCE
} belay_idgen_mode_t;

#define BELAY_IDGEN_NAME_MAX ((size_t)128)          /**< bytes of a name, and of a sequence */
#define BELAY_IDGEN_STEP_MAX (INT64_C(1) << 31)     /**< largest step */
#define BELAY_IDGEN_GAP_MAX (INT64_C(1) << 62)      /**< largest gap */
#define BELAY_IDGEN_CLOCK_RATE_MAX INT64_C(1000000) /**< largest clock_rate */
#define BELAY_IDGEN_MANY_MAX ((size_t)65536)        /**< ids of one belay_idgen_get_many() */
#define BELAY_IDGEN_WORKERS 1024                    /**< workers of a name */
#define BELAY_IDGEN_EPOCH_MS INT64_C(1704067200000) /**< default epoch: the start of 2024, UTC */

/** Options; belay_idgen_options_init() sets the defaults. Options of other modes are ignored. */
typedef struct belay_idgen_options {
  /** Name of the ids, 1 to BELAY_IDGEN_NAME_MAX bytes; copied. Required. */
  belay_bytes_t name;
  /** Method that makes ids. Default BELAY_IDGEN_SEGMENT. */
  belay_idgen_mode_t mode;

  /** SEGMENT, SEQUENCE: first id of all, used while no state is stored. Default 1. SEGMENT: at
   * least 0, and with clock_rate at most 2^52. */
  int64_t start;
  /** SEGMENT: ids per fetch, 1 to BELAY_IDGEN_STEP_MAX. Default 10,000. */
  int64_t step;
  /** SEGMENT: ids per second of the server's clock, 1 to BELAY_IDGEN_CLOCK_RATE_MAX. Ids then
   * follow the clock, so that they do not come twice after a loss of the key. Default 0: they do
   * not.
   *
   *   - The first id of a name is `start` plus the seconds since 1970 times clock_rate. Later ids
   *     follow without a gap. No id is given before the clock has been past it for clock_skew_ms.
   *   - So in the long run all processes together get at most clock_rate ids per second. The first
   *     fetch of a name takes clock_skew_ms plus step / clock_rate seconds; a fetch that comes too
   *     early waits.
   *   - A server that has lost the key, or may lack a part, continues at its clock, without a jump.
   *   - So ids do not come twice after FLUSHALL, a deletion, an eviction, a restart from an old
   *     file or a failover with lost writes, if the clocks of the servers neither step back nor
   *     differ by more than clock_skew_ms.
   *
   * Not covered:
   *
   *   - Split brain: a primary that is cut off, and gives ids for longer than clock_skew_ms after
   *     another server has begun to. Both may give the same ids. min_replicas stops the first.
   *   - Another program that writes an older value into the hash of a running server.
   *   - A generator with another clock_rate or `start` that is the first to fetch after a loss.
   *
   * A generator whose clock_rate, clock_skew_ms or `start` differs from the stored one gets
   * BELAY_EMISMATCH. State that was made without a clock_rate adopts the first one; ids then wait
   * until the clock is past them. */
  int64_t clock_rate;
  /** SEGMENT with clock_rate: time by which the clocks of servers may differ or step back, in
   * milliseconds: 0 to 60,000. Default 1,000. 0: not at all. */
  int64_t clock_skew_ms;
  /** SEGMENT: unit of a jump, in ids: 0 to BELAY_IDGEN_GAP_MAX. Default BELAY_DEFAULT: 1,000
   * times step.
   *
   * A server that may lack fetches jumps by this times a random number from 1 to 1,000, or less
   * if the jump would exceed 2^50. Choose more than all processes together can fetch without the
   * knowledge of the new server: during the lag of a replica or the age of a file, and from an old
   * primary by clients that have not noticed the failover.
   *
   * 0: the servers lose nothing, so there are no jumps. With any other value, a server that does
   * not reveal its run id (INFO) is refused with BELAY_EPERM, unless there are min_replicas.
   * With clock_rate, only whether it is 0 matters. */
  int64_t gap;
  /** SEGMENT, SEQUENCE: number of replicas that must confirm a fetch (WAIT) before its ids are
   * used, 0 to 255. With fewer confirmations the status is BELAY_ENOREPLICAS, and the ids are
   * skipped. Default 0. */
  unsigned min_replicas;
  /** SEGMENT, SEQUENCE with min_replicas: time for the confirmations, in milliseconds, 1 to the
   * client's timeout_ms, and at most half of its stall_timeout_ms. Default BELAY_DEFAULT: half of
   * the client's timeout_ms. */
  int64_t replica_timeout_ms;

  /** SEQUENCE: name of the sequence, a field of the hash: 1 to BELAY_IDGEN_NAME_MAX bytes; copied.
   * Default "id". */
  belay_bytes_t sequence;

  /** SNOWFLAKE: worker to use, 0 to 1023. Default -1: any free worker. */
  int worker;
  /** SNOWFLAKE with worker -1: worker that is tried first, 0 to 1023; if it is held, the next ones
   * are tried. Default -1: a random one. A short-lived process with a fixed number finds a record,
   * and does not wait for ahead_ms. */
  int first_worker;
  /** SNOWFLAKE: ttl of the worker's lock, which is renewed, in milliseconds: 100 to 86,400,000.
   * Default 10,000. */
  int64_t ttl_ms;
  /** SNOWFLAKE: time ahead of the clock for which a worker gets permission to issue ids, in
   * milliseconds: 100 to 60,000. It is renewed after a third. Ids are issued without a server for
   * this time. Default 1,000.
   *
   * It must be the same for all generators of a name; belay does not check that. If a worker's
   * record is lost, the next owner starts at its own ahead_ms from now, and may repeat ids of an
   * owner with a larger one. To change it, stop all workers first. */
  int64_t ahead_ms;
  /** SNOWFLAKE: epoch, in milliseconds since 1970: 0 to 2^42. It must be the same for all
   * generators of a name; another one is BELAY_EMISMATCH as long as the server has a record of the
   * name. Default BELAY_IDGEN_EPOCH_MS, with which ids end in 2093 (BELAY_EOVERFLOW). */
  int64_t epoch_ms;

  /** SEGMENT, SNOWFLAKE: maximum number of requests that wait for ids, 1 to 65,536. Further
   * requests get BELAY_EBUSY. Default 1,024. */
  unsigned max_waiting;
  /** Pointer of the caller, returned by belay_idgen_data(). Default NULL. */
  void *data;
} belay_idgen_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_idgen_options_init(belay_idgen_options_t *options);

/** Make an id generator. It sends nothing to the server.
 *
 * Returns 0, BELAY_EINVAL (belay_detail() names the option), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_idgen_new(belay_client_t *client, const belay_idgen_options_t *options,
                              belay_idgen_t **out);

/** Return the next id from memory, without a callback. *id is set if the function returns 0.
 *
 *   0                    *id is unique
 *   BELAY_EAGAIN         there is no id in memory; one is being fetched, or the clock must move on.
 *                        Use belay_idgen_get(). A SEQUENCE always returns this
 *   BELAY_EOVERFLOW      there are no ids any more: less than a step is left of the range, or the
 *                        clock is before the epoch or 2^41 ms after it
 *   BELAY_EMISMATCH      a key or the field of the sequence holds a foreign value, or was made with
 *                        another epoch_ms, clock_rate, clock_skew_ms or start. Nothing was
 *                        written. belay_detail() says which
 *   BELAY_EINVAL, BELAY_ECLOSING, BELAY_EFORK
 *   another error        the last fetch failed, for a reason that is expected to last, such as
 *                        BELAY_EWRONGTYPE. Later calls fetch again: a get at once,
 *                        belay_idgen_next() at most about once per second */
BELAY_API int belay_idgen_next(belay_idgen_t *idgen, int64_t *id);

/** Receives an id; id is 0 if status is not 0. It runs exactly once, on the loop, never inside
 * belay_idgen_get(). It may call any function, also reuse the request or close the generator.
 * status:
 *
 *   0                    id is unique
 *   BELAY_ETIMEDOUT      there was no id before the deadline, without a failure: the clock is
 *                        behind, or the server has not answered yet
 *   BELAY_EHELD          all workers, or the requested one, are held by other generators
 *   BELAY_EUNKNOWN       the last fetch was sent and not answered. A SEQUENCE is retried until the
 *                        deadline, which can only skip ids; with min_replicas it is not retried
 *   BELAY_EUNREACHABLE   the server could not be reached (also BELAY_ERESOLVE, BELAY_EBUSY,
 *                        BELAY_ENOMEM)
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   another error        an error of belay_idgen_next(), or the server's refusal, such as
 *                        BELAY_ENOREPLICAS
 *
 * SEGMENT, SNOWFLAKE: BELAY_EUNKNOWN and errors for which belay_err_retryable() returns 1 end a
 * request at its deadline. Until then belay tries again. Other errors end it at once. */
typedef void (*belay_idgen_cb)(belay_request_t *request, int status, int64_t id);

/** Receives n ids in ascending order; n is 0 if status is not 0. ids is valid until it returns. If
 * the request fails, ids that were already reserved for it are skipped. The rules of belay_idgen_cb
 * apply. */
typedef void (*belay_idgen_many_cb)(belay_request_t *request, int status, const int64_t *ids,
                                    size_t n);

/** Get the next id. Requests of a generator are served in their order, and before
 * belay_idgen_next().
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not run. */
BELAY_API int belay_idgen_get(belay_idgen_t *idgen, belay_request_t *request, belay_idgen_cb cb);

/** Get the next n ids, 1 to BELAY_IDGEN_MANY_MAX. Returns the same errors as belay_idgen_get(). */
BELAY_API int belay_idgen_get_many(belay_idgen_t *idgen, belay_request_t *request, size_t n,
                                   belay_idgen_many_cb cb);

/** Return the worker with which a SNOWFLAKE issues ids now. -1: none. */
BELAY_API int belay_idgen_worker(const belay_idgen_t *idgen);

/** Parts of a SNOWFLAKE id. */
typedef struct belay_idgen_parts {
  int64_t unix_ms;   /**< time of the id, in milliseconds since 1970 */
  unsigned worker;   /**< worker, 0 to 1023 */
  unsigned sequence; /**< sequence, 0 to 4095 */
} belay_idgen_parts_t;

/** Split a SNOWFLAKE id into its parts. epoch_ms is the epoch of its generator's options.
 *
 * Returns 0, or BELAY_EINVAL for a negative id, an epoch_ms out of its range, or NULL. */
BELAY_API int belay_idgen_decode(int64_t id, int64_t epoch_ms, belay_idgen_parts_t *parts);

/** Return options.data. */
BELAY_API void *belay_idgen_data(const belay_idgen_t *idgen);

/** Runs once, on the loop, when belay_idgen_close() has completed. The generator is freed: do not
 * use it. data is options.data; see CLOSING in belay/loop.h. */
typedef void (*belay_idgen_close_cb)(belay_idgen_t *idgen, void *data);

/** Close the generator. Allowed inside any callback. Pending requests end with BELAY_ECANCELED, and
 * a worker is released. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_idgen_close(belay_idgen_t *idgen, belay_idgen_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_IDGEN_H */

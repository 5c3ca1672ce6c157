/* Sweeps: list, and optionally delete, the keys of a namespace in the background. */
#ifndef BELAY_SWEEP_H
#define BELAY_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belay/client.h"
#include "belay/held.h"
#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A sweep: it scans the keys of the client's namespace that match a pattern, page by page (SCAN,
 * never KEYS), reports them, and deletes them if options.remove is true (UNLINK, never DEL). It
 * pauses between pages and uses a connection of its own, so that neither the server nor other calls
 * of this process are delayed much.
 *
 * Use it to list keys, to remove the keys of a test or of an old version, or to list all held locks
 * (on_held). To read one lock, use belay/held.h.
 *
 * Danger: a sweep does not know the meaning of keys. With `remove` it deletes the keys of LOCKS
 * THAT ARE HELD, fencing counters, idempotency records, configurations of filters and the state of
 * id generators, and with them the protection that they give. Run it without `remove` first, and
 * look at the keys.
 *
 * Guarantees:
 *
 *   - A matching key that exists from the start of a run to its end is found at least once. A key
 *     that is created or deleted meanwhile may be found or not. A key may be found several times.
 *   - A cursor is valid only on the server that made it. If another server answers, because of a
 *     restart or failover, the run starts again.
 *   - In a cluster the guarantee holds only while no slot moves between nodes. The client notices a
 *     move when a command for that slot is redirected, or within about a minute. The run then
 *     starts again. A move that it does not notice during the run can hide keys, without an error.
 *     Do not sweep during a resharding, or sweep again after it.
 *
 * @code
 * static void on_keys(belay_sweep_t *sweep, const belay_bytes_t *keys, size_t n) {
 *   (void)sweep;
 *   for (size_t i = 0; i < n; i++)
 *     printf("%.*s\n", (int)keys[i].len, (const char *)keys[i].data);
 * }
 * static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
 *   printf("%s: %llu found\n", belay_strerror(status), (unsigned long long)totals->matched);
 *   belay_sweep_close(sweep, NULL);
 * }
 *
 * int list_sessions(belay_client_t *client) {
 *   belay_sweep_options_t options;
 *   belay_sweep_t *sweep;
 *   belay_sweep_options_init(&options);
 *   options.pattern = belay_string("session::*");
 *   options.on_keys = on_keys;
 *   int error = belay_sweep_new(client, &options, &sweep);
 *   return error != 0 ? error : belay_sweep_start(sweep, on_swept);
 * }
 * @endcode */
typedef struct belay_sweep belay_sweep_t;

#define BELAY_SWEEP_PATTERN_MAX ((size_t)1024) /**< bytes of a pattern */
#define BELAY_SWEEP_RESTARTS_MAX 16            /**< restarts of a run before BELAY_ELOST */

/** Totals of a run. */
typedef struct belay_sweep_totals {
  uint64_t pages;    /**< pages that were answered */
  uint64_t scanned;  /**< keys that the server was asked to scan; about the number that it did */
  uint64_t matched;  /**< keys found; a key that was found several times counts several times */
  uint64_t deleted;  /**< keys known to be deleted by this run; too low if a reply was lost */
  uint32_t restarts; /**< restarts of the run */
} belay_sweep_totals_t;

/** Reports a page of n keys that were found, at least 1: complete keys, with their namespace. It
 * runs on the loop, once per page with keys, before they are deleted. It may call any function. If
 * it cancels or closes the sweep, the keys are not deleted. keys is valid until it returns. */
typedef void (*belay_sweep_keys_cb)(belay_sweep_t *sweep, const belay_bytes_t *keys, size_t n);

/** Reports one held object (options.on_held). It runs on the loop, once per object; an object that
 * changes meanwhile may be reported several times or not at all, as keys may. It may call any
 * function, also cancel or close the sweep. held is valid until it returns. */
typedef void (*belay_sweep_held_cb)(belay_sweep_t *sweep, const belay_held_t *held);

/** Reports that a page is done; with options.remove its keys are deleted. It runs on the loop, once
 * per page. It may call any function, also cancel or close the sweep. totals is valid until it
 * returns. */
typedef void (*belay_sweep_progress_cb)(belay_sweep_t *sweep, const belay_sweep_totals_t *totals);

/** Reports the end of a run. It runs exactly once per run, on the loop, never inside
 * belay_sweep_start(). It may call any function, also start another run or close the sweep. totals
 * is valid until it returns, with any status. Keys that were deleted stay deleted. status:
 *
 *   0                 all keys were scanned (for a cluster see the guarantees of belay_sweep_t)
 *   BELAY_ECANCELED   belay_sweep_cancel() or a close. A call under way may still be executed
 *   BELAY_ELOST       more than BELAY_SWEEP_RESTARTS_MAX restarts
 *   BELAY_EPROTO      a reply was malformed, or larger than the client's max_reply with a page of
 *                     one key
 *   another error     an error of the server or of the connection. Errors that may pass
 *                     (BELAY_EUNREACHABLE, BELAY_EUNKNOWN, BELAY_ELOADING, BELAY_EBUSY,
 *                     BELAY_ENOMEM ...) end the run after patience_ms, others at once */
typedef void (*belay_sweep_cb)(belay_sweep_t *sweep, int status,
                               const belay_sweep_totals_t *totals);

/** Options; belay_sweep_options_init() sets the defaults. */
typedef struct belay_sweep_options {
  /** Pattern of the keys without "NAMESPACE::", 1 to BELAY_SWEEP_PATTERN_MAX bytes; copied. It has
   * the syntax of KEYS: * ? [a-z] [^a-z], and a backslash before a literal character. "*" matches
   * all. Required, unless on_held is set.
   *
   * Keys consist of the family, the handle's name and the key in braces: limit::login::{*}. Names
   * are escaped in keys, as belay/client.h describes (KEYS). Keys outside of the namespace are
   * never found. A namespace with more parts that begins with this one is inside of it. */
  belay_bytes_t pattern;
  /** Type of the keys, such as "string" or "zset": 1 to 32 printable bytes without spaces; copied.
   * Default NULL: any. */
  const char *type;
  /** true if the keys are deleted. Default false: they are only reported. */
  bool remove;
  /** Speed in keys per second: keys scanned plus keys deleted or asked about. 1 to 10,000,000.
   * Default 50,000. */
  uint32_t keys_per_s;
  /** Number of keys scanned per page, 1 to 10,000. It is reduced if a reply would be too large.
   * Default 1000. */
  uint32_t batch;
  /** Time for which the sweep retries a call that gets no answer, in milliseconds, 0 to 86,400,000,
   * without pauses. Default 60,000. */
  int64_t patience_ms;
  /** Reports held objects instead of keys. Default NULL: keys are reported. Must be NULL with
   * remove.
   *
   * For each key of a lock, a read/write lock, a semaphore or an election of exactly this
   * namespace, the sweep reads the holders, and reports up to BELAY_HELD_LISTED_MAX of them. An
   * object without a holder is not reported. Other keys are skipped, and are missing in on_keys and
   * in the totals. A lock with an exact key (belay_lock_options_t.key) is not found. */
  belay_sweep_held_cb on_held;
  /** Reports each page of keys. Default NULL: none. */
  belay_sweep_keys_cb on_keys;
  /** Reports that a page is done. Default NULL: none. */
  belay_sweep_progress_cb on_progress;
  /** Pointer of the caller, returned by belay_sweep_data(). Default NULL. */
  void *data;
} belay_sweep_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_sweep_options_init(belay_sweep_options_t *options);

/** Make a sweep. It sends nothing to the server.
 *
 * Returns 0, BELAY_EINVAL (belay_detail() names the option), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_sweep_new(belay_client_t *client, const belay_sweep_options_t *options,
                              belay_sweep_t **out);

/** Start a run, from the beginning. It keeps the loop alive until its end. All calls are retried if
 * their reply is lost, because neither a scan nor a second deletion does harm.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (a run is under way), BELAY_ECLOSING or BELAY_EFORK. After
 * an error the callback does not run. */
BELAY_API int belay_sweep_start(belay_sweep_t *sweep, belay_sweep_cb cb);

/** End the run with BELAY_ECANCELED. Allowed inside any callback.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (no run is under way, or it has ended and its callback is
 * about to run), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_sweep_cancel(belay_sweep_t *sweep);

/** Return options.data. */
BELAY_API void *belay_sweep_data(const belay_sweep_t *sweep);

/** Runs once, on the loop, when belay_sweep_close() has completed. The sweep is freed: do not use
 * it. data is options.data; see CLOSING in belay/loop.h. */
typedef void (*belay_sweep_close_cb)(belay_sweep_t *sweep, void *data);

/** Close the sweep. Allowed inside any callback. A run under way ends with BELAY_ECANCELED before
 * cb runs. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_sweep_close(belay_sweep_t *sweep, belay_sweep_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_SWEEP_H */

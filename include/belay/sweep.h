/* A sweep: looks through a namespace in the background, and deletes what it finds. */
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

/** One who goes through the keys of the client's namespace whose names match a pattern, a page at a time (SCAN; never
 * KEYS), tells them, and deletes them if it is to (UNLINK; never DEL): with rests in between, and on a connection of its
 * own, so that the server hardly notices, nor what else this process asks of it.
 *
 * It deletes what it is told to. It knows nothing of what the keys mean: the key of a LOCK THAT IS HELD is a key like
 * any other, and so are fencing counters, idempotency records, the configurations of filters, and the ids that were
 * handed out. With them goes what they protect. Run it without `remove` first, and look.
 *
 * What is guaranteed: a key that matches and is there from the start of a run to its end is found at least once. One
 * that comes or goes meanwhile is found or not; one may be found several times. A cursor means something only to the
 * server that made it: if another one answers, because that was restarted or replaced, the run begins anew. IN A CLUSTER
 * this holds only as long as no slot moves from one node to another, or as far as this client hears of it during the run,
 * which then begins anew too: it hears of it when a command for that slot is redirected, and otherwise within about a
 * minute. Keys that were moved from a node that comes later to one that was looked through may not be found, and nobody is
 * told. So do not sweep while slots are being moved, or sweep again.
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

#define BELAY_SWEEP_PATTERN_MAX ((size_t)1024)
#define BELAY_SWEEP_RESTARTS_MAX                                                                   \
  16 /**< how often a run begins anew; then it ends with BELAY_ELOST */

/** What a run has done. */
typedef struct belay_sweep_totals {
  uint64_t pages;   /**< that were answered */
  uint64_t scanned; /**< keys that the server was told to look at, which is about how many it did */
  uint64_t matched; /**< keys that were found, those that were found several times included */
  uint64_t deleted; /**< by this run, as far as is known: too few where an answer was lost */
  uint32_t restarts; /**< how often it began anew */
} belay_sweep_totals_t;

/** A page: n keys (at least 1) that were found, whole, with their namespace; before they are deleted, if they are to be:
 * who cancels or closes the sweep in it, keeps them. They are valid until the callback returns. */
typedef void (*belay_sweep_keys_cb)(belay_sweep_t *sweep, const belay_bytes_t *keys, size_t n);

/** One thing in the namespace that is held, where on_held is given; valid until the callback returns. A thing that changes
 * hands meanwhile may be told several times, or not, as keys are. */
typedef void (*belay_sweep_held_cb)(belay_sweep_t *sweep, const belay_held_t *held);

/** A page is done, and its keys are deleted, if they were to be. totals is valid until the callback returns. */
typedef void (*belay_sweep_progress_cb)(belay_sweep_t *sweep, const belay_sweep_totals_t *totals);

/** The run is over; another one may be started. totals is valid until the callback returns, whatever the status. status:
 *
 *   0                 everything was looked at; in a cluster, as far as no slot was moved that this client did not hear of
 *   BELAY_ECANCELED   belay_sweep_cancel(), or a close. What was under way may be executed all the same
 *   BELAY_ELOST       it had to begin anew too often
 *   BELAY_EPROTO      a reply was malformed, or larger than the client's max_reply although only a few keys were asked
 *                     for: one of the keys is as large
 *   another error     of the server or on the way to it: such as may pass (BELAY_EUNREACHABLE, BELAY_EUNKNOWN,
 *                     BELAY_ELOADING, BELAY_EBUSY, BELAY_ENOMEM ...) after patience_ms of it, others at once
 *
 * What was deleted stays so. */
typedef void (*belay_sweep_cb)(belay_sweep_t *sweep, int status,
                               const belay_sweep_totals_t *totals);

/** Options; belay_sweep_options_init() sets the defaults. */
typedef struct belay_sweep_options {
  /** What keys are to match behind NAMESPACE and the two colons, as of KEYS: * ? [a-z] [^a-z], and a backslash before
   * what stands for itself. Keys are FAMILY, the handle's name, and the key's in braces: limit::login::{*}; names
   * are escaped in them (`%`, braces, control bytes, and colons that could be taken for separators, are `%` and two
   * hexadecimal digits). Nothing outside of the namespace is ever found; a namespace of more parts that begins with
   * this one's is inside of it. 1 to BELAY_SWEEP_PATTERN_MAX bytes; copied. Must be given, unless on_held is: "*" is
   * everything */
  belay_bytes_t pattern;
  /** only keys of that type, such as "string" or "zset": 1 to 32 printable bytes without spaces; copied. NULL: of any */
  const char *type;
  bool remove; /**< deletes what is found; default false: it is only told */
  /** keys that are looked at, and keys that are deleted or asked about, in a second, both counted: 1 to 10,000,000; default 50,000 */
  uint32_t keys_per_s;
  /** keys that are looked at in one page: 1 to 10,000; default 1000. Fewer where a reply would be too large */
  uint32_t batch;
  /** for so long it goes on asking where it gets no answer, its rests before that not counted: 0 to 86,400,000; default
   * 60,000 */
  int64_t patience_ms;
  /** Tells what is held, rather than only keys: of each that is found and is that of a lock, of readers and writers, a
   * semaphore or an election of this namespace itself, and held, it is asked who holds it, and BELAY_HELD_LISTED_MAX of
   * those are told. Other keys are left out, also of on_keys and of the totals. Not with remove. A lock whose key was given
   * (belay_lock_options_t.key) is not found. Default: NULL */
  belay_sweep_held_cb on_held;
  belay_sweep_keys_cb on_keys;         /**< may be NULL */
  belay_sweep_progress_cb on_progress; /**< may be NULL */
  void *data;                          /**< belay_sweep_data() */
} belay_sweep_options_t;

BELAY_API void belay_sweep_options_init(belay_sweep_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_sweep_new(belay_client_t *client, const belay_sweep_options_t *options,
                              belay_sweep_t **out);

/** Begins a run, at the beginning; it keeps the loop alive. All of it may be sent again: to look does no harm, and nor
 * does deleting what is deleted.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (it runs), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_sweep_start(belay_sweep_t *sweep, belay_sweep_cb cb);

/** Ends a run, in any callback, with BELAY_ECANCELED. Returns 0, BELAY_EINVAL, BELAY_ESTATE (none runs, or it has
 * ended and is only not told yet), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_sweep_cancel(belay_sweep_t *sweep);

BELAY_API void *belay_sweep_data(const belay_sweep_t *sweep);

/** Runs once when belay_sweep_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_sweep_close_cb)(belay_sweep_t *sweep, void *data);

/** Ends it, in any callback: a run ends with BELAY_ECANCELED before that. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_sweep_close(belay_sweep_t *sweep, belay_sweep_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_SWEEP_H */

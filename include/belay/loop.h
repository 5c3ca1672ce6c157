/* belay_t: belay on one libuv loop. It is opened first and closed last. */
#ifndef BELAY_LOOP_H
#define BELAY_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "belay/bytes.h"
#include "belay/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Conventions of all headers.
 *
 * BYTES. Names, keys, items, values and messages are belay_bytes_t: a pointer and an exact length
 * (belay/bytes.h). belay_string("orders") makes one from a terminated string, belay_bytes(data,
 * len) from a buffer. A plain const char * without a length is a terminated string. Where bytes are
 * required (a name, an id, a fingerprint), a length of 0 is BELAY_EINVAL.
 *
 * TIMES. A name that ends with _ms is a time in milliseconds, in an int64_t. BELAY_DEFAULT and
 * BELAY_FOREVER (belay/export.h) are allowed where the comment says so.
 *
 * OPTIONS. Every options argument may be NULL for the defaults. Otherwise initialize the struct
 * with belay_X_options_init() and set the other values. Options are copied. A missing required
 * option is BELAY_EINVAL.
 *
 * CALLBACKS. An operation that returned 0 calls back exactly once. An operation that returned an
 * error never calls back. Callbacks run on the loop, never inside the function that started the
 * operation. A callback may call any function of belay, including the close of its handle, of its
 * client or of all. Exceptions are stated: the log function, the trace hook and the credentials
 * function must not call belay. Pointers that a callback receives are valid until it returns.
 *
 * CLOSING. Each belay_X_close(x, cb) calls cb(x, data) once, when x is gone. cb may be NULL. data
 * is the pointer that belay_X_data(x) returned last: options.data, or the argument of
 * belay_X_set_data() where that function exists. belay reads it before it frees x. In cb, x only
 * identifies the handle and must not be used. A close is allowed in any callback. Pending requests
 * of x end with BELAY_ECANCELED. */

struct uv_loop_s;

/** belay on one loop: memory, timers, log, and the clients of that loop. A program opens one per
 * loop. It belongs to the loop's thread: call every function that takes it, or an object made from
 * it, on that thread only. Two loops in two threads have two independent belay_t.
 *
 * @code
 * static void print_message(void *ctx, belay_log_level_t level, const char *message) {
 *   if (level <= BELAY_LOG_WARNING)
 *     fprintf((FILE *)ctx, "belay: %s\n", message);
 * }
 *
 * int open_belay(struct uv_loop_s *loop, belay_t **out) {
 *   belay_options_t options;
 *   belay_options_init(&options);
 *   options.log = print_message;
 *   options.log_ctx = stderr;
 *   return belay_open(loop, &options, out); // next: belay_connect() in belay/client.h
 * }
 * @endcode */
typedef struct belay belay_t;

/** Allocator of belay's memory. Called on the loop's thread only. Memory of hiredis, libuv and
 * OpenSSL does not come from it. */
typedef struct belay_allocator {
  void *(*alloc)(void *ctx, size_t size); /**< like malloc(); size is never 0 */
  void (*free)(void *ctx, void *ptr);     /**< like free(); ptr is never NULL */
  void *ctx;                              /**< first argument of alloc and free */
} belay_allocator_t;

/** Severity of a log message. */
typedef enum belay_log_level {
  BELAY_LOG_ERROR,   /**< an operator must act: a refused password, a key of another program */
  BELAY_LOG_WARNING, /**< a fault that belay handles */
  BELAY_LOG_INFO,    /**< connections that open and close */
  BELAY_LOG_DEBUG    /**< all other messages */
} belay_log_level_t;

/** Receives one log message, without a line end. The text is valid until the function returns, and
 * never contains secrets. Runs on the loop or inside a function of belay. It must not call
 * belay. */
typedef void (*belay_log_fn)(void *ctx, belay_log_level_t level, const char *message);

/** Options; belay_options_init() sets the defaults. */
typedef struct belay_options {
  belay_allocator_t allocator; /**< default: malloc() and free() */
  belay_log_fn log;            /**< log function; default NULL: nothing is logged */
  void *log_ctx;               /**< first argument of log; default NULL */
  /** Rate of attempts to reconnect, per second, of all clients of the loop together: 1 to
   * 1,000,000; default 200. A fifth of a second's attempts may come at once. It bounds attempts
   * after a connection was lost or could not be made.
   *
   * The rates of several processes add up: four of them make at most 960 attempts in one second at
   * a server that was just promoted. Also counted, at the first attempt already, in a cluster: a
   * server that takes over from another one, and a server that only a redirection has named. A
   * client keeps at most 16 such servers until a map of the cluster names them. */
  uint32_t reconnects_per_s;
} belay_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_options_init(belay_options_t *options);

/** Open belay on a loop. On error *out is NULL.
 *
 * belay adds a few handles to the loop. They keep the loop alive only
 *
 *   - while an operation is pending;
 *   - while an object is held that belay_lock_ref() or a similar function was called for;
 *   - while an undo runs in the background, for about the close_timeout_ms of its client.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM or BELAY_ESYSTEM. */
BELAY_API int belay_open(struct uv_loop_s *loop, const belay_options_t *options, belay_t **out);

/** Runs once when the belay_t is gone; see CLOSING above. */
typedef void (*belay_close_cb)(belay_t *belay, void *data);

/** Close all objects that were made from belay, then belay itself; then cb runs (NULL is allowed).
 * Exception: a belay_tls_t must be closed by belay_tls_close(). Clients are closed as by
 * belay_client_close(), so this takes up to the largest close_timeout_ms among them. After cb all
 * memory is freed, and no handle of belay is left in the loop.
 *
 * A program may close all handles of its loop itself (uv_walk), before or after this call. Then
 * call belay_close() after that, a second time if necessary, and run the loop once more. The second
 * call returns 0. Pending operations then end with BELAY_ECANCELED, and their callbacks run before
 * cb. Leases stay on the server for the rest of their ttl.
 *
 * Returns 0, BELAY_EINVAL (NULL), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_close(belay_t *belay, belay_close_cb cb);

/** Set the pointer that belay_data() returns. */
BELAY_API void belay_set_data(belay_t *belay, void *data);
/** Return the last pointer given to belay_set_data(); NULL if there is none. */
BELAY_API void *belay_data(const belay_t *belay);

/** Return details of the last error, as text:
 *
 *   after a function returned BELAY_EINVAL or BELAY_EURL
 *       the name of the option, argument or part of the URL, and the reason
 *   in a callback with an error of a server or a connection
 *       the address of the server, and its message or the cause of the lost connection. Arguments
 *       of commands that the server repeats are hidden. Bytes that are not printable are \\xNN
 *
 * In all other cases, such as a denial, it is "". Exception: belay_request_cancel() does not change
 * it when it returns BELAY_ESTATE. The text is valid until the next call that takes
 * a handle, a client or this belay_t. belay_strerror() and the other functions of belay/error.h do
 * not change it. */
BELAY_API const char *belay_detail(const belay_t *belay);

/** Statistics of one belay_t, since it was opened. */
typedef struct belay_stats {
  /** Longest time for which the loop did not serve belay, in nanoseconds: the largest delay of a
   * timer, or the longest time between two polls of the loop. */
  uint64_t max_gap_ns;
  uint64_t wakeups;      /**< number of times that the loop has called belay */
  uint64_t callbacks;    /**< number of tasks that have run user callbacks */
  uint64_t allocations;  /**< successful calls of allocator.alloc; not that of the belay_t */
  uint64_t memory_bytes; /**< present memory from the allocator, in bytes, without the belay_t */
} belay_stats_t;

/** Read the statistics. */
BELAY_API void belay_stats(const belay_t *belay, belay_stats_t *out);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_LOOP_H */

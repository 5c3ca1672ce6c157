/* belay on a libuv loop: what is opened first and closed last. */
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
 * (belay/bytes.h). belay_string("orders") makes one of a terminated string, belay_bytes(data, len)
 * one of a buffer. A plain const char * without a length is a terminated string. Where some bytes
 * must be given (a name, an id, a fingerprint), a length of 0 is BELAY_EINVAL.
 *
 * TIMES are milliseconds in an int64_t where the name ends with _ms. BELAY_DEFAULT and
 * BELAY_FOREVER (belay/export.h) are allowed where the comment says so.
 *
 * OPTIONS. Every options argument may be NULL: that means the defaults. Where an option must be
 * given (its comment says so) the function then returns BELAY_EINVAL, and belay_detail() names the
 * option. Otherwise initialize the options with belay_X_options_init(), and set what differs.
 * Options are copied.
 *
 * CLOSING. Each belay_X_close(x, cb) calls back once, when x is gone: cb(x, data). data is what
 * belay_X_data(x) returned last: options.data, or the argument of belay_X_set_data() where there is
 * one. belay reads it before it frees x. The pointer x only tells which handle it was. cb may be
 * NULL. */

struct uv_loop_s;

/** belay's side of one loop. One for each loop; it belongs to that loop's thread, and every function
 * that takes it, or anything that was made from it, is called on that thread only. Two loops in two
 * threads are two of these, which share nothing. */
typedef struct belay belay_t;

/** Memory. Called on the loop's thread only. What hiredis, libuv and OpenSSL allocate does not pass here. */
typedef struct belay_allocator {
  void *(*alloc)(void *ctx, size_t size); /**< as malloc; size is never 0 */
  void (*free)(void *ctx, void *ptr);     /**< as free; ptr is never NULL */
  void *ctx;                              /**< handed to both */
} belay_allocator_t;

/** How much a message matters. */
typedef enum belay_log_level {
  BELAY_LOG_ERROR,   /**< something that a person should mend: a refused password, a foreign key */
  BELAY_LOG_WARNING, /**< something went wrong and is being dealt with */
  BELAY_LOG_INFO,    /**< connections that come and go */
  BELAY_LOG_DEBUG    /**< everything else */
} belay_log_level_t;

/** A line for the log, without a line end; valid until the function returns. Secrets never appear in
 * it. It must not call into belay. */
typedef void (*belay_log_fn)(void *ctx, belay_log_level_t level, const char *message);

/** Options of belay_open(). */
typedef struct belay_options {
  belay_allocator_t allocator; /**< default: malloc and free */
  belay_log_fn log;            /**< default: NULL, nothing is logged */
  void *log_ctx;               /**< handed to log */
  /** connections that were lost, or were not to be had, are tried again at most so often a second, all clients
   * together; a fifth of a second's may come at once. Default 200; 1 to 1,000,000. Processes add up: four of them knock
   * at a server that has just been promoted at most 960 times in a second. A server of a cluster that takes over from
   * another one counts the first time too, and so does one that only a redirection has named, of which a client knows at
   * most 16 at a time until a map names them */
  uint32_t reconnects_per_s;
} belay_options_t;

/** Fills in the defaults. */
BELAY_API void belay_options_init(belay_options_t *options);

/** Opens belay on a loop. options may be NULL. On error *out is NULL.
 *
 * It adds a handful of handles to the loop; they keep the loop alive only while an operation is
 * pending, while something that was asked to (belay_lock_ref()) is held, and for about the client's
 * close_timeout_ms while something is being undone.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM or BELAY_ESYSTEM. */
BELAY_API int belay_open(struct uv_loop_s *loop, const belay_options_t *options, belay_t **out);

/** Runs once when belay_close() is through. data: see CLOSING above. */
typedef void (*belay_close_cb)(belay_t *belay, void *data);

/** Closes everything that was made from it (but a belay_tls_t: see belay_tls_close()), then itself, and calls back (cb may be NULL). Clients are
 * closed as belay_client_close() says, so this takes as long as the longest close_timeout among them.
 * After the callback the memory is gone, and uv_loop_close() finds nothing of belay's.
 *
 * A host that closes every handle of its loop by itself (uv_walk) may do so before or after this call.
 * belay's handles being among those, nothing can call back from then on: call belay_close() afterwards
 * (again, if it had been called before; it returns 0 then) and run the loop once more. What was held
 * stays on the server for the rest of its ttl.
 *
 * Returns 0, BELAY_EINVAL (NULL), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_close(belay_t *belay, belay_close_cb cb);

/** A pointer of the caller's own. */
BELAY_API void belay_set_data(belay_t *belay, void *data);
BELAY_API void *belay_data(const belay_t *belay);

/** Details of the last error, as text:
 *
 *   after a function returned BELAY_EINVAL or BELAY_EURL
 *       the name of the option, argument or part of the URL, and the reason
 *   in a callback with an error of a server or a connection
 *       the server's place and its own words, or the cause of the lost connection; arguments of
 *       commands that the server repeats are hidden, and bytes that are not printable are \\xNN
 *
 * "" in all other cases, such as a denial. Valid until the next call that takes a handle, a client
 * or this belay_t; belay_strerror() and the other functions of belay/error.h leave it as it is. */
BELAY_API const char *belay_detail(const belay_t *belay);

/** Figures of one belay_t. */
typedef struct belay_stats {
  /** the longest the loop has been away: the latest that a deadline was served, or the longest
   * stretch between two polls */
  uint64_t max_gap_ns;
  uint64_t wakeups;      /**< how often the loop entered belay */
  uint64_t callbacks;    /**< deferred completions that were run */
  uint64_t allocations;  /**< calls of allocator.alloc */
  uint64_t memory_bytes; /**< bytes that are allocated through the allocator now */
} belay_stats_t;

BELAY_API void belay_stats(const belay_t *belay, belay_stats_t *out);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_LOOP_H */

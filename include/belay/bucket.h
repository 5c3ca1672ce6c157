/* Token buckets that programs refill, not the clock. */
#ifndef BELAY_BUCKET_H
#define BELAY_BUCKET_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Buckets of one capacity: any number of them, each with its own key. A fetch takes tokens out. An
 * add puts tokens in and names the index of this filling: of several programs that add with the
 * same index, exactly one succeeds.
 *
 * Use it if a program decides when tokens arrive; a belay_refiller_t adds them at intervals
 * (belay/refiller.h). If tokens arrive by the clock alone, use a limiter (belay/limiter.h).
 *
 * All programs that share a bucket should use the same capacity and the same value of `full`.
 * Tokens above a program's capacity do not count for that program, and are removed when it fetches.
 *
 * @code
 * static void on_fetched(belay_request_t *request, int status, const belay_bucket_state_t *state) {
 *   (void)request;
 *   if (status != 0)
 *     fprintf(stderr, "not known: %s\n", belay_strerror(status));
 *   else
 *     printf(state->applied ? "go ahead\n" : "the bucket is empty\n");
 * }
 *
 * int send_mail(belay_bucket_t *bucket, belay_request_t *request) {
 *   return belay_bucket_fetch(bucket, request, belay_string("mails"), 1, on_fetched);
 * }
 * @endcode */
typedef struct belay_bucket belay_bucket_t;

#define BELAY_BUCKET_KEY_MAX ((size_t)1024)             /**< bytes of a key */
#define BELAY_BUCKET_TOKENS_MAX (INT64_C(1) << 52)      /**< largest capacity, in tokens */
#define BELAY_BUCKET_INDEX_MAX ((INT64_C(1) << 53) - 1) /**< largest index; adds end there */

/** Options; belay_bucket_options_init() sets the defaults. */
typedef struct belay_bucket_options {
  /** Name of the buckets, 0 to 128 bytes; copied. It is part of the keys:
   * NAMESPACE::bucket::NAME::{KEY}. Default: no name. */
  belay_bytes_t name;
  /** Capacity of each bucket, in tokens: 1 to BELAY_BUCKET_TOKENS_MAX. Required. */
  int64_t capacity;
  /** true if a bucket that does not exist counts as full. Default false: it counts as empty. */
  bool full;
  /** Lifetime of the tokens after the last fetch or add that changed them, in milliseconds: 1,000
   * to 31,536,000,000. Then the bucket does not exist any more. Default 3,600,000, an hour. */
  int64_t idle_ms;
  /** Lifetime of the index after the last filling, in milliseconds: idle_ms to 31,536,000,000. Use
   * many periods. It is kept longer if the add may be retried for longer. Default 86,400,000, a
   * day. */
  int64_t index_ms;
  /** Pointer of the caller, returned by belay_bucket_data(). Default NULL. */
  void *data;
} belay_bucket_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_bucket_options_init(belay_bucket_options_t *options);

/** Make a handle. It sends nothing to the server.
 *
 * Returns 0, BELAY_EINVAL (belay_detail() names the option), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_bucket_new(belay_client_t *client, const belay_bucket_options_t *options,
                               belay_bucket_t **out);

/** State of a bucket. If status is not 0, tokens and index are -1. */
typedef struct belay_bucket_state {
  /** true if a fetch, add or delete was done. false for a read. */
  bool applied;
  /** Tokens in the bucket now, 0 to capacity. -1: not known. */
  int64_t tokens;
  /** Index of the next filling. 0: there was no filling, or the index was forgotten. -1: not
   * known. */
  int64_t index;
} belay_bucket_state_t;

/** Receives the result of an operation; see CALLBACKS in belay/request.h. status:
 *
 *   0                    the server answered
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent and not answered; it may have been executed. Of an add also: it was
 *                        retried, and the index has changed, so it is not known which add changed
 *                        it; belay_bucket_read() returns the next index
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EMISMATCH      a key holds a value that is not a number of tokens, or not an index
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE */
typedef void (*belay_bucket_cb)(belay_request_t *request, int status,
                                const belay_bucket_state_t *state);

/* ---- operations ----
 *
 * Each function returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY,
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not run. A key has
 * 1 to BELAY_BUCKET_KEY_MAX bytes; it is copied. */

/** Take `tokens` (1 to capacity) out of the bucket, or none: state->applied is true if they were
 * taken. It leaves no key whose content equals that of a bucket that does not exist. Not
 * retried. */
BELAY_API int belay_bucket_fetch(belay_bucket_t *bucket, belay_request_t *request,
                                 belay_bytes_t key, int64_t tokens, belay_bucket_cb cb);

/** Put up to `tokens` (1 to capacity) into the bucket, as many as fit, and set the index to index +
 * 1. If the bucket has another index, nothing is done: state->applied is false and state->index is
 * the index of the bucket.
 *
 * index: 0 to BELAY_BUCKET_INDEX_MAX - 1. An add to a full bucket is applied too. Retried if the
 * reply is lost, because no index is added twice. */
BELAY_API int belay_bucket_add(belay_bucket_t *bucket, belay_request_t *request, belay_bytes_t key,
                               int64_t tokens, int64_t index, belay_bucket_cb cb);

/** Read the state of a bucket. It writes nothing. Retried if the reply is lost. */
BELAY_API int belay_bucket_read(belay_bucket_t *bucket, belay_request_t *request, belay_bytes_t key,
                                belay_bucket_cb cb);

/** Delete tokens and index of a bucket, whatever the keys hold. state->applied is true if there
 * were any; the rest of the state is that of a bucket that does not exist. Not retried. */
BELAY_API int belay_bucket_delete(belay_bucket_t *bucket, belay_request_t *request,
                                  belay_bytes_t key, belay_bucket_cb cb);

/** Return options.data. */
BELAY_API void *belay_bucket_data(const belay_bucket_t *bucket);

/** Runs when belay_bucket_close() has completed; see CLOSING in belay/loop.h. */
typedef void (*belay_bucket_close_cb)(belay_bucket_t *bucket, void *data);

/** Close the handle. Allowed inside any callback. Pending requests end with BELAY_ECANCELED, and
 * its refillers close too. Buckets stay on the server. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_bucket_close(belay_bucket_t *bucket, belay_bucket_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_BUCKET_H */

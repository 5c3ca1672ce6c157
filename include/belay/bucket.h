/* A refilled bucket: tokens that somebody puts in, not the clock. */
#ifndef BELAY_BUCKET_H
#define BELAY_BUCKET_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Buckets of one capacity, any number of them, each with a key of its own. Who fetches takes tokens out; who adds (a
 * belay_refiller_t, or anybody) puts tokens in, and says the index of this filling, so that of many who say the same
 * one adds. All who share a bucket should say the same capacity, and the same of one that is not there: what is over
 * somebody's capacity does not count for him, and is gone when he fetches.
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
 * static int begin(belay_bucket_t *bucket, belay_request_t *request) {
 *   return belay_bucket_fetch(bucket, request, belay_string("mails"), 1, on_fetched);
 * }
 * @endcode */
typedef struct belay_bucket belay_bucket_t;

#define BELAY_BUCKET_KEY_MAX ((size_t)1024)
#define BELAY_BUCKET_TOKENS_MAX (INT64_C(1) << 52)      /**< the largest capacity */
#define BELAY_BUCKET_INDEX_MAX ((INT64_C(1) << 53) - 1) /**< where adding ends */

/** Options; belay_bucket_options_init() sets the defaults. */
typedef struct belay_bucket_options {
  /** Part of the keys, NAMESPACE::bucket::NAME::{KEY}; at most 128 bytes; copied. */
  belay_bytes_t name;
  int64_t capacity; /**< 1 to BELAY_BUCKET_TOKENS_MAX; must be given */
  bool full;        /**< a bucket that is not there counts as full; default false: as empty */
  /** The tokens are forgotten when nothing was fetched and nothing could be added for so long, and then are those of a
   * bucket that is not there: 1,000 to 31,536,000,000; default an hour. */
  int64_t idle_ms;
  /** The index is kept for so long after the last filling, or for as long as that may be sent again, if it is longer:
   * idle_ms to 31,536,000,000, many periods; default a day. */
  int64_t index_ms;
  void *data; /**< belay_bucket_data() */
} belay_bucket_options_t;

BELAY_API void belay_bucket_options_init(belay_bucket_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_bucket_new(belay_client_t *client, const belay_bucket_options_t *options,
                               belay_bucket_t **out);

/** How a bucket stands. If status is not 0, tokens and index are -1. */
typedef struct belay_bucket_state {
  bool applied;   /**< of fetch, add, delete: it was done; false of read */
  int64_t tokens; /**< that are there now, 0 to capacity */
  int64_t index;  /**< of the next filling; 0: there was none, or it was forgotten */
} belay_bucket_state_t;

/** A callback of the shape of belay/request.h. status:
 *
 *   0                    the server answered
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, and not answered: it may have been executed. Neither a fetch nor a delete is sent again.
 *                        An add is, until its deadline, since no index is added twice; if the index is another one by
 *                        then, it is not known who stepped it, and that is this error too: belay_bucket_read() tells
 *                        the next index. A read is sent again
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EMISMATCH      what the keys hold is no number of tokens, or no index
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE */
typedef void (*belay_bucket_cb)(belay_request_t *request, int status,
                                const belay_bucket_state_t *state);

/* All that follow return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. A key has 1 to BELAY_BUCKET_KEY_MAX bytes; it is copied. */

/** Takes `tokens` (1 to capacity) out, or none: applied says which. Leaves no key behind that says no more than its
 * absence would. */
BELAY_API int belay_bucket_fetch(belay_bucket_t *bucket, belay_request_t *request,
                                 belay_bytes_t key, int64_t tokens, belay_bucket_cb cb);

/** Puts up to `tokens` (1 to capacity) in, as many as there is room for, and steps the index from `index` to index + 1;
 * unless the index is another one: then nothing is done, applied is false, and state->index says which. index:
 * 0 to BELAY_BUCKET_INDEX_MAX - 1. An add to a full bucket is applied too. */
BELAY_API int belay_bucket_add(belay_bucket_t *bucket, belay_request_t *request, belay_bytes_t key,
                               int64_t tokens, int64_t index, belay_bucket_cb cb);

/** How it stands. Writes nothing. */
BELAY_API int belay_bucket_read(belay_bucket_t *bucket, belay_request_t *request, belay_bytes_t key,
                                belay_bucket_cb cb);

/** Forgets tokens and index, whatever the keys hold; applied says whether there was anything. */
BELAY_API int belay_bucket_delete(belay_bucket_t *bucket, belay_request_t *request,
                                  belay_bytes_t key, belay_bucket_cb cb);

BELAY_API void *belay_bucket_data(const belay_bucket_t *bucket);

/** Runs once when belay_bucket_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_bucket_close_cb)(belay_bucket_t *bucket, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED; its refillers close with it. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_bucket_close(belay_bucket_t *bucket, belay_bucket_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_BUCKET_H */

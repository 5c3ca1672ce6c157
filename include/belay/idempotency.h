/* Idempotency records: a request that comes several times is processed once. */
#ifndef BELAY_IDEMPOTENCY_H
#define BELAY_IDEMPOTENCY_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Records, each under a key that the sender of a request has chosen: an Idempotency-Key, the id of a message. Who
 * begins one processes the request, finishes the record with the result, and everybody who begins it later is told that
 * result, for as long as it is kept. Who does not finish in time loses it to the next who begins. All times are by the
 * server's clock.
 *
 *   nothing --begin--> PROCESSING(token, until) --finish--> DONE(result), for ttl_ms
 *                        ^      |            |
 *                        |      |            +--abandon--> ABANDONED --begin--> PROCESSING(another token)
 *                        |      v
 *                        +--begin, after `until`: TAKEN_OVER(another token)
 *
 * It is done once as far as the record goes: who was taken over may still be at work. His finish is refused; what he
 * does elsewhere is not. And a record that is lost, by eviction or with the server that had it, is one of a request that
 * never came.
 *
 * @code
 * static void on_payment(belay_request_t *request, int status,
 *                        const belay_idempotency_state_t *state) {
 *   belay_idempotency_token_t *mine = request->data;
 *   if (status != 0)
 *     printf("come again: %s\n", belay_strerror(status));
 *   else if (state->outcome == BELAY_IDEMPOTENCY_DONE)
 *     printf("as before: %.*s\n", (int)state->result_len, (const char *)state->result);
 *   else if (state->outcome == BELAY_IDEMPOTENCY_IN_PROGRESS)
 *     printf("come again in %lld ms\n", (long long)state->remaining_ms);
 *   else
 *     *mine = state->token; // pay, then belay_idempotency_finish()
 * }
 *
 * static int pay_once(belay_idempotency_t *payments, belay_request_t *request, belay_bytes_t key,
 *                     const char *hash) {
 *   return belay_idempotency_begin(payments, request, key, belay_bytes(hash, 32), 30000,
 *                                  on_payment);
 * }
 * @endcode */
typedef struct belay_idempotency belay_idempotency_t;

#define BELAY_IDEMPOTENCY_KEY_MAX ((size_t)1024)
#define BELAY_IDEMPOTENCY_FINGERPRINT_MAX ((size_t)64)
#define BELAY_IDEMPOTENCY_RESULT_MAX ((size_t)1 << 20)
#define BELAY_IDEMPOTENCY_OWNER_MAX ((size_t)64)

/** Options; belay_idempotency_options_init() sets the defaults. */
typedef struct belay_idempotency_options {
  /** part of the keys, NAMESPACE::idempotency::NAME::{KEY}; at most 128 bytes; copied */
  belay_bytes_t name;
  /** true if keys are exact ones: neither namespace nor name is a part of them. Default false */
  bool exact_keys;
  /** For how long who begins may process, where nothing else is said: 1 to 86,400,000; default 30,000. */
  int64_t deadline_ms;
  /** For how long a result is kept, where nothing else is said: 1,000 to 31,536,000,000; default a day. */
  int64_t ttl_ms;
  /** For how long a record is kept that was abandoned, or was not finished, from its deadline on, in
   * milliseconds: 1,000 to 31,536,000,000; default an hour. In this time the next begin is told that
   * others have tried, and must have the same fingerprint.
   *
   * A record is kept for at least as long as its begin, extend or abandon may be sent again:
   * timeout_ms of the request, plus 1 %, plus 2 ms. With the default timeout_ms of 2,000 that is
   * 2,022 ms, also where grace_ms is less. A request with a shorter timeout_ms allows less. */
  int64_t grace_ms;
  void *data; /**< belay_idempotency_data() */
} belay_idempotency_options_t;

BELAY_API void belay_idempotency_options_init(belay_idempotency_options_t *options);

/** Sends nothing. Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_idempotency_new(belay_client_t *client,
                                    const belay_idempotency_options_t *options,
                                    belay_idempotency_t **out);

/** Who has begun a record: random, another one each time. It may be handed to another process, which then extends,
 * finishes or abandons. */
typedef struct belay_idempotency_token {
  unsigned char bytes[20]; /**< never shown to anybody else */
} belay_idempotency_token_t;

/** How a record stands. */
typedef enum belay_idempotency_outcome {
  BELAY_IDEMPOTENCY_UNKNOWN = -1, /**< status says why it is not known */
  BELAY_IDEMPOTENCY_ABSENT,       /**< there is none */
  BELAY_IDEMPOTENCY_STARTED,      /**< it is yours: process the request */
  BELAY_IDEMPOTENCY_TAKEN_OVER,   /**< the same; somebody had begun, and his deadline has passed */
  /** Somebody processes it. With remaining_ms 0 his deadline has passed, and who begins takes it over. */
  BELAY_IDEMPOTENCY_IN_PROGRESS,
  BELAY_IDEMPOTENCY_DONE,     /**< here is the result */
  BELAY_IDEMPOTENCY_ABANDONED /**< who processed it has given it back, and nobody has begun since */
} belay_idempotency_outcome_t;

/** What an operation is told. */
typedef struct belay_idempotency_state {
  belay_idempotency_outcome_t outcome; /**< how it stands now */
  belay_idempotency_token_t token;     /**< of a begin, STARTED or TAKEN_OVER: yours; else 0 */
  int64_t attempt; /**< how many have begun it, the last of them included; 0 if it is absent */
  /** STARTED, TAKEN_OVER: it is certainly yours for so long from when the callback began, unless the server's clock steps
   * forward; counted from before the request was sent. 0 if the answer was long in coming: extend it before anything
   * else. IN_PROGRESS: until it can be taken over. DONE: for how long the
   * result is kept; -1: somebody has made that for ever. Else 0. */
  int64_t remaining_ms;
  const char *
      owner; /**< the label (belay_client_options_t) of who has it or had it last; "" if it is absent */
  const void *result; /**< DONE, unless you have just brought it yourself: its bytes; else NULL */
  size_t result_len;  /**< of it */
  bool existed;       /**< belay_idempotency_forget(): there was something */
} belay_idempotency_state_t;

/** A callback of the shape of belay/request.h, but state is valid with BELAY_ENOTOWNER too. With other errors
 * state->outcome is BELAY_IDEMPOTENCY_UNKNOWN, and state->owner is "". status:
 *
 *   0                    the server answered
 *   BELAY_ENOTOWNER      of extend, finish, abandon: nothing was done, since it is not, or no longer, that token's.
 *                        state tells what has become of it, with the result if there is one. Of an extend that was
 *                        sent again: nothing the last time
 *   BELAY_EMISMATCH      of begin: the record is of a request with another fingerprint, which is a mistake of whoever
 *                        chose the key, and nothing of it is told; of all: what the key holds is no record
 *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
 *   BELAY_EUNKNOWN       sent, and not answered in time: it may have been executed. All but a forget are sent again
 *                        until their deadline, and what has run twice has the same effect and the same answer; or it is
 *                        this, also in time: of an abandon, if somebody may have begun since the first one; of a
 *                        finish, if there is no record any more. A begin that ends so is given back in the
 *                        background, as one that is canceled
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE */
typedef void (*belay_idempotency_cb)(belay_request_t *request, int status,
                                     const belay_idempotency_state_t *state);

/* All that follow return 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. A key has 1 to BELAY_IDEMPOTENCY_KEY_MAX bytes; what they are given is copied. */

/** Begins, or tells who was first: STARTED, TAKEN_OVER, IN_PROGRESS or DONE. fingerprint: at most
 * BELAY_IDEMPOTENCY_FINGERPRINT_MAX bytes that tell this request from another one with the same key; of a long request
 * a hash, such as SHA-256; an absent or empty fingerprint is one too. deadline_ms: 1 to 86,400,000; 0 or BELAY_DEFAULT: the option's.
 *
 * A begin whose callback does not run with 0 may have begun all the same: canceled, closed, not answered. It is then
 * abandoned in the background, for as long as the client's timeout_ms (a close waits for that, at most its
 * close_timeout_ms). If that fails too (the server cannot be reached, the process ends, a copy of it was on a broken
 * connection and is executed after its owner has gone) a record is left that nobody processes: the next ones are told
 * IN_PROGRESS until deadline_ms have passed, and TAKEN_OVER then. Nothing that was done is ever undone by that. Also
 * BELAY_ESYSTEM: no random bytes. */
BELAY_API int belay_idempotency_begin(belay_idempotency_t *records, belay_request_t *request,
                                      belay_bytes_t key, belay_bytes_t fingerprint,
                                      int64_t deadline_ms, belay_idempotency_cb cb);

/** It is that token's for at least deadline_ms (1 to 86,400,000; 0 or BELAY_DEFAULT: the option's) from now; never
 * shorter than before. Also after its deadline, as long as the record is kept (grace_ms) and nobody
 * has taken it over: STARTED or TAKEN_OVER, as it began. */
BELAY_API int belay_idempotency_extend(belay_idempotency_t *records, belay_request_t *request,
                                       belay_bytes_t key, const belay_idempotency_token_t *token,
                                       int64_t deadline_ms, belay_idempotency_cb cb);

/** What a finished operation leaves in its record. */
typedef struct belay_idempotency_finish {
  belay_bytes_t result; /**< 0 to BELAY_IDEMPOTENCY_RESULT_MAX bytes */
  /** Time that the record is kept, in milliseconds, 1,000 to 31,536,000,000. 0 or BELAY_DEFAULT: options.ttl_ms. */
  int64_t ttl_ms;
} belay_idempotency_finish_t;

/** Stores the result: the record is DONE, and is kept for finish->ttl_ms, or for as long as this call may be sent again if
 * that is longer. A finish after the deadline succeeds while the record is kept (grace_ms), unless another client has
 * taken it over. A second finish with the same token and the same result succeeds; with another result it is
 * BELAY_ENOTOWNER. The result has at most half of the client's max_reply bytes: all clients that share records should have
 * the same max_reply. */
BELAY_API int belay_idempotency_finish(belay_idempotency_t *records, belay_request_t *request,
                                       belay_bytes_t key, const belay_idempotency_token_t *token,
                                       const belay_idempotency_finish_t *finish,
                                       belay_idempotency_cb cb);

/** Gives it back, since it could not be processed: ABANDONED for grace_ms; the next who begins
 * starts at once. */
BELAY_API int belay_idempotency_abandon(belay_idempotency_t *records, belay_request_t *request,
                                        belay_bytes_t key, const belay_idempotency_token_t *token,
                                        belay_idempotency_cb cb);

/** How it stands, whatever its fingerprint: ABSENT, IN_PROGRESS, DONE or ABANDONED. Writes nothing. */
BELAY_API int belay_idempotency_read(belay_idempotency_t *records, belay_request_t *request,
                                     belay_bytes_t key, belay_idempotency_cb cb);

/** Forgets it, whatever the key holds, also one that is being processed, whose owner is not told: ABSENT. Not sent
 * again, since somebody may begin meanwhile. */
BELAY_API int belay_idempotency_forget(belay_idempotency_t *records, belay_request_t *request,
                                       belay_bytes_t key, belay_idempotency_cb cb);

BELAY_API void *belay_idempotency_data(const belay_idempotency_t *records);

/** Runs once when belay_idempotency_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_idempotency_close_cb)(belay_idempotency_t *records, void *data);

/** Ends the handle, in any callback: what is pending ends with BELAY_ECANCELED, and what may have been begun by it is
 * given back before cb runs. Records stay. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_idempotency_close(belay_idempotency_t *records, belay_idempotency_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_IDEMPOTENCY_H */

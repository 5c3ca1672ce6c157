/* Idempotency records: a request that arrives several times is processed once. */
#ifndef BELAY_IDEMPOTENCY_H
#define BELAY_IDEMPOTENCY_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Idempotency records, each under a key that the sender of a request has chosen, such as an
 * Idempotency-Key header or a message id. The first client that begins a record processes the
 * request, and finishes the record with the result. Clients that begin it later get that result, as
 * long as the record is kept.
 *
 * Use it if a repeated request must get the result of the first one. To drop duplicates without a
 * result, use belay/dedup.h. For exclusive access without a result, use belay/lock.h.
 *
 *   absent --begin--> PROCESSING(token, deadline) --finish--> DONE(result), for ttl_ms
 *                        ^      |            |
 *                        |      |            +--abandon--> ABANDONED --begin--> PROCESSING
 *                        |      v
 *                        +--begin after the deadline: TAKEN_OVER(new token)
 *
 * All times are by the server's clock. Limits of the guarantee:
 *
 *   - A client whose record was taken over may still be at work. Its finish is refused; its other
 *     effects are not.
 *   - If a record is lost, by eviction or with its server, the request counts as one that never
 *     arrived.
 *
 * @code
 * static void on_begin(belay_request_t *request, int status,
 *                      const belay_idempotency_state_t *state) {
 *   belay_idempotency_token_t *mine = request->data;
 *   if (status != 0)
 *     printf("try again: %s\n", belay_strerror(status));
 *   else if (state->outcome == BELAY_IDEMPOTENCY_DONE)
 *     printf("as before: %.*s\n", (int)state->result_len, (const char *)state->result);
 *   else if (state->outcome == BELAY_IDEMPOTENCY_IN_PROGRESS)
 *     printf("try again in %lld ms\n", (long long)state->remaining_ms);
 *   else
 *     *mine = state->token; // STARTED or TAKEN_OVER: pay, then belay_idempotency_finish()
 * }
 *
 * int pay_once(belay_idempotency_t *payments, belay_request_t *request, belay_bytes_t key,
 *              belay_bytes_t hash) {
 *   return belay_idempotency_begin(payments, request, key, hash, 30000, on_begin);
 * }
 * @endcode */
typedef struct belay_idempotency belay_idempotency_t;

#define BELAY_IDEMPOTENCY_KEY_MAX ((size_t)1024)       /**< bytes of a key */
#define BELAY_IDEMPOTENCY_FINGERPRINT_MAX ((size_t)64) /**< bytes of a fingerprint */
#define BELAY_IDEMPOTENCY_RESULT_MAX ((size_t)1 << 20) /**< bytes of a result */
#define BELAY_IDEMPOTENCY_OWNER_MAX ((size_t)64)       /**< bytes of an owner's label */

/** Options; belay_idempotency_options_init() sets the defaults. */
typedef struct belay_idempotency_options {
  /** Name of the records, 0 to 128 bytes; copied. It is part of the keys:
   * NAMESPACE::idempotency::NAME::{KEY}. Default: no name. */
  belay_bytes_t name;
  /** true if keys are exact: the key on the server is the key of the call, without namespace and
   * name. Default false. */
  bool exact_keys;
  /** Time to process a request, for calls with deadline_ms 0, in milliseconds: 1 to 86,400,000.
   * Default 30,000. */
  int64_t deadline_ms;
  /** Lifetime of a result, for finishes with ttl_ms 0, in milliseconds: 1,000 to 31,536,000,000.
   * Default 86,400,000, a day. */
  int64_t ttl_ms;
  /** Lifetime of a record that was abandoned, or that was not finished, after its deadline, in
   * milliseconds: 1,000 to 31,536,000,000. Default 3,600,000, an hour. Until then the next begin
   * learns that there were earlier attempts (state.attempt), and must have the same fingerprint.
   *
   * A record is kept at least as long as its begin, extend or abandon may be retried: timeout_ms of
   * the request, plus 1 %, plus 2 ms. With the default timeout_ms of 2,000 that is 2,022 ms, even
   * if grace_ms is less. */
  int64_t grace_ms;
  /** Pointer of the caller, returned by belay_idempotency_data(). Default NULL. */
  void *data;
} belay_idempotency_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_idempotency_options_init(belay_idempotency_options_t *options);

/** Make a handle, without the server. Returns 0, BELAY_EINVAL (belay_detail() names the option),
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_idempotency_new(belay_client_t *client,
                                    const belay_idempotency_options_t *options,
                                    belay_idempotency_t **out);

/** Proof that a client has begun a record; random, different for each begin. It may be passed to
 * another process, which can then extend, finish or abandon the record. Keep it secret. */
typedef struct belay_idempotency_token {
  unsigned char bytes[20]; /**< random bytes */
} belay_idempotency_token_t;

/** State of a record. */
typedef enum belay_idempotency_outcome {
  BELAY_IDEMPOTENCY_UNKNOWN = -1, /**< not known; status is the reason */
  BELAY_IDEMPOTENCY_ABSENT,       /**< there is no record */
  BELAY_IDEMPOTENCY_STARTED,      /**< the caller has the record: process the request */
  /** The caller has the record: process the request. Another client had begun it, and its deadline
   * has passed. */
  BELAY_IDEMPOTENCY_TAKEN_OVER,
  /** Another client processes the request. If remaining_ms is 0, its deadline has passed, and the
   * next begin takes the record over. */
  BELAY_IDEMPOTENCY_IN_PROGRESS,
  BELAY_IDEMPOTENCY_DONE,     /**< the request was processed: state.result is its result */
  BELAY_IDEMPOTENCY_ABANDONED /**< the last client abandoned it, and none has begun it since */
} belay_idempotency_outcome_t;

/** Result of an operation. */
typedef struct belay_idempotency_state {
  /** State of the record. */
  belay_idempotency_outcome_t outcome;
  /** Token of the caller, if a begin returned STARTED or TAKEN_OVER. Otherwise 0. */
  belay_idempotency_token_t token;
  /** Number of begins of the record, the last one included. 0: the record is absent. */
  int64_t attempt;
  /** Remaining time in milliseconds:
   *
   *   STARTED, TAKEN_OVER  the caller has the record for at least this time from the start of the
   *                        callback, unless the server's clock steps forward. belay counts from
   *                        before the request was sent. 0: the reply was late; extend the record
   *                        first
   *   IN_PROGRESS          time until the record can be taken over
   *   DONE                 time that the result is kept; -1: no end, because another program
   *                        removed the ttl
   *   otherwise            0 */
  int64_t remaining_ms;
  /** Label (belay_client_options_t.owner) of the client that has the record, or had it last,
   * terminated. "" if the record is absent. */
  const char *owner;
  /** DONE: bytes of the result, except in the reply to the finish that stored it. Otherwise
   * NULL. */
  const void *result;
  /** Length of the result, in bytes. */
  size_t result_len;
  /** true if belay_idempotency_forget() deleted something. */
  bool existed;
} belay_idempotency_state_t;

/** Receives the result of an operation. CALLBACKS in belay/request.h has the common rules and
 * errors. With errors except BELAY_ENOTOWNER, state->outcome is BELAY_IDEMPOTENCY_UNKNOWN and
 * state->owner is "". Other values of status:
 *
 *   BELAY_ENOTOWNER      of extend, finish and abandon: nothing was done, because the record does
 *                        not, or no longer, belong to the token. state is the present state, with
 *                        the result if there is one. If an extend was retried, an earlier attempt
 *                        may have been done
 *   BELAY_EMISMATCH      of begin, also after a retry: the record belongs to a request with
 *                        another fingerprint. That is an error of the program that chose the key,
 *                        so state has no result. Of all: the key does not hold a record
 *   BELAY_EUNKNOWN       it may have been executed (belay/request.h). All operations except forget
 *                        are retried until the deadline, and a second execution has the same effect
 *                        and reply. Also: a retried abandon, if another client may have begun
 *                        since; a retried finish, if the record does not exist any more. A begin
 *                        that ends so is abandoned in the background */
typedef void (*belay_idempotency_cb)(belay_request_t *request, int status,
                                     const belay_idempotency_state_t *state);

/* ---- operations ----
 *
 * Each function returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY,
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. After an error the callback does not run. A key has
 * 1 to BELAY_IDEMPOTENCY_KEY_MAX bytes. Arguments are copied. */

/** Begin a record, or learn which state it has: STARTED, TAKEN_OVER, IN_PROGRESS or DONE.
 *
 * fingerprint: at most BELAY_IDEMPOTENCY_FINGERPRINT_MAX bytes that distinguish this request
 * from others with the same key, such as its SHA-256. An absent fingerprint (NULL, 0) counts as
 * a fingerprint too. Other bytes of length 0 are BELAY_EINVAL. deadline_ms: time to process the
 * request, 1 to 86,400,000; 0 or BELAY_DEFAULT: options.deadline_ms.
 *
 * A begin whose callback gets an error may still have begun the record. belay then abandons it in
 * the background, for at most the client's timeout_ms. A close of the handle waits for that; a
 * close of the client waits for at most its close_timeout_ms. The abandon can fail: the server is
 * not reachable, the process ends, or the server executes a copy from a broken connection later.
 * Then a record remains that no client processes. Later begins get IN_PROGRESS until deadline_ms
 * have passed, and then TAKEN_OVER. No work that was done is undone by this.
 *
 * Also returns BELAY_ESYSTEM if there are no random bytes. */
BELAY_API int belay_idempotency_begin(belay_idempotency_t *records, belay_request_t *request,
                                      belay_bytes_t key, belay_bytes_t fingerprint,
                                      int64_t deadline_ms, belay_idempotency_cb cb);

/** Move the deadline of a record to at least deadline_ms from now (1 to 86,400,000; 0 or
 * BELAY_DEFAULT: options.deadline_ms). It never shortens the deadline. It also succeeds after the
 * deadline, as long as the record is kept (grace_ms) and no other client has taken it over. The
 * outcome is STARTED or TAKEN_OVER, as at its begin. */
BELAY_API int belay_idempotency_extend(belay_idempotency_t *records, belay_request_t *request,
                                       belay_bytes_t key, const belay_idempotency_token_t *token,
                                       int64_t deadline_ms, belay_idempotency_cb cb);

/** Content of a finished record. */
typedef struct belay_idempotency_finish {
  /** Result, 0 to BELAY_IDEMPOTENCY_RESULT_MAX bytes. */
  belay_bytes_t result;
  /** Lifetime of the record, in milliseconds: 1,000 to 31,536,000,000. 0 or BELAY_DEFAULT:
   * options.ttl_ms. */
  int64_t ttl_ms;
} belay_idempotency_finish_t;

/** Store the result. The record is DONE, and is kept for finish->ttl_ms, or longer if this call may
 * be retried for longer.
 *
 * It also succeeds after the deadline, as long as the record is kept (grace_ms) and no other client
 * has taken it over. A second finish with the same token and result succeeds; with another result
 * it ends with BELAY_ENOTOWNER. A result of more than half of the client's max_reply is
 * BELAY_EINVAL. All clients that share records should have the same max_reply. */
BELAY_API int belay_idempotency_finish(belay_idempotency_t *records, belay_request_t *request,
                                       belay_bytes_t key, const belay_idempotency_token_t *token,
                                       const belay_idempotency_finish_t *finish,
                                       belay_idempotency_cb cb);

/** Give a record back because the request could not be processed. It is ABANDONED for grace_ms. The
 * next begin starts at once. */
BELAY_API int belay_idempotency_abandon(belay_idempotency_t *records, belay_request_t *request,
                                        belay_bytes_t key, const belay_idempotency_token_t *token,
                                        belay_idempotency_cb cb);

/** Read a record, with any fingerprint: ABSENT, IN_PROGRESS, DONE or ABANDONED. It writes
 * nothing. */
BELAY_API int belay_idempotency_read(belay_idempotency_t *records, belay_request_t *request,
                                     belay_bytes_t key, belay_idempotency_cb cb);

/** Delete a record, whatever the key holds, also one that is being processed; its client gets no
 * notification. The outcome is ABSENT. Not retried, because another client may begin meanwhile. */
BELAY_API int belay_idempotency_forget(belay_idempotency_t *records, belay_request_t *request,
                                       belay_bytes_t key, belay_idempotency_cb cb);

/** Return options.data. */
BELAY_API void *belay_idempotency_data(const belay_idempotency_t *records);

/** Runs once, on the loop, after a close. See CLOSING in belay/loop.h. */
typedef void (*belay_idempotency_close_cb)(belay_idempotency_t *records, void *data);

/** Close the handle. Allowed inside any callback. Pending requests end with BELAY_ECANCELED, and
 * their begins are abandoned before cb runs. Records stay on the server. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_idempotency_close(belay_idempotency_t *records, belay_idempotency_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_IDEMPOTENCY_H */

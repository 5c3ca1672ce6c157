/* Rate limiters: how many tokens a key may take in a period. */
#ifndef BELAY_LIMITER_H
#define BELAY_LIMITER_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A rate limiter: one policy of 1 to BELAY_LIMITER_LIMITS_MAX limits, applied to any number of
 * keys. A key is a user, an address or anything else that is limited.
 *
 * Use a limiter to bound the rate of requests, logins or mails over all processes. For tokens that
 * a program puts in, instead of the clock, use belay/bucket.h. To bound how many holders run at the
 * same time, use belay/semaphore.h.
 *
 * The server keeps the state: one key per limited key, each with a ttl. All times are by the
 * server's clock.
 *
 * @code
 * int open_logins(belay_client_t *client, belay_limiter_t **out) {
 *   belay_limit_t limit = {.kind = BELAY_LIMIT_BUCKET, .count = 5, .period_us = 60000000};
 *   belay_limiter_options_t options;
 *   belay_limiter_options_init(&options);
 *   options.limits = &limit; // 5 logins per minute and user
 *   options.limits_len = 1;
 *   return belay_limiter_new(client, &options, out);
 * }
 *
 * static void on_taken(belay_request_t *request, int status,
 *                      const belay_limiter_result_t *result) {
 *   if (status == 0 && result->verdict == BELAY_DENIED)
 *     printf("%s: wait %lld us\n", (char *)request->data, (long long)result->retry_after_us);
 * }
 *
 * int login(belay_limiter_t *logins, belay_request_t *request, const char *user) {
 *   return belay_limiter_take(logins, request, belay_string(user), 1, on_taken);
 * }
 * @endcode */
typedef struct belay_limiter belay_limiter_t;

#define BELAY_LIMITER_LIMITS_MAX 4                 /**< limits of one policy */
#define BELAY_LIMITER_KEY_MAX ((size_t)1024)       /**< bytes of a key */
#define BELAY_LIMITER_UNITS_MAX (INT64_C(1) << 52) /**< bound on the numbers of a limit, 2^52 */
#define BELAY_LIMITER_LOG_MAX 100000               /**< largest count of a BELAY_LIMIT_LOG */
#define BELAY_INFINITE INT64_MAX                   /**< value of belay_limit_t.count: no limit */

/** Algorithm of a limit. Below, P is period_us and count and burst are fields of belay_limit_t. All
 * times are by the server's clock. */
typedef enum belay_limit_kind {
  /** Token bucket (also called GCRA, or leaky bucket as a meter). It holds at most `burst` tokens
   * and gains `count` tokens per period, evenly. Any interval of d microseconds admits at most
   * burst + d * count / P tokens.
   *
   * Source: ITU-T I.371, "generic cell rate algorithm". Debt is counted exactly, in units of 1/P
   * token. */
  BELAY_LIMIT_BUCKET = 1,
  /** Fixed window. It admits at most `count` tokens from the first admitted call until P has
   * passed. With `aligned`, windows begin at multiples of P of the server's clock. An interval of P
   * that spans two windows can admit up to 2 * count tokens. */
  BELAY_LIMIT_FIXED,
  /** Weighted sliding window. Tokens of the previous window count in proportion to the part of that
   * window that the last P still covers, as if they had been admitted evenly. Windows follow each
   * other, beginning at the first admitted call. Any interval of d <= P admits at most count + d *
   * count / P tokens. */
  BELAY_LIMIT_SLIDING,
  /** Exact sliding window. Any interval of P admits at most `count` tokens. Each token is an entry
   * on the server of about 100 bytes, so count is at most BELAY_LIMITER_LOG_MAX. It must be the
   * only limit of its policy. */
  BELAY_LIMIT_LOG
} belay_limit_kind_t;

/** One limit of a policy. Initialize it with {0}.
 *
 * Upper bounds: each of these numbers is at most BELAY_LIMITER_UNITS_MAX, otherwise BELAY_EINVAL. P
 * is period_us, gcd is the greatest common divisor:
 *
 *   bucket               burst * P / gcd(count, P), and count / gcd(count, P)
 *   bucket with count 0  burst * P
 *   any window           count * P */
typedef struct belay_limit {
  /** Algorithm. Required. */
  belay_limit_kind_t kind;
  /** Tokens per period: 1 or more, or BELAY_INFINITE for no limit.
   *
   * 0 is allowed for a bucket only: the clock never refills it. Such an allotment of `burst` tokens
   * lasts until belay_limiter_reset(), or until no take was admitted for period_us. */
  int64_t count;
  /** Period in microseconds, 1 or more. For a bucket with count 0: the ttl of its key after the
   * last admitted take. Not used if count is BELAY_INFINITE. */
  int64_t period_us;
  /** Capacity of a bucket, in tokens. 0: same as count. Must be 0 for all other kinds. */
  int64_t burst;
  /** For BELAY_LIMIT_FIXED: true if windows begin at multiples of period_us of the server's clock.
   * Must be false for all other kinds. */
  bool aligned;
} belay_limit_t;

/** Result of a take with a cost above 0 that got no answer from the server, for any reason except
 * BELAY_ECANCELED.
 *
 * With any value except BELAY_AWAY_UNKNOWN, only the first take of an outage may wait. Once the
 * client knows that the server is away (belay/client.h), takes end at once and are not sent, until
 * the server is back. A take that ends with BELAY_NEVER keeps that verdict, even if it was
 * canceled. */
typedef enum belay_away {
  BELAY_AWAY_UNKNOWN, /**< BELAY_INDETERMINATE: the caller decides */
  BELAY_AWAY_OPEN,    /**< BELAY_ALLOWED */
  BELAY_AWAY_CLOSED,  /**< BELAY_DENIED */
  /** A token bucket per key in this process decides. It has away_percent of the policy's count and
   * burst; the burst of a window is its count. With several limits, all of them must allow. */
  BELAY_AWAY_LOCAL
} belay_away_t;

/** Options; belay_limiter_options_init() sets the defaults. */
typedef struct belay_limiter_options {
  /** Name of the policy, 0 to 128 bytes; copied. It is part of the keys:
   * NAMESPACE::limit::NAME::{KEY}, plus a suffix for each reservation and for the ban of a log.
   * Handles with the same name share their state, across processes. Default: no name, the keys are
   * NAMESPACE::limit::{KEY}. */
  belay_bytes_t name;
  /** Limits of the policy; copied. A take is admitted only if all limits admit it. Required. */
  const belay_limit_t *limits;
  /** Number of limits, 1 to BELAY_LIMITER_LIMITS_MAX. */
  size_t limits_len;

  /** Capacity of the local denial cache, in keys. Default 4096; 0 disables the cache.
   *
   * A cached key is denied without a call to the server until 99.9 % of the server's retry time
   * have passed. The denial also holds for takes of more tokens than the one that was denied; takes
   * of fewer tokens are sent. Refunds, resets, lifted bans and new policies of other handles are
   * not noticed until then. Those of this handle are, once the server has answered them. */
  uint32_t max_denied;

  /** Size of a token lease, in tokens: takes of at most this cost are served from tokens that were
   * fetched ahead of time. Default 0: no token leases. At most BELAY_LIMITER_UNITS_MAX.
   *
   *   - A fetch takes this many tokens of a key, or as many as there are. Takes then need no call
   *     to the server.
   *   - Leased tokens are void lease_ms after they were requested. So any interval of d admits at
   *     most the tokens that the policy admits in d + lease_ms.
   *   - A process strands at most lease_tokens of a key, for at most lease_ms. It returns unused
   *     tokens after lease_ms / 2 without a take, and on close.
   *   - Tokens are lost until they leak if the reply to their fetch was lost, or if they could not
   *     be returned.
   *   - A ban, reset or new policy of another handle takes effect with the next fetch.
   *   - Takes that need more tokens than are left wait, in order, for the next fetch. */
  int64_t lease_tokens;
  /** Lifetime of leased tokens in milliseconds, 1 to 3,600,000. Default 1000. */
  uint32_t lease_ms;
  /** Maximum number of keys with a token lease. Takes of further keys are sent one by one. Default
   * 4096. */
  uint32_t max_leases;

  /** Result of takes that the server did not answer. Default BELAY_AWAY_UNKNOWN. */
  belay_away_t away;
  /** For BELAY_AWAY_LOCAL: size of the local buckets, in percent of the policy, 1 to 100. Default
   * 10. A local bucket holds at least one token. */
  unsigned away_percent;
  /** For BELAY_AWAY_LOCAL: maximum number of keys with a local bucket of their own. Further keys
   * share one bucket. Default 4096. */
  uint32_t max_away;

  /** Maximum number of requests that wait on one key. It applies to belay_limiter_wait(), which
   * then returns BELAY_EBUSY, and to takes that wait for a token lease; further takes are sent one
   * by one. Default 1024. */
  uint32_t max_waiting;
  /** Pointer of the caller, returned by belay_limiter_data(). Default NULL. */
  void *data;
} belay_limiter_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_limiter_options_init(belay_limiter_options_t *options);

/** Make a limiter. It sends nothing to the server.
 *
 * Returns 0, BELAY_EINVAL (belay_detail() names the option), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_limiter_new(belay_client_t *client, const belay_limiter_options_t *options,
                                belay_limiter_t **out);

/** Replace the policy by n limits. It takes effect for all later operations; limits are copied.
 *
 * The state of a key is converted at its next take:
 *
 *   - Until then, its debt leaks under the old policy.
 *   - Debt in tokens is kept, but a bucket owes at most the new burst. So a key is not blocked for
 *     tokens that the old policy allowed.
 *   - Fixed windows continue, and so do sliding windows of the same period.
 *   - Tokens are carried over from a window of one kind to a window of another kind.
 *   - Overdrafts (penalties, reservations) are kept.
 *   - Limits are matched by their position in the list, without infinite ones. Put a limit that may
 *     become infinite at the end.
 *   - A BELAY_LIMIT_LOG must stay one, and no other policy can become one (BELAY_EINVAL).
 *
 * In this handle:
 *
 *   - Receipts and reservations of the old policy give nothing back.
 *   - The denial cache is emptied, and local buckets become full.
 *   - Leased tokens are returned. Tokens of a fetch under way are lost. Takes that wait for that
 *     fetch are sent under the new policy.
 *
 * While processes use one name with different policies, each converts the state that the others
 * wrote. For buckets this is exact: debt that a smaller burst has forgiven is owed again under a
 * larger burst. So no more is admitted than under the largest policy alone. The same is true for
 * fixed windows, and for sliding windows of one period. With other mixtures a window restarts at
 * each conversion and may never end: change all processes at about the same time.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_limiter_reconfigure(belay_limiter_t *limiter, const belay_limit_t *limits,
                                        size_t n);

/** Decision about an operation. */
typedef enum belay_verdict {
  /** The operation was done. */
  BELAY_ALLOWED = 1,
  /** Nothing was taken. result.retry_after_us is the time until the same cost can be admitted. */
  BELAY_DENIED,
  /** Nothing was taken, and a retry cannot succeed: the cost is above the burst of a bucket, or
   * above the count of a window. */
  BELAY_NEVER,
  /** Not known; result.cause is the reason. With BELAY_EUNKNOWN the tokens may have been taken. */
  BELAY_INDETERMINATE
} belay_verdict_t;

/** Origin of a verdict. */
typedef enum belay_source {
  BELAY_SOURCE_SERVER = 1, /**< the server's reply */
  BELAY_SOURCE_DENIAL,     /**< the local denial cache */
  BELAY_SOURCE_LEASE,      /**< tokens of a token lease */
  /** The policy alone: it is infinite, or the cost is above it (BELAY_NEVER) and the operation is a
   * reserve, wait or try, or a take to which belay_away_t applies. */
  BELAY_SOURCE_POLICY,
  /** options.away: the server gave no answer; result.cause is the reason. */
  BELAY_SOURCE_AWAY
} belay_source_t;

/** Proof of an admitted take, for belay_limiter_refund(). Plain data: it may be copied and stored.
 *
 * It is valid for one refund among all its copies. The server does not check this: a second refund
 * may give back tokens that other takes owe. */
typedef struct belay_receipt {
  int64_t belay_private[4 + BELAY_LIMITER_LIMITS_MAX]; /**< private to belay */
} belay_receipt_t;

/** Identity of a reservation. Plain data: it may be copied and stored. */
typedef struct belay_reservation {
  char id[16]; /**< random bytes, not guessable */
} belay_reservation_t;

/** Result of an operation. If the verdict is BELAY_INDETERMINATE, then remaining, retry_after_us
 * and reset_after_us are -1, and all fields except verdict, source, cause and reservation are 0. */
typedef struct belay_limiter_result {
  /** Decision. */
  belay_verdict_t verdict;
  /** Origin of the verdict. */
  belay_source_t source;
  /** Reason why the server gave no answer. 0: the server answered, or was not needed. It is also
   * set if the verdict is BELAY_NEVER or comes from options.away.
   *
   *   BELAY_EUNREACHABLE   nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM)
   *   BELAY_EUNKNOWN       sent and not answered; it may have been executed
   *   BELAY_ECANCELED      belay_request_cancel() or a close; it may have been executed
   *   BELAY_EWRONGTYPE     the key holds a value of another program
   *   another error        the server's refusal */
  int cause;
  /** DENIED, NEVER: index of the blocking limit, from 0. If several limits block, the one that
   * blocks longest. */
  unsigned window;
  /** DENIED: true if a ban blocks the key for longer than all limits. */
  bool banned;
  /** Tokens that one take could get now. BELAY_INFINITE: the policy has no limit. -1: not known. */
  int64_t remaining;
  /** Time until the same cost would be admitted, in microseconds, if no other take comes first.
   *
   *   ALLOWED         0
   *   DENIED          the time; at least the time if it comes from a ban, or from a cached denial
   *                   of a smaller cost. -1: not known
   *   other verdicts  -1 */
  int64_t retry_after_us;
  /** Time until the key has its full allowance again, in microseconds. -1: never without a reset,
   * or not known. */
  int64_t reset_after_us;
  /** Time in microseconds. Of reserve: the caller must wait this long before it acts. Of wait: how
   * long the request waited. Otherwise 0. */
  int64_t wait_us;
  /** Tokens given back by a refund or a canceled reservation. It can be a fraction for a bucket,
   * because a bucket leaks fractions. Otherwise 0. */
  double returned;
  /** Receipt of a take that the server allowed. Otherwise void. */
  belay_receipt_t receipt;
  /** Reservation of belay_limiter_reserve(), with any verdict. Otherwise 0. */
  belay_reservation_t reservation;
} belay_limiter_result_t;

/** Receives the result of an operation; see CALLBACKS in belay/request.h. status: 0 if there is a
 * verdict, also BELAY_DENIED; result->cause if the verdict is BELAY_INDETERMINATE. */
typedef void (*belay_limiter_cb)(belay_request_t *request, int status,
                                 const belay_limiter_result_t *result);

/* ---- operations ----
 *
 * Each function with a callback returns 0, BELAY_EINVAL (belay_detail() names the argument),
 * BELAY_ESTATE (the request is pending), BELAY_EBUSY (too much is pending in the client, or too
 * many requests wait for this key), BELAY_ENOMEM, BELAY_ESYSTEM (no random bytes), BELAY_ECLOSING
 * or BELAY_EFORK. A key has 1 to BELAY_LIMITER_KEY_MAX bytes; it is copied. */

/** Take cost tokens, or none. With a cost of 0 it is belay_limiter_peek().
 *
 * A take that a token lease served, or that options.away allowed, has no receipt and cannot be
 * refunded. A take is not retried: see result.cause.
 *
 * Takes of one cost on one key of one handle that begin in the same iteration of the loop are sent
 * as one command, if their requests have the same timeout. So a key on which very many takes begin,
 * such as a limit of a whole service, costs one command per iteration. Each take gets the result
 * and the receipt that it would have got alone, in the order in which they began. If the reply is
 * lost, all of them have BELAY_EUNKNOWN as their cause. A canceled take may have been executed,
 * as always. Takes under a BELAY_LIMIT_LOG are sent one by one. */
BELAY_API int belay_limiter_take(belay_limiter_t *limiter, belay_request_t *request,
                                 belay_bytes_t key, int64_t cost, belay_limiter_cb cb);

/** Take cost tokens without a call to the server, if this process can decide: by a token lease, the
 * denial cache or the policy. It never runs a callback. It allocates memory only for a call that
 * refills a token lease in the background.
 *
 *   0              *result is set
 *   BELAY_EAGAIN   only the server can decide; nothing was taken. Use belay_limiter_take(). Also
 *                  while takes wait for the token lease, because they come first
 *   BELAY_EINVAL, BELAY_ECLOSING, BELAY_EFORK */
BELAY_API int belay_limiter_try(belay_limiter_t *limiter, belay_bytes_t key, int64_t cost,
                                belay_limiter_result_t *result);

/** Read the state of a key. It writes nothing. The verdict is BELAY_ALLOWED unless the key is
 * banned or overdrawn. Retried if the reply is lost. */
BELAY_API int belay_limiter_peek(belay_limiter_t *limiter, belay_request_t *request,
                                 belay_bytes_t key, belay_limiter_cb cb);

/** Take cost tokens even if the key does not have them. The key may owe more than its burst
 * afterwards. BELAY_ALLOWED means that the tokens were taken.
 *
 * Bounds: cost is 1 to the smallest 2^52 / P of all limits (of a bucket P / gcd(count, P) instead
 * of P), of a log 1 to BELAY_LIMITER_LOG_MAX. A bucket owes at most 2^53 - 1 units of 1/P token, a
 * window counts at most 2^52 / P tokens, a log holds at most 2 * count entries. Not retried. */
BELAY_API int belay_limiter_penalty(belay_limiter_t *limiter, belay_request_t *request,
                                    belay_bytes_t key, int64_t cost, belay_limiter_cb cb);

/** Give back up to `tokens` (1 to the number taken) of an admitted take. If it returns 0, the
 * receipt is void, with any outcome.
 *
 * It does not give back tokens that have leaked since, because other takes may have used them. It
 * does not give back tokens on which later, still waiting reservations depend. If the exact amount
 * is not known (several refunds on one key, out of order), it gives back less rather than more.
 * result->returned is the amount of the limit that got back least. Not retried.
 *
 * BELAY_EINVAL also if the receipt is void, or does not come from a take that the server allowed.
 */
BELAY_API int belay_limiter_refund(belay_limiter_t *limiter, belay_request_t *request,
                                   belay_bytes_t key, belay_receipt_t *receipt, int64_t tokens,
                                   belay_limiter_cb cb);

/** Remove the state of a key, its ban included. This handle's leased tokens of the key become void.
 * result->remaining is the amount that the policy allows at once. Retried if the reply is lost. */
BELAY_API int belay_limiter_reset(belay_limiter_t *limiter, belay_request_t *request,
                                  belay_bytes_t key, belay_limiter_cb cb);

/** Deny all takes of a key for ban_us microseconds, by the server's clock. 0 lifts a ban; the
 * maximum is 10 years. Tokens that were taken stay taken. A later ban replaces an earlier one. A
 * policy that is infinite does not ask the server: BELAY_EINVAL, except for 0, which does nothing
 * there.
 *
 * This handle returns its leased tokens of the key. Other handles serve theirs for up to their
 * lease_ms. Retried if the reply is lost. */
BELAY_API int belay_limiter_ban(belay_limiter_t *limiter, belay_request_t *request,
                                belay_bytes_t key, int64_t ban_us, belay_limiter_cb cb);

/** Take cost tokens (1 or more) now, or from the tokens that will arrive within max_wait_us (0 to
 * one day). On BELAY_ALLOWED the caller must not act before result->wait_us have passed. On
 * BELAY_DENIED or BELAY_NEVER nothing is taken. Later reservations get later times. Only for
 * policies of token buckets with a count above 0.
 *
 * Retried if the reply is lost: a retry finds the same reservation. A copy of the command that the
 * server executes after the deadline, from an abandoned connection, can charge the key once more.
 * Then tokens are lost until they leak; too many are never admitted.
 *
 * Each reservation has a key of its own. It lives until the debt of the limited key at that moment
 * has leaked, and at least as long as the request may be retried. */
BELAY_API int belay_limiter_reserve(belay_limiter_t *limiter, belay_request_t *request,
                                    belay_bytes_t key, int64_t cost, int64_t max_wait_us,
                                    belay_limiter_cb cb);

/** Give back a reservation that will not be used, as much of it as a refund would. A reservation is
 * given back at most once, however often and from whichever process this is called. Retried if the
 * reply is lost: result->returned is the amount of the first call. */
BELAY_API int belay_limiter_cancel_reservation(belay_limiter_t *limiter, belay_request_t *request,
                                               belay_bytes_t key,
                                               const belay_reservation_t *reservation,
                                               belay_limiter_cb cb);

/** Reserve cost tokens, and run the callback when their time has come. If that would take longer
 * than max_wait_us, the callback runs at once with BELAY_DENIED. belay_request_cancel() and a close
 * give the reservation back.
 *
 * Among all processes, times follow the order in which the server received the requests. Callbacks
 * of one handle and key run in that order too, among the requests whose replies have arrived. */
BELAY_API int belay_limiter_wait(belay_limiter_t *limiter, belay_request_t *request,
                                 belay_bytes_t key, int64_t cost, int64_t max_wait_us,
                                 belay_limiter_cb cb);

/** Return options.data. */
BELAY_API void *belay_limiter_data(const belay_limiter_t *limiter);

/** Statistics since the limiter was made, unless a comment says "now". */
typedef struct belay_limiter_stats {
  /** Calls to the server, also for token leases; without returns. Takes that share a command count
   * as one. */
  uint64_t asked;
  uint64_t denials;     /**< verdicts of the denial cache */
  uint64_t from_leases; /**< verdicts of token leases */
  uint64_t away;        /**< verdicts of options.away */
  /** Leased tokens that were neither used nor returned in time: lost until they leak, or until
   * their window ends. */
  uint64_t void_tokens;
  size_t denied_keys; /**< keys in the denial cache now */
  size_t leases;      /**< keys with a token lease now */
  size_t waiting;     /**< requests of belay_limiter_wait() now */
} belay_limiter_stats_t;

/** Copy the statistics to *stats. */
BELAY_API void belay_limiter_stats(const belay_limiter_t *limiter, belay_limiter_stats_t *stats);

/** Runs when belay_limiter_close() has completed; see CLOSING in belay/loop.h. */
typedef void (*belay_limiter_close_cb)(belay_limiter_t *limiter, void *data);

/** Close the limiter. Allowed inside any callback. Pending requests end with BELAY_ECANCELED, and
 * leased tokens are returned in the background. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_limiter_close(belay_limiter_t *limiter, belay_limiter_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_LIMITER_H */

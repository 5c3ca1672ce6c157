/* A limiter: how much may be done, by whom, in what time. */
#ifndef BELAY_LIMITER_H
#define BELAY_LIMITER_H

#include <stdbool.h>

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A policy, and the keys it is applied to: users, addresses, whatever is limited. One handle serves any number of
 * them; all that counts is on the server, one key for each, and every one of those has a ttl. */
typedef struct belay_limiter belay_limiter_t;

#define BELAY_LIMITER_LIMITS_MAX 4                 /**< limits of one policy */
#define BELAY_LIMITER_KEY_MAX ((size_t)1024)       /**< bytes of a key */
#define BELAY_LIMITER_UNITS_MAX (INT64_C(1) << 52) /**< 2^52: what the server can count exactly */
#define BELAY_LIMITER_LOG_MAX 100000               /**< the largest count of a BELAY_LIMIT_LOG */
#define BELAY_INFINITE INT64_MAX                   /**< a count: no limit */

/** How a limit counts. In what follows P is period_us, and all times are the server's. */
typedef enum belay_limit_kind {
  /** Token bucket, also known as GCRA or leaky bucket as a meter. It holds `burst` tokens at most and gets `count`
   * of them in each period, evenly. In any interval of d microseconds at most burst + d * count / P tokens are
   * admitted. (ITU-T I.371, "generic cell rate algorithm"; exact here: the debt is counted in units of 1/P token.) */
  BELAY_LIMIT_BUCKET = 1,
  /** Fixed window: at most `count` from the first admitted call on until P has passed; or, if `aligned`, between
   * multiples of P of the server's clock. Up to twice as much in an interval of P that lies across two windows. */
  BELAY_LIMIT_FIXED,
  /** Sliding window, weighted: what was admitted in the window before counts for the part of it that the last P
   * still covers, as if it had been spread evenly. Windows follow each other from the first admitted call on. In any
   * interval of d <= P at most count + d * count / P are admitted. */
  BELAY_LIMIT_SLIDING,
  /** Sliding window, exact: at most `count` in any interval of P. Every token is an entry of its own on the server,
   * some 100 bytes; so count is at most BELAY_LIMITER_LOG_MAX. It is the only limit of its policy. */
  BELAY_LIMIT_LOG
} belay_limit_kind_t;

/** One limit of a policy. Initialize it with {0}. */
typedef struct belay_limit {
  belay_limit_kind_t kind; /**< how it counts */
  /** Tokens in a period (and the default of a bucket's burst): 1 and more; or BELAY_INFINITE. 0,
   * for a bucket: it is never filled again: an allotment of `burst` tokens, until
   * belay_limiter_reset() or until nothing was admitted for period_us (which is the ttl of its key,
   * and must be given). */
  int64_t count;
  int64_t period_us; /**< 1 and more */
  /** Of a bucket: how many tokens it holds. 0: count. Others: 0.
   *
   * The numbers of a limit have an upper bound, BELAY_LIMITER_UNITS_MAX, beyond which it is refused
   * with BELAY_EINVAL. gcd is the greatest common divisor.
   *   bucket               burst * P / gcd(count, P), and count / gcd(count, P)
   *   bucket with count 0  burst * P
   *   window               count * P */
  int64_t burst;
  bool aligned; /**< of BELAY_LIMIT_FIXED */
} belay_limit_t;

/** What a take is answered while the server cannot be asked: when it ends without an answer, whatever the status (but
 * not BELAY_ECANCELED). With any but BELAY_AWAY_UNKNOWN only the first take of an outage may wait: once the
 * client knows that the server is away (belay/client.h), takes are answered at once and are not sent, until it is back.
 * BELAY_NEVER stays what it is. */
typedef enum belay_away {
  BELAY_AWAY_UNKNOWN, /**< BELAY_INDETERMINATE: the caller decides */
  BELAY_AWAY_OPEN,    /**< BELAY_ALLOWED */
  BELAY_AWAY_CLOSED,  /**< BELAY_DENIED */
  /** A token bucket for each key in this process, with away_percent of the policy's count and burst (a window's burst is
   * its count); of several limits all must allow. */
  BELAY_AWAY_LOCAL
} belay_away_t;

/** Options; belay_limiter_options_init() sets the defaults. */
typedef struct belay_limiter_options {
  /** The policy's name, part of its keys: NAMESPACE::limit::NAME::{KEY}, and with more behind it for each
   * reservation, and for the ban of a log. At most 128 bytes; copied. Default: no name, and
   * keys are NAMESPACE::limit::{KEY}. Handles of the
   * same name, also in other processes, share what was taken. */
  belay_bytes_t name;
  const belay_limit_t *limits; /**< all must allow; copied */
  size_t limits_len;           /**< how many: 1 to BELAY_LIMITER_LIMITS_MAX */

  /** So many denied keys are remembered, and denied without asking until (but for a thousandth of that time) the server would
   * admit them; 0: none. Who was
   * denied some tokens is denied more of them too. What somebody else gives back, resets, lifts or reconfigures
   * meanwhile goes unnoticed for as long; our own does not, where it was answered. Default 4096. */
  uint32_t max_denied;

  /** Token leasing: so many tokens of a key are taken at once (or as many as there are) and served from memory to takes
   * that want no more than that; 0: off (the default). They are void lease_ms (1 to 3,600,000; default 1000) after they
   * were asked for, so that in any interval of d at most as many are admitted as the policy allows in d + lease_ms. Each
   * process strands at most `slice` tokens of a key, for at most lease_ms: what is not used is given back when nothing
   * was taken for half of that time, and on close. Tokens whose grant was lost on its way, or could not be given back,
   * are stranded until they leak. A ban, a reset or another policy of somebody else's is noticed with the next slice.
   *
   * Takes that need more than is left wait, in order, until more was fetched. */
  int64_t lease_tokens;
  uint32_t lease_ms; /**< how long they are good for */
  /** So many keys at most have a slice; others are asked for one by one. Default 4096. */
  uint32_t max_leases;

  belay_away_t away;     /**< default BELAY_AWAY_UNKNOWN */
  unsigned away_percent; /**< of BELAY_AWAY_LOCAL: 1 to 100; default 10. At least one token */
  uint32_t max_away; /**< so many keys have a local bucket; further ones share one. Default 4096 */

  /** On one key at a time: so many belay_limiter_wait(); and so many takes that wait for a slice, others are asked for one
   * by one. Default 1024 */
  uint32_t max_waiting;
  void *data; /**< belay_limiter_data() */
} belay_limiter_options_t;

BELAY_API void belay_limiter_options_init(belay_limiter_options_t *options);

/** Makes a limiter. Sends nothing. Returns 0, BELAY_EINVAL (belay_detail() says what), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_limiter_new(belay_client_t *client, const belay_limiter_options_t *options,
                                belay_limiter_t **out);

/** Another policy from now on. What a key owes is carried over when it is next taken from: it has leaked under the old
 * policy until then; the tokens that are owed stay the same, but in a bucket no more than the new burst, so that nobody is
 * locked out for what was once allowed. Fixed windows, and sliding ones of the same period, go on. Overdrafts (penalties, reservations) stay. Receipts and reservations of before give
 * nothing back. Between a window of one kind and of another, tokens are carried over. Windows are matched by their
 * place in the list, where infinite ones do not count: one that may become infinite belongs at its end. A BELAY_LIMIT_LOG
 * stays one. Denials in memory are forgotten, local buckets are full, slices are
 * given back; one that is on its way is lost, and takes that wait for it are asked for under the new policy.
 *
 * While processes use one name with different policies, each converts what the other wrote. Of buckets that is exact:
 * what a smaller burst has forgiven is owed again under a larger one, so no more is admitted than under the largest
 * policy alone. So it is of fixed windows, and of sliding ones of one period. Between other kinds and periods a window
 * begins anew each time, and may never end: change all processes at about the same time.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_limiter_reconfigure(belay_limiter_t *limiter, const belay_limit_t *limits,
                                        size_t n);

typedef enum belay_verdict {
  BELAY_ALLOWED = 1,
  BELAY_DENIED,       /**< nothing was taken; retry_after_us says when */
  BELAY_NEVER,        /**< nothing was taken: the cost is above the burst, or count */
  BELAY_INDETERMINATE /**< not known: see cause. With BELAY_EUNKNOWN it may have been taken */
} belay_verdict_t;

/** Who says so. */
typedef enum belay_source {
  BELAY_SOURCE_SERVER = 1,
  BELAY_SOURCE_DENIAL, /**< a denial that is remembered */
  BELAY_SOURCE_LEASE,  /**< tokens that were taken before */
  BELAY_SOURCE_POLICY, /**< the policy alone: infinite; or never, of reserve, wait and try */
  BELAY_SOURCE_AWAY    /**< options.away: the server could not be asked, cause says why */
} belay_source_t;

/** What was taken, for belay_limiter_refund(). Plain data; may be copied and stored, and is good for one
 * refund among all its copies: the server keeps no account of that, and a second one may give back what others owe. */
typedef struct belay_receipt {
  int64_t belay_private[4 + BELAY_LIMITER_LIMITS_MAX]; /**< belay's */
} belay_receipt_t;

/** Names a reservation. Plain data, unguessable. */
typedef struct belay_reservation {
  char id[16]; /**< random */
} belay_reservation_t;

/** The answer. Where it is not known remaining, retry_after_us and reset_after_us are -1, and all but the verdict, source
 * and cause is 0. */
typedef struct belay_limiter_result {
  belay_verdict_t verdict; /**< the answer */
  belay_source_t source;   /**< whose it is */
  /** Why the server gave no answer; 0: it gave one, or was not asked. Set too where the verdict comes from options.away:
   *   BELAY_EUNREACHABLE, BELAY_ERESOLVE, BELAY_EBUSY, BELAY_ENOMEM: nothing was sent
   *   BELAY_EUNKNOWN: sent, and not answered; it may have been executed. It is not sent again. Of a take that waits for
   *     a slice: that was
   *   BELAY_ECANCELED: belay_request_cancel() or a close; as BELAY_EUNKNOWN
   *   BELAY_EWRONGTYPE: the key is somebody else's; or another refusal of the server's */
  int cause;
  unsigned
      window; /**< DENIED, NEVER: which limit blocks, from 0: of several the one that does so longest */
  bool banned; /**< DENIED: by a ban, which blocks longer than all limits */
  /** tokens that could be taken now, at once; BELAY_INFINITE: the policy has no limit */
  int64_t remaining;
  int64_t
      retry_after_us; /**< ALLOWED: 0. DENIED: when the same cost, if alone, would be admitted (by a remembered
                         denial of less, or a ban: not before); -1: it is not known. Else -1: never */
  int64_t reset_after_us; /**< until it is as if nothing had ever been taken; -1: never by itself */
  int64_t
      wait_us; /**< of reserve: how long to wait before acting; of wait: how long it was waited. Else 0 */
  /** of refund and cancel: tokens that were given back. Of a bucket that may be a fraction, since
   * it leaks in fractions. Else 0 */
  double returned;
  belay_receipt_t receipt;         /**< ALLOWED by the server */
  belay_reservation_t reservation; /**< of reserve, whatever the verdict */
} belay_limiter_result_t;

/** A callback of the shape of belay/request.h. status:
 *
 *   0            the verdict is BELAY_ALLOWED or BELAY_DENIED: of the server, of leased tokens, of a
 *                cached denial or of options.away. A denial is no error
 *   an error     the verdict is BELAY_INDETERMINATE, and status is result->cause */
typedef void (*belay_limiter_cb)(belay_request_t *request, int status,
                                 const belay_limiter_result_t *result);

/* All that follow return 0, and then the callback runs exactly once, later, on the loop; or
 *   BELAY_EINVAL   key: not 1 to BELAY_LIMITER_KEY_MAX bytes; cost: negative, or another argument (see belay_detail())
 *   BELAY_ESTATE   the request is pending
 *   BELAY_EBUSY    too much is pending in the client, or waits for this key
 *   BELAY_ENOMEM, BELAY_ECLOSING, BELAY_EFORK
 * and then it does not. key is copied. */

/** Takes cost tokens, or none. A cost of 0 is a peek. What a slice served, and what options.away allowed, has no receipt
 * and cannot be refunded. */
BELAY_API int belay_limiter_take(belay_limiter_t *limiter, belay_request_t *request,
                                 belay_bytes_t key, int64_t cost, belay_limiter_cb cb);

/** The answer, if it is known without asking: 0, and *result is set; a slice is taken from. Otherwise BELAY_EAGAIN, and
 * nothing was taken: belay_limiter_take() asks (also while takes wait for the slice, which come first). Never calls
 * back, and allocates nothing but a call: a slice that is running out is filled again in the background. Also BELAY_EINVAL, BELAY_ECLOSING, BELAY_EFORK. */
BELAY_API int belay_limiter_try(belay_limiter_t *limiter, belay_bytes_t key, int64_t cost,
                                belay_limiter_result_t *result);

/** How a key stands; ALLOWED unless it is banned or overdrawn. Writes nothing. */
BELAY_API int belay_limiter_peek(belay_limiter_t *limiter, belay_request_t *request,
                                 belay_bytes_t key, belay_limiter_cb cb);

/** Takes cost tokens (1 and more), whether they are there or not: the key may owe more than its burst afterwards. ALLOWED
 * means that it was done. The debt is bounded by 2^53 - 1 units, a window's count by 2^52 / P; a log
 * holds twice its count at most. */
BELAY_API int belay_limiter_penalty(belay_limiter_t *limiter, belay_request_t *request,
                                    belay_bytes_t key, int64_t cost, belay_limiter_cb cb);

/** Gives back up to `tokens` (1 and more) of what a receipt is for: not what has leaked since, which others may have taken
 * already; nor what later reservations that still wait have been built upon. Where that cannot be told exactly
 * (several refunds on one key, out of order) rather less than more. The receipt is void afterwards, whatever the
 * outcome. result->returned: in that limit where it was least. A receipt that is void, or of no
 * take that the server allowed, is BELAY_EINVAL, and belay_detail() says so. */
BELAY_API int belay_limiter_refund(belay_limiter_t *limiter, belay_request_t *request,
                                   belay_bytes_t key, belay_receipt_t *receipt, int64_t tokens,
                                   belay_limiter_cb cb);

/** Forgets all that was taken, and a ban; our slice of it is void. result->remaining: what the
 * policy allows then at once. Sent again if its answer is lost. */
BELAY_API int belay_limiter_reset(belay_limiter_t *limiter, belay_request_t *request,
                                  belay_bytes_t key, belay_limiter_cb cb);

/** Denies everything for so long (0 lifts a ban; at most 10 years), by the server's clock, which need not be the caller's; what was taken stays. Of two
 * bans the last counts. Not for a policy that is infinite, which asks nobody. Our slice is given back; others serve
 * theirs for up to their lease_ms. Sent again if its answer is lost. */
BELAY_API int belay_limiter_ban(belay_limiter_t *limiter, belay_request_t *request,
                                belay_bytes_t key, int64_t ban_us, belay_limiter_cb cb);

/** Takes cost tokens now or, on credit, from those that come within max_wait_us (0 and more; at most a day): ALLOWED, and the
 * caller may act after result->wait_us and not earlier. Otherwise DENIED or NEVER, and nothing is taken. Who comes
 * later waits longer. Only for policies of token buckets with a count. Sent again if its answer is lost: the
 * reservation is the same one. Only what is executed after its deadline, from a connection that was given up, may be
 * charged once more: then tokens are lost until they leak, and none too many admitted.
 *
 * Each reservation is a key of its own beside the limiter's, until what the key owes then has
 * leaked, and for at least as long as the request may be sent again. */
BELAY_API int belay_limiter_reserve(belay_limiter_t *limiter, belay_request_t *request,
                                    belay_bytes_t key, int64_t cost, int64_t max_wait_us,
                                    belay_limiter_cb cb);

/** Gives a reservation back that is not going to be used: once, whoever says so and however often; as much as a refund
 * would. Sent again if its answer is lost: result->returned is what the first one gave. */
BELAY_API int belay_limiter_cancel_reservation(belay_limiter_t *limiter, belay_request_t *request,
                                               belay_bytes_t key,
                                               const belay_reservation_t *reservation,
                                               belay_limiter_cb cb);

/** Reserves, and calls back when the time has come. The times are in the order in which the server was asked, among all
 * processes; and so are the callbacks of one handle and key, among those whose answers are in: a process that stood still
 * may hear of an earlier time after it has told a later one. DENIED, at once, if that would be later than max_wait_us.
 * belay_request_cancel() and a close give the reservation back. */
BELAY_API int belay_limiter_wait(belay_limiter_t *limiter, belay_request_t *request,
                                 belay_bytes_t key, int64_t cost, int64_t max_wait_us,
                                 belay_limiter_cb cb);

BELAY_API void *belay_limiter_data(const belay_limiter_t *limiter);

/** How often whom was asked; since the limiter was made. */
typedef struct belay_limiter_stats {
  uint64_t asked;   /**< calls to the server, also for slices; not those that give something back */
  uint64_t denials; /**< answers from denials that were remembered */
  uint64_t from_leases; /**< answers from slices */
  uint64_t away;        /**< answers by options.away */
  /** Of slices, that were neither used nor given back in time: lost until they leak, or their window ends. */
  uint64_t void_tokens;
  size_t denied_keys; /**< remembered now */
  size_t leases;      /**< keys that have one now */
  size_t waiting;     /**< requests that wait for their time */
} belay_limiter_stats_t;

BELAY_API void belay_limiter_stats(const belay_limiter_t *limiter, belay_limiter_stats_t *stats);

/** Runs once when belay_limiter_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_limiter_close_cb)(belay_limiter_t *limiter, void *data);

/** Ends it, in any callback: what is pending ends with BELAY_ECANCELED, slices are given back. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_limiter_close(belay_limiter_t *limiter, belay_limiter_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_LIMITER_H */

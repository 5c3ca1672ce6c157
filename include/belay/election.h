/* An election: at most one leader at a time, in terms that are numbered. */
#ifndef BELAY_ELECTION_H
#define BELAY_ELECTION_H

#include "belay/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_ELECTION_VALUE_MAX 256 /**< bytes by which a leader makes itself known */

/** A handle for one candidate, or for one who only wants to know who leads. */
typedef struct belay_election belay_election_t;

/** We lead, in that term: the fencing number, larger than that of every leader before. Until deposed. Not told
 * where that is over already, because the campaign's own callback has resigned or took longer than the lease. */
typedef void (*belay_elected_cb)(belay_election_t *election, uint64_t term);

/** We lead no more, and did not resign: the lease ended, at its local deadline at the latest, network or not. The
 * handle does not stand again by itself: belay_election_campaign() may be called here. */
typedef void (*belay_deposed_cb)(belay_election_t *election, belay_lost_t reason);

/** Who leads. term 0: nobody. Valid until the callback returns. */
typedef struct belay_leader {
  uint64_t term;        /**< its number; 0: nobody leads */
  const char *value;    /**< what the leader calls itself */
  size_t value_len;     /**< its length */
  int64_t remaining_ms; /**< how long its lease still ran when the server was asked */
  int ours;             /**< 1: it is this handle */
} belay_leader_t;

/** Another leads than was told before (nobody counts as another). Leaders that led only between two looks are not
 * told. It is news, and may be old. status: 0, or why it cannot be known at present: then leader is NULL; told once
 * for each such time, after which whoever leads is told again. BELAY_EWRONGTYPE: who holds the name was not
 * elected. */
typedef void (*belay_observe_cb)(belay_election_t *election, int status,
                                 const belay_leader_t *leader);

typedef void (*belay_election_cb)(belay_election_t *election, int status);

/** Options. Milliseconds. */
typedef struct belay_election_options {
  /** what it calls itself: 0 to BELAY_ELECTION_VALUE_MAX bytes, copied; default: the client's owner label */
  belay_bytes_t value;
  /** true if a leader listens for belay_held_break(), and is deposed about a round trip after it: as a
   * lock's. Without it a leader learns of the break at its next renewal. Default false */
  bool notice_break;
  /** The exact key, 1 to 1024 bytes, instead of one made of namespace and name; the name may be NULL
   * then. The term stands in KEY::fence: in a cluster the key has to contain a hash tag ({...}).
   * Copied. Default NULL */
  belay_bytes_t key;
  int64_t ttl_ms; /**< as a lock's; always renewed; default BELAY_DEFAULT: 10,000 */
  /** Time of one question; default BELAY_DEFAULT: the client's (belay/request.h, TIME LIMITS). */
  int64_t timeout_ms;
  int64_t
      retry_min_ms; /**< candidates and observers ask now and then; as with a lock; default 25 */
  int64_t retry_max_ms;        /**< default 75; the default of backoff_max_ms depends on it */
  int64_t backoff_max_ms;      /**< default BELAY_DEFAULT: 300, or retry_max_ms if that is more */
  belay_elected_cb on_elected; /**< default NULL */
  belay_deposed_cb on_deposed; /**< default NULL */
  belay_observe_cb on_observe; /**< default NULL */
  void *data;                  /**< default NULL */
} belay_election_options_t;

BELAY_API void belay_election_options_init(belay_election_options_t *options);

/** Makes a handle; sends nothing. With several clients (n > 1) this returns BELAY_ESINGLE: who leads would have to
 * be asked of a majority, and terms would have gaps that only a majority can see. For leadership that stands the
 * loss of a server use belay_redlock_new() with fencing: its fencing number is the term.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESINGLE, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_election_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                                 const belay_election_options_t *options, belay_election_t **out);

/** Stands until elected, resigned or closed; what passes (a server that is away) is sat out. on_elected tells the
 * success; a refusal that lasts (BELAY_EAUTH, BELAY_EWRONGTYPE) ends it, and cb (may be NULL) is told. cb's status:
 * 0 elected (before on_elected), BELAY_ECANCELED resigned or closed, or that error.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (stands, or leads), BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_election_campaign(belay_election_t *election, belay_election_cb cb);

/** Does not want to lead: stops standing, or gives leadership back. cb (may be NULL) is told as
 * belay_lock_release() tells; who only stood is told 0, after the campaign's end. Who is waiting elsewhere hears of
 * it; who stands again at once may be elected again.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (neither stands nor leads), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_election_resign(belay_election_t *election, belay_election_cb cb);

/** Whether on_observe is told from now on. The present leader is told first. Keeps the loop alive only if ref'ed.
 *
 * Returns 0, BELAY_EINVAL (there is no on_observe), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_election_observe(belay_election_t *election, int on);

/** The term in which we lead for certain; 0 if we do not. Reads the clock each time. */
BELAY_API uint64_t belay_election_term(const belay_election_t *election);
/** For how long we lead for certain, in microseconds. */
BELAY_API int64_t belay_election_remaining_us(const belay_election_t *election);

BELAY_API void belay_election_ref(belay_election_t *election);
BELAY_API void belay_election_unref(belay_election_t *election);
/** A pointer of the caller's own. */
BELAY_API void belay_election_set_data(belay_election_t *election, void *data);
BELAY_API void *belay_election_data(const belay_election_t *election);
/** Runs once when belay_election_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_election_close_cb)(belay_election_t *election, void *data);
/** Ends the handle; leadership is given back in the background, as belay_lock_close() does.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_election_close(belay_election_t *election, belay_election_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ELECTION_H */

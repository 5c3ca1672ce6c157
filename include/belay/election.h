/* Elections: at most one leader at a time, in numbered terms. */
#ifndef BELAY_ELECTION_H
#define BELAY_ELECTION_H

#include "belay/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_ELECTION_VALUE_MAX 256 /**< bytes of a leader's value */

/** A handle for a candidate, or for an observer of the leader. At most one candidate of a name
 * leads at a time. If the leader dies, another candidate is elected after the ttl.
 *
 * Use an election for work that one process does all the time, such as a scheduler. For work with
 * an end, use belay/lock.h. For a leader that survives the loss of a server, use
 * belay_redlock_new() with options.fencing: its fencing number is the term.
 *
 * Leadership is a lease, as in belay/lock.h, with the same assumptions. Each term has a number that
 * is larger than all earlier ones. Send it with each request to a resource that must refuse an
 * earlier leader (belay/fence.h).
 *
 * @code
 * static void on_elected(belay_election_t *election, uint64_t term) {
 *   (void)election;
 *   printf("leading, term %llu: start the work\n", (unsigned long long)term);
 * }
 *
 * static void on_deposed(belay_election_t *election, belay_lost_t reason) {
 *   printf("%s: stop the work\n", belay_lost_name(reason));
 *   belay_election_campaign(election, NULL); // be a candidate again
 * }
 *
 * int lead_scheduler(belay_client_t *client, belay_election_t **out) {
 *   belay_election_options_t options;
 *   belay_election_options_init(&options);
 *   options.on_elected = on_elected;
 *   options.on_deposed = on_deposed;
 *   int error = belay_election_new(client, belay_string("scheduler"), &options, out);
 *   return error != 0 ? error : belay_election_campaign(*out, NULL);
 * }
 * @endcode */
typedef struct belay_election belay_election_t;

/** Reports that this handle leads, in the given term: a fencing number larger than that of every
 * earlier leader. Runs on the loop, once per term. It does not run if the term is already over,
 * because the campaign's own callback resigned or took longer than the lease. */
typedef void (*belay_elected_cb)(belay_election_t *election, uint64_t term);

/** Reports that this handle no longer leads, without a resignation. Runs once per loss, on the
 * loop, at the local deadline of the lease at the latest, with or without a network. The handle
 * does not become a candidate again by itself; the callback may call belay_election_campaign(). */
typedef void (*belay_deposed_cb)(belay_election_t *election, belay_lost_t reason);

/** The present leader, for an observer. Valid until the callback returns. */
typedef struct belay_leader {
  /** Term of the leader. 0: there is no leader. */
  uint64_t term;
  /** Value of the leader: options.value of its handle. */
  const char *value;
  /** Length of value, in bytes. */
  size_t value_len;
  /** Rest of the leader's lease when the server answered, in milliseconds. -1: the key has no
   * ttl. */
  int64_t remaining_ms;
  /** 1 if this handle leads, otherwise 0. */
  int ours;
} belay_leader_t;

/** Reports a change of the leader to an observer; "no leader" counts as a change too. The report
 * can be late: it may describe the past. A leader that led only between two polls is not reported.
 *
 * status is 0, or the reason why the leader is not known at present; then leader is NULL. Such a
 * reason is reported once. When the leader is known again, it is reported again, also if it is the
 * same. BELAY_EWRONGTYPE: the holder of the name is not a leader, for example a plain lock. */
typedef void (*belay_observe_cb)(belay_election_t *election, int status,
                                 const belay_leader_t *leader);

/** Reports the end of a campaign or a resignation: status is 0 or an error that their comments
 * list. See CALLBACKS in belay/loop.h. */
typedef void (*belay_election_cb)(belay_election_t *election, int status);

/** Options; belay_election_options_init() sets the defaults. All times are in milliseconds. */
typedef struct belay_election_options {
  /** Value by which observers identify the leader, such as its address: 0 to
   * BELAY_ELECTION_VALUE_MAX bytes; copied. Default: absent, the owner label of the client. */
  belay_bytes_t value;
  /** true: the leader notices belay_held_break() about a round trip later and is deposed, as in
   * belay_lock_options_t. false: it notices at its next renewal. Default false. */
  bool notice_break;
  /** Exact key, 1 to 1024 bytes, instead of one made of namespace and name; copied. The name may
   * then be absent. The term is in KEY::fence, so in a cluster the key must contain a hash tag
   * ({...}). Default: absent. */
  belay_bytes_t key;
  /** Length of the lease, in milliseconds: 10 to 86,400,000; default BELAY_DEFAULT: 10,000. It is
   * always renewed. */
  int64_t ttl_ms;
  /** Time of one question to the server, in milliseconds: 1 to 600,000; default BELAY_DEFAULT: the
   * timeout_ms of the client. See TIME LIMITS in belay/request.h. */
  int64_t timeout_ms;
  /** Shortest delay between two polls of a candidate or observer, in milliseconds: 1 to 3,600,000;
   * default 25. Each delay is random. */
  int64_t retry_min_ms;
  /** Longest delay between two polls of a candidate or observer, in milliseconds: retry_min_ms to
   * 3,600,000; default 75. The default of backoff_max_ms depends on it. */
  int64_t retry_max_ms;
  /** Upper bound of the backoff of polls, in milliseconds: retry_max_ms to 3,600,000; default
   * BELAY_DEFAULT: 300, or retry_max_ms if that is larger. */
  int64_t backoff_max_ms;
  /** Callback for an election. Default NULL. */
  belay_elected_cb on_elected;
  /** Callback for a loss of leadership. Default NULL. */
  belay_deposed_cb on_deposed;
  /** Callback for changes of the leader. Required for belay_election_observe(). Default NULL. */
  belay_observe_cb on_observe;
  /** Pointer of the caller, returned by belay_election_data(). Default NULL. */
  void *data;
} belay_election_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_election_options_init(belay_election_options_t *options);

/** Make a handle. name is 1 to 1024 bytes. It sends nothing. An election has one deployment: among
 * several servers only a majority could name the leader.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_election_new(belay_client_t *client, belay_bytes_t name,
                                 const belay_election_options_t *options, belay_election_t **out);

/** Become a candidate, until the handle is elected, resigns or is closed. Temporary faults, such as
 * a server that is away, do not end the campaign, nor does a plain lock on the key. cb may be NULL;
 * its status:
 *
 *   0                elected; cb runs before on_elected
 *   BELAY_ECANCELED  belay_election_resign() or a close
 *   another error    the server refused for a lasting reason, such as BELAY_EAUTH or
 *                    BELAY_EWRONGTYPE; the campaign has ended
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (a candidate or leader already, or a resignation is
 * pending), BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_election_campaign(belay_election_t *election, belay_election_cb cb);

/** End the campaign, or give up leadership. Other candidates are woken. If this handle becomes a
 * candidate again in cb, it can be elected again. cb may be NULL. For a leader its status is that
 * of belay_lock_release(). For a candidate it is 0, after the callback of the campaign.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (neither candidate nor leader), BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_election_resign(belay_election_t *election, belay_election_cb cb);

/** Start (on is not 0) or stop (on is 0) calls of on_observe. The first call after a start reports
 * the present leader. A second start has no effect. An observer keeps the loop alive only after
 * belay_election_ref().
 *
 * Returns 0, BELAY_EINVAL (there is no on_observe), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_election_observe(belay_election_t *election, int on);

/** Return the term in which this handle certainly leads; 0 if it does not. Each call reads the
 * clock. */
BELAY_API uint64_t belay_election_term(const belay_election_t *election);
/** Return the time for which this handle certainly leads, in microseconds; 0 if it does not. Each
 * call reads the clock. */
BELAY_API int64_t belay_election_remaining_us(const belay_election_t *election);

/** Let the handle keep the loop alive while it leads or observes. Off by default. Further calls
 * have no effect. */
BELAY_API void belay_election_ref(belay_election_t *election);
/** Undo belay_election_ref(), also if it was called several times. */
BELAY_API void belay_election_unref(belay_election_t *election);
/** Set the pointer that belay_election_data() returns. */
BELAY_API void belay_election_set_data(belay_election_t *election, void *data);
/** Return options.data, or the last pointer given to belay_election_set_data(). */
BELAY_API void *belay_election_data(const belay_election_t *election);
/** Runs once when the handle is gone. data is described at CLOSING in belay/loop.h. */
typedef void (*belay_election_close_cb)(belay_election_t *election, void *data);
/** Close the handle, in any callback. A campaign ends with BELAY_ECANCELED. Leadership is given up
 * in the background, within the client's close_timeout_ms. Then cb runs (NULL is allowed).
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_election_close(belay_election_t *election, belay_election_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ELECTION_H */

/* Times of a lease that is held: its local deadline, and the time of its next renewal. */
#ifndef BELAY_LEASE_MACHINE_DEADLINE_H
#define BELAY_LEASE_MACHINE_DEADLINE_H

#include "lease/machine/lease.h"

/* Nanoseconds after the send of a command for which its ttl can be trusted: the ttl less the drift.
 * drift_ms -1: ttl/100 + 2 ms. */
uint64_t belay__lease_validity(uint32_t ttl_ms, int32_t drift_ms);

/* Nanoseconds after a key was set with that ttl until its server has certainly expired it. The
 * server's clock may be 1 % slow. */
uint64_t belay__lease_forgotten_after(uint32_t ttl_ms);

/* Returns the time until which a quorum of members keeps the lease: the quorum-th largest of the
 * members' times. 0: no quorum keeps the lease. */
uint64_t belay__lease_deadline(const belay__lease_t *lease);

/* Nanoseconds until the deadline of a lease that is HELD or EXTENDING; else 0. */
uint64_t belay__lease_remaining(const belay__lease_t *lease);

/* ---- the timer ---- */

/* Sets the timer for the deadline, or for now if there is none. False if the deadline is not
 * ahead. */
bool belay__lease_set_expiry(belay__lease_t *lease);

/* belay__lease_set_timer() sets `due`, the time of the next action; belay__lease_stop_timer()
 * clears `due`. The timer fires at the earlier of `due` and the deadline. */
void belay__lease_set_timer(belay__lease_t *lease, uint64_t when);
void belay__lease_stop_timer(belay__lease_t *lease);

/* Returns `due`, or an earlier time if the timer was set to a deadline before `due` in the
 * meantime. BELAY__NEVER: `due` is not set. */
uint64_t belay__lease_due(const belay__lease_t *lease);

/* Stops the timer for `due` and for the deadline. */
void belay__lease_stop_timers(belay__lease_t *lease);

/* Finds the event of a timer that fired. Sets *event to BELAY__EV_EXPIRY if the deadline has
 * passed, to BELAY__EV_TIMER if `due` has come. False, without an event, if the timer was set only
 * for a deadline that has moved. */
bool belay__lease_fired(belay__lease_t *lease, belay__lease_event_t *event);

/* ---- renewals ---- */

/* True if the watchdog renews the lease: it is on, and max_hold is not over. */
bool belay__lease_renews(const belay__lease_t *lease);

/* Time of the next renewal: renew_after (within limits) after the send that the deadline counts
 * from, or up to a third of that earlier. Renewals that are due at about the same time then share a
 * batch. BELAY__NEVER: the watchdog does not renew the lease. */
uint64_t belay__lease_renewal_due(const belay__lease_t *lease);

/* Time of the next renewal after a failed renewal: a backoff of at most a tenth of the ttl. */
uint64_t belay__lease_renewal_retry(const belay__lease_t *lease);

/* Time of the renewal that checks a lease which a server may have lost. */
uint64_t belay__lease_check_at(const belay__lease_t *lease, belay__check_t why);

#endif /* BELAY_LEASE_MACHINE_DEADLINE_H */

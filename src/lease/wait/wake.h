/* Messages that wake a waiter, or make a holder check its lease. */
#ifndef BELAY_LEASE_WAIT_WAKE_H
#define BELAY_LEASE_WAIT_WAKE_H

#include "lease/machine/lease.h"

/* Subscribes a waiter, unless it is subscribed or the options exclude messages. known: only if the
 * clients' subscriptions to all of its channels are already confirmed. */
void belay__wake_subscribe(belay__lease_t *lease, bool known);

/* True if enough subscriptions of the waiter are confirmed that it misses no release: of a quorum
 * of nodes, or of all channels for a list of keys. */
bool belay__wake_is_up(const belay__lease_t *lease);

/* Ends the subscriptions of a waiter or a holder, if there are any. */
void belay__wake_unsubscribe(belay__lease_t *lease);

/* True if the lease waits and has subscriptions, confirmed or not. */
bool belay__wake_is_waiter(const belay__lease_t *lease);

/* Adds the ttl of the contention flag, in ms, that an attempt of a waiter sets if it finds the lock
 * held; 0 for other attempts, which set no flag. */
void belay__wake_put_flag_ttl(const belay__lease_t *lease, belay__call_t *call);

/* Builds the command that publishes a release to all waiters. */
void belay__wake_build_publish(const belay__lease_t *lease, belay__call_t *call);

/* Subscribes a holder with notice_break and a watchdog. Each message and each confirmed
 * subscription makes it check the lease (BELAY__EV_CHECK), because an administrator may have broken
 * the lock. Such a holder is never dormant. */
void belay__wake_watch(belay__lease_t *lease);

/* True if this client is subscribed to the first member's channel, and so gets its own releases. */
bool belay__wake_is_subscribed(const belay__lease_t *lease);

/* True if other clients got, or may have got, the message of the release that was just made. */
bool belay__wake_reached_others(const belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_WAKE_H */

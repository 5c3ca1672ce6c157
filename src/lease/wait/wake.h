/* Messages that wake a waiter, or make a holder check its lease. */
#ifndef BELAY_LEASE_WAIT_WAKE_H
#define BELAY_LEASE_WAIT_WAKE_H

#include "lease/machine/lease.h"

/* Subscribes a waiter, unless it is subscribed. known: only if the client is subscribed already. */
void belay__wake_subscribe(belay__lease_t *lease, bool known);

/* True if the waiter misses no release. */
bool belay__wake_is_up(const belay__lease_t *lease);

void belay__wake_unsubscribe(belay__lease_t *lease);

/* Builds the command that publishes a release. */
void belay__wake_build_publish(const belay__lease_t *lease, belay__call_t *call);

/* Subscribes a holder to messages of breaks: each message and each confirmed subscription makes
 * it check the lease (BELAY__EV_CHECK). belay__wake_unwatch() unsubscribes. */
void belay__wake_watch(belay__lease_t *lease);
void belay__wake_unwatch(belay__lease_t *lease);

/* True if this client is subscribed to the first member's channel, and so gets its own releases. */
bool belay__wake_is_subscribed(const belay__lease_t *lease);

/* True if other clients got, or may have got, the message of the release that was just made. */
bool belay__wake_reached_others(const belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_WAKE_H */

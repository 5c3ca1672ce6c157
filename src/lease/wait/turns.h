/* Turns among clients. turns.c explains the order. */
#ifndef BELAY_LEASE_WAIT_TURNS_H
#define BELAY_LEASE_WAIT_TURNS_H

#include "lease/machine/lease.h"

/* Notes how many other connections got the message of the release that was just answered. */
void belay__turns_note(belay__lease_t *lease);

/* Sets *delay to the time for which a woken waiter lets other clients go first, in ns. False if no
 * other clients are known to wait for the key. */
bool belay__turns_delay(const belay__lease_t *lease, uint64_t *delay);

/* Time, in ns, by which the clients that this client's last release woke have sent their attempts;
 * 0: no such clients are known. */
uint64_t belay__turns_return_at(const belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_TURNS_H */

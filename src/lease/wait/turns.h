/* Turns among clients. turns.c says how the order comes about. */
#ifndef BELAY_LEASE_WAIT_TURNS_H
#define BELAY_LEASE_WAIT_TURNS_H

#include "lease/machine/lease.h"

/* Notes how many other connections got the message of the release that was just answered. */
void belay__turns_note(belay__lease_t *lease);

/* For how many nanoseconds a waiter that gets the message of a release lets others go first. False if that is not
 * known. */
bool belay__turns_delay(const belay__lease_t *lease, uint64_t *delay);

/* When the others that got the message of this client's last release have asked; 0: there are none. */
uint64_t belay__turns_return_at(const belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_TURNS_H */

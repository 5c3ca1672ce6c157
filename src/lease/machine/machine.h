/* The machine of a lease: its table of transitions. lease.h has the diagram. */
#ifndef BELAY_LEASE_MACHINE_MACHINE_H
#define BELAY_LEASE_MACHINE_MACHINE_H

#include "lease/machine/lease.h"

/* Handles an event. arg: see belay__lease_event_t. */
void belay__lease_step(belay__lease_t *lease, belay__lease_event_t event, uint64_t arg);

/* True if the event can happen in that state. Another event is an error of belay (assert). */
bool belay__lease_expects(belay__lease_state_t state, belay__lease_event_t event);

#endif /* BELAY_LEASE_MACHINE_MACHINE_H */

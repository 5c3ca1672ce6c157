/* What call.c and build.c know of each other. */
#ifndef BELAY_CORE_CALL_BUILD_H
#define BELAY_CORE_CALL_BUILD_H

#include "core/call/call.h"
#include "core/call/error_text.h"

/* A deadline, or the end of a rest: call.c's. */
void belay__call_on_timer(belay__timer_t *timer);

/* Gives a call back to the pool. */
void belay__call_recycle(belay__call_t *call);

/* It is a script that was given more than one. */
bool belay__call_has_keys(const belay__call_t *call);

/* Hides what a server repeats of its arguments; but_keys: not keys of our own. */
void belay__call_hide(const belay__call_t *call, belay__said_t *said, bool but_keys);

/* Puts the script's text in the place of its hash; false if memory is out. */
bool belay__call_become_eval(belay__call_t *call);

#endif /* BELAY_CORE_CALL_BUILD_H */

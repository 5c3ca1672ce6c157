/* The cause for which a connection ended, or could not be made: its error, and words. */
#ifndef BELAY_REDIS_CONN_CAUSE_H
#define BELAY_REDIS_CONN_CAUSE_H

#include "redis/conn/state.h"

/* A reason that will not go away by itself: who asks is told at once, and nobody knocks too often. */
bool belay__link_is_lasting(int error);

/* Why the link's connection or attempt ends, unless that is known already. */
void belay__link_blame(belay__link_t *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The cause that the link knows becomes the client's last refusal, behind the server's place. */
void belay__link_explain(const belay__link_t *link, int error);
/* The same with these words instead of the link's. */
void belay__link_refuse_with(const belay__link_t *link, int error, const char *cause);

/* What a call ends with that was not sent because there was no connection, for this reason or none. */
int belay__link_unsent(int error);

/* The wire is gone: sets the cause, unless the one that ended the connection has set it. */
void belay__link_blame_wire(belay__link_t *link, int error);

#endif /* BELAY_REDIS_CONN_CAUSE_H */

/* The cause for which a connection ended, or could not be made: its error, and words. */
#ifndef BELAY_REDIS_CONN_CAUSE_H
#define BELAY_REDIS_CONN_CAUSE_H

#include "redis/conn/state.h"

/* A reason that will not go away by itself: who asks is told at once, and nobody knocks too often. */
bool belay__error_is_lasting(int error);

/* Why the connection's connection or attempt ends, unless that is known already. */
void belay__connection_set_cause(belay__connection_t *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The cause that the connection knows becomes the client's last refusal, behind the server's place. */
void belay__connection_report_cause(const belay__connection_t *connection, int error);
/* The same with these words instead of the connection's. */
void belay__connection_report(const belay__connection_t *connection, int error, const char *cause);

/* What a call ends with that was not sent because there was no connection, for this reason or none. */
int belay__unsent_error(int error);

/* The transport is gone: sets the cause, unless the one that ended the connection has set it. */
void belay__connection_set_transport_cause(belay__connection_t *connection, int error);

#endif /* BELAY_REDIS_CONN_CAUSE_H */

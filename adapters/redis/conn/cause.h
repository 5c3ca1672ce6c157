/* The cause for which a connection ended or an attempt to connect failed: an error code and a
 * text. */
#ifndef BELAY_REDIS_CONN_CAUSE_H
#define BELAY_REDIS_CONN_CAUSE_H

#include "redis/conn/state.h"

/* True for an error that does not pass by itself (password, right, TLS, refusal). Calls then
 * fail at once, and attempts to connect are rare. */
bool belay__error_is_lasting(int error);

/* Sets the cause of the end of the present attempt or connection. Does nothing if a cause was
 * set already. */
void belay__connection_set_cause(belay__connection_t *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Makes connection->cause the client's last refusal, with the server's address in front. Does
 * nothing without a cause. */
void belay__connection_report_cause(const belay__connection_t *connection, int error);
/* Does the same with the given text in place of connection->cause. */
void belay__connection_report(const belay__connection_t *connection, int error, const char *cause);

/* Returns the error of a call that was not sent because the connection has this error (0: none).
 * Errors that say nothing to a caller become BELAY_EUNREACHABLE. */
int belay__unsent_error(int error);

/* Sets the cause from the state of a closed transport. Does nothing if a cause was set already. */
void belay__connection_set_transport_cause(belay__connection_t *connection, int error);

#endif /* BELAY_REDIS_CONN_CAUSE_H */

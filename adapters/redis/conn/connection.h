/* A connection to one server. It is made again after a loss. connection.c has the diagram. */
#ifndef BELAY_REDIS_CONN_CONNECTION_H
#define BELAY_REDIS_CONN_CONNECTION_H

#include "redis/conn/state.h"

void belay__connection_init(belay__connection_t *connection, belay__server_t *server, bool extra);

/* Queues n calls that belong together, and connects if necessary. Returns 0, BELAY_EBUSY,
 * BELAY_ECLOSING, the error of a REFUSED connection, or for calls with fail_fast that of an
 * outage. */
int belay__connection_submit(belay__connection_t *connection, belay__call_t *const *calls,
                             size_t n);
int belay__connection_withdraw(belay__connection_t *connection, belay__call_t *call);

/* Returns the error with which n more calls would be refused; 0: they would be accepted. */
int belay__connection_check_room(const belay__connection_t *connection, bool urgent, size_t n);
/* Queues a call that was queued elsewhere before. max_pending does not apply. On a closed or
 * REFUSED connection the call ends as refused. */
void belay__connection_enqueue(belay__connection_t *connection, belay__call_t *call);

/* For a call with fail_fast: returns 0, or the error of an outage, with which the call must end.
 * In that case the connection starts to connect, unless it is trying already. */
int belay__connection_check_fail_fast(belay__connection_t *connection);

/* The parts of belay__server_on_resolved(), _retry_now(), _disconnect() and _drain()
 * (redis/conn/server.h) for one connection. */
void belay__connection_on_resolved(belay__connection_t *connection, int error);
void belay__connection_retry_now(belay__connection_t *connection);
void belay__connection_disconnect(belay__connection_t *connection, int error, const char *cause);
void belay__connection_drain(belay__connection_t *connection, int error, const char *cause);

/* Drops the connection if it has that number. */
void belay__connection_distrust(belay__connection_t *connection, uint32_t epoch);

/* Ends the connection and its calls at once. belay__connection_is_over() is true when its
 * handles are closed too. */
void belay__connection_close(belay__connection_t *connection);
bool belay__connection_is_over(const belay__connection_t *connection);
/* Frees the memory of the connection's members; called last. */
void belay__connection_deinit(belay__connection_t *connection);

/* Connects even if no call is queued. Does nothing while an attempt or a back-off is running. */
void belay__connection_connect(belay__connection_t *connection);

/* For a subscriber in the state REFUSED: tries again at once. */
void belay__connection_retry_refused(belay__connection_t *connection);
/* For a subscriber that no channel needs any more: closes the connection. Not legal in a
 * callback of the transport. */
void belay__connection_retire(belay__connection_t *connection);

#endif /* BELAY_REDIS_CONN_CONNECTION_H */

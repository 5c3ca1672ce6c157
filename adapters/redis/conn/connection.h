/* A connection: the place of one connection to one server, which is made, lost and made again. connection.c has the
 * diagram. */
#ifndef BELAY_REDIS_CONN_CONNECTION_H
#define BELAY_REDIS_CONN_CONNECTION_H

#include "redis/conn/state.h"

void belay__connection_init(belay__connection_t *connection, belay__server_t *server, bool extra);

/* 0, BELAY_EBUSY, or the error of a connection that is REFUSED. */
int belay__connection_submit(belay__connection_t *connection, belay__call_t *const *calls,
                             size_t n);
int belay__connection_withdraw(belay__connection_t *connection, belay__call_t *call);

/* The error with which it would not take n more calls; 0: it would. */
int belay__connection_check_room(const belay__connection_t *connection, bool urgent, size_t n);
/* Queues a call that was queued before: there is no limit for it, and if it can be queued no more it is refused. */
void belay__connection_enqueue(belay__connection_t *connection, belay__call_t *call);

/* For a call with fail_fast: 0; or the server is away, and the error with which the call ends in place of being queued.
 * Then the connection connects, unless it tries already. */
int belay__connection_check_fail_fast(belay__connection_t *connection);

/* What the server is told (redis/conn/server.h). */
void belay__connection_on_resolved(belay__connection_t *connection, int error);
void belay__connection_retry_now(belay__connection_t *connection);
void belay__connection_disconnect(belay__connection_t *connection, int error, const char *cause);
void belay__connection_drain(belay__connection_t *connection, int error, const char *cause);

/* Drops the connection, if it is the one of that number. */
void belay__connection_distrust(belay__connection_t *connection, uint32_t epoch);

/* Ends everything at once. The connection is over when belay__connection_is_over(). */
void belay__connection_close(belay__connection_t *connection);
bool belay__connection_is_over(const belay__connection_t *connection);
/* Gives back what it still has; called last. */
void belay__connection_deinit(belay__connection_t *connection);

/* Connects, unless it does or waits until it may, although no call asks for it. */
void belay__connection_connect(belay__connection_t *connection);

/* What follows is for a connection that listens. One that is REFUSED: there is reason to try again at once. */
void belay__connection_retry_refused(belay__connection_t *connection);
/* Nobody needs the connection any more. Not in a callback of the transport's. */
void belay__connection_retire(belay__connection_t *connection);

#endif /* BELAY_REDIS_CONN_CONNECTION_H */

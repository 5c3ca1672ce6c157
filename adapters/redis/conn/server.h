/* A server: all connections of a client to it (a server), opened and closed together. */
#ifndef BELAY_REDIS_CONN_SERVER_H
#define BELAY_REDIS_CONN_SERVER_H

#include "redis/conn/state.h"

/* Makes a server with its connections and its subscriber, in one piece of memory; its target is to be set. NULL: memory is out. */
belay__server_t *belay__server_new(belay__settings_t *settings, size_t connections_per_class);

void belay__server_free(belay__server_t *server);

/* For a server that gets no more calls: closes the connections that nothing is under way on; the others end with the last answer,
 * and lost() is told. True if no connection and no handle is left: then its memory may be given back. */
bool belay__server_drain(belay__server_t *server);

/* The connection for calls of that connection class and route. */
belay__connection_t *belay__server_connection(const belay__server_t *server,
                                              belay__conn_class_t conn_class, uint32_t route);

size_t belay__server_connections_up(const belay__server_t *server);

/* A server that owes an answer for that time may not be well, and calls go elsewhere where they can. */
#define BELAY__SILENCE_MS UINT64_C(250)

/* Whether a connection owes an answer for ms milliseconds, by belay__connection_owes_reply(). */
bool belay__server_owes_reply(const belay__server_t *server, uint64_t ms);
/* The same for BELAY__SILENCE_MS, by belay__connection_is_silent(). */
bool belay__server_is_silent(belay__server_t *server);

/* For who reads from replicas. Connects, so that it can be read from. */
void belay__server_connect(belay__server_t *server);
/* Whether what only reads may be asked there now: it is connected, has been found to be what it must be, and is not
 * silent. */
bool belay__server_is_readable(const belay__server_t *server, belay__conn_class_t conn_class,
                               uint32_t route);

/* What find() was to find out: 0 with the target set, or an error. */
void belay__server_on_resolved(belay__server_t *server, int error);

/* Those that wait before they try again need not wait any longer: there is reason to hope. */
void belay__server_retry_now(belay__server_t *server);

/* Its connections lead to a server that is not the right one any more: they end before the loop sleeps. cause: in
 * words. */
void belay__server_disconnect(belay__server_t *server, int error, const char *cause);
/* The server is to be used for something else from now on: those that carry calls end when they have been answered. */
void belay__server_replace_connections(belay__server_t *server);

/* ---- all servers of a client --------------------------------------------------------------------------- */

size_t belay__servers_connections_up(const belay__settings_t *settings);

/* Whether all servers that the client is connected to can do that, retired ones aside; false while there is none. */
bool belay__servers_can(belay__settings_t *settings, belay__capability_t what);

/* Ends all connections at once. They are over when belay__servers_are_closed(). */
void belay__servers_close(belay__settings_t *settings);
bool belay__servers_are_closed(const belay__settings_t *settings);
void belay__servers_free(belay__settings_t *settings);

#endif /* BELAY_REDIS_CONN_SERVER_H */

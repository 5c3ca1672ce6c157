/* A server: all connections of a client to one server, opened and closed together. */
#ifndef BELAY_REDIS_CONN_SERVER_H
#define BELAY_REDIS_CONN_SERVER_H

#include "redis/conn/state.h"

/* Allocates a server with its connections and its subscriber in one block. The caller must set
 * the target. NULL if memory runs out. */
belay__server_t *belay__server_new(belay__settings_t *settings);

void belay__server_free(belay__server_t *server);

/* For a server that gets no more calls: closes idle connections at once and the others after
 * their last reply, with the event lost. True if no connection and no handle is left, so that
 * the server may be freed. */
bool belay__server_drain(belay__server_t *server);

/* The connection for calls of that connection class and route. */
belay__connection_t *belay__server_connection(const belay__server_t *server,
                                              belay__conn_class_t conn_class, uint32_t route);

size_t belay__server_connections_up(const belay__server_t *server);

/* ms without a due reply after which a server counts as silent: calls go elsewhere where they
 * can */
#define BELAY__SILENCE_MS UINT64_C(250)

/* True if any connection waits for a due reply since ms milliseconds
 * (belay__connection_owes_reply()). */
bool belay__server_owes_reply(const belay__server_t *server, uint64_t ms);
/* True if any connection is silent for BELAY__SILENCE_MS (belay__connection_is_silent()). */
bool belay__server_is_silent(belay__server_t *server);

/* Connects, so that a replica can be read from. */
void belay__server_connect(belay__server_t *server);
/* True if the server can answer reads now: it is connected, its role is verified, and it is not
 * silent. */
bool belay__server_is_readable(const belay__server_t *server, belay__conn_class_t conn_class,
                               uint32_t route);

/* Ends the deployment's resolve(): 0 if the target is set, or an error. */
void belay__server_on_resolved(belay__server_t *server, int error);

/* Ends the back-off of all connections, because an attempt is now likely to succeed. */
void belay__server_retry_now(belay__server_t *server);

/* Ends all connections before the loop sleeps, because their server is not the right one any
 * more. cause: text for log and errors. */
void belay__server_disconnect(belay__server_t *server, int error, const char *cause);
/* For a server that changes its role: connections that carry calls end after their last reply,
 * and new ones are made. */
void belay__server_replace_connections(belay__server_t *server);

/* ---- all servers of a client ---- */

size_t belay__servers_connections_up(const belay__settings_t *settings);

/* True if all servers with a connection have the capability. Retired servers do not count. False
 * without a connection. */
bool belay__servers_can(belay__settings_t *settings, belay__capability_t what);

/* Ends all connections at once. belay__servers_are_closed() is true when their handles are
 * closed too. */
void belay__servers_close(belay__settings_t *settings);
bool belay__servers_are_closed(const belay__settings_t *settings);
void belay__servers_free(belay__settings_t *settings);

#endif /* BELAY_REDIS_CONN_SERVER_H */

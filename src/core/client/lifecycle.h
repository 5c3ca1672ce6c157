/* The life of a client: how it begins, what lives on it, and how it closes.
 *
 *   OPEN --close--> CLOSING: objects close, each in its own time
 *                     |--the last object is gone, or close_timeout: the rest is aborted
 *                     v
 *                   the node closes: connections are dropped, calls end
 *                     |--belay__client_gone
 *                     v
 *                   the user is told, the memory is given back */
#ifndef BELAY_CORE_CLIENT_LIFECYCLE_H
#define BELAY_CORE_CLIENT_LIFECYCLE_H

#include "core/client/client.h"

/* Initializes the core's part and adds it to belay's clients. owner is the label to use where the options
 * name none. Returns 0, BELAY_EINVAL (with a detail) or BELAY_ENOMEM. */
int belay__client_init(belay_client_t *client, belay_t *belay, const belay__node_ops_t *node_ops,
                       const belay_client_options_t *options, const char *owner);

/* Takes back what belay__client_init() did, for an adapter that fails after it. */
void belay__client_fini(belay_client_t *client);

void belay__client_add(belay_client_t *client, belay__object_t *object);
void belay__client_remove(belay_client_t *client, belay__object_t *object);

/* For the node: a connection that calls were sent on is gone, or keys belong to another server. */
void belay__client_lost_connection(belay_client_t *client);

/* Begins to close, unless it has begun. now: nothing is waited for. */
void belay__client_start_close(belay_client_t *client, bool now);

/* A connection is up: calls that rest, and objects that wait for the server, try again soon. */
void belay__client_connected(belay_client_t *client);

/* The node is closed. */
void belay__client_gone(belay_client_t *client);

#endif /* BELAY_CORE_CLIENT_LIFECYCLE_H */

/* The states of a client.
 *
 *    OPEN --close--> CLOSING: all objects close
 *                      |--the last object is gone; or close_timeout: the others are aborted
 *                      v
 *                    the node closes: connections are dropped, calls end
 *                      |--belay__client_node_closed
 *                      v
 *                    the close callback runs, the memory is freed */
#ifndef BELAY_CORE_CLIENT_LIFECYCLE_H
#define BELAY_CORE_CLIENT_LIFECYCLE_H

#include "core/client/client.h"

/* Initialize the core's part and add the client to belay. owner: the owner's label to use if the
 * options have none. Returns 0, BELAY_EINVAL (with a detail) or BELAY_ENOMEM. */
int belay__client_init(belay_client_t *client, belay_t *belay, const belay__node_ops_t *node_ops,
                       const belay_client_options_t *options, const char *owner);

/* Check the ranges of the options. Returns 0, or BELAY_EINVAL with a detail. */
int belay__client_options_check(belay_t *belay, const belay_client_options_t *options);

/* Undo belay__client_init(). Called after the close callback, and by an adapter that fails after
 * belay__client_init(). */
void belay__client_fini(belay_client_t *client);

void belay__client_add(belay_client_t *client, belay__object_t *object);
void belay__client_remove(belay_client_t *client, belay__object_t *object);

/* For the node: report that a connection that carries calls (not messages) was lost, even if no
 * call was pending, or that keys moved to another server. */
void belay__client_lost_connection(belay_client_t *client);

/* Start to close, unless already closing. now: also abort all objects at once, even if the client
 * is already closing. */
void belay__client_start_close(belay_client_t *client, bool now);

/* Report that a connection is up: resting calls and objects that wait for the server try again
 * soon. */
void belay__client_connected(belay_client_t *client);

/* Report that the node is closed. The close callback then runs from a task. */
void belay__client_node_closed(belay_client_t *client);

#endif /* BELAY_CORE_CLIENT_LIFECYCLE_H */

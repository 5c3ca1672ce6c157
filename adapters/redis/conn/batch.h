/* A batch: calls of one script that are ready at about the same time, and travel as one command.
 *
 *   connection's queues --its turn--> waits --the loop is about to sleep, or there are enough--> one command --> each its reply
 *        ^                       |  |                                                        |
 *        |                       |  +--only a few: by themselves                               +--refused as a whole:
 *        +----connection is not up-----+                                                              each by itself
 *
 * A server takes a good part of its time for a script before the first and after the last line of it: that is saved. What
 * one of the calls raises is that one's reply, and what the whole command is refused for before anything is executed
 * concerns perhaps only one of them: so each is sent again, and hears what concerns it; behind what was sent in between, as
 * one is whose script is not known. What passes by itself, such as BUSY, concerns all of them.
 *
 * A call that waits is queued, as far as anybody but the connection knows: it can be withdrawn, and has not been sent. Calls of
 * one route keep their order: before one of an route that waits is handed over, or one of several keys, the batch
 * leaves. Others pass. In a cluster all of a batch are of one slot.
 *
 * Calls that are under way together are linked in a ring by their nodes, without a head: the command's privdata is the
 * first of them. */
#ifndef BELAY_REDIS_CONN_BATCH_H
#define BELAY_REDIS_CONN_BATCH_H

#include "redis/conn/state.h"

#define BELAY__CALL_BATCH_MIN 4 /* fewer are not faster together */
#define BELAY__CALL_BATCH_MAX                                                                      \
  32 /* more than that brings nothing, and holds up what comes behind it */
#define BELAY__CALL_BATCH_BYTES                                                                    \
  8192 /* what a call brings tells how long the server is at it: 0.1 ms for all of them */

void belay__call_batch_init(belay__call_batch_t *batch);

/* A queued call whose turn it is, on a connection that is up: takes it out of its queue, and lets it wait; false if it is to go
 * by itself. The connection's queue_len still counts it. */
bool belay__call_batch_add(belay__connection_t *connection, belay__call_t *call);

/* A call is about to be handed over: if it may not pass those that wait, they are handed over now. */
void belay__call_batch_yield_to(belay__connection_t *connection, const belay__call_t *call);

/* One that may be waiting is being withdrawn. */
void belay__call_batch_remove(belay__connection_t *connection, const belay__call_t *call);

/* Puts those that wait back to the front of their queues, in order. */
void belay__call_batch_disband(belay__connection_t *connection);

#endif /* BELAY_REDIS_CONN_BATCH_H */

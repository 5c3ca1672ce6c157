/* Batches: calls of one script that are ready in the same turn of the loop are sent as one
 * command.
 *
 *    queues --call_batch_add()--> batch --loop about to sleep, or full--> one command
 *      ^                           |  |                                   |
 *      |                           |  +--fewer than MIN: one by one       +--a reply for each call
 *      +--connection is not up-----+                                      |
 *                                         sent again one by one <--refused--+
 *
 * The server may refuse the whole command before it executes anything, perhaps because of one
 * call. Each call is then sent again alone, behind the commands that were sent in between, as
 * after NOSCRIPT. A temporary refusal such as BUSY applies to all calls of the batch.
 *
 * Outside this file a call in a batch counts as queued: it is not sent and can be withdrawn.
 * Calls of one affinity keep their order. The batch is sent before another call of an affinity
 * in it, and before a call with several keys. Calls of other affinities may overtake the batch.
 * In a cluster all calls of a batch have the same slot. Arguments that are equal in all calls are
 * sent once.
 *
 * Calls that were sent as a batch are linked in a ring by their nodes, without a head. The
 * command's privdata is the first of them. */
#ifndef BELAY_REDIS_CONN_BATCH_H
#define BELAY_REDIS_CONN_BATCH_H

#include "redis/conn/state.h"

#define BELAY__CALL_BATCH_MIN 4 /* calls; fewer are not faster as a batch */
/* Calls in a batch. More gain no speed and delay the calls behind the batch. */
#define BELAY__CALL_BATCH_MAX 32
/* Bytes of keys and arguments in a batch. They bound the server's time for the batch to about
 * 0.1 ms. */
#define BELAY__CALL_BATCH_BYTES 8192

void belay__call_batch_init(belay__call_batch_t *batch);

/* Moves a queued call from its queue into the batch. The connection is up. False if the call
 * must be sent alone. connection->queue_len still counts the call. */
bool belay__call_batch_add(belay__connection_t *connection, belay__call_t *call);

/* Sends the batch now if the call, which is about to be sent, must not overtake it. */
void belay__call_batch_yield_to(belay__connection_t *connection, const belay__call_t *call);

/* Accounts for a call that is being withdrawn and may be in the batch. */
void belay__call_batch_remove(belay__connection_t *connection, const belay__call_t *call);

/* Moves the calls of the batch back to the front of their queues, in order. */
void belay__call_batch_disband(belay__connection_t *connection);

#endif /* BELAY_REDIS_CONN_BATCH_H */

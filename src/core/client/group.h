/* Groups: requests with the same key and equal parameters that begin in the same turn of the loop
 * share one call. Each gets the result that it would have got if the server had executed them one
 * after the other, in the order in which they began.
 *
 *    belay__group_hold() --> HELD --+--alone: belay__request_send()
 *                            ^  |   |
 *      belay__group_join() --+  |   +--several: one call --it ends--> each request ends with its
 *                               |                                      part, or is sent alone
 *                      released: at the end of the turn; before another call of the same route or
 *                      a call with several keys; if another group needs the place
 *
 * The first request makes the call that it would send alone. A client holds up to
 * BELAY__GROUPS_HELD calls. The bytes of a held call leave the process as late as those of any
 * other call of the turn, and its deadline is set when it is sent. Calls of one route keep their
 * order.
 *
 * The requests of a group are PARKED. They form a ring by `queued`, in order; operation->call is
 * their call, whose owner is the first of them. When the call was sent, `index` is the position of
 * a request, and `calls_open` is the number of requests that the call serves. A request that is
 * canceled leaves the ring. If the call was sent, the server executes its part too. */
#ifndef BELAY_CORE_CLIENT_GROUP_H
#define BELAY_CORE_CLIENT_GROUP_H

#include "core/client/request.h"

#define BELAY__GROUPS_HELD ((size_t)16)
#define BELAY__GROUP_KEY_MAX ((size_t)128) /* bytes of a key; requests with longer keys go alone */
#define BELAY__GROUP_AGAIN 2               /* returned by `share`: send the request alone */

struct belay__group_ops {
  /* true if a request can join the group of `first`. Both have the same ops, context, key and
   * timeout. Called once for each request that joins; if it returns true, the request joins. */
  bool (*fits)(belay__operation_t *first, const belay__operation_t *joining);

  /* Make the call for n requests, of which `first` is the first (belay__group_next()). like: a call
   * for the same key. n may be 1. NULL if memory is out. */
  belay__call_t *(*make)(belay__operation_t *first, size_t n, const belay__call_t *like);

  /* Set the values of one request. values: those that ops->read has read from the reply, for one
   * request of the group. status: 0, or the error of the whole call: nothing was executed. Returns
   * the status of this request, or BELAY__GROUP_AGAIN: nothing was executed for it. Called in
   * order. */
  int (*share)(belay__operation_t *operation, const int64_t *values, const belay__call_t *call,
               int status);

  /* A call was sent, for one request or for several. NULL: nothing to do. */
  void (*sent)(belay__operation_t *first);
};

/* Let a PARKED request join the held group that it fits. hash: hash of the key. Returns false, and
 * changes nothing, if there is no such group. */
bool belay__group_join(belay__operation_t *operation, uint64_t hash, belay_bytes_t key);

/* Hold the call (NULL: memory was out) of a PARKED request, so that others can join; or send it if
 * there is no place. Returns as belay__request_send() does. An error that comes when the held call
 * is sent ends the request. */
int belay__group_hold(belay__operation_t *operation, belay__call_t *call, uint64_t hash,
                      belay_bytes_t key);

/* For ops->left: let a canceled request leave its group, if it is in one. If it was the last
 * request of the group, the call is abandoned. */
void belay__group_leave(belay__operation_t *operation);

/* Send all held calls of a client, because parameters of their handles are about to change. */
void belay__groups_release(belay_client_t *client);

/* The request behind `operation` in its group; the last one is followed by the first. */
static inline belay__operation_t *belay__group_next(const belay__operation_t *operation) {
  return BELAY__CONTAINER(operation->queued.next, belay__operation_t, queued);
}

#endif /* BELAY_CORE_CLIENT_GROUP_H */

/* An undo removes, in the background, the token and the ticket that an attempt may have left on a
 * server. The ticket may keep its place instead. An undo continues after the handle is closed.
 *
 *    start --> SENDING --reply, no later execution possible--> over: undone
 *                |  ^
 *     unknown,   |  | time for the next try
 *     or a ghost |  |
 *                v  |
 *              RESTING --the ttl has expired on the server, or abort--> over: given up
 *
 * With `repeat` a replied undo notifies its owner but is not over, because a server without the
 * undo may take the place:
 *
 *    replied --> KEPT --its connection is lost--> SENDING
 *                  +--the ttl has expired on the server, or the client closes--> over
 *
 * A ghost is an attempt on a lost connection which the server may still read from its socket,
 * after the undo on the next connection. If the new connection could not kill the old one, the
 * undo is repeated a few times. A remaining token lives for its ttl. */
#ifndef BELAY_LEASE_QUORUM_UNDO_H
#define BELAY_LEASE_QUORUM_UNDO_H

#include "core/call/call.h"
#include "core/client/client.h"
#include "core/call/script.h"
#include "core/key/token.h"

typedef struct belay__undo belay__undo_t;

/* done: true if it is known that nothing is left. */
typedef void (*belay__undo_cb)(belay__undo_t *undo, void *owner, bool done);

/* What to undo. */
typedef struct belay__undo_target {
  const struct belay__kind *kind; /* the kind with the release script */
  const char *key;                /* copied */
  size_t key_len;
  belay__token_t token;
  const char *label; /* in the token; copied */
  size_t label_len;
  bool notify;     /* tell who waits */
  bool no_token;   /* only the ticket */
  bool repeat;     /* an answer counts as long as the connection lasts */
  uint64_t ticket; /* 0: none */
  /* For how long the ticket keeps its place; 0: it goes. That is said once: behind what is asked next it might
   * bring back a place that was given up. */
  uint32_t keep_ms;
  belay__conn_class_t conn_class;
  uint32_t route;
  uint32_t epoch; /* the connection of an attempt that was not answered; 0: none */
  uint64_t until; /* by then the server has forgotten it in any case */
} belay__undo_target_t;

/* Starts one; its call goes out before this returns, behind all that were sent on its connection class with its route,
 * unless a release is under way already: then that is its call (release may be NULL). cb (which may be NULL) is
 * told once, later. NULL if memory is out, or if there is no cb and more are under way than a client may have:
 * then what is left lives for its ttl. */
belay__undo_t *belay__undo_start(belay_client_t *client, const belay__undo_target_t *target,
                                 belay__call_t *release, belay__undo_cb cb, void *owner);

/* The same for one that was answered already, as a release, on the connection answered_on: it is
 * KEPT, if there is room for it. */
void belay__undo_keep(belay_client_t *client, const belay__undo_target_t *target,
                      uint32_t answered_on);

/* Parts from the owner, which gets no notification; the undo continues. */
void belay__undo_detach(belay__undo_t *undo);

#endif /* BELAY_LEASE_QUORUM_UNDO_H */

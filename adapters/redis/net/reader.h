/* Replies: what hiredis's reader builds, in an arena of our own, with limits.
 *
 * hiredis parses; these functions make the objects. One reply at a time is alive, and freeing it is emptying
 * the arena. What a server must not be able to do to us is refused by returning NULL, which ends the
 * connection: nesting deeper than 8, more memory than max_reply, types that RESP2 does not have, and a
 * reply that nobody asked for.
 *
 * Where RESP3 is agreed on, its types become those of RESP2: a map is an array of name, value, name, value. And there
 * is a mode in which hiredis takes everything for a push, so that all that is said comes to one function, in order;
 * its own notion of who waits for what knows no sharded channels. */
#ifndef BELAY_REDIS_NET_READER_H
#define BELAY_REDIS_NET_READER_H

#include <hiredis/hiredis.h>

#include "core/loop/loop.h"
#include "core/call/reply.h"

typedef struct belay__chunk belay__chunk_t;

typedef struct belay__reader {
  belay_t *belay;
  belay__chunk_t *chunks; /* the one that is being filled first */
  belay__chunk_t *spare;  /* some that are kept from reply to reply, */
  unsigned spares;        /* so many */
  size_t bytes;           /* in the chunks that are not spare */
  size_t max_reply;
  const size_t *replies_due; /* how many replies are expected */
  bool resp3;                /* pushes and the types of RESP3 are expected */
  bool push_mode;            /* everything goes to the push callback */
  const char *rejection; /* why the last object was refused; NULL: none was, or memory ran out */
} belay__reader_t;

void belay__reader_init(belay__reader_t *reader, belay_t *belay, size_t max_reply,
                        const size_t *replies_due);
void belay__reader_deinit(belay__reader_t *reader);

/* Makes hiredis's reader use these functions. */
void belay__reader_attach(belay__reader_t *reader, redisReader *hiredis);

/* A reply that such a reader made, as the core sees it. */
const belay__reply_t *belay__reader_reply(void *object);

#endif /* BELAY_REDIS_NET_READER_H */

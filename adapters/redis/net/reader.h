/* Replies: hiredis's reader builds them in an arena of belay, with limits.
 *
 * hiredis parses; these functions make the objects. One reply is alive at a time, and freeing it
 * empties the arena. Returning NULL refuses a reply and ends the connection, for: nesting deeper
 * than 8, more memory than max_reply, types that RESP2 lacks, and a reply without a request.
 *
 * With RESP3, types are converted to those of RESP2: a map becomes an array of name, value,
 * name, value. In push mode hiredis passes every reply to one function, in order, because its
 * own callback table does not know sharded channels. */
#ifndef BELAY_REDIS_NET_READER_H
#define BELAY_REDIS_NET_READER_H

#include <hiredis/hiredis.h>

#include "core/loop/loop.h"
#include "core/call/reply.h"

typedef struct belay__chunk belay__chunk_t;

typedef struct belay__reader {
  belay_t *belay;
  belay__chunk_t *chunks; /* the present one first */
  belay__chunk_t *spare;  /* chunks that are kept from reply to reply */
  unsigned spares;        /* number of spare chunks */
  size_t bytes;           /* bytes of chunks that are not spare */
  size_t max_reply;
  const size_t *replies_due; /* number of expected replies */
  bool resp3;                /* pushes and the types of RESP3 are expected */
  bool push_mode;            /* everything goes to the push callback */
  const char *rejection; /* why the last object was refused; NULL: it was not, or memory ran out */
} belay__reader_t;

void belay__reader_init(belay__reader_t *reader, belay_t *belay, size_t max_reply,
                        const size_t *replies_due);
void belay__reader_deinit(belay__reader_t *reader);

/* Makes hiredis's reader use these functions. */
void belay__reader_attach(belay__reader_t *reader, redisReader *hiredis);

/* Returns the core's form of a reply that such a reader made. */
const belay__reply_t *belay__reader_reply(void *object);

#endif /* BELAY_REDIS_NET_READER_H */

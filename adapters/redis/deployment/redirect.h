/* The redirections of a cluster: MOVED and ASK. */
#ifndef BELAY_REDIS_DEPLOYMENT_REDIRECT_H
#define BELAY_REDIS_DEPLOYMENT_REDIRECT_H

#include "core/call/reply.h"
#include "redis/net/url.h"

/* The server that serves the slot of a refused call. */
typedef struct belay__redirect {
  /* True for ASK: the slot is being moved to that server, and only this call goes there. */
  bool ask;
  uint16_t slot; /* 0 to 16383 */
  belay__place_t place;
} belay__redirect_t;

/* Parses an error, "MOVED slot host:port" or "ASK slot host:port". here: the server that sent it;
 * an empty host means the same host. False if the text is something else or does not name the
 * host. */
bool belay__redirect_parse(const belay__reply_t *reply, const belay__place_t *here,
                           belay__redirect_t *out);

/* Sets the host of a place from an address in a reply. An empty address stands for the host of
 * here. False for "?" (the server does not know the host) and for a malformed one. */
bool belay__redirect_read_host(const char *text, size_t len, const belay__place_t *here,
                               belay__place_t *out);

#endif /* BELAY_REDIS_DEPLOYMENT_REDIRECT_H */

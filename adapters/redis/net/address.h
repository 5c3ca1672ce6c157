/* The address of a server. */
#ifndef BELAY_REDIS_NET_ADDRESS_H
#define BELAY_REDIS_NET_ADDRESS_H

#include "redis/net/url.h"

typedef struct belay__target {
  const char *path; /* of a unix socket; else NULL */
  belay__place_t place;
  int64_t keepalive_ms, tcp_user_timeout_ms;
} belay__target_t;

#define BELAY__TARGET_WORDS                                                                        \
  ((size_t)128) /* bytes of an address as text, the terminating 0 included */

/* Write "host:port", or "unix:" and the path, for logs and details: printable, cut to fit. Both
 * return out. */
const char *belay__place_words(const belay__place_t *place, char out[BELAY__TARGET_WORDS]);
const char *belay__target_words(const belay__target_t *target, char out[BELAY__TARGET_WORDS]);

#endif /* BELAY_REDIS_NET_ADDRESS_H */

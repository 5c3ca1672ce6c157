/* A wire between a client and a server that can be long, or cut without anybody being told. Of a cluster of one node it is
 * where that node is, as far as the client hears. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_RELAY_H
#define TEST_SUPPORT_DEPLOYMENTS_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belay/client.h"
#include "support/base/clock.h"

typedef struct relay relay_t;

/* Listens on a TCP port of 127.0.0.1 and passes everything on to a server: the path of its unix socket, or its
 * URL there or on 127.0.0.1. The text must last as long as the relay. If that is a URL of TLS, the relay's is one too;
 * and it is for who can log in without a password of the test's. */
relay_t *relay_start(const char *target);
void relay_stop(relay_t *relay);
const char *relay_url(const relay_t *relay);

/* From now on nothing passes on the connections that are open; new ones work. Neither side is told. */
void relay_silence(relay_t *relay);

/* Resets the connections that are open, towards the client only: the server still reads what it was sent. */
void relay_cut(relay_t *relay);

/* The same, and what is on its way to the server arrives there all the same, when its time has come. */
void relay_haunt(relay_t *relay);

/* What comes in from now on is passed on so much later, in each direction; 0: at once. */
void relay_delay(relay_t *relay, int64_t ms);

/* So much later, that there is time to see what has come about and to cut the wire before the answer is back. */
#define RELAY_LONG (150 * slow())

/* Those of a client to whom so long a wire is none that is dead. */
belay_client_options_t relay_client_options(void);

/* On connections that are made from now on, so many bytes come through to the client; then it is reset, or nothing
 * passes any more. 0: no such thing. */
void relay_cut_after(relay_t *relay, size_t bytes);
void relay_silence_after(relay_t *relay, size_t bytes);

/* From now on it remembers what clients say. */
void relay_listen(relay_t *relay);
/* Whether one of them has said that, on any connection. */
bool relay_heard(relay_t *relay, const char *words);
/* All that they have said, one connection behind the other if there was one at a time; to be freed. */
char *relay_capture(relay_t *relay, size_t *len);

/* New connections lead there from now on. */
void relay_lead(relay_t *relay, const char *target);

/* So far. */
unsigned relay_connections(relay_t *relay);

#endif /* TEST_SUPPORT_DEPLOYMENTS_RELAY_H */

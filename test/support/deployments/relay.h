/* A relay between a client and a server. It can delay bytes, and cut connections with or without
 * a notice. For a cluster of one node the client gets the address of the relay as that of the
 * node. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_RELAY_H
#define TEST_SUPPORT_DEPLOYMENTS_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belay/client.h"
#include "support/base/clock.h"

typedef struct relay relay_t;

/* Listens on a TCP port of 127.0.0.1 and forwards to a server: the path of its unix socket, or
 * its URL on a socket or 127.0.0.1. The text must stay valid as long as the relay. For a TLS URL
 * the relay's URL is a TLS one, too; it suits clients that need no password of the test. */
relay_t *relay_start(const char *target);
void relay_stop(relay_t *relay);
const char *relay_url(const relay_t *relay);

/* Silences the open connections from now on; new ones work. Neither side notices. */
void relay_silence(relay_t *relay);

/* Resets the open connections towards the client only. The server still reads the bytes it was
 * sent. */
void relay_cut(relay_t *relay);

/* The same, but bytes in flight to the server arrive later. */
void relay_haunt(relay_t *relay);

/* Delays all later bytes by `ms` in each direction; 0: no delay. */
void relay_delay(relay_t *relay, int64_t ms);

/* A delay that leaves time to see the effect and to cut the connection before the reply arrives. */
#define RELAY_LONG (150 * slow())

/* Options of a client that does not take such a long delay for a dead connection. */
belay_client_options_t relay_client_options(void);

/* On new connections, `bytes` bytes reach the client; then the connection is reset, or silent.
 * 0: no limit. */
void relay_cut_after(relay_t *relay, size_t bytes);
void relay_silence_after(relay_t *relay, size_t bytes);

/* From now on it remembers what clients say. */
void relay_listen(relay_t *relay);
/* Whether one of them has said that, on any connection. */
bool relay_received(relay_t *relay, const char *words);
/* Returns all bytes of the clients, in order of the connections. The caller frees them. */
char *relay_capture(relay_t *relay, size_t *len);

/* New connections lead there from now on. */
void relay_lead(relay_t *relay, const char *target);

/* So far. */
unsigned relay_connections(relay_t *relay);

#endif /* TEST_SUPPORT_DEPLOYMENTS_RELAY_H */

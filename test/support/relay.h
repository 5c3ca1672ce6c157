/* A wire between a client and a server that can be cut without anybody being told. */
#ifndef TEST_RELAY_H
#define TEST_RELAY_H

typedef struct relay relay_t;

/* Listens on a TCP port of 127.0.0.1 and passes everything on to the unix socket of a server. */
relay_t *relay_start(const char *server_path);
void relay_stop(relay_t *relay);
const char *relay_url(const relay_t *relay);

/* From now on nothing passes on the connections that are open; new ones work. Neither side is told. */
void relay_silence(relay_t *relay);

/* Resets the connections that are open, towards the client only: the server still reads what it was sent. */
void relay_cut(relay_t *relay);

/* So far. */
unsigned relay_connections(relay_t *relay);

#endif /* TEST_RELAY_H */

/* Both sides: the engine, and a real server with several connections. */
#ifndef TEST_SIM_CONFORMANCE_PEERS_H
#define TEST_SIM_CONFORMANCE_PEERS_H

#include "sim/conformance/conformance.h"
#include "support/servers/server.h"

typedef struct conformance_peers {
  server_t *server;
  char run_id[41];
  uint64_t started_us;

  engine_t *engine;
  conformance_shadow_t *shadow;
  int64_t killed; /* the connection that the engine wants to be closed; 0: none */
  engine_conn_t conn[CONFORMANCE_CONNS];
  engine_buffer_t pushed[CONFORMANCE_CONNS];

  unsigned conns;
  int resp;
  resp_client_t client[CONFORMANCE_CONNS];
  engine_buffer_t received[CONFORMANCE_CONNS]; /* and not looked at yet */
} conformance_peers_t;

/* Both know nothing then; conformance_end() leaves the server. */
void conformance_begin(conformance_peers_t *peers, unsigned conns, int resp);
void conformance_end(conformance_peers_t *peers);

/* The engine alone: the same data are there, and all connections are new. */
void conformance_restart(conformance_peers_t *peers);

/* Adds a command as clients send it, and sends what was added. */
void conformance_add(engine_buffer_t *to, const conformance_command_t *command);
void conformance_send(resp_client_t *client, engine_buffer_t *bytes);

/* The next reply of the server's; of no length if none comes. Valid until it is dropped. */
engine_bytes_t conformance_next(conformance_peers_t *peers, unsigned conn);

/* So many of them, all of which are there until they are dropped. */
engine_bytes_t conformance_next_few(conformance_peers_t *peers, unsigned conn, size_t count);
void conformance_drop(engine_buffer_t *buffer, size_t len);

#endif /* TEST_SIM_CONFORMANCE_PEERS_H */

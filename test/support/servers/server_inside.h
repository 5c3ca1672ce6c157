/* Shared by server.c and server_ask.c. */
#ifndef TEST_SUPPORT_SERVERS_SERVER_INSIDE_H
#define TEST_SUPPORT_SERVERS_SERVER_INSIDE_H

#include <sys/types.h>

#include "support/deployments/cluster.h"
#include "support/servers/server.h"

/* One process; or a cluster of several, which is controlled and queried as one. */
struct server {
  cluster_t *cluster; /* NULL: it is a process */
  server_options_t options;
  pid_t pid; /* 0: not running */
  bool paused;
  int port, bus;     /* 0: none */
  int held[2];       /* reservations of the ports; -1: none */
  server_t *replica; /* of the deployment "replicas"; it has none of its own */
  char folder[64], file[96], socket[96], log[96], dump[96], url[256];
  char led[256]; /* the URL by which it is found, if that is not its own */
  resp_client_t client;
  resp_t *reply; /* the last one */
};

/* The processes of a server, from 0; NULL: there are no more. */
server_t *server_process(server_t *server, unsigned i);

/* Connects the client of a process, and logs in; false if that does not go. */
bool server_dial(server_t *server);

#endif /* TEST_SUPPORT_SERVERS_SERVER_INSIDE_H */

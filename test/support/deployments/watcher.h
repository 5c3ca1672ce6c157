/* The deployment "sentinel" (support/deployments/deployment.h): one Sentinel monitors all
 * servers of a test, each as a master of its own. It never declares one down and never connects
 * to one. The URLs of the servers lead to it. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_WATCHER_H
#define TEST_SUPPORT_DEPLOYMENTS_WATCHER_H

#include <stddef.h>

#include "support/servers/server.h"

/* Adds a server to the Sentinel and writes its URL: redis+sentinel://[login]127.0.0.1:port/mPORT,
 * where PORT is the server's own. */
void watcher_add(server_t *server, char *url, size_t size);
void watcher_remove(const server_t *server);

/* The server's own port, out of such a URL; 0: it is another one. */
int watcher_port(const char *url);

#endif /* TEST_SUPPORT_DEPLOYMENTS_WATCHER_H */

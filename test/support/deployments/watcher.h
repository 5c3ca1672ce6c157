/* The deployment "sentinel" (support/deployments/deployment.h): one Sentinel knows all servers of a test, each as a master of its own,
 * which is never taken for dead, nor ever connected to. Their URLs lead there. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_WATCHER_H
#define TEST_SUPPORT_DEPLOYMENTS_WATCHER_H

#include <stddef.h>

#include "support/servers/server.h"

/* Makes it known, and writes its URL: redis+sentinel://[login]127.0.0.1:port/mPORT, where PORT is its own. */
void watcher_add(server_t *server, char *url, size_t size);
void watcher_remove(const server_t *server);

/* The server's own port, out of such a URL; 0: it is another one. */
int watcher_port(const char *url);

#endif /* TEST_SUPPORT_DEPLOYMENTS_WATCHER_H */

#include "support/deployments/watcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/servers/server_inside.h"
#include "support/base/unit.h"

#define SCHEME "redis+sentinel://"
#define NAME_MAX_LEN 16

/* It is there from the first server on, until the process ends. */
static server_t *watcher;

static const char *name_of(const server_t *server, char name[NAME_MAX_LEN]) {
  snprintf(name, NAME_MAX_LEN, "m%d", server_port(server));
  return name;
}

/* It never connects to known peers, whose next ping is far away: so only the test's actions
 * count. */
static void start(void) {
  watcher = server_start(&(server_options_t){.address = "127.0.0.1", .sentinel = true});
  server_do(watcher, "SENTINEL", "DEBUG", "ping-period", "9000000000000000", NULL);
}

void watcher_add(server_t *server, char *url, size_t size) {
  char name[NAME_MAX_LEN], port[12];
  if (watcher == NULL)
    start();
  snprintf(port, sizeof port, "%d", server_port(server));
  server_do(watcher, "SENTINEL", "MONITOR", name_of(server, name), server->options.address, port,
            "1", NULL);
  server_do(watcher, "SENTINEL", "SET", name, "down-after-milliseconds", "86400000", NULL);
  snprintf(url, size, SCHEME "%s127.0.0.1:%d/%s", server_login(server), server_port(watcher), name);
}

void watcher_remove(const server_t *server) {
  char name[NAME_MAX_LEN];
  server_do(watcher, "SENTINEL", "REMOVE", name_of(server, name), NULL);
}

int watcher_port(const char *url) {
  return strncmp(url, SCHEME, sizeof SCHEME - 1) == 0 ? atoi(strrchr(url, '/') + 2) : 0;
}

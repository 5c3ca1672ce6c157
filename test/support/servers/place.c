#include "support/servers/place.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/base/unit.h"

/* The socket is bound and sets the option to share its address afterwards. So servers, which
 * always set it, can bind the port; tests that search a free port cannot. */
int place_hold_port(const char *address, int *fd) {
  struct sockaddr_in v4 = {.sin_family = AF_INET};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
  bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
  inet_pton(AF_INET6, address, &v6.sin6_addr);
  *fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr *any = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
  socklen_t len = is_v4 ? sizeof v4 : sizeof v6;
  if (bind(*fd, any, len) != 0 || getsockname(*fd, any, &len) != 0)
    fail_msg("no port for a server on %s: %s", address, strerror(errno));
  setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  return ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
}

/* Files of servers have names of their own and are at most one folder deep. */
void place_remove(const char *path) {
  char inside[512];
  DIR *dir = opendir(path);
  for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
    snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
    if (entry->d_type != DT_DIR)
      unlink(inside);
    else if (entry->d_name[0] != '.')
      place_remove(inside);
  }
  if (dir != NULL)
    closedir(dir);
  rmdir(path);
}

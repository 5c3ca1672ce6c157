#include "query/resp.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shell/units.h"

#define PATIENCE_S 5

/* ---- the URL ------------------------------------------------------------------------------------------- */

/* Where a server is. The texts lie in a copy of the URL. */
typedef struct address {
  char *user, *password, *host, *port, *path, *db; /* NULL: not given */
} address_t;

static int hex_digit(char c) {
  static const char digits[] = "0123456789abcdef0123456789ABCDEF";
  const char *at = c == '\0' ? NULL : strchr(digits, c);
  return at == NULL ? -1 : (int)(at - digits) % 16;
}

/* Undoes %XX in place. */
static void unescape(char *text) {
  char *to = text;
  for (const char *c = text; *c != '\0'; c++) {
    int high = *c == '%' ? hex_digit(c[1]) : -1;
    int low = high >= 0 ? hex_digit(c[2]) : -1;
    *to++ = low >= 0 ? (char)(high * 16 + low) : *c;
    c += low >= 0 ? 2 : 0;
  }
  *to = '\0';
}

/* Ends `text` before the separator and returns what follows it; NULL if there is none. */
static char *split(char *text, const char *separator) {
  char *at = strstr(text, separator);
  if (at == NULL)
    return NULL;
  *at = '\0';
  return at + strlen(separator);
}

/* [user[:password]@]host[:port][/db] */
static void read_authority(char *rest, address_t *out) {
  out->db = split(rest, "/");
  out->host = strrchr(rest, '@');
  if (out->host != NULL) {
    *out->host++ = '\0';
    out->user = rest;
    out->password = split(rest, ":");
    unescape(out->user);
    if (out->password != NULL)
      unescape(out->password);
  } else {
    out->host = rest;
  }
  if (*out->host == '[') {
    out->host++;
    char *end = split(out->host, "]");
    out->port = end != NULL && *end == ':' ? end + 1 : NULL;
  } else {
    out->port = split(out->host, ":");
  }
}

/* Takes the URL apart, in place. */
static bool read_url(char *url, address_t *out) {
  *out = (address_t){0};
  char *rest = split(url, "://");
  if (rest == NULL)
    return false;
  if (strcmp(url, "redis") == 0) {
    read_authority(rest, out);
    return true;
  }
  if (strcmp(url, "unix") != 0)
    return false;
  char *query = split(rest, "?");
  if (query != NULL && strncmp(query, "db=", 3) == 0)
    out->db = query + 3;
  out->path = rest;
  unescape(out->path);
  return true;
}

/* ---- the connection ------------------------------------------------------------------------------------ */

static int open_socket(int family, const struct sockaddr *address, socklen_t size) {
  struct timeval patience = {.tv_sec = PATIENCE_S};
  int fd = socket(family, SOCK_STREAM, 0);
  if (fd < 0)
    return -1;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
      setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
      connect(fd, address, size) == 0)
    return fd;
  (void)close(fd);
  return -1;
}

static int connect_to(const address_t *address) {
  if (address->path != NULL) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    if (strlen(address->path) >= sizeof un.sun_path)
      return -1;
    memcpy(un.sun_path, address->path, strlen(address->path) + 1);
    return open_socket(AF_UNIX, (struct sockaddr *)&un, sizeof un);
  }
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
  if (getaddrinfo(address->host, address->port != NULL ? address->port : "6379", &hints, &list) !=
      0)
    return -1;
  int fd = -1;
  for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
    fd = open_socket(a->ai_family, a->ai_addr, a->ai_addrlen);
  freeaddrinfo(list);
  return fd;
}

/* ---- the protocol -------------------------------------------------------------------------------------- */

static bool send_command(FILE *out, const char *const *args, size_t n) {
  bool well = fprintf(out, "*%zu\r\n", n) > 0;
  for (size_t i = 0; i < n && well; i++)
    well = fprintf(out, "$%zu\r\n%s\r\n", strlen(args[i]), args[i]) > 0;
  return well && fflush(out) == 0;
}

/* One line of a reply; the replies that are expected here have no more. */
static bool read_line(FILE *in, char *line, int size) {
  if (fgets(line, size, in) == NULL)
    return false;
  size_t len = strcspn(line, "\r\n");
  bool whole = line[len] != '\0';
  line[len] = '\0';
  return whole;
}

static bool is_ok(FILE *in) {
  char line[64];
  return read_line(in, line, sizeof line) && strcmp(line, "+OK") == 0;
}

static bool shake_hands(FILE *in, FILE *out, const address_t *address) {
  const char *user = address->user != NULL ? address->user : "";
  const char *password = address->password != NULL ? address->password : "";
  bool named = *user != '\0'; /* who may do without a password */
  if (named || *password != '\0') {
    const char *auth[] = {"AUTH", named ? user : password, password};
    if (!send_command(out, auth, named ? 3 : 2) || !is_ok(in))
      return false;
  }
  if (address->db == NULL || *address->db == '\0')
    return true;
  const char *select[] = {"SELECT", address->db};
  return send_command(out, select, 2) && is_ok(in);
}

static bool ask(FILE *in, FILE *out, const address_t *address, const char *const *args, size_t n,
                int64_t *reply) {
  char line[64];
  if (!shake_hands(in, out, address) || !send_command(out, args, n) ||
      !read_line(in, line, sizeof line) || line[0] != ':')
    return false;
  return units_number(line + 1, reply);
}

bool resp_ask(const char *url, const char *const *args, size_t n, int64_t *reply) {
  char *copy = strdup(url);
  address_t address;
  bool well = false;
  int fd = copy != NULL && read_url(copy, &address) ? connect_to(&address) : -1;
  int twin = fd < 0 ? -1 : dup(fd); /* a stream for each direction */
  FILE *in = fd < 0 ? NULL : fdopen(fd, "r"), *out = twin < 0 ? NULL : fdopen(twin, "w");
  if (in != NULL && out != NULL)
    well = ask(in, out, &address, args, n, reply);
  if (in != NULL)
    (void)fclose(in);
  else if (fd >= 0)
    (void)close(fd);
  if (out != NULL)
    (void)fclose(out);
  else if (twin >= 0)
    (void)close(twin);
  free(copy);
  return well;
}

#include "load/subjects/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench.h"
#include "load/driver/meter.h"

enum { CONNECTIONS_MAX = 16, CHUNK = 1 << 16 };

/* One connection: bytes from the client that are no whole command yet. */
typedef struct connection {
  int client, server;
  redisContext *dialed;
  bool late; /* it came when there was writing: it shakes hands, to listen */
  char *part;
  size_t len, size;
} connection_t;

struct tap {
  pthread_t thread;
  char path[64], folder[48], server[160];
  int listener, bell[2];
  atomic_bool writing, deaf, over;
  unsigned n;
  connection_t connections[CONNECTIONS_MAX];
  tape_t tape;
  char chunk[CHUNK];
};

/* A number that ends with a line; the bytes up to there, 0: it is not all there. */
static size_t number(const char *at, const char *end, long *n) {
  const char *line = memchr(at, '\n', (size_t)(end - at));
  if (line == NULL)
    return 0;
  *n = strtol(at + 1, NULL, 10);
  return (size_t)(line + 1 - at);
}

size_t tape_words(const char *bytes, size_t len, tape_word_t *words, size_t max, size_t *n) {
  const char *at = bytes, *end = bytes + len;
  long count, word_len = 0;
  size_t used = number(at, end, &count);
  at += used;
  *n = 0;
  for (long i = 0; used > 0 && i < count; i++) {
    if (at == end || (used = number(at, end, &word_len)) == 0 ||
        (size_t)(end - at) < used + (size_t)word_len + 2)
      return 0;
    if (*n < max)
      words[(*n)++] = (tape_word_t){at + used, (size_t)word_len};
    at += used + (size_t)word_len + 2;
  }
  return used > 0 ? (size_t)(at - bytes) : 0;
}

size_t tape_command_len(const char *bytes, size_t len) {
  tape_word_t name;
  size_t n;
  return tape_words(bytes, len, &name, 1, &n);
}

static bool listens(const tape_word_t *name) {
  static const char *const names[] = {"SUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "SUNSUBSCRIBE",
                                      "PING"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i]) == name->len && strncasecmp(names[i], name->at, name->len) == 0)
      return true;
  return false;
}

static void append(char **bytes, size_t *len, size_t *size, const char *more, size_t n) {
  while (*len + n > *size) {
    *size = *size > 0 ? *size * 2 : CHUNK;
    *bytes = realloc(*bytes, *size);
    if (*bytes == NULL)
      bench_die("out of memory");
  }
  memcpy(*bytes + *len, more, n);
  *len += n;
}

void tape_append(tape_t *tape, const char *bytes, size_t n) {
  append(&tape->bytes, &tape->len, &tape->size, bytes, n);
}

void tape_command(tape_t *tape, size_t words) {
  char head[24];
  tape_append(tape, head, (size_t)snprintf(head, sizeof head, "*%zu\r\n", words));
  tape->commands++;
}

void tape_word(tape_t *tape, const char *text, size_t len) {
  char head[24];
  tape_append(tape, head, (size_t)snprintf(head, sizeof head, "$%zu\r\n", len));
  tape_append(tape, text, len);
  tape_append(tape, "\r\n", 2);
}

static void note(tap_t *tap, connection_t *connection, const char *bytes, size_t n) {
  tape_word_t name = {0};
  size_t used = 0, len, words;
  append(&connection->part, &connection->len, &connection->size, bytes, n);
  while ((len = tape_words(connection->part + used, connection->len - used, &name, 1, &words)) >
         0) {
    if (atomic_load(&tap->writing) && !connection->late && !listens(&name)) {
      tape_append(&tap->tape, connection->part + used, len);
      tap->tape.commands++;
    }
    used += len;
  }
  memmove(connection->part, connection->part + used, connection->len - used);
  connection->len -= used;
}

static void open_connection(tap_t *tap) {
  int client = accept4(tap->listener, NULL, NULL, SOCK_CLOEXEC);
  if (client < 0)
    return;
  if (tap->n == CONNECTIONS_MAX)
    bench_die("too many connections");
  redisContext *dialed = meter_dial(tap->server);
  tap->connections[tap->n++] = (connection_t){
      .client = client, .dialed = dialed, .server = dialed->fd, .late = atomic_load(&tap->writing)};
}

static void close_connection(tap_t *tap, connection_t *connection) {
  close(connection->client);
  redisFree(connection->dialed);
  free(connection->part);
  *connection = tap->connections[--tap->n];
}

/* -1: no server. */
static bool pass(int from, int to, char *chunk, size_t *n) {
  ssize_t got = read(from, chunk, CHUNK);
  if (got <= 0)
    return false;
  *n = (size_t)got;
  for (size_t sent = 0; sent < *n && to >= 0;) {
    ssize_t put = send(to, chunk + sent, *n - sent, MSG_NOSIGNAL);
    if (put <= 0)
      return false;
    sent += (size_t)put;
  }
  return true;
}

static void *run(void *arg) {
  tap_t *tap = arg;
  char *chunk = tap->chunk;
  while (!atomic_load(&tap->over)) {
    struct pollfd fds[2 + 2 * CONNECTIONS_MAX] = {{tap->listener, POLLIN, 0},
                                                  {tap->bell[0], POLLIN, 0}};
    unsigned n = tap->n;
    for (unsigned i = 0; i < n; i++) {
      fds[2 + 2 * i] = (struct pollfd){tap->connections[i].client, POLLIN, 0};
      fds[3 + 2 * i] = (struct pollfd){tap->connections[i].server, POLLIN, 0};
    }
    if (poll(fds, 2 + 2 * n, -1) < 0 && errno != EINTR)
      bench_die("poll: %s", strerror(errno));
    for (unsigned i = n; i-- > 0;) {
      connection_t *connection = &tap->connections[i];
      size_t len = 0;
      bool up = true;
      int server = atomic_load(&tap->deaf) ? -1 : connection->server;
      if (fds[2 + 2 * i].revents != 0 && (up = pass(connection->client, server, chunk, &len)))
        note(tap, connection, chunk, len);
      if (up && fds[3 + 2 * i].revents != 0)
        up = pass(connection->server, connection->client, chunk, &len);
      if (!up)
        close_connection(tap, connection);
    }
    if (fds[0].revents != 0)
      open_connection(tap);
  }
  return NULL;
}

tap_t *tap_open(const char *server, char *url, size_t size) {
  tap_t *tap = bench_alloc(1, sizeof *tap);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  (void)snprintf(tap->server, sizeof tap->server, "%s", server);
  (void)snprintf(tap->folder, sizeof tap->folder, "/tmp/belay-bench-tap-XXXXXX");
  if (mkdtemp(tap->folder) == NULL || pipe2(tap->bell, O_CLOEXEC) != 0)
    bench_die("no tap: %s", strerror(errno));
  (void)snprintf(tap->path, sizeof tap->path, "%s/socket", tap->folder);
  (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", tap->path);
  tap->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(tap->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
      listen(tap->listener, CONNECTIONS_MAX) != 0)
    bench_die("no tap: %s", strerror(errno));
  (void)snprintf(url, size, "unix://%s", tap->path);
  if (pthread_create(&tap->thread, NULL, run, tap) != 0)
    bench_die("no thread");
  return tap;
}

void tap_write(tap_t *tap, bool on) {
  atomic_store(&tap->writing, on);
  atomic_store(&tap->deaf, !on);
}

tape_t tap_close(tap_t *tap) {
  tape_t tape;
  atomic_store(&tap->over, true);
  if (write(tap->bell[1], "", 1) != 1)
    bench_die("a tap cannot be closed");
  pthread_join(tap->thread, NULL);
  while (tap->n > 0)
    close_connection(tap, &tap->connections[0]);
  close(tap->listener);
  close(tap->bell[0]);
  close(tap->bell[1]);
  unlink(tap->path);
  rmdir(tap->folder);
  tape = tap->tape;
  free(tap);
  return tape;
}

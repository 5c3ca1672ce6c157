#include "support/deployments/fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scripts.gen.h"
#include "support/servers/resp.h"
#include "support/base/unit.h"

#define LINKS_MAX 256
#define WORDS_MAX 32

struct fake_link {
  fake_t *fake;
  int fd; /* -1: over */
  bool listens;
  unsigned number, commands;
  size_t len;
  char buffer[65536];
};

struct fake {
  fake_options_t options;
  pthread_t thread;
  int listener, news[2]; /* a pipe for published messages; the fake reads its end */
  atomic_uint connections, commands;
  char url[64];
  fake_link_t *links[LINKS_MAX];
};

/* ---- a command out of bytes ---- */

/* The number in a line such as "*3\r\n"; moves *at behind it. -1: the line is not whole yet. */
static long take_number(const char *data, size_t len, size_t *at) {
  const char *end = memchr(data + *at, '\n', len - *at);
  if (end == NULL)
    return -1;
  long value = strtol(data + *at + 1, NULL, 10);
  *at = (size_t)(end - data) + 1;
  return value;
}

/* Splits the first command in place; returns its bytes, 0 if it is not whole yet. */
static size_t take_command(char *data, size_t len, const char **words, size_t *count) {
  size_t at = 0, ends[WORDS_MAX];
  long n = take_number(data, len, &at);
  *count = 0;
  for (long i = 0; i < n; i++) {
    long size = take_number(data, len, &at);
    if (size < 0 || len - at < (size_t)size + 2)
      return 0;
    if (*count < WORDS_MAX) {
      ends[*count] = at + (size_t)size;
      words[(*count)++] = data + at;
    }
    at += (size_t)size + 2;
  }
  if (n <= 0)
    return 0;
  for (size_t i = 0; i < *count; i++)
    data[ends[i]] = '\0';
  return at;
}

bool fake_is_handshake(const char *const *words) {
  static const char *const names[] = {"AUTH", "SELECT", "CLIENT", "COMMAND", "HELLO", "INFO"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcasecmp(words[0], names[i]) == 0)
      return true;
  return false;
}

/* ---- talking ---- */

void fake_say_bytes(fake_link_t *link, const char *data, size_t len) {
  if (link->fd >= 0)
    (void)resp_send(link->fd, data, len); /* the client may have closed the connection */
}

void fake_say(fake_link_t *link, const char *text) {
  fake_say_bytes(link, text, strlen(text));
}

void fake_listen(fake_link_t *link) {
  link->listens = true;
}

void fake_hang_up(fake_link_t *link) {
  if (link->fd >= 0)
    close(link->fd);
  link->fd = -1;
}

unsigned fake_link_number(const fake_link_t *link) {
  return link->number;
}

unsigned fake_link_command(const fake_link_t *link) {
  return link->commands;
}

/* COMMAND INFO: of each an array that begins with its name, or nil. */
static void describe_commands(fake_link_t *link, const char *const *words, size_t count) {
  const char *knows[] = {"bitfield_ro", "ssubscribe", link->fake->options.knows};
  char text[256];
  snprintf(text, sizeof text, "*%zu\r\n", count - 2);
  fake_say(link, text);
  for (size_t i = 2; i < count; i++) {
    snprintf(text, sizeof text, "$-1\r\n");
    for (size_t j = 0; j < 3; j++)
      if (knows[j] != NULL && strcasecmp(words[i], knows[j]) == 0)
        snprintf(text, sizeof text, "*2\r\n$%zu\r\n%s\r\n:-2\r\n", strlen(words[i]), words[i]);
    fake_say(link, text);
  }
}

static void answer_handshake(fake_link_t *link, const char *const *words, size_t count) {
  static const char info[] = "# Server\r\nredis_version:7.0.15\r\n"
                             "run_id:0123456789012345678901234567890123456789\r\n";
  char text[256];
  if (strcasecmp(words[0], "HELLO") == 0) {
    snprintf(text, sizeof text,
             "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n"
             "$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:%u\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
             "$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
             link->number);
    fake_say(link, text);
  } else if (count > 1 && strcasecmp(words[0], "COMMAND") == 0) {
    describe_commands(link, words, count);
  } else if (strcasecmp(words[0], "INFO") == 0) {
    snprintf(text, sizeof text, "$%zu\r\n%s\r\n", strlen(info), info);
    fake_say(link, text);
  } else if (count > 1 && strcasecmp(words[0], "CLIENT") == 0 && strcasecmp(words[1], "ID") == 0) {
    snprintf(text, sizeof text, ":%u\r\n", link->number);
    fake_say(link, text);
  } else if (count > 1 && strcasecmp(words[0], "CLIENT") == 0 &&
             strcasecmp(words[1], "KILL") == 0) {
    fake_say(link, ":0\r\n");
  } else {
    fake_say(link, "+OK\r\n");
  }
}

static bool is_acquire(const char *const *words, size_t count) {
  const belay__script_t *script = &belay__script_lock_acquire;
  return count > 1 && (strcmp(words[1], script->sha1) == 0 || strcmp(words[1], script->text) == 0);
}

void fake_behave(fake_link_t *link, const char *const *words, size_t count) {
  if (fake_is_handshake(words))
    answer_handshake(link, words, count);
  else if (strcasecmp(words[0], "PING") == 0)
    fake_say(link, "+PONG\r\n");
  else if (strcasecmp(words[0], "SET") == 0)
    fake_say(link, "$-1\r\n");
  else if (is_acquire(words, count))
    fake_say(link, ":0\r\n");
  else
    fake_say(link, ":1\r\n");
}

static void handle_command(fake_link_t *link, const char *const *words, size_t count) {
  fake_t *fake = link->fake;
  if (!fake_is_handshake(words)) {
    link->commands++;
    atomic_fetch_add(&fake->commands, 1);
  }
  if (fake->options.mute)
    return;
  if (fake->options.on_command != NULL)
    fake->options.on_command(link, words, count, fake->options.arg);
  else
    fake_behave(link, words, count);
}

/* ---- the thread ---- */

static void receive(fake_link_t *link) {
  ssize_t n = recv(link->fd, link->buffer + link->len, sizeof link->buffer - link->len, 0);
  if (n <= 0) {
    fake_hang_up(link);
    return;
  }
  link->len += (size_t)n;
  const char *words[WORDS_MAX];
  size_t count, used;
  while (link->fd >= 0 && (used = take_command(link->buffer, link->len, words, &count)) > 0) {
    handle_command(link, words, count);
    link->len -= used;
    memmove(link->buffer, link->buffer + used, link->len);
  }
}

static void welcome(fake_t *fake) {
  int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0)
    return;
  unsigned number = atomic_fetch_add(&fake->connections, 1) + 1;
  for (size_t i = 0; i < LINKS_MAX; i++) {
    if (fake->links[i] != NULL && fake->links[i]->fd >= 0)
      continue;
    free(fake->links[i]);
    fake_link_t *link = fake->links[i] = calloc(1, sizeof *link);
    link->fake = fake;
    link->fd = fd;
    link->number = number;
    if (fake->options.greeting != NULL)
      fake_say(link, fake->options.greeting);
    return;
  }
  close(fd);
}

/* False: there will be none any more. */
static bool publish_news(fake_t *fake) {
  char *text;
  if (read(fake->news[0], &text, sizeof text) != sizeof text)
    return false;
  for (size_t i = 0; i < LINKS_MAX; i++)
    if (fake->links[i] != NULL && fake->links[i]->listens)
      fake_say(fake->links[i], text);
  free(text);
  return true;
}

static size_t fill_poll(const fake_t *fake, struct pollfd *polls, fake_link_t **who) {
  size_t n = 0;
  polls[n++] = (struct pollfd){.fd = fake->news[0], .events = POLLIN};
  polls[n++] = (struct pollfd){.fd = fake->listener, .events = POLLIN};
  for (size_t i = 0; i < LINKS_MAX; i++)
    if (fake->links[i] != NULL && fake->links[i]->fd >= 0) {
      who[n] = fake->links[i];
      polls[n++] = (struct pollfd){.fd = fake->links[i]->fd, .events = POLLIN};
    }
  return n;
}

static void *run(void *arg) {
  fake_t *fake = arg;
  for (;;) {
    struct pollfd polls[LINKS_MAX + 2];
    fake_link_t *who[LINKS_MAX + 2] = {0};
    size_t n = fill_poll(fake, polls, who);
    if (poll(polls, n, -1) < 0 && errno != EINTR)
      return NULL;
    if (polls[0].revents != 0 && !publish_news(fake))
      return NULL;
    for (size_t i = 2; i < n; i++)
      if (polls[i].revents != 0)
        receive(who[i]);
    if (polls[1].revents != 0)
      welcome(fake);
  }
}

fake_t *fake_start(const fake_options_t *options) {
  fake_t *fake = calloc(1, sizeof *fake);
  if (options != NULL)
    fake->options = *options;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof address;
  fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fake->listener, (struct sockaddr *)&address, len), 0);
  assert_int_equal(listen(fake->listener, 64), 0);
  assert_int_equal(getsockname(fake->listener, (struct sockaddr *)&address, &len), 0);
  assert_int_equal(pipe2(fake->news, O_CLOEXEC), 0);
  snprintf(fake->url, sizeof fake->url, "redis://127.0.0.1:%d", ntohs(address.sin_port));
  assert_int_equal(pthread_create(&fake->thread, NULL, run, fake), 0);
  return fake;
}

void fake_stop(fake_t *fake) {
  close(fake->news[1]);
  pthread_join(fake->thread, NULL);
  close(fake->news[0]);
  close(fake->listener);
  for (size_t i = 0; i < LINKS_MAX; i++) {
    if (fake->links[i] != NULL)
      fake_hang_up(fake->links[i]);
    free(fake->links[i]);
  }
  free(fake);
}

void fake_publish(fake_t *fake, const char *text) {
  char *copy = strdup(text);
  assert_int_equal(write(fake->news[1], &copy, sizeof copy), sizeof copy);
}

const char *fake_url(const fake_t *fake) {
  return fake->url;
}

unsigned fake_connections(fake_t *fake) {
  return atomic_load(&fake->connections);
}

unsigned fake_commands(fake_t *fake) {
  return atomic_load(&fake->commands);
}

#include "support/deployments/fake_sentinel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "support/deployments/fake.h"
#include "support/base/unit.h"

#define LIST_MAX 131072

struct fake_sentinel {
  fake_sentinel_options_t options;
  fake_t *fake;
  pthread_mutex_t lock; /* of what follows: the fake has a thread of its own */
  char host[300];       /* "": it knows no master */
  int port;
  uint64_t epoch;
  const char *flags; /* of the master */
  const char *answer;
  bool mute;
  unsigned queries, subscribers;
  unsigned sentinel_count, replica_count;
  char sentinels[LIST_MAX], replicas[LIST_MAX]; /* as they are said */
};

/* ---- what it says ---- */

static void say_string(fake_link_t *link, const char *text) {
  char head[32];
  snprintf(head, sizeof head, "$%zu\r\n", strlen(text));
  fake_say(link, head);
  fake_say(link, text);
  fake_say(link, "\r\n");
}

static void say_number(fake_link_t *link, uint64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)number);
  say_string(link, text);
}

static void say_address(fake_link_t *link, const fake_sentinel_t *sentinel) {
  if (sentinel->answer != NULL) {
    fake_say(link, sentinel->answer);
  } else if (sentinel->host[0] == '\0') {
    fake_say(link, sentinel->options.old ? "*-1\r\n" : "_\r\n");
  } else {
    fake_say(link, "*2\r\n");
    say_string(link, sentinel->host);
    say_number(link, (uint64_t)sentinel->port);
  }
}

static void say_master(fake_link_t *link, const fake_sentinel_t *sentinel) {
  fake_say(link, sentinel->options.old ? "*6\r\n" : "%3\r\n");
  say_string(link, "name");
  say_string(link, FAKE_SENTINEL_MASTER);
  say_string(link, "config-epoch");
  say_number(link, sentinel->epoch);
  say_string(link, "flags");
  say_string(link, sentinel->flags);
}

static void say_list(fake_link_t *link, unsigned count, const char *list) {
  char head[32];
  snprintf(head, sizeof head, "*%u\r\n", count);
  fake_say(link, head);
  fake_say(link, list);
}

/* ---- its commands ---- */

static void on_question(fake_link_t *link, const char *const *words, size_t count,
                        fake_sentinel_t *sentinel) {
  bool known =
      count > 2 && strcmp(words[2], FAKE_SENTINEL_MASTER) == 0 && sentinel->host[0] != '\0';
  const char *what = count > 1 ? words[1] : "";
  if (strcasecmp(what, "GET-MASTER-ADDR-BY-NAME") == 0) {
    sentinel->queries++;
    say_address(link, sentinel);
  } else if (!known) {
    fake_say(link, "-ERR No such master with that name\r\n");
  } else if (strcasecmp(what, "MASTER") == 0) {
    say_master(link, sentinel);
  } else if (strcasecmp(what, "SENTINELS") == 0) {
    say_list(link, sentinel->sentinel_count, sentinel->sentinels);
  } else if (strcasecmp(what, "REPLICAS") == 0) {
    say_list(link, sentinel->replica_count, sentinel->replicas);
  } else {
    fake_say(link, "-ERR Unknown sentinel subcommand\r\n");
  }
}

static void on_subscribe(fake_link_t *link, const char *channel, fake_sentinel_t *sentinel) {
  if (sentinel->options.secretive) {
    fake_say(link, "-NOPERM this user has no permissions to access one of the channels\r\n");
    return;
  }
  fake_say(link, ">3\r\n$9\r\nsubscribe\r\n");
  say_string(link, channel);
  fake_say(link, ":1\r\n");
  fake_listen(link);
  sentinel->subscribers += strcmp(channel, "+switch-master") == 0;
}

static void on_auth(fake_link_t *link, const char *const *words, size_t count,
                    const fake_sentinel_t *sentinel) {
  const char *password = sentinel->options.password;
  if (password == NULL)
    fake_say(link, "-ERR AUTH <password> called without any password configured for the default "
                   "user. Are you sure your configuration is correct?\r\n");
  else if (count < 2 || strcmp(words[count - 1], password) != 0)
    fake_say(link, "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  else
    fake_say(link, "+OK\r\n");
}

/* An accepted connection stays accepted: commands after a wrong AUTH are answered. */
static void on_command(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  fake_sentinel_t *sentinel = arg;
  pthread_mutex_lock(&sentinel->lock);
  bool hello = strcasecmp(words[0], "HELLO") == 0;
  if (sentinel->mute)
    ;
  else if (strcasecmp(words[0], "AUTH") == 0)
    on_auth(link, words, count, sentinel);
  else if (hello && sentinel->options.old)
    fake_say(link, "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n");
  else if (hello)
    fake_say(link, "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n");
  else if (strcasecmp(words[0], "SUBSCRIBE") == 0)
    on_subscribe(link, count > 1 ? words[1] : "", sentinel);
  else if (strcasecmp(words[0], "SENTINEL") == 0)
    on_question(link, words, count, sentinel);
  else
    fake_say(link, "-ERR unknown command\r\n");
  pthread_mutex_unlock(&sentinel->lock);
}

/* ---- for the test ---- */

fake_sentinel_t *fake_sentinel_start(const fake_sentinel_options_t *options) {
  fake_sentinel_t *sentinel = calloc(1, sizeof *sentinel);
  if (options != NULL)
    sentinel->options = *options;
  sentinel->flags = "master";
  pthread_mutex_init(&sentinel->lock, NULL);
  sentinel->fake = fake_start(&(fake_options_t){.on_command = on_command, .arg = sentinel});
  return sentinel;
}

void fake_sentinel_stop(fake_sentinel_t *sentinel) {
  fake_stop(sentinel->fake);
  pthread_mutex_destroy(&sentinel->lock);
  free(sentinel);
}

int fake_sentinel_port(const fake_sentinel_t *sentinel) {
  return atoi(strrchr(fake_url(sentinel->fake), ':') + 1);
}

void fake_sentinel_set_primary(fake_sentinel_t *sentinel, const char *host, int port,
                               uint64_t epoch) {
  pthread_mutex_lock(&sentinel->lock);
  snprintf(sentinel->host, sizeof sentinel->host, "%s", host == NULL ? "" : host);
  sentinel->port = port;
  sentinel->epoch = epoch;
  pthread_mutex_unlock(&sentinel->lock);
}

/* Adds a list of names and values to a list of those. */
static void add(fake_sentinel_t *sentinel, char *list, unsigned *count, const char *host, int port,
                const char *flags) {
  char text[512], digits[12], run_id[41];
  snprintf(digits, sizeof digits, "%d", port);
  fake_sentinel_run_id(port, run_id);
  snprintf(text, sizeof text,
           "*10\r\n$5\r\nrunid\r\n$40\r\n%s\r\n$2\r\nip\r\n$%zu\r\n%s\r\n$4\r\nport\r\n$%zu\r\n%"
           "s\r\n$5\r\nflags\r\n$%zu\r\n%s\r\n"
           "$18\r\nmaster-link-status\r\n$2\r\nok\r\n",
           run_id, strlen(host), host, strlen(digits), digits, strlen(flags), flags);
  pthread_mutex_lock(&sentinel->lock);
  assert_true(strlen(list) + strlen(text) < LIST_MAX);
  strcat(list, text);
  ++*count;
  pthread_mutex_unlock(&sentinel->lock);
}

void fake_sentinel_add_sentinel(fake_sentinel_t *sentinel, const char *host, int port) {
  add(sentinel, sentinel->sentinels, &sentinel->sentinel_count, host, port, "sentinel");
}

void fake_sentinel_clear_sentinels(fake_sentinel_t *sentinel) {
  pthread_mutex_lock(&sentinel->lock);
  sentinel->sentinels[0] = '\0';
  sentinel->sentinel_count = 0;
  pthread_mutex_unlock(&sentinel->lock);
}

void fake_sentinel_add_replica(fake_sentinel_t *sentinel, const char *host, int port,
                               const char *flags) {
  add(sentinel, sentinel->replicas, &sentinel->replica_count, host, port, flags);
}

void fake_sentinel_set_reply(fake_sentinel_t *sentinel, const char *text) {
  pthread_mutex_lock(&sentinel->lock);
  sentinel->answer = text;
  pthread_mutex_unlock(&sentinel->lock);
}

void fake_sentinel_mute(fake_sentinel_t *sentinel, bool on) {
  pthread_mutex_lock(&sentinel->lock);
  sentinel->mute = on;
  pthread_mutex_unlock(&sentinel->lock);
}

void fake_sentinel_publish_on(fake_sentinel_t *sentinel, const char *channel, const char *message) {
  char text[1024];
  snprintf(text, sizeof text, ">3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
           strlen(channel), channel, strlen(message), message);
  fake_publish(sentinel->fake, text);
}

void fake_sentinel_publish(fake_sentinel_t *sentinel, const char *message) {
  fake_sentinel_publish_on(sentinel, "+switch-master", message);
}

void fake_sentinel_run_id(int port, char out[41]) {
  snprintf(out, 41, "%040d", port);
}

void fake_sentinel_set_flags(fake_sentinel_t *sentinel, const char *flags) {
  pthread_mutex_lock(&sentinel->lock);
  sentinel->flags = flags;
  pthread_mutex_unlock(&sentinel->lock);
}

unsigned fake_sentinel_connections(fake_sentinel_t *sentinel) {
  return fake_connections(sentinel->fake);
}

void fake_sentinel_set_any_reply(fake_sentinel_t *sentinel, const char *text) {
  fake_publish(sentinel->fake, text);
}

static unsigned read_figure(fake_sentinel_t *sentinel, const unsigned *figure) {
  pthread_mutex_lock(&sentinel->lock);
  unsigned value = *figure;
  pthread_mutex_unlock(&sentinel->lock);
  return value;
}

unsigned fake_sentinel_queries(fake_sentinel_t *sentinel) {
  return read_figure(sentinel, &sentinel->queries);
}

unsigned fake_sentinel_subscribers(fake_sentinel_t *sentinel) {
  return read_figure(sentinel, &sentinel->subscribers);
}

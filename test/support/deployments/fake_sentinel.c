#include "support/deployments/fake_sentinel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "support/deployments/fake.h"
#include "support/base/unit.h"

#define LIST_MAX 131072

struct oracle {
  oracle_options_t options;
  fake_t *fake;
  pthread_mutex_t lock; /* of what follows: the fake has a thread of its own */
  char host[300];       /* "": it knows no master */
  int port;
  uint64_t epoch;
  const char *flags; /* of the master */
  const char *answer;
  bool mute;
  unsigned questions, listeners;
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

static void say_address(fake_link_t *link, const oracle_t *oracle) {
  if (oracle->answer != NULL) {
    fake_say(link, oracle->answer);
  } else if (oracle->host[0] == '\0') {
    fake_say(link, oracle->options.old ? "*-1\r\n" : "_\r\n");
  } else {
    fake_say(link, "*2\r\n");
    say_string(link, oracle->host);
    say_number(link, (uint64_t)oracle->port);
  }
}

static void say_master(fake_link_t *link, const oracle_t *oracle) {
  fake_say(link, oracle->options.old ? "*6\r\n" : "%3\r\n");
  say_string(link, "name");
  say_string(link, ORACLE_MASTER);
  say_string(link, "config-epoch");
  say_number(link, oracle->epoch);
  say_string(link, "flags");
  say_string(link, oracle->flags);
}

static void say_list(fake_link_t *link, unsigned count, const char *list) {
  char head[32];
  snprintf(head, sizeof head, "*%u\r\n", count);
  fake_say(link, head);
  fake_say(link, list);
}

/* ---- its commands ---- */

static void on_question(fake_link_t *link, const char *const *words, size_t count,
                        oracle_t *oracle) {
  bool known = count > 2 && strcmp(words[2], ORACLE_MASTER) == 0 && oracle->host[0] != '\0';
  const char *what = count > 1 ? words[1] : "";
  if (strcasecmp(what, "GET-MASTER-ADDR-BY-NAME") == 0) {
    oracle->questions++;
    say_address(link, oracle);
  } else if (!known) {
    fake_say(link, "-ERR No such master with that name\r\n");
  } else if (strcasecmp(what, "MASTER") == 0) {
    say_master(link, oracle);
  } else if (strcasecmp(what, "SENTINELS") == 0) {
    say_list(link, oracle->sentinel_count, oracle->sentinels);
  } else if (strcasecmp(what, "REPLICAS") == 0) {
    say_list(link, oracle->replica_count, oracle->replicas);
  } else {
    fake_say(link, "-ERR Unknown sentinel subcommand\r\n");
  }
}

static void on_subscribe(fake_link_t *link, const char *channel, oracle_t *oracle) {
  if (oracle->options.secretive) {
    fake_say(link, "-NOPERM this user has no permissions to access one of the channels\r\n");
    return;
  }
  fake_say(link, ">3\r\n$9\r\nsubscribe\r\n");
  say_string(link, channel);
  fake_say(link, ":1\r\n");
  fake_listen(link);
  oracle->listeners += strcmp(channel, "+switch-master") == 0;
}

static void on_auth(fake_link_t *link, const char *const *words, size_t count,
                    const oracle_t *oracle) {
  const char *password = oracle->options.password;
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
  oracle_t *oracle = arg;
  pthread_mutex_lock(&oracle->lock);
  bool hello = strcasecmp(words[0], "HELLO") == 0;
  if (oracle->mute)
    ;
  else if (strcasecmp(words[0], "AUTH") == 0)
    on_auth(link, words, count, oracle);
  else if (hello && oracle->options.old)
    fake_say(link, "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n");
  else if (hello)
    fake_say(link, "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n");
  else if (strcasecmp(words[0], "SUBSCRIBE") == 0)
    on_subscribe(link, count > 1 ? words[1] : "", oracle);
  else if (strcasecmp(words[0], "SENTINEL") == 0)
    on_question(link, words, count, oracle);
  else
    fake_say(link, "-ERR unknown command\r\n");
  pthread_mutex_unlock(&oracle->lock);
}

/* ---- for the test ---- */

oracle_t *oracle_start(const oracle_options_t *options) {
  oracle_t *oracle = calloc(1, sizeof *oracle);
  if (options != NULL)
    oracle->options = *options;
  oracle->flags = "master";
  pthread_mutex_init(&oracle->lock, NULL);
  oracle->fake = fake_start(&(fake_options_t){.on_command = on_command, .arg = oracle});
  return oracle;
}

void oracle_stop(oracle_t *oracle) {
  fake_stop(oracle->fake);
  pthread_mutex_destroy(&oracle->lock);
  free(oracle);
}

int oracle_port(const oracle_t *oracle) {
  return atoi(strrchr(fake_url(oracle->fake), ':') + 1);
}

void oracle_name(oracle_t *oracle, const char *host, int port, uint64_t epoch) {
  pthread_mutex_lock(&oracle->lock);
  snprintf(oracle->host, sizeof oracle->host, "%s", host == NULL ? "" : host);
  oracle->port = port;
  oracle->epoch = epoch;
  pthread_mutex_unlock(&oracle->lock);
}

/* Adds a list of names and values to a list of those. */
static void add(oracle_t *oracle, char *list, unsigned *count, const char *host, int port,
                const char *flags) {
  char text[512], digits[12], run_id[41];
  snprintf(digits, sizeof digits, "%d", port);
  oracle_run_id(port, run_id);
  snprintf(text, sizeof text,
           "*10\r\n$5\r\nrunid\r\n$40\r\n%s\r\n$2\r\nip\r\n$%zu\r\n%s\r\n$4\r\nport\r\n$%zu\r\n%"
           "s\r\n$5\r\nflags\r\n$%zu\r\n%s\r\n"
           "$18\r\nmaster-link-status\r\n$2\r\nok\r\n",
           run_id, strlen(host), host, strlen(digits), digits, strlen(flags), flags);
  pthread_mutex_lock(&oracle->lock);
  assert_true(strlen(list) + strlen(text) < LIST_MAX);
  strcat(list, text);
  ++*count;
  pthread_mutex_unlock(&oracle->lock);
}

void oracle_introduce(oracle_t *oracle, const char *host, int port) {
  add(oracle, oracle->sentinels, &oracle->sentinel_count, host, port, "sentinel");
}

void oracle_forget(oracle_t *oracle) {
  pthread_mutex_lock(&oracle->lock);
  oracle->sentinels[0] = '\0';
  oracle->sentinel_count = 0;
  pthread_mutex_unlock(&oracle->lock);
}

void oracle_add_replica(oracle_t *oracle, const char *host, int port, const char *flags) {
  add(oracle, oracle->replicas, &oracle->replica_count, host, port, flags);
}

void oracle_answer(oracle_t *oracle, const char *text) {
  pthread_mutex_lock(&oracle->lock);
  oracle->answer = text;
  pthread_mutex_unlock(&oracle->lock);
}

void oracle_mute(oracle_t *oracle, bool on) {
  pthread_mutex_lock(&oracle->lock);
  oracle->mute = on;
  pthread_mutex_unlock(&oracle->lock);
}

void oracle_publish_on(oracle_t *oracle, const char *channel, const char *message) {
  char text[1024];
  snprintf(text, sizeof text, ">3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
           strlen(channel), channel, strlen(message), message);
  fake_publish(oracle->fake, text);
}

void oracle_publish(oracle_t *oracle, const char *message) {
  oracle_publish_on(oracle, "+switch-master", message);
}

void oracle_run_id(int port, char out[41]) {
  snprintf(out, 41, "%040d", port);
}

void oracle_flag(oracle_t *oracle, const char *flags) {
  pthread_mutex_lock(&oracle->lock);
  oracle->flags = flags;
  pthread_mutex_unlock(&oracle->lock);
}

unsigned oracle_connections(oracle_t *oracle) {
  return fake_connections(oracle->fake);
}

void oracle_say(oracle_t *oracle, const char *text) {
  fake_publish(oracle->fake, text);
}

static unsigned read_figure(oracle_t *oracle, const unsigned *figure) {
  pthread_mutex_lock(&oracle->lock);
  unsigned value = *figure;
  pthread_mutex_unlock(&oracle->lock);
  return value;
}

unsigned oracle_questions(oracle_t *oracle) {
  return read_figure(oracle, &oracle->questions);
}

unsigned oracle_listeners(oracle_t *oracle) {
  return read_figure(oracle, &oracle->listeners);
}

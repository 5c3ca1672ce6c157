/* Looking behind the scenes. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/servers/acl.h"
#include "support/deployments/deployment.h"
#include "support/servers/server_inside.h"
#include "support/base/unit.h"

/* The reply of one process; NULL: none. */
static resp_t *call_process(server_t *server, const resp_words_t *said) {
  resp_t *reply = NULL;
  resp_words_t translated = *said, *words = &translated;
  acl_translate(&server->options, words);
  if (!server->paused && server->pid > 0)
    reply = resp_call(&server->client, words);
  if (reply == NULL && !server->paused && server->pid > 0) { /* all connections were killed */
    resp_hang_up(&server->client);
    if (server_dial(server))
      reply = resp_call(&server->client, words);
  }
  return reply;
}

/* Commands that are about no key, and are for all who are there. */
static bool is_for_all(const resp_words_t *words) {
  static const char *const names[] = {"ACL",      "CLIENT", "CONFIG", "DEBUG",
                                      "FLUSHALL", "SAVE",   "SCRIPT"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(words->word[0], names[i]) == 0)
      return true;
  return false;
}

/* Commands that look for keys, of which each has its own. */
static bool looks_for_keys(const resp_words_t *words) {
  return strcmp(words->word[0], "KEYS") == 0 || strcmp(words->word[0], "RANDOMKEY") == 0;
}

/* Joins two replies: of two keys, the first; of two lists, their concatenation. */
static resp_t *join(resp_t *all, resp_t *more) {
  if (all == NULL || more == NULL || all->type == RESP_NIL) {
    resp_free(all);
    return more;
  }
  if (all->type == RESP_ARRAY && more->type == RESP_ARRAY && more->count > 0) {
    all->items = realloc(all->items, (all->count + more->count) * sizeof(resp_t *));
    memcpy(all->items + all->count, more->items, more->count * sizeof(resp_t *));
    all->count += more->count;
    more->count = 0;
  }
  resp_free(more);
  return all;
}

/* The node that an error sends us to; NULL: it does not. */
static server_t *redirected(server_t *server, const resp_t *reply) {
  server_t *each;
  const char *colon = reply == NULL || reply->type != RESP_ERROR || strncmp(reply->str, "MOVED ", 6)
                          ? NULL
                          : strrchr(reply->str, ':');
  for (unsigned i = 0; colon != NULL && (each = server_process(server, i)) != NULL; i++)
    if (atoi(colon + 1) == each->port)
      return each;
  return NULL;
}

/* The words may belong to the last reply. */
static const resp_t *try_words(server_t *server, const resp_words_t *words) {
  server_t *each = server_process(server, 0), *other;
  resp_t *reply = call_process(each, words);
  for (unsigned i = 1; is_for_all(words) && (each = server_process(server, i)) != NULL; i++) {
    resp_free(reply);
    reply = call_process(each, words);
  }
  for (unsigned i = 1; looks_for_keys(words) && (each = server_process(server, i)) != NULL; i++)
    reply = join(reply, call_process(each, words));
  if ((other = redirected(server, reply)) != NULL) {
    resp_free(reply);
    reply = call_process(other, words);
  }
  resp_free(server->reply);
  server->reply = reply;
  return reply;
}

const resp_t *server_ask_words(server_t *server, const resp_words_t *words) {
  if (try_words(server, words) == NULL)
    fail_msg("the server does not answer %s", words->word[0]);
  return server->reply;
}

const resp_t *server_try(server_t *server, ...) {
  va_list strings;
  va_start(strings, server);
  resp_words_t words = resp_words(strings);
  va_end(strings);
  return try_words(server, &words);
}

static const resp_t *ask(server_t *server, va_list strings) {
  resp_words_t words = resp_words(strings);
  return server_ask_words(server, &words);
}

const resp_t *server_ask(server_t *server, ...) {
  va_list strings;
  va_start(strings, server);
  const resp_t *reply = ask(server, strings);
  va_end(strings);
  return reply;
}

void server_do(server_t *server, ...) {
  va_list strings;
  va_start(strings, server);
  const resp_t *reply = ask(server, strings);
  va_end(strings);
  if (reply->type == RESP_ERROR)
    fail_msg("the server says: %s", reply->str);
}

int64_t server_integer(server_t *server, ...) {
  va_list strings;
  va_start(strings, server);
  const resp_t *reply = ask(server, strings);
  va_end(strings);
  assert_int_equal(reply->type, RESP_INTEGER);
  return reply->integer;
}

const char *server_string(server_t *server, ...) {
  va_list strings;
  va_start(strings, server);
  const resp_t *reply = ask(server, strings);
  va_end(strings);
  if (reply->type == RESP_NIL)
    return NULL;
  assert_true(reply->type == RESP_STRING || reply->type == RESP_STATUS);
  return reply->str;
}

/* The number in a line that begins so; -1: there is none. */
static int64_t read_info(const char *info, const char *line) {
  const char *at = strstr(info, line);
  return at != NULL ? strtoll(at + strlen(line), NULL, 10) : -1;
}

/* Of all processes together; -1: none has one. */
static int64_t sum_info(server_t *server, const char *section, const char *line) {
  server_t *each;
  int64_t sum = -1;
  for (unsigned i = 0; (each = server_process(server, i)) != NULL; i++) {
    int64_t n = read_info(server_string(each, "INFO", section, NULL), line);
    if (n >= 0)
      sum = (sum < 0 ? 0 : sum) + n;
  }
  return sum;
}

int64_t server_info(server_t *server, const char *section, const char *field) {
  char line[64];
  snprintf(line, sizeof line, "\n%s:", field);
  return sum_info(server, section, line);
}

int64_t server_calls(server_t *server, const char *command) {
  char line[64];
  snprintf(line, sizeof line, "\ncmdstat_%s:calls=", command);
  for (char *at = line; *at != '\0'; at++)
    *at = (char)tolower((unsigned char)*at);
  int64_t n = sum_info(server, "commandstats", line);
  return n < 0 ? 0 : n;
}

int64_t server_commands(server_t *server) {
  static const char *const others[] = {
      "\ncmdstat_replconf:calls=", "\ncmdstat_psync:calls=", "\ncmdstat_ping:calls="};
  server_t *each;
  int64_t sum = 0;
  for (unsigned i = 0; (each = server_process(server, i)) != NULL; i++) {
    const char *info = server_string(each, "INFO", "all", NULL);
    sum += read_info(info, "\ntotal_commands_processed:");
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
      int64_t n = read_info(info, others[k]);
      sum -= n > 0 ? n : 0;
    }
  }
  return sum;
}

int64_t server_publications(server_t *server) {
  return server_calls(server, "publish") + server_calls(server, "spublish");
}

int64_t server_listeners(server_t *server, const char *channel) {
  const char *word = deployment_is_cluster() ? "SHARDNUMSUB" : "NUMSUB";
  server_t *each;
  int64_t n = 0;
  for (unsigned i = 0; (each = server_process(server, i)) != NULL; i++)
    n += server_ask(each, "PUBSUB", word, channel, NULL)->items[1]->integer;
  return n;
}

int64_t server_publish(server_t *server, const char *channel, const char *message) {
  return server_integer(server, deployment_publish(), channel, message, NULL);
}

int64_t server_keys(server_t *server) {
  server_t *each;
  int64_t n = 0;
  for (unsigned i = 0; (each = server_process(server, i)) != NULL; i++)
    n += server_integer(each, "DBSIZE", NULL);
  return n;
}

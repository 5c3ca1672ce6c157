#include "support/models/scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/base/unit.h"

const resp_t *script_run(server_t *server, const belay__script_t *script,
                         const script_input_t *input) {
  resp_words_t words = {2, {"EVAL", script->text}, {4, script->len}};
  size_t keys = 0;
  char count[8];
  while (input->keys[keys] != NULL)
    keys++;
  words.len[words.count] = (size_t)snprintf(count, sizeof count, "%zu", keys);
  words.word[words.count++] = count;
  for (size_t i = 0; i < keys; i++, words.count++) {
    words.word[words.count] = input->keys[i];
    words.len[words.count] = strlen(input->keys[i]);
  }
  for (size_t i = 0; input->args[i] != NULL; i++, words.count++) {
    words.word[words.count] = input->args[i];
    words.len[words.count] = strlen(input->args[i]);
  }
  return server_ask_words(server, &words);
}

int64_t script_integer(server_t *server, const belay__script_t *script,
                       const script_input_t *input) {
  const resp_t *reply = script_run(server, script, input);
  if (reply->type != RESP_INTEGER)
    fail_msg("%s: %s", script->name, reply->str != NULL ? reply->str : "not an integer");
  return reply->integer;
}

void script_refused(server_t *server, const belay__script_t *script, const script_input_t *input,
                    const char *word) {
  const resp_t *reply = script_run(server, script, input);
  assert_int_equal(reply->type, RESP_ERROR);
  if (strstr(reply->str, word) == NULL)
    fail_msg("%s: \"%s\" is not in \"%s\"", script->name, word, reply->str);
}

int64_t server_now_ms(server_t *server) {
  const resp_t *time = server_ask(server, "TIME", NULL);
  assert_int_equal(time->count, 2);
  return strtoll(time->items[0]->str, NULL, 10) * 1000 +
         strtoll(time->items[1]->str, NULL, 10) / 1000;
}

bool script_next_command(const char **at, char out[32]) {
  const char *p = strstr(*at, "call('");
  if (p == NULL)
    return false;
  p += strlen("call('");
  size_t n = strcspn(p, "'");
  assert_true(n < 32);
  memcpy(out, p, n);
  out[n] = '\0';
  *at = p + n;
  return true;
}

server_t *server_with_digest(void) {
  static const server_options_t options = {.arguments = {"--enable-debug-command", "yes"}};
  return server_start(&options);
}

uint64_t server_digest(server_t *server) {
  const resp_t *digest = server_ask(server, "DEBUG", "DIGEST", NULL);
  assert_int_equal(digest->type, RESP_STATUS);
  char part[17] = "";
  memcpy(part, digest->str, 16);
  return strtoull(part, NULL, 16);
}

/* Commands in flight may delete the key meanwhile. */
static void expect_ttl(server_t *server, const char *key) {
  char type[16];
  snprintf(type, sizeof type, "%s", server_ask(server, "TYPE", key, NULL)->str);
  int64_t ttl = server_integer(server, "PTTL", key, NULL);
  if (ttl == -1)
    fail_msg("%s has no ttl", key);
  if (strcmp(type, "zset") != 0)
    return;
  int64_t now = server_now_ms(server);
  const resp_t *last = server_ask(server, "ZREVRANGE", key, "0", "0", "WITHSCORES", NULL);
  if (last->count == 0)
    return;
  int64_t until = strtoll(last->items[1]->str, NULL, 10);
  if (ttl < until - now)
    fail_msg("%s ends %lld ms before what is in it", key, (long long)(until - now - ttl));
}

void expect_ttls(server_t *server) {
  char *keys[32];
  size_t count = 0;
  const resp_t *all = server_ask(server, "KEYS", "*", NULL);
  for (; count < all->count; count++) {
    assert_true(count < sizeof keys / sizeof *keys);
    keys[count] = strdup(all->items[count]->str);
  }
  for (size_t i = 0; i < count; i++) {
    expect_ttl(server, keys[i]);
    free(keys[i]);
  }
}

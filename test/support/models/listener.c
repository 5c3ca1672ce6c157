#include "support/models/listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/servers/acl.h"
#include "support/base/unit.h"

static void copy_list(const char **to, size_t max, const char *const *list) {
  size_t n = 0;
  for (; list[n] != NULL; n++) {
    assert_true(n < max);
    to[n] = list[n];
  }
  to[n] = NULL;
}

static void read_lists(script_input_t *input, const char *const *keys, const char *const *args) {
  copy_list(input->keys, SCRIPT_KEYS_MAX, keys);
  copy_list(input->args, SCRIPT_ARGS_MAX, args);
}

const resp_t *script_call(server_t *server, const belay__script_t *script, const char *const *keys,
                          const char *const *args) {
  script_input_t input;
  read_lists(&input, keys, args);
  return script_run(server, script, &input);
}

int64_t script_call_integer(server_t *server, const belay__script_t *script,
                            const char *const *keys, const char *const *args) {
  script_input_t input;
  read_lists(&input, keys, args);
  return script_integer(server, script, &input);
}

static resp_t *ask(listener_t *listener, const char *command, const char *word) {
  const resp_words_t words = {2, {command, word}, {strlen(command), strlen(word)}};
  resp_t *reply = resp_call(&listener->client, &words);
  assert_non_null(reply);
  assert_int_equal(reply->type, RESP_ARRAY);
  return reply;
}

void listener_open(listener_t *listener, server_t *server, const char *channel) {
  listener->asked = 0;
  assert_int_equal(acl_dial(NULL, &listener->client, server_path(server)), 0);
  resp_free(ask(listener, deployment_subscribe(), channel));
}

void listener_close(listener_t *listener) {
  resp_hang_up(&listener->client);
}

/* A message precedes the reply to a later command; each reply that is read sends one more
 * command. */
unsigned listener_drain(listener_t *listener, char *out, size_t size) {
  unsigned messages = 0, first = listener->asked + 1;
  out[0] = '\0';
  for (bool all = false; !all;) {
    char number[16];
    snprintf(number, sizeof number, "%u", ++listener->asked);
    resp_t *reply = ask(listener, "PING", number);
    if (reply->count == 3) {
      messages++;
      snprintf(out, size, "%s", reply->items[2]->str);
    } else {
      all = strtoul(reply->items[1]->str, NULL, 10) >= first;
    }
    resp_free(reply);
  }
  return messages;
}

/* The scripts of the fair lock and the semaphore for a user that lacks one of their commands:
 * after every interruption no key lives for ever, and no more permits are out than exist. */
#include <stdio.h>
#include <stdlib.h>

#include "scripts.gen.h"
#include "support/fixtures/env.h"
#include "support/models/listener.h"

#define TTL "100000"
#define PLACE "200000"

typedef struct line {
  const belay__script_t *script;
  const char *keys[5], *args[9];
} line_t;

#define FAIR                                                                                       \
  { "l", "l::queue", "l::alive" }
#define FENCED                                                                                     \
  { "l", "l::queue", "l::alive", "l::fence" }
#define PERMITS                                                                                    \
  { "s", "s::permits", "s::queue", "s::alive" }
#define ACQUIRE(token, n, ticket)                                                                  \
  {                                                                                                \
    &belay__script_semaphore_acquire, PERMITS, {                                                   \
      token, TTL, n, "5", ticket, PLACE, "PUBLISH", "0"                                            \
    }                                                                                              \
  }
#define RELEASE(script, keys, token, ticket)                                                       \
  {                                                                                                \
    &script, keys, {                                                                               \
      token, "PUBLISH", ticket                                                                     \
    }                                                                                              \
  }

static const line_t story[] = {
    {&belay__script_fair_acquire, FENCED, {"one", TTL, "01", PLACE, "PUBLISH", "604800000"}},
    {&belay__script_fair_acquire, FENCED, {"two", TTL, "02", PLACE, "PUBLISH", "604800000"}},
    {&belay__script_fair_acquire, FAIR, {"three", TTL, "03", PLACE, "PUBLISH"}},
    RELEASE(belay__script_fair_release, FAIR, "one", "01+" PLACE),
    RELEASE(belay__script_fair_release, FAIR, "", "02"),
    {&belay__script_fair_acquire, FENCED, {"four", TTL, "01", PLACE, "PUBLISH", "604800000"}},
    RELEASE(belay__script_fair_release, FAIR, "four", ""),
    {&belay__script_semaphore_resize, PERMITS, {"5", "PUBLISH"}},
    ACQUIRE("one", "3", "01"),
    ACQUIRE("two", "2", "02"),
    ACQUIRE("three", "2", "03"),
    {&belay__script_semaphore_extend, PERMITS, {"one", TTL, "0", "3"}},
    RELEASE(belay__script_semaphore_release, PERMITS, "two", "02+" PLACE),
    RELEASE(belay__script_semaphore_release, PERMITS, "", "03"),
    ACQUIRE("four", "2", "02"),
    RELEASE(belay__script_semaphore_release, PERMITS, "one", ""),
    RELEASE(belay__script_semaphore_release, PERMITS, "four", ""),
    {&belay__script_semaphore_extend, PERMITS, {"five", TTL, TTL, "1"}},
};
enum { STORY = sizeof story / sizeof *story };

static int64_t number(server_t *server, const char *field) {
  const char *text = server_string(server, "HGET", "s::permits", field, NULL);
  return text != NULL ? atoll(text) : 0;
}

/* The count is at least the sum of the holders' permits, unless a holder's number is unknown. */
static void check_permits(server_t *server) {
  static const char *const tokens[] = {"one", "two", "three", "four", "five"};
  int64_t has = 0;
  for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
    has += server_string(server, "ZSCORE", "s", tokens[i], NULL) != NULL ? number(server, tokens[i])
                                                                         : 0;
  assert_true(has <= number(server, "used"));
}

static void play(server_t *server, const char *command, int refused) {
  char rule[24];
  server_do(server, "FLUSHALL", NULL);
  for (int i = 0; i <= refused; i++) {
    snprintf(rule, sizeof rule, "-%s", command);
    if (i == refused)
      server_do(server, "ACL", "SETUSER", "default", rule, NULL);
    (void)script_call(server, story[i].script, story[i].keys, story[i].args);
    rule[0] = '+';
    if (i == refused)
      server_do(server, "ACL", "SETUSER", "default", rule, NULL);
  }
  expect_ttls(server);
  check_permits(server);
}

TEST_ON(missing_right_leaves_ttls_and_permits, server, server_start(NULL)) {
  static const char *const commands[] = {"zadd", "zrem",    "hset", "hdel",   "del",
                                         "set",  "pexpire", "pttl", "publish"};
  for (size_t c = 0; c < sizeof commands / sizeof *commands; c++)
    for (int i = 0; i < STORY; i++)
      play(server, commands[c], i);
}

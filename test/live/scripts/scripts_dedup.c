/* The dedup scripts alone: for each missing right, a refused script has added nothing. */
#include <stdio.h>

#include "scripts.gen.h"
#include "support/models/scripts.h"
#include "support/base/test.h"

typedef struct scene {
  const belay__script_t *script;
  script_input_t input;
} scene_t;

#define FP "0123456789abcdef"

static const scene_t scenes[] = {
    {&belay__script_dedup_mark, {{"s", "op"}, {"s", "60000", "0", "60000", FP, "a", "b"}}},
    {&belay__script_dedup_mark, {{"new"}, {"s", "60000", "1", "0", "", "a"}}},
    {&belay__script_dedup_mark, {{"h", "op"}, {"c", "60000", "1", "60000", FP, "z"}}},
    {&belay__script_dedup_mark, {{"new"}, {"c", "60000", "0", "0", "", "a"}}},
    {&belay__script_dedup_mark,
     {{"new", "op"}, {"b", "60000", "0", "60000", FP, "SET", "u1", "1", "1"}}},
    {&belay__script_dedup_window_mark,
     {{"w", "op"}, {"60000", "1", "3", "0", "60000", FP, "new", "b"}}},
    {&belay__script_dedup_window_mark, {{"w"}, {"60000", "1", "2", "1", "0", "", "new", "c"}}},
    {&belay__script_dedup_window_mark, {{"old"}, {"60000", "1", "2", "1", "0", "", "new"}}},
    {&belay__script_dedup_window_mark, {{"new"}, {"60000", "0", "2", "0", "0", "", "a"}}},
    {&belay__script_dedup_window_forget, {{"w"}, {"b"}}},
    {&belay__script_dedup_store, {{"new", "s", "t"}, {"u", "60000"}}},
    {&belay__script_dedup_store, {{"t", "s", "t"}, {"d", "60000"}}},
    {&belay__script_dedup_merge, {{"new", "h"}, {"60000", "0"}}},
    {&belay__script_dedup_merge, {{"i", "h"}, {"60000", "1"}}},
};

static void set_scene(server_t *server) {
  static const char set[] =
      "redis.call('SADD', 's', 'a', 'c') redis.call('SADD', 't', 'a', 'd') "
      "redis.call('PFADD', 'h', 'a') redis.call('PFADD', 'i', 'b') "
      "redis.call('PFCOUNT', 'h') redis.call('PFCOUNT', 'i') "
      "redis.call('ZADD', 'w', 2000000000000, 'a', 2000000000001, 'b') "
      "redis.call('ZADD', 'w', 1600000000000, 'x') redis.call('ZADD', 'old', 1600000000000, 'x') "
      "for _, key in ipairs({'s', 't', 'h', 'i', 'w', 'old'}) do "
      "redis.call('PEXPIRE', key, 9000000000000) end return 1";
  server_do(server, "FLUSHALL", NULL);
  server_do(server, "EVAL", set, "0", NULL);
}

/* The number of items that count; expired ones may be deleted, and an empty set is absent. */
static uint64_t what_counts(server_t *server) {
  server_do(server, "DEL", "op", NULL);
  server_do(server, "ZREM", "w", "x", NULL);
  server_do(server, "ZREM", "old", "x", NULL);
  return server_digest(server);
}

TEST_ON(missing_right_adds_nothing, server, server_with_digest()) {
  unsigned refusals = 0;
  set_scene(server);
  uint64_t before = what_counts(server);
  for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
    char command[32], right[34];
    for (const char *at = scenes[i].script->text; script_next_command(&at, command);) {
      set_scene(server);
      snprintf(right, sizeof right, "-%s", command);
      server_do(server, "ACL", "SETUSER", "default", right, NULL);
      bool refused = script_run(server, scenes[i].script, &scenes[i].input)->type == RESP_ERROR;
      server_do(server, "ACL", "SETUSER", "default", "+@all", NULL);
      expect_ttls(server);
      if (refused)
        if (what_counts(server) != before)
          fail_msg("%s, %s", scenes[i].script->name, right);
      refusals += refused;
    }
    set_scene(server);
    assert_int_not_equal(script_run(server, scenes[i].script, &scenes[i].input)->type, RESP_ERROR);
    assert_false(what_counts(server) == before); /* each of them does something */
  }
  print_message("%u refusals\n", refusals);
  assert_true(refusals > 2 * sizeof scenes / sizeof *scenes);
}

/* Adds are refused in every state, and change nothing. */
TEST_ON(full_server_changes_nothing, server, server_with_digest()) {
  for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
    if (scenes[i].script == &belay__script_dedup_window_forget)
      continue;
    set_scene(server);
    uint64_t before = server_digest(server);
    server_do(server, "CONFIG", "SET", "maxmemory", "1", NULL);
    script_refused(server, scenes[i].script, &scenes[i].input, "OOM");
    server_do(server, "CONFIG", "SET", "maxmemory", "0", NULL);
    assert_true(server_digest(server) == before);
  }
}

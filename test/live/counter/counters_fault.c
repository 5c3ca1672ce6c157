/* Counters with faults: foreign keys, lost replies. */
#include <stdio.h>

#include "scripts.gen.h"
#include "support/servers/acl.h"
#include "support/fixtures/data/counters.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define HITS "belay::counter::{hits}"

enum {
  ADD,
  BOUNDED,
  ONCE,
  GET,
  SET,
  DELETE,
  ON_COUNTERS,
  FIELD = ON_COUNTERS,
  FIELDS,
  ONE,
  SOME,
  ALL,
  REMOVE,
  OPERATIONS
};

static const belay_counter_add_item_t item = {.key = {"f", 1}, .delta = 1};
static const belay_bytes_t name = {"f", 1};

static int begin_nth(counters_t *counters, count_t *count, int n) {
  switch (n) {
  case ADD:
    return BEGIN(counters, count, add, KEY("hits"), 1, on_result);
  case BOUNDED:
    return BEGIN(counters, count, add_bounded, KEY("hits"), 1,
                 &(belay_counter_bounds_t){.min = 0, .max = 100}, on_result);
  case ONCE:
    return BEGIN(counters, count, add_once, KEY("hits"), 1, KEY("op"), on_result);
  case GET:
    return BEGIN(counters, count, get, KEY("hits"), on_result);
  case SET:
    return BEGIN(counters, count, set, KEY("hits"), 1, on_result);
  case DELETE:
    return BEGIN(counters, count, delete, KEY("hits"), on_result);
  case FIELD:
    return BEGIN(counters, count, add_field, KEY("hits"), KEY("f"), 1, on_result);
  case FIELDS:
    return BEGIN(counters, count, add_fields, KEY("hits"), &item, 1, on_many);
  case ONE:
    return BEGIN(counters, count, get_field, KEY("hits"), KEY("f"), on_result);
  case SOME:
    return BEGIN(counters, count, get_fields, KEY("hits"), &name, 1, on_many);
  case ALL:
    return BEGIN(counters, count, get_all, KEY("hits"), 100, on_all);
  default:
    return BEGIN(counters, count, delete_fields, KEY("hits"), &name, 1, on_result);
  }
}

static char detail[128];

static void keep_detail(counters_t *counters) {
  snprintf(detail, sizeof detail, "%s", belay_detail(counters->env->belay));
}

static const server_options_t with_digest = {.arguments = {"--enable-debug-command", "yes"}};

/* A list; a group where a counter is wanted, and the other way round. */
TEST_IN(foreign_key_is_reported_and_kept, env, env_open_with(server_start(&with_digest), NULL)) {
  for (int lives = 0; lives < 2; lives++) {
    belay_counter_options_t options = counter_options();
    options.ttl_ms = lives ? 100000 : 0;
    options.extend_ttl = lives;
    counters_t counters;
    counters_new(&counters, env, &options);
    counters.then = keep_detail;
    for (int n = 0; n < OPERATIONS; n++) {
      if (n == DELETE)
        continue;
      for (int list = 0; list < 2; list++) {
        server_do(env->server, "FLUSHALL", NULL);
        if (list)
          server_do(env->server, "RPUSH", HITS, "1", NULL);
        else if (n < ON_COUNTERS)
          server_do(env->server, "HSET", HITS, "f", "1", NULL);
        else
          server_do(env->server, "SET", HITS, "1", NULL);
        uint64_t digest = server_digest(env->server);
        count_t count = {0};
        expect_status(&count, begin_nth(&counters, &count, n), BELAY_EWRONGTYPE);
        assert_int_equal(strncmp(detail, HITS ": WRONGTYPE", sizeof HITS + 10), 0);
        assert_true(server_digest(env->server) == digest);
        assert_int_equal(server_integer(env->server, "PTTL", HITS, NULL), -1);
      }
    }
    expect_deleted(&counters, "hits", true);
  }
}

TEST_IN(foreign_text_is_reported_and_kept, env, env_open_with(server_start(&with_digest), NULL)) {
  static const char *const texts[] = {"many",
                                      "",
                                      "01",
                                      "+1",
                                      "1.5",
                                      "-0",
                                      " 1",
                                      "-",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999"};
  for (int lives = 0; lives < 2; lives++) {
    belay_counter_options_t options = counter_options();
    options.ttl_ms = lives ? 100000 : 0;
    counters_t counters;
    counters_new(&counters, env, &options);
    counters.then = keep_detail;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
      for (int n = 0; n < REMOVE; n++) {
        if (n == DELETE)
          continue;
        server_do(env->server, "FLUSHALL", NULL);
        if (n < ON_COUNTERS)
          server_do(env->server, "SET", HITS, texts[i], NULL);
        else
          server_do(env->server, "HSET", HITS, "f", texts[i], NULL);
        uint64_t digest = server_digest(env->server);
        count_t count = {0};
        expect_status(&count, begin_nth(&counters, &count, n),
                      n == SET ? BELAY_EMISMATCH : BELAY_EWRONGTYPE);
        assert_int_equal(strncmp(detail, HITS ": ", sizeof HITS + 1), 0);
        if (n == SET)
          assert_string_equal(server_string(env->server, "GET", HITS, NULL), "1");
        else
          assert_true(server_digest(env->server) == digest);
      }
  }
}

TEST(group_larger_than_max_reply) {
  static char large[2000];
  memset(large, 'x', sizeof large - 1);
  belay_client_options_t client = client_options();
  client.max_reply = 65536;
  env_t *env = env_open(&client);
  counters_t counters;
  counters_new(&counters, env, NULL);
  counters.then = keep_detail;
  for (int i = 0; i < 20; i++) {
    large[0] = (char)('a' + i);
    server_do(env->server, "HSET", HITS, large, "1", NULL);
  }
  count_t count = {0};
  expect_status(&count, begin_nth(&counters, &count, ALL), BELAY_EOVERFLOW);
  assert_string_equal(detail, HITS ": it has 20 fields");
  static belay_bytes_t names[257];
  for (int i = 0; i < 257; i++)
    names[i] = name;
  assert_error(BEGIN(&counters, &count, get_fields, KEY("hits"), names, 257, on_many),
               BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "fields: NULL, or not 1 to 256 of them");
  expect_status(&count, BEGIN(&counters, &count, get_fields, KEY("hits"), names, 256, on_many), 0);
  assert_int_equal(client_stats(env).drops, 0);
  env_close(env);
}

/* The server has executed it, and the answer is on its way when the connection is cut. */
static void lose_the_answer(env_t *env, const char *command, int64_t calls) {
  do
    uv_run(&env->loop, UV_RUN_NOWAIT);
  while (server_calls(env->server, command) <= calls);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
}

/* An operation whose answer depends on the state before it is not repeated. A get is, and so is
 * an operation with an id. */
RELAY_TEST(resent_operations) {
  static const struct {
    int n;
    const char *command;
    int status;
  } rows[] = {
      {ADD, "incrby", BELAY_EUNKNOWN},
      {BOUNDED, "eval", BELAY_EUNKNOWN},
      {ONCE, "incrby", 0},
      {GET, "get", 0},
      {SET, "getset", BELAY_EUNKNOWN},
      {DELETE, "unlink", BELAY_EUNKNOWN},
      {FIELD, "hincrby", BELAY_EUNKNOWN},
      {FIELDS, "hincrby", BELAY_EUNKNOWN},
      {ONE, "hget", 0},
      {SOME, "hmget", 0},
      {ALL, "hgetall", 0},
      {REMOVE, "hdel", BELAY_EUNKNOWN},
  };
  counters_t counters;
  counters_new(&counters, env, NULL);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    server_do(env->server, "FLUSHALL", NULL);
    if (rows[i].n < ON_COUNTERS)
      server_do(env->server, "SET", HITS, "5", NULL);
    else
      server_do(env->server, "HSET", HITS, "f", "5", NULL);
    count_t count = {0};
    expect_got(&counters, "else", false, 0); /* there is a connection */
    int64_t calls = server_calls(env->server, rows[i].command);
    relay_delay(env->relay, RELAY_LONG);
    assert_error(begin_nth(&counters, &count, rows[i].n), 0);
    lose_the_answer(env, rows[i].command, calls < 0 ? 0 : calls);
    assert_error(end_of_count(&count), rows[i].status);
    if (rows[i].n == ADD || rows[i].n == BOUNDED || rows[i].n == ONCE)
      assert_string_equal(server_string(env->server, "GET", HITS, NULL), "6");
    if (rows[i].n == ONCE || rows[i].n == GET)
      assert_int_equal(count.result.value, rows[i].n == ONCE ? 6 : 5);
    if (rows[i].n == FIELD || rows[i].n == FIELDS)
      assert_string_equal(server_string(env->server, "HGET", HITS, "f", NULL), "6");
  }
}

/* The connection is cut, or falls silent, at some time or other. */
RELAY_TEST(operation_id_with_lost_replies) {
  counters_t counters;
  counters_new(&counters, env, NULL);
  for (int64_t i = 1; i < 11; i++) {
    count_t count = {0};
    char id[8];
    snprintf(id, sizeof id, "op%d", (int)i);
    relay_delay(env->relay, 20);
    assert_error(BEGIN(&counters, &count, add_once, KEY("hits"), 1, KEY(id), on_result), 0);
    env_run_for(env, i % 3 * 13);
    if (i % 5 == 4)
      relay_silence(env->relay);
    else
      relay_cut(env->relay);
    relay_delay(env->relay, 0);
    assert_error(end_of_count(&count), 0);
    assert_int_equal(count.result.value, i);
    expect_got(&counters, "hits", true, i);
  }
}

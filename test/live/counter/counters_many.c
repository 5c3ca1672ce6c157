/* Many counters at once, and one in many pieces. */
#include <stdio.h>

#include "support/fixtures/data/counters.h"
#include "support/deployments/deployment.h"
#include "support/deployments/relay.h"

enum { N = 200 };

static char names[N][8];
static belay_counter_add_item_t items[N];
static belay_bytes_t keys[N];

static void name_them(int64_t delta) {
  for (int i = 0; i < N; i++) {
    snprintf(names[i], sizeof names[i], "k%d", i);
    items[i] = (belay_counter_add_item_t){.key = KEY(names[i]), .delta = delta + i};
    keys[i] = (belay_bytes_t){names[i], strlen(names[i])};
  }
}

static const char *key_at(int i) {
  static char key[64];
  snprintf(key, sizeof key, "belay::counter::{%s}", names[i]);
  return key;
}

/* Each has been added `times` times. */
static void expect_all(counters_t *counters, int64_t delta, int64_t times) {
  static count_t count;
  count = (count_t){0};
  expect_status(&count, BEGIN(counters, &count, get_many, keys, N, on_many), 0);
  assert_int_equal(count.n, N);
  for (int i = 0; i < N; i++) {
    assert_true(count.many[i].found);
    assert_int_equal(count.many[i].value, times * (delta + i));
  }
}

COUNTER_TEST(many_in_one_round_trip) {
  static count_t count;
  const int64_t large = INT64_C(1) << 60;
  name_them(large);
  uint64_t writes = client_stats(env).writes;
  for (int times = 1; times <= 2; times++) {
    expect_status(&count, BEGIN(counters, &count, add_many, items, N, on_many), 0);
    for (int i = 0; i < N; i++) {
      assert_true(count.many[i].applied);
      assert_int_equal(count.many[i].value, times * (large + i));
    }
  }
  assert_true(client_stats(env).writes - writes < N);
  expect_all(counters, large, 2);
  items[1] = items[2] = items[0]; /* one may come more than once */
  for (int i = 0; i < 3; i++)
    items[i].delta = 1;
  expect_status(&count, BEGIN(counters, &count, add_many, items, 3, on_many), 0);
  for (int i = 0; i < 3; i++)
    assert_int_equal(count.many[i].value, 2 * large + 1 + i);
  const belay_bytes_t absent = {"absent", 6};
  expect_status(&count, BEGIN(counters, &count, get_many, &absent, 1, on_many), 0);
  assert_false(count.many[0].found);
  assert_int_equal(count.many[0].value, 0);
}

/* That of the first that comes: several nodes answer in any order. */
static void expect_either(count_t *count, int error, int first, int other) {
  assert_error(error, 0);
  if (end_of_count(count) != other || deployment() != DEPLOYMENT_CLUSTER3)
    assert_error(count->status, first);
}

ENV_TEST(each_has_its_own_status) {
  for (int lives = 0; lives < 2; lives++) {
    belay_counter_options_t options = counter_options();
    options.ttl_ms = lives ? 100000 : 0;
    counters_t counters;
    static count_t count;
    counters_new(&counters, env, &options);
    name_them(1);
    server_do(env->server, "FLUSHALL", NULL);
    server_do(env->server, "RPUSH", key_at(3), "x", NULL);
    server_do(env->server, "SET", key_at(5), "9223372036854775807", NULL);
    server_do(env->server, "SET", key_at(7), "many", NULL);
    expect_either(&count, BEGIN(&counters, &count, add_many, items, N, on_many), BELAY_EWRONGTYPE,
                  BELAY_EOVERFLOW);
    for (int i = 0; i < N; i++) {
      int expected = i == 3 || i == 7 ? BELAY_EWRONGTYPE : i == 5 ? BELAY_EOVERFLOW : 0;
      assert_error(count.many[i].status, expected);
      assert_int_equal(count.many[i].value, expected == 0 ? 1 + i : 0);
      assert_int_equal(count.many[i].applied, expected == 0);
    }
    expect_status(&count, BEGIN(&counters, &count, get_many, keys, N, on_many), BELAY_EWRONGTYPE);
    for (int i = 0; i < N; i++) {
      assert_error(count.many[i].status, i == 3 || i == 7 ? BELAY_EWRONGTYPE : 0);
      assert_int_equal(count.many[i].value, i == 3 || i == 7 ? 0 : i == 5 ? INT64_MAX : 1 + i);
    }
    for (int i = 3; i <= 7; i += 2)
      server_do(env->server, "DEL", key_at(i), NULL);
    if (lives)
      expect_no_key_for_ever(env->server);
  }
}

/* The client loads each script again that the server has lost. */
COUNTER_TEST_OF(script_cache_flushed, o.ttl_ms = 100000) {
  static count_t count;
  name_them(1);
  for (int times = 1; times <= 3; times++) {
    expect_status(&count, BEGIN(counters, &count, add_many, items, N, on_many), 0);
    expect_all(counters, 1, times);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
  }
  expect_no_key_for_ever(env->server);
}

/* A script's text goes to the server once, and not with each of them. */
TEST(script_text_is_sent_once) {
  for (int ids = 0; ids < 2; ids++) {
    belay_client_options_t client = client_options();
    client.max_bytes = 100000;
    env_t *env = env_open(&client);
    belay_counter_options_t options = counter_options();
    options.ttl_ms = 100000;
    counters_t counters;
    static count_t count;
    counters_new(&counters, env, &options);
    name_them(1);
    for (int i = 0; i < N && ids; i++) {
      items[i].op_id = KEY("op");
    }
    expect_status(&count, BEGIN(&counters, &count, add_many, items, N, on_many), 0);
    expect_all(&counters, 1, 1);
    env_close(env);
  }
}

/* They are found again where they were put, however many connections there are. */
ENV_TEST_OF(add_many_unreachable, o.connections = 4; o.reconnect_max_ms = 50) {
  static count_t count;
  counters_t counters;
  counters_new(&counters, env, NULL);
  name_them(1);
  server_kill(env->server);
  count.request.timeout_ms = 100;
  expect_status(&count, BEGIN(&counters, &count, add_many, items, N, on_many), BELAY_EUNREACHABLE);
  for (int i = 0; i < N; i++)
    assert_error(count.many[i].status, BELAY_EUNREACHABLE);
  server_restart(env->server);
  for (int i = 0; i < N; i++)
    expect_added(&counters, names[i], 1 + i, 1 + i);
  expect_all(&counters, 1, 1);
}

ENV_TEST_OF(add_many_canceled, o.connections = 4) {
  static count_t count, another;
  counters_t counters;
  counters_new(&counters, env, NULL);
  name_them(1);
  expect_status(&count, BEGIN(&counters, &count, add_many, items, N, on_many), 0);
  server_pause(env->server);
  for (int i = 0; i < 2; i++) {
    assert_error(BEGIN(&counters, &count, add_many, items, N, on_many), 0);
    assert_error(BEGIN(&counters, &another, get_many, keys, N, on_many), 0);
    assert_error(BEGIN(&counters, &another, get_many, keys, N, on_many), BELAY_ESTATE);
    if (i == 0)
      env_run_for(env, 20);
    if (i == 0)
      assert_error(belay_request_cancel(&count.request), 0);
    else
      assert_error(begin_close_counters(&counters), 0);
    assert_error(end_of_count(&count), BELAY_ECANCELED);
    for (int j = 0; j < N; j++)
      assert_error(count.many[j].status, BELAY_ECANCELED);
    if (i == 0)
      assert_error(belay_request_cancel(&another.request), 0);
    assert_error(end_of_count(&another), BELAY_ECANCELED);
  }
  env_until(env, counters.closed == 1);
  server_resume(env->server);
}

/* With operation ids they are sent again, and count once; without, it is not known. */
TEST(add_many_lost_replies) {
  needs_one_process("one process: a relay leads to one");
  static count_t count;
  server_t *server = server_start(NULL);
  relay_t *relay = relay_start(server_path(server));
  belay_client_options_t options = relay_client_options();
  env_t *env = env_open_at(relay_url(relay), &options);
  counters_t counters;
  counters_new(&counters, env, NULL);
  int64_t times = 0;
  for (int with_ids = 0; with_ids < 2; with_ids++)
    for (int round = 0; round < 3; round++) {
      char id[8];
      name_them(1);
      snprintf(id, sizeof id, "op%d", round);
      for (int i = 0; i < N && with_ids; i++) {
        items[i].op_id = KEY(id);
      }
      relay_delay(relay, RELAY_LONG);
      assert_error(BEGIN(&counters, &count, add_many, items, N, on_many), 0);
      times++;
      do
        uv_run(&env->loop, UV_RUN_NOWAIT);
      while (server_string(server, "GET", key_at(N - 1), NULL) == NULL ||
             atoll(server_string(server, "GET", key_at(N - 1), NULL)) < times * N);
      relay_cut(relay);
      relay_delay(relay, 0);
      assert_error(end_of_count(&count), with_ids ? 0 : BELAY_EUNKNOWN);
      for (int i = 0; i < N; i++) {
        assert_error(count.many[i].status, with_ids ? 0 : BELAY_EUNKNOWN);
        assert_int_equal(count.many[i].value, with_ids ? times * (1 + i) : 0);
      }
      expect_all(&counters, 1, times);
    }
  env_close(env);
  relay_stop(relay);
  server_stop(server);
}

static const char *shard_at(int i) {
  static char key[64];
  snprintf(key, sizeof key, "belay::counter::{hits::%d}", i);
  return key;
}

ENV_TEST(a_counter_in_shards) {
  enum { SHARDS = 8, ADDS = 80 };
  belay_counter_options_t options = counter_options();
  options.shards = SHARDS;
  options.ttl_ms = 100000;
  counters_t counters;
  counters_new(&counters, env, &options);
  expect_got(&counters, "hits", false, 0);
  for (int i = 1; i <= ADDS; i++)
    expect_add_status(&counters, "hits", i, 0);
  expect_got(&counters, "hits", true, ADDS * (ADDS + 1) / 2);
  assert_int_equal(server_keys(env->server), SHARDS);
  int64_t sum = 0;
  for (int i = 0; i < SHARDS; i++) {
    int64_t value = atoll(server_string(env->server, "GET", shard_at(i), NULL));
    assert_between(value, 1, ADDS * (ADDS + 1) / SHARDS); /* each had its turns */
    sum += value;
  }
  assert_int_equal(sum, ADDS * (ADDS + 1) / 2);
  expect_no_key_for_ever(env->server);
  for (int i = 0; i < 50; i++) {
    char id[8];
    snprintf(id, sizeof id, "op%d", i / 2); /* each twice: the second time it goes where it was */
    expect_once_status(&counters, "hits", 1, id, 0);
  }
  expect_got(&counters, "hits", true, ADDS * (ADDS + 1) / 2 + 25);
  expect_deleted(&counters, "hits", true);
  expect_deleted(&counters, "hits", false);
  expect_got(&counters, "hits", false, 0);
}

COUNTER_TEST_OF(sum_of_shards, o.shards = 4) {
  static const struct {
    const char *values[4];
    int status;
    int64_t sum;
  } rows[] = {
      {{"1", NULL, NULL, "-1"}, 0, 0},
      {{"9223372036854775807", "9223372036854775807", "-9223372036854775808", "0"},
       0,
       INT64_C(9223372036854775806)},
      {{"-9223372036854775808", "-9223372036854775808", "9223372036854775807",
        "9223372036854775807"},
       0,
       -2},
      {{"9223372036854775807", "-1", "2", NULL}, BELAY_EOVERFLOW, 0},
      {{"9223372036854775807", "-1", "1", NULL}, 0, INT64_MAX},
      {{"-9223372036854775808", "-1", NULL, NULL}, BELAY_EOVERFLOW, 0},
      {{"-9223372036854775808", "-1", "1", NULL}, 0, INT64_MIN},
      {{"9007199254740993", "4294967295", "4294967296", "-4294967297"},
       0,
       INT64_C(9007203549708287)},
      {{"5", "many", NULL, NULL}, BELAY_EWRONGTYPE, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    static count_t count;
    server_do(env->server, "FLUSHALL", NULL);
    for (int j = 0; j < 4; j++)
      if (rows[i].values[j] != NULL)
        server_do(env->server, "SET", shard_at(j), rows[i].values[j], NULL);
    expect_status(&count, BEGIN(counters, &count, get, KEY("hits"), on_result), rows[i].status);
    if (rows[i].status == 0)
      assert_int_equal(count.result.value, rows[i].sum);
    const belay_bytes_t both[] = {{"hits", 4}, {"none", 4}};
    expect_status(&count, BEGIN(counters, &count, get_many, both, 2, on_many), rows[i].status);
    assert_error(count.many[0].status, rows[i].status);
    assert_int_equal(count.many[0].value, rows[i].sum);
    assert_int_equal(count.many[0].found, rows[i].status == 0);
    assert_error(count.many[1].status, 0);
    assert_false(count.many[1].found);
  }
}

COUNTER_TEST_OF(operations_refused_with_shards, o.shards = 2) {
  static count_t count;
  const belay_bytes_t name = {"f", 1};
  const belay_counter_add_item_t item = {.key = KEY("f"), .delta = 1};
  assert_error(BEGIN(counters, &count, set, KEY("hits"), 1, on_result), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "a set: not of a counter with shards");
  assert_error(BEGIN(counters, &count, add_bounded, KEY("hits"), 1,
                     &(belay_counter_bounds_t){.min = 0, .max = 1}, on_result),
               BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "a bounded add: not of a counter with shards");
  assert_error(BEGIN(counters, &count, add_field, KEY("hits"), KEY("f"), 1, on_result),
               BELAY_EINVAL);
  assert_error(BEGIN(counters, &count, get_field, KEY("hits"), KEY("f"), on_result), BELAY_EINVAL);
  assert_error(BEGIN(counters, &count, add_fields, KEY("hits"), &item, 1, on_many), BELAY_EINVAL);
  assert_error(BEGIN(counters, &count, get_fields, KEY("hits"), &name, 1, on_many), BELAY_EINVAL);
  assert_error(BEGIN(counters, &count, get_all, KEY("hits"), 1, on_all), BELAY_EINVAL);
  assert_error(BEGIN(counters, &count, delete_fields, KEY("hits"), &name, 1, on_result),
               BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "fields: not of a counter with shards");
  static belay_bytes_t too_many[BELAY_COUNTER_MANY_MAX / 2 + 1];
  assert_error(BEGIN(counters, &count, get_many, too_many, BELAY_COUNTER_MANY_MAX / 2 + 1, on_many),
               BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "keys: NULL, or not 1 to 32768 of them");
}

/* Counters: refused arguments and limits. */
#include "support/fixtures/data/counters.h"

#define EXPECT_REFUSED(words, op, ...)                                                             \
  do {                                                                                             \
    count_t count_ = {0};                                                                          \
    assert_error(BEGIN(&counters, &count_, op, __VA_ARGS__), BELAY_EINVAL);                        \
    assert_string_equal(belay_detail(env->belay), words);                                          \
  } while (0)

ENV_TEST(arguments_are_checked) {
  static char key[BELAY_COUNTER_KEY_MAX + 2];
  memset(key, 'k', sizeof key - 1);
  counters_t counters;
  counters_new(&counters, env, NULL);
  const char *const no_key = "key: not 1 to 1024 bytes";
  const char *const no_id = "op_id: not 1 to 64 bytes";
  const char *const no_field = "field: not 1 to 256 bytes";
  EXPECT_REFUSED(no_key, add, belay_bytes(NULL, 1), 1, on_result);
  EXPECT_REFUSED(no_key, add, KEY(""), 1, on_result);
  EXPECT_REFUSED(no_key, get, KEY(key), on_result);
  EXPECT_REFUSED(no_key, set, KEY(key), 1, on_result);
  EXPECT_REFUSED(no_key, delete, KEY(key), on_result);
  EXPECT_REFUSED("max: not from 5 to 9223372036854775807", add_bounded, KEY("k"), 1,
                 &(belay_counter_bounds_t){5, 4}, on_result);
  EXPECT_REFUSED(no_id, add_once, KEY("k"), 1, belay_bytes(NULL, 3), on_result);
  EXPECT_REFUSED(no_id, add_once, KEY("k"), 1, KEY(""), on_result);
  EXPECT_REFUSED(no_id, add_once, KEY("k"), 1, belay_bytes(key, 65), on_result);
  EXPECT_REFUSED(no_field, add_field, KEY("k"), KEY(""), 1, on_result);
  EXPECT_REFUSED(no_field, get_field, KEY("k"), belay_bytes(key, 257), on_result);
  EXPECT_REFUSED("items: NULL, or not 1 to 65536 of them", add_many, NULL, 1, on_many);
  belay_counter_add_item_t items[2] = {{.key = KEY("a")}, {.key = KEY("")}};
  EXPECT_REFUSED("items: NULL, or not 1 to 65536 of them", add_many, items, 0, on_many);
  EXPECT_REFUSED("items: NULL, or not 1 to 65536 of them", add_many, items, 65537, on_many);
  EXPECT_REFUSED(no_key, add_many, items, 2, on_many);
  EXPECT_REFUSED(no_field, add_fields, KEY("k"), items, 2, on_many);
  items[1] = (belay_counter_add_item_t){.key = KEY("a")};
  EXPECT_REFUSED("items: a field comes twice", add_fields, KEY("k"), items, 2, on_many);
  items[1] = (belay_counter_add_item_t){.key = KEY("b"), .op_id = belay_bytes(key, 65)};
  EXPECT_REFUSED(no_id, add_many, items, 2, on_many);
  items[1] = (belay_counter_add_item_t){.key = KEY("b"), .op_id = belay_bytes(NULL, 5)};
  EXPECT_REFUSED(no_id, add_many, items, 2, on_many);
  items[1].op_id = KEY("given");
  EXPECT_REFUSED("op_id: not of a field", add_fields, KEY("k"), items, 2, on_many);
  const belay_bytes_t names[2] = {{"a", 1}, {NULL, 1}};
  EXPECT_REFUSED(no_key, get_many, names, 2, on_many);
  EXPECT_REFUSED(no_field, get_fields, KEY("k"), names, 2, on_many);
  EXPECT_REFUSED(no_field, delete_fields, KEY("k"), names, 2, on_result);
  EXPECT_REFUSED("fields: NULL, or not 1 to 65536 of them", get_fields, KEY("k"), NULL, 2, on_many);
  EXPECT_REFUSED("max: not from 1 to 65536", get_all, KEY("k"), 0, on_all);
  EXPECT_REFUSED("max: not from 1 to 65536", get_all, KEY("k"), 65537, on_all);
  assert_error(belay_counter_flush(NULL), BELAY_EINVAL);
  belay_counter_stats(NULL, NULL);
  assert_error(belay_counter_add_local(NULL, KEY("k"), 1), BELAY_EINVAL);
  assert_error(belay_counter_add_local(counters.counter, belay_bytes(NULL, 1), 1), BELAY_EINVAL);
  assert_error(belay_counter_add_local(counters.counter, KEY(key), 1), BELAY_EINVAL);
  assert_int_equal(server_keys(env->server), 0);
}

/* The most that may be asked for is read, with the client's defaults. */
COUNTER_TEST(largest_replies) {
  static belay_bytes_t fields[BELAY_COUNTER_MANY_MAX];
  static count_t count;
  expect_field_added(counters, "hits", "f", INT64_MIN, INT64_MIN);
  for (size_t i = 0; i < BELAY_COUNTER_MANY_MAX; i++)
    fields[i] = (belay_bytes_t){"f", 1};
  expect_status(
      &count,
      BEGIN(counters, &count, get_fields, KEY("hits"), fields, BELAY_COUNTER_MANY_MAX, on_many), 0);
  assert_int_equal(count.n, BELAY_COUNTER_MANY_MAX);
  assert_int_equal(count.many[COUNT_MANY_MAX - 1].value, INT64_MIN);
  assert_int_equal(client_stats(env).drops, 0);
}

/* Long names are not kept. */
static void on_number_of(belay_request_t *request, int status, const belay_counter_field_t *fields,
                         size_t n) {
  count_t *count = request->data;
  count->ended++;
  count->counters->pending--;
  count->status = status;
  count->n = n;
  for (size_t i = 0; i < n; i++)
    assert_true(fields[i].value == INT64_MIN && strlen(fields[i].name) == fields[i].name_len);
}

/* All fields are read, or they are too many; no connection is lost over it. */
ENV_TEST_OF(groups_near_max_reply, o.max_reply = 65536) {
  static char field[3000];
  static const size_t sizes[] = {2, 30, 200, 1000, 1500, 2500};
  counters_t counters;
  counters_new(&counters, env, NULL);
  unsigned read = 0, refused = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    count_t count = {0};
    int status = 0;
    server_do(env->server, "DEL", "belay::counter::{hits}", NULL);
    memset(field, 'x', sizeof field);
    field[sizes[i]] = '\0';
    for (int n = 0; status == 0; n++) {
      field[0] = (char)('!' + n % 64);
      field[1] = (char)('!' + n / 64);
      server_do(env->server, "HSET", "belay::counter::{hits}", field, "-9223372036854775808", NULL);
      assert_error(BEGIN(&counters, &count, get_all, KEY("hits"), 1000, on_number_of), 0);
      status = end_of_count(&count);
      read += status == 0;
    }
    assert_error(status, BELAY_EOVERFLOW);
    refused++;
  }
  print_message("%u read, %u refused\n", read, refused);
  assert_true(read > 200);
  assert_int_equal(client_stats(env).drops, 0);
}

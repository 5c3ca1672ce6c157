/* Bloom filters where something goes wrong: keys are lost, others create and clear them. */
#include <stdio.h>

#include "data/bloom/form.h"
#include "scripts.gen.h"
#include "support/fixtures/data/blooms.h"
#include "support/models/scripts.h"

#define CONFIG "belay::bloom::{seen}"
#define SEGMENT "belay::bloom::{seen::0}"

/* Never "not seen", and never "new". */
BLOOM_TEST(lost_segment_is_an_error, bloom_options(1000, 1e-6)) {
  filter_t other;
  filter_new(&other, env, 1000, 1e-6);
  assert_true(filter_add(filter, "a"));
  assert_true(filter_exists(&other, "a"));
  server_do(env->server, "DEL", SEGMENT, NULL);
  for (int i = 0; i < 2; i++) {
    (void)expect_exists_fails(filter, "a", BELAY_ELOST);
    (void)expect_add_fails(filter, "a", BELAY_ELOST);
    assert_int_equal(server_keys(env->server), 1); /* the rest of the add is deleted */
    filter_op_t op = {0};
    expect_filter_op(&op, begin_filter_many(filter, &op, true, filter_items(0, 1000), 1000),
                     BELAY_ELOST);
    expect_filter_op(&op, begin_filter_many(filter, &op, false, filter_items(0, 1000), 1000),
                     BELAY_ELOST);
    expect_filter_op(&op, begin_filter_info(filter, &op), BELAY_ELOST);
    assert_int_equal(server_keys(env->server), 1);
  }
  filter_clear(filter);
  assert_int_equal(server_keys(env->server), 0);
  assert_true(filter_add(filter, "a"));
  assert_true(filter_exists(&other, "a")); /* it goes on with the new one */
  expect_ttls(env->server);
}

BLOOM_TEST_OF(one_of_several_segments_is_lost, bloom_options(0, 0),
              o.bits = BELAY_BLOOM_SEGMENT_BITS * 3) {
  static bool answers[1000];
  filter_many(filter, true, filter_items(0, 1000), 1000, NULL);
  server_do(env->server, "UNLINK", "belay::bloom::{seen::1}", NULL);
  filter_op_t op = {.answers = answers};
  expect_filter_op(&op, begin_filter_many(filter, &op, true, filter_items(0, 1000), 1000),
                   BELAY_ELOST);
  assert_int_equal(server_keys(env->server), 3);
  unsigned well = 0;
  for (uint64_t i = 0; i < 100; i++) { /* adds that do not need it are served */
    assert_error(begin_filter_exists(filter, &op, &i, sizeof i), 0);
    int error = end_of_filter_op(&op);
    assert_true(error == BELAY_ELOST || (error == 0 && op.answer));
    well += error == 0;
  }
  assert_between(well, 40, 90);
  expect_filter_op(&op, begin_filter_info(filter, &op), BELAY_ELOST);
  filter_clear(filter);
  assert_int_equal(server_keys(env->server), 0);
}

/* Without the configuration, clients that know the filter go on, and others cannot create a new
 * one over it. */
BLOOM_TEST(lost_configuration_keeps_segments, bloom_options(1000, 1e-6)) {
  filter_t other;
  filter_new(&other, env, 1000, 1e-6);
  assert_true(filter_add(filter, "a"));
  server_do(env->server, "DEL", CONFIG, NULL);
  assert_true(filter_exists(filter, "a"));
  assert_true(filter_add(filter, "b"));
  for (int i = 0; i < 2; i++)
    assert_string_equal(expect_exists_fails(&other, "a", BELAY_ELOST),
                        SEGMENT ": a segment of a filter that has no configuration");
  assert_true(filter_exists(filter, "b"));
  filter_clear(&other);
  assert_int_equal(server_keys(env->server), 0);
  (void)expect_exists_fails(filter, "a", BELAY_ELOST); /* another client has cleared it */
  assert_false(filter_exists(filter, "a"));
  assert_false(filter_exists(&other, "a"));
}

BLOOM_TEST(everything_is_lost, bloom_options(1000, 1e-6)) {
  for (int i = 0; i < 4; i++) {
    assert_true(filter_add(filter, "a"));
    int64_t generation = filter_info(filter).generation;
    server_do(env->server, "FLUSHALL", NULL);
    if (i % 2 == 0)
      (void)expect_add_fails(filter, "a", BELAY_ELOST);
    else
      (void)expect_exists_fails(filter, "a", BELAY_ELOST);
    assert_int_equal(server_keys(env->server), 0);
    assert_false(filter_exists(filter, "a")); /* a new one */
    assert_true(filter_info(filter).generation != generation);
    expect_ttls(env->server);
  }
  filter_op_t op = {0};
  server_do(env->server, "FLUSHALL", NULL);
  expect_filter_op(&op, begin_filter_info(filter, &op), BELAY_ELOST);
}

/* A string that begins like no segment of this filter. */
BLOOM_TEST(foreign_segment_is_kept, bloom_options(1000, 1e-6)) {
  server_do(env->server, "SET", SEGMENT, "hello world", NULL);
  (void)expect_exists_fails(filter, "a", BELAY_ELOST);
  assert_string_equal(server_string(env->server, "GET", SEGMENT, NULL), "hello world");
  filter_clear(filter);
  assert_true(filter_add(filter, "a"));
  server_do(env->server, "SET", SEGMENT, "hello world", NULL);
  (void)expect_exists_fails(filter, "a", BELAY_ELOST);
  filter_op_t op = {0};
  expect_filter_op(&op, begin_filter_many(filter, &op, true, filter_items(0, 1000), 1000),
                   BELAY_ELOST);
  assert_string_equal(server_string(env->server, "GET", SEGMENT, NULL), "hello world");
}

/* A segment longer than possible, written with other options. */
BLOOM_TEST(too_long_segment, bloom_options(1000, 1e-6)) {
  static bool answers[1000];
  assert_true(filter_add(filter, "a"));
  server_do(env->server, "SETBIT", SEGMENT, "1000000", "1", NULL);
  for (int i = 0; i < 2; i++) {
    filter_many(filter, true, filter_items(0, 1000), 1000, answers);
    filter_many(filter, false, filter_items(0, 1000), 1000, NULL);
    assert_true(filter_exists(filter, "a"));
    assert_int_equal(answers[0], i == 0);
    assert_between(filter_info(filter).items, 950, 1050);
  }
}

/* A bitmap travels in the slot of its segment: to no other keys. */
ENV_TEST(bitmap_stays_in_one_slot) {
  filter_t filter;
  server_do(env->server, "ACL", "SETUSER", "default", "resetkeys", "~" CONFIG, "~" SEGMENT,
            "~belay::bloom::{seen::0}::*", NULL);
  filter_new(&filter, env, 1000, 1e-6);
  int64_t calls = server_calls(env->server, "bitop");
  filter_many(&filter, true, filter_items(0, 1000), 1000, NULL);
  assert_int_equal(server_calls(env->server, "bitop"), calls < 0 ? 1 : calls + 1);
  assert_int_equal(server_keys(env->server), 2);
  expect_ttls(env->server);
}

ENV_TEST(concurrent_creation) {
  enum { USERS = 16 };
  filter_t filters[USERS];
  belay_bloom_options_t options = bloom_options(0, 0);
  options.bits = BELAY_BLOOM_SEGMENT_BITS * 300;
  for (int round = 0; round < 3; round++) {
    filter_op_t ops[USERS] = {0};
    unsigned new = 0;
    for (int i = 0; i < USERS; i++) {
      belay_client_t *client =
          i < 4 && round == 0 ? env_connect(env, server_url(env->server), NULL) : env->all[i % 4];
      filter_of(&filters[i], env, client, &options);
      assert_error(begin_filter_add(&filters[i], &ops[i], "a", 1), 0);
    }
    for (int i = 0; i < USERS; i++) {
      assert_error(end_of_filter_op(&ops[i]), 0);
      new += ops[i].answer;
    }
    assert_int_equal(new, 1);
    assert_int_equal(server_keys(env->server), 301);
    for (int i = 0; i < USERS; i++) {
      assert_error(begin_filter_close(&filters[i]), 0);
      env_until(env, filters[i].closed == 1);
    }
    server_do(env->server, "FLUSHALL", NULL);
  }
}

/* A program died during the creation: the next client completes it. */
ENV_TEST(unfinished_filter_is_completed) {
  filter_t filter;
  belay_bloom_options_t options = bloom_options(0, 0.01);
  options.bits = BELAY_BLOOM_SEGMENT_BITS * 3;
  belay__bloom_form_t form;
  assert_null(belay__bloom_form_of(&options, &form));
  uint8_t value[BELAY__BLOOM_VALUE_LEN];
  belay__bloom_pack(&form, 4711, false, value);
  memcpy(value + BELAY__BLOOM_CONFIG_LEN, "9000000000000000", BELAY__BLOOM_DIGITS);
  const resp_words_t words = {
      .count = 5,
      .word = {"SET", CONFIG, (const char *)value, "PXAT", "9000000000000000"},
      .len = {3, strlen(CONFIG), sizeof value, 4, 16}};
  (void)server_ask_words(env->server, &words);
  const resp_words_t segment = {.count = 5,
                                .word = {"SET", "belay::bloom::{seen::1}", "\0\0\0\0\0\0\x12\x67",
                                         "PXAT", "9000000000000000"},
                                .len = {3, 23, 8, 4, 16}};
  (void)server_ask_words(env->server, &segment);
  filter_of(&filter, env, env->client, &options);
  filter_many(&filter, true, filter_items(0, 100), 100, NULL);
  belay_bloom_info_t info = filter_info(&filter);
  assert_int_equal(info.generation, 4711);
  assert_int_equal(info.items, 100);
  assert_int_equal(server_keys(env->server), 4);
  expect_ttls(env->server);
}

BLOOM_TEST(clear_during_operations, bloom_options(1000, 1e-6)) {
  filter_t other;
  filter_new(&other, env, 1000, 1e-6);
  assert_true(filter_add(filter, "a"));
  assert_true(filter_add(&other, "b"));
  filter_clear(filter);
  assert_int_equal(server_keys(env->server), 0);
  (void)expect_add_fails(&other, "a", BELAY_ELOST);
  assert_true(filter_add(&other, "a"));
  assert_false(filter_add(filter, "a"));
  filter_clear(filter);
  assert_true(filter_add(filter, "c")); /* created anew before the other one looks: it goes on */
  assert_true(filter_add(&other, "d"));
  assert_true(filter_add(&other, "a"));
  assert_false(filter_add(filter, "a"));
  filter_many(filter, true, filter_items(0, 5000), 5000, NULL);
  filter_clear(&other);
  assert_true(filter_add(&other, "e"));
  filter_many(filter, true, filter_items(0, 5000), 5000, NULL);
  assert_true(filter_exists(&other, "e"));
  filter_clear(filter);
  filter_clear(filter); /* the filter does not exist */
  assert_int_equal(server_keys(env->server), 0);
}

/* A filter with other options, and a value that is no configuration. */
ENV_TEST(clear_of_any_filter) {
  filter_t filter, large;
  belay_bloom_options_t options = bloom_options(0, 0);
  options.bits = BELAY_BLOOM_SEGMENT_BITS * 20;
  filter_of(&large, env, env->client, &options);
  filter_new(&filter, env, 1000, 1e-6);
  assert_true(filter_add(&large, "a"));
  assert_int_equal(server_keys(env->server), 21);
  (void)expect_add_fails(&filter, "a", BELAY_EMISMATCH);
  filter_clear(&filter);
  assert_int_equal(server_keys(env->server), 0);
  assert_true(filter_add(&filter, "a"));
  (void)expect_add_fails(&large, "a", BELAY_EMISMATCH);
  server_do(env->server, "SET", CONFIG, "hello", NULL);
  filter_clear(&filter);
  assert_int_equal(server_keys(env->server), 0);
}

BLOOM_TEST(script_cache_flushed, bloom_options(1000, 0.01)) {
  for (int i = 0; i < 3; i++) {
    filter_many(filter, true, filter_items(0, 1000), 1000, NULL);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    filter_many(filter, true, filter_items(0, 1000), 1000, NULL);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    filter_clear(filter);
  }
}

/* Somebody was away between reading "being created" and creating. */
TEST_ON(segment_is_not_created_late, server, server_start(NULL)) {
  int64_t now = server_now_ms(server);
  char past[24], soon[24], ends[24];
  (void)snprintf(past, sizeof past, "%lld", (long long)now - 1);
  (void)snprintf(soon, sizeof soon, "%lld", (long long)now + 600000);
  (void)snprintf(ends, sizeof ends, "%lld", (long long)now + 60000);
  const script_input_t late = {{SEGMENT}, {"12345678", "0", past}};
  const script_input_t ended = {{SEGMENT}, {"12345678", past, soon}};
  const script_input_t well = {{SEGMENT}, {"12345678", ends, soon}};
  const script_input_t other = {{SEGMENT}, {"87654321", ends, soon}};
  assert_int_equal(script_integer(server, &belay__script_bloom_segment, &late), 3);
  assert_int_equal(script_integer(server, &belay__script_bloom_segment, &ended), 3);
  assert_int_equal(server_keys(server), 0);
  assert_int_equal(script_integer(server, &belay__script_bloom_segment, &well), 1);
  assert_int_equal(script_integer(server, &belay__script_bloom_segment, &well), 2);
  assert_int_equal(script_integer(server, &belay__script_bloom_segment, &late), 2);
  assert_int_equal(script_integer(server, &belay__script_bloom_segment, &other), 0);
  expect_ttls(server);
  server_do(server, "DEL", SEGMENT, NULL);
  server_do(server, "SETBIT", SEGMENT, "100", "1", NULL); /* the rest of a late BITFIELD */
  assert_int_equal(script_integer(server, &belay__script_bloom_segment, &well), 1);
  assert_int_equal(server_integer(server, "STRLEN", SEGMENT, NULL), 8);
  expect_ttls(server);
}

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
  sieve_t other;
  sieve_new(&other, env, 1000, 1e-6);
  assert_true(sift_add(sieve, "a"));
  assert_true(sift_exists(&other, "a"));
  server_do(env->server, "DEL", SEGMENT, NULL);
  for (int i = 0; i < 2; i++) {
    (void)expect_exists_fails(sieve, "a", BELAY_ELOST);
    (void)expect_add_fails(sieve, "a", BELAY_ELOST);
    assert_int_equal(server_keys(env->server), 1); /* the rest of the add is deleted */
    sift_t sift = {0};
    expect_sift(&sift, begin_sift_many(sieve, &sift, true, sift_items(0, 1000), 1000), BELAY_ELOST);
    expect_sift(&sift, begin_sift_many(sieve, &sift, false, sift_items(0, 1000), 1000),
                BELAY_ELOST);
    expect_sift(&sift, begin_sift_info(sieve, &sift), BELAY_ELOST);
    assert_int_equal(server_keys(env->server), 1);
  }
  sift_clear(sieve);
  assert_int_equal(server_keys(env->server), 0);
  assert_true(sift_add(sieve, "a"));
  assert_true(sift_exists(&other, "a")); /* it goes on with the new one */
  expect_ttls(env->server);
}

BLOOM_TEST_OF(one_of_several_segments_is_lost, bloom_options(0, 0),
              o.bits = BELAY_BLOOM_SEGMENT_BITS * 3) {
  static bool answers[1000];
  sift_many(sieve, true, sift_items(0, 1000), 1000, NULL);
  server_do(env->server, "UNLINK", "belay::bloom::{seen::1}", NULL);
  sift_t sift = {.answers = answers};
  expect_sift(&sift, begin_sift_many(sieve, &sift, true, sift_items(0, 1000), 1000), BELAY_ELOST);
  assert_int_equal(server_keys(env->server), 3);
  unsigned well = 0;
  for (uint64_t i = 0; i < 100; i++) { /* adds that do not need it are served */
    assert_error(begin_sift_exists(sieve, &sift, &i, sizeof i), 0);
    int error = end_of_sift(&sift);
    assert_true(error == BELAY_ELOST || (error == 0 && sift.answer));
    well += error == 0;
  }
  assert_between(well, 40, 90);
  expect_sift(&sift, begin_sift_info(sieve, &sift), BELAY_ELOST);
  sift_clear(sieve);
  assert_int_equal(server_keys(env->server), 0);
}

/* Without the configuration, clients that know the filter go on, and others cannot create a new
 * one over it. */
BLOOM_TEST(lost_configuration_keeps_segments, bloom_options(1000, 1e-6)) {
  sieve_t other;
  sieve_new(&other, env, 1000, 1e-6);
  assert_true(sift_add(sieve, "a"));
  server_do(env->server, "DEL", CONFIG, NULL);
  assert_true(sift_exists(sieve, "a"));
  assert_true(sift_add(sieve, "b"));
  for (int i = 0; i < 2; i++)
    assert_string_equal(expect_exists_fails(&other, "a", BELAY_ELOST),
                        SEGMENT ": a segment of a filter that has no configuration");
  assert_true(sift_exists(sieve, "b"));
  sift_clear(&other);
  assert_int_equal(server_keys(env->server), 0);
  (void)expect_exists_fails(sieve, "a", BELAY_ELOST); /* another client has cleared it */
  assert_false(sift_exists(sieve, "a"));
  assert_false(sift_exists(&other, "a"));
}

BLOOM_TEST(everything_is_lost, bloom_options(1000, 1e-6)) {
  for (int i = 0; i < 4; i++) {
    assert_true(sift_add(sieve, "a"));
    int64_t generation = sift_info(sieve).generation;
    server_do(env->server, "FLUSHALL", NULL);
    if (i % 2 == 0)
      (void)expect_add_fails(sieve, "a", BELAY_ELOST);
    else
      (void)expect_exists_fails(sieve, "a", BELAY_ELOST);
    assert_int_equal(server_keys(env->server), 0);
    assert_false(sift_exists(sieve, "a")); /* a new one */
    assert_true(sift_info(sieve).generation != generation);
    expect_ttls(env->server);
  }
  sift_t sift = {0};
  server_do(env->server, "FLUSHALL", NULL);
  expect_sift(&sift, begin_sift_info(sieve, &sift), BELAY_ELOST);
}

/* A string that begins like no segment of this filter. */
BLOOM_TEST(foreign_segment_is_kept, bloom_options(1000, 1e-6)) {
  server_do(env->server, "SET", SEGMENT, "hello world", NULL);
  (void)expect_exists_fails(sieve, "a", BELAY_ELOST);
  assert_string_equal(server_string(env->server, "GET", SEGMENT, NULL), "hello world");
  sift_clear(sieve);
  assert_true(sift_add(sieve, "a"));
  server_do(env->server, "SET", SEGMENT, "hello world", NULL);
  (void)expect_exists_fails(sieve, "a", BELAY_ELOST);
  sift_t sift = {0};
  expect_sift(&sift, begin_sift_many(sieve, &sift, true, sift_items(0, 1000), 1000), BELAY_ELOST);
  assert_string_equal(server_string(env->server, "GET", SEGMENT, NULL), "hello world");
}

/* A segment longer than possible, written with other options. */
BLOOM_TEST(too_long_segment, bloom_options(1000, 1e-6)) {
  static bool answers[1000];
  assert_true(sift_add(sieve, "a"));
  server_do(env->server, "SETBIT", SEGMENT, "1000000", "1", NULL);
  for (int i = 0; i < 2; i++) {
    sift_many(sieve, true, sift_items(0, 1000), 1000, answers);
    sift_many(sieve, false, sift_items(0, 1000), 1000, NULL);
    assert_true(sift_exists(sieve, "a"));
    assert_int_equal(answers[0], i == 0);
    assert_between(sift_info(sieve).items, 950, 1050);
  }
}

/* A bitmap travels in the slot of its segment: to no other keys. */
ENV_TEST(bitmap_stays_in_one_slot) {
  sieve_t sieve;
  server_do(env->server, "ACL", "SETUSER", "default", "resetkeys", "~" CONFIG, "~" SEGMENT,
            "~belay::bloom::{seen::0}::*", NULL);
  sieve_new(&sieve, env, 1000, 1e-6);
  int64_t calls = server_calls(env->server, "bitop");
  sift_many(&sieve, true, sift_items(0, 1000), 1000, NULL);
  assert_int_equal(server_calls(env->server, "bitop"), calls < 0 ? 1 : calls + 1);
  assert_int_equal(server_keys(env->server), 2);
  expect_ttls(env->server);
}

ENV_TEST(concurrent_creation) {
  enum { USERS = 16 };
  sieve_t sieves[USERS];
  belay_bloom_options_t options = bloom_options(0, 0);
  options.bits = BELAY_BLOOM_SEGMENT_BITS * 300;
  for (int round = 0; round < 3; round++) {
    sift_t sifts[USERS] = {0};
    unsigned new = 0;
    for (int i = 0; i < USERS; i++) {
      belay_client_t *client =
          i < 4 && round == 0 ? env_connect(env, server_url(env->server), NULL) : env->all[i % 4];
      sieve_of(&sieves[i], env, client, &options);
      assert_error(begin_sift_add(&sieves[i], &sifts[i], "a", 1), 0);
    }
    for (int i = 0; i < USERS; i++) {
      assert_error(end_of_sift(&sifts[i]), 0);
      new += sifts[i].answer;
    }
    assert_int_equal(new, 1);
    assert_int_equal(server_keys(env->server), 301);
    for (int i = 0; i < USERS; i++) {
      assert_error(begin_close_sieve(&sieves[i]), 0);
      env_until(env, sieves[i].closed == 1);
    }
    server_do(env->server, "FLUSHALL", NULL);
  }
}

/* A program died during the creation: the next client completes it. */
ENV_TEST(unfinished_filter_is_completed) {
  sieve_t sieve;
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
  sieve_of(&sieve, env, env->client, &options);
  sift_many(&sieve, true, sift_items(0, 100), 100, NULL);
  belay_bloom_info_t info = sift_info(&sieve);
  assert_int_equal(info.generation, 4711);
  assert_int_equal(info.items, 100);
  assert_int_equal(server_keys(env->server), 4);
  expect_ttls(env->server);
}

BLOOM_TEST(clear_during_operations, bloom_options(1000, 1e-6)) {
  sieve_t other;
  sieve_new(&other, env, 1000, 1e-6);
  assert_true(sift_add(sieve, "a"));
  assert_true(sift_add(&other, "b"));
  sift_clear(sieve);
  assert_int_equal(server_keys(env->server), 0);
  (void)expect_add_fails(&other, "a", BELAY_ELOST);
  assert_true(sift_add(&other, "a"));
  assert_false(sift_add(sieve, "a"));
  sift_clear(sieve);
  assert_true(sift_add(sieve, "c")); /* created anew before the other one looks: it goes on */
  assert_true(sift_add(&other, "d"));
  assert_true(sift_add(&other, "a"));
  assert_false(sift_add(sieve, "a"));
  sift_many(sieve, true, sift_items(0, 5000), 5000, NULL);
  sift_clear(&other);
  assert_true(sift_add(&other, "e"));
  sift_many(sieve, true, sift_items(0, 5000), 5000, NULL);
  assert_true(sift_exists(&other, "e"));
  sift_clear(sieve);
  sift_clear(sieve); /* the filter does not exist */
  assert_int_equal(server_keys(env->server), 0);
}

/* A filter with other options, and a value that is no configuration. */
ENV_TEST(clear_of_any_filter) {
  sieve_t sieve, large;
  belay_bloom_options_t options = bloom_options(0, 0);
  options.bits = BELAY_BLOOM_SEGMENT_BITS * 20;
  sieve_of(&large, env, env->client, &options);
  sieve_new(&sieve, env, 1000, 1e-6);
  assert_true(sift_add(&large, "a"));
  assert_int_equal(server_keys(env->server), 21);
  (void)expect_add_fails(&sieve, "a", BELAY_EMISMATCH);
  sift_clear(&sieve);
  assert_int_equal(server_keys(env->server), 0);
  assert_true(sift_add(&sieve, "a"));
  (void)expect_add_fails(&large, "a", BELAY_EMISMATCH);
  server_do(env->server, "SET", CONFIG, "hello", NULL);
  sift_clear(&sieve);
  assert_int_equal(server_keys(env->server), 0);
}

BLOOM_TEST(script_cache_flushed, bloom_options(1000, 0.01)) {
  for (int i = 0; i < 3; i++) {
    sift_many(sieve, true, sift_items(0, 1000), 1000, NULL);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    sift_many(sieve, true, sift_items(0, 1000), 1000, NULL);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    sift_clear(sieve);
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

/* Permissions: levels and bits, where they lie, what they are called, and how long they stay. */
#include <stdio.h>

#include "support/fixtures/data/permissions.h"
#include "support/models/scripts.h"

ENV_TEST(unset_field_is_0) {
  perms_t perms;
  perms_new(&perms, env, 4);
  expect_perm(&perms, PERM_GET, 1000, 0, 0, 0, false);
  expect_perm(&perms, PERM_HAS, 1000, 1, 0, 0, false);
  expect_perm(&perms, PERM_HAS, 1000, 0, 0, 0, true); /* nothing is asked for */
  assert_int_equal(server_keys(env->server), 0);
  expect_perm(&perms, PERM_SET, 2, 9, 0, 9, true);
  expect_perm(&perms, PERM_SET, 2, 9, 9, 9, false);
  expect_perm(&perms, PERM_SET, 2, 5, 9, 5, true);
  expect_perm(&perms, PERM_GET, 2, 0, 5, 5, true);
  expect_perm(&perms, PERM_GET, 1, 0, 0, 0, false);
  expect_perm(&perms, PERM_GET, 3, 0, 0, 0, false);
  expect_perm(&perms, PERM_SWAP, 2, 7, 5, 5, false); /* it is not 0 */
  expect_perm(&perms, PERM_SWAP, 3, 7, 0, 7, true);
  assert_int_equal(server_integer(env->server, "STRLEN", PERMS_KEY "4", NULL), 2);
  assert_int_equal(server_integer(env->server, "PTTL", PERMS_KEY "4", NULL), -1);
  expect_perm(&perms, PERM_CLEAR, 0, 0, 0, 0, false);
  assert_int_equal(server_keys(env->server), 0);
  expect_perm(&perms, PERM_CLEAR, 0, 0, 0, 0, false);
  expect_perm(&perms, PERM_GET, 2, 0, 0, 0, false);
}

ENV_TEST(grant_and_revoke_bits) {
  perms_t perms;
  perms_new(&perms, env, 5);
  expect_perm(&perms, PERM_GRANT, 3, 0x0a, 0, 0x0a, true);
  expect_perm(&perms, PERM_GRANT, 3, 0x03, 0x0a, 0x0b, true);
  expect_perm(&perms, PERM_GRANT, 3, 0x03, 0x0b, 0x0b, false);
  expect_perm(&perms, PERM_GRANT, 3, 0, 0x0b, 0x0b, false);
  expect_perm(&perms, PERM_HAS, 3, 0x09, 0x0b, 0x0b, true);
  expect_perm(&perms, PERM_HAS, 3, 0x05, 0x0b, 0x0b, false); /* not all of them */
  expect_perm(&perms, PERM_REVOKE, 3, 0x06, 0x0b, 0x09, true);
  expect_perm(&perms, PERM_REVOKE, 3, 0x06, 0x09, 0x09, false);
  expect_perm(&perms, PERM_GET, 2, 0, 0, 0, false);
  expect_perm(&perms, PERM_GET, 4, 0, 0, 0, false);
  /* bits 15 to 19 of the string, the highest one first: 0 1001 */
  for (int b = 0; b < 24; b++) {
    char at[8];
    snprintf(at, sizeof at, "%d", b);
    assert_int_equal(server_integer(env->server, "GETBIT", PERMS_KEY "5", at, NULL),
                     b == 16 || b == 19);
  }
}

ENV_TEST(set_of_one_bit_reports_first_time) {
  perms_t perms;
  perms_new(&perms, env, 1);
  expect_perm(&perms, PERM_SET, 1048575, 1, 0, 1, true);
  expect_perm(&perms, PERM_SET, 1048575, 1, 1, 1, false);
  assert_int_equal(server_integer(env->server, "STRLEN", PERMS_KEY "1", NULL), 131072);
}

ENV_TEST(fields_of_63_bits) {
  const uint64_t all = (UINT64_C(1) << 63) - 1, odd = UINT64_C(0x5555555555555555);
  for (int ttl = 0; ttl < 2; ttl++) {
    belay_permission_options_t options = permission_options(63);
    options.ttl_ms = ttl == 0 ? 0 : 100000;
    perms_t perms;
    perms_of(&perms, env, env->client, &options);
    expect_perm(&perms, PERM_SET, 1, all, 0, all, true);
    expect_perm(&perms, PERM_SET, 1, all - 1, all, all - 1, true);
    expect_perm(&perms, PERM_GRANT, 1, 1, all - 1, all, true);
    expect_perm(&perms, PERM_REVOKE, 1, odd, all, all & ~odd, true);
    expect_perm(&perms, PERM_GRANT, 1, all, all & ~odd, all, true);
    for (int up = 0; up < 2; up++) { /* 2^53 + 1, and the value that a double would have */
      uint64_t n = (UINT64_C(1) << 53) + 1, near = up ? n + 1 : n - 1;
      perm_op_t perm_op = {0};
      expect_perm(&perms, PERM_SET, 2, near, up ? n : 0, near, true);
      belay_request_t *r = begin_perm_op(&perms, &perm_op);
      assert_error(begun_perm_op(&perm_op, belay_permission_compare_and_set(
                                               perms.permission, r, belay_string("forum"),
                                               &(belay_permission_swap_t){
                                                   .index = 2, .expected = n, .value = 7},
                                               on_perm_op)),
                   0);
      assert_error(end_of_perm_op(&perm_op), 0);
      assert_false(perm_op.results[0].answer);
      assert_true(perm_op.results[0].before == near && perm_op.results[0].value == near);
      expect_perm(&perms, PERM_SET, 2, n, near, n, true);
    }
    expect_perm(&perms, PERM_GET, 0, 0, 0, 0, false);
    expect_perm(&perms, PERM_GET, 3, 0, 0, 0, false);
    expect_perm(&perms, PERM_CLEAR, 0, 0, 0, 0, false);
  }
}

/* Fields of another width are another string. */
ENV_TEST(keys_have_name_and_width) {
  static char name[128], key[BELAY_PERMISSION_KEY_MAX];
  perms_t narrow, wide, longest;
  perms_new(&narrow, env, 3);
  perms_new(&wide, env, 12);
  expect_perm(&narrow, PERM_SET, 1, 5, 0, 5, true);
  expect_perm(&wide, PERM_GET, 0, 0, 0, 0, false);
  assert_int_equal(server_integer(env->server, "EXISTS", PERMS_KEY "3", NULL), 1);
  memset(name, '{', sizeof name);
  memset(key, '}', sizeof key);
  belay_permission_options_t options = permission_options(2);
  options.name = belay_bytes(name, sizeof name);
  perms_of(&longest, env, env->client, &options);
  perm_op_t perm_op = {0};
  const belay_permission_field_t field = {0, 3};
  belay_request_t *r = begin_perm_op(&longest, &perm_op);
  assert_error(begun_perm_op(&perm_op, belay_permission_set(longest.permission, r,
                                                            belay_bytes(key, sizeof key), &field, 1,
                                                            on_perm_op)),
               0);
  assert_error(end_of_perm_op(&perm_op), 0);
  assert_int_equal(server_keys(env->server), 2);
}

ENV_TEST(change_restarts_ttl) {
  belay_permission_options_t options = permission_options(4);
  options.ttl_ms = 100000;
  perms_t perms;
  perms_of(&perms, env, env->client, &options);
  for (perm_verb_t first = PERM_SET; first <= PERM_SWAP; first++) {
    for (perm_verb_t verb = PERM_GET; verb <= PERM_SWAP; verb++) {
      bool changes = verb >= PERM_SET && verb != PERM_SWAP;
      perm_op_t perm_op = {0}, again = {0};
      server_do(env->server, "FLUSHALL", NULL);
      assert_ends(begin_perm(&perms, &perm_op, first, 9, 9), end_of_perm_op(&perm_op), 0);
      expect_ttls(env->server);
      server_do(env->server, "BITFIELD", PERMS_KEY "4", "SET", "u4", "#9", "9", NULL);
      server_do(env->server, "PEXPIRE", PERMS_KEY "4", "50000", NULL);
      assert_error(begin_perm(&perms, &again, verb, 9, 3), 0); /* a swap finds no 0 */
      assert_error(end_of_perm_op(&again), 0);
      assert_between(server_integer(env->server, "PTTL", PERMS_KEY "4", NULL),
                     changes ? 80000 : 30000, changes ? 100000 : 50000);
    }
  }
  expect_perm(&perms, PERM_SET, 9, 0, 9, 0, true);
  server_do(env->server, "PEXPIRE", PERMS_KEY "4", "50000", NULL);
  expect_perm(&perms, PERM_SWAP, 9, 3, 0, 3, true);
  assert_between(server_integer(env->server, "PTTL", PERMS_KEY "4", NULL), 80000, 100000);
}

ENV_TEST(largest_operations) {
  static belay_permission_field_t fields[BELAY_PERMISSION_FIELDS_MAX];
  static uint64_t indices[BELAY_PERMISSION_FIELDS_MAX];
  const uint64_t odd = UINT64_C(0x5555555555555555);
  for (int ttl = 0; ttl < 2; ttl++) {
    belay_permission_options_t options = permission_options(63);
    options.ttl_ms = ttl == 0 ? 0 : 100000;
    perms_t perms;
    perms_of(&perms, env, env->client, &options);
    const size_t n = BELAY_PERMISSION_FIELDS_MAX, grants = BELAY_PERMISSION_GRANTS_MAX;
    for (int what = 0; what < 4; what++) {
      uint64_t sum = 0;
      for (size_t i = 0; i < n; i++) {
        indices[i] = i;
        fields[i] = (belay_permission_field_t){i, what < 2 ? i : odd};
        sum += what < 2 ? i : i < grants ? i | odd : 0;
      }
      perm_op_t perm_op = {.request.timeout_ms = 60000};
      belay_permission_t *p = perms.permission;
      belay_request_t *r = begin_perm_op(&perms, &perm_op);
      int error =
          what == 0   ? belay_permission_set(p, r, belay_string("forum"), fields, n, on_perm_op)
          : what == 1 ? belay_permission_get(p, r, belay_string("forum"), indices, n, on_perm_op)
          : what == 2
              ? belay_permission_grant(p, r, belay_string("forum"), fields, grants, on_perm_op)
              : belay_permission_has(p, r, belay_string("forum"), fields, grants, on_perm_op);
      assert_error(begun_perm_op(&perm_op, error), 0);
      assert_error(end_of_perm_op(&perm_op), 0);
      assert_int_equal(perm_op.n, what < 2 ? n : grants);
      assert_true(perm_op.sum == sum);
    }
    expect_perm(&perms, PERM_CLEAR, 0, 0, 0, 0, false);
  }
}

ENV_TEST(names_of_values) {
  char reader[] = "reader";
  const char *names[] = {"none", reader, NULL, "owner"};
  belay_permission_options_t options = permission_options(0);
  options.names = names;
  options.names_len = 4;
  perms_t perms, nameless;
  perms_of(&perms, env, env->client, &options);
  reader[0] = 'l'; /* they were copied */
  assert_string_equal(belay_permission_name(perms.permission, 0), "none");
  assert_string_equal(belay_permission_name(perms.permission, 1), "reader");
  assert_string_equal(belay_permission_name(perms.permission, 2), "unknown");
  assert_string_equal(belay_permission_name(perms.permission, 3), "owner");
  assert_string_equal(belay_permission_name(perms.permission, 4), "unknown");
  assert_string_equal(belay_permission_name(perms.permission, UINT64_MAX), "unknown");
  assert_string_equal(belay_permission_name(NULL, 0), "unknown");
  perms_new(&nameless, env, 2);
  assert_string_equal(belay_permission_name(nameless.permission, 0), "unknown");
  expect_perm(&perms, PERM_SET, 0, 3, 0, 3, true); /* they are 2 bits wide */
  perm_op_t perm_op = {0};
  assert_error(begin_perm(&perms, &perm_op, PERM_SET, 0, 4), BELAY_EINVAL);
}

TEST(width_of_levels) {
  static const struct {
    uint64_t levels;
    unsigned width;
  } rows[] = {{0, 0},
              {1, 1},
              {2, 1},
              {3, 2},
              {4, 2},
              {5, 3},
              {8, 3},
              {9, 4},
              {UINT64_C(1) << 32, 32},
              {(UINT64_C(1) << 32) + 1, 33},
              {UINT64_C(1) << 62, 62},
              {(UINT64_C(1) << 62) + 1, 63},
              {UINT64_C(1) << 63, 63},
              {(UINT64_C(1) << 63) + 1, 0},
              {UINT64_MAX, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_int_equal(belay_permission_width(rows[i].levels), rows[i].width);
}

/* The last bits that a string may have; and no more. */
ENV_TEST(largest_index) {
  belay_permission_options_t options = permission_options(1);
  options.max_index = (UINT64_C(1) << 32) - 1;
  perms_t perms;
  perms_of(&perms, env, env->client, &options);
  expect_perm(&perms, PERM_GET, options.max_index, 0, 0, 0, false);
  perm_op_t perm_op = {0};
  assert_error(begin_perm(&perms, &perm_op, PERM_GET, options.max_index + 1, 0), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "index: not from 0 to 4294967295");
}

ENV_TEST(arguments_are_checked) {
  static const struct {
    uint64_t index, value;
    const char *detail;
  } rows[] = {{1048576, 0, "index: not from 0 to 1048575"},
              {UINT64_MAX, 0, "index: not from 0 to 1048575"},
              {0, 8, "value: not of 3 bits"},
              {0, UINT64_MAX, "value: not of 3 bits"}};
  perms_t perms;
  perms_new(&perms, env, 3);
  belay_permission_t *p = perms.permission;
  perm_op_t perm_op = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (perm_verb_t verb = i < 2 ? PERM_GET : PERM_HAS; verb <= PERM_SWAP; verb++) {
      assert_error(begin_perm(&perms, &perm_op, verb, rows[i].index, rows[i].value), BELAY_EINVAL);
      assert_string_equal(belay_detail(env->belay), rows[i].detail);
    }
  belay_request_t q = {0};
  assert_error(belay_permission_compare_and_set(
                   p, &q, belay_string("k"),
                   &(belay_permission_swap_t){.index = 0, .expected = 8, .value = 0}, on_perm_op),
               BELAY_EINVAL);
  const belay_permission_field_t field = {0, 0};
  const uint64_t index = 0;
  const size_t many = BELAY_PERMISSION_FIELDS_MAX + 1, grants = BELAY_PERMISSION_GRANTS_MAX + 1;
  assert_error(belay_permission_get(p, &q, belay_string("k"), NULL, 1, on_perm_op), BELAY_EINVAL);
  assert_error(belay_permission_get(p, &q, belay_string("k"), &index, many, on_perm_op),
               BELAY_EINVAL);
  assert_error(belay_permission_has(p, &q, belay_string("k"), &field, 0, on_perm_op), BELAY_EINVAL);
  assert_error(belay_permission_set(p, &q, belay_string("k"), &field, many, on_perm_op),
               BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "fields: NULL, or not 1 to 16384 of them");
  assert_error(belay_permission_grant(p, &q, belay_string("k"), &field, grants, on_perm_op),
               BELAY_EINVAL);
  assert_error(belay_permission_revoke(p, &q, belay_string("k"), NULL, 1, on_perm_op),
               BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "fields: NULL, or not 1 to 2048 of them");
  const int no_key[] = {
      belay_permission_get(p, &q, belay_string(""), &index, 1, on_perm_op),
      belay_permission_has(p, &q, belay_string(""), &field, 1, on_perm_op),
      belay_permission_set(p, &q, belay_string(""), &field, 1, on_perm_op),
      belay_permission_grant(p, &q, belay_string(""), &field, 1, on_perm_op),
      belay_permission_revoke(p, &q, belay_string(""), &field, 1, on_perm_op),
      belay_permission_compare_and_set(
          p, &q, belay_string(""),
          &(belay_permission_swap_t){.index = 0, .expected = 0, .value = 1}, on_perm_op),
      belay_permission_clear(p, &q, belay_string(""), on_perm_op),
  };
  for (size_t i = 0; i < sizeof no_key / sizeof *no_key; i++)
    assert_error(no_key[i], BELAY_EINVAL);
  assert_int_equal(client_stats(env).calls, 0);
}

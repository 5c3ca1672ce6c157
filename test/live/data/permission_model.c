/* Permissions against a model, step by step: narrow and wide fields, with and without a ttl. */
#include <stdio.h>

#include "support/base/random.h"
#include "support/fixtures/data/permissions.h"
#include "support/models/scripts.h"

enum { FIELDS = 40, STEPS = 600, MANY = 12 };

typedef struct model {
  perms_t perms;
  unsigned width;
  int64_t ttl_ms;
  uint64_t random, values[FIELDS];
  unsigned changed, unchanged, swapped, refused;
} model_t;

static uint64_t below(model_t *m, uint64_t n) {
  return (next_random(&m->random) >> 11) % n;
}

static uint64_t any_value(model_t *m) {
  uint64_t all = (UINT64_C(1) << m->width) - 1;
  switch (below(m, 5)) {
  case 0:
    return 0;
  case 1:
    return all;
  case 2:
    return UINT64_C(1) << below(m, m->width);
  default:
    return next_random(&m->random) & all;
  }
}

static void expect(model_t *m, const belay_permission_result_t *result, uint64_t index,
                   uint64_t before, uint64_t now, bool yes) {
  assert_true(result->index == index);
  assert_true(result->before == before);
  assert_true(result->value == now);
  assert_int_equal(result->answer, yes);
  m->changed += before != now;
  m->unchanged += before == now;
}

/* Some fields at once, the same one maybe twice. */
static void step_fields(model_t *m, perm_verb_t verb) {
  belay_permission_field_t fields[MANY];
  uint64_t indices[MANY], before[MANY], now[MANY];
  size_t n = 1 + below(m, MANY);
  for (size_t i = 0; i < n; i++) {
    fields[i] = (belay_permission_field_t){below(m, FIELDS), any_value(m)};
    indices[i] = fields[i].index;
    uint64_t *value = &m->values[indices[i]];
    before[i] = *value;
    *value = verb == PERM_SET      ? fields[i].value
             : verb == PERM_GRANT  ? *value | fields[i].value
             : verb == PERM_REVOKE ? *value & ~fields[i].value
                                   : *value;
    now[i] = *value;
  }
  perm_op_t perm_op = {0};
  belay_permission_t *p = m->perms.permission;
  belay_request_t *r = begin_perm_op(&m->perms, &perm_op);
  int error =
      verb == PERM_GET   ? belay_permission_get(p, r, belay_string("forum"), indices, n, on_perm_op)
      : verb == PERM_HAS ? belay_permission_has(p, r, belay_string("forum"), fields, n, on_perm_op)
      : verb == PERM_SET ? belay_permission_set(p, r, belay_string("forum"), fields, n, on_perm_op)
      : verb == PERM_GRANT
          ? belay_permission_grant(p, r, belay_string("forum"), fields, n, on_perm_op)
          : belay_permission_revoke(p, r, belay_string("forum"), fields, n, on_perm_op);
  assert_error(begun_perm_op(&perm_op, error), 0);
  assert_error(end_of_perm_op(&perm_op), 0);
  assert_int_equal(perm_op.n, n);
  for (size_t i = 0; i < n; i++)
    expect(m, &perm_op.results[i], indices[i], before[i], now[i],
           verb == PERM_GET   ? now[i] != 0
           : verb == PERM_HAS ? (now[i] & fields[i].value) == fields[i].value
                              : now[i] != before[i]);
}

/* The expected value is the present one, the present one with one bit changed, or any other. */
static void step_swap(model_t *m) {
  uint64_t index = below(m, FIELDS), value = any_value(m), before = m->values[index],
           how = below(m, 4);
  uint64_t expected = how < 2    ? before
                      : how == 2 ? before ^ UINT64_C(1) << below(m, m->width)
                                 : any_value(m);
  bool same = expected == before;
  perm_op_t perm_op = {0};
  belay_request_t *request = begin_perm_op(&m->perms, &perm_op);
  assert_error(
      begun_perm_op(&perm_op, belay_permission_compare_and_set(
                                  m->perms.permission, request, belay_string("forum"),
                                  &(belay_permission_swap_t){
                                      .index = index, .expected = expected, .value = value},
                                  on_perm_op)),
      0);
  assert_error(end_of_perm_op(&perm_op), 0);
  assert_int_equal(perm_op.n, 1);
  if (same)
    m->values[index] = value;
  expect(m, &perm_op.results[0], index, before, m->values[index], same);
  m->swapped += same;
  m->refused += !same;
}

/* The bits as they lie in the string, the highest of each field first. */
static void check(model_t *m) {
  char key[64];
  uint8_t bits[FIELDS * 63 / 8 + 1] = {0};
  size_t last = 0;
  snprintf(key, sizeof key, PERMS_KEY "%u", m->width);
  for (uint64_t i = 0; i < FIELDS; i++)
    for (unsigned b = 0; b < m->width; b++) {
      size_t at = (size_t)i * m->width + m->width - 1 - b;
      if ((m->values[i] >> b & 1) == 0)
        continue;
      bits[at / 8] |= (uint8_t)(0x80 >> at % 8);
      last = at / 8 + 1 > last ? at / 8 + 1 : last;
    }
  const resp_t *reply = server_ask(m->perms.env->server, "GET", key, NULL);
  size_t len = reply->type == RESP_STRING ? reply->len : 0;
  assert_true(len >= last && len <= sizeof bits);
  if (len > 0)
    assert_memory_equal(reply->str, bits, len);
  if (len > 0 && m->ttl_ms > 0)
    assert_between(server_integer(m->perms.env->server, "PTTL", key, NULL), 1, m->ttl_ms);
  else if (len > 0)
    assert_int_equal(server_integer(m->perms.env->server, "PTTL", key, NULL), -1);
}

static void play(env_t *env, model_t *m) {
  belay_permission_options_t options = permission_options(m->width);
  options.ttl_ms = m->ttl_ms;
  options.max_index = FIELDS - 1;
  perms_of(&m->perms, env, env->client, &options);
  memset(m->values, 0, sizeof m->values);
  for (int i = 0; i < STEPS; i++) {
    uint64_t what = below(m, 100);
    if (what < 80)
      step_fields(m, (perm_verb_t)below(m, 5));
    else if (what < 98)
      step_swap(m);
    else {
      expect_perm(&m->perms, PERM_CLEAR, 0, 0, 0, 0, false);
      memset(m->values, 0, sizeof m->values);
    }
    if (i % 10 == 0)
      check(m);
  }
  check(m);
  assert_error(perms_close(&m->perms), 0);
  env_until(env, m->perms.closed == 1);
  server_do(env->server, "FLUSHALL", NULL);
}

ENV_TEST(random_steps_match_model) {
  static const unsigned widths[] = {1, 2, 5, 8, 31, 32, 33, 52, 53, 54, 62, 63};
  model_t m = {.random = UINT64_C(0x9e3779b97f4a7c15)};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    for (int ttl = 0; ttl < 2; ttl++) {
      m.width = widths[i];
      m.ttl_ms = ttl == 0 ? 0 : 100000;
      play(env, &m);
    }
  print_message("%u changed, %u not, %u swapped, %u not\n", m.changed, m.unchanged, m.swapped,
                m.refused);
  assert_true(m.changed > 8000 && m.unchanged > 8000 && m.swapped > 300 && m.refused > 200);
}

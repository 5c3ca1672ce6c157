/* Counters and fields against a model, step by step, with numbers near all limits. */
#include <inttypes.h>
#include <stdio.h>

#include "support/fixtures/data/counters.h"

enum { STEPS = 12000, NAMES = 4, OPERATIONS = 40 };

static const char *const keys[NAMES] = {"a", "b", "c", "d"};
static const char *const groups[NAMES] = {"f", "g", "h", "i"}; /* the fields of one key */

typedef struct number {
  bool there;
  int64_t value;
} number_t;

typedef struct operation {
  bool known;
  int64_t delta, value;
} operation_t;

typedef struct model {
  env_t *env;
  counters_t handle;
  bool lives; /* the handle has a ttl */
  uint64_t random;
  number_t counters[NAMES], fields[NAMES];
  operation_t operations[NAMES][OPERATIONS];
  unsigned applied, refused, overflows, repeats, mismatches;
} model_t;

static uint64_t below(model_t *m, uint64_t n) { /* xorshift64* */
  m->random ^= m->random >> 12;
  m->random ^= m->random << 25;
  m->random ^= m->random >> 27;
  return (m->random * UINT64_C(2685821657736338717) >> 11) % n;
}

/* Near an edge, or any. */
static int64_t any_number(model_t *m) {
  static const int64_t edges[] = {0,
                                  0,
                                  0,
                                  INT64_MAX,
                                  INT64_MIN,
                                  INT64_C(1) << 53,
                                  -(INT64_C(1) << 53),
                                  INT64_C(1) << 62,
                                  -(INT64_C(1) << 62),
                                  1000000000,
                                  -1000000000,
                                  INT64_C(1000000000000000000),
                                  INT64_C(-1000000000000000000)};
  if (below(m, 8) == 0)
    return (int64_t)(below(m, UINT64_C(1) << 53) << 11 | below(m, 1 << 11));
  int64_t edge = edges[below(m, sizeof edges / sizeof *edges)], by = (int64_t)below(m, 7) - 3;
  int64_t out;
  return __builtin_add_overflow(edge, by, &out) ? edge : out;
}

static int64_t delta_of(model_t *m) {
  return below(m, 2) == 0 ? (int64_t)below(m, 21) - 10 : any_number(m);
}

static int model_add(model_t *m, number_t *number, int64_t delta) {
  int64_t sum;
  if (__builtin_add_overflow(number->value, delta, &sum)) {
    m->overflows++;
    return BELAY_EOVERFLOW;
  }
  *number = (number_t){true, sum};
  m->applied++;
  return 0;
}

static bool model_bounded(model_t *m, number_t *number, int64_t delta, int64_t min, int64_t max) {
  int64_t sum;
  if (__builtin_add_overflow(number->value, delta, &sum) || sum < min || sum > max) {
    m->refused++;
    return false;
  }
  *number = (number_t){true, sum};
  m->applied++;
  return true;
}

static void step_add(model_t *m, count_t *count, uint64_t k) {
  int64_t delta = delta_of(m);
  int status = model_add(m, &m->counters[k], delta);
  expect_status(count, BEGIN(&m->handle, count, add, KEY(keys[k]), delta, on_result), status);
  if (status == 0)
    assert_int_equal(count->result.value, m->counters[k].value);
}

static void step_bounded(model_t *m, count_t *count, uint64_t k) {
  int64_t delta = delta_of(m), min = any_number(m), max = any_number(m);
  if (below(m, 2) == 0)
    min = m->counters[k].value;
  else if (below(m, 2) == 0)
    max = m->counters[k].value;
  if (min > max) {
    int64_t least = max;
    max = min;
    min = least;
  }
  bool applied = model_bounded(m, &m->counters[k], delta, min, max);
  expect_status(count,
                BEGIN(&m->handle, count, add_bounded, KEY(keys[k]), delta,
                      &(belay_counter_bounds_t){.min = min, .max = max}, on_result),
                0);
  assert_int_equal(count->result.applied, applied);
  assert_int_equal(count->result.value, m->counters[k].value);
}

static void step_once(model_t *m, count_t *count, uint64_t k) {
  uint64_t at = below(m, OPERATIONS);
  char id[16];
  snprintf(id, sizeof id, "op%" PRIu64, at);
  operation_t *operation = &m->operations[k][at];
  int64_t delta = operation->known && below(m, 8) != 0 ? operation->delta : delta_of(m);
  int status = 0;
  if (operation->known)
    status = delta == operation->delta ? 0 : BELAY_EMISMATCH;
  else
    status = model_add(m, &m->counters[k], delta);
  m->repeats += operation->known && status == 0;
  m->mismatches += status == BELAY_EMISMATCH;
  if (!operation->known && status == 0)
    *operation = (operation_t){true, delta, m->counters[k].value};
  expect_status(count, BEGIN(&m->handle, count, add_once, KEY(keys[k]), delta, KEY(id), on_result),
                status);
  if (status == 0)
    assert_int_equal(count->result.value, operation->value);
}

static void step_set(model_t *m, uint64_t k) {
  int64_t value = any_number(m);
  expect_set(&m->handle, keys[k], value, m->counters[k].there, m->counters[k].value);
  m->counters[k] = (number_t){true, value};
}

static void step_delete(model_t *m, uint64_t k) {
  expect_deleted(&m->handle, keys[k], m->counters[k].there);
  m->counters[k] = (number_t){0};
}

static void step_many(model_t *m, count_t *count) {
  belay_counter_add_item_t items[3 * NAMES];
  int status[3 * NAMES], all = 0;
  int64_t values[3 * NAMES];
  size_t n = 1 + below(m, 3 * NAMES);
  for (size_t i = 0; i < n; i++) {
    uint64_t k = below(m, NAMES);
    items[i] = (belay_counter_add_item_t){.key = belay_bytes(keys[k], 1), .delta = delta_of(m)};
    status[i] = model_add(m, &m->counters[k], items[i].delta);
    values[i] = status[i] == 0 ? m->counters[k].value : 0;
    all = all != 0 ? all : status[i];
  }
  expect_status(count, BEGIN(&m->handle, count, add_many, items, n, on_many), all);
  for (size_t i = 0; i < n; i++) {
    assert_error(count->many[i].status, status[i]);
    assert_int_equal(count->many[i].value, values[i]);
  }
}

static void step_fields(model_t *m, count_t *count) {
  belay_counter_add_item_t items[NAMES];
  number_t after[NAMES];
  int status = 0;
  size_t n = 0;
  memcpy(after, m->fields, sizeof after);
  for (size_t i = 0; i < NAMES; i++) {
    if (below(m, 2) == 0)
      continue;
    items[n] = (belay_counter_add_item_t){.key = belay_bytes(groups[i], 1), .delta = delta_of(m)};
    if (model_add(m, &after[i], items[n++].delta) != 0)
      status = BELAY_EOVERFLOW;
  }
  if (n == 0)
    return;
  expect_status(count, BEGIN(&m->handle, count, add_fields, KEY("group"), items, n, on_many),
                status);
  if (status != 0)
    return;
  memcpy(m->fields, after, sizeof after);
  for (size_t i = 0; i < n; i++)
    assert_int_equal(count->many[i].value, after[*(const char *)items[i].key.data - 'f'].value);
}

static void step_field(model_t *m, count_t *count, uint64_t k) {
  if (below(m, 4) == 0) {
    const belay_bytes_t name = {groups[k], 1};
    expect_status(count, BEGIN(&m->handle, count, delete_fields, KEY("group"), &name, 1, on_result),
                  0);
    assert_int_equal(count->result.value, m->fields[k].there);
    m->fields[k] = (number_t){0};
    return;
  }
  int64_t delta = delta_of(m);
  int status = model_add(m, &m->fields[k], delta);
  expect_status(count,
                BEGIN(&m->handle, count, add_field, KEY("group"), KEY(groups[k]), delta, on_result),
                status);
  if (status == 0)
    assert_int_equal(count->result.value, m->fields[k].value);
}

/* Everything is as the model has it. */
static void check(model_t *m) {
  static count_t count;
  belay_bytes_t names[NAMES], fields[NAMES];
  size_t there = 0;
  for (int i = 0; i < NAMES; i++) {
    names[i] = (belay_bytes_t){keys[i], 1};
    fields[i] = (belay_bytes_t){groups[i], 1};
    there += m->fields[i].there;
  }
  count = (count_t){0};
  expect_status(&count, BEGIN(&m->handle, &count, get_many, names, NAMES, on_many), 0);
  for (int i = 0; i < NAMES; i++) {
    assert_int_equal(count.many[i].found, m->counters[i].there);
    assert_int_equal(count.many[i].value, m->counters[i].value);
  }
  expect_status(&count, BEGIN(&m->handle, &count, get_fields, KEY("group"), fields, NAMES, on_many),
                0);
  for (int i = 0; i < NAMES; i++) {
    assert_int_equal(count.many[i].found, m->fields[i].there);
    assert_int_equal(count.many[i].value, m->fields[i].value);
  }
  expect_status(&count, BEGIN(&m->handle, &count, get_all, KEY("group"), NAMES, on_all), 0);
  assert_int_equal(count.n, there);
  for (size_t i = 0; i < there; i++)
    assert_int_equal(count.values[i], m->fields[count.names[i][0] - 'f'].value);
}

static void step(model_t *m) {
  static count_t count;
  uint64_t what = below(m, 100), k = below(m, NAMES);
  count = (count_t){0};
  if (what < 25)
    step_add(m, &count, k);
  else if (what < 50)
    step_bounded(m, &count, k);
  else if (what < 65)
    step_once(m, &count, k);
  else if (what < 72)
    step_set(m, k);
  else if (what < 76)
    step_delete(m, k);
  else if (what < 84)
    step_many(m, &count);
  else if (what < 92)
    step_fields(m, &count);
  else
    step_field(m, &count, k);
}

static void play(model_t *m, bool lives, int64_t max_ops) {
  belay_counter_options_t options = counter_options();
  options.ttl_ms = lives ? 100000 : 0;
  options.extend_ttl = lives;
  options.max_ops = max_ops;
  m->lives = lives;
  counters_new(&m->handle, m->env, &options);
  server_do(m->env->server, "FLUSHALL", NULL);
  memset(m->counters, 0, sizeof m->counters);
  memset(m->fields, 0, sizeof m->fields);
  memset(m->operations, 0, sizeof m->operations);
  for (int i = 0; i < STEPS / 2; i++) {
    step(m);
    if (i % 10 == 0)
      check(m);
  }
  check(m);
  if (lives)
    expect_no_key_for_ever(m->env->server);
  assert_error(begin_close_counters(&m->handle), 0);
  env_until(m->env, m->handle.closed == 1);
}

TEST(same_as_model) {
  static model_t m;
  m = (model_t){.env = env_open(NULL), .random = UINT64_C(0x9e3779b97f4a7c15)};
  play(&m, false, 0);
  play(&m, true, NAMES * OPERATIONS);
  print_message("%u applied, %u out of bounds, %u beyond the range, %u repeated, %u mismatched\n",
                m.applied, m.refused, m.overflows, m.repeats, m.mismatches);
  assert_true(m.applied > 3000 && m.refused > 500 && m.overflows > 500 && m.repeats > 200 &&
              m.mismatches > 50);
  env_close(m.env);
}

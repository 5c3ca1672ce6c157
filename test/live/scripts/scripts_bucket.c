/* The scripts of refilled buckets against a model, step by step. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "belay/bucket.h"
#include "scripts.gen.h"
#include "support/base/random.h"
#include "support/models/scripts.h"
#include "support/base/test.h"

#define TOKENS "b"
#define INDEX "b::index"
#define TEXT_MAX 24

enum { STEPS = 20000, ROUND = 50 };

typedef struct model {
  server_t *server;
  uint64_t random;
  int64_t capacity, missing;              /* state of an absent bucket */
  char tokens[TEXT_MAX], index[TEXT_MAX]; /* values of the keys; "": absent */
  bool list;                              /* but that of the tokens is a list */
  unsigned applied, refused, garbage, wrong_type, ends;
} model_t;

static uint64_t below(model_t *m, uint64_t n) {
  return next_random(&m->random) % n;
}

/* A number from 0 to max as it is written, or -1. */
static int64_t number_of(const char *text, int64_t max) {
  int64_t n = 0;
  if (text[0] == '0' && text[1] != '\0')
    return -1;
  for (const char *p = text; *p != '\0'; p++) {
    if (*p < '0' || *p > '9' || n > max)
      return -1;
    n = n * 10 + (*p - '0');
  }
  return text[0] == '\0' || n > max ? -1 : n;
}

static void write_number(char *out, int64_t n) {
  snprintf(out, TEXT_MAX, "%" PRId64, n);
}

/* An expected reply: 1 or 0, tokens, index; or only -1 or -2. */
typedef struct expected {
  int64_t what, tokens, index;
} expected_t;

static expected_t state_of(const model_t *m) {
  expected_t e = {.tokens = m->missing};
  if (m->tokens[0] != '\0')
    e.tokens = number_of(m->tokens, BELAY_BUCKET_TOKENS_MAX);
  if (m->index[0] != '\0')
    e.index = number_of(m->index, BELAY_BUCKET_INDEX_MAX);
  if (e.tokens < 0 || e.index < 0)
    e.what = e.tokens < 0 ? -1 : -2;
  else if (e.tokens > m->capacity)
    e.tokens = m->capacity;
  return e;
}

static void keep(model_t *m, int64_t tokens) {
  if (tokens == m->missing)
    m->tokens[0] = '\0';
  else
    write_number(m->tokens, tokens);
}

static expected_t model_fetch(model_t *m, int64_t n) {
  expected_t e = state_of(m);
  if (e.what < 0 || n == 0 || n > e.tokens)
    return e;
  e.what = 1;
  e.tokens -= n;
  keep(m, e.tokens);
  return e;
}

static expected_t model_add(model_t *m, int64_t n, int64_t index) {
  expected_t e = state_of(m);
  if (e.what < 0 || e.index != index)
    return e;
  int64_t room = m->capacity - e.tokens;
  e.what = 1;
  e.index++;
  e.tokens += n < room ? n : room;
  if (room > 0)
    keep(m, e.tokens);
  write_number(m->index, e.index);
  return e;
}

static void expect_reply(model_t *m, const resp_t *reply, const expected_t *e) {
  if (m->list) {
    assert_int_equal(reply->type, RESP_ERROR);
    assert_non_null(strstr(reply->str, "WRONGTYPE"));
    m->wrong_type++;
    return;
  }
  if (e->what < 0) {
    assert_int_equal(reply->type, RESP_INTEGER);
    assert_int_equal(reply->integer, e->what);
    m->garbage++;
    return;
  }
  assert_int_equal(reply->type, RESP_ARRAY);
  assert_int_equal(reply->count, 3);
  assert_int_equal(reply->items[0]->integer, e->what);
  assert_int_equal(reply->items[1]->integer, e->tokens);
  assert_int_equal(reply->items[2]->integer, e->index);
  assert_between(e->tokens, 0, m->capacity);
  m->applied += e->what == 1;
  m->refused += e->what == 0;
}

static void step_fetch(model_t *m) {
  char n[TEXT_MAX], capacity[TEXT_MAX], missing[TEXT_MAX];
  int64_t tokens = below(m, 4) == 0 ? 0 : 1 + (int64_t)below(m, (uint64_t)m->capacity);
  write_number(n, tokens);
  write_number(capacity, m->capacity);
  write_number(missing, m->missing);
  const script_input_t input = {{TOKENS, INDEX}, {n, capacity, missing, "100000"}};
  const expected_t e = m->list ? (expected_t){0} : model_fetch(m, tokens);
  expect_reply(m, script_run(m->server, &belay__script_bucket_fetch, &input), &e);
}

static void step_add(model_t *m) {
  char n[TEXT_MAX], index[TEXT_MAX], capacity[TEXT_MAX], missing[TEXT_MAX];
  int64_t tokens = 1 + (int64_t)below(m, (uint64_t)m->capacity), said = state_of(m).index;
  if (said < 0 || below(m, 4) == 0)
    said += (int64_t)below(m, 5) - 2;
  if (said < 0)
    said = 0;
  write_number(n, tokens);
  write_number(index, said);
  write_number(capacity, m->capacity);
  write_number(missing, m->missing);
  const script_input_t input = {{TOKENS, INDEX}, {n, index, capacity, missing, "100000", "200000"}};
  if (said >= BELAY_BUCKET_INDEX_MAX) {
    script_refused(m->server, &belay__script_bucket_add, &input, "index");
    m->ends++;
    return;
  }
  const expected_t e = m->list ? (expected_t){0} : model_add(m, tokens, said);
  expect_reply(m, script_run(m->server, &belay__script_bucket_add, &input), &e);
}

/* Somebody writes something there. */
static void step_write(model_t *m) {
  static const char *const texts[] = {"0",
                                      "1",
                                      "7",
                                      "100",
                                      "01",
                                      "+1",
                                      "-1",
                                      "-0",
                                      "1.0",
                                      "1e3",
                                      "0x10",
                                      "nan",
                                      "inf",
                                      "many",
                                      " 1",
                                      "1 ",
                                      "00",
                                      "1\n",
                                      "4503599627370496",
                                      "4503599627370497",
                                      "9007199254740989",
                                      "9007199254740990",
                                      "9007199254740991",
                                      "9007199254740992",
                                      "9007199254740993",
                                      "99999999999999999999"};
  bool index = below(m, 2) == 0;
  const char *text = texts[below(m, sizeof texts / sizeof *texts)];
  if (!index)
    m->list = false;
  snprintf(index ? m->index : m->tokens, TEXT_MAX, "%s", text);
  server_do(m->server, "SET", index ? INDEX : TOKENS, text, "PX", "100000", NULL);
}

static void step_forget(model_t *m) {
  bool index = below(m, 2) == 0;
  if (!index)
    m->list = false;
  (index ? m->index : m->tokens)[0] = '\0';
  server_do(m->server, "DEL", index ? INDEX : TOKENS, NULL);
}

static void step_list(model_t *m) {
  server_do(m->server, "DEL", TOKENS, NULL);
  server_do(m->server, "RPUSH", TOKENS, "7", NULL);
  server_do(m->server, "PEXPIRE", TOKENS, "100000", NULL);
  m->tokens[0] = '\0';
  m->list = true;
}

/* Everything is as the model has it. */
static void check(model_t *m) {
  const resp_t *reply = server_ask(m->server, "MGET", TOKENS, INDEX, NULL);
  assert_int_equal(reply->count, 2);
  for (int i = 0; i < 2; i++) {
    const char *text = i == 0 ? m->tokens : m->index;
    const resp_t *item = reply->items[i];
    assert_int_equal(item->type, text[0] != '\0' ? RESP_STRING : RESP_NIL);
    if (text[0] != '\0')
      assert_string_equal(item->str, text);
  }
}

static void begin_round(model_t *m) {
  static const int64_t capacities[] = {
      1, 2, 5, 10, 1000, INT64_C(1) << 40, (INT64_C(1) << 52) - 1, BELAY_BUCKET_TOKENS_MAX};
  m->capacity = capacities[below(m, sizeof capacities / sizeof *capacities)];
  m->missing = below(m, 2) == 0 ? 0 : m->capacity;
  if (below(m, 2) == 0) { /* else another's bucket goes on */
    server_do(m->server, "FLUSHALL", NULL);
    m->tokens[0] = m->index[0] = '\0';
    m->list = false;
  }
  if (below(m, 4) == 0) { /* near the end */
    write_number(m->index, BELAY_BUCKET_INDEX_MAX - (int64_t)below(m, 10));
    server_do(m->server, "SET", INDEX, m->index, "PX", "200000", NULL);
  }
}

static void step(model_t *m) {
  uint64_t what = below(m, 100);
  if ((m->list || state_of(m).what < 0) && below(m, 3) == 0)
    step_forget(m);
  else if (what < 50)
    step_fetch(m);
  else if (what < 96)
    step_add(m);
  else if (what < 97)
    step_write(m);
  else if (what < 99)
    step_forget(m);
  else
    step_list(m);
}

TEST(random_steps_match_model) {
  model_t m = {.server = server_start(NULL), .random = UINT64_C(0x9e3779b97f4a7c15)};
  for (int i = 0; i < STEPS; i++) {
    if (i % ROUND == 0) {
      expect_ttls(m.server);
      begin_round(&m);
    }
    step(&m);
    check(&m);
  }
  expect_ttls(m.server);
  print_message("%u applied, %u refused, %u of garbage, %u of a wrong type, %u beyond the end\n",
                m.applied, m.refused, m.garbage, m.wrong_type, m.ends);
  assert_true(m.applied > 5000 && m.refused > 3000 && m.garbage > 100 && m.wrong_type > 100 &&
              m.ends > 20);
  server_stop(m.server);
}

typedef struct scene {
  const char *tokens, *index;
  const belay__script_t *script;
  script_input_t input;
} scene_t;

#define KEYS                                                                                       \
  { TOKENS, INDEX }

static const scene_t scenes[] = {
    {"5", "3", &belay__script_bucket_fetch, {KEYS, {"2", "10", "0", "60000"}}},
    {"5", "3", &belay__script_bucket_fetch, {KEYS, {"5", "10", "0", "60000"}}},
    {"5", "3", &belay__script_bucket_add, {KEYS, {"2", "3", "10", "0", "60000", "120000"}}},
    {"10", "3", &belay__script_bucket_add, {KEYS, {"2", "3", "10", "0", "60000", "120000"}}},
    {"5", "3", &belay__script_bucket_add, {KEYS, {"2", "3", "10", "10", "60000", "120000"}}},
    {"5", "3", &belay__script_bucket_add, {KEYS, {"5", "3", "10", "10", "60000", "120000"}}},
};

static void set(server_t *server, const scene_t *scene) {
  server_do(server, "FLUSHALL", NULL);
  server_do(server, "SET", TOKENS, scene->tokens, "PX", "50000", NULL);
  server_do(server, "SET", INDEX, scene->index, "PX", "50000", NULL);
}

TEST_ON(hostile_arguments_change_nothing, server, server_with_digest()) {
  static const char *const wrong[] = {
      "9007199254740991", "9007199254740992", "-1", "", "one", "1.5", "99999999999999999999"};
  set(server, &scenes[0]);
  uint64_t digest = server_digest(server);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const script_input_t input = {KEYS, {"1", wrong[i], "10", "0", "60000", "120000"}};
    script_refused(server, &belay__script_bucket_add, &input, "ERR the index is not from 0 to");
    assert_true(server_digest(server) == digest);
  }
}

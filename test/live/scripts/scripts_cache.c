/* The scripts of a cache against a model, step by step. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/record.h"
#include "scripts.gen.h"
#include "support/base/random.h"
#include "support/servers/acl.h"
#include "support/models/scripts.h"
#include "support/base/test.h"

#define RECORD "r"
#define GEN "r::gen"
#define TAG "t"
#define FOREIGN_MAX 160 /* bytes of values that the test writes */
#define ID_MAX 17
#define TAGGED "generationoftag1"

enum { STEPS = 12000, ROUND = 40, IDS = 6 };

static void write_record(char out[FOREIGN_MAX], belay__record_kind_t kind, const char *id) {
  memset(out, '-', FOREIGN_MAX);
  memcpy(out, BELAY__RECORD_MAGIC, 4);
  out[4] = (char)kind;
  memcpy(out + BELAY__RECORD_AT_FRESH, "freshfre", 8);
  memcpy(out + BELAY__RECORD_AT_RETRY, "retryret", 8);
  memcpy(out + BELAY__RECORD_AT_ID, id, BELAY__RECORD_ID);
  out[6] = 1;                                              /* a tag, */
  memcpy(out + BELAY__RECORD_HEAD, TAGGED, sizeof TAGGED); /* and its generation */
}

static void write_id(char out[ID_MAX], unsigned n) {
  snprintf(out, ID_MAX, "generation-%05u", n % 100000);
}

typedef struct model {
  server_t *server;
  uint64_t random;
  char record[FOREIGN_MAX], gen[FOREIGN_MAX], tag[FOREIGN_MAX];
  bool has_record, has_gen, has_tag;
  bool record_list, gen_list, tag_list; /* it is a list */
  unsigned next_id;
  char ids[IDS][ID_MAX]; /* of loads that have begun, or were said to have */
  unsigned begun, surprised, filled, refused, failed, touched, nothing, foreign, wrong_type;
} model_t;

static uint64_t below(model_t *m, uint64_t n) {
  return next_random(&m->random) % n;
}

/* The id of the stored value, as begin reads it. */
static void seen_of(const model_t *m, char out[ID_MAX]) {
  size_t len = m->has_record ? strlen(m->record) : 0;
  bool longer = len > BELAY__RECORD_AT_ID;
  snprintf(out, ID_MAX, "%s", longer ? m->record + BELAY__RECORD_AT_ID : "");
}

static void drop_gen(model_t *m) {
  m->has_gen = false;
}

static void keep_record(model_t *m, const char *record) {
  snprintf(m->record, sizeof m->record, "%s", record);
  m->has_record = true;
}

static bool is_ours(const model_t *m, const char *id) {
  return m->has_gen && strcmp(m->gen, id) == 0;
}

static bool has_head(const model_t *m, size_t magic) {
  static const char head[] = BELAY__RECORD_MAGIC "\x01";
  return m->has_record && strlen(m->record) >= BELAY__RECORD_HEAD &&
         memcmp(m->record, head, magic) == 0;
}

/* The reply is an integer; of a list, that it is one. */
static void expect_integer(model_t *m, const belay__script_t *script, const script_input_t *input,
                           bool list, int64_t expected) {
  if (list) {
    script_refused(m->server, script, input, "WRONGTYPE");
    m->wrong_type++;
    return;
  }
  assert_int_equal(script_integer(m->server, script, input), expected);
}

static void step_begin(model_t *m) {
  char seen[ID_MAX], there[ID_MAX];
  char *id = m->ids[below(m, IDS)];
  bool any = below(m, 4) == 0, list = m->record_list || m->gen_list;
  seen_of(m, there);
  snprintf(seen, sizeof seen, "%s", below(m, 4) == 0 ? m->ids[below(m, IDS)] : there);
  write_id(id, m->next_id++);
  const script_input_t input = {{RECORD, GEN}, {any ? "whatever is there" : seen, id, "60000"}};
  if (list || any || strcmp(seen, there) == 0) {
    expect_integer(m, &belay__script_cache_begin, &input, list, 1);
    if (list)
      return;
    snprintf(m->gen, sizeof m->gen, "%s", id);
    m->has_gen = true;
    m->begun++;
    return;
  }
  const resp_t *reply = script_run(m->server, &belay__script_cache_begin, &input);
  assert_int_equal(reply->type, RESP_STRING);
  assert_string_equal(reply->str, m->has_record ? m->record : "");
  m->surprised++;
}

static void step_fill(model_t *m) {
  char record[FOREIGN_MAX], there[ID_MAX];
  const char *id = m->ids[below(m, IDS)];
  bool none = below(m, 6) == 0, list = m->record_list || m->gen_list, ours = is_ours(m, id);
  write_record(record, BELAY__RECORD_VALUE + (int)below(m, 3), id);
  seen_of(m, there);
  const script_input_t input = {{RECORD, GEN},
                                {id, none ? "" : record, "70000", below(m, 2) ? "PUBLISH" : ""}};
  expect_integer(m, &belay__script_cache_fill, &input, list, ours || strcmp(there, id) == 0);
  if (list)
    return;
  m->filled += ours;
  m->refused += !ours;
  if (!ours)
    return;
  drop_gen(m);
  m->has_record = false;
  if (!none)
    keep_record(m, record);
}

static void step_fail(model_t *m) {
  char record[FOREIGN_MAX];
  const char *id = m->ids[below(m, IDS)];
  bool list = m->record_list || m->gen_list, ours = is_ours(m, id);
  const char *retry = below(m, 2) == 0 ? "RETRYRET" : "";
  write_record(record, BELAY__RECORD_ERROR, id);
  const char *said = below(m, 2) == 0 ? record : "";
  const script_input_t input = {{RECORD, GEN},
                                {id, said, "70000", retry, below(m, 2) ? "PUBLISH" : ""}};
  expect_integer(m, &belay__script_cache_fail, &input, list, ours);
  if (list || !ours)
    return;
  m->failed++;
  drop_gen(m);
  if (retry[0] != '\0' && has_head(m, 5))
    memcpy(m->record + BELAY__RECORD_AT_RETRY, retry, 8);
  else if (said[0] != '\0')
    keep_record(m, record);
}

static void step_touch(model_t *m) {
  bool tagged = below(m, 4) > 0;
  const char *tag = tagged ? TAGGED : below(m, 2) ? "generationoftag2" : "";
  const script_input_t input = {{RECORD}, {below(m, 2) ? "FRESHFRE" : "freshfre", "80000", tag}};
  bool whole = m->has_record && strlen(m->record) >= BELAY__RECORD_HEAD + BELAY__RECORD_ID;
  bool value = has_head(m, 5) && tagged && whole, record = has_head(m, 4);
  int64_t expected = value ? 1 : m->has_record && !record ? -1 : 0;
  expect_integer(m, &belay__script_cache_touch, &input, m->record_list, expected);
  if (m->record_list)
    return;
  if (value)
    memcpy(m->record + BELAY__RECORD_AT_FRESH, input.args[0], 8);
  m->touched += value;
  m->nothing += expected == 0;
  m->foreign += expected == -1;
}

static void step_tag(model_t *m) {
  char gen[ID_MAX];
  write_id(gen, m->next_id++);
  const script_input_t input = {{TAG}, {gen, "90000"}};
  if (m->tag_list) {
    script_refused(m->server, &belay__script_cache_tag, &input, "WRONGTYPE");
    return;
  }
  if (!m->has_tag)
    snprintf(m->tag, sizeof m->tag, "%s", gen);
  m->has_tag = true;
  const resp_t *reply = script_run(m->server, &belay__script_cache_tag, &input);
  assert_int_equal(reply->type, RESP_STRING);
  assert_string_equal(reply->str, m->tag);
}

static void step_invalidate(model_t *m) {
  bool tag = below(m, 3) == 0;
  if (tag) {
    server_do(m->server, "DEL", TAG, NULL);
    m->has_tag = m->tag_list = false;
    return;
  }
  server_do(m->server, "DEL", RECORD, GEN, NULL);
  m->has_record = m->has_gen = m->record_list = m->gen_list = false;
}

/* Somebody writes something there; or time passes. */
static void step_foreign(model_t *m) {
  static const char *const keys[] = {RECORD, GEN, TAG};
  char *texts[] = {m->record, m->gen, m->tag};
  bool *has[] = {&m->has_record, &m->has_gen, &m->has_tag};
  bool *lists[] = {&m->record_list, &m->gen_list, &m->tag_list};
  size_t i = below(m, 3), what = below(m, 8);
  server_do(m->server, "DEL", keys[i], NULL);
  *has[i] = *lists[i] = false;
  if (what < 3)
    return;
  if (what == 3) {
    server_do(m->server, "RPUSH", keys[i], "element", NULL);
    server_do(m->server, "PEXPIRE", keys[i], "100000", NULL);
    *lists[i] = true;
    return;
  }
  write_record(texts[i], BELAY__RECORD_VALUE, m->ids[below(m, IDS)]);
  texts[i][below(m, BELAY__RECORD_HEAD + 5)] = '\0'; /* torn */
  if (what == 4)
    texts[i][0] = 'x';
  server_do(m->server, "SET", keys[i], texts[i], "PX", "100000", NULL);
  *has[i] = true;
}

/* Everything is as the model has it. */
static void check(const model_t *m) {
  const char *const texts[] = {m->record, m->gen, m->tag};
  const bool has[] = {m->has_record, m->has_gen, m->has_tag};
  const resp_t *reply = server_ask(m->server, "MGET", RECORD, GEN, TAG, NULL);
  assert_int_equal(reply->count, 3);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(reply->items[i]->type, has[i] ? RESP_STRING : RESP_NIL);
    if (has[i])
      assert_string_equal(reply->items[i]->str, texts[i]);
  }
}

static void step(model_t *m) {
  uint64_t what = below(m, 100);
  if ((m->record_list || m->gen_list) && below(m, 4) == 0)
    step_invalidate(m);
  else if (what < 30)
    step_begin(m);
  else if (what < 58)
    step_fill(m);
  else if (what < 70)
    step_fail(m);
  else if (what < 82)
    step_touch(m);
  else if (what < 90)
    step_tag(m);
  else if (what < 95)
    step_invalidate(m);
  else
    step_foreign(m);
}

TEST(random_steps_match_model) {
  static model_t m;
  m = (model_t){.server = server_start(NULL), .random = UINT64_C(0x9e3779b97f4a7c15)};
  for (int i = 0; i < IDS; i++)
    write_id(m.ids[i], m.next_id++);
  for (int i = 0; i < STEPS; i++) {
    step(&m);
    check(&m);
    if (i % ROUND == 0)
      expect_ttls(m.server);
  }
  print_message("%u begun, %u surprised, %u filled, %u refused, %u failed, %u touched, %u where "
                "nothing was, %u foreign, %u of a wrong type\n",
                m.begun, m.surprised, m.filled, m.refused, m.failed, m.touched, m.nothing,
                m.foreign, m.wrong_type);
  assert_true(m.begun > 1000 && m.surprised > 200 && m.filled > 200 && m.refused > 500);
  assert_true(m.failed > 100 && m.touched > 100 && m.nothing > 100 && m.foreign > 20 &&
              m.wrong_type > 100);
  server_stop(m.server);
}

typedef struct loader {
  char id[ID_MAX];
  unsigned brings; /* the number that was true when it looked */
  int at;          /* 0: nothing; 1: begun; 2: has looked */
} loader_t;

static unsigned number_in(server_t *server) {
  const char *record = server_string(server, "GET", RECORD, NULL);
  return record == NULL ? UINT32_MAX : (unsigned)atoi(record + BELAY__RECORD_HEAD);
}

/* Three clients load, in all orders, what a fourth one changes. The stored value is never older
 * than the last invalidation. */
TEST(invalidation_during_loads) {
  static model_t m;
  loader_t loaders[3] = {{.at = 0}};
  unsigned truth = 0, since = 0, stored = 0, refused = 0;
  m = (model_t){.server = server_start(NULL), .random = 77};
  for (int i = 0; i < 6000; i++) {
    loader_t *l = &loaders[below(&m, 3)];
    if (below(&m, 10) == 0) {
      truth++;
      if (below(&m, 2) == 0)
        continue; /* it has not come to invalidating it */
      server_do(m.server, "DEL", RECORD, GEN, NULL);
      since = truth;
    } else if (l->at == 0) {
      write_id(l->id, m.next_id++);
      const script_input_t input = {{RECORD, GEN}, {"whatever is there", l->id, "60000"}};
      assert_int_equal(script_integer(m.server, &belay__script_cache_begin, &input), 1);
      l->at = 1;
    } else if (l->at == 1) {
      l->brings = truth;
      l->at = 2;
    } else {
      char record[FOREIGN_MAX];
      write_record(record, BELAY__RECORD_VALUE, l->id);
      snprintf(record + BELAY__RECORD_HEAD, 16, "%u", l->brings);
      const script_input_t input = {{RECORD, GEN}, {l->id, record, "60000", ""}};
      int64_t done = script_integer(m.server, &belay__script_cache_fill, &input);
      stored += done == 1;
      refused += done == 0;
      l->at = 0;
    }
    assert_true(number_in(m.server) >= since);
  }
  assert_true(stored > 100 && refused > 100);
  server_stop(m.server);
}

#define SEEN "generation-00001"
#define OURS "generation-00002"

static char value[FOREIGN_MAX], failure[FOREIGN_MAX];

typedef struct scene {
  const belay__script_t *script;
  script_input_t input;
} scene_t;

static const scene_t scenes[] = {
    {&belay__script_cache_begin, {{RECORD, GEN}, {SEEN, "generation-00003", "60000"}}},
    {&belay__script_cache_fill, {{RECORD, GEN}, {OURS, value, "60000", "PUBLISH"}}},
    {&belay__script_cache_fill, {{RECORD, GEN}, {OURS, "", "60000", "PUBLISH"}}},
    {&belay__script_cache_fail, {{RECORD, GEN}, {OURS, failure, "60000", "RETRYRET", "PUBLISH"}}},
    {&belay__script_cache_fail, {{RECORD, GEN}, {OURS, failure, "60000", "", "PUBLISH"}}},
    {&belay__script_cache_fail, {{RECORD, GEN}, {OURS, "", "60000", "", "PUBLISH"}}},
    {&belay__script_cache_touch, {{RECORD}, {"FRESHFRE", "60000", TAGGED}}},
    {&belay__script_cache_tag, {{TAG}, {OURS, "60000"}}},
};

enum { SCENES = sizeof scenes / sizeof *scenes };

static void set(server_t *server) {
  char there[FOREIGN_MAX];
  server_do(server, "FLUSHALL", NULL);
  write_record(there, BELAY__RECORD_VALUE, SEEN);
  write_record(value, BELAY__RECORD_VALUE, OURS);
  write_record(failure, BELAY__RECORD_ERROR, OURS);
  server_do(server, "SET", RECORD, there, "PX", "50000", NULL);
  server_do(server, "SET", GEN, OURS, "PX", "50000", NULL);
}

/* A second run of a script finds the effect of the first. */
TEST_ON(second_run_changes_nothing, server, server_with_digest()) {
  static const int64_t replies[SCENES] = {-1, 1, 0, 0, 0, 0, 1, -1};
  for (size_t i = 1; i < SCENES - 1; i++) {
    set(server);
    assert_int_equal(script_integer(server, scenes[i].script, &scenes[i].input), 1);
    uint64_t digest = server_digest(server);
    assert_int_equal(script_integer(server, scenes[i].script, &scenes[i].input), replies[i]);
    assert_true(server_digest(server) == digest);
  }
}

/* Each key has a ttl, of the stated length. */
TEST_ON(ttls_of_records_and_tags, server, server_start(NULL)) {
  set(server);
  assert_int_equal(script_integer(server, scenes[0].script, &scenes[0].input), 1);
  assert_between(server_integer(server, "PTTL", GEN, NULL), 50001, 60000);
  set(server);
  assert_int_equal(script_integer(server, scenes[1].script, &scenes[1].input), 1);
  assert_between(server_integer(server, "PTTL", RECORD, NULL), 50001, 60000);
  set(server);
  assert_int_equal(script_integer(server, scenes[3].script, &scenes[3].input), 1);
  assert_between(server_integer(server, "PTTL", RECORD, NULL), 1, 50000); /* it is what it was */
  set(server);
  assert_int_equal(script_integer(server, scenes[6].script, &scenes[6].input), 1);
  assert_between(server_integer(server, "PTTL", RECORD, NULL), 50001, 60000);
  /* A tag lives as long as its longest-living value needs it. */
  static const char *const times[] = {"30000", "90000", "20000"};
  static const int64_t least[] = {1, 60001, 60001}, most[] = {30000, 90000, 90000};
  for (int i = 0; i < 3; i++) {
    const script_input_t input = {{TAG}, {OURS, times[i]}};
    (void)script_run(server, &belay__script_cache_tag, &input);
    assert_between(server_integer(server, "PTTL", TAG, NULL), least[i], most[i]);
  }
  /* A key without a ttl gets one; a value that is no generation stays unchanged. */
  server_do(server, "SET", TAG, SEEN, NULL);
  (void)script_run(server, scenes[7].script, &scenes[7].input);
  assert_between(server_integer(server, "PTTL", TAG, NULL), 1, 60000);
  server_do(server, "SET", TAG, "somebody else's", NULL);
  assert_string_equal(script_run(server, scenes[7].script, &scenes[7].input)->str,
                      "somebody else's");
  assert_int_equal(server_integer(server, "PTTL", TAG, NULL), -1);
}

/* An empty string is not nothing. */
TEST_ON(empty_string_is_no_record, server, server_start(NULL)) {
  const script_input_t touch = {{RECORD}, {"FRESHFRE", "60000", ""}};
  assert_int_equal(script_integer(server, &belay__script_cache_touch, &touch), 0);
  server_do(server, "SET", RECORD, "", NULL);
  assert_int_equal(script_integer(server, &belay__script_cache_touch, &touch), -1);
  assert_int_equal(server_integer(server, "PTTL", RECORD, NULL), -1);
}

static void expect_messages(server_t *server, resp_client_t *listener, const scene_t *scene) {
  char text[256];
  set(server);
  assert_int_equal(script_integer(server, scene->script, &scene->input), 1);
  ssize_t n = read(listener->fd, text, sizeof text - 1);
  assert_true(n > 0);
  text[n] = '\0';
  assert_non_null(strstr(text, "\r\n" RECORD "::filled\r\n"));
}

TEST_ON(fill_publishes_to_waiters, server, server_start(NULL)) {
  resp_client_t listener;
  assert_int_equal(acl_dial(NULL, &listener, server_path(server)), 0);
  const resp_words_t words = {2, {"SUBSCRIBE", RECORD "::filled"}, {9, strlen(RECORD "::filled")}};
  resp_free(resp_call(&listener, &words));
  for (size_t i = 1; i < 6; i++)
    expect_messages(server, &listener, &scenes[i]);
  int64_t before = server_calls(server, "publish");
  const script_input_t quiet = {{RECORD, GEN}, {OURS, value, "60000", ""}};
  set(server);
  assert_int_equal(script_integer(server, &belay__script_cache_fill, &quiet), 1);
  const script_input_t late = {{RECORD, GEN}, {SEEN, value, "60000", "PUBLISH"}};
  set(server);
  server_do(server, "DEL", GEN, NULL);
  assert_int_equal(script_integer(server, &belay__script_cache_fill, &late), 1); /* it is there */
  assert_int_equal(server_calls(server, "publish"), before);
  resp_hang_up(&listener);
}

/* Scripts whose calls may travel together: run for several calls at once they do and say what
 * they do and say for each of them alone, whatever becomes of the others. */
#include <stdio.h>
#include <string.h>

#include "core/call/refusal.h"
#include "core/call/reply.h"
#include "scripts.gen.h"
#include "support/models/scripts.h"
#include "support/base/test.h"

enum { CALLS = 8, ARGS_MAX = 5 };

typedef struct word {
  const char *at;
  size_t len;
} word_t;

#define WORD(text)                                                                                 \
  { (text), sizeof(text) - 1 }

/* The key of the i-th call is of the i-th kind below; the other arguments are these. */
typedef struct scene {
  const belay__script_t *script;
  size_t args;
  word_t arg[CALLS][ARGS_MAX];
} scene_t;

/* Little-endian doubles. */
#define D0 "\0\0\0\0\0\0\0\0"
#define D1 "\0\0\0\0\0\0\xf0\x3f"
#define D3 "\0\0\0\0\0\0\x08\x40"
#define D5 "\0\0\0\0\0\0\x14\x40"
#define D1E6 "\0\0\0\0\x80\x84\x2e\x41"
#define D5E6 "\0\0\0\0\xd0\x12\x53\x41"
#define BUCKET_OF_5 D1 D1E6 D1 D5E6 /* one a second */
#define WINDOW_OF_5 D3 D1E6 D0 D5
#define TAKE(policy, cost)                                                                         \
  { WORD("take"), WORD(policy), WORD(cost), WORD(""), WORD("1700000000000000") }
#define SAME_TAKE TAKE(BUCKET_OF_5, "3")

static const scene_t scenes[] = {
    {&belay__script_lock_release,
     3,
     {{WORD("t0"), WORD(""), WORD("")},
      {WORD("t1"), WORD("PUBLISH"), WORD("")},
      {WORD("other"), WORD("PUBLISH"), WORD("t2")},
      {WORD("t3"), WORD("PUBLISH"), WORD("")},
      {WORD("t4"), WORD("PUBLISH"), WORD("")}, /* a list */
      {WORD("t5"), WORD("PUBLISH"), WORD("")}, /* not there */
      {WORD("other"), WORD(""), WORD("")},
      {WORD("t7"), WORD("NONSENSE"), WORD("")}}},
    {&belay__script_lock_extend,
     3,
     {{WORD("t0"), WORD("50000000"), WORD("0")},
      {WORD("t1"), WORD("1"), WORD("0")},
      {WORD("other"), WORD("50000000"), WORD("0")},
      {WORD("t3"), WORD("many"), WORD("0")}, /* no number: an error of the language's */
      {WORD("t4"), WORD("50000000"), WORD("0")},
      {WORD("t5"), WORD("50000000"), WORD("60000000")},
      {WORD("t6"), WORD("50000000"), WORD("0")},
      {WORD("t7"), WORD("50000000"), WORD("0")}}},
    {&belay__script_lock_extend,
     3,
     {{WORD("t0"), WORD("50000000"), WORD("0")},
      {WORD("t1"), WORD("50000000"), WORD("0")},
      {WORD("other"), WORD("50000000"), WORD("0")},
      {WORD("t3"), WORD("50000000"), WORD("0")},
      {WORD("t4"), WORD("50000000"), WORD("0")},
      {WORD("t5"), WORD("50000000"), WORD("never")}, /* an error of a command's, behind a read */
      {WORD("t6"), WORD("1e999"), WORD("0")},        /* and behind what may have been a write */
      {WORD("t7"), WORD("50000000"), WORD("0")}}},
    {&belay__script_limit,
     5,
     {TAKE(BUCKET_OF_5, "1"), TAKE(BUCKET_OF_5, "6"), TAKE(WINDOW_OF_5, "5"),
      TAKE(WINDOW_OF_5, "6"), TAKE(BUCKET_OF_5, "1"), /* a list */
      TAKE(BUCKET_OF_5 WINDOW_OF_5, "2"), TAKE("garbage", "1"), TAKE(BUCKET_OF_5, "5")}},
    {&belay__script_limit,
     5,
     {SAME_TAKE, SAME_TAKE, SAME_TAKE, SAME_TAKE, SAME_TAKE, SAME_TAKE, SAME_TAKE, SAME_TAKE}},
};

/* Strings that the locks' scripts know, a list, and nothing; for a limit nothing but the list. */
static void set_up(server_t *server, const scene_t *scene) {
  server_do(server, "FLUSHALL", NULL);
  for (int i = 0; i < CALLS; i++) {
    char key[8], token[8];
    snprintf(key, sizeof key, "k%d", i);
    snprintf(token, sizeof token, "t%d", i);
    if (i == 4)
      server_do(server, "RPUSH", key, "x", NULL);
    else if (i != 5 && scene->script != &belay__script_limit)
      server_do(server, "SET", key, token, "PX", "40000000", NULL);
  }
}

static void add(resp_words_t *words, const char *at, size_t len) {
  words->len[words->count] = len;
  words->word[words->count++] = at;
}

static bool has_equal_arguments(const scene_t *scene, size_t first, size_t n) {
  for (size_t i = first * ARGS_MAX; i < (first + n) * ARGS_MAX; i++) {
    const word_t *word = &scene->arg[i / ARGS_MAX][i % ARGS_MAX],
                 *other = &scene->arg[first][i % ARGS_MAX];
    if (word->len != other->len || (word->len > 0 && memcmp(word->at, other->at, word->len) != 0))
      return false;
  }
  return true;
}

/* Runs a script for n of the calls, from one on; together: in one command, in which equal arguments
 * come only once. */
static const resp_t *run(server_t *server, const scene_t *scene, size_t first, size_t n,
                         bool together) {
  static const char keys[CALLS][3] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};
  const belay__script_t *script = together ? scene->script->many : scene->script;
  resp_words_t words = {2, {"EVAL", script->text}, {4, script->len}};
  bool uniform = together && has_equal_arguments(scene, first, n);
  char count[8], calls[8];
  add(&words, count, (size_t)snprintf(count, sizeof count, "%zu", n));
  for (size_t i = first; i < first + n; i++)
    add(&words, keys[i], 2);
  if (together)
    add(&words, calls, (size_t)snprintf(calls, sizeof calls, "%s%zu", uniform ? "-" : "", n));
  for (size_t i = first; i < (uniform ? first + 1 : first + n); i++)
    for (size_t j = 0; j < scene->args; j++)
      add(&words, scene->arg[i][j].at, scene->arg[i][j].len);
  return server_ask_words(server, &words);
}

/* An error's words differ, but neither what it means nor where it was. */
static void write_reply(char *out, size_t size, const resp_t *reply) {
  if (reply->type == RESP_ERROR) {
    const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
    snprintf(out, size, "error %s %d %u", refusal->prefix, refusal->error,
             belay__refusal_line(reply->str, reply->len));
    return;
  }
  assert_int_not_equal(reply->type, RESP_ARRAY);
  int n = snprintf(out, size, "%d %lld %zu ", reply->type, (long long)reply->integer, reply->len);
  for (size_t i = 0; i < reply->len && (size_t)n + 3 < size; i++)
    n += snprintf(out + n, size - (size_t)n, "%02x", (unsigned char)reply->str[i]);
}

TEST_ON(batch_equals_single_calls, server, server_with_digest()) {
  unsigned errors = 0;
  for (size_t s = 0; s < sizeof scenes / sizeof *scenes; s++) {
    static char alone[CALLS][512], among[512];
    set_up(server, &scenes[s]);
    for (size_t i = 0; i < CALLS; i++) {
      write_reply(alone[i], sizeof alone[i], run(server, &scenes[s], i, 1, false));
      errors += strncmp(alone[i], "error", 5) == 0;
    }
    uint64_t digest = server_digest(server);
    set_up(server, &scenes[s]);
    const resp_t *reply = run(server, &scenes[s], 0, CALLS, true);
    if (reply->type == RESP_ERROR)
      fail_msg("%s: %s", scenes[s].script->name, reply->str);
    assert_int_equal(reply->type, RESP_ARRAY);
    assert_int_equal(reply->count, CALLS);
    for (size_t i = 0; i < CALLS; i++) {
      write_reply(among, sizeof among, reply->items[i]);
      if (strcmp(among, alone[i]) != 0)
        fail_msg("%s, call %zu: %s alone, %s together", scenes[s].script->name, i, alone[i], among);
    }
    assert_true(server_digest(server) == digest);
  }
  assert_true(errors >= 6);
}

/* By their ttls too: no lock is shorter or longer than it would be. */
TEST_ON(batch_keeps_ttls_apart, server, server_start(NULL)) {
  set_up(server, &scenes[1]);
  (void)run(server, &scenes[1], 0, CALLS, true);
  assert_between(server_integer(server, "PTTL", "k0", NULL), 45000000, 50000000);
  assert_between(server_integer(server, "PTTL", "k1", NULL), 35000000, 40000000);
  assert_between(server_integer(server, "PTTL", "k2", NULL), 35000000, 40000000);
  assert_between(server_integer(server, "PTTL", "k5", NULL), 55000000, 60000000);
}

/* None is forgotten above. */
TEST(every_batched_script_has_a_case) {
  size_t found = 0;
  for (size_t i = 0; i < BELAY__SCRIPTS; i++) {
    if (belay__scripts[i]->many == NULL)
      continue;
    size_t s = 0;
    while (s < sizeof scenes / sizeof *scenes && scenes[s].script != belay__scripts[i])
      s++;
    if (s == sizeof scenes / sizeof *scenes)
      fail_msg("%s", belay__scripts[i]->name);
    assert_true(belay__scripts[i]->many->index >= BELAY__SCRIPTS);
    assert_null(belay__scripts[i]->many->many);
    found++;
  }
  assert_true(found > 0);
}

TEST_BEGIN {
  needs_one_server("several keys without a slot in common");
}

/* The scripts of limits against models, in the engine: random operations with explicit times.
 *
 * BELAY_LIMIT_OPS=N sets the number of operations per script, BELAY_LIMIT_SEED=S the first seed. */
#include "support/models/limit_suite.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/engine.h"
#include "support/base/clock.h"
#include "support/base/test.h"

#define OPS UINT64_C(1000000)
#define SEED_OPS 20000 /* operations of a seed */
#define NOW_US 1000000 /* the engine's clock stands still */

static engine_conn_t conn = {.id = 1};

static void execute(engine_t *engine, const limit_words_t *words, engine_buffer_t *out) {
  engine_bytes_t argv[LIMIT_ARGC];
  for (size_t i = 0; i < words->argc; i++)
    argv[i] = (engine_bytes_t){words->argv[i], words->len[i]};
  out->len = 0;
  engine_execute(engine, &conn, NOW_US, argv, words->argc, out);
}

/* The reply of SCRIPT LOAD. */
static void load(engine_t *engine, const char *text, char sha1[41]) {
  engine_buffer_t out = {0};
  const engine_bytes_t words[] = {{"SCRIPT", 6}, {"LOAD", 4}, {text, strlen(text)}};
  engine_execute(engine, &conn, NOW_US, words, 3, &out);
  assert_true(out.len > 45 && out.at[0] == '$');
  snprintf(sha1, 41, "%.40s", out.at + 5);
  engine_buffer_free(&out);
}

static void run_seed(engine_t *engine, const limit_suite_t *suite, const char *sha1, uint64_t seed,
                     size_t ops) {
  static limit_words_t words;
  engine_buffer_t out = {0};
  redisReader *reader = redisReaderCreate();
  assert_non_null(reader);
  suite->begin(seed);
  for (size_t done = 0; done < ops; done += LIMIT_BATCH) {
    void *reply = NULL;
    suite->next(0, &words);
    words.argv[1] = sha1;
    words.len[1] = 40;
    execute(engine, &words, &out);
    assert_int_equal(redisReaderFeed(reader, out.at, out.len), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    suite->check(0, reply, seed, done);
    freeReplyObject(reply);
  }
  redisReaderFree(reader);
  engine_buffer_free(&out);
}

static void run(const limit_suite_t *suite) {
  static const char run_id[] = "0123456789012345678901234567890123456789";
  size_t ops = limit_suite_ops(slow() > 1 ? OPS / 10 : OPS);
  uint64_t seed = limit_suite_seed();
  char *text = limit_suite_script(suite), sha1[41];
  for (size_t done = 0; done < ops; done += SEED_OPS, seed++) {
    const engine_options_t options = {.run_id = run_id};
    engine_t *engine = engine_new(&options);
    load(engine, text, sha1);
    run_seed(engine, suite, sha1, seed, ops - done < SEED_OPS ? ops - done : SEED_OPS);
    engine_free(engine);
  }
  free(text);
  engine_shutdown();
}

TEST(limit_script_matches_model) {
  run(&limit_suite);
}

TEST(limit_log_script_matches_model) {
  run(&limit_log_suite);
}

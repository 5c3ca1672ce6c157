/* The Lock of redis-py on the same key, in both directions. */
#include <stdio.h>

#include "support/fixtures/env.h"
#include "support/servers/process.h"

#define KEY "shared:door"

/* A Python that has the module redis; NULL if there is none. */
static const char *python(void) {
  static const char *const all[] = {"/usr/bin/python3", "python3"};
  for (size_t i = 0; i < 2; i++) {
    const char *argv[] = {all[i], "-c", "import redis.lock", NULL};
    process_t process = process_start(argv);
    if (process_wait(&process) == 0)
      return all[i];
  }
  return NULL;
}

typedef struct pair {
  env_t *env;
  contender_t *ours;
  process_t theirs;
} pair_t;

static pair_t meet(const char *their_ttl_s) {
  char script[512];
  const char *source = getenv("BELAY_TEST_SOURCE"), *interpreter = python();
  if (interpreter == NULL)
    fail_msg("this test needs a python3 with the module redis, which is not installed");
  snprintf(script, sizeof script, "%s/interop/redis_py.py", source != NULL ? source : "test");
  pair_t pair = {.env = env_open(NULL)};
  belay_lock_options_t options = lock_options();
  options.key = belay_string(KEY);
  pair.ours = contender_new(pair.env, "door", &options);
  const char *argv[] = {interpreter, script,      server_own_url(pair.env->server),
                        KEY,         their_ttl_s, NULL};
  pair.theirs = process_start(argv);
  return pair;
}

static void part(pair_t *pair) {
  assert_int_equal(process_wait(&pair->theirs), 0);
  env_close(pair->env);
}

static void expect(pair_t *pair, const char *word, const char *answer) {
  char line[64];
  process_write_line(&pair->theirs, word);
  assert_true(process_read_line(&pair->theirs, line, sizeof line));
  assert_string_equal(line, answer);
}

TEST(lock_of_belay_excludes_redis_py) {
  pair_t pair = meet("30");
  assert_error(try_lock(pair.ours), 0);
  expect(&pair, "try", "no");
  expect(&pair, "owned", "no");
  expect(&pair, "release", "not-held");
  assert_true(is_on_server(pair.ours));
  assert_error(release(pair.ours), 0);
  expect(&pair, "try", "yes");
  expect(&pair, "owned", "yes");
  expect(&pair, "release", "released");
  part(&pair);
}

TEST(lock_of_redis_py_excludes_belay) {
  pair_t pair = meet("30");
  expect(&pair, "try", "yes");
  assert_error(try_lock(pair.ours), BELAY_EHELD);
  assert_error(acquire(pair.ours, 200), BELAY_ETIMEDOUT);
  assert_error(release(pair.ours), BELAY_ENOTOWNER);
  expect(&pair, "owned", "yes");
  assert_error(begin_acquire(pair.ours, BELAY_FOREVER), 0);
  env_run_for(pair.env, 100);
  assert_int_equal(pair.ours->ended, 2);
  expect(&pair, "release", "released");
  assert_error(outcome(pair.ours), 0);
  assert_true(is_on_server(pair.ours));
  expect(&pair, "try", "no");
  part(&pair);
}

TEST(redis_py_waits_for_belay) {
  char line[64];
  pair_t pair = meet("30");
  assert_error(try_lock(pair.ours), 0);
  process_write_line(&pair.theirs, "wait");
  env_run_for(pair.env, 200);
  assert_error(release(pair.ours), 0);
  assert_true(process_read_line(&pair.theirs, line, sizeof line));
  assert_string_equal(line, "yes");
  assert_error(try_lock(pair.ours), BELAY_EHELD);
  part(&pair);
}

TEST(lock_of_redis_py_without_ttl_excludes_belay) {
  pair_t pair = meet("0");
  expect(&pair, "try", "yes");
  assert_int_equal(pttl_of(pair.ours), -1);
  assert_error(acquire(pair.ours, 300), BELAY_ETIMEDOUT);
  assert_int_equal(pttl_of(pair.ours), -1);
  expect(&pair, "release", "released");
  assert_error(try_lock(pair.ours), 0);
  part(&pair);
}

TEST(lock_extended_by_redis_py_stays) {
  pair_t pair = meet("1");
  expect(&pair, "try", "yes");
  expect(&pair, "extend", "extended");
  assert_error(acquire(pair.ours, 1500), BELAY_ETIMEDOUT);
  expect(&pair, "owned", "yes");
  part(&pair);
}

TEST(lock_renewed_by_belay_stays) {
  pair_t pair = meet("30");
  int64_t ttl = kept_ttl();
  char ttl_text[24];
  snprintf(ttl_text, sizeof ttl_text, "%lld", (long long)ttl);
  assert_error(try_lock(pair.ours), 0);
  assert_error(extend(pair.ours, ttl), 0);
  server_do(pair.env->server, "PEXPIRE", KEY, ttl_text, NULL);
  env_run_for(pair.env, ttl * 5 / 4); /* renewed */
  expect(&pair, "try", "no");
  assert_int_equal(pair.ours->lost, 0);
  part(&pair);
}

/* After one ttl is over and the other side holds the lock, a late release removes nothing. */
TEST(neither_removes_the_lock_of_the_other) {
  pair_t pair = meet("0.3");
  expect(&pair, "try", "yes");
  assert_error(acquire(pair.ours, 5000), 0);
  expect(&pair, "release", "not-owned");
  assert_true(is_on_server(pair.ours));
  server_do(pair.env->server, "DEL", KEY, NULL);
  expect(&pair, "try", "yes");
  assert_error(release(pair.ours), BELAY_ENOTOWNER);
  assert_non_null(value_of(pair.ours));
  part(&pair);
}

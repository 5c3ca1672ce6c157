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

typedef struct contest {
  env_t *env;
  contender_t *ours;
  process_t theirs;
} contest_t;

static contest_t open_contest(const char *their_ttl_s) {
  char script[512];
  const char *source = getenv("BELAY_TEST_SOURCE"), *interpreter = python();
  if (interpreter == NULL)
    fail_msg("this test needs a python3 with the module redis, which is not installed");
  snprintf(script, sizeof script, "%s/interop/redis_py.py", source != NULL ? source : "test");
  contest_t contest = {.env = env_open(NULL)};
  belay_lock_options_t options = lock_options();
  options.key = belay_string(KEY);
  contest.ours = contender_new(contest.env, "door", &options);
  const char *argv[] = {interpreter, script,      server_own_url(contest.env->server),
                        KEY,         their_ttl_s, NULL};
  contest.theirs = process_start(argv);
  return contest;
}

static void close_contest(contest_t *contest) {
  assert_int_equal(process_wait(&contest->theirs), 0);
  env_close(contest->env);
}

static void expect(contest_t *contest, const char *word, const char *answer) {
  char line[64];
  process_write_line(&contest->theirs, word);
  assert_true(process_read_line(&contest->theirs, line, sizeof line));
  assert_string_equal(line, answer);
}

TEST(lock_of_belay_excludes_redis_py) {
  contest_t contest = open_contest("30");
  assert_error(try_lock(contest.ours), 0);
  expect(&contest, "try", "no");
  expect(&contest, "owned", "no");
  expect(&contest, "release", "not-held");
  assert_true(is_on_server(contest.ours));
  assert_error(release(contest.ours), 0);
  expect(&contest, "try", "yes");
  expect(&contest, "owned", "yes");
  expect(&contest, "release", "released");
  close_contest(&contest);
}

TEST(lock_of_redis_py_excludes_belay) {
  contest_t contest = open_contest("30");
  expect(&contest, "try", "yes");
  assert_error(try_lock(contest.ours), BELAY_EHELD);
  assert_error(acquire(contest.ours, 200), BELAY_ETIMEDOUT);
  assert_error(release(contest.ours), BELAY_ENOTOWNER);
  expect(&contest, "owned", "yes");
  assert_error(begin_acquire(contest.ours, BELAY_FOREVER), 0);
  env_run_for(contest.env, 100);
  assert_int_equal(contest.ours->ended, 2);
  expect(&contest, "release", "released");
  assert_error(outcome(contest.ours), 0);
  assert_true(is_on_server(contest.ours));
  expect(&contest, "try", "no");
  close_contest(&contest);
}

TEST(redis_py_waits_for_belay) {
  char line[64];
  contest_t contest = open_contest("30");
  assert_error(try_lock(contest.ours), 0);
  process_write_line(&contest.theirs, "wait");
  env_run_for(contest.env, 200);
  assert_error(release(contest.ours), 0);
  assert_true(process_read_line(&contest.theirs, line, sizeof line));
  assert_string_equal(line, "yes");
  assert_error(try_lock(contest.ours), BELAY_EHELD);
  close_contest(&contest);
}

TEST(lock_of_redis_py_without_ttl_excludes_belay) {
  contest_t contest = open_contest("0");
  expect(&contest, "try", "yes");
  assert_int_equal(pttl_of(contest.ours), -1);
  assert_error(acquire(contest.ours, 300), BELAY_ETIMEDOUT);
  assert_int_equal(pttl_of(contest.ours), -1);
  expect(&contest, "release", "released");
  assert_error(try_lock(contest.ours), 0);
  close_contest(&contest);
}

TEST(lock_extended_by_redis_py_stays) {
  contest_t contest = open_contest("1");
  expect(&contest, "try", "yes");
  expect(&contest, "extend", "extended");
  assert_error(acquire(contest.ours, 1500), BELAY_ETIMEDOUT);
  expect(&contest, "owned", "yes");
  close_contest(&contest);
}

TEST(lock_renewed_by_belay_stays) {
  contest_t contest = open_contest("30");
  int64_t ttl = kept_ttl();
  char ttl_text[24];
  snprintf(ttl_text, sizeof ttl_text, "%lld", (long long)ttl);
  assert_error(try_lock(contest.ours), 0);
  assert_error(extend(contest.ours, ttl), 0);
  server_do(contest.env->server, "PEXPIRE", KEY, ttl_text, NULL);
  env_run_for(contest.env, ttl * 5 / 4); /* renewed */
  expect(&contest, "try", "no");
  assert_int_equal(contest.ours->lost, 0);
  close_contest(&contest);
}

/* After one ttl is over and the other side holds the lock, a late release removes nothing. */
TEST(neither_removes_the_lock_of_the_other) {
  contest_t contest = open_contest("0.3");
  expect(&contest, "try", "yes");
  assert_error(acquire(contest.ours, 5000), 0);
  expect(&contest, "release", "not-owned");
  assert_true(is_on_server(contest.ours));
  server_do(contest.env->server, "DEL", KEY, NULL);
  expect(&contest, "try", "yes");
  assert_error(release(contest.ours), BELAY_ENOTOWNER);
  assert_non_null(value_of(contest.ours));
  close_contest(&contest);
}

/* Keys that another program has written to: each call ends with an error of its own, and no
 * connection is dropped. */
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/fixtures/data/counters.h"
#include "support/fixtures/data/dedups.h"

#define S INT64_C(1000000)
#define ROUNDS 15

/* All numbers of all keys are ARGV[1]: those of strings as doubles, of sorted sets scores, of
 * hashes fields. */
static const char spoil_text[] =
    "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
    "  local kind = redis.call('TYPE', key).ok\n"
    "  if kind == 'string' then\n"
    "    local bytes = struct.pack('<d', tonumber(ARGV[1]) or 0 / 0)\n"
    "    local len = redis.call('STRLEN', key)\n"
    "    if len % 8 == 0 then\n"
    "      redis.call('SET', key, string.rep(bytes, len / 8), 'KEEPTTL')\n"
    "    else\n"
    "      redis.call('SET', key, ARGV[1], 'KEEPTTL')\n"
    "    end\n"
    "  elseif kind == 'zset' and ARGV[1] ~= 'nan' then\n"
    "    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do\n"
    "      redis.call('ZADD', key, ARGV[1], member)\n"
    "    end\n"
    "  elseif kind == 'hash' then\n"
    "    for _, field in ipairs(redis.call('HKEYS', key)) do\n"
    "      if field ~= 'token' then redis.call('HSET', key, field, ARGV[1]) end\n"
    "    end\n"
    "  end\n"
    "end\n";

static const char *const numbers[] = {"nan", "inf", "1e300", "-1.5"};
#define NUMBERS (sizeof numbers / sizeof *numbers)

static void spoil(env_t *env, const char *number) {
  server_do(env->server, "EVAL", spoil_text, "0", number, NULL);
}

/* Neither dropped nor connected again. */
static void expect_peace(env_t *env) {
  assert_int_equal(client_stats(env).drops, 0);
  env_close(env);
}

TEST(limiter_numbers_spoiled) {
  static const belay_limit_t limits[] = {
      {BELAY_LIMIT_BUCKET, 5, S, 5, false},
      {BELAY_LIMIT_FIXED, 5, 60 * S, 0, false},
      {BELAY_LIMIT_SLIDING, 5, 60 * S, 0, false},
      {BELAY_LIMIT_LOG, 5, 60 * S, 0, false},
  };
  unsigned refused = 0, takes = 0;
  env_t *env = env_open(NULL);
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    belay_limiter_t *limiter = limiter_new(env, &limits[i], 1);
    for (unsigned n = 0; n < ROUNDS; n++, takes++) {
      server_do(env->server, "FLUSHALL", NULL);
      assert_error(take(env, limiter, "k", 1)->cause, 0);
      spoil(env, numbers[n % NUMBERS]);
      int cause = take(env, limiter, "k", 1)->cause;
      if (cause != 0)
        assert_error(cause, BELAY_EWRONGTYPE);
      refused += cause != 0;
    }
    close_limiter(env, limiter);
  }
  assert_int_equal(takes, 60);
  assert_true(refused > 45); /* the score of a log's token is never NaN; -1.5 is long ago */
  expect_peace(env);
}

TEST(window_scores_spoiled) {
  unsigned refused = 0;
  env_t *env = env_open(NULL);
  book_t book;
  entry_t entry = {.status = 0};
  book_new(&book, env, BELAY_DEDUP_WINDOW);
  for (unsigned n = 0; n < ROUNDS; n++) {
    server_do(env->server, "FLUSHALL", NULL);
    expect_mark_once(&book, "k", "a,b", "op", "NN");
    spoil(env, numbers[n % NUMBERS]);
    assert_error(begin_mark_once(&book, &entry, "k", "a,b", n % 2 == 0 ? "op" : "op2"), 0);
    int status = end_of_entry(&entry);
    if (status != 0 && status != BELAY_EMISMATCH)
      assert_error(status, BELAY_EWRONGTYPE);
    refused += status != 0;
  }
  assert_true(refused >= ROUNDS / 2);
  expect_peace(env);
}

TEST(counter_numbers_spoiled) {
  env_t *env = env_open(NULL);
  counters_t counters;
  count_t count = {0};
  counters_new(&counters, env, NULL);
  for (unsigned n = 0; n < ROUNDS; n++) {
    server_do(env->server, "FLUSHALL", NULL);
    expect_added(&counters, "k", 5, 5);
    expect_field_added(&counters, "h", "f", 5, 5);
    expect_once(&counters, "once", 5, "op", 5);
    spoil(env, numbers[n % NUMBERS]);
    expect_status(&count, BEGIN(&counters, &count, add, belay_string("k"), 1, on_result),
                  BELAY_EWRONGTYPE);
    expect_status(
        &count,
        BEGIN(&counters, &count, add_field, belay_string("h"), belay_string("f"), 1, on_result),
        BELAY_EWRONGTYPE);
    assert_error(
        BEGIN(&counters, &count, add_once, belay_string("once"), 5, belay_string("op"), on_result),
        0);
    assert_error(end_of_count(&count), BELAY_EMISMATCH);
  }
  expect_peace(env);
}

static contender_t *of_pool(env_t *env) {
  belay_lock_options_t options = with_ttl(60000);
  options.fair = true;
  contender_t *c = contender_blank(env, &options);
  assert_error(belay_semaphore_new(&env->client, 1, belay_string("pool"),
                                   &(belay_semaphore_size_t){.limit = 1, .permits = 1}, &options,
                                   &c->lock),
               0);
  return c;
}

TEST(semaphore_numbers_spoiled) {
  unsigned refused = 0;
  env_t *env = env_open(NULL);
  contender_t *holder = of_pool(env), *other = of_pool(env);
  for (unsigned n = 0; n < ROUNDS; n++) {
    server_do(env->server, "FLUSHALL", NULL);
    assert_error(try_lock(holder), 0);
    spoil(env, numbers[n % NUMBERS]);
    int status = try_lock(other);
    refused += status == BELAY_EWRONGTYPE;
    if (status != BELAY_EWRONGTYPE)
      fail_msg("%s: %s", numbers[n % NUMBERS], belay_err_name(status));
    server_do(env->server, "FLUSHALL", NULL);
    (void)release(holder);
  }
  assert_int_equal(refused, ROUNDS);
  expect_peace(env);
}

TEST(lock_numbers_spoiled) {
  env_t *env = env_open(NULL);
  belay_lock_options_t options = with_ttl(60000);
  options.fencing = true;
  contender_t *fenced = contender_new(env, "fenced", &options);
  options.fair = true;
  contender_t *fair = contender_new(env, "fair", &options);
  for (unsigned n = 0; n < ROUNDS; n++) {
    contender_t *c = n % 2 == 0 ? fenced : fair;
    server_do(env->server, "FLUSHALL", NULL);
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
    spoil(env, numbers[n % NUMBERS]);
    assert_error(try_lock(c), BELAY_EWRONGTYPE);
  }
  expect_peace(env);
}

/* Sweeps: all that matches is found, and nothing else is touched. */
#include <stdio.h>

#include "support/fixtures/admin/sweeps.h"
#include "support/models/glob.h"

ENV_TEST(sweep_reports_and_keeps_keys) {
  char key[SWEEPER_KEY_MAX];
  make_keys(env->server, "belay::session::{u", 2500);
  make_keys(env->server, "belay::limiter::{u", 500);
  make_keys(env->server, "other::session::{u", 500);
  make_keys(env->server, "belay:session::{u", 10);
  server_do(env->server, "SET", "belay::", "nothing", NULL);
  server_do(env->server, "SET", "belay", "nothing", NULL);
  belay_sweep_options_t options = sweep_options("session::*", false);
  sweeper_t *sweeper = sweep_once(env, &options);
  for (int i = 1; i <= 2500; i += 7) {
    snprintf(key, sizeof key, "belay::session::{u%d", i);
    assert_true(times_found(sweeper, key) >= 1);
  }
  assert_between((int64_t)sweeper->totals.matched, 2500, 2600);
  assert_between((int64_t)sweeper->totals.scanned, 3000, 6000);
  assert_between((int64_t)sweeper->totals.pages, 3, 6);
  assert_int_equal(sweeper->totals.deleted, 0);
  assert_int_equal(sweeper->totals.restarts, 0);
  assert_int_equal(server_keys(env->server), 3512);
  options = sweep_options("*", false);
  sweeper = sweep_once(env, &options);
  assert_between((int64_t)sweeper->totals.matched, 3001, 3100);
  assert_int_equal(times_found(sweeper, "belay::"), 1);
  assert_int_equal(times_found(sweeper, "belay"), 0);
  options = sweep_options("session::{u1?9", false);
  sweeper = sweep_once(env, &options);
  assert_int_equal(sweeper->totals.matched, 10);
  assert_int_equal(server_calls(env->server, "unlink"), 0);
}

ENV_TEST(sweep_deletes_matching_keys) {
  make_keys(env->server, "belay::session::{u", 3000);
  make_keys(env->server, "belay::limiter::{u", 500);
  make_keys(env->server, "belay2::session::{u", 500);
  const belay_sweep_options_t options = sweep_options("session::*", true);
  sweeper_t *sweeper = sweep_once(env, &options);
  assert_int_equal(sweeper->totals.deleted, 3000);
  assert_int_equal(server_keys(env->server), 1000);
  assert_int_equal(server_calls(env->server, "keys"), 0);
  assert_int_equal(server_calls(env->server, "del"), 0);
  assert_int_equal(server_calls(env->server, "unlink"), sweeper->totals.matched);
  sweeper = sweep_once(env, &options);
  assert_int_equal(sweeper->totals.matched, 0);
}

ENV_TEST(of_one_type) {
  make_keys(env->server, "belay::a", 100);
  server_do(env->server, "RPUSH", "belay::list", "1", NULL);
  server_do(env->server, "ZADD", "belay::set", "1", "1", NULL);
  belay_sweep_options_t options = sweep_options("*", true);
  options.type = "zset";
  sweeper_t *sweeper = sweep_once(env, &options);
  assert_int_equal(sweeper->totals.deleted, 1);
  assert_int_equal(times_found(sweeper, "belay::set"), 1);
  options.type = "list";
  sweeper = sweep_once(env, &options);
  assert_int_equal(times_found(sweeper, "belay::list"), 1);
  assert_int_equal(server_keys(env->server), 100);
}

static uint64_t below(uint64_t *random, uint64_t n) { /* xorshift64* */
  *random ^= *random >> 12;
  *random ^= *random << 25;
  *random ^= *random >> 27;
  return (*random * UINT64_C(2685821657736338717) >> 11) % n;
}

static const char *text_of(uint64_t *random, const char *alphabet, size_t most, char *out) {
  size_t n = 1 + (size_t)below(random, most);
  for (size_t i = 0; i < n; i++)
    out[i] = alphabet[below(random, strlen(alphabet))];
  out[n] = '\0';
  return out;
}

enum { ROUNDS = 60, KEYS = 200, NAME_MAX_LEN = 48 };

typedef struct model {
  char key[KEYS][NAME_MAX_LEN];
  unsigned n;
} model_t;

static bool has(const model_t *m, const char *key) {
  for (unsigned i = 0; i < m->n; i++)
    if (strcmp(m->key[i], key) == 0)
      return true;
  return false;
}

/* Some in the namespace, some in others that a pattern made of it might match. */
static void fill(model_t *m, server_t *server, const char *space, uint64_t *random) {
  server_do(server, "FLUSHALL", NULL);
  m->n = 0;
  while (m->n < KEYS) {
    char key[NAME_MAX_LEN], text[16], other[16];
    const char *first = below(random, 3) > 0 ? space : text_of(random, "ab*?[]^-\\", 4, other);
    snprintf(key, sizeof key, "%s%s%s", first, below(random, 8) > 0 ? "::" : ":",
             text_of(random, "ab*?[]^-\\:", 5, text));
    if (has(m, key))
      continue;
    snprintf(m->key[m->n++], NAME_MAX_LEN, "%s", key);
    server_do(server, "SET", key, "1", NULL);
  }
}

static bool matches(const char *key, const char *space, const char *pattern) {
  size_t n = strlen(space);
  return strncmp(key, space, n) == 0 && strncmp(key + n, "::", 2) == 0 &&
         glob_match(pattern, strlen(pattern), key + n + 2, strlen(key) - n - 2);
}

static unsigned compare(env_t *env, belay_client_t *client, model_t *m, const char *space,
                        const char *pattern, bool remove) {
  const belay_sweep_options_t options = sweep_options(pattern, remove);
  sweeper_t *sweeper = sweeper_new(env, client, &options);
  unsigned expected = 0, left = 0;
  expect_sweep(sweeper, 0);
  for (unsigned i = 0; i < m->n; i++) {
    bool match = matches(m->key[i], space, pattern);
    expected += match;
    assert_int_equal(times_found(sweeper, m->key[i]) > 0, match);
    if (!match || !remove)
      memmove(m->key[left++], m->key[i], NAME_MAX_LEN);
  }
  m->n = left;
  assert_int_equal(sweeper->totals.deleted, remove ? expected : 0);
  assert_int_equal(server_keys(env->server), m->n);
  for (unsigned i = 0; i < m->n; i++)
    if (remove)
      assert_int_equal(server_integer(env->server, "EXISTS", m->key[i], NULL), 1);
  close_sweeper(sweeper);
  return expected;
}

ENV_TEST(namespaces_and_patterns_as_in_the_model) {
  static model_t m;
  uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
  unsigned found = 0, deleted = 0;
  for (int i = 0; i < ROUNDS; i++) {
    char space[16], pattern[16];
    const char *parts[] = {text_of(&random, "ab*?[]^-\\", 4, space)};
    belay_client_options_t options = client_options();
    options.namespace_parts = parts;
    options.namespace_count = 1;
    belay_client_t *client = env_connect(env, server_url(env->server), &options);
    fill(&m, env->server, space, &random);
    for (int j = 0; j < 3; j++)
      found +=
          compare(env, client, &m, space, text_of(&random, "ab***?[]^-\\:", 5, pattern), false);
    deleted += compare(env, client, &m, space, text_of(&random, "ab***?[]^-\\:", 5, pattern), true);
    assert_error(begin_close_of(env, client), 0);
    env_settle(env);
  }
  print_message("%u found, %u deleted\n", found, deleted);
  assert_true(found > 1000 && deleted > 300);
}

static void write_more(sweeper_t *sweeper, sweeper_event_t event) {
  server_t *server = sweeper->env->server;
  char prefix[32];
  if (event != SWEEPER_PROGRESS || sweeper->progress > 20)
    return;
  snprintf(prefix, sizeof prefix, "belay::new%u-", sweeper->progress);
  make_keys(server, prefix, sweeper->progress % 3 == 0 ? 2000 : 50); /* the table grows */
  if (sweeper->progress % 5 == 0)
    drop_keys(server, "belay::old", 900);
}

ENV_TEST(keys_found_during_changes) {
  char key[SWEEPER_KEY_MAX];
  make_keys(env->server, "belay::stay", 600);
  make_keys(env->server, "belay::old", 1000);
  make_keys(env->server, "else::", 3000);
  belay_sweep_options_t options = sweep_options("[so]*", false);
  options.batch = 100;
  sweeper_t *sweeper = sweeper_new(env, env->client, &options);
  sweeper->then = write_more;
  expect_sweep(sweeper, 0);
  for (int i = 1; i <= 600; i++) {
    snprintf(key, sizeof key, "belay::stay%d", i);
    assert_true(times_found(sweeper, key) >= 1);
  }
  assert_true(sweeper->progress > 20);
}

ENV_TEST(it_takes_its_time) {
  for (int remove = 0; remove < 2; remove++) {
    server_do(env->server, "FLUSHALL", NULL);
    make_keys(env->server, "belay::k", 1000);
    belay_sweep_options_t options = sweep_options("*", remove == 1);
    options.keys_per_s = 4000;
    options.batch = 100;
    sweeper_t *sweeper = sweeper_new(env, env->client, &options);
    int64_t begun = clock_now();
    expect_sweep(sweeper, 0);
    int64_t took = (sweeper->done_at - begun) / MS;
    int64_t cost = (int64_t)(sweeper->totals.scanned + (remove ? sweeper->totals.matched : 0));
    assert_between(took, (cost - 250) / 4, cost / 4 + 2000 * slow());
    close_sweeper(sweeper);
  }
}

static void expect_no_sweep(env_t *env, const belay_sweep_options_t *options, const char *detail) {
  belay_sweep_t *out = (belay_sweep_t *)env;
  assert_error(belay_sweep_new(env->client, options, &out), BELAY_EINVAL);
  assert_null(out);
  assert_string_equal(belay_detail(env->belay), detail);
}

ENV_TEST(options_are_checked) {
  static char long_pattern[BELAY_SWEEP_PATTERN_MAX + 2];
  const struct {
    uint32_t keys_per_s, batch;
    int64_t patience_ms;
    const char *detail;
  } rows[] = {
      {0, 1, 0, "keys_per_s: not from 1 to 10000000"},
      {10000001, 1, 0, "keys_per_s: not from 1 to 10000000"},
      {1, 0, 0, "batch: not from 1 to 10000"},
      {1, 10001, 0, "batch: not from 1 to 10000"},
      {1, 1, -1, "patience_ms: not from 0 to 86400000"},
      {1, 1, 86400001, "patience_ms: not from 0 to 86400000"},
  };
  belay_sweep_options_t options = sweep_options("*", true);
  belay_sweep_t *out;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    options.keys_per_s = rows[i].keys_per_s;
    options.batch = rows[i].batch;
    options.patience_ms = rows[i].patience_ms;
    expect_no_sweep(env, &options, rows[i].detail);
  }
  expect_no_sweep(env, NULL, "pattern: not 1 to 1024 bytes"); /* there is no default */
  options = sweep_options("", true);
  expect_no_sweep(env, &options, "pattern: not 1 to 1024 bytes");
  memset(long_pattern, '*', sizeof long_pattern - 1);
  options = sweep_options(long_pattern, true);
  expect_no_sweep(env, &options, "pattern: not 1 to 1024 bytes");
  options = sweep_options("*", true);
  for (int i = 0; i < 3; i++) {
    static const char *const types[] = {"", "a type", "012345678901234567890123456789012"};
    options.type = types[i];
    expect_no_sweep(env, &options, "type: not 1 to 32 printable bytes without spaces");
  }
  assert_error(belay_sweep_new(NULL, &options, &out), BELAY_EINVAL);
  assert_error(belay_sweep_new(env->client, &options, NULL), BELAY_EINVAL);
  assert_error(belay_sweep_start(NULL, NULL), BELAY_EINVAL);
  assert_error(belay_sweep_cancel(NULL), BELAY_EINVAL);
  assert_error(belay_sweep_close(NULL, NULL), BELAY_EINVAL);
  assert_null(belay_sweep_data(NULL));
  belay_sweep_options_init(NULL);
  options = sweep_options("*", true);
  assert_error(belay_sweep_new(env->client, &options, &out), 0);
  assert_error(belay_sweep_start(out, NULL), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "cb: NULL");
  assert_error(belay_sweep_cancel(out), BELAY_ESTATE);
  assert_error(belay_sweep_close(out, NULL), 0);
  assert_error(belay_sweep_start(out, NULL), BELAY_ECLOSING);
  assert_error(belay_sweep_cancel(out), BELAY_ECLOSING);
}

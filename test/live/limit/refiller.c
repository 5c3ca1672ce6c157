/* Refillers: few of many fill, each bucket once per period, and a dead one is replaced. */
#include <signal.h>
#include <stdio.h>

#include "support/servers/process.h"
#include "support/fixtures/limit/refillers.h"

#define INDEX_KEY(name) "belay::bucket::{" name "}::index"
#define CAPACITY INT64_C(1000000)

enum { MEMBERS = 5, PLACES = 2 };

static int64_t number_at(server_t *server, const char *key) {
  const char *text = server_string(server, "GET", key, NULL);
  return text == NULL ? 0 : atoll(text);
}

static int64_t filled(env_t *env, const char *name) {
  char key[64];
  snprintf(key, sizeof key, "belay::bucket::{%s}::index", name);
  return number_at(env->server, key);
}

/* ---- who is elected ---- */

typedef struct group {
  env_t *env;
  bucket_t bucket[MEMBERS];
  refiller_t refiller[MEMBERS];
} group_t;

static void group_open(group_t *group, uint32_t period_ms) {
  belay_bucket_options_t bucket = bucket_options(CAPACITY, false);
  *group = (group_t){.env = env_open(NULL)};
  env_t *env = group->env;
  for (int i = 0; i < MEMBERS; i++) {
    char label[8];
    snprintf(label, sizeof label, "m%d", i);
    belay_refiller_options_t options = refiller_options(label, PLACES, period_ms);
    bucket_open_on(&group->bucket[i], env,
                   i == 0 ? env->client : env_connect(env, server_url(env->server), NULL), &bucket);
    refiller_open(&group->refiller[i], &group->bucket[i], &options);
    memset(label, 'x', sizeof label);
  }
}

static int elected_in(const group_t *group) {
  int n = 0;
  for (int i = 0; i < MEMBERS; i++)
    n += group->refiller[i].handle != NULL &&
         belay_refiller_state(group->refiller[i].handle) == BELAY_REFILLER_ELECTED;
  return n;
}

static refiller_t *someone(group_t *group, bool elected) {
  for (int i = 0; i < MEMBERS; i++)
    if (group->refiller[i].handle != NULL &&
        (group->refiller[i].state == BELAY_REFILLER_ELECTED) == elected)
      return &group->refiller[i];
  return NULL;
}

/* Their poll interval is over 15 s, but a vacancy wakes them at once. */
TEST(vacancy_wakes_waiting_refillers) {
  group_t group;
  places_t places;
  group_open(&group, 1000);
  env_until(group.env, elected_in(&group) == PLACES);
  env_run_for(group.env, 300 * slow()); /* the others listen */
  assert_int_equal(elected_in(&group), PLACES);
  for (int i = 0; i < 3; i++) {
    refiller_t *waits = someone(&group, false);
    read_places(waits, &places);
    assert_int_equal(places.n, PLACES);
    for (int j = 0; j < MEMBERS; j++) {
      char label[8];
      snprintf(label, sizeof label, "m%d", j);
      bool elected =
          group.refiller[j].handle != NULL && group.refiller[j].state == BELAY_REFILLER_ELECTED;
      assert_int_equal(state_in(&places, label), elected ? BELAY_REFILLER_ELECTED : 0);
    }
    assert_between(places.place[0].remaining_ms, 30000, 60000);
    int64_t begun = clock_now();
    close_refiller(someone(&group, true));
    env_until(group.env, elected_in(&group) == PLACES);
    assert_between(clock_since_ms(begun), 0, 2000 * slow());
  }
  for (int i = 0; i < MEMBERS; i++)
    assert_int_equal(group.refiller[i].lost, 0);
  assert_int_equal(client_stats(group.env).unknown, 0);
  env_close(group.env);
}

/* All five are elected, and each fills when it can. */
ENV_TEST(a_bucket_is_filled_once_in_a_period) {
  enum { PERIOD = 40, RUN = 500 };
  belay_bucket_options_t o = bucket_options(CAPACITY, false);
  bucket_t bucket[MEMBERS];
  refiller_t refiller[MEMBERS] = {0};
  for (int i = 0; i < MEMBERS; i++) {
    belay_refiller_options_t options = refiller_options(NULL, MEMBERS, PERIOD);
    options.tokens = 2;
    bucket_open_on(&bucket[i], env,
                   i == 0 ? env->client : env_connect(env, server_url(env->server), NULL), &o);
    refiller_open(&refiller[i], &bucket[i], &options);
    refiller_add(&refiller[i], "a", 0);
    refiller_add(&refiller[i], "b", 3);
  }
  env_until(env, filled(env, "a") > 0);
  int64_t from = clock_now(), before = filled(env, "a");
  env_run_for(env, RUN);
  int64_t after = filled(env, "a"), took = clock_since_ms(from) + 1;
  assert_between(after - before, RUN / PERIOD / 2 / slow(), took / PERIOD + 1);
  for (int i = 0; i < MEMBERS; i++)
    close_refiller(&refiller[i]);
  env_settle(env);
  assert_int_equal(number_at(env->server, "belay::bucket::{a}"), 2 * filled(env, "a"));
  assert_int_equal(number_at(env->server, "belay::bucket::{b}"), 3 * filled(env, "b"));
}

/* ---- processes ---- */

#define LEASE kept_ttl()
#define PERIOD 100
#define ELECTION "refill/3/tap/main" /* as the header says */

static void open_tap(bucket_t *bucket, env_t *env) {
  belay_bucket_options_t options = bucket_options(CAPACITY, false);
  options.name = belay_string("tap");
  bucket_open_on(bucket, env, env->client, &options);
}

static belay_refiller_options_t brief_options(const char *label, uint32_t refillers) {
  belay_refiller_options_t options = refiller_options(label, refillers, PERIOD);
  options.lease_ms = (uint32_t)LEASE;
  return options;
}

static void say_change(refiller_t *refiller) {
  if (refiller->closed == 0) {
    printf("%s\n", refiller->state == BELAY_REFILLER_ELECTED ? "elected" : "lost");
    fflush(stdout);
  }
}

static _Noreturn void be_member(const char *url, const char *label) {
  env_t *env = env_open_at(url, NULL);
  bucket_t bucket;
  refiller_t refiller = {.then = say_change};
  belay_refiller_options_t options = brief_options(label, PLACES);
  open_tap(&bucket, env);
  refiller_open(&refiller, &bucket, &options);
  refiller_add(&refiller, "k", 0);
  for (;;)
    env_run_for(env, 60000);
}

typedef struct members {
  server_t *server;
  env_t *env;
  bucket_t bucket;
  refiller_t eye; /* wants the only place there is, while two are taken: it just looks */
  process_t process[MEMBERS];
  places_t places;
} members_t;

static int number_of(const places_t *places, size_t i) {
  return places->place[i].label[1] - '0';
}

static void open_members(members_t *s) {
  *s = (members_t){.server = server_start(NULL)};
  for (int i = 0; i < MEMBERS; i++) {
    char label[8];
    snprintf(label, sizeof label, "m%d", i);
    const char *argv[] = {process_self(), "--member", server_url(s->server), label, NULL};
    s->process[i] = process_start(argv);
  }
  s->env = env_open_at(server_url(s->server), NULL);
  s->env->server = s->server;
  while (server_integer(s->server, "ZCARD", "belay::semaphore::{" ELECTION "}", NULL) < PLACES)
    stall_ms(10);
  belay_refiller_options_t options = brief_options("eye", 1);
  open_tap(&s->bucket, s->env);
  refiller_open(&s->eye, &s->bucket, &options);
  read_places(&s->eye, &s->places);
  assert_int_equal(s->places.n, PLACES);
}

static void expect_said(process_t *process, const char *expected) {
  char line[16];
  assert_true(process_read_line(process, line, sizeof line));
  assert_string_equal(line, expected);
}

/* It misses its rounds, and reports each missed one. */
static void suspend_one(members_t *s) {
  process_t *process = &s->process[number_of(&s->places, 0)];
  char label[72];
  snprintf(label, sizeof label, "%s", s->places.place[0].label);
  expect_said(process, "elected");
  process_kill(process, SIGSTOP);
  do {
    env_run_for(s->env, 10);
    read_places(&s->eye, &s->places);
    assert_int_equal(s->places.n, PLACES);
  } while (state_in(&s->places, label) == BELAY_REFILLER_ELECTED);
  assert_int_equal(state_in(&s->places, label), BELAY_REFILLER_SUSPECT);
  process_kill(process, SIGCONT);
  do {
    env_run_for(s->env, 10);
    read_places(&s->eye, &s->places);
  } while (state_in(&s->places, label) == BELAY_REFILLER_SUSPECT);
  assert_int_equal(state_in(&s->places, label), BELAY_REFILLER_ELECTED);
  assert_int_equal(s->places.n, PLACES);
}

static void kill_one(members_t *s) {
  int dead = number_of(&s->places, 1), kept = number_of(&s->places, 0);
  char label[8];
  snprintf(label, sizeof label, "m%d", dead);
  process_kill(&s->process[dead], SIGKILL);
  assert_int_equal(process_wait(&s->process[dead]), -SIGKILL);
  s->process[dead].pid = 0;
  int64_t died = clock_now();
  do {
    env_run_for(s->env, 10);
    read_places(&s->eye, &s->places);
  } while (s->places.n < PLACES || state_in(&s->places, label) != 0);
  assert_between(clock_since_ms(died), 0, LEASE + 500 * slow());
  bool stayed = false;
  for (size_t i = 0; i < s->places.n; i++) {
    stayed |= number_of(&s->places, i) == kept;
    if (number_of(&s->places, i) != kept)
      expect_said(&s->process[number_of(&s->places, i)], "elected");
  }
  assert_true(stayed);
}

static void close_members(members_t *s) {
  for (int i = 0; i < MEMBERS; i++)
    if (s->process[i].pid != 0) {
      char line[16];
      process_kill(&s->process[i], SIGKILL);
      while (process_read_line(&s->process[i], line, sizeof line))
        assert_string_not_equal(line, "lost");
      process_wait(&s->process[i]);
    }
  env_close(s->env); /* and the server */
}

TEST(dead_refiller_replaced_suspended_one_kept) {
  static const char index[] = "belay::bucket::tap::{k}::index";
  members_t s;
  open_members(&s);
  while (number_at(s.server, index) == 0)
    stall_ms(10);
  int64_t begun = clock_now(), before = number_at(s.server, index);
  suspend_one(&s);
  kill_one(&s);
  env_run_for(s.env, 3 * PERIOD);
  /* No index was added twice or early, and filling never stopped. */
  int64_t fillings = number_at(s.server, index) - before, took = clock_since_ms(begun) + 1;
  assert_between(fillings, took / PERIOD / 3, took / PERIOD + 1);
  assert_int_equal(s.eye.elected, 0);
  close_members(&s);
}

/* ---- arguments ---- */

static void expect_none(bucket_t *bucket, const belay_refiller_options_t *options,
                        const char *detail) {
  belay_refiller_t *out = (belay_refiller_t *)bucket;
  assert_error(belay_refiller_new(bucket->handle, options, &out), BELAY_EINVAL);
  assert_null(out);
  assert_string_equal(belay_detail(bucket->env->belay), detail);
}

TEST_IN(options_are_checked, env, env_open_at("unix:///nowhere", NULL)) {
  bucket_t bucket;
  bucket_open(&bucket, env, 10, false);
  const belay_refiller_options_t good = refiller_options("me", 3, 1000);
  static const char range[] = "%s: not from %lld to %lld";
  static const struct {
    size_t at;
    const char *name;
    uint32_t min, max;
  } rows[] = {
      {offsetof(belay_refiller_options_t, refillers), "refillers", 1, 1000},
      {offsetof(belay_refiller_options_t, lease_ms), "lease_ms", 1000, 600000},
      {offsetof(belay_refiller_options_t, period_ms), "period_ms", 10, 86400000},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int over = 0; over < 2; over++) {
      belay_refiller_options_t o = good;
      char detail[80];
      uint32_t value = over ? rows[i].max + 1 : rows[i].min - 1;
      memcpy((char *)&o + rows[i].at, &value, sizeof value);
      snprintf(detail, sizeof detail, range, rows[i].name, (long long)rows[i].min,
               (long long)rows[i].max);
      expect_none(&bucket, &o, detail);
    }
  static const int64_t tokens[] = {0, -1, 11};
  belay_refiller_options_t o = good;
  for (int i = 0; i < 3; i++) {
    o.tokens = tokens[i];
    expect_none(&bucket, &o, "tokens: not from 1 to 10");
  }
  o = good;
  o.period_ms = 1800001;
  expect_none(&bucket, &o, "period_ms: more than half of the bucket's idle_ms");
  belay_bucket_options_t forgetful = bucket_options(10, false);
  bucket_t other;
  forgetful.index_ms = 3600000;
  bucket_open_on(&other, env, env->client, &forgetful);
  o.period_ms = 360001;
  expect_none(&other, &o, "period_ms: more than a tenth of the bucket's index_ms");
  o = good;
  o.name.len = 129;
  expect_none(&bucket, &o, "name: not 1 to 128 bytes");
  expect_none(&bucket, NULL, "name: not 1 to 128 bytes");
  o = good;
  o.label = "a b";
  expect_none(&bucket, &o, "label: not 1 to 64 printable bytes");
  belay_refiller_t *out;
  assert_error(belay_refiller_new(NULL, &good, &out), BELAY_EINVAL);
  assert_error(belay_refiller_new(bucket.handle, &good, NULL), BELAY_EINVAL);
  assert_error(begin_close_bucket(&bucket), 0);
  assert_error(belay_refiller_new(bucket.handle, &good, &out), BELAY_ECLOSING);
  env_until(env, bucket.closed == 1);
  belay_refiller_options_init(NULL);
}

ENV_TEST(arguments_are_checked) {
  static char key[BELAY_BUCKET_KEY_MAX + 2];
  memset(key, 'k', sizeof key - 1);
  bucket_t bucket;
  refiller_t refiller = {0};
  belay_refiller_options_t options = refiller_options(NULL, 1000, 10);
  options.refillers = 1000;
  char name[128];
  memset(name, '/', sizeof name);
  options.name = belay_bytes(name, sizeof name);
  options.tokens = 10;
  belay_bucket_options_t longest = bucket_options(10, false);
  char bucket_name[128];
  memset(bucket_name, '%', sizeof bucket_name);
  longest.name = belay_bytes(bucket_name, sizeof bucket_name);
  bucket_open_on(&bucket, env, env->client, &longest);
  refiller_open(&refiller, &bucket, &options);
  belay_refiller_t *r = refiller.handle;
  assert_error(belay_refiller_add(r, belay_string(""), 0), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "key: not 1 to 1024 bytes");
  assert_error(belay_refiller_add(r, belay_bytes(key, sizeof key - 1), 0), BELAY_EINVAL);
  assert_error(belay_refiller_add(r, belay_bytes(NULL, 1), 0), BELAY_EINVAL);
  assert_error(belay_refiller_remove(r, belay_bytes(NULL, 1)), BELAY_EINVAL);
  assert_error(belay_refiller_add(r, belay_string("k"), -1), BELAY_EINVAL);
  assert_error(belay_refiller_add(r, belay_string("k"), 11), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "tokens: not from 0 to 10");
  assert_error(belay_refiller_add(r, belay_bytes(key, sizeof key - 2), 10), 0);
  env_until(env, refiller_stats(&refiller).filled >= 2);
  assert_error(belay_refiller_add(NULL, belay_string("k"), 0), BELAY_EINVAL);
  assert_error(belay_refiller_remove(NULL, belay_string("k")), BELAY_EINVAL);
  assert_error(belay_refiller_close(NULL, NULL), BELAY_EINVAL);
  assert_int_equal(belay_refiller_state(NULL), BELAY_REFILLER_WAITING);
  assert_null(belay_refiller_data(NULL));
  assert_null(belay_refiller_election(NULL).data);
  belay_refiller_stats_t stats = {.keys = 1};
  belay_refiller_stats(NULL, &stats);
  assert_int_equal(stats.keys, 0);
}

TEST_ROLE(member, "--member") {
  be_member(argv[2], argv[3]);
  return 0;
}

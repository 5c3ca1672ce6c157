/* Caches, topics, sessions and sweeps as a least-privilege user, and as a user without one of
 * these rights. */
#include <stdio.h>

#include "support/fixtures/cache/cache.h"
#include "support/load/acl_cases.h"
#include "support/fixtures/data/sessions.h"
#include "support/fixtures/subscriber.h"
#include "support/fixtures/admin/sweeps.h"

#define DAY INT64_C(86400000)

/* The status of an operation, after its end. */
#define DONE(end, begin)                                                                           \
  do {                                                                                             \
    assert_error(begin, 0);                                                                        \
    MUST(end);                                                                                     \
  } while (0)

static size_t one_tag(const char *key, size_t key_len, belay_bytes_t *tags, void *arg) {
  (void)arg;
  (void)key;
  (void)key_len;
  tags[0] = (belay_bytes_t){"site", 4};
  return 1;
}

static int get(cache_t *cache, const char *key, int expected) {
  static get_t f;
  f = (get_t){0};
  assert_error(begin_cache_get(cache, &f, key), 0);
  int status = end_of_get(&f);
  get_free(&f);
  return status == expected ? 0 : status;
}

static int change_all(cache_t *cache) {
  static change_t c;
  c = (change_t){0};
  for (int i = 0; i < 2; i++) {
    DONE(end_of_change(&c), begin_put(cache, &c, "a", "value"));
    DONE(end_of_change(&c), begin_cache_touch(cache, &c, "a", 60000));
    assert_true(c.applied);
    MUST(get(cache, "a", 0));
    DONE(end_of_change(&c), begin_cache_touch(cache, &c, "nothing", 60000));
    assert_false(c.applied);
    DONE(end_of_change(&c), begin_invalidate(cache, &c, "a"));
    DONE(end_of_change(&c), begin_invalidate_tag(cache, &c, "site"));
  }
  return 0;
}

/* Values that are loaded, absent, or failing. */
static int cache_case(env_t *env) {
  static cache_t caches[2];
  for (int i = 0; i < 2; i++) {
    cache_t *cache = &caches[i];
    *cache = (cache_t){0};
    belay_cache_options_t options = cache_options(cache);
    options.absent_ms = options.error_ms = 1000;
    options.lock = i == 0;
    options.tags = one_tag;
    options.local_bytes = i == 0 ? 100000 : 0;
    cache_open(cache, env, &options);
    MUST(change_all(cache));
    MUST(get(cache, "loaded", 0));
    MUST(get(cache, "loaded", 0));
    cache->absent = true;
    MUST(get(cache, "absent", BELAY_EABSENT));
    cache->absent = false;
    cache->error = BELAY_EREFUSED;
    MUST(get(cache, "failing", BELAY_ELOAD));
    cache->error = 0;
  }
  return 0;
}

TEST(caches) {
  acl_case_check(&(acl_case_t){"cache", cache_case, "publish subscribe", "unsubscribe", NULL, 0});
}

static int begin_listening(env_t *env, subscriber_t *s, const char *name) {
  assert_error(subscribe_to(env, env->client, s, name, strlen(name)), 0);
  env_until(env, s->listening == 1 || s->gaps > 0);
  return s->gaps > 0 ? s->status : 0;
}

/* One of two subscriptions ends: its channel stays for a second. */
static int topic_case(env_t *env) {
  static subscriber_t s[2];
  static publication_t p;
  p = (publication_t){0};
  MUST(begin_listening(env, &s[0], "news"));
  MUST(publish(env, &p, "news", "hello"));
  env_until(env, s[0].messages == 1);
  if (!acl_case_allows("unsubscribe"))
    return 0;
  MUST(begin_listening(env, &s[1], "more"));
  assert_error(unsubscribe(&s[0]), 0);
  env_until(env, server_calls(env->server, "unsubscribe") > 0 || !acl_case_allows(NULL));
  return 0;
}

TEST(topics) {
  acl_case_check(&(acl_case_t){"topic", topic_case, "unsubscribe", NULL, NULL, 0});
}

static int session_case(env_t *env) {
  static place_t place;
  static stay_t s;
  belay_session_options_t options = session_options();
  options.max_events = 1;
  options.name = belay_string("shop");
  place_of(&place, env, env->client, &options);
  s = (stay_t){0};
  for (int i = 0; i < 2; i++) {
    DONE(end_of_stay(&s), begin_touch(&place, &s, "ann", "event", NULL, i == 0 ? "a" : "b"));
    DONE(end_of_stay(&s), begin_touch(&place, &s, "ann", "event", NULL, NULL));
    DONE(end_of_stay(&s), begin_read_session(&place, &s, "ann", 10));
    assert_int_equal(s.state.count, 2);
    DONE(end_of_stay(&s), begin_exists(&place, &s, "ann"));
    DONE(end_of_stay(&s), begin_end(&place, &s, "ann", NULL));
  }
  DONE(end_of_stay(&s), begin_touch(&place, &s, "ann", "event", "c", NULL));
  return 0;
}

TEST(sessions) {
  acl_case_check(&(acl_case_t){"session", session_case, NULL, "del", NULL,
                               0}); /* del: where a ttl is refused */
}

static int sweep_case(env_t *env) {
  belay_sweep_options_t options = sweep_options("*", true);
  server_do(env->server, "MSET", "belay::x::{a}", "", "belay::x::{b}", "", "other", "", NULL);
  sweeper_t *sweeper = sweeper_new(env, env->client, &options);
  assert_error(begin_sweep(sweeper), 0);
  int status = end_of_sweep(sweeper);
  assert_int_equal(server_keys(env->server), status == 0 ? 1 : 3);
  return status;
}

TEST(sweeps) {
  acl_case_check(&(acl_case_t){"sweep", sweep_case, NULL, NULL, NULL, 0});
}

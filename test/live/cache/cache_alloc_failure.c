/* Each allocation of a cache fails in turn. Expected: no crash, no leak, every callback runs
 * once, every load ends, a get is served only loaded or put values, and a reported store is
 * stored. */
#include <belay.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/base/alloc.h"
#include "support/base/clock.h"
#include "support/models/scripts.h"
#include "support/servers/server.h"
#include "support/base/test.h"

enum { ROUNDS = 2, VALUE = 3000 };

typedef struct play play_t;

struct play {
  uv_loop_t loop;
  server_t *server;
  belay_t *belay;
  belay_client_t *client;
  belay_cache_t *cache;
  belay_bloom_t *filter; /* NULL: none */
  belay_request_t requests[8];
  void (*round)(play_t *play);
  int pending, rounds;
  unsigned served, loaded, changed; /* what went well */
};

static char value[VALUE]; /* the value of all keys */

static void over(play_t *play) {
  assert_true(play->pending > 0);
  if (--play->pending > 0)
    return;
  if (++play->rounds < ROUNDS) {
    play->pending = 1;
    play->round(play);
    over(play);
    return;
  }
  assert_int_equal(belay_close(play->belay, NULL), 0);
}

/* ---- a cache with all that there is ---- */

static void on_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  play_t *play = arg;
  int error = 0;
  play->loaded++;
  if (key_len == 4 && memcmp(key, "none", 4) == 0)
    error = belay_cache_load_absent(load);
  else if (key_len == 3 && memcmp(key, "bad", 3) == 0)
    error = belay_cache_load_failed(load, 7);
  else
    error = belay_cache_load_done(load, belay_bytes(value, VALUE));
  assert_true(error == 0 || error == BELAY_ENOMEM);
}

static void on_load_many(belay_cache_load_t *const *loads, const belay_bytes_t *keys, size_t n,
                         void *arg) {
  for (size_t i = 0; i < n; i++)
    on_load(loads[i], keys[i].data, keys[i].len, arg);
}

static size_t tag(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                  void *arg) {
  (void)key, (void)key_len, (void)arg;
  tags[0] = (belay_bytes_t){"site", 4};
  tags[1] = (belay_bytes_t){"all", 3};
  return 2;
}

static int make_guards(play_t *play, belay_cache_options_t *o) {
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 1000, .period_us = 3600000000};
  belay_limiter_options_t limiter;
  belay_bloom_options_t bloom;
  belay_limiter_options_init(&limiter);
  limiter.limits = &limit;
  limiter.limits_len = 1;
  belay_bloom_options_init(&bloom);
  bloom.name = belay_string("pages");
  bloom.capacity = 1000;
  int error = belay_limiter_new(play->client, &limiter, &o->limiter);
  if (error == 0)
    error = belay_bloom_new(play->client, &bloom, &play->filter);
  o->filter = play->filter;
  return error;
}

static int make(play_t *play, bool guarded) {
  belay_client_options_t client;
  belay_cache_options_t o;
  belay_client_options_init(&client);
  client.timeout_ms = 100 * slow();
  client.close_timeout_ms = 100;
  client.reconnect_max_ms = 20;
  int error = belay_connect(play->belay, server_url(play->server), &client, &play->client);
  if (error != 0)
    return error;
  belay_cache_options_init(&o);
  o.load = on_load;
  o.load_many = on_load_many;
  o.tags = tag;
  o.arg = play;
  o.ttl_ms = 60000;
  o.absent_ms = o.error_ms = 60000;
  o.lease_ms = 100;
  o.retry_min_ms = 1;
  o.retry_max_ms = 10;
  o.timeout_ms = 300 * slow();
  o.local_bytes = 1 << 20;
  o.compress_bytes = 100;
  error = guarded ? make_guards(play, &o) : 0;
  return error != 0 ? error : belay_cache_new(play->client, &o, &play->cache);
}

static void check(play_t *play, const belay_cache_result_t *result) {
  play->served += result->status == 0;
  assert_non_null(result->data);
  if (result->status != 0)
    return;
  assert_int_equal(result->len, VALUE);
  assert_memory_equal(result->data, value, VALUE);
}

static void on_got(belay_request_t *request, int status, const belay_cache_result_t *result) {
  assert_int_equal(status, result->status);
  check(request->data, result);
  over(request->data);
}

static void on_many(belay_request_t *request, int status, const belay_cache_result_t *results,
                    size_t n) {
  assert_int_equal(n, 4);
  for (size_t i = 0; i < n; i++) {
    assert_true(status == 0 || results[i].status == status);
    check(request->data, &results[i]);
  }
  over(request->data);
}

static belay_request_t *request_of(play_t *play, int i) {
  play->requests[i] = (belay_request_t){.data = play};
  return &play->requests[i];
}

static void get(play_t *play, int i, const char *key) {
  play->pending +=
      belay_cache_get(play->cache, request_of(play, i), belay_string(key), on_got) == 0;
}

/* ---- what is played ---- */

static void round_of_gets(play_t *play) {
  get(play, 0, "home");
  get(play, 1, "home");
  get(play, 2, "none");
  get(play, 3, "bad");
}

static void on_added(belay_request_t *request, int status, const bool *answers, size_t n) {
  (void)status, (void)answers, (void)n; /* some may be said not to exist */
  round_of_gets(request->data);
  over(request->data);
}

static void round_with_guards(play_t *play) {
  static const belay_bytes_t keys[] = {{"home", 4}, {"none", 4}, {"bad", 3}};
  play->pending += belay_bloom_add_many(play->filter, request_of(play, 4), keys, 3, on_added) == 0;
}

static void round_of_many(play_t *play) {
  static const belay_bytes_t keys[] = {{"home", 4}, {"about", 5}, {"none", 4}, {"home", 4}};
  play->pending += belay_cache_get_many(play->cache, request_of(play, 0), keys, 4, on_many) == 0;
  get(play, 1, "about");
  (void)belay_cache_keep_fresh(play->cache, belay_string("home"));
}

static void on_key_invalidated(belay_request_t *request, int status, bool applied) {
  play_t *play = request->data;
  assert_int_equal(applied, status == 0);
  play->changed += applied;
  over(play);
}

static void on_tag_invalidated(belay_request_t *request, int status, bool applied) {
  play_t *play = request->data;
  assert_int_equal(applied, status == 0);
  play->changed += applied;
  if (applied) {
    belay_cache_result_t result;
    assert_int_equal(belay_cache_peek(play->cache, belay_string("put"), &result), BELAY_EAGAIN);
  }
  play->pending += belay_cache_invalidate(play->cache, request_of(play, 1), belay_string("put"),
                                          on_key_invalidated) == 0;
  over(play);
}

static void on_touched(belay_request_t *request, int status, bool applied) {
  play_t *play = request->data;
  play->changed += status == 0 && applied;
  play->pending += belay_cache_invalidate_tag(play->cache, request_of(play, 1),
                                              belay_string("site"), on_tag_invalidated) == 0;
  over(play);
}

static void on_put(belay_request_t *request, int status, bool applied) {
  play_t *play = request->data;
  play->changed += status == 0 && applied;
  if (status == 0 && applied)
    assert_int_equal(server_integer(play->server, "EXISTS", "belay::cache::{put}", NULL), 1);
  play->pending += belay_cache_touch(play->cache, request_of(play, 0), belay_string("put"), 30000,
                                     on_touched) == 0;
  get(play, 2, "put");
  over(play);
}

static void round_of_changes(play_t *play) {
  play->pending += belay_cache_put(play->cache, request_of(play, 0), belay_string("put"),
                                   belay_bytes(value, VALUE), BELAY_DEFAULT, on_put) == 0;
}

/* ---- all of it ---- */

static void perform(play_t *play, const belay_options_t *options, bool guarded) {
  assert_int_equal(uv_loop_init(&play->loop), 0);
  if (belay_open(&play->loop, options, &play->belay) == 0) {
    play->pending = 1;
    if (make(play, guarded) == 0)
      play->round(play);
    else
      play->rounds = ROUNDS;
    over(play);
    uv_run(&play->loop, UV_RUN_DEFAULT);
    assert_int_equal(play->pending, 0);
  }
  assert_int_equal(uv_loop_close(&play->loop), 0);
}

typedef struct part {
  server_t *server;
  void (*round)(play_t *play);
  play_t last;
} part_t;

static void run(const belay_options_t *options, void *arg) {
  part_t *part = arg;
  server_do(part->server, "FLUSHALL", NULL);
  part->last = (play_t){.server = part->server, .round = part->round};
  perform(&part->last, options, part->round == round_with_guards);
  expect_ttls(part->server);
}

/* Defines a test with the numbers of its last run, in which nothing failed. */
#define ALLOC_TEST(name, begin_round, served_then, loaded_then, changed_then)                      \
  TEST_ON(name, server, server_start(NULL)) {                                                      \
    part_t part = {.server = server, .round = (begin_round)};                                      \
    for (size_t i = 0; i < VALUE; i++)                                                             \
      value[i] = (char)('a' + i % 20);                                                             \
    (void)alloc_fail_each(ALLOC_BELAY, run, &part);                                                \
    assert_int_equal(part.last.served, (served_then));                                             \
    assert_int_equal(part.last.loaded, (loaded_then));                                             \
    assert_int_equal(part.last.changed, (changed_then));                                           \
  }
ALLOC_TEST(gets, round_of_gets, 2 * ROUNDS, 3, 0)
ALLOC_TEST(gets_with_guards, round_with_guards, 2 * ROUNDS, 3, 0)
ALLOC_TEST(gets_of_many, round_of_many, 4 * ROUNDS, 3, 0)
ALLOC_TEST(changes, round_of_changes, ROUNDS, 0, 4 * ROUNDS)

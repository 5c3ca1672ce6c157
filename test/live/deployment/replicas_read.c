/* Reads from replicas: the permitted commands, the chosen replicas, and replicas that cannot
 * answer. */
#include <stdio.h>

#include "support/servers/acl.h"
#include "support/fixtures/data/counters.h"
#include "support/deployments/relay.h"
#include "support/deployments/replicas.h"
#include "support/fixtures/reader.h"
#include "support/servers/secure.h"

/* ---- operations that a replica may answer ---- */

typedef struct handles {
  belay_counter_t *counter;
  belay_dedup_t *set, *window, *bitmap, *log;
  belay_ranking_t *ranking, *timed;
  belay_presence_t *presence, *spread;
  belay_active_t *active;
  belay_bloom_t *bloom;
  belay_cache_t *cache;
} handles_t;

static belay_dedup_t *new_dedup(belay_client_t *client, const char *name, belay_dedup_kind_t kind) {
  belay_dedup_options_t options;
  belay_dedup_t *dedup;
  belay_dedup_options_init(&options);
  options.name = belay_string(name);
  options.kind = kind;
  assert_error(belay_dedup_new(client, &options, &dedup), 0);
  return dedup;
}

static belay_presence_t *new_presence(belay_client_t *client, const char *name, int64_t window_ms) {
  belay_presence_options_t options;
  belay_presence_t *presence;
  belay_presence_options_init(&options);
  options.name = belay_string(name);
  options.max_id = 100;
  options.window_ms = window_ms;
  assert_error(belay_presence_new(client, &options, &presence), 0);
  return presence;
}

static void build(handles_t *handles, belay_client_t *client) {
  belay_active_options_t active;
  belay_bloom_options_t bloom;
  belay_cache_options_t cache;
  belay_ranking_options_t timed;
  belay_active_options_init(&active);
  active.name = belay_string("app");
  belay_bloom_options_init(&bloom);
  bloom.name = belay_string("seen");
  bloom.capacity = 1000;
  belay_cache_options_init(&cache);
  cache.replicas = true;
  belay_ranking_options_init(&timed);
  timed.name = belay_string("timed");
  timed.ties = BELAY_RANKING_EARLIER_FIRST;
  assert_error(belay_counter_new(client, NULL, &handles->counter), 0);
  handles->set = new_dedup(client, "set", BELAY_DEDUP_SET);
  handles->window = new_dedup(client, "window", BELAY_DEDUP_WINDOW);
  handles->bitmap = new_dedup(client, "bitmap", BELAY_DEDUP_BITMAP);
  handles->log = new_dedup(client, "log", BELAY_DEDUP_COUNT);
  assert_error(belay_ranking_new(client, NULL, &handles->ranking), 0);
  assert_error(belay_ranking_new(client, &timed, &handles->timed), 0);
  handles->presence = new_presence(client, "desk", 0);
  handles->spread = new_presence(client, "spread", 60000);
  assert_error(belay_active_new(client, &active, &handles->active), 0);
  assert_error(belay_bloom_new(client, &bloom, &handles->bloom), 0);
  assert_error(belay_cache_new(client, &cache, &handles->cache), 0);
}

static const belay_bytes_t two_keys[] = {{"a", 1}, {"b", 1}}, an_item = {"x", 1},
                           a_field = {"f", 1};

#define S(text) belay_string(text)

static void furnish(handles_t *h, reader_t *r_) {
  const belay_ranking_score_t score = {.member = {"ann", 3}, .score = 7};
  const belay_ranking_submission_t scores = {.mode = BELAY_RANKING_SET, .items = &score, .n = 1};
  EXPECT(r_, 2, belay_counter_add(h->counter, r, S("a"), 2, reader_on_counted));
  EXPECT(r_, 3, belay_counter_add(h->counter, r, S("b"), 3, reader_on_counted));
  EXPECT(r_, 4, belay_counter_add_field(h->counter, r, S("group"), S("f"), 4, reader_on_counted));
  EXPECT(r_, 0, belay_dedup_mark(h->set, r, S("k"), S("x"), reader_on_verdict));
  EXPECT(r_, 0, belay_dedup_mark(h->window, r, S("k"), S("x"), reader_on_verdict));
  EXPECT(r_, 0, belay_dedup_mark(h->bitmap, r, S("k"), S("5"), reader_on_verdict));
  EXPECT(r_, 0, belay_dedup_mark(h->log, r, S("a"), S("x"), reader_on_verdict));
  EXPECT(r_, 0, belay_dedup_mark(h->log, r, S("b"), S("y"), reader_on_verdict));
  EXPECT(r_, 7, belay_ranking_submit(h->ranking, r, S("t"), &scores, reader_on_entries));
  EXPECT(r_, 7, belay_ranking_submit(h->timed, r, S("t"), &scores, reader_on_entries));
  EXPECT(r_, 0, belay_presence_set(h->presence, r, 7, reader_on_done));
  EXPECT(r_, 0, belay_presence_set(h->spread, r, 7, reader_on_done));
  EXPECT(r_, 0, belay_active_mark(h->active, r, S("u"), BELAY_ACTIVE_NOW, reader_on_done));
  EXPECT(r_, 1,
         belay_active_archive(h->active, r, BELAY_ACTIVE_NOW, BELAY_ACTIVE_NOW, S("old"),
                              reader_on_numbers));
  EXPECT(r_, 1, belay_bloom_add(h->bloom, r, S("x"), reader_on_answer));
  EXPECT(r_, 1, belay_cache_put(h->cache, r, S("page"), S("P"), BELAY_DEFAULT, reader_on_changed));
}

/* All that a replica may be asked. */
static void read_all(handles_t *h, reader_t *r_) {
  const belay_bytes_t label = {"old", 3}, ann = {"ann", 3}, five = {"5", 1};
  EXPECT(r_, 2, belay_counter_get(h->counter, r, S("a"), reader_on_counted));
  EXPECT(r_, 5, belay_counter_get_many(h->counter, r, two_keys, 2, reader_on_counted_many));
  EXPECT(r_, 4, belay_counter_get_field(h->counter, r, S("group"), S("f"), reader_on_counted));
  EXPECT(r_, 4,
         belay_counter_get_fields(h->counter, r, S("group"), &a_field, 1, reader_on_counted_many));
  EXPECT(r_, 4, belay_counter_get_all(h->counter, r, S("group"), 10, reader_on_counted_all));
  EXPECT(r_, 1, belay_dedup_seen(h->set, r, S("k"), S("x"), reader_on_verdict));
  EXPECT(r_, 1, belay_dedup_seen_many(h->set, r, S("k"), &an_item, 1, reader_on_verdicts));
  EXPECT(r_, 1, belay_dedup_seen(h->window, r, S("k"), S("x"), reader_on_verdict));
  EXPECT(r_, 1, belay_dedup_seen_many(h->bitmap, r, S("k"), &five, 1, reader_on_verdicts));
  EXPECT(r_, 1, belay_dedup_count(h->set, r, S("k"), reader_on_number));
  EXPECT(r_, 1, belay_dedup_count(h->window, r, S("k"), reader_on_number));
  EXPECT(r_, 1, belay_dedup_count(h->bitmap, r, S("k"), reader_on_number));
  EXPECT(r_, 1, belay_dedup_count(h->log, r, S("a"), reader_on_number));
  EXPECT(r_, 2,
         belay_dedup_count_of(
             h->log, r, &(belay_dedup_sets_t){.how = BELAY_DEDUP_UNION, .keys = two_keys, .n = 2},
             reader_on_number));
  EXPECT(r_, 7, belay_ranking_find(h->ranking, r, S("t"), &ann, 1, reader_on_entries));
  EXPECT(r_, 7, belay_ranking_top(h->ranking, r, S("t"), 3, reader_on_entries));
  EXPECT(r_, 7, belay_ranking_top(h->timed, r, S("t"), 3, reader_on_entries));
  EXPECT(r_, 7,
         belay_ranking_around(h->ranking, r, S("t"), &(belay_ranking_around_t){{"ann", 3}, 1, 1},
                              reader_on_entries));
  EXPECT(r_, 1, belay_ranking_count(h->ranking, r, S("t"), reader_on_number));
  EXPECT(r_, 1, belay_ranking_count_by_score(h->timed, r, S("t"), 0, 10, reader_on_number));
  EXPECT(r_, 1, belay_presence_is(h->presence, r, 7, reader_on_online));
  EXPECT(r_, 1, belay_presence_is(h->spread, r, 7, reader_on_online));
  EXPECT(r_, 1, belay_presence_count(h->presence, r, reader_on_number));
  EXPECT(r_, 1, belay_active_count(h->active, r, BELAY_ACTIVE_NOW, reader_on_numbers));
  EXPECT(
      r_, 1,
      belay_active_count_span(h->active, r, BELAY_ACTIVE_NOW, BELAY_ACTIVE_NOW, reader_on_numbers));
  EXPECT(r_, 1, belay_active_count_archives(h->active, r, &label, 1, reader_on_numbers));
  EXPECT(r_, 1, belay_bloom_exists(h->bloom, r, S("x"), reader_on_answer));
  EXPECT(r_, 0, belay_bloom_exists(h->bloom, r, S("nowhere"), reader_on_answer));
  EXPECT(r_, 'P', belay_cache_get(h->cache, r, S("page"), reader_on_cached));
}

/* ---- deployments ---- */

static env_t *open_reading(replicas_t *replicas, belay_read_from_t from) {
  belay_client_options_t options = client_options();
  options.read_from = from;
  return env_open_at(replicas_url(replicas), &options);
}

/* How many links are up when all servers can be read from. */
static void await_links(env_t *env, unsigned links) {
  assert_error(pong(env, NULL), 0);
  env_until(env, client_stats(env).connections_up >= links);
}

/* The number of reads of the test's counter on each node. */
static void count_gets(replicas_t *replicas, int64_t gets[REPLICAS_NODES]) {
  for (unsigned i = 0; i < REPLICAS_NODES; i++)
    gets[i] = server_is_running(replicas_node(replicas, i))
                  ? server_calls(replicas_node(replicas, i), "get")
                  : 0;
}

static void get_often(belay_counter_t *counter, reader_t *r_, int times) {
  for (int i = 0; i < times; i++)
    EXPECT(r_, 2, belay_counter_get(counter, r, belay_string("a"), reader_on_counted));
}

/* While the primary stands still, permitted reads succeed and all other calls do not. */
TEST_ON(commands_for_replicas, replicas, replicas_start(NULL)) {
  handles_t handles;
  env_t *env = open_reading(replicas, BELAY_READ_REPLICA);
  reader_t reader = {.env = env};
  build(&handles, env->client);
  furnish(&handles, &reader);
  read_all(&handles, &reader); /* the client learns what only the primary knows */
  await_links(env, 3);
  replicas_wait(replicas, 0);
  server_pause(replicas_node(replicas, 0));
  read_all(&handles, &reader);
  read_all(&handles, &reader); /* of each replica */
  contender_t *c = contender_new(env, "door", NULL);
  reader.request.timeout_ms = 0;
  READ(&reader, belay_counter_add(handles.counter, r, belay_string("a"), 1, reader_on_counted));
  assert_error(reader.status, BELAY_EUNKNOWN);
  assert_error(try_lock(c), BELAY_EUNKNOWN);
  server_resume(replicas_node(replicas, 0));
  env_close(env);
}

static void expect_read_at(belay_read_from_t from, const bool at[REPLICAS_NODES]) {
  int64_t before[REPLICAS_NODES], after[REPLICAS_NODES];
  belay_counter_t *counter;
  replicas_t *replicas = replicas_start(NULL);
  env_t *env = open_reading(replicas, from);
  reader_t reader = {.env = env};
  assert_error(belay_counter_new(env->client, NULL, &counter), 0);
  EXPECT(&reader, 2, belay_counter_add(counter, r, belay_string("a"), 2, reader_on_counted));
  await_links(env, from == BELAY_READ_PRIMARY ? 1 : 3);
  replicas_wait(replicas, 0);
  count_gets(replicas, before);
  get_often(counter, &reader, 60);
  count_gets(replicas, after);
  for (unsigned i = 0; i < REPLICAS_NODES; i++)
    assert_int_equal(after[i] - before[i] > 10, at[i]);
  count_gets(replicas, before);
  EXPECT(&reader, 2, belay_counter_get_many(counter, r, two_keys, 2, reader_on_counted_many));
  count_gets(replicas, after);
  for (unsigned i = 0; i < REPLICAS_NODES; i++) /* one handle's reads go to one replica */
    assert_true(after[i] - before[i] == 0 || after[i] - before[i] == 2);
  env_close(env);
  replicas_stop(replicas);
}

TEST(read_from_primary) {
  expect_read_at(BELAY_READ_PRIMARY, (const bool[]){true, false, false});
}

TEST(read_from_replicas) {
  expect_read_at(BELAY_READ_REPLICA, (const bool[]){false, true, true});
}

TEST(read_from_any) {
  expect_read_at(BELAY_READ_ANY, (const bool[]){true, true, true});
}

/* ---- replicas that are of no use ---- */

typedef struct scene {
  replicas_t *replicas;
  env_t *env;
  belay_counter_t *counter;
  reader_t reader;
} scene_t;

static scene_t *scene_open(const replicas_options_t *options) {
  scene_t *scene = calloc(1, sizeof *scene);
  scene->replicas = replicas_start(options);
  scene->env = open_reading(scene->replicas, BELAY_READ_REPLICA);
  scene->reader.env = scene->env;
  assert_error(belay_counter_new(scene->env->client, NULL, &scene->counter), 0);
  EXPECT(&scene->reader, 2,
         belay_counter_add(scene->counter, r, belay_string("a"), 2, reader_on_counted));
  await_links(scene->env, 3);
  replicas_wait(scene->replicas, 0);
  return scene;
}

static void scene_close(scene_t *scene) {
  env_close(scene->env);
  replicas_stop(scene->replicas);
  free(scene);
}

/* Reads go on, and after a while none comes to that node any more. */
static void expect_deserted(scene_t *scene, unsigned node) {
  int64_t began = clock_now(), before[REPLICAS_NODES], after[REPLICAS_NODES];
  do {
    assert_true(clock_since_ms(began) < 15000 * slow());
    env_run_for(scene->env, 20);
    count_gets(scene->replicas, before);
    get_often(scene->counter, &scene->reader, 20);
    count_gets(scene->replicas, after);
  } while (after[node] > before[node]);
}

/* The replica has lost its primary, and its data grows old: it gets no more reads. */
TEST_IN(replica_cut_off, scene, scene_open(NULL)) {
  server_do(replicas_node(scene->replicas, 1), "REPLICAOF", "127.0.0.1", "1", NULL);
  expect_deserted(scene, 1);
  replicas_promote(scene->replicas, 0);
  replicas_wait(scene->replicas, 0);
  int64_t before = server_calls(replicas_node(scene->replicas, 1), "get"), began = clock_now();
  while (server_calls(replicas_node(scene->replicas, 1), "get") == before) { /* it is tried again */
    get_often(scene->counter, &scene->reader, 2);
    env_run_for(scene->env, 20);
    assert_true(clock_since_ms(began) < 15000 * slow());
  }
}

/* One that refuses because it is cut off: the primary answers. */
TEST(replica_refuses_reads) {
  static const char *const arguments[] = {"--replica-serve-stale-data", "no", NULL};
  scene_t *scene = scene_open(&(replicas_options_t){.arguments = arguments});
  int64_t before = server_calls(replicas_node(scene->replicas, 0), "get");
  for (unsigned i = 1; i < REPLICAS_NODES; i++)
    server_do(replicas_node(scene->replicas, i), "REPLICAOF", "127.0.0.1", "1", NULL);
  get_often(scene->counter, &scene->reader, 20);
  assert_true(server_calls(replicas_node(scene->replicas, 0), "get") >= before + 20);
  scene_close(scene);
}

TEST_IN(replica_becomes_a_primary, scene, scene_open(NULL)) {
  server_do(replicas_node(scene->replicas, 2), "REPLICAOF", "NO", "ONE", NULL);
  expect_deserted(scene, 2);
}

/* Calls are on the way there when it dies, or stops: each is answered by another. */
static void expect_no_read_lost(bool kill) {
  enum { READS = 40 };
  reader_t readers[READS];
  unsigned ended = 0;
  scene_t *scene = scene_open(NULL);
  server_pause(replicas_node(scene->replicas, 1));
  for (int i = 0; i < READS; i++) {
    readers[i] = (reader_t){.env = scene->env};
    assert_error(belay_counter_get(scene->counter, reader_begin(&readers[i]), belay_string("a"),
                                   reader_on_counted),
                 0);
  }
  env_run_for(scene->env, 100);
  if (kill)
    server_kill(replicas_node(scene->replicas, 1));
  while (ended < READS) {
    env_run_for(scene->env, 10);
    for (ended = 0; ended < READS && readers[ended].ended == 1; ended++) {
      assert_error(readers[ended].status, 0);
      assert_int_equal(readers[ended].value, 2);
    }
  }
  int64_t began = clock_now();
  get_often(scene->counter, &scene->reader, 100);
  assert_true(clock_since_ms(began) < 1000 * slow()); /* no call waits for it */
  scene_close(scene);
}

TEST(replica_dies_with_reads) {
  expect_no_read_lost(true);
}

TEST(replica_stops_with_reads) {
  expect_no_read_lost(false);
}

TEST_IN(no_replica_left, scene, scene_open(NULL)) {
  for (unsigned i = 1; i < REPLICAS_NODES; i++)
    server_kill(replicas_node(scene->replicas, i));
  env_until(scene->env, client_stats(scene->env).connections_up == 2); /* the primary's */
  get_often(scene->counter, &scene->reader, 20);
}

/* The primary dies: reads continue, and writes succeed again after a promotion. */
TEST_IN(no_primary_left, scene, scene_open(NULL)) {
  server_kill(replicas_node(scene->replicas, 0));
  get_often(scene->counter, &scene->reader, 50);
  replicas_promote(scene->replicas, 1);
  int64_t began = clock_now();
  while (pong(scene->env, NULL) != 0)
    assert_true(clock_since_ms(began) < 15000 * slow());
  EXPECT(&scene->reader, 2,
         belay_counter_add(scene->counter, r, belay_string("a"), 0, reader_on_counted));
  expect_deserted(scene, 1);
}

/* ---- replicas that are behind ---- */

#define BEHIND_MS (800 * slow())

typedef struct late {
  server_t *primary, *replica;
  relay_t *relay; /* between the two */
  env_t *env;
} late_t;

static bool is_connected(server_t *replica) {
  return strcmp(server_ask(replica, "ROLE", NULL)->items[3]->str, "connected") == 0;
}

/* A replica that gets all writes, later. */
static void set_up_late(late_t *late) {
  char url[128];
  belay_client_options_t options = client_options();
  options.read_from = BELAY_READ_REPLICA;
  late->primary = server_start(&(server_options_t){.address = "127.0.0.1"});
  late->replica = server_start(&(server_options_t){.address = "127.0.0.1"});
  late->relay = relay_start(server_url(late->primary));
  server_do(late->primary, "CONFIG", "SET", "repl-diskless-sync-delay", "0", NULL);
  server_do(late->replica, "REPLICAOF", "127.0.0.1", strrchr(relay_url(late->relay), ':') + 1,
            NULL);
  int64_t began = clock_now();
  while (!is_connected(late->replica)) {
    assert_true(clock_since_ms(began) < 15000 * slow());
    stall_ms(5);
  }
  snprintf(url, sizeof url, "redis+replicas://%s127.0.0.1:%d,127.0.0.1:%d",
           server_login(late->primary), server_port(late->primary), server_port(late->replica));
  late->env = env_open_at(url, &options);
  await_links(late->env, 2);
  relay_delay(late->relay, BEHIND_MS);
}

static void tear_down_late(late_t *late) {
  env_close(late->env);
  relay_stop(late->relay);
  server_stop(late->replica);
  server_stop(late->primary);
}

TEST(bloom_filter_missing_on_the_replica) {
  late_t late;
  handles_t handles;
  set_up_late(&late);
  reader_t reader = {.env = late.env};
  build(&handles, late.env->client);
  EXPECT(&reader, 1, belay_bloom_add(handles.bloom, r, belay_string("x"), reader_on_answer));
  EXPECT(&reader, 1, belay_bloom_exists(handles.bloom, r, belay_string("x"), reader_on_answer));
  EXPECT(&reader, 0,
         belay_bloom_exists(handles.bloom, r, belay_string("nowhere"), reader_on_answer));
  tear_down_late(&late);
}

/* An invalidated value is served from a replica until that has the invalidation. Without the
 * option it never is. */
TEST(cache_with_a_late_replica) {
  late_t late;
  handles_t handles;
  belay_cache_t *strict;
  set_up_late(&late);
  reader_t reader = {.env = late.env};
  build(&handles, late.env->client);
  assert_error(belay_cache_new(late.env->client, NULL, &strict), 0);
  EXPECT(&reader, 1,
         belay_cache_put(handles.cache, r, belay_string("page"), belay_string("P"), BELAY_DEFAULT,
                         reader_on_changed));
  EXPECT(&reader, 'P', belay_cache_get(strict, r, belay_string("page"), reader_on_cached));
  int64_t began = clock_now();
  do { /* there is no loader */
    assert_true(clock_since_ms(began) < 15000 * slow());
    READ(&reader, belay_cache_get(handles.cache, r, belay_string("page"), reader_on_cached));
  } while (reader.status == BELAY_EABSENT);
  assert_error(reader.status, 0);
  EXPECT(&reader, 1, belay_cache_invalidate(strict, r, belay_string("page"), reader_on_changed));
  READ(&reader, belay_cache_get(strict, r, belay_string("page"), reader_on_cached));
  assert_error(reader.status, BELAY_EABSENT);
  EXPECT(&reader, 'P', belay_cache_get(handles.cache, r, belay_string("page"), reader_on_cached));
  do {
    assert_true(clock_since_ms(began) < 15000 * slow());
    READ(&reader, belay_cache_get(handles.cache, r, belay_string("page"), reader_on_cached));
  } while (reader.status == 0);
  assert_error(reader.status, BELAY_EABSENT);
  tear_down_late(&late);
}

/* The local table takes no values from a replica that lags: an invalidated value would stay in
 * the table longer than on the replica. */
TEST(local_cache_with_a_late_replica) {
  late_t late;
  handles_t handles;
  belay_cache_t *near;
  belay_cache_options_t options;
  set_up_late(&late);
  reader_t reader = {.env = late.env};
  build(&handles, late.env->client);
  belay_cache_options_init(&options);
  options.replicas = true;
  options.local_bytes = 1 << 20;
  options.local_ttl_ms = 60000;
  assert_error(belay_cache_new(late.env->client, &options, &near), 0);
  READ(&reader, belay_cache_get(near, r, belay_string("other"),
                                reader_on_cached)); /* asks for the time too, */
  READ(&reader, belay_cache_get(handles.cache, r, belay_string("other"),
                                reader_on_cached)); /* which replicas do not tell */
  EXPECT(&reader, 1,
         belay_cache_put(near, r, belay_string("page"), belay_string("P"), BELAY_DEFAULT,
                         reader_on_changed));
  int64_t began = clock_now();
  do { /* the replica has the invalidation */
    assert_true(clock_since_ms(began) < 15000 * slow());
    READ(&reader, belay_cache_get(handles.cache, r, belay_string("page"), reader_on_cached));
  } while (reader.status == BELAY_EABSENT);
  EXPECT(&reader, 1, belay_cache_invalidate(near, r, belay_string("page"), reader_on_changed));
  env_run_for(late.env, 100); /* the published message has arrived, too */
  EXPECT(&reader, 'P', belay_cache_get(near, r, belay_string("page"), reader_on_cached));
  do { /* and of that */
    assert_true(clock_since_ms(began) < 15000 * slow());
    READ(&reader, belay_cache_get(handles.cache, r, belay_string("page"), reader_on_cached));
  } while (reader.status == 0);
  READ(&reader, belay_cache_get(near, r, belay_string("page"), reader_on_cached));
  assert_error(reader.status, BELAY_EABSENT);
  tear_down_late(&late);
}

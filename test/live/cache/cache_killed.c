/* Caches of several processes. A missing key is loaded once for all waiters. A killed loader is
 * replaced when its lease ends. A refresh makes no get wait. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "support/servers/acl.h"
#include "support/fixtures/cache/cache.h"
#include "support/servers/process.h"

enum { PROCESSES = 4, WAITERS = 1000 };

/* Where loaders write down what they do: not belay's. */
#define LOADS "{load}s"   /* how many */
#define LOADER "{load}er" /* the process of the last one */
#define BEGAN "{load}ed"  /* and when */

/* ---- one of the processes ---- */

typedef struct member {
  env_t *env;
  cache_t cache;
  resp_client_t record_client; /* writes the records */
  int64_t load_ms;
} member_t;

static member_t member;

static void write_down(const char *command, const char *key, const char *value) {
  resp_words_t words = {.count = value == NULL ? 2 : 3, .word = {command, key, value}};
  for (size_t i = 0; i < words.count; i++)
    words.len[i] = strlen(words.word[i]);
  resp_t *reply = resp_call(&member.record_client, &words);
  assert_non_null(reply);
  resp_free(reply);
}

typedef struct later {
  uv_timer_t timer;
  belay_cache_load_t *load;
} later_t;

static void on_later_closed(uv_handle_t *handle) {
  free(handle->data);
  member.cache.timers--;
}

static void on_later(uv_timer_t *timer) {
  later_t *later = timer->data;
  char value[24];
  snprintf(value, sizeof value, "of %d", (int)getpid());
  assert_int_equal(belay_cache_load_done(later->load, belay_string(value)), 0);
  uv_close((uv_handle_t *)timer, on_later_closed);
}

static void on_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  char text[24];
  later_t *later = calloc(1, sizeof *later);
  (void)key, (void)key_len, (void)arg;
  member.cache.loaded++;
  member.cache.timers++;
  snprintf(text, sizeof text, "%" PRId64, clock_now());
  write_down("SET", BEGAN, text);
  snprintf(text, sizeof text, "%d", (int)getpid());
  write_down("SET", LOADER, text);
  write_down("INCR", LOADS, NULL);
  later->load = load;
  later->timer.data = later;
  assert_int_equal(uv_timer_init(&member.env->loop, &later->timer), 0);
  assert_int_equal(uv_timer_start(&later->timer, on_later, (uint64_t)member.load_ms, 0), 0);
}

static void member_open(char **argv) {
  enum { PATH = 2, LOAD_MS, LEASE_MS };
  char url[300];
  snprintf(url, sizeof url, "unix://%s%s", acl_login(&(server_options_t){0}), argv[PATH]);
  member.load_ms = strtoll(argv[LOAD_MS], NULL, 10);
  member.env = env_open_at(url, NULL);
  assert_int_equal(acl_dial(NULL, &member.record_client, argv[PATH]), 0);
  belay_cache_options_t options = cache_options(&member.cache);
  options.load = on_load;
  options.lease_ms = strtoll(argv[LEASE_MS], NULL, 10);
  options.stale_ms = 60000;
  options.timeout_ms = 30000 * slow();
  cache_open(&member.cache, member.env, &options);
}

static int member_close(void) {
  env_until(member.env, member.cache.timers == 0 && cache_stats(&member.cache).loading == 0);
  resp_hang_up(&member.record_client);
  env_close(member.env);
  return 0;
}

static void wait_for_go(void) {
  char line[8];
  printf("ready\n");
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL)
    exit(1);
}

/* Says who loaded what it was served, all of it. */
static int be_waiter(char **argv) {
  get_t *gets = calloc(WAITERS, sizeof *gets);
  member_open(argv);
  wait_for_go();
  for (int i = 0; i < WAITERS; i++)
    start_get(&member.cache, &gets[i], "home");
  for (int i = 0; i < WAITERS; i++) {
    assert_error(end_of_get(&gets[i]), 0);
    assert_string_equal(gets[i].data, gets[0].data);
  }
  printf("%s\n", gets[0].data);
  fflush(stdout);
  for (int i = 0; i < WAITERS; i++) {
    assert_int_equal(gets[i].ended, 1);
    get_free(&gets[i]);
  }
  free(gets);
  return member_close();
}

/* Asks again and again until it gets what was loaded: says how often it was served what is stale,
 * and how long it had to wait for that at most. */
static int be_reader(char **argv) {
  get_t get = {0};
  int64_t longest = 0;
  unsigned stale = 0;
  bool over = false;
  member_open(argv);
  expect_invalidate(&member.cache, "other"); /* it is connected */
  wait_for_go();
  while (!over) {
    int64_t began = clock_now();
    start_get(&member.cache, &get, "home");
    assert_int_equal(end_of_get(&get), 0);
    int64_t ms = clock_since_ms(began);
    over = strcmp(get.data, "old") != 0;
    assert_int_equal(get.result.stale, !over);
    assert_int_equal(get.result.from, BELAY_CACHE_FROM_SERVER);
    stale += !over;
    longest = ms > longest ? ms : longest;
    env_run_for(member.env, 5);
  }
  get_free(&get);
  printf("%u %" PRId64 "\n", stale, longest);
  fflush(stdout);
  return member_close();
}

/* ---- all of them ---- */

typedef struct group {
  server_t *server;
  process_t process[PROCESSES];
} group_t;

static void group_start(group_t *group, const char *role, int64_t load_ms, int64_t lease_ms) {
  char load[24], lease[24], line[16];
  snprintf(load, sizeof load, "%" PRId64, load_ms);
  snprintf(lease, sizeof lease, "%" PRId64, lease_ms);
  const char *argv[] = {process_self(), role, server_path(group->server), load, lease, NULL};
  for (int i = 0; i < PROCESSES; i++)
    group->process[i] = process_start(argv);
  for (int i = 0; i < PROCESSES; i++) {
    assert_true(process_read_line(&group->process[i], line, sizeof line));
    assert_string_equal(line, "ready");
  }
  server_do(group->server, "DEL", LOADS, LOADER, BEGAN, NULL);
}

static void group_go(group_t *group) {
  for (int i = 0; i < PROCESSES; i++)
    process_write_line(&group->process[i], "go");
}

static int64_t loads(const group_t *group) {
  const char *text = server_string(group->server, "GET", LOADS, NULL);
  return text == NULL ? 0 : strtoll(text, NULL, 10);
}

static void expect_well(process_t *process) {
  assert_int_equal(process_wait(process), 0);
}

/* All but one are served what the last one to load has loaded. */
static void expect_served(group_t *group, int but) {
  char line[40], expected[40];
  for (int i = 0; i < PROCESSES; i++) {
    if (i == but)
      continue;
    assert_true(process_read_line(&group->process[i], line, sizeof line));
    snprintf(expected, sizeof expected, "of %s", server_string(group->server, "GET", LOADER, NULL));
    assert_string_equal(line, expected);
    expect_well(&group->process[i]);
  }
}

TEST(a_cold_key_is_loaded_once) {
  group_t group = {.server = server_start(NULL)};
  group_start(&group, "--waiter", 200, 10000);
  group_go(&group);
  expect_served(&group, -1);
  assert_int_equal(loads(&group), 1);
  server_stop(group.server);
}

static int64_t number_of(const group_t *group, const char *key) {
  const char *text = server_string(group->server, "GET", key, NULL);
  assert_non_null(text);
  return strtoll(text, NULL, 10);
}

/* Which of them loads; it gets that signal in the middle. */
static int strike_the_loader(group_t *group, int signal_number) {
  while (loads(group) == 0)
    stall_ms(1);
  int64_t pid = number_of(group, LOADER);
  stall_ms(50); /* the others wait */
  for (int i = 0; i < PROCESSES; i++) {
    if (group->process[i].pid != pid)
      continue;
    process_kill(&group->process[i], signal_number);
    return i;
  }
  fail_msg("none of them loads");
  return -1;
}

TEST(the_loader_is_killed) {
  group_t group = {.server = server_start(NULL)};
  int64_t lease_ms = 500 * slow();
  group_start(&group, "--waiter", 300 * slow(), lease_ms);
  group_go(&group);
  int dead = strike_the_loader(&group, SIGKILL);
  int64_t killed_at = clock_now();
  assert_int_equal(process_wait(&group.process[dead]), -SIGKILL);
  expect_served(&group, dead);
  assert_int_equal(loads(&group), 2);
  int64_t waited_ms = (number_of(&group, BEGAN) - killed_at) / MS;
  print_message("%" PRId64 " ms of %" PRId64 "\n", waited_ms, lease_ms);
  assert_in_range(waited_ms, 0, lease_ms + 200 + 500 * slow()); /* a poll, and a slow machine */
  server_stop(group.server);
}

/* The loader continues after its lease has ended. Its value is served to its waiters and not
 * stored. */
TEST(the_loader_stands_still) {
  group_t group = {.server = server_start(NULL)};
  int64_t lease_ms = 300 * slow();
  char line[40], mine[40], stored[40];
  group_start(&group, "--waiter", 300 * slow(), lease_ms);
  group_go(&group);
  int still = strike_the_loader(&group, SIGSTOP);
  snprintf(mine, sizeof mine, "of %d", (int)group.process[still].pid);
  expect_served(&group, still);
  snprintf(stored, sizeof stored, "of %s", server_string(group.server, "GET", LOADER, NULL));
  process_kill(&group.process[still], SIGCONT);
  assert_true(process_read_line(&group.process[still], line, sizeof line));
  assert_string_equal(line, mine);
  expect_well(&group.process[still]);
  assert_int_equal(loads(&group), 2);
  env_t *env = env_open_at(server_url(group.server), NULL);
  cache_t cache = {0};
  cache_open(&cache, env, NULL);
  expect_cached(&cache, "home", stored, BELAY_CACHE_FROM_SERVER);
  env_close(env);
  server_stop(group.server);
}

/* A value that is stale in a moment. */
static void put_old(server_t *server) {
  env_t *env = env_open_at(server_url(server), NULL);
  cache_t cache = {0};
  belay_cache_options_t options = cache_options(&cache);
  options.ttl_ms = 1;
  options.stale_ms = 60000;
  cache_open(&cache, env, &options);
  expect_put(&cache, "home", "old", true);
  env_close(env);
  stall_ms(5);
}

TEST(refresh_delays_no_get) {
  group_t group = {.server = server_start(NULL)};
  int64_t load_ms = 300 * slow();
  char line[40];
  group_start(&group, "--reader", load_ms, 10000);
  put_old(group.server);
  group_go(&group);
  for (int i = 0; i < PROCESSES; i++) {
    int64_t stale, longest;
    char *end;
    assert_true(process_read_line(&group.process[i], line, sizeof line));
    stale = strtoll(line, &end, 10);
    longest = strtoll(end, NULL, 10);
    assert_true(stale > 3);
    assert_in_range(longest, 0, load_ms / 2);
    expect_well(&group.process[i]);
  }
  assert_int_equal(loads(&group), 1);
  server_stop(group.server);
}

TEST_ROLE(waiter, "--waiter") {
  return be_waiter(argv);
}

TEST_ROLE(reader, "--reader") {
  return be_reader(argv);
}

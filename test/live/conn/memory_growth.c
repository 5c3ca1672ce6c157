/* Memory that does not grow, cycles that allocate nothing, many commands per write. */
#include <hiredis/alloc.h>
#include <stdio.h>
#include <unistd.h>

#include "core/call/call.h"
#include "core/client/client.h"
#include "support/fixtures/env.h"
#include "support/load/cycles.h"

/* ---- memory ---- */

/* Of this process, in bytes. */
static int64_t resident(void) {
  long pages = 0;
  FILE *statm = fopen("/proc/self/statm", "r");
  assert_non_null(statm);
  assert_int_equal(fscanf(statm, "%*s %ld", &pages), 1);
  fclose(statm);
  return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

ENV_TEST(memory_after_100000_cycles) {
  lockers_t lockers = lockers_new(env, 8, false);
  size_t cycles = 100000 / (size_t)slow();
  run_cycles(env, &lockers, cycles / 10);
  int64_t before = resident();
  size_t bytes = env->bytes;
  run_cycles(env, &lockers, cycles - cycles / 10);
  int64_t growth = resident() - before;
  print_message("%zu cycles: resident memory grew by %lld bytes\n", cycles, (long long)growth);
  assert_int_equal(env->bytes, bytes);
  assert_int_equal(server_keys(env->server), 0);
  if (!memory_is_watched())
    assert_true(growth <= 256 * 1024);
}

/* ---- allocations ---- */

static size_t hiredis_allocations;

static void *count_malloc(size_t size) {
  hiredis_allocations++;
  return malloc(size);
}

static void *count_calloc(size_t count, size_t size) {
  hiredis_allocations++;
  return calloc(count, size);
}

static void *count_realloc(void *ptr, size_t size) {
  hiredis_allocations++;
  return realloc(ptr, size);
}

static char *count_strdup(const char *text) {
  hiredis_allocations++;
  return strdup(text);
}

/* Number of belay's allocations in n cycles, after some cycles to warm up. */
static size_t allocations_after_warm_up(env_t *env, const lockers_t *lockers, size_t cycles) {
  run_cycles(env, lockers, 2000);
  size_t before = env->allocations;
  run_cycles(env, lockers, cycles);
  return env->allocations - before;
}

TEST(cycle_allocates_nothing) {
  hiredisAllocFuncs funcs = {count_malloc, count_calloc, count_realloc, count_strdup, free};
  hiredisSetAllocators(&funcs);
  env_t *env = env_open(NULL);
  lockers_t lockers = lockers_new(env, 1, false);
  run_cycles(env, &lockers, 2000);
  size_t cycles = 10000 / (size_t)slow(), ours = env->allocations, theirs = hiredis_allocations;
  uint64_t commands = client_stats(env).commands;
  run_cycles(env, &lockers, cycles);
  assert_int_equal(env->allocations - ours, 0);
  print_message("hiredis made %.2f allocations for each command\n",
                (double)(hiredis_allocations - theirs) /
                    (double)(client_stats(env).commands - commands));
  env_close(env);
  hiredisResetAllocators();
}

ENV_TEST(concurrent_cycles_allocate_little) {
  lockers_t lockers = lockers_new(env, 64, false);
  /* except for the largest number of simultaneous replies */
  assert_true(allocations_after_warm_up(env, &lockers, 20000 / (size_t)slow()) <= 8);
}

ENV_TEST(contended_cycles_allocate_nothing) {
  lockers_t lockers = lockers_new(env, 4, true);
  assert_int_equal(allocations_after_warm_up(env, &lockers, 2000 / (size_t)slow()), 0);
}

ENV_TEST(renewal_allocates_nothing) {
  belay_lock_options_t options = lock_options();
  options.ttl_ms = kept_ttl();
  options.watchdog = BELAY_WATCHDOG_ON;
  options.renew_after_ms = options.ttl_ms / 10;
  contender_t *c = contender_new(env, "door", &options);
  assert_error(try_lock(c), 0);
  uint64_t commands = client_stats(env).commands;
  env_until(env, client_stats(env).commands >= commands + 2);
  size_t before = env->allocations;
  env_until(env, client_stats(env).commands >= commands + 10);
  assert_int_equal(env->allocations, before);
  assert_int_equal(c->lost, 0);
}

/* ---- what is held costs little ---- */

enum { HELD = 10000, BATCH = 64, BYTES_EACH = 470 };

static void on_counted(belay_lock_t *lock, int status) {
  size_t *good = belay_lock_data(lock);
  *good += status == 0;
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  size_t *good = belay_lock_data(lock);
  (void)reason;
  *good += SIZE_MAX / 2; /* the awaited state never comes */
}

/* Takes the locks numbered from..to-1, some at a time. */
static void hold(env_t *env, belay_lock_t **locks, size_t from, size_t to, size_t *good) {
  belay_lock_options_t options = lock_options();
  options.ttl_ms = 6000 * slow();
  options.watchdog = BELAY_WATCHDOG_ON;
  options.on_lost = on_lost;
  options.data = good;
  char name[32];
  for (size_t i = from; i < to; i++) {
    int len = snprintf(name, sizeof name, "door-%zu", i);
    assert_error(belay_lock_new(env->client, belay_bytes(name, (size_t)len), &options, &locks[i]),
                 0);
    assert_error(belay_lock_try(locks[i], on_counted), 0);
    if (i % BATCH == BATCH - 1)
      env_until(env, *good == i + 1);
  }
  env_until(env, *good == to);
}

/* Returns belay's bytes at rest, without the pools of unused calls and buffers: their sizes depend
 * on the largest number of concurrent calls. */
static size_t bytes_at_rest(env_t *env) {
  env_settle(env);
  size_t bytes = env->bytes;
  for (belay__list_t *i = env->client->pool.next; i != &env->client->pool; i = i->next)
    bytes -= sizeof(belay__call_t) + env->client->node_ops->call_room;
  return bytes;
}

/* Waits until every one of them was renewed; belay's bytes then. */
static size_t bytes_when_renewed(env_t *env, size_t held) {
  uint64_t commands = client_stats(env).commands;
  env_until(env, client_stats(env).commands >= commands + held);
  return bytes_at_rest(env);
}

static void let_go(env_t *env, belay_lock_t **locks, size_t *good) {
  for (size_t i = 0; i < HELD; i++) {
    assert_error(belay_lock_release(locks[i], BELAY_DEFAULT, on_counted), 0);
    if (i % BATCH == BATCH - 1)
      env_until(env, *good == HELD + i + 1);
  }
  env_until(env, *good == 2 * HELD);
}

/* The cost of a lock is what 5,000 of them add to 5,000 others. */
ENV_TEST(memory_of_held_locks) {
  belay_lock_t **locks = calloc(HELD, sizeof(belay_lock_t *));
  size_t good = 0, empty = bytes_at_rest(env);
  hold(env, locks, 0, HELD / 2, &good);
  size_t half = bytes_when_renewed(env, HELD / 2);
  hold(env, locks, HELD / 2, HELD, &good);
  size_t each = (bytes_at_rest(env) - half) / (HELD / 2);
  size_t all = bytes_when_renewed(env, HELD);
  print_message("a held lock: %zu bytes; of %d, each renewed: %zu\n", each, HELD,
                (all - empty) / HELD);
  assert_true(each <= BYTES_EACH);
  assert_true((all - half) / (HELD / 2) <= BYTES_EACH);
  let_go(env, locks, &good);
  assert_int_equal(server_keys(env->server), 0);
  free(locks);
}

/* ---- what rests costs nothing ---- */

static uint64_t wakeups_in(env_t *env, int64_t ms) {
  belay_stats_t before, after;
  belay_stats(env->belay, &before);
  env_run_for(env, ms);
  belay_stats(env->belay, &after);
  return after.wakeups - before.wakeups;
}

ENV_TEST(wakeups_at_rest) {
  contender_t *c = contender_new(env, "door", NULL), *other = contender_new(env, "door", NULL);
  assert_true(wakeups_in(env, 200) <= 2);
  assert_error(try_lock(c), 0);
  assert_true(wakeups_in(env, 500) <= 5);
  assert_error(begin_acquire(other, BELAY_FOREVER), 0); /* polls every 50 ms or so */
  assert_true(wakeups_in(env, 500) <= 100);
  server_pause(env->server);
  assert_true(wakeups_in(env, 500) <= 50);
  server_kill(env->server);
  assert_true(wakeups_in(env, 500) <= 200);
}

/* ---- several commands in one write ---- */

TEST(writes_per_command) {
  needs_one_process("one connection");
  env_t *env = env_open(NULL);
  lockers_t lockers = lockers_new(env, 64, false);
  run_cycles(env, &lockers, 1000);
  belay_client_stats_t before = client_stats(env);
  run_cycles(env, &lockers, 20000 / (size_t)slow());
  belay_client_stats_t after = client_stats(env);
  double each = (double)(after.commands - before.commands) / (double)(after.writes - before.writes);
  print_message("64 lockers: %.1f commands in one write\n", each);
  assert_true(each >= 3);
  env_close(env);
}

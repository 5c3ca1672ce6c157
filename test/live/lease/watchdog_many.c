/* Ten thousand held and renewed leases: number of requests to the server, and memory.
 * BELAY_SOAK_SECONDS sets the duration. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/client/client.h"
#include "support/fixtures/env.h"

enum { HELD = 10000, BATCH = 250, TRIPS_MAX = 100, WAITERS = 5000 };
#define BYTES_EACH 656
#define TTL                                                                                        \
  (16000 *                                                                                         \
   slow()) /* long beside a period, since the tests and the machine stand still for a while */
#define PERIOD (TTL / 10) /* from one renewal to the next */
#define GROWTH_MAX ((int64_t)512 * 1024)

/* A trip begins when a renewal is sent and none was on its way. */
typedef struct trips {
  size_t under_way, trips, renewals;
} trips_t;

static void count(void *ctx, const belay_trace_t *trace) {
  trips_t *trips = ctx;
  if (strcmp(trace->command, "lock_extend") != 0)
    return;
  if (trace->event == BELAY_TRACE_SENT) {
    trips->renewals++;
    trips->trips += trips->under_way++ == 0;
  } else if (trace->event == BELAY_TRACE_DONE && trips->under_way > 0) {
    trips->under_way--;
  }
}

typedef struct many_locks {
  env_t *env;
  belay_lock_t *locks[HELD];
  size_t ended, failed, lost;
  trips_t trips;
} many_locks_t;

static void on_ended(belay_lock_t *lock, int status) {
  many_locks_t *many = belay_lock_data(lock);
  many->ended++;
  many->failed += status != 0;
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  many_locks_t *many = belay_lock_data(lock);
  (void)reason;
  many->lost++;
}

static belay_lock_t *make(many_locks_t *many, const char *name) {
  belay_lock_options_t options = lock_options();
  belay_lock_t *lock;
  options.ttl_ms = TTL;
  options.renew_after_ms = PERIOD;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.on_lost = on_lost;
  options.data = many;
  assert_error(belay_lock_new(many->env->client, belay_string(name), &options, &lock), 0);
  return lock;
}

static many_locks_t *open_many(void) {
  many_locks_t *many = calloc(1, sizeof *many);
  assert_non_null(many);
  belay_client_options_t options = client_options();
  options.trace = count;
  options.trace_ctx = &many->trips;
  many->env = env_open(&options);
  return many;
}

/* Over a good part of a period: nothing makes them fall together but belay. */
static void hold_all(many_locks_t *many) {
  char name[32];
  for (size_t i = 0; i < HELD; i++) {
    snprintf(name, sizeof name, "door-%zu", i);
    many->locks[i] = make(many, name);
    assert_error(belay_lock_try(many->locks[i], on_ended), 0);
    if (i % BATCH == BATCH - 1) {
      env_until(many->env, many->ended == i + 1);
      env_run_for(many->env, PERIOD / 80);
    }
  }
  assert_int_equal(many->failed, 0);
}

static void close_many(many_locks_t *many) {
  assert_int_equal(many->lost, 0);
  env_close(many->env);
  free(many);
}

/* Of two periods: many go out together, and not all. */
static bool is_spread(size_t trips) {
  return trips <= 2 * TRIPS_MAX && trips >= 2 * TRIPS_MAX / 10;
}

TEST(renewals_share_batches) {
  many_locks_t *many = open_many();
  hold_all(many);
  usleep((useconds_t)(PERIOD * 1000)); /* all are due together, */
  env_run_for(many->env, 3 * PERIOD);  /* but not for long */
  size_t trips = 0;
  for (int i = 0; i < 5 && !is_spread(trips); i++) { /* each standstill makes many due together */
    trips_t before = many->trips;
    env_until(many->env, many->trips.renewals - before.renewals >= 2 * HELD);
    trips = many->trips.trips - before.trips;
    print_message("%d renewals of %d leases in %zu round trips\n", 2 * HELD, HELD, trips);
  }
  assert_true(is_spread(trips));
  close_many(many);
}

/* Allocated bytes of this process. */
static int64_t in_use(void) {
  struct mallinfo2 info = mallinfo2();
  return (int64_t)(info.uordblks + info.hblkhd);
}

TEST(memory_does_not_grow) {
  const char *seconds = getenv("BELAY_SOAK_SECONDS");
  if (memory_is_watched() && seconds == NULL)
    skip();
  int64_t ms = seconds != NULL ? (int64_t)atoi(seconds) * 1000 : 3 * PERIOD;
  many_locks_t *many = open_many();
  hold_all(many);
  env_run_for(many->env, 2 * PERIOD);
  usleep((useconds_t)(PERIOD * 1000)); /* all are due together: the most that is ever under way */
  env_run_for(many->env, 2 * PERIOD);
  int64_t before = in_use();
  size_t renewals = many->trips.renewals;
  env_run_for(many->env, ms);
  int64_t growth = in_use() - before;
  /* a stalled process has more calls in flight */
  for (int i = 0; i < 100 && growth > GROWTH_MAX; i++) {
    env_run_for(many->env, PERIOD / 10);
    growth = in_use() - before;
  }
  print_message("%d leases, %zu renewals in %lld s: %lld KiB of memory, and %lld KiB more\n", HELD,
                many->trips.renewals - renewals, (long long)ms / 1000, (long long)before / 1024,
                (long long)growth / 1024);
  if (!memory_is_watched())
    assert_true(growth <= GROWTH_MAX);
  close_many(many);
}

TEST(memory_of_waiter) {
  many_locks_t *many = open_many();
  belay_lock_t *holder = make(many, "door");
  assert_error(belay_lock_try(holder, on_ended), 0);
  env_until(many->env, many->ended == 1);
  for (size_t i = 0; i < WAITERS; i++) {
    size_t bytes = many->env->bytes;
    many->locks[i] = make(many, "door");
    assert_error(belay_lock_acquire(many->locks[i], BELAY_FOREVER, on_ended), 0);
    assert_true(many->env->bytes - bytes <= BYTES_EACH);
  }
  uint64_t calls = client_stats(many->env).calls;
  env_run_for(many->env, PERIOD / 4);
  /* The first of them asks now and then, and the others do not. */
  assert_true(client_stats(many->env).calls - calls <= WAITERS / 100);
  close_many(many);
}

/* Memory and CPU time of 100,000 held and renewed leases, and the spread of their renewals. */
#include <stdio.h>
#include <time.h>

#include "support/fixtures/env.h"

/* Each is renewed in the last quarter before a third of the ttl. FULL: on a fast machine. */
enum { FULL = 100000, BATCH = 512, TTL_MS = 30000, SOONEST_MS = 7500, LATEST_MS = 10000 };
enum { BYTES_EACH = 470 };

typedef struct crowd {
  env_t *env;
  belay_lock_t **locks;
  size_t held, good, lost;
  uv_prepare_t turn;     /* once for each turn of the loop */
  double began, longest; /* processor time: when the turn began; the most that one has taken */
} crowd_t;

static double processor_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void on_turn(uv_prepare_t *turn) {
  crowd_t *crowd = turn->data;
  double now = processor_ms();
  if (now - crowd->began > crowd->longest)
    crowd->longest = now - crowd->began;
  crowd->began = now;
}

static void on_counted(belay_lock_t *lock, int status) {
  crowd_t *crowd = belay_lock_data(lock);
  crowd->good += status == 0;
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  crowd_t *crowd = belay_lock_data(lock);
  (void)reason;
  crowd->lost++;
}

static size_t memory(const crowd_t *crowd) {
  belay_stats_t stats;
  belay_stats(crowd->env->belay, &stats);
  return (size_t)stats.memory_bytes;
}

static void take_all(crowd_t *crowd) {
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.ttl_ms = TTL_MS;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.on_lost = on_lost;
  options.data = crowd;
  for (size_t i = 0; i < crowd->held; i++) {
    char name[32];
    int len = snprintf(name, sizeof name, "lock-%zu", i);
    assert_error(belay_lock_new(crowd->env->client, belay_bytes(name, (size_t)len), &options,
                                &crowd->locks[i]),
                 0);
    assert_error(belay_lock_try(crowd->locks[i], on_counted), 0);
    if (i % BATCH == BATCH - 1)
      env_until(crowd->env, crowd->good == i + 1);
  }
  env_until(crowd->env, crowd->good == crowd->held);
}

/* Runs until all have been renewed, and tells what that took. */
static void watch(crowd_t *crowd) {
  uint64_t commands = client_stats(crowd->env).commands;
  uv_prepare_init(&crowd->env->loop, &crowd->turn);
  crowd->turn.data = crowd;
  double began = crowd->began = processor_ms();
  uv_prepare_start(&crowd->turn, on_turn);
  env_until(crowd->env, client_stats(crowd->env).commands >= commands + crowd->held);
  double spent = processor_ms() - began;
  uv_close((uv_handle_t *)&crowd->turn, NULL);
  double renewals = (double)(client_stats(crowd->env).commands - commands);
  double share = spent / renewals * FULL / SOONEST_MS;
  print_message(
      "%.0f renewals: %.2f us of processor time each; of %d that is %.1f %% of one core, or less; "
      "the longest turn of the loop: %.1f ms\n",
      renewals, 1e3 * spent / renewals, FULL, 100 * share, crowd->longest);
  if (slow() > 1)
    return;
  assert_true(share < 0.4);
  assert_true(crowd->longest < spent / 2); /* not in one burst */
}

static void let_go(crowd_t *crowd) {
  size_t good = crowd->good;
  for (size_t i = 0; i < crowd->held; i++) {
    assert_error(belay_lock_release(crowd->locks[i], BELAY_DEFAULT, on_counted), 0);
    if (i % BATCH == BATCH - 1)
      env_until(crowd->env, crowd->good == good + i + 1);
  }
  env_until(crowd->env, crowd->good == good + crowd->held);
}

TEST(hold_100000_locks) {
  crowd_t crowd = {.env = env_open(NULL), .held = FULL / (size_t)slow()};
  crowd.locks = calloc(crowd.held, sizeof(belay_lock_t *));
  assert_non_null(crowd.locks);
  size_t empty = memory(&crowd);
  take_all(&crowd);
  env_settle(crowd.env);
  size_t each = (memory(&crowd) - empty) / crowd.held;
  print_message("%zu held locks: %zu bytes each, with all that is kept for later\n", crowd.held,
                each);
  watch(&crowd);
  assert_int_equal(crowd.lost, 0);
  if (slow() == 1)
    assert_true(each <= BYTES_EACH);
  let_go(&crowd);
  assert_int_equal(server_keys(crowd.env->server), 0);
  free(crowd.locks);
  env_close(crowd.env);
}

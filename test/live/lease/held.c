/* Memory and CPU time of 100,000 held and renewed leases, and the spread of their renewals. */
#include <stdio.h>
#include <time.h>

#include "support/fixtures/env.h"

/* Each is renewed in the last quarter before a third of the ttl. FULL: on a fast machine. */
enum { FULL = 100000, BATCH = 512, TTL_MS = 30000, SOONEST_MS = 7500, LATEST_MS = 10000 };
enum { BYTES_EACH = 256 + 10 }; /* 10: the pools */

typedef struct many_locks {
  env_t *env;
  belay_lock_t **locks;
  size_t held, good, lost;
  uv_prepare_t turn;     /* once for each turn of the loop */
  double began, longest; /* processor time: when the turn began; the most that one has taken */
} many_locks_t;

static double processor_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void on_turn(uv_prepare_t *turn) {
  many_locks_t *many = turn->data;
  double now = processor_ms();
  if (now - many->began > many->longest)
    many->longest = now - many->began;
  many->began = now;
}

static void on_counted(belay_lock_t *lock, int status) {
  many_locks_t *many = belay_lock_data(lock);
  many->good += status == 0;
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  many_locks_t *many = belay_lock_data(lock);
  (void)reason;
  many->lost++;
}

static size_t memory(const many_locks_t *many) {
  belay_stats_t stats;
  belay_stats(many->env->belay, &stats);
  return (size_t)stats.memory_bytes;
}

static void take_all(many_locks_t *many) {
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.ttl_ms = TTL_MS;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.on_lost = on_lost;
  options.data = many;
  for (size_t i = 0; i < many->held; i++) {
    char name[32];
    int len = snprintf(name, sizeof name, "lock-%zu", i);
    assert_error(belay_lock_new(many->env->client, belay_bytes(name, (size_t)len), &options,
                                &many->locks[i]),
                 0);
    assert_error(belay_lock_try(many->locks[i], on_counted), 0);
    if (i % BATCH == BATCH - 1)
      env_until(many->env, many->good == i + 1);
  }
  env_until(many->env, many->good == many->held);
}

/* Runs until all have been renewed, and tells what that took. */
static void watch(many_locks_t *many) {
  uint64_t commands = client_stats(many->env).commands;
  uv_prepare_init(&many->env->loop, &many->turn);
  many->turn.data = many;
  double began = many->began = processor_ms();
  uv_prepare_start(&many->turn, on_turn);
  env_until(many->env, client_stats(many->env).commands >= commands + many->held);
  double spent = processor_ms() - began;
  uv_close((uv_handle_t *)&many->turn, NULL);
  double renewals = (double)(client_stats(many->env).commands - commands);
  double share = spent / renewals * FULL / SOONEST_MS;
  print_message(
      "%.0f renewals: %.2f us of processor time each; of %d that is %.1f %% of one core, or less; "
      "the longest turn of the loop: %.1f ms\n",
      renewals, 1e3 * spent / renewals, FULL, 100 * share, many->longest);
  if (slow() > 1)
    return;
  assert_true(share < 0.4);
  assert_true(many->longest < spent / 2); /* not in one burst */
}

static void let_go(many_locks_t *many) {
  size_t good = many->good;
  for (size_t i = 0; i < many->held; i++) {
    assert_error(belay_lock_release(many->locks[i], BELAY_DEFAULT, on_counted), 0);
    if (i % BATCH == BATCH - 1)
      env_until(many->env, many->good == good + i + 1);
  }
  env_until(many->env, many->good == good + many->held);
}

TEST(hold_100000_locks) {
  many_locks_t many = {.env = env_open(NULL), .held = FULL / (size_t)slow()};
  many.locks = calloc(many.held, sizeof(belay_lock_t *));
  assert_non_null(many.locks);
  size_t empty = memory(&many);
  take_all(&many);
  env_settle(many.env);
  size_t each = (memory(&many) - empty) / many.held;
  print_message("%zu held locks: %zu bytes each, with all that is kept for later\n", many.held,
                each);
  watch(&many);
  assert_int_equal(many.lost, 0);
  if (slow() == 1)
    assert_true(each <= BYTES_EACH);
  let_go(&many);
  assert_int_equal(server_keys(many.env->server), 0);
  free(many.locks);
  env_close(many.env);
}

/* The cost of a quorum: Redlock on five nodes compared with a plain lock on one, and with a
 * stopped node. Only ratios of medians count, measured in turns within one run.
 *
 * For the plain lock this process has one processor and the servers have the others, as remote
 * servers would. Left to the scheduler, a lone server sometimes shares its client's processor
 * and replies four times as fast. */
#include <math.h>
#include <sched.h>
#include <stdio.h>

#include "support/deployments/nodes.h"

enum { NODES = 5, BLOCKS = 21, CYCLES = 200, WARM_UP = 20, ATTEMPTS = 5 };

/* Waiting for a stopped node takes a thousand times as long; the scheduler's effect is smaller. */
#define DELAYED 3.0

/* ---- processors ---- */

/* Binds this process and its later children to the first of the given processors, or to the
 * others. */
static void run_on(const cpu_set_t *given, bool first) {
  cpu_set_t set;
  bool found = false;
  CPU_ZERO(&set);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, given))
      continue;
    if (found != first)
      CPU_SET(cpu, &set);
    found = true;
  }
  assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

/* How many want a processor just now, this process included; 0: not known. */
static double wanting(void) {
  unsigned count = 0;
  FILE *loadavg = fopen("/proc/loadavg", "r");
  if (loadavg == NULL)
    return 0;
  if (fscanf(loadavg, "%*f %*f %*f %u", &count) != 1)
    count = 0;
  fclose(loadavg);
  return count;
}

/* ---- medians ---- */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

/* ---- cycles ---- */

typedef struct block {
  unsigned cycles, failed;
  bool over;
  int64_t began;
  double us[WARM_UP + CYCLES];
} block_t;

static void on_acquired(belay_lock_t *lock, int status);

static void begin_cycle(belay_lock_t *lock, block_t *block) {
  block->over = block->cycles == WARM_UP + CYCLES;
  if (block->over)
    return;
  block->began = clock_now();
  assert_error(belay_lock_acquire(lock, 0, on_acquired), 0);
}

static void on_released(belay_lock_t *lock, int status) {
  block_t *block = belay_lock_data(lock);
  block->failed += status != 0;
  begin_cycle(lock, block);
}

static void on_acquired(belay_lock_t *lock, int status) {
  block_t *block = belay_lock_data(lock);
  block->us[block->cycles++] = (double)(clock_now() - block->began) / 1000;
  if (status == 0) {
    assert_error(belay_lock_release(lock, BELAY_DEFAULT, on_released), 0);
    return;
  }
  block->failed++;
  begin_cycle(lock, block);
}

static bool spoiled; /* true if too many replies of the measurement were late */

/* The median time of an acquire, in microseconds; releases are not counted. */
static double run_block(contender_t *c) {
  block_t block = {.cycles = 0};
  belay_lock_set_data(c->lock, &block);
  begin_cycle(c->lock, &block);
  env_until(c->env, block.over);
  belay_lock_set_data(c->lock, c);
  spoiled |= block.failed > CYCLES / 20;
  return median(block.us + WARM_UP, CYCLES);
}

/* ---- comparing ---- */

typedef struct runners {
  nodes_t *nodes;
  contender_t *plain, *redlock;
} runners_t;

typedef struct comparison {
  const char *what;
  double most; /* maximum ratio of the second time to the first */
  bool apart;  /* this process has a processor of its own */
  double (*first)(const runners_t *runners);
  double (*second)(const runners_t *runners);
} comparison_t;

static double plain_on_one(const runners_t *runners) {
  double us = run_block(runners->plain);
  nodes_settle(runners->nodes);
  return us;
}

static double redlock_on_five(const runners_t *runners) {
  double us = run_block(runners->redlock);
  nodes_settle(runners->nodes);
  return us;
}

static void pause_one(const runners_t *runners) {
  server_pause(runners->nodes->server[NODES - 1]);
}

static void resume_it(const runners_t *runners) {
  nodes_resume(runners->nodes);
  nodes_warm(runners->nodes);
  nodes_settle(runners->nodes);
}

static double redlock_with_one_paused(const runners_t *runners) {
  pause_one(runners);
  double us = run_block(runners->redlock);
  resume_it(runners);
  return us;
}

/* For so long that it is not asked any more. */
static double redlock_without_one(const runners_t *runners) {
  pause_one(runners);
  assert_error(acquire(runners->redlock, 5000), 0);
  env_run_for(runners->nodes->env, 100);
  assert_error(release(runners->redlock), 0);
  double us = run_block(runners->redlock);
  resume_it(runners);
  return us;
}

/* load: number of runnable processes between the blocks, while the servers had nothing to do. */
static double measure(nodes_t *nodes, const comparison_t *it, double *load) {
  double first[BLOCKS], second[BLOCKS], ratio[BLOCKS], wanted[BLOCKS];
  belay_lock_options_t options = redlock_options(10000);
  runners_t runners = {.nodes = nodes,
                       .plain = contender_new(nodes->env, "plain", &options),
                       .redlock = nodes_contender(nodes, "redlock", &options)};
  spoiled = false;
  for (int i = 0; i < BLOCKS; i++) {
    first[i] = it->first(&runners);
    second[i] = it->second(&runners);
    ratio[i] = second[i] / first[i];
    wanted[i] = wanting();
  }
  double result = spoiled ? HUGE_VAL : median(ratio, BLOCKS);
  *load = median(wanted, BLOCKS);
  print_message("# %s: %.1f us and %.1f us, %.2f times as long\n", it->what, median(first, BLOCKS),
                median(second, BLOCKS), result);
  assert_error(close_lock(runners.plain), 0);
  assert_error(close_lock(runners.redlock), 0);
  return result;
}

static nodes_t *open_nodes(const cpu_set_t *given, bool apart) {
  if (apart)
    run_on(given, false);
  nodes_t *nodes = nodes_open(NODES, NULL);
  if (apart)
    run_on(given, true);
  nodes_warm(nodes);
  return nodes;
}

static void compare_rates(const comparison_t *it) {
  cpu_set_t given;
  assert_int_equal(sched_getaffinity(0, sizeof given, &given), 0);
  if (slow() > 1 || CPU_COUNT(&given) < 2)
    skip(); /* the sanitizer or the scheduler would be measured */
  nodes_t *nodes = open_nodes(&given, it->apart);
  double load, ratio = measure(nodes, it, &load);
  for (int i = 1; i < ATTEMPTS && ratio > it->most; i++)
    ratio = measure(nodes, it, &load);
  nodes_expect_no_key(nodes);
  nodes_close(nodes);
  sched_setaffinity(0, sizeof given, &given);
  if (ratio > it->most && load > CPU_COUNT(&given))
    skip(); /* there is no processor for each of the two sides */
  if (ratio > it->most)
    fail_msg("%s: %.2f times as long, and may be %.2f", it->what, ratio, it->most);
}

TEST(five_nodes_at_most_twice_the_time) {
  compare_rates(&(comparison_t){.what = "a plain lock, and Redlock on five nodes",
                                .most = 2.0,
                                .apart = true,
                                .first = plain_on_one,
                                .second = redlock_on_five});
}

TEST(stopped_node) {
  compare_rates(&(comparison_t){.what = "Redlock on five nodes, and with one that stands still",
                                .most = DELAYED,
                                .first = redlock_on_five,
                                .second = redlock_with_one_paused});
}

TEST(node_stopped_for_long) {
  compare_rates(
      &(comparison_t){.what = "Redlock on five nodes, and with one that has long stood still",
                      .most = DELAYED,
                      .first = redlock_on_five,
                      .second = redlock_without_one});
}

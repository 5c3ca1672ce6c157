/* A fixed set of worlds, so short that every test run can look at them; the same seeds each time. What ./run sim
 * looks at is the same worlds and many more. */
#include <stdlib.h>
#include <string.h>

#include "lease/machine/lease.h"
#include "sim/engine/engine.h"
#include "sim/report.h"
#include "sim/scenarios/scenario.h"
#include "support/base/clock.h"
#include "support/base/unit.h"

#define SEEDS (uint64_t)(12 / slow()) /* of each scenario */

static sim_figures_t all;

static void run(const sim_scenario_t *scenario, uint64_t seed) {
  char verdict[512];
  if (sim_run(scenario, seed, NULL, &all, verdict, sizeof verdict))
    return;
  sim_report_violation(stdout, scenario, seed);
  fail_msg("%s", verdict);
}

/* ---- cases ---------------------------------------------------------------------------------------------- */

static void nothing_is_violated(void **state) {
  const sim_scenario_t *scenario = *state;
  bool many = scenario->kind == SIM_ORDERS || scenario->kind == SIM_OUTAGE; /* a run takes long */
  uint64_t seeds = many ? 2 : SEEDS;
  for (uint64_t seed = 1; seed <= seeds; seed++)
    run(scenario, seed);
}

/* The story of a world, to be freed. */
static char *story(const sim_scenario_t *scenario, uint64_t seed, size_t *len) {
  char *text = NULL;
  FILE *timeline = open_memstream(&text, len);
  assert_non_null(timeline);
  sim_run(scenario, seed, timeline, &all, NULL, 0);
  fclose(timeline);
  return text;
}

static void a_seed_tells_the_same_story_twice(void **state) {
  (void)state;
  for (size_t i = 0; i < sim_scenarios_count(); i++) {
    size_t len, again_len;
    char *once = story(sim_scenario_at(i), 1, &len),
         *again = story(sim_scenario_at(i), 1, &again_len);
    assert_int_equal(len, again_len);
    assert_memory_equal(once, again, len);
    free(once);
    free(again);
  }
}

static void another_seed_tells_another_story(void **state) {
  (void)state;
  size_t len, other_len;
  char *one = story(sim_scenario_at(0), 1, &len), *other = story(sim_scenario_at(0), 2, &other_len);
  assert_true(len != other_len || memcmp(one, other, len) != 0);
  free(one);
  free(other);
}

/* The transitions that can happen and have not. */
static unsigned unseen(void) {
  unsigned n = 0;
  for (int i = 0; i < SIM_STATES; i++)
    for (int j = 0; j < SIM_EVENTS; j++)
      n += belay__lease_expects((belay__lease_state_t)i, (belay__lease_event_t)j) &&
           all.steps[i][j] == 0;
  return n;
}

/* What cannot happen is asserted in the machine itself; everything else does happen here. The rarest needs memory
 * to run out between two rounds, on all servers. */
static void every_transition_is_seen(void **state) {
  (void)state;
  for (uint64_t seed = SEEDS + 1; unseen() > 0 && seed < 20 * SEEDS; seed++)
    run(sim_scenario_at(sim_scenario_find("redlock-memory")), seed);
  if (unseen() > 0)
    sim_report_steps(stdout, &all);
  assert_int_equal(unseen(), 0);
}

static void every_fault_happens(void **state) {
  (void)state;
  for (int i = 0; i < SIM_FAULTS; i++)
    if (all.faults[i] == 0)
      fail_msg("never: %s", sim_fault_texts[i]);
}

int main(void) {
  static const struct CMUnitTest last[] = {
      cmocka_unit_test(a_seed_tells_the_same_story_twice),
      cmocka_unit_test(another_seed_tells_another_story),
      cmocka_unit_test(every_transition_is_seen),
      cmocka_unit_test(every_fault_happens),
  };
  const size_t last_len = sizeof last / sizeof *last;
  const size_t n = sim_scenarios_count();
  struct CMUnitTest *tests = sim_alloc((n + last_len) * sizeof *tests);
  for (size_t i = 0; i < n; i++)
    tests[i] = (struct CMUnitTest){.name = sim_scenario_at(i)->name,
                                   .test_func = nothing_is_violated,
                                   .initial_state = (void *)(uintptr_t)sim_scenario_at(i)};
  memcpy(tests + n, last, sizeof last);
  int failed = _cmocka_run_group_tests("seeds", tests, n + last_len, NULL, NULL);
  free(tests);
  engine_shutdown();
  return failed;
}

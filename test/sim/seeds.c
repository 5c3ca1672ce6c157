/* A fixed, short set of worlds for each test run. ./run sim runs the same worlds and many more. */
#include <stdlib.h>
#include <string.h>

#include "lease/machine/machine.h"
#include "sim/engine/engine.h"
#include "sim/report.h"
#include "sim/scenarios/scenario.h"
#include "support/base/clock.h"
#include "support/base/test.h"

#define SEEDS (uint64_t)(12 / slow()) /* of each scenario */

static sim_figures_t all;

static void run(const sim_scenario_t *scenario, uint64_t seed) {
  char verdict[512];
  if (sim_run(scenario, seed, NULL, &all, verdict, sizeof verdict))
    return;
  sim_report_violation(stdout, scenario, seed);
  fail_msg("%s", verdict);
}

/* ---- cases ---- */

static void no_rule_is_violated(void **state) {
  const sim_scenario_t *scenario = *state;
  bool many = scenario->kind == SIM_ORDERS || scenario->kind == SIM_OUTAGE; /* a run takes long */
  uint64_t seeds = many ? 2 : SEEDS;
  for (uint64_t seed = 1; seed <= seeds; seed++)
    run(scenario, seed);
}

/* The timeline of a world, to be freed. */
static char *timeline_of(const sim_scenario_t *scenario, uint64_t seed, size_t *len) {
  char *text = NULL;
  FILE *timeline = open_memstream(&text, len);
  assert_non_null(timeline);
  sim_run(scenario, seed, timeline, &all, NULL, 0);
  fclose(timeline);
  return text;
}

TEST(same_seed_gives_same_timeline) {
  for (size_t i = 0; i < sim_scenarios_count(); i++) {
    size_t len, again_len;
    char *once = timeline_of(sim_scenario_at(i), 1, &len),
         *again = timeline_of(sim_scenario_at(i), 1, &again_len);
    assert_int_equal(len, again_len);
    assert_memory_equal(once, again, len);
    free(once);
    free(again);
  }
}

TEST(other_seed_gives_other_timeline) {
  size_t len, other_len;
  char *one = timeline_of(sim_scenario_at(0), 1, &len),
       *other = timeline_of(sim_scenario_at(0), 2, &other_len);
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

/* The machine asserts that impossible transitions do not happen; all others happen here. The
 * rarest one needs allocation failures between two rounds on all servers. */
TEST(every_transition_is_seen) {
  for (uint64_t seed = SEEDS + 1; unseen() > 0 && seed < 20 * SEEDS; seed++)
    run(sim_scenario_at(sim_scenario_find("redlock-memory")), seed);
  if (unseen() > 0)
    sim_report_steps(stdout, &all);
  assert_int_equal(unseen(), 0);
}

TEST(every_fault_happens) {
  for (int i = 0; i < SIM_FAULTS; i++)
    if (all.faults[i] == 0)
      fail_msg("never: %s", sim_fault_texts[i]);
}

TEST_ROWS(scenarios) {
  for (size_t i = 0; i < sim_scenarios_count(); i++)
    test_add(0, no_rule_is_violated, sim_scenario_at(i), "%s", sim_scenario_at(i)->name);
}

TEST_END {
  engine_shutdown();
}

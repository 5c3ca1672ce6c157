/* A Sentinel group under load (support/load/load.h) fails over repeatedly: by request, or
 * because its primary is killed or stopped.
 *
 * - A former holder never writes after its successor: numbers grow, whatever data a failover
 *   lost.
 * - An operation counts once: the new primary has both the count and the record, or neither.
 *   Data that all replicas had before the failover stays. Replication may lose later confirmed
 *   writes; the test prints their number.
 * - No id repeats. The limiter admits at most its bound, and one burst for each loss of its
 *   data.
 * - A client gets a reply of the new primary soon after its Sentinel reported it.
 *
 * BELAY_FAILOVERS in the environment sets the number of failovers; default 5. With it the time
 * limits are strict; without it they allow for a busy machine. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/base/test.h"
#include "support/load/drill.h"
#include "support/deployments/failover_log.h"

enum { RECOVERY_MS = 250 };

typedef struct drill {
  group_t *group;
  failover_log_t *failover_log;
  load_t load;
  unsigned count;                       /* of failovers so far */
  double recovery_ms[DRILLS_MAX];       /* since the subscribed Sentinel has reported, */
  double recovery_first_ms[DRILLS_MAX]; /* and since the first one has */
  drill_gaps_t gaps;
  drill_sum_t sum;
} drill_t;

/* ---- one failover ---- */

static void note_recovery(drill_t *drill) {
  const load_t *load = &drill->load;
  int64_t first = failover_log_first(drill->failover_log),
          own = failover_log_time(drill->failover_log, 0);
  drill->recovery_ms[drill->count] = drill_after(own, load->since);
  drill->recovery_first_ms[drill->count] = drill_after(first, load->since);
}

/* Begun when all is well, and there is a load. */
static void begin(drill_t *drill, const char *name, group_way_t way, uint64_t *safe) {
  group_t *group = drill->group;
  load_begin(&drill->load, name);
  drill_go_on(&drill->load, 100);
  drill_until(&drill->load, group_is_whole(group));
  *safe = drill_rest(&drill->load);
  drill_until(&drill->load, group_is_whole(group)); /* by now all have what was confirmed */
  load_go_on(&drill->load);
  drill_go_on(&drill->load, 100);
  failover_log_reset(drill->failover_log);
  group_begin_fail_over(group, way);
}

static void fail_over(drill_t *drill, group_way_t way) {
  static const char *const names[] = {"asked", "killed", "paused"};
  const load_t *load = &drill->load;
  unsigned n = drill->count;
  char name[32];
  drill_sum_t before = drill->sum;
  uint64_t safe;
  snprintf(name, sizeof name, "n%u", n);
  begin(drill, name, way, &safe);
  drill_until(&drill->load, group_has_failed_over(drill->group));
  drill_until(&drill->load, failover_log_time(drill->failover_log, 0) != 0);
  drill_until(&drill->load, group_primary(drill->group) >= 0);
  server_t *primary = group_node(drill->group, (unsigned)group_primary(drill->group));
  drill_until(&drill->load, drill_is_at(&drill->load, primary));
  note_recovery(drill);
  drill_go_on(&drill->load, 100);
  drill_check_counter(&drill->load, primary, name, safe, &drill->sum);
  drill_note_gap(&drill->gaps, load);
  print_message(
      "# %3u %s: recovered %.1f ms after its Sentinel reported (%.1f after the first one), gap "
      "%.1f ms (by its own fault %.1f more than an idle loop's %.1f), lost %" PRIu64 " of %" PRIu64
      "\n",
      n, names[way], drill->recovery_ms[n], drill->recovery_first_ms[n],
      (double)load->gap_us / 1000, load_gap_ms(load), (double)load->idle_us / 1000,
      drill->sum.lost - before.lost, drill->sum.confirmed - before.confirmed);
  drill->count++;
  group_mend(drill->group);
}

/* ---- what it comes to ---- */

static void judge(drill_t *drill) {
  unsigned n = drill->count;
  (void)drill_print("recovered after the first Sentinel reported", drill->recovery_first_ms, n);
  double slowest = drill_print("recovered after its Sentinel reported", drill->recovery_ms, n);
  drill_judge_gaps(&drill->gaps);
  drill_judge(&drill->load, &drill->sum, n);
  bool strict = drill_is_strict();
  assert_true(slowest <= (strict ? RECOVERY_MS : 20 * RECOVERY_MS * (double)slow()));
}

TEST(load_during_failovers) {
  static const group_way_t ways[] = {GROUP_KILLED, GROUP_PAUSED, GROUP_ASKED};
  static drill_t drill;
  drill.group = group_start(NULL);
  drill.failover_log = failover_log_start(drill.group);
  load_start(&drill.load, group_url(drill.group), REPLICAS_NODES - 1);
  while (drill.count < drill_setting("BELAY_FAILOVERS", 5))
    fail_over(&drill, ways[drill.count % 3]);
  load_end(&drill.load);
  judge(&drill);
  failover_log_stop(drill.failover_log);
  group_stop(drill.group);
}

TEST_ROLE(load_role, LOAD_ROLE) {
  return load_main(argv);
}

/* A cluster under load (support/load/load.h): the shard of slot 0 fails over repeatedly, and
 * slots move to and fro, key by key.
 *
 * - A former holder never writes after its successor. No id repeats. The limiter keeps its
 *   bound.
 * - An operation counts once: the new primary has both the count and the operation's record, or
 *   neither. Data that the replica had before the failover stays. While slots move, no data is
 *   lost and no outcome is unknown.
 * - A client gets a reply of the new primary soon after the promotion.
 *
 * BELAY_FAILOVERS and BELAY_MOVE_SECONDS in the environment set the number of failovers and the
 * seconds of moves; defaults 3 and 5. With BELAY_FAILOVERS the time limits are strict; without
 * it they allow for a busy machine. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/key/slot.h"
#include "support/deployments/cluster.h"
#include "support/base/test.h"
#include "support/load/drill.h"

enum { RECOVERY_MS = 250 };

typedef struct drill {
  cluster_t *cluster;
  load_t load;
  unsigned count;                 /* of failovers so far */
  double recovery_ms[DRILLS_MAX]; /* since the replica serves the slot */
  drill_gaps_t gaps;
  drill_sum_t sum;
} drill_t;

/* ---- the counter ---- */

/* A name of the counter's, whose slot the owner of slot 0 has too. */
static void choose_name(drill_t *drill, unsigned n, char *name, size_t size) {
  for (unsigned i = 0;; i++) {
    snprintf(name, size, "n%u-%u", n, i);
    if (cluster_owner(drill->cluster, belay__slot(name, strlen(name))) ==
        cluster_owner(drill->cluster, 0))
      return;
  }
}

static server_t *owner_of(drill_t *drill, const char *name) {
  int owner = cluster_owner(drill->cluster, belay__slot(name, strlen(name)));
  assert_true(owner >= 0);
  return cluster_node(drill->cluster, (unsigned)owner);
}

/* ---- failovers ---- */

static void fail_over(drill_t *drill, cluster_way_t way) {
  static const char *const names[] = {"asked", "forced", "taken", "killed", "paused"};
  load_t *load = &drill->load;
  char name[32];
  choose_name(drill, drill->count, name, sizeof name);
  load_begin(load, name);
  drill_go_on(load, 100);
  uint64_t safe = drill_rest(load), lost = drill->sum.lost;
  drill_until(load, cluster_is_whole(drill->cluster)); /* the replica has what was confirmed */
  load_go_on(load);
  drill_go_on(load, 100);
  cluster_begin_fail_over(drill->cluster, 0, way);
  drill_until(load, cluster_has_failed_over(drill->cluster));
  int64_t promoted = clock_now();
  server_t *primary = owner_of(drill, name);
  drill_until(load, drill_is_at(load, primary));
  double ms = drill_after(promoted, load->since);
  drill->recovery_ms[drill->count] = ms;
  drill_go_on(load, 100);
  drill_check_counter(load, primary, name, safe, &drill->sum);
  drill_note_gap(&drill->gaps, load);
  print_message("# %3u %s: recovered %.1f ms after the promotion, lost %" PRIu64 "\n", drill->count,
                names[way], ms, drill->sum.lost - lost);
  drill->count++;
  cluster_mend(drill->cluster);
  drill_until(load, cluster_is_whole(drill->cluster));
}

TEST(load_during_failovers) {
  static const char *const used[] = {LOAD_LOCK, LOAD_LIMIT, LOAD_IDS};
  static const cluster_way_t ways[] = {CLUSTER_KILLED, CLUSTER_TAKEN, CLUSTER_ASKED, CLUSTER_FORCED,
                                       CLUSTER_PAUSED};
  static drill_t drill;
  drill.cluster = cluster_start(NULL);
  for (size_t i = 0; i < sizeof used / sizeof *used; i++) /* all of it fails over */
    assert_int_equal(cluster_owner(drill.cluster, cluster_slot(drill.cluster, used[i])), 0);
  load_start(&drill.load, cluster_url(drill.cluster), 1);
  while (drill.count < drill_setting("BELAY_FAILOVERS", 3))
    fail_over(&drill, ways[drill.count % 5]);
  load_end(&drill.load);
  double slowest = drill_print("recovered after the promotion", drill.recovery_ms, drill.count);
  drill_judge_gaps(&drill.gaps);
  drill_judge(&drill.load, &drill.sum, drill.count);
  bool strict = drill_is_strict();
  assert_true(slowest <= (strict ? RECOVERY_MS : 20 * RECOVERY_MS * (double)slow()));
  cluster_stop(drill.cluster);
}

/* ---- slots that move ---- */

/* To the next primary, one key at a time while the load goes on. */
static void move(cluster_t *cluster, load_t *load, unsigned slot) {
  unsigned to = ((unsigned)cluster_owner(cluster, slot) + 1) % 3;
  cluster_move_begin(cluster, slot, to);
  drill_go_on(load, 10);
  for (int i = 0; i < 3; i++) {
    (void)cluster_move_keys(cluster, slot, to, 1);
    drill_go_on(load, 10);
  }
  while (cluster_move_keys(cluster, slot, to, 100) > 0)
    ;
  cluster_move_end(cluster, slot, to);
  drill_go_on(load, 20);
}

TEST(load_during_slot_moves) {
  static drill_t drill;
  drill.cluster = cluster_start(&(cluster_options_t){.without_replicas = true});
  unsigned slots[] = {cluster_slot(drill.cluster, "moves"), cluster_slot(drill.cluster, LOAD_LOCK),
                      cluster_slot(drill.cluster, LOAD_LIMIT)};
  load_start(&drill.load, cluster_url(drill.cluster), 0);
  load_begin(&drill.load, "moves");
  drill_go_on(&drill.load, 100);
  int64_t began = clock_now(), lasts = 1000 * (int64_t)drill_setting("BELAY_MOVE_SECONDS", 5);
  unsigned moves = 0;
  for (; clock_since_ms(began) < lasts; moves++)
    move(drill.cluster, &drill.load, slots[moves % 3]);
  drill_check_counter(&drill.load, owner_of(&drill, "moves"), "moves", 0, &drill.sum);
  load_end(&drill.load);
  print_message("# %u moves\n", moves);
  drill_judge(&drill.load, &drill.sum, 0);
  assert_int_equal(drill.sum.lost, 0);
  assert_int_equal(drill.load.unconfirmed, 0);
  assert_int_equal(drill.load.lost, 0);
  cluster_stop(drill.cluster);
}

TEST_ROLE(load_role, LOAD_ROLE) {
  return load_main(argv);
}

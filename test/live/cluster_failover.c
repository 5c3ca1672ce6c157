/* A cluster while a load (support/load.h) goes on: the shard of slot 0 fails over again and again; and slots move to and
 * fro, key by key.
 *
 *   - Nobody who has lost a lock writes behind his successor; no id comes twice; the limiter keeps its bound.
 *   - What is counted once is counted once: the new primary has both the count and the record of an operation, or
 *     neither; and of what its replica had before the failover began nothing is missing. While slots move nothing is
 *     missing at all, and there is no answer that is not known.
 *
 * BELAY_FAILOVERS and BELAY_MOVE_SECONDS in the environment: how many, and for so long; default 3 and 5. */
#include <inttypes.h>
#include <stdio.h>

#include "core/slot.h"
#include "support/bed.h"
#include "support/cluster.h"
#include "support/load.h"

enum { FAILOVERS_MAX = 1000, PATIENCE_MS = 60000 };

typedef struct drill {
  cluster_t *cluster;
  load_t load;
  unsigned count;                    /* of failovers so far */
  double recovery_ms[FAILOVERS_MAX]; /* since the replica serves the slot */
  uint64_t confirmed, lost;
} drill_t;

static unsigned setting(const char *name, unsigned otherwise) {
  const char *text = getenv(name);
  unsigned n = text == NULL ? otherwise : (unsigned)strtoul(text, NULL, 10);
  return n < FAILOVERS_MAX ? n : FAILOVERS_MAX;
}

#define AWAIT(drill, condition)                                                                    \
  do {                                                                                             \
    int64_t began_ = clock_now();                                                                  \
    while (!(condition)) {                                                                         \
      load_hear(&(drill)->load, 5);                                                                \
      if (clock_since_ms(began_) > PATIENCE_MS * slow())                                           \
        fail_msg("waited in vain for: %s", #condition);                                            \
    }                                                                                              \
  } while (0)

static void go_on_for(drill_t *drill, int64_t ms) {
  int64_t began = clock_now();
  while (clock_since_ms(began) < ms)
    load_hear(&drill->load, 5);
}

static uint64_t rest(drill_t *drill) {
  load_rest(&drill->load);
  AWAIT(drill, drill->load.rests);
  return drill->load.confirmed;
}

/* ---- the counter ---------------------------------------------------------------------------------------- */

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

/* What there is of it, and how many records of operations. */
static void read_counter(server_t *owner, const char *name, uint64_t *value, uint64_t *records) {
  char key[64], pattern[96];
  snprintf(key, sizeof key, "belay::counter::{%s}", name);
  snprintf(pattern, sizeof pattern, "belay::counter::{%s}::once::*", name);
  const char *text = server_string(owner, "GET", key, NULL);
  *value = text == NULL ? 0 : strtoull(text, NULL, 10);
  *records = (uint64_t)server_ask(owner, "KEYS", pattern, NULL)->count;
}

static void check_counter(drill_t *drill, const char *name, uint64_t safe) {
  uint64_t value, records, confirmed = rest(drill);
  read_counter(owner_of(drill, name), name, &value, &records);
  if (value != records || value < safe || value > confirmed)
    fail_msg("%s: %" PRIu64 " counted, %" PRIu64 " records, %" PRIu64 " to %" PRIu64 " confirmed",
             name, value, records, safe, confirmed);
  drill->confirmed += confirmed;
  drill->lost += confirmed - value;
}

static void judge(const drill_t *drill, unsigned forgotten) {
  const load_t *load = &drill->load;
  print_message("# counted: %" PRIu64 " confirmed, %" PRIu64 " lost, %" PRIu64
                " answers were not known; lock: %" PRIu64 " grants, %" PRIu64 " lost; ids: %" PRIu64
                "; limiter: %" PRIu64 " of %" PRIu64 "\n",
                drill->confirmed, drill->lost, load->unconfirmed, load->grants, load->lost,
                load->ids, load->allowed, load->bound);
  assert_int_equal(load->backwards, 0);
  assert_int_equal(load->twins, 0);
  assert_int_equal(load->same_ids, 0);
  assert_true(load->allowed <= load->bound + forgotten * load->burst);
  assert_true(load->grants > 0 && load->ids > 0 && load->allowed > 0);
}

/* ---- failovers ------------------------------------------------------------------------------------------ */

static bool is_at(drill_t *drill) {
  char line[64];
  int owner = cluster_owner(drill->cluster, 0);
  if (owner < 0 || drill->load.server[0] == '\0')
    return false;
  snprintf(line, sizeof line, "run_id:%s", drill->load.server);
  const char *info =
      server_string(cluster_node(drill->cluster, (unsigned)owner), "INFO", "server", NULL);
  return strstr(info, line) != NULL;
}

static void fail_over(drill_t *drill, cluster_way_t way) {
  static const char *const names[] = {"asked", "forced", "taken", "killed", "paused"};
  char name[32];
  choose_name(drill, drill->count, name, sizeof name);
  load_begin(&drill->load, name);
  go_on_for(drill, 100);
  uint64_t safe = rest(drill);
  AWAIT(drill, cluster_is_whole(drill->cluster)); /* the replica has what was confirmed */
  load_go_on(&drill->load);
  go_on_for(drill, 100);
  cluster_begin_fail_over(drill->cluster, 0, way);
  AWAIT(drill, cluster_has_failed_over(drill->cluster));
  int64_t promoted = clock_now();
  AWAIT(drill, is_at(drill));
  int64_t since = drill->load.since;
  double ms = since > promoted ? (double)(since - promoted) / (double)MS : 0;
  drill->recovery_ms[drill->count] = ms;
  go_on_for(drill, 100);
  uint64_t lost = drill->lost;
  check_counter(drill, name, safe);
  print_message("# %3u %s: recovered %.1f ms after the promotion, lost %" PRIu64 "\n", drill->count,
                names[way], ms, drill->lost - lost);
  drill->count++;
  cluster_mend(drill->cluster);
  AWAIT(drill, cluster_is_whole(drill->cluster));
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void test_a_load_survives_failovers(void **state) {
  (void)state;
  static const cluster_way_t ways[] = {CLUSTER_KILLED, CLUSTER_TAKEN, CLUSTER_ASKED, CLUSTER_FORCED,
                                       CLUSTER_PAUSED};
  static drill_t drill;
  drill.cluster = cluster_start(NULL);
  load_start(&drill.load, cluster_url(drill.cluster), 1);
  AWAIT(&drill, is_at(&drill));
  while (drill.count < setting("BELAY_FAILOVERS", 3))
    fail_over(&drill, ways[drill.count % 5]);
  load_end(&drill.load);
  qsort(drill.recovery_ms, drill.count, sizeof drill.recovery_ms[0], compare);
  print_message("# recovered after the promotion: median %.1f, most %.1f ms\n",
                drill.recovery_ms[drill.count / 2], drill.recovery_ms[drill.count - 1]);
  judge(&drill, drill.count);
  cluster_stop(drill.cluster);
}

/* ---- slots that move ------------------------------------------------------------------------------------- */

/* To the next primary, one key at a time while the load goes on. */
static void move(drill_t *drill, unsigned slot) {
  cluster_t *cluster = drill->cluster;
  unsigned to = ((unsigned)cluster_owner(cluster, slot) + 1) % 3;
  cluster_move_begin(cluster, slot, to);
  go_on_for(drill, 10);
  for (int i = 0; i < 3; i++) {
    (void)cluster_move_keys(cluster, slot, to, 1);
    go_on_for(drill, 10);
  }
  while (cluster_move_keys(cluster, slot, to, 100) > 0)
    ;
  cluster_move_end(cluster, slot, to);
  go_on_for(drill, 20);
}

static void test_a_load_survives_moving_slots(void **state) {
  (void)state;
  static drill_t drill;
  drill.cluster = cluster_start(&(cluster_options_t){.without_replicas = true});
  unsigned slots[] = {cluster_slot(drill.cluster, "moves"), cluster_slot(drill.cluster, "door"),
                      cluster_slot(drill.cluster, "all")};
  load_start(&drill.load, cluster_url(drill.cluster), 0);
  load_begin(&drill.load, "moves");
  go_on_for(&drill, 100);
  int64_t began = clock_now(), lasts = 1000 * (int64_t)setting("BELAY_MOVE_SECONDS", 5);
  unsigned moves = 0;
  for (; clock_since_ms(began) < lasts; moves++)
    move(&drill, slots[moves % 3]);
  uint64_t confirmed = rest(&drill), value, records;
  read_counter(owner_of(&drill, "moves"), "moves", &value, &records);
  load_end(&drill.load);
  print_message("# %u moves\n", moves);
  drill.confirmed = confirmed;
  judge(&drill, 0);
  assert_int_equal(value, confirmed);
  assert_int_equal(records, confirmed);
  assert_int_equal(drill.load.unconfirmed, 0);
  assert_int_equal(drill.load.lost, 0);
  cluster_stop(drill.cluster);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_load_survives_failovers),
      cmocka_unit_test(test_a_load_survives_moving_slots),
  };
  if (argc > 1 && strcmp(argv[1], LOAD_ROLE) == 0)
    return load_main(argv);
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A Sentinel group fails over again and again, asked to, or because its primary is killed or stands still, while a load
 * (support/load.h) goes on.
 *
 *   - Nobody who has lost a lock writes behind his successor: numbers grow, whatever a failover has lost.
 *   - What is counted once is counted once: of each operation either the new primary has both the count and the record
 *     of it, or neither. What all replicas had before the failover began is there after it. Between that and what was
 *     confirmed since is what replication, which does not wait, may lose; that is printed.
 *   - No id comes twice, and the limiter allows no more than its bound, and a burst for each time that it has forgotten.
 *   - A client has an answer of the new primary soon after it was told of it by its Sentinel.
 *
 * BELAY_FAILOVERS in the environment: how many; default 5. Then the figures are judged as they are meant: else they may be
 * those of a machine that has others to serve. */
#include <inttypes.h>
#include <stdio.h>

#include "support/bed.h"
#include "support/herald.h"
#include "support/load.h"

enum { FAILOVERS_MAX = 10000, RECOVERY_MS = 250, GAP_US = 5000, PATIENCE_MS = 60000 };

typedef struct drill {
  group_t *group;
  herald_t *herald;
  load_t load;
  unsigned count;                          /* of failovers so far */
  double recovery_ms[FAILOVERS_MAX];       /* since the Sentinel that is listened to has told, */
  double recovery_first_ms[FAILOVERS_MAX]; /* and since the first one has */
  double gap_ms[FAILOVERS_MAX];            /* of the loop, longer than that of an idle one */
  unsigned lossy;           /* failovers that have lost something that was confirmed */
  uint64_t confirmed, lost; /* operations */
} drill_t;

static unsigned failovers(void) {
  const char *text = getenv("BELAY_FAILOVERS");
  unsigned n = text == NULL ? 5 : (unsigned)strtoul(text, NULL, 10);
  return n < FAILOVERS_MAX ? n : FAILOVERS_MAX;
}

static bool is_strict(void) {
  return getenv("BELAY_FAILOVERS") != NULL && slow() == 1;
}

/* ---- waiting ----------------------------------------------------------------------------------------------- */

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

/* All replicas have what is confirmed. */
static uint64_t rest(drill_t *drill) {
  load_rest(&drill->load);
  AWAIT(drill, drill->load.rests);
  return drill->load.confirmed;
}

static bool is_at(drill_t *drill, server_t *server) {
  char line[64];
  const char *info = server_string(server, "INFO", "server", NULL);
  snprintf(line, sizeof line, "run_id:%s", drill->load.server);
  return drill->load.server[0] != '\0' && strstr(info, line) != NULL;
}

/* ---- one failover ------------------------------------------------------------------------------------------- */

/* What the primary has of that counter. */
static void read_counter(server_t *primary, const char *name, uint64_t *value, uint64_t *records) {
  char key[64], pattern[96];
  snprintf(key, sizeof key, "belay::counter::{%s}", name);
  snprintf(pattern, sizeof pattern, "belay::counter::{%s}::once::*", name);
  const char *text = server_string(primary, "GET", key, NULL);
  *value = text == NULL ? 0 : strtoull(text, NULL, 10);
  *records = (uint64_t)server_integer(primary, "EVAL", "return #redis.call('KEYS', ARGV[1])", "0",
                                      pattern, NULL);
}

static void check_counter(drill_t *drill, server_t *primary, const char *name, uint64_t safe) {
  uint64_t value, records, confirmed = rest(drill);
  read_counter(primary, name, &value, &records);
  if (value != records || value < safe || value > confirmed)
    fail_msg("%s: %" PRIu64 " counted, %" PRIu64 " records, %" PRIu64 " to %" PRIu64 " confirmed",
             name, value, records, safe, confirmed);
  drill->confirmed += confirmed;
  drill->lost += confirmed - value;
  drill->lossy += value < confirmed;
  server_do(primary, "EVAL",
            "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('UNLINK', key) end",
            "0", "belay::counter::*", NULL);
}

static double since_ms(int64_t told, int64_t up) {
  return up > told ? (double)(up - told) / (double)MS : 0;
}

static void note_recovery(drill_t *drill) {
  const load_t *load = &drill->load;
  int64_t first = herald_heard_first(drill->herald), own = herald_heard(drill->herald, 0);
  drill->recovery_ms[drill->count] = since_ms(own, load->since);
  drill->recovery_first_ms[drill->count] = since_ms(first, load->since);
}

/* Begun when all is well, and there is a load. */
static void begin(drill_t *drill, const char *name, group_way_t way, uint64_t *safe) {
  group_t *group = drill->group;
  load_begin(&drill->load, name);
  go_on_for(drill, 100);
  AWAIT(drill, group_is_whole(group));
  *safe = rest(drill);
  AWAIT(drill, group_is_whole(group)); /* by now all have what was confirmed */
  load_go_on(&drill->load);
  go_on_for(drill, 100);
  herald_reset(drill->herald);
  group_begin_fail_over(group, way);
}

static void fail_over(drill_t *drill, group_way_t way) {
  static const char *const names[] = {"asked", "killed", "paused"};
  const load_t *load = &drill->load;
  unsigned n = drill->count;
  char name[32];
  uint64_t safe, lost = drill->lost, confirmed = drill->confirmed;
  snprintf(name, sizeof name, "n%u", n);
  begin(drill, name, way, &safe);
  AWAIT(drill, group_has_failed_over(drill->group));
  AWAIT(drill, herald_heard(drill->herald, 0) != 0);
  AWAIT(drill, group_primary(drill->group) >= 0);
  server_t *primary = group_node(drill->group, (unsigned)group_primary(drill->group));
  AWAIT(drill, is_at(drill, primary));
  note_recovery(drill);
  go_on_for(drill, 100);
  check_counter(drill, primary, name, safe);
  drill->gap_ms[n] = (double)load->busy_us / 1000;
  print_message(
      "# %3u %s: recovered %.1f ms after its Sentinel told (%.1f after the first one), gap "
      "%.1f ms (computing %.1f; of an idle loop %.1f), lost %" PRIu64 " of %" PRIu64 "\n",
      n, names[way], drill->recovery_ms[n], drill->recovery_first_ms[n],
      (double)load->gap_us / 1000, drill->gap_ms[n], (double)load->idle_us / 1000,
      drill->lost - lost, drill->confirmed - confirmed);
  drill->count++;
  group_mend(drill->group);
}

/* ---- what it comes to --------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Prints how they are distributed; returns the largest. */
static double print_distribution(const char *what, double *values, unsigned n) {
  qsort(values, n, sizeof *values, compare);
  print_message("# %s: least %.1f, median %.1f, nine in ten %.1f, most %.1f ms\n", what, values[0],
                values[n / 2], values[(n * 9) / 10], values[n - 1]);
  return values[n - 1];
}

static void judge(drill_t *drill) {
  const load_t *load = &drill->load;
  unsigned n = drill->count;
  (void)print_distribution("recovered after the first Sentinel told", drill->recovery_first_ms, n);
  double slowest = print_distribution("recovered after its Sentinel told", drill->recovery_ms, n);
  double busiest = print_distribution("computed without a look at its timers", drill->gap_ms, n);
  print_message("# counted: %" PRIu64 " confirmed, %" PRIu64 " lost by %u of %u failovers, %" PRIu64
                " answers were not known\n",
                drill->confirmed, drill->lost, drill->lossy, n, load->unconfirmed);
  print_message("# lock: %" PRIu64 " grants, %" PRIu64 " lost, %" PRIu64 " writes, %" PRIu64
                " refused as too late\n",
                load->grants, load->lost, load->writes, load->refused);
  print_message("# ids: %" PRIu64 "; limiter: %" PRIu64 " of %" PRIu64 " allowed\n", load->ids,
                load->allowed, load->bound);
  assert_int_equal(load->backwards, 0);
  assert_int_equal(load->twins, 0);
  assert_int_equal(load->same_ids, 0);
  assert_true(load->allowed <= load->bound + n * load->burst);
  assert_true(load->grants > n && load->ids > n && load->allowed > n);
  assert_true(slowest <= (is_strict() ? RECOVERY_MS : 20 * RECOVERY_MS * (double)slow()));
  assert_true(busiest * 1000 <= (double)(GAP_US * slow()) || !is_strict());
}

static void test_a_load_survives_failovers(void **state) {
  (void)state;
  static const group_way_t ways[] = {GROUP_KILLED, GROUP_PAUSED, GROUP_ASKED};
  static drill_t drill;
  drill.group = group_start(NULL);
  drill.herald = herald_start(drill.group);
  load_start(&drill.load, group_url(drill.group), REPLICAS_NODES - 1);
  while (drill.count < failovers())
    fail_over(&drill, ways[drill.count % 3]);
  load_end(&drill.load);
  judge(&drill);
  herald_stop(drill.herald);
  group_stop(drill.group);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_load_survives_failovers)};
  if (argc > 1 && strcmp(argv[1], LOAD_ROLE) == 0)
    return load_main(argv);
  return cmocka_run_group_tests(tests, NULL, NULL);
}

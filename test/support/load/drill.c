#include "support/load/drill.h"
#include "support/base/never.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned drill_setting(const char *name, unsigned otherwise) {
  const char *text = getenv(name);
  unsigned n = text == NULL ? otherwise : (unsigned)strtoul(text, NULL, 10);
  return n < DRILLS_MAX ? n : DRILLS_MAX;
}

bool drill_is_strict(void) {
  return getenv("BELAY_FAILOVERS") != NULL && slow() == 1;
}

void drill_go_on(load_t *load, int64_t ms) {
  int64_t began = clock_now();
  while (clock_since_ms(began) < ms)
    load_read(load, 5);
}

uint64_t drill_rest(load_t *load) {
  load_rest(load);
  drill_until(load, load->rests);
  return load->confirmed;
}

bool drill_is_at(const load_t *load, server_t *server) {
  char line[64];
  const char *info = server_string(server, "INFO", "server", NULL);
  snprintf(line, sizeof line, "run_id:%s", load->server);
  return load->server[0] != '\0' && strstr(info, line) != NULL;
}

double drill_after(int64_t from, int64_t to) {
  return to > from ? (double)(to - from) / (double)MS : 0;
}

static void read_counter(server_t *primary, const char *name, uint64_t *value, uint64_t *records) {
  char key[64], pattern[96];
  snprintf(key, sizeof key, "belay::counter::{%s}", name);
  snprintf(pattern, sizeof pattern, "%s::once::*", key);
  const char *text = server_string(primary, "GET", key, NULL);
  *value = text == NULL ? 0 : strtoull(text, NULL, 10);
  *records = (uint64_t)server_integer(primary, "EVAL", "return #redis.call('KEYS', ARGV[1])", "0",
                                      pattern, NULL);
  server_do(primary, "EVAL",
            "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('UNLINK', key) end",
            "0", "belay::counter::*", NULL);
}

void drill_check_counter(load_t *load, server_t *primary, const char *name, uint64_t safe,
                         drill_sum_t *sum) {
  uint64_t value, records, confirmed = drill_rest(load);
  read_counter(primary, name, &value, &records);
  if (value != records || value < safe || value > confirmed)
    fail_msg("NEVER: %s: %" PRIu64 " counted, %" PRIu64 " records, %" PRIu64 " to %" PRIu64
             " confirmed",
             name, value, records, safe, confirmed);
  sum->confirmed += confirmed;
  sum->lost += confirmed - value;
  sum->lossy += value < confirmed;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double drill_print(const char *what, double *values, unsigned n) {
  qsort(values, n, sizeof *values, compare);
  print_message("# %s: least %.1f, median %.1f, nine in ten %.1f, most %.1f ms\n", what, values[0],
                values[n / 2], values[(n * 9) / 10], values[n - 1]);
  return values[n - 1];
}

void drill_note_gap(drill_gaps_t *gaps, const load_t *load) {
  gaps->longer_ms[gaps->n] = load_gap_ms(load);
  gaps->computed_ms[gaps->n++] = (double)load->busy_us / 1000;
}

void drill_judge_gaps(drill_gaps_t *gaps) {
  (void)drill_print("gaps, longer than an idle loop's", gaps->longer_ms, gaps->n);
  double computed = drill_print("computed at a stretch", gaps->computed_ms, gaps->n);
  double longer = gaps->longer_ms[(gaps->n * 9 - 1) / 10]; /* they are in order now */
  assert_true(!drill_is_strict() ||
              (computed <= DRILL_GAP_MS * slow() && longer <= DRILL_GAP_MS * slow()));
}

void drill_judge(const load_t *load, const drill_sum_t *sum, unsigned forgotten) {
  print_message("# counted: %" PRIu64 " confirmed, %" PRIu64 " lost in %u failovers, %" PRIu64
                " answers were not known\n",
                sum->confirmed, sum->lost, sum->lossy, load->unconfirmed);
  print_message("# lock: %" PRIu64 " grants, %" PRIu64 " lost, %" PRIu64 " writes, %" PRIu64
                " refused as too late\n",
                load->grants, load->lost, load->writes, load->refused);
  print_message("# ids: %" PRIu64 "; limiter: %" PRIu64 " of %" PRIu64 " allowed\n", load->ids,
                load->allowed, load->bound);
  assert_never(load->backwards > 0);
  assert_never(load->twins > 0);
  assert_never(load->same_ids > 0);
  assert_never(load->allowed > load->bound + forgotten * load->burst);
  assert_true(load->grants > forgotten && load->ids > forgotten && load->allowed > forgotten);
}

#include "support/load/faults.h"

#include <stdlib.h>

#include "support/base/clock.h"
#include "support/base/unit.h"

#define RECOVERY_MS 50 /* time for which a node counts as failed after it stood still */
#define AMBUSH_MS 250  /* time for which other nodes stand still in an ambush */

static void leave_it(server_t *server) {
  (void)server;
}

static const struct {
  const char *name;
  void (*strike)(server_t *), (*mend)(server_t *);
  int64_t min_ms, max_ms; /* between the two */
  bool restarts;
} kinds[FAULTS] = {
    [KILLED] = {"killed", server_kill, server_restart, 100, 900, true},
    [STOPPED] = {"stopped", server_pause, server_resume, 100, 1200, false},
    [RESTARTED] = {"restarted", server_restart, leave_it, 0, 0, true},
    [KEPT] = {"restarted with its data", server_restart_keeping, leave_it, 0, 0, true},
};

/* Repeated in this order. Most faults are short, so that at times no node has failed. */
static const fault_t program[] = {KILLED,  STOPPED, STOPPED, RESTARTED, STOPPED,
                                  STOPPED, KEPT,    STOPPED, STOPPED};

faults_t *faults_open(unsigned n, unsigned most, int64_t forgets_ms) {
  faults_t *faults = calloc(1, sizeof *faults);
  assert_true(n <= FAULTS_NODES_MAX);
  faults->n = n;
  faults->most = most;
  faults->forgets_ms = forgets_ms;
  for (unsigned i = 0; i < n; i++)
    faults->node[i].server = server_start(NULL);
  return faults;
}

void faults_close(faults_t *faults) {
  for (unsigned i = 0; i < faults->n; i++)
    server_stop(faults->node[i].server);
  free(faults);
}

static bool has_failed(const node_t *node) {
  return node->away || clock_now() < node->sound_at;
}

static unsigned count_failed(const faults_t *faults) {
  unsigned count = 0;
  for (unsigned i = 0; i < faults->n; i++)
    count += has_failed(&faults->node[i]);
  return count;
}

static void strike(faults_t *faults, node_t *node, fault_t fault) {
  int64_t min = kinds[fault].min_ms, max = kinds[fault].max_ms;
  faults->struck[fault]++;
  node->fault = fault;
  node->away = true;
  kinds[fault].strike(node->server);
  node->back_at = clock_now() + (min + random() % (max - min + 1)) * MS;
}

static void mend(const faults_t *faults, node_t *node) {
  kinds[node->fault].mend(node->server);
  node->away = false;
  int64_t recovery_ms = kinds[node->fault].restarts ? faults->forgets_ms : RECOVERY_MS;
  int64_t sound_at = clock_now() + recovery_ms * MS;
  if (sound_at > node->sound_at) /* it may have stood still after a restart */
    node->sound_at = sound_at;
}

/* Any node, or one of the failed ones; NULL if all of those are away. */
static node_t *choose(faults_t *faults, bool failed) {
  unsigned first = (unsigned)random() % faults->n;
  for (unsigned i = 0; i < faults->n; i++) {
    node_t *node = &faults->node[(first + i) % faults->n];
    if (!node->away && (!failed || has_failed(node)))
      return node;
  }
  return NULL;
}

/* Stops as many nodes as may fail, so that a lock taken meanwhile is on the others only. When
 * they are back, one of the others loses its data: then a second holder would find a majority. */
static void begin_ambush(faults_t *faults) {
  unsigned first = (unsigned)random() % faults->n;
  faults->ambush_at = clock_now();
  for (unsigned i = 0; i < faults->most; i++) {
    node_t *node = &faults->node[(first + i) % faults->n];
    strike(faults, node, STOPPED);
    node->back_at = faults->ambush_at + AMBUSH_MS * MS;
  }
  faults->ambush_on = &faults->node[(first + faults->most) % faults->n];
}

static void end_ambush(faults_t *faults) {
  faults->ambush_at = 0;
  strike(faults, faults->ambush_on, RESTARTED);
}

bool faults_strike(faults_t *faults) {
  unsigned failed = count_failed(faults);
  bool full = failed >= faults->most;
  node_t *node = choose(faults, full);
  if (node == NULL || faults->ambush_at != 0)
    return false;
  if (failed == 0)
    begin_ambush(faults);
  else if (full)
    strike(faults, node, STOPPED);
  else
    strike(faults, node, program[faults->step++ % (sizeof program / sizeof *program)]);
  assert_true(count_failed(faults) <= faults->most);
  return true;
}

void faults_mend(faults_t *faults, bool all) {
  for (unsigned i = 0; i < faults->n; i++)
    if (faults->node[i].away && (all || clock_now() >= faults->node[i].back_at))
      mend(faults, &faults->node[i]);
  if (faults->ambush_at != 0 && count_failed(faults) == 0)
    end_ambush(faults);
}

void faults_tell(const faults_t *faults) {
  print_message("nodes:");
  for (int k = 0; k < FAULTS; k++)
    print_message("%s %u %s", k > 0 ? "," : "", faults->struck[k], kinds[k].name);
  print_message("\n");
}

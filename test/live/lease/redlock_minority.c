/* Four processes use a lock on five nodes, and a minority of the nodes is always failing. There
 * are never two holders at a time, fencing numbers grow, and every process makes progress.
 *
 * The processes run this program in another role. They write the times in which they believe to
 * hold the lock into shared memory, and the test judges these at the end. Meanwhile it makes
 * nodes and processes fail. A node that lost its data counts as failed until its quarantine is
 * over.
 *
 * BELAY_SOAK_SECONDS in the environment sets the duration. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/load/believer.h"
#include "support/base/clock.h"
#include "support/load/faults.h"
#include "support/base/never.h"
#include "support/servers/process.h"
#include "support/base/test.h"

enum {
  PROCESSES = BELIEVERS,
  NODES = BELIEVER_NODES,
  MINORITY = NODES / 2,
  SECONDS = 14,  /* unless the environment says otherwise */
  GRANTS = 1000, /* that a process has room for, each second */
  TTL_MS = BELIEVER_TTL_MS,
  MAX_TTL_MS = BELIEVER_MAX_TTL_MS,
  /* The longest ttl and its drift; a server tells its uptime in whole seconds, which may cost
   * two; and somebody has to ask it. */
  QUARANTINE_MS = MAX_TTL_MS + MAX_TTL_MS / 100 + 2 + 2000 + 300,
  FAULT_EVERY_MS = 1000,
  PAUSE_EVERY_MS = 1300, /* at most, after the last one */
  START_MS = 15000,      /* until everybody has held it once, at most */
  GAP_MS = 10000,        /* without a grant to anybody, at most; the machine may be busy */
  OWN_GAP_MS = 20000,    /* to this one */
  STORMS = 4,            /* in each of which a majority forgets everything */
  STORM_EVERY_MS = 400
};

typedef struct stage {
  faults_t *faults;
  process_t process[PROCESSES];
  int fd; /* descriptor of the shared memory */
  size_t size;
  unsigned pauses;
  int paused;                /* a process; -1: none */
  int64_t pause_at, wake_at; /* when the next one is stopped; when it is continued */
} stage_t;

static shared_t *shared;

static void start_contenders(stage_t *stage) {
  char fd[12], size[24], number[12];
  snprintf(fd, sizeof fd, "%d", stage->fd);
  snprintf(size, sizeof size, "%zu", stage->size);
  for (int i = 0; i < PROCESSES; i++) {
    snprintf(number, sizeof number, "%d", i);
    const char *argv[] = {process_self(), "--believer", fd, size, number, NULL};
    stage->process[i] = process_start(argv);
  }
}

static stage_t *stage_open(belay_quarantine_t quarantine, const int *weight, int64_t seconds) {
  needs_quorum();
  stage_t *stage = calloc(1, sizeof *stage);
  unsigned room = (unsigned)seconds * GRANTS;
  stage->size = sizeof(shared_t) + PROCESSES * room * sizeof(belief_t);
  stage->fd = memfd_create("shared", 0);
  stage->paused = -1;
  assert_int_equal(ftruncate(stage->fd, (off_t)stage->size), 0);
  shared = believer_share(stage->fd, stage->size);
  shared->quarantine = quarantine;
  shared->room = room;
  memcpy(shared->weight, weight, sizeof shared->weight);
  srandom((unsigned)getpid());
  stage->faults = faults_open(NODES, MINORITY, QUARANTINE_MS);
  for (int i = 0; i < NODES; i++)
    snprintf(shared->url[i], sizeof shared->url[i], "%s",
             server_url(stage->faults->node[i].server));
  start_contenders(stage);
  return stage;
}

/* Until each of them has held it. */
static void await_everybody(void) {
  int64_t began = clock_now();
  for (int i = 0; i < PROCESSES; i++)
    while (atomic_load(&shared->diary[i].count) == 0) {
      if (clock_since_ms(began) > START_MS * slow())
        fail_msg("process %d has had nothing since the start", i);
      stall_ms(5);
    }
}

static void let_contenders_end(stage_t *stage) {
  atomic_store(&shared->over, true);
  for (int i = 0; i < PROCESSES; i++)
    assert_int_equal(process_wait(&stage->process[i]), 0);
}

static void stage_close(stage_t *stage) {
  faults_close(stage->faults);
  munmap(shared, stage->size);
  close(stage->fd);
  free(stage);
}

/* The process that believes to hold the lock, if it has since then; -1: none. */
static int believer_since(int64_t since) {
  for (int i = 0; i < PROCESSES; i++)
    if (atomic_load(&shared->diary[i].since) >= since &&
        atomic_load(&shared->diary[i].believes) > clock_now())
      return i;
  return -1;
}

/* Any process; every other time the one that holds the lock; in an ambush whoever has got it
 * meanwhile.
 * -1: none now. */
static int choose_process(const stage_t *stage) {
  if (stage->faults->ambush_at != 0)
    return believer_since(stage->faults->ambush_at);
  if (clock_now() < stage->pause_at)
    return -1;
  int holder = stage->pauses % 2 == 0 ? believer_since(0) : -1;
  return holder >= 0 ? holder : (int)(random() % PROCESSES);
}

/* It stands still for longer than its lease. */
static void pause_process(stage_t *stage, int i) {
  process_kill(&stage->process[i], SIGSTOP);
  stage->paused = i;
  stage->pauses++;
  stage->wake_at = clock_now() + (TTL_MS + TTL_MS / 5 + random() % TTL_MS) * MS;
}

static void wake_process(stage_t *stage) {
  process_kill(&stage->process[stage->paused], SIGCONT);
  stage->paused = -1;
  stage->pause_at = clock_now() + random() % PAUSE_EVERY_MS * MS;
}

static void disturb(stage_t *stage, int64_t seconds) {
  int64_t began = clock_now(), strike_at = began;
  while (clock_since_ms(began) < seconds * 1000) {
    faults_mend(stage->faults, false);
    if (clock_now() >= strike_at && faults_strike(stage->faults))
      strike_at += FAULT_EVERY_MS * MS;
    if (stage->paused >= 0 && clock_now() >= stage->wake_at)
      wake_process(stage);
    int i = stage->paused < 0 ? choose_process(stage) : -1;
    if (i >= 0)
      pause_process(stage, i);
    stall_ms(2);
  }
  faults_mend(stage->faults, true);
  if (stage->paused >= 0)
    wake_process(stage);
}

/* Moves the grants of all processes together and sorts them: expect_progress() comes first. */
static verdict_t judge_all(void) {
  size_t count = 0;
  belief_t *all = shared->belief;
  for (int i = 0; i < PROCESSES; i++) {
    unsigned n = atomic_load(&shared->diary[i].count);
    memmove(all + count, shared->belief + (size_t)i * shared->room, n * sizeof *all);
    count += n;
  }
  return belief_judge(all, count);
}

/* Each process by itself: it was granted the lock again and again, to the end. */
static void expect_progress(int i, int64_t seconds, int64_t end) {
  unsigned count = atomic_load(&shared->diary[i].count);
  belief_t *own = shared->belief + (size_t)i * shared->room;
  verdict_t verdict = belief_judge(own, count);
  print_message("process %d: %u grants, at most %lld ms apart; ", i, count,
                (long long)(verdict.longest_gap / MS));
  believer_tell(&shared->diary[i]);
  assert_true(count >= seconds / 4);
  assert_true(verdict.longest_gap <= OWN_GAP_MS * slow() * MS);
  assert_true(end - own[count - 1].from <= OWN_GAP_MS * slow() * MS);
}

static int64_t seconds_to_soak(void) {
  const char *seconds = getenv("BELAY_SOAK_SECONDS");
  return seconds != NULL && atoi(seconds) > 0 ? atoi(seconds) : SECONDS;
}

TEST(failing_minority_exclusion) {
  static const int weight[MANNERS] = {90, 2, 3, 3, 2};
  int64_t seconds = seconds_to_soak();
  stage_t *stage = stage_open(BELAY_QUARANTINE_ON, weight, seconds + 60);
  await_everybody();
  disturb(stage, seconds);
  int64_t end = clock_now();
  let_contenders_end(stage);
  faults_tell(stage->faults);
  print_message("in %lld s; processes: %u stopped\n", (long long)seconds, stage->pauses);
  for (int i = 0; i < PROCESSES; i++)
    expect_progress(i, seconds, end);
  verdict_t verdict = judge_all();
  print_message("grants at most %lld ms apart, %zu overlaps, %zu numbers that did not grow\n",
                (long long)(verdict.longest_gap / MS), verdict.overlaps, verdict.ungrown);
  belief_accuse(&verdict);
  assert_never(verdict.overlaps > 0);
  assert_never(verdict.ungrown > 0);
  assert_true(verdict.longest_gap <= GAP_MS * slow() * MS);
  stage_close(stage);
}

TEST(checker_finds_two_holders) {
  /* long holds, so that a storm meets a holder */
  static const int weight[MANNERS] = {0, 1, 0, 0, 0};
  stage_t *stage = stage_open(BELAY_QUARANTINE_OFF, weight, 60);
  await_everybody();
  for (int i = 0; i < STORMS; i++) {
    for (int k = 0; k <= MINORITY; k++)
      server_restart(stage->faults->node[(i + k) % NODES].server);
    stall_ms(STORM_EVERY_MS);
  }
  let_contenders_end(stage);
  verdict_t verdict = judge_all();
  print_message("%d times a majority forgot: %zu overlaps\n", STORMS, verdict.overlaps);
  assert_true(verdict.overlaps > 0);
  stage_close(stage);
}

TEST(checker_finds_violations) {
  enum { MOST = 4 };
  static const struct {
    const char *what;
    belief_t belief[MOST]; /* up to one without a fence */
    size_t overlaps, ungrown;
    int64_t longest_gap;
  } cases[] = {
      {"nothing", {{0, 0, 0, 0}}, 0, 0, 0},
      {"one", {{10, 20, 1, 0}}, 0, 0, 0},
      {"one after the other", {{10, 20, 1, 0}, {20, 25, 2, 1}, {30, 40, 9, 0}}, 0, 0, 10},
      {"in any order", {{30, 40, 9, 0}, {10, 20, 1, 0}, {20, 25, 2, 1}}, 0, 0, 10},
      {"a bit too early", {{10, 20, 1, 0}, {19, 25, 2, 1}}, 1, 0, 9},
      {"both at once", {{10, 20, 1, 0}, {10, 20, 2, 1}}, 1, 0, 0},
      {"one inside of another", {{10, 90, 1, 0}, {20, 30, 2, 1}, {40, 50, 3, 2}}, 2, 0, 20},
      {"with itself", {{10, 20, 1, 0}, {15, 25, 2, 0}}, 1, 0, 5},
      {"the same number twice", {{10, 20, 7, 0}, {30, 40, 7, 1}}, 0, 1, 20},
      {"a smaller number", {{10, 20, 7, 0}, {30, 40, 6, 1}, {50, 60, 7, 2}}, 0, 2, 20},
      {"both", {{10, 20, 7, 0}, {12, 14, 3, 1}}, 1, 1, 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    belief_t beliefs[MOST];
    size_t count = 0;
    memcpy(beliefs, cases[i].belief, sizeof beliefs);
    while (count < MOST && beliefs[count].fence != 0)
      count++;
    verdict_t verdict = belief_judge(beliefs, count);
    if (verdict.overlaps != cases[i].overlaps || verdict.ungrown != cases[i].ungrown ||
        verdict.longest_gap != cases[i].longest_gap ||
        (verdict.wrong != NULL) != (verdict.overlaps + verdict.ungrown > 0))
      fail_msg("misjudged: %s", cases[i].what);
  }
}

TEST_ROLE(believer, "--believer") {
  return believer_run(argv[2], argv[3], argv[4]);
}

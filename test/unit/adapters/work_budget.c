/* The work budget: a limit of work per turn of the loop, in order. */
#include <stdlib.h>
#include <string.h>

#include "support/base/test.h"
#include "uv/host.h"

#define MICROSECOND UINT64_C(1000)

typedef struct work {
  belay__job_t job;
  uint64_t takes;
  struct work *leaves; /* takes that one out again; NULL: none */
  unsigned number;
  bool again; /* queues itself once more */
} work_t;

static belay__host_t host;
static uint64_t now;
static unsigned done[64], done_len, woken;

static uint64_t host_now(belay_t *belay) {
  (void)belay;
  return now;
}

static bool never_forked(const belay_t *belay) {
  (void)belay;
  return false;
}

static void wake_at(belay_t *belay, uint64_t when) {
  (void)belay;
  (void)when;
}

static void wake_soon(belay_t *belay) {
  (void)belay;
  woken++;
}

static const belay__host_ops_t ops = {
    .now = host_now, .forked = never_forked, .wake_at = wake_at, .wake_soon = wake_soon};

static void work(belay__job_t *job) {
  work_t *w = BELAY__CONTAINER(job, work_t, job);
  now += w->takes;
  done[done_len++] = w->number;
  if (w->leaves != NULL)
    belay__work_budget_leave(&host.work_budget, &w->leaves->job);
  if (w->again)
    belay__work_budget_queue(&host.work_budget, &w->job);
  w->again = false;
}

static void begin(void) {
  belay_options_t options;
  belay_options_init(&options);
  memset(&host, 0, sizeof host);
  now = 1000 * BELAY__MS;
  done_len = woken = 0;
  belay__init(&host.base, &ops, &options);
  belay__work_budget_init(&host.work_budget, &host.base, &host.turns);
}

/* One turn of the loop with `events` events. Returns the number of steps that ran. */
static unsigned turn(unsigned events) {
  unsigned before = done_len;
  host.turns++;
  for (unsigned i = 0; i < events; i++) {
    belay__enter(&host.base);
    belay__leave(&host.base);
  }
  return done_len - before;
}

static void queue(work_t *works, unsigned n, uint64_t takes) {
  for (unsigned i = 0; i < n; i++) {
    works[i] = (work_t){.number = i, .takes = takes};
    belay__job_init(&works[i].job, work);
    belay__work_budget_queue(&host.work_budget, &works[i].job);
  }
}

TEST(turn_budget_is_a_millisecond) {
  begin();
  work_t works[10];
  queue(works, 10, 300 * MICROSECOND);
  assert_int_equal(woken, 1);
  /* three steps take less than a millisecond, so the fourth runs */
  for (unsigned i = 0; i < 2; i++)
    assert_int_equal(turn(1), 4);
  assert_int_equal(turn(1), 2);
  assert_int_equal(turn(1), 0);
  for (unsigned i = 0; i < 10; i++)
    assert_int_equal(done[i], i);
}

TEST(many_events_share_the_budget) {
  begin();
  work_t works[10];
  queue(works, 10, 300 * MICROSECOND);
  assert_int_equal(turn(50), 4);
  assert_int_equal(turn(50), 4);
  assert_int_equal(turn(50), 2);
}

TEST(later_jobs_use_the_rest) {
  begin();
  work_t works[3], more[10];
  queue(works, 2, 300 * MICROSECOND);
  assert_int_equal(turn(1), 2);
  queue(more, 10, 300 * MICROSECOND);
  host.turns--;
  assert_int_equal(turn(2), 2);
  assert_int_equal(turn(1), 4);
}

TEST(long_job_has_its_own_turn) {
  begin();
  work_t works[3];
  queue(works, 3, 5 * BELAY__MS);
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal(turn(3), 1);
}

TEST(removed_job_does_not_run) {
  begin();
  work_t works[6];
  queue(works, 6, 1);
  belay__work_budget_leave(&host.work_budget, &works[0].job);
  belay__work_budget_leave(&host.work_budget, &works[0].job);
  works[1].leaves = &works[2]; /* while the gate is at it */
  works[4].leaves = &works[5];
  belay__work_budget_queue(&host.work_budget, &works[3].job); /* is queued already */
  assert_int_equal(turn(1), 3);
  assert_int_equal(done[0], 1);
  assert_int_equal(done[1], 3);
  assert_int_equal(done[2], 4);

  queue(works, 2, 1); /* without entries no wake-up remains */
  belay__work_budget_leave(&host.work_budget, &works[0].job);
  assert_int_equal(host.base.tasks_len, 1);
  belay__work_budget_leave(&host.work_budget, &works[1].job);
  assert_int_equal(host.base.tasks_len, 0);
}

TEST(requeued_job_goes_last) {
  begin();
  work_t works[4];
  queue(works, 4, 500 * MICROSECOND);
  works[0].again = true;
  assert_int_equal(turn(1), 2);
  assert_int_equal(turn(1), 2);
  assert_int_equal(turn(1), 1);
  assert_int_equal(done[3], 3);
  assert_int_equal(done[4], 0);
}

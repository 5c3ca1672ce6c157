/* The connect limiter: a number of slots per second, in order, and none for callers that have
 * left. */
#include <string.h>

#include "support/base/test.h"
#include "uv/host.h"

enum { PER_S = 200, AT_ONCE = PER_S / 5 + 1, ENTRIES = 500 };

typedef struct entry {
  belay__connect_slot_t turn;
  struct entry *leaves; /* the entry that leaves when this one gets its slot; NULL: none */
  bool again;           /* true: it queues again */
} entry_t;

static belay__host_t host;
static uint64_t now;
static entry_t entries[ENTRIES], *came[2 * ENTRIES];
static unsigned count;

static uint64_t host_now(belay_t *belay) {
  (void)belay;
  return now;
}

static bool never_forked(const belay_t *belay) {
  (void)belay;
  return false;
}

static void wake_at(belay_t *belay, uint64_t at) {
  (void)belay;
  (void)at;
}

static const belay__host_ops_t ops = {.now = host_now, .forked = never_forked, .wake_at = wake_at};

static void come(belay__connect_slot_t *turn) {
  entry_t *entry = BELAY__CONTAINER(turn, entry_t, turn);
  assert_false(belay__connect_slot_is_awaited(turn));
  came[count++] = entry;
  if (entry->leaves != NULL)
    belay__connect_limiter_leave(&host.connect_limiter, &entry->leaves->turn);
  if (entry->again)
    belay__connect_limiter_queue(&host.connect_limiter, turn, false);
  entry->again = false;
}

static void begin(void) {
  belay_options_t options;
  belay_options_init(&options);
  options.reconnects_per_s = PER_S;
  memset(&host, 0, sizeof host);
  now = 1000 * BELAY__MS;
  count = 0;
  belay__init(&host.base, &ops, &options);
  belay__connect_limiter_init(&host.connect_limiter, &host.base);
  for (unsigned i = 0; i < ENTRIES; i++) {
    entries[i] = (entry_t){.leaves = NULL};
    belay__connect_slot_init(&entries[i].turn, come);
  }
}

static void queue(unsigned from, unsigned to, bool ahead) {
  for (unsigned i = from; i < to; i++)
    belay__connect_limiter_queue(&host.connect_limiter, &entries[i].turn, ahead);
}

/* A while; how many turns have come since it began. */
static unsigned run(unsigned ms) {
  unsigned before = count;
  for (unsigned i = 0; i <= ms; i++) {
    belay__enter(&host.base);
    belay__leave(&host.base);
    now += i < ms ? BELAY__MS : 0;
  }
  return count - before;
}

static void assert_came(unsigned at, unsigned entry) {
  assert_ptr_equal(came[at], &entries[entry]);
}

static void assert_nobody_waits(void) {
  assert_false(belay__timer_is_set(&host.connect_limiter.timer));
}

TEST(rate_is_limited) {
  begin();
  queue(0, ENTRIES, false);
  assert_int_equal(count, 0); /* from the loop only */
  assert_int_equal(run(0), AT_ONCE);
  assert_int_equal(run(1000), PER_S);
  (void)run(1000 * (ENTRIES - AT_ONCE) / PER_S - 1000);
  assert_int_equal(count, ENTRIES);
  for (unsigned i = 0; i < ENTRIES; i++)
    assert_came(i, i);
  assert_nobody_waits();
}

TEST(burst_is_limited) {
  begin();
  queue(0, ENTRIES, false);
  assert_int_equal(run(0), AT_ONCE);
  now += 10000 * BELAY__MS;
  assert_int_equal(run(0), AT_ONCE);
  for (unsigned i = 0; i < count; i++)
    assert_came(i, i);
}

TEST(leaving_frees_a_slot) {
  begin();
  queue(0, ENTRIES - 1, false);
  assert_int_equal(run(0), AT_ONCE);
  for (unsigned i = AT_ONCE; i < ENTRIES - 1; i++) {
    belay__connect_limiter_leave(&host.connect_limiter, &entries[i].turn);
    belay__connect_limiter_leave(&host.connect_limiter, &entries[i].turn);
  }
  assert_nobody_waits();
  queue(ENTRIES - 1, ENTRIES, false);
  assert_int_equal(run(1000 / PER_S), 1);
  assert_came(AT_ONCE, ENTRIES - 1);
  assert_nobody_waits();
}

TEST(discovery_goes_first) {
  begin();
  queue(0, 100, false);
  assert_int_equal(run(0), AT_ONCE);
  queue(100, 103, true);
  queue(50, 51, true); /* is queued already */
  assert_int_equal(run(1000), 100 + 3 - AT_ONCE);
  for (unsigned i = 0; i < 3; i++)
    assert_came(AT_ONCE + i, 100 + i);
  for (unsigned i = AT_ONCE; i < 100; i++)
    assert_came(3 + i, i);
}

TEST(callbacks_change_the_queue) {
  begin();
  queue(0, 3, false);
  entries[0].leaves = &entries[1];
  entries[0].again = true;
  entries[2].leaves = &entries[0];
  assert_int_equal(run(1000), 2);
  assert_came(0, 0);
  assert_came(1, 2);
  assert_nobody_waits();
  entries[0].leaves = NULL;
  entries[0].again = true; /* a single entry gets the next slot, too */
  queue(0, 1, false);
  assert_int_equal(run(1000), 2);
  assert_nobody_waits();
}

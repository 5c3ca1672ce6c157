/* Writes: commands of one turn of the loop leave together. */
#include <stdio.h>

#include "support/fixtures/env.h"
#include "support/load/cycles.h"

enum { PART = 4 }; /* calls of one script from which on they travel as one command */

static contender_t *named(env_t *env, unsigned number) {
  char name[16];
  (void)snprintf(name, sizeof name, "%u", number);
  return contender_new(env, name, NULL);
}

/* The batch of releases is complete at the end of the turn. It leaves in the write of the acquires,
 * which were in the buffer before. */
ENV_TEST(batch_leaves_with_single_commands) {
  contender_t *released[PART], *acquired[PART];
  for (unsigned i = 0; i < PART; i++) {
    released[i] = named(env, i);
    acquired[i] = named(env, PART + i);
    assert_error(try_lock(released[i]), 0);
  }
  assert_error(try_lock(acquired[0]), 0); /* its script is known, too: */
  assert_error(release(acquired[0]), 0);
  belay_client_stats_t before = client_stats(env);
  for (unsigned i = 0; i < PART; i++)
    assert_ok(begin_acquire(acquired[i], 0), begin_release(released[i]));
  for (unsigned i = 0; i < PART; i++) {
    assert_error(outcome(acquired[i]), 0);
    assert_error(outcome(released[i]), 0);
  }
  belay_client_stats_t after = client_stats(env);
  assert_int_equal(after.batched - before.batched, PART);
  assert_int_equal(after.writes - before.writes, 1);
}

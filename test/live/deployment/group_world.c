/* The Sentinel groups that other tests stand on: they start, fail over and heal. */
#include "support/base/clock.h"
#include "support/deployments/group.h"
#include "support/base/test.h"

static void fail_over_and_heal(group_t *group, group_way_t way) {
  int old = group_primary(group);
  unsigned primary = group_fail_over(group, way);
  assert_int_not_equal(primary, old);
  group_mend(group);
  group_wait(group);
  assert_int_equal(group_primary(group), primary);
  assert_false(server_is_primary(group_node(group, (unsigned)old)));
}

TEST_ON(fails_over_and_heals, group, group_start(NULL)) {
  assert_int_equal(group_primary(group), 0);
  server_do(group_node(group, 0), "SET", "here", "1", NULL);
  replicas_wait(group_replicas(group), 0);
  fail_over_and_heal(group, GROUP_ASKED);
  fail_over_and_heal(group, GROUP_KILLED);
  fail_over_and_heal(group, GROUP_PAUSED);
  for (unsigned i = 0; i < REPLICAS_NODES; i++)
    assert_int_equal(server_keys(group_node(group, i)), 1);
}

/* Two of three Sentinels are enough; and everybody has a password. */
TEST(sentinel_dies) {
  const group_options_t options = {.nodes = {.password = "secret"}, .sentinel_password = "watch"};
  group_t *group = group_start(&options);
  server_kill(group_sentinel(group, 0));
  server_pause(group_sentinel(group, 1));
  assert_int_equal(group_primary(group), 0);
  server_resume(group_sentinel(group, 1));
  unsigned primary = group_fail_over(group, GROUP_KILLED);
  assert_false(group_is_whole(group));
  group_mend(group);
  group_wait(group);
  assert_int_equal(group_primary(group), primary);
  group_stop(group);
}

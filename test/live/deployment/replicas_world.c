/* The replicated test servers start and obey the commands of the tests. */
#include "support/deployments/replicas.h"
#include "support/base/test.h"

TEST(manual_promotion) {
  const replicas_options_t options = {.password = "secret"};
  replicas_t *replicas = replicas_start(&options);
  assert_true(server_is_primary(replicas_node(replicas, 0)));
  server_do(replicas_node(replicas, 0), "SET", "here", "1", NULL);
  replicas_wait(replicas, 0);
  replicas_promote(replicas, 1);
  replicas_wait(replicas, 1);
  assert_false(server_is_primary(replicas_node(replicas, 0)));
  server_kill(replicas_node(replicas, 1));
  assert_false(replicas_are_in_line(replicas, 1));
  replicas_promote(replicas, 2);
  replicas_revive(replicas, 1, 2);
  replicas_wait(replicas, 2);
  for (unsigned i = 0; i < REPLICAS_NODES; i++)
    assert_int_equal(server_keys(replicas_node(replicas, i)), 1);
  replicas_stop(replicas);
}

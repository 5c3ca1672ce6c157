/* A client of a cluster: calls find their way, while it is whole, and while slots and primaries change. */
#include "support/bed.h"
#include "support/cluster.h"

#define NAMES 40

/* Takes and gives back locks of many names, which are in slots of all nodes. */
static void take_all(bed_t *bed) {
  contender_t *all[NAMES];
  char name[16];
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "lock-%d", i);
    all[i] = contender_new(bed, name, NULL);
    assert_int_equal(begin_acquire(all[i], 1000), 0);
  }
  for (int i = 0; i < NAMES; i++)
    assert_int_equal(outcome(all[i]), 0);
  for (int i = 0; i < NAMES; i++)
    assert_int_equal(release(all[i]), 0);
  for (int i = 0; i < NAMES; i++)
    assert_int_equal(close_lock(all[i]), 0);
}

static void test_calls_find_their_node(void **state) {
  (void)state;
  cluster_t *cluster = cluster_start(&(cluster_options_t){.without_replicas = true});
  bed_t *bed = bed_open_at(cluster_url(cluster), NULL);
  take_all(bed);
  for (unsigned i = 0; i < 3; i++)
    assert_true(server_calls(cluster_node(cluster, i), "set") > 0);
  bed_close(bed);
  cluster_stop(cluster);
}

static void test_a_slot_moves(void **state) {
  (void)state;
  cluster_t *cluster = cluster_start(&(cluster_options_t){.without_replicas = true});
  bed_t *bed = bed_open_at(cluster_url(cluster), NULL);
  contender_t *holder = contender_new(bed, "moves", NULL);
  assert_int_equal(acquire(holder, 1000), 0);
  unsigned slot = cluster_slot(cluster, key_of(holder));
  int owner = cluster_owner(cluster, slot);
  cluster_move(cluster, slot, (unsigned)(owner + 1) % 3);
  assert_int_equal(extend(holder, 10000), 0);
  assert_int_equal(release(holder), 0);
  bed_close(bed);
  cluster_stop(cluster);
}

static void test_a_primary_dies(void **state) {
  (void)state;
  cluster_t *cluster = cluster_start(NULL);
  bed_t *bed = bed_open_at(cluster_url(cluster), NULL);
  take_all(bed);
  cluster_fail_over(cluster, 0, CLUSTER_KILLED);
  take_all(bed);
  bed_close(bed);
  cluster_stop(cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calls_find_their_node),
      cmocka_unit_test(test_a_slot_moves),
      cmocka_unit_test(test_a_primary_dies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A client of a cluster: calls find their node, whatever nodes call themselves and whatever they refuse to tell. */
#include <stdio.h>

#include "support/acl.h"
#include "support/bed.h"
#include "support/cluster.h"

#define NAMES 40

static cluster_options_t three(void) {
  return (cluster_options_t){.without_replicas = true};
}

/* Takes and gives back locks of many names, which are in slots of all nodes; how many were taken. */
static int take_all(bed_t *bed) {
  contender_t *all[NAMES];
  char name[16];
  int taken = 0;
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "lock-%d", i);
    all[i] = contender_new(bed, name, NULL);
    assert_error(begin_acquire(all[i], 20000), 0);
  }
  for (int i = 0; i < NAMES; i++)
    taken += outcome(all[i]) == 0;
  for (int i = 0; i < NAMES; i++)
    if (all[i]->status == 0)
      assert_error(release(all[i]), 0);
  for (int i = 0; i < NAMES; i++)
    assert_error(close_lock(all[i]), 0);
  return taken;
}

static void expect_all_used(cluster_t *cluster) {
  for (unsigned i = 0; i < cluster_size(cluster); i++)
    assert_true(server_calls(cluster_node(cluster, i), "set") > 0);
}

static void use(const cluster_options_t *options) {
  cluster_t *cluster = cluster_start(options);
  bed_t *bed = bed_open_at(cluster_url(cluster), NULL);
  assert_int_equal(take_all(bed), NAMES);
  expect_all_used(cluster);
  assert_int_equal(client_stats(bed).unknown, 0);
  bed_close(bed);
  cluster_stop(cluster);
}

static void test_calls_find_their_node(void **state) {
  (void)state;
  cluster_options_t options = three();
  use(&options);
}

static void test_nodes_are_named(void **state) {
  (void)state;
  cluster_options_t options = three();
  options.hostname = "localhost";
  options.endpoints = "hostname";
  use(&options);
}

static void test_nodes_do_not_tell_where_they_are(void **state) {
  (void)state;
  cluster_options_t options = three();
  options.endpoints = "unknown-endpoint";
  use(&options);
}

/* ---- passwords ----------------------------------------------------------------------------------------- */

static void test_the_password_is_for_all_nodes(void **state) {
  (void)state;
  cluster_options_t options = three();
  options.password = "secret";
  use(&options);
}

static void test_no_node_lets_us_in(void **state) {
  (void)state;
  cluster_options_t options = three();
  options.password = "secret";
  cluster_t *cluster = cluster_start(&options);
  belay_client_options_t wrong = client_options();
  wrong.password = "guess";
  wrong.reconnect_max_ms = 200;
  bed_t *bed = bed_open_at(cluster_url(cluster), &wrong);
  contender_t *c = contender_new(bed, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EAUTH);
  assert_true(clock_since_ms(began) < 1500 * slow()); /* at once, not at the deadline */
  assert_error(try_lock(c), BELAY_EAUTH);
  for (unsigned i = 0; i < 3; i++)
    server_do(cluster_node(cluster, i), "CONFIG", "SET", "requirepass", "guess", NULL);
  for (began = clock_now(); try_lock(c) != 0 && clock_since_ms(began) < 10000 * slow();)
    bed_run_for(bed, 20);
  assert_error(c->status, 0);
  bed_close(bed);
  cluster_stop(cluster);
}

/* What is elsewhere is served. */
static void test_one_node_does_not_let_us_in(void **state) {
  (void)state;
  cluster_options_t options = three();
  options.password = "secret";
  cluster_t *cluster = cluster_start(&options);
  server_do(cluster_node(cluster, 0), "CONFIG", "SET", "requirepass", "another", NULL);
  bed_t *bed = bed_open_at(cluster_url(cluster), NULL);
  contender_t *all[NAMES];
  char name[16];
  int refused = 0;
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "lock-%d", i);
    all[i] = contender_new(bed, name, NULL);
    int status = try_lock(all[i]);
    if (status != 0)
      assert_error(status, BELAY_EAUTH);
    refused += status != 0;
  }
  assert_between(refused, 1, NAMES - 1);
  bed_close(bed);
  server_do(cluster_node(cluster, 0), "CONFIG", "SET", "requirepass", "secret", NULL);
  cluster_stop(cluster);
}

/* ---- what nodes answer --------------------------------------------------------------------------------- */

static int64_t calls_of_all(cluster_t *cluster, const char *command) {
  int64_t n = 0;
  for (unsigned i = 0; i < cluster_size(cluster); i++)
    n += server_calls(cluster_node(cluster, i), command);
  return n;
}

static void test_slots_are_not_told_but_shards_are(void **state) {
  (void)state;
  cluster_options_t options = three();
  cluster_t *cluster = cluster_start(&options);
  for (unsigned i = 0; i < 3; i++)
    server_do(cluster_node(cluster, i), "ACL", "SETUSER", "default", "-cluster|slots", NULL);
  bed_t *bed = bed_open_at(cluster_url(cluster), NULL);
  assert_int_equal(take_all(bed), NAMES);
  assert_true(calls_of_all(cluster, "cluster|shards") > 0);
  expect_all_used(cluster);
  bed_close(bed);
  cluster_stop(cluster);
}

static char words[256];

static void keep_words(contender_t *c, event_t event) {
  if (event == EVENT_ENDED)
    snprintf(words, sizeof words, "%s", belay_detail(c->bed->belay));
}

static void expect_words(bed_t *bed, int error, const char *what) {
  contender_t *c = contender_new(bed, "door", NULL);
  c->then = keep_words;
  assert_error(try_lock(c), error);
  if (strstr(words, what) == NULL)
    fail_msg("\"%s\" does not say \"%s\"", words, what);
}

static void test_nothing_is_told(void **state) {
  (void)state;
  cluster_options_t options = three();
  cluster_t *cluster = cluster_start(&options);
  for (unsigned i = 0; i < 3; i++)
    server_do(cluster_node(cluster, i), "ACL", "SETUSER", "default", "-cluster|slots",
              "-cluster|shards", NULL);
  bed_t *bed = bed_open_at(cluster_url(cluster), NULL);
  expect_words(bed, BELAY_EPERM, "NOPERM");
  bed_close(bed);
  cluster_stop(cluster);
}

static const char *scheme(void) {
  return servers_are_secure() ? "rediss" : "redis";
}

static void test_it_is_no_cluster(void **state) {
  (void)state;
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  char url[64];
  snprintf(url, sizeof url, "%s+cluster://%s127.0.0.1:%d", scheme(), server_login(server),
           server_port(server));
  bed_t *bed = bed_open_at(url, NULL);
  expect_words(bed, BELAY_EREFUSED, "cluster support disabled");
  bed_close(bed);
  server_stop(server);
}

/* One that is no member knows no slots: the next one is asked. */
static void test_the_first_that_is_asked_knows_nothing(void **state) {
  (void)state;
  cluster_options_t options = three();
  cluster_t *cluster = cluster_start(&options);
  server_t *stranger = server_start(&(server_options_t){.cluster = true});
  char url[128];
  snprintf(url, sizeof url, "%s+cluster://%s127.0.0.1:1,127.0.0.1:%d,127.0.0.1:%d", scheme(),
           server_login(stranger), server_port(stranger), server_port(cluster_node(cluster, 2)));
  bed_t *bed = bed_open_at(url, NULL);
  assert_int_equal(take_all(bed), NAMES);
  expect_all_used(cluster);
  bed_close(bed);
  server_stop(stranger);
  cluster_stop(cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calls_find_their_node),
      cmocka_unit_test(test_nodes_are_named),
      cmocka_unit_test(test_nodes_do_not_tell_where_they_are),
      cmocka_unit_test(test_the_password_is_for_all_nodes),
      cmocka_unit_test(test_no_node_lets_us_in),
      cmocka_unit_test(test_one_node_does_not_let_us_in),
      cmocka_unit_test(test_slots_are_not_told_but_shards_are),
      cmocka_unit_test(test_nothing_is_told),
      cmocka_unit_test(test_it_is_no_cluster),
      cmocka_unit_test(test_the_first_that_is_asked_knows_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

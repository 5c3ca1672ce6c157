/* Clients that ask Sentinels: true, false and missing answers. The Sentinels are fakes, the
 * servers are real. */
#include <stdio.h>

#include "support/fixtures/scene.h"

static void drop_clients(scene_t *scene, int server) {
  server_do(scene->server[server], "CLIENT", "KILL", "TYPE", "normal", NULL);
}

static void make_replica(server_t *replica, server_t *primary) {
  char port[12];
  snprintf(port, sizeof port, "%d", server_port(primary));
  server_do(replica, "REPLICAOF", "127.0.0.1", port, NULL);
}

/* ---- who is asked -------------------------------------------------------------------------------------- */

SCENE_TEST(sentinels_are_tried_in_turn_and_a_good_one_comes_first, 3) {
  belay_client_options_t options = client_options();
  options.connect_timeout_ms = 2000 * slow();
  options.timeout_ms = 4000 * slow();
  oracle_mute(scene->oracle[0], true);
  int64_t began = clock_now();
  bed_t *bed = scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
  assert_true(clock_since_ms(began) < 2000 * slow()); /* its deadline is a part of that */
  assert_int_equal(oracle_connections(scene->oracle[0]), 1);
  assert_int_equal(oracle_connections(scene->oracle[1]), 1);
  assert_int_equal(oracle_connections(scene->oracle[2]), 0);
  for (int i = 0; i < 3; i++) { /* the good one is asked first, on the connection that there is */
    unsigned asked = scene_questions(scene);
    drop_clients(scene, 0);
    bed_until(bed, client_stats(bed).connections_up == 0);
    assert_int_equal(scene_answering(scene), 0);
    assert_true(scene_questions(scene) > asked); /* each time that it connects */
  }
  assert_int_equal(oracle_connections(scene->oracle[0]), 1);
  assert_int_equal(oracle_connections(scene->oracle[1]), 1);
}

SCENE_TEST(sentinels_that_are_gone_are_passed_over, 3) {
  scene_end_oracle(scene, 0);
  scene_end_oracle(scene, 1);
  scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  assert_int_equal(client_stats(scene->bed).connect_errors, 2);
}

/* The Sentinels die one after another, the last one too. One that returns is found. */
SCENE_TEST(the_connection_moves_to_a_sentinel_that_is_there, 3) {
  bed_t *bed = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  scene_end_oracle(scene, 0);
  bed_until(bed, oracle_listeners(scene->oracle[1]) == 1);
  scene_end_oracle(scene, 1);
  bed_until(bed, oracle_listeners(scene->oracle[2]) == 1);
  scene_name(scene, 1, 2);
  scene_hint(scene, 2, ORACLE_MASTER);
  bed_until(bed, client_stats(bed).drops == 1);
  assert_int_equal(scene_answering(scene), 1);
  scene_end_oracle(scene, 2);
  bed_run_for(bed, 50);
  assert_int_equal(scene_answering(scene), 1); /* it goes on without them */
}

/* Only the first is in the URL. */
static void name_the_first(scene_t *scene) {
  char *comma = strchr(scene->url, ',');
  snprintf(comma, sizeof scene->url - (size_t)(comma - scene->url), "/" ORACLE_MASTER);
}

SCENE_TEST(sentinels_are_learned, 2) {
  name_the_first(scene);
  oracle_introduce(scene->oracle[0], "127.0.0.1", oracle_port(scene->oracle[1]));
  bed_t *bed = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  scene_end_oracle(scene, 0);
  bed_until(bed, oracle_listeners(scene->oracle[1]) == 1);
  scene_name(scene, 1, 2);
  scene_hint(scene, 1, ORACLE_MASTER);
  bed_until(bed, client_stats(bed).drops == 1);
  assert_int_equal(scene_answering(scene), 1);
}

/* A Sentinel names thousands of others: some are remembered, and the configured ones are still
 * asked. */
SCENE_TEST(there_is_a_limit_to_what_is_learned, 2) {
  for (int i = 1; i < 500; i++)
    oracle_introduce(scene->oracle[0], "127.0.0.1", i);
  bed_t *bed = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  scene_end_oracle(scene, 0);
  bed_until(bed, oracle_listeners(scene->oracle[1]) == 1);
}

/* The next Sentinel names others. The former names are dropped, which makes room. */
SCENE_TEST(sentinels_are_forgotten, 3) {
  name_the_first(scene);
  oracle_introduce(scene->oracle[0], "127.0.0.1", oracle_port(scene->oracle[1]));
  for (int i = 1; i < 500; i++)
    oracle_introduce(scene->oracle[0], "127.0.0.1", i);
  bed_t *bed = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  oracle_forget(scene->oracle[0]);
  oracle_introduce(scene->oracle[0], "127.0.0.1", oracle_port(scene->oracle[2]));
  for (int i = 0; i < 2; i++) { /* it asks again when it has read all answers */
    unsigned asked = scene_questions(scene);
    scene_hint(scene, 0, ORACLE_MASTER);
    bed_until(bed, scene_questions(scene) > asked);
  }
  scene_end_oracle(scene, 0);
  bed_until(bed, oracle_listeners(scene->oracle[2]) == 1);
  assert_int_equal(oracle_connections(scene->oracle[1]), 0);
}

/* ---- how old a word is ----------------------------------------------------------------------------------- */

SCENE_TEST(who_knows_less_than_was_heard_before_is_not_believed, 3) {
  oracle_name(scene->oracle[0], "127.0.0.1", scene_port(scene, 1), 7);
  bed_t *bed = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 1);
  oracle_name(scene->oracle[2], "127.0.0.1", scene_port(scene, 1), 8);
  scene_end_oracle(scene, 0); /* the second one is behind */
  bed_until(bed, oracle_listeners(scene->oracle[2]) == 1);
  bed_run_for(bed, 50);
  assert_int_equal(client_stats(bed).drops, 0);
  assert_int_equal(scene_answering(scene), 1);
  oracle_name(scene->oracle[2], "127.0.0.1", scene_port(scene, 0), 9);
  scene_hint(scene, 2, ORACLE_MASTER);
  bed_until(bed, client_stats(bed).drops == 1);
  assert_int_equal(scene_answering(scene), 0);
}

/* Without newer information a client without a connection follows the old answer, and a
 * connected one stays. */
SCENE_TEST(an_old_word_is_better_than_none, 2) {
  oracle_name(scene->oracle[0], "127.0.0.1", scene_port(scene, 1), 7);
  bed_t *bed = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 1);
  scene_end_oracle(scene, 0);
  bed_until(bed, oracle_questions(scene->oracle[1]) > 0);
  bed_run_for(bed, 50);
  assert_int_equal(client_stats(bed).drops, 0);
  assert_int_equal(scene_answering(scene), 1);
  server_kill(scene->server[1]);
  bed_until(bed, client_stats(bed).connections_up == 0);
  assert_error(pong(bed, NULL), 0); /* at the first one */
  server_restart(scene->server[1]);
  assert_int_equal(scene_answering(scene), 0);
}

/* An answer with this epoch is useless: the client asks other Sentinels, with any epoch. */
SCENE_TEST(a_huge_epoch_that_leads_nowhere_locks_nobody_out, 3) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 60000;
  make_replica(scene->server[1], scene->server[0]);
  oracle_name(scene->oracle[0], "127.0.0.1", scene_port(scene, 1), UINT64_MAX);
  scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
  assert_true(oracle_questions(scene->oracle[0]) > 1);
}

/* Others know the same: from then on it is their epoch that counts. */
SCENE_TEST(a_huge_epoch_goes_with_who_has_named_it, 2) {
  oracle_name(scene->oracle[0], "127.0.0.1", scene_port(scene, 0), UINT64_MAX);
  bed_t *bed = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  scene_end_oracle(scene, 0);
  /* the client asks it and then believes it */
  bed_until(bed, oracle_listeners(scene->oracle[1]) == 2);
  assert_int_equal(client_stats(bed).drops, 0);
  oracle_name(scene->oracle[1], "127.0.0.1", scene_port(scene, 1), 2);
  scene_hint(scene, 1, ORACLE_MASTER);
  bed_until(bed, client_stats(bed).drops == 1);
  assert_int_equal(scene_answering(scene), 1);
}

/* ---- who the primary is ---------------------------------------------------------------------------------- */

/* A sentinel names a replica: nothing is asked of it before it is a primary. */
SCENE_TEST(a_replica_is_not_taken_for_a_primary, 1) {
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  make_replica(scene->server[1], scene->server[0]);
  scene_name(scene, 1, 1);
  bed_t *bed = scene_open(scene, &options);
  assert_error(pong(bed, NULL), BELAY_EREADONLY);
  assert_int_equal(server_calls(scene->server[1], "ping"), 1); /* the test's own */
  assert_int_equal(client_stats(bed).not_sent, 1);
  server_do(scene->server[1], "REPLICAOF", "NO", "ONE", NULL);
  scene_await(scene, 1);
}

/* It becomes a replica without a word of the sentinel's: it is asked what it is from time to time. */
SCENE_TEST(a_primary_that_becomes_a_replica_is_noticed, 1) {
  bed_t *bed = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  make_replica(scene->server[0], scene->server[1]);
  bed_until(bed, client_stats(bed).drops == 1); /* nothing was asked of it */
  oracle_name(scene->oracle[0], "127.0.0.1", scene_port(scene, 1), 2);
  scene_await(scene, 1);
}

/* ---- hints ------------------------------------------------------------------------------------------------ */

SCENE_TEST(a_hint_is_followed_at_once, 1) {
  bed_t *bed = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  scene_name(scene, 1, 2);
  int64_t began = clock_now();
  scene_hint(scene, 0, ORACLE_MASTER);
  bed_until(bed, client_stats(bed).drops == 1);
  assert_int_equal(scene_answering(scene), 1);
  assert_true(clock_since_ms(began) < 2000 * slow());
}

TEST(a_hint_that_was_lost_is_not_needed) {
  scene_t scene;
  scene_set_up(&scene, 1, &(oracle_options_t){.secretive = true});
  bed_t *bed = scene_open(&scene, NULL);
  assert_int_equal(scene_answering(&scene), 0);
  assert_int_equal(oracle_listeners(scene.oracle[0]), 0);
  scene_name(&scene, 1, 2);
  bed_until(bed, client_stats(bed).drops == 1);
  assert_int_equal(scene_answering(&scene), 1);
  scene_tear_down(&scene);
}

SCENE_TEST(a_hint_is_not_believed, 1) {
  bed_t *bed = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  bed_until(bed, oracle_listeners(scene->oracle[0]) == 1);
  unsigned asked = scene_questions(scene);
  scene_hint(scene, 0, "other");
  scene_hint(scene, 0, ORACLE_MASTER "2");
  oracle_publish(scene->oracle[0], "my" ORACLE_MASTER " " ORACLE_MASTER ":");
  oracle_publish(scene->oracle[0], "");
  bed_run_for(bed, 100);
  assert_int_equal(scene_questions(scene), asked); /* these are not about us */
  scene_hint(scene, 0, ORACLE_MASTER);
  bed_until(bed, scene_questions(scene) > asked);
  bed_run_for(bed, 100);
  assert_int_equal(client_stats(bed).drops, 0); /* the sentinel itself says something else */
  assert_int_equal(scene_answering(scene), 0);
}

/* ---- what becomes of calls -------------------------------------------------------------------------------- */

/* Calls sent to the stalled old primary end as unknown. Unsent calls go to the new one. No
 * effect of the old primary's late execution stays. */
SCENE_TEST(calls_that_were_on_the_way_end_truthfully, 1) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 10000;
  options.stall_timeout_ms = 60000;
  bed_t *bed = scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
  server_pause(scene->server[0]);
  contender_t *sent = contender_new(bed, "sent", NULL), *after = contender_new(bed, "after", NULL);
  assert_error(begin_acquire(sent, 0), 0);
  bed_run_for(bed, 50);
  assert_int_equal(sent->ended, 0);
  scene_name(scene, 1, 2);
  scene_hint(scene, 0, ORACLE_MASTER);
  assert_error(outcome(sent), BELAY_EUNKNOWN);
  assert_error(try_lock(after), 0);
  bed_settle(bed); /* the undo too */
  assert_int_equal(server_keys(scene->server[1]), 1);
  server_resume(scene->server[0]);
  make_replica(scene->server[0], scene->server[1]);
  assert_error(release(after), 0);
  bed_until(bed, server_keys(scene->server[0]) == 0);
}

/* Another run id is no proof that the process before is dead: the undo is repeated, since the other server may be the
 * primary again. */
TEST(who_stands_still_is_not_taken_for_dead) {
  scene_t scene;
  belay_client_options_t options = client_options();
  belay_lock_options_t lasting = with_ttl(60000);
  options.timeout_ms = 10000;
  options.stall_timeout_ms = 60000;
  scene_set_up(&scene, 1, NULL);
  bed_t *bed = scene_open(&scene, &options);
  contender_t *c = contender_new(bed, "door", &lasting);
  assert_int_equal(scene_answering(&scene), 0);
  server_pause(scene.server[0]);
  assert_error(begin_acquire(c, 0), 0);
  bed_run_for(bed, 50);
  scene_name(&scene, 1, 2);
  scene_hint(&scene, 0, ORACLE_MASTER);
  assert_error(outcome(c), BELAY_EUNKNOWN);
  server_resume(
      scene.server[0]); /* the server executes the rest of its socket, of a closed connection */
  bed_until(bed, client_stats(bed).undone == 1);
  assert_true(server_calls(scene.server[1], "evalsha") + server_calls(scene.server[1], "eval") > 1);
  scene_tear_down(&scene);
}

/* A lease goes on at the new primary, which has its key. */
TEST(a_lease_is_renewed_at_the_new_primary) {
  scene_t scene;
  belay_lock_options_t lasting = watched(lag() + 600 * slow());
  scene_set_up(&scene, 1, NULL);
  server_follow(scene.server[1], scene.server[0]);
  bed_t *bed = scene_open(&scene, NULL);
  contender_t *c = contender_new(bed, "door", &lasting);
  assert_error(try_lock(c), 0);
  bed_until(bed, server_keys(scene.server[1]) == 1);
  server_kill(scene.server[0]);
  server_do(scene.server[1], "REPLICAOF", "NO", "ONE", NULL);
  scene_name(&scene, 1, 2);
  scene_hint(&scene, 0, ORACLE_MASTER);
  bed_run_for(bed, 2 * lasting.ttl_ms);
  assert_int_equal(c->lost, 0);
  assert_true(remaining_ms(c) > 0);
  assert_error(release(c), 0);
  assert_int_equal(server_keys(scene.server[1]), 0);
  scene_tear_down(&scene);
}

/* The new primary is not to be had: the lease is lost when its time is over here, and not before. */
TEST(a_lease_lasts_as_long_as_it_may) {
  scene_t scene;
  belay_lock_options_t lasting = watched(kept_ttl());
  scene_set_up(&scene, 1, NULL);
  bed_t *bed = scene_open(&scene, NULL);
  contender_t *c = contender_new(bed, "door", &lasting);
  assert_error(try_lock(c), 0);
  server_kill(scene.server[0]);
  bed_until(bed, client_stats(bed).connections_up == 0);
  assert_int_equal(c->lost, 0);
  int64_t left = remaining_ms(c), began = clock_now();
  bed_until(bed, c->lost == 1);
  assert_int_equal(c->reason, BELAY_LOST_EXPIRED);
  assert_true(clock_since_ms(began) >= left);
  scene_tear_down(&scene);
}

/* Who watches sessions: what has ended is told, to one, and what lives is not. */
#include <stdio.h>

#include "scripts.gen.h"
#include "support/deployments/cluster.h"
#include "support/models/scripts.h"
#include "support/fixtures/data/sessions.h"

/* ---- notices ---------------------------------------------------------------------------------------------- */

TEST(what_ended_is_told_once_and_what_lives_is_not) {
  bed_t *bed = bed_open(NULL);
  enum { USERS = 150 };
  place_t place;
  guard_t guard;
  stay_t stay = {0};
  char user[16], id[16];
  place_noting(&place, bed, 600000);
  for (int i = 0; i < USERS; i++) {
    snprintf(user, sizeof user, "u%d", i);
    snprintf(id, sizeof id, "c%d", i);
    touch_it(&place, &stay, user, "x", id);
    assert_false(stay.state.unnoted);
  }
  assert_int_equal(in_index(bed), USERS);
  guard_new(&guard, &place, SOON, false);
  look_twice(&guard);
  assert_int_equal(guard.told, 0);
  for (int i = 0; i < USERS; i += 2) {
    snprintf(user, sizeof user, "u%d", i);
    pass(bed, user);
  }
  touch_it(&place, &stay, "u0", "x", "another");   /* the user lives, the context does not */
  server_do(bed->server, "SCRIPT", "FLUSH", NULL); /* and many are looked for at once */
  assert_int_equal(make_due(bed), USERS + 1);
  bed_until(bed, guard.told >= USERS / 2);
  look_twice(&guard);
  assert_int_equal(guard.told, USERS / 2);
  for (int i = 0; i < USERS; i++) {
    snprintf(user, sizeof user, "u%d", i);
    snprintf(id, sizeof id, "c%d", i);
    assert_int_equal(guard_count(&guard, user, id), i % 2 == 0);
  }
  assert_false(guard_knows(&guard, "u0", "another"));
  assert_int_equal(in_index(bed), USERS / 2 + 1);
  belay_session_watch_stats_t stats;
  belay_session_watch_stats(guard.watch, &stats);
  assert_int_equal(stats.told, USERS / 2);
  assert_int_equal(stats.alive, USERS / 2 + 1);
  assert_int_equal(stats.failed, 0);
  bed_close(bed);
}

/* What lives is due again when it is to end, and not before. */
TEST(it_is_due_when_it_ends) {
  bed_t *bed = bed_open(NULL);
  place_t place;
  guard_t guard;
  stay_t stay = {0};
  place_noting(&place, bed, 600000);
  touch_it(&place, &stay, "ann", "x", "a");
  expect_ttls(bed->server);
  assert_int_equal(make_due(bed), 1);
  guard_new(&guard, &place, SOON, false);
  look_twice(&guard);
  expect_ttls(bed->server);
  for (int i = 0; i < SHARDS; i++) {
    char key[64];
    snprintf(key, sizeof key, "belay::session::shop::{%d}::due", i);
    const char *score = server_string(bed->server, "ZSCORE", key, "1:aann", NULL);
    if (score != NULL)
      assert_between(atoll(score), server_now_ms(bed->server) + 500000,
                     server_now_ms(bed->server) + 600000);
  }
  bed_close(bed);
}

TEST(it_ends_by_itself_and_by_hand) {
  bed_t *bed = bed_open(NULL);
  place_t place;
  guard_t guard;
  stay_t stay = {0};
  place_noting(&place, bed, 1000);
  guard_new(&guard, &place, SOON, false);
  int64_t began = clock_now();
  touch_it(&place, &stay, "ann", "x", "by itself");
  touch_it(&place, &stay, "bob", "x", "by hand");
  assert_error(begin_end(&place, &stay, "bob", "by hand"), 0);
  assert_error(end_of_stay(&stay), 0);
  assert_true(stay.state.ended && !stay.state.unnoted);
  bed_until(bed, guard_knows(&guard, "bob", "by hand"));
  assert_true(guard.told == 1 || clock_since_ms(began) >= 1000);
  bed_until(bed, guard_knows(&guard, "ann", "by itself"));
  assert_true(clock_since_ms(began) >= 999);
  assert_int_equal(guard.told, 2);
  assert_error(guard_close(&guard), 0);
  assert_error(guard_close(&guard), BELAY_ECLOSING);
  bed_until(bed, guard.closed == 1);
  bed_close(bed);
}

TEST(one_of_many_is_told) {
  bed_t *bed = bed_open(NULL);
  enum { USERS = 200, GUARDS = 3 };
  place_t place[GUARDS];
  guard_t guard[GUARDS];
  stay_t stay = {0};
  char user[16];
  for (int i = 0; i < GUARDS; i++)
    place_noting(&place[i], bed, 600000);
  for (int i = 0; i < USERS; i++) {
    snprintf(user, sizeof user, "u%d", i);
    touch_it(&place[0], &stay, user, NULL, "c");
    pass(bed, user);
  }
  assert_int_equal(make_due(bed), USERS);
  for (int i = 0; i < GUARDS; i++)
    guard_new(&guard[i], &place[i], SOON, false);
  bed_until(bed, guard[0].told + guard[1].told + guard[2].told >= USERS);
  look_twice(&guard[0]);
  assert_int_equal(guard[0].told + guard[1].told + guard[2].told, USERS);
  for (int i = 0; i < USERS; i++) {
    unsigned n = 0;
    snprintf(user, sizeof user, "u%d", i);
    for (int j = 0; j < GUARDS; j++)
      n += guard_count(&guard[j], user, "c");
    assert_int_equal(n, 1);
  }
  assert_int_equal(in_index(bed), 0);
  bed_close(bed);
}

/* ---- hints ------------------------------------------------------------------------------------------------ */

TEST(a_hint_makes_it_sooner) {
  if (deployment_is_cluster())
    skip(); /* where there are none */
  bed_t *bed = bed_open(NULL);
  server_do(bed->server, "CONFIG", "SET", "notify-keyspace-events", "Ex", NULL);
  place_t place;
  guard_t guard;
  stay_t stay = {0};
  place_noting(&place, bed, 1000);
  guard_new(&guard, &place, 3600000, true);
  bed_until(bed,
            guard_looks(&guard) == 1 &&
                server_integer(bed->server, "PUBLISH", "__keyevent@0__:expired", "x", NULL) == 1);
  server_do(bed->server, "SET", "belay::session::other::{ann}", "1", "PX", "1", NULL);
  touch_it(&place, &stay, "a{n}n", "x", "c");
  make_due(bed);
  server_do(bed->server, "PEXPIRE", "belay::session::shop::{a%7Bn%7Dn}::events", "15", NULL);
  server_do(bed->server, "PEXPIRE", "belay::session::shop::{a%7Bn%7Dn}", "30", NULL);
  bed_until(bed, guard_knows(&guard, "a{n}n", "c"));
  belay_session_watch_stats_t stats;
  belay_session_watch_stats(guard.watch, &stats);
  assert_int_equal(stats.looks, 1);
  assert_int_equal(stats.hints, 1); /* none for another kind, nor for the events */
  bed_close(bed);
}

/* Each node of a cluster tells of its own keys only. */
TEST_ON(hints_are_not_listened_to_in_a_cluster, cluster,
        cluster_start(&(cluster_options_t){.without_replicas = true})) {
  bed_t *bed = bed_open_at(cluster_url(cluster), NULL);
  place_t place;
  guard_t guard;
  stay_t stay = {0};
  place_noting(&place, bed, 1000);
  guard_new(&guard, &place, 50, true);
  touch_it(&place, &stay, "ann", "x", "c");
  bed_until(bed, guard_knows(&guard, "ann", "c"));
  bed_close(bed);
  for (unsigned i = 0; i < cluster_size(cluster); i++)
    assert_int_equal(server_calls(cluster_node(cluster, i), "ssubscribe") +
                         server_calls(cluster_node(cluster, i), "subscribe"),
                     0);
}

/* ---- the index -------------------------------------------------------------------------------------------- */

static void drop_index(bed_t *bed) {
  for (int i = 0; i < SHARDS; i++) {
    char key[64];
    snprintf(key, sizeof key, "belay::session::shop::{%d}::due", i);
    server_do(bed->server, "DEL", key, NULL);
  }
}

/* It is entered again at the second, fourth, eighth touch. */
TEST(what_was_not_entered_is_entered_later) {
  bed_t *bed = bed_open(NULL);
  place_t place;
  stay_t stay = {0};
  place_noting(&place, bed, 600000);
  for (int i = 1; i <= 20; i++) {
    drop_index(bed);
    touch_it(&place, &stay, "ann", "x", "c");
    assert_int_equal(in_index(bed), (i & (i - 1)) == 0);
  }
  bed_close(bed);
}

/* What it holds is not ours: what was done is done, and it is told that nobody will know when it ends. */
TEST(a_touch_goes_well_without_the_index) {
  bed_t *bed = bed_open(NULL);
  place_t place;
  stay_t stay = {0};
  guard_t guard;
  place_noting(&place, bed, 600000);
  for (int i = 0; i < SHARDS; i++) {
    char key[64];
    snprintf(key, sizeof key, "belay::session::shop::{%d}::due", i);
    server_do(bed->server, "SET", key, "a string", NULL);
  }
  touch_it(&place, &stay, "ann", "x", "c");
  assert_true(stay.state.is_new && stay.state.unnoted);
  guard_new(&guard, &place, SOON, false);
  look_twice(&guard);
  belay_session_watch_stats_t stats;
  belay_session_watch_stats(guard.watch, &stats);
  assert_true(stats.failed > 0);
  assert_error(begin_end(&place, &stay, "ann", NULL), 0);
  assert_error(end_of_stay(&stay), 0);
  assert_true(stay.state.ended && stay.state.unnoted);
  drop_index(bed); /* and all is well again */
  touch_it(&place, &stay, "ann", "x", "d");
  assert_false(stay.state.unnoted);
  pass(bed, "ann");
  make_due(bed);
  bed_until(bed, guard_knows(&guard, "ann", "d"));
  bed_close(bed);
}

TEST(garbage_is_taken_out) {
  bed_t *bed = bed_open(NULL);
  static const char *const garbage[] = {"",     "x",     "0:u", "1:",   "1:a",
                                        "65:u", "01:ab", "9",   "2:ab", ":a"};
  place_t place;
  stay_t stay = {0};
  guard_t guard;
  place_noting(&place, bed, 600000);
  touch_it(&place, &stay, "ann", "x", "c");
  pass(bed, "ann");
  for (size_t i = 0; i < 10; i++)
    for (int j = 0; j < SHARDS; j++) {
      char key[64];
      snprintf(key, sizeof key, "belay::session::shop::{%d}::due", j);
      server_do(bed->server, "ZADD", key, "1", garbage[i], NULL);
      server_do(bed->server, "PEXPIRE", key, "100000", NULL);
    }
  make_due(bed);
  guard_new(&guard, &place, SOON, false);
  bed_until(bed, in_index(bed) == 0);
  assert_int_equal(guard.told, 1);
  bed_close(bed);
}

/* Nobody watches: what nobody will ask for any more is dropped when something is entered. */
TEST(the_index_does_not_grow_for_ever) {
  bed_t *bed = bed_open(NULL);
  const script_input_t old = {{"i"}, {"3600000", "NX", "1:aold", "1000"}},
                       new = {{"i"}, {"3600000", "NX", "1:anew", "9000000000000"}};
  assert_int_equal(script_integer(bed->server, &belay__script_session_index, &old), 0);
  assert_int_equal(server_integer(bed->server, "ZCARD", "i", NULL), 1);
  assert_int_equal(script_integer(bed->server, &belay__script_session_index, &new), 0);
  assert_int_equal(server_integer(bed->server, "ZCARD", "i", NULL), 1);
  assert_non_null(server_string(bed->server, "ZSCORE", "i", "1:anew", NULL));
  expect_ttls(bed->server);
  bed_close(bed);
}

/* ---- closing ---------------------------------------------------------------------------------------------- */

typedef enum what { WATCH, SESSION, CLIENT, BELAY, WHATS } what_t;

static what_t to_close;

static void close_it(guard_t *guard) {
  guard->then = NULL;
  if (to_close == WATCH)
    assert_error(guard_close(guard), 0);
  else if (to_close == SESSION)
    assert_error(begin_close_place(guard->place), 0);
  else if (to_close == CLIENT)
    assert_error(begin_client_close(guard->place->bed), 0);
  else
    assert_error(begin_belay_close(guard->place->bed), 0);
}

/* In a notice: who was told is taken out, the others are left to others. */
TEST(a_notice_may_end_everything) {
  for (what_t what = WATCH; what < WHATS; what++) {
    bed_t *bed = bed_open(NULL);
    place_t place;
    stay_t stay = {0};
    guard_t guard;
    char user[16];
    place_noting(&place, bed, 600000);
    for (int i = 0; i < 100; i++) {
      snprintf(user, sizeof user, "u%d", i);
      touch_it(&place, &stay, user, NULL, "c");
      pass(bed, user);
    }
    make_due(bed);
    to_close = what;
    guard_new(&guard, &place, SOON, false);
    guard.then = close_it;
    bed_until(bed, guard.told == 1);
    if (what == WATCH)
      bed_until(bed, guard.closed == 1);
    else if (what == SESSION)
      bed_until(bed, place.closed == 1);
    else
      bed_until(bed, bed->client_closed == 1 || bed->belay_closed == 1);
    assert_int_equal(guard.told, 1);
    assert_int_equal(in_index(bed), 99);
    bed_close(bed);
  }
}

TEST(it_closes_at_any_time) {
  bed_t *bed = bed_open(NULL);
  stay_t stay = {0};
  for (int i = 0; i < 24; i++) {
    place_t place;
    guard_t guard;
    place_noting(&place, bed, 600000);
    touch_it(&place, &stay, "ann", NULL, "c");
    pass(bed, "ann");
    make_due(bed);
    guard_new(&guard, &place, 10, i % 2 == 0);
    if (i % 3 == 0)
      server_pause(bed->server);
    for (int turn = 0; turn < i; turn++)
      uv_run(&bed->loop, UV_RUN_NOWAIT);
    if (i % 4 == 1)
      assert_error(guard_close(&guard), 0);
    assert_error(begin_close_place(&place), 0);
    if (i % 3 == 0) {
      bed_run_for(bed, 5);
      server_resume(bed->server);
    }
    bed_until(bed, place.closed == 1);
  }
  bed_close(bed);
}

/* The server is away, and comes back without anything. */
TEST(it_goes_on_when_the_server_is_back) {
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  bed_t *bed = bed_open(&options);
  place_t place;
  stay_t stay = {0};
  guard_t guard;
  belay_session_watch_stats_t stats = {0};
  place_noting(&place, bed, 600000);
  guard_new(&guard, &place, SOON, true);
  look_twice(&guard);
  server_kill(bed->server);
  while (stats.failed == 0) {
    bed_run_for(bed, 10);
    belay_session_watch_stats(guard.watch, &stats);
  }
  server_restart(bed->server);
  stay.request.timeout_ms = 20000;
  touch_it(&place, &stay, "ann", "x", "c");
  pass(bed, "ann");
  make_due(bed);
  bed_until(bed, guard_knows(&guard, "ann", "c"));
  bed_close(bed);
}

TEST(what_is_out_of_range_is_refused) {
  bed_t *bed = bed_open(NULL);
  place_t place;
  belay_session_watch_t *watch = (belay_session_watch_t *)bed;
  belay_session_watch_options_t o;
  belay_session_ended_cb cb = (belay_session_ended_cb)(void (*)(void))close_it; /* is not called */
  place_noting(&place, bed, 600000);
  for (int i = 0; i < 2; i++) {
    belay_session_watch_options_init(&o);
    o.interval_ms = i == 0 ? 9 : 86400001;
    assert_error(belay_session_watch(place.session, &o, cb, &watch), BELAY_EINVAL);
    assert_null(watch);
  }
  assert_error(belay_session_watch(place.session, NULL, NULL, &watch), BELAY_EINVAL);
  assert_error(belay_session_watch(NULL, NULL, cb, &watch), BELAY_EINVAL);
  assert_error(belay_session_watch(place.session, NULL, cb, NULL), BELAY_EINVAL);
  assert_error(belay_session_watch_close(NULL, NULL), BELAY_EINVAL);
  assert_null(belay_session_watch_data(NULL));
  belay_session_watch_stats_t stats = {.told = 1};
  belay_session_watch_stats(NULL, &stats);
  assert_int_equal(stats.told, 0);
  assert_error(begin_close_place(&place), 0);
  assert_error(belay_session_watch(place.session, NULL, cb, &watch), BELAY_ECLOSING);
  bed_close(bed);
}

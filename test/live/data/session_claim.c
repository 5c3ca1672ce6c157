/* Who watches sessions claims what is due, and looks at it: what becomes of that. */
#include <stdio.h>

#include "scripts.gen.h"
#include "support/models/scripts.h"
#include "support/fixtures/data/sessions.h"

/* Who claimed has died: another one is told when the claim is over. */
TEST(a_claim_ends) {
  bed_t *bed = bed_open(NULL);
  const script_input_t claim = {{"i"}, {"64", "60000"}};
  server_do(bed->server, "ZADD", "i", "1", "1:aann", "2", "1:bbob", NULL);
  server_do(bed->server, "PEXPIRE", "i", "100000", NULL);
  const resp_t *claimed = script_run(bed->server, &belay__script_session_claim, &claim);
  assert_int_equal(claimed->count, 3);
  claimed = script_run(bed->server, &belay__script_session_claim, &claim);
  assert_int_equal(claimed->count, 0);
  int64_t due = atoll(server_string(bed->server, "ZSCORE", "i", "1:aann", NULL));
  assert_between(due, server_now_ms(bed->server) + 40000, server_now_ms(bed->server) + 60000);
  bed_close(bed);
}

/* Between the look at it, when it lived, and what is made of that. */
TEST(what_is_ended_while_it_is_claimed_is_due) {
  bed_t *bed = bed_open(NULL);
  char till[32];
  const script_input_t claim = {{"i"}, {"64", "60000"}};
  const script_input_t end = {{"i"}, {"3600000", "XX", "1:aann", "0"}};
  const script_input_t settle = {
      {"i"},
      {"3600000", till, "1:aann", "9000000000000", "1:bbob", "9000000000000", "1:ccas", "-"}};
  server_do(bed->server, "ZADD", "i", "1", "1:aann", "2", "1:bbob", "3", "1:ccas", NULL);
  const resp_t *claimed = script_run(bed->server, &belay__script_session_claim, &claim);
  snprintf(till, sizeof till, "%s", claimed->items[0]->str);
  assert_int_equal(script_integer(bed->server, &belay__script_session_index, &end), 0);
  assert_int_equal(script_integer(bed->server, &belay__script_session_index, &settle), 0);
  assert_true(atoll(server_string(bed->server, "ZSCORE", "i", "1:aann", NULL)) <=
              server_now_ms(bed->server));
  assert_string_equal(server_string(bed->server, "ZSCORE", "i", "1:bbob", NULL), "9000000000000");
  assert_int_equal(server_integer(bed->server, "ZCARD", "i", NULL), 2);
  expect_ttls(bed->server);
  bed_close(bed);
}

/* What ends there makes room. */
TEST(it_is_told_on_a_full_server) {
  bed_t *bed = bed_open(NULL);
  place_t place;
  stay_t stay = {0};
  guard_t guard;
  place_noting(&place, bed, 600000);
  touch_it(&place, &stay, "ann", "x", "a");
  touch_it(&place, &stay, "bob", "x", "b");
  pass(bed, "ann");
  make_due(bed);
  server_do(bed->server, "CONFIG", "SET", "maxmemory", "1", NULL);
  guard_new(&guard, &place, SOON, false);
  bed_until(bed, guard_knows(&guard, "ann", "a"));
  look_twice(&guard);
  assert_int_equal(guard.told, 1);
  assert_int_equal(in_index(bed), 1);
  server_do(bed->server, "CONFIG", "SET", "maxmemory", "0", NULL);
  bed_close(bed);
}

/* Some may not be looked at: the others are told all the same. */
TEST(what_is_known_of_some_is_told) {
  bed_t *bed = bed_open(NULL);
  enum { USERS = 40 };
  place_t place;
  stay_t stay = {0};
  guard_t guard;
  belay_session_watch_stats_t stats;
  char user[16];
  place_noting(&place, bed, 600000);
  for (int i = 0; i < USERS; i++) {
    snprintf(user, sizeof user, "%c%d", i % 2 == 0 ? 'a' : 'b', i);
    touch_it(&place, &stay, user, NULL, "c");
    if (i % 4 < 2)
      pass(bed, user);
  }
  make_due(bed);
  server_do(bed->server, "ACL", "SETUSER", "default", "resetkeys", "~*::due", "~*::{a*", NULL);
  guard_new(&guard, &place, SOON, false);
  bed_until(bed, guard.told == USERS / 4);
  look_twice(&guard);
  server_do(bed->server, "ACL", "SETUSER", "default", "allkeys", NULL);
  assert_int_equal(guard.told, USERS / 4); /* not of the others, which are not known */
  assert_int_equal(in_index(bed), USERS - USERS / 4);
  belay_session_watch_stats(guard.watch, &stats);
  assert_int_equal(stats.alive, USERS / 4);
  assert_true(stats.failed > 0);
  bed_close(bed);
}

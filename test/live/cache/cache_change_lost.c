/* Caches: changes whose answers are lost. */
#include "support/deployments/relay.h"
#include "support/models/scripts.h"
#include "support/fixtures/cache/relayed.h"

#define KEY "belay::cache::{page}"
#define GEN KEY "::gen"
#define TAG_KEY "belay::cache::{site}::tag"

static void get_bytes(relayed_t *relayed, const char *key, unsigned char out[BELAY__RECORD_ID]) {
  const resp_t *reply = server_ask(relayed->server, "GET", key, NULL);
  assert_int_equal(reply->len, BELAY__RECORD_ID);
  memcpy(out, reply->str, BELAY__RECORD_ID);
}

static void expect_end(change_t *change, bool applied) {
  assert_error(end_of_change(change), 0);
  assert_int_equal(change->applied, applied);
}

/* ---- lost answers ---- */

/* A new begin could come after an invalidation, with an older value. So the put ends. */
RELAYED_TEST(a_put_begins_once, false) {
  for (int i = 0; i < 2; i++) {
    change_t put = {0};
    expect_put(relayed->cache, "page", "before", true);
    relayed->awaited = "cache_begin";
    relayed->sent = 0;
    delay_replies(relayed);
    assert_error(begin_put(relayed->cache, &put, "page", "value"), 0);
    turn_until(relayed, key_exists(relayed, GEN));
    lose_reply(relayed);
    expect_end(&put, false);
    assert_int_equal(relayed->sent, 1);
    assert_int_equal(server_keys(relayed->server), 0); /* the old value is not served either */
  }
}

/* The tag that the first try found or made may be deleted by now, and must not return. */
RELAYED_TEST(tag_generation_sent_once, true) {
  for (int which = 0; which < 2; which++) {
    change_t change = {0};
    unsigned char lost[BELAY__RECORD_ID], found[BELAY__RECORD_ID];
    expect_put(relayed->cache, "page", "before", true);
    server_do(relayed->server, "DEL", TAG_KEY, NULL);
    delay_replies(relayed);
    assert_error(begin_nth_change(relayed->cache, &change, which, "page"), 0);
    turn_until(relayed, key_exists(relayed, TAG_KEY));
    get_bytes(relayed, TAG_KEY, lost);
    server_do(relayed->server, "DEL", TAG_KEY, NULL);
    lose_reply(relayed);
    expect_end(&change, false); /* the touch finds no value whose tag is as it was */
    assert_int_equal(key_exists(relayed, TAG_KEY), which == 1);
    if (which == 0)
      continue; /* it was given up */
    get_bytes(relayed, TAG_KEY, found);
    assert_memory_not_equal(lost, found, BELAY__RECORD_ID);
  }
}

/* Its answer is lost; meanwhile: nothing; it is invalidated; another one begins. */
RELAYED_TEST(a_fill_is_stored_once, false) {
  for (int meanwhile = 0; meanwhile < 3; meanwhile++) {
    change_t put = {0};
    server_do(relayed->server, "DEL", KEY, NULL);
    relayed->awaited = "cache_fill";
    relayed->slows = true;
    assert_error(begin_put(relayed->cache, &put, "page", "value"), 0);
    turn_until(relayed, key_exists(relayed, KEY));
    if (meanwhile == 1)
      server_do(relayed->server, "DEL", KEY, GEN, NULL);
    else if (meanwhile == 2)
      server_do(relayed->server, "SET", GEN, "somebody's load.", "PX", "60000", NULL);
    lose_reply(relayed);
    expect_end(&put,
               meanwhile != 1); /* in the last case it was there, before the other one began */
    expect_stored(relayed->cache, KEY, meanwhile == 1 ? NULL : "value");
    if (meanwhile == 2)
      assert_string_equal(server_string(relayed->server, "GET", GEN, NULL), "somebody's load.");
    server_do(relayed->server, "DEL", GEN, NULL);
  }
}

RELAYED_TEST(other_changes_are_resent, false) {
  static const char *const commands[] = {NULL, "cache_touch", "DEL", "DEL"};
  for (int which = 1; which < CHANGES; which++) {
    change_t change = {0};
    expect_put(relayed->cache, "page", "value", true);
    relayed->awaited = commands[which];
    relayed->sent = 0;
    int64_t executed =
        server_calls(relayed->server, "pexpire") + server_calls(relayed->server, "del");
    delay_replies(relayed);
    assert_error(begin_nth_change(relayed->cache, &change, which, "page"), 0);
    turn_until(relayed,
               server_calls(relayed->server, "pexpire") + server_calls(relayed->server, "del") >
                   executed);
    lose_reply(relayed);
    expect_end(&change, true);
    assert_int_equal(relayed->sent, 2);
    expect_stored(relayed->cache, KEY, which == 2 ? NULL : "value");
  }
}

/* The connection is cut at some time or other. */
RELAYED_TEST(changes_done_or_unknown, true) {
  unsigned known = 0, cuts = 0;
  for (int i = 0; i < 28; i++) {
    change_t change = {0};
    relay_delay(relayed->relay, 5);
    change.request.timeout_ms = i % 7 == 6 ? 60 : 0;
    assert_error(begin_nth_change(relayed->cache, &change, i % CHANGES, "page"), 0);
    env_run_for(relayed->env, (int64_t)(i % 9) * 4);
    if (change.ended == 0) {
      cuts++;
      relay_cut(relayed->relay);
    }
    relay_delay(relayed->relay, 0);
    if (end_of_change(&change) != 0 && change.status != BELAY_EUNREACHABLE)
      assert_error(change.status, BELAY_EUNKNOWN);
    known += change.status == 0;
    if (change.status == 0 && i % CHANGES == 0)
      expect_stored(relayed->cache, KEY, change.applied ? "value" : NULL);
    if (change.status == 0 && i % CHANGES == 2)
      assert_false(key_exists(relayed, KEY));
  }
  assert_true(known > 15 && cuts > 10);
}

/* The put is complete when the server has executed it. The message to other processes gets only
 * the time in which it is useful. */
RELAYED_TEST(failed_publication_ignored, false) {
  cache_t hasty = {0};
  belay_cache_options_t options = plain_options();
  options.local_ttl_ms = 50;
  cache_open(&hasty, relayed->env, &options);
  relayed->awaited = deployment_publish();
  for (int which = 0; which < CHANGES; which++) {
    change_t change = {0};
    if (which == 1)
      continue; /* it tells nobody */
    relayed->sent = 0;
    int64_t before = clock_now();
    relay_delay(relayed->relay, 3);
    assert_error(begin_nth_change(&hasty, &change, which, "page"), 0);
    env_until(relayed->env, relayed->sent == 1);
    server_pause(relayed->server);
    expect_end(&change, true);
    assert_true(clock_since_ms(before) < 5000 * slow());
    server_resume(relayed->server);
  }
  server_do(relayed->server, "ACL", "SETUSER", "default", "-publish", "-spublish", NULL);
  for (int which = 0; which < CHANGES; which++) {
    change_t change = {0};
    assert_error(begin_nth_change(relayed->cache, &change, which, "page"), 0);
    expect_end(&change, true);
    assert_int_equal(key_exists(relayed, KEY), which < 2);
  }
}

RELAYED_TEST(publication_resent, false) {
  relayed->awaited = deployment_publish();
  relayed->cuts = true;
  int64_t before = server_publications(relayed->server);
  expect_invalidate(relayed->cache, "page");
  assert_false(relayed->cuts);
  assert_int_equal(relayed->sent, 2);
  assert_true(server_publications(relayed->server) > before);
}

/* A failed second try says nothing about the first one. */
RELAYED_TEST(refusal_of_resent_call_is_unknown, true) {
  for (int which = 1; which < 3; which++) { /* a step of several calls; of one */
    change_t change = {.request.timeout_ms = 250};
    expect_put(relayed->cache, "page", "before", true);
    server_do(relayed->server, "DEL", TAG_KEY, NULL);
    delay_replies(relayed);
    assert_error(begin_nth_change(relayed->cache, &change, which, "page"), 0);
    turn_until(relayed, which == 1 ? key_exists(relayed, TAG_KEY) : !key_exists(relayed, KEY));
    server_kill(relayed->server);
    lose_reply(relayed);
    assert_error(end_of_change(&change), BELAY_EUNKNOWN);
    server_restart(relayed->server);
  }
}

/* But what was lost in one step, and then known, says nothing of the next. */
RELAYED_TEST(later_step_with_known_result, true) {
  change_t put = {0};
  server_do(relayed->server, "DEL", KEY, NULL);
  relayed->awaited = "cache_fill";
  relayed->slows = true;
  assert_error(begin_put(relayed->cache, &put, "page", "value"), 0);
  turn_until(relayed, key_exists(relayed, KEY));
  server_do(relayed->server, "DEL", KEY, NULL); /* so that the second time it is refused */
  server_do(relayed->server, "ACL", "SETUSER", "default", "-del", NULL);
  lose_reply(relayed);
  assert_error(end_of_change(&put), BELAY_EPERM);
}

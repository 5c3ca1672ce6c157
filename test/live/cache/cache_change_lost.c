/* Caches: changes whose answers are lost. */
#include "support/deployments/relay.h"
#include "support/models/scripts.h"
#include "support/fixtures/cache/shelves.h"

#define KEY "belay::cache::{page}"
#define GEN KEY "::gen"
#define TAG_KEY "belay::cache::{site}::tag"

static void get_bytes(wire_t *wire, const char *key, unsigned char out[BELAY__RECORD_ID]) {
  const resp_t *reply = server_ask(wire->server, "GET", key, NULL);
  assert_int_equal(reply->len, BELAY__RECORD_ID);
  memcpy(out, reply->str, BELAY__RECORD_ID);
}

static void expect_end(edit_t *edit, bool applied) {
  assert_error(end_of_edit(edit), 0);
  assert_int_equal(edit->applied, applied);
}

/* ---- lost answers ---------------------------------------------------------------------------------------- */

/* A new begin could come after an invalidation, with an older value. So the put ends. */
TEST(a_put_begins_once) {
  wire_t wire;
  wire_open(&wire, false);
  for (int i = 0; i < 2; i++) {
    edit_t put = {0};
    shelf_put(&wire.shelf, "page", "before", true);
    wire.awaited = "cache_begin";
    wire.sent = 0;
    slow_down(&wire);
    assert_error(edit_put(&wire.shelf, &put, "page", "value"), 0);
    turn_until(&wire, is_there(&wire, GEN));
    lose_the_answer(&wire);
    expect_end(&put, false);
    assert_int_equal(wire.sent, 1);
    assert_int_equal(server_keys(wire.server), 0); /* the old value is not served either */
  }
  wire_close(&wire);
}

/* The tag that the first try found or made may be deleted by now, and must not return. */
TEST(a_tag_is_not_made_twice) {
  wire_t wire;
  wire_open(&wire, true);
  for (int which = 0; which < 2; which++) {
    edit_t edit = {0};
    unsigned char lost[BELAY__RECORD_ID], found[BELAY__RECORD_ID];
    shelf_put(&wire.shelf, "page", "before", true);
    server_do(wire.server, "DEL", TAG_KEY, NULL);
    slow_down(&wire);
    assert_error(edit_nth(&wire.shelf, &edit, which, "page"), 0);
    turn_until(&wire, is_there(&wire, TAG_KEY));
    get_bytes(&wire, TAG_KEY, lost);
    server_do(wire.server, "DEL", TAG_KEY, NULL);
    lose_the_answer(&wire);
    expect_end(&edit, false); /* the touch finds no value whose tag is as it was */
    assert_int_equal(is_there(&wire, TAG_KEY), which == 1);
    if (which == 0)
      continue; /* it was given up */
    get_bytes(&wire, TAG_KEY, found);
    assert_memory_not_equal(lost, found, BELAY__RECORD_ID);
  }
  wire_close(&wire);
}

/* Its answer is lost; meanwhile: nothing; it is invalidated; another one begins. */
TEST(a_fill_is_stored_once) {
  wire_t wire;
  wire_open(&wire, false);
  for (int meanwhile = 0; meanwhile < 3; meanwhile++) {
    edit_t put = {0};
    server_do(wire.server, "DEL", KEY, NULL);
    wire.awaited = "cache_fill";
    wire.slows = true;
    assert_error(edit_put(&wire.shelf, &put, "page", "value"), 0);
    turn_until(&wire, is_there(&wire, KEY));
    if (meanwhile == 1)
      server_do(wire.server, "DEL", KEY, GEN, NULL);
    else if (meanwhile == 2)
      server_do(wire.server, "SET", GEN, "somebody's load.", "PX", "60000", NULL);
    lose_the_answer(&wire);
    expect_end(&put,
               meanwhile != 1); /* in the last case it was there, before the other one began */
    expect_stored(&wire.shelf, KEY, meanwhile == 1 ? NULL : "value");
    if (meanwhile == 2)
      assert_string_equal(server_string(wire.server, "GET", GEN, NULL), "somebody's load.");
    server_do(wire.server, "DEL", GEN, NULL);
  }
  wire_close(&wire);
}

TEST(others_are_sent_again) {
  static const char *const commands[] = {NULL, "cache_touch", "DEL", "DEL"};
  wire_t wire;
  wire_open(&wire, false);
  for (int which = 1; which < CHANGES; which++) {
    edit_t edit = {0};
    shelf_put(&wire.shelf, "page", "value", true);
    wire.awaited = commands[which];
    wire.sent = 0;
    int64_t executed = server_calls(wire.server, "pexpire") + server_calls(wire.server, "del");
    slow_down(&wire);
    assert_error(edit_nth(&wire.shelf, &edit, which, "page"), 0);
    turn_until(&wire,
               server_calls(wire.server, "pexpire") + server_calls(wire.server, "del") > executed);
    lose_the_answer(&wire);
    expect_end(&edit, true);
    assert_int_equal(wire.sent, 2);
    expect_stored(&wire.shelf, KEY, which == 2 ? NULL : "value");
  }
  wire_close(&wire);
}

/* The wire is cut at some time or other. */
TEST(it_is_done_or_not_known) {
  wire_t wire;
  wire_open(&wire, true);
  unsigned known = 0, cuts = 0;
  for (int i = 0; i < 28; i++) {
    edit_t edit = {0};
    relay_delay(wire.relay, 5);
    edit.request.timeout_ms = i % 7 == 6 ? 60 : 0;
    assert_error(edit_nth(&wire.shelf, &edit, i % CHANGES, "page"), 0);
    bed_run_for(wire.bed, (int64_t)(i % 9) * 4);
    if (edit.ended == 0) {
      cuts++;
      relay_cut(wire.relay);
    }
    relay_delay(wire.relay, 0);
    if (end_of_edit(&edit) != 0 && edit.status != BELAY_EUNREACHABLE)
      assert_error(edit.status, BELAY_EUNKNOWN);
    known += edit.status == 0;
    if (edit.status == 0 && i % CHANGES == 0)
      expect_stored(&wire.shelf, KEY, edit.applied ? "value" : NULL);
    if (edit.status == 0 && i % CHANGES == 2)
      assert_false(is_there(&wire, KEY));
  }
  assert_true(known > 15 && cuts > 10);
  wire_close(&wire);
}

/* The put is complete when the server has executed it. The message to other processes gets only
 * the time in which it is useful. */
TEST(that_others_are_told_is_no_part_of_it) {
  wire_t wire;
  wire_open(&wire, false);
  shelf_t hasty;
  belay_cache_options_t options = shelf_options();
  options.local_ttl_ms = 50;
  shelf_new(&hasty, wire.bed, &options);
  wire.awaited = deployment_publish();
  for (int which = 0; which < CHANGES; which++) {
    edit_t edit = {0};
    if (which == 1)
      continue; /* it tells nobody */
    wire.sent = 0;
    int64_t before = clock_now();
    relay_delay(wire.relay, 3);
    assert_error(edit_nth(&hasty, &edit, which, "page"), 0);
    bed_until(wire.bed, wire.sent == 1);
    server_pause(wire.server);
    expect_end(&edit, true);
    assert_true(clock_since_ms(before) < 5000 * slow());
    server_resume(wire.server);
  }
  server_do(wire.server, "ACL", "SETUSER", "default", "-publish", "-spublish", NULL);
  for (int which = 0; which < CHANGES; which++) {
    edit_t edit = {0};
    assert_error(edit_nth(&wire.shelf, &edit, which, "page"), 0);
    expect_end(&edit, true);
    assert_int_equal(is_there(&wire, KEY), which < 2);
  }
  wire_close(&wire);
}

TEST(others_are_told_once_more) {
  wire_t wire;
  wire_open(&wire, false);
  wire.awaited = deployment_publish();
  wire.cuts = true;
  int64_t before = server_publications(wire.server);
  shelf_invalidate(&wire.shelf, "page");
  assert_false(wire.cuts);
  assert_int_equal(wire.sent, 2);
  assert_true(server_publications(wire.server) > before);
  wire_close(&wire);
}

/* A failed second try says nothing about the first one. */
TEST(the_second_time_says_nothing_of_the_first) {
  wire_t wire;
  wire_open(&wire, true);
  for (int which = 1; which < 3; which++) { /* a step of several calls; of one */
    edit_t edit = {.request.timeout_ms = 250};
    shelf_put(&wire.shelf, "page", "before", true);
    server_do(wire.server, "DEL", TAG_KEY, NULL);
    slow_down(&wire);
    assert_error(edit_nth(&wire.shelf, &edit, which, "page"), 0);
    turn_until(&wire, which == 1 ? is_there(&wire, TAG_KEY) : !is_there(&wire, KEY));
    server_kill(wire.server);
    lose_the_answer(&wire);
    assert_error(end_of_edit(&edit), BELAY_EUNKNOWN);
    server_restart(wire.server);
  }
  wire_close(&wire);
}

/* But what was lost in one step, and then known, says nothing of the next. */
TEST(a_step_that_is_known_is_known) {
  wire_t wire;
  wire_open(&wire, true);
  edit_t put = {0};
  server_do(wire.server, "DEL", KEY, NULL);
  wire.awaited = "cache_fill";
  wire.slows = true;
  assert_error(edit_put(&wire.shelf, &put, "page", "value"), 0);
  turn_until(&wire, is_there(&wire, KEY));
  server_do(wire.server, "DEL", KEY, NULL); /* so that the second time it is refused */
  server_do(wire.server, "ACL", "SETUSER", "default", "-del", NULL);
  lose_the_answer(&wire);
  assert_error(end_of_edit(&put), BELAY_EPERM);
  wire_close(&wire);
}

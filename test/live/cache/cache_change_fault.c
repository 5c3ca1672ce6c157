/* Caches: changes where the server is gone, or has forgotten, or refuses. */
#include "support/deployments/relay.h"
#include "support/models/scripts.h"
#include "support/fixtures/cache/shelves.h"

#define KEY "belay::cache::{page}"
#define GEN KEY "::gen"

static void expect_end(edit_t *edit, bool applied) {
  assert_error(end_of_edit(edit), 0);
  assert_int_equal(edit->applied, applied);
}

/* ---- a server that is gone, or has forgotten, or refuses --------------------------------------------------- */

/* The outcome of an unanswered request is unknown, and its late execution does no harm. */
BED_TEST(no_answer_in_time) {
  shelf_t shelf;
  shelf_new(&shelf, bed, NULL);
  shelf_put(&shelf, "page", "before", true);
  server_pause(bed->server);
  edit_t edits[CHANGES] = {0};
  for (int which = 0; which < CHANGES; which++) {
    edits[which].request.timeout_ms = 60;
    assert_error(edit_nth(&shelf, &edits[which], which, "page"), 0);
  }
  for (int which = 0; which < CHANGES; which++)
    assert_error(end_of_edit(&edits[which]), BELAY_EUNKNOWN);
  server_resume(bed->server);
  bed_settle(bed);
  assert_int_equal(server_keys(bed->server), 0); /* the invalidation is executed */
}

/* The put has begun, and its store command is delayed. */
static void begin_and_wait(wire_t *wire, edit_t *put) {
  wire->awaited = "cache_fill";
  wire->sent = 0;
  wire->slows = true;
  assert_error(edit_put(&wire->shelf, put, "page", "value"), 0);
  bed_until(wire->bed, wire->sent == 1);
  wire->awaited = "";
  assert_true(is_there(wire, GEN));
}

/* Between its steps the server forgets its scripts; or everything. */
TEST(what_the_server_forgets) {
  wire_t wire;
  wire_open(&wire, true);
  for (int i = 0; i < 2; i++) {
    edit_t put = {0};
    begin_and_wait(&wire, &put);
    server_do(wire.server, i < 1 ? "SCRIPT" : "FLUSHALL", i < 1 ? "FLUSH" : NULL, NULL);
    relay_delay(wire.relay, 0);
    expect_end(&put, i < 1);
    expect_stored(&wire.shelf, KEY, i < 1 ? "value" : NULL);
    server_do(wire.server, "SCRIPT", "FLUSH", NULL);
    shelf_touch(&wire.shelf, "page", 60000, i < 1);
  }
  wire_close(&wire);
}

static void expect_refused(shelf_t *shelf, int which, int status) {
  edit_t edit = {0};
  assert_error(edit_nth(shelf, &edit, which, "page"), 0);
  assert_error(end_of_edit(&edit), status);
}

TEST(full_memory) {
  wire_t wire;
  wire_open(&wire, false);
  server_do(wire.server, "CONFIG", "SET", "maxmemory", "1", NULL);
  expect_refused(&wire.shelf, 0, BELAY_EOOM);
  expect_refused(&wire.shelf, 1, BELAY_EOOM);
  expect_stored(&wire.shelf, KEY, "before");
  assert_false(is_there(&wire, GEN));
  shelf_invalidate(&wire.shelf, "page"); /* takes none */
  assert_false(is_there(&wire, KEY));
  server_do(wire.server, "CONFIG", "SET", "maxmemory", "0", NULL);
  shelf_put(&wire.shelf, "page", "before", true);
  edit_t put = {0};
  begin_and_wait(&wire, &put);
  server_do(wire.server, "CONFIG", "SET", "maxmemory", "1", NULL);
  relay_delay(wire.relay, 0);
  assert_error(end_of_edit(&put), BELAY_EOOM);
  expect_stored(&wire.shelf, KEY, "before");
  wire_close(&wire);
}

BED_TEST(what_a_user_may_not_do) {
  static const char *const rights[] = {"-set", "-setrange", "-del"};
  static const bool refused[][CHANGES] = {
      {true, false, false, false},
      {false, true, false, false},
      {true, false, true, true},
  };
  shelf_t shelf;
  shelf_new(&shelf, bed, NULL);
  for (int i = 0; i < 3; i++)
    for (int which = 0; which < CHANGES; which++) {
      shelf_put(&shelf, "page", "before", true);
      server_do(bed->server, "ACL", "SETUSER", "default", rights[i], NULL);
      expect_refused(&shelf, which, refused[i][which] ? BELAY_EPERM : 0);
      server_do(bed->server, "ACL", "SETUSER", "default", "+@all", NULL);
      if (refused[i][which])
        expect_stored(&shelf, KEY, "before");
    }
}

/* A put that has begun can meet the limit of pending calls. */
TEST(too_much_at_once) {
  needs_one_process("one connection");
  static char value[50000];
  belay_client_options_t options = client_options();
  belay_cache_options_t o = shelf_options();
  options.max_bytes = 1 << 16;
  o.max_value_bytes = sizeof value;
  bed_t *bed = bed_open(&options);
  shelf_t shelf;
  edit_t puts[2] = {0};
  shelf_new(&shelf, bed, &o);
  shelf_put(&shelf, "page", "before", true);
  server_pause(bed->server);
  for (int i = 0; i < 2; i++)
    assert_error(edit_put_bytes(&shelf, &puts[i], i == 0 ? "page" : "other", value, sizeof value,
                                BELAY_DEFAULT),
                 0);
  bed_run_for(bed, 20);
  server_resume(bed->server);
  assert_error(end_of_edit(&puts[0]), 0);
  assert_error(end_of_edit(&puts[1]), BELAY_EBUSY);
  assert_true(puts[0].applied);
  expect_ttls(bed->server);
  bed_close(bed);
}

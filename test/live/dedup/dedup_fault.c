/* Dedup where something goes wrong: answers are lost, everything is closed. */
#include <stdio.h>

#include "support/fixtures/data/dedups.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define KEY "belay::dedup::{n}::k"

/* ---- lost answers ---------------------------------------------------------------------------------------- */

typedef struct wire {
  server_t *server;
  relay_t *relay;
  bed_t *bed;
  book_t book;
} wire_t;

static void wire_open(wire_t *wire, belay_dedup_kind_t kind) {
  wire->server = server_start(NULL);
  wire->relay = relay_start(server_path(wire->server));
  belay_client_options_t options = relay_client_options();
  wire->bed = bed_open_at(relay_url(wire->relay), &options);
  wire->bed->server = wire->server;
  book_new(&wire->book, wire->bed, kind);
}

static void wire_close(wire_t *wire) {
  expect_ttls(wire->server);
  bed_close(wire->bed);
  relay_stop(wire->relay);
}

/* The server has executed it, so that key is there or not, and the answer is on its way when the wire is cut. */
static void lose_the_answer(wire_t *wire, const char *key, bool there) {
  while ((server_integer(wire->server, "EXISTS", key, NULL) == 1) != there)
    uv_run(&wire->bed->loop, UV_RUN_NOWAIT);
  relay_cut(wire->relay);
  relay_delay(wire->relay, 0);
}

TEST(a_mark_is_not_sent_again) {
  for (int i = 0; i < DEDUP_KINDS; i++) {
    wire_t wire;
    wire_open(&wire, (belay_dedup_kind_t)i);
    for (int n = 0; n < 2; n++) {
      const bool counts = (belay_dedup_kind_t)i == BELAY_DEDUP_COUNT;
      entry_t entry = {0};
      expect_clear(&wire.book, "k", n);
      relay_delay(wire.relay, RELAY_LONG);
      assert_error(begin_dedup_nth(&wire.book, &entry, n), 0);
      lose_the_answer(&wire, KEY, true);
      assert_error(end_of_entry(&entry), counts ? 0 : BELAY_EUNKNOWN);
      if (counts) /* nothing untrue */
        assert_string_equal(entry.verdicts, n == 0 ? "M" : "MM");
      else
        expect_seen(&wire.book, "k", "1,2", n == 0 ? "SN" : "SS");
      expect_count(&wire.book, "k", n + 1);
    }
    wire_close(&wire);
  }
}

TEST(an_operation_with_an_id_is_sent_again) {
  for (int i = 0; i < DEDUP_KINDS; i++) {
    wire_t wire;
    wire_open(&wire, (belay_dedup_kind_t)i);
    expect_mark(&wire.book, "k", "2", "N");
    entry_t entry = {0};
    relay_delay(wire.relay, RELAY_LONG);
    assert_error(begin_mark_once(&wire.book, &entry, "k", "1,2", "id"), 0);
    lose_the_answer(&wire, KEY "::op::id", true);
    assert_error(end_of_entry(&entry), 0);
    assert_string_equal(entry.verdicts, (belay_dedup_kind_t)i == BELAY_DEDUP_COUNT ? "NM" : "NS");
    expect_count(&wire.book, "k", 2);
    wire_close(&wire);
  }
}

/* Nor is what would be something else the second time. */
TEST(a_difference_in_place_of_its_second_set_is_made_once) {
  wire_t wire;
  entry_t entry = {0};
  wire_open(&wire, BELAY_DEDUP_SET);
  expect_mark(&wire.book, "a", "1,2", "NN");
  expect_mark(&wire.book, "k", "2", "N");
  for (int i = 0; i < 2; i++) {
    const char *into = i == 0 ? "first" : "k";
    relay_delay(wire.relay, RELAY_LONG);
    assert_error(begin_store(&wire.book, &entry, BELAY_DEDUP_DIFFERENCE, "a,k", into), 0);
    while (server_calls(wire.server, "sdiffstore") == 0)
      uv_run(&wire.bed->loop, UV_RUN_NOWAIT);
    relay_cut(wire.relay);
    relay_delay(wire.relay, 0);
    assert_error(end_of_entry(&entry), i == 0 ? 0 : BELAY_EUNKNOWN);
    expect_seen(&wire.book, into, "1,2", "SN");
    if (i == 0)
      server_do(wire.server, "CONFIG", "RESETSTAT", NULL);
  }
  wire_close(&wire);
}

/* The wire is cut, or falls silent, at some time or other: what is told is true, and nobody's item is lost. */
TEST(an_operation_is_told_the_truth) {
  wire_t wire;
  unsigned cuts = 0;
  wire_open(&wire, BELAY_DEDUP_WINDOW);
  expect_mark(&wire.book, "k", "0", "N");
  for (int i = 1; i < 16; i++) {
    char item[8];
    entry_t entry = {0};
    snprintf(item, sizeof item, "%d", i);
    relay_delay(wire.relay, 10);
    assert_error(begin_mark_once(&wire.book, &entry, "k", item, item), 0);
    bed_run_for(wire.bed, i % 4 * 7);
    cuts += entry.ended == 0;
    if (i % 5 == 4)
      relay_silence(wire.relay);
    else
      relay_cut(wire.relay);
    relay_delay(wire.relay, 0);
    assert_error(end_of_entry(&entry), 0);
    assert_string_equal(entry.verdicts, "N");
    expect_count(&wire.book, "k", i + 1);
  }
  assert_true(cuts > 3);
  wire_close(&wire);
}

TEST(what_takes_out_is_not_sent_again) {
  wire_t wire;
  wire_open(&wire, BELAY_DEDUP_SET);
  for (int n = 0; n < 2; n++) {
    entry_t entry = {0};
    expect_mark(&wire.book, "k", "1,2", "NN");
    relay_delay(wire.relay, RELAY_LONG);
    assert_error(n == 0 ? begin_clear(&wire.book, &entry, "k")
                        : begin_forget(&wire.book, &entry, "k", "1,2"),
                 0);
    lose_the_answer(&wire, KEY, false);
    assert_error(end_of_entry(&entry), BELAY_EUNKNOWN);
  }
  wire_close(&wire);
}

TEST(what_looks_is_asked_again) {
  static const int looks[] = {3, 5, 6, 8, 9, 10};
  wire_t wire;
  wire_open(&wire, BELAY_DEDUP_SET);
  expect_mark(&wire.book, "k", "1,3", "NN");
  for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
    entry_t entry = {0};
    server_pause(wire.server);
    assert_error(begin_dedup_nth(&wire.book, &entry, looks[i]), 0);
    bed_run_for(wire.bed, 20);
    relay_cut(wire.relay);
    server_resume(wire.server);
    assert_error(end_of_entry(&entry), 0);
    assert_int_equal(entry.count, looks[i] == 3 || looks[i] == 8 || looks[i] == 9 ? 2 : 0);
  }
  wire_close(&wire);
}

BED_TEST(nothing_was_sent) {
  book_t book;
  book_new(&book, bed, BELAY_DEDUP_SET);
  expect_mark(&book, "k", "1", "N");
  server_kill(bed->server);
  bed_run_for(bed, 50);
  entry_t entries[DEDUP_OPERATIONS] = {0};
  for (int n = 0; n < DEDUP_OPERATIONS; n++) {
    entries[n].request.timeout_ms = 100;
    assert_error(begin_dedup_nth(&book, &entries[n], n), 0);
  }
  for (int n = 0; n < DEDUP_OPERATIONS; n++)
    assert_error(end_of_entry(&entries[n]), BELAY_EUNREACHABLE);
}

/* ---- requests, closing ----------------------------------------------------------------------------------- */

TEST(what_is_too_much_is_refused) {
  static belay_bytes_t many[1000];
  static char item[BELAY_DEDUP_ITEM_MAX];
  belay_client_options_t options = client_options();
  options.max_bytes = 65536;
  bed_t *bed = bed_open(&options);
  book_t book;
  entry_t entry = {0};
  book_new(&book, bed, BELAY_DEDUP_SET);
  for (size_t i = 0; i < 1000; i++)
    many[i] = (belay_bytes_t){item, sizeof item};
  belay_request_t *r = begin_entry(&book, &entry);
  assert_error(
      begun_entry(&entry, belay_dedup_mark_many(book.dedup, r, "k", 1, many, 1000, on_verdicts)),
      BELAY_EBUSY);
  expect_mark(&book, "k", "1", "N");
  bed_close(bed);
}

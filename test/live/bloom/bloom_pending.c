/* Operations on Bloom filters that are under way: answers are lost, many wait, everything is closed. */
#include "support/fixtures/data/blooms.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

/* ---- lost answers ---------------------------------------------------------------------------------------- */

typedef struct wire {
  server_t *server;
  relay_t *relay;
  bed_t *bed;
  sieve_t sieve;
} wire_t;

static void wire_open(wire_t *wire) {
  wire->server = server_start(NULL);
  wire->relay = relay_start(server_path(wire->server));
  belay_client_options_t options = relay_client_options();
  wire->bed = bed_open_at(relay_url(wire->relay), &options);
  wire->bed->server = wire->server;
  sieve_new(&wire->sieve, wire->bed, 10000, 1e-6);
}

static void wire_close(wire_t *wire) {
  expect_ttls(wire->server);
  bed_close(wire->bed);
  relay_stop(wire->relay);
}

static void lose_the_answer(wire_t *wire, const char *command, int64_t calls) {
  while (server_calls(wire->server, command) <= calls)
    uv_run(&wire->bed->loop, UV_RUN_NOWAIT);
  relay_cut(wire->relay);
  relay_delay(wire->relay, 0);
}

/* Whether it was new nobody can say, and it is not asked again: by itself it would say no. */
TEST(an_add_is_not_sent_again) {
  wire_t wire;
  wire_open(&wire);
  assert_true(sift_add(&wire.sieve, "first"));
  for (int i = 0; i < 2; i++) {
    sift_t sift = {0};
    bool bulk = i == 1;
    const char *command = bulk ? "bitop" : "bitfield";
    relay_delay(wire.relay, RELAY_LONG);
    int64_t calls = server_calls(wire.server, command);
    if (bulk)
      assert_error(begin_sift_many(&wire.sieve, &sift, true, sift_items(0, 5000), 5000), 0);
    else
      assert_error(begin_sift_add(&wire.sieve, &sift, "a", 1), 0);
    lose_the_answer(&wire, command, calls);
    assert_error(end_of_sift(&sift), BELAY_EUNKNOWN);
    assert_int_equal(server_calls(wire.server, command), calls + 1);
    assert_true(sift_exists(&wire.sieve, "a")); /* it was added */
  }
  wire_close(&wire);
}

TEST(an_exists_is_asked_again) {
  wire_t wire;
  wire_open(&wire);
  assert_true(sift_add(&wire.sieve, "a"));
  sift_t sift = {0};
  relay_delay(wire.relay, RELAY_LONG);
  int64_t calls = server_calls(wire.server, "bitfield_ro");
  assert_error(begin_sift_exists(&wire.sieve, &sift, "a", 1), 0);
  lose_the_answer(&wire, "bitfield_ro", calls);
  assert_error(end_of_sift(&sift), 0);
  assert_true(sift.answer);
  assert_int_equal(server_calls(wire.server, "bitfield_ro"), calls + 2);
  wire_close(&wire);
}

/* At each of its steps. */
TEST(an_opening_goes_on_after_a_cut) {
  wire_t wire;
  wire_open(&wire);
  for (int i = 0; i < 4; i++) {
    sift_t sift = {0};
    relay_delay(wire.relay, 20);
    int64_t calls = server_calls(wire.server, i < 1 ? "eval" : "set");
    assert_error(begin_open_sieve(&wire.sieve, &sift), 0);
    lose_the_answer(&wire, i < 1 ? "eval" : "set", calls + (i > 1 ? i - 1 : 0));
    assert_error(end_of_sift(&sift), 0);
    assert_true(sift_add(&wire.sieve, "a"));
    sift_clear(&wire.sieve);
  }
  wire_close(&wire);
}

/* ---- requests -------------------------------------------------------------------------------------------- */

BED_TEST(all_that_wait_for_an_opening_are_told) {
  sieve_t sieve;
  sift_t sifts[6] = {0};
  sieve_new(&sieve, bed, 1000, 1e-6);
  server_pause(bed->server);
  sifts[0].request.timeout_ms = 50;
  assert_error(begin_sift_add(&sieve, &sifts[0], "a", 1), 0);
  assert_error(begin_sift_add(&sieve, &sifts[0], "a", 1), BELAY_ESTATE);
  assert_error(begin_sift_add(&sieve, &sifts[1], "b", 1), 0);
  assert_error(begin_sift_add(&sieve, &sifts[2], "b", 1), 0);
  assert_error(begin_open_sieve(&sieve, &sifts[3]), 0);
  assert_error(begin_sift_info(&sieve, &sifts[4]), 0);
  assert_error(begin_sift_exists(&sieve, &sifts[5], "c", 1), 0);
  assert_error(end_of_sift(&sifts[0]), BELAY_ETIMEDOUT);
  assert_error(belay_request_cancel(&sifts[5].request), 0);
  assert_error(end_of_sift(&sifts[5]), BELAY_ECANCELED);
  server_resume(bed->server);
  for (int i = 1; i < 5; i++)
    assert_error(end_of_sift(&sifts[i]), 0);
  assert_true(sifts[1].answer);
  assert_false(sifts[2].answer); /* in their order */
  assert_int_equal(sifts[4].info.items, 1);
  assert_false(sift_exists(&sieve, "a")); /* nothing was sent of it */
}

BED_TEST(nothing_can_be_reached) {
  sieve_t sieve;
  sift_t sifts[3] = {0};
  belay_client_options_t options = client_options();
  options.timeout_ms = 100;
  sieve_of(&sieve, bed, bed_connect(bed, server_url(bed->server), &options),
           &(belay_bloom_options_t){.name = "seen", .name_len = 4, .bits = 1000});
  server_kill(bed->server);
  for (int i = 0; i < 3; i++)
    assert_error(begin_sift_add(&sieve, &sifts[i], "a", 1), 0);
  for (int i = 0; i < 3; i++) {
    int error = end_of_sift(&sifts[i]);
    assert_true(error == BELAY_EUNREACHABLE || error == BELAY_ETIMEDOUT);
  }
  server_restart(bed->server);
  sifts[0].request.timeout_ms = 60000;
  assert_error(begin_sift_add(&sieve, &sifts[0], "a", 1), 0);
  assert_error(end_of_sift(&sifts[0]), 0);
  assert_true(sifts[0].answer);
}

/* The read/write lock's scripts: times, refusals and notifications. */
#include <stdbool.h>

#include "support/servers/acl.h"
#include "support/base/clock.h"
#include "support/models/rw_scripts.h"
#include "support/base/test.h"

static const char *const parts[] = {LOCK, READERS, WAITING, WRITERS, ADMITTED, FENCE};
enum { PARTS = 6 };

TEST_ON(acquire_replies_time_to_wait, server, server_start(NULL)) {
  acquire_args_t brief = {"300", "200", false, true, ""};
  assert_int_equal(acquire_as(server, read_script, 0, brief), 0);
  assert_int_equal(read_as(server, 1), 0);
  int64_t longest = write_as(server, 2);
  assert_between(longest, 60000 - 1000 * slow(), 60000); /* the last reader */
  int64_t place = read_as(server, 3);
  assert_between(place, 50000 - 1000 * slow(), 50000); /* the waiting writer's place */
  assert_int_equal(release_as(server, 1), 1);
  assert_between(write_as(server, 2), 1, 300);
  stall_ms(350);
  assert_int_equal(acquire_as(server, write_script, 2, brief), 0);
  assert_between(acquire_as(server, read_script, 4, brief), 1, 300);
  stall_ms(350);
  /* The writer is over, the place of 4 too; 3 has its turn. */
  assert_between(write_as(server, 5), 49000 - 1000 * slow(), 50000);
  assert_between(read_as(server, 4), 1, 50000);
  assert_int_equal(read_as(server, 3), 0);
  assert_between(write_as(server, 5), 60000 - 1000 * slow(), 60000);
}

TEST_ON(writer_without_ttl_never_expires, server, server_start(NULL)) {
  server_do(server, "SET", LOCK, "somebody else", NULL);
  assert_int_equal(read_as(server, 0), -2);
  assert_int_equal(write_as(server, 1), -2);
}

TEST_ON(expired_hold_is_not_extended, server, server_start(NULL)) {
  acquire_args_t brief = {"50", "50", false, true, ""};
  assert_int_equal(acquire_as(server, read_script, 0, brief), 0);
  assert_int_equal(read_as(server, 1), 0);
  stall_ms(80);
  assert_int_equal(extend_as(server, 0, "60000", "r"), 0);
  assert_int_equal(extend_as(server, 0, "60000", "w"), 0);
  assert_int_equal(release_as(server, 0), 0);
  assert_int_equal(extend_as(server, 1, "60000", "w"), 1); /* it is alone */
}

TEST_ON(extend_never_shortens, server, server_start(NULL)) {
  assert_int_equal(read_as(server, 0), 0);
  assert_int_equal(extend_as(server, 0, "100", "r"), 1);
  assert_int_equal(read_as(server, 1), 0);
  assert_int_equal(extend_as(server, 0, "100", "w"), 3);
  assert_int_equal(release_as(server, 1), 1);
  assert_true(server_integer(server, "PTTL", READERS, NULL) > 60000 - 5000 * slow());
  assert_int_equal(extend_as(server, 0, "100", "w"), 1);
  assert_true(server_integer(server, "PTTL", LOCK, NULL) > 60000 - 5000 * slow());
  assert_int_equal(extend_as(server, 0, "100", "w"), 1);
  assert_int_equal(extend_as(server, 0, "100", "r"), 1);
  assert_true(server_integer(server, "PTTL", READERS, NULL) > 60000 - 5000 * slow());
  assert_int_equal(extend_as(server, 0, "900000", "r"), 1);
  assert_true(server_integer(server, "PTTL", READERS, NULL) > 800000);
}

/* For each key of another type: nothing changes. */
TEST(wrong_type_changes_nothing) {
  server_options_t options = {.arguments = {"--enable-debug-command", "yes"}};
  server_t *server = server_start(&options);
  const belay__script_t *const scripts[] = {read_script, write_script, extend_script,
                                            release_script};
  acquire_args_t counted = {"60000", "50000", true, true, ""};
  for (unsigned strange = 0; strange < PARTS; strange++) {
    for (unsigned holding = 0; holding < 3; holding++) {
      actor_t a = actor(0);
      server_do(server, "FLUSHALL", NULL);
      if (holding > 0)
        (void)(holding == 1 ? read_as : write_as)(server, 0);
      (void)write_as(server, 1);
      (void)read_as(server, 2);
      server_do(server, "DEL", parts[strange], NULL);
      server_do(server, "RPUSH", parts[strange], "a", NULL);
      uint64_t before = server_digest(server);
      script_input_t inputs[] = {acquire_input(read_script, &a, counted),
                                 acquire_input(write_script, &a, counted),
                                 extend_input(&a, "60000", "60000", "w"), release_input(&a, true)};
      for (unsigned i = 0; i < 4; i++) {
        if (strange == 5 && i >= 2)
          continue; /* these have no counter */
        script_refused(server, scripts[i], &inputs[i], "WRONGTYPE");
        assert_true(server_digest(server) == before);
      }
    }
  }
  server_stop(server);
}

/* Readers directly behind a granted reader are granted, too, but never beside a writer. */
TEST_ON(waiting_reader_enters_with_host, server, server_start(NULL)) {
  acquire_args_t hosted = usual, misled = usual;
  hosted.host = "token 0";
  misled.host = "token 9";
  assert_int_equal(read_as(server, 0), 0);
  assert_true(write_as(server, 1) > 0);
  assert_true(read_as(server, 2) > 0);
  assert_true(acquire_as(server, read_script, 3, misled) > 0);
  assert_int_equal(acquire_as(server, read_script, 2, hosted), 0);
  assert_int_equal(server_integer(server, "ZCARD", WAITING, NULL), 1); /* its place is given up */
  assert_int_equal(release_as(server, 0), 1);
  assert_true(acquire_as(server, read_script, 3, hosted) > 0);
  assert_int_equal(release_as(server, 2), 1);
  assert_int_equal(write_as(server, 1), 0);
  hosted.host = "token 1";
  assert_true(acquire_as(server, read_script, 4, hosted) > 0);
}

/* Out of memory: no new holder, but present holders renew and release. */
TEST_ON(full_server_keeps_holders, server, server_start(NULL)) {
  actor_t a = actor(3);
  script_input_t input = acquire_input(read_script, &a, usual);
  assert_int_equal(read_as(server, 0), 0);
  server_do(server, "CONFIG", "SET", "maxmemory", "1", NULL);
  assert_int_equal(extend_as(server, 0, "90000", "r"), 1);
  assert_true(server_integer(server, "PTTL", READERS, NULL) > 60000);
  script_refused(server, read_script, &input, "OOM");
  script_refused(server, write_script, &input, "OOM");
  actor_t first = actor(0);
  input = extend_input(&first, "60000", "0", "w");
  script_refused(server, extend_script, &input, "OOM");
  assert_int_equal(release_as(server, 0), 1);
  server_do(server, "CONFIG", "SET", "maxmemory", "0", NULL);
  assert_int_equal(write_as(server, 0), 0);
  server_do(server, "CONFIG", "SET", "maxmemory", "1", NULL);
  assert_int_equal(extend_as(server, 0, "90000", "w"), 1);
  assert_int_equal(extend_as(server, 0, "90000", "r"), 1);
  assert_int_equal(release_as(server, 0), 1);
  assert_int_equal(server_keys(server), 0);
}

TEST_ON(release_replies_number_of_subscribers, server, server_start(NULL)) {
  resp_client_t listener;
  assert_int_equal(acl_dial(NULL, &listener, server_path(server)), 0);
  resp_words_t subscribe = {2, {"SUBSCRIBE", LOCK "::wake"}, {9, sizeof LOCK "::wake" - 1}};
  resp_free(resp_call(&listener, &subscribe));
  assert_int_equal(write_as(server, 0), 0);
  assert_int_equal(release_as(server, 0), 2);
  assert_int_equal(read_as(server, 0), 0);
  assert_int_equal(read_as(server, 1), 0);
  assert_int_equal(release_as(server, 0), 1); /* no waiter becomes able to enter */
  assert_int_equal(release_as(server, 1), 2);
  assert_int_equal(release_as(server, 1), 0);
  resp_hang_up(&listener);
}

/* A user without the right to publish can still release. */
TEST_ON(release_without_publish_right, server, server_start(NULL)) {
  assert_int_equal(write_as(server, 0), 0);
  server_do(server, "ACL", "SETUSER", "default", "-publish", NULL);
  assert_int_equal(release_as(server, 0), 1);
  assert_int_equal(server_keys(server), 0);
}

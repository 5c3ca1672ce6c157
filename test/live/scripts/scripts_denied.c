/* Every script for a user that lacks the right to one of its commands, and on a server without
 * memory: a refused script has written nothing, and each key that a script leaves has a ttl. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/call/refusal.h"
#include "support/fixtures/env.h"
#include "support/models/script_world.h"
#include "support/models/scripts.h"

/* Scripts that may have written before a command that is refused. Their keys have a ttl, and the
 * next run accepts it. */
static const char *const partial[] = {"active_mark",
                                      "barrier_arrive",
                                      "barrier_withdraw",
                                      "bloom_open",
                                      "bloom_or",
                                      "bloom_rotating",
                                      "bloom_scaling",
                                      "bloom_segment",
                                      "dedup_mark",
                                      "dedup_merge",
                                      "dedup_window_mark",
                                      "fair_acquire",
                                      "fair_release",
                                      "fence_accept",
                                      "idgen_segment",
                                      "limit_log",
                                      "lock_hand_over_fenced",
                                      "reentrant_acquire",
                                      "reentrant_release",
                                      "rwlock_extend",
                                      "rwlock_read",
                                      "rwlock_write",
                                      "semaphore_acquire",
                                      "semaphore_extend",
                                      "semaphore_release",
                                      "session_touch",
                                      NULL};

static unsigned refusals, clean_refusals, wrong;

static void set_limit(server_t *server, const char *command, bool on) {
  char right[40];
  snprintf(right, sizeof right, "-%s", command);
  if (strcmp(command, "memory") == 0)
    server_do(server, "CONFIG", "SET", "maxmemory", on ? "1" : "0", NULL);
  else
    server_do(server, "ACL", "SETUSER", "default", on ? right : "+@all", NULL);
}

static bool is_partial(const script_row_t *row) {
  const char *name = script_of_row(row)->name;
  for (size_t i = 0; partial[i] != NULL; i++)
    if (strcmp(partial[i], name) == 0)
      return true;
  return false;
}

/* True if the server says that it was on a line before which nothing can have been written. */
static bool is_clean(const script_row_t *row, const resp_t *reply) {
  unsigned line = belay__refusal_line(reply->str, reply->len);
  return line > 0 && line <= script_of_row(row)->clean_lines;
}

static void expect_ends(script_world_t *world, const script_row_t *row, const char *command) {
  static const char lasting[] = "local n = 0\n"
                                "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
                                "  n = n + (redis.call('PTTL', key) < 0 and 1 or 0)\n"
                                "end\n"
                                "return n";
  if (strpbrk(row->keys, "!?") != NULL || strcmp(script_of_row(row)->name, "limit_log") == 0)
    return; /* it may be for ever; a log of tokens is, without PEXPIRE */
  if (server_integer(world->server, "EVAL", lasting, "0", NULL) != 0) {
    print_error("%s, without %s: a key has no ttl\n", row->name, command);
    wrong++;
  }
}

static void run_without(script_world_t *world, const script_row_t *row, const char *command) {
  script_world_command(world, "FLUSHALL");
  script_world_run_before(world, row, false);
  uint64_t before = server_digest(world->server);
  set_limit(world->server, command, true);
  resp_t *reply = script_world_eval(world, row);
  set_limit(world->server, command, false);
  if (reply->type == RESP_ERROR) {
    bool clean = is_clean(row, reply);
    refusals++;
    clean_refusals += clean;
    if ((clean || !is_partial(row)) && server_digest(world->server) != before) {
      print_error("%s, without %s: it has written, and failed\n", row->name, command);
      wrong++;
    }
  }
  resp_free(reply);
  expect_ends(world, row, command);
  reply = script_world_eval(world, row); /* the keys that stayed do no harm */
  if (reply->type == RESP_ERROR && strchr(row->reply, 'x') == NULL) {
    print_error("%s, after it ran without %s: %s\n", row->name, command, reply->str);
    wrong++;
  }
  resp_free(reply);
  expect_ends(world, row, command);
}

TEST(missing_right_or_memory_writes_nothing) {
  needs_one_process("rights in one place");
  script_world_t world;
  script_world_open(&world);
  for (size_t i = 0; i < script_rows_len; i++) {
    char command[32];
    for (const char *at = script_of_row(&script_rows[i])->text; script_next_command(&at, command);)
      run_without(&world, &script_rows[i], command);
    run_without(&world, &script_rows[i], "memory");
  }
  print_message("%u refusals, %u before a write\n", refusals, clean_refusals);
  script_world_close(&world);
  assert_int_equal(wrong, 0);
  assert_true(refusals > 300 && clean_refusals > 100);
}

/* A user who lacks the right to one command: whichever it is, what the scripts leave has a ttl,
 * and is nothing that makes them say something untrue when the right is given. */
#include <stdio.h>

#include "core/call/refusal.h"
#include "scripts.gen.h"
#include "support/fixtures/env.h"
#include "support/models/scripts.h"

#define TTL "60000"
#define LONG "120000"
#define SCRIPTS_MAX 4 /* before the one that is tried */

typedef struct run {
  const belay__script_t *script;
  script_input_t input;
} run_t;

static unsigned clean_refusals;

/* The last run is tried, after the others. */
typedef struct scene {
  const char *name;
  run_t runs[SCRIPTS_MAX + 1];
} scene_t;

#define LATCH                                                                                      \
  { "l", NULL }
#define BARRIER                                                                                    \
  { "b", "b::parties", "b::passed", "b::opened", NULL }

#define ARRIVE(party)                                                                              \
  {                                                                                                \
    &belay__script_barrier_arrive, {                                                               \
      BARRIER, {                                                                                   \
        "2", LONG, party, TTL, TTL, "", "", NULL                                                   \
      }                                                                                            \
    }                                                                                              \
  }
#define COUNT(ttl, id, keep)                                                                       \
  {                                                                                                \
    &belay__script_latch_count, {                                                                  \
      LATCH, {                                                                                     \
        "3", ttl, id, "", keep, NULL                                                               \
      }                                                                                            \
    }                                                                                              \
  }
#define LOOK                                                                                       \
  {                                                                                                \
    &belay__script_latch_read, {                                                                   \
      LATCH, {                                                                                     \
        "3", TTL, "", NULL                                                                         \
      }                                                                                            \
    }                                                                                              \
  }

/* The state before the last run; that is returned. */
static const run_t *play(server_t *server, const scene_t *scene) {
  const run_t *run = scene->runs;
  server_do(server, "FLUSHALL", NULL);
  for (; run[1].script != NULL; run++)
    assert_int_not_equal(script_run(server, run->script, &run->input)->type, RESP_ERROR);
  return run;
}

/* Whether the server says that it was on a line before which nothing can have been written; then
 * nothing was. */
static bool is_refused_cleanly(const run_t *run, const resp_t *reply) {
  unsigned line = belay__refusal_line(reply->str, reply->len);
  return line > 0 && line <= run->script->clean_lines;
}

static bool is_refused_without(server_t *server, const run_t *run, const char *command) {
  char right[40];
  uint64_t before = server_digest(server);
  snprintf(right, sizeof right, "-%s", command);
  server_do(server, "ACL", "SETUSER", "default", right, NULL);
  const resp_t *reply = script_run(server, run->script, &run->input);
  bool refused = reply->type == RESP_ERROR, clean = refused && is_refused_cleanly(run, reply);
  server_do(server, "ACL", "SETUSER", "default", "+@all", NULL);
  if (clean && server_digest(server) != before)
    fail_msg("%s, without %s, has written", run->script->name, command);
  clean_refusals += clean;
  return refused;
}

TEST(barrier_with_missing_right) {
  static const scene_t last = {"", {ARRIVE("a"), ARRIVE("b")}};
  static const run_t third = ARRIVE("c");
  char command[32];
  server_t *server = server_with_digest();
  for (const char *at = belay__script_barrier_arrive.text; script_next_command(&at, command);) {
    const run_t *run = play(server, &last);
    (void)is_refused_without(server, run, command);
    for (int i = 1; i >= 0; i--)
      assert_int_equal(script_integer(server, last.runs[i].script, &last.runs[i].input), 1);
    assert_int_equal(script_integer(server, third.script, &third.input), 0);
  }
  server_stop(server);
}

/* A count that is refused has not counted; one that was answered has. */
TEST(latch_with_missing_right) {
  static const scene_t counts[] = {{"", {COUNT(TTL, "a", "100")}},
                                   {"", {COUNT("5000", "b", "100"), COUNT("5000", "a", TTL)}}};
  static const run_t look = LOOK;
  char command[32];
  server_t *server = server_with_digest();
  for (int i = 0; i < 2; i++)
    for (const char *at = belay__script_latch_count.text; script_next_command(&at, command);) {
      const run_t *run = play(server, &counts[i]);
      bool refused = is_refused_without(server, run, command);
      const resp_t *reply = script_run(server, look.script, &look.input);
      assert_int_equal(reply->count, 2);
      assert_int_equal(reply->items[0]->integer, (refused ? 3 : 2) - i);
    }
  server_stop(server);
}

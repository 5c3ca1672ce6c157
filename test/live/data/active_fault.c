/* Active users where something goes wrong: answers are lost, keys hold something else,
 * everything is closed. */
#include <stdio.h>

#include "scripts.gen.h"
#include "support/models/scripts.h"
#include "support/fixtures/data/seen.h"

#define PREFIX "belay::active::{site}::"
#define KEY PREFIX "20400102"
#define ARCHIVE PREFIX "archive::x"
#define THEN INT64_C(2209111200000) /* 2040-01-02 10:00 UTC */

enum { MARK, COUNT, LAST, SPAN, ARCHIVED, ARCHIVES, CLEAR, CLEAR_ARCHIVES, OPERATIONS };

static belay_active_t *series(env_t *env) {
  belay_active_t *active;
  belay_active_options_t options;
  belay_active_options_init(&options);
  options.name = belay_string("site");
  assert_error(belay_active_new(env->client, &options, &active), 0);
  return active;
}

/* Begins the n-th operation. */
static int begin(env_t *env, belay_active_t *a, seen_t *seen, int n, int64_t time) {
  static const belay_bytes_t label = {"x", 1};
  belay_request_t *r = seen_begin(env, seen);
  switch (n) {
  case MARK:
    return seen_begun(seen, belay_active_mark(a, r, belay_string("ann"), time, on_seen));
  case COUNT:
    return seen_begun(seen, belay_active_count(a, r, time, on_seen_counts));
  case LAST:
    return seen_begun(seen, belay_active_count_last(a, r, time, NULL, 0, on_seen_counts));
  case SPAN:
    return seen_begun(seen, belay_active_count_span(a, r, time, time, on_seen_counts));
  case ARCHIVED:
    return seen_begun(seen,
                      belay_active_archive(a, r, time, time, belay_string("x"), on_seen_counts));
  case ARCHIVES:
    return seen_begun(seen, belay_active_count_archives(a, r, &label, 1, on_seen_counts));
  case CLEAR:
    return seen_begun(seen, belay_active_clear(a, r, time, time, on_seen));
  default:
    return seen_begun(seen, belay_active_clear_archives(a, r, &label, 1, on_seen));
  }
}

ENV_TEST(wrong_type_is_left_unchanged) {
  belay_active_t *active = series(env);
  for (int how = 0; how < 3; how++)
    for (int archive = 0; archive < 2; archive++)
      for (int n = 0; n < CLEAR; n++) {
        const char *key = archive ? ARCHIVE : KEY;
        bool meets = archive ? n == ARCHIVED || n == ARCHIVES : n != ARCHIVES;
        seen_t seen = {0};
        server_do(env->server, "FLUSHALL", NULL);
        if (how == 0) {
          server_do(env->server, "RPUSH", key, "1", NULL);
        } else if (how == 1) {
          server_do(env->server, "SET", key, "text", NULL);
        } else {
          server_do(env->server, "PFADD", key, "ann", "ben", NULL);
          server_do(env->server, "SETRANGE", key, "16", "\xff\xff\xff\xff\xff", NULL);
          server_do(env->server, "SETRANGE", key, "15", "\x80", NULL); /* no count is kept in it */
        }
        char *before = strdup(server_string(env->server, "TYPE", key, NULL));
        assert_error(begin(env, active, &seen, n, THEN), 0);
        int status = end_of_seen(&seen);
        assert_int_equal(server_integer(env->server, "PTTL", key, NULL), -1);
        assert_string_equal(server_string(env->server, "TYPE", key, NULL), before);
        free(before);
        if (!meets || (how == 2 && status == 0)) /* the server need not look at each byte */
          continue;
        assert_error(status, how < 2 ? BELAY_EWRONGTYPE : BELAY_EMISMATCH);
        if (n != LAST && n != ARCHIVED && n != ARCHIVES) /* a key is named; of many the first */
          assert_memory_equal(seen.detail, key, strlen(key));
        assert_int_equal(server_keys(env->server), 1);
      }
}

ENV_TEST(damaged_hyperloglog) {
  belay_active_t *active = series(env);
  seen_t seen = {0};
  server_do(env->server, "PFADD", KEY, "ann", NULL);
  server_do(env->server, "APPEND", KEY, "junk", NULL);
  server_do(env->server, "SETRANGE", KEY, "15", "\x80", NULL);
  for (int n = 0; n < ARCHIVED; n++) {
    assert_error(begin(env, active, &seen, n, THEN), 0);
    if (end_of_seen(&seen) != 0)
      assert_error(seen.status, BELAY_EMISMATCH);
    if (n != MARK) /* that need not read all of it */
      assert_error(seen.status, BELAY_EMISMATCH);
  }
  assert_ends(begin(env, active, &seen, COUNT, THEN), end_of_seen(&seen), BELAY_EMISMATCH);
  assert_memory_equal(seen.detail, KEY ": INVALIDOBJ", sizeof KEY ": INVALIDOBJ" - 1);
}

RELAY_TEST(lost_replies) {
  static const char *const commands[OPERATIONS] = {"pfadd",   "pfcount", "pfcount", "pfcount",
                                                   "pfmerge", "pfcount", "unlink",  "unlink"};
  belay_active_t *active = series(env);
  for (int n = 0; n < OPERATIONS; n++) {
    seen_t seen = {0};
    int64_t before = server_calls(env->server, commands[n]), times = n == LAST ? 5 : 1;
    if (n == COUNT)
      server_do(env->server, "SCRIPT", "FLUSH", NULL);
    relay_delay(env->relay, RELAY_LONG);
    assert_error(begin(env, active, &seen, n, THEN), 0);
    seen_lose_answer(env, commands[n], before + times);
    assert_error(end_of_seen(&seen), 0);
    assert_int_equal(server_calls(env->server, commands[n]), before + 2 * times);
    if (n >= COUNT && n < CLEAR)
      assert_int_equal(seen.counts[0], 1);
    assert_int_equal(server_integer(env->server, "EXISTS", KEY, NULL), n < CLEAR);
  }
  assert_int_equal(server_keys(env->server), 0);
}

/* The reply with the server's time is lost. Midnight comes between a mark and its second try. */
RELAY_TEST(retry_after_midnight_keeps_day) {
  belay_active_t *active = series(env);
  seen_t seen = {0};
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin(env, active, &seen, MARK, BELAY_ACTIVE_NOW), 0);
  seen_lose_answer(env, "time", 1);
  assert_error(end_of_seen(&seen), 0);
  assert_int_equal(server_calls(env->server, "time"), 2);
  assert_int_equal(server_calls(env->server, "pfadd"), 1);
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin(env, active, &seen, MARK, BELAY_ACTIVE_NOW), 0);
  active->time.shift_us = INT64_C(86400000000);
  seen_lose_answer(env, "pfadd", 2);
  assert_error(end_of_seen(&seen), 0);
  assert_int_equal(server_calls(env->server, "pfadd"), 3);
  assert_int_equal(server_keys(env->server), 1);
}

/* Its time is one, however many steps it takes. */
ENV_TEST(deadline_covers_all_steps) {
  belay_active_t *active = series(env);
  seen_t seen = {.request.timeout_ms = 200};
  server_pause(env->server);
  int64_t began = clock_now();
  assert_ends(begin(env, active, &seen, LAST, BELAY_ACTIVE_NOW), end_of_seen(&seen),
              BELAY_EUNREACHABLE); /* the connection is not up yet */
  assert_between(clock_since_ms(began), 190, 390 + lag());
  server_resume(env->server);
}

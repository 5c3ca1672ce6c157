/* The scripts of a reentrant lock, against a model that says in a few lines what they are to do. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.gen.h"
#include "support/base/random.h"
#include "support/base/clock.h"
#include "support/models/scripts.h"
#include "support/base/test.h"

#define LOCK "{door}"
#define HOLDS LOCK "::holds"
#define FENCE LOCK "::fence"

static const belay__script_t *const acquire_script = &belay__script_reentrant_acquire,
                                    *const extend_script = &belay__script_reentrant_extend,
                                    *const release_script = &belay__script_reentrant_release;

static script_input_t acquire_input(const char *token, const char *ttl, const char *owner,
                                    bool counted) {
  return (script_input_t){{LOCK, HOLDS, counted ? FENCE : NULL},
                          {token, ttl, owner, "0", counted ? "600000" : NULL}};
}

static script_input_t extend_input(const char *token, const char *ttl) {
  return (script_input_t){{LOCK, HOLDS}, {token, ttl, "0"}};
}

static script_input_t release_input(const char *token) {
  return (script_input_t){{LOCK, HOLDS}, {token, "PUBLISH", ""}};
}

/* The result of an acquire. */
typedef struct grant {
  int64_t held;  /* 0: granted; otherwise what was replied */
  int64_t holds; /* granted: how many there are */
  uint64_t number;
} grant_t;

static grant_t acquire_as(server_t *server, const char *token, const char *ttl, const char *owner,
                          bool counted) {
  script_input_t input = acquire_input(token, ttl, owner, counted);
  const resp_t *reply = script_run(server, acquire_script, &input);
  if (reply->type == RESP_INTEGER)
    return (grant_t){.held = reply->integer};
  if (reply->type != RESP_ARRAY)
    fail_msg("acquire: %s", reply->str != NULL ? reply->str : "no reply");
  assert_int_equal(reply->count, 2);
  assert_int_equal(reply->items[0]->type, RESP_INTEGER);
  assert_int_equal(reply->items[1]->type, RESP_STRING);
  assert_int_equal(reply->items[1]->len > 0, counted);
  return (grant_t){.holds = reply->items[0]->integer,
                   .number = strtoull(reply->items[1]->str, NULL, 10)};
}

static int64_t extend_as(server_t *server, const char *token, const char *ttl) {
  script_input_t input = extend_input(token, ttl);
  return script_integer(server, extend_script, &input);
}

static int64_t release_as(server_t *server, const char *token) {
  script_input_t input = release_input(token);
  return script_integer(server, release_script, &input);
}

enum { OWNERS = 3, HOLDS_EACH = 3 };

typedef struct model {
  server_t *server;
  uint64_t random, number; /* the last that was given */
  int owner;               /* -1: none */
  unsigned nth[OWNERS][HOLDS_EACH];
  bool holds[OWNERS][HOLDS_EACH];
  unsigned granted, again, refused, freed;
  int64_t published;
} model_t;

static unsigned below(model_t *m, unsigned n) {
  return (unsigned)(next_random(&m->random) % n);
}

static unsigned count(const model_t *m, unsigned owner) {
  unsigned n = 0;
  for (unsigned i = 0; i < HOLDS_EACH; i++)
    n += m->holds[owner][i];
  return n;
}

static void forget(model_t *m) {
  memset(m->holds, 0, sizeof m->holds);
  m->owner = -1;
}

static void check_acquire(model_t *m, unsigned owner, unsigned i) {
  char token[32], text[32];
  snprintf(token, sizeof token, "token %u of %u", i, owner);
  snprintf(text, sizeof text, "owner %u", owner);
  grant_t grant = acquire_as(m->server, token, "60000", text, true);
  if (m->owner >= 0 && m->owner != (int)owner) {
    assert_between(grant.held, 1, 60000);
    m->refused++;
    return;
  }
  assert_int_equal(grant.held, 0);
  if (m->owner < 0) {
    assert_true(grant.number > m->number);
    m->number = grant.number;
    m->granted++;
  }
  assert_true(grant.number == m->number); /* it is that of the first hold */
  if (!m->holds[owner][i])
    m->nth[owner][i] = count(m, owner) + 1;
  m->again += m->holds[owner][i];
  m->holds[owner][i] = true;
  m->owner = (int)owner;
  assert_int_equal(grant.holds, m->nth[owner][i]);
}

static void check_extend(model_t *m, unsigned owner, unsigned i) {
  char token[32];
  snprintf(token, sizeof token, "token %u of %u", i, owner);
  assert_int_equal(extend_as(m->server, token, "60000"), m->holds[owner][i]);
}

static void check_release(model_t *m, unsigned owner, unsigned i) {
  char token[32];
  snprintf(token, sizeof token, "token %u of %u", i, owner);
  assert_int_equal(release_as(m->server, token), m->holds[owner][i]);
  bool last = m->holds[owner][i] && count(m, owner) == 1;
  m->holds[owner][i] = false;
  m->freed += last;
  m->published += last;
  if (last)
    m->owner = -1;
}

static void compare(model_t *m) {
  char owner[32] = "nobody";
  if (m->owner >= 0)
    snprintf(owner, sizeof owner, "owner %d", m->owner);
  const char *holder = server_string(m->server, "GET", LOCK, NULL);
  assert_string_equal(holder != NULL ? holder : "nobody", owner);
  assert_int_equal(server_calls(m->server, "publish"), m->published);
  int64_t fields = server_integer(m->server, "HLEN", HOLDS, NULL);
  assert_int_equal(fields, m->owner >= 0 ? 2 + count(m, (unsigned)m->owner) : 0);
  expect_ttls(m->server);
}

TEST_ON(random_steps_match_model, server, server_start(NULL)) {
  model_t m = {.server = server, .random = 7, .owner = -1};
  for (int step = 0; step < 2000; step++) {
    unsigned what = below(&m, 100), owner = below(&m, OWNERS), i = below(&m, HOLDS_EACH);
    if (what < 40)
      check_acquire(&m, owner, i);
    else if (what < 55)
      check_extend(&m, owner, i);
    else if (what < 99)
      check_release(&m, owner, i);
    else {
      server_do(server, "FLUSHALL", NULL);
      forget(&m);
    }
    compare(&m);
  }
  assert_true(m.granted > 20 && m.again > 20 && m.refused > 20 && m.freed > 20);
}

TEST_ON(hold_expires_alone, server, server_start(NULL)) {
  int64_t ttl = 200 * slow();
  char text[16];
  snprintf(text, sizeof text, "%lld", (long long)ttl);
  grant_t brief = acquire_as(server, "brief", text, "me", true);
  grant_t lasting = acquire_as(server, "lasting", text, "me", true);
  assert_int_equal(lasting.holds, 2);
  assert_true(lasting.number == brief.number);
  assert_int_equal(extend_as(server, "lasting", "60000"), 1);
  stall_ms(ttl + 50);
  assert_int_equal(extend_as(server, "brief", "60000"), 0);
  assert_int_equal(release_as(server, "brief"), 0);
  assert_between(acquire_as(server, "another", "1000", "you", true).held, 1, 60000);
  grant_t third = acquire_as(server, "third", "100", "me", true);
  assert_int_equal(third.holds, 2); /* expired holds do not count */
  assert_true(third.number == brief.number);
  assert_true(server_integer(server, "PTTL", LOCK, NULL) > 50000);
  stall_ms(150);
  assert_int_equal(release_as(server, "lasting"), 1);
  assert_int_equal(server_keys(server), 1); /* the counter */
}

/* Run again after its hold has ended, beside another one: it is taken again, and stands there. */
TEST_ON(expired_hold_acquired_again, server, server_start(NULL)) {
  grant_t lasting = acquire_as(server, "lasting", "60000", "me", true);
  (void)acquire_as(server, "brief", "20", "me", true);
  stall_ms(50);
  grant_t again = acquire_as(server, "brief", "60000", "me", true);
  assert_int_equal(again.holds, 2);
  assert_true(again.number == lasting.number);
  assert_int_equal(server_integer(server, "HEXISTS", HOLDS, "brief", NULL), 1);
  assert_int_equal(extend_as(server, "brief", "60000"), 1);
  assert_int_equal(release_as(server, "lasting"), 1);
  assert_int_equal(server_integer(server, "EXISTS", LOCK, NULL), 1);
  assert_int_equal(release_as(server, "brief"), 1);
  assert_int_equal(server_integer(server, "EXISTS", LOCK, NULL), 0);
}

/* The lock lives as long as its longest hold, and no longer. */
TEST_ON(lock_ttl_is_longest_hold, server, server_start(NULL)) {
  (void)acquire_as(server, "long", "60000", "me", false);
  (void)acquire_as(server, "short", "1000", "me", false);
  assert_true(server_integer(server, "PTTL", LOCK, NULL) > 50000);
  assert_int_equal(extend_as(server, "short", "2000"), 1);
  assert_true(server_integer(server, "PTTL", LOCK, NULL) > 50000);
  assert_int_equal(release_as(server, "long"), 1);
  assert_between(server_integer(server, "PTTL", LOCK, NULL), 1, 2000);
  assert_between(server_integer(server, "PTTL", HOLDS, NULL), 1, 2000);
}

/* Another program deleted the lock: the holds in the hash are void. */
TEST_ON(holds_of_other_owner_do_not_count, server, server_start(NULL)) {
  grant_t first = acquire_as(server, "old", "60000", "me", true);
  server_do(server, "SET", LOCK, "a plain token", "PX", "60000", NULL);
  assert_int_equal(extend_as(server, "old", "60000"), 0);
  assert_int_equal(release_as(server, "old"), 0);
  assert_between(acquire_as(server, "new", "60000", "me", true).held, 1, 60000);
  server_do(server, "DEL", LOCK, NULL);
  assert_int_equal(extend_as(server, "old", "60000"), 0);
  grant_t second = acquire_as(server, "new", "60000", "me", true);
  assert_int_equal(second.holds, 1);
  assert_true(second.number > first.number);
  assert_int_equal(extend_as(server, "old", "60000"), 0);
  assert_int_equal(release_as(server, "old"), 0);
  assert_int_equal(extend_as(server, "new", "60000"), 1);
}

/* Without the hash the holds are unknown: the owner begins again, and the lock does not end
 * earlier. */
TEST_ON(lock_without_holds_keeps_owner, server, server_start(NULL)) {
  grant_t first = acquire_as(server, "old", "60000", "me", true);
  server_do(server, "DEL", HOLDS, NULL);
  assert_int_equal(extend_as(server, "old", "60000"), 0);
  assert_between(acquire_as(server, "other", "60000", "you", true).held, 1, 60000);
  grant_t second = acquire_as(server, "new", "1000", "me", true);
  assert_int_equal(second.holds, 1);
  assert_true(second.number > first.number);
  assert_true(server_integer(server, "PTTL", LOCK, NULL) > 50000);
}

TEST_ON(plain_lock_is_held_by_another, server, server_start(NULL)) {
  server_do(server, "SET", LOCK, "a plain token", "PX", "60000", NULL);
  assert_between(acquire_as(server, "t", "60000", "me", false).held, 50000, 60000);
  server_do(server, "PERSIST", LOCK, NULL);
  assert_int_equal(acquire_as(server, "t", "60000", "me", false).held, -2);
}

TEST(wrong_type_changes_nothing) {
  server_options_t options = {.arguments = {"--enable-debug-command", "yes"}};
  server_t *server = server_start(&options);
  static const char *const parts[] = {LOCK, HOLDS, FENCE};
  const belay__script_t *const scripts[] = {acquire_script, extend_script, release_script};
  const script_input_t inputs[] = {acquire_input("t", "60000", "me", true),
                                   extend_input("t", "60000"), release_input("t")};
  for (unsigned strange = 0; strange < 3; strange++)
    for (int held = 0; held < 2; held++) {
      server_do(server, "FLUSHALL", NULL);
      if (held)
        (void)acquire_as(server, "s", "60000", "me", false);
      server_do(server, "DEL", parts[strange], NULL);
      server_do(server, "RPUSH", parts[strange], "a", NULL);
      uint64_t before = server_digest(server);
      for (unsigned i = 0; i < (strange < 2 ? 3u : 1u); i++) {
        script_refused(server, scripts[i], &inputs[i], "WRONGTYPE");
        assert_true(server_digest(server) == before);
      }
    }
  server_stop(server);
}

TEST_ON(full_server_keeps_holders, server, server_start(NULL)) {
  (void)acquire_as(server, "mine", "60000", "me", false);
  server_do(server, "CONFIG", "SET", "maxmemory", "1", NULL);
  script_input_t more = acquire_input("more", "60000", "me", false);
  script_refused(server, acquire_script, &more, "OOM");
  assert_int_equal(extend_as(server, "mine", "90000"), 1);
  assert_true(server_integer(server, "PTTL", HOLDS, NULL) > 60000);
  assert_int_equal(release_as(server, "mine"), 1);
  script_refused(server, acquire_script, &more, "OOM");
  assert_int_equal(server_keys(server), 0);
}

/* The scripts of readers and writers, against a model that says in a few lines what they are to
 * do. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/base/random.h"
#include "support/models/rw_scripts.h"
#include "support/base/test.h"

static const char *const keys[] = {READERS, WAITING, WRITERS, ADMITTED};
enum { SETS = 4 };

enum { ACTORS = 6 };

typedef struct model {
  server_t *server;
  bool counted;
  uint64_t random, number; /* the last that was given */
  int writer;              /* -1: none */
  bool reads[ACTORS], waits[ACTORS], would_write[ACTORS], has_turn[ACTORS];
  int64_t published; /* how often it was published */
  unsigned granted, refused, upgraded, shared, downgraded, retaken;
} model_t;

static unsigned any(const bool *set) {
  unsigned n = 0;
  for (unsigned i = 0; i < ACTORS; i++)
    n += set[i];
  return n;
}

static unsigned below(model_t *m, unsigned n) {
  return (unsigned)(next_random(&m->random) % n);
}

static void take(bool *set, const bool *from) {
  for (unsigned i = 0; i < ACTORS; i++)
    set[i] |= from[i];
}

static void becomes_writer(model_t *m, unsigned i) {
  m->writer = (int)i;
  m->reads[i] = false;
  take(m->has_turn, m->waits);
  memset(m->waits, 0, sizeof m->waits);
}

/* The model's expected reply of an acquire: 0, -1, or 1 if another holder or waiter is in the
 * way. */
static int model_read(model_t *m, unsigned i, bool waits) {
  if (m->reads[i])
    return -1;
  if (m->writer >= 0 || (any(m->would_write) > 0 && !(waits && m->has_turn[i]))) {
    if (waits && m->writer >= 0) {
      m->has_turn[i] = true;
      m->waits[i] = false;
    } else if (waits) {
      m->waits[i] = true;
    }
    return 1;
  }
  m->reads[i] = true;
  if (waits)
    m->waits[i] = m->has_turn[i] = false;
  return 0;
}

static int model_write(model_t *m, unsigned i, bool waits) {
  if (m->writer == (int)i)
    return -1;
  if (m->writer >= 0 || any(m->reads) > 0 || any(m->has_turn) > 0) {
    m->would_write[i] |= waits;
    return 1;
  }
  becomes_writer(m, i);
  if (waits)
    m->would_write[i] = false;
  return 0;
}

static int model_extend(model_t *m, unsigned i, bool write, bool retake) {
  bool reads = m->reads[i];
  unsigned others = any(m->reads) - reads;
  if (m->writer == (int)i) {
    if (!write) {
      m->writer = -1;
      m->reads[i] = true;
      m->published++;
      m->downgraded++;
    }
    return 1;
  }
  bool free = m->writer < 0 && (!write || others == 0);
  if (!reads && (!retake || !free))
    return 0;
  if (write && free)
    becomes_writer(m, i);
  else
    m->reads[i] = true;
  m->upgraded += reads && write && free;
  m->shared += write && !free;
  m->retaken += !reads;
  return !reads ? 2 : write && !free ? 3 : 1;
}

/* True if a waiter becomes able to enter. */
static int model_release(model_t *m, unsigned i, bool ticket) {
  bool wrote = m->writer == (int)i, read = m->reads[i];
  if (wrote)
    m->writer = -1;
  m->reads[i] = false;
  bool would_write = ticket && m->would_write[i], had_turn = ticket && m->has_turn[i];
  if (ticket)
    m->waits[i] = m->would_write[i] = m->has_turn[i] = false;
  if (m->writer < 0 &&
      (wrote || (read && any(m->reads) == 0) ||
       (would_write && any(m->would_write) == 0 && any(m->waits) > 0) ||
       (had_turn && any(m->reads) + any(m->has_turn) == 0 && any(m->would_write) > 0)))
    m->published++;
  return wrote || read;
}

static void check_acquire(model_t *m, const belay__script_t *script, unsigned i) {
  actor_t a = actor(i);
  acquire_args_t how = usual;
  how.counted = m->counted;
  how.waits = below(m, 8) != 0;
  script_input_t input = acquire_input(script, &a, how);
  int expected = (script == read_script ? model_read : model_write)(m, i, how.waits);
  const resp_t *reply = script_run(m->server, script, &input);
  m->refused += expected > 0;
  m->granted += expected == 0;
  if (expected > 0) {
    assert_int_equal(reply->type, RESP_INTEGER);
    assert_between(reply->integer, 1, 60000);
  } else if (!m->counted) {
    assert_int_equal(reply->type, RESP_INTEGER);
    assert_int_equal(reply->integer, expected);
  } else {
    assert_int_equal(reply->type, RESP_STRING);
    uint64_t number = strtoull(reply->str, NULL, 10);
    assert_true(expected == 0 ? number > m->number : number >= m->number);
    m->number = number;
  }
}

static void check_extend(model_t *m, unsigned i) {
  actor_t a = actor(i);
  bool write = below(m, 2) == 0, retake = below(m, 4) == 0;
  script_input_t input = extend_input(&a, "60000", retake ? "60000" : "0", write ? "w" : "r");
  assert_int_equal(script_integer(m->server, extend_script, &input),
                   model_extend(m, i, write, retake));
}

static void check_release(model_t *m, unsigned i) {
  actor_t a = actor(i);
  bool ticket = below(m, 2) == 0;
  script_input_t input = release_input(&a, ticket);
  int expected = model_release(m, i, ticket);
  assert_int_equal(script_integer(m->server, release_script, &input), expected);
}

/* Lets a holder's lease or a waiter's place expire. */
static void let_expire(model_t *m, unsigned i) {
  actor_t a = actor(i);
  if (m->writer == (int)i) {
    server_do(m->server, "DEL", LOCK, NULL);
    m->writer = -1;
  }
  bool *const sets[SETS] = {m->reads, m->waits, m->would_write, m->has_turn};
  unsigned which = below(m, SETS);
  sets[which][i] = false;
  server_do(m->server, "ZADD", keys[which], "XX", "1", which == 0 ? a.token : a.ticket, NULL);
}

static void expect_set(model_t *m, const char *key, const bool *set, bool tickets) {
  unsigned n = 0;
  const resp_t *live = server_ask(m->server, "ZRANGEBYSCORE", key, "1000", "+inf", NULL);
  for (unsigned i = 0; i < ACTORS; i++) {
    actor_t a = actor(i);
    bool found = false;
    for (size_t j = 0; j < live->count; j++)
      found |= strcmp(live->items[j]->str, tickets ? a.ticket : a.token) == 0;
    if (found != set[i])
      fail_msg("%s: %s of %u", key, found ? "too much" : "nothing", i);
    n += found;
  }
  assert_int_equal(n, live->count);
}

static void compare(model_t *m) {
  assert_true(m->writer < 0 || any(m->reads) == 0);
  actor_t a = actor((unsigned)m->writer);
  const char *writer = server_string(m->server, "GET", LOCK, NULL);
  assert_string_equal(writer != NULL ? writer : "nobody", m->writer >= 0 ? a.token : "nobody");
  expect_set(m, READERS, m->reads, false);
  expect_set(m, WAITING, m->waits, true);
  expect_set(m, WRITERS, m->would_write, true);
  expect_set(m, ADMITTED, m->has_turn, true);
  assert_int_equal(server_calls(m->server, "publish"), m->published);
  expect_ttls(m->server);
}

static void step(model_t *m) {
  unsigned what = below(m, 100), i = below(m, ACTORS);
  if (what < 22)
    check_acquire(m, read_script, i);
  else if (what < 36)
    check_acquire(m, write_script, i);
  else if (what < 66)
    check_extend(m, i);
  else if (what < 92)
    check_release(m, i);
  else if (what < 99)
    let_expire(m, i);
  else {
    server_do(m->server, "FLUSHALL", NULL);
    m->writer = -1;
    bool *const sets[SETS] = {m->reads, m->waits, m->would_write, m->has_turn};
    for (unsigned j = 0; j < SETS; j++)
      memset(sets[j], 0, sizeof(bool) * ACTORS);
  }
}

static void compare_for(uint64_t seed, bool counted) {
  enum { STEPS = 2000 };
  server_t *server = server_start(NULL);
  model_t m = {.server = server, .counted = counted, .random = seed, .writer = -1};
  for (int i = 0; i < STEPS; i++) {
    step(&m);
    compare(&m);
  }
  assert_true(m.granted > 50 && m.refused > 50);
  assert_true(m.upgraded > 5 && m.shared > 5 && m.downgraded > 5 && m.retaken > 5);
  server_stop(server);
}

TEST(random_steps_match_model) {
  compare_for(1, false);
  compare_for(2, true); /* and numbers grow */
}

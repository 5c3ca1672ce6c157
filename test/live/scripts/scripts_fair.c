/* The scripts of the fair lock and of the multilock against a model, step by step. */
#include <stdio.h>

#include "scripts.gen.h"
#include "support/base/random.h"
#include "support/fixtures/env.h"
#include "support/models/listener.h"

enum { WAITERS = 6, STEPS = 2000 };
#define TTL "100000"   /* longer than a test takes; the test expires keys itself */
#define PLACE "200000" /* a multiple, to tell one from the other */

static unsigned below(uint64_t *state, unsigned n) {
  return (unsigned)(next_random(state) % n);
}

static const char *const fair_keys[] = {"l", "l::queue", "l::alive", NULL};
static const char *const fenced_keys[] = {"l", "l::queue", "l::alive", "l::fence", NULL};

typedef struct fair {
  server_t *server;
  listener_t ears;
  uint64_t random;
  bool fenced;
  uint64_t number;    /* the last fencing number */
  int holder;         /* a waiter's number; -1: nobody */
  bool expected_wake; /* of the last step */
  int woken;          /* the waiter whose turn it is; -1: none waits */
  int queue[WAITERS], len;
  bool dead[WAITERS];
} fair_t;

static const char *token(int i) {
  static char text[WAITERS + 1][24];
  snprintf(text[i], sizeof text[i], "token-%d", i);
  return text[i];
}

static const char *ticket(int i) {
  static char text[WAITERS][24];
  snprintf(text[i], sizeof text[i], "%016x", 0xab00u + (unsigned)i);
  return text[i];
}

static int place_of(const fair_t *f, int i) {
  for (int at = 0; at < f->len; at++)
    if (f->queue[at] == i)
      return at;
  return -1;
}

static void leave(fair_t *f, int i) {
  int at = place_of(f, i);
  if (at < 0)
    return;
  f->len--;
  for (; at < f->len; at++)
    f->queue[at] = f->queue[at + 1];
  f->dead[i] = false;
}

/* Before all others. */
static void come_back(fair_t *f, int i) {
  leave(f, i);
  for (int at = f->len++; at > 0; at--)
    f->queue[at] = f->queue[at - 1];
  f->queue[0] = i;
}

static bool sweep(fair_t *f) {
  bool removed = false;
  for (; f->len > 0 && f->dead[f->queue[0]]; removed = true)
    leave(f, f->queue[0]);
  return removed;
}

static void expect_wake(fair_t *f) {
  f->expected_wake = true;
  f->woken = f->len > 0 ? f->queue[0] : -1;
}

/* The expected reply of an acquire: 0, -1, or its longest time (the shortest is close to it). */
static int64_t model_acquire(fair_t *f, int i, bool queues) {
  int64_t reply = 0;
  if (f->holder == i) {
    reply = -1;
  } else {
    if (queues && place_of(f, i) >= 0)
      f->dead[i] = false;
    bool removed = sweep(f);
    bool first = f->len == 0 || (queues && f->queue[0] == i);
    if (f->holder >= 0 || !first) {
      if (queues && place_of(f, i) < 0)
        f->queue[f->len++] = i;
      if (removed && f->holder < 0)
        expect_wake(f);
      return f->len > 0 && !(queues && f->queue[0] == i) ? atoi(PLACE) : atoi(TTL);
    }
  }
  f->holder = i;
  if (queues)
    leave(f, i);
  return reply;
}

static void check_taken(fair_t *f, const resp_t *reply, int64_t expected) {
  if (!f->fenced) {
    assert_int_equal(reply->type, RESP_INTEGER);
    assert_int_equal(reply->integer, expected);
    return;
  }
  assert_int_equal(reply->type, RESP_STRING);
  uint64_t number = strtoull(reply->str, NULL, 10);
  if (expected == 0)
    assert_true(number > f->number);
  else
    assert_true(number == f->number);
  f->number = number;
}

static void step_acquire(fair_t *f, int i) {
  bool queues = below(&f->random, 4) > 0;
  const char *const args[] = {token(i), TTL,       queues ? ticket(i) : "",
                              PLACE,    "PUBLISH", f->fenced ? "604800000" : NULL,
                              NULL};
  int64_t expected = model_acquire(f, i, queues);
  const resp_t *reply = script_call(f->server, &belay__script_fair_acquire,
                                    f->fenced ? fenced_keys : fair_keys, args);
  if (expected <= 0) {
    check_taken(f, reply, expected);
    return;
  }
  assert_int_equal(reply->type, RESP_INTEGER);
  assert_between(reply->integer, expected - 90000, expected);
}

/* Releases the lock, withdraws from the queue, or both. */
static void step_release(fair_t *f, int i) {
  bool gives = below(&f->random, 2) > 0, withdraws = below(&f->random, 2) > 0;
  bool keeps = withdraws && below(&f->random, 3) == 0;
  char place[48];
  snprintf(place, sizeof place, "%s%s", ticket(i), keeps ? "+" PLACE : "");
  const char *const args[] = {gives ? token(i) : "nobody's", "PUBLISH", withdraws ? place : "",
                              NULL};
  int first = f->len > 0 ? f->queue[0] : -1;
  bool gave = gives && f->holder == i;
  if (gave)
    f->holder = -1;
  if (keeps && gave)
    come_back(f, i);
  else if (withdraws && !keeps)
    leave(f, i);
  sweep(f);
  if (gave || (f->holder < 0 && f->len > 0 && f->queue[0] != first))
    expect_wake(f);
  int64_t reply = script_call_integer(f->server, &belay__script_fair_release, fair_keys, args);
  assert_int_equal(reply, gave ? 1 + f->expected_wake : 0);
}

/* A waiter has died, and its place has run out. */
static void step_die(fair_t *f, int i) {
  if (place_of(f, i) < 0)
    return;
  f->dead[i] = true;
  if (below(&f->random, 8) > 0)
    server_do(f->server, "ZADD", "l::alive", "1", ticket(i), NULL);
  else
    server_do(f->server, "ZREM", "l::alive", ticket(i), NULL);
}

static void check_fair(fair_t *f) {
  char text[64], message[64];
  unsigned messages = listener_drain(&f->ears, message, sizeof message);
  assert_int_equal(messages, f->expected_wake);
  if (f->expected_wake)
    assert_string_equal(message, f->woken < 0 ? "" : ticket(f->woken));
  const char *holder = server_string(f->server, "GET", "l", NULL);
  snprintf(text, sizeof text, "%s", holder == NULL ? "" : holder);
  assert_string_equal(text, f->holder < 0 ? "" : token(f->holder));
  const resp_t *queue = server_ask(f->server, "ZRANGE", "l::queue", "0", "-1", NULL);
  assert_int_equal(queue->count, f->len);
  for (int i = 0; i < f->len; i++)
    assert_string_equal(queue->items[i]->str, ticket(f->queue[i]));
  assert_true(server_integer(f->server, "ZCARD", "l::alive", NULL) <= f->len);
  if (f->len > 0)
    assert_between(server_integer(f->server, "PTTL", "l::queue", NULL), 100000, atoi(PLACE));
}

static void play_fair(bool fenced) {
  for (uint64_t seed = 1; seed <= 3; seed++) {
    fair_t f = {.server = server_start(NULL),
                .random = seed * UINT64_C(0x9e3779b97f4a7c15),
                .fenced = fenced,
                .holder = -1};
    listener_open(&f.ears, f.server, "l::wake");
    for (int step = 0; step < STEPS; step++) {
      int i = (int)below(&f.random, WAITERS);
      unsigned what = below(&f.random, 16);
      f.expected_wake = false;
      if (what < 8) {
        step_acquire(&f, i);
      } else if (what < 12) {
        step_release(&f, f.holder >= 0 && what < 11 ? f.holder : i);
      } else if (what < 14) {
        step_die(&f, i);
      } else if (what == 14) { /* the holder's lease runs out */
        server_do(f.server, "DEL", "l", NULL);
        f.holder = -1;
      }
      check_fair(&f);
    }
    listener_close(&f.ears);
    server_stop(f.server);
  }
}

TEST(fair_lock_matches_model) {
  play_fair(false);
}

TEST(fenced_fair_lock_matches_model) {
  play_fair(true);
}

static void ask_for_place(server_t *server, const char *name, int64_t expected) {
  const char *const args[] = {"mine", TTL, name, PLACE, "PUBLISH", NULL};
  int64_t reply = script_call_integer(server, &belay__script_fair_acquire, fair_keys, args);
  if (expected < 0)
    assert_int_equal(reply, expected);
  else
    assert_between(reply, 1, expected);
}

/* A hundred thousand are in line; behind them there is room for those alone whose places the
 * dead have left. */
TEST_ON(queue_is_bounded, server, server_start(NULL)) {
  static const char fill[] = "for i = 1, 100000 do redis.call('ZADD', KEYS[1], i, 'x' .. i) "
                             "redis.call('ZADD', KEYS[2], ARGV[1], 'x' .. i) end return 1";
  server_do(server, "SET", "l", "another's", "PX", TTL, NULL);
  server_do(server, "EVAL", fill, "2", "l::queue", "l::alive", "9999999999999", NULL);
  ask_for_place(server, "new", -3);
  assert_int_equal(server_integer(server, "ZCARD", "l::queue", NULL), 100000);
  server_do(server, "ZADD", "l::alive", "1", "x77", NULL);
  ask_for_place(server, "new", INT64_MAX);
  ask_for_place(server, "newer", -3);
  assert_int_equal(server_integer(server, "ZRANK", "l::queue", "new", NULL), 99999);
}

/* A thousand dead ones in front cost some calls, each of which takes a part of them away. */
TEST_ON(dead_waiters_removed_in_portions, server, server_start(NULL)) {
  static const char fill[] =
      "for i = 1, 1000 do redis.call('ZADD', KEYS[1], i, 'x' .. i) end return 1";
  server_do(server, "EVAL", fill, "1", "l::queue", NULL);
  const char *const args[] = {"mine", TTL, "me", PLACE, "", NULL};
  int calls = 0;
  int64_t reply;
  do {
    reply = script_call_integer(server, &belay__script_fair_acquire, fair_keys, args);
    assert_between(reply, 0, 1);
    calls++;
  } while (reply != 0);
  assert_between(calls, 8, 9);
  assert_int_equal(server_keys(server), 1);
}

/* A key of another type is found out before anything is written. */
TEST_ON(wrong_type_changes_nothing, server, server_start(NULL)) {
  const char *const take[] = {"mine", TTL, "me", PLACE, "PUBLISH", "604800000", NULL};
  const char *const give[] = {"mine", "PUBLISH", "me", NULL};
  for (int wrong = 0; wrong < 4; wrong++) {
    server_do(server, "FLUSHALL", NULL);
    server_do(server, "ZADD", "l::queue", "1", "gone", "2", "me", NULL);
    server_do(server, "ZADD", "l::alive", "1", "gone", NULL);
    if (wrong > 0)
      server_do(server, "SET", "l", "mine", NULL);
    server_do(server, "DEL", fenced_keys[wrong], NULL);
    server_do(server, "LPUSH", fenced_keys[wrong], "x", NULL);
    int64_t dirty = server_info(server, "persistence", "rdb_changes_since_last_save");
    assert_int_equal(script_call(server, &belay__script_fair_acquire, fenced_keys, take)->type,
                     RESP_ERROR);
    if (wrong < 3)
      assert_int_equal(script_call(server, &belay__script_fair_release, fair_keys, give)->type,
                       RESP_ERROR);
    assert_int_equal(server_info(server, "persistence", "rdb_changes_since_last_save"), dirty);
  }
}

enum { NAMES = 4 };

typedef struct several {
  server_t *server;
  uint64_t random;
  int holder[NAMES];
} several_t;

static const char *name(int i) {
  static const char *const names[NAMES] = {"a", "b", "c", "d"};
  return names[i];
}

/* The keys of a set of names. */
static void keys_of(unsigned set, const char *keys[NAMES + 1]) {
  int n = 0;
  for (int i = 0; i < NAMES; i++)
    if ((set & 1u << i) != 0)
      keys[n++] = name(i);
  keys[n] = NULL;
}

static void play_several(several_t *s) {
  const char *keys[NAMES + 1];
  unsigned set = 1 + below(&s->random, (1u << NAMES) - 1), ours = 0, others = 0;
  int who = (int)below(&s->random, 3);
  keys_of(set, keys);
  for (int i = 0; i < NAMES; i++) {
    ours |= (set & 1u << i) != 0 && s->holder[i] == who ? 1u << i : 0;
    others |= (set & 1u << i) != 0 && s->holder[i] >= 0 && s->holder[i] != who ? 1u << i : 0;
  }
  const char *const take[] = {token(who), TTL, "0", NULL}, *const keep[] = {token(who), TTL, "0",
                                                                            "PUBLISH", NULL};
  const char *const give[] = {token(who), "PUBLISH", "", NULL};
  switch (below(&s->random, 4)) {
  case 0: {
    int64_t reply = script_call_integer(s->server, &belay__script_multi_acquire, keys, take);
    if (others != 0)
      assert_between(reply, 1, atoi(TTL));
    else
      assert_int_equal(reply, ours == set ? -1 : 0);
    for (int i = 0; i < NAMES && others == 0; i++)
      s->holder[i] = (set & 1u << i) != 0 ? who : s->holder[i];
    break;
  }
  case 1:
    assert_int_equal(script_call_integer(s->server, &belay__script_multi_extend, keys, keep),
                     ours == set);
    for (int i = 0; i < NAMES && ours != set; i++)
      s->holder[i] = (ours & 1u << i) != 0 ? -1 : s->holder[i];
    break;
  case 2:
    assert_int_equal(script_call_integer(s->server, &belay__script_multi_release, keys, give),
                     ours == set);
    for (int i = 0; i < NAMES; i++)
      s->holder[i] = (ours & 1u << i) != 0 ? -1 : s->holder[i];
    break;
  default: /* one is lost */
    server_do(s->server, "DEL", keys[0], NULL);
    s->holder[keys[0][0] - 'a'] = -1;
  }
}

TEST(multilock_matches_model) {
  several_t s = {.server = server_start(NULL), .random = 7, .holder = {-1, -1, -1, -1}};
  for (int step = 0; step < STEPS; step++) {
    play_several(&s);
    for (int i = 0; i < NAMES; i++) {
      const char *value = server_string(s.server, "GET", name(i), NULL);
      assert_string_equal(value == NULL ? "" : value, s.holder[i] < 0 ? "" : token(s.holder[i]));
    }
  }
  server_stop(s.server);
}

/* The longest that is in the way is what is waited for; one without a ttl is for ever. */
TEST_ON(multilock_reports_longest_ttl, server, server_start(NULL)) {
  static const char *const keys[] = {"a", "b", "c", NULL};
  static const char *const take[] = {"mine", TTL, "0", NULL}, *const give[] = {"mine", "", "",
                                                                               NULL};
  server_do(server, "SET", "a", "x", "PX", "50000", NULL);
  server_do(server, "SET", "c", "x", "PX", "90000", NULL);
  assert_between(script_call_integer(server, &belay__script_multi_acquire, keys, take), 80000,
                 90000);
  server_do(server, "SET", "b", "x", NULL);
  assert_int_equal(script_call_integer(server, &belay__script_multi_acquire, keys, take), -2);
  server_do(server, "DEL", "b", "c", NULL);
  server_do(server, "LPUSH", "c", "x", NULL);
  assert_int_equal(script_call(server, &belay__script_multi_acquire, keys, take)->type, RESP_ERROR);
  server_do(server, "SET", "b", "mine",
            NULL); /* and a key of another type does not block the others */
  assert_int_equal(script_call_integer(server, &belay__script_multi_release, keys, give), 0);
  assert_int_equal(server_integer(server, "EXISTS", "b", NULL), 0);
}

/* The script publishes to the channel of each key that has the contention flag. */
TEST_ON(multilock_release_publishes_on_each, server, server_start(NULL)) {
  static const char *const keys[] = {"a", "b", "c", NULL}, *const wanted[] = {"a", "b", NULL};
  static const char *const take[] = {"mine", TTL, "0", NULL}, *const wait[] = {"x", TTL, TTL, NULL};
  static const char *const give[] = {"mine", "PUBLISH", "", NULL};
  listener_t a, b, c;
  char text[8];
  listener_open(&a, server, "a::wake");
  listener_open(&b, server, "b::wake");
  listener_open(&c, server, "c::wake");
  assert_int_equal(script_call_integer(server, &belay__script_multi_acquire, keys, take), 0);
  assert_between(script_call_integer(server, &belay__script_multi_acquire, wanted, wait), 1,
                 atoi(TTL));
  assert_int_equal(script_call_integer(server, &belay__script_multi_release, keys, give), 2);
  assert_int_equal(server_keys(server), 0);
  assert_int_equal(listener_drain(&a, text, sizeof text), 1);
  assert_int_equal(listener_drain(&b, text, sizeof text), 1);
  assert_string_equal(text, "");
  assert_int_equal(listener_drain(&c, text, sizeof text), 0);
  listener_close(&a);
  listener_close(&b);
  listener_close(&c);
}

/* An extend never shortens any of them. */
TEST_ON(multilock_extend_never_shortens, server, server_start(NULL)) {
  static const char *const keys[] = {"a", "b", NULL};
  static const char *const keep[] = {"mine", "50000", "0", "", NULL};
  server_do(server, "SET", "a", "mine", "PX", "90000", NULL);
  server_do(server, "SET", "b", "mine", "PX", "10000", NULL);
  assert_int_equal(script_call_integer(server, &belay__script_multi_extend, keys, keep), 1);
  assert_between(server_integer(server, "PTTL", "a", NULL), 60000, 90000);
  assert_between(server_integer(server, "PTTL", "b", NULL), 30000, 50000);
}

/* The scripts of the semaphore against a model, step by step. */
#include <stdio.h>

#include "scripts.gen.h"
#include "support/base/random.h"
#include "support/fixtures/env.h"
#include "support/models/listener.h"

enum { ACTORS = 7, LIMIT = 5, STEPS = 2000 };
#define TTL "100000" /* longer than a test takes; the test expires keys itself */
#define PLACE "200000"

static const char *const keys[] = {"s", "s::permits", "s::queue", "s::alive", NULL};

typedef struct model {
  server_t *server;
  listener_t ears;
  uint64_t random;
  int limit;        /* that was set; 0: none */
  int has[ACTORS];  /* permits */
  bool out[ACTORS]; /* they have run out, and the server has not noticed */
  int queue[ACTORS], len;
  bool dead[ACTORS];
  bool expected_wake; /* of the last step, and whose; -1: anybody's */
  int woken;
} model_t;

static unsigned below(model_t *m, unsigned n) {
  return (unsigned)(next_random(&m->random) % n);
}

static const char *token(int i) {
  static char text[ACTORS][24];
  snprintf(text[i], sizeof text[i], "token-%d", i);
  return text[i];
}

static const char *ticket(int i) {
  static char text[ACTORS][24];
  snprintf(text[i], sizeof text[i], "%016x", 0xab00u + (unsigned)i);
  return text[i];
}

static int used(const model_t *m) {
  int sum = 0;
  for (int i = 0; i < ACTORS; i++)
    sum += m->has[i];
  return sum;
}

static int place_of(const model_t *m, int i) {
  for (int at = 0; at < m->len; at++)
    if (m->queue[at] == i)
      return at;
  return -1;
}

static void leave(model_t *m, int i) {
  int at = place_of(m, i);
  if (at < 0)
    return;
  m->len--;
  for (; at < m->len; at++)
    m->queue[at] = m->queue[at + 1];
  m->dead[i] = false;
}

static bool sweep_queue(model_t *m) {
  bool removed = false;
  for (; m->len > 0 && m->dead[m->queue[0]]; removed = true)
    leave(m, m->queue[0]);
  return removed;
}

static int first_of(const model_t *m) {
  return m->len > 0 ? m->queue[0] : -1;
}

/* Before all others. */
static void come_back(model_t *m, int i) {
  leave(m, i);
  for (int at = m->len++; at > 0; at--)
    m->queue[at] = m->queue[at - 1];
  m->queue[0] = i;
}

static void expect_wake(model_t *m) {
  m->expected_wake = true;
  m->woken = first_of(m);
}

static int min(int a, int b) {
  return a < b ? a : b;
}

/* The expected reply of an acquire: 0, -1, -4, or its longest time. */
static int64_t model_acquire(model_t *m, int i, int n, bool queues) {
  int limit = m->limit > 0 ? m->limit : LIMIT;
  for (int j = 0; j < ACTORS; j++)
    if (m->out[j]) {
      m->has[j] = 0;
      m->out[j] = false;
    }
  if (m->has[i] > 0)
    return -1;
  if (queues && place_of(m, i) >= 0)
    m->dead[i] = false;
  bool removed = sweep_queue(m);
  int at = queues ? place_of(m, i) : -1;
  if (n > limit) {
    if (at >= 0)
      leave(m, i);
    if (at == 0 || removed)
      expect_wake(m);
    return -4;
  }
  bool first = m->len == 0 || at == 0;
  if (first && used(m) + n <= limit) {
    m->has[i] = n;
    if (at == 0) {
      leave(m, i);
      if (used(m) < limit)
        expect_wake(m);
    }
    return 0;
  }
  if (queues && at < 0)
    m->queue[m->len++] = i;
  if (!first && removed && used(m) < limit)
    expect_wake(m);
  return first ? atoi(TTL) : atoi(PLACE);
}

static void step_acquire(model_t *m, int i) {
  static const char *const counts[] = {"1", "2", "3", "5"};
  const char *n = counts[min((int)below(m, 6), 3)];
  bool queues = below(m, 4) > 0;
  const char *const args[] = {token(i), TTL,       n,   "5", queues ? ticket(i) : "",
                              PLACE,    "PUBLISH", "0", NULL};
  int64_t expected = model_acquire(m, i, atoi(n), queues);
  int64_t reply = script_call_integer(m->server, &belay__script_semaphore_acquire, keys, args);
  if (expected <= 0)
    assert_int_equal(reply, expected);
  else
    assert_between(reply, expected - 90000, expected);
}

static void step_release(model_t *m, int i) {
  bool gives = below(m, 2) > 0, withdraws = below(m, 2) > 0, keeps = withdraws && below(m, 3) == 0;
  char place[48];
  snprintf(place, sizeof place, "%s%s", ticket(i), keeps ? "+" PLACE : "");
  const char *const args[] = {gives ? token(i) : "nobody's", "PUBLISH", withdraws ? place : "",
                              NULL};
  int first = first_of(m);
  bool gave = gives && m->has[i] > 0, in_time = gave && !m->out[i];
  if (gave)
    m->has[i] = m->out[i] = 0;
  if (keeps && in_time)
    come_back(m, i);
  else if (withdraws && !keeps)
    leave(m, i);
  sweep_queue(m);
  if (gave || first != first_of(m))
    expect_wake(m);
  assert_int_equal(script_call_integer(m->server, &belay__script_semaphore_release, keys, args),
                   in_time ? 2 : 0);
}

static void step_extend(model_t *m, int i) {
  char n[12];
  snprintf(n, sizeof n, "%d", m->has[i]);
  const char *const args[] = {token(i), TTL, "0", n, NULL};
  assert_int_equal(script_call_integer(m->server, &belay__script_semaphore_extend, keys, args),
                   m->has[i] > 0 && !m->out[i]);
}

static void step_run_out(model_t *m, int i) {
  if (m->has[i] == 0)
    return;
  server_do(m->server, "ZADD", "s", "1", token(i), NULL);
  m->out[i] = true;
}

static void step_die(model_t *m, int i) {
  if (place_of(m, i) < 0)
    return;
  server_do(m->server, "ZADD", "s::alive", "1", ticket(i), NULL);
  m->dead[i] = true;
}

static void step_resize(model_t *m) {
  char limit[12];
  m->limit = 1 + (int)below(m, LIMIT + 3);
  snprintf(limit, sizeof limit, "%d", m->limit);
  const char *const args[] = {limit, "PUBLISH", NULL};
  expect_wake(m);
  assert_int_equal(script_call(m->server, &belay__script_semaphore_resize, keys, args)->type,
                   RESP_ARRAY);
}

static void step(model_t *m) {
  int i = (int)below(m, ACTORS);
  unsigned what = below(m, 32);
  if (what < 14)
    step_acquire(m, i);
  else if (what < 24)
    step_release(m, i);
  else if (what < 26)
    step_extend(m, i);
  else if (what < 28)
    step_run_out(m, i);
  else if (what < 31)
    step_die(m, i);
  else
    step_resize(m);
}

static void check(model_t *m) {
  static const char *const none[] = {NULL};
  char message[64];
  assert_int_equal(listener_drain(&m->ears, message, sizeof message), m->expected_wake);
  if (m->expected_wake)
    assert_string_equal(message, m->woken < 0 ? "" : ticket(m->woken));
  int permits = 0, holders = 0, waiting = 0;
  for (int i = 0; i < ACTORS; i++) {
    permits += m->out[i] ? 0 : m->has[i];
    holders += m->has[i] > 0 && !m->out[i];
    waiting += place_of(m, i) >= 0 && !m->dead[i];
  }
  const resp_t *reply = script_call(m->server, &belay__script_semaphore_read, keys, none);
  assert_int_equal(reply->type, RESP_ARRAY);
  const int expected[] = {m->limit, permits, holders, waiting};
  for (int i = 0; i < 4; i++)
    assert_int_equal(reply->items[i]->integer, expected[i]);
  reply = server_ask(m->server, "ZRANGE", "s::queue", "0", "-1", NULL);
  assert_int_equal(reply->count, m->len);
  for (int i = 0; i < m->len; i++)
    assert_string_equal(reply->items[i]->str, ticket(m->queue[i]));
  if (used(m) == 0 && m->len == 0 && m->limit == 0)
    assert_int_equal(server_keys(m->server), 0);
  if (used(m) > 0) {
    assert_true(server_integer(m->server, "PTTL", "s", NULL) > 600000000);
    assert_true(server_integer(m->server, "PTTL", "s::permits", NULL) > 600000000);
  }
}

TEST(random_steps_match_model) {
  unsigned long granted_all = 0;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    model_t m = {.server = server_start(NULL), .random = seed * UINT64_C(0x9e3779b97f4a7c15)};
    listener_open(&m.ears, m.server, "s::wake");
    for (int i = 0; i < STEPS; i++) {
      m.expected_wake = false;
      step(&m);
      check(&m);
      granted_all += used(&m) >= LIMIT;
      if (i % 500 == 499) { /* and from the beginning, without a limit that was set */
        server_do(m.server, "FLUSHALL", NULL);
        memset(m.has, 0, sizeof m.has);
        memset(m.out, 0, sizeof m.out);
        memset(m.dead, 0, sizeof m.dead);
        m.len = m.limit = 0;
      }
    }
    listener_close(&m.ears);
    server_stop(m.server);
  }
  assert_true(granted_all > 100);
}

static int64_t take_of(server_t *server, const char *who, const char *ttl, const char *n,
                       const char *limit) {
  const char *const args[] = {who, ttl, n, limit, "", "0", "", "0", NULL};
  return script_call_integer(server, &belay__script_semaphore_acquire, keys, args);
}

static int64_t take(server_t *server, const char *who, const char *ttl, const char *n) {
  return take_of(server, who, ttl, n, "5");
}

static int64_t prolong(server_t *server, const char *who, const char *n) {
  const char *const args[] = {who, TTL, "0", n, NULL};
  return script_call_integer(server, &belay__script_semaphore_extend, keys, args);
}

static int64_t give_back(server_t *server, const char *who) {
  const char *const args[] = {who, "", "", NULL};
  return script_call_integer(server, &belay__script_semaphore_release, keys, args);
}

/* A request for three permits waits until enough of them have expired. */
TEST_ON(acquire_replies_time_until_n_permits_expire, server, server_start(NULL)) {
  assert_int_equal(take(server, "a", "50000", "2"), 0);
  assert_int_equal(take(server, "b", "70000", "2"), 0);
  assert_int_equal(take(server, "c", "90000", "1"), 0);
  assert_between(take(server, "d", "10000", "1"), 40000, 50000);
  assert_between(take(server, "d", "10000", "2"), 40000, 50000);
  assert_between(take(server, "d", "10000", "3"), 60000, 70000);
  assert_between(take(server, "d", "10000", "4"), 60000, 70000);
  assert_between(take(server, "d", "10000", "5"), 80000, 90000);
}

/* The holders' hash is lost: no permit is out, and the stored limit stays. */
TEST_ON(lost_holders_are_repaired, server, server_start(NULL)) {
  assert_int_equal(take(server, "a", TTL, "5"), 0);
  server_do(server, "HSET", "s::permits", "limit", "3", NULL);
  server_do(server, "DEL", "s", NULL);
  assert_int_equal(prolong(server, "a", "5"), 0);
  assert_int_equal(take(server, "b", TTL, "4"), -4);
  assert_int_equal(take(server, "b", TTL, "3"), 0);
  assert_int_equal(server_integer(server, "HLEN", "s::permits", NULL), 3);
  assert_true(server_integer(server, "PTTL", "s::permits", NULL) > 600000000);
  server_do(server, "HDEL", "s::permits", "limit", NULL);
  server_do(server, "DEL", "s", NULL);
  assert_int_equal(take(server, "c", TTL, "5"), 0);
  assert_int_equal(server_integer(server, "HLEN", "s::permits", NULL), 2);
  assert_string_equal(server_string(server, "HGET", "s::permits", "used", NULL), "5");
}

/* A holder's number of permits is lost: while it is unknown, no permit is granted. */
TEST_ON(lost_permit_counts_grant_nothing, server, server_start(NULL)) {
  assert_int_equal(take_of(server, "a", "60000", "5", "10"), 0);
  assert_int_equal(take_of(server, "b", "70000", "4", "10"), 0);
  assert_int_equal(take_of(server, "gone", "50000", "1", "10"), 0);
  server_do(server, "DEL", "s::permits", NULL);
  assert_between(take_of(server, "c", TTL, "5", "10"), 1, 50000);
  assert_int_equal(prolong(server, "a", "5"), 1);
  assert_between(take_of(server, "c", TTL, "1", "10"), 1, 50000);
  assert_int_equal(prolong(server, "b", "4"), 1);
  assert_between(take_of(server, "c", TTL, "1", "10"), 1, 50000);
  server_do(server, "ZADD", "s", "1", "gone", NULL); /* it does not come back */
  assert_between(take_of(server, "c", TTL, "5", "10"), 50001, 100000);
  assert_int_equal(take_of(server, "c", TTL, "1", "10"), 0);
  assert_int_equal(prolong(server, "a", "5"), 1);
  assert_string_equal(server_string(server, "HGET", "s::permits", "used", NULL), "10");
  assert_int_equal(give_back(server, "a"), 1);
  assert_int_equal(take_of(server, "d", TTL, "5", "10"), 0);
  assert_true(server_integer(server, "PTTL", "s::permits", NULL) > 600000000);
  server_do(server, "DEL", "s::permits", NULL);
  assert_int_equal(give_back(server, "b") + give_back(server, "c") + give_back(server, "d"), 3);
  assert_int_equal(server_keys(server), 0);
}

/* Three hundred thousand have some when the key is lost: that is found out at once. */
TEST_ON(repair_with_300000_holders_is_fast, server, server_start(NULL)) {
  static const char fill[] =
      "for i = 1, 300000 do redis.call('ZADD', KEYS[1], 9999999999999, 'x' .. i) end return 1";
  server_do(server, "EVAL", fill, "1", "s", NULL);
  int64_t begun = clock_now();
  assert_true(take(server, "a", TTL, "1") > 0);
  assert_true(clock_now() - begun < 200 * MS);
  assert_int_equal(prolong(server, "x7", "1"), 1);
  assert_true(take(server, "a", TTL, "1") > 0);
}

/* Out of memory: no new holder. Present holders renew, also after the server lost their number,
 * and release. */
TEST_ON(full_server_keeps_holders, server, server_start(NULL)) {
  static const char *const queues[] = {"more", TTL, "5", "5", "me", PLACE, "", "0", NULL};
  assert_int_equal(take(server, "a", "60000", "2"), 0);
  assert_int_equal(take(server, "b", "60000", "2"), 0);
  server_do(server, "CONFIG", "SET", "maxmemory", "1", NULL);
  const script_input_t more = {.keys = {"s", "s::permits", "s::queue", "s::alive"},
                               .args = {"more", TTL, "1", "5", "", "0", "", "0"}};
  script_refused(server, &belay__script_semaphore_acquire, &more, "OOM");
  assert_int_equal(script_call(server, &belay__script_semaphore_acquire, keys, queues)->type,
                   RESP_ERROR);
  assert_int_equal(prolong(server, "a", "2"), 1);
  assert_true(server_integer(server, "ZCOUNT", "s", "-inf", "+inf", NULL) == 2);
  server_do(server, "DEL", "s::permits", NULL);
  assert_int_equal(prolong(server, "a", "2"), 1);
  assert_int_equal(prolong(server, "b", "2"), 1);
  assert_string_equal(server_string(server, "HGET", "s::permits", "used", NULL), "4");
  assert_int_equal(give_back(server, "a"), 1);
  assert_int_equal(give_back(server, "b"), 1);
  assert_int_equal(server_keys(server), 0);
}

/* An extend never shortens what the server keeps, and the keys are remembered for long enough
 * again. */
TEST_ON(extend_never_shortens, server, server_start(NULL)) {
  static const char *const brief[] = {"a", "10000", "0", "5", NULL};
  static const char *const longer[] = {"a", "95000", "0", "5", NULL};
  assert_int_equal(take(server, "a", "90000", "5"), 0);
  server_do(server, "PEXPIRE", "s", "100000", NULL);
  server_do(server, "PEXPIRE", "s::permits", "100000", NULL);
  assert_int_equal(script_call_integer(server, &belay__script_semaphore_extend, keys, brief), 1);
  assert_between(take(server, "b", TTL, "1"), 50000, 90000);
  assert_int_equal(script_call_integer(server, &belay__script_semaphore_extend, keys, longer), 1);
  assert_between(take(server, "b", TTL, "1"), 90001, 95000);
  assert_true(server_integer(server, "PTTL", "s", NULL) > 600000000);
  assert_true(server_integer(server, "PTTL", "s::permits", NULL) > 600000000);
}

TEST_ON(expired_holders_removed_in_portions, server, server_start(NULL)) {
  static const char fill[] = "for i = 1, 2500 do redis.call('ZADD', KEYS[1], 1, 'x' .. i) "
                             "redis.call('HSET', KEYS[2], 'x' .. i, 2) end "
                             "redis.call('HSET', KEYS[2], 'used', 5000) return 1";
  static const char *const none[] = {NULL};
  server_do(server, "EVAL", fill, "2", "s", "s::permits", NULL);
  const resp_t *reply = script_call(server, &belay__script_semaphore_read, keys, none);
  assert_int_equal(reply->items[1]->integer, 0);
  assert_int_equal(take(server, "a", TTL, "5"), 1);
  assert_int_equal(take(server, "a", TTL, "5"), 1);
  assert_int_equal(take(server, "a", TTL, "5"), 0);
}

/* A key of another type is found out before anything is written. */
TEST_ON(wrong_type_changes_nothing, server, server_start(NULL)) {
  static const char *const acquire[] = {"mine", TTL, "1", "5", "me", PLACE, "PUBLISH", "0", NULL};
  static const char *const release[] = {"mine", "PUBLISH", "me", NULL};
  for (int wrong = 0; wrong < 4; wrong++) {
    server_do(server, "FLUSHALL", NULL);
    server_do(server, "ZADD", "s", "1", "gone", "9999999999999", "mine", NULL);
    server_do(server, "HSET", "s::permits", "gone", "1", "mine", "1", "used", "3", NULL);
    server_do(server, "ZADD", "s::queue", "1", "gone", "2", "me", NULL);
    server_do(server, "ZADD", "s::alive", "1", "gone", NULL);
    server_do(server, "DEL", keys[wrong], NULL);
    server_do(server, "LPUSH", keys[wrong], "x", NULL);
    int64_t dirty = server_info(server, "persistence", "rdb_changes_since_last_save");
    assert_int_equal(script_call(server, &belay__script_semaphore_acquire, keys, acquire)->type,
                     RESP_ERROR);
    assert_int_equal(script_call(server, &belay__script_semaphore_release, keys, release)->type,
                     RESP_ERROR);
    assert_int_equal(server_info(server, "persistence", "rdb_changes_since_last_save"), dirty);
  }
}

/* Each of five servers grants the only permit again to its holder, if no other holder has it. */
TEST_ON(extend_regrants_free_single_permit, server, server_start(NULL)) {
  static const char *const again[] = {"mine", TTL, "30000", "1", NULL};
  assert_int_equal(script_call_integer(server, &belay__script_semaphore_extend, keys, again), 2);
  assert_between(server_integer(server, "PTTL", "s", NULL), 600000000, 604800000);
  assert_int_equal(script_call_integer(server, &belay__script_semaphore_extend, keys, again), 1);
  server_do(server, "ZADD", "s", "1", "mine", NULL);
  assert_int_equal(script_call_integer(server, &belay__script_semaphore_extend, keys, again), 2);
  assert_string_equal(server_string(server, "HGET", "s::permits", "used", NULL), "1");
  server_do(server, "DEL", "s", "s::permits", NULL);
  assert_int_equal(take(server, "another's", TTL, "1"), 0);
  assert_int_equal(script_call_integer(server, &belay__script_semaphore_extend, keys, again), 0);
}

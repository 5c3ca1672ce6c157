/* Session contexts on a real server against a model, step by step. */
#include <stdio.h>

#include "support/base/random.h"
#include "support/models/scripts.h"
#include "support/fixtures/data/sessions.h"

#define KEY "belay::session::shop::{ann}"

enum { STEPS = 8000, HANDLES = 3, OPS = 6, LIST = 8, TEXT = 16 };

typedef struct touch_result {
  bool done, is_new;
  int64_t count, kept;
  char id[STAY_TEXT];
} touch_result_t;

typedef struct model {
  place_t place[HANDLES];
  int64_t most[HANDLES];
  uint64_t random;
  bool there;
  char id[STAY_TEXT];
  int64_t count;
  size_t len;                /* of the list */
  char list[LIST + 1][TEXT]; /* the last events */
  touch_result_t op[OPS];
  unsigned sequence, began, again, ended, spared;
} model_t;

static uint64_t below(model_t *m, uint64_t n) {
  return next_random(&m->random) % n;
}

static void trim(model_t *m, size_t most) {
  while (m->len > most) {
    memmove(m->list[0], m->list[1], LIST * (size_t)TEXT);
    m->len--;
  }
}

static touch_result_t model_touch(model_t *m, size_t most, const char *event, const char *id) {
  touch_result_t touched = {.done = true, .is_new = !m->there};
  if (!m->there) {
    m->there = true;
    m->count = 0;
    m->len = 0;
    snprintf(m->id, sizeof m->id, "%s", id);
  }
  if (event != NULL) {
    m->count++;
    if (most > 0)
      memcpy(m->list[m->len++], event, TEXT);
  }
  trim(m, most);
  touched.count = m->count;
  touched.kept = (int64_t)m->len;
  memcpy(touched.id, m->id, sizeof touched.id);
  return touched;
}

static void step_touch(model_t *m) {
  stay_t stay = {0};
  char event[TEXT] = "", id[TEXT], op[TEXT];
  size_t handle = below(m, HANDLES), which = below(m, OPS);
  bool has_event = below(m, 5) > 0, has_op = below(m, 3) == 0;
  m->sequence++;
  if (below(m, 8) > 0)
    snprintf(event, sizeof event, "e%u", m->sequence);
  snprintf(id, sizeof id, "c%u", m->sequence);
  snprintf(op, sizeof op, "o%zu", which);
  touch_result_t touched;
  if (has_op && m->op[which].done) {
    touched = m->op[which];
    m->again++;
  } else {
    touched = model_touch(m, (size_t)m->most[handle], has_event ? event : NULL, id);
    m->began += touched.is_new;
  }
  if (has_op)
    m->op[which] = touched;
  assert_ends(begin_touch(&m->place[handle], &stay, "ann", has_event ? event : NULL, id,
                          has_op ? op : NULL),
              end_of_stay(&stay), 0);
  assert_true(stay.state.exists);
  assert_int_equal(stay.state.is_new, touched.is_new);
  assert_string_equal(stay.id, touched.id);
  assert_int_equal(stay.state.count, touched.count);
  assert_int_equal(stay.state.kept, touched.kept);
  assert_int_equal(stay.state.lost, 0);
}

static void step_read(model_t *m) {
  stay_t stay = {0};
  size_t n = below(m, LIST + 2), expected = m->there ? (n < m->len ? n : m->len) : 0;
  read_session(&m->place[0], &stay, "ann", n);
  assert_int_equal(stay.state.exists, m->there);
  assert_int_equal(stay.state.events_len, expected);
  if (!m->there)
    return;
  assert_string_equal(stay.id, m->id);
  assert_int_equal(stay.state.count, m->count);
  assert_int_equal(stay.state.kept, m->len);
  for (size_t i = 0; i < expected; i++)
    assert_string_equal(stay.event[i], m->list[m->len - expected + i]);
}

static void step_end(model_t *m) {
  stay_t stay = {0};
  uint64_t how = below(m, 3);
  const char *id = how == 0 ? NULL : how == 1 && m->there ? m->id : "another";
  bool ends = m->there && how < 2;
  assert_ends(begin_end(&m->place[0], &stay, "ann", id), end_of_stay(&stay), 0);
  assert_int_equal(stay.state.ended, ends);
  assert_int_equal(stay.state.exists, m->there && !ends);
  if (m->there) {
    assert_string_equal(stay.id, m->id);
    assert_int_equal(stay.state.count, m->count);
  }
  m->ended += ends;
  m->spared += m->there && !ends;
  m->there = m->there && !ends;
}

/* The ttl ends: both keys at once, or the rest of a context that was evicted. */
static void step_time(model_t *m) {
  server_t *server = m->place[0].env->server;
  server_do(server, "DEL", KEY, NULL);
  if (below(m, 2) == 0)
    server_do(server, "DEL", KEY "::events", NULL);
  m->there = false;
}

static void step_forget_op(model_t *m) {
  char key[64];
  size_t which = below(m, OPS);
  snprintf(key, sizeof key, KEY "::op::o%zu", which);
  server_do(m->place[0].env->server, "DEL", key, NULL);
  m->op[which].done = false;
}

ENV_TEST(random_steps_match_model) {
  static const int64_t most[HANDLES] = {LIST, 3, 0};
  model_t m = {.random = UINT64_C(0x9e3779b97f4a7c15)};
  for (int i = 0; i < HANDLES; i++) {
    belay_session_options_t options = session_options();
    options.name = belay_string("shop");
    options.max_events = m.most[i] = most[i];
    place_of(&m.place[i], env, env->client, &options);
  }
  for (int i = 0; i < STEPS; i++) {
    uint64_t what = below(&m, 100);
    if (what < 65)
      step_touch(&m);
    else if (what < 85)
      step_read(&m);
    else if (what < 89)
      step_end(&m);
    else if (what < 92)
      step_time(&m);
    else
      step_forget_op(&m);
    if (i % 100 == 0)
      expect_ttls(env->server);
    if (i % 1000 == 999)
      server_do(env->server, "SCRIPT", "FLUSH", NULL);
  }
  assert_true(m.began > 200 && m.again > 500 && m.ended > 50 && m.spared > 50);
}

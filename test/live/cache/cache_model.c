/* Three processes change a few keys at random, while keys expire and loads fail. Each loaded
 * value has a version. A get after an acknowledged change is never served an older version,
 * except from the table of another process within local_ttl_ms. */
#include <stdio.h>

#include "support/fixtures/cache/cache.h"

enum { PROCESSES = 3, KEYS = 6, OPS = 32, LOADS = 512, ACKS = 4096, MANY = 4 };
enum { STEPS = 2200, LOCAL_TTL_MS = 25 };

/* The first word of a key is its name, the others are its tags. */
static const char *const keys[KEYS] = {"a red", "b red", "c blue", "d blue", "e red blue", "f"};
static const char *const tags[] = {"red", "blue"};

/* A change that was acknowledged: nothing older is to be served from then on. */
typedef struct ack {
  int64_t at;
  unsigned version, process;
} ack_t;

typedef struct source {
  unsigned version;
  unsigned changing; /* changes that are under way */
  bool putting;      /* one of them knows what is right, and must be alone */
  unsigned acks_len;
  ack_t acks[ACKS];
} source_t;

/* The oldest version that a get may return. */
typedef struct floors {
  unsigned key;
  unsigned all;   /* from anywhere */
  unsigned local; /* from the table of its process */
} floors_t;

typedef enum what { FREE, GET, GET_MANY, CHANGE } what_t;

typedef struct op {
  belay_request_t request;
  what_t what;
  unsigned process;
  bool canceled, put;
  size_t n;
  floors_t floors[MANY];  /* GET */
  unsigned changes[KEYS]; /* CHANGE: the version that the key has got; 0: it is not changed */
} op_t;

typedef struct held {
  belay_cache_load_t *load;
  unsigned key, version;
} held_t;

typedef struct config {
  const char *name;
  bool lock, tags, local, quiet, stale, fails, late;
} config_t;

static struct {
  env_t *env;
  const config_t *config;
  belay_cache_t *caches[PROCESSES];
  uint64_t random;
  source_t sources[KEYS];
  op_t ops[OPS];
  unsigned pending;
  held_t held[LOADS];
  unsigned held_len;
  unsigned served[4], none, stale, old, failed, changed, stored; /* counts of the results */
} m;

static unsigned below(unsigned n) { /* xorshift64* */
  m.random ^= m.random >> 12;
  m.random ^= m.random << 25;
  m.random ^= m.random >> 27;
  return (unsigned)((m.random * UINT64_C(2685821657736338717) >> 33) % n);
}

static void must(int error) {
  assert_int_equal(error, 0);
}

/* ---- the source ---- */

static bool exists(unsigned version) {
  return version % 7 != 0;
}

static size_t words(const char *key, size_t key_len, belay_bytes_t out[BELAY_CACHE_TAGS_MAX],
                    void *arg) {
  size_t n = 0;
  (void)key_len, (void)arg;
  for (const char *at = keys[key[0] - 'a']; (at = strchr(at, ' ')) != NULL; at++)
    out[n++] = (belay_bytes_t){at + 1, strcspn(at + 1, " ")};
  return n;
}

static bool has_tag(unsigned key, const char *tag) {
  return m.config->tags && strstr(keys[key], tag) != NULL;
}

/* So long that it is worth while to compress it. */
static size_t value_of_version(char *out, unsigned key, unsigned version) {
  return (size_t)sprintf(out, "%u %c %050u", version, keys[key][0], 0);
}

static unsigned version_of(const belay_cache_result_t *result, unsigned key) {
  char value[96], expected[96];
  assert_true(result->len < sizeof value);
  memcpy(value, result->data, result->len);
  value[result->len] = '\0';
  unsigned version = (unsigned)strtoul(value, NULL, 10);
  (void)value_of_version(expected, key, version);
  assert_string_equal(value, expected);
  return version;
}

static void on_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  unsigned i = (unsigned)(key[0] - 'a');
  (void)arg;
  assert_true(i < KEYS && key_len == strlen(keys[i]) && m.held_len < LOADS);
  m.held[m.held_len++] = (held_t){load, i, m.sources[i].version};
}

static void on_load_many(belay_cache_load_t *const *loads, const belay_bytes_t *names, size_t n,
                         void *arg) {
  for (size_t i = 0; i < n; i++)
    on_load(loads[i], names[i].data, names[i].len, arg);
}

static void end_load(unsigned i) {
  held_t held = m.held[i];
  char value[96];
  m.held[i] = m.held[--m.held_len];
  if (m.config->fails && below(5) == 0)
    must(belay_cache_load_failed(held.load, 42));
  else if (!exists(held.version))
    must(belay_cache_load_absent(held.load));
  else
    must(belay_cache_load_done(
        held.load, belay_bytes(value, value_of_version(value, held.key, held.version))));
}

/* Lets happen what happens, for a moment. */
static void turn(void) {
  (void)uv_run(&m.env->loop, UV_RUN_NOWAIT);
  for (unsigned i = m.held_len; i-- > 0;)
    if (below(4) == 0)
      end_load(i);
}

/* ---- gets ---- */

static floors_t floors_of(unsigned key, unsigned process) {
  const source_t *source = &m.sources[key];
  floors_t floors = {.key = key};
  int64_t invalidated_by = clock_now() - (LOCAL_TTL_MS + 1) * MS;
  for (unsigned i = 0; i < source->acks_len; i++) {
    const ack_t *ack = &source->acks[i];
    if (ack->version > floors.all)
      floors.all = ack->version;
    if (ack->version > floors.local && (ack->process == process || ack->at <= invalidated_by))
      floors.local = ack->version;
  }
  return floors;
}

/* There was a version since then of which that is true. */
static bool did_not_exist(unsigned key, unsigned since) {
  for (unsigned version = since; version <= m.sources[key].version; version++)
    if (!exists(version))
      return true;
  return false;
}

static void check(const op_t *op, const floors_t *floors, const belay_cache_result_t *result) {
  bool local = result->from == BELAY_CACHE_FROM_LOCAL;
  unsigned least = local ? floors->local : floors->all;
  switch (result->status) {
  case 0: {
    unsigned version = version_of(result, floors->key);
    if (version < least || version > m.sources[floors->key].version || !exists(version))
      fail_msg("%s: key %c, process %u: version %u, not %u or later, from %d%s", m.config->name,
               keys[floors->key][0], op->process, version, least, (int)result->from,
               result->stale ? ", stale" : "");
    m.old += version < floors->all;
    m.stale += result->stale;
    m.served[result->from]++;
    return;
  }
  case BELAY_EABSENT:
    if (!did_not_exist(floors->key, least))
      fail_msg("%s: key %c exists", m.config->name, keys[floors->key][0]);
    m.none++;
    return;
  case BELAY_ELOAD:
    assert_true(m.config->fails);
    assert_int_equal(result->load_error, 42);
    m.failed++;
    return;
  case BELAY_ECANCELED:
    assert_true(op->canceled);
    return;
  default:
    assert_int_equal(result->status, BELAY_ETIMEDOUT);
    assert_true(m.config->late);
    m.failed++;
  }
}

static void op_over(op_t *op) {
  assert_int_not_equal(op->what, FREE); /* once */
  m.pending--;
  op->what = FREE;
}

static void on_get(belay_request_t *request, int status, const belay_cache_result_t *result) {
  op_t *op = request->data;
  assert_int_equal(status, result->status);
  check(op, &op->floors[0], result);
  op_over(op);
}

static void on_many(belay_request_t *request, int status, const belay_cache_result_t *results,
                    size_t n) {
  op_t *op = request->data;
  assert_int_equal(status, op->canceled && status != 0 ? BELAY_ECANCELED : 0);
  assert_int_equal(n, op->n);
  for (size_t i = 0; i < n; i++)
    check(op, &op->floors[i], &results[i]);
  op_over(op);
}

static op_t *new_op(what_t what) {
  while (m.pending == OPS)
    turn();
  op_t *op = m.ops;
  while (op->what != FREE)
    op++;
  *op = (op_t){.what = what, .process = below(PROCESSES)};
  op->request.data = op;
  m.pending++;
  return op;
}

static void step_get(void) {
  op_t *op = new_op(GET);
  unsigned key = below(KEYS);
  op->floors[0] = floors_of(key, op->process);
  must(belay_cache_get_late(m.caches[op->process], &op->request, belay_string(keys[key]),
                            (belay_cache_late_t)(BELAY_CACHE_LATE_STALE + below(3)), on_get));
}

static void step_get_many(void) {
  op_t *op = new_op(GET_MANY);
  belay_bytes_t names[MANY];
  op->n = 1 + below(MANY);
  for (size_t i = 0; i < op->n; i++) {
    unsigned key = below(KEYS);
    op->floors[i] = floors_of(key, op->process);
    names[i] = (belay_bytes_t){keys[key], strlen(keys[key])};
  }
  must(belay_cache_get_many(m.caches[op->process], &op->request, names, op->n, on_many));
}

static void step_peek(void) {
  unsigned key = below(KEYS);
  op_t op = {.process = below(PROCESSES)};
  floors_t floors = floors_of(key, op.process);
  belay_cache_result_t result;
  if (belay_cache_peek(m.caches[op.process], belay_string(keys[key]), &result) != BELAY_EAGAIN)
    check(&op, &floors, &result);
}

/* ---- changes ---- */

static void on_change(belay_request_t *request, int status, bool applied) {
  op_t *op = request->data;
  assert_int_equal(status, 0);
  m.stored += applied && op->put;
  for (unsigned i = 0; i < KEYS; i++) {
    if (op->changes[i] == 0)
      continue;
    source_t *source = &m.sources[i];
    assert_true(source->acks_len < ACKS);
    source->acks[source->acks_len++] = (ack_t){clock_now(), op->changes[i], op->process};
    source->changing--;
    source->putting = false;
    m.changed++;
  }
  op_over(op);
}

static void change(op_t *op, unsigned key) {
  source_t *source = &m.sources[key];
  op->changes[key] = ++source->version;
  source->changing++;
}

static void step_put(void) {
  op_t *op = new_op(CHANGE);
  unsigned key = below(KEYS);
  source_t *source = &m.sources[key];
  char value[96];
  while (source->changing > 0)
    turn(); /* two who change it at once would have to agree who is the later one */
  change(op, key);
  if (!exists(source->version))
    op->changes[key] = ++source->version;
  source->putting = op->put = true;
  size_t len = value_of_version(value, key, source->version);
  must(belay_cache_put(m.caches[op->process], &op->request, belay_string(keys[key]),
                       belay_bytes(value, len), BELAY_DEFAULT, on_change));
}

static void step_invalidate(void) {
  op_t *op = new_op(CHANGE);
  unsigned key = below(KEYS);
  while (m.sources[key].putting)
    turn();
  change(op, key);
  must(belay_cache_invalidate(m.caches[op->process], &op->request, belay_string(keys[key]),
                              on_change));
}

static bool is_put(const char *tag) {
  for (unsigned i = 0; i < KEYS; i++)
    if (has_tag(i, tag) && m.sources[i].putting)
      return true;
  return false;
}

static void step_invalidate_tag(void) {
  op_t *op = new_op(CHANGE);
  const char *tag = tags[below(2)];
  while (is_put(tag))
    turn();
  for (unsigned i = 0; i < KEYS; i++)
    if (has_tag(i, tag))
      change(op, i);
  must(belay_cache_invalidate_tag(m.caches[op->process], &op->request, belay_string(tag),
                                  on_change));
}

static void step_touch(void) {
  op_t *op = new_op(CHANGE);
  unsigned key = below(KEYS);
  must(belay_cache_touch(m.caches[op->process], &op->request, belay_string(keys[key]),
                         1 + below(30), on_change));
}

/* ---- what nobody asked for ---- */

static void step_evict(void) {
  static const char *const parts[] = {"", "::gen", "::lease"};
  char key[64];
  if (below(3) == 0)
    snprintf(key, sizeof key, "belay::cache::pages::{%s}::tag", tags[below(2)]);
  else
    snprintf(key, sizeof key, "belay::cache::pages::{%s}%s", keys[below(KEYS)], parts[below(3)]);
  server_do(m.env->server, "DEL", key, NULL);
}

static void step_cancel(void) {
  op_t *op = &m.ops[below(OPS)];
  if (op->what != GET && op->what != GET_MANY)
    return;
  op->canceled = true;
  (void)belay_request_cancel(&op->request);
}

static void step(void) {
  unsigned what = below(1000);
  if (what < 500)
    step_get();
  else if (what < 600)
    step_get_many();
  else if (what < 700)
    step_peek();
  else if (what < 760)
    step_put();
  else if (what < 840)
    step_invalidate();
  else if (what < 880)
    step_invalidate_tag();
  else if (what < 910)
    step_touch();
  else if (what < 960)
    step_evict();
  else if (what < 965)
    server_do(m.env->server, "FLUSHALL", NULL);
  else if (what < 975)
    for (int64_t then = clock_now(); clock_since_ms(then) < 4;)
      turn();
  else
    step_cancel();
  for (unsigned turns = below(3); turns > 0; turns--)
    turn();
}

/* ---- all of it ---- */

static void caches_open(void) {
  const config_t *config = m.config;
  for (unsigned i = 0; i < PROCESSES; i++) {
    belay_cache_options_t o;
    belay_cache_options_init(&o);
    o.name = belay_string("pages");
    o.load = on_load;
    o.load_many = i == 0 ? NULL : on_load_many;
    o.tags = config->tags ? words : NULL;
    o.ttl_ms = 8;
    o.jitter_percent = 50;
    o.lock = config->lock;
    o.retry_min_ms = 1;
    o.retry_max_ms = 5;
    o.wait_ms = config->late ? 2 : BELAY_FOREVER;
    o.local_bytes = !config->local ? 0 : i == 0 ? 1500 : 100000;
    o.local_ttl_ms = LOCAL_TTL_MS;
    o.quiet = config->quiet;
    o.compress_bytes = i == 1 ? 10 : 0;
    if (config->stale) {
      o.stale_ms = 30;
      o.keep_ms = 100;
      o.absent_ms = 10;
      o.error_ms = 5;
      o.beta = 1;
    }
    belay_client_t *client =
        i == 0 ? m.env->client : env_connect(m.env, server_url(m.env->server), NULL);
    must(belay_cache_new(client, &o, &m.caches[i]));
  }
}

static bool is_quiet(void) {
  belay_cache_stats_t stats;
  size_t flights = 0;
  for (unsigned i = 0; i < PROCESSES; i++) {
    belay_cache_stats(m.caches[i], &stats);
    flights += stats.loading;
  }
  return m.pending == 0 && flights == 0 && m.held_len == 0;
}

/* No key lives for ever. */
static void expect_all_to_end(void) {
  static const char script[] = "local n = 0; for _, key in ipairs(redis.call('KEYS', '*')) do "
                               "n = n + (redis.call('PTTL', key) == -1 and 1 or 0) end return n";
  assert_int_equal(server_integer(m.env->server, "EVAL", script, "0", NULL), 0);
}

static void play(void **state) {
  const config_t *config = *state;
  memset(&m, 0, sizeof m);
  m.config = config;
  m.random = UINT64_C(0x9e3779b97f4a7c15);
  m.env = env_open(NULL);
  for (unsigned i = 0; i < KEYS; i++)
    m.sources[i].version = 1;
  caches_open();
  for (int i = 0; i < STEPS / slow(); i++)
    step();
  int64_t then = clock_now();
  while (!is_quiet()) {
    turn();
    if (clock_since_ms(then) > 5000 * slow())
      fail_msg("%u requests and %u loads do not end", m.pending, m.held_len);
  }
  env_settle(m.env);
  expect_all_to_end();
  const unsigned *served = m.served;
  print_message("%u from tables, %u from the server, %u loaded; %u stale, %u old, %u failed; %u "
                "changes\n",
                served[BELAY_CACHE_FROM_LOCAL], served[BELAY_CACHE_FROM_SERVER],
                served[BELAY_CACHE_FROM_LOAD], m.stale, m.old, m.failed, m.changed);
  assert_true(served[BELAY_CACHE_FROM_SERVER] > 30 && served[BELAY_CACHE_FROM_LOAD] > 30);
  assert_int_equal(served[BELAY_CACHE_FROM_LOCAL] > 10, config->local);
  assert_int_equal(m.stale > 0, config->stale);
  assert_true(m.old == 0 || config->local);
  assert_true(m.old > 0 || !config->quiet);
  assert_true(m.none > 5 && m.changed > 30 && m.stored > 3);
  env_close(m.env);
}

TEST_ROWS(play) {
  static config_t rows[] = {
      {.name = "plain"},
      {.name = "locked", .lock = true},
      {.name = "stale", .lock = true, .stale = true, .fails = true, .late = true},
      {.name = "tags", .tags = true},
      {.name = "tables", .local = true, .lock = true},
      {.name = "tables without invalidation messages", .local = true, .quiet = true, .tags = true},
      {"all of it", true, true, true, false, true, true, true},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    test_add(__LINE__, play, &rows[i], "%s", rows[i].name);
}

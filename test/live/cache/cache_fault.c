/* Faults of each call of a load: its reply is lost, it does not arrive, it arrives after the
 * waiters have left, or it is late. */
#include <stdio.h>
#include <sys/socket.h>

#include "support/servers/acl.h"
#include "support/fixtures/cache/cache.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::pages::{home}"
#define GENERATION KEY "::gen"
#define LEASE KEY "::lease"

/* ---- the calls of a load, on a bad connection ---- */

typedef enum step_id { LOOK, LOCK, BEGIN, FILL, FAIL, RELEASE, STEPS } step_id_t;

typedef struct step {
  const char *command; /* as it is traced */
  const char *counted; /* as the server counts it */
} step_t;

static const step_t steps[STEPS] = {
    [LOOK] = {"GET", "get"},
    [LOCK] = {"SET", "set"},
    [BEGIN] = {"cache_begin", "evalsha"},
    [FILL] = {"cache_fill", "evalsha"},
    [FAIL] = {"cache_fail", "evalsha"},
    [RELEASE] = {"lock_release", "evalsha"},
};

typedef enum fault {
  LOST,    /* it is executed, and the answer does not arrive */
  CUT,     /* it does not arrive */
  HAUNTED, /* it arrives later, when its connection is long gone */
  LATE,    /* it takes its time */
  FAULTS
} fault_t;

typedef struct faulty {
  server_t *server;
  relay_t *relay;
  env_t *env;
  cache_t cache;
  resp_client_t monitor;
  step_id_t step;
  bool armed, struck;
  int64_t calls; /* of the step's, before it was struck */
  int64_t delay_ms;
} faulty_t;

static void on_trace(void *ctx, const belay_trace_t *trace) {
  faulty_t *faulty = ctx;
  const step_t *step = &steps[faulty->step];
  if (!faulty->armed || trace->event != BELAY_TRACE_SENT ||
      strcmp(trace->command, step->command) != 0)
    return;
  faulty->armed = false;
  faulty->struck = true;
  faulty->calls = server_calls(faulty->server, step->counted);
  relay_delay(faulty->relay, faulty->delay_ms);
}

static void faulty_open(faulty_t *faulty) {
  *faulty = (faulty_t){.server = server_start(NULL), .delay_ms = 60 * slow()};
  faulty->relay = relay_start(server_path(faulty->server));
  belay_client_options_t client = client_options();
  client.timeout_ms = 5000 * slow();
  client.reconnect_max_ms = 20;
  client.trace = on_trace;
  client.trace_ctx = faulty;
  faulty->env = env_open_at(relay_url(faulty->relay), &client);
  faulty->env->server = faulty->server;
  belay_cache_options_t options = cache_options(&faulty->cache);
  options.retry_min_ms = 5;
  options.retry_max_ms = 20;
  options.lease_ms = 300 * slow(); /* a late executed lease can block other loads for this time */
  options.error_ms = 60000;
  cache_open(&faulty->cache, faulty->env, &options);
  expect_cached(&faulty->cache, "other", "other#1", BELAY_CACHE_FROM_LOAD); /* scripts are known */
  env_settle(faulty->env);
  assert_int_equal(acl_dial(NULL, &faulty->monitor, server_path(faulty->server)), 0);
  assert_int_equal(resp_send(faulty->monitor.fd, "MONITOR\r\n", 9), 0);
}

static bool was_executed(const faulty_t *faulty) {
  return server_calls(faulty->server, steps[faulty->step].counted) > faulty->calls;
}

/* The call was sent. */
static void harm(faulty_t *faulty, fault_t fault) {
  if (fault == LOST)
    while (!was_executed(faulty))
      uv_run(&faulty->env->loop, UV_RUN_NOWAIT);
  else
    env_run_for(faulty->env, faulty->delay_ms / 4); /* it has left the process */
  if (fault == HAUNTED)
    relay_haunt(faulty->relay);
  else if (fault != LATE)
    relay_cut(faulty->relay);
  relay_delay(faulty->relay, 0);
}

/* After each fault, the get is served by exactly one load, and an invalidated value does not
 * return. */
static void play(faulty_t *faulty, step_id_t step, fault_t fault) {
  cache_t *cache = &faulty->cache;
  get_t get = {0};
  int64_t began = clock_now();
  server_do(faulty->server, "FLUSHALL", NULL);
  faulty->step = step;
  faulty->armed = true;
  faulty->struck = false;
  cache->loaded = 0;
  cache->error = step == FAIL ? 7 : 0;
  start_get(cache, &get, "home");
  env_until(faulty->env, faulty->struck);
  harm(faulty, fault);
  assert_int_equal(end_of_get(&get), step == FAIL ? BELAY_ELOAD : 0);
  assert_int_equal(get.result.load_error, cache->error);
  if (step != FAIL)
    assert_string_equal(get.data, "home#1");
  assert_int_equal(get.result.from,
                   step == FAIL ? BELAY_CACHE_FROM_NOWHERE : BELAY_CACHE_FROM_LOAD);
  get_free(&get);
  env_until(faulty->env, cache_stats(cache).loading == 0);
  if (step == FAIL)
    expect_no_value(cache, "home", BELAY_ELOAD); /* it is remembered */
  else if (step != BEGIN || fault != HAUNTED)    /* which forbids what is being loaded */
    expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache->loaded, 1);
  expect_invalidate(cache, "home");
  assert_int_equal(server_integer(faulty->server, "EXISTS", KEY, NULL), 0);
  if (fault == HAUNTED)
    while (clock_since_ms(began) < 2 * faulty->delay_ms)
      env_run_for(faulty->env, 5);
  assert_int_equal(server_integer(faulty->server, "EXISTS", KEY, NULL), 0);
  cache->error = 0;
  expect_cached(cache, "home", "home#2", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(cache->loaded, 2);
  env_until(faulty->env, server_integer(faulty->server, "EXISTS", LEASE, NULL) == 0);
  env_settle(faulty->env);
}

/* Values written under generations, as the server saw them: 16 bytes each, escaped. */
typedef struct written {
  char *text;
  size_t len, room;
} written_t;

static written_t read_monitor(faulty_t *faulty) {
  written_t written = {.room = 1 << 20};
  written.text = malloc(written.room);
  server_do(faulty->server, "ECHO", "this is all", NULL);
  for (;;) {
    if (written.room - written.len < 65537)
      written.text = realloc(written.text, written.room *= 2);
    ssize_t n = recv(faulty->monitor.fd, written.text + written.len, 65536, 0);
    assert_true(n > 0);
    written.len += (size_t)n;
    written.text[written.len] = '\0';
    const char *end = written.text + (written.len < 100 ? 0 : written.len - 100);
    if (strstr(end, "this is all") != NULL)
      return written;
  }
}

/* No load was begun twice under the same generation. */
static void expect_fresh_generations(faulty_t *faulty) {
  static const char mark[] = GENERATION "\" \"";
  enum { MAX = 400 };
  const char *seen[MAX];
  size_t len[MAX], n = 0;
  written_t written = read_monitor(faulty);
  for (char *line = strtok(written.text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    const char *set = strstr(line, "lua] \"SET\""), *at = strstr(line, mark);
    const char *end = strstr(line, "\" \"PX\"");
    if (set == NULL || at == NULL || end == NULL)
      continue;
    assert_true(n < MAX);
    seen[n] = at + sizeof mark - 1;
    len[n] = (size_t)(end - seen[n]);
    for (size_t i = 0; i < n; i++)
      assert_false(len[i] == len[n] && memcmp(seen[i], seen[n], len[n]) == 0);
    n++;
  }
  assert_true(n >= 2);
  free(written.text);
}

static void faulty_close(faulty_t *faulty) {
  expect_ttls(faulty->server);
  expect_fresh_generations(faulty);
  resp_hang_up(&faulty->monitor);
  env_close(faulty->env);
  relay_stop(faulty->relay);
}

static void play_all(fault_t fault) {
  faulty_t faulty;
  faulty_open(&faulty);
  for (step_id_t step = LOOK; step < STEPS; step++)
    play(&faulty, step, fault);
  faulty_close(&faulty);
}

TEST(an_answer_is_lost) {
  play_all(LOST);
}

TEST(call_lost) {
  play_all(CUT);
}

TEST(late_execution_of_a_call) {
  play_all(HAUNTED);
}

TEST(an_answer_is_late) {
  play_all(LATE);
}

/* Faults of each call of a load: its reply is lost, it does not arrive, it arrives after the
 * waiters have left, or it is late. */
#include <stdio.h>
#include <sys/socket.h>

#include "support/servers/acl.h"
#include "support/fixtures/cache/caches.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::pages::{home}"
#define GENERATION KEY "::gen"
#define LEASE KEY "::lease"

/* ---- the calls of a load, on a bad wire ---------------------------------------------------------------- */

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

typedef struct wire {
  server_t *server;
  relay_t *relay;
  bed_t *bed;
  hoard_t hoard;
  resp_client_t monitor;
  step_id_t step;
  bool armed, struck;
  int64_t calls; /* of the step's, before it was struck */
  int64_t delay_ms;
} wire_t;

static void on_trace(void *ctx, const belay_trace_t *trace) {
  wire_t *wire = ctx;
  const step_t *step = &steps[wire->step];
  if (!wire->armed || trace->event != BELAY_TRACE_SENT ||
      strcmp(trace->command, step->command) != 0)
    return;
  wire->armed = false;
  wire->struck = true;
  wire->calls = server_calls(wire->server, step->counted);
  relay_delay(wire->relay, wire->delay_ms);
}

static void wire_open(wire_t *wire) {
  *wire = (wire_t){.server = server_start(NULL), .delay_ms = 60 * slow()};
  wire->relay = relay_start(server_path(wire->server));
  belay_client_options_t client = client_options();
  client.timeout_ms = 5000 * slow();
  client.reconnect_max_ms = 20;
  client.trace = on_trace;
  client.trace_ctx = wire;
  wire->bed = bed_open_at(relay_url(wire->relay), &client);
  wire->bed->server = wire->server;
  belay_cache_options_t options = cache_options(&wire->hoard);
  options.retry_min_ms = 5;
  options.retry_max_ms = 20;
  options.lease_ms = 300 * slow(); /* a late executed lease can block other loads for this time */
  options.error_ms = 60000;
  hoard_new(&wire->hoard, wire->bed, &options);
  expect_cached(&wire->hoard, "other", "other#1", BELAY_CACHE_FROM_LOAD); /* scripts are known */
  bed_settle(wire->bed);
  assert_int_equal(acl_dial(NULL, &wire->monitor, server_path(wire->server)), 0);
  assert_int_equal(resp_send(wire->monitor.fd, "MONITOR\r\n", 9), 0);
}

static bool was_executed(const wire_t *wire) {
  return server_calls(wire->server, steps[wire->step].counted) > wire->calls;
}

/* The call was sent. */
static void harm(wire_t *wire, fault_t fault) {
  if (fault == LOST)
    while (!was_executed(wire))
      uv_run(&wire->bed->loop, UV_RUN_NOWAIT);
  else
    bed_run_for(wire->bed, wire->delay_ms / 4); /* it has left the process */
  if (fault == HAUNTED)
    relay_haunt(wire->relay);
  else if (fault != LATE)
    relay_cut(wire->relay);
  relay_delay(wire->relay, 0);
}

/* After each fault, the get is served by exactly one load, and an invalidated value does not
 * return. */
static void play(wire_t *wire, step_id_t step, fault_t fault) {
  hoard_t *hoard = &wire->hoard;
  fetch_t fetch = {0};
  int64_t began = clock_now();
  server_do(wire->server, "FLUSHALL", NULL);
  wire->step = step;
  wire->armed = true;
  wire->struck = false;
  hoard->loaded = 0;
  hoard->error = step == FAIL ? 7 : 0;
  assert_int_equal(begin_cache_get(hoard, &fetch, "home"), 0);
  bed_until(wire->bed, wire->struck);
  harm(wire, fault);
  assert_int_equal(end_of_fetch(&fetch), step == FAIL ? BELAY_ELOAD : 0);
  assert_int_equal(fetch.result.load_error, hoard->error);
  if (step != FAIL)
    assert_string_equal(fetch.data, "home#1");
  assert_int_equal(fetch.result.from,
                   step == FAIL ? BELAY_CACHE_FROM_NOWHERE : BELAY_CACHE_FROM_LOAD);
  fetch_free(&fetch);
  bed_until(wire->bed, hoard_stats(hoard).loading == 0);
  if (step == FAIL)
    expect_no_value(hoard, "home", BELAY_ELOAD); /* it is remembered */
  else if (step != BEGIN || fault != HAUNTED)    /* which forbids what is being loaded */
    expect_cached(hoard, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(hoard->loaded, 1);
  expect_invalidate(hoard, "home");
  assert_int_equal(server_integer(wire->server, "EXISTS", KEY, NULL), 0);
  if (fault == HAUNTED)
    while (clock_since_ms(began) < 2 * wire->delay_ms)
      bed_run_for(wire->bed, 5);
  assert_int_equal(server_integer(wire->server, "EXISTS", KEY, NULL), 0);
  hoard->error = 0;
  expect_cached(hoard, "home", "home#2", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(hoard->loaded, 2);
  bed_until(wire->bed, server_integer(wire->server, "EXISTS", LEASE, NULL) == 0);
  bed_settle(wire->bed);
}

/* Values written under generations, as the server saw them: 16 bytes each, escaped. */
typedef struct written {
  char *text;
  size_t len, room;
} written_t;

static written_t read_monitor(wire_t *wire) {
  written_t written = {.room = 1 << 20};
  written.text = malloc(written.room);
  server_do(wire->server, "ECHO", "this is all", NULL);
  for (;;) {
    if (written.room - written.len < 65537)
      written.text = realloc(written.text, written.room *= 2);
    ssize_t n = recv(wire->monitor.fd, written.text + written.len, 65536, 0);
    assert_true(n > 0);
    written.len += (size_t)n;
    written.text[written.len] = '\0';
    const char *end = written.text + (written.len < 100 ? 0 : written.len - 100);
    if (strstr(end, "this is all") != NULL)
      return written;
  }
}

/* No load was begun twice under the same generation. */
static void expect_fresh_generations(wire_t *wire) {
  static const char mark[] = GENERATION "\" \"";
  enum { MAX = 400 };
  const char *seen[MAX];
  size_t len[MAX], n = 0;
  written_t written = read_monitor(wire);
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

static void wire_close(wire_t *wire) {
  expect_ttls(wire->server);
  expect_fresh_generations(wire);
  resp_hang_up(&wire->monitor);
  bed_close(wire->bed);
  relay_stop(wire->relay);
}

static void play_all(fault_t fault) {
  wire_t wire;
  wire_open(&wire);
  for (step_id_t step = LOOK; step < STEPS; step++)
    play(&wire, step, fault);
  wire_close(&wire);
}

TEST(an_answer_is_lost) {
  play_all(LOST);
}

TEST(a_call_does_not_arrive) {
  play_all(CUT);
}

TEST(a_call_arrives_as_a_ghost) {
  play_all(HAUNTED);
}

TEST(an_answer_is_late) {
  play_all(LATE);
}

/* belay's cache as a subject: hits, and many gets of a value that is absent. */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "load/subjects/belay.h"

enum { KEY_SIZE = 24, VALUE = 1024, LOAD_MS = 1 };
#define DAY_MS 86400000

typedef struct caches {
  host_t host;
  belay_cache_t *cache;
  uint64_t gets, loads;
  char value[VALUE];
  uv_timer_t timer; /* a load takes a while */
  belay_cache_load_t *loading;
} caches_t;

static void on_got(belay_request_t *request, int status, const belay_cache_result_t *result) {
  must(status, "get");
  if (result->len != VALUE)
    bench_die("a get brought %zu bytes", result->len);
  driver_done(request->data);
}

static void get(runner_t *runner, uint64_t number) {
  const caches_t *caches = runner->driver->own;
  char key[KEY_SIZE];
  size_t len = (size_t)snprintf(key, sizeof key, "%012llu", (unsigned long long)number);
  must(belay_cache_get(caches->cache, &runner->request, belay_bytes(key, len), on_got), "get");
}

static void begin_hit(runner_t *runner) {
  get(runner, driver_next_key(runner->driver));
}

/* As many as there are runners want the same key, then the next one. */
static void begin_stampede(runner_t *runner) {
  caches_t *caches = runner->driver->own;
  get(runner, caches->gets++ / runner->driver->job->concurrency);
}

static void load_at_once(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  const caches_t *caches = arg;
  (void)key;
  (void)key_len;
  must(belay_cache_load_done(load, belay_bytes(caches->value, VALUE)), "load");
}

static void on_loaded(uv_timer_t *timer) {
  caches_t *caches = timer->data;
  belay_cache_load_t *load = caches->loading;
  caches->loading = NULL;
  must(belay_cache_load_done(load, belay_bytes(caches->value, VALUE)), "load");
}

static void load_later(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  caches_t *caches = arg;
  caches->loads++;
  if (caches->loading != NULL) { /* the keys' ends overlap */
    load_at_once(load, key, key_len, arg);
    return;
  }
  caches->loading = load;
  uv_timer_start(&caches->timer, on_loaded, LOAD_MS, 0);
}

static void open_caches(driver_t *driver, belay_cache_load_fn load) {
  caches_t *caches = driver->own = bench_alloc(1, sizeof *caches);
  belay_cache_options_t options;
  memset(caches->value, 'v', VALUE);
  host_open(&caches->host, driver);
  uv_timer_init(&driver->loop, &caches->timer);
  caches->timer.data = caches;
  belay_cache_options_init(&options);
  options.name = belay_string("bench");
  options.load = load;
  options.arg = caches;
  options.ttl_ms = DAY_MS;
  options.timeout_ms = 60000;
  must(belay_cache_new(caches->host.clients[0], &options, &caches->cache), "cache");
}

static void open_hit(driver_t *driver) {
  open_caches(driver, load_at_once);
}

static void open_stampede(driver_t *driver) {
  open_caches(driver, load_later);
}

static void close_caches(driver_t *driver) {
  caches_t *caches = driver->own;
  unsigned long long loads = caches->loads, keys = caches->gets / driver->job->concurrency + 1;
  if (loads > keys)
    bench_die("%llu loads for %llu keys", loads, keys);
  uv_close((uv_handle_t *)&caches->timer, NULL);
  host_close(driver, &caches->host, 0);
}

const doer_t belay_cache_hit = {open_hit, begin_hit, close_caches, NULL};
const doer_t belay_cache_stampede = {open_stampede, begin_stampede, close_caches, NULL};

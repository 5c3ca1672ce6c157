#include "study/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

#define PATIENCE_MS 60000 /* nothing is to end because the machine is busy */
#define DAY_MS 86400000

_Static_assert(sizeof(fixture_key_t) == sizeof FIXTURE_PREFIX - 1 + FIXTURE_KEY + 1,
               "a name in a piece");

void fixture_must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

/* The loader has the value at once. */
static void load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  const fixture_t *fixture = arg;
  (void)key;
  (void)key_len;
  fixture_must(belay_cache_load_done(load, belay_bytes(fixture->value, fixture->value_len)),
               "load");
}

static void make_keys(fixture_t *fixture) {
  fixture->keys = malloc(fixture->keys_len * sizeof *fixture->keys);
  fixture->value = malloc(fixture->value_len);
  if (fixture->keys == NULL || fixture->value == NULL)
    bench_die("out of memory");
  for (unsigned i = 0; i < fixture->keys_len; i++) {
    char text[sizeof(fixture_key_t) + 1];
    (void)snprintf(text, sizeof text, FIXTURE_PREFIX "%0*u}", FIXTURE_KEY, i);
    memcpy(&fixture->keys[i], text, sizeof(fixture_key_t));
  }
  uint32_t random = 1;
  for (size_t i = 0; i < fixture->value_len; i++)
    fixture->value[i] = (char)((random = random * 1664525 + 1013904223) >> 24);
}

fixture_t *fixture_open(const fixture_plan_t *plan) {
  char url[256];
  belay_client_options_t client;
  belay_cache_options_t options;
  fixture_t *fixture = calloc(1, sizeof *fixture);
  if (fixture == NULL || uv_loop_init(&fixture->loop) != 0)
    bench_die("out of memory");
  fixture->keys_len = plan->keys;
  fixture->value_len = plan->value_len;
  make_keys(fixture);
  fixture_must(belay_open(&fixture->loop, NULL, &fixture->belay), "open");
  (void)snprintf(url, sizeof url, "unix://%s", server_path());
  belay_client_options_init(&client);
  client.timeout_ms = client.stall_timeout_ms = PATIENCE_MS;
  fixture_must(belay_connect(fixture->belay, url, &client, &fixture->client), "connect");
  belay_cache_options_init(&options);
  options.name = belay_string(FIXTURE_NAME);
  options.load = load;
  options.arg = fixture;
  options.timeout_ms = PATIENCE_MS;
  options.ttl_ms = options.local_ttl_ms = DAY_MS;
  options.local_bytes = plan->local_bytes;
  options.lock = plan->lock;
  fixture_must(belay_cache_new(fixture->client, &options, &fixture->cache), "cache");
  return fixture;
}

void fixture_close(fixture_t *fixture) {
  fixture_must(belay_close(fixture->belay, NULL), "close");
  (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&fixture->loop) != 0)
    bench_die("something is left in the loop");
  free(fixture->keys);
  free(fixture->value);
  free(fixture);
}

void fixture_new_key(fixture_t *fixture, char key[FIXTURE_KEY + 1]) {
  (void)snprintf(key, FIXTURE_KEY + 1, "n%0*llu", FIXTURE_KEY - 1,
                 (unsigned long long)fixture->number++ % 1000000000000000);
}

uint64_t fixture_allocations(const fixture_t *fixture) {
  belay_stats_t stats;
  belay_stats(fixture->belay, &stats);
  return stats.allocations;
}

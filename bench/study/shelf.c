#include "study/shelf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

#define PATIENCE_MS 60000 /* nothing is to end because the machine is busy */
#define DAY_MS 86400000

_Static_assert(sizeof(shelf_key_t) == sizeof SHELF_PREFIX - 1 + SHELF_KEY + 1, "a name in a piece");

void shelf_must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

/* The loader has the value at once. */
static void load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  const shelf_t *shelf = arg;
  (void)key;
  (void)key_len;
  shelf_must(belay_cache_load_done(load, belay_bytes(shelf->value, shelf->value_len)), "load");
}

static void make_keys(shelf_t *shelf) {
  shelf->keys = malloc(shelf->keys_len * sizeof *shelf->keys);
  shelf->value = malloc(shelf->value_len);
  if (shelf->keys == NULL || shelf->value == NULL)
    bench_die("out of memory");
  for (unsigned i = 0; i < shelf->keys_len; i++) {
    char text[sizeof(shelf_key_t) + 1];
    (void)snprintf(text, sizeof text, SHELF_PREFIX "%0*u}", SHELF_KEY, i);
    memcpy(&shelf->keys[i], text, sizeof(shelf_key_t));
  }
  uint32_t random = 1;
  for (size_t i = 0; i < shelf->value_len; i++)
    shelf->value[i] = (char)((random = random * 1664525 + 1013904223) >> 24);
}

shelf_t *shelf_open(const shelf_plan_t *plan) {
  char url[256];
  belay_client_options_t client;
  belay_cache_options_t options;
  shelf_t *shelf = calloc(1, sizeof *shelf);
  if (shelf == NULL || uv_loop_init(&shelf->loop) != 0)
    bench_die("out of memory");
  shelf->keys_len = plan->keys;
  shelf->value_len = plan->value_len;
  make_keys(shelf);
  shelf_must(belay_open(&shelf->loop, NULL, &shelf->belay), "open");
  (void)snprintf(url, sizeof url, "unix://%s", server_path());
  belay_client_options_init(&client);
  client.timeout_ms = client.stall_timeout_ms = PATIENCE_MS;
  shelf_must(belay_connect(shelf->belay, url, &client, &shelf->client), "connect");
  belay_cache_options_init(&options);
  options.name = belay_string(SHELF_NAME);
  options.load = load;
  options.arg = shelf;
  options.timeout_ms = PATIENCE_MS;
  options.ttl_ms = options.local_ttl_ms = DAY_MS;
  options.local_bytes = plan->local_bytes;
  options.lock = plan->lock;
  shelf_must(belay_cache_new(shelf->client, &options, &shelf->cache), "cache");
  return shelf;
}

void shelf_close(shelf_t *shelf) {
  shelf_must(belay_close(shelf->belay, NULL), "close");
  (void)uv_run(&shelf->loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&shelf->loop) != 0)
    bench_die("something is left in the loop");
  free(shelf->keys);
  free(shelf->value);
  free(shelf);
}

void shelf_new_key(shelf_t *shelf, char key[SHELF_KEY + 1]) {
  (void)snprintf(key, SHELF_KEY + 1, "n%0*llu", SHELF_KEY - 1,
                 (unsigned long long)shelf->number++ % 1000000000000000);
}

uint64_t shelf_allocations(const shelf_t *shelf) {
  belay_stats_t stats;
  belay_stats(shelf->belay, &stats);
  return stats.allocations;
}

/* A cache with its own loop and client, and keys and values to put into it. */
#ifndef BENCH_FIXTURE_H
#define BENCH_FIXTURE_H

#include <belay.h>
#include <stddef.h>
#include <uv.h>

#include "bench.h"

enum { FIXTURE_KEY = 16 /* bytes of a key */ };

#define FIXTURE_NAME "bench"
#define FIXTURE_PREFIX "belay::cache::" FIXTURE_NAME "::{"

/* A key: where its bytes are, and the bytes of its name on the server, which begins FIXTURE_PREFIX
 * before it. */
typedef struct fixture_key {
  char name[sizeof FIXTURE_PREFIX - 1];
  char key[FIXTURE_KEY];
  char end[1];
} fixture_key_t;

typedef struct fixture {
  uv_loop_t loop;
  belay_t *belay;
  belay_client_t *client;
  belay_cache_t *cache;
  unsigned keys_len;
  fixture_key_t *keys;
  size_t value_len;
  char *value;
  uint64_t number; /* of the next key that was never there */
} fixture_t;

/* Parameters of a fixture; all other options are the best for a measurement. */
typedef struct fixture_plan {
  unsigned keys;
  size_t value_len;
  size_t local_bytes;
  bool lock;
} fixture_plan_t;

fixture_t *fixture_open(const fixture_plan_t *plan);
void fixture_close(fixture_t *fixture);

/* A key that was never there. */
void fixture_new_key(fixture_t *fixture, char key[FIXTURE_KEY + 1]);

/* belay's, so far. */
uint64_t fixture_allocations(const fixture_t *fixture);

/* The program ends unless status is 0. */
void fixture_must(int status, const char *what);

#endif /* BENCH_FIXTURE_H */

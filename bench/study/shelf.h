/* A cache with its own loop and client, and keys and values to put into it. */
#ifndef BENCH_SHELF_H
#define BENCH_SHELF_H

#include <belay.h>
#include <stddef.h>
#include <uv.h>

#include "bench.h"

enum { SHELF_KEY = 16 /* bytes of a key */ };

#define SHELF_NAME "bench"
#define SHELF_PREFIX "belay::cache::" SHELF_NAME "::{"

/* A key: where its bytes are, and the bytes of its name on the server, which begins SHELF_PREFIX
 * before it. */
typedef struct shelf_key {
  char name[sizeof SHELF_PREFIX - 1];
  char key[SHELF_KEY];
  char end[1];
} shelf_key_t;

typedef struct shelf {
  uv_loop_t loop;
  belay_t *belay;
  belay_client_t *client;
  belay_cache_t *cache;
  unsigned keys_len;
  shelf_key_t *keys;
  size_t value_len;
  char *value;
  uint64_t number; /* of the next key that was never there */
} shelf_t;

/* Parameters of a shelf; all other options are the best for a measurement. */
typedef struct shelf_plan {
  unsigned keys;
  size_t value_len;
  size_t local_bytes;
  bool lock;
} shelf_plan_t;

shelf_t *shelf_open(const shelf_plan_t *plan);
void shelf_close(shelf_t *shelf);

/* A key that was never there. */
void shelf_new_key(shelf_t *shelf, char key[SHELF_KEY + 1]);

/* belay's, so far. */
uint64_t shelf_allocations(const shelf_t *shelf);

/* The program ends unless status is 0. */
void shelf_must(int status, const char *what);

#endif /* BENCH_SHELF_H */

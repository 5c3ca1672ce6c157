/* Many keys that are asked of a cache at once, and what came of each. */
#ifndef TEST_HAULS_H
#define TEST_HAULS_H

#include "support/caches.h"

enum { HAUL_MAX = BELAY_CACHE_MANY_MAX };

typedef struct haul {
  belay_request_t request;
  hoard_t *hoard;
  unsigned begun, ended;
  int status;
  size_t n;                               /* 0 unless status is 0 */
  belay_cache_result_t results[HAUL_MAX]; /* their data are not to be used: */
  char *data[HAUL_MAX];                   /* copies, as a fetch has them */
} haul_t;

/* A new one of a hoard's; its data, and itself, are given back. */
haul_t *haul_new(hoard_t *hoard);
void haul_free(haul_t *haul);

/* Begins it; what belay returned. Keys: n strings; or n of any bytes. */
int begin_haul(haul_t *haul, const char *const *keys, size_t n);
int begin_haul_bytes(haul_t *haul, const belay_bytes_t *keys, size_t n);

/* Waits for its end: its status. */
int end_of_haul(haul_t *haul);

/* Of one that has ended: what number i is. */
void expect_hauled(const haul_t *haul, size_t i, const char *value, belay_cache_from_t from);
void expect_not_hauled(const haul_t *haul, size_t i, int status);

#endif /* TEST_HAULS_H */

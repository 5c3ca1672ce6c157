/* belay as a subject: what all its scenarios have in common. */
#ifndef BENCH_LOAD_BELAY_H
#define BENCH_LOAD_BELAY_H

#include "load/driver.h"

/* Of this job; with options for busy machines, on which nothing is to end because something else is slow. */
typedef struct host {
  belay_t *belay;
  unsigned n;
  belay_client_t *clients[JOB_SERVERS_MAX];
} host_t;

void host_open(host_t *host, driver_t *driver);
void host_close(host_t *host);

/* The program ends unless it is 0. */
void must(int status, const char *what);

/* Of belay's own, so far; and what it has now, in bytes. */
uint64_t host_allocations(const host_t *host);
size_t host_bytes(const host_t *host);

extern const doer_t belay_lock, belay_redlock, belay_contention, belay_semaphore, belay_fair,
    belay_renew;
extern const doer_t belay_limit_fixed, belay_limit_bucket, belay_limit_denied, belay_limit_leased;
extern const doer_t belay_bloom_adds, belay_bloom_finds, belay_counts, belay_ids;
extern const doer_t belay_cache_hit, belay_cache_stampede;

#endif /* BENCH_LOAD_BELAY_H */

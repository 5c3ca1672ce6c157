/* belay as a subject: shared by its scenarios. */
#ifndef BENCH_LOAD_SUBJECTS_BELAY_H
#define BENCH_LOAD_SUBJECTS_BELAY_H

#include "load/driver/driver.h"

/* Of this job; with options for busy machines, on which nothing is to end because something else is
 * slow. */
typedef struct host {
  belay_t *belay;
  unsigned n;
  belay_client_t *clients[JOB_SERVERS_MAX];
  size_t bytes; /* that it needed before there was anything else */
} host_t;

/* driver->own begins with the host. */
void host_open(host_t *host, driver_t *driver);

/* objects: how many of them the memory is shared by; 0: there are none to speak of. */
void host_close(driver_t *driver, host_t *host, unsigned objects);

/* The program ends unless it is 0. */
void must(int status, const char *what);

extern const doer_t belay_lock, belay_redlock, belay_contention, belay_semaphore, belay_fair,
    belay_renew;
extern const doer_t belay_limit_fixed, belay_limit_bucket, belay_limit_denied, belay_limit_leased;
extern const doer_t belay_bloom_adds, belay_bloom_finds, belay_counts, belay_ids;
extern const doer_t belay_cache_hit, belay_cache_stampede;

#endif /* BENCH_LOAD_SUBJECTS_BELAY_H */

/* What a measurement costs: of this process, and of the servers, as they say themselves. */
#ifndef BENCH_METER_H
#define BENCH_METER_H

#include <hiredis/hiredis.h>

#include "load/job.h"

typedef struct meter {
  unsigned servers;
  redisContext *server[JOB_SERVERS_MAX];
} meter_t;

typedef struct reading {
  double client_cpu, server_cpu; /* seconds so far */
  uint64_t commands, allocations;
} reading_t;

void meter_open(meter_t *meter, const job_t *job);
void meter_close(meter_t *meter);

/* Asks the servers; takes about a tenth of a millisecond for each. */
void meter_read(meter_t *meter, reading_t *out);

/* A connection of its own to a server of a job, which waits; with a unix socket's or redis://host:port. */
redisContext *meter_dial(const char *url);

/* How often malloc() and the like were called in this process. */
uint64_t meter_allocations(void);

#endif /* BENCH_METER_H */

/* The costs of a measurement: of this process, and of the servers by their own figures. */
#ifndef BENCH_LOAD_DRIVER_METER_H
#define BENCH_LOAD_DRIVER_METER_H

#include <hiredis/hiredis.h>

#include "load/driver/job.h"

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

/* Send INFO to the servers without a wait for the replies, so that no pending operation is delayed.
 * The figures of this process are read at once. */
void meter_ask(meter_t *meter, reading_t *out);

/* Reads the replies to the first meter_ask() whose replies were not read yet, and adds them. */
void meter_receive(meter_t *meter, reading_t *out);

/* Both. */
void meter_read(meter_t *meter, reading_t *out);

/* The difference between two readings. */
void meter_add(const meter_t *meter, const reading_t *from, const reading_t *to,
               outcome_t *outcome);

/* A connection of its own to a server of a job, which waits; with a unix socket's or
 * redis://host:port. */
redisContext *meter_dial(const char *url);

/* How often malloc() and the like were called in this thread. */
uint64_t meter_allocations(void);

#endif /* BENCH_LOAD_DRIVER_METER_H */

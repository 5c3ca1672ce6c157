#include "load/driver/meter.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "query.h"
#include "bench.h"

static const char tcp[] = "redis://", local[] = "unix://";

redisContext *meter_dial(const char *url) {
  redisContext *connection = NULL;
  if (strncmp(url, local, sizeof local - 1) == 0) {
    connection = redisConnectUnix(url + sizeof local - 1);
  } else if (strncmp(url, tcp, sizeof tcp - 1) == 0) {
    char host[JOB_URL_MAX];
    int port = 6379;
    if (sscanf(url + sizeof tcp - 1, "%159[^:/]:%d", host, &port) < 1)
      bench_die("which host? %s", url);
    connection = redisConnect(host, port);
  }
  if (connection == NULL || connection->err != 0)
    bench_die("cannot connect to %s: %s", url,
              connection != NULL ? connection->errstr : "unix:// or redis://host:port, please");
  return connection;
}

void meter_open(meter_t *meter, const job_t *job) {
  *meter = (meter_t){.servers = job->servers};
  for (unsigned i = 0; i < job->servers; i++)
    meter->server[i] = meter_dial(job->urls[i]);
}

void meter_close(meter_t *meter) {
  for (unsigned i = 0; i < meter->servers; i++)
    redisFree(meter->server[i]);
}

void meter_ask(meter_t *meter, reading_t *out) {
  struct timespec t;
  for (unsigned i = 0; i < meter->servers; i++) {
    int written = 0;
    if (redisAppendCommand(meter->server[i], "INFO") != REDIS_OK)
      bench_die("out of memory");
    while (!written)
      if (redisBufferWrite(meter->server[i], &written) != REDIS_OK)
        bench_die("cannot send to a server: %s", meter->server[i]->errstr);
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  *out = (reading_t){.client_cpu = (double)t.tv_sec + (double)t.tv_nsec / 1e9,
                     .allocations = meter_allocations()};
}

void meter_receive(meter_t *meter, reading_t *out) {
  for (unsigned i = 0; i < meter->servers; i++) {
    redisReply *reply = NULL;
    if (redisGetReply(meter->server[i], (void **)&reply) != REDIS_OK ||
        (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_VERB))
      bench_die("a server does not answer INFO");
    out->server_cpu += info_number(reply->str, "used_cpu_sys_main_thread:") +
                       info_number(reply->str, "used_cpu_user_main_thread:");
    out->commands += (uint64_t)info_number(reply->str, "total_commands_processed:");
    freeReplyObject(reply);
  }
}

void meter_read(meter_t *meter, reading_t *out) {
  meter_ask(meter, out);
  meter_receive(meter, out);
}

void meter_add(const meter_t *meter, const reading_t *from, const reading_t *to, outcome_t *o) {
  o->client_cpu = to->client_cpu - from->client_cpu;
  o->server_cpu = to->server_cpu - from->server_cpu;
  o->commands = to->commands - from->commands - meter->servers; /* the first INFO */
  o->allocations = to->allocations - from->allocations;
}

#include "load/meter.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static double field(const char *info, const char *name) {
  const char *at = strstr(info, name);
  if (at == NULL)
    bench_die("a server does not say %s", name);
  return strtod(at + strlen(name), NULL);
}

static void ask(redisContext *server, reading_t *out) {
  redisReply *reply = redisCommand(server, "INFO all");
  if (reply == NULL || (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_VERB))
    bench_die("a server does not answer INFO");
  out->server_cpu += field(reply->str, "used_cpu_sys_main_thread:") +
                     field(reply->str, "used_cpu_user_main_thread:");
  out->commands += (uint64_t)field(reply->str, "total_commands_processed:");
  freeReplyObject(reply);
}

void meter_read(meter_t *meter, reading_t *out) {
  struct timespec t;
  *out = (reading_t){0};
  for (unsigned i = 0; i < meter->servers; i++)
    ask(meter->server[i], out);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  out->client_cpu = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
  out->allocations = meter_allocations();
}

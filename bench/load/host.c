#include "load/belay.h"

#include "bench.h"

#define PATIENCE_MS 60000

void must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

void host_open(host_t *host, driver_t *driver) {
  belay_client_options_t options;
  must(belay_open(&driver->loop, NULL, &host->belay), "open");
  belay_client_options_init(&options);
  options.timeout_ms = options.stall_timeout_ms = PATIENCE_MS;
  options.max_pending = 1 << 20;
  options.max_bytes = (size_t)1 << 30;
  host->n = driver->job->servers;
  for (unsigned i = 0; i < host->n; i++)
    must(belay_connect(host->belay, driver->job->urls[i], &options, &host->clients[i]), "connect");
}

void host_close(host_t *host) {
  must(belay_close(host->belay, NULL), "close");
}

uint64_t host_allocations(const host_t *host) {
  belay_stats_t stats;
  belay_stats(host->belay, &stats);
  return stats.allocations;
}

size_t host_bytes(const host_t *host) {
  belay_stats_t stats;
  belay_stats(host->belay, &stats);
  return stats.memory_bytes;
}

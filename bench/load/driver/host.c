#include "load/subjects/belay.h"

#include "bench.h"

#define PATIENCE_MS 60000

/* With fewer, what a connection needs would be most of it. */
#define OBJECTS_MIN 1000

void must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

static belay_stats_t stats_of(const host_t *host) {
  belay_stats_t stats;
  belay_stats(host->belay, &stats);
  return stats;
}

static uint64_t allocations(const driver_t *driver) {
  return stats_of(driver->own).allocations;
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
  host->bytes = stats_of(host).memory_bytes;
  driver->allocations = allocations;
}

void host_close(driver_t *driver, host_t *host, unsigned objects) {
  size_t bytes = stats_of(host).memory_bytes;
  if (objects >= OBJECTS_MIN && bytes > host->bytes)
    driver->outcome->bytes_per_object = (double)(bytes - host->bytes) / objects;
  must(belay_close(host->belay, NULL), "close");
}

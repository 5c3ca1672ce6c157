#include "place.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

const char *const placement_names[PLACEMENTS] = {
    [PLACE_ANYWHERE] = "anywhere",
    [PLACE_APART] = "apart",
    [PLACE_SAME] = "same",
};

static cpu_set_t given(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    bench_die("the processors cannot be counted");
  return set;
}

static int last_of(const cpu_set_t *set) {
  int last = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET((size_t)cpu, set))
      last = cpu;
  return last;
}

/* The processors of a client, or of a server. */
static cpu_set_t processors_of(placement_t placement, bool server) {
  cpu_set_t all = given(), set = all;
  int last = last_of(&all);
  if (placement == PLACE_ANYWHERE)
    return all;
  if (placement == PLACE_SAME || server) {
    CPU_ZERO(&set);
    CPU_SET((size_t)last, &set);
  } else {
    CPU_CLR((size_t)last, &set);
  }
  return set;
}

static void run_on(pid_t pid, const cpu_set_t *set) {
  if (sched_setaffinity(pid, sizeof *set, set) != 0)
    bench_die("a process cannot be pinned");
}

void place_server(pid_t pid, placement_t placement) {
  cpu_set_t set = processors_of(placement, true);
  run_on(pid, &set);
}

void place_as_client(placement_t placement) {
  cpu_set_t set = processors_of(placement, false);
  run_on(0, &set);
}

bool place_can(placement_t placement) {
  cpu_set_t set = processors_of(placement, false);
  return CPU_COUNT(&set) > 0;
}

#define FIELDS_BEFORE 37 /* in /proc/PID/stat, between the name in brackets and the processor */

int place_of(pid_t pid) {
  char path[32], line[1024] = "";
  (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "r");
  if (file == NULL)
    return -1;
  size_t n = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[n] = '\0';
  const char *at = strrchr(line, ')');
  for (unsigned i = 0; at != NULL && i < FIELDS_BEFORE; i++)
    at = strchr(at + 1, ' ');
  return at != NULL ? (int)strtol(at, NULL, 10) : -1;
}

static void list(const cpu_set_t *set, char *text, size_t size) {
  size_t n = 0;
  for (size_t cpu = 0; cpu < CPU_SETSIZE && n < size; cpu++)
    if (CPU_ISSET(cpu, set))
      n += (size_t)snprintf(text + n, size - n, "%s%zu", n > 0 ? "," : "", cpu);
}

void place_describe(placement_t placement, char *text, size_t size) {
  char cpus[256] = "";
  cpu_set_t all = given(), set = processors_of(placement, false);
  if (CPU_COUNT(&set) == 0)
    bench_die("with one processor there is nothing to pin");
  list(&set, cpus, sizeof cpus);
  if (placement == PLACE_ANYWHERE)
    (void)snprintf(text, size, "left to the scheduler, on processors %s", cpus);
  else
    (void)snprintf(text, size, "server on processor %d, clients on %s", last_of(&all), cpus);
}

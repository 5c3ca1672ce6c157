#include "study/team.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "study/group/group.h"
#include "place.h"
#include "samples.h"

#define SETTLE_NS INT64_C(700000000) /* to start, connect, and queue up */
#define LOOK_NS INT64_C(20000000)

static scene_t *map_scene(int fd) {
  scene_t *scene = mmap(NULL, sizeof *scene, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (scene == MAP_FAILED)
    bench_die("no shared memory: %s", strerror(errno));
  return scene;
}

int team_work(const char *fd, const char *number) {
  scene_t *scene = map_scene((int)strtol(fd, NULL, 10));
  int self = (int)strtol(number, NULL, 10);
  place_as_client(scene->job.pin);
  group_run(scene, self);
  scene->results[self].done = true;
  return 0;
}

static const char *own_path(void) {
  static char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0)
    bench_die("this program cannot find itself");
  path[n] = '\0';
  return path;
}

static pid_t start(int fd, unsigned number) {
  char fd_text[12], number_text[12];
  const char *argv[] = {own_path(), "study", TEAM_WORKER, fd_text, number_text, NULL};
  (void)snprintf(fd_text, sizeof fd_text, "%d", fd);
  (void)snprintf(number_text, sizeof number_text, "%u", number);
  fflush(NULL);
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(126);
    execv(argv[0], (char **)(uintptr_t)argv);
    _exit(127);
  }
  if (pid < 0)
    bench_die("no process for a worker: %s", strerror(errno));
  return pid;
}

static void sleep_until(int64_t when) {
  struct timespec t = {when / 1000000000, when % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
  }
}

/* Sleep until the end of the measured time, and sometimes look which processes run beside the
 * server. */
static double watch(const pid_t *workers, const scene_t *scene) {
  unsigned looks = 0, beside = 0;
  for (int64_t now; (now = bench_now()) < scene->end;) {
    int place = place_of(server_pid());
    for (unsigned i = 0; i < scene->job.processes; i++, looks++)
      beside += place_of(workers[i]) == place;
    sleep_until(now + LOOK_NS < scene->end ? now + LOOK_NS : scene->end);
  }
  return looks > 0 ? (double)beside / looks : 0;
}

static void wait_for(const pid_t *workers, const scene_t *scene) {
  for (unsigned i = 0; i < scene->job.processes; i++) {
    int status;
    if (waitpid(workers[i], &status, 0) < 0 || status != 0 || !scene->results[i].done)
      bench_die("a worker failed");
    if (scene->results[i].overlaps != 0)
      bench_die("two held the lock at once, %llu times",
                (unsigned long long)scene->results[i].overlaps);
    if (scene->results[i].losses != 0)
      bench_die("the lock was lost %llu times", (unsigned long long)scene->results[i].losses);
  }
}

typedef struct spread {
  double median, p99;
} spread_t;

/* Of all processes together. */
static spread_t spread(const scene_t *scene, bool across) {
  size_t count = 0, n = 0;
  for (unsigned i = 0; i < scene->job.processes; i++)
    count += across ? scene->results[i].across.count : scene->results[i].within.count;
  uint32_t *all = malloc((count + 1) * sizeof *all);
  if (all == NULL)
    bench_die("out of memory");
  for (unsigned i = 0; i < scene->job.processes; i++) {
    const durations_t *d = across ? &scene->results[i].across : &scene->results[i].within;
    memcpy(all + n, d->ns, d->count * sizeof *all);
    n += d->count;
  }
  spread_t s = {samples_at_u32(all, count, 0.5), samples_at_u32(all, count, 0.99)};
  free(all);
  return s;
}

static outcome_t add_up(const scene_t *scene, int64_t server_cpu) {
  outcome_t o = {0};
  double grants = 0, least = 0, most = 0;
  for (unsigned i = 0; i < scene->job.processes; i++) {
    const result_t *r = &scene->results[i];
    double own = (double)r->grants, elapsed = (double)r->elapsed / 1e9;
    grants += own;
    least = i == 0 || own < least ? own : least;
    most = own > most ? own : most;
    o.grants += own / elapsed;
    o.passed += (double)r->passed / elapsed;
    o.changes += (double)r->changes / elapsed;
    o.longest_wait =
        (double)r->longest_wait > o.longest_wait ? (double)r->longest_wait : o.longest_wait;
    o.commands += (double)r->commands;
    o.client_cpu += (double)r->cpu;
    o.held += (double)r->held;
  }
  if (grants == 0)
    bench_die("no process got the lock");
  o.commands /= grants;
  o.client_cpu /= grants;
  o.held /= grants;
  o.server_cpu = (double)server_cpu / grants;
  o.least = least, o.most = most;
  o.share = most / (least > 0 ? least : 1);
  spread_t across = spread(scene, true), within = spread(scene, false);
  o.across_median = across.median, o.across_p99 = across.p99;
  o.within_median = within.median, o.within_p99 = within.p99;
  return o;
}

outcome_t team_run(const job_t *job) {
  pid_t workers[SCENE_PROCESSES_MAX] = {0};
  int fd = memfd_create("scene", 0);
  if (fd < 0 || ftruncate(fd, sizeof(scene_t)) != 0)
    bench_die("no shared memory: %s", strerror(errno));
  scene_t *scene = map_scene(fd);
  scene->job = *job;
  (void)snprintf(scene->path, sizeof scene->path, "%s", server_path());
  servers_flush();
  scene->releaser = -1;
  scene->begin = bench_now() + SETTLE_NS;
  scene->end = scene->begin + (int64_t)(job->seconds * 1e9);
  for (unsigned i = 0; i < job->processes; i++)
    workers[i] = start(fd, i);
  sleep_until(scene->begin);
  int64_t cpu = server_cpu();
  double beside = watch(workers, scene);
  cpu = server_cpu() - cpu;
  wait_for(workers, scene);
  outcome_t outcome = add_up(scene, cpu);
  outcome.beside = beside;
  munmap(scene, sizeof *scene);
  close(fd);
  return outcome;
}

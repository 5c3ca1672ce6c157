#include "load/driver/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "load/subjects/ceiling.h"
#include "load/subjects/peer.h"
#include "place.h"

static void work(const scenario_t *scenario, subject_t subject, const job_t *job,
                 job_shared_t *shared, unsigned process) {
  place_as_client(job->placement);
  if (subject == SUBJECTS)
    driver_run(job, shared, process, &driver_control);
  else if (subject == SUBJECT_BELAY)
    driver_run(job, shared, process, scenario->belay);
  else if (subject == SUBJECT_LIMIT || subject == SUBJECT_SINGLE)
    ceiling_run(job, &shared->outcome[process], scenario->belay, subject == SUBJECT_SINGLE);
  else if (subject == SUBJECT_NAIVE)
    driver_run(job, shared, process, scenario->naive);
  else
    peer_run(subject, job, &shared->outcome[process]);
}

static pid_t start(const scenario_t *scenario, subject_t subject, const job_t *job,
                   job_shared_t *shared, unsigned process) {
  pid_t parent = getpid(), pid = fork();
  if (pid < 0)
    bench_die("no process: %s", strerror(errno));
  if (pid > 0)
    return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(126);
  work(scenario, subject, job, shared, process);
  _exit(0);
}

/* Each process reports the costs of the servers for the same time. */
static void add(outcome_t *sum, const outcome_t *one) {
  sum->operations += one->operations;
  sum->client_cpu += one->client_cpu;
  sum->allocations += one->allocations;
  sum->belay_allocations += one->belay_allocations;
  if (one->gap > sum->gap)
    sum->gap = one->gap;
  hist_merge(&sum->latency, &one->latency);
}

void worker_run(const scenario_t *scenario, subject_t subject, const job_t *job, outcome_t *out) {
  pid_t pids[JOB_PROCESSES_MAX];
  /* those who write as much as the server takes, or are another program, are alone */
  bool alone = subject != SUBJECT_BELAY && subject != SUBJECT_NAIVE;
  unsigned processes = alone || job->concurrency < job->processes ? 1 : job->processes;
  job_t share = *job;
  job_shared_t *shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    bench_die("no shared memory: %s", strerror(errno));
  share.concurrency = job->concurrency / processes;
  share.rate = job->rate / processes;
  share.processes = processes;
  for (unsigned i = 0; i < processes; i++)
    pids[i] = start(scenario, subject, &share, shared, i);
  for (unsigned i = 0; i < processes; i++) {
    int status = 0;
    if (waitpid(pids[i], &status, 0) < 0 || status != 0 || !shared->outcome[i].done)
      bench_die("%s of %s has failed", scenario->name, job->subject);
    if (i > 0)
      add(&shared->outcome[0], &shared->outcome[i]);
  }
  *out = shared->outcome[0];
  munmap(shared, sizeof *shared);
}

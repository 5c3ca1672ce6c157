#include "load/subjects/peer.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "load/driver/meter.h"

/* As long as this at least: they begin slowly, and compile what they do while they do it. */
#define SECONDS_MIN 1.0

enum { ARGS_MAX = 10 + JOB_SERVERS_MAX, TEXT = 32 };

typedef struct program {
  const char *interpreter, *script, *subject;
} program_t;

static const program_t programs[SUBJECTS] = {
    [SUBJECT_NODE_REDLOCK] = {"node", BENCH_PEERS "/node/bench.mjs", "redlock"},
    [SUBJECT_NODE_LIMITER] = {"node", BENCH_PEERS "/node/bench.mjs", "limiter"},
    [SUBJECT_REDIS_PY] = {"/usr/bin/python3", BENCH_PEERS "/redis_py.py", "lock"},
};

static FILE *start(const program_t *program, const char *const *argv, pid_t *pid) {
  int pipes[2];
  pid_t parent = getpid();
  if (pipe(pipes) != 0 || (*pid = fork()) < 0)
    bench_die("no process: %s", strerror(errno));
  if (*pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(pipes[1], STDOUT_FILENO) < 0)
      _exit(126);
    close(pipes[0]);
    execvp(program->interpreter, (char **)(uintptr_t)argv);
    _exit(127);
  }
  close(pipes[1]);
  FILE *said = fdopen(pipes[0], "r");
  if (said == NULL)
    bench_die("no pipe: %s", strerror(errno));
  return said;
}

bool peer_is_there(subject_t subject, char *text, size_t size) {
  const program_t *program = &programs[subject];
  const char *argv[] = {program->interpreter, program->script, program->subject, "--version", NULL};
  pid_t pid;
  int status = 0;
  FILE *said = start(program, argv, &pid);
  bool has_line = fgets(text, (int)size, said) != NULL;
  fclose(said);
  (void)waitpid(pid, &status, 0);
  if (has_line)
    text[strcspn(text, "\n")] = '\0';
  if (!has_line || status != 0)
    (void)snprintf(text, size, "not there: ./run setup bench");
  return has_line && status == 0;
}

static void expect(FILE *said, const char *word) {
  char line[TEXT];
  if (fgets(line, sizeof line, said) == NULL || strncmp(line, word, strlen(word)) != 0)
    bench_die("a peer has failed");
}

static void read_result(FILE *said, outcome_t *outcome) {
  char line[2 * TEXT], *end;
  if (fgets(line, sizeof line, said) == NULL)
    bench_die("a peer has printed nothing");
  outcome->operations = strtoull(line, &end, 10);
  outcome->elapsed = strtod(end, NULL);
  if (outcome->elapsed <= 0)
    bench_die("a peer has printed nothing");
  while (fgets(line, sizeof line, said) != NULL) {
    uint64_t us = strtoull(line, &end, 10), times = strtoull(end, NULL, 10);
    for (; times > 0; times--)
      hist_add(&outcome->latency, us * 1000);
  }
}

/* Processor time of all its threads, so far. */
static double cpu_of(pid_t pid) {
  clockid_t clock;
  struct timespec t;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
    bench_die("a peer does not run any more");
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void peer_run(subject_t subject, const job_t *job, outcome_t *outcome) {
  const program_t *program = &programs[subject];
  char concurrency[TEXT], keys[TEXT], warm_up[TEXT], seconds[TEXT];
  const char *argv[ARGS_MAX + 1] = {program->interpreter,
                                    program->script,
                                    program->subject,
                                    job->scenario,
                                    concurrency,
                                    keys,
                                    warm_up,
                                    seconds};
  meter_t meter;
  reading_t before, after;
  pid_t pid;
  int status = 0;
  (void)snprintf(concurrency, TEXT, "%u", job->concurrency);
  (void)snprintf(keys, TEXT, "%u", job->keys);
  (void)snprintf(warm_up, TEXT, "%g", fmax(job->warm_up, SECONDS_MIN));
  (void)snprintf(seconds, TEXT, "%g", fmax(job->seconds, SECONDS_MIN));
  for (unsigned i = 0; i < job->servers; i++)
    argv[8 + i] = job->urls[i];
  meter_open(&meter, job);
  FILE *said = start(program, argv, &pid);
  expect(said, "begin");
  meter_read(&meter, &before);
  double client_cpu = -cpu_of(pid);
  expect(said, "end");
  client_cpu += cpu_of(pid);
  meter_read(&meter, &after);
  read_result(said, outcome);
  fclose(said);
  if (waitpid(pid, &status, 0) < 0 || status != 0)
    bench_die("%s has failed", subject_names[subject]);
  meter_add(&meter, &before, &after, outcome);
  outcome->client_cpu = client_cpu;
  meter_close(&meter);
  outcome->done = true;
}

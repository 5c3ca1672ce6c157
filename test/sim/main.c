/* The simulator's command: one run as a log, or many as figures.
 *
 *    sim --seed S --scenario NAME                          one run with all events
 *    sim [--scenario NAME] --seeds N | --duration SECONDS  many runs of one or of every scenario
 *        [--first SEED] [--jobs N] [--expect CHECKER]
 *
 * --expect: success is a violation found by that checker, or with "died" a failed assertion.
 * Exit status 1: a violation, or no expected one. Each job is a process, which sends the figures
 * of its runs through a pipe, and stores its position in shared memory. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/engine/engine.h"
#include "sim/report.h"
#include "sim/scenarios/scenario.h"

typedef struct options {
  size_t scenario; /* sim_scenarios_count(): all */
  uint64_t seed, first, seeds;
  bool one;
  double duration;
  unsigned jobs;
  const char *expect;
} options_t;

typedef struct result {
  uint64_t seed;
  size_t scenario;
  bool ok;
  char verdict[64]; /* its beginning */
  sim_figures_t figures;
} result_t;

/* The position of a job. */
typedef struct place {
  uint64_t seed;
  size_t scenario;
  pid_t pid;
} place_t;

_Static_assert(sizeof(result_t) <= PIPE_BUF, "a pipe takes it whole or not at all");

static place_t *places; /* one for each job, shared with them */

static double now(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- one ---- */

static int run_one(const options_t *options) {
  sim_figures_t figures = {0};
  char verdict[512];
  setvbuf(stdout, NULL, _IOLBF, 0); /* the log must be complete if an assertion fails */
  const sim_scenario_t *scenario = sim_scenario_at(options->scenario);
  bool ok = sim_run(scenario, options->seed, stdout, &figures, verdict, sizeof verdict);
  printf("\n%s\n", ok ? "no violation" : verdict);
  sim_report(stdout, scenario->name, &figures, 0);
  return ok ? 0 : 1;
}

/* ---- many ---- */

/* Task k of all: every scenario has its turn with a seed before the next seed begins. */
static bool next_task(const options_t *options, uint64_t k, result_t *result) {
  bool all = options->scenario == sim_scenarios_count();
  uint64_t n = all ? sim_scenarios_count() : 1;
  result->scenario = all ? (size_t)(k % n) : options->scenario;
  result->seed = options->first + k / n;
  return options->seeds == 0 || k / n < options->seeds;
}

static void work(const options_t *options, unsigned job, int fd, double until) {
  static result_t result;
  for (uint64_t k = job; next_task(options, k, &result) && (until == 0 || now() < until);
       k += options->jobs) {
    char verdict[512] = "";
    places[job].seed = result.seed;
    places[job].scenario = result.scenario;
    memset(&result.figures, 0, sizeof result.figures);
    result.ok = sim_run(sim_scenario_at(result.scenario), result.seed, NULL, &result.figures,
                        verdict, sizeof verdict);
    snprintf(result.verdict, sizeof result.verdict, "%.60s", verdict);
    if (write(fd, &result, sizeof result) != sizeof result)
      _exit(2);
  }
  engine_shutdown();
}

/* The reading end of a pipe that all jobs write to; each result is taken whole. */
static int start_jobs(const options_t *options, double until) {
  int ends[2];
  places = mmap(NULL, options->jobs * sizeof *places, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (places == MAP_FAILED || pipe(ends) != 0)
    exit(2);
  fflush(NULL);
  for (unsigned job = 0; job < options->jobs; job++) {
    pid_t pid = fork();
    if (pid < 0)
      exit(2);
    if (pid == 0) {
      close(ends[0]);
      work(options, job, ends[1], until);
      exit(0);
    }
    places[job].pid = pid;
  }
  close(ends[1]);
  return ends[0];
}

static bool next_result(int fd, result_t *result) {
  size_t had = 0;
  while (had < sizeof *result) {
    ssize_t n = read(fd, (char *)result + had, sizeof *result - had);
    if (n == 0 || (n < 0 && errno != EINTR))
      return false;
    had += n > 0 ? (size_t)n : 0;
  }
  return true;
}

typedef struct sum {
  sim_figures_t of[2]; /* assumed, broken */
  uint64_t bad;        /* violations that were not expected, */
  uint64_t found;      /* and that were */
  uint64_t lost;       /* jobs that died */
} sum_t;

static void show_progress(const sum_t *sum, double began, bool over) {
  static double shown;
  if (!over && now() - shown < 1)
    return;
  shown = now();
  fprintf(
      stderr, "%s  %.0f s: %" PRIu64 " runs, %.2f million acquisitions, %.0f million commands%s",
      isatty(2) ? "\r" : "", now() - began, sum->of[0].runs + sum->of[1].runs,
      (double)(sum->of[0].grants + sum->of[1].grants) / 1e6,
      (double)(sum->of[0].commands + sum->of[1].commands) / 1e6, isatty(2) && !over ? "" : "\n");
}

static void take(const options_t *options, sum_t *sum, const result_t *result) {
  const sim_scenario_t *scenario = sim_scenario_at(result->scenario);
  sim_figures_add(&sum->of[scenario->broken], &result->figures);
  if (result->ok)
    return;
  if (options->expect != NULL &&
      strncmp(result->verdict, options->expect, strlen(options->expect)) == 0) {
    if (sum->found++ == 0)
      printf("found with seed %" PRIu64 ": %s...\n", result->seed, result->verdict);
    return;
  }
  if (++sum->bad <= 3)
    sim_report_violation(stdout, scenario, result->seed);
}

/* Waits for the jobs' ends. */
static void wait_for_jobs(const options_t *options, sum_t *sum) {
  int status;
  for (pid_t pid; (pid = wait(&status)) > 0;)
    for (unsigned job = 0; job < options->jobs; job++) {
      if (places[job].pid != pid || status == 0 || (options->expect != NULL && sum->found > 0))
        continue;
      if (options->expect != NULL && strcmp(options->expect, "died") == 0) {
        sum->found++;
        printf("found with seed %" PRIu64 "\n", places[job].seed);
        continue;
      }
      printf("\na job died\n");
      sim_report_violation(stdout, sim_scenario_at(places[job].scenario), places[job].seed);
      sum->lost++;
    }
}

static int run_many(const options_t *options) {
  static const char *const titles[] = {"within the assumptions", "assumptions broken"};
  static result_t result;
  static sum_t sum;
  double began = now();
  int fd = start_jobs(options, options->duration > 0 ? began + options->duration : 0);
  while (next_result(fd, &result) && !(options->expect != NULL && sum.found > 0)) {
    take(options, &sum, &result);
    if (options->expect == NULL)
      show_progress(&sum, began, false);
  }
  close(fd);
  wait_for_jobs(options, &sum);
  if (options->expect != NULL) {
    printf("%s: %" PRIu64 " found in %" PRIu64 " runs\n", options->expect, sum.found,
           sum.of[0].runs + sum.of[1].runs);
    return sum.found > 0 ? 0 : 1;
  }
  show_progress(&sum, began, true);
  double took = now() - began;
  for (int i = 0; i < 2; i++)
    if (sum.of[i].runs > 0)
      sim_report(stdout, titles[i], &sum.of[i], took);
  sim_figures_add(&sum.of[0], &sum.of[1]);
  sim_report_steps(stdout, &sum.of[0]);
  printf("%.0f commands per second and job\n", (double)sum.of[0].commands / took / options->jobs);
  return sum.bad == 0 && sum.lost == 0 ? 0 : 1;
}

/* ---- options ---- */

static int usage(void) {
  fprintf(stderr, "sim --seed S --scenario NAME\n"
                  "sim [--scenario NAME] --seeds N | --duration SECONDS\n"
                  "    [--first SEED] [--jobs N] [--expect CHECKER]\n\n");
  for (size_t i = 0; i < sim_scenarios_count(); i++)
    fprintf(stderr, "  %-16s %s\n", sim_scenario_at(i)->name, sim_scenario_at(i)->about);
  return 2;
}

static bool read_option(options_t *options, const char *option, const char *value) {
  if (strcmp(option, "--scenario") == 0)
    return (options->scenario = sim_scenario_find(value)) < sim_scenarios_count();
  if (strcmp(option, "--expect") == 0)
    return (options->expect = value) != NULL;
  char *end;
  uint64_t number = strtoull(value, &end, 10);
  if (*value == '\0' || *end != '\0')
    return false;
  if (strcmp(option, "--seed") == 0)
    options->one = true, options->seed = number;
  else if (strcmp(option, "--seeds") == 0)
    options->seeds = number;
  else if (strcmp(option, "--first") == 0)
    options->first = number;
  else if (strcmp(option, "--duration") == 0)
    options->duration = (double)number;
  else if (strcmp(option, "--jobs") == 0)
    options->jobs = (unsigned)number;
  else
    return false;
  return true;
}

int main(int argc, char **argv) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  options_t options = {
      .scenario = sim_scenarios_count(), .first = 1, .jobs = cores > 0 ? (unsigned)cores : 1};
  for (int i = 1; i < argc; i += 2)
    if (i + 1 >= argc || !read_option(&options, argv[i], argv[i + 1]))
      return usage();
  if (options.one)
    return options.scenario < sim_scenarios_count() ? run_one(&options) : usage();
  if ((options.seeds == 0 && options.duration == 0) || options.jobs == 0)
    return usage();
  return run_many(&options);
}

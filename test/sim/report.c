#include "sim/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/scenarios/scenario.h"

#define LAST_LINES 60

void sim_figures_add(sim_figures_t *sum, const sim_figures_t *more) {
  uint64_t slowest = sum->slowest_ns > more->slowest_ns ? sum->slowest_ns : more->slowest_ns;
  uint64_t *to = (uint64_t *)sum;
  const uint64_t *from = (const uint64_t *)more;
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
    to[i] += from[i];
  sum->slowest_ns = slowest;
}

void sim_report(FILE *out, const char *title, const sim_figures_t *figures, double seconds) {
  const struct {
    const char *name;
    uint64_t value;
  } rows[] = {
      {"runs", figures->runs},
      {"violations", figures->violations},
      {"acquisitions", figures->grants},
      {"  of them under faults", figures->grants_in_faults},
      {"operations", figures->operations},
      {"losses", figures->losses},
      {"guarded writes accepted", figures->writes},
      {"guarded writes refused", figures->stale_writes},
      {"server commands", figures->commands},
      {"orders", figures->orders},
      {"simulated seconds", figures->virtual_ns / SIM_S},
      {"slowest to serve all, ms", figures->slowest_ns / SIM_MS},
  };
  fprintf(out, "%s, %.1f s\n", title, seconds);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    fprintf(out, "  %-28s %14" PRIu64 "\n", rows[i].name, rows[i].value);
  fprintf(out, "  faults\n");
  for (int i = 0; i < SIM_FAULTS; i++)
    if (figures->faults[i] > 0)
      fprintf(out, "    %-16s %12" PRIu64 "  %s\n", sim_fault_names[i], figures->faults[i],
              sim_fault_texts[i]);
}

void sim_report_steps(FILE *out, const sim_figures_t *figures) {
  static const char *const states[SIM_STATES] = {"IDLE",      "QUEUED",  "ACQUIRING", "FENCING",
                                                 "WAITING",   "GRANTED", "HELD",      "EXTENDING",
                                                 "RELEASING", "LOST",    "CLOSING",   "CLOSED"};
  static const char *const events[SIM_EVENTS] = {"ACQUIRE", "RELEASE",  "TURN",  "WAKE",   "EXTEND",
                                                 "CHECK",   "CANCEL",   "CLOSE", "ANSWER", "TIMER",
                                                 "EXPIRY",  "NOTIFIED", "UNDONE"};
  fprintf(out, "  the lease machine: state x event\n    %-10s", "");
  for (int event = 0; event < SIM_EVENTS; event++)
    fprintf(out, " %9s", events[event]);
  for (int state = 0; state < SIM_STATES; state++) {
    fprintf(out, "\n    %-10s", states[state]);
    for (int event = 0; event < SIM_EVENTS; event++)
      fprintf(out, figures->steps[state][event] > 0 ? " %9" PRIu64 : "         -",
              figures->steps[state][event]);
  }
  fprintf(out, "\n");
}

/* The last lines of a file. */
static void print_end(FILE *out, FILE *from) {
  char *lines[LAST_LINES] = {0};
  char line[512];
  size_t n = 0;
  rewind(from);
  while (fgets(line, sizeof line, from) != NULL) {
    free(lines[n % LAST_LINES]);
    lines[n++ % LAST_LINES] = strdup(line);
  }
  for (size_t i = 0; i < LAST_LINES; i++) {
    char *text = lines[(n + i) % LAST_LINES];
    if (text != NULL)
      fputs(text, out);
    free(text);
  }
}

/* In a process of its own: an assertion may fail in it. */
static void run_again(const sim_scenario_t *scenario, uint64_t seed, FILE *timeline) {
  sim_figures_t figures = {0};
  char verdict[512];
  setvbuf(timeline, NULL, _IOLBF, 0);
  bool ok = sim_run(scenario, seed, timeline, &figures, verdict, sizeof verdict);
  fprintf(timeline, "\n%s\n", ok ? "a violation that did not repeat" : verdict);
  exit(0);
}

void sim_report_violation(FILE *out, const sim_scenario_t *scenario, uint64_t seed) {
  FILE *timeline = tmpfile();
  fprintf(out, "\n  ./run sim --seed %" PRIu64 " --scenario %s\n\n", seed, scenario->name);
  fflush(NULL);
  pid_t pid = timeline == NULL ? -1 : fork();
  if (pid == 0)
    run_again(scenario, seed, timeline);
  if (pid > 0) {
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    print_end(out, timeline);
  }
  if (timeline != NULL)
    fclose(timeline);
  fflush(out);
}

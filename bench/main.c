/* The benchmark program: arguments, and who is measured when. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <belay/version.h>

#include "ask.h"
#include "bench.h"
#include "load/meter.h"
#include "load/peer.h"
#include "load/report.h"
#include "load/worker.h"
#include "place.h"
#include "server.h"
#include "study/study.h"

enum { ARGS_MAX = 64 };

typedef struct options {
  unsigned in; /* which cells */
  bool tcp, half;
  placement_t placement;        /* of all that have none of their own */
  unsigned rounds, concurrency; /* concurrency 0: the scenarios' own */
  double seconds, rate;
  const char *subjects, *json, *html, *markdown;
  unsigned urls;
  const char *url[JOB_SERVERS_MAX];
  int scenarios; /* how many are named */
  char **names;
} options_t;

static void help(FILE *out) {
  fputs(
      "usage: bench [SCENARIO...] [OPTION...]\n"
      "       bench study [NAME...]      a close look at one family\n\n"
      "  --quick            the short table: one round, half a second each\n"
      "  --curve            also how the cost grows with how many are at once, and with the keys\n"
      "  --half             everything of ours once more, at half the rate that it has reached\n"
      "  --rounds N         everything is measured so often, in turns; figures are medians (3)\n"
      "  --seconds S        each time for so long (2), after a tenth of it\n"
      "  --concurrency N    so many operations at once, instead of the scenario's numbers\n"
      "  --rate R           an open loop: R operations a second begin, whatever becomes of them\n"
      "  --subjects A,B     only these: belay, limit, naive-c, node-redlock, node-limiter, "
      "redis-py\n"
      "  --tcp              private servers on ports, not on unix sockets\n"
      "  --url URL          this server instead (unix:// or redis://host:port); once for each of "
      "them.\n"
      "                     ALL ITS KEYS ARE LOST\n"
      "  --pin same|apart   all on the last processor; or the servers there, all others on the "
      "rest\n"
      "  --json FILE        the results go there too\n"
      "  --html FILE        and there, as a page with plots\n"
      "  --markdown FILE    and there; its plots lie beside it, in plots/\n\n",
      out);
  for (unsigned i = 0; i < scenarios_len; i++)
    fprintf(out, "  %-15s %s\n", scenarios[i].name, scenarios[i].about);
}

static _Noreturn void refuse(const char *what, const char *which) {
  fprintf(stderr, "bench: %s%s\n", what, which);
  help(stderr);
  exit(2);
}

static double number(const char *text, double max, const char *name) {
  char *end;
  double n = strtod(text, &end);
  if (end == text || *end != '\0' || !(n > 0 && n <= max))
    refuse("not a number that will do: --", name);
  return n;
}

static placement_t placement(const char *text) {
  for (placement_t p = PLACE_APART; p < PLACEMENTS; p++)
    if (strcmp(text, placement_names[p]) == 0) {
      if (!place_can(p))
        refuse("too few processors: --pin ", text);
      return p;
    }
  refuse("same, or apart: --pin ", text);
}

enum {
  OPT_QUICK = 1,
  OPT_CURVE,
  OPT_HALF,
  OPT_ROUNDS,
  OPT_SECONDS,
  OPT_CONCURRENCY,
  OPT_RATE,
  OPT_SUBJECTS,
  OPT_TCP,
  OPT_URL,
  OPT_PIN,
  OPT_JSON,
  OPT_HTML,
  OPT_MARKDOWN,
  OPT_HELP
};

static void read_option(options_t *o, int c) {
  switch (c) {
  case OPT_QUICK:
    o->in = (o->in & ~(unsigned)IN_FULL) | IN_QUICK;
    o->rounds = 1;
    o->seconds = 0.5;
    break;
  case OPT_CURVE:
    o->in |= IN_CURVE;
    break;
  case OPT_HALF:
    o->half = true;
    break;
  case OPT_ROUNDS:
    o->rounds = (unsigned)number(optarg, RUNS_MAX, "rounds");
    break;
  case OPT_SECONDS:
    o->seconds = number(optarg, 3600, "seconds");
    break;
  case OPT_CONCURRENCY:
    o->concurrency = (unsigned)number(optarg, 1e6, "concurrency");
    break;
  case OPT_RATE:
    o->rate = number(optarg, 1e7, "rate");
    break;
  case OPT_SUBJECTS:
    o->subjects = optarg;
    break;
  case OPT_TCP:
    o->tcp = true;
    break;
  case OPT_URL:
    if (o->urls == JOB_SERVERS_MAX || strlen(optarg) >= JOB_URL_MAX)
      refuse("too many servers, or too long a name: ", optarg);
    o->url[o->urls++] = optarg;
    break;
  case OPT_PIN:
    o->placement = placement(optarg);
    break;
  case OPT_JSON:
    o->json = optarg;
    break;
  case OPT_HTML:
    o->html = optarg;
    break;
  case OPT_MARKDOWN:
    o->markdown = optarg;
    break;
  case OPT_HELP:
    help(stdout);
    exit(0);
  default:
    refuse("no such option", "");
  }
}

static options_t read_options(int argc, char **argv) {
  static const struct option names[] = {{"quick", no_argument, NULL, OPT_QUICK},
                                        {"curve", no_argument, NULL, OPT_CURVE},
                                        {"half", no_argument, NULL, OPT_HALF},
                                        {"rounds", required_argument, NULL, OPT_ROUNDS},
                                        {"seconds", required_argument, NULL, OPT_SECONDS},
                                        {"concurrency", required_argument, NULL, OPT_CONCURRENCY},
                                        {"rate", required_argument, NULL, OPT_RATE},
                                        {"subjects", required_argument, NULL, OPT_SUBJECTS},
                                        {"tcp", no_argument, NULL, OPT_TCP},
                                        {"url", required_argument, NULL, OPT_URL},
                                        {"pin", required_argument, NULL, OPT_PIN},
                                        {"json", required_argument, NULL, OPT_JSON},
                                        {"html", required_argument, NULL, OPT_HTML},
                                        {"markdown", required_argument, NULL, OPT_MARKDOWN},
                                        {"help", no_argument, NULL, OPT_HELP},
                                        {NULL, 0, NULL, 0}};
  options_t options = {.rounds = 3, .seconds = 2, .in = IN_FULL};
  for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;)
    read_option(&options, c);
  options.scenarios = argc - optind;
  options.names = argv + optind;
  for (int i = 0; i < options.scenarios; i++)
    if (scenario_find(options.names[i]) == NULL)
      refuse("no such scenario: ", options.names[i]);
  if (options.urls > 0 && options.placement != PLACE_ANYWHERE)
    refuse("only servers of its own have a place: ", "--pin with --url");
  return options;
}

/* ---- who is measured --------------------------------------------------------------------------------------- */

static bool is_named(const options_t *o, const scenario_t *scenario) {
  for (int i = 0; i < o->scenarios; i++)
    if (strcmp(o->names[i], scenario->name) == 0)
      return true;
  return o->scenarios == 0;
}

/* Whether a word is in a list with commas. */
static bool is_in(const char *list, const char *word) {
  size_t len = strlen(word);
  for (const char *at = list; at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
      return true;
  }
  return list == NULL;
}

static bool there[SUBJECTS]; /* the peers that can be run here */

static bool takes_part(const options_t *o, const scenario_t *scenario, const cell_t *cell,
                       const job_t *job, subject_t subject) {
  if (!is_in(o->subjects, subject_names[subject]))
    return false;
  if (subject == SUBJECT_BELAY || subject == SUBJECT_LIMIT)
    return true;
  if (subject == SUBJECT_NAIVE)
    return scenario->naive != NULL;
  return there[subject] && job->concurrency <= scenario->peers[subject] && o->rate == 0 &&
         cell->in != IN_CURVE;
}

/* Those that somebody may want to measure. */
static void look_for_peers(const options_t *o, results_t *results) {
  for (subject_t s = SUBJECT_NODE_REDLOCK; s < SUBJECTS; s++) {
    char text[128];
    bool wanted = false;
    for (unsigned i = 0; i < scenarios_len; i++)
      wanted |= scenarios[i].peers[s] > 0 && is_named(o, &scenarios[i]) &&
                is_in(o->subjects, subject_names[s]);
    if (!wanted)
      continue;
    there[s] = peer_is_there(s, text, sizeof text);
    results_fact(results, subject_names[s], text);
  }
}

/* ---- measuring --------------------------------------------------------------------------------------------- */

static job_t job_of(const options_t *o, const scenario_t *scenario, const cell_t *cell,
                    subject_t subject) {
  job_t job = {.servers = scenario->servers,
               .concurrency = o->concurrency > 0 ? o->concurrency : cell->concurrency,
               .batch = cell->batch > 0 ? cell->batch : 1,
               .fill = scenario->fill,
               .load = o->rate > 0 ? LOAD_OPEN : LOAD_CLOSED,
               .rate = o->rate,
               .warm_up = o->seconds / 10,
               .seconds = o->seconds,
               .placement = o->concurrency == 0 && o->placement == PLACE_ANYWHERE ? cell->placement
                                                                                  : o->placement,
               .processes = cell->processes > 0 ? cell->processes : 1,
               .hold = cell->hold};
  job.keys = cell->keys > 0 ? cell->keys : job.concurrency;
  (void)snprintf(job.scenario, sizeof job.scenario, "%s", scenario->name);
  (void)snprintf(job.subject, sizeof job.subject, "%s", subject_names[subject]);
  for (unsigned i = 0; i < job.servers; i++)
    (void)snprintf(job.urls[i], JOB_URL_MAX, "%s", o->urls > 0 ? o->url[i] : server_url(i));
  return job;
}

static void forget_all(const job_t *job) {
  meter_t meter;
  meter_open(&meter, job);
  for (unsigned i = 0; i < meter.servers; i++)
    ask_to_forget(meter.server[i]);
  meter_close(&meter);
}

static void run_once(results_t *results, const scenario_t *scenario, subject_t s, const job_t *job,
                     outcome_t *outcome, double control_p99) {
  forget_all(job);
  worker_run(scenario, s, job, outcome);
  outcome->control_p99 = control_p99;
  results_add(results, scenario, s, job, outcome);
}

/* Beside what does the same and nothing. */
static void run_half(results_t *results, const scenario_t *scenario, subject_t s, job_t job,
                     outcome_t *outcome) {
  job_t control = job;
  job.load = LOAD_HALF;
  job.rate = (double)outcome->operations / outcome->elapsed / job.batch / 2;
  control.rate = job.rate;
  control.fill = false;
  worker_run(scenario, SUBJECTS, &control, outcome);
  run_once(results, scenario, s, &job, outcome, (double)hist_at(&outcome->latency, 0.99) / 1e9);
}

static void measure_cell(const options_t *o, results_t *results, const scenario_t *scenario,
                         const cell_t *cell, unsigned round) {
  static outcome_t outcome;
  for (subject_t s = 0; s < SUBJECTS; s++) {
    job_t job = job_of(o, scenario, cell, s);
    if (!takes_part(o, scenario, cell, &job, s))
      continue;
    if (isatty(STDERR_FILENO))
      fprintf(stderr, "\r\033[Kround %u of %u: %s, %s, %u at once", round, o->rounds,
              scenario->name, subject_names[s], job.concurrency);
    servers_place(job.placement);
    run_once(results, scenario, s, &job, &outcome, 0);
    if ((cell->half || o->half) && o->rate == 0 && (s == SUBJECT_BELAY || s == SUBJECT_NAIVE))
      run_half(results, scenario, s, job, &outcome);
  }
}

/* Servers of others stay where they are; and with a concurrency of its own a scenario's first size is the only one. */
static bool is_wanted(const options_t *o, const scenario_t *scenario, const cell_t *cell) {
  if (o->concurrency > 0)
    return cell == &scenario->cells[0];
  if ((cell->in & o->in) == 0)
    return false;
  if (cell->placement == PLACE_ANYWHERE || cell->placement == o->placement)
    return true;
  return o->placement == PLACE_ANYWHERE && o->urls == 0 && place_can(cell->placement);
}

static void measure(const options_t *o, results_t *results) {
  for (unsigned round = 1; round <= o->rounds; round++)
    for (unsigned i = 0; i < scenarios_len; i++) {
      const scenario_t *scenario = &scenarios[i];
      if (!is_named(o, scenario) || (o->urls > 0 && o->urls < scenario->servers))
        continue;
      for (unsigned c = 0; c < CELLS_MAX && scenario->cells[c].concurrency > 0; c++)
        if (is_wanted(o, scenario, &scenario->cells[c]))
          measure_cell(o, results, scenario, &scenario->cells[c], round);
    }
  if (isatty(STDERR_FILENO))
    fputs("\r\033[K", stderr);
}

/* ---- facts ------------------------------------------------------------------------------------------------- */

/* The first line of a file that begins with a word: what stands behind its colon. */
static void look_up(const char *path, const char *word, char *text, size_t size) {
  char line[FACT_VALUE];
  FILE *file = fopen(path, "r");
  (void)snprintf(text, size, "?");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, word, strlen(word)) != 0 || colon == NULL)
      continue;
    line[strcspn(line, "\n")] = '\0';
    (void)snprintf(text, size, "%s", colon + 1 + strspn(colon + 1, " "));
    break;
  }
  if (file != NULL)
    fclose(file);
}

static void state_machine(results_t *results) {
  char text[FACT_VALUE], model[FACT_VALUE / 2];
  struct utsname system;
  look_up("/proc/cpuinfo", "model name", model, sizeof model);
  (void)snprintf(text, sizeof text, "%ld of %s", sysconf(_SC_NPROCESSORS_ONLN), model);
  results_fact(results, "processors", text);
  look_up("/proc/meminfo", "MemTotal", text, sizeof text);
  results_fact(results, "memory", text);
  if (uname(&system) == 0) {
    (void)snprintf(text, sizeof text, "%s %s", system.sysname, system.release);
    results_fact(results, "kernel", text);
  }
}

static void state_facts(const options_t *o, results_t *results, int argc, char **argv) {
  char text[FACT_VALUE] = "./run bench";
  time_t now = time(NULL);
  for (int i = 1, n = (int)strlen(text); i < argc && n < (int)sizeof text; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, " %s", argv[i]);
  results_fact(results, "command", text);
  (void)strftime(text, sizeof text, "%Y-%m-%d", gmtime(&now));
  results_fact(results, "date", text);
  state_machine(results);
  place_describe(o->placement, text, sizeof text);
  results_fact(results, "placement", text);
  results_fact(results, "belay", BELAY_VERSION_STRING);
  results_fact(results, "server", o->urls > 0 ? o->url[0] : server_version());
  results_fact(results, "sockets", o->urls > 0 ? "as the URL says" : o->tcp ? "TCP" : "unix");
  (void)snprintf(text, sizeof text, "%d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
  results_fact(results, "hiredis", text);
  results_fact(results, "libuv", uv_version_string());
}

int main(int argc, char **argv) {
  static results_t results;
  if (argc > 1 && strcmp(argv[1], "study") == 0)
    return study_main(argc - 1, argv + 1);
  char *command[ARGS_MAX]; /* getopt() reorders the others */
  int words = argc < ARGS_MAX ? argc : ARGS_MAX;
  memcpy(command, argv, (size_t)words * sizeof *argv);
  options_t options = read_options(argc, argv);
  if (options.urls == 0)
    servers_start(SERVERS_MAX, options.tcp);
  state_facts(&options, &results, words, command);
  look_for_peers(&options, &results);
  measure(&options, &results);
  report_print(&results);
  if (options.json != NULL)
    report_json(&results, options.json);
  if (options.html != NULL)
    report_page(&results, options.html);
  if (options.markdown != NULL)
    report_markdown(&results, options.markdown);
  return 0;
}

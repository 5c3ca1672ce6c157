#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/report/results.h"

static void help(FILE *out) {
  fputs(
      "usage: bench [SCENARIO...] [OPTION...]\n"
      "       bench study [NAME...]      a close look at one family\n\n"
      "  --quick            the short table: one round, half a second each\n"
      "  --curve            also how the cost grows with concurrency and with the number of keys\n"
      "  --half             belay and naive-c once more, both at half the rate that belay reached\n"
      "  --rounds N         rounds, in which all take turns; figures are medians (3)\n"
      "  --seconds S        time of each measurement (2); a tenth of it before is not counted\n"
      "  --concurrency N    N concurrent operations, instead of the scenario's numbers\n"
      "  --rate R           an open loop: start R operations per second, by a schedule\n"
      "  --subjects A,B     only these: belay, limit, limit-single, naive-c, node-redlock, "
      "node-limiter, redis-py\n"
      "  --tcp              private servers on ports, not on unix sockets\n"
      "  --url URL          this server instead (unix:// or redis://host:port); once for each\n"
      "                     ALL ITS KEYS ARE LOST\n"
      "  --pin same|apart   for all scenarios: all processes on the last processor;\n"
      "                     or the servers there, and the clients on the others\n"
      "  --json FILE        also write the results as JSON\n"
      "  --markdown FILE    also write Markdown, and its plots to plots/ in that folder\n\n",
      out);
  for (unsigned i = 0; i < scenarios_len; i++)
    fprintf(out, "  %-15s %s\n", scenarios[i].name, scenarios[i].about);
}

static _Noreturn void refuse(const char *what, const char *which) {
  fprintf(stderr, "bench: %s%s\n", what, which);
  help(stderr);
  exit(2);
}

/* Read a number above 0; a whole number if there is a minimum. */
static double number(const char *text, double max, double min, const char *name) {
  char *end;
  double n = strtod(text, &end);
  if (end == text || *end != '\0' || !(n > 0 && n >= min && n <= max) ||
      (min > 0 && n != (double)(unsigned)n))
    refuse("not a number that will do: --", name);
  return n;
}

static bool is_named(const char *at, subject_t subject) {
  size_t len = strlen(subject_names[subject]);
  return strncmp(at, subject_names[subject], len) == 0 && (at[len] == ',' || at[len] == '\0');
}

bool options_include(const options_t *o, subject_t subject) {
  for (const char *at = o->subjects; at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (is_named(at, subject))
      return true;
  }
  return o->subjects == NULL;
}

static void check_subjects(const char *text) {
  for (const char *at = text; at != NULL; at = strchr(at, ',')) {
    bool known = false;
    at += *at == ',';
    for (subject_t s = 0; s < SUBJECTS; s++)
      known |= is_named(at, s);
    if (!known)
      refuse("no such subject: ", at);
  }
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
    o->rounds = (unsigned)number(optarg, RUNS_MAX, 1, "rounds");
    break;
  case OPT_SECONDS:
    o->seconds = number(optarg, 3600, 0, "seconds");
    break;
  case OPT_CONCURRENCY:
    o->concurrency = (unsigned)number(optarg, 1e6, 1, "concurrency");
    break;
  case OPT_RATE:
    o->rate = number(optarg, 1e7, 0, "rate");
    break;
  case OPT_SUBJECTS:
    check_subjects(optarg);
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

options_t options_read(int argc, char **argv) {
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

bool options_name(const options_t *o, const scenario_t *scenario) {
  for (int i = 0; i < o->scenarios; i++)
    if (strcmp(o->names[i], scenario->name) == 0)
      return true;
  return o->scenarios == 0;
}

/* The studies: each looks at one family closely, and says how it does beside what its own text
 * names. */
#include "study/study.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "server.h"
#include "study/report.h"
#include "study/team.h"

static const bench_scenario_t *const scenarios[] = {
    &bench_cache, &bench_contention, &bench_fairness, &bench_reconnect, &bench_watched, NULL,
};

void bench_begin(const bench_options_t *options) {
  char place[512];
  place_describe(options->pin, place, sizeof place);
  server_start(options->pin);
  place_as_client(options->pin);
  report_fact("placement", place);
  report_fact("server", server_version());
}

bool bench_wants(const bench_options_t *options, const char *part) {
  return options->only == NULL || strstr(options->only, part) != NULL;
}

static void help(FILE *out) {
  fputs("usage: bench study NAME [SECONDS] [--rounds N] [--only PARTS] [--pin] [--json FILE]\n\n"
        "  --rounds N   measure everything so often, in turns; medians are of these (5)\n"
        "  --only PARTS only these, by their letters\n"
        "  --pin        the server on the last processor, all others on the rest\n"
        "  --json FILE  the results go there too\n\n",
        out);
  for (size_t i = 0; scenarios[i] != NULL; i++)
    fprintf(out, "  %-12s %s (SECONDS: %g)\n", scenarios[i]->name, scenarios[i]->about,
            scenarios[i]->seconds);
}

static _Noreturn void refuse(const char *what) {
  fprintf(stderr, "bench: %s\n", what);
  help(stderr);
  exit(2);
}

static const bench_scenario_t *find(const char *name) {
  for (size_t i = 0; scenarios[i] != NULL; i++)
    if (strcmp(scenarios[i]->name, name) == 0)
      return scenarios[i];
  refuse("no such study");
}

/* A number from more than 0 up to max, and nothing else. */
static double number(const char *text, double max, const char *complaint) {
  char *end;
  double n = strtod(text, &end);
  if (end == text || *end != '\0' || !(n > 0 && n <= max))
    refuse(complaint);
  return n;
}

static bench_options_t read_options(int argc, char **argv) {
  static const struct option names[] = {
      {"rounds", required_argument, NULL, 'r'}, {"only", required_argument, NULL, 'o'},
      {"pin", no_argument, NULL, 'p'},          {"json", required_argument, NULL, 'j'},
      {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
  bench_options_t options = {.rounds = 5};
  for (int c; (c = getopt_long(argc, argv, "h", names, NULL)) != -1;) {
    if (c == 'r')
      options.rounds = (unsigned)number(optarg, REPORT_ROUNDS_MAX, "how many rounds? 1 to 99");
    else if (c == 'o')
      options.only = optarg;
    else if (c == 'p')
      options.pin = PLACE_APART;
    else if (c == 'j')
      options.json = optarg;
    else if (c == 'h') {
      help(stdout);
      exit(0);
    } else
      refuse("no such option");
  }
  if (options.rounds == 0)
    refuse("how many rounds? 1 to 99");
  return options;
}

int study_main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], TEAM_WORKER) == 0)
    return team_work(argv[2], argv[3]);
  bench_options_t options = read_options(argc, argv);
  if (argc == 1) {
    help(stdout);
    return 0;
  }
  if (optind == argc || argc - optind > 2)
    refuse("which study?");
  const bench_scenario_t *scenario = find(argv[optind]);
  options.seconds = scenario->seconds;
  if (argc - optind == 2)
    options.seconds = number(argv[optind + 1], 3600, "how many seconds? at most 3600");
  scenario->run(&options);
  return 0;
}

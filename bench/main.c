/* The benchmark program: facts about the machine, and the reports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <belay/version.h>

#include "query.h"
#include "commit.gen.h"
#include "load/driver/meter.h"
#include "load/report/report.h"
#include "measure.h"
#include "server.h"
#include "study/study.h"

enum { ARGS_MAX = 64 };

/* Return the text behind the colon of the first line that starts with a word. */
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

static void state_places(const options_t *o, results_t *results) {
  static const char as_said[] = "as each row says; apart: ";
  char text[FACT_VALUE];
  bool each = o->placement == PLACE_ANYWHERE && o->urls == 0 && place_can(PLACE_APART);
  size_t n = each ? sizeof as_said - 1 : 0;
  memcpy(text, as_said, n);
  place_describe(each ? PLACE_APART : o->placement, text + n, sizeof text - n);
  results_fact(results, "placement", text);
}

static void state_server(const options_t *o, results_t *results) {
  char version[QUERY_VERSION_SIZE];
  redisContext *server = meter_dial(o->urls > 0 ? o->url[0] : server_url(0));
  query_version(server, version);
  redisFree(server);
  results_fact(results, "server", version);
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
  state_places(o, results);
  results_fact(results, "belay", BELAY_VERSION_STRING);
  if (BENCH_COMMIT[0] != '\0')
    results_fact(results, "commit", BENCH_COMMIT);
  state_server(o, results);
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
  options_t options = options_read(argc, argv);
  if (options.urls == 0)
    servers_start(SERVERS_MAX, options.tcp);
  state_facts(&options, &results, words, command);
  measure(&options, &results);
  report_print(&results);
  if (options.json != NULL)
    report_json(&results, options.json);
  if (options.markdown != NULL)
    report_markdown(&results, options.markdown);
  return 0;
}

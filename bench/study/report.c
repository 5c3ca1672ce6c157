#include "study/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "samples.h"

enum { SERIES_MAX = 256, PARTS_MAX = 32, FACTS_MAX = 16 };

typedef struct series {
  const char *part, *who, *what, *unit;
  report_target_t target;
  size_t count;
  double values[REPORT_ROUNDS_MAX];
} series_t;

typedef struct pair {
  const char *key;
  char text[256];
} pair_t;

static series_t all_series[SERIES_MAX];
static pair_t parts[PARTS_MAX], facts[FACTS_MAX];
static size_t series_count, part_count, fact_count;

static void put(pair_t *pairs, size_t *count, size_t max, const char *key, const char *text) {
  if (*count == max)
    bench_die("the report is full");
  pair_t *pair = &pairs[(*count)++];
  pair->key = key;
  (void)snprintf(pair->text, sizeof pair->text, "%s", text);
}

void report_fact(const char *name, const char *text) {
  put(facts, &fact_count, FACTS_MAX, name, text);
}

void report_part(const char *part, const char *title) {
  put(parts, &part_count, PARTS_MAX, part, title);
}

static series_t *find(const char *part, const char *who, const char *what) {
  for (size_t i = 0; i < series_count; i++) {
    series_t *s = &all_series[i];
    if (strcmp(s->part, part) == 0 && strcmp(s->who, who) == 0 && strcmp(s->what, what) == 0)
      return s;
  }
  if (series_count == SERIES_MAX)
    bench_die("the report is full");
  series_t *s = &all_series[series_count++];
  *s = (series_t){.part = part, .who = who, .what = what};
  return s;
}

void report_add(const char *part, const char *who, const char *what, const char *unit, double value,
                report_target_t target) {
  series_t *s = find(part, who, what);
  s->unit = unit;
  s->target = target;
  if (s->count < REPORT_ROUNDS_MAX)
    s->values[s->count++] = value;
}

static double median(const series_t *s) {
  double copy[REPORT_ROUNDS_MAX];
  memcpy(copy, s->values, sizeof copy);
  return samples_median(copy, s->count);
}

static bool is_met(const series_t *s) {
  double m = median(s);
  return s->target.kind == TARGET_AT_LEAST ? m >= s->target.limit : m <= s->target.limit;
}

static const char *form(double value) {
  static char text[4][32];
  static unsigned turn;
  char *out = text[turn++ % 4];
  int decimals = fabs(value) >= 100 ? 0 : fabs(value) >= 10 ? 1 : 3;
  (void)snprintf(out, sizeof text[0], "%.*f", decimals, value);
  return out;
}

static void print_series(const series_t *s, bool first) {
  printf("  %-16s %-28s %10s %-4s", first ? s->who : "", s->what, form(median(s)), s->unit);
  if (s->target.kind != TARGET_NONE)
    printf(" %s %s %s", s->target.kind == TARGET_AT_LEAST ? ">=" : "<=", form(s->target.limit),
           is_met(s) ? "PASS" : "MISS");
  else
    printf(" %*s", 13, "");
  printf("  [");
  for (size_t i = 0; i < s->count; i++)
    printf("%s%s", i > 0 ? " " : "", form(s->values[i]));
  puts("]");
}

static void print_part(const pair_t *part) {
  const char *who = "";
  printf("\n%s. %s\n", part->key, part->text);
  for (size_t i = 0; i < series_count; i++) {
    const series_t *s = &all_series[i];
    if (strcmp(s->part, part->key) != 0)
      continue;
    print_series(s, strcmp(s->who, who) != 0);
    who = s->who;
  }
}

static void json_string(FILE *out, const char *text) {
  fputc('"', out);
  for (const char *c = text; *c != '\0'; c++)
    if (*c == '"' || *c == '\\')
      fprintf(out, "\\%c", *c);
    else
      fprintf(out, (unsigned char)*c < 0x20 ? "\\u%04x" : "%c", (unsigned char)*c);
  fputc('"', out);
}

static void json_member(FILE *out, const char *key, const char *text) {
  json_string(out, key);
  fputs(": ", out);
  json_string(out, text);
  fputs(", ", out);
}

static void json_series(FILE *out, const series_t *s) {
  fputs("    {", out);
  json_member(out, "part", s->part);
  json_member(out, "who", s->who);
  json_member(out, "what", s->what);
  json_member(out, "unit", s->unit);
  if (s->target.kind != TARGET_NONE)
    fprintf(out, "\"target\": {\"%s\": %g}, \"met\": %s, ",
            s->target.kind == TARGET_AT_LEAST ? "at_least" : "at_most", s->target.limit,
            is_met(s) ? "true" : "false");
  fprintf(out, "\"median\": %.9g, \"rounds\": [", median(s));
  for (size_t i = 0; i < s->count; i++)
    fprintf(out, "%s%.9g", i > 0 ? ", " : "", s->values[i]);
  fputs("]}", out);
}

static void write_json(const char *scenario, const bench_options_t *options) {
  FILE *out = fopen(options->json, "w");
  if (out == NULL)
    bench_die("cannot write %s", options->json);
  fputs("{\n  ", out);
  json_member(out, "scenario", scenario);
  for (size_t i = 0; i < fact_count; i++)
    json_member(out, facts[i].key, facts[i].text);
  fprintf(out, "\"seconds\": %g, \"rounds\": %u,\n  \"series\": [\n", options->seconds,
          options->rounds);
  for (size_t i = 0; i < series_count; i++) {
    json_series(out, &all_series[i]);
    fputs(i + 1 < series_count ? ",\n" : "\n", out);
  }
  fputs("  ]\n}\n", out);
  if (fclose(out) != 0)
    bench_die("cannot write %s", options->json);
}

void report_finish(const char *scenario, const bench_options_t *options) {
  for (size_t i = 0; i < fact_count; i++)
    printf("%s: %s\n", facts[i].key, facts[i].text);
  printf("each line: the median, its target if it has one, and [round by round]\n");
  for (size_t i = 0; i < part_count; i++)
    print_part(&parts[i]);
  if (options->json != NULL)
    write_json(scenario, options);
}

/* Numbers, durations and rates of command lines. */
#ifndef BELAY_CLI_SHELL_UNITS_H
#define BELAY_CLI_SHELL_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rate {
  int64_t count;  /* at least 1 */
  int64_t per_ms; /* length of the period in ms, at least 1 */
} rate_t;

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define YEAR_MS (365 * DAY_MS)

#define UNITS_DURATION_MAX 32 /* most bytes of units_show_duration(), with the 0 */

/* All return false for an invalid or too large value, and leave *out unchanged then. */

/* A whole number, with a sign or not: 10, -3. */
bool units_number(const char *text, int64_t *out);

/* 250ms, 90s, 1m30s, 1.5h, 7d, 2w, 5min, 2hours: parts from large units to small ones, each once,
 * together a whole number of milliseconds; or 0. Another number without a unit is invalid. */
bool units_duration(const char *text, int64_t *out_ms);

/* 10/s, 100/min, 5/h, 1000/d, 3/10s: a number, and any unit or duration. */
bool units_rate(const char *text, rate_t *out);

/* Formats a duration in its two largest units: 1d2h, 1m30s; smaller units are dropped. ms is at
 * least 0. Returns buffer. */
const char *units_show_duration(char buffer[UNITS_DURATION_MAX], int64_t ms);
/* The same in all units: units_duration() reads the same number. */
const char *units_show_exactly(char buffer[UNITS_DURATION_MAX], int64_t ms);

#endif /* BELAY_CLI_SHELL_UNITS_H */

/* Plots: panels beside one another in one SVG, which brings its own style, light and dark. */
#ifndef BENCH_LOAD_REPORT_PLOT_H
#define BENCH_LOAD_REPORT_PLOT_H

#include <stdbool.h>
#include <stdio.h>

enum { PLOT_POINTS = 16, PLOT_SERIES = 8, PLOT_PANELS = 8, PLOT_TITLE = 80 };

typedef struct series {
  const char *name;
  unsigned colour; /* 0 to 6 */
  unsigned n;
  double x[PLOT_POINTS], y[PLOT_POINTS]; /* values of 0 or less are left out */
} series_t;

typedef struct panel {
  char title[PLOT_TITLE];
  bool bars; /* one for each series, of its first y; else lines over logarithmic axes */
  const char *const *words; /* that stand at x = 1, 2, 4 … instead of numbers, until NULL */
  unsigned n;
  series_t series[PLOT_SERIES];
} panel_t;

void plot_write(FILE *out, const panel_t *panels, unsigned n);

/* A number in few characters; an empty text for NAN. */
void plot_number(char *text, size_t size, double n);

#endif /* BENCH_LOAD_REPORT_PLOT_H */

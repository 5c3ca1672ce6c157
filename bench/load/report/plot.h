/* Plots: charts below one another in one SVG, which brings its own style, light and dark. */
#ifndef BENCH_LOAD_REPORT_PLOT_H
#define BENCH_LOAD_REPORT_PLOT_H

#include <stdbool.h>
#include <stdio.h>

enum { PLOT_POINTS = 16, PLOT_SERIES = 8, PLOT_PANELS = 3, PLOT_TEXT = 128 };

typedef enum look { LOOK_FAINT, LOOK_PLAIN, LOOK_STRONG } look_t;

typedef struct series {
  const char *name;
  unsigned colour; /* 0 to 6 */
  look_t look;     /* FAINT: a dashed line */
  unsigned n;
  double x[PLOT_POINTS], y[PLOT_POINTS]; /* values of 0 or less are left out */
} series_t;

typedef struct panel {
  char title[PLOT_TEXT], about[PLOT_TEXT];
  const char *x_name, *y_name; /* with units */
  bool bars; /* one for each series, of its first y; else lines over a logarithmic x axis */
  bool time; /* y is in microseconds, and logarithmic; else it is linear and begins at 0 */
  unsigned n;
  series_t series[PLOT_SERIES];
} panel_t;

void plot_write(FILE *out, const panel_t *panels, unsigned n);

#endif /* BENCH_LOAD_REPORT_PLOT_H */

#include "load/report/plot.h"

#include <math.h>

enum { ACROSS = 3, WIDTH = 340, HEIGHT = 220, LEFT = 50, RIGHT = 92, TOP = 30, BOTTOM = 30 };
enum { BAR = 16, BAR_LEFT = 92, BAR_RIGHT = 60, LABEL = 12 };

static const char style[] =
    "<style>.plot text{font:11px system-ui,sans-serif;fill:#667085}.plot .title{fill:#1c2330}"
    ".plot .axis{stroke:#d7dce5}.plot .back{fill:#f4f6fa}.plot polyline{fill:none;stroke-width:2}"
    "@media(prefers-color-scheme:dark){.plot text{fill:#98a2b3}.plot .title{fill:#e6e9f0}"
    ".plot .axis{stroke:#344054}.plot .back{fill:#1d222d}}</style>\n";

static const char *const colours[] = {"#2563eb", "#98a2b3", "#667085", "#d97706",
                                      "#16a34a", "#0d9488", "#9333ea"};

/* Where things are: of a panel with logarithmic axes. */
typedef struct frame {
  double left, top; /* of the panel */
  double x0, x1, y0, y1;
} frame_t;

void plot_number(char *text, size_t size, double n) {
  static const char *const units[] = {"", " k", " M", " G"};
  unsigned unit = 0;
  while (fabs(n) >= 999.5 && unit < 3) {
    n /= 1000;
    unit++;
  }
  int digits = fabs(n) >= 99.95 || n == floor(n) ? 0 : fabs(n) >= 9.995 ? 1 : 2;
  (void)snprintf(text, size, isnan(n) ? "" : "%.*f%s", digits, n, units[unit]);
}

static void put_text(FILE *out, double x, double y, const char *anchor, const char *colour,
                     const char *text) {
  fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"", x, y);
  if (anchor != NULL)
    fprintf(out, " text-anchor=\"%s\"", anchor);
  if (colour != NULL)
    fprintf(out, " style=\"fill:%s\"", colour);
  fprintf(out, ">%s</text>\n", text);
}

static void put_number(FILE *out, double x, double y, const char *anchor, double n) {
  char text[16];
  plot_number(text, sizeof text, n);
  put_text(out, x, y, anchor, NULL, text);
}

static void put_bars(FILE *out, const panel_t *panel, double left, double top) {
  double most = 0, room = WIDTH - BAR_LEFT - BAR_RIGHT;
  for (unsigned i = 0; i < panel->n; i++)
    most = fmax(most, panel->series[i].y[0]);
  for (unsigned i = 0; i < panel->n; i++) {
    const series_t *s = &panel->series[i];
    double y = top + TOP + i * (BAR + 10), wide = s->y[0] / most * room;
    put_text(out, left + BAR_LEFT - 8, y + LABEL, "end", NULL, s->name);
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\" fill=\"%s\"/>\n",
            left + BAR_LEFT, y, fmax(wide, 1), BAR, colours[s->colour]);
    put_number(out, left + BAR_LEFT + wide + 6, y + LABEL, NULL, s->y[0]);
  }
}

static double at_x(const frame_t *f, double x) {
  return f->left + LEFT + (log10(x) - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const frame_t *f, double y) {
  return f->top + HEIGHT - BOTTOM - (log10(y) - f->y0) / (f->y1 - f->y0) * (HEIGHT - TOP - BOTTOM);
}

/* Whole powers of ten up and down; false: there is nothing to be seen. */
static bool frame(frame_t *f, const panel_t *panel) {
  double x0 = INFINITY, x1 = 0, y0 = INFINITY, y1 = 0;
  for (unsigned i = 0; i < panel->n; i++)
    for (unsigned k = 0; k < panel->series[i].n; k++) {
      double x = panel->series[i].x[k], y = panel->series[i].y[k];
      if (!(y > 0))
        continue;
      x0 = fmin(x0, x), x1 = fmax(x1, x);
      y0 = fmin(y0, y), y1 = fmax(y1, y);
    }
  if (!(y1 > 0))
    return false;
  f->x0 = log10(x0);
  f->x1 = fmax(log10(x1), f->x0 + 0.5);
  f->y0 = floor(log10(y0));
  f->y1 = fmax(ceil(log10(y1)), f->y0 + 1);
  return true;
}

static void put_axes(FILE *out, const frame_t *f, const panel_t *panel) {
  const series_t *longest = &panel->series[0];
  for (int e = (int)f->y0; e <= (int)f->y1; e++) {
    double y = at_y(f, pow(10, e));
    fprintf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
            f->left + LEFT, f->left + WIDTH - RIGHT, y, y);
    put_number(out, f->left + LEFT - 6, y + 4, "end", pow(10, e));
  }
  for (unsigned i = 1; i < panel->n; i++)
    if (panel->series[i].n > longest->n)
      longest = &panel->series[i];
  double free_from = 0;
  for (unsigned i = 0; i < longest->n; i++) {
    double x = at_x(f, longest->x[i]), y = f->top + HEIGHT - 12;
    if (panel->words != NULL)
      put_text(out, x, y, "middle", NULL, panel->words[i]);
    else if (x >= free_from)
      put_number(out, x, y, "middle", longest->x[i]);
    else
      continue;
    free_from = x + 30;
  }
}

static void put_line(FILE *out, const frame_t *f, const series_t *s, double *free_from) {
  const char *colour = colours[s->colour];
  char text[16];
  double x = 0, y = 0;
  fprintf(out, "<polyline stroke=\"%s\" points=\"", colour);
  for (unsigned i = 0; i < s->n; i++)
    if (s->y[i] > 0)
      fprintf(out, "%.1f,%.1f ", x = at_x(f, s->x[i]), y = at_y(f, s->y[i]));
  fputs("\"/>\n", out);
  for (unsigned i = 0; i < s->n; i++) {
    if (!(s->y[i] > 0))
      continue;
    plot_number(text, sizeof text, s->y[i]);
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s: %s</title>",
            at_x(f, s->x[i]), at_y(f, s->y[i]), colour, s->name, text);
    fputs("</circle>\n", out);
  }
  y = fmax(y + 4, *free_from);
  *free_from = y + LABEL;
  put_text(out, x + 8, y, NULL, colour, s->name);
}

/* The highest first, so that their names do not come to lie on one another. */
static void put_lines(FILE *out, const panel_t *panel, const frame_t *f) {
  bool done[PLOT_SERIES] = {false};
  double free_from = 0;
  put_axes(out, f, panel);
  for (unsigned turn = 0; turn < panel->n; turn++) {
    const series_t *best = NULL;
    for (unsigned i = 0; i < panel->n; i++) {
      const series_t *s = &panel->series[i];
      if (!done[i] && s->n > 0 && s->y[s->n - 1] > 0 &&
          (best == NULL || s->y[s->n - 1] > best->y[best->n - 1]))
        best = s;
    }
    if (best == NULL)
      return;
    done[best - panel->series] = true;
    put_line(out, f, best, &free_from);
  }
}

void plot_write(FILE *out, const panel_t *panels, unsigned n) {
  unsigned columns = n < ACROSS ? n : ACROSS, rows = (n + ACROSS - 1) / ACROSS;
  unsigned width = columns * (WIDTH + 10), height = rows * (HEIGHT + 10);
  fprintf(out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" width=\"%u\" height=\"%u\" "
          "viewBox=\"0 0 %u %u\">\n",
          width, height, width, height);
  fputs(style, out);
  for (unsigned i = 0; i < n; i++) {
    unsigned column = i % ACROSS, row = i / ACROSS;
    frame_t f = {.left = column * (WIDTH + 10), .top = row * (HEIGHT + 10)};
    fprintf(out,
            "<rect class=\"back\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n",
            f.left, f.top, WIDTH, HEIGHT);
    fprintf(out, "<text class=\"title\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", f.left + 10, f.top + 18,
            panels[i].title);
    if (panels[i].bars)
      put_bars(out, &panels[i], f.left, f.top);
    else if (frame(&f, &panels[i]))
      put_lines(out, &panels[i], &f);
  }
  fputs("</svg>\n", out);
}

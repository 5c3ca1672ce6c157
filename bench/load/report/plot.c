#include "load/report/plot.h"

#include <math.h>

enum { WIDTH = 760, LEFT = 84, RIGHT = 110, TOP = 92, LINES = 280, BOTTOM = 56, SPACE = 12 };
enum {
  BAR_TOP = 66,
  BAR = 20,
  BAR_STEP = 30,
  BAR_LEFT = 120,
  BAR_RIGHT = 90,
  LABEL = 15,
  TICKS = 5
};

static const char style[] =
    "<style>text{font:13px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#475467}"
    ".title{font-size:17px;font-weight:600;fill:#1c2330}.axis{stroke:#d0d5dd}.back{fill:#fff}"
    ".name{font-weight:600}polyline{fill:none;stroke-linejoin:round}"
    "@media(prefers-color-scheme:dark){text{fill:#b4bcc8}.title{fill:#e6e9f0}"
    ".axis{stroke:#344054}.back{fill:#161b22}}</style>\n";

static const char *const colours[] = {"#2563eb", "#7a8699", "#7a8699", "#d97706",
                                      "#16a34a", "#0d9488", "#9333ea"};

/* Where things are, of a panel with lines. */
typedef struct frame {
  const panel_t *panel;
  double top; /* of the panel */
  double x0, x1, y0, y1, step;
} frame_t;

/* A number in few characters. */
static void number_text(char *text, size_t size, double n, bool time) {
  static const char *const counts[] = {"", "k", "M", "G"}, *const times[] = {" µs", " ms", " s"};
  unsigned unit = 0;
  while (fabs(n) >= 999.5 && unit < (time ? 2 : 3)) {
    n /= 1000;
    unit++;
  }
  int digits = fabs(n) >= 99.95 || n == floor(n) ? 0 : fabs(n) >= 9.995 ? 1 : 2;
  (void)snprintf(text, size, "%.*f%s", digits, n, time ? times[unit] : counts[unit]);
}

static void put_text(FILE *out, double x, double y, const char *attributes, const char *text) {
  fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, attributes, text);
}

static void put_number(FILE *out, double x, double y, const char *attributes, double n, bool time) {
  char text[16];
  number_text(text, sizeof text, n, time);
  put_text(out, x, y, attributes, text);
}

static void put_bars(FILE *out, const panel_t *panel, double top) {
  double most = 0, room = WIDTH - BAR_LEFT - BAR_RIGHT;
  for (unsigned i = 0; i < panel->n; i++)
    most = fmax(most, panel->series[i].y[0]);
  for (unsigned i = 0; i < panel->n; i++) {
    const series_t *s = &panel->series[i];
    double y = top + BAR_TOP + i * BAR_STEP, wide = s->y[0] / most * room;
    put_text(out, BAR_LEFT - 10, y + LABEL, "text-anchor=\"end\"", s->name);
    fprintf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\" fill=\"%s\"/>\n",
            BAR_LEFT, y, fmax(wide, 1), BAR, colours[s->colour]);
    put_number(out, BAR_LEFT + wide + 8, y + LABEL, "", s->y[0], panel->time);
  }
  put_text(out, BAR_LEFT, top + BAR_TOP + panel->n * BAR_STEP + LABEL, "", panel->y_name);
}

static double at_x(const frame_t *f, double x) {
  return LEFT + (log10(x) - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const frame_t *f, double y) {
  double place = f->panel->time ? log10(y) : y;
  return f->top + TOP + LINES - (place - f->y0) / (f->y1 - f->y0) * LINES;
}

/* The next number of 1, 2, 5, 10, 20, 50 ... */
static double round_step(double n) {
  double ten = pow(10, floor(log10(n)));
  return ten * (n / ten <= 1 ? 1 : n / ten <= 2 ? 2 : n / ten <= 5 ? 5 : 10);
}

/* Returns false if there is no value. */
static bool frame(frame_t *f) {
  double x0 = INFINITY, x1 = 0, y0 = INFINITY, y1 = 0;
  for (unsigned i = 0; i < f->panel->n; i++)
    for (unsigned k = 0; k < f->panel->series[i].n; k++) {
      double x = f->panel->series[i].x[k], y = f->panel->series[i].y[k];
      x0 = fmin(x0, x), x1 = fmax(x1, x);
      if (!(y > 0))
        continue;
      y0 = fmin(y0, y), y1 = fmax(y1, y);
    }
  if (!(y1 > 0))
    return false;
  f->x0 = log10(x0);
  f->x1 = fmax(log10(x1), f->x0 + 0.5);
  f->step = round_step(y1 / TICKS);
  f->y0 = f->panel->time ? floor(log10(y0)) : 0;
  f->y1 = f->panel->time ? log10(round_step(y1)) : ceil(y1 / f->step) * f->step;
  return true;
}

static void put_level(FILE *out, const frame_t *f, double n) {
  double y = at_y(f, n);
  fprintf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
          WIDTH - RIGHT, y, y);
  put_number(out, LEFT - 8, y + 4, "text-anchor=\"end\"", n, f->panel->time);
}

static void put_axes(FILE *out, const frame_t *f) {
  const panel_t *panel = f->panel;
  const series_t *longest = &panel->series[0];
  double low = f->top + TOP + LINES, free_from = 0;
  if (panel->time)
    for (double n = pow(10, f->y0); log10(n) < f->y1 + 0.01; n = round_step(n * 1.5))
      put_level(out, f, n);
  else
    for (int i = 0; i * f->step < f->y1 + f->step / 2; i++)
      put_level(out, f, i * f->step);
  for (unsigned i = 1; i < panel->n; i++)
    if (panel->series[i].n > longest->n)
      longest = &panel->series[i];
  for (unsigned i = 0; i < longest->n; i++) {
    double x = at_x(f, longest->x[i]);
    if (x < free_from)
      continue;
    fprintf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x,
            low, low + 5);
    put_number(out, x, low + 20, "text-anchor=\"middle\"", longest->x[i], false);
    free_from = x + 36;
  }
  put_text(out, (LEFT + WIDTH - RIGHT) / 2.0, low + 42, "text-anchor=\"middle\"", panel->x_name);
  put_text(out, 16, f->top + TOP - 12, "", panel->y_name);
}

static void put_line(FILE *out, const frame_t *f, const series_t *s) {
  const char *colour = colours[s->colour];
  char text[16];
  fprintf(out, "<polyline stroke=\"%s\" stroke-width=\"%d\"%s points=\"", colour,
          s->look == LOOK_STRONG ? 3 : 2, s->look == LOOK_FAINT ? " stroke-dasharray=\"5 4\"" : "");
  for (unsigned i = 0; i < s->n; i++)
    if (s->y[i] > 0)
      fprintf(out, "%.1f,%.1f ", at_x(f, s->x[i]), at_y(f, s->y[i]));
  fputs("\"/>\n", out);
  for (unsigned i = 0; i < s->n && s->look != LOOK_FAINT; i++) {
    if (!(s->y[i] > 0))
      continue;
    number_text(text, sizeof text, s->y[i], f->panel->time);
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"><title>%s: %s</title>",
            at_x(f, s->x[i]), at_y(f, s->y[i]), s->look == LOOK_STRONG ? 4 : 3, colour, s->name,
            text);
    fputs("</circle>\n", out);
  }
}

static double end_of(const frame_t *f, const series_t *s) {
  return at_y(f, s->y[s->n - 1]);
}

/* The names stand at the ends of the lines, the highest first. A name that would lie on another one
 * moves down. */
static void put_names(FILE *out, const frame_t *f) {
  const series_t *order[PLOT_SERIES];
  char attributes[64];
  unsigned n = 0;
  for (unsigned i = 0; i < f->panel->n; i++) {
    const series_t *s = &f->panel->series[i];
    unsigned k = n;
    if (s->n == 0 || !(s->y[s->n - 1] > 0))
      continue;
    for (; k > 0 && end_of(f, order[k - 1]) > end_of(f, s); k--)
      order[k] = order[k - 1];
    order[k] = s;
    n++;
  }
  double free_from = f->top + TOP - (double)LABEL * n / 2;
  for (unsigned i = 0; i < n; i++) {
    const series_t *s = order[i];
    double below = (double)LABEL * (n - i - 1), low = f->top + TOP + LINES - below;
    double y = fmax(fmin(end_of(f, s) + 4, low), free_from);
    free_from = y + LABEL;
    (void)snprintf(attributes, sizeof attributes, "class=\"name\" style=\"fill:%s\"",
                   colours[s->colour]);
    put_text(out, at_x(f, s->x[s->n - 1]) + 10, y, attributes, s->name);
  }
}

static void put_lines(FILE *out, const panel_t *panel, double top) {
  frame_t f = {.panel = panel, .top = top};
  if (!frame(&f))
    return;
  put_axes(out, &f);
  for (unsigned i = panel->n; i-- > 0;) /* the first one lies above the others */
    put_line(out, &f, &panel->series[i]);
  put_names(out, &f);
}

static unsigned height_of(const panel_t *panel) {
  return panel->bars ? BAR_TOP + panel->n * BAR_STEP + BAR_STEP : TOP + LINES + BOTTOM;
}

void plot_write(FILE *out, const panel_t *panels, unsigned n) {
  unsigned height = 0, top = 0;
  for (unsigned i = 0; i < n; i++)
    height += height_of(&panels[i]) + (i > 0 ? SPACE : 0);
  fprintf(out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
          "viewBox=\"0 0 %d %u\">\n%s",
          WIDTH, height, WIDTH, height, style);
  for (unsigned i = 0; i < n; i++) {
    fprintf(out, "<rect class=\"back\" x=\"0\" y=\"%u\" width=\"%d\" height=\"%u\" rx=\"6\"/>\n",
            top, WIDTH, height_of(&panels[i]));
    put_text(out, 16, top + 26, "class=\"title\"", panels[i].title);
    put_text(out, 16, top + 46, "", panels[i].about);
    (panels[i].bars ? put_bars : put_lines)(out, &panels[i], top);
    top += height_of(&panels[i]) + SPACE;
  }
  fputs("</svg>\n", out);
}

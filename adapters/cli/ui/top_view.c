#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ui/table.h"
#include "ui/text.h"
#include "commands/top.h"

#define FRAME_ROWS 5 /* that are no things: two of figures, an empty one, headings, the last one */
#define MS_NS UINT64_C(1000000)

/* ---- changes ------------------------------------------------------------------------------------------- */

static bool has(const seen_t *seen, uint64_t mark) {
  for (size_t i = 0; i < seen->held->holders_len; i++)
    if (seen->held->holders[i].mark == mark)
      return true;
  return false;
}

size_t top_differ(const top_t *top, const seen_list_t *in, const seen_list_t *not_in,
                  top_hold_fn hold) {
  size_t n = 0, other = 0;
  for (size_t i = 0; i < in->n; i++) {
    const seen_t *seen = &in->item[i];
    while (other < not_in->n && seen_compare(&not_in->item[other], seen) < 0)
      other++;
    bool same = other < not_in->n && seen_compare(&not_in->item[other], seen) == 0;
    for (size_t j = 0; j < seen->held->holders_len; j++) {
      const belay_holder_t *holder = &seen->held->holders[j];
      if (same && has(&not_in->item[other], holder->mark))
        continue;
      n++;
      if (hold != NULL)
        hold(top, seen, holder);
    }
  }
  return n;
}

/* ---- lines --------------------------------------------------------------------------------------------- */

/* As a person's clock says it, or as programs want it. */
static const char *clock_text(const char *format, bool local) {
  static char text[32];
  time_t now = time(NULL);
  struct tm tm;
  if ((local ? localtime_r(&now, &tm) : gmtime_r(&now, &tm)) == NULL ||
      strftime(text, sizeof text, format, &tm) == 0)
    return "";
  return text;
}

static void write_change(const top_t *top, const char *event, const seen_t *seen,
                         const belay_holder_t *holder) {
  const belay_held_t *held = seen->held;
  char mark[20];
  (void)snprintf(mark, sizeof mark, "%016" PRIx64, holder->mark);
  out_begin();
  out_string("event", event);
  out_string("kind", belay_held_kind_name(held->kind));
  out_text("name", held->name, held->name_len);
  if (top->h->clients > 1)
    out_string("node", look_node(seen->node));
  out_string("label", holder->label);
  out_string("mark", mark);
  out_say("%s: %s %s by %s%s", event, belay_held_kind_name(held->kind),
          out_shown(held->name, held->name_len), look_holder(holder), look_at(top->h, seen->node));
  (void)out_end();
}

static void write_taken(const top_t *top, const seen_t *seen, const belay_holder_t *holder) {
  write_change(top, "taken", seen, holder);
}

static void write_gone(const top_t *top, const seen_t *seen, const belay_holder_t *holder) {
  write_change(top, "gone", seen, holder);
}

static const char *commands_text(const top_t *top) {
  static char text[32];
  (void)snprintf(text, sizeof text, "%.0f", top->commands);
  return top->commands < 0 ? "-" : text;
}

bool top_write(const top_t *top, const seen_list_t *before) {
  if (top->gone > 0)
    (void)top_differ(top, before, &top->seen, write_gone);
  if (top->taken > 0)
    (void)top_differ(top, &top->seen, before, write_taken);
  size_t held = top->seen.n + top->more;
  out_begin();
  out_string("event", "look");
  out_string("time", clock_text("%Y-%m-%dT%H:%M:%SZ", false));
  out_number("held", (int64_t)held);
  out_number("waiting", top->waiting);
  if (top->commands >= 0)
    out_fraction("commands_per_s", top->commands);
  else
    out_null("commands_per_s");
  out_number("taken", (int64_t)top->taken);
  out_number("gone", (int64_t)top->gone);
  out_say("%s  held %zu  waiting %" PRId64 "  commands/s %s  taken %zu  gone %zu",
          clock_text("%H:%M:%S", true), held, top->waiting, commands_text(top), top->taken,
          top->gone);
  return out_end();
}

/* ---- the live view ------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
  const seen_t *one = a, *other = b;
  int64_t more = look_waiters(other->held) - look_waiters(one->held);
  return more != 0 ? (more > 0) - (more < 0) : seen_compare(one, other);
}

/* Appends a line that is no wider than the screen is, in a style. */
static void add_line(const top_t *top, text_t *lines, term_style_t style, const char *text) {
  text_print(lines, "%s", style != TERM_NORMAL ? term_style(&top->term, style) : "");
  (void)utf8_add_cut(lines, text, top->screen.columns);
  text_print(lines, "%s\n", style != TERM_NORMAL ? term_style(&top->term, TERM_NORMAL) : "");
}

static void add_head(const top_t *top, text_t *lines) {
  text_t head = {0};
  const char *namespace_text = common.namespace_text != NULL ? common.namespace_text : "belay";
  text_print(&head, "belay top  %s  %s", clock_text("%H:%M:%S", true),
             out_shown(namespace_text, strlen(namespace_text)));
  for (size_t i = 0; i < top->h->clients; i++)
    text_print(&head, "  %s", look_node(i));
  add_line(top, lines, TERM_BOLD, head.bytes != NULL ? head.bytes : "");
  text_clear(&head);
  text_print(&head, "held %zu  waiting %" PRId64 "  commands/s %s  taken %zu  gone %zu",
             top->seen.n + top->more, top->waiting, commands_text(top), top->taken, top->gone);
  add_line(top, lines, TERM_NORMAL, head.bytes != NULL ? head.bytes : "");
  add_line(top, lines, TERM_NORMAL, "");
  text_free(&head);
}

/* Those that are waited for most. */
static void add_things(const top_t *top, text_t *lines) {
  size_t room = top->screen.rows > FRAME_ROWS ? top->screen.rows - FRAME_ROWS : 0;
  int64_t age_ms = (int64_t)((uv_hrtime() - top->seen_at) / MS_NS);
  size_t n = top->seen.n;
  if (n == 0)
    return;
  seen_t *sorted = malloc(n * sizeof *sorted);
  text_t line = {0};
  table_t table = {0};
  if (sorted == NULL)
    return;
  memcpy(sorted, top->seen.item, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, compare);
  table_begin(&table, look_columns(top->h));
  for (size_t i = 0; i < n && i < room; i++)
    look_row(&table, top->h, &sorted[i], age_ms);
  for (term_style_t style = TERM_DIM; table_line(&table, &line, top->screen.columns);
       style = TERM_NORMAL) {
    add_line(top, lines, style, line.bytes);
    text_clear(&line);
  }
  table_free(&table);
  text_free(&line);
  free(sorted);
}

bool top_draw(const top_t *top) {
  text_t lines = {0};
  add_head(top, &lines);
  add_things(top, &lines);
  if (top->error != 0)
    add_line(top, &lines, TERM_BAD, belay_strerror(top->error));
  else
    add_line(top, &lines, TERM_DIM, top->screen.reads ? "q: leave" : "ctrl-C: leave");
  bool drawn = !lines.spoiled && screen_draw(&top->screen, lines.bytes, lines.len);
  text_free(&lines);
  return drawn;
}

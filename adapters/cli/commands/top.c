/* `belay top`: a live view of held objects.
 *
 *    timer --> is a query in progress? --no--> query: list held objects
 *                 | yes                          |
 *                 v                              v all servers have answered or failed
 *            draw the last snapshot,           draw the new snapshot
 *            with its age */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "query/listing.h"

#define FRAME_ROWS                                                                                 \
  6 /* lines without an entry: two of totals, an empty one, headings, an error, the cursor */
#define MS_NS UINT64_C(1000000)

/* Terminal control sequences: go to the first cell; erase to the end of the line; erase to the end
 * of the screen. */
#define FIRST "\033[H"
#define LINE "\033[K"
#define BELOW "\033[J"

#define COLUMNS 80 /* for a terminal that does not report its size */
#define ROWS 24

static struct { int64_t every_ms; } asked = {.every_ms = 1000};

static struct {
  harness_t *h;
  uv_timer_t timer;
  size_t columns, rows;
  listing_t listing;
  bool querying;
  snapshot_t snapshot;  /* of the last query that a server answered */
  uint64_t snapshot_at; /* uv_hrtime() of that query; 0: none yet */
  int error;            /* of the last query; 0: all servers have answered */
} top;

static void free_state(void) {
  if (top.timer.data != NULL)
    uv_close((uv_handle_t *)&top.timer, NULL);
  snapshot_clear(&top.snapshot);
  snapshot_clear(&top.listing.snapshot);
}

/* ---- drawing ---- */

/* Entries with the most waiters come first. */
static int compare(const void *a, const void *b) {
  const snapshot_entry_t *one = a, *other = b;
  int64_t more = query_waiters(other->held) - query_waiters(one->held);
  return more != 0 ? (more > 0) - (more < 0) : snapshot_compare(one, other);
}

/* Append a line, cut to the width of the screen. */
static void add_line(text_t *lines, const char *text) {
  (void)utf8_add_cut(lines, text, top.columns);
  text_print(lines, LINE "\n");
}

static void add_head(text_t *lines) {
  char clock[16] = "";
  time_t now = time(NULL);
  struct tm tm;
  if (localtime_r(&now, &tm) != NULL)
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &tm);
  text_t head = {0};
  const char *namespace_text = common.namespace_text != NULL ? common.namespace_text : "belay";
  text_print(&head, "belay top  %s  %s", clock, out_shown(namespace_text, strlen(namespace_text)));
  for (size_t i = 0; i < top.h->clients; i++)
    text_print(&head, "  %s", query_server_name(i));
  add_line(lines, head.bytes != NULL ? head.bytes : "");
  int64_t waiting = 0;
  for (size_t i = 0; i < top.snapshot.n; i++)
    waiting +=
        query_waiters(top.snapshot.item[i].held) > 0 ? query_waiters(top.snapshot.item[i].held) : 0;
  text_clear(&head);
  text_print(&head, "held %zu  waiting %" PRId64, top.snapshot.n, waiting);
  add_line(lines, head.bytes != NULL ? head.bytes : "");
  add_line(lines, "");
  text_free(&head);
}

static void add_entries(text_t *lines) {
  size_t room = top.rows > FRAME_ROWS ? top.rows - FRAME_ROWS : 0;
  int64_t age_ms = (int64_t)((uv_hrtime() - top.snapshot_at) / MS_NS);
  text_t line = {0};
  table_t table = {0};
  if (top.snapshot.n == 0)
    return;
  table_begin(&table, query_columns(top.h));
  for (size_t i = 0; i < top.snapshot.n && i < room; i++)
    query_row(&table, top.h, &top.snapshot.item[i], age_ms);
  while (table_line(&table, &line, top.columns)) {
    add_line(lines, line.bytes);
    text_clear(&line);
  }
  table_free(&table);
  text_free(&line);
}

static void measure(void) {
  struct winsize size = {0};
  (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  top.columns = size.ws_col > 0 ? size.ws_col : COLUMNS;
  top.rows = size.ws_row > 0 ? size.ws_row : ROWS;
}

/* Draw the screen. If no server has answered the first query, the terminal stays unchanged. */
static void draw(void) {
  text_t lines = {0};
  if (top.snapshot_at == 0 || harness_is_done(top.h))
    return;
  measure();
  text_print(&lines, FIRST);
  add_head(&lines);
  add_entries(&lines);
  if (top.error != 0)
    add_line(&lines, belay_strerror(top.error));
  text_print(&lines, BELOW);
  if (lines.spoiled || !out_raw(lines.bytes, lines.len))
    harness_done(top.h, STATUS_TROUBLE);
  text_free(&lines);
}

/* ---- queries ---- */

/* Replace the snapshot with the new one. */
static void take_over(void) {
  snapshot_clear(&top.snapshot);
  top.snapshot = top.listing.snapshot;
  top.listing.snapshot = (snapshot_t){0};
  if (top.snapshot.n > 0)
    qsort(top.snapshot.item, top.snapshot.n, sizeof *top.snapshot.item, compare);
  top.snapshot_at = uv_hrtime();
  top.listing.silent = true;
}

static void on_listed(listing_t *listing) {
  top.querying = false;
  top.error = listing->error;
  if (listing->failed < top.h->clients)
    take_over();
  else if (top.snapshot_at == 0)
    harness_done(top.h, status_of(top.error));
  draw();
}

static void on_timer(uv_timer_t *timer) {
  (void)timer;
  if (top.querying) {
    draw();
    return;
  }
  top.querying = true;
  (void)listing_run(&top.listing);
}

static void begin_top(harness_t *h) {
  const char *type = getenv("TERM");
  if (!isatty(STDOUT_FILENO) || type == NULL || strcmp(type, "dumb") == 0) {
    harness_refuse(h, "standard output is not a terminal that can be drawn on: see belay ls");
    return;
  }
  top.h = h;
  top.listing = (listing_t){.h = h, .on_listed = on_listed};
  if (h->arguments->n > 0)
    top.listing.pattern = h->arguments->item[0];
  if (!listing_open(&top.listing))
    return;
  (void)uv_timer_init(&h->loop, &top.timer); /* neither fails */
  top.timer.data = h;
  (void)uv_timer_start(&top.timer, on_timer, 0, (uint64_t)asked.every_ms);
}

const command_t top_command = {
    .name = "top",
    .arguments = "[PATTERN]",
    .summary = "a live view of holders and waiters",
    .text = "belay draws on the terminal until Ctrl-C; entries with the most waiters come first. "
            "PATTERN and the columns are those of belay ls, which also works without a terminal. "
            "Each update queries all keys of the namespace: use a longer --every for large "
            "ones.\n\n"
            "The status is 120 if the first update finds no server; after that belay waits until "
            "the servers are back.",
    .examples = EXAMPLES({"Watch", "belay top"},
                         {"The elections of a namespace", "belay top -n shop --kind election"}),
    .options = OPTIONS(DURATION("every", 100, HOUR_MS, &asked.every_ms,
                                "time between updates; default 1s", .letter = 'e'),
                       QUERY_KIND_OPTION),
    .urls = URLS_MAX,
    .plain = true,
    .begin = begin_top,
    .tidy = free_state,
};

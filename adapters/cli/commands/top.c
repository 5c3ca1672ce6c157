/* `belay top`: a live view of what is held.
 *
 *   timer, every so often --> is a look under way? --no--> look: list what is held, ask servers how much they did
 *                                  | yes                          |
 *                                  v                              v all have answered
 *                             draw what is known, which ages    draw it, or write a line
 */
#include "commands/top.h"

#include <stdio.h>
#include <string.h>

#define SECOND_NS 1e9

static struct { int64_t every_ms, count; } asked = {.every_ms = 1000};

/* How much the servers of one --url had done, when it was asked last. */
typedef struct meter {
  belay_request_t request;
  uint64_t servers; /* a hash of which ones they are; 0: not known */
  int64_t commands; /* that they have executed */
  uint64_t at;      /* when that was */
  double per_s;     /* since the time before; negative: unknown */
} meter_t;

static top_t top;
static listing_t listing;
static meter_t meters[URLS_MAX];
static uv_timer_t timer;
static size_t pending; /* of a look: meters, and the listing */
static size_t more;    /* of a look: things that are not kept */
static uint64_t looks; /* that are over */

/* ---- the end ------------------------------------------------------------------------------------------- */

static void end(int status) {
  screen_close(&top.screen);
  if (!uv_is_closing((uv_handle_t *)&timer))
    uv_close((uv_handle_t *)&timer, NULL);
  seen_clear(&top.seen);
  seen_clear(&listing.seen);
  harness_done(top.h, status);
}

static void stop(harness_t *h, int signum) {
  (void)h;
  end(STATUS_SIGNAL + signum);
}

static void draw(void) {
  if (top.screen.open && !top_draw(&top))
    end(STATUS_TROUBLE);
}

static void on_changed(screen_t *screen) {
  (void)screen;
  draw();
}

static void on_key(screen_t *screen, char key) {
  (void)screen;
  if (key == 'q' || key == 'Q')
    end(STATUS_YES);
}

/* ---- a look -------------------------------------------------------------------------------------------- */

/* Lines say each time what is wrong; a live view says it by itself, and begins when there is something to see. */
static bool go_live(void) {
  if (top.screen.open || !screen_possible() || out_form() != OUT_PLAIN)
    return true;
  top.screen.on_key = on_key;
  top.screen.on_changed = on_changed;
  term_init(&top.term);
  listing.silent = true;
  return screen_open(&top.screen, &top.h->loop) == 0;
}

/* The new list takes the place of the one before. */
static bool take_over(void) {
  seen_list_t before = top.seen;
  bool comparable = top.whole;
  seen_sort(&listing.seen);
  top.seen = listing.seen;
  listing.seen = (seen_list_t){0};
  top.seen_at = uv_hrtime();
  top.more = more;
  top.whole = more == 0 && top.error == 0;
  top.waiting = 0;
  for (size_t i = 0; i < top.seen.n; i++) {
    int64_t waiters = look_waiters(top.seen.item[i].held);
    top.waiting += waiters > 0 ? waiters : 0;
  }
  comparable = comparable && top.whole;
  top.taken = comparable ? top_differ(&top, &top.seen, &before, NULL) : 0;
  top.gone = comparable ? top_differ(&top, &before, &top.seen, NULL) : 0;
  bool written = go_live() && (top.screen.open ? top_draw(&top) : top_write(&top, &before));
  seen_clear(&before);
  return written;
}

/* All have answered, or not. */
static void looked(void) {
  bool in_vain = listing.failed == top.h->clients, first = looks++ == 0;
  top.error = listing.error;
  top.commands = 0;
  for (size_t i = 0; i < top.h->clients; i++)
    top.commands = meters[i].per_s < 0 || top.commands < 0 ? -1 : top.commands + meters[i].per_s;
  if (!in_vain && !take_over())
    end(STATUS_TROUBLE);
  else if ((in_vain && first) || looks == (uint64_t)asked.count)
    end(status_of(top.error));
  else if (in_vain) {
    top.whole = false;
    seen_clear(&listing.seen);
    draw();
  }
}

static void on_part(void) {
  if (--pending == 0 && !harness_is_done(top.h))
    looked();
}

static void on_listed(listing_t *list) {
  (void)list;
  on_part();
}

static void on_seen(listing_t *list) {
  if (list->seen.n <= TOP_THINGS_MAX)
    return;
  seen_drop(&list->seen);
  more++;
}

/* Of the same servers as before, none of which was started anew. */
static void on_servers(belay_request_t *request, int status, const belay_topology_server_t *servers,
                       size_t n) {
  meter_t *meter = request->data;
  uint64_t hash = UINT64_C(14695981039346656037), now = uv_hrtime(); /* FNV-1a */
  int64_t sum = 0;
  size_t known = 0;
  for (size_t i = 0; status == 0 && i < n; i++) {
    if (servers[i].commands < 0)
      continue;
    known++;
    sum += servers[i].commands;
    for (const char *c = servers[i].run_id; *c != '\0'; c++)
      hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
  }
  bool same = known > 0 && hash == meter->servers && sum >= meter->commands && now > meter->at;
  meter->per_s =
      same ? (double)(sum - meter->commands) / ((double)(now - meter->at) / SECOND_NS) : -1;
  meter->servers = known > 0 ? hash : 0;
  meter->commands = sum;
  meter->at = now;
  on_part();
}

static void look(void) {
  pending = 1 + top.h->clients;
  more = 0;
  if (!listing_run(&listing)) {
    end(STATUS_TROUBLE);
    return;
  }
  for (size_t i = 0; i < top.h->clients; i++) {
    meters[i].request.data = &meters[i];
    if (belay_topology_read(top.h->client[i], &meters[i].request, 1, on_servers) != 0) {
      meters[i].per_s = -1;
      pending--; /* never the last one: nothing is told before this returns */
    }
  }
}

static void on_timer(uv_timer_t *which) {
  (void)which;
  if (pending > 0)
    draw();
  else
    look();
}

static void begin(harness_t *h) {
  top = (top_t){.h = h};
  listing = (listing_t){.h = h, .on_seen = on_seen, .on_listed = on_listed};
  if (h->arguments->n > 0)
    listing.pattern = h->arguments->item[0];
  if (!listing_open(&listing))
    return;
  (void)uv_timer_init(&h->loop, &timer); /* neither fails */
  (void)uv_timer_start(&timer, on_timer, 0, (uint64_t)asked.every_ms);
}

static const option_t options[] = {
    DURATION("every", 100, HOUR_MS, &asked.every_ms, "how often it looks; default 1s",
             .letter = 'e'),
    NUMBER("count", 1, INT64_MAX, &asked.count,
           "end after so many looks; default: when it is ended", .letter = 'c'),
    LOOK_KIND_OPTION,
    {0},
};

const command_t top_command = {
    .name = "top",
    .arguments = "[PATTERN]",
    .summary = "a live view of what is held, who waits, and how busy the servers are",
    .text =
        "On a terminal it takes the whole of that, and draws what is waited for most above; q or "
        "ctrl-C leave. Elsewhere, and with --json, it writes a line for each look, and before it "
        "one for each hold that has come (+) or gone (-) since the last. What is held for less "
        "than that is not seen. PATTERN and the columns are those of belay ls.\n\n"
        "Commands are those that all servers of the deployment have executed in a second, replicas "
        "and this command's own included. Each look asks for all keys of the namespace: on large "
        "ones look less often.\n\n"
        "The status is 120 if the first look finds no server; later it waits for them to come "
        "back.",
    .examples =
        EXAMPLES({"Watch", "belay top"},
                 {"A log of who led", "belay top --kind election --every 5s >>leaders.log"}),
    .options = options,
    .urls = URLS_MAX,
    .begin = begin,
    .stop = stop,
};

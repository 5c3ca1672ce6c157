/* Sites of `belay online` whose members are names: with a window each member is forgotten by itself (a dedup window),
 * without one all members end together (a dedup set). The keys are in the slot of the site's record. */
#include <stdlib.h>
#include <string.h>

#include "commands/online.h"

#define KEY "online"
#define PAGE ((size_t)1000)

static belay_dedup_t *names;
static belay_presence_t *site; /* for a reset: it removes the record */
static belay_request_t request;
static belay_bytes_t *members;
static size_t members_n;

static int open_site(harness_t *h) {
  belay_presence_options_t options;
  belay_presence_options_init(&options);
  options.name = h->arguments->item[0];
  options.name_len = strlen(options.name);
  return belay_presence_new(h->client[0], &options, &site);
}

static bool open_names(harness_t *h, const online_options_t *from) {
  belay_dedup_options_t options;
  belay_dedup_options_init(&options);
  options.name = h->arguments->item[0];
  options.name_len = strlen(options.name);
  options.kind = from->window_ms > 0 ? BELAY_DEDUP_WINDOW : BELAY_DEDUP_SET;
  if (from->window_ms > 0)
    options.window_ms = from->window_ms;
  options.ttl_ms = from->ttl_ms;
  options.refresh = true;
  request.data = h;
  members_n = h->arguments->n - 1;
  members = calloc(members_n + 1, sizeof *members);
  for (size_t i = 0; members != NULL && i < members_n; i++)
    members[i] = (belay_bytes_t){h->arguments->item[i + 1], strlen(h->arguments->item[i + 1])};
  int error = members != NULL ? belay_dedup_new(h->client[0], &options, &names) : BELAY_ENOMEM;
  if (error == 0)
    error = open_site(h);
  harness_fail(h, "cannot begin", error);
  return error == 0;
}

/* ---- beat, leave, reset -------------------------------------------------------------------------------- */

static void on_marked(belay_request_t *r, int status, const belay_dedup_verdict_t *verdicts,
                      size_t n) {
  harness_t *h = r->data;
  for (size_t i = 0; i < n && !harness_is_done(h); i++)
    if (verdicts[i] == BELAY_DEDUP_FULL) {
      complain("the site is full: it has a million members");
      harness_done(h, STATUS_TROUBLE);
    }
  online_changed(h, status);
}

static void beat(harness_t *h) {
  harness_fail(
      h, "cannot tell",
      belay_dedup_mark_many(names, &request, KEY, strlen(KEY), members, members_n, on_marked));
}

static void on_forgotten(belay_request_t *r, int status, int64_t n) {
  (void)n;
  online_changed(r->data, status);
}

static void leave(harness_t *h) {
  harness_fail(
      h, "cannot tell",
      belay_dedup_forget(names, &request, KEY, strlen(KEY), members, members_n, on_forgotten));
}

static void on_reset(belay_request_t *r, int status) {
  online_changed(r->data, status);
}

static void on_cleared(belay_request_t *r, int status, int64_t n) {
  harness_t *h = r->data;
  (void)n;
  if (status == 0)
    status = belay_presence_reset(site, r, on_reset);
  harness_fail(h, "cannot tell", status);
}

static void reset(harness_t *h) {
  harness_fail(h, "cannot tell", belay_dedup_clear(names, &request, KEY, strlen(KEY), on_cleared));
}

/* ---- is, count ----------------------------------------------------------------------------------------- */

static void on_is(belay_request_t *r, int status, const belay_dedup_verdict_t *verdicts, size_t n) {
  harness_t *h = r->data;
  bool all = true;
  harness_fail(h, "cannot ask", status);
  for (size_t i = 0; i < n; i++) {
    bool online = verdicts[i] == BELAY_DEDUP_SEEN;
    all = all && online;
    out_begin();
    out_text("member", members[i].data, members[i].len);
    out_bool("online", online);
    if (n == 1)
      out_say("%s", online ? "online" : "not online");
    if (!out_end())
      break;
  }
  harness_done(h, all ? STATUS_YES : STATUS_NO);
}

static void is(harness_t *h) {
  harness_fail(h, "cannot ask",
               belay_dedup_seen_many(names, &request, KEY, strlen(KEY), members, members_n, on_is));
}

static void on_count(belay_request_t *r, int status, int64_t n) {
  online_counted(r->data, status, n);
}

static void count(harness_t *h) {
  harness_fail(h, "cannot count", belay_dedup_count(names, &request, KEY, strlen(KEY), on_count));
}

/* ---- list ---------------------------------------------------------------------------------------------- */

static int ask_page(uint64_t cursor);

static void on_page(belay_request_t *r, int status, const belay_bytes_t *items, size_t n,
                    uint64_t next) {
  harness_t *h = r->data;
  harness_fail(h, "cannot list", status);
  for (size_t i = 0; i < n; i++) {
    out_begin();
    out_text("member", items[i].data, items[i].len);
    if (!out_end()) {
      harness_done(h, STATUS_TROUBLE);
      return;
    }
  }
  if (status == 0 && next != 0)
    harness_fail(h, "cannot list", ask_page(next));
  else
    harness_done(h, STATUS_YES);
}

static int ask_page(uint64_t cursor) {
  static const belay_bytes_t key = {KEY, sizeof KEY - 1};
  return belay_dedup_page(names, &request, BELAY_DEDUP_UNION, &key, 1, cursor, PAGE, on_page);
}

static void list(harness_t *h) {
  harness_fail(h, "cannot list", ask_page(0));
}

const online_kind_t online_names = {open_names, beat, leave, reset, is, count, list};

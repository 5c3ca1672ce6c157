/* Sites of `belay online` whose members are names. With a window each member expires by itself (a
 * dedup window); without one all members expire together (a dedup set). The keys are in the slot of
 * the site's record. */
#include <stdlib.h>
#include <string.h>

#include "commands/online.h"

#define KEY "online"
#define PAGE ((size_t)1000)

static belay_dedup_t *names;
static belay_presence_t *site; /* for a reset, which deletes the record */

/* The members on the command line, as arguments of a call. */
#define MEMBERS(h) (h)->items + 1, (h)->arguments->n - 1

bool online_names_open(harness_t *h, const online_options_t *from) {
  belay_presence_options_t site_options;
  belay_presence_options_init(&site_options);
  site_options.name = h->items[0];
  belay_dedup_options_t options;
  belay_dedup_options_init(&options);
  options.name = h->items[0];
  options.kind = from->window_ms > 0 ? BELAY_DEDUP_WINDOW : BELAY_DEDUP_SET;
  if (from->window_ms > 0)
    options.window_ms = from->window_ms;
  options.ttl_ms = from->ttl_ms;
  options.extend_ttl = true;
  return harness_ok(h, belay_dedup_new(h->client[0], &options, &names)) &&
         harness_ok(h, belay_presence_new(h->client[0], &site_options, &site));
}

/* ---- beat, leave, reset ---- */

static void on_marked(belay_request_t *r, int status, const belay_dedup_verdict_t *verdicts,
                      size_t n) {
  harness_t *h = r->data;
  for (size_t i = 0; i < n && !harness_is_done(h); i++)
    if (verdicts[i] == BELAY_DEDUP_FULL) {
      complain("the site is full: it has a million members");
      harness_done(h, STATUS_TROUBLE);
    }
  online_changed(r, status);
}

void online_names_beat(harness_t *h) {
  harness_ok(h,
             belay_dedup_mark_many(names, &h->request, belay_string(KEY), MEMBERS(h), on_marked));
}

static void on_forgotten(belay_request_t *r, int status, int64_t n) {
  (void)n;
  online_changed(r, status);
}

void online_names_leave(harness_t *h) {
  harness_ok(h,
             belay_dedup_forget(names, &h->request, belay_string(KEY), MEMBERS(h), on_forgotten));
}

static void on_cleared(belay_request_t *r, int status, int64_t n) {
  harness_t *h = r->data;
  (void)n;
  if (status == 0)
    status = belay_presence_reset(site, r, online_changed);
  harness_ok(h, status);
}

void online_names_reset(harness_t *h) {
  harness_ok(h, belay_dedup_clear(names, &h->request, belay_string(KEY), on_cleared));
}

/* ---- is, count ---- */

static void on_is(belay_request_t *r, int status, const belay_dedup_verdict_t *verdicts, size_t n) {
  harness_t *h = r->data;
  bool all = true;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n; i++) {
    bool online = verdicts[i] == BELAY_DEDUP_SEEN;
    all = all && online;
    out_begin();
    out_text("member", h->items[i + 1].data, h->items[i + 1].len);
    out_bool("online", online);
    if (n == 1)
      out_say("%s", online ? "online" : "not online");
    if (!out_end())
      break;
  }
  harness_done(h, all ? STATUS_YES : STATUS_NO);
}

void online_names_is(harness_t *h) {
  harness_ok(h, belay_dedup_seen_many(names, &h->request, belay_string(KEY), MEMBERS(h), on_is));
}

void online_names_count(harness_t *h) {
  harness_ok(h, belay_dedup_count(names, &h->request, belay_string(KEY), online_counted));
}

/* ---- list ---- */

static int ask_page(harness_t *h, uint64_t cursor);

static void on_page(belay_request_t *r, int status, const belay_bytes_t *items, size_t n,
                    uint64_t next) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n; i++) {
    out_begin();
    out_text("member", items[i].data, items[i].len);
    if (!out_end()) {
      harness_done(h, STATUS_TROUBLE);
      return;
    }
  }
  if (next != 0)
    harness_ok(h, ask_page(h, next));
  else
    harness_done(h, STATUS_YES);
}

static int ask_page(harness_t *h, uint64_t cursor) {
  static const belay_bytes_t key = {KEY, sizeof KEY - 1};
  return belay_dedup_page(names, &h->request,
                          &(belay_dedup_sets_t){.how = BELAY_DEDUP_UNION, .keys = &key, .n = 1},
                          cursor, PAGE, on_page);
}

void online_names_list(harness_t *h) {
  harness_ok(h, ask_page(h, 0));
}

/* Sites of `belay online` whose members are numbers. */
#include <stdlib.h>
#include <string.h>

#include "commands/online.h"

static belay_presence_t *site;
static struct {
  uint32_t *ids; /* the ids to query or to set */
  size_t n;
  int64_t max_id;
  int64_t next,
      /* For a list: the first id that was not queried; the number of members still to be found. */
      left;
} work;

/* Read the arguments behind the site. They are valid to the end of the process. */
static bool read_ids(harness_t *h) {
  const arguments_t *arguments = h->arguments;
  work.n = arguments->n - 1;
  work.ids = calloc(ONLINE_MEMBERS_MAX, sizeof *work.ids);
  for (size_t i = 0; work.ids != NULL && i < work.n; i++) {
    int64_t id;
    if (!units_number(arguments->item[i + 1], &id) || id < 0 || id > work.max_id) {
      harness_refuse(
          h, "ID must be a whole number from 0 to --max-id; for names give --names with the "
             "first beat");
      return false;
    }
    work.ids[i] = (uint32_t)id;
  }
  return harness_ok(h, work.ids != NULL ? 0 : BELAY_ENOMEM);
}

bool online_ids_open(harness_t *h, const online_options_t *from) {
  belay_presence_options_t options;
  belay_presence_options_init(&options);
  options.name = belay_string(h->arguments->item[0]);
  options.max_id = (uint32_t)from->max_id;
  options.window_ms = from->window_ms;
  options.slices = (uint32_t)from->slices;
  options.ttl_ms = from->ttl_ms;
  work.max_id = from->max_id;
  return read_ids(h) && harness_ok(h, belay_presence_new(h->client[0], &options, &site));
}

/* ---- beat, leave, reset ---- */

void online_ids_beat(harness_t *h) {
  harness_ok(h, belay_presence_set_many(site, &h->request, work.ids, work.n, online_changed));
}

void online_ids_leave(harness_t *h) {
  harness_ok(h, belay_presence_clear_many(site, &h->request, work.ids, work.n, online_changed));
}

void online_ids_reset(harness_t *h) {
  harness_ok(h, belay_presence_reset(site, &h->request, online_changed));
}

/* ---- is, count ---- */

static void on_is(belay_request_t *r, int status, const bool *online, size_t n) {
  harness_t *h = r->data;
  bool all = true;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n; i++) {
    all = all && online[i];
    out_begin();
    out_wide("id", work.ids[i]);
    out_bool("online", online[i]);
    if (n == 1)
      out_say("%s", online[i] ? "online" : "not online");
    if (!out_end())
      break;
  }
  harness_done(h, all ? STATUS_YES : STATUS_NO);
}

void online_ids_is(harness_t *h) {
  harness_ok(h, belay_presence_is_many(site, &h->request, work.ids, work.n, on_is));
}

void online_ids_count(harness_t *h) {
  harness_ok(h, belay_presence_count(site, &h->request, online_counted));
}

/* ---- list ---- */

static void ask_next(harness_t *h);

static void on_some(belay_request_t *r, int status, const bool *online, size_t n) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n; i++) {
    if (!online[i])
      continue;
    work.left--;
    out_begin();
    out_wide("id", work.ids[i]);
    if (!out_end()) {
      harness_done(h, STATUS_TROUBLE);
      return;
    }
  }
  ask_next(h);
}

static void ask_next(harness_t *h) {
  if (work.left <= 0 || work.next > work.max_id) {
    harness_done(h, STATUS_YES);
    return;
  }
  for (work.n = 0; work.n < ONLINE_MEMBERS_MAX && work.next <= work.max_id; work.n++)
    work.ids[work.n] = (uint32_t)work.next++;
  harness_ok(h, belay_presence_is_many(site, &h->request, work.ids, work.n, on_some));
}

static void on_how_many(belay_request_t *r, int status, int64_t online) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  work.left = online;
  ask_next(h);
}

void online_ids_list(harness_t *h) {
  harness_ok(h, belay_presence_count(site, &h->request, on_how_many));
}

#include "query/listing.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

typedef struct listing_node listing_node_t;

static void on_held(belay_sweep_t *sweep, const belay_held_t *held) {
  listing_node_t *node = belay_sweep_data(sweep);
  listing_t *listing = node->listing;
  if (!query_wants_kind(held->kind) ||
      (listing->pattern != NULL && fnmatch(listing->pattern, held->name, 0) != 0))
    return;
  if (!snapshot_add(&listing->snapshot, held, node->node))
    (void)belay_sweep_cancel(sweep);
}

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  listing_node_t *node = belay_sweep_data(sweep);
  listing_t *listing = node->listing;
  char what[OUT_SHOWN_MAX + 32];
  (void)totals;
  if (harness_is_done(listing->h))
    return;
  if (status == BELAY_ECANCELED) /* by on_held() */
    status = BELAY_ENOMEM;
  if (status != 0) {
    (void)snprintf(what, sizeof what, "cannot list%s", query_at_server(listing->h, node->node));
    if (!listing->silent)
      harness_complain(listing->h, what, status);
    listing->error = listing->error != 0 ? listing->error : status;
    listing->failed++;
  }
  if (--listing->running > 0)
    return;
  snapshot_sort(&listing->snapshot);
  listing->on_listed(listing);
}

/* The server's pattern: keys of one kind whose names begin like the given pattern, as far as its
 * characters are not escaped in keys. This program checks the rest of each name. */
static size_t write_pattern(char *out, size_t size, const char *pattern) {
  const char *kind = query_kinds.n == 1 ? query_kinds.item[0] : "*";
  size_t plain = 0;
  while (pattern != NULL && plain < size / 2 && isalnum((unsigned char)pattern[plain]))
    plain++;
  return (size_t)snprintf(out, size, "%s::{%.*s*", kind, (int)plain,
                          pattern != NULL ? pattern : "");
}

bool listing_open(listing_t *listing) {
  harness_t *h = listing->h;
  char pattern[128];
  belay_sweep_options_t options;
  belay_sweep_options_init(&options);
  options.pattern = belay_bytes(pattern, write_pattern(pattern, sizeof pattern, listing->pattern));
  options.on_held = on_held;
  options.patience_ms = common.timeout_ms;
  for (size_t i = 0; i < h->clients; i++) {
    listing->nodes[i] = (listing_node_t){.listing = listing, .node = i};
    options.data = &listing->nodes[i];
    int error = belay_sweep_new(h->client[i], &options, &listing->nodes[i].sweep);
    if (error != 0) {
      harness_fail(h, "cannot list", error);
      return false;
    }
  }
  return true;
}

bool listing_run(listing_t *listing) {
  harness_t *h = listing->h;
  snapshot_clear(&listing->snapshot);
  listing->error = 0;
  listing->failed = 0;
  listing->running = h->clients;
  for (size_t i = 0; i < h->clients; i++) {
    int error = belay_sweep_start(listing->nodes[i].sweep, on_swept);
    if (error != 0) {
      harness_fail(h, "cannot list", error);
      return false;
    }
  }
  return true;
}

/* `belay ls`: list what is held. */
#include "query/listing.h"

#define ROWS_MAX 1000 /* rows of one table, which are in memory */

static bool found;

static void write_snapshot(listing_t *listing) {
  snapshot_t *snapshot = &listing->snapshot;
  table_t table = {0};
  bool written = true;
  snapshot_sort(snapshot);
  found = found || snapshot->n > 0;
  if (out_form() == OUT_PLAIN && snapshot->n > 0) {
    table_begin(&table, query_columns(listing->h));
    for (size_t i = 0; i < snapshot->n; i++)
      query_row(&table, listing->h, &snapshot->item[i], 0);
    written = table_write(&table);
    table_free(&table);
  }
  for (size_t i = 0; i < snapshot->n && written && out_form() == OUT_JSON; i++) {
    out_begin();
    query_write_members(listing->h, &snapshot->item[i]);
    written = out_end();
  }
  snapshot_clear(snapshot);
  if (!written)
    harness_done(listing->h, STATUS_TROUBLE);
}

static void on_snapshot_entry(listing_t *listing) {
  if (listing->snapshot.n == ROWS_MAX)
    write_snapshot(listing);
}

static void on_listed(listing_t *listing) {
  write_snapshot(listing);
  if (listing->error != 0)
    harness_done(listing->h, status_of(listing->error));
  else
    harness_done(listing->h, found ? STATUS_YES : STATUS_NO);
}

static void begin(harness_t *h) {
  static listing_t listing;
  listing = (listing_t){.h = h, .on_snapshot_entry = on_snapshot_entry, .on_listed = on_listed};
  if (h->arguments->n > 0)
    listing.pattern = h->arguments->item[0];
  if (listing_open(&listing))
    (void)listing_run(&listing);
}

const command_t ls_command = {
    .name = "ls",
    .arguments = "[PATTERN]",
    .summary = "list what is held in the namespace; the status is 1 if nothing is held",
    .text = "PATTERN selects names, with the wildcards * ? [a-z]. Put it in quotes, so that "
            "the shell does not expand it.\n\n"
            "belay lists locks, readers and writers, semaphores and elections. OWNER is the "
            "label that the holder gave itself, or ? if the holder is not a belay client. "
            "REMAINING is the time until the lease ends if it is not renewed; with several "
            "holders it is the longest one. WAITING is the number of waiters, as far as the "
            "server knows: the larger of the number of places in the queue and the number of "
            "listening connections. A lock whose exact key was given to the library is not "
            "listed.\n\n"
            "belay queries the server page by page: all masters of a cluster, and each server "
            "if there are several --url. If a lock changes hands meanwhile, the list may show "
            "its old state. If there are more than 1000 entries, some may be listed twice. "
            "With --json each entry has at most 16 holders.",
    .examples =
        EXAMPLES({"All", "belay ls"},
                 {"Semaphores whose name begins with gpu", "belay ls 'gpu*' --kind semaphore"},
                 {"The leaders, for a script",
                  "belay ls --kind election --json | jq -r '.name + \" \" + .owner'"}),
    .options = OPTIONS(QUERY_KIND_OPTION),
    .urls = URLS_MAX,
    .begin = begin,
};

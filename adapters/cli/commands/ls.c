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
    .summary = "what is held in the namespace, and by whom; the status is 1 if nothing is",
    .text = "PATTERN is what names are to match, as of files: * ? [a-z]. Put it in quotes, so that "
            "the shell does not take it for files.\n\n"
            "Locks, readers and writers, semaphores and elections are told; their owners by the "
            "label that they give themselves, ? if what is there is none of belay's. REMAINING is "
            "for how long the lease goes on if it is not renewed; of several holders, of the one "
            "that lasts longest. WAITING is how many wait, as far as the server knows: places in "
            "the queue or connections that listen, whichever are more. A lock whose exact key was "
            "given to the library is not found.\n\n"
            "The server is asked page by page, all masters of a cluster, and several servers of "
            "--url each: what changes hands meanwhile may be told as it was, and what is more than "
            "1000 may be told twice. With --json there are 16 holders of each at most.",
    .examples =
        EXAMPLES({"All", "belay ls"},
                 {"Semaphores whose name begins with gpu", "belay ls 'gpu*' --kind semaphore"},
                 {"Who leads, for a script",
                  "belay ls --kind election --json | jq -r '.name + \" \" + .owner'"}),
    .options = OPTIONS(QUERY_KIND_OPTION),
    .urls = URLS_MAX,
    .begin = begin,
};

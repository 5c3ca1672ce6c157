/* `belay ls`: list what is held. */
#include "query/listing.h"

static bool write_entries(const listing_t *listing) {
  const snapshot_t *snapshot = &listing->snapshot;
  table_t table = {0};
  bool written = true;
  for (size_t i = 0; i < snapshot->n && written && out_form() == OUT_JSON; i++) {
    out_begin();
    query_write_members(listing->h, &snapshot->item[i]);
    written = out_end();
  }
  if (out_form() != OUT_PLAIN || snapshot->n == 0)
    return written;
  table_begin(&table, query_columns(listing->h));
  for (size_t i = 0; i < snapshot->n; i++)
    query_row(&table, listing->h, &snapshot->item[i], 0);
  written = table_write(&table);
  table_free(&table);
  return written;
}

static void on_listed(listing_t *listing) {
  int status = listing->snapshot.n > 0 ? STATUS_YES : STATUS_NO;
  if (!write_entries(listing))
    status = STATUS_TROUBLE;
  else if (listing->error != 0)
    status = status_of(listing->error);
  snapshot_clear(&listing->snapshot);
  harness_done(listing->h, status);
}

static void begin_ls(harness_t *h) {
  static listing_t listing;
  listing = (listing_t){.h = h, .on_listed = on_listed};
  if (h->arguments->n > 0)
    listing.pattern = h->arguments->item[0];
  if (listing_open(&listing))
    (void)listing_run(&listing);
}

const command_t ls_command = {
    .name = "ls",
    .arguments = "[PATTERN]",
    .summary = "list the held objects of the namespace; the status is 1 if there are none",
    .text = "PATTERN selects names, with the wildcards * ? [a-z]. Put it in quotes, so that the "
            "shell does not expand it.\n\n"
            "belay lists locks, readers and writers, semaphores and elections. OWNER is the label "
            "that the holder gave itself, or ? if the holder is not a belay client. REMAINING is "
            "the time until the lease ends if it is not renewed; of several holders the longest "
            "one. WAITING is the number of waiters that the server knows. A lock whose exact key "
            "was given to the library is not listed.\n\n"
            "belay queries the server page by page: all masters of a cluster, and each server if "
            "there are several --url. A lock that changes hands meanwhile may be listed in its old "
            "state. With --json each entry has at most 16 holders.",
    .examples =
        EXAMPLES({"All", "belay ls"},
                 {"Semaphores whose name begins with gpu", "belay ls 'gpu*' --kind semaphore"},
                 {"The leaders, for a script",
                  "belay ls --kind election --json | jq -r '.name + \" \" + .owner'"}),
    .options = OPTIONS(QUERY_KIND_OPTION),
    .urls = URLS_MAX,
    .begin = begin_ls,
};

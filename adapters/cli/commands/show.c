/* `belay show`: show one name with all its holders and waiters. */
#include <inttypes.h>
#include <stdio.h>

#include "query/reading.h"
#include "ui/text.h"

static void add_holder(text_t *text, const belay_held_t *held, const belay_holder_t *holder) {
  char left[QUERY_TEXT_MAX];
  text_print(text, "\n  %s by %s, %s, mark %016" PRIx64,
             held->kind != BELAY_HELD_RWLOCK ? "held"
             : holder->writes                ? "written"
                                             : "read",
             query_holder_name(holder), query_time_left(left, holder->remaining_ms), holder->mark);
  if (held->kind == BELAY_HELD_SEMAPHORE && holder->permits > 0)
    text_print(text, ", %u permit%s", holder->permits, holder->permits == 1 ? "" : "s");
}

static void add_figures(text_t *text, const belay_held_t *held) {
  if (held->holders_count > held->holders_len)
    text_print(text, "\n  and %zu more", held->holders_count - held->holders_len);
  if (held->kind == BELAY_HELD_SEMAPHORE && held->limit > 0)
    text_print(text, "\n  %u of %u permits are out", held->used, held->limit);
  if (held->owner != NULL)
    text_print(text, "\n  its %s is %s", held->kind == BELAY_HELD_ELECTION ? "leader" : "owner",
               query_owner_name(held));
  if (held->fence > 0)
    text_print(text, "\n  the last %s is %" PRIu64,
               held->kind == BELAY_HELD_ELECTION ? "term" : "fencing number", held->fence);
  if (held->waiting > 0)
    text_print(text, "\n  %zu wait in the queue", held->waiting);
  if (held->listening > 0)
    text_print(text, "\n  %" PRId64 " connections listen for its release", held->listening);
}

static bool write_one(const harness_t *h, const snapshot_entry_t *entry) {
  const belay_held_t *held = entry->held;
  text_t text = {0};
  out_begin();
  query_write_members(h, entry);
  text_print(&text, "%s %s%s", belay_held_kind_name(held->kind),
             out_shown(held->name, held->name_len), query_at_server(h, entry->node));
  if (held->holders_count == 0)
    text_print(&text, "\n"
                      "  not held");
  for (size_t i = 0; i < held->holders_len; i++)
    add_holder(&text, held, &held->holders[i]);
  add_figures(&text, held);
  if (!text.spoiled)
    out_say("%s", text.bytes);
  text_free(&text);
  return out_end();
}

static void on_read(reading_t *reading) {
  harness_t *h = reading->h;
  size_t agreed = reading_agreed(reading);
  bool written = true;
  int status = reading_status(reading);
  for (size_t i = 0; i < reading->snapshot.n && written; i++)
    written = write_one(h, &reading->snapshot.item[i]);
  if (h->clients > 1 && written && out_form() == OUT_PLAIN) {
    out_begin();
    out_say("the same holder at %zu of %zu: %s majority", agreed, h->clients,
            agreed >= reading_majority(reading) ? "a" : "no");
    written = out_end();
  }
  snapshot_clear(&reading->snapshot);
  if (status == STATUS_YES)
    status = agreed >= reading_majority(reading) ? STATUS_YES : STATUS_NO;
  harness_done(h, written ? status : STATUS_TROUBLE);
}

static void begin_show(harness_t *h) {
  static reading_t reading;
  reading = (reading_t){.h = h, .name = h->arguments->item[0], .on_read = on_read};
  reading_start(&reading);
}

const command_t show_command = {
    .name = "show",
    .arguments = "NAME",
    .summary = "show the holders and waiters of NAME; the status is 1 if it is not held",
    .text = "belay shows all kinds with that name. Each holder has the time until its lease ends "
            "if it is not renewed, and a mark, which identifies this hold. A mark is not a token: "
            "it is of use only for belay break --mark.\n\n"
            "Several --url are the servers of one Redlock. It is held if the same holder has it at "
            "a majority of them. The status is 120 if fewer than a majority have answered.\n\n"
            "Waiters are shown if the server knows them: places in the queue of a fair lock, a "
            "semaphore, readers and writers; and listening connections, about one for each process "
            "that waits.",
    .examples = EXAMPLES({"Show the holder of the deployment lock", "belay show deploy"},
                         {"Test whether it is held", "belay show deploy --quiet"}),
    .options = OPTIONS(QUERY_KIND_OPTION),
    .urls = URLS_MAX,
    .begin = begin_show,
};

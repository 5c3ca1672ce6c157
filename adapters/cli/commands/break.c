/* `belay break`: take a name away from its holders. It reads the holders first and then removes
 * exactly those, by their marks: a holder that came in between keeps its hold. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/reading.h"
#include "ui/text.h"

#define MARK_DIGITS 16

static struct {
  bool yes;
  const char *mark;
} asked;

/* The request to one server. */
typedef struct step {
  belay_request_t request;
  harness_t *h;
  size_t node;
  belay_held_t held; /* with only the holders to remove */
} step_t;

static reading_t reading;
static step_t steps[URLS_MAX];
static size_t pending, removed;
static int failure;

/* ---- selecting holders ---- */

static bool is_mark(const char *text) {
  return strlen(text) == MARK_DIGITS && strspn(text, "0123456789abcdefABCDEF") == MARK_DIGITS;
}

static bool is_meant(uint64_t mark) {
  return asked.mark == NULL || strtoull(asked.mark, NULL, 16) == mark;
}

/* Keep only the selected holders. */
static void select_holders(snapshot_entry_t *entry, belay_held_t *out) {
  belay_holder_t *holders = (belay_holder_t *)entry->held->holders; /* the list's own copy */
  size_t n = 0;
  for (size_t i = 0; i < entry->held->holders_len; i++)
    if (is_meant(holders[i].mark))
      holders[n++] = holders[i];
  *out = *entry->held;
  out->holders_len = n;
}

/* Several kinds can have the same name; only one kind is broken. */
static bool is_one_kind(const snapshot_t *list) {
  for (size_t i = 0, first = list->n; i < list->n; i++) {
    if (list->item[i].held->holders_count == 0)
      continue;
    first = first < i ? first : i;
    if (list->item[i].held->kind != list->item[first].held->kind)
      return false;
  }
  return true;
}

/* ---- output ---- */

static void out_object(const step_t *step) {
  out_string("kind", belay_held_kind_name(step->held.kind));
  out_text("name", step->held.name, step->held.name_len);
  if (step->h->clients > 1)
    out_string("node", query_server_name(step->node));
}

static bool write_plan(const step_t *step) {
  char left[QUERY_TEXT_MAX], mark[MARK_DIGITS + 1];
  for (size_t i = 0; i < step->held.holders_len; i++) {
    const belay_holder_t *holder = &step->held.holders[i];
    (void)snprintf(mark, sizeof mark, "%016" PRIx64, holder->mark);
    out_begin();
    out_object(step);
    out_string("label", holder->label);
    out_string("mark", mark);
    out_bool("broken", false);
    out_say("would take %s %s from %s, %s, mark %s%s", belay_held_kind_name(step->held.kind),
            out_shown(step->held.name, step->held.name_len), query_holder_name(holder),
            query_time_left(left, holder->remaining_ms), mark,
            query_at_server(step->h, step->node));
    if (!out_end())
      return false;
  }
  return true;
}

static bool write_broken(const step_t *step, const belay_broken_t *broken) {
  char kept[64] = "", missed[64] = "", unseen[96] = "";
  if (broken->missed > 0)
    (void)snprintf(missed, sizeof missed, "; %zu had ended by themselves", broken->missed);
  if (broken->unseen > 0)
    (void)snprintf(unseen, sizeof unseen,
                   "; %zu may still hold it: there are more holders "
                   "than the server returns",
                   broken->unseen);
  if (broken->others > 0)
    (void)snprintf(kept, sizeof kept, "; %zu more hold it, and keep it", broken->others);
  out_begin();
  out_object(step);
  out_number("removed", (int64_t)broken->removed);
  out_number("missed", (int64_t)broken->missed);
  out_number("unseen", (int64_t)broken->unseen);
  out_number("others", (int64_t)broken->others);
  out_number("notified", (int64_t)broken->notified);
  out_say("%s %s%s: taken from %zu%s%s%s", belay_held_kind_name(step->held.kind),
          out_shown(step->held.name, step->held.name_len), query_at_server(step->h, step->node),
          broken->removed, missed, unseen, kept);
  return out_end();
}

/* ---- breaking ---- */

static void free_state(void) {
  snapshot_clear(&reading.snapshot);
}

static void on_broken(belay_request_t *request, int status, const belay_broken_t *broken) {
  step_t *step = request->data;
  harness_t *h = step->h;
  if (harness_is_done(h))
    return;
  if (status != 0) {
    char what[OUT_SHOWN_MAX + 32];
    (void)snprintf(what, sizeof what, "cannot break it%s", query_at_server(h, step->node));
    harness_complain(h, what, status);
    failure = failure != 0 ? failure : status_of(status);
  } else {
    removed += broken->removed;
    if (!write_broken(step, broken) || broken->unseen > 0)
      failure = STATUS_TROUBLE;
  }
  if (--pending > 0)
    return;
  /* removing it from a minority of the servers counts as a failure */
  if (failure == 0)
    failure = reading_status(&reading);
  harness_done(h, failure != 0 ? failure : removed > 0 ? STATUS_YES : STATUS_NO);
}

static void break_all(harness_t *h, size_t n) {
  for (size_t i = 0; i < n; i++) {
    int error =
        belay_held_break(h->client[steps[i].node], &steps[i].request, &steps[i].held, on_broken);
    if (!harness_ok(h, error))
      return;
    pending++;
  }
}

/* Returns true if all holders that were found are the same one: on several servers it has the same
 * mark. */
static bool is_one_holder(size_t n) {
  for (size_t i = 0; i < n; i++)
    if (steps[i].held.holders_len > 1 ||
        steps[i].held.holders[0].mark != steps[0].held.holders[0].mark)
      return false;
  return true;
}

static void print_plan(harness_t *h, size_t n) {
  bool written = true;
  for (size_t i = 0; i < n && written; i++)
    written = write_plan(&steps[i]);
  if (is_one_holder(n))
    complain(
        "nothing was done: give --yes; or, to remove exactly the holder above: --mark %016" PRIx64
        " --yes",
        steps[0].held.holders[0].mark);
  else
    complain("nothing was done: give --yes, or --mark MARK --yes for one of the holders only");
  harness_done(h, written ? STATUS_USAGE : STATUS_TROUBLE);
}

/* Report that the selected holder was not found. more: true if there are more holders than were
 * read. */
static void report_no_holder(bool held, bool more) {
  if (more)
    complain("no holder with that mark is among the first %d holders, and there are more",
             BELAY_HELD_HOLDERS_MAX);
  else
    complain(held ? "no holder with that mark was found; the present holder keeps it" : "not held");
}

static void on_read(reading_t *read) {
  harness_t *h = read->h;
  size_t n = 0;
  bool held = false, more = false;
  int status = reading_status(read);
  if (!is_one_kind(&read->snapshot)) {
    complain("several things have this name: select one with --kind");
    harness_done(h, STATUS_USAGE);
    return;
  }
  for (size_t i = 0; i < read->snapshot.n; i++) {
    snapshot_entry_t *entry = &read->snapshot.item[i];
    if (entry->held->holders_count == 0)
      continue;
    held = true; /* of one kind, so there is one entry for each server at most */
    more |= entry->held->holders_count > entry->held->holders_len;
    steps[n] = (step_t){.h = h, .node = entry->node};
    steps[n].request.data = &steps[n];
    select_holders(entry, &steps[n].held);
    n += steps[n].held.holders_len > 0;
  }
  if (n == 0) {
    if (status == STATUS_YES)
      report_no_holder(held, more);
    harness_done(h, status != STATUS_YES ? status : more ? STATUS_TROUBLE : STATUS_NO);
  } else if (asked.yes)
    break_all(h, n);
  else
    print_plan(h, n);
}

static void begin_break(harness_t *h) {
  reading = (reading_t){.h = h, .name = h->arguments->item[0], .on_read = on_read};
  if (asked.mark != NULL && !is_mark(asked.mark))
    harness_refuse(h, "--mark must be the 16 digits that belay show prints");
  else
    reading_start(&reading);
}

static const option_t options[] = {
    FLAG("yes", &asked.yes,
         "break it; without --yes belay only prints what it would do, and "
         "the status is 2",
         .letter = 'y'),
    TEXT("mark", "MARK", &asked.mark,
         "take it only from the holder with this mark, which "
         "belay show prints",
         .letter = 'm'),
    QUERY_KIND_OPTION,
    {0},
};

const command_t break_command = {
    .name = "break",
    .arguments = "NAME",
    .summary = "take NAME away from its holders; the status is 1 if it is not held",
    .text = "belay reads the holders and takes NAME away from exactly those: a process that gets "
            "it in between keeps it. For the server it is a release, so that a waiter is woken.\n\n"
            "THE HOLDER IS NOT STOPPED: it assumes that it still holds NAME until its next renewal "
            "or its deadline. Usually belay exec and belay leader notice a break at once and then "
            "end their command. So use belay break for holders that are known to be dead, or whose "
            "work is protected by fencing numbers, which are kept.\n\n"
            "Several --url are the servers of one Redlock; the status is 120 if fewer than a "
            "majority of them have answered. One call removes at most 1000 holders. If there are "
            "more, and it is unknown whether the selected holder is among them, the status is 123.",
    .examples = EXAMPLES({"Print what would be done", "belay break deploy"},
                         {"The host that had it is gone", "belay break deploy --yes"},
                         {"Remove one of several holders, by the mark that belay show prints",
                          "belay break gpu --mark 40e0b8deffef6e38 --yes"}),
    .options = options,
    .urls = URLS_MAX,
    .what = "cannot break it",
    .begin = begin_break,
    .tidy = free_state,
};

#include "query/reading.h"

#include <stdio.h>
#include <string.h>

/* Returns true if the object has holders, or a number that is kept without holders. */
static bool is_there(const belay_held_t *held) {
  return held->holders_count > 0 || held->fence > 0 || held->waiting > 0 || held->limit > 0;
}

static void failed(reading_t *reading, size_t node, int status) {
  char what[OUT_SHOWN_MAX + 32];
  if (reading->failed[node])
    return;
  reading->failed[node] = true;
  reading->error = reading->error != 0 ? reading->error : status;
  (void)snprintf(what, sizeof what, "cannot ask%s", query_at_server(reading->h, node));
  harness_complain(reading->h, what, status);
}

/* Reports a key that belay did not write; the server counts as answered. */
static void report_foreign(const reading_t *reading, const struct reading_request *asked) {
  complain("%s %s%s: the key holds something else", belay_held_kind_name(asked->kind),
           out_shown(reading->name, strlen(reading->name)),
           query_at_server(reading->h, asked->node));
}

static void on_held(belay_request_t *request, int status, const belay_held_t *held) {
  struct reading_request *asked = request->data;
  reading_t *reading = asked->reading;
  if (harness_is_done(reading->h))
    return;
  if (status == 0 && is_there(held) && !snapshot_add(&reading->snapshot, held, asked->node))
    status = BELAY_ENOMEM;
  if (status == BELAY_EWRONGTYPE)
    report_foreign(reading, asked);
  else if (status != 0)
    failed(reading, asked->node, status);
  if (--reading->pending > 0)
    return;
  for (size_t i = 0; i < reading->h->clients; i++)
    reading->answered += !reading->failed[i];
  snapshot_sort(&reading->snapshot);
  reading->on_read(reading);
}

void reading_start(reading_t *reading) {
  harness_t *h = reading->h;
  for (size_t i = 0; i < h->clients; i++)
    for (int kind = 0; kind < BELAY_HELD_KINDS; kind++) {
      struct reading_request *asked = &reading->requests[i][kind];
      if (!query_wants_kind((belay_held_kind_t)kind))
        continue;
      *asked =
          (struct reading_request){.reading = reading, .node = i, .kind = (belay_held_kind_t)kind};
      asked->request.data = asked;
      int error = belay_held_read(h->client[i], &asked->request, (belay_held_kind_t)kind,
                                  belay_string(reading->name), on_held);
      if (error != 0) {
        harness_fail(h, "cannot ask", error);
        return;
      }
      reading->pending++;
    }
}

size_t reading_majority(const reading_t *reading) {
  return reading->h->clients / 2 + 1;
}

int reading_status(const reading_t *reading) {
  if (reading->answered >= reading_majority(reading))
    return STATUS_YES;
  return reading->answered == 0 ? status_of(reading->error) : STATUS_UNREACHABLE;
}

static bool holds(const snapshot_entry_t *entry, uint64_t mark) {
  for (size_t i = 0; i < entry->held->holders_len; i++)
    if (entry->held->holders[i].mark == mark)
      return true;
  return false;
}

/* Return the number of servers that have this holder of this kind. */
static size_t count(const snapshot_t *list, belay_held_kind_t kind, uint64_t mark) {
  size_t n = 0;
  for (size_t i = 0; i < list->n; i++)
    n += list->item[i].held->kind == kind && holds(&list->item[i], mark);
  return n;
}

size_t reading_agreed(const reading_t *reading) {
  const snapshot_t *list = &reading->snapshot;
  size_t most = 0;
  for (size_t i = 0; i < list->n && most < reading->h->clients; i++)
    for (size_t j = 0; j < list->item[i].held->holders_len; j++) {
      const belay_held_t *held = list->item[i].held;
      size_t n = count(list, held->kind, held->holders[j].mark);
      most = n > most ? n : most;
    }
  return most;
}

#include "query/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shell/units.h"

texts_t query_kinds;

/* ---- which ---- */

bool query_wants_kind(belay_held_kind_t kind) {
  for (size_t i = 0; i < query_kinds.n; i++)
    if (strcmp(belay_held_kind_name(kind), query_kinds.item[i]) == 0)
      return true;
  return query_kinds.n == 0;
}

const char *query_server_name(size_t i) {
  const char *url = harness_url(i), *scheme = strstr(url, "://");
  return scheme != NULL ? scheme + 3 : url;
}

const char *query_at_server(const harness_t *h, size_t i) {
  static char at[OUT_SHOWN_MAX + 4];
  (void)snprintf(at, sizeof at, "%s%s", h->clients > 1 ? " at " : "",
                 h->clients > 1 ? query_server_name(i) : "");
  return at;
}

/* ---- how it is said ---- */

const char *query_holder_name(const belay_holder_t *holder) {
  return holder->label != NULL ? out_shown(holder->label, strlen(holder->label)) : "?";
}

const char *query_owner_name(const belay_held_t *held) {
  if (held->owner != NULL)
    return out_shown(held->owner, held->owner_len);
  return held->holders_len > 0 ? query_holder_name(&held->holders[0]) : "-";
}

const char *query_time_left(char buffer[QUERY_TEXT_MAX], int64_t ms) {
  char shown[UNITS_DURATION_MAX];
  if (ms >= 10000) /* long durations are shown without milliseconds */
    ms -= ms % 1000;
  if (ms >= 1000 && ms < 10000)
    (void)snprintf(buffer, QUERY_TEXT_MAX, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms % 1000 / 100);
  else
    (void)snprintf(buffer, QUERY_TEXT_MAX, "%s",
                   ms < 0 ? "no end" : units_show_duration(shown, ms));
  return buffer;
}

/* Format the number of holders, in the words of the kind: "2 readers", "3 of 5". Returns buffer. */
static const char *hold_count(char buffer[QUERY_TEXT_MAX], const belay_held_t *held) {
  size_t n = held->holders_count;
  if (held->kind == BELAY_HELD_SEMAPHORE && held->limit > 0)
    (void)snprintf(buffer, QUERY_TEXT_MAX, "%u of %u", held->used, held->limit);
  else if (held->kind == BELAY_HELD_SEMAPHORE)
    (void)snprintf(buffer, QUERY_TEXT_MAX, "%u permit%s", held->used, held->used == 1 ? "" : "s");
  else if (held->kind == BELAY_HELD_RWLOCK && n > 0)
    (void)snprintf(buffer, QUERY_TEXT_MAX, "%zu %s%s", n,
                   held->holders[0].writes ? "writer" : "reader", n > 1 ? "s" : "");
  else
    (void)snprintf(buffer, QUERY_TEXT_MAX, "%zu", n);
  return buffer;
}

int64_t query_waiters(const belay_held_t *held) {
  int64_t waiting = (int64_t)held->waiting;
  return waiting > held->listening ? waiting : held->listening;
}

const column_t *query_columns(const harness_t *h) {
  static const column_t columns[] = {{"KIND", false},   {"NAME", false},     {"HELD", false},
                                     {"OWNER", false},  {"REMAINING", true}, {"FENCE", true},
                                     {"WAITING", true}, {"NODE", false},     {NULL, false}};
  static column_t alone[sizeof columns / sizeof *columns];
  if (h->clients > 1)
    return columns;
  memcpy(alone, columns, sizeof columns);
  alone[sizeof columns / sizeof *columns - 2].heading = NULL;
  return alone;
}

void query_row(table_t *table, const harness_t *h, const snapshot_entry_t *entry, int64_t age_ms) {
  char text[QUERY_TEXT_MAX];
  const belay_held_t *held = entry->held;
  int64_t left = held->holders_len > 0 ? held->holders[0].remaining_ms : 0;
  if (left > 0)
    left = left > age_ms ? left - age_ms : 0;
  table_cell(table, "%s", belay_held_kind_name(held->kind));
  table_cell(table, "%s", out_shown(held->name, held->name_len));
  table_cell(table, "%s", hold_count(text, held));
  if (held->holders_count > 1 && held->owner == NULL)
    table_cell(table, "%s +%zu", query_owner_name(held), held->holders_count - 1);
  else
    table_cell(table, "%s", query_owner_name(held));
  table_cell(table, "%s", query_time_left(text, left));
  if (held->fence > 0)
    table_cell(table, "%" PRIu64, held->fence);
  else
    table_cell(table, "-");
  table_cell(table, "%" PRId64, query_waiters(held) > 0 ? query_waiters(held) : 0);
  if (h->clients > 1)
    table_cell(table, "%s", query_server_name(entry->node));
}

static void out_holders(const belay_held_t *held) {
  char mark[20];
  out_list_begin("holders");
  for (size_t i = 0; i < held->holders_len; i++) {
    const belay_holder_t *holder = &held->holders[i];
    (void)snprintf(mark, sizeof mark, "%016" PRIx64, holder->mark);
    out_object_begin();
    out_string("label", holder->label);
    out_number_if("remaining_ms", holder->remaining_ms >= 0, holder->remaining_ms);
    if (held->kind == BELAY_HELD_SEMAPHORE)
      out_number("permits", holder->permits);
    if (held->kind == BELAY_HELD_RWLOCK)
      out_bool("writes", holder->writes);
    out_string("mark", mark);
    out_object_end();
  }
  out_list_end();
}

void query_write_members(const harness_t *h, const snapshot_entry_t *entry) {
  const belay_held_t *held = entry->held;
  out_string("kind", belay_held_kind_name(held->kind));
  out_text("name", held->name, held->name_len);
  if (h->clients > 1)
    out_string("node", query_server_name(entry->node));
  if (held->owner != NULL)
    out_text("owner", held->owner, held->owner_len);
  else
    out_string("owner", held->holders_len > 0 ? held->holders[0].label : NULL);
  int64_t left = held->holders_len > 0 ? held->holders[0].remaining_ms : -1;
  out_number_if("remaining_ms", left >= 0, left);
  out_wide_if("fence", held->fence > 0, (int64_t)held->fence);
  out_number("waiting", (int64_t)held->waiting);
  out_number_if("listening", held->listening >= 0, held->listening);
  if (held->kind == BELAY_HELD_SEMAPHORE) {
    out_number("used", held->used);
    out_number_if("limit", held->limit > 0, held->limit);
  }
  out_number("holders_count", (int64_t)held->holders_count);
  out_holders(held);
}

#include "support/stands.h"

#include <stdio.h>

belay_ranking_options_t ranking_options(belay_ranking_order_t order, belay_ranking_ties_t ties) {
  belay_ranking_options_t options;
  belay_ranking_options_init(&options);
  options.order = order;
  options.ties = ties;
  return options;
}

void stand_of(stand_t *stand, bed_t *bed, belay_client_t *client,
              const belay_ranking_options_t *options) {
  *stand = (stand_t){.bed = bed};
  belay_ranking_options_t o = *options;
  o.data = stand;
  int error = belay_ranking_new(client, &o, &stand->ranking);
  if (error != 0)
    fail_msg("belay_ranking_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_ranking_data(stand->ranking), stand);
}

void stand_new(stand_t *stand, bed_t *bed, belay_ranking_order_t order, belay_ranking_ties_t ties) {
  belay_ranking_options_t options = ranking_options(order, ties);
  stand_of(stand, bed, bed->client, &options);
}

/* ---- callbacks ------------------------------------------------------------------------------------------- */

static void then(stand_t *stand) {
  unsigned inside = stand->bed->inside;
  stand->bed->wrong += inside;
  stand->bed->inside = 0;
  if (stand->then != NULL)
    stand->then(stand);
  stand->bed->inside = inside;
}

static void ended(query_t *query, int status) {
  stand_t *stand = query->stand;
  query->ended++;
  query->status = status;
  stand->bed->wrong += query->ended > query->begun || stand->closed > 0;
  stand->pending--;
}

void on_entries(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
                size_t n) {
  query_t *query = request->data;
  assert_int_equal(entries != NULL, n > 0);
  assert_true(status == 0 || n == 0);
  query->n = n;
  for (size_t i = 0; i < n && i < QUERY_ENTRIES_MAX; i++) {
    query->entries[i] = entries[i];
    if (entries[i].member.len > QUERY_MEMBER_MAX)
      continue;
    memcpy(query->members[i], entries[i].member.data, entries[i].member.len);
    query->entries[i].member.data = query->members[i];
  }
  ended(query, status);
  then(query->stand);
}

void on_count(belay_request_t *request, int status, int64_t count) {
  query_t *query = request->data;
  assert_true(status == 0 || count == 0);
  query->count = count;
  ended(query, status);
  then(query->stand);
}

static void on_stand_closed(belay_ranking_t *ranking, void *data) {
  stand_t *stand = data;
  assert_ptr_equal(ranking, stand->ranking);
  stand->closed++;
  stand->bed->wrong += stand->pending > 0 || stand->closed > stand->closing;
  stand->ranking = NULL;
  then(stand);
}

/* ---- operations ------------------------------------------------------------------------------------------ */

belay_request_t *stand_begin(stand_t *stand, query_t *query) {
  query->stand = stand;
  query->request.data = query;
  stand->bed->inside++;
  return &query->request;
}

int stand_begun(stand_t *stand, query_t *query, int error) {
  stand->bed->inside--;
  stand->pending += error == 0;
  query->begun += error == 0;
  return error;
}

int begin_close_stand(stand_t *stand) {
  stand->bed->inside++;
  int error = belay_ranking_close(stand->ranking, on_stand_closed);
  stand->bed->inside--;
  stand->closing += error == 0;
  return error;
}

int begin_submit(stand_t *stand, query_t *query, belay_ranking_mode_t mode, const char *member,
                 int64_t score) {
  const belay_ranking_score_t item = {{member, strlen(member)}, score};
  belay_request_t *request = stand_begin(stand, query);
  return stand_begun(
      stand, query,
      belay_ranking_submit(stand->ranking, request, STAND_BOARD, 5, mode, &item, 1, on_entries));
}

static int begin_asking(belay_ranking_t *r, belay_request_t *q, const char *b, unsigned n) {
  static const belay_bytes_t member = {"ada", 3};
  switch (n) {
  case 3:
    return belay_ranking_find(r, q, b, 5, &member, 1, on_entries);
  case 4:
    return belay_ranking_range(r, q, b, 5, BELAY_RANKING_FROM_BEST, 0, 10, on_entries);
  case 5:
    return belay_ranking_range(r, q, b, 5, BELAY_RANKING_FROM_WORST, 0, 10, on_entries);
  case 6:
    return belay_ranking_range_by_score(r, q, b, 5, 0, 100, BELAY_RANKING_FROM_BEST, 0, 10,
                                        on_entries);
  case 7:
    return belay_ranking_around(r, q, b, 5, "ada", 3, 2, 2, on_entries);
  default:
    return belay_ranking_count_by_score(r, q, b, 5, 0, 100, on_count);
  }
}

int begin_operation(stand_t *stand, query_t *query, unsigned n) {
  static const belay_bytes_t member = {"ada", 3};
  if (n < 3)
    return begin_submit(stand, query, (belay_ranking_mode_t)n, "ada", 7);
  belay_request_t *q = stand_begin(stand, query);
  belay_ranking_t *r = stand->ranking;
  const char *b = STAND_BOARD;
  int error = OPERATION_ASKS(n) ? begin_asking(r, q, b, n)
              : n == 9          ? belay_ranking_remove(r, q, b, 5, &member, 1, on_count)
              : n == 10         ? belay_ranking_trim(r, q, b, 5, 1, on_count)
                                : belay_ranking_clear(r, q, b, 5, on_count);
  return stand_begun(stand, query, error);
}

int end_of_query(query_t *query) {
  bed_until(query->stand->bed, query->ended == query->begun);
  return query->status;
}

/* ---- what came of it ------------------------------------------------------------------------------------- */

const char *text_of(const query_t *query) {
  static char text[2048];
  size_t at = 0;
  text[0] = '\0';
  for (size_t i = 0; i < query->n && i < QUERY_ENTRIES_MAX; i++) {
    const belay_ranking_entry_t *e = &query->entries[i];
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld %.*s %lld%s", i > 0 ? ", " : "",
                           (long long)e->rank, (int)e->member.len, (const char *)e->member.data,
                           (long long)e->score, e->changed ? "!" : "");
  }
  return text;
}

void expect_submit(stand_t *stand, belay_ranking_mode_t mode, const char *member, int64_t score,
                   const char *text) {
  query_t query = {0};
  assert_error(begin_submit(stand, &query, mode, member, score), 0);
  assert_error(end_of_query(&query), 0);
  assert_string_equal(text_of(&query), text);
}

void expect_all(stand_t *stand, const char *text) {
  query_t query = {0};
  belay_request_t *request = stand_begin(stand, &query);
  assert_error(stand_begun(stand, &query,
                           belay_ranking_top(stand->ranking, request, STAND_BOARD, 5,
                                             QUERY_ENTRIES_MAX, on_entries)),
               0);
  assert_error(end_of_query(&query), 0);
  assert_string_equal(text_of(&query), text);
}

/* Queries of a board. If members order ties and one native command suffices, the query is that
 * command. Otherwise it is one script, so that the board cannot change between its reads. */
#include <string.h>

#include "data/ranking/ranking.h"
#include "scripts.gen.h"

static int read_found(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay__ranking_room_t *room = operation->room;
  int error = belay__ranking_fault(call, reply);
  if (error != 0)
    return error;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 2 * room->n)
    return BELAY_EPROTO;
  for (size_t i = 0; i < room->n; i++) {
    belay_ranking_entry_t *entry = &room->entries[i];
    const belay__reply_t *rank = reply->items[2 * i], *score = reply->items[2 * i + 1];
    if (!belay__reply_integer(rank, -1, BELAY_RANKING_SIZE_MAX, &entry->rank) ||
        score->type != BELAY__REPLY_STRING)
      return BELAY_EPROTO;
    if (!belay__ranking_score(score->str, score->len, &entry->score))
      return belay__ranking_bad_score(call);
  }
  return 0;
}

static const belay__request_ops_t find_ops = {
    .read = read_found, .notify = belay__ranking_notify, .idempotent = true};

int belay__ranking_check_members(const belay_ranking_t *ranking, const belay_bytes_t *members,
                                 size_t n) {
  return belay__handle_check_array(&ranking->handle, "member", members, n, BELAY_RANKING_ITEMS_MAX,
                                   1, BELAY_RANKING_MEMBER_MAX);
}

int belay_ranking_find(belay_ranking_t *ranking, belay_request_t *request, belay_bytes_t board,
                       const belay_bytes_t *members, size_t n, belay_ranking_cb cb) {
  belay__operation_t *operation;
  size_t bytes = 0;
  int error = belay__ranking_check(ranking, request, board, cb != NULL);
  if (error == 0)
    error = belay__ranking_check_members(ranking, members, n);
  if (error == 0)
    error = belay__handle_begin(&ranking->handle, request, &find_ops, BELAY__CB(cb), &operation);
  if (error != 0)
    return error;
  for (size_t i = 0; i < n; i++)
    bytes += members[i].len;
  belay__ranking_room_t *room = belay__ranking_room(operation, n, bytes);
  if (room == NULL)
    return belay__request_begun(operation, BELAY_ENOMEM);
  belay__call_t *call =
      belay__call_stale(belay__ranking_script(ranking, &belay__script_ranking_read, board, 1 + n));
  belay__call_arg_text(call, "find");
  for (size_t i = 0; i < n; i++) {
    (void)belay__ranking_name(room, members[i]);
    belay__call_arg(call, members[i].data, members[i].len);
  }
  return belay__request_begun(operation, belay__request_send(operation, call));
}

/* The values of a page: rank of the first entry, step to the next rank, maximum of entries. */
enum { FIRST, STEP, MOST };

/* true if a member has the prefix of a turn. */
static bool is_timed(const belay__reply_t *member) {
  size_t i = 0;
  while (i < BELAY__RANKING_TURN && i < member->len && member->str[i] >= '0' &&
         member->str[i] <= '9')
    i++;
  return i == BELAY__RANKING_TURN && member->len > i;
}

/* Read members and scores, which alternate. */
static int read_list(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *list) {
  const belay_ranking_t *ranking = operation->context;
  size_t skip = ranking->timed ? BELAY__RANKING_TURN : 0, bytes = 0;
  const int64_t *values = operation->values;
  if (list->type != BELAY__REPLY_ARRAY || list->count % 2 != 0 ||
      list->count / 2 > (size_t)values[MOST])
    return BELAY_EPROTO;
  for (size_t i = 0; i < list->count; i++) {
    if (list->items[i]->type != BELAY__REPLY_STRING)
      return BELAY_EPROTO;
    if (i % 2 == 0 && ranking->timed && !is_timed(list->items[i]))
      return belay__handle_mismatch(call, "it holds a member that has no turn");
    bytes += i % 2 == 0 ? list->items[i]->len : 0;
  }
  belay__ranking_room_t *room = belay__ranking_room(operation, list->count / 2, bytes);
  if (room == NULL)
    return BELAY_ENOMEM;
  for (size_t i = 0; i < room->n; i++) {
    const belay__reply_t *member = list->items[2 * i], *score = list->items[2 * i + 1];
    belay_ranking_entry_t *entry =
        belay__ranking_name(room, belay_bytes(member->str + skip, member->len - skip));
    entry->rank = values[FIRST] + (int64_t)i * values[STEP];
    if (entry->rank < 0)
      return BELAY_EPROTO;
    if (!belay__ranking_score(score->str, score->len, &entry->score))
      return belay__ranking_bad_score(call);
  }
  return 0;
}

/* Read a page. A command replies a list; a script replies {rank of the first entry, list}. */
static int read_page(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  int error = belay__ranking_fault(call, reply);
  if (error != 0)
    return error;
  if (call->script == NULL)
    return read_list(operation, call, reply);
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 2 ||
      !belay__reply_integer(reply->items[0], -BELAY_RANKING_SCORE_MAX, BELAY_RANKING_SCORE_MAX,
                            &operation->values[FIRST]))
    return BELAY_EPROTO;
  return read_list(operation, call, reply->items[1]);
}

static const belay__request_ops_t page_ops = {
    .read = read_page, .notify = belay__ranking_notify, .idempotent = true};

/* Begin the request of a page, and send its call, whose reply has up to n entries. first: rank of
 * the first entry; the reply of a script replaces it. */
static int start_page(belay_ranking_t *ranking, belay_request_t *request, belay__call_t *call,
                      int64_t first, belay_ranking_from_t from, size_t n, belay_ranking_cb cb) {
  belay__operation_t *operation;
  int error = belay__handle_begin(&ranking->handle, request, &page_ops, BELAY__CB(cb), &operation);
  if (error != 0) {
    belay__calls_discard(&call, 1);
    return error;
  }
  operation->values[FIRST] = first;
  operation->values[STEP] = from == BELAY_RANKING_FROM_BEST ? 1 : -1;
  operation->values[MOST] = (int64_t)n;
  return belay__request_begun(operation, belay__request_send(operation, belay__call_stale(call)));
}

static int check_scores(const belay_ranking_t *ranking, int64_t min, int64_t max) {
  belay_t *belay = ranking->handle.client->belay;
  int error =
      belay__check_range(belay, "min", min, BELAY_RANKING_SCORE_MIN, BELAY_RANKING_SCORE_MAX);
  return error != 0 ? error : belay__check_range(belay, "max", max, min, BELAY_RANKING_SCORE_MAX);
}

static int check_page(const belay_ranking_t *ranking, const belay_ranking_page_t *page) {
  belay_t *belay = ranking->handle.client->belay;
  if (page == NULL)
    return belay__invalid(belay, "page: NULL");
  int error = belay__check_range(belay, "from", (int64_t)page->from, 0, BELAY_RANKING_FROM_WORST);
  if (error == 0)
    error = belay__check_range(belay, "skip", page->skip, 0, BELAY_RANKING_SIZE_MAX);
  if (error == 0)
    error = belay__check_range(belay, "n", page->n > INT64_MAX ? 0 : (int64_t)page->n, 1,
                               (int64_t)BELAY_RANKING_PAGE_MAX);
  return error != 0 || !page->by_score ? error : check_scores(ranking, page->min, page->max);
}

static belay__call_t *new_page(const belay_ranking_t *ranking, belay_bytes_t board,
                               const belay_ranking_page_t *page) {
  belay__call_t *call;
  bool best = page->from == BELAY_RANKING_FROM_BEST;
  if (!page->by_score && !ranking->timed && best) {
    call = belay__handle_command(&ranking->handle, ranking->high ? "ZREVRANGE" : "ZRANGE", 5);
    belay__ranking_put_keys(ranking, call, board);
    belay__call_arg_int(call, page->skip);
    belay__call_arg_int(call, page->skip + (int64_t)page->n - 1);
    belay__call_arg_text(call, "WITHSCORES");
    return call;
  }
  call = belay__ranking_script(ranking, &belay__script_ranking_read, board, page->by_score ? 6 : 4);
  belay__call_arg_text(call, page->by_score ? "score" : "rank");
  if (page->by_score) {
    belay__call_arg_int(call, page->min);
    belay__call_arg_int(call, page->max);
  }
  belay__call_arg_text(call, best ? "best" : "worst");
  belay__call_arg_int(call, page->skip);
  belay__call_arg_int(call, (int64_t)page->n);
  return call;
}

int belay_ranking_page(belay_ranking_t *ranking, belay_request_t *request, belay_bytes_t board,
                       const belay_ranking_page_t *page, belay_ranking_cb cb) {
  int error = belay__ranking_check(ranking, request, board, cb != NULL);
  if (error == 0)
    error = check_page(ranking, page);
  if (error != 0)
    return error;
  belay__call_t *call = new_page(ranking, board, page);
  return start_page(ranking, request, call, page->by_score ? 0 : page->skip, page->from, page->n,
                    cb);
}

int belay_ranking_top(belay_ranking_t *ranking, belay_request_t *request, belay_bytes_t board,
                      size_t n, belay_ranking_cb cb) {
  const belay_ranking_page_t page = {.n = n};
  return belay_ranking_page(ranking, request, board, &page, cb);
}

int belay_ranking_around(belay_ranking_t *ranking, belay_request_t *request, belay_bytes_t board,
                         const belay_ranking_around_t *around, belay_ranking_cb cb) {
  int error = belay__ranking_check(ranking, request, board, cb != NULL);
  if (error != 0)
    return error;
  belay_t *belay = ranking->handle.client->belay;
  if (around == NULL)
    return belay__invalid(belay, "around: NULL");
  error = belay__check_bytes(belay, "member", around->member, 1, BELAY_RANKING_MEMBER_MAX);
  if (error != 0)
    return error;
  const size_t others = BELAY_RANKING_PAGE_MAX - 1;
  if (around->before > others || around->after > others - around->before)
    return belay__invalid(belay, "before, after: more than %zu in all", others);
  belay__call_t *call = belay__ranking_script(ranking, &belay__script_ranking_read, board, 4);
  belay__call_arg_text(call, "around");
  belay__call_arg(call, around->member.data, around->member.len);
  belay__call_arg_int(call, (int64_t)around->before);
  belay__call_arg_int(call, (int64_t)around->after);
  return start_page(ranking, request, call, 0, BELAY_RANKING_FROM_BEST,
                    around->before + 1 + around->after, cb);
}

static const belay__request_ops_t count_ops = {
    .read = belay__ranking_read_count, .notify = belay__request_notify_count, .idempotent = true};

/* Count the members with a score from bounds[0] to bounds[1]; bounds NULL: all members. */
static int start_count(belay_ranking_t *ranking, belay_request_t *request, belay_bytes_t board,
                       const int64_t *bounds, belay_ranking_count_cb cb) {
  size_t more = bounds == NULL ? 0 : 2;
  belay__call_t *call = belay__ranking_call(ranking, bounds == NULL ? "ZCARD" : "ZCOUNT",
                                            &belay__script_ranking_read, "count", board, more);
  for (size_t i = 0; i < more; i++)
    belay__call_arg_int(call, bounds[i]);
  return belay__handle_start(&ranking->handle, request, belay__call_stale(call), &count_ops,
                             BELAY__CB(cb));
}

int belay_ranking_count(belay_ranking_t *ranking, belay_request_t *request, belay_bytes_t board,
                        belay_ranking_count_cb cb) {
  int error = belay__ranking_check(ranking, request, board, cb != NULL);
  return error != 0 ? error : start_count(ranking, request, board, NULL, cb);
}

int belay_ranking_count_by_score(belay_ranking_t *ranking, belay_request_t *request,
                                 belay_bytes_t board, int64_t min, int64_t max,
                                 belay_ranking_count_cb cb) {
  const int64_t bounds[] = {min, max};
  int error = belay__ranking_check(ranking, request, board, cb != NULL);
  if (error == 0)
    error = check_scores(ranking, min, max);
  return error != 0 ? error : start_count(ranking, request, board, bounds, cb);
}

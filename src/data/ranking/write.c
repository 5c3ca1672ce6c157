/* Changes of a board. */
#include <string.h>

#include "data/ranking/ranking.h"
#include "scripts.gen.h"

/* Maximum number of members that one call of a trim removes. That takes the server some
 * milliseconds. */
#define TRIM_STEP 8192

static int read_submitted(belay__operation_t *operation, const belay__call_t *call,
                          const belay__reply_t *reply) {
  belay__ranking_room_t *room = operation->room;
  int error = belay__ranking_fault(call, reply);
  if (error != 0)
    return error;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 3 * room->n)
    return BELAY_EPROTO;
  for (size_t i = 0; i < room->n; i++) {
    belay_ranking_entry_t *entry = &room->entries[i];
    belay__reply_t **item = reply->items + 3 * i;
    int64_t changed;
    if (!belay__reply_integer(item[0], BELAY_RANKING_SCORE_MIN, BELAY_RANKING_SCORE_MAX,
                              &entry->score) ||
        !belay__reply_integer(item[1], -1, BELAY_RANKING_SIZE_MAX, &entry->rank) ||
        !belay__reply_integer(item[2], 0, 1, &changed))
      return BELAY_EPROTO;
    entry->changed = changed != 0;
  }
  return 0;
}

static const belay__request_ops_t submit_ops = {.read = read_submitted,
                                                .notify = belay__ranking_notify};

static int check_items(belay_t *belay, const belay_ranking_score_t *items, size_t n,
                       size_t *bytes) {
  int error = belay__check_count(belay, "item", items, n, BELAY_RANKING_ITEMS_MAX);
  *bytes = 0;
  for (size_t i = 0; i < n && error == 0; i++) {
    const belay_bytes_t *member = &items[i].member;
    error = belay__check_bytes(belay, "member", belay_bytes(member->data, member->len), 1,
                               BELAY_RANKING_MEMBER_MAX);
    if (error == 0)
      error = belay__check_range(belay, "score", items[i].score, BELAY_RANKING_SCORE_MIN,
                                 BELAY_RANKING_SCORE_MAX);
    *bytes += member->len;
  }
  return error;
}

static belay__call_t *new_submit(const belay_ranking_t *ranking, belay_bytes_t board,
                                 const char *mode, const belay_ranking_score_t *items, size_t n) {
  belay__call_t *call =
      belay__ranking_script(ranking, &belay__script_ranking_submit, board, 3 + 2 * n);
  belay__call_arg_text(call, mode);
  belay__call_arg_int(call, ranking->options.ttl_ms);
  belay__call_arg_int(call, ranking->options.max_members);
  for (size_t i = 0; i < n; i++) {
    belay__call_arg(call, items[i].member.data, items[i].member.len);
    belay__call_arg_int(call, items[i].score);
  }
  return call;
}

int belay_ranking_submit(belay_ranking_t *ranking, belay_request_t *request, belay_bytes_t board,
                         const belay_ranking_submission_t *submission, belay_ranking_cb cb) {
  static const char *const modes[] = {"set", "add", "best"};
  belay__operation_t *operation;
  size_t bytes;
  int error = belay__ranking_check(ranking, request, board, cb != NULL);
  if (error == 0 && submission == NULL)
    return belay__invalid(ranking->handle.client->belay, "submission: NULL");
  if (error != 0)
    return error;
  belay_t *belay = ranking->handle.client->belay;
  error = belay__check_range(belay, "mode", (int64_t)submission->mode, 0, BELAY_RANKING_BEST);
  if (error == 0)
    error = check_items(belay, submission->items, submission->n, &bytes);
  if (error == 0)
    error = belay__handle_begin(&ranking->handle, request, &submit_ops, BELAY__CB(cb), &operation);
  if (error != 0)
    return error;
  belay__ranking_room_t *room = belay__ranking_room(operation, submission->n, bytes);
  for (size_t i = 0; i < submission->n && room != NULL; i++)
    (void)belay__ranking_name(room, submission->items[i].member);
  belay__call_t *call = room == NULL ? NULL
                                     : new_submit(ranking, board, modes[submission->mode],
                                                  submission->items, submission->n);
  return belay__request_begun(operation, belay__request_send(operation, call));
}

static const belay__request_ops_t remove_ops = {.read = belay__ranking_read_count,
                                                .notify = belay__request_notify_count};

int belay_ranking_remove(belay_ranking_t *ranking, belay_request_t *request, belay_bytes_t board,
                         const belay_bytes_t *members, size_t n, belay_ranking_count_cb cb) {
  int error = belay__ranking_check(ranking, request, board, cb != NULL);
  if (error == 0)
    error = belay__ranking_check_members(ranking, members, n);
  if (error != 0)
    return error;
  belay__call_t *call =
      belay__ranking_call(ranking, "ZREM", &belay__script_ranking_drop, "remove", board, n);
  for (size_t i = 0; i < n; i++)
    belay__call_arg(call, members[i].data, members[i].len);
  return belay__handle_start(&ranking->handle, request, call, &remove_ops, BELAY__CB(cb));
}

/* Read the present size of the board, and send the next step if the board is still too large. */
static int read_trimmed(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  int64_t size = operation->values[1], left;
  int error = belay__ranking_read_count(operation, call, reply);
  left = operation->values[0];
  if (error != 0 || left <= size)
    return error;
  error = belay__request_send(operation, belay__call_copy(call));
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

static const belay__request_ops_t trim_ops = {
    .read = read_trimmed, .notify = belay__request_notify_count, .idempotent = true};

int belay_ranking_trim(belay_ranking_t *ranking, belay_request_t *request, belay_bytes_t board,
                       int64_t size, belay_ranking_count_cb cb) {
  belay__operation_t *operation;
  int error = belay__ranking_check(ranking, request, board, cb != NULL);
  if (error == 0)
    error =
        belay__check_range(ranking->handle.client->belay, "size", size, 0, BELAY_RANKING_SIZE_MAX);
  if (error == 0)
    error = belay__handle_begin(&ranking->handle, request, &trim_ops, BELAY__CB(cb), &operation);
  if (error != 0)
    return error;
  operation->values[1] = size;
  belay__call_t *call = belay__ranking_script(ranking, &belay__script_ranking_drop, board, 3);
  belay__call_arg_text(call, "trim");
  belay__call_arg_int(call, size);
  belay__call_arg_int(call, TRIM_STEP);
  return belay__request_begun(operation, belay__request_send(operation, call));
}

static int read_cleared(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  (void)operation, (void)call;
  int64_t keys;
  return belay__reply_integer(reply, 0, 3, &keys) ? 0 : BELAY_EPROTO;
}

static const belay__request_ops_t clear_ops = {
    .read = read_cleared, .notify = belay__request_notify_count, .idempotent = true};

int belay_ranking_clear(belay_ranking_t *ranking, belay_request_t *request, belay_bytes_t board,
                        belay_ranking_count_cb cb) {
  int error = belay__ranking_check(ranking, request, board, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_command(&ranking->handle, "UNLINK", 2 + ranking->keys);
  belay__ranking_put_keys(ranking, call, board);
  belay__handle_arg(&ranking->handle, call, board.data, board.len, "}::config");
  return belay__handle_start(&ranking->handle, request, call, &clear_ops, BELAY__CB(cb));
}

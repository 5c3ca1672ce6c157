/* Rankings: a sorted set for each board. If time breaks ties, a member gets a new turn, a number of
 * 16 digits, when its score changes. A hash stores the turns. In the sorted set the turn is a
 * prefix of the member, so that members with equal scores sort by turn. For the kinds
 * high-earlier and low-later the turns count down, otherwise up.
 *
 *   ties by bytes  NAME::{BOARD}         ada -> 7, bob -> 7
 *   ties by time   NAME::{BOARD}::timed  0000000000000001bob -> 7, 0000000000000002ada -> 7
 *                  NAME::{BOARD}::turns  ada -> 0000000000000002, bob -> 0000000000000001,
 *                                        (empty) -> low-earlier 2
 *
 * The empty field holds ranking->kind and the number of turns that were given. So the hash has one
 * field more than the set has members, or does not exist if the set is empty. Scripts check that,
 * to detect a lost key. */
#include "data/ranking/ranking.h"

#include <string.h>

#define TTL_MAX_MS INT64_C(31536000000) /* one year */

static const belay_ranking_options_t defaults = {.ttl_ms = INT64_C(2592000000)};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_ranking_options_t, order, 0, BELAY_RANKING_LOW_FIRST),
    BELAY__RANGE(belay_ranking_options_t, ties, 0, BELAY_RANKING_LATER_FIRST),
    BELAY__RANGE_OR(belay_ranking_options_t, ttl_ms, 0, 1000, TTL_MAX_MS),
    BELAY__RANGE(belay_ranking_options_t, max_members, 0, BELAY_RANKING_SIZE_MAX),
    {.name = NULL},
};

static int on_init(belay__handle_t *handle, void *options) {
  static const char *const kinds[][3] = {{"high", "high-earlier", "high-later"},
                                         {"low", "low-earlier", "low-later"}};
  belay_ranking_t *ranking = (belay_ranking_t *)handle;
  const belay_ranking_options_t *o = options;
  ranking->high = o->order == BELAY_RANKING_HIGH_FIRST;
  ranking->timed = o->ties != BELAY_RANKING_BY_MEMBER;
  ranking->keys = ranking->timed ? 2 : 1;
  ranking->kind = kinds[o->order][o->ties];
  return 0;
}

const belay__handle_type_t belay__ranking_type = {
    .family = "ranking",
    BELAY__HANDLE_LAYOUT(ranking),
    .copy_at = offsetof(belay_ranking_t, options),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
};

BELAY__HANDLE_FUNCTIONS(ranking)

void belay__ranking_put_keys(const belay_ranking_t *ranking, belay__call_t *call,
                             belay_bytes_t board) {
  const char *tail = ranking->timed ? "}::timed" : "}";
  belay__handle_arg(&ranking->handle, call, board.data, board.len, tail);
  if (ranking->timed)
    belay__handle_arg(&ranking->handle, call, board.data, board.len, "}::turns");
}

belay__call_t *belay__ranking_script(const belay_ranking_t *ranking, const belay__script_t *script,
                                     belay_bytes_t board, size_t args) {
  belay__call_t *call = belay__handle_script(&ranking->handle, script, ranking->keys, 1 + args);
  belay__ranking_put_keys(ranking, call, board);
  belay__call_arg_text(call, ranking->kind);
  return call;
}

belay__call_t *belay__ranking_call(const belay_ranking_t *ranking, const char *command,
                                   const belay__script_t *script, const char *word,
                                   belay_bytes_t board, size_t args) {
  belay__call_t *call;
  if (ranking->timed) {
    call = belay__ranking_script(ranking, script, board, 1 + args);
    belay__call_arg_text(call, word);
  } else {
    call = belay__handle_command(&ranking->handle, command, 2 + args);
    belay__ranking_put_keys(ranking, call, board);
  }
  return call;
}

#define BAD_SCORE "it holds a score that is no whole number within 2^53"

int belay__ranking_bad_score(const belay__call_t *call) {
  return belay__handle_mismatch(call, BAD_SCORE);
}

int belay__ranking_fault(const belay__call_t *call, const belay__reply_t *reply) {
  static const belay__fault_t faults[] = {
      {BELAY_ELOST, NULL},
      {BELAY_EMISMATCH, "its ::turns are none"},
      {BELAY_EMISMATCH, "it has another order, or other ties"},
      {BELAY_EMISMATCH, BAD_SCORE},
      {BELAY_EOVERFLOW, NULL},
  };
  return belay__handle_fault(call, reply, faults, sizeof faults / sizeof *faults);
}

int belay__ranking_read_count(belay__operation_t *operation, const belay__call_t *call,
                              const belay__reply_t *reply) {
  int error = belay__ranking_fault(call, reply);
  if (error != 0)
    return error;
  return belay__reply_integer(reply, 0, BELAY_RANKING_SCORE_MAX, &operation->values[0])
             ? 0
             : BELAY_EPROTO;
}

belay__ranking_room_t *belay__ranking_room(belay__operation_t *operation, size_t n, size_t bytes) {
  belay__ranking_room_t *room =
      belay__request_room(operation, sizeof *room + n * sizeof room->entries[0] + bytes);
  if (room == NULL)
    return NULL;
  room->n = n;
  room->bytes = (char *)&room->entries[n];
  return room;
}

belay_ranking_entry_t *belay__ranking_name(belay__ranking_room_t *room, belay_bytes_t member) {
  belay_ranking_entry_t *entry = &room->entries[room->named++];
  entry->member = belay_bytes(room->bytes, member.len);
  if (member.len > 0)
    memcpy(room->bytes, member.data, member.len);
  room->bytes += member.len;
  return entry;
}

void belay__ranking_notify(belay_request_t *request, void (*cb)(void),
                           const belay__answer_t *answer) {
  const belay__ranking_room_t *room = answer->room;
  bool any = answer->status == 0 && room->n > 0;
  ((belay_ranking_cb)cb)(request, answer->status, any ? room->entries : NULL, any ? room->n : 0);
}

/* Shared by the files of ranking: the handle, its keys and common replies. */
#ifndef BELAY_DATA_RANKING_RANKING_H
#define BELAY_DATA_RANKING_RANKING_H

#include "belay/ranking.h"
#include "core/client/handle.h"

/* Digits of a turn, which precedes a member in the sorted set if time breaks ties */
#define BELAY__RANKING_TURN ((size_t)16)

struct belay_ranking {
  belay__handle_t handle; /* first */
  belay_ranking_options_t options;
  bool high, timed;
  size_t keys;      /* Number of keys of a board: 1, or 2 if timed */
  const char *kind; /* Order of scores and ties, such as "high" or "low-earlier", for scripts */
};

/* Check as belay__handle_check_key() does. */
static inline int belay__ranking_check(const belay_ranking_t *ranking,
                                       const belay_request_t *request, belay_bytes_t board,
                                       bool has_cb) {
  return belay__handle_check_key((const belay__handle_t *)ranking, request, board, has_cb);
}

/* Add the keys of a board. */
void belay__ranking_put_keys(const belay_ranking_t *ranking, belay__call_t *call,
                             belay_bytes_t board);

/* Make a call of a script with the keys of the board and ranking->kind. The caller adds `args` more
 * arguments. Returns NULL if memory is out. */
belay__call_t *belay__ranking_script(const belay_ranking_t *ranking, const belay__script_t *script,
                                     belay_bytes_t board, size_t args);

/* Make a call: the command if members order ties, else the script with `word` behind ranking->kind.
 * The caller adds `args` more arguments. Returns NULL if memory is out. */
belay__call_t *belay__ranking_call(const belay_ranking_t *ranking, const char *command,
                                   const belay__script_t *script, const char *word,
                                   belay_bytes_t board, size_t args);

/* Check the members of an operation. Returns 0 or BELAY_EINVAL. */
int belay__ranking_check_members(const belay_ranking_t *ranking, const belay_bytes_t *members,
                                 size_t n);

/* Return the error that a script replied, or 0. */
int belay__ranking_fault(const belay__call_t *call, const belay__reply_t *reply);

/* Report that the board holds a score that is not valid. Returns BELAY_EMISMATCH. */
int belay__ranking_bad_score(const belay__call_t *call);

/* Read a score as servers write it ("7", "-7", "1e+15", "1.5e3"). Returns false if it is no whole
 * number in the range of scores. */
bool belay__ranking_score(const char *text, size_t len, int64_t *out);

/* Read a reply that is a number of members into values[0]. Returns 0 or an error. */
int belay__ranking_read_count(belay__operation_t *operation, const belay__call_t *call,
                              const belay__reply_t *reply);

/* The room of a request: n entries, followed by the bytes of their members. */
typedef struct belay__ranking_room {
  size_t n;
  size_t named; /* Number of entries that have a member */
  char *bytes;  /* Memory for the next member */
  belay_ranking_entry_t entries[];
} belay__ranking_room_t;

/* Make the room for n entries whose members have `bytes` bytes in all. NULL: memory is out. */
belay__ranking_room_t *belay__ranking_room(belay__operation_t *operation, size_t n, size_t bytes);
/* Copy a member to the next entry, and return the entry. */
belay_ranking_entry_t *belay__ranking_name(belay__ranking_room_t *room, belay_bytes_t member);
void belay__ranking_notify(belay_request_t *request, void (*cb)(void),
                           const belay__answer_t *answer);

#endif /* BELAY_DATA_RANKING_RANKING_H */

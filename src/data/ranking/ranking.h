/* Shared by the files of ranking: keys, and the reading of replies. */
#ifndef BELAY_DATA_RANKING_RANKING_H
#define BELAY_DATA_RANKING_RANKING_H

#include "belay/ranking.h"
#include "core/client/handle.h"

#define BELAY__RANKING_TURN ((size_t)16) /* digits before a member where ties are broken by time */

struct belay_ranking {
  belay__handle_t handle; /* first */
  bool high, timed;
  const char *kind; /* the scripts' name of the order, such as "high" or "low-earlier" */
  int64_t ttl_ms, max_members;
};

/* As belay__handle_check_key(). */
static inline int belay__ranking_check(const belay_ranking_t *ranking,
                                       const belay_request_t *request, belay_bytes_t board,
                                       bool has_cb) {
  return belay__handle_check_key((const belay__handle_t *)ranking, request, board, has_cb);
}

/* Adds the board's key, and that of its turns if it has any: how many that are is belay__ranking_keys(). */
size_t belay__ranking_keys(const belay_ranking_t *ranking);
void belay__ranking_put_keys(const belay_ranking_t *ranking, belay__call_t *call, const char *board,
                             size_t board_len);

/* A script's call with its keys and its first argument, the kind; args more are to be added. NULL: memory was out. */
belay__call_t *belay__ranking_script(const belay_ranking_t *ranking, const belay__script_t *script,
                                     const char *board, size_t board_len, size_t args);

/* Makes a call with `args` more arguments: the command, if members order ties; else the script
 * with the order's name. NULL if memory is out. */
belay__call_t *belay__ranking_call(const belay_ranking_t *ranking, const char *command,
                                   const belay__script_t *script, const char *word,
                                   const char *board, size_t board_len, size_t args);

/* BELAY_EINVAL, with a detail, or 0. */
int belay__ranking_check_members(const belay_ranking_t *ranking, const belay_bytes_t *members,
                                 size_t n);

/* Returns the error that a script replied, or 0. */
int belay__ranking_fault(const belay__call_t *call, const belay__reply_t *reply);

/* A score that is no number of ours: BELAY_EMISMATCH. */
int belay__ranking_bad_score(const belay__call_t *call);

/* A score as servers write it ("7", "-7", "1e+15", "1.5e3"), if it is a whole number of our range. */
bool belay__ranking_score(const char *text, size_t len, int64_t *out);

/* Reads a reply that is a number of members. */
int belay__ranking_read_count(belay__operation_t *operation, const belay__call_t *call,
                              const belay__reply_t *reply);

/* A request's room: an answer of n entries, followed by the bytes of their members. */
typedef struct belay__ranking_room {
  size_t n, named; /* entries, and how many of them have a member */
  char *bytes;     /* of the next one */
  belay_ranking_entry_t entries[];
} belay__ranking_room_t;

/* NULL if there is no memory. */
belay__ranking_room_t *belay__ranking_room(belay__operation_t *operation, size_t n, size_t bytes);
/* Gives the next entry its member, a copy; returns the entry. */
belay_ranking_entry_t *belay__ranking_name(belay__ranking_room_t *room, const void *data,
                                           size_t len);
void belay__ranking_tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);

#endif /* BELAY_DATA_RANKING_RANKING_H */

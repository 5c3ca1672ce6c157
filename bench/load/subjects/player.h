/* Plays tapes: writes recorded commands and only counts the replies; one tape for each server. */
#ifndef BENCH_LOAD_SUBJECTS_PLAYER_H
#define BENCH_LOAD_SUBJECTS_PLAYER_H

#include <hiredis/hiredis.h>

#include "load/subjects/answers.h"
#include "load/driver/job.h"
#include "load/subjects/tap.h"

typedef struct player {
  redisContext *server;
  tape_t tape;
  size_t *ends;      /* of its commands: bytes */
  uint64_t asked;    /* commands that were written */
  size_t part;       /* and bytes of the next one */
  bool filling;      /* more may be written now */
  answers_t replies; /* n of them */
} player_t;

#define PLAYER_NO_WINDOW UINT64_MAX

/* Takes the tape. */
void player_open(player_t *player, const char *url, tape_t tape);
void player_close(player_t *player);

typedef struct play_options {
  uint64_t window; /* maximum of unanswered commands of each */
  bool once;       /* each tape, from its beginning to its end, instead of for a time */
  bool awake;      /* true: poll instead of sleep, so that the server need not wake this process */
} play_options_t;

/* Play all tapes repeatedly for this time. Returns the number of repetitions, with a fraction; of
 * several tapes the mean. */
double players_play(player_t *players, unsigned n, const play_options_t *options, double seconds);

/* One command to each at a time: the next one when most have answered, and it was held for as long
 * as the job says. So many steps are an operation. Returns the steps. */
uint64_t players_walk(const job_t *job, player_t *players, uint64_t steps, double seconds,
                      hist_t *latency);

#endif /* BENCH_LOAD_SUBJECTS_PLAYER_H */

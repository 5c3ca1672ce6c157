/* A contest: for each kind that is held, players in several clients who have it for a moment, again and again. */
#ifndef TEST_SUPPORT_LOAD_CONTEST_H
#define TEST_SUPPORT_LOAD_CONTEST_H

#include "support/load/player.h"

enum { CONTEST_CLIENTS = 3, CONTEST_EACH = 6 };

typedef struct contest contest_t;

/* One of those who take part. */
typedef struct contestant {
  contest_t *contest;
  uv_timer_t timer; /* until it leaves, or comes */
  int64_t asked;    /* when it came; by clock_now() */
  unsigned grants;
  bool gave_up; /* at the end */
} contestant_t;

struct contest {
  bed_t *bed;
  bool over;
  int64_t forgotten; /* what was granted before this need not be known to the server any more */
  player_t player[HELD_KINDS][CONTEST_EACH];
  contestant_t contestant[HELD_KINDS][CONTEST_EACH];
  unsigned clashes[HELD_KINDS];  /* had by too many at once */
  unsigned backward[HELD_KINDS]; /* numbers that were not larger than the one before */
  unsigned failures[HELD_KINDS]; /* acquires and releases that ended with an error, and losses */
  int error[HELD_KINDS];         /* the last of them */
  uint64_t number[HELD_KINDS];
  int64_t free_since[HELD_KINDS]; /* by clock_now(); 0: somebody has it */
  int64_t longest[HELD_KINDS];    /* from when it was free, and wanted, to the next grant: in ms */
};

/* All come. The memory is the test's, and outlives the bed. */
void contest_begin(contest_t *contest, bed_t *bed, const char *url,
                   const belay_client_options_t *client, const belay_lock_options_t *options);

/* What anybody has now, or is just being told, is forgotten by the server. */
void contest_forget(contest_t *contest);

/* Until each of them has had its turn so many times from now on. */
void contest_await_turns(contest_t *contest, unsigned turns);

/* All leave, and nothing is under way any more; checks that nobody clashed and that no number went backward. */
void contest_end(contest_t *contest);

/* Fails the test if there were failures; if anything was free for longer than so many ms, though it was wanted. */
void contest_expect_no_failures(const contest_t *contest);
void contest_expect_prompt(const contest_t *contest, int64_t ms);

#endif /* TEST_SUPPORT_LOAD_CONTEST_H */

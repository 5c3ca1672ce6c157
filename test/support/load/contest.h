/* A contest: for each kind that is held, players in several clients who have it for a moment,
 * again and again. */
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
  env_t *env;
  bool over;
  int64_t forgotten; /* grants from before this time may be unknown to the server */
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

/* All come. The memory is the test's, and outlives the env. */
void contest_begin(contest_t *contest, env_t *env, const char *url,
                   const belay_client_options_t *client, const belay_lock_options_t *options);

/* The server forgets all present grants, also those about to be reported. */
void contest_forget(contest_t *contest);

/* Waits until each contender has had its turn `turns` times from now on. */
void contest_await_turns(contest_t *contest, unsigned turns);

/* All contenders leave and all calls end; checks that no holds overlapped and no number went
 * backward. */
void contest_end(contest_t *contest);

/* The first fails the test after any failure; the second, if a wanted lock was free for longer
 * than `ms`. */
void contest_expect_no_failures(const contest_t *contest);
void contest_expect_prompt(const contest_t *contest, int64_t ms);

#endif /* TEST_SUPPORT_LOAD_CONTEST_H */

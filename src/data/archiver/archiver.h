/* The archiver's struct, between its machine (archiver.c) and what makes one (new.c). */
#ifndef BELAY_DATA_ARCHIVER_ARCHIVER_H
#define BELAY_DATA_ARCHIVER_ARCHIVER_H

#include "belay/archiver.h"
#include "belay/election.h"
#include "data/active/active.h"

#define BELAY__ARCHIVER_NONE INT64_MIN /* no day */

struct belay_archiver {
  belay__child_t child;
  belay_active_t *active;
  belay_election_t *election; /* NULL: gone */
  belay__timer_t timer;       /* SLEEPING; STANDING, where standing was refused */
  belay__task_t task;
  belay_request_t request; /* one question at a time */
  bool asking;             /* and whether it is pending */
  uint8_t state;
  uint64_t term; /* in which we were elected */
  int64_t day;   /* that is being done; NONE: none is. Days since 1970, by the series' time zone */
  int64_t
      done; /* on_day's work on it is done, and it may not be in the record yet; NONE: none is */
  int64_t skipped_to; /* days before it were counted as skipped */
  belay_archiver_day_cb on_day;
  belay_archiver_close_cb close_cb;
  void *data;
  bool months;
  int64_t from_ms, delay_ms, jitter_ms, retry_ms;
  belay_archiver_stats_t stats;
};

/* What the record says; how is 0, 1 or 2 (src/lua/active/archived.lua). */
typedef struct belay__archived {
  int64_t how, day, now_ms;
} belay__archived_t;

/* What is told of the election. */
void belay__archiver_elected(belay_election_t *election, uint64_t term);
void belay__archiver_deposed(belay_election_t *election, belay_lost_t reason);

/* Of a new one: stands for election. And of any: ends it. */
void belay__archiver_start(belay_archiver_t *archiver);
void belay__archiver_child_close(belay__child_t *child);
void belay__archiver_on_timer(belay__timer_t *timer);
void belay__archiver_on_task(belay__task_t *task);

/* Which day comes next, after the last that is done (NONE: there is none), at that time of the server's; and the last
 * that is over. Both by the series' time zone. */
int64_t belay__archiver_next(const belay_archiver_t *archiver, int64_t last, int64_t now_ms,
                             int64_t *over);

#endif /* BELAY_DATA_ARCHIVER_ARCHIVER_H */

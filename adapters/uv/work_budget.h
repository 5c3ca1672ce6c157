/* The work budget: work that holds the loop up, a slice of it in each turn.
 *
 * A step of a TLS handshake takes half a millisecond of arithmetic, to begin a connection a tenth of that; two hundred of
 * them that are due at once, one after another, would keep everything else waiting. So each step waits here for its turn.
 * They are let in in order, until a millisecond of the loop's turn is used up; the others come in its next one. Only
 * work is waited for: whoever waits for the network stands outside, so that a peer that says nothing stops nobody. */
#ifndef BELAY_UV_WORK_BUDGET_H
#define BELAY_UV_WORK_BUDGET_H

#include "core/loop/loop.h"

/* A step. It is run once, from the loop, when the machines are at rest. */
typedef struct belay__job {
  belay__list_t node; /* in the work budget's queue, or alone */
  void (*run)(struct belay__job *job);
} belay__job_t;

typedef struct belay__work_budget {
  belay_t *belay;
  const uint64_t *turns; /* number of the present turn of the loop */
  belay__list_t queue;
  belay__task_t task;
  uint64_t turn;  /* of the loop, in which the last step was, */
  uint64_t spent; /* and how much of it is used up, in nanoseconds */
} belay__work_budget_t;

void belay__work_budget_init(belay__work_budget_t *work_budget, belay_t *belay,
                             const uint64_t *turns);

void belay__job_init(belay__job_t *job, void (*run)(belay__job_t *job));

/* Queues a step, also one that is queued already. */
void belay__work_budget_queue(belay__work_budget_t *work_budget, belay__job_t *job);
/* Takes it out again, also one that is not queued. */
void belay__work_budget_leave(belay__work_budget_t *work_budget, belay__job_t *job);

#endif /* BELAY_UV_WORK_BUDGET_H */

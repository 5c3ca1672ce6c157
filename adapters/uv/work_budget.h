/* Work budget: limits how much long-running work a loop does per iteration.
 *
 * A step of a TLS handshake takes half a millisecond of CPU time, the start of a connection a
 * tenth of that. Two hundred such steps in a row would delay everything else. So each step is a
 * job in this queue. Jobs run in order until one millisecond of the iteration is used up; the
 * others run in the next iteration. A job never waits for the network, so a silent peer delays
 * no other job. */
#ifndef BELAY_UV_WORK_BUDGET_H
#define BELAY_UV_WORK_BUDGET_H

#include "core/loop/loop.h"

/* One step. The loop runs it once, when no machine is inside a transition. */
typedef struct belay__job {
  belay__list_t node; /* Link in the queue of the work budget; unlinked: not queued */
  void (*run)(struct belay__job *job);
} belay__job_t;

typedef struct belay__work_budget {
  belay_t *belay;
  const uint64_t *turns; /* Counter of loop iterations, of the host */
  belay__list_t queue;
  belay__task_t task;
  uint64_t turn;  /* Loop iteration in which the last job ran */
  uint64_t spent; /* Part of that iteration's budget that is used up, in nanoseconds */
} belay__work_budget_t;

void belay__work_budget_init(belay__work_budget_t *budget, belay_t *belay, const uint64_t *turns);

void belay__job_init(belay__job_t *job, void (*run)(belay__job_t *job));

/* Queue a job; no effect if already queued. */
void belay__work_budget_queue(belay__work_budget_t *budget, belay__job_t *job);
/* Remove a job from the queue; no effect if not queued. */
void belay__work_budget_leave(belay__work_budget_t *budget, belay__job_t *job);

#endif /* BELAY_UV_WORK_BUDGET_H */

#include "uv/work_budget.h"

#define SLICE BELAY__MS /* Budget per loop iteration. The last step may exceed it */

/* A task that is queued while it runs comes again in the next loop iteration, so that the loop
 * serves other handles in between. It can also come with the next event of the same iteration;
 * then the rest of that iteration's budget applies. */
static void run_slice(belay__task_t *task) {
  belay__work_budget_t *budget = BELAY__CONTAINER(task, belay__work_budget_t, task);
  belay_t *belay = budget->belay;
  if (budget->turn != *budget->turns) {
    budget->turn = *budget->turns;
    budget->spent = 0;
  }
  uint64_t began = belay__now(belay), limit = began + SLICE - budget->spent, now = began;
  while (budget->spent < SLICE && now < limit && !belay__list_empty(&budget->queue)) {
    belay__job_t *job = BELAY__CONTAINER(belay__list_pop(&budget->queue), belay__job_t, node);
    job->run(job);
    now = belay__now(belay);
  }
  budget->spent += now - began;
  if (!belay__list_empty(&budget->queue))
    belay__defer(belay, &budget->task);
}

void belay__work_budget_init(belay__work_budget_t *budget, belay_t *belay, const uint64_t *turns) {
  *budget = (belay__work_budget_t){.belay = belay, .turns = turns};
  belay__list_init(&budget->queue);
  belay__task_init(&budget->task, run_slice);
}

void belay__job_init(belay__job_t *job, void (*run)(belay__job_t *job)) {
  belay__list_init(&job->node);
  job->run = run;
}

void belay__work_budget_queue(belay__work_budget_t *budget, belay__job_t *job) {
  if (!belay__list_empty(&job->node))
    return;
  belay__list_push(&budget->queue, &job->node);
  belay__defer(budget->belay, &budget->task);
}

void belay__work_budget_leave(belay__work_budget_t *budget, belay__job_t *job) {
  belay__list_remove(&job->node);
  if (belay__list_empty(&budget->queue))
    belay__task_stop(budget->belay, &budget->task);
}

#include "uv/work_budget.h"

#define SLICE BELAY__MS /* Budget per loop iteration. The last step may exceed it */

/* A task that is queued while it runs comes again in the next loop iteration, so that the loop
 * serves other handles in between. It can also come with the next event of the same iteration;
 * then the rest of that iteration's budget applies. */
static void run_slice(belay__task_t *task) {
  belay__work_budget_t *work_budget = BELAY__CONTAINER(task, belay__work_budget_t, task);
  belay_t *belay = work_budget->belay;
  if (work_budget->turn != *work_budget->turns) {
    work_budget->turn = *work_budget->turns;
    work_budget->spent = 0;
  }
  uint64_t began = belay__now(belay), limit = began + SLICE - work_budget->spent, now = began;
  while (work_budget->spent < SLICE && now < limit && !belay__list_empty(&work_budget->queue)) {
    belay__job_t *job = BELAY__CONTAINER(belay__list_pop(&work_budget->queue), belay__job_t, node);
    job->run(job);
    now = belay__now(belay);
  }
  work_budget->spent += now - began;
  if (!belay__list_empty(&work_budget->queue))
    belay__defer(belay, &work_budget->task);
}

void belay__work_budget_init(belay__work_budget_t *work_budget, belay_t *belay,
                             const uint64_t *turns) {
  *work_budget = (belay__work_budget_t){.belay = belay, .turns = turns};
  belay__list_init(&work_budget->queue);
  belay__task_init(&work_budget->task, run_slice);
}

void belay__job_init(belay__job_t *job, void (*run)(belay__job_t *job)) {
  belay__list_init(&job->node);
  job->run = run;
}

void belay__work_budget_queue(belay__work_budget_t *work_budget, belay__job_t *job) {
  if (!belay__list_empty(&job->node))
    return;
  belay__list_push(&work_budget->queue, &job->node);
  belay__defer(work_budget->belay, &work_budget->task);
}

void belay__work_budget_leave(belay__work_budget_t *work_budget, belay__job_t *job) {
  belay__list_remove(&job->node);
  if (belay__list_empty(&work_budget->queue))
    belay__task_stop(work_budget->belay, &work_budget->task);
}

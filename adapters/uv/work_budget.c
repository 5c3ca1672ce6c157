#include "uv/work_budget.h"

#define SLICE BELAY__MS /* of a turn; the last step that is let in may take longer */

/* The loop has others to serve in between: a task that is queued while it runs comes again in the loop's next turn, or
 * with the next event of this one, and then it is still the same turn. */
static void run_slice(belay__task_t *task) {
  belay__gate_t *gate = BELAY__CONTAINER(task, belay__gate_t, task);
  belay_t *belay = gate->belay;
  if (gate->turn != *gate->turns) {
    gate->turn = *gate->turns;
    gate->spent = 0;
  }
  uint64_t began = belay__now(belay), limit = began + SLICE - gate->spent, now = began;
  while (gate->spent < SLICE && now < limit && !belay__list_empty(&gate->queue)) {
    belay__chore_t *chore = BELAY__CONTAINER(belay__list_pop(&gate->queue), belay__chore_t, node);
    chore->run(chore);
    now = belay__now(belay);
  }
  gate->spent += now - began;
  if (!belay__list_empty(&gate->queue))
    belay__defer(belay, &gate->task);
}

void belay__gate_init(belay__gate_t *gate, belay_t *belay, const uint64_t *turns) {
  *gate = (belay__gate_t){.belay = belay, .turns = turns};
  belay__list_init(&gate->queue);
  belay__task_init(&gate->task, run_slice);
}

void belay__chore_init(belay__chore_t *chore, void (*run)(belay__chore_t *chore)) {
  belay__list_init(&chore->node);
  chore->run = run;
}

void belay__gate_queue(belay__gate_t *gate, belay__chore_t *chore) {
  if (!belay__list_empty(&chore->node))
    return;
  belay__list_push(&gate->queue, &chore->node);
  belay__defer(gate->belay, &gate->task);
}

void belay__gate_leave(belay__gate_t *gate, belay__chore_t *chore) {
  belay__list_remove(&chore->node);
  if (belay__list_empty(&gate->queue))
    belay__task_stop(gate->belay, &gate->task);
}

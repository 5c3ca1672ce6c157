/* Checkers: fencing numbers, and the resources that they guard: one for each name, which runs belay_fence_guard() on
 * every write that arrives, however late. */
#include <stdlib.h>
#include <string.h>

#include "sim/check_state.h"

/* ---- rules: fencing ------------------------------------------------------------------------------------- */

static bool was_told(const sim_name_t *name, uint64_t number) {
  for (unsigned i = 0; i < SIM_NUMBERS; i++)
    if (name->numbers[i] == number)
      return true;
  return false;
}

/* A number is larger than that of every grant before; where two may hold at once, than that of every grant that was
 * told before this one was asked for, and nobody else's. */
void sim_fence_granted(sim_watch_t *watch) {
  sim_world_t *world = watch->process->world;
  sim_check_t *check = world->check;
  sim_name_t *name = &check->name[watch->name];
  uint64_t number = belay_lock_fence(watch->lock);
  uint64_t floor = world->scenario->broken ? watch->floor_number : name->number;
  double when = sim_in_ms(sim_world_time(watch->process));
  watch->number = number;
  if (number == 0 || number > BELAY__FENCE_MAX)
    sim_violation(world, "fencing: %s is told that it holds n%u with number %llu, at %.6f ms",
                  watch->who, watch->name, (unsigned long long)number, when);
  if (check->numbered && number <= floor)
    sim_violation(world, "fencing: %s gets %llu for n%u, where %llu was given before, at %.6f ms",
                  watch->who, (unsigned long long)number, watch->name, (unsigned long long)floor,
                  when);
  if (check->numbered && was_told(name, number))
    sim_violation(world, "fencing: %s gets %llu for n%u, as somebody else has, at %.6f ms",
                  watch->who, (unsigned long long)number, watch->name, when);
  name->numbers[watch->ordinal % SIM_NUMBERS] = number;
  if (number > name->number)
    name->number = number;
}

/* ---- the guarded resource ------------------------------------------------------------------------------- */

typedef struct writing {
  sim_event_t event;
  belay__list_t node; /* in check->writes */
  sim_world_t *world;
  unsigned name;
  uint64_t number, ordinal, floor;
  char who[16];
  size_t token_len;
  char token[BELAY_FENCE_TOKEN_MAX];
} writing_t;

/* What was held before the latest whose write was accepted is over: nothing of it is accepted any more. Where two may
 * hold at once it is over for certain only if the latest was asked for after it. */
static void check_accepted(sim_world_t *world, sim_name_t *name, const writing_t *writing) {
  uint64_t over = world->scenario->broken ? name->excluded : name->accepted;
  bool stale = world->scenario->broken ? writing->ordinal <= over : writing->ordinal < over;
  if (stale && world->check->numbered)
    sim_violation(world,
                  "fencing: a write of %s's grant %llu of n%u with number %llu is accepted after "
                  "one of grant %llu, at %.6f ms",
                  writing->who, (unsigned long long)writing->ordinal, writing->name,
                  (unsigned long long)writing->number, (unsigned long long)name->accepted,
                  sim_in_ms(world->now));
  if (writing->ordinal > name->accepted)
    name->accepted = writing->ordinal;
  if (writing->floor > name->excluded)
    name->excluded = writing->floor;
}

/* The newest number is refused to nobody. */
static void check_refused(sim_world_t *world, const sim_name_t *name, const writing_t *writing) {
  if (writing->number > name->fence.number)
    sim_violation(
        world, "fencing: a write of %s to n%u with the newest number %llu is refused, at %.6f ms",
        writing->who, writing->name, (unsigned long long)writing->number, sim_in_ms(world->now));
}

static void on_arrival(sim_event_t *event) {
  writing_t *writing = SIM_CONTAINER(event, writing_t, event);
  sim_world_t *world = writing->world;
  sim_name_t *name = &world->check->name[writing->name];
  uint64_t before = name->fence.number;
  int error = belay_fence_guard(&name->fence, writing->number, writing->token, writing->token_len);
  sim_note(world, "resource", "n%u: a write of %s with %llu: %s", writing->name, writing->who,
           (unsigned long long)writing->number, belay_err_name(error));
  if (error == 0 && writing->number < before)
    sim_violation(world, "fencing: n%u accepts %llu after %llu, at %.6f ms", writing->name,
                  (unsigned long long)writing->number, (unsigned long long)before,
                  sim_in_ms(world->now));
  if (error == 0) {
    world->figures.writes++;
    check_accepted(world, name, writing);
  } else {
    world->figures.stale_writes++;
    check_refused(world, name, writing);
  }
  belay__list_remove(&writing->node);
  free(writing);
}

bool sim_watch_write(sim_watch_t *watch, uint64_t delay) {
  sim_world_t *world = watch->process->world;
  char token[BELAY_FENCE_TOKEN_MAX + 1];
  if (watch->lock == NULL || watch->closing || !watch->held)
    return false;
  uint64_t number = belay_lock_fence(watch->lock);
  size_t len = belay_lock_token(watch->lock, token, sizeof token);
  if (number == 0 || len == 0)
    return false; /* it is over */
  if (watch->number != 0 && number != watch->number)
    sim_violation(world,
                  "fencing: %s holds n%u with another number than it was granted, at %.6f ms",
                  watch->who, watch->name, sim_in_ms(sim_world_time(watch->process)));
  writing_t *writing = sim_alloc(sizeof *writing);
  writing->event.run = on_arrival;
  writing->world = world;
  writing->name = watch->name;
  writing->number = number;
  writing->ordinal = watch->ordinal;
  writing->floor = watch->floor;
  memcpy(writing->who, watch->who, sizeof writing->who);
  writing->token_len = len;
  memcpy(writing->token, token, len);
  belay__list_push(&world->check->writes, &writing->node);
  sim_event_set(world, &writing->event, sim_world_time(watch->process) + delay);
  return true;
}

void sim_register_fini(sim_check_t *check) {
  for (belay__list_t *node; (node = belay__list_pop(&check->writes)) != NULL;) {
    writing_t *writing = BELAY__CONTAINER(node, writing_t, node);
    sim_event_cancel(check->world, &writing->event);
    free(writing);
  }
}

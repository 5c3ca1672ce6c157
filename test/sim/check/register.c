/* Checkers: fencing numbers, and the resources that they guard: one for each name, which runs
 * belay_fence_guard() on every write that arrives, however late. */
#include <stdlib.h>
#include <string.h>

#include "sim/check/check_state.h"

typedef unsigned long long number_t; /* as %llu prints it */

/* ---- rules: fencing ---- */

static void report(const sim_lock_t *lock, const char *what, uint64_t other) {
  sim_violation(lock->base.world, "fencing: %s, n%u with number %llu: %s (%llu)", lock->base.who,
                lock->name, (number_t)lock->number, what, (number_t)other);
}

static bool was_reported(const sim_name_t *name, uint64_t number) {
  for (unsigned i = 0; i < SIM_NUMBERS; i++)
    if (name->numbers[i] == number)
      return true;
  return false;
}

static void check_range(const sim_lock_t *lock) {
  if (lock->number == 0 || lock->number > BELAY__FENCE_MAX)
    report(lock, "granted, and the number is out of range", BELAY__FENCE_MAX);
}

/* A number is larger than those of all earlier grants. For kinds with several holders: larger
 * than every number reported before the request, and unique. */
void sim_fence_granted(sim_lock_t *lock) {
  sim_world_t *world = lock->base.world;
  sim_check_t *check = world->check;
  sim_name_t *name = &check->name[lock->name];
  uint64_t floor = world->scenario->broken ? lock->floor_number : name->number;
  if (world->scenario->kind == SIM_RWLOCK && !lock->writer) /* readers report in any order */
    floor = lock->floor_number > name->written ? lock->floor_number : name->written;
  lock->number = belay_lock_fence(lock->handle);
  check_range(lock);
  if (check->numbered && lock->number <= floor)
    report(lock, "a larger number was reported before", floor);
  if (check->numbered && was_reported(name, lock->number))
    report(lock, "another grant had the same number", lock->number);
  name->numbers[lock->ordinal % SIM_NUMBERS] = lock->number;
  if (lock->number > name->number)
    name->number = lock->number;
  if (lock->writer && lock->number > name->written)
    name->written = lock->number;
}

static bool is_same_owner(const sim_lock_t *a, const sim_lock_t *b) {
  return a != b && a->base.process == b->base.process && a->name == b->name && a->owner == b->owner;
}

/* Another hold of the same owner that lasts since the request: both are of one ownership. */
static const sim_lock_t *find_other_hold(const sim_lock_t *lock) {
  uint64_t when = sim_world_time(lock->base.process);
  const sim_lock_t *other;
  for (unsigned i = 0; (other = sim_next_lock(lock->base.world, &i)) != NULL;)
    if (is_same_owner(lock, other) && sim_lock_holds(other, when) &&
        other->granted_clock <= lock->called_clock)
      return other;
  return NULL;
}

static bool is_last_owner(const sim_name_t *name, const sim_lock_t *lock) {
  return name->process == lock->base.process && name->life == lock->base.process->lives &&
         name->owner == lock->owner;
}

void sim_fence_entered(sim_lock_t *lock) {
  const sim_scenario_t *scenario = lock->base.world->scenario;
  sim_name_t *name = &lock->base.world->check->name[lock->name];
  const sim_lock_t *other = find_other_hold(lock);
  if (!scenario->broken && other != NULL && belay_lock_holds(lock->handle) < 2)
    report(lock, "entered again, as the only hold of its owner", other->number);
  if (!scenario->fencing)
    return;
  lock->number = belay_lock_fence(lock->handle);
  bool same = lock->number == name->number && is_last_owner(name, lock);
  check_range(lock);
  if (other != NULL && other->number != 0 && lock->number != other->number)
    report(lock, "another hold of its owner has another number", other->number);
  if (!same && lock->number <= name->number)
    report(lock, "a larger number was reported before", name->number);
  if (lock->number <= lock->floor_over)
    report(lock, "the ownership with that number has ended", lock->floor_over);
  if (same)
    lock->ordinal = name->entered; /* all holds of an ownership write as one */
  name->entered = lock->ordinal;
  name->number = lock->number;
  name->process = lock->base.process;
  name->life = lock->base.process->lives;
  name->owner = lock->owner;
}

/* The number of an owner ends with its last hold, if no call is in flight. (Only without faults:
 * otherwise an unknown hold may exist.) */
void sim_fence_left(const sim_lock_t *lock) {
  const sim_world_t *world = lock->base.world;
  sim_name_t *name = &world->check->name[lock->name];
  const belay_client_t *client = lock->base.process->client[0];
  const sim_lock_t *other;
  if (world->scenario->kind != SIM_REENTRANT || world->phase != SIM_CALM || client == NULL ||
      client->stats.undo_pending > 0 || !is_last_owner(name, lock))
    return;
  for (unsigned i = 0; (other = sim_next_lock(world, &i)) != NULL;)
    if (is_same_owner(lock, other) && other->handle != NULL &&
        (!sim_lock_is_idle(other) || other->silent))
      return;
  if (lock->number == name->number)
    name->over = name->number;
}

/* ---- the guarded resource ---- */

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

/* Writes of holders before the latest accepted one are refused. For kinds with several holders
 * only if the latest asked after the earlier hold. */
static void check_accepted(sim_world_t *world, sim_name_t *name, const writing_t *writing) {
  uint64_t over = world->scenario->broken ? name->excluded : name->accepted;
  bool stale = world->scenario->broken ? writing->ordinal <= over : writing->ordinal < over;
  if (stale && world->check->numbered)
    sim_violation(world,
                  "fencing: a write of %s's grant %llu of n%u with number %llu is accepted after "
                  "one of grant %llu",
                  writing->who, (number_t)writing->ordinal, writing->name,
                  (number_t)writing->number, (number_t)name->accepted);
  if (writing->ordinal > name->accepted)
    name->accepted = writing->ordinal;
  if (writing->floor > name->excluded)
    name->excluded = writing->floor;
}

/* The newest number is never refused. */
static void check_refused(sim_world_t *world, const sim_name_t *name, const writing_t *writing) {
  if (writing->number > name->fence.number)
    sim_violation(world, "fencing: a write of %s to n%u with the newest number %llu is refused",
                  writing->who, writing->name, (number_t)writing->number);
}

static void on_arrival(sim_event_t *event) {
  writing_t *writing = SIM_CONTAINER(event, writing_t, event);
  sim_world_t *world = writing->world;
  sim_name_t *name = &world->check->name[writing->name];
  uint64_t before = name->fence.number;
  int error = belay_fence_guard(&name->fence, writing->number,
                                belay_bytes(writing->token, writing->token_len));
  sim_note(world, "resource", "n%u: a write of %s with %llu: %s", writing->name, writing->who,
           (number_t)writing->number, belay_err_name(error));
  if (error == 0 && writing->number < before)
    sim_violation(world, "fencing: n%u accepts %llu after %llu", writing->name,
                  (number_t)writing->number, (number_t)before);
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

bool sim_lock_write(sim_lock_t *lock, uint64_t delay) {
  sim_world_t *world = lock->base.world;
  char token[BELAY_FENCE_TOKEN_MAX + 1];
  if (lock->handle == NULL || lock->closing || !lock->held)
    return false;
  uint64_t number = belay_lock_fence(lock->handle);
  size_t len = belay_lock_token(lock->handle, token, sizeof token);
  if (number == 0 || len == 0 || (world->scenario->kind == SIM_RWLOCK && !lock->writer))
    return false; /* it is over, or has nothing to write */
  if (lock->number != 0 && number != lock->number)
    report(lock, "it has changed since the grant", number);
  writing_t *writing = sim_alloc(sizeof *writing);
  writing->event.run = on_arrival;
  writing->world = world;
  writing->name = lock->name;
  writing->number = number;
  writing->ordinal = lock->ordinal;
  writing->floor = lock->floor;
  memcpy(writing->who, lock->base.who, sizeof writing->who);
  writing->token_len = len;
  memcpy(writing->token, token, len);
  belay__list_push(&world->check->writes, &writing->node);
  sim_event_set(world, &writing->event, sim_world_time(lock->base.process) + delay);
  return true;
}

void sim_register_fini(sim_check_t *check) {
  for (belay__list_t *node; (node = belay__list_pop(&check->writes)) != NULL;) {
    writing_t *writing = BELAY__CONTAINER(node, writing_t, node);
    sim_event_cancel(check->world, &writing->event);
    free(writing);
  }
}

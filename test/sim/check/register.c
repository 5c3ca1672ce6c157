/* Checkers: fencing numbers, and the resources that they guard: one for each name, which runs belay_fence_guard() on
 * every write that arrives, however late. */
#include <stdlib.h>
#include <string.h>

#include "sim/check/check_state.h"

/* ---- rules: fencing ------------------------------------------------------------------------------------- */

static bool was_told(const sim_name_t *name, uint64_t number) {
  for (unsigned i = 0; i < SIM_NUMBERS; i++)
    if (name->numbers[i] == number)
      return true;
  return false;
}

/* A number is larger than those of all earlier grants. For kinds with several holders: larger
 * than every number reported before the request, and unique. */
void sim_fence_granted(sim_watch_t *watch) {
  sim_world_t *world = watch->process->world;
  sim_check_t *check = world->check;
  sim_name_t *name = &check->name[watch->name];
  uint64_t number = belay_lock_fence(watch->lock);
  uint64_t floor = world->scenario->broken ? watch->floor_number : name->number;
  if (world->scenario->kind == SIM_RWLOCK && !watch->writer) /* beside others, told in any order */
    floor = watch->floor_number > name->written ? watch->floor_number : name->written;
  watch->number = number;
  if (number == 0 || number > BELAY__FENCE_MAX)
    sim_violation(world, "fencing: %s is told that it holds n%u with number %llu", watch->who,
                  watch->name, (unsigned long long)number);
  if (check->numbered && number <= floor)
    sim_violation(world, "fencing: %s gets %llu for n%u, where %llu was given before", watch->who,
                  (unsigned long long)number, watch->name, (unsigned long long)floor);
  if (check->numbered && was_told(name, number))
    sim_violation(world, "fencing: %s gets %llu for n%u, as somebody else has", watch->who,
                  (unsigned long long)number, watch->name);
  name->numbers[watch->ordinal % SIM_NUMBERS] = number;
  if (number > name->number)
    name->number = number;
  if (watch->writer && number > name->written)
    name->written = number;
}

/* Another hold of its owner's is believed in, and was when this one was asked for: both are of one ownership. */
static const sim_watch_t *find_other_hold(const sim_watch_t *watch) {
  const sim_seen_t *seen = &watch->process->world->check->seen[watch->process->index];
  uint64_t when = sim_world_time(watch->process);
  for (unsigned i = 0; i < SIM_ACTORS_MAX; i++) {
    const sim_watch_t *other = seen->watch[i];
    if (other != watch && sim_believes(other, when) && other->name == watch->name &&
        other->owner == watch->owner && other->granted_clock <= watch->called_clock)
      return other;
  }
  return NULL;
}

static bool is_last_owner(const sim_name_t *name, const sim_watch_t *watch) {
  return name->process == watch->process && name->life == watch->process->lives &&
         name->owner == watch->owner;
}

void sim_fence_entered(sim_watch_t *watch) {
  sim_world_t *world = watch->process->world;
  sim_name_t *name = &world->check->name[watch->name];
  uint64_t number = belay_lock_fence(watch->lock);
  const sim_watch_t *other = find_other_hold(watch);
  if (!world->scenario->broken && other != NULL && belay_lock_holds(watch->lock) < 2)
    sim_violation(world, "fencing: %s re-enters n%u, which %s holds, as the only one", watch->who,
                  watch->name, other->who);
  if (!world->scenario->fencing)
    return;
  watch->number = number;
  bool same = number == name->number && is_last_owner(name, watch);
  if (number == 0 || number > BELAY__FENCE_MAX)
    sim_violation(world, "fencing: %s is told that it holds n%u with number %llu", watch->who,
                  watch->name, (unsigned long long)number);
  if (other != NULL && other->number != 0 && number != other->number)
    sim_violation(world, "fencing: %s re-enters n%u with %llu, and %s has %llu", watch->who,
                  watch->name, (unsigned long long)number, other->who,
                  (unsigned long long)other->number);
  if (!same && number <= name->number)
    sim_violation(world, "fencing: %s gets %llu for n%u, where %llu was given before", watch->who,
                  (unsigned long long)number, watch->name, (unsigned long long)name->number);
  if (number <= watch->floor_over)
    sim_violation(world, "fencing: %s gets %llu for n%u, which was given back", watch->who,
                  (unsigned long long)number, watch->name);
  if (same)
    watch->ordinal = name->entered; /* all of an ownership write as one */
  name->entered = watch->ordinal;
  name->number = number;
  name->process = watch->process;
  name->life = watch->process->lives;
  name->owner = watch->owner;
}

/* Whether nothing of it can be on a server. */
static bool is_over(const sim_watch_t *watch) {
  return watch->lock == NULL || (sim_watch_is_idle(watch) && !watch->deaf);
}

/* An owner's number ends with its last hold, if no call is in flight. (Only without faults:
 * otherwise an unknown hold may exist.) */
void sim_fence_left(const sim_watch_t *watch) {
  sim_world_t *world = watch->process->world;
  sim_name_t *name = &world->check->name[watch->name];
  const sim_seen_t *seen = &world->check->seen[watch->process->index];
  const belay_client_t *client = watch->process->client[0];
  if (world->scenario->kind != SIM_REENTRANT || world->phase != SIM_CALM || client == NULL ||
      client->stats.undo_pending > 0 || !is_last_owner(name, watch))
    return;
  for (unsigned i = 0; i < SIM_ACTORS_MAX; i++) {
    const sim_watch_t *other = seen->watch[i];
    if (other != NULL && other != watch && other->name == watch->name &&
        other->owner == watch->owner && !is_over(other))
      return;
  }
  if (watch->number == name->number)
    name->over = name->number;
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

/* Writes of holders before the latest accepted one are refused. For kinds with several holders
 * only if the latest asked after the earlier hold. */
static void check_accepted(sim_world_t *world, sim_name_t *name, const writing_t *writing) {
  uint64_t over = world->scenario->broken ? name->excluded : name->accepted;
  bool stale = world->scenario->broken ? writing->ordinal <= over : writing->ordinal < over;
  if (stale && world->check->numbered)
    sim_violation(world,
                  "fencing: a write of %s's grant %llu of n%u with number %llu is accepted after "
                  "one of grant %llu",
                  writing->who, (unsigned long long)writing->ordinal, writing->name,
                  (unsigned long long)writing->number, (unsigned long long)name->accepted);
  if (writing->ordinal > name->accepted)
    name->accepted = writing->ordinal;
  if (writing->floor > name->excluded)
    name->excluded = writing->floor;
}

/* The newest number is never refused. */
static void check_refused(sim_world_t *world, const sim_name_t *name, const writing_t *writing) {
  if (writing->number > name->fence.number)
    sim_violation(world, "fencing: a write of %s to n%u with the newest number %llu is refused",
                  writing->who, writing->name, (unsigned long long)writing->number);
}

static void on_arrival(sim_event_t *event) {
  writing_t *writing = SIM_CONTAINER(event, writing_t, event);
  sim_world_t *world = writing->world;
  sim_name_t *name = &world->check->name[writing->name];
  uint64_t before = name->fence.number;
  int error = belay_fence_guard(&name->fence, writing->number,
                                belay_bytes(writing->token, writing->token_len));
  sim_note(world, "resource", "n%u: a write of %s with %llu: %s", writing->name, writing->who,
           (unsigned long long)writing->number, belay_err_name(error));
  if (error == 0 && writing->number < before)
    sim_violation(world, "fencing: n%u accepts %llu after %llu", writing->name,
                  (unsigned long long)writing->number, (unsigned long long)before);
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
  if (number == 0 || len == 0 || (world->scenario->kind == SIM_RWLOCK && !watch->writer))
    return false; /* it is over, or has nothing to write */
  if (watch->number != 0 && number != watch->number)
    sim_violation(world, "fencing: %s holds n%u with another number than it was granted",
                  watch->who, watch->name);
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

/* Actors: programs that use their lock in every way that is allowed, by chance. */
#include "sim/actors/actor.h"

#include <stdlib.h>

#include "belay/semaphore.h"
#include "sim/check/check_state.h"
#include "sim/actors/hand.h"
#include "sim/world/net.h"
#include "sim/scenarios/scenario.h"

/* The first of them happen soon after a process begins. */
#define FIRST_MS 5

struct sim_actor {
  sim_watch_t watch;   /* first */
  sim_alarm_t alarm;   /* the next thing to do */
  uint64_t hold_until; /* by the process's clock */
  bool resting;        /* nothing new is started */
  bool healing;        /* from now on only what has to be done to be served */
  bool cure;           /* the present acquire, or hold, is the one that has to succeed */
  bool cured;          /* it has */
  belay_request_t request;
  bool resizes; /* that is pending */
  bool resized; /* healing: the semaphore has all its permits again */
};

static sim_actor_t *actor_of(sim_watch_t *watch) {
  return (sim_actor_t *)watch;
}

static sim_random_t *random_of(sim_actor_t *actor) {
  return &actor->watch.process->world->random;
}

static const sim_scenario_t *scenario_of(const sim_actor_t *actor) {
  return actor->watch.process->world->scenario;
}

static bool chance(sim_actor_t *actor, unsigned per_mille) {
  return sim_chance(random_of(actor), per_mille);
}

static uint64_t between(sim_actor_t *actor, uint64_t min, uint64_t max) {
  return max > min ? sim_between(random_of(actor), min, max) : min;
}

static void later(sim_actor_t *actor, uint64_t ns) {
  if (!actor->resting)
    sim_alarm_set(&actor->alarm, ns);
}

/* After a while, as the scenario's programs think; one that is to be served hurries. */
static void think(sim_actor_t *actor) {
  uint64_t mean = scenario_of(actor)->think_ms * SIM_MS;
  if (actor->healing && actor->cured)
    sim_alarm_stop(&actor->alarm);
  else
    later(actor,
          actor->healing ? between(actor, 0, 5 * SIM_MS) : sim_around(random_of(actor), mean));
}

/* ---- handles -------------------------------------------------------------------------------------------- */

/* Connects where a client was closed, or could never be made. */
static bool connect_again(sim_process_t *process) {
  bool all = true;
  for (unsigned i = 0; i < process->clients; i++)
    if (process->client[i] == NULL && !sim_process_connect(process, i))
      all = false;
  return all;
}

static void make(sim_actor_t *actor) {
  sim_process_t *process = actor->watch.process;
  belay_lock_options_t options;
  sim_choose_options(&actor->watch, &options);
  unsigned name = (unsigned)sim_below(random_of(actor), scenario_of(actor)->names);
  if (connect_again(process) && sim_watch_make(&actor->watch, name, &options))
    think(actor);
  else
    later(actor, between(actor, SIM_MS, 20 * SIM_MS));
}

/* ---- clients -------------------------------------------------------------------------------------------- */

/* The handles that it took along are gone. */
static void on_client_closed(belay_client_t *client, void *data) {
  (void)data;
  sim_process_t *process = sim_process_of(belay_client_belay(client));
  sim_watch_client(client, -1);
  for (unsigned i = 0; process->actor != NULL && i < process->world->scenario->actors; i++)
    if (process->actor[i].watch.with == client)
      sim_watch_gone(&process->actor[i].watch);
}

/* Every lock is on all servers, so that all of the process's are closed with it. */
static void close_client(sim_actor_t *actor) {
  sim_process_t *process = actor->watch.process;
  unsigned server = (unsigned)sim_below(random_of(actor), process->clients);
  belay_client_t *client = process->client[server];
  if (client == NULL)
    return;
  sim_note(process->world, process->name, "closes its client of s%u", server);
  for (unsigned i = 0; i < process->world->scenario->actors; i++) {
    sim_watch_taken(&process->actor[i].watch, client);
    sim_alarm_stop(&process->actor[i].alarm);
    if (process->actor[i].watch.lock == NULL) /* it waits for nothing that will call back */
      think(&process->actor[i]);
  }
  process->client[server] = NULL;
  sim_watch_client(client, 1);
  (void)belay_client_close(client, on_client_closed);
}

/* ---- how many permits there are ------------------------------------------------------------------------- */

static void on_resized(belay_request_t *request, int status, const belay_semaphore_state_t *state) {
  sim_actor_t *actor = request->data;
  sim_process_t *process = actor->watch.process;
  unsigned limit = scenario_of(actor)->limit;
  process->world->check->seen[process->index].pings--;
  actor->resizes = false;
  if (status != 0)
    return;
  actor->resized = actor->healing && state->limit == limit;
  if (state->limit < 1 || state->limit > limit || state->used > limit)
    sim_violation(process->world, "truth: %s is told of %u permits of %u", actor->watch.who,
                  state->used, state->limit);
}

/* For all who use that name. */
static void resize(sim_actor_t *actor) {
  sim_watch_t *watch = &actor->watch;
  sim_process_t *process = watch->process;
  unsigned limit = scenario_of(actor)->limit;
  char name[16];
  int len = snprintf(name, sizeof name, "n%u", watch->name);
  if (actor->resizes || process->client[0] == NULL)
    return;
  if (!actor->healing)
    limit = (unsigned)between(actor, 1, limit);
  actor->request = (belay_request_t){.data = actor};
  int error = belay_semaphore_resize(process->client[0], &actor->request,
                                     belay_bytes(name, (size_t)len), limit, on_resized);
  if (error != 0)
    return;
  sim_note(process->world, watch->who, "resizes n%u to %u", watch->name, limit);
  actor->resizes = true;
  process->world->check->seen[process->index].pings++;
}

/* ---- what it does next ---------------------------------------------------------------------------------- */

static bool is_busy(const sim_actor_t *actor) {
  return actor->watch.op[SIM_ACQUIRE].pending || actor->watch.op[SIM_RELEASE].pending;
}

/* Asks for the lock; and decides when patience will be over. */
static void acquire(sim_actor_t *actor) {
  const sim_scenario_t *scenario = scenario_of(actor);
  sim_watch_t *watch = &actor->watch;
  int64_t wait_ms = 0;
  if (!actor->healing && actor->cure)
    actor->cure = false;
  if (actor->healing) {
    wait_ms = BELAY_FOREVER;
    actor->cure = true;
  } else if (chance(actor, 30)) {
    wait_ms = BELAY_FOREVER;
  } else if (scenario->wait_ms > 0 && chance(actor, 750)) {
    wait_ms = (int64_t)between(actor, 1, scenario->wait_ms);
  }
  if (sim_watch_acquire(watch, wait_ms) != 0) {
    think(actor); /* a release without a callback is still in progress */
    return;
  }
  if (actor->healing)
    return;
  if (wait_ms == BELAY_FOREVER)
    later(actor, between(actor, 0, 2 * scenario->wait_ms * SIM_MS));
  else if (chance(actor, 120))
    later(actor, sim_around(random_of(actor), scenario->wait_ms * SIM_MS / 4));
}

/* Does not want to wait any more. */
static void give_up(sim_actor_t *actor) {
  if (actor->healing)
    actor->cure = true; /* it waits for as long as it takes, or not for long */
  else if (chance(actor, 100))
    (void)sim_watch_close(&actor->watch);
  else
    (void)sim_watch_cancel(&actor->watch);
}

static int64_t some_timeout(sim_actor_t *actor) {
  return chance(actor, 700) ? BELAY_DEFAULT : (int64_t)between(actor, 1, 300);
}

/* Gives it back: mostly so that it hears of it, seldom by closing the handle. */
static void let_go(sim_actor_t *actor) {
  sim_watch_t *watch = &actor->watch;
  if (!actor->healing && chance(actor, 60)) {
    (void)sim_watch_close(watch);
    return;
  }
  bool deaf = !actor->healing && chance(actor, 40);
  if (sim_watch_release(watch, some_timeout(actor), deaf) == 0 && deaf)
    think(actor);
}

/* For longer, for as long again, for less. */
static void extend(sim_actor_t *actor) {
  sim_watch_t *watch = &actor->watch;
  const sim_scenario_t *scenario = scenario_of(actor);
  int64_t ttl_ms = watch->options.ttl_ms, most = 2 * scenario->ttl_max_ms;
  bool limited = scenario->max_ttl_ms > 0 && scenario->quarantine != BELAY_QUARANTINE_OFF;
  if (limited && most > scenario->max_ttl_ms)
    most = scenario->max_ttl_ms;
  if (chance(actor, 700))
    ttl_ms = (int64_t)between(actor, (uint64_t)(ttl_ms / 3 > 10 ? ttl_ms / 3 : 10), (uint64_t)most);
  (void)sim_watch_extend(watch, ttl_ms, some_timeout(actor), chance(actor, 60));
}

/* Arrives soon, or after the lock may have had other holders for long. */
static void write_late(sim_actor_t *actor) {
  sim_world_t *world = actor->watch.process->world;
  uint64_t delay = sim_net_delay(world);
  if (chance(actor, 300))
    delay += sim_around(random_of(actor), (uint64_t)scenario_of(actor)->ttl_max_ms * SIM_MS);
  (void)sim_watch_write(&actor->watch, delay);
}

/* It holds, and works. */
static void work(sim_actor_t *actor) {
  sim_watch_t *watch = &actor->watch;
  uint64_t now = sim_process_now(watch->process);
  if (scenario_of(actor)->fencing && chance(actor, 700))
    write_late(actor);
  unsigned extends = scenario_of(actor)->extends;
  if (!actor->healing && chance(actor, extends > 0 ? extends : 90))
    extend(actor);
  if (!actor->healing && scenario_of(actor)->kind == SIM_RWLOCK && chance(actor, 250))
    (void)sim_watch_turn(watch, some_timeout(actor));
  if (now >= actor->hold_until) {
    let_go(actor);
    return;
  }
  uint64_t rest = actor->hold_until - now;
  uint64_t step = sim_around(random_of(actor), scenario_of(actor)->hold_ms * SIM_MS / 3 + 1);
  later(actor, step < rest ? step : rest);
}

/* It was just granted: for how long will it be held? */
static void plan(sim_actor_t *actor) {
  sim_watch_t *watch = &actor->watch;
  uint64_t hold = sim_around(random_of(actor), scenario_of(actor)->hold_ms * SIM_MS);
  uint64_t ttl = (uint64_t)watch->options.ttl_ms * SIM_MS;
  bool ends =
      watch->options.watchdog != BELAY_WATCHDOG_ON || watch->options.max_hold_ms != BELAY_FOREVER;
  if (actor->healing)
    hold = between(actor, 0, 5 * SIM_MS);
  else if (ends && chance(actor, 120))
    hold = 4 * ttl; /* until it is lost */
  else if (chance(actor, 60))
    hold = between(actor, ttl, 3 * ttl); /* renewed, or lost */
  actor->hold_until = sim_process_now(watch->process) + hold;
}

static void act(sim_actor_t *actor) {
  sim_watch_t *watch = &actor->watch;
  if (chance(actor, 10))
    sim_watch_ping(watch->process, (unsigned)between(actor, 0, watch->process->clients - 1),
                   some_timeout(actor));
  bool resized = scenario_of(actor)->resized && watch->lock != NULL;
  if (resized && (actor->healing ? !actor->resized : chance(actor, 25)))
    resize(actor);
  if (watch->lock == NULL)
    make(actor);
  else if (watch->closing || watch->op[SIM_RELEASE].pending)
    return;
  else if (watch->op[SIM_ACQUIRE].pending)
    give_up(actor);
  else if (watch->held)
    work(actor);
  else if (actor->healing && actor->cured)
    return;
  else if (!actor->healing && chance(actor, 2))
    close_client(actor);
  else if (!actor->healing && chance(actor, 15))
    (void)sim_watch_close(watch);
  else
    acquire(actor);
}

static void on_alarm(sim_alarm_t *alarm) {
  sim_actor_t *actor = SIM_CONTAINER(alarm, sim_actor_t, alarm);
  if (!actor->resting)
    act(actor);
}

/* ---- what it is told ------------------------------------------------------------------------------------ */

/* Sometimes a callback takes long, seldom longer than a lease. */
static void stall(sim_actor_t *actor) {
  const sim_scenario_t *scenario = scenario_of(actor);
  sim_process_t *process = actor->watch.process;
  if (process->world->phase != SIM_STORM || !chance(actor, scenario->stalls))
    return;
  uint64_t most = 5 * SIM_MS;
  if (chance(actor, 150))
    most = (uint64_t)scenario->ttl_max_ms * SIM_MS * 3 / 2;
  sim_watch_stall(process, between(actor, 1, most));
}

/* In the callback itself, before anything else happens. Returns whether it did something. */
static bool act_at_once(sim_actor_t *actor) {
  sim_watch_t *watch = &actor->watch;
  if (actor->resting || actor->healing || watch->closing || watch->lock == NULL)
    return false;
  if (chance(actor, 12)) {
    (void)sim_watch_close(watch);
    return true;
  }
  if (!chance(actor, 120))
    return false;
  if (watch->held) {
    if (chance(actor, 300))
      extend(actor);
    if (chance(actor, 700)) {
      let_go(actor);
      return true;
    }
    return false;
  }
  if (is_busy(actor))
    return false;
  acquire(actor);
  return true;
}

/* The hold that had to succeed has, and is over. */
static void note_end(sim_actor_t *actor) {
  if (actor->cure)
    actor->cured = true;
  actor->cure = false;
}

static void after_acquire(sim_actor_t *actor, int status) {
  if (status == 0) {
    plan(actor);
    if (!act_at_once(actor) && !actor->watch.closing)
      later(actor, 0);
    return;
  }
  actor->cure = false;
  actor->resized &= status != BELAY_EMISMATCH; /* else one that was sent before came after it */
  if (!act_at_once(actor))
    think(actor);
}

/* Ends an operation of another actor, which may be about to be granted the lock. */
static void meddle(sim_actor_t *actor) {
  sim_process_t *process = actor->watch.process;
  sim_actor_t *other = &process->actor[sim_below(random_of(actor), scenario_of(actor)->actors)];
  if (other == actor || actor->healing || !other->watch.op[SIM_ACQUIRE].pending ||
      other->watch.closing || !chance(actor, 30))
    return;
  if (chance(actor, 300))
    (void)sim_watch_close(&other->watch);
  else
    (void)sim_watch_cancel(&other->watch);
}

static void on_told(sim_watch_t *watch, sim_op_t op, int status) {
  sim_actor_t *actor = actor_of(watch);
  meddle(actor);
  bool before = chance(actor, 500);
  if (before)
    stall(actor);
  switch (op) {
  case SIM_ACQUIRE:
    after_acquire(actor, status);
    break;
  case SIM_RELEASE:
    note_end(actor);
    if (!act_at_once(actor))
      think(actor);
    break;
  case SIM_EXTEND:
    if (status != 0 && watch->held && !actor->healing && !actor->resting && chance(actor, 500))
      extend(actor); /* again, by more or by less, while the first may still come */
    if (!is_busy(actor))
      (void)act_at_once(actor);
    break;
  case SIM_CLOSE:
    actor->cure = false;
    think(actor);
    break;
  case SIM_OPS:
    break;
  }
  if (!before)
    stall(actor);
}

static void on_lost(sim_watch_t *watch, belay_lost_t reason) {
  sim_actor_t *actor = actor_of(watch);
  (void)reason;
  stall(actor);
  note_end(actor);
  if (!act_at_once(actor) && !watch->closing)
    think(actor);
}

/* ---- all of a process ----------------------------------------------------------------------------------- */

static bool is_of_hands(const sim_process_t *process) {
  return process->world->scenario->kind >= SIM_MULTILOCK;
}

void sim_actors_start(sim_process_t *process) {
  if (is_of_hands(process)) {
    sim_hands_start(process);
    return;
  }
  unsigned n = process->world->scenario->actors;
  process->actor = sim_alloc(n * sizeof *process->actor);
  for (unsigned i = 0; i < n; i++) {
    sim_actor_t *actor = &process->actor[i];
    actor->watch.process = actor->alarm.process = process;
    actor->watch.index = i;
    actor->watch.told = on_told;
    actor->watch.lost = on_lost;
    actor->alarm.run = on_alarm;
    belay__list_init(&actor->alarm.node);
    sim_watch_begin(&actor->watch);
    later(actor, between(actor, 0, FIRST_MS * SIM_MS));
  }
}

void sim_actors_end(sim_process_t *process) {
  sim_hands_end(process);
  unsigned n = process->actor == NULL ? 0 : process->world->scenario->actors;
  for (unsigned i = 0; i < n; i++) {
    sim_alarm_stop(&process->actor[i].alarm);
    sim_watch_end(&process->actor[i].watch);
  }
  free(process->actor);
  process->actor = NULL;
}

void sim_actors_rest(sim_process_t *process) {
  for (unsigned i = 0; i < process->clients; i++)
    if (process->client[i] != NULL)
      sim_watch_client(process->client[i], 0);
  if (is_of_hands(process)) {
    sim_hands_rest(process);
    return;
  }
  for (unsigned i = 0; i < process->world->scenario->actors; i++) {
    sim_actor_t *actor = &process->actor[i];
    actor->resting = true;
    sim_alarm_stop(&actor->alarm);
    sim_watch_taken(&actor->watch, NULL);
  }
}

void sim_actors_heal(sim_process_t *process) {
  if (is_of_hands(process)) {
    sim_hands_heal(process);
    return;
  }
  for (unsigned i = 0; i < process->world->scenario->actors; i++) {
    sim_actor_t *actor = &process->actor[i];
    actor->healing = true;
    actor->hold_until = 0;
    later(actor, between(actor, 0, 5 * SIM_MS));
  }
}

bool sim_actors_served(const sim_process_t *process) {
  if (is_of_hands(process))
    return sim_hands_served(process);
  if (process->actor == NULL)
    return false;
  for (unsigned i = 0; i < process->world->scenario->actors; i++)
    if (!process->actor[i].cured)
      return false;
  return true;
}

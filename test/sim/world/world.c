#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

#include "sim/actors/actor.h"
#include "sim/check/check.h"
#include "sim/world/net.h"
#include "sim/orders/orders.h"
#include "sim/scenarios/outage.h"
#include "sim/world/process.h"
#include "sim/report.h"
#include "sim/scenarios/scenario.h"
#include "sim/world/server.h"

#define REGULARLY (50 * SIM_MS)
#define BIRTHS (5 * SIM_MS)         /* processes begin within this */
#define CLOSED_WITHIN (3 * SIM_S)   /* close_timeout, and some */
#define OVERSLEPT (10 * 60 * SIM_S) /* a run is shorter, or it does not end */

void *sim_alloc(size_t size) {
  void *ptr = calloc(1, size);
  if (ptr == NULL)
    abort();
  return ptr;
}

/* ---- what is to happen ---- */

static bool before(const sim_event_t *a, const sim_event_t *b) {
  return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void place(sim_world_t *world, size_t at, sim_event_t *event) {
  world->events[at] = event;
  event->slot = at + 1;
}

static void sift_up(sim_world_t *world, size_t at, sim_event_t *event) {
  while (at > 0 && before(event, world->events[(at - 1) / 2])) {
    place(world, at, world->events[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  place(world, at, event);
}

static void sift_down(sim_world_t *world, size_t at, sim_event_t *event) {
  for (size_t child; (child = 2 * at + 1) < world->events_len; at = child) {
    if (child + 1 < world->events_len && before(world->events[child + 1], world->events[child]))
      child++;
    if (!before(world->events[child], event))
      break;
    place(world, at, world->events[child]);
  }
  place(world, at, event);
}

void sim_event_cancel(sim_world_t *world, sim_event_t *event) {
  if (!sim_event_is_set(event))
    return;
  size_t at = event->slot - 1;
  event->slot = 0;
  sim_event_t *last = world->events[--world->events_len];
  if (last == event)
    return;
  if (at > 0 && before(last, world->events[(at - 1) / 2]))
    sift_up(world, at, last);
  else
    sift_down(world, at, last);
}

void sim_event_set(sim_world_t *world, sim_event_t *event, uint64_t at) {
  sim_event_cancel(world, event);
  if (world->events_len == world->events_cap) {
    world->events_cap = world->events_cap == 0 ? 256 : 2 * world->events_cap;
    world->events = realloc(world->events, world->events_cap * sizeof(sim_event_t *));
    if (world->events == NULL)
      abort();
  }
  event->at = at > world->now ? at : world->now;
  event->order = world->order++;
  sift_up(world, world->events_len++, event);
}

static sim_event_t *next_event(sim_world_t *world) {
  sim_event_t *event = world->events[0];
  sim_event_cancel(world, event);
  return event;
}

/* ---- what is said about it ---- */

void sim_write(sim_world_t *world, const char *who, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(world->timeline, "%12.6f  %-9s ", (double)world->now / 1e6, who);
  vfprintf(world->timeline, format, args);
  fputc('\n', world->timeline);
  va_end(args);
}

void sim_violation(sim_world_t *world, const char *format, ...) {
  if (world->failed)
    return;
  va_list args;
  va_start(args, format);
  char what[sizeof world->verdict - 32];
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  snprintf(world->verdict, sizeof world->verdict, "%s, at %.6f ms", what, (double)world->now / 1e6);
  world->failed = true;
  sim_note(world, "VIOLATION", "%s", world->verdict);
}

/* ---- phases ---- */

typedef struct world_run {
  sim_world_t world; /* first */
  sim_event_t phase, regular;
  uint64_t since; /* the present phase began */
} world_run_t;

static void enter_phase(sim_world_t *world, sim_phase_t phase) {
  static const char *const names[] = {"calm", "storm", "healed", "closing"};
  world->phase = phase;
  ((world_run_t *)world)->since = world->now;
  sim_note(world, "world", "---- %s", names[phase]);
}

static void heal(sim_world_t *world) {
  sim_faults_stop(world);
  enter_phase(world, SIM_HEALED);
  for (unsigned i = 0; i < world->scenario->processes; i++)
    if (world->process[i].life == SIM_UP)
      sim_actors_heal(&world->process[i]);
}

static void next_phase(sim_event_t *event) {
  sim_world_t *world = &SIM_CONTAINER(event, world_run_t, phase)->world;
  const sim_scenario_t *scenario = world->scenario;
  if (world->phase == SIM_CALM && scenario->storm_ms > 0) {
    enter_phase(world, SIM_STORM);
    sim_faults_start(world);
    sim_event_set(world, event, world->now + scenario->storm_ms * SIM_MS);
  } else {
    heal(world);
  }
}

static bool all_served(const sim_world_t *world) {
  for (unsigned i = 0; i < world->scenario->processes; i++)
    if (world->process[i].life != SIM_UP || !sim_actors_served(&world->process[i]))
      return false;
  return true;
}

static bool all_down(const sim_world_t *world) {
  for (unsigned i = 0; i < world->scenario->processes; i++)
    if (world->process[i].life != SIM_DOWN)
      return false;
  return true;
}

static void look_for_the_end(sim_world_t *world) {
  uint64_t took = world->now - ((world_run_t *)world)->since;
  if (world->phase == SIM_HEALED && all_served(world)) {
    world->figures.slowest_ns = took;
    enter_phase(world, SIM_CLOSING);
    for (unsigned i = 0; i < world->scenario->processes; i++)
      sim_process_close(&world->process[i]);
  } else if (world->phase == SIM_HEALED && took > world->scenario->served_ms * SIM_MS) {
    sim_violation(world, "liveness: an actor still waits %.0f ms after the faults stopped",
                  (double)took / 1e6);
  } else if (world->phase == SIM_CLOSING && took > CLOSED_WITHIN && !all_down(world)) {
    sim_violation(world, "liveness: something is not closed after %.0f ms", (double)took / 1e6);
  }
}

static void now_and_then(sim_event_t *event) {
  sim_world_t *world = &SIM_CONTAINER(event, world_run_t, regular)->world;
  sim_check_regularly(world);
  look_for_the_end(world);
  sim_event_set(world, event, world->now + (world->phase < SIM_HEALED ? REGULARLY : 5 * SIM_MS));
}

/* ---- a run ---- */

static uint64_t mix(const char *name, uint64_t seed) {
  uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
  for (; *name != '\0'; name++)
    hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
  return hash ^ (seed * UINT64_C(0x9e3779b97f4a7c15));
}

void sim_world_open(sim_world_t *world) {
  const sim_scenario_t *scenario = world->scenario;
  world->random.state = mix(scenario->name, world->seed);
  world->net = sim_alloc(sizeof *world->net);
  world->server = sim_alloc(scenario->servers * sizeof *world->server);
  world->process = sim_alloc(scenario->processes * sizeof *world->process);
  sim_net_init(world->net, world);
  sim_check_init(world);
  for (unsigned i = 0; i < scenario->servers; i++)
    sim_server_init(&world->server[i], world, i);
  for (unsigned i = 0; i < scenario->processes; i++)
    sim_process_init(&world->process[i], world, i);
}

static void begin(world_run_t *world_run) {
  sim_world_t *world = &world_run->world;
  const sim_scenario_t *scenario = world->scenario;
  sim_world_open(world);
  for (unsigned i = 0; i < scenario->processes; i++)
    sim_event_set(world, &world->process[i].birth, sim_below(&world->random, BIRTHS));
  world_run->phase.run = next_phase;
  world_run->regular.run = now_and_then;
  sim_event_set(world, &world_run->phase, scenario->calm_ms * SIM_MS);
  sim_event_set(world, &world_run->regular, REGULARLY);
}

bool sim_world_turn(sim_world_t *world, uint64_t until) {
  if (world->events_len == 0 || world->events[0]->at > until)
    return false;
  sim_event_t *event = next_event(world);
  world->now = event->at;
  event->run(event);
  return true;
}

/* Takes down what a violation left standing. */
void sim_world_close(sim_world_t *world) {
  for (unsigned i = 0; i < world->scenario->processes; i++)
    if (world->process[i].life != SIM_DOWN)
      sim_process_crash(&world->process[i]);
  sim_faults_stop(world);
  sim_check_fini(world);
  for (unsigned i = 0; i < world->scenario->servers; i++)
    sim_server_fini(&world->server[i]);
  sim_net_fini(world->net);
  free(world->net);
  free(world->server);
  free(world->process);
  free(world->events);
}

static void run_phases(world_run_t *world_run) {
  sim_world_t *world = &world_run->world;
  begin(world_run);
  enter_phase(world, SIM_CALM);
  while (!world->failed && !(world->phase == SIM_CLOSING && all_down(world))) {
    sim_world_turn(world, SIM_NEVER);
    if (world->now > OVERSLEPT)
      sim_violation(world, "liveness: the run does not end");
  }
  if (!world->failed)
    sim_check_end(world);
}

bool sim_run(const sim_scenario_t *scenario, uint64_t seed, FILE *timeline, sim_figures_t *figures,
             char *verdict, size_t verdict_size) {
  world_run_t world_run = {.world = {.scenario = scenario, .seed = seed, .timeline = timeline}};
  sim_world_t *world = &world_run.world;
  if (scenario->kind == SIM_ORDERS)
    return sim_orders_run(world, figures, verdict, verdict_size);
  if (scenario->kind == SIM_OUTAGE)
    sim_outage_run(world);
  else
    run_phases(&world_run);
  world->figures.runs = 1;
  world->figures.violations = world->failed;
  world->figures.virtual_ns = world->now;
  bool failed = world->failed;
  if (verdict != NULL)
    snprintf(verdict, verdict_size, "%s", world->verdict);
  sim_world_close(world);
  sim_figures_add(figures, &world->figures);
  return !failed;
}

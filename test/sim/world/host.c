/* The host on a simulated loop: the port's first half, and uv/host.h. */
#include "uv/host.h"

#include <string.h>

#include "sim/actors/actor.h"
#include "sim/check/check.h"
#include "sim/world/process.h"
#include "sim/scenarios/scenario.h"

#define PREEMPTED 2000 /* one in this many times */

typedef struct sim_host {
  belay__host_t base; /* first */
  sim_process_t *process;
} sim_host_t;

sim_process_t *sim_process_of(const belay_t *belay) {
  return ((const sim_host_t *)belay)->process;
}

/* ---- the port ---- */

/* The system may stop a process anywhere. Actors stall inside callbacks; this stalls where the
 * library reads its clock, while it processes input. */
static void preempt(sim_process_t *process) {
  sim_world_t *world = process->world;
  const sim_scenario_t *scenario = world->scenario;
  if (!process->belay->entered || process->telling || world->phase != SIM_STORM ||
      scenario->stalls == 0 || sim_below(&world->random, PREEMPTED) != 0)
    return;
  sim_stall(process, sim_between(&world->random, 1, (uint64_t)scenario->ttl_max_ms * SIM_MS));
}

static uint64_t host_now(belay_t *belay) {
  sim_process_t *process = sim_process_of(belay);
  preempt(process);
  return sim_process_now(process);
}

/* Counted from the beginning of 2024, with an offset of up to 100 ms that differs in each life
 * of a process: the clock may have been set between two lives. */
static int64_t host_wall_us(belay_t *belay) {
  const sim_process_t *process = sim_process_of(belay);
  int64_t off = (int64_t)(3 * process->lives + process->index) % 5 - 2;
  int64_t ms = INT64_C(1704067200000) + (int64_t)(process->world->now / SIM_MS) + 1000 + 50 * off;
  return ms * 1000;
}

static void host_wake_at(belay_t *belay, uint64_t when) {
  sim_process_t *process = sim_process_of(belay);
  if (when == BELAY__NEVER)
    sim_event_cancel(process->world, &process->alarm);
  else
    sim_event_set(process->world, &process->alarm, sim_clock_when(&process->clock, when));
}

static void host_wake_soon(belay_t *belay) {
  sim_process_t *process = sim_process_of(belay);
  process->soon = true;
  sim_process_wake(process);
}

static void host_before_sleep(belay_t *belay, belay__flush_t *flush) {
  if (!belay__list_empty(&flush->node))
    return;
  belay__list_push_front(&((belay__host_t *)belay)->flushes, &flush->node);
  sim_process_wake(sim_process_of(belay));
}

static void host_keep_alive(belay_t *belay, bool on) {
  sim_process_of(belay)->keeps_alive = on;
}

static int host_random(belay_t *belay, void *buffer, size_t len) {
  sim_random_t *random = &sim_process_of(belay)->world->random;
  unsigned char *out = buffer;
  for (size_t n; len > 0; out += n, len -= n) {
    uint64_t bits = sim_next(random);
    n = len < sizeof bits ? len : sizeof bits;
    memcpy(out, &bits, n);
  }
  return 0;
}

static bool host_forked(const belay_t *belay) {
  (void)belay;
  return false;
}

static bool host_dead(const belay_t *belay) {
  (void)belay;
  return false;
}

static void host_close(belay_t *belay) {
  sim_process_t *process = sim_process_of(belay);
  process->leaving = true;
  sim_process_wake(process);
}

static const belay__host_ops_t host_ops = {
    .now = host_now,
    .wall_us = host_wall_us,
    .wake_at = host_wake_at,
    .wake_soon = host_wake_soon,
    .before_sleep = host_before_sleep,
    .keep_alive = host_keep_alive,
    .random = host_random,
    .forked = host_forked,
    .dead = host_dead,
    .close = host_close,
};

/* ---- opening, turning, closing ---- */

int sim_host_open(sim_process_t *process, const belay_options_t *options) {
  sim_host_t *host = options->allocator.alloc(options->allocator.ctx, sizeof *host);
  if (host == NULL)
    return BELAY_ENOMEM;
  memset(host, 0, sizeof *host);
  belay__init(&host->base.base, &host_ops, options);
  belay__list_init(&host->base.flushes);
  belay__work_budget_init(&host->base.work_budget, &host->base.base, &host->base.turns);
  belay__connect_limiter_init(&host->base.connect_limiter, &host->base.base);
  host->process = process;
  process->host = &host->base;
  process->belay = &host->base.base;
  return 0;
}

void sim_host_flush(sim_process_t *process) {
  belay__host_t *host = process->host;
  if (process->leaving || belay__list_empty(&host->flushes) || !belay__enter(&host->base))
    return;
  for (belay__list_t *node; (node = belay__list_pop(&host->flushes)) != NULL;) {
    belay__flush_t *flush = BELAY__CONTAINER(node, belay__flush_t, node);
    flush->run(flush);
  }
  belay__leave(&host->base);
}

void sim_host_gone(sim_process_t *process) {
  sim_world_t *world = process->world;
  belay__host_closed(process->belay);
  sim_process_free(process, process->host);
  process->host = NULL;
  process->belay = NULL;
  process->leaving = process->soon = process->alarm_due = false;
  memset(process->client, 0, sizeof process->client);
  sim_event_cancel(world, &process->alarm);
  sim_note(world, process->name, "is closed");
  sim_actors_end(process);
  sim_check_closed(process);
}

void belay__host_flush_soon(belay__host_t *host, belay__flush_t *flush) {
  if (!belay__list_empty(&flush->node))
    return;
  belay__list_push(&host->flushes, &flush->node);
  sim_process_wake(sim_process_of(&host->base));
}

void belay__host_flush_cancel(belay__flush_t *flush) {
  belay__list_remove(&flush->node);
}

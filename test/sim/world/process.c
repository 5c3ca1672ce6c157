#include "sim/world/process.h"

#include <assert.h>
#include <hiredis/alloc.h>
#include <stdlib.h>
#include <string.h>

#include "sim/actors/actor.h"
#include "sim/check/check.h"
#include "sim/world/net.h"
#include "sim/scenarios/scenario.h"
#include "sim/world/server.h"

sim_process_t *sim_current;

/* ---- memory ---- */

typedef union block {
  struct {
    belay__list_t node;
    sim_process_t *process;
    size_t size;
  } of;
  max_align_t align;
} block_t;

void *sim_process_alloc(sim_process_t *process, size_t size) {
  if (process->fails > 0 && sim_chance(&process->world->random, process->fails)) {
    sim_count(process->world, SIM_ALLOCATION);
    return NULL;
  }
  block_t *block = malloc(sizeof *block + size);
  if (block == NULL)
    abort();
  block->of.process = process;
  block->of.size = size;
  belay__list_push(&process->blocks, &block->of.node);
  process->blocks_len++;
  return block + 1;
}

void sim_process_free(sim_process_t *process, void *ptr) {
  block_t *block = (block_t *)ptr - 1;
  assert(block->of.process == process);
  belay__list_remove(&block->of.node);
  process->blocks_len--;
  free(block);
}

/* hiredis's allocations belong to the present process. */
static void *alloc_hiredis(size_t size) {
  return sim_process_alloc(sim_current, size);
}

static void free_hiredis(void *ptr) {
  if (ptr != NULL)
    sim_process_free(((block_t *)ptr - 1)->of.process, ptr);
}

static void *calloc_hiredis(size_t n, size_t size) {
  void *ptr = alloc_hiredis(n * size);
  return ptr == NULL ? NULL : memset(ptr, 0, n * size);
}

static void *realloc_hiredis(void *old, size_t size) {
  void *ptr = alloc_hiredis(size);
  if (ptr == NULL || old == NULL)
    return ptr;
  size_t had = ((block_t *)old - 1)->of.size;
  memcpy(ptr, old, had < size ? had : size);
  free_hiredis(old);
  return ptr;
}

static char *strdup_hiredis(const char *text) {
  size_t size = strlen(text) + 1;
  char *ptr = alloc_hiredis(size);
  return ptr == NULL ? NULL : memcpy(ptr, text, size);
}

static void give_hiredis_memory(void) {
  hiredisAllocFuncs functions = {.mallocFn = alloc_hiredis,
                                 .callocFn = calloc_hiredis,
                                 .reallocFn = realloc_hiredis,
                                 .strdupFn = strdup_hiredis,
                                 .freeFn = free_hiredis};
  hiredisSetAllocators(&functions);
}

static void *alloc_belay(void *ctx, size_t size) {
  return sim_process_alloc(ctx, size);
}

static void free_belay(void *ctx, void *ptr) {
  sim_process_free(ctx, ptr);
}

static void drop_memory(sim_process_t *process) {
  for (belay__list_t *node; (node = belay__list_pop(&process->blocks)) != NULL;)
    free(BELAY__CONTAINER(node, block_t, of.node));
  process->blocks_len = 0;
}

/* ---- a turn of the loop ---- */

uint64_t sim_process_now(const sim_process_t *process) {
  return sim_clock_at(&process->clock, process->world->now + process->ahead);
}

static uint64_t earliest_turn(const sim_process_t *process) {
  uint64_t when = process->world->now;
  if (when < process->not_before)
    when = process->not_before;
  return when < process->paused_until ? process->paused_until : when;
}

void sim_process_wake(sim_process_t *process) {
  if (process->life == SIM_DOWN || process->turning || sim_event_is_set(&process->turn))
    return;
  sim_event_set(process->world, &process->turn, earliest_turn(process));
}

void sim_process_stall(sim_process_t *process, uint64_t ns) {
  assert(process->turning);
  process->ahead += ns;
  sim_note(process->world, process->name, "a callback takes %.3f ms", (double)ns / 1e6);
}

void sim_process_ready(sim_process_t *process, sim_ready_t *ready) {
  if (belay__list_empty(&ready->node))
    belay__list_push(&process->ready, &ready->node);
  sim_process_wake(process);
}

static size_t length(const belay__list_t *list) {
  size_t n = 0;
  for (const belay__list_t *i = list->next; i != list; i = i->next)
    n++;
  return n;
}

/* Runs due timers; those that become due meanwhile wait for the next turn. */
static void run_alarms(sim_process_t *process) {
  for (size_t n = length(&process->due); n > 0 && !belay__list_empty(&process->due); n--) {
    sim_alarm_t *alarm = BELAY__CONTAINER(belay__list_pop(&process->due), sim_alarm_t, node);
    alarm->run(alarm);
  }
}

static void run_idle(sim_process_t *process) {
  if (!process->soon || process->leaving)
    return;
  process->soon = false;
  if (belay__enter(process->belay))
    belay__leave(process->belay);
}

static void ring(sim_process_t *process) {
  process->alarm_due = false;
  if (process->leaving || !belay__enter(process->belay))
    return;
  belay__leave(process->belay);
}

/* In random order, because the kernel's order is arbitrary. */
static void poll(sim_process_t *process) {
  sim_random_t *random = &process->world->random;
  size_t n = length(&process->ready);
  size_t when = process->alarm_due ? sim_below(random, n + 1) : SIZE_MAX;
  for (size_t i = 0; i <= n; i++) {
    if (i == when)
      ring(process);
    if (i == n || belay__list_empty(&process->ready))
      continue;
    belay__list_t *node = process->ready.next;
    if (n > 1 && sim_chance(random, 500))
      node = process->ready.prev;
    belay__list_remove(node);
    sim_ready_t *ready = BELAY__CONTAINER(node, sim_ready_t, node);
    ready->run(ready);
  }
}

static bool has_more(const sim_process_t *process) {
  return process->soon || process->alarm_due || process->leaving ||
         !belay__list_empty(&process->due) || !belay__list_empty(&process->ready) ||
         !belay__list_empty(&process->closing) ||
         (process->host != NULL && !belay__list_empty(&process->host->flushes));
}

static void on_turn(sim_event_t *event) {
  sim_process_t *process = SIM_CONTAINER(event, sim_process_t, turn);
  sim_world_t *world = process->world;
  uint64_t when = earliest_turn(process);
  if (when > world->now) {
    sim_event_set(world, event, when);
    return;
  }
  sim_current = process;
  process->turning = true;
  run_alarms(process);
  run_idle(process);
  sim_host_flush(process);
  poll(process);
  process->host->turns++;
  sim_host_flush(process);
  sim_handles_closed(process);
  if (process->ahead > 0 && process->excused < world->now + process->ahead)
    process->excused = world->now + process->ahead;
  process->not_before = world->now + process->ahead + sim_between(&world->random, 1000, 8000);
  if (process->leaving && belay__list_empty(&process->closing))
    sim_host_gone(process);
  sim_check_turn(process);
  process->ahead = 0;
  process->turning = false;
  sim_current = NULL;
  if (process->life != SIM_DOWN && has_more(process))
    sim_process_wake(process);
}

static void on_alarm(sim_event_t *event) {
  sim_process_t *process = SIM_CONTAINER(event, sim_process_t, alarm);
  process->alarm_due = true;
  sim_process_wake(process);
}

/* ---- the program's own timers ---- */

static void on_own_alarm(sim_event_t *event) {
  sim_alarm_t *alarm = SIM_CONTAINER(event, sim_alarm_t, event);
  belay__list_push(&alarm->process->due, &alarm->node);
  sim_process_wake(alarm->process);
}

void sim_alarm_set(sim_alarm_t *alarm, uint64_t delay) {
  sim_process_t *process = alarm->process;
  sim_alarm_stop(alarm);
  alarm->event.run = on_own_alarm;
  uint64_t when = sim_clock_when(&process->clock, sim_process_now(process) + delay);
  sim_event_set(process->world, &alarm->event, when);
}

void sim_alarm_stop(sim_alarm_t *alarm) {
  sim_event_cancel(alarm->process->world, &alarm->event);
  if (alarm->node.next != NULL && !belay__list_empty(&alarm->node))
    belay__list_remove(&alarm->node);
  belay__list_init(&alarm->node);
}

/* ---- beginning and end ---- */

static void on_birth(sim_event_t *event) {
  sim_process_t *process = SIM_CONTAINER(event, sim_process_t, birth);
  if (process->life != SIM_DOWN || !sim_process_start(process))
    sim_event_set(process->world, event, process->world->now + 10 * SIM_MS);
}

void sim_process_init(sim_process_t *process, sim_world_t *world, unsigned index) {
  sim_random_t *random = &world->random;
  uint64_t drift = (uint64_t)world->scenario->drift;
  *process = (sim_process_t){.world = world,
                             .index = index,
                             .clients = world->scenario->servers,
                             .birth = {.run = on_birth},
                             .turn = {.run = on_turn},
                             .alarm = {.run = on_alarm}};
  snprintf(process->name, sizeof process->name, "p%u", index);
  process->clock.base = SIM_S * 1000 + sim_below(random, 1000000 * SIM_S);
  process->clock.rate = (int64_t)sim_between(random, 0, 2 * drift) - (int64_t)drift;
  if (process->clock.rate != 0)
    sim_count(world, SIM_DRIFT);
  belay__list_init(&process->due);
  belay__list_init(&process->ready);
  belay__list_init(&process->dials);
  belay__list_init(&process->closing);
  belay__list_init(&process->blocks);
  give_hiredis_memory();
}

static void set(int64_t *option, int64_t value) {
  if (value > 0)
    *option = value;
}

static void choose_options(const sim_scenario_t *scenario, belay_client_options_t *options) {
  set(&options->stall_timeout_ms, scenario->client.stall_ms);
  set(&options->idle_timeout_ms, scenario->client.idle_ms);
  set(&options->connect_timeout_ms, scenario->client.connect_ms);
  set(&options->close_timeout_ms, scenario->client.close_ms);
  options->on_full = scenario->client.on_full;
  if (scenario->client.max_pending > 0)
    options->max_pending = scenario->client.max_pending;
  if (scenario->links > 0)
    options->connections = scenario->links;
}

bool sim_process_connect(sim_process_t *process, unsigned server) {
  belay_client_options_t options;
  char url[16], owner[24];
  snprintf(url, sizeof url, "redis://s%u", server);
  snprintf(owner, sizeof owner, "p%u.%u", process->index, process->lives);
  belay_client_options_init(&options);
  options.owner = owner;
  choose_options(process->world->scenario, &options);
  int error = belay_connect(process->belay, url, &options, &process->client[server]);
  assert(error == 0 || error == BELAY_ENOMEM);
  return error == 0;
}

static void on_log(void *ctx, belay_log_level_t level, const char *message) {
  sim_process_t *process = ctx;
  (void)level;
  sim_check_logged(process, message);
  sim_note(process->world, process->name, "log: %s", message);
}

static bool open_belay(sim_process_t *process) {
  belay_options_t options;
  belay_options_init(&options);
  options.allocator = (belay_allocator_t){.alloc = alloc_belay, .free = free_belay, .ctx = process};
  options.log = on_log;
  options.log_ctx = process;
  if (sim_host_open(process, &options) != 0)
    return false;
  for (unsigned i = 0; i < process->clients; i++)
    if (!sim_process_connect(process, i))
      return false;
  return true;
}

/* Nothing of it is left. */
static void wipe(sim_process_t *process) {
  sim_world_t *world = process->world;
  sim_event_cancel(world, &process->turn);
  sim_event_cancel(world, &process->alarm);
  sim_dials_drop(process);
  drop_memory(process);
  belay__list_init(&process->due);
  belay__list_init(&process->ready);
  belay__list_init(&process->closing);
  memset(process->client, 0, sizeof process->client);
  process->host = NULL;
  process->belay = NULL;
  process->soon = process->alarm_due = process->leaving = process->keeps_alive = false;
  process->paused_until = process->not_before = process->ahead = 0;
  process->life = SIM_DOWN;
}

bool sim_process_start(sim_process_t *process) {
  sim_world_t *world = process->world;
  assert(process->life == SIM_DOWN);
  process->lives++;
  sim_current = process;
  bool ok = open_belay(process);
  sim_current = NULL;
  if (!ok) {
    wipe(process);
    return false;
  }
  process->life = SIM_UP;
  process->excused = world->now;
  sim_note(world, process->name, "starts");
  sim_actors_start(process);
  if (world->phase == SIM_HEALED)
    sim_actors_heal(process);
  return true;
}

void sim_process_pause(sim_process_t *process, uint64_t ns) {
  sim_world_t *world = process->world;
  uint64_t until = world->now + ns;
  if (process->life == SIM_DOWN || until <= process->paused_until)
    return;
  sim_note(world, process->name, "stands still for %.3f ms", (double)ns / 1e6);
  process->paused_until = until;
  if (process->excused < until)
    process->excused = until;
}

void sim_process_crash(sim_process_t *process) {
  sim_note(process->world, process->name, "crashes");
  sim_check_crashed(process);
  sim_actors_end(process);
  sim_net_t *net = process->world->net;
  for (belay__list_t *i = net->conns.next; i != &net->conns; i = i->next) {
    sim_conn_t *conn = BELAY__CONTAINER(i, sim_conn_t, node);
    if (conn->process == process)
      sim_conn_close_process(conn, true);
  }
  wipe(process);
}

static void on_closed(belay_t *belay, void *data) {
  (void)data;
  sim_process_of(belay)->life = SIM_DOWN;
}

void sim_process_close(sim_process_t *process) {
  if (process->life != SIM_UP)
    return;
  sim_note(process->world, process->name, "closes");
  process->life = SIM_ENDING;
  process->closes = sim_process_now(process);
  sim_current = process;
  sim_actors_stop(process);
  int error = belay_close(process->belay, on_closed);
  sim_current = NULL;
  assert(error == 0);
  (void)error;
}

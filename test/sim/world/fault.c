#include "sim/world/fault.h"

#include <stdlib.h>

#include "sim/world/net.h"
#include "sim/world/process.h"
#include "sim/scenarios/scenario.h"
#include "sim/world/server.h"

#define FAULT_NAME(name, text) #name,
#define FAULT_TEXT(name, text) text,
const char *const sim_fault_names[SIM_FAULTS] = {SIM_FAULTS_OF_SCHEDULE(FAULT_NAME)
                                                     SIM_FAULTS_BY_THEMSELVES(FAULT_NAME)};
const char *const sim_fault_texts[SIM_FAULTS] = {SIM_FAULTS_OF_SCHEDULE(FAULT_TEXT)
                                                     SIM_FAULTS_BY_THEMSELVES(FAULT_TEXT)};

typedef struct strike {
  sim_event_t event;
  sim_world_t *world;
  sim_fault_t fault;
} strike_t;

struct sim_strikes {
  strike_t strike[SIM_FAULTS_SCHEDULED];
  sim_event_t memory_back; /* allocations of `starved` succeed again */
  sim_process_t *starved;
};

/* ---- whom it strikes ---- */

static sim_process_t *any_process(sim_world_t *world) {
  return &world->process[sim_below(&world->random, world->scenario->processes)];
}

static sim_server_t *any_server(sim_world_t *world) {
  return &world->server[sim_below(&world->random, world->scenario->servers)];
}

/* One that both sides believe in; NULL if chance finds none. */
static sim_conn_t *any_conn(sim_world_t *world) {
  sim_conn_t *found = NULL;
  unsigned n = 0;
  for (belay__list_t *i = world->net->conns.next; i != &world->net->conns; i = i->next) {
    sim_conn_t *conn = BELAY__CONTAINER(i, sim_conn_t, node);
    if (conn->accepted && conn->process != NULL && sim_below(&world->random, ++n) == 0)
      found = conn;
  }
  return found;
}

/* A random time up to `ms`, usually much shorter. */
static uint64_t a_while(sim_world_t *world, uint64_t ms) {
  uint64_t most = ms * SIM_MS, ns = sim_around(&world->random, most / 4);
  return ns < most ? ns + 1 : most;
}

/* ---- strikes ---- */

static bool strike_conn(sim_world_t *world, sim_fault_t fault) {
  sim_conn_t *conn = any_conn(world);
  if (conn == NULL)
    return false;
  sim_note(world, conn->name, "%s", sim_fault_texts[fault]);
  if (fault == SIM_CUT_BEFORE || fault == SIM_CUT_AFTER)
    conn->doom = fault == SIM_CUT_BEFORE ? SIM_CUT_FIRST : SIM_CUT_THEN;
  else if (fault == SIM_REPLY_LOST)
    conn->pipe[SIM_TO_PROCESS].black_hole = true;
  else
    sim_conn_break(conn);
  return true;
}

/* CLIENT KILL TYPE pubsub: all of a server's. */
static bool strike_ears(sim_world_t *world) {
  const sim_server_t *server = any_server(world);
  bool any = false;
  for (belay__list_t *i = world->net->conns.next; i != &world->net->conns; i = i->next) {
    sim_conn_t *conn = BELAY__CONTAINER(i, sim_conn_t, node);
    if (conn->server != server || !conn->accepted || conn->engine.channels == 0)
      continue;
    any |= conn->process != NULL;
    sim_server_drop(conn->server, conn);
  }
  return any;
}

static bool strike_network(sim_world_t *world, sim_fault_t fault) {
  unsigned process = any_process(world)->index, server = any_server(world)->index;
  uint64_t ns = a_while(world, world->scenario->partition_ms);
  if (fault != SIM_PARTITION_DOWN)
    sim_net_partition(world->net, process, server, SIM_TO_SERVER, ns);
  if (fault != SIM_PARTITION_UP)
    sim_net_partition(world->net, process, server, SIM_TO_PROCESS, ns);
  return true;
}

static void on_memory_back(sim_event_t *event) {
  struct sim_strikes *strikes = SIM_CONTAINER(event, struct sim_strikes, memory_back);
  strikes->starved->fails = 0;
}

static void starve(sim_world_t *world, sim_process_t *process, uint64_t ns) {
  struct sim_strikes *strikes = world->strikes;
  if (sim_event_is_set(&strikes->memory_back))
    strikes->starved->fails = 0;
  strikes->starved = process;
  unsigned starvation = world->scenario->starvation;
  bool all = sim_chance(&world->random, starvation > 0 ? starvation : 300);
  process->fails = all ? 1000 : (unsigned)sim_between(&world->random, 10, 600);
  sim_note(world, process->name, "has no memory for %.3f ms", (double)ns / 1e6);
  sim_event_set(world, &strikes->memory_back, world->now + ns);
}

static bool strike_process(sim_world_t *world, sim_fault_t fault) {
  const sim_scenario_t *scenario = world->scenario;
  sim_process_t *process = any_process(world);
  if (process->life != SIM_UP)
    return false;
  if (fault == SIM_PAUSE) {
    sim_process_pause(process, a_while(world, scenario->pause_ms));
  } else if (fault == SIM_MEMORY) {
    starve(world, process, a_while(world, scenario->pause_ms));
  } else {
    if (fault == SIM_CRASH)
      sim_process_crash(process);
    else
      sim_process_close(process);
    sim_event_set(world, &process->birth, world->now + a_while(world, scenario->down_ms));
  }
  return true;
}

static const char *any_refusal(sim_world_t *world) {
  static const char *const refusals[] = {
      "-LOADING Redis is loading the dataset in memory\r\n",
      "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
      "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
      "-MISCONF Redis is configured to save RDB snapshots, but it's unable to persist to disk.\r\n",
      "-NOREPLICAS Not enough good replicas to write.\r\n",
      "-READONLY You can't write against a read only replica.\r\n",
      "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
      "-CLUSTERDOWN The cluster is down\r\n",
      "-MOVED 3999 127.0.0.1:6381\r\n",
      "-NOAUTH Authentication required.\r\n",
      "-NOPERM this user has no permissions to run the 'eval' command\r\n",
  };
  return refusals[sim_below(&world->random, sizeof refusals / sizeof *refusals)];
}

/* Only a minority of the servers is down at a time. */
static bool may_restart(const sim_world_t *world) {
  unsigned away = 0, servers = world->scenario->servers;
  for (unsigned i = 0; i < servers; i++)
    away += world->server[i].down;
  return servers == 1 || away < (servers - 1) / 2;
}

static bool restart(sim_world_t *world, sim_server_t *server, sim_restart_t how) {
  if (server->down || (how != SIM_UNSEEN && !may_restart(world)))
    return false;
  sim_server_restart(server, how, a_while(world, world->scenario->down_ms));
  return true;
}

typedef struct picked {
  sim_world_t *world;
  uint64_t seen;
  char key[96]; /* "": none */
} picked_t;

static void pick(void *ctx, engine_bytes_t key, const char *type, int64_t ttl_ms) {
  picked_t *picked = ctx;
  (void)type;
  (void)ttl_ms;
  if (sim_below(&picked->world->random, ++picked->seen) == 0 && key.len < sizeof picked->key)
    snprintf(picked->key, sizeof picked->key, "%.*s", (int)key.len, key.at);
}

/* Kinds with several holders or a queue have several keys. */
static void delete_any_key(sim_world_t *world, sim_server_t *server) {
  picked_t picked = {.world = world};
  (void)engine_each_key(server->engine, sim_server_clock(server), pick, &picked);
  const char *const words[] = {"DEL", picked.key};
  if (picked.key[0] != '\0')
    sim_server_command(server, words, 2);
}

static void delete_a_key(sim_world_t *world, sim_server_t *server) {
  char key[64];
  snprintf(key, sizeof key, "belay::lock::{n%u}%s",
           (unsigned)sim_below(&world->random, world->scenario->names),
           !world->scenario->counters_kept && sim_chance(&world->random, 300) ? "::fence" : "");
  const char *const words[] = {"DEL", key};
  sim_server_command(server, words, 2);
}

static bool strike_server(sim_world_t *world, sim_fault_t fault) {
  static const char *const script_flush[] = {"SCRIPT", "FLUSH"}, *const flushall[] = {"FLUSHALL"};
  const sim_scenario_t *scenario = world->scenario;
  sim_server_t *server = any_server(world);
  if (server->down)
    return false;
  switch (fault) {
  case SIM_NODE_PAUSE:
    sim_server_pause(server, a_while(world, scenario->pause_ms));
    return true;
  case SIM_NODE_SLOW:
    sim_server_slow(server, a_while(world, scenario->pause_ms));
    return true;
  case SIM_RESTART_KEPT:
    return restart(world, server, SIM_WITH_DATA);
  case SIM_RESTART_OLDER:
    return restart(world, server, SIM_WITH_OLDER_DATA);
  case SIM_RESTART_EMPTY:
    return restart(world, server, SIM_WITHOUT_DATA);
  case SIM_RESTART_UNSEEN:
    return restart(world, server, SIM_UNSEEN);
  case SIM_BEHIND:
    return sim_server_leave_behind(server, a_while(world, scenario->pause_ms));
  case SIM_FAILOVER:
    return restart(world, server, SIM_FROM_REPLICA);
  case SIM_SCRIPT_FLUSH:
    sim_server_command(server, script_flush, 2);
    return true;
  case SIM_REFUSING:
    sim_server_refuse(server, any_refusal(world), a_while(world, 200));
    return true;
  case SIM_CLOCK_STEP:
    sim_server_step_clock(server,
                          (int64_t)sim_between(&world->random, 0, 2 * scenario->step_ms * SIM_MS) -
                              (int64_t)(scenario->step_ms * SIM_MS));
    return true;
  case SIM_KEY_DELETED:
    if (scenario->kind == SIM_LOCK)
      delete_a_key(world, server);
    else
      delete_any_key(world, server);
    return true;
  case SIM_FLUSHALL:
    sim_server_command(server, flushall, 1);
    return true;
  default:
    return false;
  }
}

static bool strike(sim_world_t *world, sim_fault_t fault) {
  switch (fault) {
  case SIM_CUT_BEFORE:
  case SIM_CUT_AFTER:
  case SIM_CUT_HALF:
  case SIM_REPLY_LOST:
    return strike_conn(world, fault);
  case SIM_EARS_CUT:
    return strike_ears(world);
  case SIM_PARTITION_UP:
  case SIM_PARTITION_DOWN:
  case SIM_PARTITION_BOTH:
    return strike_network(world, fault);
  case SIM_PAUSE:
  case SIM_CRASH:
  case SIM_LEAVE:
  case SIM_MEMORY:
    return strike_process(world, fault);
  default:
    return strike_server(world, fault);
  }
}

static void set_next(strike_t *strike) {
  sim_world_t *world = strike->world;
  uint64_t mean = world->scenario->mean_ms[strike->fault] * SIM_MS;
  sim_event_set(world, &strike->event, world->now + 1 + sim_around(&world->random, 2 * mean));
}

static void on_strike(sim_event_t *event) {
  strike_t *self = SIM_CONTAINER(event, strike_t, event);
  if (strike(self->world, self->fault))
    sim_count(self->world, self->fault);
  set_next(self);
}

/* ---- the storm ---- */

void sim_faults_start(sim_world_t *world) {
  world->strikes = sim_alloc(sizeof *world->strikes);
  world->strikes->memory_back.run = on_memory_back;
  for (sim_fault_t i = 0; i < SIM_FAULTS_SCHEDULED; i++) {
    strike_t *self = &world->strikes->strike[i];
    *self = (strike_t){.event = {.run = on_strike}, .world = world, .fault = i};
    if (world->scenario->mean_ms[i] > 0)
      set_next(self);
  }
}

/* At once. */
static void due_now(sim_world_t *world, sim_event_t *event) {
  if (sim_event_is_set(event))
    sim_event_set(world, event, world->now);
}

static void mend_server(sim_world_t *world, sim_server_t *server) {
  server->slow_until = server->refusing_until = server->behind_until = 0;
  if (server->paused_until > world->now)
    server->paused_until = world->now;
  due_now(world, &server->up);
  due_now(world, &server->work);
}

static void mend_process(sim_world_t *world, sim_process_t *process) {
  process->fails = 0;
  if (process->paused_until > world->now)
    process->paused_until = process->excused = world->now;
  due_now(world, &process->birth);
  due_now(world, &process->turn);
}

void sim_faults_stop(sim_world_t *world) {
  if (world->strikes == NULL)
    return;
  for (sim_fault_t i = 0; i < SIM_FAULTS_SCHEDULED; i++)
    sim_event_cancel(world, &world->strikes->strike[i].event);
  sim_event_cancel(world, &world->strikes->memory_back);
  free(world->strikes);
  world->strikes = NULL;
  sim_net_heal(world->net);
  for (unsigned i = 0; i < world->scenario->servers; i++)
    mend_server(world, &world->server[i]);
  for (unsigned i = 0; i < world->scenario->processes; i++)
    mend_process(world, &world->process[i]);
}

/* Very many clients in few processes lose their only server for a minute, and all have requests.
 *
 *    connected --the server is away for AWAY_S--> retrying --it is back--> answered
 *
 *    attempts   after the loss no process begins more connection attempts per second than 1.2
 *               times its reconnects_per_s, for any number of clients
 *    liveness   all clients are answered soon after the server is back: within reconnect_max_ms
 *               and the time of all attempts at that rate */
#include "sim/scenarios/outage.h"

#include <stdlib.h>

#include "sim/world/net.h"
#include "sim/world/process.h"
#include "sim/scenarios/scenario.h"
#include "sim/world/server.h"

#define AWAY_S 60
#define PER_S 200 /* reconnects_per_s, by default */
#define PATIENCE_MS 600000

typedef struct many_clients {
  sim_world_t *world;
  unsigned clients, answered;
  belay_client_t **client; /* of all processes, one after the other */
} many_clients_t;

static many_clients_t *current;

static void on_pong(belay_client_t *client, int status) {
  (void)client;
  if (status != 0)
    sim_violation(current->world, "liveness: a ping ends with %s", belay_err_name(status));
  current->answered++;
}

static void connect_all(many_clients_t *many, sim_process_t *process) {
  unsigned n = many->world->scenario->clients;
  belay_client_t **client = &many->client[process->index * n];
  (void)sim_process_start(process);
  sim_current = process;
  client[0] = process->client[0];
  for (unsigned i = 1; i < n; i++)
    if (belay_connect(process->belay, "redis://s0", NULL, &client[i]) != 0)
      abort();
  sim_current = NULL;
}

static void ask_all(many_clients_t *many) {
  unsigned n = many->world->scenario->clients;
  many->answered = 0;
  for (unsigned i = 0; i < many->clients; i++) {
    sim_current = &many->world->process[i / n];
    if (belay_client_ping(many->client[i], PATIENCE_MS, on_pong) != 0)
      abort();
    sim_current = NULL;
  }
}

/* Runs until all are answered, or for this time. */
static void run_for(many_clients_t *many, uint64_t ns) {
  sim_world_t *world = many->world;
  uint64_t until = world->now + ns;
  while (!world->failed && many->answered < many->clients && sim_world_turn(world, until))
    continue;
}

static void expect_all_answered(many_clients_t *many) {
  if (many->answered < many->clients)
    sim_violation(many->world, "liveness: %u of %u clients are not answered",
                  many->clients - many->answered, many->clients);
}

static void expect_few_attempts(many_clients_t *many) {
  sim_world_t *world = many->world;
  unsigned most = 0;
  for (unsigned i = 0; i < world->scenario->processes; i++)
    if (world->process[i].attempts_most > most)
      most = world->process[i].attempts_most;
  sim_note(world, "outage", "at most %u attempts of a process in a second", most);
  if (most > PER_S * 6 / 5)
    sim_violation(world, "attempts: a process begins %u in a second, and not at most %d", most,
                  PER_S * 6 / 5);
}

static void lose_server(many_clients_t *many) {
  sim_world_t *world = many->world;
  uint64_t back = world->now + AWAY_S * SIM_S;
  uint64_t turns = world->scenario->clients / PER_S + 1;
  sim_server_restart(&world->server[0], SIM_WITH_DATA, AWAY_S * SIM_S);
  while (!world->failed && sim_world_turn(world, world->now + SIM_S / 100))
    continue; /* each has noticed */
  for (unsigned i = 0; i < world->scenario->processes; i++)
    world->process[i].attempts_most = world->process[i].attempts = 0;
  ask_all(many);
  run_for(many, back - world->now);
  if (many->answered > 0)
    sim_violation(world, "liveness: a server that is away answers");
  run_for(many, (4 + 2 * turns) * SIM_S);
  sim_note(world, "outage", "%u clients are answered %.0f ms after the server is back",
           many->answered, (double)(world->now - back) / 1e6);
  expect_all_answered(many);
  expect_few_attempts(many);
}

static void close_all(many_clients_t *many) {
  sim_world_t *world = many->world;
  uint64_t until = world->now + 5 * SIM_S;
  for (unsigned i = 0; i < world->scenario->processes && !world->failed; i++)
    sim_process_close(&world->process[i]);
  while (!world->failed && sim_world_turn(world, until))
    continue;
  for (unsigned i = 0; i < world->scenario->processes; i++)
    if (world->process[i].life != SIM_DOWN)
      sim_violation(world, "liveness: a process is not closed");
}

void sim_outage_run(sim_world_t *world) {
  many_clients_t many = {.world = world};
  current = &many;
  sim_world_open(world);
  many.clients = world->scenario->processes * world->scenario->clients;
  many.client = sim_alloc(many.clients * sizeof *many.client);
  for (unsigned i = 0; i < world->scenario->processes; i++)
    connect_all(&many, &world->process[i]);
  ask_all(&many);
  run_for(&many, 60 * SIM_S);
  expect_all_answered(&many);
  if (!world->failed)
    lose_server(&many);
  close_all(&many);
  free(many.client);
}

/* Dialing on the simulated network: redis/net/dial.h.
 *
 *   start --the attempt reaches the server's host--> refused, if the server is down
 *                                                --> connected --the loop looks--> reported
 *
 * While nothing gets through, the attempt is repeated, as TCP does, until it is canceled. */
#include "redis/net/dial.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/world/net.h"
#include "sim/world/process.h"
#include "sim/scenarios/scenario.h"
#include "sim/world/server.h"

#define AGAIN_MS 200 /* between two attempts to get through */

typedef struct attempt {
  belay__list_t node; /* in process->dials */
  sim_process_t *process;
  sim_server_t *server;
  belay__dial_t *dial; /* NULL: nobody waits */
  sim_conn_t *conn;    /* NULL: not connected */
  sim_event_t arrival;
  sim_ready_t ready;
} attempt_t;

static void drop(attempt_t *attempt) {
  sim_event_cancel(attempt->process->world, &attempt->arrival);
  belay__list_remove(&attempt->ready.node);
  belay__list_remove(&attempt->node);
  if (attempt->dial != NULL)
    attempt->dial->request.data = NULL;
  free(attempt);
}

void sim_dials_drop(sim_process_t *process) {
  while (!belay__list_empty(&process->dials)) {
    attempt_t *attempt = BELAY__CONTAINER(process->dials.next, attempt_t, node);
    attempt->dial = NULL; /* its memory is about to go */
    drop(attempt);
  }
}

/* ---- handles ---- */

void belay__dial_close_handle(belay__dial_t *dial, belay__uv_handle_t *handle) {
  sim_process_t *process = sim_process_of(&dial->host->base);
  sim_handle_t *own = (sim_handle_t *)handle;
  handle->data = dial;
  own->is_closing = true;
  if (own->conn != NULL)
    own->conn->events = 0;
  belay__list_push(&process->closing, &own->node);
  sim_process_wake(process);
}

void sim_handles_closed(sim_process_t *process) {
  for (belay__list_t *node; (node = belay__list_pop(&process->closing)) != NULL;) {
    sim_handle_t *own = BELAY__CONTAINER(node, sim_handle_t, node);
    belay__dial_t *dial = own->base.data;
    if (own->conn != NULL)
      own->conn->handle = NULL;
    belay__free(process->belay, own, sizeof *own);
    --*dial->handles;
    dial->on_released(dial);
  }
}

static belay__uv_handle_t *new_handle(belay__dial_t *dial, sim_conn_t *conn) {
  sim_handle_t *own = belay__alloc(&dial->host->base, sizeof *own);
  if (own == NULL)
    return NULL;
  *own = (sim_handle_t){.conn = conn};
  belay__list_init(&own->node);
  conn->handle = &own->base;
  ++*dial->handles;
  return &own->base;
}

/* ---- an attempt ---- */

/* The loop sees what has become of it. */
static void notify_owner(sim_ready_t *ready) {
  attempt_t *attempt = SIM_CONTAINER(ready, attempt_t, ready);
  belay__dial_t *dial = attempt->dial;
  sim_conn_t *conn = attempt->conn;
  belay_t *belay = &dial->host->base;
  if (!belay__enter(belay))
    return;
  if (dial->request.data == attempt) { /* else a timer has just given it up, and it is gone */
    drop(attempt);
    belay__uv_handle_t *handle = conn == NULL ? NULL : new_handle(dial, conn);
    if (conn != NULL && handle == NULL)
      sim_conn_close_process(conn, false);
    dial->active = false;
    dial->system_error = handle == NULL ? UV_ECONNREFUSED : 0;
    dial->cb(dial, handle == NULL ? BELAY_EUNREACHABLE : 0, handle == NULL ? -1 : conn->fd, handle);
  }
  belay__leave(belay);
}

static void on_arrival(sim_event_t *event) {
  attempt_t *attempt = SIM_CONTAINER(event, attempt_t, arrival);
  sim_process_t *process = attempt->process;
  sim_world_t *world = process->world;
  sim_net_t *net = world->net;
  for (sim_way_t way = 0; way < SIM_WAYS; way++)
    if (sim_net_blocked(net, process, attempt->server, way) > world->now) {
      sim_event_set(world, event, world->now + sim_between(&world->random, 1, AGAIN_MS) * SIM_MS);
      return;
    }
  if (!attempt->server->down)
    attempt->conn = sim_net_connect(net, process, attempt->server);
  sim_process_ready(process, &attempt->ready);
}

void belay__dial_init(belay__dial_t *dial, belay__host_t *host, const belay__target_t *target,
                      size_t *handles, belay__dial_cb cb,
                      void (*on_released)(belay__dial_t *dial)) {
  *dial = (belay__dial_t){.host = host,
                          .target = target,
                          .handles = handles,
                          .cb = cb,
                          .on_released = on_released,
                          .fd = -1};
}

static void count_attempt(sim_process_t *process) {
  uint64_t second = process->world->now / SIM_S;
  if (process->attempts_at != second)
    process->attempts = 0;
  process->attempts_at = second;
  if (++process->attempts > process->attempts_most)
    process->attempts_most = process->attempts;
}

void belay__dial_start(belay__dial_t *dial, uint64_t deadline) {
  sim_process_t *process = sim_process_of(&dial->host->base);
  sim_world_t *world = process->world;
  unsigned server = (unsigned)strtoul(dial->target->place.host + 1, NULL, 10);
  assert(!dial->active && server < world->scenario->servers);
  count_attempt(process);
  attempt_t *attempt = sim_alloc(sizeof *attempt);
  attempt->process = process;
  attempt->server = &world->server[server];
  attempt->dial = dial;
  attempt->arrival.run = on_arrival;
  attempt->ready.run = notify_owner;
  belay__list_init(&attempt->ready.node);
  belay__list_push(&process->dials, &attempt->node);
  dial->active = true;
  dial->deadline = deadline;
  dial->request.data = attempt;
  sim_event_set(world, &attempt->arrival,
                world->now + process->ahead + sim_net_delay(world) + sim_net_delay(world));
}

void belay__dial_cancel(belay__dial_t *dial) {
  attempt_t *attempt = dial->active ? dial->request.data : NULL;
  dial->active = false;
  if (attempt == NULL)
    return;
  if (attempt->conn != NULL)
    sim_conn_close_process(attempt->conn, false);
  drop(attempt);
}

int belay__dial_expire(belay__dial_t *dial) {
  belay__dial_cancel(dial);
  return BELAY_EUNREACHABLE;
}

void belay__dial_close(belay__dial_t *dial) {
  belay__dial_cancel(dial);
}

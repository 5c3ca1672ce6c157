#include "sim/world/net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenarios/scenario.h"
#include "sim/world/server.h"

#define LONG_DELAY (20 * SIM_MS) /* counted as a fault */
#define RETRANSMITTED_MS 200     /* longest delay of held bytes after the network recovers */

static void on_arrival(sim_event_t *event);

void sim_net_init(sim_net_t *net, sim_world_t *world) {
  net->world = world;
  belay__list_init(&net->conns);
}

/* ---- ways ---- */

uint64_t sim_net_delay(sim_world_t *world) {
  const sim_scenario_t *scenario = world->scenario;
  uint64_t delay = sim_between(&world->random, 20 * SIM_US, 150 * SIM_US);
  if (world->phase != SIM_STORM || scenario->delays == 0 ||
      !sim_chance(&world->random, scenario->delays))
    return delay;
  delay = sim_below(&world->random, sim_around(&world->random, scenario->delay_ms * SIM_MS) + 1);
  if (delay > scenario->delay_ms * SIM_MS)
    delay = scenario->delay_ms * SIM_MS;
  if (delay >= LONG_DELAY)
    sim_count(world, SIM_DELAY);
  return delay;
}

uint64_t sim_net_blocked(const sim_net_t *net, const sim_process_t *process,
                         const sim_server_t *server, sim_way_t way) {
  uint64_t until = net->blocked[process->index][server->index][way];
  return until > net->world->now ? until : 0;
}

void sim_net_partition(sim_net_t *net, unsigned process, unsigned server, sim_way_t way,
                       uint64_t ns) {
  uint64_t *until = &net->blocked[process][server][way];
  if (net->world->now + ns > *until)
    *until = net->world->now + ns;
  sim_note(net->world, "network", "nothing gets from %c%u to %c%u for %.3f ms",
           way == SIM_TO_SERVER ? 'p' : 's', way == SIM_TO_SERVER ? process : server,
           way == SIM_TO_SERVER ? 's' : 'p', way == SIM_TO_SERVER ? server : process,
           (double)ns / 1e6);
}

/* ---- connections ---- */

sim_conn_t *sim_net_connect(sim_net_t *net, sim_process_t *process, sim_server_t *server) {
  sim_conn_t *conn = sim_alloc(sizeof *conn);
  conn->world = net->world;
  conn->number = ++net->numbers;
  snprintf(conn->name, sizeof conn->name, "%s-%s#%u", process->name, server->name, conn->number);
  conn->process = process;
  conn->process_index = process->index;
  conn->server = server;
  for (sim_way_t way = 0; way < SIM_WAYS; way++)
    conn->pipe[way] = (sim_pipe_t){.conn = conn, .way = way, .arrival = {.run = on_arrival}};
  belay__list_init(&conn->ready.node);
  belay__list_init(&conn->waiting);
  conn->accepted = true;
  conn->engine.id = conn->number;
  conn->engine.owner = conn;
  conn->fd = SIM_FD_FIRST + (int)conn->number;
  if (net->fds <= conn->number) {
    net->fds = 2 * (size_t)conn->number + 64;
    net->by_fd = realloc(net->by_fd, net->fds * sizeof(sim_conn_t *));
    if (net->by_fd == NULL)
      abort();
  }
  net->by_fd[conn->number] = conn;
  belay__list_push(&net->conns, &conn->node);
  net->conns_len++;
  sim_note(net->world, conn->name, "connected");
  return conn;
}

sim_conn_t *sim_net_conn(sim_net_t *net, int fd) {
  unsigned number = (unsigned)(fd - SIM_FD_FIRST);
  assert(number >= 1 && number <= net->numbers);
  return net->by_fd[number];
}

/* ---- bytes on their way ---- */

static void drop_segments(sim_pipe_t *pipe) {
  sim_world_t *world = pipe->conn->world;
  sim_event_cancel(world, &pipe->arrival);
  for (sim_segment_t *next; pipe->first != NULL; pipe->first = next) {
    next = pipe->first->next;
    if (pipe->way == SIM_TO_SERVER && !pipe->first->end)
      sim_count(world, SIM_LOST_INPUT);
    free(pipe->first);
  }
  pipe->last = NULL;
}

static void add_segment(sim_pipe_t *pipe, uint64_t when, const char *at, size_t len, bool end) {
  sim_world_t *world = pipe->conn->world;
  if (pipe->black_hole || pipe->ended)
    return;
  pipe->ended = end;
  sim_segment_t *segment = malloc(sizeof *segment + len);
  if (segment == NULL)
    abort();
  *segment = (sim_segment_t){.sent = when, .len = len, .end = end};
  if (len > 0)
    memcpy(segment->bytes, at, len);
  segment->held = world->answering && pipe->way == SIM_TO_PROCESS;
  segment->arrives = when + sim_net_delay(world);
  if (pipe->last != NULL && segment->arrives < pipe->last->arrives)
    segment->arrives = pipe->last->arrives;
  if (pipe->last != NULL)
    pipe->last->next = segment;
  else
    pipe->first = segment;
  pipe->last = segment;
  if (pipe->first == segment)
    sim_event_set(world, &pipe->arrival, segment->arrives);
}

void sim_conn_send(sim_conn_t *conn, sim_way_t way, const char *at, size_t len) {
  uint64_t when = conn->world->now;
  if (way == SIM_TO_SERVER)
    when += conn->process->ahead;
  add_segment(&conn->pipe[way], when, at, len, false);
}

bool sim_conn_has_answer(const sim_conn_t *conn) {
  const sim_segment_t *first = conn->pipe[SIM_TO_PROCESS].first;
  return conn->process != NULL && first != NULL && first->held;
}

void sim_conn_let_answer(sim_conn_t *conn) {
  sim_pipe_t *pipe = &conn->pipe[SIM_TO_PROCESS];
  pipe->first->held = false;
  sim_event_set(conn->world, &pipe->arrival, pipe->first->arrives);
}

void sim_net_let_all(sim_net_t *net) {
  for (belay__list_t *i = net->conns.next; i != &net->conns; i = i->next) {
    sim_pipe_t *pipe = &BELAY__CONTAINER(i, sim_conn_t, node)->pipe[SIM_TO_PROCESS];
    for (sim_segment_t *segment = pipe->first; segment != NULL; segment = segment->next)
      segment->held = false;
    if (pipe->first != NULL)
      sim_event_set(net->world, &pipe->arrival, pipe->first->arrives);
  }
}

static void arrive_at_process(sim_conn_t *conn, const sim_segment_t *segment) {
  if (conn->process == NULL)
    return;
  if (segment->end)
    conn->in_end = true;
  else
    engine_buffer_add(&conn->in, segment->bytes, segment->len);
  if (conn->events != 0)
    sim_process_ready(conn->process, &conn->ready);
}

static void on_arrival(sim_event_t *event) {
  sim_pipe_t *pipe = SIM_CONTAINER(event, sim_pipe_t, arrival);
  sim_conn_t *conn = pipe->conn;
  sim_world_t *world = conn->world;
  if (pipe->first->held)
    return;
  uint64_t until = world->net->blocked[conn->process_index][conn->server->index][pipe->way];
  if (until > world->now) {
    until += sim_between(&world->random, 0, RETRANSMITTED_MS) * SIM_MS;
    sim_event_set(world, event, until);
    return;
  }
  sim_segment_t *segment = pipe->first;
  pipe->first = segment->next;
  if (pipe->first == NULL)
    pipe->last = NULL;
  else
    sim_event_set(world, event, pipe->first->arrives);
  conn->input_sent = pipe->way == SIM_TO_SERVER ? segment->sent : conn->input_sent;
  if (pipe->way == SIM_TO_PROCESS)
    arrive_at_process(conn, segment);
  else if (segment->end)
    sim_server_hang_up(conn->server, conn);
  else
    sim_server_receive(conn->server, conn, segment->bytes, segment->len);
  free(segment);
}

/* ---- ends ---- */

void sim_conn_close_process(sim_conn_t *conn, bool linger) {
  sim_world_t *world = conn->world;
  sim_process_t *process = conn->process;
  sim_pipe_t *up = &conn->pipe[SIM_TO_SERVER];
  if (process == NULL)
    return;
  sim_note(world, conn->name, "closed by the process%s",
           linger && up->first != NULL ? ", bytes still on their way" : "");
  uint64_t when = world->now + process->ahead;
  conn->process = NULL;
  conn->events = 0;
  belay__list_remove(&conn->ready.node);
  engine_buffer_free(&conn->in);
  drop_segments(&conn->pipe[SIM_TO_PROCESS]);
  if (!linger && !conn->lingers) {
    drop_segments(up);
  } else if (up->first != NULL && world->scenario->ghost_ms > 0) {
    uint64_t late = when + sim_between(&world->random, 0, world->scenario->ghost_ms) * SIM_MS;
    for (sim_segment_t *segment = up->first; segment != NULL; segment = segment->next)
      segment->arrives = late;
    sim_event_set(world, &up->arrival, late);
  }
  add_segment(up, when, NULL, 0, true);
}

void sim_conn_close_server(sim_conn_t *conn) {
  if (!conn->accepted)
    return;
  sim_note(conn->world, conn->name, "closed by the server");
  conn->accepted = conn->blocked = false;
  sim_event_cancel(conn->world, &conn->unblocked);
  belay__list_remove(&conn->waiting);
  engine_buffer_free(&conn->input);
  conn->input_done = 0;
  drop_segments(&conn->pipe[SIM_TO_SERVER]);
  add_segment(&conn->pipe[SIM_TO_PROCESS], conn->world->now, NULL, 0, true);
}

void sim_conn_cut(sim_conn_t *conn) {
  sim_note(conn->world, conn->name, "is cut");
  for (sim_way_t way = 0; way < SIM_WAYS; way++)
    drop_segments(&conn->pipe[way]);
  conn->pipe[SIM_TO_PROCESS].black_hole = conn->pipe[SIM_TO_PROCESS].ended = false;
  if (conn->accepted)
    sim_server_drop(conn->server, conn);
  if (conn->process != NULL)
    add_segment(&conn->pipe[SIM_TO_PROCESS], conn->world->now, NULL, 0, true);
}

void sim_conn_break(sim_conn_t *conn) {
  drop_segments(&conn->pipe[SIM_TO_PROCESS]);
  conn->lingers = true;
  add_segment(&conn->pipe[SIM_TO_PROCESS], conn->world->now, NULL, 0, true);
}

void sim_net_heal(sim_net_t *net) {
  memset(net->blocked, 0, sizeof net->blocked);
  for (belay__list_t *i = net->conns.next; i != &net->conns; i = i->next) {
    sim_conn_t *conn = BELAY__CONTAINER(i, sim_conn_t, node);
    if (conn->pipe[SIM_TO_PROCESS].black_hole)
      sim_conn_cut(conn);
    conn->doom = SIM_SPARED;
  }
}

void sim_net_fini(sim_net_t *net) {
  for (belay__list_t *node; (node = belay__list_pop(&net->conns)) != NULL;) {
    sim_conn_t *conn = BELAY__CONTAINER(node, sim_conn_t, node);
    for (sim_way_t way = 0; way < SIM_WAYS; way++)
      drop_segments(&conn->pipe[way]);
    sim_event_cancel(net->world, &conn->unblocked);
    engine_buffer_free(&conn->in);
    engine_buffer_free(&conn->input);
    free(conn);
  }
  free(net->by_fd);
}

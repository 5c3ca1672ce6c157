/* A server: an engine with a clock, connections and one thread.
 *
 * Commands that arrive stand in its connections' input until it comes to them; it takes one
 * connection after the other and executes what is complete, at one instant, and is busy for a
 * while after that. */
#ifndef TEST_SIM_WORLD_SERVER_H
#define TEST_SIM_WORLD_SERVER_H

#include "core/loop/list.h"
#include "sim/world/clock.h"
#include "sim/engine/engine.h"
#include "sim/world/net.h"
#include "sim/world/world.h"

typedef enum sim_restart {
  SIM_WITH_DATA,
  SIM_WITH_OLDER_DATA, /* as of the last image */
  SIM_WITHOUT_DATA,
  SIM_FROM_REPLICA, /* a replica takes its place, with the copied data */
  SIM_UNSEEN        /* the data is lost, connections and run id stay: undetectable */
} sim_restart_t;

struct sim_server {
  sim_world_t *world;
  unsigned index;
  char name[8]; /* "s0" */
  engine_t *engine;
  engine_image_t *image;   /* data on its disk; may be older than the memory */
  engine_image_t *replica; /* data of its replicas; includes everything that WAIT has confirmed */
  sim_clock_t clock;       /* its wall clock, in nanoseconds since 1970 */
  int64_t step;            /* by which it was set */
  unsigned lives;
  bool down;
  sim_event_t up;   /* comes back */
  sim_event_t work; /* the next connection's turn */
  sim_event_t save; /* writes its image */
  uint64_t busy_until, paused_until, slow_until, refusing_until, behind_since, behind_until;
  unsigned from;       /* process of the present command */
  const char *refusal; /* the error that it answers with until then */
  bool ghost; /* the present command came on a dead connection whose successor was served already */
  bool secretive;        /* HELLO, COMMAND, INFO and CLIENT KILL are not permitted */
  belay__list_t waiting; /* connections with input */
};

void sim_server_init(sim_server_t *server, sim_world_t *world, unsigned index);
void sim_server_fini(sim_server_t *server);

/* The wall clock, in microseconds since 1970. */
uint64_t sim_server_clock(const sim_server_t *server);

/* Bytes came in; nothing more will. */
void sim_server_receive(sim_server_t *server, sim_conn_t *conn, const char *at, size_t len);
void sim_server_hang_up(sim_server_t *server, sim_conn_t *conn);
/* It closes a connection, and does not read what came in any more. */
void sim_server_drop(sim_server_t *server, sim_conn_t *conn);

/* In a held world: returns the next command of a connection and its number of words, or 0; lets
 * that one run; lets all run. */
size_t sim_server_next(const sim_conn_t *conn, engine_bytes_t argv[ENGINE_ARGS_MAX]);
void sim_server_let_command(sim_conn_t *conn);
void sim_server_let_all(sim_server_t *server);

/* Faults. */
void sim_server_restart(sim_server_t *server, sim_restart_t how, uint64_t down_for);
void sim_server_pause(sim_server_t *server, uint64_t ns);
void sim_server_slow(sim_server_t *server, uint64_t ns);
/* Its replicas learn nothing new; false if they do not anyway. */
bool sim_server_leave_behind(sim_server_t *server, uint64_t ns);
void sim_server_refuse(sim_server_t *server, const char *error, uint64_t ns);
void sim_server_step_clock(sim_server_t *server, int64_t ns);
/* A command of another program, such as FLUSHALL; its reply is not of interest. */
void sim_server_command(sim_server_t *server, const char *const *words, size_t n);

#endif /* TEST_SIM_WORLD_SERVER_H */

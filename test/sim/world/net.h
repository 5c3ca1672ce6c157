/* The network: connections of processes to servers, as TCP keeps them: bytes in order or not at
 * all, on each connection; in no order between two. */
#ifndef TEST_SIM_WORLD_NET_H
#define TEST_SIM_WORLD_NET_H

#include <uv.h>

#include "sim/engine/engine.h"
#include "sim/world/process.h"
#include "sim/world/world.h"

typedef struct sim_conn sim_conn_t;

/* Bytes on their way. */
typedef struct sim_segment {
  struct sim_segment *next;
  uint64_t arrives, sent;
  size_t len;
  bool end;  /* no bytes: the sender has closed */
  bool held; /* it has come, and waits until it is let through */
  char bytes[];
} sim_segment_t;

typedef enum sim_way { SIM_TO_SERVER, SIM_TO_PROCESS, SIM_WAYS } sim_way_t;

typedef struct sim_pipe {
  sim_conn_t *conn;
  sim_way_t way;
  sim_segment_t *first, *last;
  sim_event_t arrival; /* of the first */
  bool black_hole;     /* true: all bytes to it are lost */
  bool ended;          /* the end was sent: nothing comes after it */
} sim_pipe_t;

/* The fate of a connection's next input. */
typedef enum sim_doom { SIM_SPARED, SIM_CUT_FIRST, SIM_CUT_THEN } sim_doom_t;

struct sim_conn {
  belay__list_t node; /* in net->conns */
  sim_world_t *world;
  unsigned number;
  char name[24];          /* "p0-s1#7" */
  sim_process_t *process; /* NULL: its side is closed */
  unsigned process_index;
  sim_server_t *server;
  sim_pipe_t pipe[SIM_WAYS];

  /* the process's side */
  int fd;
  belay__uv_handle_t *handle;
  uv_poll_cb cb;
  int events; /* watched for; 0: not */
  engine_buffer_t in;
  size_t in_read;
  bool in_end;  /* the server has closed */
  bool lingers; /* bytes in flight at the process's close arrive */
  sim_ready_t ready;

  /* the server's side */
  bool accepted; /* and not closed by it */
  engine_conn_t engine;
  engine_buffer_t input;
  size_t input_done;
  uint64_t input_sent;   /* when the last of it was sent */
  belay__list_t waiting; /* in server->waiting */
  sim_doom_t doom;
  bool ended;     /* nothing more will come */
  unsigned let;   /* number of commands let through */
  uint64_t wrote; /* when a command of it last wrote; 0: never */
  bool blocked;   /* by WAIT, until it is answered: */
  sim_event_t unblocked;
  unsigned copies; /* with this */
};

/* In a held world: sim_conn_has_answer() returns true if a reply waits; sim_conn_let_answer()
 * delivers the next one. Everything held is delivered when the world is no longer held. */
bool sim_conn_has_answer(const sim_conn_t *conn);
void sim_conn_let_answer(sim_conn_t *conn);
void sim_net_let_all(struct sim_net *net);

#define SIM_PROCESSES_MAX 8

struct sim_net {
  sim_world_t *world;
  belay__list_t conns;
  size_t conns_len;
  unsigned numbers;
  sim_conn_t **by_fd; /* fd - SIM_FD_FIRST */
  size_t fds;
  uint64_t blocked[SIM_PROCESSES_MAX][SIM_SERVERS_MAX][SIM_WAYS]; /* until then */
  uint64_t executed[SIM_PROCESSES_MAX]
                   [SIM_SERVERS_MAX]; /* number of the youngest connection that was served */
  uint64_t executed_sent[SIM_PROCESSES_MAX]
                        [SIM_SERVERS_MAX]; /* when the latest command that was served was sent */
};

#define SIM_FD_FIRST 1000000 /* far from the system's own */

void sim_net_init(sim_net_t *net, sim_world_t *world);
void sim_net_fini(sim_net_t *net);

/* How long a segment travels. */
uint64_t sim_net_delay(sim_world_t *world);
/* Until when nothing gets through; 0: it does now. */
uint64_t sim_net_blocked(const sim_net_t *net, const sim_process_t *process,
                         const sim_server_t *server, sim_way_t way);
void sim_net_partition(sim_net_t *net, unsigned process, unsigned server, sim_way_t way,
                       uint64_t ns);
void sim_net_heal(sim_net_t *net);

/* A connection that is made now. */
sim_conn_t *sim_net_connect(sim_net_t *net, sim_process_t *process, sim_server_t *server);
sim_conn_t *sim_net_conn(sim_net_t *net, int fd);

void sim_conn_send(sim_conn_t *conn, sim_way_t way, const char *at, size_t len);
/* One side closes. Bytes in flight from there may still arrive (linger). */
void sim_conn_close_process(sim_conn_t *conn, bool linger);
void sim_conn_close_server(sim_conn_t *conn);
/* Both sides see the end; bytes in flight are lost. */
void sim_conn_cut(sim_conn_t *conn);
/* The process sees the end, the server not yet: bytes in flight to it arrive later. */
void sim_conn_break(sim_conn_t *conn);

#endif /* TEST_SIM_WORLD_NET_H */

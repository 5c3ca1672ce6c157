/* A process: a loop, belay on it, and the actors that use it. It sees its own clock, its own
 * sockets and nothing else.
 *
 *   DOWN --start--> UP --crash--> DOWN     after a crash only the network has its sockets
 *                    |--close--> ENDING --belay_close() has called back--> DOWN
 *
 * A turn of its loop, as libuv would: alarms of its own that are due; idle; prepare (flush);
 * poll: belay's alarm and sockets in some order; check (flush); closing. A pause is a turn that
 * does not come, and then finds everything at once. */
#ifndef TEST_SIM_WORLD_PROCESS_H
#define TEST_SIM_WORLD_PROCESS_H

#include <uv.h>

#include "core/loop/list.h"
#include "redis/net/dial.h"
#include "sim/world/clock.h"
#include "sim/world/world.h"
#include "uv/host.h"

#define SIM_SERVERS_MAX 7

/* A timer of the program's own, not belay's: runs outside belay. */
typedef struct sim_alarm {
  sim_event_t event;
  belay__list_t node; /* among the process's due ones */
  sim_process_t *process;
  void (*run)(struct sim_alarm *alarm);
} sim_alarm_t;

typedef enum sim_life { SIM_DOWN, SIM_UP, SIM_ENDING } sim_life_t;

struct sim_process {
  sim_world_t *world;
  unsigned index;
  char name[8]; /* "p0" */
  sim_life_t life;
  unsigned lives; /* how often it was started */
  sim_clock_t clock;
  belay__host_t *host;
  belay_t *belay;                          /* the same; NULL: not open */
  belay_client_t *client[SIM_SERVERS_MAX]; /* NULL: it could not be made, or is closed */
  unsigned clients;
  void *actors; /* of the type of the scenario: actor.c */

  sim_event_t birth; /* it is started (again) */
  sim_event_t turn;  /* the next turn of its loop */
  sim_event_t alarm; /* belay's wake_at */
  bool alarm_due, soon, turning;
  bool telling;          /* belay runs its tasks: callbacks among them */
  bool keeps_alive;      /* belay's last report */
  bool leaving;          /* the host is closing */
  uint64_t paused_until; /* of the world */
  uint64_t not_before;   /* it is busy until then */
  uint64_t ahead;        /* in a turn: time that a callback has taken already */
  uint64_t closes;       /* when belay_close() was called, by its clock */
  uint64_t excused;      /* end of the last pause: events due before it are late with reason */
  unsigned fails;        /* per mille of failing allocations */
  uint64_t attempts_at;  /* the last second in which it began to connect, */
  unsigned attempts;     /* how often it did in that, and the most in any */
  unsigned attempts_most;
  belay__list_t due;     /* alarms */
  belay__list_t ready;   /* sockets, dials: to be polled */
  belay__list_t dials;   /* attempts to connect */
  belay__list_t closing; /* handles */
  belay__list_t blocks;  /* its memory */
  size_t blocks_len;
};

void sim_process_init(sim_process_t *process, sim_world_t *world, unsigned index);

/* Opens belay and its clients, all or none; false if memory is out. */
bool sim_process_start(sim_process_t *process);
void sim_process_pause(sim_process_t *process, uint64_t ns);
void sim_process_crash(sim_process_t *process);
/* belay_close(). */
void sim_process_close(sim_process_t *process);

/* Makes a client for a server; false if memory is out. */
bool sim_process_connect(sim_process_t *process, unsigned server);

/* The time on its clock. */
uint64_t sim_process_now(const sim_process_t *process);
/* Its loop turns as soon as it can. */
void sim_process_wake(sim_process_t *process);
/* Inside a callback: it takes so long. */
void sim_process_stall(sim_process_t *process, uint64_t ns);

/* Sets the timer, in nanoseconds of its clock. */
void sim_alarm_set(sim_alarm_t *alarm, uint64_t delay);
void sim_alarm_stop(sim_alarm_t *alarm);

/* Memory of the process (belay, hiredis, actors): freed when it crashes. */
void *sim_process_alloc(sim_process_t *process, size_t size);
void sim_process_free(sim_process_t *process, void *ptr);

/* ---- for host.c, dial.c and socket.c ---- */

/* The present process, whose memory hiredis uses. */
extern sim_process_t *sim_current;

sim_process_t *sim_process_of(const belay_t *belay);
int sim_host_open(sim_process_t *process, const belay_options_t *options);

/* Drops unseen results of connection attempts. */
void sim_dials_drop(sim_process_t *process);
/* Handles that were closed are gone. */
void sim_handles_closed(sim_process_t *process);
/* A turn's prepare and check: batches of writes. */
void sim_host_flush(sim_process_t *process);
/* The host was closed and freed. */
void sim_host_gone(sim_process_t *process);

/* A uv_poll handle, as dial.c makes it. */
typedef struct sim_handle {
  belay__uv_handle_t base; /* first */
  belay__list_t node;      /* in process->closing */
  struct sim_conn *conn;
  bool is_closing;
} sim_handle_t;

/* Something that the next poll finds. */
typedef struct sim_ready {
  belay__list_t node;
  void (*run)(struct sim_ready *ready);
} sim_ready_t;
void sim_process_ready(sim_process_t *process, sim_ready_t *ready);

#endif /* TEST_SIM_WORLD_PROCESS_H */

/* Faults: each kind by itself, at the rate of the scenario, at times that the seed chooses. */
#ifndef TEST_SIM_WORLD_FAULT_H
#define TEST_SIM_WORLD_FAULT_H

#include <stdint.h>

struct sim_world;

/* X(NAME, text): faults of a schedule, with a rate in the scenario; the others happen by
 * themselves and are only counted. */
#define SIM_FAULTS_OF_SCHEDULE(X)                                                                  \
  X(CUT_BEFORE, "connection lost before execution")                                                \
  X(CUT_AFTER, "connection lost after execution")                                                  \
  X(CUT_HALF, "connection lost for the client, not yet for the server")                            \
  X(REPLY_LOST, "replies that never arrive")                                                       \
  X(EARS_CUT, "listening connections closed by the server")                                        \
  X(PARTITION_UP, "one-way partition towards a server")                                            \
  X(PARTITION_DOWN, "one-way partition from a server")                                             \
  X(PARTITION_BOTH, "two-way partition")                                                           \
  X(PAUSE, "process stands still")                                                                 \
  X(CRASH, "process crashes")                                                                      \
  X(LEAVE, "process closes everything and begins anew")                                            \
  X(NODE_PAUSE, "server stands still")                                                             \
  X(NODE_SLOW, "server is slow")                                                                   \
  X(RESTART_KEPT, "server restarted with its data")                                                \
  X(RESTART_OLDER, "server restarted with older data")                                             \
  X(RESTART_EMPTY, "server restarted without data")                                                \
  X(BEHIND, "replicas are behind for a while")                                                     \
  X(FAILOVER, "a replica takes over")                                                              \
  X(SCRIPT_FLUSH, "SCRIPT FLUSH")                                                                  \
  X(REFUSING, "server refuses for a while")                                                        \
  X(MEMORY, "allocations fail for a while")                                                        \
  X(CLOCK_STEP, "server's clock steps")                                                            \
  X(KEY_DELETED, "key deleted by another program")                                                 \
  X(FLUSHALL, "FLUSHALL")                                                                          \
  X(RESTART_UNSEEN, "data lost, undetectably")

#define SIM_FAULTS_BY_THEMSELVES(X)                                                                \
  X(DELAY, "bytes delayed for over 20 ms")                                                         \
  X(REORDER, "commands overtaken by later ones on another connection")                             \
  X(GHOST, "bytes of a dead connection executed after its successor's")                            \
  X(RESEND, "scripts sent again as EVAL")                                                          \
  X(RESEND_LEFT, "scripts unknown to the server whose caller had left: not sent again")            \
  X(RETRIED, "calls sent again after a refusal that passed")                                       \
  X(REFUSED, "commands refused")                                                                   \
  X(REPLICA_LATE, "replicas that did not have it in time")                                         \
  X(ALLOCATION, "allocations that failed")                                                         \
  X(STALL, "callbacks that take their time")                                                       \
  X(DRIFT, "clocks that run at another rate")                                                      \
  X(LOST_INPUT, "commands that never reached a server")

typedef enum sim_fault {
#define SIM_FAULT_ENUM(name, text) SIM_##name,
  SIM_FAULTS_OF_SCHEDULE(SIM_FAULT_ENUM)
#define SIM_FAULTS_SCHEDULED SIM_DELAY
      SIM_FAULTS_BY_THEMSELVES(SIM_FAULT_ENUM)
#undef SIM_FAULT_ENUM
          SIM_FAULTS
} sim_fault_t;

extern const char *const sim_fault_names[SIM_FAULTS]; /* "PAUSE" */
extern const char *const sim_fault_texts[SIM_FAULTS];

/* Begins to strike as the world's scenario says; ends what is struck, and mends what is broken. */
void sim_faults_start(struct sim_world *world);
void sim_faults_stop(struct sim_world *world);

#endif /* TEST_SIM_WORLD_FAULT_H */

/* The checkers: rules that hold under all faults. They see the truth: the world's time, every
 * handle of every process, every key of every server. A violation ends the run
 * (sim_violation()).
 *
 *    exclusion     no grant is reported while another holder believes in its hold, up to its
 *                  local deadline (only in scenarios with the assumptions). Holds of one owner,
 *                  readers, and permits up to the limit may overlap
 *    revival       an ended belief does not return
 *    fencing       numbers grow from grant to grant and are unique; a guarded resource accepts no
 *                  stale write
 *    count         an operation counts once, a latch opens when all have counted, and exactly n
 *                  parties pass a barrier together
 *    bound, due, lease, filled
 *                  limits and refilled buckets: limit.h, check_limit_lease.c, bucket.c
 *    stale         a get is not served values from before an invalidation: cache.c, orders_cache.c
 *    attempts      no process connects more often per second than permitted: outage.c
 *    callbacks     every operation calls back once, in time, and keeps the loop alive until then
 *    truth         callbacks agree with the servers' actions
 *    loss          reported once, at the local deadline, before a server grants the name again
 *    ttl           every key has one, except those that the library lists
 *    order         for fair kinds: a server grants nothing to a waiter while an earlier ticket is
 *                  in its queue, unless that waiter has not asked for waiter_ttl. A ticket's time
 *                  is its first arrival since its last removal (by a grant or release). A waiter
 *                  that was late once is excused from then on, because its place may be lost
 *    leaks         after all closes no memory is left, no key that is known to be undone, no
 *                  token and no ticket
 *    liveness      after the faults every waiter is served within scenario->served_ms; nothing is
 *                  free for scenario->free_ms while a waiter wants it */
#ifndef TEST_SIM_CHECK_CHECK_H
#define TEST_SIM_CHECK_CHECK_H

#include "sim/engine/engine.h"
#include "sim/world/process.h"
#include "sim/world/world.h"

void sim_check_init(sim_world_t *world); /* sets world->check */
void sim_check_fini(sim_world_t *world);

/* ---- from servers ---- */

/* A string changed: engine_hooks_t. */
void sim_check_changed(sim_server_t *server, engine_bytes_t key, engine_bytes_t was,
                       engine_bytes_t is, engine_cause_t cause);
/* It has executed a command of a process's, with this reply, which is no error. */
void sim_check_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                        engine_bytes_t reply);
/* The same of one that is perhaps several calls' (redis/conn/batch.h). */
void sim_check_executed_all(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                            engine_bytes_t reply);
/* The server restarts, with or without data. */
void sim_check_restarted(sim_server_t *server);

/* ---- from processes ---- */

/* A turn of its loop is over. */
void sim_check_turn(sim_process_t *process);
/* It has written a line to its log. */
void sim_check_logged(sim_process_t *process, const char *line);
/* The process has crashed: its beliefs end. */
void sim_check_crashed(sim_process_t *process);
/* belay_close() has called back, and its memory should be too. */
void sim_check_closed(sim_process_t *process);

/* ---- from the world ---- */

void sim_check_regularly(sim_world_t *world); /* now and then: keys without a ttl */
void sim_check_end(sim_world_t *world);       /* everything is closed */

/* ---- from actors (actors/lock.h has more) ---- */

/* A callback takes that long. */
void sim_stall(sim_process_t *process, uint64_t ns);
/* Pings a server, if there is a client for it. */
void sim_ping(sim_process_t *process, unsigned server, int64_t timeout_ms);
/* A client is about to be closed (1), or has been (-1). */
void sim_client_closing(const belay_client_t *client, int closing);

/* True for the refusals of the simulated servers. */
bool sim_is_refusal(int status);

/* ---- words of commands ---- */

bool sim_bytes_are(engine_bytes_t word, const char *text);
/* The decimal number that it begins with. */
int64_t sim_bytes_number(engine_bytes_t word);
/* Reads a key "...{kNUMBER}REST", with a number below SIM_KEYS. */
bool sim_read_number_key(engine_bytes_t word, unsigned *key, engine_bytes_t *rest);
/* Reads a cached value: 'v' or 'p', and the version. */
bool sim_read_version(const void *data, size_t len, char *kind, uint32_t *version);
#define SIM_KEYS 4

/* The world's time at this moment of a turn of the process. */
static inline uint64_t sim_world_time(const sim_process_t *process) {
  return process->world->now + process->ahead;
}

/* The time on its clock until which the process stood still. */
uint64_t sim_excused_until(const sim_process_t *process);

static inline double sim_in_ms(uint64_t ns) {
  return (double)ns / 1e6;
}

#endif /* TEST_SIM_CHECK_CHECK_H */

/* The checkers: what must never be, whatever goes wrong. What they see is the truth: the world's time, every handle
 * of every process, every key of every server. A violation ends the run (sim_violation()).
 *
 *   exclusion     nobody is told that he holds a name while another believes in holding it, until his local deadline
 *                 (assumed scenarios only). Holds of one owner, readers, and permits up to the limit stand beside
 * each other
 *   revival       what was not believed any more is not believed again
 *   fencing       numbers grow from grant to grant; nobody gets the same; a guarded resource accepts nothing stale
 *   count         an operation counts once, a latch is open when all have; exactly as many pass a barrier together as
 *                 it is for
 *   bound, due, lease, filled
 *                 limits and refilled buckets: limit.h, check_limit_lease.c, bucket.c
 *   stale         who asks a cache is not served what was invalidated before: cache.c, orders_cache.c
 *   attempts      no process connects more often in a second than it may: outage.c
 *   callbacks     every operation calls back once, in time, and keeps the loop alive until then
 *   truth         what a callback says agrees with what servers did
 *   loss          told at the local deadline, not later, once, and before a server gives the name away
 *   ttl           every key has one, but those that the library lists
 *   order         where first come is first served: a server gives nothing to a waiter while another's ticket stands in
 *                 its queue that came before, unless that one has not asked for waiter_ttl. A ticket came when a
 * server
 *                 first heard of it since it was last taken out (by a grant, a release); one that was late once is
 *                 excused from then on: it may have kept its place or not
 *   leaks         when all is closed no memory is left, no key that is known to be undone, no token and no ticket
 *   liveness      when faults have stopped everybody who waits is served within scenario->served_ms; and nothing is
 *                 free for scenario->free_ms while somebody waits for it */
#ifndef TEST_SIM_CHECK_CHECK_H
#define TEST_SIM_CHECK_CHECK_H

#include "sim/engine/engine.h"
#include "sim/world/process.h"
#include "sim/world/world.h"

void sim_check_init(sim_world_t *world); /* sets world->check */
void sim_check_fini(sim_world_t *world);

/* ---- from servers ---- */

/* A string changed: engine_hooks_t. */
void sim_check_changed(sim_server_t *server, engine_word_t key, engine_word_t was, engine_word_t is,
                       engine_cause_t cause);
/* It has executed a command of a process's, with this reply, which is no error. */
void sim_check_executed(sim_server_t *server, const engine_word_t *argv, size_t argc,
                        engine_word_t reply);
/* The same of one that is perhaps several calls' (redis/conn/batch.h). */
void sim_check_executed_all(sim_server_t *server, const engine_word_t *argv, size_t argc,
                            engine_word_t reply);
/* It begins anew, with whatever it has. */
void sim_check_restarted(sim_server_t *server);

/* ---- from processes ---- */

/* A turn of its loop is over. */
void sim_check_turn(sim_process_t *process);
/* It has written a line to its log. */
void sim_check_logged(sim_process_t *process, const char *line);
/* It has crashed: nobody in it believes anything. */
void sim_check_crashed(sim_process_t *process);
/* belay_close() has called back, and its memory should be too. */
void sim_check_closed(sim_process_t *process);

/* ---- from the world ---- */

void sim_check_regularly(sim_world_t *world); /* now and then: keys without a ttl */
void sim_check_end(sim_world_t *world);       /* everything is closed */

/* What actors tell is theirs and the checkers': check_actor.h. */

#endif /* TEST_SIM_CHECK_CHECK_H */

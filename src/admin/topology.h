/* The survey of a deployment's servers: the state of each (topology.c has the machine), and the
 * reading of its replies (topology_read.c). */
#ifndef BELAY_ADMIN_TOPOLOGY_H
#define BELAY_ADMIN_TOPOLOGY_H

#include "belay/topology.h"
#include "core/call/call.h"
#include "core/client/client.h"

#define BELAY__TOPOLOGY_WORD 32 /* Bytes of a name or a version, with the 0 */

/* A server: its result and the memory of its strings. */
typedef struct belay__topology_entry {
  belay_topology_server_t result;
  char address[BELAY__PLACE_MAX], primary[BELAY__PLACE_MAX];
  char software[BELAY__TOPOLOGY_WORD], version[BELAY__TOPOLOGY_WORD];
  char run_id[BELAY__RUN_ID_MAX + 1];
  char detail[BELAY__WORDS_MAX];
  int64_t ahead_min_us, ahead_max_us; /* Limits of how far its clock is ahead */
  int64_t rtt_us[BELAY_TOPOLOGY_SAMPLES_MAX];
} belay__topology_entry_t;

/* Initialize the entry of a server of which only the address is known. */
void belay__topology_entry_init(belay__topology_entry_t *info, const char *address);

/* These read HELLO, ROLE and INFO, and leave out invalid parts. */
void belay__topology_entry_read_hello(belay__topology_entry_t *info, const belay__reply_t *reply);
void belay__topology_entry_read_role(belay__topology_entry_t *info, const belay__reply_t *reply);
void belay__topology_entry_read_stats(belay__topology_entry_t *info, const belay__reply_t *reply);

/* Read the address of the i-th replica from a primary's ROLE; false if there is none. */
bool belay__topology_entry_replica(const belay__reply_t *reply, size_t i,
                                   char out[BELAY__PLACE_MAX]);

/* Read TIME. wall_us: time of the reply; took: nanoseconds since the request, at most. Returns
 * false if the reply is not valid. */
bool belay__topology_entry_read_time(belay__topology_entry_t *info, const belay__reply_t *reply,
                                     uint64_t took, int64_t wall_us);

/* Computes the result from all samples. */
void belay__topology_entry_sum_up(belay__topology_entry_t *info);

#endif /* BELAY_ADMIN_TOPOLOGY_H */

/* A survey of the servers of a deployment: the entry of each server. topology.c has the machine,
 * topology_read.c reads the replies. */
#ifndef BELAY_ADMIN_TOPOLOGY_H
#define BELAY_ADMIN_TOPOLOGY_H

#include "belay/topology.h"
#include "core/call/call.h"
#include "core/client/client.h"

#define BELAY__TOPOLOGY_WORD 32 /* Bytes of a software name or a version, with the final 0 */

/* A server of the result, and the memory of its strings. */
typedef struct belay__topology_entry {
  belay_topology_server_t result;
  char address[BELAY__PLACE_MAX], primary[BELAY__PLACE_MAX];
  char software[BELAY__TOPOLOGY_WORD], version[BELAY__TOPOLOGY_WORD];
  char run_id[BELAY__RUN_ID_MAX + 1];
  char detail[BELAY__WORDS_MAX];
  /* Bounds of the time by which the server's clock is ahead of the clock of this host */
  int64_t ahead_min_us, ahead_max_us;
  int64_t rtt_us[BELAY_TOPOLOGY_SAMPLES_MAX];
} belay__topology_entry_t;

/* Initialize the entry of a server of which only the address is known. */
void belay__topology_entry_init(belay__topology_entry_t *info, const char *address);

/* Read the reply to HELLO, ROLE or INFO. Invalid parts of a reply leave their fields unchanged. */
void belay__topology_entry_read_hello(belay__topology_entry_t *info, const belay__reply_t *reply);
void belay__topology_entry_read_role(belay__topology_entry_t *info, const belay__reply_t *reply);
void belay__topology_entry_read_stats(belay__topology_entry_t *info, const belay__reply_t *reply);

/* Read the address of the i-th replica from the reply of a primary to ROLE. false if there are not
 * that many. An invalid address becomes "". */
bool belay__topology_entry_replica(const belay__reply_t *reply, size_t i,
                                   char out[BELAY__PLACE_MAX]);

/* Read the reply to TIME. wall_us: wall clock of this host when the reply was read, in microseconds
 * since 1970; took: nanoseconds from the sending of the request until after wall_us was read, or
 * more. Returns false if the reply is not valid. */
bool belay__topology_entry_read_time(belay__topology_entry_t *info, const belay__reply_t *reply,
                                     uint64_t took, int64_t wall_us);

/* Compute the round-trip times and the clock difference from all samples, and set the strings of
 * the result. */
void belay__topology_entry_sum_up(belay__topology_entry_t *info);

#endif /* BELAY_ADMIN_TOPOLOGY_H */

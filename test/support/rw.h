/* Readers and writers. */
#ifndef TEST_RW_H
#define TEST_RW_H

#include "support/nodes.h"

/* Handles of a client for that name; options may be NULL. */
contender_t *reader_of(bed_t *bed, belay_client_t *client, const char *name,
                       const belay_lock_options_t *options);
contender_t *writer_of(bed_t *bed, belay_client_t *client, const char *name,
                       const belay_lock_options_t *options);

/* The same for "page", each with a client of its own: in one client they would line up. */
contender_t *lone_reader(bed_t *bed, const belay_lock_options_t *options);
contender_t *lone_writer(bed_t *bed, const belay_lock_options_t *options);
belay_client_t *rw_client(bed_t *bed);

/* Over several of them. */
contender_t *rw_over(bed_t *bed, belay_client_t *const *clients, size_t n, const char *name,
                     belay_rwlock_mode_t mode, const belay_lock_options_t *options);

/* Begin it and wait for it: its status, or what belay returned if that was an error. */
int upgrade(contender_t *contender);
int downgrade(contender_t *contender);

bool is_writer(const contender_t *contender);
bool is_held(const contender_t *contender);

/* How many the set has: "readers", "waiting", "writers", "admitted". */
int64_t count_in(server_t *server, contender_t *contender, const char *set);

/* Begins to wait, and returns when it stands in the server's set. */
void wait_in(contender_t *contender, const char *set);

/* Until nothing is under way and nothing is left. */
void expect_empty(bed_t *bed);

#endif /* TEST_RW_H */

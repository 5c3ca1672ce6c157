/* Locks with fencing numbers, the counters behind them, and the steps of a proposer by hand. */
#ifndef TEST_FENCING_H
#define TEST_FENCING_H

#include "support/nodes.h"

#define LARGEST_FENCE (UINT64_C(1) << 53)
#define DAY_MS "86400000"

belay_lock_options_t fencing_options(void);

/* A contender with those. */
contender_t *fenced(nodes_t *nodes, const char *name);

uint64_t fence_of(const contender_t *c);

/* Takes it and gives it back; its number, which must be larger than that. */
uint64_t grow(contender_t *c, uint64_t last);

/* It is not held, has no number, and no node has a key of it. */
void expect_nothing_left(nodes_t *nodes, const contender_t *c);

/* ---- the counter ----------------------------------------------------------------------------------------- */

/* Its key; valid until the next question. */
const char *counter_of(const contender_t *c);

/* A number as a string; valid until the next but one. */
const char *digits(uint64_t number);

/* As if somebody with that token had had that number. */
void plant(server_t *server, const contender_t *c, const char *number, const char *token);
void plant_on_all(nodes_t *nodes, const contender_t *c, const char *number);

/* A number that the server's clock will not reach before an hour is over. */
uint64_t in_an_hour(server_t *server);

/* ---- a proposer, by hand --------------------------------------------------------------------------------- */

/* The number that a node proposes, and the largest that any of them does. */
uint64_t read_by_hand(server_t *server, const contender_t *c);
uint64_t read_all_by_hand(nodes_t *nodes, const contender_t *c);

/* 1: the node accepts it; and how many of all do. */
unsigned accept_by_hand(server_t *server, const contender_t *c, uint64_t number, const char *token);
unsigned accept_all_by_hand(nodes_t *nodes, const contender_t *c, uint64_t number,
                            const char *token);

#endif /* TEST_FENCING_H */

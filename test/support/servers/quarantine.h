/* Locks with a quarantine, servers that are old enough to vote, and the marker key. */
#ifndef TEST_SUPPORT_SERVERS_QUARANTINE_H
#define TEST_SUPPORT_SERVERS_QUARANTINE_H

#include "support/deployments/nodes.h"

#define MAX_TTL (1000 * slow()) /* the longest ttl of the namespace */
#define TTL (800 * slow())
#define SECONDS 1000 /* servers tell their uptime in whole ones */

/* That ttl and longest ttl, and a quarantine; no watchdog. */
belay_lock_options_t quarantine_options(void);
belay_lock_options_t quarantine_options_with(belay_quarantine_t quarantine);

/* A contender with those. */
contender_t *quarantined(nodes_t *nodes, const char *name);

/* An acquire that waits for as long as a quarantine may take. */
int wait_for(contender_t *c);

belay_lock_tally_t tally_of(const contender_t *c);

/* Acquires and releases until at least `count` nodes vote so. An attempt that a majority has
 * decided asks no further nodes. */
void ask_until(contender_t *c, belay_vote_t vote, unsigned count);

/* Fresh nodes, when all of them have come to vote. */
nodes_t *seasoned(unsigned n);

/* ---- servers that are old already: for all tests of a group ---- */

#define VETERANS 3

void start_veterans(void);
void stop_veterans(void);

/* The long-running nodes, in a new namespace. */
nodes_t *visit(void);
nodes_t *visit_without_info(void); /* as a user who may not ask for INFO */
void leave(nodes_t *nodes);

/* ---- the marker of the namespace in which the test is ---- */

const char *marker_key(void);

/* NULL: it is not there. Valid until the server's next question. */
const char *marker(server_t *server, const char *field);

/* When its quarantine began, in milliseconds by its own clock; 0: it has none. */
int64_t marker_since(server_t *server);
int64_t server_time_ms(server_t *server);

/* It bears the run id of the server where it is. */
void expect_marker_of(server_t *server);

#endif /* TEST_SUPPORT_SERVERS_QUARANTINE_H */

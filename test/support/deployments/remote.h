/* Nodes behind a relay each, which can delay, be cut, and lead to another server. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_REMOTE_H
#define TEST_SUPPORT_DEPLOYMENTS_REMOTE_H

#include "support/servers/quarantine.h"
#include "support/deployments/relay.h"

typedef struct remote {
  nodes_t *nodes; /* their clients reach them through the relays; the test itself does not */
  relay_t *relay[BELAY_NODES_MAX];
} remote_t;

/* Fresh servers, connected. */
remote_t *remote_open(unsigned n);

/* All servers have been up for long enough to vote, and have no marker. */
remote_t *remote_open_seasoned(unsigned n);

/* Closes the env, whatever is held, and stops servers and relays. */
void remote_close(remote_t *remote);

/* Until all of them are connected, also those that were away. */
void remote_reach(remote_t *remote);

/* Sets the round-trip time to all servers, in ms. */
void remote_put(remote_t *remote, int64_t ms);

#endif /* TEST_SUPPORT_DEPLOYMENTS_REMOTE_H */

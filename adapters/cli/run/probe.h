/* The first question to all servers of a command: do enough of them answer? */
#ifndef BELAY_CLI_RUN_PROBE_H
#define BELAY_CLI_RUN_PROBE_H

#include "harness.h"

/* Runs once, when a majority of the servers has answered. */
typedef void (*probe_cb)(harness_t *harness);

/* Pings every server of the harness. If too few servers can still answer, it says why each of them
 * did not, and ends the harness: with STATUS_UNREACHABLE, or with the status of the servers'
 * refusal if too many of them refused. Answers that come later are ignored. At most one probe in a
 * process. */
void probe_begin(harness_t *harness, probe_cb on_enough);

/* Ends the probe, for a command that ends before on_enough has run. Else it does nothing. */
void probe_end(void);

#endif /* BELAY_CLI_RUN_PROBE_H */

/* Pings all servers of a command before its first operation. */
#ifndef BELAY_CLI_RUN_PROBE_H
#define BELAY_CLI_RUN_PROBE_H

#include "harness.h"

/* Called once, when a majority of the servers has answered. */
typedef void (*probe_cb)(harness_t *harness);

/* Ping every server of the harness. If no majority can answer, print the error of each server, and
 * end the harness: with STATUS_UNREACHABLE, or with the status of the servers' refusal if too many
 * of them refused. Later answers are ignored. At most one probe in a process. */
void probe_begin(harness_t *harness, probe_cb on_enough);

/* End the probe of a command that ends before on_enough has run. Otherwise does nothing. */
void probe_end(void);

#endif /* BELAY_CLI_RUN_PROBE_H */

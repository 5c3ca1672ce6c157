/* A log of the failover messages of each Sentinel of a group, with their times. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_FAILOVER_LOG_H
#define TEST_SUPPORT_DEPLOYMENTS_FAILOVER_LOG_H

#include "support/deployments/group.h"

typedef struct failover_log failover_log_t;

/* Subscribes to +switch-master on all Sentinels, in a thread of its own. */
failover_log_t *failover_log_start(const group_t *group);
void failover_log_stop(failover_log_t *failover_log);

/* Clears the log. */
void failover_log_reset(failover_log_t *failover_log);

/* Returns the time of the first message of that Sentinel (clock_now()); 0: none. */
int64_t failover_log_time(failover_log_t *failover_log, unsigned sentinel);
/* Returns the time of the first message of any Sentinel; 0: none. */
int64_t failover_log_first(failover_log_t *failover_log);

#endif /* TEST_SUPPORT_DEPLOYMENTS_FAILOVER_LOG_H */

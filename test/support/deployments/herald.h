/* A log of the failover messages of each Sentinel of a group, with their times. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_HERALD_H
#define TEST_SUPPORT_DEPLOYMENTS_HERALD_H

#include "support/deployments/group.h"

typedef struct herald herald_t;

/* Listens to +switch-master at all of them, in a thread of its own. */
herald_t *herald_start(const group_t *group);
void herald_stop(herald_t *herald);

/* Clears the log. */
void herald_reset(herald_t *herald);

/* When it was first heard at that Sentinel, by clock_now(); 0: not yet. */
int64_t herald_heard(herald_t *herald, unsigned sentinel);
/* And anywhere. */
int64_t herald_heard_first(herald_t *herald);

#endif /* TEST_SUPPORT_DEPLOYMENTS_HERALD_H */

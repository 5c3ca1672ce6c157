/* Very many clients that lose their server: outage.c. */
#ifndef TEST_SIM_SCENARIOS_OUTAGE_H
#define TEST_SIM_SCENARIOS_OUTAGE_H

#include "sim/world/world.h"

/* Opens the world of a scenario of that kind and runs it; the caller closes it. */
void sim_outage_run(sim_world_t *world);

#endif /* TEST_SIM_SCENARIOS_OUTAGE_H */

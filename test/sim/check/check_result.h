/* Statuses of callbacks against the truth: check_result.c, called by check_watch.c. */
#ifndef TEST_SIM_CHECK_CHECK_RESULT_H
#define TEST_SIM_CHECK_CHECK_RESULT_H

#include "sim/check/check_state.h"

void sim_result_acquire(sim_lock_t *lock, int status);
void sim_result_release(sim_lock_t *lock, int status);
void sim_result_extend(sim_lock_t *lock, int status);
void sim_result_lost(sim_lock_t *lock, belay_lost_t reason);

#endif /* TEST_SIM_CHECK_CHECK_RESULT_H */

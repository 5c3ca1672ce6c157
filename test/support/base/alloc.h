/* Allocations that fail, one after the other. */
#ifndef TEST_SUPPORT_BASE_ALLOC_H
#define TEST_SUPPORT_BASE_ALLOC_H

#include <belay.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum alloc_owner { ALLOC_BELAY, ALLOC_HIREDIS } alloc_owner_t;

/* One run of a test, with these options for belay_open(). */
typedef void (*alloc_scenario_t)(const belay_options_t *options, void *arg);

/* Run the scenario until none of the owner's allocations fails: in the nth run the nth allocation returns NULL. Each
 * run must free all of belay's memory. A run in which nothing failed may have had too little time: it is repeated
 * with patience. Returns the number of runs. */
size_t alloc_fail_each(alloc_owner_t owner, alloc_scenario_t scenario, void *arg);

/* True if an allocation has failed in this run. */
bool alloc_has_failed(void);

/* True if the run may wait long, because nothing failed in the run before. */
bool alloc_is_patient(void);

#endif /* TEST_SUPPORT_BASE_ALLOC_H */

/* Allocations that fail, one after the other. */
#ifndef TEST_SUPPORT_BASE_ALLOC_H
#define TEST_SUPPORT_BASE_ALLOC_H

#include <belay.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum alloc_owner { ALLOC_BELAY, ALLOC_HIREDIS } alloc_owner_t;

/* One run of a test, with these options for belay_open(). */
typedef void (*alloc_scenario_t)(const belay_options_t *options, void *arg);

/* Run the scenario until none of the owner's allocations fails: in the nth run the nth allocation
 * returns NULL. Each run must free all of belay's memory. A run without a failure is repeated with
 * longer time limits. Returns the number of runs. */
size_t alloc_fail_each(alloc_owner_t owner, alloc_scenario_t scenario, void *arg);

/* true if an allocation has failed in this run. */
bool alloc_has_failed(void);

/* true if the run may wait long, because nothing failed in the run before. */
bool alloc_is_patient(void);

/* One run on a loop of its own, for a scenario. A struct of the test begins with it. */
typedef struct alloc_run {
  belay_t *belay; /* Its data is this struct */
  int pending;    /* Callbacks that must still run */
  bool closed;
} alloc_run_t;

/* Open belay, call begin(), which counts the callbacks in run->pending, and run the loop. belay is
 * closed when none is pending. Checks that it closes, and that no callback is missing. */
void alloc_run(alloc_run_t *run, const belay_options_t *options, void (*begin)(alloc_run_t *run));

/* Count a callback that has run. The callback calls this last. */
void alloc_called_back(alloc_run_t *run);

#endif /* TEST_SUPPORT_BASE_ALLOC_H */

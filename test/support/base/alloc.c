#include "support/base/alloc.h"
#include "support/base/unit.h"

#include <hiredis/alloc.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 4000 };

static size_t allocations, fail_at, live;
static bool patient;

static bool is_to_fail(void) {
  return ++allocations == fail_at;
}

static void *belay_alloc(void *ctx, size_t size) {
  (void)ctx;
  if (is_to_fail())
    return NULL;
  live++;
  return malloc(size);
}

static void belay_free(void *ctx, void *ptr) {
  (void)ctx;
  live--;
  free(ptr);
}

static void *hiredis_malloc(size_t size) {
  return is_to_fail() ? NULL : malloc(size);
}

static void *hiredis_calloc(size_t n, size_t size) {
  return is_to_fail() ? NULL : calloc(n, size);
}

static void *hiredis_realloc(void *ptr, size_t size) {
  return is_to_fail() ? NULL : realloc(ptr, size);
}

static char *hiredis_strdup(const char *text) {
  return is_to_fail() ? NULL : strdup(text);
}

bool alloc_has_failed(void) {
  return allocations >= fail_at;
}

bool alloc_is_patient(void) {
  return patient;
}

static void run_once(alloc_owner_t owner, alloc_scenario_t scenario, void *arg) {
  hiredisAllocFuncs funcs = {hiredis_malloc, hiredis_calloc, hiredis_realloc, hiredis_strdup, free};
  belay_options_t options;
  belay_options_init(&options);
  allocations = 0;
  if (owner == ALLOC_BELAY)
    options.allocator = (belay_allocator_t){.alloc = belay_alloc, .free = belay_free};
  else
    hiredisSetAllocators(&funcs);
  scenario(&options, arg);
  hiredisResetAllocators();
  assert_int_equal(live, 0);
}

size_t alloc_fail_each(alloc_owner_t owner, alloc_scenario_t scenario, void *arg) {
  for (fail_at = 1; fail_at < RUNS_MAX; fail_at++) {
    patient = false;
    run_once(owner, scenario, arg);
    if (alloc_has_failed())
      continue;
    patient = true;
    run_once(owner, scenario, arg);
    if (!alloc_has_failed())
      break;
  }
  assert_true(fail_at < RUNS_MAX);
  return fail_at;
}

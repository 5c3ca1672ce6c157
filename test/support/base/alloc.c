#include "support/base/alloc.h"
#include "support/base/unit.h"

#include <hiredis/alloc.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

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

static void on_closed(belay_t *belay, void *data) {
  (void)belay;
  ((alloc_run_t *)data)->closed = true;
}

static void close_if_done(alloc_run_t *run) {
  if (run->pending == 0)
    assert_int_equal(belay_close(run->belay, on_closed), 0);
}

void alloc_called_back(alloc_run_t *run) {
  assert_true(run->pending-- > 0);
  close_if_done(run);
}

void alloc_run(alloc_run_t *run, const belay_options_t *options, void (*begin)(alloc_run_t *run)) {
  uv_loop_t loop;
  assert_int_equal(uv_loop_init(&loop), 0);
  if (belay_open(&loop, options, &run->belay) == 0) {
    belay_set_data(run->belay, run);
    begin(run);
    close_if_done(run);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(run->closed);
    assert_int_equal(run->pending, 0);
  }
  assert_int_equal(uv_loop_close(&loop), 0);
}

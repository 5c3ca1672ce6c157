#include "core/loop/loop.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/call/error_text.h"

#define TASKS_MEASURED 4 /* number of queued tasks from which on their time is measured */

static void *plain_alloc(void *ctx, size_t size) {
  (void)ctx;
  return malloc(size);
}

static void plain_free(void *ctx, void *ptr) {
  (void)ctx;
  free(ptr);
}

void belay_options_init(belay_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_options_t){.allocator = {.alloc = plain_alloc, .free = plain_free},
                               .reconnects_per_s = 200};
}

void belay__init(belay_t *belay, const belay__host_ops_t *host, const belay_options_t *options) {
  *belay = (belay_t){
      .host = host,
      .allocator = options->allocator,
      .log = options->log,
      .reconnects_per_s = options->reconnects_per_s,
      .log_ctx = options->log_ctx,
      .armed = BELAY__NEVER,
  };
  belay__list_init(&belay->tasks);
  belay__list_init(&belay->urgent);
  belay__list_init(&belay->closables);
  belay__list_init(&belay->survivors);
}

int belay__check(belay_t *belay) {
  if (belay == NULL)
    return BELAY_EINVAL;
  belay->detail[0] = '\0';
  if (belay->host->forked(belay))
    return BELAY_EFORK;
  return belay->closing ? BELAY_ECLOSING : 0;
}

/* ---- memory ---- */

void *belay__alloc(belay_t *belay, size_t size) {
  void *ptr = belay->allocator.alloc(belay->allocator.ctx, size);
  if (ptr != NULL) {
    belay->stats.allocations++;
    belay->stats.memory_bytes += size;
  }
  return ptr;
}

void belay__free(belay_t *belay, void *ptr, size_t size) {
  if (ptr == NULL)
    return;
  belay->stats.memory_bytes -= size;
  belay->allocator.free(belay->allocator.ctx, ptr);
}

/* ---- time ---- */

static uint64_t earliest(const belay_t *belay) {
  uint64_t when = BELAY__NEVER;
  for (int rank = 0; rank < BELAY__RANKS; rank++) {
    const belay__timer_t *root = belay->timers[rank].root;
    if (root != NULL && root->when < when)
      when = root->when;
  }
  return when;
}

/* Ask the host for a wake-up at `when`, but only if `when` is before the wake-up that the host has.
 * Inside an entry, belay__leave() asks instead. Most timers are stopped long before they are due,
 * and an unneeded wake-up costs less than setting the host's timer each time. */
static void arm_host_timer(belay_t *belay, uint64_t when) {
  if (belay->entered || when >= belay->armed)
    return;
  belay->armed = when;
  belay->host->wake_at(belay, when);
}

void belay__timer_set(belay_t *belay, belay__rank_t rank, belay__timer_t *timer, uint64_t when) {
  belay__timer_stop(belay, rank, timer);
  belay__heap_insert(&belay->timers[rank], timer, when);
  arm_host_timer(belay, when);
}

void belay__timer_stop(belay_t *belay, belay__rank_t rank, belay__timer_t *timer) {
  if (belay__timer_is_set(timer))
    belay__heap_remove(&belay->timers[rank], timer);
}

/* Fire the earliest timer of a rank if it is due. */
static bool fire_due(belay_t *belay, belay__rank_t rank, uint64_t now) {
  belay__timer_t *timer = belay->timers[rank].root;
  if (timer == NULL || timer->when > now)
    return false;
  belay__heap_remove(&belay->timers[rank], timer);
  timer->fire(timer);
  return true;
}

static void run_expiries(belay_t *belay) {
  if (belay->timers[BELAY__RANK_EXPIRY].root == NULL)
    return;
  uint64_t now = belay__now(belay);
  while (fire_due(belay, BELAY__RANK_EXPIRY, now)) {
  }
}

static void run_timers(belay_t *belay) {
  uint64_t now = belay->entered_at = belay__now(belay), due = earliest(belay);
  if (due < now && now - due > belay->stats.max_gap_ns)
    belay->stats.max_gap_ns = now - due;
  do {
    while (fire_due(belay, BELAY__RANK_EXPIRY, now)) {
    }
  } while (fire_due(belay, BELAY__RANK_OTHER, now));
}

uint64_t belay__after_ms(belay_t *belay, int64_t ms) {
  uint64_t now = belay__now(belay);
  if (ms < 0 || (uint64_t)ms > (BELAY__NEVER - now) / BELAY__MS)
    return BELAY__NEVER;
  return now + (uint64_t)ms * BELAY__MS;
}

/* ---- tasks ---- */

void belay__task_init(belay__task_t *task, void (*run)(belay__task_t *task)) {
  belay__list_init(&task->node);
  task->run = run;
}

void belay__task_stop(belay_t *belay, belay__task_t *task) {
  if (belay__list_empty(&task->node))
    return;
  belay__list_remove(&task->node);
  belay->tasks_len--;
}

static void wake_host(belay_t *belay) {
  belay->tasks_len++;
  if (!belay->entered)
    belay->host->wake_soon(belay);
}

void belay__defer(belay_t *belay, belay__task_t *task) {
  if (!belay__list_empty(&task->node))
    return;
  belay__list_push(&belay->tasks, &task->node);
  wake_host(belay);
}

void belay__defer_urgent(belay_t *belay, belay__task_t *task) {
  belay__task_stop(belay, task);
  belay__list_push(&belay->urgent, &task->node);
  wake_host(belay);
}

static void run_one(belay_t *belay, belay__list_t *queue) {
  belay__task_t *task = BELAY__CONTAINER(belay__list_pop(queue), belay__task_t, node);
  belay->tasks_len--;
  belay->stats.callbacks++;
  task->run(task);
}

/* Run all urgent tasks, and at most as many tasks as are queued at the start. Tasks that these
 * tasks queue wait for the next loop iteration if they are not urgent, and run now if they are. So
 * a callback that always starts another operation does not block the loop. */
static void run_tasks(belay_t *belay) {
  size_t budget = belay->tasks_len;
  for (;;) {
    run_expiries(belay);
    if (!belay__list_empty(&belay->urgent))
      run_one(belay, &belay->urgent);
    else if (budget > 0 && !belay__list_empty(&belay->tasks))
      run_one(belay, &belay->tasks);
    else
      break;
    if (budget > 0)
      budget--;
  }
}

bool belay__enter(belay_t *belay) {
  if (belay->host->forked(belay))
    return false;
  assert(!belay->entered);
  belay->entered = 1;
  belay->stats.wakeups++;
  run_timers(belay);
  return true;
}

void belay__leave(belay_t *belay) {
  assert(belay->entered);
  bool measured = belay->tasks_len >= TASKS_MEASURED;
  uint64_t began = measured ? belay__now(belay) : 0, before = belay->stats.callbacks;
  run_tasks(belay);
  belay->entered = 0;
  if (belay->tasks_len > 0)
    belay->host->wake_soon(belay);
  uint64_t now = belay__now(belay), ran = belay->stats.callbacks - before;
  if (measured && ran > 0) /* an expiry may have removed the tasks */
    belay__smooth(&belay->task_ns, (now - began) / ran);
  if (belay->armed <= now)
    belay->armed = BELAY__NEVER; /* the wake-up at this time has fired, or is about to fire */
  arm_host_timer(belay, earliest(belay));
}

/* ---- keeping the loop alive ---- */

void belay__hold_loop(belay_t *belay) {
  if (belay->alive++ == 0)
    belay->host->keep_alive(belay, true);
}

void belay__free_loop(belay_t *belay) {
  assert(belay->alive > 0);
  if (--belay->alive == 0)
    belay->host->keep_alive(belay, false);
}

/* ---- closing ---- */

void belay__close_if_empty(belay_t *belay) {
  if (belay->closing && belay__list_empty(&belay->closables))
    belay->host->close(belay);
}

int belay_close(belay_t *belay, belay_close_cb cb) {
  int error = belay__check(belay);
  bool dead = (error == 0 || error == BELAY_ECLOSING) && belay->host->dead(belay);
  if (error != 0 && !dead)
    return error;
  if (!belay->closing)
    belay__hold_loop(belay);
  belay->closing = true;
  belay->close_cb = cb;
  if (dead && belay->tasks_len > 0)
    belay->host->wake_soon(belay); /* the handles that would have woken belay are gone */
  for (belay__list_t *i = belay->closables.next, *next; i != &belay->closables; i = next) {
    next = i->next;
    belay__closable_t *closable = BELAY__CONTAINER(i, belay__closable_t, node);
    closable->close(closable, dead);
  }
  belay__close_if_empty(belay);
  return 0;
}

void belay__host_closed(belay_t *belay) {
  assert(belay__list_empty(&belay->tasks) && belay__list_empty(&belay->urgent));
  if (belay->close_cb != NULL)
    belay->close_cb(belay, belay->data);
  while (belay__list_pop(&belay->survivors) != NULL)
    ;
}

/* ---- the rest ---- */

uint64_t belay__random_below(belay_t *belay, uint64_t limit) {
  uint64_t r;
  if (limit == 0 || belay->host->random(belay, &r, sizeof r) != 0)
    return 0;
  return r % limit; /* the bias is below 2^-20 for all delays in use */
}

void belay__detail(belay_t *belay, const char *format, ...) {
  char text[BELAY__DETAIL_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  belay__words(belay->detail, sizeof belay->detail, text, strlen(text));
}

int belay__check_range(belay_t *belay, const char *what, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max)
    return 0;
  return belay__invalid(belay, "%s: not from %" PRId64 " to %" PRId64, what, min, max);
}

int belay__check_bytes(belay_t *belay, const char *what, belay_bytes_t bytes, size_t min_len,
                       size_t max_len) {
  if (bytes.len >= min_len && bytes.len <= max_len && (bytes.data != NULL || bytes.len == 0))
    return 0;
  if (min_len == 0)
    return belay__invalid(belay, "%s: NULL, or more than %zu bytes", what, max_len);
  return belay__invalid(belay, "%s: not %zu to %zu bytes", what, min_len, max_len);
}

int belay__check_optional(belay_t *belay, const char *what, belay_bytes_t bytes, size_t max_len) {
  return belay__is_given(bytes) ? belay__check_bytes(belay, what, bytes, 1, max_len) : 0;
}

int belay__check_count(belay_t *belay, const char *what, const void *items, size_t n, size_t max) {
  if (items != NULL && n >= 1 && n <= max)
    return 0;
  return belay__invalid(belay, "%ss: NULL, or not 1 to %zu of them", what, max);
}

void belay__log(belay_t *belay, belay_log_level_t level, const char *format, ...) {
  if (belay->log == NULL)
    return;
  char text[BELAY__LOG_MAX], line[BELAY__LOG_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  belay__words(line, sizeof line, text, strlen(text));
  belay->log(belay->log_ctx, level, line);
}

const char *belay_detail(const belay_t *belay) {
  return belay == NULL ? "" : belay->detail;
}

void belay_set_data(belay_t *belay, void *data) {
  if (belay != NULL)
    belay->data = data;
}

void *belay_data(const belay_t *belay) {
  return belay == NULL ? NULL : belay->data;
}

void belay_stats(const belay_t *belay, belay_stats_t *out) {
  *out = belay == NULL ? (belay_stats_t){0} : belay->stats;
}

/* The sweep: one page of keys after another, with pauses in between.
 *
 *    IDLE      --start--> SCANNING
 *    SCANNING  --a page with keys to process--> WORKING
 *              --another page--> PAUSED; after the last page ENDING
 *    WORKING   --some keys are processed--> PAUSED; after the last keys ENDING
 *    PAUSED    --time--> WORKING, if the page has more keys; else SCANNING
 *    SCANNING, WORKING, also if the request cannot be sent
 *              --an error that may pass--> PAUSED
 *              --another error, or no reply for patience_ms--> ENDING
 *    all these --cancel, close--> ENDING
 *    ENDING    --the task; callback--> IDLE
 *
 * Keys are processed (deleted, or their holders queried) with one call each, many calls at once: in
 * a cluster, keys of different slots may not share a command, and a server can serve other clients
 * in between. A cursor is valid only for the process that made it: if another process replies, the
 * scan begins again with the first server. Several servers are scanned one after another. If slots
 * have moved between the servers since the beginning of the scan, the scan begins again, too. SCAN
 * is never redirected: moved slots become known by other calls and by the map, which is refreshed
 * once a minute. */
#include "admin/sweep.h"

#include <assert.h>
#include <string.h>

#include "core/key/key.h"

#define RETRY_MS UINT64_C(200)

enum {
  IDLE,     /* New, or after the callback of a run */
  SCANNING, /* A page was requested, or its keys are being reported */
  WORKING,  /* Some keys of the page are being processed, or results are being reported */
  PAUSED,   /* The timer is set */
  ENDING    /* The run is over; the task is queued */
};

static belay_t *belay_of(const belay_sweep_t *sweep) {
  return sweep->handle.client->belay;
}

static uint64_t later_of(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static void pause_until(belay_sweep_t *sweep, uint64_t when) {
  sweep->state = PAUSED;
  belay__timer_set(belay_of(sweep), BELAY__RANK_OTHER, &sweep->timer, when);
}

static void end_run(belay_sweep_t *sweep, int status) {
  sweep->state = ENDING;
  sweep->status = status;
  belay__timer_stop(belay_of(sweep), BELAY__RANK_OTHER, &sweep->timer);
  belay__defer(belay_of(sweep), &sweep->task);
}

/* Handles an error. If the size of the request may be the cause, halves the size of the next one.
 * Otherwise, if the error may pass and patience_ms is not over, waits. Otherwise ends the run. */
static void back_off(belay_sweep_t *sweep, int status, bool scanning) {
  uint64_t now = belay__now(belay_of(sweep));
  uint32_t *size = scanning ? &sweep->count : &sweep->calls;
  belay__sweep_drop_held(sweep);
  if (status == (scanning ? BELAY_EPROTO : BELAY_EBUSY) && *size > 1) {
    *size /= 2;
    pause_until(sweep, later_of(sweep->due, now));
  } else if ((belay_err_retryable(status) || status == BELAY_EUNKNOWN) &&
             now - sweep->since < (uint64_t)sweep->options.patience_ms * BELAY__MS) {
    pause_until(sweep, later_of(sweep->due, now + RETRY_MS * BELAY__MS));
  } else {
    end_run(sweep, status);
  }
}

static void send_step(belay_sweep_t *sweep) {
  bool scanning = sweep->page.n == 0;
  uint64_t now = belay__now(belay_of(sweep));
  int error = scanning ? belay__sweep_scan(sweep) : belay__sweep_work(sweep);
  if (error != 0) {
    back_off(sweep, error, scanning);
    return;
  }
  uint64_t cost = UINT64_C(1000) * BELAY__MS * sweep->cost / sweep->options.keys_per_s;
  sweep->due = later_of(sweep->due, now) + cost;
  sweep->state = scanning ? SCANNING : WORKING;
}

/* A request is done. Ends the run after the last key, or after too many restarts. Otherwise pauses
 * until keys_per_s permits the next request, which may be at once. patience_ms counts from the end
 * of this pause. */
static void finish_step(belay_sweep_t *sweep) {
  const uint8_t state = sweep->state;
  if (sweep->page.n == 0 && sweep->options.on_progress != NULL) {
    const belay_sweep_totals_t totals = sweep->totals;
    sweep->options.on_progress(sweep, &totals);
    if (sweep->state != state) /* the run was stopped */
      return;
  }
  if (sweep->page.n == 0 && sweep->position.over) {
    end_run(sweep, 0);
  } else if (sweep->totals.restarts > BELAY_SWEEP_RESTARTS_MAX) {
    end_run(sweep, BELAY_ELOST);
  } else {
    sweep->since = later_of(sweep->due, belay__now(belay_of(sweep)));
    pause_until(sweep, sweep->since);
  }
}

static void on_scanned(belay_sweep_t *sweep) {
  sweep->totals.pages++;
  sweep->totals.scanned += sweep->cost;
  sweep->totals.matched += sweep->page.n;
  if (sweep->page.n > 0 && sweep->options.on_keys != NULL)
    sweep->options.on_keys(sweep, sweep->page.keys, sweep->page.n);
  if (sweep->state != SCANNING) /* the run was stopped */
    return;
  if (sweep->page.n > 0 && sweep->work != NULL) {
    send_step(sweep);
    return;
  }
  belay__sweep_drop_page(sweep);
  finish_step(sweep);
}

static void on_worked(belay_sweep_t *sweep) {
  sweep->page.next += sweep->cost;
  belay__sweep_report_held(sweep);
  if (sweep->state != WORKING) /* the run was stopped */
    return;
  if (sweep->page.next == sweep->page.n)
    belay__sweep_drop_page(sweep);
  finish_step(sweep);
}

/* Continues the run after the success of a request, and backs off after an error. A result that
 * arrives after the end of the run changes nothing but sweep->since. */
void belay__sweep_notify(belay_request_t *request, void (*cb)(void),
                         const belay__answer_t *answer) {
  belay_sweep_t *sweep = answer->context;
  (void)request;
  (void)cb;
  if (answer->status == 0)
    sweep->since = belay__now(belay_of(sweep));
  if (sweep->state != SCANNING && sweep->state != WORKING)
    return;
  if (answer->status != 0)
    back_off(sweep, answer->status, sweep->state == SCANNING);
  else if (sweep->state == SCANNING)
    on_scanned(sweep);
  else
    on_worked(sweep);
}

static void on_timer(belay__timer_t *timer) {
  send_step(BELAY__CONTAINER(timer, belay_sweep_t, timer));
}

static void on_task(belay__task_t *task) {
  belay_sweep_t *sweep = BELAY__CONTAINER(task, belay_sweep_t, task);
  const belay_sweep_totals_t totals = sweep->totals;
  belay__sweep_drop_page(sweep);
  belay__sweep_drop_held(sweep);
  sweep->state = IDLE;
  belay__free_loop(belay_of(sweep));
  belay__client_explain(sweep->handle.client, sweep->status, NULL, 0);
  sweep->cb(sweep, sweep->status, &totals);
}

/* Ends the run with BELAY_ECANCELED, and cancels its request. Returns false if no run is under way,
 * or the run is ENDING already. */
static bool cancel_run(belay_sweep_t *sweep) {
  if (sweep->state == IDLE || sweep->state == ENDING)
    return false;
  /* fails while PAUSED, when no request is under way */
  (void)belay_request_cancel(&sweep->request);
  end_run(sweep, BELAY_ECANCELED);
  return true;
}

/* ---- creation and end ---- */

static void on_close(belay__handle_t *handle) {
  (void)cancel_run((belay_sweep_t *)handle);
}

static void on_deinit(belay__handle_t *handle) {
  belay_sweep_t *sweep = (belay_sweep_t *)handle;
  belay__free(belay_of(sweep), sweep->match, sweep->match_room);
}

static const belay_sweep_options_t defaults = {
    .keys_per_s = 50000, .batch = 1000, .patience_ms = 60000};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_sweep_options_t, keys_per_s, 1, 10000000),
    BELAY__RANGE(belay_sweep_options_t, batch, 1, 10000),
    BELAY__RANGE(belay_sweep_options_t, patience_ms, 0, 86400000),
    {.name = NULL},
};

/* Matches all main and alternate keys of held objects, and few others, by the first two letters of
 * their families. */
static const char held_pattern[] = "[elrs][elow]*::{*";

static int check_options(belay_t *belay, belay_sweep_options_t *o) {
  if (o->on_held != NULL && !belay__is_given(o->pattern))
    o->pattern = belay_string(held_pattern);
  if (o->remove && o->on_held != NULL)
    return belay__invalid(belay, "remove: not with on_held");
  if (o->type != NULL && !belay__is_label(o->type, BELAY__SWEEP_TYPE_MAX))
    return belay__invalid(belay, "type: not 1 to %zu printable bytes without spaces",
                          BELAY__SWEEP_TYPE_MAX);
  return belay__check_bytes(belay, "pattern", o->pattern, 1, BELAY_SWEEP_PATTERN_MAX);
}

/* Makes the pattern of SCAN: the quoted namespace, "::", and options.pattern. false: no memory. */
static bool make_match(belay_sweep_t *sweep, const belay_sweep_options_t *o) {
  const belay_client_t *client = sweep->handle.client;
  assert(o->pattern.data != NULL);
  sweep->match_room = 2 * client->prefix_len + 2 + o->pattern.len;
  sweep->match = belay__alloc(client->belay, sweep->match_room);
  if (sweep->match == NULL)
    return false;
  size_t n = belay__glob_quote(sweep->match, client->prefix, client->prefix_len);
  memcpy(sweep->match + n, "::", 2);
  memcpy(sweep->match + n + 2, o->pattern.data, o->pattern.len);
  sweep->match_len = n + 2 + o->pattern.len;
  return true;
}

static int on_init(belay__handle_t *handle, void *options) {
  belay_sweep_t *sweep = (belay_sweep_t *)handle;
  belay_sweep_options_t *o = options;
  int error = check_options(handle->client->belay, o);
  if (error != 0)
    return error;
  sweep->timer.fire = on_timer;
  belay__task_init(&sweep->task, on_task);
  belay__list_init(&sweep->held);
  if (o->remove)
    sweep->work = &belay__sweep_deleting;
  else if (o->on_held != NULL)
    sweep->work = &belay__sweep_reading;
  if (o->type != NULL)
    memcpy(sweep->type, o->type, strlen(o->type));
  return make_match(sweep, o) ? 0 : BELAY_ENOMEM;
}

const belay__handle_type_t belay__sweep_type = {
    .unnamed = true,
    .family = "sweep",
    .size = sizeof(belay_sweep_t),
    .options_size = sizeof(belay_sweep_options_t),
    .data_at = offsetof(belay_sweep_options_t, data),
    .defaults = &defaults,
    .ranges = ranges,
    .copy_at = offsetof(belay_sweep_t, options),
    .init = on_init,
    .close = on_close,
    .deinit = on_deinit,
};

BELAY__HANDLE_FUNCTIONS(sweep)

int belay_sweep_start(belay_sweep_t *sweep, belay_sweep_cb cb) {
  int error = belay__handle_check((const belay__handle_t *)sweep);
  if (error != 0)
    return error;
  if (cb == NULL)
    return belay__invalid(belay_of(sweep), "cb: NULL");
  if (sweep->state != IDLE)
    return BELAY_ESTATE;
  sweep->cb = cb;
  belay__sweep_begin(sweep);
  sweep->totals = (belay_sweep_totals_t){0};
  sweep->count = sweep->options.batch;
  sweep->calls = BELAY__SWEEP_CALLS_MAX;
  sweep->due = 0;
  sweep->since = belay__now(belay_of(sweep));
  belay__hold_loop(belay_of(sweep));
  send_step(sweep);
  return 0;
}

int belay_sweep_cancel(belay_sweep_t *sweep) {
  int error = belay__handle_check((const belay__handle_t *)sweep);
  return error == 0 && !cancel_run(sweep) ? BELAY_ESTATE : error;
}

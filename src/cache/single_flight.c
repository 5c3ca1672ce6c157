/* The machine of a single-flight load:
 *
 *   a get that no record serves; a refresh       a fresh key
 *        |                                          |
 *        v                                          v
 *    FILTERING --may exist, unknown-------->+   LOOKING_UP <--wake-up, poll-- WAITING <------+
 *        |  (with a filter only)            |       |  |                                     |
 *        | does not exist                   |       |  +--fresh-> OVER                       |
 *        v                                  v       v not fresh, or a refresh is due         |
 *      OVER                              LOCKING <--+                                        |
 *                                           |   |                                            |
 *                                   granted |   +--held elsewhere, or unknown--------------->+
 *                                           v                                                |
 *            OVER <--fresh by now------- BEGINNING --unknown---------------------------------+
 *                                           |   (generation, tags)
 *                                     begun |
 *                                           v
 *                 OVER <--denied-------- LIMITING --allowed--> READY --> LOADING
 *                                                                           |
 *        OVER <--stored, or refused-- FILLING <--loaded (unstored: OVER)----+
 *        OVER <--noted--------------- FAILING <--failed, timed out----------+  (unstored: OVER)
 *
 * Not drawn:
 *   - A fresh key also queries the filter before its lookup.
 *   - A load that holds the lease, or a cache without a lock, skips LOCKING. A cache without a
 *     limiter skips LIMITING.
 *   - Without waiters, OVER replaces WAITING. Unless the load is a refresh, OVER then also replaces
 *     LOCKING and BEGINNING.
 *   - A waiter that joins during an observation cannot use the result of that observation. If such
 *     waiters are left, LOOKING_UP replaces OVER; after the filter, FILTERING replaces OVER.
 *   - If BEGINNING finds another record than the lookup did, the load treats that record as the
 *     result of a lookup.
 *   - If in WAITING the time of a waiter with BELAY_CACHE_LATE_LOAD ends, LIMITING follows. The
 *     value of that load is not stored ("unstored"). If the limiter denies the load, WAITING
 *     follows again for the waiters that have time left.
 *   - If LOOKING_UP fails, or LOCKING or BEGINNING fails with an error that is not "unknown", OVER
 *     follows. If the error is an outage and options.away is BELAY_CACHE_AWAY_LOAD, READY follows
 *     instead: an unstored load. After LOADING, READY follows again for waiters that joined during
 *     the load and could not reach the server either.
 *   - If the cache closes, OVER follows any state.
 *
 * A load that is OVER is in no table. It is freed when its request has ended and its lease is
 * released. */
#include "cache/load_state.h"

#include <string.h>

#include "cache/load_steps.h"
#include "cache/loader.h"
#include "cache/waiters.h"
#include "core/loop/backoff.h"

/* at this number of consecutive attempts of BEGINNING that find another record or fail, the load
 * fails */
#define TRIES_MAX 16

typedef enum state {
  FILTERING,  /* queries the filter */
  LOCKING,    /* tries to acquire the lease */
  WAITING,    /* another process may load: polls, and waits for messages */
  LOOKING_UP, /* reads the record from the server */
  BEGINNING,  /* registers a generation; captures the tags */
  LIMITING,   /* asks the limiter */
  READY,      /* waits for its group or for the task of the loader */
  LOADING,    /* the loader has the load */
  FILLING,    /* stores the value */
  FAILING,    /* stores the failure */
  OVER
} state_t;

static bool is_waited_for(const belay__load_t *load) {
  return belay__load_first(load) != NULL;
}

/* ---- transitions ---- */

/* Continues after an observation: ends the load, or looks up again for the waiters that the
 * observation did not serve. */
static state_t end_or_look_up(belay__load_t *load) {
  load->tries = 0;
  return is_waited_for(load) ? LOOKING_UP : OVER;
}

/* Returns the time at which wait_ms of the first waiter ends. */
static uint64_t late_at(const belay__load_t *load) {
  return belay__load_first(load)->joined_at + (uint64_t)load->cache->options.wait_ms * BELAY__MS;
}

static state_t limit_or_load(const belay__load_t *load) {
  return load->cache->options.limiter != NULL ? LIMITING : READY;
}

/* Ends the waiters whose wait_ms is over. If `allowed`, stops at the first of these whose action is
 * BELAY_CACHE_LATE_LOAD, and returns true: the load then calls the loader for this waiter. If not
 * `allowed`, such a waiter gets the fallback, or BELAY_ELIMITED. */
static bool end_late(belay__load_t *load, bool allowed) {
  uint64_t now = belay__now(belay__load_belay(load));
  while (is_waited_for(load) && late_at(load) <= now) {
    belay__load_waiter_t *waiter = belay__load_first(load);
    bool loads = waiter->late == BELAY_CACHE_LATE_LOAD;
    if (loads && allowed)
      return true;
    belay__load_waiter_end(waiter, loads ? belay__load_waiter_fallback(waiter, BELAY_ELIMITED, 0)
                                         : belay__load_waiter_late(waiter));
  }
  return false;
}

/* Waits while another process loads the key. If wait_ms of a waiter with BELAY_CACHE_LATE_LOAD is
 * over, continues with an unstored load instead. */
static state_t wait_for_others(belay__load_t *load) {
  if (end_late(load, true)) {
    load->unstored = true;
    return limit_or_load(load);
  }
  return is_waited_for(load) ? WAITING : OVER;
}

/* Ends the waiters of a load that the limiter has denied. In an unstored load, the waiters that
 * have time left go on waiting. */
static state_t load_denied(belay__load_t *load) {
  load->cache->stats.limited++;
  if (load->unstored)
    (void)end_late(load, false);
  else
    belay__load_fall_back(load, UINT64_MAX, BELAY_ELIMITED, 0);
  return is_waited_for(load) ? WAITING : OVER;
}

static state_t lookup_or(state_t state) {
  return state == WAITING ? LOOKING_UP : state;
}

/* Makes this an unstored load because of the outage. Returns false, without a change, if
 * max_away_loads is reached. */
static bool begin_outage_load(belay__load_t *load) {
  belay_cache_t *cache = load->cache;
  if (!load->outage && cache->outage_loads >= cache->options.max_away_loads)
    return false;
  cache->outage_loads += !load->outage;
  load->outage = load->unstored = true;
  load->server_reached = false;
  return true;
}

/* The server answers again. */
static void end_outage(belay__load_t *load) {
  load->cache->outage_loads -= load->outage;
  load->outage = false;
}

/* Continues after a step that failed with this status. If the status is an outage
 * (belay__cache_is_outage()), options.away says what the waiters get: a record, an unstored load or
 * the status. All waiters end with any other status. */
static state_t handle_outage(belay__load_t *load, int status) {
  belay_cache_t *cache = load->cache;
  const belay_cache_options_t *o = &cache->options;
  if (!belay__cache_is_outage(status) || o->away == BELAY_CACHE_AWAY_FAIL) {
    belay__load_serve(load, UINT64_MAX, belay__cache_refuse(status, 0));
    return OVER;
  }
  belay__served_t served = belay__cache_serve_in_outage(cache, belay__load_key(load), status);
  if (served.record != NULL)
    belay__load_serve(load, UINT64_MAX, served);
  if (o->away == BELAY_CACHE_AWAY_LOAD && load->fallback == NULL && is_waited_for(load) &&
      begin_outage_load(load))
    return READY;
  belay__load_fall_back(load, UINT64_MAX, status, 0);
  return OVER;
}

/* Continues after LOCKING or BEGINNING has failed. If the effect of that step is unknown, the load
 * waits, and the next lookup shows the state on the server. handle_outage() handles other
 * errors. */
static state_t try_later(belay__load_t *load, int status) {
  if (status != BELAY_EUNKNOWN && status != BELAY_EEXPIRED)
    return handle_outage(load, status);
  return wait_for_others(load);
}

static state_t lock_or_begin(belay__load_t *load) {
  load->unstored = false;
  if (!is_waited_for(load) && !load->refresh)
    return OVER;
  return load->held || !load->cache->options.lock ? BEGINNING : LOCKING;
}

/* Returns load->left_ms for the record: the time until a fresh key is to be loaded again, plus
 * refresh_ms. A VALUE is loaded again refresh_ms before its end, any other record at its end. */
static int64_t left_of(const belay__load_t *load, const belay__record_t *record) {
  int64_t left = record->fresh_ms - belay__cache_now_ms(load->cache);
  int64_t lead = record->kind == BELAY__RECORD_VALUE ? 0 : load->cache->options.refresh_ms;
  return left > INT64_MAX - lead ? INT64_MAX : left + lead;
}

/* Continues after the lookup has all its replies. */
static state_t lookup_answered(belay__load_t *load) {
  belay_cache_t *cache = load->cache;
  belay__lookup_t *lookup = &load->lookup;
  end_outage(load);
  belay__lookup_judge(cache, lookup);
  belay__freshness_t freshness = lookup->freshness;
  if (!belay__fresh_serves(freshness)) {
    belay__load_take_lookup(load, lookup);
    return lock_or_begin(load);
  }
  load->left_ms = left_of(load, lookup->record);
  bool rests = lookup->record->retry_ms > belay__cache_now_ms(cache);
  belay__load_serve(load, load->asked_seq, belay__lookup_serve(lookup));
  belay__load_take_lookup(load, lookup);
  load->refresh |= freshness == BELAY__STALE;
  return load->refresh && !rests && load->left_ms <= load->lead_ms ? lock_or_begin(load)
                                                                   : end_or_look_up(load);
}

/* Continues after the loader has returned a value. Serves the waiters that joined before LOADING at
 * once, before the value is stored. Waiters that joined during LOADING need a value that is read or
 * loaded later. If the load is unstored, they get a new lookup. In an outage they get another
 * unstored load instead, unless the server has answered a lookup (load->server_reached). */
static state_t value_loaded(belay__load_t *load) {
  belay__load_serve(load, load->loaded_seq,
                    belay__cache_serve(load->loaded, BELAY_CACHE_FROM_LOAD, false, 0, 0));
  if (!load->unstored)
    return FILLING;
  return load->outage && !load->server_reached && is_waited_for(load) ? READY
                                                                      : end_or_look_up(load);
}

static state_t load_failed(belay__load_t *load, int error) {
  load->error = error;
  load->cache->stats.load_failures++;
  belay__load_fall_back(load, load->unstored ? UINT64_MAX : load->loaded_seq, BELAY_ELOAD, error);
  return load->unstored ? OVER : FAILING;
}

/* Continues after the server has stored the value, so there was no invalidation of the key during
 * the load. The value serves the waiters that joined before the store was sent. Later waiters need
 * a new lookup. A tag may have been invalidated during the load: if the key has tags, all waiters
 * that joined after the load began need a new lookup. */
static state_t value_stored(belay__load_t *load) {
  belay_cache_t *cache = load->cache;
  belay__record_t *record = load->loaded;
  cache->stats.bytes_out += load->written;
  cache->stats.fills += record->kind == BELAY__RECORD_VALUE || cache->options.absent_ms > 0;
  load->left_ms = left_of(load, record);
  belay__cache_store_local(cache, belay__load_key(load), record, &load->lookup.stamp,
                           load->lookup.asked_at);
  if (load->tags_len == 0)
    belay__load_serve(load, load->asked_seq,
                      belay__cache_serve(record, BELAY_CACHE_FROM_LOAD, false, 0, 0));
  return end_or_look_up(load);
}

static state_t next_state(belay__load_t *load, belay__load_event_t event, int arg) {
  bool yes = event == BELAY__LOAD_YES;
  switch ((state_t)load->state) {
  case FILTERING:
    if (event != BELAY__LOAD_NO)
      return load->lead_ms > 0 ? LOOKING_UP : lock_or_begin(load);
    load->cache->stats.filtered++;
    belay__load_serve(load, load->asked_seq, belay__cache_refuse(BELAY_EABSENT, 0));
    return is_waited_for(load) ? FILTERING : OVER;
  case LOCKING:
    load->held = yes;
    return yes ? BEGINNING : event == BELAY__LOAD_NO ? wait_for_others(load) : try_later(load, arg);
  case WAITING:
    return lookup_or(wait_for_others(load));
  case LOOKING_UP:
    return event == BELAY__LOAD_SEEN ? lookup_answered(load) : handle_outage(load, arg);
  case BEGINNING:
    if (event == BELAY__LOAD_SEEN)
      return ++load->tries < TRIES_MAX ? lookup_answered(load) : handle_outage(load, BELAY_EBUSY);
    if (event == BELAY__LOAD_ERROR)
      return ++load->tries < TRIES_MAX ? try_later(load, arg) : handle_outage(load, arg);
    load->tries = 0;
    return limit_or_load(load);
  case LIMITING:
    return yes ? READY : load_denied(load);
  case READY:
    return yes ? LOADING : handle_outage(load, arg);
  case LOADING:
    return event == BELAY__LOAD_LOADED ? value_loaded(load) : load_failed(load, arg);
  case FILLING:
    load->cache->stats.refused_fills += event == BELAY__LOAD_SEEN;
    return yes ? value_stored(load) : end_or_look_up(load);
  case FAILING:
    belay__load_fall_back(load, load->asked_seq, BELAY_ELOAD, load->error);
    return end_or_look_up(load); /* waiters that joined during FAILING do not get this failure */
  case OVER:
    break;
  }
  return OVER;
}

/* ---- entering a state ---- */

bool belay__load_is_over(const belay__load_t *load) {
  return load->state == OVER;
}

bool belay__load_is_waiting(const belay__load_t *load) {
  return load->state == WAITING;
}

static void enter_waiting(belay__load_t *load) {
  const belay_cache_options_t *o = &load->cache->options;
  belay_t *belay = belay__load_belay(load);
  /* count each load once: at its first WAITING */
  load->cache->stats.waits += load->subscription.on_event == NULL;
  belay__loader_leave(load);
  belay__load_subscribe(load);
  uint64_t now = belay__now(belay), late = late_at(load);
  belay__delay_t poll = belay__delay_ms((uint64_t)o->retry_min_ms, (uint64_t)o->retry_max_ms);
  uint64_t when = load->woken ? now : now + belay__delay_draw(belay, poll);
  belay__timer_set(belay, BELAY__RANK_OTHER, &load->timer, when < late ? when : late);
}

static void enter_loading(belay__load_t *load) {
  belay_t *belay = belay__load_belay(load);
  belay_cache_stats_t *stats = &load->cache->stats;
  stats->loads++;
  stats->losers += load->unstored;
  if (!is_waited_for(load)) {
    stats->refreshes++;
    stats->early += load->early;
  }
  load->loaded_seq = ++load->seq;
  load->began_at = belay__now(belay);
  belay__timer_set(belay, BELAY__RANK_OTHER, &load->timer,
                   belay__after_ms(belay, load->cache->options.load_timeout_ms));
}

static void enter_over(belay__load_t *load) {
  belay_cache_t *cache = load->cache;
  belay__table_remove(&cache->loads, &load->keyed.entry);
  belay__load_serve(load, UINT64_MAX, belay__cache_refuse(BELAY_ECANCELED, 0));
  belay__loader_leave(load);
  cache->outage_loads -= load->outage;
  if (!cache->handle.closing && cache->on_load_over != NULL)
    cache->on_load_over(cache, belay__load_key(load), load->left_ms);
  belay__load_end_steps(load);
}

/* Starts the work of the new state. Returns 0, or an error if the work could not start. */
static int enter_state(belay__load_t *load) {
  switch ((state_t)load->state) {
  case FILTERING:
    return belay__load_start_filter(load);
  case LOCKING:
    return belay__load_start_lease(load);
  case WAITING:
    enter_waiting(load);
    return 0;
  case LOOKING_UP:
    load->woken = false;
    return belay__load_start_lookup(load);
  case BEGINNING:
    return belay__load_start_begin(load);
  case LIMITING:
    return belay__load_start_limiter(load);
  case READY:
    belay__loader_ready(load);
    return 0;
  case LOADING:
    enter_loading(load);
    return 0;
  case FILLING:
    return belay__load_start_fill(load);
  case FAILING:
    return belay__load_start_fail(load);
  case OVER:
    enter_over(load);
    return 0;
  }
  return 0;
}

void belay__load_step(belay__load_t *load, belay__load_event_t event, int arg) {
  while (load->state != OVER) {
    belay__timer_stop(belay__load_belay(load), BELAY__RANK_OTHER, &load->timer);
    if (load->state == LOADING)
      belay__loader_detach(load);
    load->state = (uint8_t)(event == BELAY__LOAD_CLOSE ? OVER : next_state(load, event, arg));
    load->asked_seq = ++load->seq;
    arg = enter_state(load);
    if (arg == 0)
      return;
    event = BELAY__LOAD_ERROR;
  }
}

void belay__load_on_timer(belay__timer_t *timer) {
  belay__load_t *load = BELAY__CONTAINER(timer, belay__load_t, timer);
  if (load->state == LOADING)
    belay__load_step(load, BELAY__LOAD_FAILED, BELAY_ETIMEDOUT);
  else
    belay__load_step(load, BELAY__LOAD_WAKE, 0);
}

void belay__load_on_close(belay__child_t *child) {
  belay__load_step(BELAY__CONTAINER(child, belay__load_t, child), BELAY__LOAD_CLOSE, 0);
}

/* Enters the first state. */
static void begin_in(belay__load_t *load, state_t state) {
  load->state = (uint8_t)state;
  load->asked_seq = ++load->seq;
  int error = enter_state(load);
  if (error != 0)
    belay__load_step(load, BELAY__LOAD_ERROR, error);
}

void belay__load_begin(belay__load_t *load) {
  const belay_cache_options_t *o = &load->cache->options;
  begin_in(load, o->filter != NULL   ? FILTERING
                 : load->lead_ms > 0 ? LOOKING_UP
                 : o->lock           ? LOCKING
                                     : BEGINNING);
}

void belay__load_begin_in_outage(belay__load_t *load) {
  (void)begin_outage_load(load);
  begin_in(load, READY);
}

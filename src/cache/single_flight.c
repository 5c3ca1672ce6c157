/* The flight machine:
 *
 *   a get found nothing good; a refresh          a pin's look
 *        |                                          |
 *        v                                          v
 *     ASKING --it may exist, or not known-->+    LOOKING <--wake-up, poll-- WAITING <--------+
 *        |  (the filter, if there is one)   |       |  |                                     |
 *        | it does not exist                |       |  +--good--> OVER                       |
 *        v                                  v       v not good, or to be loaded again        |
 *      OVER                              LOCKING <--+                                        |
 *                                           |   |                                            |
 *                                   granted |   +--held elsewhere, or not known------------->+
 *                                           v                                                |
 *            OVER <--it is good by now-- BEGINNING --not known-------------------------------+
 *                                           |   (generation, tags)
 *                                     begun |
 *                                           v
 *                 OVER <--denied-------- LIMITING --allowed--> READY --> LOADING
 *                                                                           |
 *        OVER <--stored, or refused-- FILLING <--loaded (a loser: OVER)-----+
 *        OVER <--noted--------------- FAILING <--failed, or its time is over+  (a loser: OVER)
 *
 * What is not drawn:
 *   - A pin's look asks the filter too, and then looks.
 *   - LOCKING is passed by with the lease in hand, or without a lock; LIMITING without a limiter.
 *   - In place of LOCKING and WAITING it is OVER if nobody waits; but what is a refresh is locked, begun and loaded all
 *     the same.
 *   - Whoever comes while something is asked that cannot answer him waits for another look: in place of OVER it is LOOKING
 *     if somebody still waits; after the filter it is ASKING.
 *   - BEGINNING finds that something else is there than was seen: that is taken as a look.
 *   - In WAITING somebody has waited for long enough, and is to load it himself: LIMITING, as a loser, who stores nothing.
 *     Denied to a loser: WAITING for those who still have time.
 *   - LOCKING, LOOKING, BEGINNING or READY cannot ask the server: OVER; or, where the caller says so, READY as a loser,
 *     and from LOADING again for those who could not ask meanwhile.
 *   - In any state: --the cache closes--> OVER.
 *
 * OVER it is not found any more, and is gone when what it has asked has come back and its lease is given up. */
#include "cache/single_flight.h"

#include <string.h>

#include "cache/times.h"
#include "core/loop/backoff.h"

#define TRIES_MAX 16 /* to begin, when others were faster each time */

typedef enum state {
  ASKING,    /* new */
  LOCKING,   /* it must be loaded, and another process may be loading it */
  WAITING,   /* another one is */
  LOOKING,   /* what it has stored; or new */
  BEGINNING, /* nobody else loads */
  LIMITING,  /* begun */
  READY,     /* nothing stands in the way of the load; the task begins it */
  LOADING,   /* it is the loader's */
  FILLING,   /* loaded, and being stored */
  FAILING,   /* not loaded, which is noted */
  OVER
} state_t;

static belay_t *belay_of(const belay__flight_t *flight) {
  return flight->cache->handle.client->belay;
}

static bool is_waited_for(const belay__flight_t *flight) {
  return belay__flight_first(flight) != NULL;
}

/* ---- transitions --------------------------------------------------------------------------------------- */

/* Some were served. */
static state_t go_on(belay__flight_t *flight) {
  flight->tries = 0;
  return is_waited_for(flight) ? LOOKING : OVER;
}

/* When the first of those who wait has waited for long enough. */
static uint64_t late_at(const belay__flight_t *flight) {
  return belay__flight_first(flight)->since + (uint64_t)flight->cache->options.wait_ms * BELAY__MS;
}

static state_t limit_or_load(const belay__flight_t *flight) {
  return flight->cache->options.limiter != NULL ? LIMITING : READY;
}

/* Who has waited for long enough is told so. But who is then to load it himself: that is true; or, where that is not allowed,
 * he is told that. */
static bool end_late(belay__flight_t *flight, bool allowed) {
  uint64_t now = belay__now(belay_of(flight));
  while (is_waited_for(flight) && late_at(flight) <= now) {
    belay__waiter_t *waiter = belay__flight_first(flight);
    bool loads = waiter->late == BELAY_CACHE_LATE_LOAD;
    if (loads && allowed)
      return true;
    belay__waiter_end(waiter, loads ? belay__waiter_fallback(waiter, BELAY_ELIMITED, 0)
                                    : belay__waiter_late(waiter));
  }
  return false;
}

/* Another process loads it. */
static state_t wait_for_others(belay__flight_t *flight) {
  if (end_late(flight, true)) {
    flight->loser = true;
    return limit_or_load(flight);
  }
  return is_waited_for(flight) ? WAITING : OVER;
}

/* The limiter does not allow it. Of late ones, who still has time goes on waiting. */
static state_t denied(belay__flight_t *flight) {
  flight->cache->stats.limited++;
  if (flight->loser)
    (void)end_late(flight, false);
  else
    belay__flight_fall_back(flight, UINT64_MAX, BELAY_ELIMITED, 0);
  return is_waited_for(flight) ? WAITING : OVER;
}

static state_t look_or(state_t state) {
  return state == WAITING ? LOOKING : state;
}

/* It is loaded all the same; false: too many are. */
static bool be_away_load(belay__flight_t *flight) {
  belay_cache_t *cache = flight->cache;
  if (!flight->away && cache->away_loads >= cache->options.max_away_loads)
    return false;
  cache->away_loads += !flight->away;
  flight->away = flight->loser = true;
  flight->reached = false;
  return true;
}

/* The server is there again. */
static void be_back(belay__flight_t *flight) {
  flight->cache->away_loads -= flight->away;
  flight->away = false;
}

/* The server cannot be asked, or will not do it. */
static state_t be_away(belay__flight_t *flight, int status) {
  belay_cache_t *cache = flight->cache;
  const belay_cache_options_t *o = &cache->options;
  if (!belay__cache_is_away(status) || o->away == BELAY_CACHE_AWAY_FAIL) {
    belay__flight_serve(flight, UINT64_MAX, belay__cache_refuse(status, 0));
    return OVER;
  }
  belay__served_t served = belay__cache_serve_away(cache, flight->key, flight->key_len, status);
  if (served.record != NULL)
    belay__flight_serve(flight, UINT64_MAX, served);
  if (o->away == BELAY_CACHE_AWAY_LOAD && flight->kept == NULL && is_waited_for(flight) &&
      be_away_load(flight))
    return READY;
  belay__flight_fall_back(flight, UINT64_MAX, status, 0);
  return OVER;
}

/* The lease, or the generation, is not to be had now; the next look tells why. */
static state_t try_again(belay__flight_t *flight, int status) {
  if (status != BELAY_EUNKNOWN && status != BELAY_EEXPIRED)
    return be_away(flight, status);
  return wait_for_others(flight);
}

static state_t load_it(belay__flight_t *flight) {
  flight->loser = false;
  if (!is_waited_for(flight) && !flight->refresh)
    return OVER;
  return flight->held || !flight->cache->options.lock ? BEGINNING : LOCKING;
}

/* For how long it need not be loaded again, but for the lead: what is no value is not loaded ahead of time. */
static int64_t left_of(const belay__flight_t *flight, const belay__record_t *record) {
  int64_t left = record->fresh_ms - belay__cache_now_ms(flight->cache);
  int64_t lead = record->kind == BELAY__RECORD_VALUE ? 0 : flight->cache->options.refresh_ms;
  return left > INT64_MAX - lead ? INT64_MAX : left + lead;
}

/* There is a look. */
static state_t see(belay__flight_t *flight) {
  belay_cache_t *cache = flight->cache;
  belay__look_t *look = &flight->look;
  be_back(flight);
  belay__look_over(cache, look);
  belay__freshness_t freshness = look->freshness;
  if (!belay__fresh_serves(freshness)) {
    belay__flight_adopt(flight, look);
    return load_it(flight);
  }
  flight->left_ms = left_of(flight, look->record);
  bool rests = look->record->retry_ms > belay__cache_now_ms(cache);
  belay__flight_serve(flight, flight->asked_turn, belay__look_serve(look));
  belay__flight_adopt(flight, look);
  flight->refresh |= freshness == BELAY__STALE;
  return flight->refresh && !rests && flight->left_ms <= flight->lead_ms ? load_it(flight)
                                                                         : go_on(flight);
}

/* It was loaded: who came before it began need not wait until it is stored. Of the others, those who could not ask the
 * server either need not ask again. */
static state_t loaded(belay__flight_t *flight) {
  belay__flight_serve(flight, flight->loaded_turn,
                      belay__cache_serve(flight->loaded, BELAY_CACHE_FROM_LOAD, false, 0, 0));
  if (!flight->loser)
    return FILLING;
  return flight->away && !flight->reached && is_waited_for(flight) ? READY : go_on(flight);
}

static state_t failed(belay__flight_t *flight, int error) {
  flight->error = error;
  flight->cache->stats.load_failures++;
  belay__flight_fall_back(flight, flight->loser ? UINT64_MAX : flight->loaded_turn, BELAY_ELOAD,
                          error);
  return flight->loser ? OVER : FAILING;
}

/* Nobody has invalidated it meanwhile: so it is good for all who came until then. But not where there are tags: one of
 * them may have been, and whoever came while it was loaded looks. */
static state_t stored(belay__flight_t *flight) {
  belay_cache_t *cache = flight->cache;
  belay__record_t *record = flight->loaded;
  cache->stats.fills += record->kind == BELAY__RECORD_VALUE || cache->options.absent_ms > 0;
  flight->left_ms = left_of(flight, record);
  belay__cache_keep_local(cache, flight->key, flight->key_len, record, &flight->look.stamp,
                          flight->look.asked);
  if (flight->tags_len == 0)
    belay__flight_serve(flight, flight->asked_turn,
                        belay__cache_serve(record, BELAY_CACHE_FROM_LOAD, false, 0, 0));
  return go_on(flight);
}

static state_t next_state(belay__flight_t *flight, belay__flight_event_t event, int arg) {
  bool yes = event == BELAY__FLIGHT_YES;
  switch ((state_t)flight->state) {
  case ASKING:
    if (event != BELAY__FLIGHT_NO)
      return flight->lead_ms > 0 ? LOOKING : load_it(flight);
    flight->cache->stats.filtered++;
    belay__flight_serve(flight, flight->asked_turn, belay__cache_refuse(BELAY_EABSENT, 0));
    return is_waited_for(flight) ? ASKING : OVER;
  case LOCKING:
    flight->held = yes;
    return yes                         ? BEGINNING
           : event == BELAY__FLIGHT_NO ? wait_for_others(flight)
                                       : try_again(flight, arg);
  case WAITING:
    return look_or(wait_for_others(flight));
  case LOOKING:
    return event == BELAY__FLIGHT_SEEN ? see(flight) : be_away(flight, arg);
  case BEGINNING:
    if (event == BELAY__FLIGHT_SEEN)
      return ++flight->tries < TRIES_MAX ? see(flight) : be_away(flight, BELAY_EBUSY);
    if (event == BELAY__FLIGHT_ERROR)
      return ++flight->tries < TRIES_MAX ? try_again(flight, arg) : be_away(flight, arg);
    flight->tries = 0;
    return limit_or_load(flight);
  case LIMITING:
    return yes ? READY : denied(flight);
  case READY:
    return yes ? LOADING : be_away(flight, arg);
  case LOADING:
    return event == BELAY__FLIGHT_LOADED ? loaded(flight) : failed(flight, arg);
  case FILLING:
    return yes ? stored(flight) : go_on(flight);
  case FAILING:
    belay__flight_fall_back(flight, flight->asked_turn, BELAY_ELOAD, flight->error);
    return go_on(flight); /* who has come since is not told of it */
  case OVER:
    break;
  }
  return OVER;
}

/* ---- entering a state ---------------------------------------------------------------------------------- */

bool belay__flight_is_over(const belay__flight_t *flight) {
  return flight->state == OVER;
}

bool belay__flight_is_waiting(const belay__flight_t *flight) {
  return flight->state == WAITING;
}

static void wait_a_while(belay__flight_t *flight) {
  const belay_cache_options_t *o = &flight->cache->options;
  belay_t *belay = belay_of(flight);
  flight->cache->stats.waits += flight->ear.hear == NULL; /* the first time */
  belay__load_leave(flight);
  belay__flight_listen(flight);
  uint64_t now = belay__now(belay), late = late_at(flight);
  belay__delay_t poll = belay__delay_ms((uint64_t)o->retry_min_ms, (uint64_t)o->retry_max_ms);
  uint64_t when = flight->woken ? now : now + belay__delay_draw(belay, poll);
  belay__timer_set(belay, BELAY__RANK_OTHER, &flight->timer, when < late ? when : late);
}

static void await_load(belay__flight_t *flight) {
  belay_t *belay = belay_of(flight);
  belay_cache_stats_t *stats = &flight->cache->stats;
  stats->loads++;
  stats->losers += flight->loser;
  if (!is_waited_for(flight)) {
    stats->refreshes++;
    stats->early += flight->early;
  }
  flight->loaded_turn = ++flight->turn;
  flight->began = belay__now(belay);
  belay__timer_set(belay, BELAY__RANK_OTHER, &flight->timer,
                   belay__after_ms(belay, flight->cache->options.load_timeout_ms));
}

/* It is found by nobody any more. */
static void be_over(belay__flight_t *flight) {
  belay_cache_t *cache = flight->cache;
  belay__table_remove(&cache->flights, &flight->entry);
  belay__flight_serve(flight, UINT64_MAX, belay__cache_refuse(BELAY_ECANCELED, 0));
  belay__unlisten(&flight->ear);
  belay__load_leave(flight);
  if (flight->away)
    cache->away_loads--;
  if (!cache->handle.closing)
    belay__pin_over(cache, flight->key, flight->key_len, flight->left_ms);
  if (flight->asking)
    (void)belay_request_cancel(&flight->request); /* it comes back */
  if (!belay__flight_end_lease(flight) && !flight->asking)
    belay__flight_free(flight);
}

/* Begins what belongs to the state; an error: it could not be begun. */
static int enter(belay__flight_t *flight) {
  switch ((state_t)flight->state) {
  case ASKING:
    return belay__flight_ask_filter(flight);
  case LOCKING:
    return belay__flight_ask_lease(flight);
  case WAITING:
    wait_a_while(flight);
    return 0;
  case LOOKING:
    flight->woken = false;
    return belay__flight_ask_look(flight);
  case BEGINNING:
    return belay__flight_ask_begin(flight);
  case LIMITING:
    return belay__flight_ask_limiter(flight);
  case READY:
    belay__load_ready(flight);
    return 0;
  case LOADING:
    await_load(flight);
    return 0;
  case FILLING:
    return belay__flight_ask_fill(flight);
  case FAILING:
    return belay__flight_ask_fail(flight);
  case OVER:
    be_over(flight);
    return 0;
  }
  return 0;
}

void belay__flight_step(belay__flight_t *flight, belay__flight_event_t event, int arg) {
  while (flight->state != OVER) {
    belay__timer_stop(belay_of(flight), BELAY__RANK_OTHER, &flight->timer);
    if (flight->state == LOADING)
      belay__load_detach(flight);
    flight->state = (uint8_t)(event == BELAY__FLIGHT_CLOSE ? OVER : next_state(flight, event, arg));
    flight->asked_turn = ++flight->turn;
    arg = enter(flight);
    if (arg == 0)
      return;
    event = BELAY__FLIGHT_ERROR;
  }
}

void belay__flight_on_timer(belay__timer_t *timer) {
  belay__flight_t *flight = BELAY__CONTAINER(timer, belay__flight_t, timer);
  if (flight->state == LOADING)
    belay__flight_step(flight, BELAY__FLIGHT_FAILED, BELAY_ETIMEDOUT);
  else
    belay__flight_step(flight, BELAY__FLIGHT_WAKE, 0);
}

void belay__flight_on_close(belay__child_t *child) {
  belay__flight_step(BELAY__CONTAINER(child, belay__flight_t, child), BELAY__FLIGHT_CLOSE, 0);
}

/* Enters its first state. */
static void begin(belay__flight_t *flight, state_t state) {
  flight->state = (uint8_t)state;
  flight->asked_turn = ++flight->turn;
  int error = enter(flight);
  if (error != 0)
    belay__flight_step(flight, BELAY__FLIGHT_ERROR, error);
}

void belay__flight_begin(belay__flight_t *flight) {
  const belay_cache_options_t *o = &flight->cache->options;
  begin(flight, o->filter != NULL     ? ASKING
                : flight->lead_ms > 0 ? LOOKING
                : o->lock             ? LOCKING
                                      : BEGINNING);
}

void belay__flight_begin_away(belay__flight_t *flight) {
  (void)be_away_load(flight);
  begin(flight, READY);
}

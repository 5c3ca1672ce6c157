#include "lease/wait/poll_delay.h"

#include "core/loop/backoff.h"
#include "lease/quorum/quarantine.h"
#include "lease/wait/turns.h"

/* Longest delay between a first attempt that found the lease held and the second attempt. */
#define FIRST_POLL_MS UINT64_C(5)
/* Smallest spread of delays with several nodes, in durations of the last attempt. */
#define ROUNDS_APART 4
/* Longest delay of the attempt that BELAY__WOKEN_AGAIN causes. It is also the longest delay after
 * a status other than BELAY_EHELD for a waiter with a place on the server: the place may be gone,
 * and then no message wakes the waiter. */
#define FAILED_MAX_MS UINT64_C(1000)
/* After a message for all waiters, each waiter asks after a random delay of half of this time to
 * all of it. Each consecutive attempt of the waiter that found the lease held halves the time, at
 * most WAKE_HALVINGS times. */
#define WAKE_SPREAD_US UINT64_C(800)
#define WAKE_HALVINGS 6
/* Shortest pause of YIELD_BRIEFLY, on one node and on several; the longest is twice as long. Woken
 * waiters of other clients send their attempts meanwhile. */
#define YIELD_US UINT64_C(400)
#define QUORUM_YIELD_MS UINT64_C(2)
/* Shortest pause of YIELD_LONG; the longest is twice as long. Some of the waiters that only poll
 * send their attempts meanwhile. */
#define LONG_YIELD_MS UINT64_C(10)
/* YIELD_LONG applies after this time of consecutive grants, with and without notifications. */
#define STREAK_MAX_MS UINT64_C(500)
#define POLLED_STREAK_MAX_MS UINT64_C(100)

/* Duration of the last attempt. It is limited to the timeouts of its rounds (three with fencing),
 * because a stalled loop makes the attempt seem longer. */
static uint64_t round_took(const belay__lease_t *lease, uint64_t now) {
  uint64_t most = lease->config->timeout * BELAY__MS * (lease->config->fencing ? 3 : 1);
  return belay__earlier(now - lease->active->started_at, most);
}

/* Returns the smallest spread of delays; 0 with one node. With several nodes, contenders that split
 * the votes must not meet again, so their delays must differ by more than a round. */
static uint64_t contention_spread(const belay__lease_t *lease, uint64_t now) {
  return lease->members > 1 ? ROUNDS_APART * round_took(lease, now) : 0;
}

/* True if a holder that uses our ttl was granted the lease at most retry_max ago. A renewal by the
 * holder looks the same. */
static bool changes_hands(const belay__lease_t *lease) {
  int64_t ttl = lease->config->ttl; /* other kinds may report another time than the holder's */
  return lease->config->kind->hands_over && lease->active->holder_ms <= ttl &&
         lease->active->holder_ms + lease->config->retry_max >= ttl;
}

/* Limits the delay of a waiter with a place on the server to `most` nanoseconds. */
static belay__delay_t keep_place(const belay__lease_t *lease, belay__delay_t delay, uint64_t most) {
  if (lease->active->ticket == 0 || delay.max <= most)
    return delay;
  return (belay__delay_t){belay__earlier(delay.min, most / 2), most};
}

/* Returns the delay after an attempt that found the lease held. The delay is short after the first
 * attempt. From the third such attempt in a row on, the delay doubles each time. If the lease
 * changes hands, the delay stays retry_min to retry_max. */
static belay__delay_t poll_delay(const belay__lease_t *lease) {
  const belay__lease_config_t *config = lease->config;
  if (lease->active->attempts == 1)
    return belay__delay_ms(belay__earlier(config->retry_min, 1),
                           belay__earlier(config->retry_max, FIRST_POLL_MS));
  uint32_t found_held = lease->active->found_held;
  unsigned doublings = found_held > 2 && !changes_hands(lease) ? found_held - 2 : 0;
  belay__delay_t delay =
      belay__delay_poll(config->retry_min, config->retry_max, doublings, config->backoff_max);
  return keep_place(lease, delay, config->waiter_ttl * BELAY__MS / 3);
}

uint64_t belay__poll_woken(const belay__lease_t *lease, uint64_t now, belay__woken_t by) {
  uint64_t least = 0, spread = 0;
  uint64_t halvings = belay__earlier(lease->active->found_held, WAKE_HALVINGS);
  switch (by) {
  case BELAY__WOKEN_ALL:
    least = (WAKE_SPREAD_US * 1000 >> halvings) / 2;
    spread = least + contention_spread(lease, now);
    break;
  case BELAY__WOKEN_ALONE:
    break;
  case BELAY__WOKEN_CONNECTED:
    spread = BELAY__SPREAD_MS * BELAY__MS;
    break;
  case BELAY__WOKEN_AGAIN:
    spread = belay__earlier(lease->config->retry_max, FAILED_MAX_MS) * BELAY__MS;
    break;
  }
  belay__delay_t range = {least + 1, least + (spread > 0 ? spread : 1)};
  uint64_t when = now + belay__delay_draw(belay__lease_belay(lease), range), delay;
  if (by == BELAY__WOKEN_ALL && belay__turns_delay(lease, &delay))
    when = now + 1 + delay;
  return belay__earlier(when, lease->active->wait_until);
}

uint64_t belay__poll_streak_max(const belay__lease_t *lease) {
  return (lease->config->notify ? STREAK_MAX_MS : POLLED_STREAK_MAX_MS) * BELAY__MS;
}

uint64_t belay__poll_yielded(const belay__lease_t *lease, uint64_t now, belay__yield_t how) {
  uint64_t least = YIELD_US * 1000;
  if (how == BELAY__YIELD_LONG)
    least = LONG_YIELD_MS * BELAY__MS;
  else if (lease->members > 1)
    least = QUORUM_YIELD_MS * BELAY__MS;
  uint64_t when =
      now + belay__delay_draw(belay__lease_belay(lease), (belay__delay_t){least, 2 * least});
  uint64_t others = belay__turns_return_at(lease);
  return when > others ? when : others;
}

/* Returns the delay after an attempt that ended with another status than BELAY_EHELD. */
static belay__delay_t error_delay(const belay__lease_t *lease) {
  belay__delay_t delay = belay__delay_poll(lease->config->retry_min, lease->config->retry_max,
                                           lease->active->failures, BELAY__BACKOFF_MAX_MS);
  return keep_place(lease, delay, FAILED_MAX_MS * BELAY__MS);
}

uint64_t belay__poll_next(const belay__lease_t *lease, int status, uint64_t now) {
  belay__delay_t delay = status == BELAY_EHELD ? poll_delay(lease) : error_delay(lease);
  uint64_t spread = contention_spread(lease, now);
  if (delay.max - delay.min < spread)
    delay.max = delay.min + spread;
  uint64_t when = now + belay__delay_draw(belay__lease_belay(lease), delay);
  uint64_t news = belay__quarantine_ends(lease); /* a node gets its vote, or the lease is free */
  if (status == BELAY_EHELD && lease->active->holder_ms >= 0) {
    uint64_t free_at = now + ((uint64_t)lease->active->holder_ms + 1) * BELAY__MS;
    news = belay__earlier(news, free_at);
  }
  if (news < when) {
    news += belay__spread(belay__lease_belay(lease), BELAY__SPREAD_MS * BELAY__MS);
    when = belay__earlier(when, news);
  }
  return belay__earlier(when, lease->active->wait_until);
}

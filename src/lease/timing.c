/* When things are due. Nothing here changes a lease. */
#include "lease/lease.h"

#define FIRST_POLL_MS UINT64_C(5)          /* the second attempt comes within this */
#define REFUSED_REST_MAX_MS UINT64_C(2000) /* between attempts that the server refuses */
#define ROUNDS_APART 4                     /* the least spread of delays of a quorum, in rounds */
#define HERD_MS UINT64_C(10)               /* spreads who wakes when a holder's ttl ends */
#define RENEW_RETRY_MS UINT64_C(20)        /* after a failed renewal; doubles up to ttl/10 */

uint64_t belay__lease_validity(uint32_t ttl_ms, int32_t drift_ms) {
  uint64_t drift =
      drift_ms >= 0 ? (uint64_t)drift_ms * BELAY__MS : ttl_ms * BELAY__MS / 100 + 2 * BELAY__MS;
  uint64_t ttl = ttl_ms * BELAY__MS;
  return ttl > drift ? ttl - drift : 0;
}

uint64_t belay__lease_forgotten_after(uint32_t ttl_ms) {
  return ttl_ms * BELAY__MS + ttl_ms * BELAY__MS / 100 + 2 * BELAY__MS;
}

/* The quorum-th largest of the members' times. */
uint64_t belay__lease_deadline(const belay__lease_t *lease) {
  for (unsigned i = 0; i < lease->members; i++) {
    unsigned as_long = 0, longer = 0;
    for (unsigned j = 0; j < lease->members; j++) {
      as_long += lease->member[j].until >= lease->member[i].until;
      longer += lease->member[j].until > lease->member[i].until;
    }
    if (longer < lease->quorum && as_long >= lease->quorum)
      return lease->member[i].until;
  }
  return 0;
}

bool belay__lease_renews(const belay__lease_t *lease, uint64_t now) {
  return lease->terms.renew &&
         (lease->terms.max_hold == BELAY_FOREVER ||
          (now - lease->held_since) / BELAY__MS < (uint64_t)lease->terms.max_hold);
}

/* At most half of what can be trusted, so that there is time for a second try. */
static uint64_t renew_after(const belay__lease_t *lease, uint64_t validity) {
  uint64_t ttl = lease->ttl * BELAY__MS, after = lease->terms.renew_after * BELAY__MS;
  if (after == 0)
    after = ttl / 3;
  if (after < ttl / 10)
    after = ttl / 10;
  return after < validity / 2 ? after : validity / 2;
}

/* So long after the send that the present deadline counts from. */
uint64_t belay__lease_renewal_due(const belay__lease_t *lease, uint64_t now) {
  if (!belay__lease_renews(lease, now))
    return BELAY__NEVER;
  uint64_t deadline = belay__lease_deadline(lease);
  uint64_t validity = belay__lease_validity(lease->ttl, lease->terms.drift);
  uint64_t rest = validity - renew_after(lease, validity);
  return deadline > now + rest ? deadline - rest : now + 1;
}

uint64_t belay__lease_renewal_retry(const belay__lease_t *lease, uint64_t now) {
  uint64_t most = lease->ttl * BELAY__MS / 10;
  uint64_t delay = (RENEW_RETRY_MS * BELAY__MS) << (lease->failures < 10 ? lease->failures : 10);
  if (delay > most)
    delay = most;
  return now + 1 + delay / 2 + belay__random_below(lease->belay, delay / 2);
}

/* The largest random delay after an attempt that was refused or not answered. */
static uint64_t backed_off(const belay__lease_t *lease, uint64_t max) {
  uint64_t top = max << (lease->failures < 8 ? lease->failures : 8);
  uint64_t most = REFUSED_REST_MAX_MS * BELAY__MS;
  if (top < most)
    return top;
  return max > most ? max : most;
}

/* How long the last attempt took; a loop that stood still meanwhile does not count. */
static uint64_t round_took(const belay__lease_t *lease, uint64_t now) {
  uint64_t most = lease->terms.timeout * BELAY__MS * (lease->terms.fencing ? 3 : 1);
  return now - lease->asked_at < most ? now - lease->asked_at : most;
}

uint64_t belay__lease_next_attempt(const belay__lease_t *lease, int status, uint64_t now) {
  uint64_t min = lease->terms.retry_min * BELAY__MS, max = lease->terms.retry_max * BELAY__MS;
  if (status != BELAY_EHELD) {
    max = backed_off(lease, max);
  } else if (lease->attempts == 1) {
    min = min < BELAY__MS ? min : BELAY__MS;
    max = max < FIRST_POLL_MS * BELAY__MS ? max : FIRST_POLL_MS * BELAY__MS;
  }
  /* Contenders that split the votes must not meet again: the delays differ by more than a round takes. */
  uint64_t spread = lease->members > 1 ? ROUNDS_APART * round_took(lease, now) : 0;
  if (max - min < spread)
    max = min + spread;
  uint64_t when = now + min + belay__random_below(lease->belay, max - min + 1);
  uint64_t news = belay__quarantine_ends(lease); /* what was in the way may be gone by then */
  if (status == BELAY_EHELD && lease->holder_ms >= 0) {
    uint64_t free_at = now + ((uint64_t)lease->holder_ms + 1) * BELAY__MS;
    news = news < free_at ? news : free_at;
  }
  if (news < when) {
    news += belay__random_below(lease->belay, HERD_MS * BELAY__MS);
    when = when < news ? when : news;
  }
  return when < lease->wait_until ? when : lease->wait_until;
}

#include "lease/machine/renewal_time.h"

#include "core/loop/backoff.h"
#include "lease/machine/deadline.h"

/* number of groups in which the renewals of one period are sent; up to twice that */
#define RENEWAL_SLOTS 16
#define CHECK_SPREAD_MS                                                                            \
  UINT64_C(100) /* leases that were held through a lost connection ask within this */
#define CHECKS_APART_MS                                                                            \
  UINT64_C(100) /* a holder that hears many messages asks no more often than this */

bool belay__lease_renews(const belay__lease_t *lease, uint64_t now) {
  return lease->config->renew &&
         (lease->config->max_hold == BELAY_FOREVER ||
          (now - lease->held_since) / BELAY__MS < (uint64_t)lease->config->max_hold);
}

/* At most half of the validity, so that a second try fits. */
static uint64_t renew_after(const belay__lease_t *lease, uint64_t validity) {
  uint64_t ttl = lease->ttl * BELAY__MS, after = lease->config->renew_after * BELAY__MS;
  if (after == 0)
    after = ttl / 3;
  if (after < ttl / 10)
    after = ttl / 10;
  return after < validity / 2 ? after : validity / 2;
}

/* So long after the send that the present deadline counts from; a little earlier, so that all that are due at about
 * the same time go out together. How much earlier differs from lease to lease by up to a quarter: otherwise those
 * that a loop which was away has renewed together would be due together for ever. */
uint64_t belay__lease_renewal_due(const belay__lease_t *lease, uint64_t now) {
  if (!belay__lease_renews(lease, now))
    return BELAY__NEVER;
  uint64_t deadline = belay__lease_deadline(lease);
  uint64_t validity = belay__lease_validity(lease->ttl, lease->config->drift);
  uint64_t after = renew_after(lease, validity), rest = validity - after;
  uint64_t due = deadline > now + rest ? deadline - rest : 0;
  uint64_t sooner = after / 4 / 65536 * (lease->route >> 16);
  due = due > sooner ? due - sooner : 0;
  uint64_t slot = 1; /* a power of two, so that those of different ttls meet */
  while (slot <= after / RENEWAL_SLOTS / 2)
    slot *= 2;
  due -= due % slot;
  return due > now ? due : now + 1;
}

uint64_t belay__lease_renewal_retry(const belay__lease_t *lease, uint64_t now) {
  uint64_t most = lease->ttl * BELAY__MS / 10;
  return now + 1 + belay__backoff(belay__lease_belay(lease), lease->failures, most);
}

uint64_t belay__lease_renewal_soon(const belay__lease_t *lease, uint64_t now) {
  return now + belay__spread(belay__lease_belay(lease), BELAY__SPREAD_MS * BELAY__MS);
}

uint64_t belay__lease_check_at(const belay__lease_t *lease, uint64_t now, belay__check_t why) {
  uint64_t spread = lease->ttl * BELAY__MS / 50, most = CHECK_SPREAD_MS * BELAY__MS, last = 0;
  if (why == BELAY__CHECK_CONNECTION_LOST)
    return now + belay__spread(belay__lease_belay(lease), spread < most ? spread : most);
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].sent > last)
      last = lease->member[i].sent;
  uint64_t when = last + CHECKS_APART_MS * BELAY__MS;
  return when > now ? when : now + 1;
}

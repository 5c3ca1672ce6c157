#include "lease/machine/deadline.h"

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

uint64_t belay__lease_remaining(const belay__lease_t *lease) {
  if (!belay__lease_is_held(lease))
    return 0;
  uint64_t deadline = belay__lease_deadline(lease), now = belay__now(belay__lease_belay(lease));
  return deadline > now ? deadline - now : 0;
}

bool belay__lease_set_expiry(belay__lease_t *lease) {
  belay_t *belay = belay__lease_belay(lease);
  uint64_t deadline = belay__lease_deadline(lease), now = belay__now(belay);
  belay__timer_set(belay, BELAY__RANK_EXPIRY, &lease->expiry, deadline > 0 ? deadline : now);
  return deadline > now;
}

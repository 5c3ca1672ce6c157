/* Turns among clients. The server publishes a release to all subscribers, and the first attempt
 * wins: the fastest client's, not the longest waiter's. So clients order themselves. A client
 * learns from its own release how many other connections got the message: `others`. Each of them
 * has a turn before this client's next one. When a waiter has seen n releases since its wait
 * began, about n of these turns are over:
 *
 *    release seen --n >= others--> asks at once: it has waited longest
 *                 --n < others --> asks (others - n) steps later, and sooner with each release
 *
 * All steps together are a small part of a hold, so that little time is lost if earlier clients
 * have left. If a client has made no recent release, it has no count of others. Its waiters then
 * ask after a random delay (belay__poll_woken()). Only the plain lock on one server takes turns:
 * only there a release wakes all clients, and the lock goes to exactly one of them. */
#include "lease/wait/turns.h"

#include "lease/wait/wake.h"

/* Longest time between the attempts of two clients with successive turns. */
#define STEP_MAX_US UINT64_C(500)
/* Longest time for which a woken waiter lets other clients go first. */
#define SPREAD_MAX_MS UINT64_C(20)
/* The spread of the turns (SPREAD_MAX_MS) and RETURN_MAX_US are also each at most 1/8 of the
 * client's last hold. */
#define HOLD_PART 8
/* `others` stays valid for this number of rounds, in which each client holds the lock once. */
#define TURNS_KNOWN 4
/* Longest time after the last turn until all woken clients have sent their attempts. */
#define RETURN_MAX_US UINT64_C(400)

static belay__contenders_t *slot_of(const belay__lease_t *lease) {
  return &belay__client_leases(belay__lease_client(lease, 0))
              ->contenders[lease->entry.hash % BELAY__CONTENDERS];
}

static bool takes_turns(const belay__lease_t *lease) {
  return lease->members == 1 && lease->config->kind->hands_over && lease->config->notify;
}

/* True if the other clients have had their turns TURNS_KNOWN times, or have left. */
static bool is_stale(const belay__contenders_t *contenders, uint64_t now) {
  uint64_t turn = (contenders->others + UINT64_C(1)) * (contenders->held_for + BELAY__MS);
  return now - contenders->released_at > TURNS_KNOWN * turn;
}

/* Returns NULL if no other clients are known to wait for the key, or the lease takes no turns. */
static const belay__contenders_t *find_contenders(const belay__lease_t *lease) {
  const belay__contenders_t *contenders = slot_of(lease);
  if (!takes_turns(lease) || contenders->others == 0 || contenders->hash != lease->entry.hash)
    return NULL;
  return is_stale(contenders, belay__lease_now(lease)) ? NULL : contenders;
}

static uint64_t spread_of(const belay__contenders_t *contenders) {
  uint64_t steps = contenders->others * STEP_MAX_US * 1000;
  return belay__earlier(belay__earlier(steps, SPREAD_MAX_MS * BELAY__MS),
                        contenders->held_for / HOLD_PART);
}

void belay__turns_note(belay__lease_t *lease) {
  belay__contenders_t *contenders = slot_of(lease);
  if (!takes_turns(lease) || lease->active->notified >= BELAY__NOTIFIED_UNKNOWN_MIN)
    return;
  uint32_t others =
      lease->active->notified - (lease->active->notified > 0 && belay__wake_is_subscribed(lease));
  if (others == 0 && contenders->hash != lease->entry.hash)
    return; /* keeps the entry of another key */
  uint64_t now = belay__lease_now(lease);
  *contenders = (belay__contenders_t){.hash = lease->entry.hash,
                                      .released_at = now,
                                      .held_for = now - lease->held_since,
                                      .others = others};
}

bool belay__turns_delay(const belay__lease_t *lease, uint64_t *delay) {
  const belay__contenders_t *contenders = find_contenders(lease);
  if (contenders == NULL)
    return false;
  uint32_t before = lease->active->releases < contenders->others
                        ? contenders->others - lease->active->releases
                        : 0;
  *delay = spread_of(contenders) * before / contenders->others;
  return true;
}

uint64_t belay__turns_return_at(const belay__lease_t *lease) {
  const belay__contenders_t *contenders = find_contenders(lease);
  if (contenders == NULL)
    return 0;
  return contenders->released_at + spread_of(contenders) +
         belay__earlier(RETURN_MAX_US * 1000, contenders->held_for / HOLD_PART);
}

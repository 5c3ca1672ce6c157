/* The fair lock: first come, first served, among all clients.
 *
 *    acquire --> a ticket in the server's queue --first in the queue, and the lock is free--> held
 *                  | each attempt renews the place; without attempts it expires
 *                  +--cancel, close, timeout--> removed; if it was the first and the lock is
 *                                               free, the next waiter is woken
 *
 * The key is the plain lock's, so that both exclude each other; only fair locks respect the
 * queue. The order is that of the first attempts at the server. A release wakes the first waiter
 * by its ticket: all waiters get the message, and the others ignore it. Each waiter also asks when
 * the first place would expire, or earlier by polling. The script of that attempt removes a first
 * waiter whose place has expired, and wakes the next one. */
#include "lease/kinds/fair.h"

#include "core/call/publish.h"
#include "lease/kinds/lock.h"
#include "scripts.gen.h"

#define QUEUE_FULL (-3)
#define TOO_MANY (-4)

void belay__fair_put_place(const belay__lease_t *lease, belay__call_t *call) {
  belay__lease_put_ticket(lease, call);
  belay__call_arg_int(call, lease->config->waiter_ttl);
  belay__publish_arg(call, lease->config->notify);
}

int belay__fair_acquired(belay__lease_t *lease, const belay__call_t *call,
                         const belay__reply_t *reply, int64_t *holder_ms) {
  int64_t n;
  if (belay__reply_integer(reply, TOO_MANY, QUEUE_FULL, &n))
    return n == QUEUE_FULL ? BELAY_EBUSY : BELAY_EMISMATCH;
  return belay__lock_acquired(lease, call, reply, holder_ms);
}

static void acquire(const belay__lease_t *lease, belay__call_t *call) {
  belay__lease_begin_acquire(lease, call, &belay__script_fair_acquire, 3);
  belay__fair_put_place(lease, call);
  belay__lease_put_fence_ttl(lease, call);
}

static const char *const suffixes[] = {"::queue", "::alive", NULL};

const belay__kind_t belay__fair_kind = {
    .family = "lock",
    .suffixes = suffixes,
    .extend = &belay__script_lock_extend,
    .release = &belay__script_fair_release,
    .extend_keys = 1,
    .tickets = true,
    .acquire = acquire,
    .acquired = belay__fair_acquired,
    .notify_owner = belay__lock_notify,
};

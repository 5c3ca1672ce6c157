/* A queue: the leases of one key in one client, in the order of service. Contenders and holders
 * come first, then the leases that wait for their turn:
 *
 *    queues --key--> first: HELD, or ACQUIRING ... --> QUEUED --> QUEUED --> (round again)
 *
 * So one lease contends, further waiters cost the server nothing, and a holder finds the next
 * lease behind itself. The queue is a ring inside the active parts of the leases; its first lease
 * is in the client's table. A dormant lease is alone in its queue. */
#include "lease/wait/queue.h"

#include <string.h>

#include "lease/wait/poll_delay.h"
#include "lease/wait/wake.h"

/* Largest number of leases behind the first one that get a turn because of one grant. */
#define RUN_MAX 256

static belay__lease_t *lease_of_entry(const belay__entry_t *entry) {
  return BELAY__CONTAINER(entry, belay__lease_t, entry);
}

static belay__lease_t *next_in_ring(const belay__lease_t *lease) {
  return BELAY__CONTAINER(lease->active->queue_node.next, belay__active_t, queue_node)->lease;
}

/* True if the lease was granted since its acquire began, and did not end with a hand-over. */
static bool was_granted(const belay__lease_t *lease) {
  return lease->held_since != 0;
}

static belay__table_t *table_of(const belay__lease_t *lease) {
  return &belay__client_leases(belay__lease_client(lease, 0))->queues;
}

/* Leases share a queue if they have the same key and number of nodes, and the same options about
 * waiting, replicas and the quarantine. */
static bool is_same_queue(const belay__entry_t *entry, const void *arg, size_t len) {
  (void)len;
  const belay__lease_t *one = lease_of_entry(entry), *other = arg;
  const belay__lease_config_t *a = one->config, *b = other->config;
  return one->key_len == other->key_len &&
         memcmp(belay__lease_key(one), belay__lease_key(other), one->key_len) == 0 &&
         one->members == other->members && a->min_replicas == b->min_replicas &&
         a->quarantine == b->quarantine && a->notify == b->notify && a->retry_min == b->retry_min &&
         a->retry_max == b->retry_max && a->backoff_max == b->backoff_max;
}

/* Returns the first lease of the queue that the lease belongs to, or NULL. Sets the hash in
 * lease->entry. */
static belay__lease_t *find_first(belay__lease_t *lease) {
  belay__table_t *table = table_of(lease);
  uint64_t hash =
      belay__table_hash(belay__lease_belay(lease), table, belay__lease_key(lease), lease->key_len);
  lease->entry.hash = hash;
  belay__entry_t *entry = belay__table_find(table, hash, is_same_queue, lease, 0);
  return entry != NULL ? lease_of_entry(entry) : NULL;
}

static belay__lease_t *first_of(const belay__lease_t *lease) {
  return lease_of_entry(
      belay__table_find(table_of(lease), lease->entry.hash, is_same_queue, lease, 0));
}

void belay__queue_turn(belay__lease_t *lease, belay__yield_t yield) {
  lease->active->turn_queued = true;
  lease->active->yield = (uint8_t)yield;
  belay__defer(belay__lease_belay(lease), &lease->task);
}

/* True if the lease waits for its turn, and the turn has not come. */
static bool waits_for_turn(const belay__lease_t *lease) {
  return lease->state == BELAY__LEASE_QUEUED && !lease->active->turn_queued;
}

/* Makes a lease the first of its queue instead of `was`. The table has room, because `was` leaves
 * it. */
static void make_first(belay__lease_t *lease, belay__lease_t *was) {
  belay__table_remove(table_of(was), &was->entry);
  (void)belay__table_add(belay__lease_belay(lease), table_of(lease), &lease->entry,
                         lease->entry.hash);
}

bool belay__queue_join(belay__lease_t *lease, bool try) {
  lease->active->shares_grant = false;
  if (!lease->config->kind->client_queue)
    return false;
  belay__lease_t *first = find_first(lease);
  if (first == NULL) {
    /* Without memory for the table the lease stands alone, and other leases contend, too. */
    if (belay__table_add(belay__lease_belay(lease), table_of(lease), &lease->entry,
                         lease->entry.hash) == 0)
      lease->in_queue = true;
    return false;
  }
  if (!belay__lease_activate(first)) /* without memory for the ring, the lease stands alone, too */
    return false;
  /* The place before the first lease is the last one of the ring. */
  belay__list_insert_before(&first->active->queue_node, &lease->active->queue_node);
  lease->in_queue = true;
  if (try)
    make_first(lease, first);
  return !try;
}

/* True if the lease waits, its wait is not over, and it is in no hand-over. */
static bool may_be_next(const belay__lease_t *lease) {
  return (lease->state == BELAY__LEASE_QUEUED || lease->state == BELAY__LEASE_WAITING) &&
         lease->active->partner == NULL && belay__lease_now(lease) < lease->active->wait_until;
}

belay__lease_t *belay__queue_next(const belay__lease_t *lease) {
  if (!lease->in_queue)
    return NULL;
  for (belay__lease_t *other = next_in_ring(lease); other != lease; other = next_in_ring(other))
    if (may_be_next(other))
      return other;
  return NULL;
}

int belay__queue_reason(const belay__lease_t *lease) {
  const belay__lease_t *first = first_of(lease);
  bool asks = first->state == BELAY__LEASE_ACQUIRING || first->state == BELAY__LEASE_FENCING ||
              first->state == BELAY__LEASE_WAITING;
  return asks && first->error != 0 ? first->error : BELAY_EHELD;
}

void belay__queue_inherit(belay__lease_t *next, const belay__lease_t *gone) {
  next->active->grants_in_row = gone->active->grants_in_row + was_granted(gone);
  next->active->grants_in_row_since = gone->active->grants_in_row_since;
  if (gone->active->acquiring && !was_granted(gone)) /* the client has waited since then */
    next->active->releases = gone->active->releases;
}

/* Decides whether waiters of other clients go before `next`. They do so only after a grant to
 * `gone`, and only for a kind that hands over.
 *
 *   - Several nodes: briefly, because requests at the same time would split the votes.
 *   - One node, up to max_handovers grants in a row: no.
 *   - One node, more grants, and the release notified other clients: briefly.
 *   - One node, more grants, otherwise: for longer after belay__poll_streak_max(), because waiters
 *     of other clients may poll; before that time no. */
static belay__yield_t choose_yield(const belay__lease_t *next, const belay__lease_t *gone) {
  if (!gone->config->kind->hands_over || !was_granted(gone))
    return BELAY__YIELD_NOT;
  if (gone->members > 1)
    return BELAY__YIELD_BRIEFLY;
  if (next->active->grants_in_row <= gone->config->max_handovers)
    return BELAY__YIELD_NOT;
  if (gone->config->notify && belay__wake_reached_others(gone))
    return BELAY__YIELD_BRIEFLY;
  uint64_t since = belay__lease_now(gone) - gone->active->grants_in_row_since;
  return since >= belay__poll_streak_max(gone) ? BELAY__YIELD_LONG : BELAY__YIELD_NOT;
}

/* Notes that `next` asks because of the grant of another lease, which `next` may share. A lease
 * that got its own grant in this way, at its first attempt, admits no further leases, because
 * waiters of other clients wait. */
static void share_grant(belay__lease_t *next, const belay__lease_t *granted) {
  next->active->shares_grant = !granted->active->shares_grant || granted->active->attempts > 1;
  next->active->granted_token = granted->token;
}

/* Gives the first lease a turn, after `gone` has left the queue. */
static void queue_first_turn(belay__lease_t *first, const belay__lease_t *gone, bool granted) {
  belay__yield_t yield = granted ? BELAY__YIELD_NOT : choose_yield(first, gone);
  if (first->active->grants_in_row > gone->config->max_handovers)
    first->active->grants_in_row = 0; /* the lock went back to the server */
  if (yield != BELAY__YIELD_NOT)
    first->active->grants_in_row_since = 0;
  if (granted && gone->config->kind->may_share != NULL &&
      gone->config->kind->may_share(gone, first))
    share_grant(first, gone);
  belay__queue_turn(first, yield);
}

/* Gives a turn to the leases directly behind the first, and stops before one that may not share the
 * grant. */
static void queue_shared_turns(belay__lease_t *first, const belay__lease_t *granted) {
  belay__lease_t *next = next_in_ring(first);
  for (unsigned i = 0; i < RUN_MAX && waits_for_turn(next); i++, next = next_in_ring(next)) {
    if (!granted->config->kind->may_share(granted, next))
      return;
    share_grant(next, granted);
    belay__queue_turn(next, BELAY__YIELD_NOT);
  }
}

/* Gives the first lease a turn after `gone` has left, if it is QUEUED, or if it is WAITING and
 * `gone` no longer holds the lock. */
static void queue_next_turn(belay__lease_t *first, const belay__lease_t *gone, bool granted) {
  bool freed = first->state == BELAY__LEASE_WAITING && !first->active->turn_queued &&
               was_granted(gone) && !granted;
  if ((!waits_for_turn(first) && !freed) || belay__lease_client(gone, 0)->closing)
    return; /* a closing client closes all of them */
  belay__queue_inherit(first, gone);
  queue_first_turn(first, gone, granted);
  if (granted && gone->config->kind->may_share != NULL)
    queue_shared_turns(first, gone);
}

void belay__queue_leave(belay__lease_t *lease, bool granted) {
  if (!lease->in_queue)
    return;
  lease->in_queue = false;
  if (lease->active == NULL || belay__list_empty(&lease->active->queue_node)) {
    belay__table_remove(table_of(lease), &lease->entry);
    return;
  }
  belay__lease_t *next = next_in_ring(lease);
  bool was_first = first_of(lease) == lease;
  belay__list_remove(&lease->active->queue_node);
  if (was_first)
    make_first(next, lease);
  queue_next_turn(was_first ? next : first_of(next), lease, granted);
}

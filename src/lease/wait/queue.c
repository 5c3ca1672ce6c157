/* A line: the leases of one key in one client, in the order in which they are served. Those that contend for it or
 * hold it stand in front, then those that wait for their turn:
 *
 *   lines --key--> first: HELD, or ACQUIRING ... --> QUEUED --> QUEUED --> (round again)
 *
 * So one contends, whoever waits beside it costs the server nothing, and a holder finds its heir behind itself. The
 * line is a ring that lives in the leases; its first is the one that is in the client's table. */
#include "lease/wait/queue.h"

#include <string.h>

#include "lease/wait/poll.h"
#include "lease/wait/wake.h"

#define RUN_MAX 256 /* who ask at once because of one grant */

static belay__lease_t *of_entry(const belay__entry_t *entry) {
  return BELAY__CONTAINER(entry, belay__lease_t, entry);
}

static belay__lease_t *after(const belay__lease_t *lease) {
  return BELAY__CONTAINER(lease->line.next, belay__lease_t, line);
}

static bool stands_in_line(const belay__lease_t *lease) {
  return lease->line.next != NULL;
}

/* True if the lease was granted since it joined the queue. */
static bool had(const belay__lease_t *lease) {
  return lease->held_since != 0;
}

static belay__table_t *table_of(const belay__lease_t *lease) {
  return &belay__client_leases(lease->member[0].client)->lines;
}

/* Those who ask for the same key in the same way stand in one line. */
static bool is_same(const belay__entry_t *entry, const void *arg, size_t len) {
  (void)len;
  const belay__lease_t *one = of_entry(entry), *other = arg;
  const belay__terms_t *a = one->terms, *b = other->terms;
  return one->key_len == other->key_len && memcmp(one->key, other->key, one->key_len) == 0 &&
         one->members == other->members && a->min_replicas == b->min_replicas &&
         a->quarantine == b->quarantine && a->notify == b->notify && a->retry_min == b->retry_min &&
         a->retry_max == b->retry_max && a->backoff_max == b->backoff_max;
}

/* The first in the line of that key; NULL if there is none. Notes the key's hash. */
static belay__lease_t *find_first(belay__lease_t *lease) {
  belay__table_t *table = table_of(lease);
  uint64_t hash = belay__table_hash(belay__lease_host(lease), table, lease->key, lease->key_len);
  lease->entry.hash = hash;
  belay__entry_t *entry = belay__table_find(table, hash, is_same, lease, 0);
  return entry != NULL ? of_entry(entry) : NULL;
}

static belay__lease_t *first_of(const belay__lease_t *lease) {
  return of_entry(belay__table_find(table_of(lease), lease->entry.hash, is_same, lease, 0));
}

void belay__queue_call(belay__lease_t *lease, belay__yield_t yield) {
  lease->bid->called = true;
  lease->bid->yield = (uint8_t)yield;
  belay__defer(belay__lease_host(lease), &lease->task);
}

/* True if the lease waits for its turn, and the turn has not come. */
static bool waits_for_turn(const belay__lease_t *lease) {
  return lease->state == BELAY__LEASE_QUEUED && !lease->bid->called;
}

/* In the place of the one that was first: for that there is room. */
static void put_first(belay__lease_t *lease, belay__lease_t *was) {
  belay__table_remove(table_of(was), &was->entry);
  (void)belay__table_add(belay__lease_host(lease), table_of(lease), &lease->entry,
                         lease->entry.hash);
}

bool belay__queue_join(belay__lease_t *lease, bool try) {
  lease->bid->hosted = false;
  if (!lease->terms->kind->lines_up)
    return false;
  belay__lease_t *first = find_first(lease);
  if (first == NULL) {
    /* Without memory for the table it stands alone: others then contend beside it. */
    if (belay__table_add(belay__lease_host(lease), table_of(lease), &lease->entry,
                         lease->entry.hash) == 0)
      belay__list_init(&lease->line);
    return false;
  }
  belay__list_insert_before(&first->line, &lease->line); /* last in the ring, or before the first */
  if (try)
    put_first(lease, first);
  return !try;
}

/* True if it may be the next: it waits, its wait is not over, and no other lease is being passed to it. */
static bool may_be_next(const belay__lease_t *lease) {
  return (lease->state == BELAY__LEASE_QUEUED || lease->state == BELAY__LEASE_WAITING) &&
         lease->partner == NULL && belay__now(belay__lease_host(lease)) < lease->bid->wait_until;
}

belay__lease_t *belay__queue_next(const belay__lease_t *lease) {
  if (!stands_in_line(lease))
    return NULL;
  for (belay__lease_t *other = after(lease); other != lease; other = after(other))
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
  next->streak = gone->streak + had(gone);
  next->streak_since = gone->streak_since;
  if (gone->bid != NULL && !had(gone)) /* their client has waited for as long as that */
    next->bid->releases = gone->bid->releases;
}

/* Whether others elsewhere are to go first: this client has had it for so many times, and others were told that it
 * is free, or may have been; or for so long, and others may be asking now and then; or what it asks for together
 * with them would be split. */
static belay__yield_t yields(const belay__lease_t *next, const belay__lease_t *gone) {
  if (!gone->terms->kind->passes || !had(gone))
    return BELAY__YIELD_NOT;
  if (gone->members > 1)
    return BELAY__YIELD_BRIEFLY;
  if (next->streak <= gone->terms->max_handovers)
    return BELAY__YIELD_NOT;
  if (gone->terms->notify && belay__wake_others(gone))
    return BELAY__YIELD_BRIEFLY;
  uint64_t since = belay__now(belay__lease_host(gone)) - gone->streak_since;
  return since >= belay__poll_streak_max(gone) ? BELAY__YIELD_LONG : BELAY__YIELD_NOT;
}

/* It asks because of a grant that it may have its own beside. Whoever comes in so brings nobody else: others
 * elsewhere wait. */
static void bring(belay__lease_t *next, const belay__lease_t *granted) {
  next->bid->hosted = !granted->bid->hosted || granted->attempts > 1;
  next->bid->host = granted->token;
}

/* It is the turn of the first, who waits for that. */
static void call_first(belay__lease_t *first, const belay__lease_t *gone, bool granted) {
  belay__yield_t yield = granted ? BELAY__YIELD_NOT : yields(first, gone);
  if (first->streak > gone->terms->max_handovers)
    first->streak = 0; /* it was given back to the server */
  if (yield != BELAY__YIELD_NOT)
    first->streak_since = 0;
  if (granted && gone->terms->kind->beside != NULL && gone->terms->kind->beside(gone, first))
    bring(first, gone);
  belay__queue_call(first, yield);
}

/* What was just granted others may have beside it: those right behind the first ask too. */
static void call_others(belay__lease_t *first, const belay__lease_t *granted) {
  belay__lease_t *next = after(first);
  for (unsigned i = 0; i < RUN_MAX && waits_for_turn(next); i++, next = after(next)) {
    if (!granted->terms->kind->beside(granted, next))
      return;
    bring(next, granted);
    belay__queue_call(next, BELAY__YIELD_NOT);
  }
}

/* Whose turn is it, now that `gone` has left? The first one's, if it waited for its turn; or for what `gone` had. */
static void call_next(belay__lease_t *first, const belay__lease_t *gone, bool granted) {
  bool freed = first->state == BELAY__LEASE_WAITING && !first->bid->called && had(gone) && !granted;
  if ((!waits_for_turn(first) && !freed) || gone->member[0].client->closing)
    return; /* or all of them end */
  belay__queue_inherit(first, gone);
  call_first(first, gone, granted);
  if (granted && gone->terms->kind->beside != NULL)
    call_others(first, gone);
}

void belay__queue_leave(belay__lease_t *lease, bool granted) {
  if (!stands_in_line(lease))
    return;
  belay__lease_t *next = after(lease);
  bool was_first = first_of(lease) == lease;
  if (next == lease) {
    belay__table_remove(table_of(lease), &lease->entry);
    lease->line = (belay__list_t){NULL, NULL};
    return;
  }
  belay__list_remove(&lease->line);
  lease->line = (belay__list_t){NULL, NULL};
  if (was_first)
    put_first(next, lease);
  call_next(was_first ? next : first_of(next), lease, granted);
}

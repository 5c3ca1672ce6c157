/* The buckets of a refiller, by key and in the order in which they are due, and their fillings.
 *
 *    a key: UNKNOWN --due: read--> in flight --reply--> KNOWN --a period later: add--> in flight
 *              ^                     |                   ^                              |  |
 *              |                     |                   +--reply: applied or not-------+  |
 *              +-----no reply--------+------------------------no reply---------------------+
 *
 * Each key is due a period after its last request ended, and the period is the same for all keys.
 * So a key goes to the end of the queue after a request, and the queue stays in order.
 *
 * Two fillings of one bucket are at least a period apart, whatever the number of refillers and
 * their knowledge of each other. Each filling increments the index from i to i + 1. The next
 * filling must name i + 1, which no refiller can learn before the first filling is done. A refiller
 * uses an index one period after it has learnt it, by its own clock. If another refiller has filled
 * meanwhile, the index differs and nothing is added. The refiller learns the new index from the
 * reply, and uses the new index a period later. These rules need no election; the election only
 * saves commands.
 *
 * The distance of a period holds while the index only grows. The index of a deleted or expired
 * bucket begins again with 0 and may reach an old value. So a refiller forgets the indexes that it
 * learnt in an earlier election, which may be long ago.
 *
 * A filling whose reply was lost may be done, not done, or still to be done. So the index is
 * forgotten and read again. Missed fillings are not made up for: after an interruption each bucket
 * gets one filling per period again. */
#include "limit/refiller/refiller.h"

#define UNKNOWN (-1)          /* an index */
#define IN_FLIGHT_MAX 256     /* requests in flight at once */
#define CLEAR_MAX 1000        /* keys freed per loop iteration */
#define RETRY_MS UINT64_C(10) /* delay after a request that could not be sent, in ms */

/* A request in flight. */
struct belay__filling {
  belay__list_t node; /* Link in refiller->in_flight */
  belay_request_t request;
  belay_refiller_t *refiller;
  belay__refill_key_t *key; /* NULL: the key was removed */
  bool adds;
};

/* ---- the table ---- */

static belay__refill_key_t *find_key(belay_refiller_t *refiller, belay_bytes_t key,
                                     uint64_t *hash) {
  *hash = belay__table_hash(belay__refiller_belay(refiller), &refiller->keys, key.data, key.len);
  return belay__keyed_find(&refiller->keys, *hash, key.data, key.len);
}

static void drop_key(belay_refiller_t *refiller, belay__refill_key_t *key) {
  if (key->filling != NULL)
    key->filling->key = NULL;
  belay__list_remove(&key->due_node);
  belay__table_remove(&refiller->keys, &key->keyed.entry);
  belay__keyed_free(belay__refiller_belay(refiller), &key->keyed);
}

static belay__refill_key_t *first_due(const belay_refiller_t *refiller) {
  return belay__list_empty(&refiller->due)
             ? NULL
             : BELAY__CONTAINER(refiller->due.next, belay__refill_key_t, due_node);
}

bool belay__refill_clear(belay_refiller_t *refiller) {
  belay__refill_key_t *key;
  for (int i = 0; i < CLEAR_MAX && (key = first_due(refiller)) != NULL; i++)
    drop_key(refiller, key);
  if (first_due(refiller) != NULL)
    return false;
  belay__table_free(belay__refiller_belay(refiller), &refiller->keys);
  return true;
}

int belay_refiller_add(belay_refiller_t *refiller, belay_bytes_t key, int64_t tokens) {
  uint64_t hash;
  int error = belay__refiller_check_key(refiller, key);
  if (error != 0)
    return error;
  belay_t *belay = belay__refiller_belay(refiller);
  error = belay__check_range(belay, "tokens", tokens, 0, refiller->bucket->capacity);
  if (error != 0)
    return error;
  belay__refill_key_t *found = find_key(refiller, key, &hash);
  if (found == NULL) {
    if (refiller->keys.count >= BELAY_REFILLER_KEYS_MAX)
      return BELAY_EBUSY;
    found = belay__keyed_new(belay, &refiller->keys, hash, sizeof *found, key.data, key.len);
    if (found == NULL)
      return BELAY_ENOMEM;
    found->index = UNKNOWN;
    belay__list_push_front(&refiller->due, &found->due_node);
  }
  found->tokens = tokens;
  if (belay__refiller_is_elected(refiller))
    belay__defer(belay, &refiller->task);
  return 0;
}

int belay_refiller_remove(belay_refiller_t *refiller, belay_bytes_t key) {
  uint64_t hash;
  int error = belay__refiller_check_key(refiller, key);
  belay__refill_key_t *found = error == 0 ? find_key(refiller, key, &hash) : NULL;
  if (found != NULL)
    drop_key(refiller, found);
  return error;
}

/* ---- fillings ---- */

static void on_reply(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  belay__filling_t *filling = request->data;
  belay_refiller_t *refiller = filling->refiller;
  belay__refill_key_t *key = filling->key;
  belay_t *belay = belay__refiller_belay(refiller);
  refiller->stats.failed += status != 0 && status != BELAY_ECANCELED;
  refiller->stats.filled += status == 0 && filling->adds && state->applied;
  refiller->stats.late += status == 0 && filling->adds && !state->applied;
  belay__list_remove(&filling->node);
  belay__free(belay, filling, sizeof *filling);
  refiller->in_flight_len--;
  if (key != NULL) {
    key->filling = NULL;
    key->index = status == 0 ? state->index : UNKNOWN;
    key->election = refiller->stats.elections;
    key->due = belay__now(belay) + refiller->period;
    belay__list_push(&refiller->due, &key->due_node);
  }
  belay__refiller_replied(refiller);
}

/* Send an add if the index is known, otherwise a read. An index from an earlier election is not
 * known any more. */
static int send(belay_refiller_t *refiller, belay__filling_t *filling) {
  belay__refill_key_t *key = filling->key;
  const belay_bytes_t name = {key->keyed.key, key->keyed.key_len};
  if (key->election != refiller->stats.elections)
    key->index = UNKNOWN;
  filling->adds = key->index >= 0 && key->index < BELAY_BUCKET_INDEX_MAX;
  return filling->adds ? belay_bucket_add(refiller->bucket, &filling->request, name,
                                          key->tokens > 0 ? key->tokens : refiller->tokens,
                                          key->index, on_reply)
                       : belay_bucket_read(refiller->bucket, &filling->request, name, on_reply);
}

/* Send the request of the first due key. If it cannot be sent now, return false; the key stays
 * first. */
static bool start_filling(belay_refiller_t *refiller, belay__refill_key_t *key) {
  belay_t *belay = belay__refiller_belay(refiller);
  belay__filling_t *filling = belay__alloc(belay, sizeof *filling);
  if (filling != NULL)
    *filling = (belay__filling_t){.refiller = refiller, .key = key, .request = {.data = filling}};
  if (filling == NULL || send(refiller, filling) != 0) {
    refiller->stats.failed++;
    belay__free(belay, filling, sizeof *filling);
    return false;
  }
  belay__list_push(&refiller->in_flight, &filling->node);
  refiller->in_flight_len++;
  belay__list_remove(&key->due_node);
  key->filling = filling;
  return true;
}

void belay__refill_cancel(belay_refiller_t *refiller) {
  for (belay__list_t *i = refiller->in_flight.next; i != &refiller->in_flight; i = i->next)
    (void)belay_request_cancel(&BELAY__CONTAINER(i, belay__filling_t, node)->request);
}

void belay__refill(belay_refiller_t *refiller) {
  belay_t *belay = belay__refiller_belay(refiller);
  uint64_t next = refiller->next_round;
  while (refiller->in_flight_len < IN_FLIGHT_MAX && belay__refiller_fills(refiller)) {
    belay__refill_key_t *key = first_due(refiller);
    uint64_t now = belay__now(belay), due = key == NULL ? BELAY__NEVER : key->due;
    if (key != NULL && due <= now && start_filling(refiller, key))
      continue;
    if (due <= now)
      due = now + RETRY_MS * BELAY__MS;
    if (due < next)
      next = due;
    break;
  }
  /* Set no timer without the place: the lock reports the loss of the place. With IN_FLIGHT_MAX
   * requests in flight, the timer is only for the next round: the end of a request calls this
   * function again. */
  if (belay__refiller_fills(refiller) && next != BELAY__NEVER)
    belay__timer_set(belay, BELAY__RANK_OTHER, &refiller->timer, next);
}

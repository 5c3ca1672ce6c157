/* Rounds and fillings.
 *
 *    a key: UNKNOWN --due: read--> asked --answered--> KNOWN, due in a period --due: add--> asked --+
 *              ^                     |                   ^                                         |
 *              +---not answered------+---<---------------|---not answered-----------------<--------+
 *                                                        +---answered: applied or not-----<--------+
 *
 * Two fillings of one bucket are at least a period apart, whatever the number of refillers and
 * their knowledge of each other. Each filling increments the index from i to i + 1. The next
 * filling must name i + 1, which no refiller can learn before the first filling is done. A
 * refiller uses an index one period after it has learnt it, by its own clock. If another
 * refiller has filled meanwhile, the index differs and nothing is added. The refiller learns the
 * new index from the reply, and uses it again a period later. The election is not needed for
 * this; it only saves commands.
 *
 * This holds while the index only grows. The index of a deleted or expired bucket begins again
 * with 0 and may reach an old value. So a refiller forgets the indexes that it learnt in an
 * earlier election, which may be long ago.
 *
 * A filling whose reply was lost may be done, not done, or still to be done. So the index is
 * forgotten and read again. Missed fillings are not made up for: a refiller that was away fills
 * once, and then once per period. */
#include "limit/refiller/refiller.h"

#define REST_MS UINT64_C(10) /* milliseconds to wait if the client accepts no more calls */

static void on_answer(belay_request_t *request, int status, const belay_bucket_state_t *state);

static belay__refill_slot_t *take_slot(belay_refiller_t *refiller) {
  belay__list_t *node = belay__list_pop(&refiller->slots);
  if (node != NULL)
    return BELAY__CONTAINER(node, belay__refill_slot_t, node);
  belay__refill_slot_t *slot = belay__alloc(belay__refiller_host(refiller), sizeof *slot);
  if (slot != NULL)
    *slot = (belay__refill_slot_t){.refiller = refiller, .request = {.data = slot}};
  return slot;
}

void belay__refill_free_slots(belay_refiller_t *refiller) {
  for (belay__list_t *node; (node = belay__list_pop(&refiller->slots)) != NULL;)
    belay__free(belay__refiller_host(refiller), BELAY__CONTAINER(node, belay__refill_slot_t, node),
                sizeof(belay__refill_slot_t));
}

/* Make the key due a period from now. */
static void put_off(belay_refiller_t *refiller, belay__refill_key_t *key) {
  key->due = belay__now(belay__refiller_host(refiller)) + refiller->period;
  belay__list_remove(&key->due_node);
  belay__list_push(&refiller->table.due, &key->due_node);
}

/* Send the command that is due. */
static int send(belay_refiller_t *refiller, belay__refill_slot_t *slot, belay__refill_key_t *key) {
  if (key->election != refiller->stats.elections)
    key->index = BELAY__REFILL_UNKNOWN;
  slot->adds = key->index >= 0 && key->index < BELAY_BUCKET_INDEX_MAX;
  if (!slot->adds)
    return belay_bucket_read(refiller->bucket, &slot->request,
                             belay_bytes(key->keyed.key, key->keyed.key_len), on_answer);
  int64_t tokens = key->tokens > 0 ? key->tokens : refiller->tokens;
  return belay_bucket_add(refiller->bucket, &slot->request,
                          belay_bytes(key->keyed.key, key->keyed.key_len), tokens, key->index,
                          on_answer);
}

/* Returns false if the command cannot be sent now; the key stays first. */
static bool ask(belay_refiller_t *refiller, belay__refill_key_t *key) {
  belay__refill_slot_t *slot = take_slot(refiller);
  int error = slot == NULL ? BELAY_ENOMEM : send(refiller, slot, key);
  refiller->stats.failed += error != 0;
  if (slot == NULL)
    return false;
  belay__list_push(error == 0 ? &refiller->asked : &refiller->slots, &slot->node);
  if (error != 0)
    return false;
  refiller->asked_len++;
  belay__list_remove(&key->due_node);
  slot->key = key;
  key->slot = slot;
  return true;
}

static void count(belay_refiller_t *refiller, const belay__refill_slot_t *slot, int status,
                  const belay_bucket_state_t *state) {
  if (status != 0)
    refiller->stats.failed += status != BELAY_ECANCELED;
  else if (slot->adds && state->applied)
    refiller->stats.filled++;
  else if (slot->adds)
    refiller->stats.late++;
}

static void on_answer(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  belay__refill_slot_t *slot = request->data;
  belay_refiller_t *refiller = slot->refiller;
  belay__refill_key_t *key = slot->key;
  count(refiller, slot, status, state);
  slot->key = NULL;
  belay__list_remove(&slot->node);
  belay__list_push(&refiller->slots, &slot->node);
  refiller->asked_len--;
  if (key != NULL) {
    key->slot = NULL;
    key->index = status == 0 ? state->index : BELAY__REFILL_UNKNOWN;
    key->election = refiller->stats.elections;
    put_off(refiller, key);
  }
  belay__refiller_answered(refiller);
}

void belay__refill_cancel(belay_refiller_t *refiller) {
  for (belay__list_t *i = refiller->asked.next; i != &refiller->asked; i = i->next)
    (void)belay_request_cancel(&BELAY__CONTAINER(i, belay__refill_slot_t, node)->request);
}

static belay__refill_key_t *first_due(const belay_refiller_t *refiller) {
  const belay__list_t *due = &refiller->table.due;
  return belay__list_empty(due) ? NULL : BELAY__CONTAINER(due->next, belay__refill_key_t, due_node);
}

void belay__refill(belay_refiller_t *refiller) {
  belay_t *belay = belay__refiller_host(refiller);
  uint64_t next = refiller->next_round;
  while (refiller->asked_len < BELAY__REFILL_SLOTS_MAX && belay__refiller_fills(refiller)) {
    belay__refill_key_t *key = first_due(refiller);
    uint64_t now = belay__now(belay), due = key == NULL ? BELAY__NEVER : key->due;
    if (key != NULL && due <= now && ask(refiller, key))
      continue;
    if (due <= now)
      due = now + REST_MS * BELAY__MS;
    if (due < next)
      next = due;
    break;
  }
  /* The lock reports the loss of the place. If all slots are in use, the next answer calls this
   * function again. */
  if (belay__refiller_fills(refiller) && next != BELAY__NEVER)
    belay__timer_set(belay, BELAY__RANK_OTHER, &refiller->timer, next);
}

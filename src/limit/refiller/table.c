/* The buckets of a refiller, by key and in the order in which they are due. Each is due a period
 * after its last answer, and the period is the same for all. So an answered bucket goes to the
 * end of the queue, and the queue stays in order. */
#include "limit/refiller/refiller.h"

#define CLEAR_MAX 1000 /* buckets freed per loop iteration */

void belay__refill_table_init(belay__refill_table_t *table) {
  *table = (belay__refill_table_t){.table = {0}};
  belay__list_init(&table->due);
}

static uint64_t hash_of(belay_refiller_t *refiller, const char *key, size_t len) {
  return belay__table_hash(belay__refiller_host(refiller), &refiller->table.table, key, len);
}

belay__refill_key_t *belay__refill_find(belay_refiller_t *refiller, const char *key, size_t len) {
  return belay__keyed_find(&refiller->table.table, hash_of(refiller, key, len), key, len);
}

int belay__refill_add(belay_refiller_t *refiller, const char *key, size_t len,
                      belay__refill_key_t **out) {
  belay__refill_table_t *table = &refiller->table;
  if (table->table.count >= BELAY_REFILLER_KEYS_MAX)
    return BELAY_EBUSY;
  belay__refill_key_t *one = belay__keyed_new(belay__refiller_host(refiller), &table->table,
                                              hash_of(refiller, key, len), sizeof *one, key, len);
  if (one == NULL)
    return BELAY_ENOMEM;
  one->index = BELAY__REFILL_UNKNOWN;
  belay__list_push_front(&table->due, &one->due_node);
  *out = one;
  return 0;
}

void belay__refill_drop(belay_refiller_t *refiller, belay__refill_key_t *key) {
  if (key->slot != NULL)
    key->slot->key = NULL;
  belay__list_remove(&key->due_node);
  belay__table_remove(&refiller->table.table, &key->keyed.entry);
  belay__keyed_free(belay__refiller_host(refiller), &key->keyed);
}

bool belay__refill_clear(belay_refiller_t *refiller) {
  belay__refill_table_t *table = &refiller->table;
  for (int i = 0; i < CLEAR_MAX && !belay__list_empty(&table->due); i++)
    belay__refill_drop(refiller, BELAY__CONTAINER(table->due.next, belay__refill_key_t, due_node));
  if (!belay__list_empty(&table->due))
    return false;
  belay__table_free(belay__refiller_host(refiller), &table->table);
  return true;
}

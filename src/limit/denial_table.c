#include "limit/denial_table.h"

#include "core/key/table.h"

#define RETRY_MAX_US (INT64_C(1) << 52)

typedef struct entry {
  belay__keyed_t keyed; /* first */
  belay__timer_t order; /* In the heap of the table; never fires */
  uint64_t over;        /* Earliest time at which the server admits the tokens, in nanoseconds */
  belay__denial_t denial;
} entry_t;

bool belay__denied_find(const belay__denied_t *denied, uint64_t hash, const char *key, size_t len,
                        int64_t cost, uint64_t now, belay__denial_t *out) {
  if (denied->table.count == 0)
    return false;
  const entry_t *e = belay__keyed_find(&denied->table, hash, key, len);
  if (e == NULL || e->order.when <= now || cost < e->denial.cost)
    return false;
  *out = e->denial;
  out->retry_us = (int64_t)((e->over - now + 999) / 1000);
  return true;
}

static void drop(belay_t *belay, belay__denied_t *denied, entry_t *e) {
  belay__table_remove(&denied->table, &e->keyed.entry);
  belay__heap_remove(&denied->first, &e->order);
  belay__keyed_free(belay, &e->keyed);
}

static entry_t *first_of(const belay__denied_t *denied) {
  return BELAY__CONTAINER(denied->first.root, entry_t, order);
}

void belay__denied_learn(belay_t *belay, belay__denied_t *denied, uint32_t max, uint64_t hash,
                         const char *key, size_t len, const belay__denial_t *denial,
                         uint64_t started) {
  if (max == 0 || denial->retry_us <= 0)
    return;
  int64_t retry = denial->retry_us < RETRY_MAX_US ? denial->retry_us : RETRY_MAX_US;
  entry_t *e = belay__keyed_find(&denied->table, hash, key, len);
  if (e != NULL) {
    belay__heap_remove(&denied->first, &e->order);
  } else {
    while (denied->table.count >= max) /* a denial that is over stays until its place is needed: */
      drop(belay, denied, first_of(denied)); /* its key is likely to be denied again */
    e = belay__keyed_new(belay, &denied->table, hash, sizeof *e, key, len);
  }
  if (e == NULL)
    return;
  e->denial = *denial;
  e->over = started + (uint64_t)retry * 1000;
  belay__heap_insert(&denied->first, &e->order, started + (uint64_t)(retry - retry / 1000) * 1000);
}

void belay__denied_forget(belay_t *belay, belay__denied_t *denied, uint64_t hash) {
  denied->epochs[hash % BELAY__DENIED_EPOCHS]++;
  for (belay__entry_t *e; (e = belay__table_find(&denied->table, hash, NULL, NULL, 0)) != NULL;)
    drop(belay, denied, (entry_t *)(void *)e);
}

void belay__denied_clear(belay_t *belay, belay__denied_t *denied) {
  for (size_t i = 0; i < BELAY__DENIED_EPOCHS; i++)
    denied->epochs[i]++;
  while (denied->first.root != NULL)
    drop(belay, denied, first_of(denied));
  belay__table_free(belay, &denied->table);
}

size_t belay__denied_count(const belay__denied_t *denied, uint64_t now) {
  size_t n = 0;
  for (size_t i = 0; i < denied->table.size; i++)
    for (const belay__entry_t *e = denied->table.buckets[i]; e != NULL; e = e->next)
      n += ((const entry_t *)(const void *)e)->order.when > now;
  return n;
}

#include "limit/denial_cache.h"

#include <string.h>

#include "core/key/key.h"

#define RETRY_MAX_US (INT64_C(1) << 52)

typedef struct entry {
  belay__keyed_t keyed; /* first */
  belay__timer_t order; /* Node in denied.first, by the shortened end; never fires */
  uint64_t over;        /* Earliest time at which the server admits the tokens, in nanoseconds */
  belay__denial_t denial;
} entry_t;

bool belay__denied_find(const belay_limiter_t *limiter, uint64_t hash, belay_bytes_t key,
                        int64_t cost, uint64_t now, belay__denial_t *out) {
  const entry_t *e = belay__keyed_find(&limiter->denied.table, hash, key.data, key.len);
  if (e == NULL || e->order.when <= now || cost < e->denial.cost)
    return false;
  *out = e->denial;
  out->retry_us = (int64_t)((e->over - now + 999) / 1000);
  return true;
}

static void drop(belay_limiter_t *limiter, entry_t *e) {
  belay__table_remove(&limiter->denied.table, &e->keyed.entry);
  belay__heap_remove(&limiter->denied.first, &e->order);
  belay__keyed_free(belay__limiter_belay(limiter), &e->keyed);
}

static entry_t *first_of(const belay_limiter_t *limiter) {
  return BELAY__CONTAINER(limiter->denied.first.root, entry_t, order);
}

static void put(belay_limiter_t *limiter, uint64_t hash, belay_bytes_t key,
                const belay__denial_t *denial, uint64_t started) {
  belay__table_t *table = &limiter->denied.table;
  int64_t retry = denial->retry_us < RETRY_MAX_US ? denial->retry_us : RETRY_MAX_US;
  entry_t *e = belay__keyed_find(table, hash, key.data, key.len);
  if (e != NULL) {
    belay__heap_remove(&limiter->denied.first, &e->order);
  } else {
    /* a denial that is over stays until another needs its place: the key of such a denial is likely
     * to be denied again */
    while (table->count >= limiter->options.max_denied)
      drop(limiter, first_of(limiter));
    e = belay__keyed_new(belay__limiter_belay(limiter), table, hash, sizeof *e, key.data, key.len);
  }
  if (e == NULL)
    return;
  e->denial = *denial;
  e->over = started + (uint64_t)retry * 1000;
  belay__heap_insert(&limiter->denied.first, &e->order,
                     started + (uint64_t)(retry - retry / 1000) * 1000);
}

/* Get the caller's key from the name of KEYS[1] of a call. Returns false if the name is too short,
 * too long or not of this limiter. */
static bool key_of(const belay_limiter_t *limiter, const belay__call_t *call,
                   char out[3 * BELAY_LIMITER_KEY_MAX], size_t *len) {
  size_t n, prefix = limiter->handle.prefix_len;
  const char *key = belay__call_key(call, &n);
  return n > prefix + 1 && n - prefix - 1 <= 3 * BELAY_LIMITER_KEY_MAX &&
         memcmp(key, limiter->handle.prefix, prefix) == 0 &&
         belay__key_unescape(out, len, key + prefix, n - prefix - 1);
}

int64_t belay__denied_learn(belay_limiter_t *limiter, const belay__call_t *call,
                            const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                            int64_t cost, uint64_t hash, uint32_t epoch) {
  belay_limiter_result_t result = {0};
  char key[3 * BELAY_LIMITER_KEY_MAX];
  size_t len;
  if (epoch != belay__denied_epoch(limiter, hash))
    return 0;
  belay__policy_judge(policy, numbers, cost, &result);
  if (result.retry_after_us <= 0)
    return 0;
  const belay__denial_t denial = {.cost = cost,
                                  .retry_us = result.retry_after_us,
                                  .window = result.window,
                                  .banned = result.banned};
  if (limiter->options.max_denied > 0 && key_of(limiter, call, key, &len))
    put(limiter, hash, belay_bytes(key, len), &denial, call->started);
  return result.retry_after_us;
}

void belay__denied_forget(belay_limiter_t *limiter, uint64_t hash) {
  limiter->denied.epochs[hash % BELAY__DENIED_EPOCHS]++;
  for (belay__entry_t *e;
       (e = belay__table_find(&limiter->denied.table, hash, NULL, NULL, 0)) != NULL;)
    drop(limiter, (entry_t *)(void *)e);
}

void belay__denied_clear(belay_limiter_t *limiter) {
  for (size_t i = 0; i < BELAY__DENIED_EPOCHS; i++)
    limiter->denied.epochs[i]++;
  while (limiter->denied.first.root != NULL)
    drop(limiter, first_of(limiter));
  belay__table_free(belay__limiter_belay(limiter), &limiter->denied.table);
}

size_t belay__denied_count(const belay_limiter_t *limiter) {
  const belay__table_t *table = &limiter->denied.table;
  uint64_t now = belay__now(belay__limiter_belay(limiter));
  size_t n = 0;
  for (size_t i = 0; i < table->size; i++)
    for (const belay__entry_t *e = table->buckets[i]; e != NULL; e = e->next)
      n += ((const entry_t *)(const void *)e)->order.when > now;
  return n;
}

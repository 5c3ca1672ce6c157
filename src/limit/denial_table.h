/* Denials that are remembered: who was denied once is denied until the server would admit it, without asking.
 *
 * A denial of a cost is one of every higher cost too. It counts from just before it was asked for, and a thousandth of
 * it is left out, for clocks that do not run alike: so it ends before the server's does. */
#ifndef BELAY_LIMIT_DENIAL_TABLE_H
#define BELAY_LIMIT_DENIAL_TABLE_H

#include "core/loop/loop.h"
#include "core/key/table.h"

#define BELAY__DENIED_EPOCHS 64

/* {0} is an empty one. */
typedef struct belay__denied {
  belay__table_t table; /* its seed is that of all hashes of a limiter's keys */
  belay__heap_t first;  /* by when they are over */
  uint32_t epochs[BELAY__DENIED_EPOCHS];
} belay__denied_t;

typedef struct belay__denial {
  int64_t cost, retry_us; /* retry_us: positive */
  unsigned window;
  bool banned;
} belay__denial_t;

/* Whether so many tokens of that key are known not to be there at that time; then *out is set, with what is left. */
bool belay__denied_find(const belay__denied_t *denied, uint64_t hash, const char *key, size_t len,
                        int64_t cost, uint64_t now, belay__denial_t *out);

/* Another number after each belay__denied_forget() of the key: what was asked before that is not to be remembered. */
static inline uint32_t belay__denied_epoch(const belay__denied_t *denied, uint64_t hash) {
  return denied->epochs[hash % BELAY__DENIED_EPOCHS];
}

/* Remembers one, that was asked for at that time, as one of max at most. */
void belay__denied_learn(belay_t *belay, belay__denied_t *denied, uint32_t max, uint64_t hash,
                         const char *key, size_t len, const belay__denial_t *denial,
                         uint64_t started);

/* Forgets those of a hash; those that are in flight too. */
void belay__denied_forget(belay_t *belay, belay__denied_t *denied, uint64_t hash);

/* Forgets all of them, and gives the memory back. */
void belay__denied_clear(belay_t *belay, belay__denied_t *denied);

/* How many are not over. */
size_t belay__denied_count(const belay__denied_t *denied, uint64_t now);

#endif /* BELAY_LIMIT_DENIAL_TABLE_H */

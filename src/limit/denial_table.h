/* The table of the denial cache: a denied key is denied locally until the server would admit it.
 *
 * A denial of a cost also denies each higher cost. It counts from just before the command was
 * sent, and it is shortened by a thousandth, because clock rates differ. So it ends before the
 * server's denial does. */
#ifndef BELAY_LIMIT_DENIAL_TABLE_H
#define BELAY_LIMIT_DENIAL_TABLE_H

#include "core/loop/loop.h"
#include "core/key/table.h"

#define BELAY__DENIED_EPOCHS 64

/* {0} is an empty table. */
typedef struct belay__denied {
  belay__table_t table; /* Denials by key; its seed is that of all hashes of a limiter's keys */
  belay__heap_t first;  /* Denials ordered by their end */
  uint32_t epochs[BELAY__DENIED_EPOCHS];
} belay__denied_t;

typedef struct belay__denial {
  int64_t cost, retry_us; /* Denied tokens; microseconds until they are admitted, positive */
  unsigned window;
  bool banned;
} belay__denial_t;

/* Returns true and sets *out if this number of tokens is known to be denied at `now`.
 * out->retry_us is the remaining time. */
bool belay__denied_find(const belay__denied_t *denied, uint64_t hash, const char *key, size_t len,
                        int64_t cost, uint64_t now, belay__denial_t *out);

/* A number that changes with each belay__denied_forget() of the key. A denial of a command that
 * was sent with an older number must not be cached. */
static inline uint32_t belay__denied_epoch(const belay__denied_t *denied, uint64_t hash) {
  return denied->epochs[hash % BELAY__DENIED_EPOCHS];
}

/* Cache the denial of a command that was sent at `started`. max: capacity of the table, in keys. */
void belay__denied_learn(belay_t *belay, belay__denied_t *denied, uint32_t max, uint64_t hash,
                         const char *key, size_t len, const belay__denial_t *denial,
                         uint64_t started);

/* Forget the denials of a hash, also those of commands in flight. */
void belay__denied_forget(belay_t *belay, belay__denied_t *denied, uint64_t hash);

/* Forget all denials and free the memory. */
void belay__denied_clear(belay_t *belay, belay__denied_t *denied);

/* The number of denials that are not over. */
size_t belay__denied_count(const belay__denied_t *denied, uint64_t now);

#endif /* BELAY_LIMIT_DENIAL_TABLE_H */

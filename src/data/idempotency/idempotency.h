/* Shared by the files of idempotency records. */
#ifndef BELAY_DATA_IDEMPOTENCY_IDEMPOTENCY_H
#define BELAY_DATA_IDEMPOTENCY_IDEMPOTENCY_H

#include "belay/idempotency.h"

#include "core/client/handle.h"
#include "core/key/token.h"

struct belay_idempotency {
  belay__handle_t handle; /* first */
  int64_t deadline_ms, ttl_ms, grace_ms;
  bool exact_keys;
};

/* The claim of a begin. */
typedef struct belay__claim {
  belay_idempotency_t *records;
  belay__token_t token;
  size_t key_len;
  char key[];
} belay__claim_t;

/* The arguments of the script, without the key. */
typedef struct belay__order {
  const char *verb;
  const void *token; /* BELAY__TOKEN_BYTES bytes; NULL: none */
  int64_t ms, keep_ms;
  const void *text;
  size_t len;
} belay__order_t;

/* Adds a record's key to a call. */
void belay__idempotency_key(const belay_idempotency_t *records, belay__call_t *call,
                            const char *key, size_t key_len);

/* NULL if memory is out. */
belay__call_t *belay__idempotency_call(const belay_idempotency_t *records, const char *key,
                                       size_t key_len, const belay__order_t *order);

/* One with a fresh token; 0, BELAY_ENOMEM or BELAY_ESYSTEM. */
int belay__claim_new(belay_idempotency_t *records, const char *key, size_t key_len,
                     belay__claim_t **out);
void belay__claim_free(belay__claim_t *claim);

/* Takes it back, if it can: it is not the caller's any more. */
void belay__claim_undo(belay__claim_t *claim);

#endif /* BELAY_DATA_IDEMPOTENCY_IDEMPOTENCY_H */

/* While a server is away: takes that it does not answer are answered by options.away.
 *
 *   HERE --a take, or the fetch of a slice, ends without an answer--> AWAY
 *   AWAY --any answer comes--> HERE
 *
 * With a policy (not BELAY_AWAY_UNKNOWN) an AWAY server is asked by one take at a time, the probe; all others are
 * answered at once. Of a cluster each server is here or away for its own keys: it has a breaker. Two of very many may
 * share one. */
#ifndef BELAY_LIMIT_AWAY_H
#define BELAY_LIMIT_AWAY_H

#include "belay/limiter.h"
#include "core/base.h"
#include "core/table.h"

typedef struct belay__wanted belay__wanted_t;

#define BELAY__BREAKERS 64

typedef struct belay__breaker {
  bool away, probing;
  int status; /* AWAY: why */
} belay__breaker_t;

typedef struct belay__away {
  belay__breaker_t breakers[BELAY__BREAKERS];
  /* The buckets of BELAY_AWAY_LOCAL: */
  belay__table_t table; /* by the keys' hashes */
  belay__list_t used;   /* the one that was not used for longest first */
  struct belay__local *shared;
} belay__away_t;

void belay__away_init(belay__away_t *away);

/* Gives its memory back: the buckets begin anew. */
void belay__away_clear(belay_limiter_t *limiter);

/* The number of the breaker for calls of that affinity; for a key. */
uint8_t belay__away_breaker(const belay_limiter_t *limiter, uint32_t affinity);
uint8_t belay__away_breaker_of(const belay_limiter_t *limiter, const char *key, size_t len);

/* 0: a take may ask. Or why it is answered without. */
int belay__away_check(const belay_limiter_t *limiter, uint8_t breaker);

/* Whether nothing is to be asked that nobody waits for. */
bool belay__away_is(const belay_limiter_t *limiter, uint8_t breaker);

/* A take asks. If it is the probe that is marked in it; belay__away_told() is to be called. */
void belay__away_asks(belay_limiter_t *limiter, belay__wanted_t *wanted);

/* A take is told, with that status: if there is no answer, result becomes that of options.away, but for a verdict of
 * BELAY_NEVER. */
void belay__away_told(belay_limiter_t *limiter, const belay__wanted_t *wanted, int status,
                      belay_limiter_result_t *result);

/* A server answered; or did not. */
void belay__away_answered(belay_limiter_t *limiter, uint8_t breaker);
void belay__away_lost(belay_limiter_t *limiter, uint8_t breaker, int status);

#endif /* BELAY_LIMIT_AWAY_H */

/* Refillers, and what is heard of them. */
#ifndef TEST_REFILLERS_H
#define TEST_REFILLERS_H

#include "support/buckets.h"

/* A handle. */
typedef struct hand {
  pail_t *pail;
  belay_refiller_t *refiller; /* NULL: closed */
  unsigned elected, deposed;  /* how often it was told */
  unsigned rounds;
  unsigned closing, closed;
  belay_refiller_state_t state;
  void (*then)(
      struct hand *hand); /* runs at the end of on_change and when it is closed; NULL: nothing */
  void (*on_round)(struct hand *hand); /* and of on_round */
} hand_t;

enum { CREW_MAX = 8 };

/* What the server says of who is elected. */
typedef struct crew {
  belay_request_t request;
  hand_t *hand;
  unsigned told;
  int status;
  size_t n;
  struct {
    char label[72];
    belay_refiller_state_t state;
    int64_t remaining_ms;
  } member[CREW_MAX];
  void (*then)(struct crew *crew);
} crew_t;

/* Named "main", with that label; the lease is long. */
belay_refiller_options_t refiller_options(const char *label, uint32_t refillers,
                                          uint32_t period_ms);

void hand_new(hand_t *hand, pail_t *pail, const belay_refiller_options_t *options);
void hand_add(hand_t *hand, const char *key, int64_t tokens);
int begin_close_hand(hand_t *hand);
void close_hand(hand_t *hand);
belay_refiller_stats_t hand_stats(const hand_t *hand);

int begin_members(hand_t *hand, crew_t *crew);
/* Asks, and waits for the answer, which must be one. */
void ask_members(hand_t *hand, crew_t *crew);
/* Its state there; 0: it is none of them. */
belay_refiller_state_t state_in(const crew_t *crew, const char *label);

#endif /* TEST_REFILLERS_H */

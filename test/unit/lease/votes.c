/* The result of several nodes' replies: every combination, in every order. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "lease/quorum/round.h"
#include "support/base/test.h"

#define NODES_MAX 5

/* One of each sort of answer to an acquire. */
enum { YES, HELD, NOT_KNOWN, REFUSED, NEVER, SORTS };
static const int answers[SORTS] = {
    [YES] = 0,
    [HELD] = BELAY_EHELD,
    [NOT_KNOWN] = BELAY_EUNKNOWN,
    [REFUSED] = BELAY_EOOM,
    [NEVER] = BELAY_EPERM,
};

typedef struct hand {
  belay__lease_t lease;
  unsigned sort[NODES_MAX];
} hand_t;

/* The active part of the one lease of a test. */
static union {
  belay__active_t active;
  char bytes[sizeof(belay__active_t) + NODES_MAX * sizeof(belay__exchange_t)];
} memory;

static belay__exchange_t *exchange(hand_t *hand, unsigned i) {
  return &hand->lease.active->exchange[i];
}

/* The number'th of all combinations of n answers to the round's question; none of them is in
 * yet. */
static void deal(hand_t *hand, belay__round_t round, unsigned n, unsigned number) {
  *hand = (hand_t){
      .lease = {.active = &memory.active, .members = (uint8_t)n, .quorum = (uint8_t)(n / 2 + 1)}};
  hand->lease.active->round = (uint8_t)round;
  for (unsigned i = 0; i < n; i++, number /= SORTS) {
    hand->sort[i] = number % SORTS;
    exchange(hand, i)->status = BELAY__PENDING;
  }
}

static void reveal(hand_t *hand, unsigned i, int no) {
  exchange(hand, i)->status = (int16_t)(hand->sort[i] == HELD ? no : answers[hand->sort[i]]);
}

static unsigned combinations(unsigned n) {
  unsigned count = 1;
  while (n-- > 0)
    count *= SORTS;
  return count;
}

static unsigned count(const hand_t *hand, unsigned sort) {
  unsigned sum = 0;
  for (unsigned i = 0; i < hand->lease.members; i++)
    sum += hand->sort[i] == sort;
  return sum;
}

/* A second opinion on what an acquire comes to when all is in. */
static int expected(const hand_t *hand) {
  unsigned n = hand->lease.members, majority = n / 2 + 1;
  if (n == 1)
    return hand->lease.active->exchange[0].status;
  if (count(hand, YES) >= majority)
    return 0;
  if (count(hand, YES) + count(hand, HELD) >= majority)
    return BELAY_EHELD;
  return n - count(hand, NEVER) < majority ? BELAY_EPERM : BELAY_ENOQUORUM;
}

TEST(acquire_status) {
  hand_t hand;
  for (unsigned n = 1; n <= NODES_MAX; n++)
    for (unsigned number = 0; number < combinations(n); number++) {
      deal(&hand, BELAY__ROUND_ACQUIRE, n, number);
      for (unsigned i = 0; i < n; i++)
        reveal(&hand, i, BELAY_EHELD);
      if (belay__round_status(&hand.lease) != expected(&hand))
        fail_msg("%u nodes, combination %u", n, number);
    }
}

/* Reveals in the order of that number; the first verdict that is one. */
static int first_verdict(hand_t *hand, unsigned order, int no) {
  unsigned n = hand->lease.members, left[NODES_MAX];
  for (unsigned i = 0; i < n; i++)
    left[i] = i;
  for (unsigned len = n; len > 0; len--) {
    unsigned pick = order % len;
    order /= len;
    reveal(hand, left[pick], no);
    left[pick] = left[len - 1];
    int status = belay__round_status(&hand->lease);
    if (status != BELAY__PENDING)
      return status;
  }
  fail_msg("no verdict");
  return BELAY__PENDING;
}

static unsigned orders(unsigned n) {
  return n < 2 ? 1 : n * orders(n - 1);
}

TEST(order_of_replies) {
  hand_t hand;
  for (unsigned n = 2; n <= NODES_MAX; n++)
    for (unsigned number = 0; number < combinations(n); number++)
      for (unsigned order = 0; order < orders(n); order++) {
        deal(&hand, BELAY__ROUND_ACQUIRE, n, number);
        if (first_verdict(&hand, order, BELAY_EHELD) != expected(&hand))
          fail_msg("%u nodes, combination %u, order %u", n, number, order);
      }
}

TEST(decision_at_first_possible_vote) {
  hand_t hand;
  for (unsigned n = 2; n <= NODES_MAX; n++)
    for (unsigned sort = YES; sort <= HELD; sort++) {
      deal(&hand, BELAY__ROUND_ACQUIRE, n, 0);
      unsigned majority = n / 2 + 1;
      for (unsigned i = 0; i < majority; i++) {
        assert_int_equal(belay__round_status(&hand.lease), BELAY__PENDING);
        exchange(&hand, i)->status = (int16_t)(answers[sort]);
      }
      assert_int_equal(belay__round_status(&hand.lease), answers[sort]);
    }
}

TEST(definite_refusals) {
  static const belay__round_t rounds[] = {BELAY__ROUND_EXTEND, BELAY__ROUND_RELEASE};
  hand_t hand;
  for (unsigned r = 0; r < sizeof rounds / sizeof *rounds; r++)
    for (unsigned n = 2; n <= NODES_MAX; n++)
      for (unsigned number = 0; number < combinations(n); number++) {
        deal(&hand, rounds[r], n, number);
        for (unsigned i = 0; i < n; i++)
          reveal(&hand, i, BELAY_ENOTOWNER);
        unsigned spare = n - (n / 2 + 1);
        bool definite = belay__round_status(&hand.lease) == BELAY_ENOTOWNER;
        assert_int_equal(definite, count(&hand, HELD) > spare);
        assert_int_equal(belay__round_status(&hand.lease) == 0, count(&hand, YES) >= n - spare);
      }
}

TEST(lost_round_stays_lost) {
  hand_t hand;
  for (unsigned n = 2; n <= NODES_MAX; n++)
    for (unsigned number = 0; number < combinations(n); number++)
      for (unsigned order = 0; order < orders(n); order++) {
        deal(&hand, BELAY__ROUND_EXTEND, n, number);
        bool won = first_verdict(&hand, order, BELAY_ENOTOWNER) == 0;
        assert_int_equal(won, count(&hand, YES) >= n / 2 + 1);
      }
}

TEST(refused_number_is_read_again) {
  hand_t hand;
  for (unsigned n = 2; n <= NODES_MAX; n++)
    for (unsigned number = 0; number < combinations(n); number++) {
      deal(&hand, BELAY__ROUND_ACCEPT, n, number);
      for (unsigned i = 0; i < n; i++)
        reveal(&hand, i, BELAY_EFENCED);
      int status = belay__round_status(&hand.lease);
      if (count(&hand, YES) >= n / 2 + 1)
        assert_int_equal(status, 0);
      else
        assert_int_equal(status == BELAY_EFENCED, count(&hand, HELD) > 0);
    }
}

/* Hands that use what is in src/data. Each has a craft for as long as its handle lives: a kind of handle, and a kind of
 * question.
 *
 *   data.c --craft->ask()--> data_crafts*.c --the library--> a server, which tells data.c what it has executed
 *     ^                          |
 *     +------sim_data_told()-----+
 *
 * Each question has a number, and a tag of it, "#7#", is somewhere in the words of its command: so it is known what a
 * server executes, and how often.
 *
 *   truth   what was told to be unsent, or refused, is never executed; what was told to be done has been; what is not to
 *           be sent again is executed once at most; and what is told is what the first time came to */
#ifndef TEST_SIM_ACTORS_DATA_H
#define TEST_SIM_ACTORS_DATA_H

#include "belay/request.h"
#include "sim/actors/hand.h"

#define SIM_DATA_ASKS 32768
#define SIM_DATA_KEYS 3
#define SIM_DATA_WORKERS 2
#define SIM_DATA_IDS (1 << 21)

typedef struct sim_craft sim_craft_t;

/* A request. */
typedef struct sim_data_ask {
  const sim_craft_t *craft;
  uint8_t key;
  bool unsent; /* true if a callback said that it was not sent or was refused */
  bool maybe;  /* true if a callback said that the outcome is unknown */
  unsigned executed;
  int64_t value; /* expected result, if the first execution decides it */
} sim_data_ask_t;

/* The world's account of it all. */
typedef struct sim_data {
  unsigned asks;
  sim_data_ask_t ask[SIM_DATA_ASKS];
  int64_t sum[SIM_DATA_KEYS];        /* of the counter that is added to once for each operation */
  int64_t operations[SIM_DATA_KEYS]; /* the same, of the one whose operations share a key */
  int64_t events[SIM_DATA_KEYS];     /* of a user's session */
  int64_t active;                    /* users that were reported as marked */
  int64_t flake[SIM_DATA_WORKERS];   /* the highest snowflake of each worker that was given */
  int64_t done[SIM_DATA_ASKS];       /* the reported results of idempotency records; 0: none yet */
  uint64_t ids[SIM_DATA_IDS / 64];   /* that were given, a bit for each */
} sim_data_t;

typedef struct sim_data_hand {
  sim_hand_t base; /* first */
  const sim_craft_t *craft;
  void *handle; /* NULL: there is none */
  belay_request_t request;
  unsigned ask;    /* the present one's number; 0: none */
  unsigned again;  /* is to be asked for once more */
  int64_t last;    /* the craft's own */
  unsigned known;  /* the craft's own: a question that was answered */
  int64_t attempt; /* the craft's own */
  unsigned char token[32];
} sim_data_hand_t;

enum {
  SIM_ONCE = 1,   /* it is executed once at most */
  SIM_SILENT = 2, /* no word of its command has its tag */
  SIM_AGAIN = 4   /* after an unknown outcome the hand asks once more */
};

struct sim_craft {
  const char *name;
  unsigned how;
  int (*make)(sim_data_hand_t *hand);
  int (*close)(sim_data_hand_t *hand); /* its callback: sim_data_closed() */
  /* Begins it; its callback: sim_data_told(). */
  int (*ask)(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag, size_t len);
  /* A server has executed it for the first time. NULL: it does not matter when that was. */
  void (*executed)(sim_data_t *data, sim_data_ask_t *ask);
};

/* Defines close_FAMILY(), for handles of that family. */
#define SIM_CRAFT_CLOSE(family)                                                                    \
  static void on_##family##_closed(belay_##family##_t *handle, void *data) {                       \
    (void)handle;                                                                                  \
    sim_data_closed(data);                                                                         \
  }                                                                                                \
  static int close_##family(sim_data_hand_t *hand) {                                               \
    return belay_##family##_close(hand->handle, on_##family##_closed);                             \
  }

/* The crafts of a scenario's hands. */
const sim_craft_t *sim_crafts(sim_kind_t kind, size_t *len);
const sim_craft_t *sim_crafts_of_users(size_t *len);

sim_data_t *sim_data_of(const sim_data_hand_t *hand);

/* The end of a request. NULL: its result is right; otherwise the fault. */
void sim_data_told(sim_data_hand_t *hand, int status, const char *wrong);

void sim_data_closed(sim_data_hand_t *hand);

/* The one that is over in this callback. */
sim_data_ask_t *sim_data_asked(const sim_data_hand_t *hand);

#define NOBODY 1000000u /* no question has that number, nor one above it */

/* The question that was answered, if this one is to be about it. */
static inline unsigned take_known(sim_data_hand_t *hand) {
  unsigned known = hand->known;
  hand->last = known;
  hand->known = 0;
  return known;
}

static inline void tell(sim_data_hand_t *hand, int status, bool right, const char *wrong) {
  sim_data_told(hand, status, status != 0 || right ? NULL : wrong);
}

static inline belay_client_t *client_of(const sim_data_hand_t *hand) {
  return hand->base.process->client[0];
}

/* A new id: NULL, or its fault. */
const char *sim_data_given(sim_data_hand_t *hand, int64_t id);

#endif /* TEST_SIM_ACTORS_DATA_H */

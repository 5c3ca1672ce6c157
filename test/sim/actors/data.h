/* Actors that use the primitives of src/data. Each has a subject for as long as its handle lives: a
 * family of handles, and a request.
 *
 *   data.c --subject->ask()--> data_subjects.c, data_users.c --the library--> a server --> data.c
 *     ^                          |
 *     +----sim_data_ended()------+
 *
 * Each request has a number. Its tag, "#7#", is in a word of its command, so that the commands that
 * a server executes can be counted.
 *
 *   truth   a request that was reported as not sent, or refused, is never executed; one that was
 *           reported as a success has been executed; one that must not be sent again is executed at
 *           most once; results are those of the first execution */
#ifndef TEST_SIM_ACTORS_DATA_H
#define TEST_SIM_ACTORS_DATA_H

#include "sim/actors/actor.h"

#define SIM_DATA_REQUESTS 32768
#define SIM_DATA_KEYS 3
#define SIM_DATA_WORKERS 2
#define SIM_DATA_IDS (1 << 21)
#define SIM_DATA_ABSENT 1000000u /* no request has that number, nor one above it */

typedef struct sim_data_subject sim_data_subject_t;

typedef struct sim_data_request {
  const sim_data_subject_t *subject;
  uint8_t key;
  bool unsent;  /* true if a callback reported that it was not sent or was refused */
  bool unknown; /* true if a callback reported that the outcome is unknown */
  unsigned executed;
  int64_t value; /* expected result, if the first execution decides it */
} sim_data_request_t;

/* State that all actors of the world share. */
typedef struct sim_data_shared {
  unsigned requests;
  sim_data_request_t request[SIM_DATA_REQUESTS];
  int64_t sum[SIM_DATA_KEYS];        /* of the counter with a key for each operation */
  int64_t operations[SIM_DATA_KEYS]; /* the same, of the one whose operations share a key */
  int64_t events[SIM_DATA_KEYS];     /* of the session of a user */
  int64_t active;                    /* users that were reported as marked */
  int64_t flake[SIM_DATA_WORKERS];   /* the highest reported snowflake of each worker */
  int64_t done[SIM_DATA_REQUESTS];   /* the reported results of idempotency records; 0: none yet */
  uint64_t ids[SIM_DATA_IDS / 64];   /* that were reported, a bit for each */
} sim_data_shared_t;

typedef struct sim_data {
  sim_actor_t base; /* first */
  const sim_data_subject_t *subject;
  unsigned number; /* of the present request; 0: none */
  unsigned again;  /* a request that is to be sent again; 0: none */
  char text[16];
  belay_bytes_t tag, key; /* of the present request */
  /* Used by the subject. */
  int64_t last;
  unsigned known; /* number of a request that has succeeded; 0: none */
  int64_t attempt;
  unsigned char token[32];
} sim_data_t;

enum {
  SIM_ONCE = 1,   /* it is executed at most once */
  SIM_SILENT = 2, /* no word of its command has its tag */
  SIM_AGAIN = 4   /* after an unknown outcome the actor sends it again */
};

struct sim_data_subject {
  const char *name;
  unsigned how;
  int (*make)(sim_data_t *self);
  int (*close)(sim_actor_t *actor);
  /* Calls the library to send the request; the callback: sim_data_ended(). */
  int (*ask)(sim_data_t *self);
  /* A server has executed it for the first time. NULL: its time does not matter. */
  void (*executed)(sim_data_shared_t *shared, sim_data_request_t *request);
};

extern const sim_data_subject_t sim_data_subjects[], sim_data_users[];
extern const size_t sim_data_subjects_len, sim_data_users_len;

/* Defines a function that makes a handle of that family. The rest sets its options. */
#define SIM_DATA_MAKE(family, function, ...)                                                       \
  static int function(sim_data_t *self) {                                                          \
    belay_##family##_options_t options;                                                            \
    belay_##family##_options_init(&options);                                                       \
    options.data = self;                                                                           \
    __VA_ARGS__;                                                                                   \
    return belay_##family##_new(self->base.process->client[0], &options,                           \
                                (belay_##family##_t **)&self->base.handle);                        \
  }

/* The first two arguments of a request. */
#define SIM_DATA_ARGS(self) (self)->base.handle, &(self)->base.request[0]

static inline sim_data_shared_t *sim_data_shared(const sim_data_t *self) {
  return sim_shared(self->base.world, sizeof(sim_data_shared_t));
}

static inline sim_data_request_t *sim_data_request(const sim_data_t *self) {
  return &sim_data_shared(self)->request[self->number];
}

/* The end of a request. fault: of its result; NULL: none. */
void sim_data_ended(sim_data_t *self, int status, const char *fault);

static inline void sim_data_check(sim_data_t *self, int status, bool right, const char *fault) {
  sim_data_ended(self, status, status != 0 || right ? NULL : fault);
}

/* The request that has succeeded and that the present one asks about; 0: none. */
static inline unsigned sim_data_take_known(sim_data_t *self) {
  unsigned known = self->known;
  self->last = known;
  self->known = 0;
  return known;
}

#endif /* TEST_SIM_ACTORS_DATA_H */

/* Sweeps, and what is heard of them. */
#ifndef TEST_SWEEPS_H
#define TEST_SWEEPS_H

#include "support/bed.h"

enum { BROOM_KEYS_MAX = 8192, BROOM_KEY_MAX = 64 };

typedef enum broom_event { BROOM_KEYS, BROOM_PROGRESS, BROOM_DONE, BROOM_CLOSED } broom_event_t;

/* A handle. What it found is kept in the order in which it was told, as far as there is room. */
typedef struct broom {
  bed_t *bed;
  belay_sweep_t *sweep; /* NULL: closed */
  unsigned begun, done, closing, closed, pages, progress;
  int status;
  belay_sweep_totals_t totals, last; /* of the run that was told last; of the last progress */
  int64_t done_at;
  unsigned found;
  char key[BROOM_KEYS_MAX][BROOM_KEY_MAX];
  void (*then)(struct broom *broom, broom_event_t event); /* NULL: nothing */
  void *arg;
} broom_t;

/* Defaults, but for the rate, which is the highest. */
belay_sweep_options_t sweep_options(const char *pattern, bool remove);

/* Valid until belay has closed; there may be several at a time. */
broom_t *broom_new(bed_t *bed, belay_client_t *client, const belay_sweep_options_t *options);
void broom_free(broom_t *broom);

int begin_sweep(broom_t *broom);
int begin_close_broom(broom_t *broom);

/* Waits for the end of the run: its status. */
int end_of_sweep(broom_t *broom);

/* One run, which must go well, of a handle of the bed's client that is closed after it. Its caller frees it. */
broom_t *sweep_once(bed_t *bed, const belay_sweep_options_t *options);

/* How often a key was told. */
unsigned times_found(const broom_t *broom, const char *key);

/* Makes n keys PREFIX1, PREFIX2 ... that are strings. */
void make_keys(server_t *server, const char *prefix, unsigned n);
void drop_keys(server_t *server, const char *prefix, unsigned n);

#endif /* TEST_SWEEPS_H */

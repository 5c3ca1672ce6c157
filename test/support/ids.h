/* Sources of ids, and what is heard of them. */
#ifndef TEST_IDS_H
#define TEST_IDS_H

#include "support/bed.h"

/* A handle. */
typedef struct spring {
  bed_t *bed;
  belay_idgen_t *idgen; /* NULL: closed */
  unsigned pending, closing, closed;
  void (*then)(struct spring *spring); /* runs at the end of each callback; NULL: nothing */
} spring_t;

/* A request, and what came of it. */
typedef struct draw {
  belay_request_t request;
  spring_t *spring;
  unsigned begun, ended;
  int status;
  int64_t first, last; /* ids */
  size_t n;
  bool growing;             /* each is larger than the one before */
  void (*each)(int64_t id); /* is told of each of them; NULL: nobody */
} draw_t;

belay_idgen_options_t idgen_options(belay_idgen_mode_t mode); /* the defaults, named "users" */

/* A handle of the bed's client, or of another one. */
void spring_new(spring_t *spring, bed_t *bed, const belay_idgen_options_t *options);
void spring_of(spring_t *spring, bed_t *bed, belay_client_t *client,
               const belay_idgen_options_t *options);

/* Begin it; what belay returned. If it is 0, the callback is counted. */
int begin_get(spring_t *spring, draw_t *draw);
int begin_get_many(spring_t *spring, draw_t *draw, size_t n);
int begin_close_spring(spring_t *spring);

/* Waits for the end of what was begun: its status. */
int end_of_draw(draw_t *draw);

/* Gets an id, which must go well. */
int64_t get_id(spring_t *spring);
/* Begins a get and waits for its end, which must be so. */
void expect_get(spring_t *spring, int status);
/* The next id, at once or when there is one. */
int64_t next_id(spring_t *spring);
void close_spring(spring_t *spring);

/* The wall clock of a bed is this one from now on, in milliseconds since 1970; 0: the machine's again, moved by `shift`; to
 * look at that takes as long as `slow`. */
typedef struct fake_wall {
  int64_t at, shift, slow;
} fake_wall_t;
extern fake_wall_t fake_wall;
void bed_fake_wall(bed_t *bed);

#endif /* TEST_IDS_H */

/* Session contexts, and what is heard of them. */
#ifndef TEST_SESSIONS_H
#define TEST_SESSIONS_H

#include "support/bed.h"

/* A handle. */
typedef struct place {
  bed_t *bed;
  belay_session_t *session; /* NULL: closed */
  unsigned pending, closing, closed;
  void (*then)(struct place *place); /* runs at the end of each callback; NULL: nothing */
} place_t;

enum { STAY_EVENTS = 16, STAY_TEXT = 80 };

/* An operation, and what came of it. */
typedef struct stay {
  belay_request_t request;
  place_t *place;
  unsigned begun, ended;
  int status;
  belay_session_state_t state; /* its pointers are NULL */
  char id[STAY_TEXT];
  char event[STAY_EVENTS][STAY_TEXT]; /* the first ones, and their beginnings */
  char detail[256];
} stay_t;

belay_session_options_t session_options(void);

/* A handle of the bed's client; the second one of another's. Its data are the place. */
void place_new(place_t *place, bed_t *bed);
void place_of(place_t *place, bed_t *bed, belay_client_t *client,
              const belay_session_options_t *options);

/* Begin it; what belay returned. If it is 0, the callback is counted. Texts end with a 0; NULL: there is none. */
int begin_touch(place_t *place, stay_t *stay, const char *user, const char *event, const char *id,
                const char *op);
int begin_look(place_t *place, stay_t *stay, const char *user, size_t n);
int begin_exists(place_t *place, stay_t *stay, const char *user);
int begin_end(place_t *place, stay_t *stay, const char *user, const char *id);
int begin_close_place(place_t *place);

/* The callback of all of them. */
void on_stay(belay_request_t *request, int status, const belay_session_state_t *state);

/* Waits for the end of what was begun: its status. */
int end_of_stay(stay_t *stay);

/* It must go well. */
void touch_it(place_t *place, stay_t *stay, const char *user, const char *event, const char *id);
void look_at(place_t *place, stay_t *stay, const char *user, size_t n);

/* ---- who watches --------------------------------------------------------------------------------------- */

enum { NOTICES = 256 };

/* A watch, and what it was told. */
typedef struct guard {
  place_t *place;
  belay_session_watch_t *watch; /* NULL: closed */
  unsigned told, closing, closed;
  char notice[NOTICES][STAY_TEXT]; /* USER ID */
  void (*then)(struct guard *guard);
} guard_t;

void guard_new(guard_t *guard, place_t *place, uint32_t interval_ms, bool hints);
int guard_close(guard_t *guard);
bool guard_knows(const guard_t *guard, const char *user, const char *id);
unsigned guard_count(const guard_t *guard, const char *user, const char *id);

/* ---- the index ------------------------------------------------------------------------------------------- */

enum { SHARDS = 16, SOON = 20 /* ms between looks */ };

/* A handle of the kind "shop", with the option notice. */
void place_noting(place_t *place, bed_t *bed, int64_t ttl_ms);

/* The context of that user is over: as if its time had come. */
void pass(bed_t *bed, const char *user);

/* All that stands in the index is due, if it lives or not; how many that are. */
unsigned make_due(bed_t *bed);
unsigned in_index(bed_t *bed);

/* So often it has looked; and waits until it has looked at everything, from beginning to end. */
uint64_t guard_looks(const guard_t *guard);
void look_twice(guard_t *guard);

#endif /* TEST_SESSIONS_H */

/* The persons of an election: candidates, leaders, observers; and what is heard of them. */
#ifndef TEST_PERSONS_H
#define TEST_PERSONS_H

#include "support/bed.h"

#define KEY "belay::election::{crown}"

enum { SIGHTS_MAX = 4096 };

/* What an observer was told once. */
typedef struct sight {
  int status, ours;
  uint64_t term;
  char value[BELAY_ELECTION_VALUE_MAX + 1];
  int64_t remaining_ms;
} sight_t;

typedef struct person person_t;

typedef enum news { CAMPAIGNED, ELECTED, DEPOSED, RESIGNED, OBSERVED, CLOSED } news_t;

/* A handle, and what was heard of it. */
struct person {
  bed_t *bed;
  belay_election_t *election; /* NULL: closed */
  unsigned campaigns, campaigned, elected, deposed, resigns, resigned, closed;
  int campaign_status, resign_status;
  uint64_t term;
  belay_lost_t reason;
  int64_t deposed_time;
  unsigned sights;
  sight_t sight[SIGHTS_MAX];
  void (*then)(person_t *person,
               news_t event); /* runs at the end of each callback; NULL: nothing */
};

belay_election_options_t election_options(int64_t ttl_ms, const char *value);

/* A handle of the election "crown"; the second one is the bed's client's. Freed after the bed is closed, or it is. */
person_t *person_of(bed_t *bed, belay_client_t *client, const belay_election_options_t *options);
person_t *person_new(bed_t *bed, const char *value);
void person_free(person_t *p);

/* Begin it; what belay returned. If it is 0, the callback is counted. */
int campaign(person_t *p);
int begin_resign(person_t *p);
int begin_close_election(person_t *p);

/* Begins it and waits for it: its status, or what belay returned if that was an error. */
int resign(person_t *p);

/* Begins or ends it; what belay returned. */
int observe(person_t *p, int on);

/* Stands, and is elected. */
void lead(person_t *p);

/* What it was told last as an observer; a status of 1: nothing yet. And whether that is this term; 0: nobody leads. */
const sight_t *last_sight(const person_t *p);
bool sees(const person_t *p, uint64_t term);

#endif /* TEST_PERSONS_H */

/* Refilled buckets, and what is heard of them. */
#ifndef TEST_BUCKETS_H
#define TEST_BUCKETS_H

#include "support/bed.h"

/* A handle. */
typedef struct pail {
  bed_t *bed;
  belay_bucket_t *bucket; /* NULL: closed */
  unsigned pending, closing, closed;
  void (*then)(struct pail *pail); /* runs at the end of each callback; NULL: nothing */
} pail_t;

/* An operation, and what came of it. */
typedef struct dip {
  belay_request_t request;
  pail_t *pail;
  unsigned begun, ended;
  int status;
  belay_bucket_state_t state;
} dip_t;

belay_bucket_options_t bucket_options(int64_t capacity, bool full);

/* A handle of the bed's client; the second one of another's. Its data are the pail. */
void pail_new(pail_t *pail, bed_t *bed, int64_t capacity, bool full);
void pail_of(pail_t *pail, bed_t *bed, belay_client_t *client,
             const belay_bucket_options_t *options);

/* Begin it; what belay returned. If it is 0, the callback is counted. */
int begin_fetch(pail_t *pail, dip_t *dip, const char *key, int64_t tokens);
int begin_add(pail_t *pail, dip_t *dip, const char *key, int64_t tokens, int64_t index);
int begin_read(pail_t *pail, dip_t *dip, const char *key);
int begin_delete(pail_t *pail, dip_t *dip, const char *key);
int begin_close_pail(pail_t *pail);

/* The callback of all of them. */
void on_dipped(belay_request_t *request, int status, const belay_bucket_state_t *state);

/* Waits for the end of what was begun: its status. */
int end_of_dip(dip_t *dip);

/* Begin it, wait for it, which must go well, and compare what comes of it. */
void expect_fetch(pail_t *pail, const char *key, int64_t tokens, bool applied, int64_t left,
                  int64_t index);
void expect_add(pail_t *pail, const char *key, int64_t tokens, int64_t index, bool applied,
                int64_t left, int64_t next);
void expect_read(pail_t *pail, const char *key, int64_t tokens, int64_t index);
void expect_delete(pail_t *pail, const char *key, bool applied, int64_t tokens);

#endif /* TEST_BUCKETS_H */

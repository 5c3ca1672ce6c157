/* Bloom filters, and what is heard of them. */
#ifndef TEST_BLOOMS_H
#define TEST_BLOOMS_H

#include "support/bed.h"

/* A handle. */
typedef struct sieve {
  bed_t *bed;
  belay_bloom_t *bloom; /* NULL: closed */
  unsigned pending, closing, closed;
  void (*then)(struct sieve *sieve); /* runs at the end of each callback; NULL: nothing */
} sieve_t;

enum { SIFT_MAX = 65536 };

/* An operation, and what came of it. */
typedef struct sift {
  belay_request_t request;
  sieve_t *sieve;
  unsigned begun, ended;
  int status;
  bool answer;
  bool *answers; /* where those of a batch go; NULL: nowhere */
  size_t n;
  belay_bloom_info_t info;
  belay_bloom_options_t made;
  char detail[256]; /* belay_detail() in the callback */
} sift_t;

belay_bloom_options_t bloom_options(int64_t capacity, double rate); /* its name is "seen" */

/* A handle of the bed's client; the second one of another's. Its data are the sieve. */
void sieve_new(sieve_t *sieve, bed_t *bed, int64_t capacity, double rate);
void sieve_of(sieve_t *sieve, bed_t *bed, belay_client_t *client,
              const belay_bloom_options_t *options);

/* Begin it; what belay returned. If it is 0, the callback is counted. */
int begin_open_sieve(sieve_t *sieve, sift_t *sift);
int begin_sift_add(sieve_t *sieve, sift_t *sift, const void *item, size_t len);
int begin_sift_exists(sieve_t *sieve, sift_t *sift, const void *item, size_t len);
int begin_sift_many(sieve_t *sieve, sift_t *sift, bool add, const belay_bytes_t *items, size_t n);
int begin_sift_info(sieve_t *sieve, sift_t *sift);
int begin_sift_made(sieve_t *sieve, sift_t *sift);
int begin_sift_clear(sieve_t *sieve, sift_t *sift);
int begin_close_sieve(sieve_t *sieve);

/* Waits for the end of what was begun: its status. */
int end_of_sift(sift_t *sift);

/* Begin it and wait for it, which must go well. */
bool sift_add(sieve_t *sieve, const char *item);
bool sift_exists(sieve_t *sieve, const char *item);
void sift_many(sieve_t *sieve, bool add, const belay_bytes_t *items, size_t n, bool *answers);
belay_bloom_info_t sift_info(sieve_t *sieve);
void sift_clear(sieve_t *sieve);

/* It must end so; for an error the detail is returned, which is valid until the next one. */
const char *expect_add_fails(sieve_t *sieve, const char *item, int error);
const char *expect_exists_fails(sieve_t *sieve, const char *item, int error);
const char *expect_open_fails(sieve_t *sieve, int error);

/* n different items, from one number on: valid until the next time. */
const belay_bytes_t *sift_items(uint64_t from, size_t n);

/* A segment on the server is, bit for bit, that of the set. */
void expect_same_bits(server_t *server, const char *key, const belay_bloomset_t *set,
                      unsigned segment);

#endif /* TEST_BLOOMS_H */

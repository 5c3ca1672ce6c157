/* Counters, and what is heard of them. */
#ifndef TEST_COUNTERS_H
#define TEST_COUNTERS_H

#include "support/bed.h"

enum { COUNT_MANY_MAX = 512, LOSSES_MAX = 64 };

/* What on_lost was told. */
typedef struct loss {
  char key[32];
  int64_t amount;
  int status;
  bool maybe;
} loss_t;

/* A handle. */
typedef struct till {
  bed_t *bed;
  belay_counter_t *counter; /* NULL: closed */
  unsigned pending, closing, closed;
  unsigned losses;
  loss_t loss[LOSSES_MAX];
  void (*then)(struct till *till); /* runs at the end of each callback; NULL: nothing */
} till_t;

/* An operation, and what came of it. */
typedef struct count {
  belay_request_t request;
  till_t *till;
  unsigned begun, ended;
  int status;
  belay_counter_result_t result;
  size_t n;                                    /* of many, or of all fields */
  belay_counter_result_t many[COUNT_MANY_MAX]; /* the first of them */
  char names[COUNT_MANY_MAX][16];
  int64_t values[COUNT_MANY_MAX];
} count_t;

belay_counter_options_t counter_options(void); /* the defaults */

/* A handle of the bed's client, or of another's; options may be NULL. Its data are the till. */
void till_new(till_t *till, bed_t *bed, const belay_counter_options_t *options);
void till_of(till_t *till, bed_t *bed, belay_client_t *client,
             const belay_counter_options_t *options);

/* Begins belay_counter_OP(counter, request, ...): what belay returned. If it is 0, the callback is counted. */
#define BEGIN(till, count, op, ...)                                                                \
  (count_begin((till), (count)),                                                                   \
   count_begun((till), (count),                                                                    \
               belay_counter_##op((till)->counter, &(count)->request, __VA_ARGS__)))

/* A key that is a string, as two arguments. */
#define KEY(key) (key), strlen(key)

void count_begin(till_t *till, count_t *count);
int count_begun(till_t *till, count_t *count, int error);
int begin_close_till(till_t *till);

/* The callbacks. */
void on_counter_told(belay_request_t *request, int status, const belay_counter_result_t *result);
void on_many(belay_request_t *request, int status, const belay_counter_result_t *results, size_t n);
void on_all(belay_request_t *request, int status, const belay_counter_field_t *fields, size_t n);

/* Waits for the end of what was begun: its status. */
int end_of_count(count_t *count);

/* Begin it, wait for it, which must go well, and compare what comes of it. */
void expect_added(till_t *till, const char *key, int64_t delta, int64_t value);
void expect_bounded(till_t *till, const char *key, int64_t delta, int64_t min, int64_t max,
                    bool applied, int64_t value);
void expect_once(till_t *till, const char *key, int64_t delta, const char *id, int64_t value);
void expect_got(till_t *till, const char *key, bool found, int64_t value);
void expect_set(till_t *till, const char *key, int64_t value, bool found, int64_t before);
void expect_deleted(till_t *till, const char *key, bool found);
void expect_field_added(till_t *till, const char *key, const char *field, int64_t delta,
                        int64_t value);
void expect_field(till_t *till, const char *key, const char *field, bool found, int64_t value);

/* The same of an operation that was begun with that error and is to end with that status. */
void expect_status(count_t *count, int error, int status);

/* ---- what is added here first ---- */

belay_counter_options_t counter_options_every(int64_t batch_ms);
belay_counter_stats_t stats_of(const till_t *till);
int add_local(till_t *till, const char *key, int64_t delta);
/* Waits until nothing of it is here any more. */
void expect_idle(till_t *till);
/* What a key of the server's holds; 0: nothing. */
int64_t number_at(server_t *server, const char *key);

/* However many keys there are, none lives for ever. */
void expect_no_key_for_ever(server_t *server);

#endif /* TEST_COUNTERS_H */

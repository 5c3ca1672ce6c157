/* Permissions, and what is heard of them. */
#ifndef TEST_PERMITS_H
#define TEST_PERMITS_H

#include "support/bed.h"

#define GATE_KEY "belay::permission::{forum}::u"

enum { PERMIT_RESULTS_MAX = 40, GATE_OPERATIONS = 7 };

/* A handle. */
typedef struct gate {
  bed_t *bed;
  belay_permission_t *permission; /* NULL: closed */
  unsigned pending, closing, closed;
  void (*then)(struct gate *gate); /* runs at the end of each callback; NULL: nothing */
} gate_t;

/* An operation, and what came of it. */
typedef struct permit {
  belay_request_t request;
  gate_t *gate;
  unsigned begun, ended;
  int status;
  size_t n; /* results, of which the first are kept */
  belay_permission_result_t results[PERMIT_RESULTS_MAX];
  uint64_t sum; /* of all values */
} permit_t;

belay_permission_options_t permission_options(unsigned width);

/* A handle of the bed's client. Its data are the gate. */
void gate_new(gate_t *gate, bed_t *bed, unsigned width);
void gate_of(gate_t *gate, bed_t *bed, const belay_permission_options_t *options);
int begin_close_gate(gate_t *gate);

/* An operation is begun between these two, the second of which is given what belay returned. */
belay_request_t *gate_begin(gate_t *gate, permit_t *permit);
int gate_begun(gate_t *gate, permit_t *permit, int error);

/* The callback of all of them. */
void on_permit(belay_request_t *request, int status, const belay_permission_result_t *results,
               size_t n);

typedef enum deed {
  DEED_GET,
  DEED_HAS,
  DEED_SET,
  DEED_GRANT,
  DEED_REVOKE,
  DEED_SWAP,
  DEED_CLEAR
} deed_t;
#define DEED_IS_SENT_AGAIN(deed) ((deed) < DEED_SET || (deed) == DEED_CLEAR)

/* With one field of "forum"; DEED_SWAP expects 0. */
int begin_deed(gate_t *gate, permit_t *permit, deed_t deed, uint64_t index, uint64_t value);

/* Waits for the end of what was begun: its status. */
int end_of_permit(permit_t *permit);

/* Begin it, wait for it, which must go well, and compare what comes of it. */
void expect_deed(gate_t *gate, deed_t deed, uint64_t index, uint64_t value, uint64_t before,
                 uint64_t now, bool yes);

#endif /* TEST_PERMITS_H */

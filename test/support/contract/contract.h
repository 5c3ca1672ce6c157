/* The contract of handles as a table. Each row makes a handle and begins its operations;
 * live-contract checks the rules of all handles for each row. A row is a handle with requests
 * (belay/request.h). */
#ifndef TEST_SUPPORT_CONTRACT_CONTRACT_H
#define TEST_SUPPORT_CONTRACT_CONTRACT_H

#include "support/fixtures/env.h"

typedef struct contract {
  const char *name;
  /* Call belay_X_new() with valid options and that data; out may be NULL. */
  int (*make)(belay_client_t *client, void *data, void **out);
  /* Begin the nth operation, with the callback of the row or with NULL. */
  int (*begin)(void *handle, belay_request_t *request, unsigned n, bool with_cb);
  /* Call belay_X_close(); with_cb: with a callback. NULL: the handle is the client. */
  int (*close)(void *handle, bool with_cb);
  void *(*data)(const void *handle);
  unsigned operations;
  bool local; /* a used handle may answer an operation without the server */
} contract_t;

/* The tables end with a row without a name. */
extern const contract_t contracts_of_data[], contracts_of_keys[], contracts_of_limits[];

/* A handle of a row. */
typedef struct rig {
  const contract_t *row;
  env_t *env;
  void *handle;
  unsigned closing, closed;
  void (*on_closed)(struct rig *rig); /* runs in the close callback; NULL: nothing */
} rig_t;

/* An operation of a rig. */
typedef struct rig_call {
  belay_request_t request;
  rig_t *rig;
  unsigned n; /* the operation */
  unsigned begun, ended;
  int status;
  void (*on_ended)(struct rig_call *call); /* runs in the callback; NULL: nothing */
} rig_call_t;

void rig_make(rig_t *rig, const contract_t *row, env_t *env, belay_client_t *client);
int rig_begin(rig_t *rig, rig_call_t *call, unsigned n);
int rig_close(rig_t *rig);

/* The callbacks of rows call these. */
void rig_on_ended(belay_request_t *request, int status);
void rig_on_closed(void *data);

/* ---- rows ---- */

/* Callbacks of the shapes of belay/request.h. */
#define RIG_ANSWER(name, type)                                                                     \
  static void name(belay_request_t *request, int status, __attribute__((unused)) type answer) {    \
    rig_on_ended(request, status);                                                                 \
  }
#define RIG_ANSWERS(name, type)                                                                    \
  static void name(belay_request_t *request, int status, __attribute__((unused)) type answers,     \
                   __attribute__((unused)) size_t n) {                                             \
    rig_on_ended(request, status);                                                                 \
  }

/* Defines X_close() and X_data() for a row of the handle belay_X_t. */
#define RIG_HANDLE(type)                                                                           \
  static void on_##type##_closed(belay_##type##_t *handle, void *data) {                           \
    assert_non_null(handle);                                                                       \
    rig_on_closed(data);                                                                           \
  }                                                                                                \
  static int type##_close(void *handle, bool with_cb) {                                            \
    return belay_##type##_close(handle, with_cb ? on_##type##_closed : NULL);                      \
  }                                                                                                \
  static void *type##_data(const void *handle) {                                                   \
    return belay_##type##_data(handle);                                                            \
  }

/* Defines make_ROW() for a row of belay_X_t; the statements set options `o`. */
#define RIG_MAKE(type, row, ...)                                                                   \
  static int make_##row(belay_client_t *client, void *data, void **out) {                          \
    belay_##type##_options_t o;                                                                    \
    belay_##type##_options_init(NULL);                                                             \
    belay_##type##_options_init(&o);                                                               \
    o.name = belay_string("n");                                                                    \
    o.data = data;                                                                                 \
    __VA_ARGS__;                                                                                   \
    belay_##type##_t *handle = data;                                                               \
    int error = belay_##type##_new(client, &o, out != NULL ? &handle : NULL);                      \
    if (out != NULL)                                                                               \
      *out = handle;                                                                               \
    return error;                                                                                  \
  }

#define RIG_ROW(type, row, n)                                                                      \
  { #row, make_##row, type##_begin, type##_close, type##_data, (n), false }
#define RIG_ROW_LOCAL(type, row, n)                                                                \
  { #row, make_##row, type##_begin, type##_close, type##_data, (n), true }

#endif /* TEST_SUPPORT_CONTRACT_CONTRACT_H */

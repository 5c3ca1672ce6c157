/* An awaitable: a handle with a waiter. The base of a latch and of a barrier.
 *
 *   IDLE --wait--> PENDING --the waiter is over--> OVER --the task runs the callback--> IDLE
 *
 * A close first cancels a pending wait. If the wait is not over after the client's close_timeout,
 * belay__waiter_stop() ends the wait. */
#ifndef BELAY_SYNC_AWAITABLE_H
#define BELAY_SYNC_AWAITABLE_H

#include "belay/latch.h"
#include "core/client/handle.h"
#include "core/key/key.h"
#include "sync/waiter.h"

typedef struct belay__awaitable belay__awaitable_t;

typedef void (*belay__awaitable_end_fn)(belay__awaitable_t *awaitable, int status);

struct belay__awaitable {
  belay__handle_t handle; /* first */
  belay__waiter_t waiter;
  belay__task_t task;          /* OVER */
  belay__timer_t close_timer;  /* after a close, while the wait ends: end of close_timeout */
  belay__awaitable_end_fn end; /* PENDING, OVER; else NULL */
  int64_t count, ttl_ms, waiter_ttl_ms;
  size_t channel_len;
  char *channel; /* the key and "::wake" */
};

/* The parameters of an awaitable type: the options of a latch, and the arguments of
 * belay_X_new(). */
typedef struct belay__awaitable_options {
  belay_latch_options_t latch; /* first */
  belay_bytes_t name;
  void *data; /* NULL */
} belay__awaitable_options_t;

/* The common members of the types; kind_: latch or barrier. */
#define BELAY__AWAITABLE_TYPE(kind_, init_)                                                        \
  .family = #kind_, .size = sizeof(belay_##kind_##_t), .whole = true, .name_max = BELAY__NAME_MAX, \
  .options_size = sizeof(belay__awaitable_options_t), .ranges = belay__awaitable_ranges,           \
  .name_at = offsetof(belay__awaitable_options_t, name),                                           \
  .data_at = offsetof(belay__awaitable_options_t, data), .init = (init_),                          \
  .close = belay__awaitable_close, .abort = belay__awaitable_abort,                                \
  .deinit = belay__awaitable_deinit

/* Defines belay_X_new() of the type X_type, belay_X_close(), belay_X_cancel(), belay_X_data() and
 * belay_X_set_data(). */
#define BELAY__AWAITABLE_FUNCTIONS(kind)                                                           \
  BELAY__HANDLE_END(kind)                                                                          \
  int belay_##kind##_new(belay_client_t *client, belay_bytes_t name,                               \
                         const belay_latch_options_t *options, belay_##kind##_t **out) {           \
    belay__handle_t *handle = NULL;                                                                \
    if (out == NULL)                                                                               \
      return BELAY_EINVAL;                                                                         \
    int error = belay__awaitable_new(client, &kind##_type, name, options, &handle);                \
    *out = (belay_##kind##_t *)handle;                                                             \
    return error;                                                                                  \
  }                                                                                                \
  int belay_##kind##_cancel(belay_##kind##_t *awaitable) {                                         \
    return belay__awaitable_cancel((belay__awaitable_t *)awaitable);                               \
  }                                                                                                \
  void belay_##kind##_set_data(belay_##kind##_t *awaitable, void *data) {                          \
    if (awaitable != NULL)                                                                         \
      ((belay__handle_t *)awaitable)->data = data;                                                 \
  }

extern const belay__range_t belay__awaitable_ranges[];
void belay__awaitable_close(belay__handle_t *handle);
void belay__awaitable_abort(belay__handle_t *handle);
void belay__awaitable_deinit(belay__handle_t *handle);

/* Makes a handle for belay_X_new(). options: NULL for the defaults. */
int belay__awaitable_new(belay_client_t *client, const belay__handle_type_t *type,
                         belay_bytes_t name, const belay_latch_options_t *options,
                         belay__handle_t **out);

/* Initializes the awaitable, for type->init. The options replace retry_min, retry_max, backoff_max
 * and timeout of `config`. waiter_ops->finished must be belay__awaitable_finished. */
int belay__awaitable_init(belay__awaitable_t *awaitable, const belay__awaitable_options_t *options,
                          unsigned count_max, belay__waiter_config_t config,
                          const belay__waiter_ops_t *waiter_ops);
void belay__awaitable_finished(belay__waiter_t *waiter);

static inline belay__awaitable_t *belay__awaitable_of(belay__waiter_t *waiter) {
  return BELAY__CONTAINER(waiter, belay__awaitable_t, waiter);
}

/* Checks the arguments of a wait. Returns 0, BELAY_EINVAL, BELAY_ESTATE (a wait is pending),
 * BELAY_ECLOSING or BELAY_EFORK. awaitable may be NULL. */
int belay__awaitable_check_wait(const belay__awaitable_t *awaitable, int64_t wait_ms, bool has_cb);
/* Begins a wait that belay__awaitable_check_wait() has accepted. wait_ms: see
 * belay__waiter_start(). end runs from a task, and may call any function. */
void belay__awaitable_wait(belay__awaitable_t *awaitable, int64_t wait_ms,
                           belay__awaitable_end_fn end);

/* Cancels the pending wait, which then ends with BELAY_ECANCELED. After a withdrawal the status can
 * also be 0 (the condition was met) or BELAY_EUNKNOWN. Returns 0, BELAY_ESTATE (no wait is pending)
 * or an error of the handle's check. */
int belay__awaitable_cancel(belay__awaitable_t *awaitable);

/* Adds a key of the awaitable to the call. tail: "}", or "}::part". */
static inline void belay__awaitable_key(const belay__awaitable_t *awaitable, belay__call_t *call,
                                        const char *tail) {
  belay__handle_arg(&awaitable->handle, call, "", 0, tail);
}

#endif /* BELAY_SYNC_AWAITABLE_H */

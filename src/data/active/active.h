/* Shared by the files of active users: the series, its periods, and the sending of operations. */
#ifndef BELAY_DATA_ACTIVE_ACTIVE_H
#define BELAY_DATA_ACTIVE_ACTIVE_H

#include "belay/active.h"
#include "data/active/date.h"
#include "core/client/server_time.h"

struct belay_active {
  belay__handle_t handle; /* first */
  belay__servertime_t time;
  int64_t unit_ms, offset_ms, ttl_ms, archive_ttl_ms;
};

/* ---- periods: numbered from the one that 1970-01-01 begins with ------------------------------------------ */

static inline int64_t belay__active_period(const belay_active_t *active, int64_t time_ms) {
  return belay__date_floor(time_ms + active->offset_ms, active->unit_ms);
}

static inline int64_t belay__active_begins_ms(const belay_active_t *active, int64_t period) {
  return period * active->unit_ms - active->offset_ms;
}

/* Adds keys: of a period, and of an archive. */
void belay__active_put_period(const belay_active_t *active, belay__call_t *call, int64_t period);
void belay__active_put_archive(const belay_active_t *active, belay__call_t *call, const char *label,
                               size_t label_len);

/* ---- operations ------------------------------------------------------------------------------------------- */

/* What is asked: the beginning of a request's room. */
typedef struct belay__active_ask belay__active_ask_t;

struct belay__active_ask {
  /* Sends its calls: 0 or an error. */
  int (*send)(belay_active_t *active, belay__operation_t *operation,
              const belay__active_ask_t *ask);
  int64_t from_ms, to_ms; /* BELAY_ACTIVE_NOW becomes the time when it is known */
  const belay_bytes_t *items;
  size_t n;
  uint32_t spans[BELAY_ACTIVE_SPANS_MAX]; /* n of them, where there are no items */
};

/* Begins it: asks what time it is before, if that is not known and of account. */
int belay__active_begin(belay_active_t *active, belay_request_t *request,
                        const belay__request_ops_t *ops, const belay__active_ask_t *ask,
                        void (*cb)(void));

/* Of requests that are begun so. */
enum { BELAY__ACTIVE_COUNTS = BELAY_ACTIVE_SPANS_MAX, BELAY__ACTIVE_SENT, BELAY__ACTIVE_LEN };

int belay__active_next(belay__operation_t *operation);

/* 0, or BELAY_EINVAL with a detail. */
int belay__active_check_time(const belay_active_t *active, const char *what, int64_t time_ms);

#endif /* BELAY_DATA_ACTIVE_ACTIVE_H */

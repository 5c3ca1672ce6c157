/* A process full of waiters for one lock, and its records. A kind states how they acquire it. */
#ifndef BENCH_STUDY_CROWD_CROWD_H
#define BENCH_STUDY_CROWD_CROWD_H

#include <uv.h>

#include "study/scene.h"

typedef struct crowd crowd_t;

typedef struct waiter {
  crowd_t *crowd;
  unsigned number;
  int64_t asked;   /* 0: it does not wait; or since when it does */
  int64_t granted; /* while it holds the lock: since when */
  void *own;       /* the kind's */
} waiter_t;

/* How waiters ask. Each acquire leads to crowd_granted(), each release to crowd_released(), both
 * from the loop. */
typedef struct crowd_kind {
  void (*open)(crowd_t *crowd); /* connects, and makes what belongs to each waiter */
  void (*acquire)(waiter_t *waiter);
  void (*release)(waiter_t *waiter);
  uint64_t (*commands)(const crowd_t *crowd); /* sent so far */
  void (*close)(crowd_t *crowd);              /* releases everything; no callback runs afterwards */
} crowd_kind_t;

struct crowd {
  const crowd_kind_t *kind;
  scene_t *scene;
  result_t *result;
  int self; /* which process */
  bool over, measuring;
  uv_loop_t loop;
  waiter_t *waiters;
  void *own; /* the kind's */
  struct crowd_clock *clock;
};

extern const crowd_kind_t crowd_bare, crowd_belay, crowd_naive;

void crowd_granted(waiter_t *waiter);
void crowd_released(waiter_t *waiter);
void crowd_lost(waiter_t *waiter);

/* Does the scene's job as that process. */
void crowd_run(scene_t *scene, int self);

/* Memory, zeroed, or the end. */

#endif /* BENCH_STUDY_CROWD_CROWD_H */

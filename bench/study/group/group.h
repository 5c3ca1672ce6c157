/* A process full of waiters for one lock, and its records. A kind states how they acquire it. */
#ifndef BENCH_STUDY_GROUP_GROUP_H
#define BENCH_STUDY_GROUP_GROUP_H

#include <uv.h>

#include "study/scene.h"

typedef struct group group_t;

typedef struct waiter {
  group_t *group;
  unsigned number;
  int64_t asked;   /* 0: it does not wait; or since when it does */
  int64_t granted; /* while it holds the lock: since when */
  void *own;       /* the kind's */
} waiter_t;

/* How waiters ask. Each acquire leads to group_granted(), each release to group_released(), both
 * from the loop. */
typedef struct group_kind {
  void (*open)(group_t *group); /* connects, and makes what belongs to each waiter */
  void (*acquire)(waiter_t *waiter);
  void (*release)(waiter_t *waiter);
  uint64_t (*commands)(const group_t *group); /* sent so far */
  void (*close)(group_t *group);              /* releases everything; no callback runs afterwards */
} group_kind_t;

struct group {
  const group_kind_t *kind;
  scene_t *scene;
  result_t *result;
  int self; /* which process */
  bool over, measuring;
  uv_loop_t loop;
  waiter_t *waiters;
  void *own; /* the kind's */
  struct group_clock *clock;
};

extern const group_kind_t group_bare, group_belay, group_naive;

void group_granted(waiter_t *waiter);
void group_released(waiter_t *waiter);
void group_lost(waiter_t *waiter);

/* Does the scene's job as that process. */
void group_run(scene_t *scene, int self);

/* Memory, zeroed, or the end. */

#endif /* BENCH_STUDY_GROUP_GROUP_H */

/* The state of orders_cache.c and orders_touch.c. */
#ifndef TEST_SIM_ORDERS_ORDERS_CACHE_H
#define TEST_SIM_ORDERS_ORDERS_CACHE_H

#include <belay/cache.h>

#include "sim/orders/orders.h"
#include "sim/orders/orders_parts.h"

#define PAIR 2 /* processes */
#define OPS 16 /* of a run */
#define LOADS 32
#define FILLERS 28 /* with so many replies due, three commands are not sent at once */

typedef struct orders orders_t;

typedef struct get {
  belay_request_t request;
  orders_t *orders;
  unsigned process, callbacks;
  unsigned acknowledged; /* a bit for each change that was, when it was called */
} get_t;

typedef struct change {
  belay_request_t request;
  orders_t *orders;
  unsigned process, version, callbacks;
  bool is_put, is_tag, acknowledged;
  unsigned called, executed, ended; /* numbers of moments; 0: not */
  unsigned captured;                /* a put: it knew the tag */
  uint64_t at;                      /* when it was acknowledged */
} change_t;

typedef struct load {
  belay_cache_load_t *load; /* NULL: it has ended */
  unsigned process, version;
} load_t;

struct orders {
  sim_subject_t base; /* first */
  sim_search_t search;
  const sim_part_t *part;
  const char *steps[PAIR];
  unsigned taken[PAIR];
  belay_cache_t *cache[PAIR];
  char key[16];
  unsigned version, moment, keys;
  bool ends_at_once; /* loads do */
  bool failed;       /* a load has */
  bool puts;         /* there is a put among the steps */
  unsigned gets, changes, loads;
  get_t get[OPS];
  change_t change[OPS];
  load_t load[LOADS];
  belay_request_t filler[FILLERS];
};

extern orders_t *sim_orders_current; /* the one whose commands servers execute */

/* sim_subject_t's mark. */
void sim_orders_mark(sim_subject_t *subject, sim_act_t *act, const engine_bytes_t *argv,
                     size_t argc);

#endif /* TEST_SIM_ORDERS_ORDERS_CACHE_H */

/* Chapter: messages that are delivered more than once, and worked on once. */
#include <stdio.h>

#include "demo/chapters.h"

enum { ORDERS = 200, TIMES = 3, VISITS = 20000, VISITORS = 5000 };
static const char orders[] = "orders", visitors[] = "visitors";

typedef struct worker {
  struct dedup *dedup;
  belay_dedup_t *seen;
  belay_request_t request;
  unsigned next, fresh; /* deliveries so far; those that were new */
} worker_t;

typedef struct dedup {
  demo_t *demo;
  worker_t workers[DEMO_CONTENDERS];
  belay_dedup_t *counts;
  unsigned worked[ORDERS];
  char texts[VISITORS][8];
  belay_bytes_t items[VISITS];
  int64_t number;
} dedup_t;

static belay_dedup_t *new_dedup(demo_t *demo, demo_who_t who, belay_dedup_kind_t kind) {
  belay_dedup_t *dedup;
  belay_dedup_options_t options;
  belay_dedup_options_init(&options);
  options.kind = kind;
  options.name = "shop";
  options.name_len = 4;
  int error = belay_dedup_new(demo->client[who], &options, &dedup);
  if (error != 0)
    demo_trouble(demo, "making a set", error);
  return dedup;
}

/* ---- orders -------------------------------------------------------------------------------------------- */

static void take(worker_t *worker);

/* The first delivery goes from one end, the second from the other, for each worker another way. */
static unsigned order_of(const worker_t *worker) {
  unsigned i = worker->next % ORDERS;
  bool second = worker == &worker->dedup->workers[DEMO_B];
  return (worker->next / ORDERS % 2 == 0) == second ? ORDERS - 1 - i : i;
}

static void on_mark(belay_request_t *request, int status, belay_dedup_verdict_t verdict) {
  worker_t *worker = request->data;
  if (status != 0) {
    demo_trouble(worker->dedup->demo, "marking an order", status);
    return;
  }
  if (verdict == BELAY_DEDUP_NEW) {
    worker->fresh++;
    worker->dedup->worked[order_of(worker)]++;
  }
  worker->next++;
  if (worker->next < TIMES * ORDERS)
    take(worker);
}

static void take(worker_t *worker) {
  char id[16];
  int len = snprintf(id, sizeof id, "order-%u", order_of(worker));
  int error = belay_dedup_mark(worker->seen, &worker->request, orders, sizeof orders - 1, id,
                               (size_t)len, on_mark);
  if (error != 0)
    demo_trouble(worker->dedup->demo, "marking an order", error);
}

static void work(dedup_t *dedup) {
  demo_t *demo = dedup->demo;
  for (int who = 0; who < DEMO_CONTENDERS; who++) {
    worker_t *worker = &dedup->workers[who];
    worker->dedup = dedup;
    worker->request.data = worker;
    worker->seen = new_dedup(demo, (demo_who_t)who, BELAY_DEDUP_SET);
    if (worker->seen != NULL)
      take(worker);
  }
  demo_run(demo);
  unsigned once = 0;
  for (unsigned i = 0; i < ORDERS; i++)
    once += dedup->worked[i] == 1;
  demo_event(demo, 0, "A was told %u times that an order is new, B %u times",
             dedup->workers[DEMO_A].fresh, dedup->workers[DEMO_B].fresh);
  demo_fact(demo, once == ORDERS && dedup->workers[DEMO_B].next == TIMES * ORDERS,
            "of %d deliveries of %d orders each order was new once", 2 * TIMES * ORDERS, ORDERS);
}

/* ---- visitors ------------------------------------------------------------------------------------------ */

static void on_number(belay_request_t *request, int status, int64_t number) {
  dedup_t *dedup = request->data;
  dedup->number = number;
  if (status != 0)
    demo_trouble(dedup->demo, "counting", status);
}

static void on_counted(belay_request_t *request, int status, const belay_dedup_verdict_t *verdicts,
                       size_t n) {
  dedup_t *dedup = request->data;
  (void)verdicts;
  (void)n;
  if (status == 0)
    status = belay_dedup_count(dedup->counts, request, visitors, sizeof visitors - 1, on_number);
  if (status != 0)
    demo_trouble(dedup->demo, "counting", status);
}

static void count(dedup_t *dedup) {
  demo_t *demo = dedup->demo;
  belay_request_t request = {.data = dedup};
  for (unsigned i = 0; i < VISITS; i++) {
    char *text = dedup->texts[i % VISITORS];
    dedup->items[i] =
        (belay_bytes_t){text, (size_t)snprintf(text, sizeof dedup->texts[0], "%u", i % VISITORS)};
  }
  dedup->counts = new_dedup(demo, DEMO_A, BELAY_DEDUP_COUNT);
  if (dedup->counts == NULL)
    return;
  int error = belay_dedup_mark_many(dedup->counts, &request, visitors, sizeof visitors - 1,
                                    dedup->items, VISITS, on_counted);
  if (error != 0)
    demo_trouble(demo, "counting", error);
  demo_run(demo);
  demo_event(demo, 0, "%d visits, counted in at most 12 KiB: %lld visitors", VISITS,
             (long long)dedup->number);
  double off = ((double)dedup->number - VISITORS) / VISITORS;
  demo_fact(demo, off < 0.0405 && off > -0.0405,
            "that is off by %.2f %%: the standard error is 0.81 %%", off * 100);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void clear(dedup_t *dedup, belay_dedup_t *set, const char *key, size_t len) {
  demo_t *demo = dedup->demo;
  belay_request_t request = {.data = dedup};
  if (set == NULL)
    return;
  int error = belay_dedup_clear(set, &request, key, len, on_number);
  if (error != 0)
    demo_trouble(demo, "forgetting what was seen", error);
  demo_run(demo);
  (void)belay_dedup_close(set, NULL);
}

void chapter_dedup(demo_t *demo) {
  static dedup_t dedup;
  dedup = (dedup_t){.demo = demo};
  work(&dedup);
  count(&dedup);
  clear(&dedup, dedup.workers[DEMO_A].seen, orders, sizeof orders - 1);
  clear(&dedup, dedup.counts, visitors, sizeof visitors - 1);
  if (dedup.workers[DEMO_B].seen != NULL)
    (void)belay_dedup_close(dedup.workers[DEMO_B].seen, NULL);
  demo_run(demo);
}

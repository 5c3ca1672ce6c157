/* Chapter: messages that are delivered more than once, and worked on once. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { ORDERS = 200, TIMES = 3 };
static const char orders[] = "orders";

typedef struct worker {
  demo_t *demo;
  belay_dedup_t *seen;
  belay_request_t request;
  unsigned *worked; /* for each order: how often it was new */
  unsigned next, fresh;
  bool backwards;
} worker_t;

static void take(worker_t *worker);

static unsigned order_of(const worker_t *worker) {
  unsigned i = worker->next % ORDERS;
  return worker->backwards ? ORDERS - 1 - i : i;
}

static void on_mark(belay_request_t *request, int status, belay_dedup_verdict_t verdict) {
  worker_t *worker = request->data;
  if (status != 0) {
    demo_trouble(worker->demo, "marking an order", status);
    return;
  }
  worker->fresh += verdict == BELAY_DEDUP_NEW;
  worker->worked[order_of(worker)] += verdict == BELAY_DEDUP_NEW;
  if (++worker->next < TIMES * ORDERS)
    take(worker);
}

static void take(worker_t *worker) {
  char id[16];
  int len = snprintf(id, sizeof id, "order-%u", order_of(worker));
  int error = belay_dedup_mark(worker->seen, &worker->request, belay_string(orders),
                               belay_bytes(id, (size_t)len), on_mark);
  if (error != 0)
    demo_trouble(worker->demo, "marking an order", error);
}

void chapter_dedup(demo_t *demo) {
  unsigned worked[ORDERS] = {0}, once = 0;
  worker_t workers[DEMO_CONTENDERS];
  belay_dedup_options_t options;
  belay_dedup_options_init(&options);
  options.name = belay_string("shop");
  for (unsigned i = 0; i < DEMO_CONTENDERS; i++) {
    worker_t *worker = &workers[i];
    *worker = (worker_t){.demo = demo, .request.data = worker, .worked = worked};
    worker->backwards = i == DEMO_B;
    if (!demo_made(demo, "a set", belay_dedup_new(demo->client[i], &options, &worker->seen)))
      return;
    take(worker);
  }
  demo_run(demo);
  for (unsigned i = 0; i < ORDERS; i++)
    once += worked[i] == 1;
  demo_fact(demo, once == ORDERS && workers[DEMO_B].next == TIMES * ORDERS,
            "of %d deliveries of %d orders each was new once: %u to A, %u to B", 2 * TIMES * ORDERS,
            ORDERS, workers[DEMO_A].fresh, workers[DEMO_B].fresh);
  for (unsigned i = 0; i < DEMO_CONTENDERS; i++)
    (void)belay_dedup_close(workers[i].seen, NULL);
}

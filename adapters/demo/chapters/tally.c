/* Chapter: views of a page that are counted here first, and seats that may not be sold twice. */
#include <string.h>

#include "demo/chapters.h"

enum { VIEWS = 100000, SEATS = 10, BUYERS = 25 };
static const char views[] = "views", seats[] = "seats", order[] = "order 4711";

typedef struct sale {
  demo_t *demo;
  belay_request_t again[2], request[BUYERS];
  int64_t left[2]; /* seats, after an order that was sent twice */
  int64_t lowest;  /* number of seats in an answer */
  unsigned sold;
} sale_t;

static void on_value(belay_request_t *request, int status, const belay_counter_result_t *result) {
  demo_on_number(request, status, status == 0 ? result->value : -1);
}

static void count_views(demo_t *demo, belay_counter_t *counter) {
  int error = 0;
  uint64_t began = uv_hrtime();
  for (unsigned i = 0; i < VIEWS && error == 0; i++)
    error = belay_counter_add_local(counter, belay_string(views), 1);
  (void)demo_check(demo, "counting here", error);
  demo_event(demo, 0, "%d views were counted here, in %.1f ms", VIEWS,
             1e3 * demo_seconds(began, uv_hrtime()));
  (void)belay_counter_flush(counter);
  demo_run(demo);
  (void)demo_await(demo, "reading a counter",
                   belay_counter_get(counter, &demo->request, belay_string(views), on_value));
  belay_counter_stats_t stats;
  belay_counter_stats(counter, &stats);
  demo_fact(demo, demo->number == VIEWS && stats.counted == 1,
            "the server has all %lld of them, by %llu command", (long long)demo->number,
            (unsigned long long)stats.counted);
}

static void on_order(belay_request_t *request, int status, const belay_counter_result_t *result) {
  sale_t *sale = request->data;
  (void)demo_check(sale->demo, "an order", status);
  sale->left[request - sale->again] = result->value;
}

static void on_seat(belay_request_t *request, int status, const belay_counter_result_t *result) {
  sale_t *sale = request->data;
  (void)demo_check(sale->demo, "selling a seat", status);
  sale->sold += result->applied;
  if (result->value < sale->lowest)
    sale->lowest = result->value;
}

/* One order twice, as when its answer was lost. Then all buyers at once. */
static void sell_seats(demo_t *demo, belay_counter_t *counter) {
  sale_t sale = {.demo = demo, .lowest = SEATS};
  int error = 0;
  (void)demo_await(
      demo, "offering seats",
      belay_counter_set(counter, &demo->request, belay_string(seats), SEATS, on_value));
  for (unsigned i = 0; i < 2 && error == 0; i++) {
    sale.again[i] = (belay_request_t){.data = &sale, .timeout_ms = 900};
    error = belay_counter_add_once(counter, &sale.again[i], belay_string(seats), -1,
                                   belay_string(order), on_order);
  }
  for (unsigned i = 0; i < BUYERS && error == 0; i++) {
    sale.request[i] = (belay_request_t){.data = &sale};
    error = belay_counter_add_bounded(counter, &sale.request[i], belay_string(seats), -1,
                                      &(belay_counter_bounds_t){.min = 0, .max = SEATS}, on_seat);
  }
  (void)demo_check(demo, "selling seats", error);
  demo_run(demo);
  demo_fact(demo, sale.left[0] == SEATS - 1 && sale.left[1] == SEATS - 1,
            "an order that came twice took one seat, and got the same answer twice: %lld left",
            (long long)sale.left[1]);
  demo_fact(demo, sale.sold == SEATS - 1 && sale.lowest == 0,
            "no seat was sold twice, and no number of seats was ever below 0");
}

void chapter_tally(demo_t *demo) {
  belay_counter_t *counter;
  belay_counter_options_t options;
  belay_counter_options_init(&options);
  options.name = belay_string(demo->name);
  options.op_ttl_ms = 1000;
  if (!demo_check(demo, "making a counter",
                  belay_counter_new(demo->client[DEMO_A], &options, &counter)))
    return;
  count_views(demo, counter);
  sell_seats(demo, counter);
  (void)belay_counter_close(counter, NULL);
}

/* Chapter: views of a page that are counted here first, and seats that may not be sold twice. */
#include <string.h>

#include "demo/chapters.h"

enum { VIEWS = 100000, SEATS = 10, BUYERS = 25 };
static const char views[] = "views", seats[] = "seats", order[] = "order 4711";

typedef struct tally {
  demo_t *demo;
  belay_counter_t *counter;
  belay_request_t request[BUYERS], look, again[2], forget[2];
  int64_t seen;        /* views, on the server */
  int64_t told[2];     /* how many seats are left after an order that was sent twice */
  int64_t lowest;      /* seats that somebody was told are left */
  unsigned sold, late; /* seats; buyers who came too late */
  uint64_t sums;       /* of views, that were sent */
} tally_t;

static bool went_well(const tally_t *tally, const char *what, int status) {
  if (status != 0)
    demo_trouble(tally->demo, what, status);
  return status == 0;
}

static void on_seen(belay_request_t *request, int status, const belay_counter_result_t *result) {
  tally_t *tally = request->data;
  if (went_well(tally, "reading a counter", status))
    tally->seen = result->value;
}

static void on_seat(belay_request_t *request, int status, const belay_counter_result_t *result) {
  tally_t *tally = request->data;
  if (!went_well(tally, "selling a seat", status))
    return;
  tally->sold += result->applied;
  tally->late += !result->applied;
  if (result->value < tally->lowest)
    tally->lowest = result->value;
}

static void on_order(belay_request_t *request, int status, const belay_counter_result_t *result) {
  tally_t *tally = request->data;
  if (went_well(tally, "an order", status))
    tally->told[request - tally->again] = result->value;
}

static void on_done(belay_request_t *request, int status, const belay_counter_result_t *result) {
  (void)result;
  (void)went_well(request->data, "a counter", status);
}

/* Each view by a call; then what came of it on the server. */
static void count_views(tally_t *tally) {
  demo_t *demo = tally->demo;
  int error = 0;
  uint64_t began = uv_hrtime();
  for (unsigned i = 0; i < VIEWS && error == 0; i++)
    error = belay_counter_add_local(tally->counter, views, strlen(views), 1);
  (void)went_well(tally, "counting here", error);
  demo_event(demo, 0, "%d views were counted here, in %.1f ms", VIEWS,
             1e3 * demo_seconds(began, uv_hrtime()));
  (void)belay_counter_flush(tally->counter);
  demo_run(demo);
  error = belay_counter_get(tally->counter, &tally->look, views, strlen(views), on_seen);
  (void)went_well(tally, "reading a counter", error);
  demo_run(demo);
  belay_counter_stats_t stats;
  belay_counter_stats(tally->counter, &stats);
  tally->sums = stats.counted;
  demo_event(demo, 0, "the server was told once, and has %lld", (long long)tally->seen);
}

/* One order twice, as when its answer was lost; then everybody at once. */
static void sell_seats(tally_t *tally) {
  demo_t *demo = tally->demo;
  int error = belay_counter_set(tally->counter, &tally->look, seats, strlen(seats), SEATS, on_done);
  demo_run(demo);
  for (unsigned i = 0; i < 2 && error == 0; i++)
    error = belay_counter_add_once(tally->counter, &tally->again[i], seats, strlen(seats), -1,
                                   order, strlen(order), on_order);
  for (unsigned i = 0; i < BUYERS && error == 0; i++)
    error = belay_counter_add_bounded(tally->counter, &tally->request[i], seats, strlen(seats), -1,
                                      0, SEATS, on_seat);
  (void)went_well(tally, "selling seats", error);
  demo_run(demo);
  demo_event(demo, 0, "%u of %d who came at once have a seat, %u were too late", tally->sold,
             BUYERS, tally->late);
}

static void conclude(const tally_t *tally) {
  demo_t *demo = tally->demo;
  term_print(&demo->term, "\n");
  demo_fact(demo, tally->seen == VIEWS && tally->sums == 1,
            "all of them are there, by %llu command", (unsigned long long)tally->sums);
  demo_fact(demo, tally->told[0] == SEATS - 1 && tally->told[1] == SEATS - 1,
            "an order that came twice took one seat, and was told the same twice: %lld left",
            (long long)tally->told[1]);
  demo_fact(demo,
            tally->sold == SEATS - 1 && tally->late == BUYERS - tally->sold && tally->lowest == 0,
            "no seat was sold twice, and no number of seats was ever below 0");
}

static void forget(tally_t *tally, unsigned i, const char *key) {
  int error = belay_counter_delete(tally->counter, &tally->forget[i], key, strlen(key), on_done);
  (void)went_well(tally, "forgetting a counter", error);
}

void chapter_tally(demo_t *demo) {
  tally_t tally = {.demo = demo, .lowest = SEATS};
  belay_counter_options_t options;
  belay_counter_options_init(&options);
  options.name = demo->name;
  options.name_len = strlen(demo->name);
  options.op_ttl_ms = 1000; /* and not an hour: nothing is to be left of this */
  int error = belay_counter_new(demo->client[DEMO_A], &options, &tally.counter);
  if (!went_well(&tally, "making a counter", error))
    return;
  const belay_request_t request = {.data = &tally, .timeout_ms = 900};
  tally.look = request;
  for (unsigned i = 0; i < BUYERS; i++)
    tally.request[i] = request;
  for (unsigned i = 0; i < 2; i++)
    tally.again[i] = tally.forget[i] = request;
  count_views(&tally);
  sell_seats(&tally);
  conclude(&tally);
  forget(&tally, 0, views);
  forget(&tally, 1, seats);
  demo_run(demo);
  (void)belay_counter_close(tally.counter, NULL);
  demo_run(demo);
}

/* Chapter: ids for users, orders and parcels. No id comes twice. */
#include <inttypes.h>

#include "demo/chapters.h"

enum { STEP = 1000, USERS = 300, ORDERS = 5, FIRST_ORDER = 5000, PARCELS = 2000, AHEAD_MS = 100 };
enum { NEAR_MS = 5000 }; /* of the wall clock */

static belay_idgen_t *make(demo_t *demo, demo_who_t who, belay_idgen_mode_t mode) {
  belay_idgen_options_t options;
  belay_idgen_t *idgen = NULL;
  belay_idgen_options_init(&options);
  options.name = belay_string(demo->name);
  options.mode = mode;
  options.step = STEP;
  options.start = mode == BELAY_IDGEN_SEQUENCE ? FIRST_ORDER : 1;
  options.ahead_ms = AHEAD_MS;
  (void)demo_made(demo, "a source of ids", belay_idgen_new(demo->client[who], &options, &idgen));
  return idgen;
}

static int64_t get(demo_t *demo, belay_idgen_t *idgen) {
  (void)demo_await(demo, "asking for an id",
                   belay_idgen_get(idgen, &demo->request, demo_on_number));
  return demo->number;
}

/* Get n ids from memory. Returns the last one, or 0 if there were fewer. */
static int64_t next(belay_idgen_t *idgen, unsigned n) {
  int64_t id = 0;
  for (unsigned i = 0; i < n; i++)
    if (belay_idgen_next(idgen, &id) != 0)
      return 0;
  return id;
}

static void number_users(demo_t *demo) {
  belay_idgen_t *a = make(demo, DEMO_A, BELAY_IDGEN_SEGMENT);
  belay_idgen_t *b = make(demo, DEMO_B, BELAY_IDGEN_SEGMENT);
  int64_t a_first = get(demo, a), b_first = get(demo, b);
  int64_t a_last = next(a, USERS - 1), b_last = next(b, USERS - 1);
  (void)belay_idgen_close(a, NULL);
  a = make(demo, DEMO_A, BELAY_IDGEN_SEGMENT);
  int64_t again = get(demo, a);
  demo_event(demo, 0, "users: A has %" PRId64 " to %" PRId64 ", B has %" PRId64 " to %" PRId64,
             a_first, a_last, b_first, b_last);
  demo_fact(demo,
            a_last == a_first + USERS - 1 && b_last == b_first + USERS - 1 && b_first > a_last &&
                again > b_last,
            "A is started anew, and goes on with %" PRId64 ": no id is given twice", again);
  (void)belay_idgen_close(a, NULL);
  (void)belay_idgen_close(b, NULL);
}

static void number_orders(demo_t *demo) {
  belay_idgen_t *a = make(demo, DEMO_A, BELAY_IDGEN_SEQUENCE);
  belay_idgen_t *b = make(demo, DEMO_B, BELAY_IDGEN_SEQUENCE);
  bool well = true;
  for (int64_t i = 0; i < ORDERS; i++)
    well = get(demo, i % 2 == 0 ? a : b) == FIRST_ORDER + i && well;
  demo_fact(demo, well, "the orders are %d to %d, and none is missing", FIRST_ORDER,
            FIRST_ORDER + ORDERS - 1);
  (void)belay_idgen_close(a, NULL);
  (void)belay_idgen_close(b, NULL);
}

/* Keeps the last id if all are in ascending order. */
static void on_parcels(belay_request_t *request, int status, const int64_t *ids, size_t n) {
  demo_t *demo = request->data;
  demo->yes = n == PARCELS;
  for (size_t i = 1; i < n; i++)
    demo->yes = demo->yes && ids[i] > ids[i - 1];
  demo->number = n > 0 ? ids[n - 1] : 0;
  demo_done(demo, status);
}

static void number_parcels(demo_t *demo) {
  belay_idgen_t *a = make(demo, DEMO_A, BELAY_IDGEN_SNOWFLAKE);
  belay_idgen_parts_t parts = {0};
  uv_timeval64_t now = {0};
  (void)demo_await(demo, "asking for ids",
                   belay_idgen_get_many(a, &demo->request, PARCELS, on_parcels));
  (void)uv_gettimeofday(&now);
  (void)belay_idgen_decode(demo->number, BELAY_IDGEN_EPOCH_MS, &parts);
  int64_t behind = now.tv_sec * 1000 + now.tv_usec / 1000 - parts.unix_ms;
  demo_event(demo, 0, "parcels: up to %" PRId64 ", of worker %u, %" PRId64 " ms ago", demo->number,
             parts.worker, behind);
  demo_fact(demo, demo->yes && behind >= -NEAR_MS && behind <= NEAR_MS,
            "%d parcels in order, and their ids tell when they were sent", PARCELS);
  (void)belay_idgen_close(a, NULL);
}

void chapter_ids(demo_t *demo) {
  number_users(demo);
  number_orders(demo);
  number_parcels(demo);
}

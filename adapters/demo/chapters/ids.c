/* Chapter: ids for users, orders and parcels, of which none comes twice. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { STEP = 1000, USERS = 300, ORDERS = 5, FIRST_ORDER = 5000, PARCELS = 2000, AHEAD_MS = 100 };
enum { NEAR_MS = 5000 }; /* of the wall clock */

typedef struct shop {
  demo_t *demo;
  belay_request_t request;
  int status;
  int64_t id, last; /* the last of many */
  size_t many;
  bool growing;
} shop_t;

static void on_id(belay_request_t *request, int status, int64_t id) {
  shop_t *shop = request->data;
  shop->status = status;
  shop->id = id;
}

static void on_many(belay_request_t *request, int status, const int64_t *ids, size_t n) {
  shop_t *shop = request->data;
  shop->status = status;
  shop->many = n;
  shop->growing = true;
  for (size_t i = 1; i < n; i++)
    shop->growing = shop->growing && ids[i] > ids[i - 1];
  if (n > 0) {
    shop->id = ids[0];
    shop->last = ids[n - 1];
  }
}

static belay_idgen_t *make(const shop_t *shop, demo_who_t who, belay_idgen_mode_t mode) {
  belay_idgen_options_t options;
  belay_idgen_t *idgen;
  belay_idgen_options_init(&options);
  options.name = shop->demo->name;
  options.name_len = strlen(options.name);
  options.mode = mode;
  options.step = STEP;
  options.start = mode == BELAY_IDGEN_SEQUENCE ? FIRST_ORDER : 1;
  options.ahead_ms = AHEAD_MS;
  int error = belay_idgen_new(shop->demo->client[who], &options, &idgen);
  if (error != 0)
    demo_trouble(shop->demo, "making a source of ids", error);
  return idgen;
}

/* Runs the loop until the request is over. */
static void wait(shop_t *shop, int error) {
  if (error == 0)
    demo_run(shop->demo);
  else
    shop->status = error;
  if (shop->status != 0)
    demo_trouble(shop->demo, "asking for an id", shop->status);
}

static int64_t get(shop_t *shop, belay_idgen_t *idgen) {
  shop->id = 0;
  wait(shop, belay_idgen_get(idgen, &shop->request, on_id));
  return shop->id;
}

/* From memory; 0: there was none. The last of n. */
static int64_t next(belay_idgen_t *idgen, unsigned n) {
  int64_t id = 0;
  for (unsigned i = 0; i < n; i++)
    if (belay_idgen_next(idgen, &id) != 0)
      return 0;
  return id;
}

static bool number_users(shop_t *shop) {
  demo_t *demo = shop->demo;
  belay_idgen_t *a = make(shop, DEMO_A, BELAY_IDGEN_SEGMENT);
  belay_idgen_t *b = make(shop, DEMO_B, BELAY_IDGEN_SEGMENT);
  if (a == NULL || b == NULL)
    return false;
  int64_t a_first = get(shop, a), b_first = get(shop, b);
  int64_t a_last = next(a, USERS - 1), b_last = next(b, USERS - 1);
  (void)belay_idgen_close(a, NULL);
  a = make(shop, DEMO_A, BELAY_IDGEN_SEGMENT);
  if (a == NULL)
    return false;
  int64_t again = get(shop, a);
  demo_event(demo, 0, "users: A has %" PRId64 " to %" PRId64 ", B has %" PRId64 " to %" PRId64,
             a_first, a_last, b_first, b_last);
  demo_event(demo, 0, "A is started anew, and goes on with %" PRId64, again);
  (void)belay_idgen_close(a, NULL);
  (void)belay_idgen_close(b, NULL);
  return a_last == a_first + USERS - 1 && b_last == b_first + USERS - 1 && b_first > a_last &&
         again > b_last;
}

static bool number_orders(shop_t *shop) {
  belay_idgen_t *a = make(shop, DEMO_A, BELAY_IDGEN_SEQUENCE);
  belay_idgen_t *b = make(shop, DEMO_B, BELAY_IDGEN_SEQUENCE);
  bool well = a != NULL && b != NULL;
  for (int64_t i = 0; i < ORDERS && well; i++)
    well = get(shop, i % 2 == 0 ? a : b) == FIRST_ORDER + i;
  demo_event(shop->demo, 0, "orders: A and B take turns, up to %" PRId64, shop->id);
  (void)belay_idgen_close(a, NULL);
  (void)belay_idgen_close(b, NULL);
  return well;
}

static bool number_parcels(shop_t *shop) {
  belay_idgen_t *a = make(shop, DEMO_A, BELAY_IDGEN_SNOWFLAKE);
  belay_idgen_parts_t parts = {0};
  uv_timeval64_t now = {0};
  if (a == NULL)
    return false;
  wait(shop, belay_idgen_get_many(a, &shop->request, PARCELS, on_many));
  (void)uv_gettimeofday(&now);
  int64_t behind = now.tv_sec * 1000 + now.tv_usec / 1000;
  if (belay_idgen_decode(shop->last, BELAY_IDGEN_EPOCH_MS, &parts) == 0)
    behind -= parts.unix_ms;
  demo_event(shop->demo, 0, "parcels: %zu up to %" PRId64 ", of worker %u, %" PRId64 " ms ago",
             shop->many, shop->last, parts.worker, behind);
  (void)belay_idgen_close(a, NULL);
  return shop->status == 0 && shop->many == PARCELS && shop->growing && behind >= -NEAR_MS &&
         behind <= NEAR_MS;
}

void chapter_ids(demo_t *demo) {
  shop_t shop = {.demo = demo};
  shop.request.data = &shop;
  bool users = number_users(&shop), orders = number_orders(&shop), parcels = number_parcels(&shop);
  demo_run(demo);
  term_print(&demo->term, "\n");
  demo_fact(demo, users, "no user has another's id, although A had forgotten which were given");
  demo_fact(demo, orders, "the orders are %d to %d, and none is missing", FIRST_ORDER,
            FIRST_ORDER + ORDERS - 1);
  demo_fact(demo, parcels, "%d parcels in order, and their ids tell when they were sent", PARCELS);
  (void)demo_sweep(demo, "idgen::{ids}*", true); /* a source of ids stays for ever */
}

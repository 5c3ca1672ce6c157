/* belay's Bloom filter, counter and ids as subjects. */
#include "bench.h"
#include "load/subjects/belay.h"

enum { BATCH_MAX = 1000, CAPACITY = 10000000, STEP = 10000 };

typedef struct data {
  host_t host;
  belay_bloom_t *bloom;
  belay_counter_t *counter;
  belay_idgen_t *ids;
  int64_t last; /* id */
} data_t;

static data_t *open_data(driver_t *driver) {
  data_t *data = driver->own = bench_alloc(1, sizeof *data);
  host_open(&data->host, driver);
  return data;
}

static void close_data(driver_t *driver) {
  data_t *data = driver->own;
  host_close(driver, &data->host, 0);
}

static void on_added(belay_request_t *request, int status, bool is_new) {
  (void)is_new;
  must(status, "add");
  driver_done(request->data);
}

static void on_all_added(belay_request_t *request, int status, const bool *are_new, size_t n) {
  (void)are_new;
  (void)n;
  must(status, "add");
  driver_done(request->data);
}

static void on_found(belay_request_t *request, int status, bool there) {
  must(status, "exists");
  if (!there)
    bench_die("an item is not there that was added");
  driver_done(request->data);
}

static void on_all_found(belay_request_t *request, int status, const bool *there, size_t n) {
  must(status, "exists");
  for (size_t i = 0; i < n; i++)
    if (!there[i])
      bench_die("an item is not there that was added");
  driver_done(request->data);
}

typedef struct items {
  belay_bytes_t item[BATCH_MAX];
  uint64_t bytes[BATCH_MAX];
} items_t;

/* The next ones; eight bytes each. */
static void take_items(items_t *items, driver_t *driver, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    items->bytes[i] = driver->turn++ % driver->job->keys;
    items->item[i] = (belay_bytes_t){.data = &items->bytes[i], .len = sizeof items->bytes[i]};
  }
}

static void begin_add(runner_t *runner) {
  static items_t items;
  const data_t *data = runner->driver->own;
  unsigned n = runner->driver->job->batch;
  take_items(&items, runner->driver, n);
  must(n == 1 ? belay_bloom_add(data->bloom, &runner->request,
                                belay_bytes(&items.bytes[0], sizeof items.bytes[0]), on_added)
              : belay_bloom_add_many(data->bloom, &runner->request, items.item, n, on_all_added),
       "add");
}

/* Beforehand: as many at once as can be. */
static void begin_fill(runner_t *runner) {
  static items_t items;
  const data_t *data = runner->driver->own;
  take_items(&items, runner->driver, BATCH_MAX);
  must(belay_bloom_add_many(data->bloom, &runner->request, items.item, BATCH_MAX, on_all_added),
       "add");
}

static void begin_exists(runner_t *runner) {
  static items_t items;
  const data_t *data = runner->driver->own;
  unsigned n = runner->driver->job->batch;
  take_items(&items, runner->driver, n);
  must(n == 1 ? belay_bloom_exists(data->bloom, &runner->request,
                                   belay_bytes(&items.bytes[0], sizeof items.bytes[0]), on_found)
              : belay_bloom_exists_many(data->bloom, &runner->request, items.item, n, on_all_found),
       "exists");
}

static void open_bloom(driver_t *driver) {
  data_t *data = open_data(driver);
  belay_bloom_options_t options;
  if (driver->job->batch > BATCH_MAX)
    bench_die("a batch of at most %d", BATCH_MAX);
  belay_bloom_options_init(&options);
  options.name = belay_string("bench");
  options.capacity = CAPACITY;
  must(belay_bloom_new(data->host.clients[0], &options, &data->bloom), "bloom");
}

static void on_counted(belay_request_t *request, int status, const belay_counter_result_t *result) {
  must(status, "add");
  if (result->value < 1)
    bench_die("a counter went back");
  driver_done(request->data);
}

static void begin_count(runner_t *runner) {
  const data_t *data = runner->driver->own;
  char key[DRIVER_KEY_LEN];
  driver_next_key_text(runner->driver, key);
  must(belay_counter_add(data->counter, &runner->request, belay_bytes(key, sizeof key), 1,
                         on_counted),
       "add");
}

static void open_counter(driver_t *driver) {
  data_t *data = open_data(driver);
  belay_counter_options_t options;
  belay_counter_options_init(&options);
  options.name = belay_string("bench");
  must(belay_counter_new(data->host.clients[0], &options, &data->counter), "counter");
}

static void on_id(belay_request_t *request, int status, int64_t id) {
  runner_t *runner = request->data;
  data_t *data = runner->driver->own;
  must(status, "id");
  if (id <= data->last)
    bench_die("an id came twice, or late");
  data->last = id;
  driver_done(runner);
}

static void begin_id(runner_t *runner) {
  const data_t *data = runner->driver->own;
  must(belay_idgen_get(data->ids, &runner->request, on_id), "id");
}

static void open_ids(driver_t *driver) {
  data_t *data = open_data(driver);
  belay_idgen_options_t options;
  belay_idgen_options_init(&options);
  options.name = belay_string("bench");
  options.step = STEP;
  options.max_waiting = driver->job->concurrency;
  must(belay_idgen_new(data->host.clients[0], &options, &data->ids), "ids");
}

const doer_t belay_bloom_adds = {open_bloom, begin_add, close_data, NULL};
const doer_t belay_bloom_finds = {open_bloom, begin_exists, close_data, begin_fill};
const doer_t belay_counts = {open_counter, begin_count, close_data, NULL};
const doer_t belay_ids = {open_ids, begin_id, close_data, NULL};

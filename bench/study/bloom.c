/* How fast a Bloom filter of a million items takes batches, and tells what is in it.
 *
 * A batch that sets many bits travels as a bitmap, others bit by bit (include/belay/bloom.h). Both are measured on the
 * same batches: a client whose max_reply is smaller than a segment has no other way than bit by bit. */
#include <belay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "place.h"
#include "study/report.h"
#include "server.h"

enum { BATCH = 50000, ITEM = 16, IN_FLIGHT = 2, CAPACITY = 1000000, SINGLES = 64 };
#define PATIENCE_MS 60000 /* nothing is to end because the machine is busy */

static const report_target_t none = {TARGET_NONE, 0};
static const report_target_t million = {TARGET_AT_LEAST, 1e6};

typedef struct filter filter_t;

/* A request, and the items that it is about. */
typedef struct batch {
  belay_request_t request;
  filter_t *filter;
  char texts[BATCH][ITEM];
  belay_bytes_t items[BATCH];
} batch_t;

struct filter {
  uv_loop_t loop;
  belay_t *belay;
  belay_client_t *client;
  belay_bloom_t *bloom;
  bool add, cleared;
  uint64_t next;    /* the number of the next item */
  uint64_t done;    /* items that were answered */
  int64_t until;    /* when the last one is begun */
  batch_t *batches; /* IN_FLIGHT of them */
};

static void must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

/* ---- batches ------------------------------------------------------------------------------------------- */

static void on_cleared(belay_request_t *request, int status) {
  filter_t *filter = request->data;
  must(status, "clear");
  filter->cleared = true;
}

static void clear(filter_t *filter) {
  belay_request_t request = {.data = filter};
  filter->next = 0;
  filter->cleared = false;
  must(belay_bloom_clear(filter->bloom, &request, on_cleared), "clear");
  (void)uv_run(&filter->loop, UV_RUN_DEFAULT);
  if (!filter->cleared)
    bench_die("a clear was not answered");
}

static void on_answers(belay_request_t *request, int status, const bool *answers, size_t n);

static void begin(batch_t *batch) {
  filter_t *filter = batch->filter;
  filter->next %= CAPACITY;
  for (unsigned i = 0; i < BATCH; i++)
    (void)snprintf(batch->texts[i], ITEM, "user:%010llu", (unsigned long long)filter->next++);
  must((filter->add ? belay_bloom_add_many : belay_bloom_exists_many)(
           filter->bloom, &batch->request, batch->items, BATCH, on_answers),
       "a batch");
}

static void on_answers(belay_request_t *request, int status, const bool *answers, size_t n) {
  batch_t *batch = request->data;
  filter_t *filter = batch->filter;
  (void)answers;
  must(status, "a batch");
  filter->done += n;
  if (bench_now() < filter->until)
    begin(batch);
}

/* Items for each second. Their texts are made meanwhile: about a tenth of the time. */
static double rate(filter_t *filter, bool add, double seconds) {
  filter->add = add;
  filter->done = 0;
  int64_t began = bench_now();
  filter->until = began + (int64_t)(seconds * 1e9);
  for (unsigned i = 0; i < IN_FLIGHT; i++)
    begin(&filter->batches[i]);
  (void)uv_run(&filter->loop, UV_RUN_DEFAULT);
  return (double)filter->done * 1e9 / (double)(bench_now() - began);
}

/* ---- one at a time ------------------------------------------------------------------------------------- */

static belay_request_t singles[SINGLES];

static void on_answer(belay_request_t *request, int status, bool answer);

static void begin_single(belay_request_t *request) {
  filter_t *filter = request->data;
  char text[ITEM];
  int len = snprintf(text, sizeof text, "user:%010llu", (unsigned long long)filter->next++);
  must((filter->add ? belay_bloom_add : belay_bloom_exists)(filter->bloom, request, text,
                                                            (size_t)len, on_answer),
       "an item");
}

static void on_answer(belay_request_t *request, int status, bool answer) {
  filter_t *filter = request->data;
  (void)answer;
  must(status, "an item");
  filter->done++;
  if (bench_now() < filter->until)
    begin_single(request);
}

static double single_rate(filter_t *filter, bool add, double seconds) {
  filter->add = add;
  filter->done = 0;
  int64_t began = bench_now();
  filter->until = began + (int64_t)(seconds * 1e9);
  for (unsigned i = 0; i < SINGLES; i++) {
    singles[i] = (belay_request_t){.data = filter};
    begin_single(&singles[i]);
  }
  (void)uv_run(&filter->loop, UV_RUN_DEFAULT);
  return (double)filter->done * 1e9 / (double)(bench_now() - began);
}

/* ---- from begin to end --------------------------------------------------------------------------------- */

static void open_filter(filter_t *filter, size_t max_reply) {
  char url[256];
  belay_client_options_t client;
  belay_bloom_options_t options;
  *filter = (filter_t){.batches = calloc(IN_FLIGHT, sizeof(batch_t))};
  if (filter->batches == NULL || uv_loop_init(&filter->loop) != 0)
    bench_die("out of memory");
  for (unsigned i = 0; i < IN_FLIGHT; i++) {
    batch_t *batch = &filter->batches[i];
    batch->filter = filter;
    batch->request.data = batch;
    for (unsigned j = 0; j < BATCH; j++)
      batch->items[j] = (belay_bytes_t){.data = batch->texts[j], .len = ITEM - 1};
  }
  must(belay_open(&filter->loop, NULL, &filter->belay), "open");
  (void)snprintf(url, sizeof url, "unix://%s", server_path());
  belay_client_options_init(&client);
  client.timeout_ms = client.stall_timeout_ms = PATIENCE_MS;
  if (max_reply != 0)
    client.max_reply = max_reply;
  must(belay_connect(filter->belay, url, &client, &filter->client), "connect");
  belay_bloom_options_init(&options);
  options.name = "bench";
  options.name_len = 5;
  options.capacity = CAPACITY;
  must(belay_bloom_new(filter->client, &options, &filter->bloom), "filter");
}

static void close_filter(filter_t *filter) {
  must(belay_close(filter->belay, NULL), "close");
  (void)uv_run(&filter->loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&filter->loop) != 0)
    bench_die("something is left in the loop");
  free(filter->batches);
}

static void measure_batches(const bench_options_t *options, const char *part, bool add,
                            unsigned round) {
  static const size_t max_reply[] = {0, 1000000};
  static const char *const ways[] = {"as a bitmap", "bit by bit"};
  double rates[2];
  for (unsigned way = 0; way < 2; way++) {
    filter_t filter;
    open_filter(&filter, max_reply[way]);
    clear(&filter);
    (void)rate(&filter, true, 1e-9); /* the connection, the filter, its full length */
    rates[way] = rate(&filter, add, options->seconds);
    close_filter(&filter);
    report_add(part, ways[way], add ? "adds" : "exists", "/s", rates[way],
               way == 0 ? million : none);
  }
  (void)fprintf(stderr, "round %u of %u: %s, %9.0f/s as bitmaps, %9.0f/s bit by bit\n", round,
                options->rounds, part, rates[0], rates[1]);
}

static void measure_singles(const bench_options_t *options, unsigned round) {
  filter_t filter;
  open_filter(&filter, 0);
  clear(&filter);
  (void)rate(&filter, true, 1e-9);
  double adds = single_rate(&filter, true, options->seconds / 2);
  double exists = single_rate(&filter, false, options->seconds / 2);
  close_filter(&filter);
  report_add("C", "single, 64", "adds", "/s", adds, none);
  report_add("C", "single, 64", "exists", "/s", exists, none);
  (void)fprintf(stderr, "round %u of %u: C, %9.0f adds/s, %9.0f exists/s\n", round, options->rounds,
                adds, exists);
}

static void run(const bench_options_t *options) {
  bench_begin(options);
  report_fact("filter", "a million items, 1 %, 7 hashes, one segment of 1.2 MB");
  static const char *const parts[][2] = {{"A", "adds, 50,000 in a batch, two batches in flight"},
                                         {"B", "exists, the same"},
                                         {"C", "one item in a call, 64 in flight"}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (bench_wants(options, parts[i][0]))
      report_part(parts[i][0], parts[i][1]);
  for (unsigned round = 1; round <= options->rounds; round++) {
    if (bench_wants(options, "A"))
      measure_batches(options, "A", true, round);
    if (bench_wants(options, "B"))
      measure_batches(options, "B", false, round);
    if (bench_wants(options, "C"))
      measure_singles(options, round);
  }
  report_finish(bench_bloom.name, options);
}

const bench_scenario_t bench_bloom = {
    .name = "bloom",
    .about = "batches of a Bloom filter, and single items; SECONDS for each row",
    .seconds = 1,
    .run = run,
};

/* Chapter: a sweep finds many keys that were left behind, and deletes them at a limited rate. */
#include <stdio.h>

#include "demo/chapters.h"

enum { LEFT = 2000, RATE = 40000, TOKENS = 7 };

static void on_state(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  demo_on_number(request, status, status == 0 ? state->tokens : -1);
}

/* Guests leave two keys each. The keys of the member stay. */
static void leave_keys(demo_t *demo, belay_bucket_t *bucket) {
  static belay_request_t requests[LEFT + 1];
  for (unsigned i = 0; i <= LEFT; i++) {
    char key[32];
    (void)snprintf(key, sizeof key, i < LEFT ? "guest-%u" : "member", i);
    requests[i] = (belay_request_t){.data = demo};
    (void)demo_check(
        demo, "leaving a key behind",
        belay_bucket_add(bucket, &requests[i], belay_string(key), TOKENS, 0, on_state));
  }
  demo_run(demo);
}

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  demo_t *demo = belay_sweep_data(sweep);
  *(belay_sweep_totals_t *)demo->out = *totals;
  demo_done(demo, status);
  (void)belay_sweep_close(sweep, NULL);
}

static belay_sweep_totals_t sweep_keys(demo_t *demo, bool remove) {
  belay_sweep_totals_t totals = {0};
  belay_sweep_t *sweep;
  belay_sweep_options_t options;
  belay_sweep_options_init(&options);
  options.pattern = belay_string("bucket::sweep::{guest-*");
  options.remove = remove;
  options.keys_per_s = RATE;
  options.batch = RATE / 100; /* rests are short */
  options.data = demo;
  demo->out = &totals;
  int error = belay_sweep_new(demo->client[DEMO_A], &options, &sweep);
  if (error == 0)
    error = belay_sweep_start(sweep, on_swept);
  (void)demo_await(demo, "sweeping", error);
  demo_event(demo, 0, "%llu keys found, %llu deleted", (unsigned long long)totals.matched,
             (unsigned long long)totals.deleted);
  return totals;
}

void chapter_sweep(demo_t *demo) {
  belay_bucket_t *bucket;
  belay_bucket_options_t options;
  belay_bucket_options_init(&options);
  options.name = belay_string(demo->name);
  options.capacity = TOKENS;
  if (!demo_check(demo, "making a bucket",
                  belay_bucket_new(demo->client[DEMO_A], &options, &bucket)))
    return;
  leave_keys(demo, bucket);
  belay_sweep_totals_t count = sweep_keys(demo, false);
  uint64_t began = uv_hrtime();
  belay_sweep_totals_t removal = sweep_keys(demo, true);
  double took = demo_seconds(began, uv_hrtime());
  (void)demo_await(demo, "reading the member's bucket",
                   belay_bucket_read(bucket, &demo->request, belay_string("member"), on_state));
  demo_print("\n");
  demo_fact(demo, count.matched >= LEFT && count.deleted == 0,
            "the first sweep finds all keys, and leaves them there");
  demo_fact(demo, removal.deleted == UINT64_C(2) * LEFT && took >= 0.9 * 2 * LEFT / RATE,
            "%d keys were deleted in %.2f s: no faster than the limit", 2 * LEFT, took);
  demo_fact(demo, demo->number == TOKENS, "the key that does not match is still there");
  (void)belay_bucket_close(bucket, NULL);
}

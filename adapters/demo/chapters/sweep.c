/* Chapter: a sweep finds many keys that were left behind, and deletes them in the background. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { LEFT = 2000, RATE = 40000, TOKENS = 7 };

static void on_state(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  demo_on_number(request, status, status == 0 ? state->tokens : -1);
}

static belay_sweep_totals_t sweep(demo_t *demo, bool remove) {
  static const char pattern[] = "bucket::sweep::{guest-*";
  belay_sweep_totals_t totals = demo_sweep(demo, pattern, remove, RATE);
  demo_event(demo, 0, "%s: %llu keys found, %llu deleted", pattern,
             (unsigned long long)totals.matched, (unsigned long long)totals.deleted);
  return totals;
}

/* Guests leave two keys each. The keys of the member stay. */
static void leave_keys(demo_t *demo, belay_bucket_t *bucket) {
  static belay_request_t requests[LEFT + 1];
  for (unsigned i = 0; i <= LEFT; i++) {
    char key[32];
    int len = snprintf(key, sizeof key, i < LEFT ? "guest-%u" : "member", i);
    requests[i] = (belay_request_t){.data = demo};
    int error =
        belay_bucket_add(bucket, &requests[i], belay_bytes(key, (size_t)len), TOKENS, 0, on_state);
    if (error != 0)
      demo_trouble(demo, "leaving a key behind", error);
  }
  demo_run(demo);
}

void chapter_sweep(demo_t *demo) {
  belay_bucket_t *bucket;
  belay_bucket_options_t options;
  belay_bucket_options_init(&options);
  options.name = belay_string(demo->name);
  options.capacity = TOKENS;
  if (!demo_made(demo, "a bucket", belay_bucket_new(demo->client[DEMO_A], &options, &bucket)))
    return;
  leave_keys(demo, bucket);
  belay_sweep_totals_t look = sweep(demo, false);
  uint64_t began = uv_hrtime();
  belay_sweep_totals_t removal = sweep(demo, true);
  double took = demo_seconds(began, uv_hrtime());
  (void)demo_await(demo, "reading the member's bucket",
                   belay_bucket_read(bucket, &demo->request, belay_string("member"), on_state));
  demo_print("\n");
  demo_fact(demo, look.matched >= LEFT && look.deleted == 0,
            "a look finds all that was left behind, and leaves it there");
  demo_fact(demo, removal.deleted == UINT64_C(2) * LEFT && took >= 0.9 * 2 * LEFT / RATE,
            "%d keys were deleted in %.2f s: no faster than the limit", 2 * LEFT, took);
  demo_fact(demo, demo->number == TOKENS, "the one that does not match is still there");
  (void)belay_bucket_close(bucket, NULL);
}

/* Chapter: many keys that somebody left behind are looked for, and then deleted, in the background. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { LEFT = 2000, BATCH = 250, RATE = 20000, TOKENS = 7 };

typedef struct broom {
  demo_t *demo;
  belay_bucket_t *bucket;
  belay_request_t request[LEFT + 1];
  unsigned made; /* buckets */
  int status;
  unsigned pages; /* of the run that goes on */
  belay_sweep_totals_t totals;
  int64_t kept; /* tokens of the one that is not swept up */
} broom_t;

static void on_made(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  broom_t *broom = request->data;
  broom->made += status == 0 && state->applied;
}

static void on_kept(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  broom_t *broom = request->data;
  broom->kept = status == 0 ? state->tokens : -1;
}

/* Users who came once, and one who stays. */
static void leave_keys(broom_t *broom) {
  for (unsigned i = 0; i <= LEFT; i++) {
    char key[32];
    int len = snprintf(key, sizeof key, i < LEFT ? "guest-%u" : "member", i);
    belay_request_t *request = &broom->request[i];
    request->data = broom;
    int error = belay_bucket_add(broom->bucket, request, key, (size_t)len, TOKENS, 0, on_made);
    if (error != 0)
      demo_trouble(broom->demo, "leaving a key behind", error);
  }
  demo_run(broom->demo);
}

static void on_progress(belay_sweep_t *sweep, const belay_sweep_totals_t *totals) {
  broom_t *broom = belay_sweep_data(sweep);
  (void)totals;
  broom->pages++;
}

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  broom_t *broom = belay_sweep_data(sweep);
  broom->status = status;
  broom->totals = *totals;
  if (status != 0)
    demo_trouble(broom->demo, "sweeping", status);
  (void)belay_sweep_close(sweep, NULL);
}

static void sweep(broom_t *broom, const char *pattern, bool remove) {
  belay_sweep_options_t options;
  belay_sweep_t *sweep;
  belay_sweep_options_init(&options);
  options.pattern = pattern;
  options.pattern_len = strlen(pattern);
  options.remove = remove;
  options.batch = BATCH;
  options.keys_per_s = RATE;
  options.on_progress = on_progress;
  options.data = broom;
  broom->pages = 0;
  int error = belay_sweep_new(broom->demo->client[DEMO_B], &options, &sweep);
  if (error == 0)
    error = belay_sweep_start(sweep, on_swept);
  if (error != 0)
    demo_trouble(broom->demo, "beginning to sweep", error);
  demo_run(broom->demo);
  demo_event(broom->demo, 0, "%s: %u pages, %llu keys found, %llu deleted", pattern, broom->pages,
             (unsigned long long)broom->totals.matched, (unsigned long long)broom->totals.deleted);
}

static void play(broom_t *broom) {
  demo_t *demo = broom->demo;
  leave_keys(broom);
  sweep(broom, "bucket::sweep::{guest-*", false);
  bool found = broom->status == 0 && broom->made == LEFT + 1 && broom->totals.matched >= LEFT &&
               broom->totals.deleted == 0;
  /* two keys each, and a rest after each page: so long at least */
  double least = (double)(2 * LEFT) / RATE;
  uint64_t began = uv_hrtime();
  sweep(broom, "bucket::sweep::{guest-*", true);
  double took = demo_seconds(began, uv_hrtime());
  bool deleted = broom->status == 0 && broom->totals.deleted == UINT64_C(2) * LEFT;
  (void)belay_bucket_read(broom->bucket, broom->request, "member", 6, on_kept);
  demo_run(demo);
  sweep(broom, "bucket::sweep::*", true);
  term_print(&demo->term, "\n");
  demo_fact(demo, found, "a look finds all that was left behind, and leaves it there");
  demo_fact(demo, deleted && took >= least * 0.9,
            "%d keys were deleted in %.2f s: no faster than it was told to", 2 * LEFT, took);
  demo_fact(demo, broom->kept == TOKENS, "the one that does not match is still there");
}

void chapter_sweep(demo_t *demo) {
  static broom_t broom;
  belay_bucket_options_t options;
  belay_bucket_options_init(&options);
  options.name = demo->name;
  options.name_len = strlen(demo->name);
  options.capacity = TOKENS;
  broom = (broom_t){.demo = demo, .kept = -1};
  int error = belay_bucket_new(demo->client[DEMO_A], &options, &broom.bucket);
  if (error != 0) {
    demo_trouble(demo, "making a bucket", error);
    return;
  }
  play(&broom);
  (void)belay_bucket_close(broom.bucket, NULL);
  demo_run(demo);
}

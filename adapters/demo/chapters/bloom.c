/* Chapter: fifty thousand addresses in as many bytes, and bits that are deleted. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { ADDRESSES = 50000 };
#define ERROR_RATE 0.01

static void on_answers(belay_request_t *request, int status, const bool *answers, size_t n) {
  demo_t *demo = request->data;
  demo->number = 0;
  for (size_t i = 0; i < n; i++)
    demo->number += answers[i];
  demo_done(demo, status);
}

/* Add addresses, or ask for them. Returns how many answers were true. */
static int64_t ask(demo_t *demo, belay_bloom_t *bloom, bool add, unsigned from) {
  static char texts[ADDRESSES][24];
  static belay_bytes_t items[ADDRESSES];
  for (unsigned i = 0; i < ADDRESSES; i++) {
    int len = snprintf(texts[i], sizeof *texts, "u%u@example.com", from + i);
    items[i] = (belay_bytes_t){.data = texts[i], .len = (size_t)len};
  }
  (void)demo_await(demo, "asking a filter",
                   (add ? belay_bloom_add_many : belay_bloom_exists_many)(
                       bloom, &demo->request, items, ADDRESSES, on_answers));
  return demo->number;
}

void chapter_bloom(demo_t *demo) {
  belay_bloom_t *bloom;
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.name = belay_string(demo->name);
  options.capacity = ADDRESSES;
  options.error_rate = ERROR_RATE;
  if (!demo_made(demo, "a filter", belay_bloom_new(demo->client[DEMO_A], &options, &bloom)))
    return;
  uint64_t began = uv_hrtime();
  int64_t new = ask(demo, bloom, true, 0);
  demo_event(demo, 0, "%d addresses are added in %.3f s", ADDRESSES,
             demo_seconds(began, uv_hrtime()));
  int64_t found = ask(demo, bloom, false, 0), wrong = ask(demo, bloom, false, ADDRESSES);
  demo_event(demo, 0, "of these %lld are found, of as many others %lld", (long long)found,
             (long long)wrong);
  uint64_t deleted = demo_sweep(demo, "bloom::{bloom::0}", true, 0).deleted;
  int error = demo_status(
      demo, belay_bloom_exists(bloom, &demo->request, belay_string("u0@example.com"), demo_on_yes));
  demo_event(demo, 0, "the bits are deleted; the next question ends with %s",
             belay_err_name(error));
  demo_print("\n");
  demo_fact(demo, found == ADDRESSES && (double)new > ADDRESSES *(1 - ERROR_RATE),
            "every address that was added is found");
  demo_fact(demo, wrong > 0 && (double)wrong < 1.25 * ERROR_RATE * ADDRESSES,
            "of the others %.2f %%: one in a hundred was allowed",
            100.0 * (double)wrong / ADDRESSES);
  demo_fact(demo, deleted == 1 && error == BELAY_ELOST,
            "bits that are gone are noticed, and not read as an empty filter");
  (void)belay_bloom_close(bloom, NULL);
}

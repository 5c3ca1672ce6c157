/* Chapter: fifty thousand addresses in as many bytes, and bits that are deleted. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { ADDRESSES = 50000 };
#define ERROR_RATE 0.01

typedef struct post {
  demo_t *demo;
  belay_bloom_t *bloom;
  belay_request_t request;
  char texts[ADDRESSES][24];
  belay_bytes_t items[ADDRESSES];
  int status;
  unsigned found; /* answers that are true */
  belay_bloom_info_t info;
} post_t;

static void on_answers(belay_request_t *request, int status, const bool *answers, size_t n) {
  post_t *post = request->data;
  post->status = status;
  post->found = 0;
  for (size_t i = 0; i < n; i++)
    post->found += answers[i];
}

static void on_info(belay_request_t *request, int status, const belay_bloom_info_t *info) {
  post_t *post = request->data;
  post->status = status;
  if (status == 0)
    post->info = *info;
}

static void on_answer(belay_request_t *request, int status, bool answer) {
  post_t *post = request->data;
  post->status = status;
  post->found = answer;
}

static void on_cleared(belay_request_t *request, int status) {
  post_t *post = request->data;
  post->status = status;
}

/* How an operation has ended that was begun so. */
static int end_of(post_t *post, int begun) {
  demo_run(post->demo);
  return begun != 0 ? begun : post->status;
}

/* The addresses of so many people, from one number on: adds them, or asks after them. */
static int ask(post_t *post, bool add, unsigned from) {
  for (unsigned i = 0; i < ADDRESSES; i++) {
    int len = snprintf(post->texts[i], sizeof *post->texts, "u%u@example.com", from + i);
    post->items[i] = (belay_bytes_t){.data = post->texts[i], .len = (size_t)len};
  }
  post->request = (belay_request_t){.data = post};
  return end_of(post, (add ? belay_bloom_add_many : belay_bloom_exists_many)(
                          post->bloom, &post->request, post->items, ADDRESSES, on_answers));
}

static void play(post_t *post) {
  demo_t *demo = post->demo;
  uint64_t began = uv_hrtime();
  int error = ask(post, true, 0);
  unsigned new = post->found;
  double seconds = demo_seconds(began, uv_hrtime());
  if (error == 0)
    error = end_of(post, belay_bloom_info(post->bloom, &post->request, on_info));
  demo_event(demo, 0, "%d addresses are added in %.3f s, and take %.0f kB", ADDRESSES, seconds,
             (double)post->info.bits / 8e3);
  if (error == 0)
    error = ask(post, false, 0);
  unsigned found = post->found;
  if (error == 0)
    error = ask(post, false, ADDRESSES);
  unsigned wrong = post->found;
  demo_event(demo, 0, "of these %u are found, of as many others %u", found, wrong);
  if (error != 0)
    demo_trouble(demo, "a filter", error);
  char pattern[64];
  (void)snprintf(pattern, sizeof pattern, "bloom::{%s::0}", demo->name);
  bool lost = demo_sweep(demo, pattern, true).deleted == 1;
  error = end_of(post, belay_bloom_exists(post->bloom, &post->request, post->items[0].data,
                                          post->items[0].len, on_answer));
  demo_event(demo, 0, "the bits are deleted; the next question ends with %s",
             belay_err_name(error));
  term_print(&demo->term, "\n");
  demo_fact(demo, found == ADDRESSES && new > ADDRESSES *(1 - ERROR_RATE),
            "every address that was added is found");
  demo_fact(demo, wrong > 0 && wrong < 1.25 * ERROR_RATE * ADDRESSES,
            "of the others %.2f %%: one in a hundred was allowed", 100.0 * wrong / ADDRESSES);
  demo_fact(demo, lost && error == BELAY_ELOST,
            "bits that are gone are missed, and not taken for those of an empty filter");
  error = end_of(post, belay_bloom_clear(post->bloom, &post->request, on_cleared));
  if (error != 0)
    demo_trouble(demo, "clearing", error);
}

void chapter_bloom(demo_t *demo) {
  static post_t post;
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.name = demo->name;
  options.name_len = strlen(demo->name);
  options.capacity = ADDRESSES;
  options.error_rate = ERROR_RATE;
  post = (post_t){.demo = demo};
  int error = belay_bloom_new(demo->client[DEMO_A], &options, &post.bloom);
  if (error != 0) {
    demo_trouble(demo, "making a filter", error);
    return;
  }
  play(&post);
  (void)belay_bloom_close(post.bloom, NULL);
  demo_run(demo);
}

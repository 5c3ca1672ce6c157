/* Chapter: fifty thousand addresses in as many bytes, and somebody who deletes them. */
#include <stdio.h>
#include <string.h>

#include "demo/demo.h"

enum { ADDRESSES = 50000, SMALL = 500, MORE = 4000, WINDOW_MS = 60000 };
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
  (void)uv_run(&post->demo->loop, UV_RUN_DEFAULT);
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

static void on_line(child_t *child, const char *line) {
  int64_t *deleted = child->data;
  news_t news;
  if (news_parse(line, &news) && strcmp(news.word, NEWS_REPLY) == 0)
    *deleted = news.number;
}

static void on_end(child_t *child) {
  (void)child;
}

/* Somebody deletes the bits, as a server that is out of memory may. */
static bool lose_the_bits(post_t *post) {
  demo_t *demo = post->demo;
  char key[DEMO_KEY_MAX];
  int64_t deleted = 0;
  (void)snprintf(key, sizeof key, WORKER_NAMESPACE "::%s::bloom::{%s::0}", demo->run,
                 demo->lock_name);
  const char *args[] = {"demo-raw", "DEL", key, NULL};
  child_t vandal = {.on_line = on_line, .on_end = on_end, .data = &deleted};
  child_start(&demo->family, &vandal, args);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
  return child_ended_well(&vandal) && deleted == 1;
}

/* ---- the other kinds ----------------------------------------------------------------------------------- */

/* Another filter takes the place of the chapter's until it is closed. */
static bool open_kind(post_t *post, belay_bloom_kind_t kind, const char *name) {
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.name = name;
  options.name_len = strlen(name);
  options.kind = kind;
  options.capacity = SMALL;
  options.error_rate = ERROR_RATE;
  options.window_ms = kind == BELAY_BLOOM_ROTATING ? WINDOW_MS : 0;
  post->request = (belay_request_t){.data = post};
  post->info = (belay_bloom_info_t){0};
  int error = belay_bloom_new(post->demo->client[DEMO_A], &options, &post->bloom);
  if (error != 0)
    demo_trouble(post->demo, "making a filter", error);
  else
    demo_used(post->demo, WORKER_NAMESPACE "::%s::bloom::{%s}", post->demo->run, name);
  return error == 0;
}

static void close_kind(post_t *post) {
  int error = end_of(post, belay_bloom_clear(post->bloom, &post->request, on_cleared));
  if (error != 0)
    demo_trouble(post->demo, "clearing", error);
  (void)belay_bloom_close(post->bloom, NULL);
  (void)uv_run(&post->demo->loop, UV_RUN_DEFAULT);
}

/* Of the addresses that ask() has made last, the first so many. */
static int ask_some(post_t *post, bool add, unsigned from) {
  return end_of(post, (add ? belay_bloom_add_many : belay_bloom_exists_many)(
                          post->bloom, &post->request, post->items + from, MORE, on_answers));
}

static void play_scaling(post_t *post) {
  if (!open_kind(post, BELAY_BLOOM_SCALING, "bloom-grows"))
    return;
  int error = ask_some(post, true, 0);
  if (error == 0)
    error = ask_some(post, false, 0);
  unsigned found = post->found;
  if (error == 0)
    error = ask_some(post, false, MORE);
  unsigned wrong = post->found;
  if (error == 0)
    error = end_of(post, belay_bloom_info(post->bloom, &post->request, on_info));
  demo_fact(post->demo,
            error == 0 && found == MORE && post->info.layers > 1 && wrong < 1.5 * ERROR_RATE * MORE,
            "made for %d, given %d, one has grown to %u layers: wrong about %.2f %%", SMALL, MORE,
            post->info.layers, 100.0 * wrong / MORE);
  close_kind(post);
}

static void play_rotating(post_t *post) {
  if (!open_kind(post, BELAY_BLOOM_ROTATING, "bloom-forgets"))
    return;
  const belay_bytes_t *who = &post->items[0];
  int error =
      end_of(post, belay_bloom_add(post->bloom, &post->request, who->data, who->len, on_answer));
  bool new = post->found == 1;
  if (error == 0)
    error =
        end_of(post, belay_bloom_add(post->bloom, &post->request, who->data, who->len, on_answer));
  bool again = post->found == 0;
  if (error == 0)
    error = end_of(post, belay_bloom_info(post->bloom, &post->request, on_info));
  int64_t left = post->info.ttl_ms, most = INT64_C(3) * WINDOW_MS;
  bool well = error == 0 && new;
  demo_fact(post->demo, well && again && left > WINDOW_MS && left <= most,
            "one that remembers for a minute knows who came twice, and is gone in %.0f s",
            (double)left / 1e3);
  close_kind(post);
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
  bool lost = lose_the_bits(post);
  error = end_of(post, belay_bloom_exists(post->bloom, &post->request, post->items[0].data,
                                          post->items[0].len, on_answer));
  demo_event(demo, 0, "somebody deletes the bits; who asks now is told %s", belay_err_name(error));
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

void play_bloom(demo_t *demo) {
  demo_text(demo,
            "  Who has had this letter? A filter knows it by ten bits for each address. It is\n"
            "  sometimes wrong about who has not, and never about who has.");
  static post_t post;
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.name = demo->lock_name;
  options.name_len = strlen(demo->lock_name);
  options.capacity = ADDRESSES;
  options.error_rate = ERROR_RATE;
  post = (post_t){.demo = demo};
  int error = belay_bloom_new(demo->client[DEMO_A], &options, &post.bloom);
  if (error != 0) {
    demo_trouble(demo, "making a filter", error);
    return;
  }
  demo_used(demo, WORKER_NAMESPACE "::%s::bloom::{%s}", demo->run, demo->lock_name);
  demo_used(demo, WORKER_NAMESPACE "::%s::bloom::{%s::0}", demo->run, demo->lock_name);
  play(&post);
  (void)belay_bloom_close(post.bloom, NULL);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
  play_scaling(&post);
  play_rotating(&post);
}

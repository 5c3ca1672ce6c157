/* Chapter: some of several processes fill a bucket, and one of these is killed. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"
#include "demo/child.h"

enum { PLACES = 2, LEASE_MS = 1000, PERIOD_MS = 200, TOKENS = 5, CAPACITY = 10000 };
enum { PROCESSES = 4, FILLINGS = 3, GRACE_MS = 1000, PATIENCE_MS = 10000, LOOK_MS = 40 };
static const char key[] = "tank";

#define NEWS_ELECTED "elected" /* the process has a place */
#define NEWS_DEPOSED "deposed" /* it has none any more */

static belay_bucket_t *make_bucket(demo_t *demo) {
  belay_bucket_t *bucket = NULL;
  belay_bucket_options_t options;
  belay_bucket_options_init(&options);
  options.name = belay_string(demo->name);
  options.capacity = CAPACITY;
  (void)demo_made(demo, "a bucket", belay_bucket_new(demo->client[DEMO_A], &options, &bucket));
  return bucket;
}

/* ---- a process ---- */

static void on_change(belay_refiller_t *refiller, belay_refiller_state_t state) {
  (void)refiller;
  demo_tell(state == BELAY_REFILLER_WAITING ? NEWS_DEPOSED : NEWS_ELECTED, 0);
}

static void on_term(uv_signal_t *watcher, int signum) {
  (void)signum;
  demo_done(watcher->data, 0);
}

void refiller_run(demo_t *demo, char **args) {
  belay_refiller_t *refiller;
  belay_refiller_options_t options;
  uv_signal_t end;
  (void)args;
  belay_bucket_t *bucket = make_bucket(demo);
  belay_refiller_options_init(&options);
  options.name = belay_string(demo->name);
  options.refillers = PLACES;
  options.lease_ms = LEASE_MS;
  options.period_ms = PERIOD_MS;
  options.tokens = TOKENS;
  options.on_change = on_change;
  int error = belay_refiller_new(bucket, &options, &refiller);
  if (error == 0)
    error = belay_refiller_add(refiller, belay_string(key), 0);
  (void)uv_signal_init(&demo->loop, &end); /* never fails after that of the loop */
  end.data = demo;
  if (error == 0 && uv_signal_start(&end, on_term, SIGTERM) != 0)
    error = BELAY_ESYSTEM;
  (void)demo_await(demo, "filling the bucket", error); /* until SIGTERM */
  uv_close((uv_handle_t *)&end, NULL);
  (void)belay_bucket_close(bucket, NULL);
  demo_run(demo);
}

/* ---- the chapter ---- */

typedef struct tank {
  demo_t *demo;
  belay_bucket_t *bucket;
  struct view {
    child_t child;
    struct tank *tank;
    bool has_place;
    uint64_t elected; /* when it was elected */
  } view[PROCESSES];
  int64_t tokens, index;
  uint64_t filled; /* when the chapter saw the last filling */
  bool uneven;     /* tokens and index did not agree */
} tank_t;

static void on_news(child_t *child, const news_t *news) {
  struct view *view = child->data;
  view->has_place = strcmp(news->word, NEWS_ELECTED) == 0;
  if (view->has_place)
    view->elected = news->at;
  demo_event(view->tank->demo, news->at, "process %d %s", (int)(view - view->tank->view) + 1,
             view->has_place ? "is elected" : "has lost its place");
}

static void on_read(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  demo_t *demo = request->data;
  *(belay_bucket_state_t *)demo->out = *state;
  demo_done(demo, status);
}

static bool look(tank_t *tank) {
  belay_bucket_state_t state = {0};
  demo_t *demo = tank->demo;
  demo->out = &state;
  if (!demo_await(demo, "looking at the bucket",
                  belay_bucket_read(tank->bucket, &demo->request, belay_string(key), on_read)))
    return false;
  tank->uneven = tank->uneven || state.tokens != state.index * TOKENS;
  if (state.index == tank->index)
    return true;
  tank->filled = uv_hrtime();
  tank->index = state.index;
  tank->tokens = state.tokens;
  demo_event(demo, tank->filled, "filled: %" PRId64 " tokens", tank->tokens);
  return true;
}

/* Wait until all places are taken and the bucket was filled some more times. */
static bool wait_for_fillings(tank_t *tank) {
  int64_t wanted = tank->index + FILLINGS;
  uint64_t give_up = uv_hrtime() + PATIENCE_MS * DEMO_MS;
  while (uv_hrtime() < give_up && look(tank)) {
    unsigned elected = 0;
    for (unsigned i = 0; i < PROCESSES; i++)
      elected += tank->view[i].has_place;
    if (elected == PLACES && tank->index >= wanted)
      return true;
    demo_sleep(tank->demo, LOOK_MS);
  }
  demo_trouble(tank->demo, "the bucket is not filled as it should be", 0);
  return false;
}

static void play(tank_t *tank, uint64_t began) {
  demo_t *demo = tank->demo;
  struct view *victim = NULL, *heir = NULL;
  if (!wait_for_fillings(tank))
    return;
  for (unsigned i = 0; i < PROCESSES; i++)
    if (tank->view[i].has_place)
      victim = &tank->view[i];
  child_kill(&victim->child, SIGKILL);
  DEMO_WAIT(demo, PATIENCE_MS, victim->child.over);
  uint64_t killed = uv_hrtime();
  victim->has_place = false;
  demo_event(demo, killed, "process %d is killed with kill -9", (int)(victim - tank->view) + 1);
  if (!wait_for_fillings(tank))
    return;
  for (unsigned i = 0; i < PROCESSES; i++)
    if (tank->view[i].elected > killed)
      heir = &tank->view[i];
  double seconds = demo_seconds(began, tank->filled);
  demo_print("\n");
  demo_fact(demo, heir != NULL && heir->elected - killed <= (LEASE_MS + GRACE_MS) * DEMO_MS,
            "another process was elected %.1f s after that; a place is a lease of 1 s",
            heir != NULL ? demo_seconds(killed, heir->elected) : 0);
  demo_fact(demo, !tank->uneven && (double)(tank->index - 1) * PERIOD_MS <= seconds * 1e3,
            "%" PRId64 " fillings of %d tokens in %.1f s: never twice in 0.2 s", tank->index,
            TOKENS, seconds);
}

void chapter_refillers(demo_t *demo) {
  static tank_t tank;
  tank = (tank_t){.demo = demo, .bucket = make_bucket(demo)};
  uint64_t began = uv_hrtime();
  for (unsigned i = 0; i < PROCESSES; i++) {
    struct view *view = &tank.view[i];
    char owner[32];
    view->tank = &tank;
    view->child = (child_t){.on_news = on_news, .data = view};
    (void)snprintf(owner, sizeof owner, "refiller-%u", i + 1);
    child_start(demo, &view->child, "refiller", (const char *[]){owner, NULL});
  }
  play(&tank, began);
  for (unsigned i = 0; i < PROCESSES; i++)
    child_kill(&tank.view[i].child, SIGTERM);
  demo_run(demo);
  (void)belay_bucket_close(tank.bucket, NULL);
}

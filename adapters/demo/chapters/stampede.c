/* Chapter: a thousand requests for one page, in four processes, through each stage of a cache.
 *
 * In each stage the processes meet at a barrier before they ask, and when all have asked. No load
 * ends between these two meetings, unless the stage spreads its requests. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo/chapters.h"
#include "demo/child.h"

enum { PROCESSES = 4, EACH = 250, REQUESTS = PROCESSES * EACH };
enum { LOAD_MS = 200, SPREAD_MS = 300, EXPIRES_MS = 100, PINNED_MS = 280, WAIT_MS = 30000 };
enum { ALLOWED = 10, EXISTING = 100 }; /* loads by the limiter; pages in the filter */

typedef enum stage { BY_HAND, PLAIN, LOCK, STALE, PINNED, ABSENT, LIMITER, FILTER, STAGES } stage_t;

static const struct {
  const char *name;
  int64_t put_ms;    /* the page is stored, and fresh for this time; 0: it is not stored */
  int64_t absent_ms; /* as in the options */
  bool by_hand;      /* the cache has no loader: each request without an answer loads */
  bool lock, pinned, limiter, filter;
  bool absent; /* the page does not exist */
  bool spread; /* the requests come over SPREAD_MS */
  bool apart;  /* each request asks for another page */
} stages[STAGES] = {
    [BY_HAND] = {"by hand", .by_hand = true},
    [PLAIN] = {"plain"},
    [LOCK] = {"with a lock", .lock = true},
    [STALE] = {"served stale", .lock = true, .put_ms = EXPIRES_MS, .spread = true},
    [PINNED] = {"ahead of time", .lock = true, .put_ms = PINNED_MS, .spread = true, .pinned = true},
    [ABSENT] = {"absence kept", .lock = true, .absent = true, .absent_ms = 60000, .spread = true},
    [LIMITER] = {"with a limit", .lock = true, .absent = true, .apart = true, .limiter = true},
    [FILTER] = {"with a filter", .lock = true, .absent = true, .apart = true, .filter = true},
};

/* What is counted. All but the first and the last are requests, by how they were served. */
typedef enum count {
  LOADS,     /* calls of the loader */
  HERE,      /* served by a load of the same process */
  ELSEWHERE, /* served by a load of another process */
  FRESH,     /* served at once */
  OLD,       /* served at once, stale */
  REFUSED,   /* not loaded, because of the limiter or the filter */
  LONGEST_US,
  COUNTS
} count_t;

static const char *const words[COUNTS] = {"loads", "here",    "else", "fresh",
                                          "stale", "refused", "long"};
#define NEWS_STAGE "stage" /* the end of a stage, with its number */

static belay_bloom_t *make_filter(demo_t *demo) {
  belay_bloom_t *filter = NULL;
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.name = belay_string(demo->name);
  options.capacity = EXISTING;
  options.error_rate = 1e-6;
  (void)demo_made(demo, "a filter", belay_bloom_new(demo->client[DEMO_A], &options, &filter));
  return filter;
}

/* ---- a process ---- */

typedef struct visitors {
  demo_t *demo;
  unsigned number; /* of the process */
  belay_barrier_t *barrier;
  belay_limiter_t *limiter;
  belay_bloom_t *filter;
  belay_cache_t *cache; /* of this stage */
  stage_t stage;
  uint64_t began; /* the first request */
  struct visitor {
    belay_request_t request;
    struct visitors *all;
    uint64_t asked;
  } visitor[EACH];
  struct job {
    belay_cache_load_t *load; /* NULL: by hand */
    struct visitor *visitor;
    uint64_t due;
  } job[EACH];
  unsigned asked, served, jobs, ended;
  int64_t counts[COUNTS];
} visitors_t;

static const char page[] = "a page";

/* A load takes LOAD_MS, as a database would. */
static void begin_job(visitors_t *all, belay_cache_load_t *load, struct visitor *visitor) {
  if (all->jobs < EACH)
    all->job[all->jobs++] = (struct job){load, visitor, uv_hrtime() + LOAD_MS * DEMO_MS};
  else
    demo_trouble(all->demo, "too many loads", 0);
}

static void on_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  (void)key, (void)key_len;
  begin_job(arg, load, NULL);
}

static void count(struct visitor *visitor, count_t what) {
  visitors_t *all = visitor->all;
  int64_t us = (int64_t)((uv_hrtime() - visitor->asked) / 1000);
  all->served++;
  all->counts[what]++;
  if (us > all->counts[LONGEST_US])
    all->counts[LONGEST_US] = us;
}

static void end_due_jobs(visitors_t *all) {
  for (uint64_t now = uv_hrtime(); all->ended < all->jobs && all->job[all->ended].due <= now;) {
    const struct job *job = &all->job[all->ended++];
    if (job->load == NULL) {
      all->counts[LOADS]++;
      count(job->visitor, HERE);
    } else if (stages[all->stage].absent) {
      (void)belay_cache_load_absent(job->load);
    } else {
      (void)belay_cache_load_done(job->load, belay_bytes(page, sizeof page - 1));
    }
  }
}

static void on_page(belay_request_t *request, int status, const belay_cache_result_t *result) {
  struct visitor *visitor = request->data;
  visitors_t *all = visitor->all;
  bool refused = status == BELAY_ELIMITED ||
                 (status == BELAY_EABSENT && result->from == BELAY_CACHE_FROM_NOWHERE);
  if (refused && stages[all->stage].by_hand)
    begin_job(all, NULL, visitor);
  else if (refused)
    count(visitor, REFUSED);
  else if (status != (stages[all->stage].absent ? BELAY_EABSENT : 0))
    demo_trouble(all->demo, "asking for a page", status);
  else if (result->from == BELAY_CACHE_FROM_LOAD)
    count(visitor, HERE);
  else
    count(visitor, result->stale ? OLD : ELSEWHERE); /* or FRESH: see tell_counts() */
}

static size_t key_of(const visitors_t *all, unsigned i, char key[32]) {
  unsigned number = stages[all->stage].apart ? 1 + all->number * EACH + i : 0;
  return (size_t)snprintf(key, 32, "page/%d/%u", (int)all->stage, number);
}

static void ask_some(visitors_t *all) {
  uint64_t ms = (uv_hrtime() - all->began) / DEMO_MS;
  bool spread = stages[all->stage].spread && ms < SPREAD_MS;
  unsigned until = spread ? (unsigned)(ms * EACH / SPREAD_MS) : EACH;
  for (; all->asked < until; all->asked++) {
    struct visitor *visitor = &all->visitor[all->asked];
    char key[32];
    size_t len = key_of(all, all->asked, key);
    *visitor = (struct visitor){{.data = visitor, .timeout_ms = WAIT_MS}, all, uv_hrtime()};
    int error = belay_cache_get(all->cache, &visitor->request, belay_bytes(key, len), on_page);
    if (error != 0)
      demo_trouble(all->demo, "asking for a page", error);
  }
}

/* Ask, and end loads if the stage spreads its requests. Returns true if each request was served, or
 * looked up. */
static bool all_asked(visitors_t *all) {
  belay_cache_stats_t stats;
  ask_some(all);
  if (stages[all->stage].spread)
    end_due_jobs(all);
  belay_cache_stats(all->cache, &stats);
  return stats.hits + stats.stale_served + stats.misses >= EACH;
}

static bool all_served(visitors_t *all) {
  belay_cache_stats_t stats;
  end_due_jobs(all);
  belay_cache_stats(all->cache, &stats);
  return all->served == EACH && stats.loading == 0;
}

static void tell_counts(visitors_t *all) {
  belay_cache_stats_t stats;
  belay_cache_stats(all->cache, &stats);
  all->counts[LOADS] += (int64_t)stats.loads;
  all->counts[FRESH] = (int64_t)stats.hits;
  all->counts[ELSEWHERE] -= (int64_t)stats.hits;
  for (unsigned i = 0; i < COUNTS; i++)
    demo_tell(words[i], all->counts[i]);
  demo_tell(NEWS_STAGE, all->stage);
}

static void on_together(belay_barrier_t *barrier, int status, uint64_t generation) {
  (void)generation;
  demo_done(belay_barrier_data(barrier), status);
}

static bool meet(visitors_t *all) {
  return demo_await(all->demo, "meeting the others",
                    belay_barrier_wait(all->barrier, WAIT_MS, on_together));
}

static void on_put(belay_request_t *request, int status, bool applied) {
  demo_on_yes(request, status, applied);
}

/* Make the cache. The first process stores the page, if the stage needs it. */
static bool prepare(visitors_t *all) {
  demo_t *demo = all->demo;
  belay_cache_options_t options;
  char key[32];
  size_t len = key_of(all, 0, key);
  all->asked = all->served = all->jobs = all->ended = 0;
  memset(all->counts, 0, sizeof all->counts);
  belay_cache_options_init(&options);
  options.name = belay_string(demo->name);
  options.load = stages[all->stage].by_hand ? NULL : on_load;
  options.arg = all;
  options.ttl_ms = 60000;
  options.jitter_percent = 0;
  options.stale_ms = 60000;
  options.absent_ms = stages[all->stage].absent_ms;
  options.refresh_ms = 10000;
  options.lock = stages[all->stage].lock;
  options.limiter = stages[all->stage].limiter ? all->limiter : NULL;
  options.filter = stages[all->stage].filter ? all->filter : NULL;
  options.quiet = true;
  int error = belay_cache_new(demo->client[DEMO_A], &options, &all->cache);
  if (error == 0 && stages[all->stage].put_ms > 0 && all->number == 0)
    error = demo_status(demo, belay_cache_put(all->cache, &demo->request, belay_bytes(key, len),
                                              belay_bytes(page, sizeof page - 1),
                                              stages[all->stage].put_ms, on_put));
  if (error != 0)
    demo_trouble(demo, "preparing a stage", error);
  return error == 0;
}

/* Returns false after an error, which the parent prints. */
static bool play_stage(visitors_t *all) {
  char key[32];
  size_t len = key_of(all, 0, key);
  if (!prepare(all) || !meet(all))
    return false;
  all->began = uv_hrtime();
  if (stages[all->stage].pinned)
    (void)belay_cache_keep_fresh(all->cache, belay_bytes(key, len));
  DEMO_WAIT(all->demo, WAIT_MS, all_asked(all));
  if (!meet(all))
    return false;
  DEMO_WAIT(all->demo, WAIT_MS, all_served(all));
  tell_counts(all);
  (void)belay_cache_close(all->cache, NULL);
  return true;
}

void visitors_run(demo_t *demo, char **args) {
  static visitors_t all;
  static const belay_limit_t limit = {
      .kind = BELAY_LIMIT_BUCKET, .period_us = 60000000, .burst = ALLOWED}; /* never refilled */
  belay_latch_options_t options;
  belay_latch_options_init(&options);
  options.count = PROCESSES;
  options.ttl_ms = 60000;
  all.demo = demo;
  all.number = (unsigned)strtoul(args[1], NULL, 10);
  all.limiter = demo_limiter(demo, &limit, 1);
  all.filter = make_filter(demo);
  if (!demo_made(demo, "a barrier",
                 belay_barrier_new(demo->client[DEMO_A], belay_string(demo->name), &options,
                                   &all.barrier)))
    return;
  belay_barrier_set_data(all.barrier, demo);
  while (all.stage < STAGES && play_stage(&all))
    all.stage++;
}

/* ---- the chapter ---- */

typedef struct crowd {
  demo_t *demo;
  struct view {
    child_t child;
    struct crowd *crowd;
    int64_t counts[COUNTS]; /* of the present stage */
  } view[PROCESSES];
  int64_t counts[STAGES][COUNTS]; /* of all processes */
  unsigned told[STAGES];          /* processes */
} crowd_t;

static void print_head(demo_t *demo) {
  const char *dim = demo_style(demo, DEMO_DIM), *normal = demo_style(demo, DEMO_NORMAL);
  demo_print("  %s%-14s %6s  %17s  %15s %9s %10s%s\n", dim, "", "", "served by a load",
             "served at once", "not", "longest", normal);
  demo_print("  %s%-14s %6s  %7s %9s  %7s %7s %9s %10s%s\n", dim, "", "loads", "here", "elsewhere",
             "fresh", "stale", "loaded", "wait", normal);
}

static void print_row(crowd_t *crowd, unsigned stage) {
  const int64_t *counts = crowd->counts[stage];
  demo_print("  %-14s %6" PRId64 "  %7" PRId64 " %9" PRId64 "  %7" PRId64 " %7" PRId64 " %9" PRId64
             "%8.0f ms\n",
             stages[stage].name, counts[LOADS], counts[HERE], counts[ELSEWHERE], counts[FRESH],
             counts[OLD], counts[REFUSED], (double)counts[LONGEST_US] / 1e3);
}

static void on_news(child_t *child, const news_t *news) {
  struct view *view = child->data;
  crowd_t *crowd = view->crowd;
  for (unsigned i = 0; i < COUNTS; i++)
    if (strcmp(news->word, words[i]) == 0)
      view->counts[i] = news->number;
  if (strcmp(news->word, NEWS_STAGE) != 0 || news->number < 0 || news->number >= STAGES)
    return;
  int64_t *sums = crowd->counts[news->number];
  for (unsigned i = 0; i < LONGEST_US; i++)
    sums[i] += view->counts[i];
  if (view->counts[LONGEST_US] > sums[LONGEST_US])
    sums[LONGEST_US] = view->counts[LONGEST_US];
  if (++crowd->told[news->number] == PROCESSES)
    print_row(crowd, (unsigned)news->number);
}

/* True if there were this many loads, and each request was served. */
static bool is_so(const crowd_t *crowd, stage_t stage, int64_t loads) {
  const int64_t *counts = crowd->counts[stage];
  int64_t served = 0;
  for (unsigned i = HERE; i <= REFUSED; i++)
    served += counts[i];
  return counts[LOADS] == loads && served == REQUESTS;
}

/* True if no request waited for a load. */
static bool is_at_once(const crowd_t *crowd, stage_t stage) {
  return crowd->counts[stage][FRESH] + crowd->counts[stage][OLD] == REQUESTS;
}

static void conclude(const crowd_t *crowd) {
  demo_t *demo = crowd->demo;
  const int64_t *locked = crowd->counts[LOCK];
  demo_print("\n");
  demo_fact(demo, is_so(crowd, BY_HAND, REQUESTS) && is_so(crowd, PLAIN, PROCESSES),
            "by hand there are %d loads; with a cache %d, one in each process", REQUESTS,
            PROCESSES);
  demo_fact(demo,
            is_so(crowd, LOCK, 1) && locked[HERE] == EACH && locked[ELSEWHERE] == REQUESTS - EACH,
            "with a lock 1: three processes wait for the load of the fourth one");
  demo_fact(demo,
            is_so(crowd, STALE, 1) && is_at_once(crowd, STALE) && is_so(crowd, PINNED, 1) &&
                is_at_once(crowd, PINNED),
            "a page that expires under load is loaded once more, and no request waits for it");
  demo_fact(demo,
            is_so(crowd, ABSENT, 1) && is_so(crowd, LIMITER, ALLOWED) && is_so(crowd, FILTER, 0),
            "a page that does not exist: 1 load; a thousand of them: %d by a limit, 0 by a filter",
            ALLOWED);
}

void chapter_stampede(demo_t *demo) {
  static crowd_t crowd;
  crowd = (crowd_t){.demo = demo};
  belay_bloom_t *filter = make_filter(demo);
  if (filter == NULL ||
      !demo_await(demo, "filling the filter",
                  belay_bloom_add(filter, &demo->request, belay_string("page"), demo_on_yes)))
    return;
  (void)belay_bloom_close(filter, NULL);
  print_head(demo);
  for (unsigned i = 0; i < PROCESSES; i++) {
    struct view *view = &crowd.view[i];
    char owner[32], number[16];
    view->crowd = &crowd;
    view->child = (child_t){.on_news = on_news, .data = view};
    (void)snprintf(owner, sizeof owner, "crowd-%u", i + 1);
    (void)snprintf(number, sizeof number, "%u", i);
    child_start(demo, &view->child, "visitors", (const char *[]){owner, number, NULL});
  }
  demo_run(demo);
  conclude(&crowd);
}

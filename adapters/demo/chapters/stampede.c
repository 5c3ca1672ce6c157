/* Chapter: a thousand requests for one page, in four processes, in several stages.
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
enum { LOAD_MS = 200, SPREAD_MS = 300, EXPIRES_MS = 100, WAIT_MS = 30000 };

typedef enum stage { BY_HAND, PLAIN, LOCK, STALE, STAGES } stage_t;

static const struct {
  const char *name;
  bool by_hand; /* the cache has no loader: each request without an answer loads */
  bool lock;
  bool expires; /* the page is stored, and expires while the requests come over SPREAD_MS */
} stages[STAGES] = {
    [BY_HAND] = {"by hand", .by_hand = true},
    [PLAIN] = {"with a cache"},
    [LOCK] = {"and a lock", .lock = true},
    [STALE] = {"served stale", .lock = true, .expires = true},
};

/* Results of a stage: calls of the loader; requests that waited for a load; requests that were
 * served at once; the longest wait. */
typedef enum count { LOADS, WAITED, AT_ONCE, LONGEST_US, COUNTS } count_t;

static const char *const words[COUNTS] = {"loads", "waited", "at-once", "longest"};
#define REPORT_STAGE "stage" /* the end of a stage, with its number */

/* ---- a process ---- */

typedef struct visitors {
  demo_t *demo;
  unsigned number; /* of the process */
  belay_barrier_t *barrier;
  belay_cache_t *cache; /* of this stage */
  stage_t stage;
  uint64_t began; /* time of the first request */
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
static void start_job(visitors_t *all, belay_cache_load_t *load, struct visitor *visitor) {
  if (all->jobs < EACH)
    all->job[all->jobs++] = (struct job){load, visitor, uv_hrtime() + LOAD_MS * DEMO_MS};
  else
    demo_trouble(all->demo, "too many loads", 0);
}

static void on_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  (void)key, (void)key_len;
  start_job(arg, load, NULL);
}

static void count_served(const struct visitor *visitor) {
  visitors_t *all = visitor->all;
  int64_t us = (int64_t)((uv_hrtime() - visitor->asked) / 1000);
  all->served++;
  if (us > all->counts[LONGEST_US])
    all->counts[LONGEST_US] = us;
}

static void end_due_jobs(visitors_t *all) {
  for (uint64_t now = uv_hrtime(); all->ended < all->jobs && all->job[all->ended].due <= now;) {
    const struct job *job = &all->job[all->ended++];
    if (job->load != NULL)
      (void)belay_cache_load_done(job->load, belay_bytes(page, sizeof page - 1));
    else
      count_served(job->visitor);
  }
}

static void on_page(belay_request_t *request, int status, const belay_cache_result_t *result) {
  struct visitor *visitor = request->data;
  (void)result;
  if (status == BELAY_EABSENT && stages[visitor->all->stage].by_hand)
    start_job(visitor->all, NULL, visitor);
  else if (demo_check(visitor->all->demo, "asking for a page", status))
    count_served(visitor);
}

static belay_bytes_t key_of(const visitors_t *all) {
  return belay_string(stages[all->stage].name);
}

static void ask_some(visitors_t *all) {
  uint64_t ms = (uv_hrtime() - all->began) / DEMO_MS;
  bool spread = stages[all->stage].expires && ms < SPREAD_MS;
  unsigned until = spread ? (unsigned)(ms * EACH / SPREAD_MS) : EACH;
  for (; all->asked < until; all->asked++) {
    struct visitor *visitor = &all->visitor[all->asked];
    *visitor = (struct visitor){{.data = visitor, .timeout_ms = WAIT_MS}, all, uv_hrtime()};
    (void)demo_check(all->demo, "asking for a page",
                     belay_cache_get(all->cache, &visitor->request, key_of(all), on_page));
  }
}

/* Ask, and end loads if the stage spreads its requests. Returns true if each request was served, or
 * looked up. */
static bool have_all_asked(visitors_t *all) {
  belay_cache_stats_t stats;
  ask_some(all);
  if (stages[all->stage].expires)
    end_due_jobs(all);
  belay_cache_stats(all->cache, &stats);
  return stats.hits + stats.stale_served + stats.misses >= EACH;
}

static bool are_all_served(visitors_t *all) {
  belay_cache_stats_t stats;
  end_due_jobs(all);
  belay_cache_stats(all->cache, &stats);
  return all->served == EACH && stats.loading == 0;
}

static void report_counts(visitors_t *all) {
  belay_cache_stats_t stats;
  belay_cache_stats(all->cache, &stats);
  all->counts[LOADS] = stages[all->stage].by_hand ? all->jobs : (int64_t)stats.loads;
  all->counts[AT_ONCE] = (int64_t)(stats.hits + stats.stale_served);
  all->counts[WAITED] = all->served - all->counts[AT_ONCE];
  for (unsigned i = 0; i < COUNTS; i++)
    demo_report(words[i], all->counts[i]);
  demo_report(REPORT_STAGE, all->stage);
}

static void on_met(belay_barrier_t *barrier, int status, uint64_t generation) {
  (void)generation;
  demo_done(belay_barrier_data(barrier), status);
}

static bool meet_others(visitors_t *all) {
  return demo_await(all->demo, "meeting the others",
                    belay_barrier_wait(all->barrier, WAIT_MS, on_met));
}

static void on_put(belay_request_t *request, int status, bool applied) {
  demo_on_number(request, status, applied);
}

/* Make the cache. The first process stores the page, if the stage needs it. */
static bool prepare(visitors_t *all) {
  demo_t *demo = all->demo;
  belay_cache_options_t options;
  all->asked = all->served = all->jobs = all->ended = 0;
  memset(all->counts, 0, sizeof all->counts);
  belay_cache_options_init(&options);
  options.name = belay_string(demo->name);
  options.load = stages[all->stage].by_hand ? NULL : on_load;
  options.arg = all;
  options.ttl_ms = options.stale_ms = 60000;
  options.jitter_percent = 0;
  options.lock = stages[all->stage].lock;
  options.quiet = true;
  if (!demo_check(demo, "making a cache",
                  belay_cache_new(demo->client[DEMO_A], &options, &all->cache)))
    return false;
  return !stages[all->stage].expires || all->number > 0 ||
         demo_await(demo, "storing a page",
                    belay_cache_put(all->cache, &demo->request, key_of(all),
                                    belay_bytes(page, sizeof page - 1), EXPIRES_MS, on_put));
}

/* Returns false after an error, which the parent prints. */
static bool run_stage(visitors_t *all) {
  if (!prepare(all) || !meet_others(all))
    return false;
  all->began = uv_hrtime();
  DEMO_WAIT(all->demo, WAIT_MS, have_all_asked(all));
  if (!meet_others(all))
    return false;
  DEMO_WAIT(all->demo, WAIT_MS, are_all_served(all));
  report_counts(all);
  (void)belay_cache_close(all->cache, NULL);
  return true;
}

void visitor_run(demo_t *demo, char **args) {
  static visitors_t all;
  belay_latch_options_t options;
  belay_latch_options_init(&options);
  options.count = PROCESSES;
  options.ttl_ms = 60000;
  all.demo = demo;
  all.number = (unsigned)strtoul(args[0], NULL, 10);
  if (!demo_check(demo, "making a barrier",
                  belay_barrier_new(demo->client[DEMO_A], belay_string(demo->name), &options,
                                    &all.barrier)))
    return;
  belay_barrier_set_data(all.barrier, demo);
  while (all.stage < STAGES && run_stage(&all))
    all.stage++;
}

/* ---- the chapter ---- */

typedef struct processes {
  struct process {
    child_t child;
    struct processes *processes;
    int64_t counts[COUNTS]; /* of the present stage */
  } process[PROCESSES];
  int64_t counts[STAGES][COUNTS]; /* of all processes */
  unsigned reported[STAGES];      /* processes */
} processes_t;

static void on_report(child_t *child, const child_report_t *report) {
  struct process *process = child->data;
  processes_t *processes = process->processes;
  for (unsigned i = 0; i < COUNTS; i++)
    if (strcmp(report->word, words[i]) == 0)
      process->counts[i] = report->number;
  if (strcmp(report->word, REPORT_STAGE) != 0 || report->number < 0 || report->number >= STAGES)
    return;
  int64_t *sums = processes->counts[report->number];
  for (unsigned i = 0; i < LONGEST_US; i++)
    sums[i] += process->counts[i];
  if (process->counts[LONGEST_US] > sums[LONGEST_US])
    sums[LONGEST_US] = process->counts[LONGEST_US];
  if (++processes->reported[report->number] == PROCESSES)
    demo_print("  %-14s %6" PRId64 " %10" PRId64 " %10" PRId64 " %9.0f ms\n",
               stages[report->number].name, sums[LOADS], sums[WAITED], sums[AT_ONCE],
               (double)sums[LONGEST_US] / 1e3);
}

/* Returns true if these numbers of loads and of waiting requests were counted, and all other
 * requests were served at once. */
static bool is_result(const processes_t *processes, stage_t stage, int64_t loads, int64_t waited) {
  const int64_t *counts = processes->counts[stage];
  return counts[LOADS] == loads && counts[WAITED] == waited && counts[AT_ONCE] == REQUESTS - waited;
}

void chapter_stampede(demo_t *demo) {
  static processes_t processes;
  demo_print("  %s%-14s %6s %10s %10s %12s%s\n", demo_style(demo, DEMO_DIM), "", "loads", "waited",
             "at once", "longest wait", demo_style(demo, DEMO_NORMAL));
  for (unsigned i = 0; i < PROCESSES; i++) {
    struct process *process = &processes.process[i];
    char number[16];
    process->processes = &processes;
    process->child = (child_t){.on_report = on_report, .data = process};
    (void)snprintf(number, sizeof number, "%u", i);
    child_start(demo, &process->child, "visitor", (const char *[]){number, NULL});
  }
  demo_run(demo);
  demo_print("\n");
  demo_fact(demo,
            is_result(&processes, BY_HAND, REQUESTS, REQUESTS) &&
                is_result(&processes, PLAIN, PROCESSES, REQUESTS),
            "by hand there are %d loads; with a cache %d, one in each process", REQUESTS,
            PROCESSES);
  demo_fact(demo, is_result(&processes, LOCK, 1, REQUESTS),
            "with a lock 1: three processes wait for the load of the fourth one");
  demo_fact(demo, is_result(&processes, STALE, 1, 0),
            "a page that expires under load is loaded once more, and no request waits for it");
}

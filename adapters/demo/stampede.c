/* One of the processes of a stampede. In each stage:
 *
 *   PREPARING --> ARRIVING ==all have arrived==> ASKING --> ASKED ==all have asked==> LOADING --> SERVED ==all are==+
 *       ^                                                                                                           |
 *       +-------------------------------------- what was counted is told -------------------------------------------+
 *
 * A load takes its time; and where all ask at the same time, it does not end before they have, however slow the machine
 * is. What happens in time is done by a timer that ticks. */
#include "demo/stampede.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "belay.h"
#include "demo/child.h"
#include "demo/worker.h"

enum { TICK_MS = 2, SPREAD_MS = 300, EXPIRES_MS = 100, PINNED_MS = 280, WAIT_MS = 30000 };
#define MS UINT64_C(1000000) /* in the nanoseconds of uv_hrtime() */

const char *const stampede_words[STAMPEDE_COUNTS] = {
    [STAMPEDE_LOADS] = "loads",     [STAMPEDE_HERE] = "here", [STAMPEDE_ELSEWHERE] = "else",
    [STAMPEDE_FRESH] = "fresh",     [STAMPEDE_OLD] = "stale", [STAMPEDE_REFUSED] = "refused",
    [STAMPEDE_LONGEST_US] = "long",
};

/* How a stage differs from the others. */
typedef struct stage {
  int64_t put_ms;    /* what is asked for is there, and fresh for so long; 0: it is not */
  int64_t absent_ms; /* as the options have it */
  bool by_hand;      /* the cache has no loader */
  bool lock, pinned, limiter, filter;
  bool absent; /* what is asked for does not exist */
  bool spread; /* not all ask at the same time */
  bool apart;  /* each asks for something else */
} stage_t;

static const stage_t stages[STAMPEDE_STAGES] = {
    [STAMPEDE_BY_HAND] = {.by_hand = true},
    [STAMPEDE_PLAIN] = {.lock = false},
    [STAMPEDE_LOCK] = {.lock = true},
    [STAMPEDE_STALE] = {.lock = true, .put_ms = EXPIRES_MS, .spread = true},
    [STAMPEDE_PINNED] = {.lock = true, .put_ms = PINNED_MS, .spread = true, .pinned = true},
    [STAMPEDE_ABSENT] = {.lock = true, .absent = true, .absent_ms = 60000, .spread = true},
    [STAMPEDE_LIMITER] = {.lock = true, .absent = true, .apart = true, .limiter = true},
    [STAMPEDE_FILTER] = {.lock = true, .absent = true, .apart = true, .filter = true},
};

typedef enum state { PREPARING, ARRIVING, ASKING, ASKED, LOADING, SERVED } state_t;

typedef struct stampede stampede_t;

/* Who asks. */
typedef struct visitor {
  belay_request_t request;
  stampede_t *stampede;
  uint64_t asked;
} visitor_t;

/* What is being loaded: for the cache, or, by hand, for somebody. */
typedef struct job {
  belay_cache_load_t *load;
  visitor_t *visitor;
  uint64_t due;
} job_t;

struct stampede {
  uv_loop_t loop;
  uv_timer_t tick;
  belay_t *belay;
  belay_client_t *client;
  belay_barrier_t *barrier;
  belay_limiter_t *limiter;
  belay_bloom_t *filter;
  belay_cache_t *cache; /* of this stage */
  const char *name;
  unsigned number;
  unsigned stage; /* stampede_stage_t; or STAMPEDE_STAGES: all are over */
  state_t state;
  uint64_t began; /* when the first one asked */
  visitor_t visitor[STAMPEDE_EACH];
  unsigned asked, served, stored; /* of them */
  job_t job[STAMPEDE_EACH];
  unsigned jobs, ended;
  int64_t counts[STAMPEDE_COUNTS];
  int status; /* what the process will return */
};

static void begin_stage(stampede_t *stampede);

/* ---- the end ------------------------------------------------------------------------------------------- */

static void finish(stampede_t *stampede) {
  if (!uv_is_closing((uv_handle_t *)&stampede->tick))
    uv_close((uv_handle_t *)&stampede->tick, NULL);
  if (stampede->belay != NULL && belay_close(stampede->belay, NULL) != 0)
    stampede->status = 1;
  stampede->belay = NULL;
}

/* What happens after that does not count. */
static void fail(stampede_t *stampede, int error) {
  if (stampede->status == 0)
    news_tell(NEWS_FAILED, error);
  stampede->status = 1;
  finish(stampede);
}

/* ---- loading ------------------------------------------------------------------------------------------- */

/* It asks a database, so to speak. */
static void begin_job(stampede_t *stampede, belay_cache_load_t *load, visitor_t *visitor) {
  if (stampede->jobs == STAMPEDE_EACH) {
    if (load != NULL)
      (void)belay_cache_load_failed(load,
                                    BELAY_EBUSY); /* and it will be seen that there are too many */
    return;
  }
  job_t *job = &stampede->job[stampede->jobs++];
  *job = (job_t){load, visitor, uv_hrtime() + STAMPEDE_LOAD_MS * MS};
}

static void on_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  (void)key, (void)key_len;
  begin_job(arg, load, NULL);
}

static void count(visitor_t *visitor, stampede_count_t what) {
  stampede_t *stampede = visitor->stampede;
  int64_t us = (int64_t)((uv_hrtime() - visitor->asked) / 1000);
  stampede->served++;
  stampede->counts[what]++;
  if (us > stampede->counts[STAMPEDE_LONGEST_US])
    stampede->counts[STAMPEDE_LONGEST_US] = us;
}

static const char page[] = "a page";

static size_t key_of(const visitor_t *visitor, char key[32]) {
  const stampede_t *stampede = visitor->stampede;
  unsigned i = stages[stampede->stage].apart
                   ? 1 + stampede->number * STAMPEDE_EACH + (unsigned)(visitor - stampede->visitor)
                   : 0;
  return (size_t)snprintf(key, 32, "page/%u/%u", stampede->stage, i);
}

static void on_stored(belay_request_t *request, int status, bool applied) {
  visitor_t *visitor = request->data;
  (void)applied; /* others store it too, and one of them is the last */
  visitor->stampede->stored++;
  if (status != 0)
    fail(visitor->stampede, status);
}

/* By hand: it is there, and stored for others. */
static void serve_by_hand(visitor_t *visitor) {
  stampede_t *stampede = visitor->stampede;
  char key[32];
  size_t len = key_of(visitor, key);
  stampede->counts[STAMPEDE_LOADS]++;
  count(visitor, STAMPEDE_HERE);
  int error = belay_cache_put(stampede->cache, &visitor->request, key, len, page, sizeof page - 1,
                              BELAY_DEFAULT, on_stored);
  if (error != 0)
    fail(stampede, error);
}

static void end_job(stampede_t *stampede, const job_t *job) {
  if (job->visitor != NULL)
    serve_by_hand(job->visitor);
  else if (stages[stampede->stage].absent)
    (void)belay_cache_load_absent(job->load);
  else
    (void)belay_cache_load_done(job->load, page, sizeof page - 1);
}

/* Those that are due, which are the first. */
static void end_jobs(stampede_t *stampede) {
  uint64_t now = uv_hrtime();
  while (stampede->ended < stampede->jobs && stampede->job[stampede->ended].due <= now)
    end_job(stampede, &stampede->job[stampede->ended++]);
}

/* ---- asking -------------------------------------------------------------------------------------------- */

static void on_page(belay_request_t *request, int status, const belay_cache_result_t *result) {
  visitor_t *visitor = request->data;
  stampede_t *stampede = visitor->stampede;
  const stage_t *stage = &stages[stampede->stage];
  bool refused = status == BELAY_ELIMITED ||
                 (status == BELAY_EABSENT && result->from == BELAY_CACHE_FROM_NOWHERE);
  if (stage->by_hand && refused)
    begin_job(stampede, NULL, visitor);
  else if (refused)
    count(visitor, STAMPEDE_REFUSED);
  else if (status != (stage->absent ? BELAY_EABSENT : 0))
    fail(stampede, status);
  else if (result->from == BELAY_CACHE_FROM_LOAD)
    count(visitor, STAMPEDE_HERE);
  else
    count(visitor, result->stale ? STAMPEDE_OLD : STAMPEDE_ELSEWHERE); /* or at once: see tell() */
}

static void ask_some(stampede_t *stampede) {
  bool spread = stages[stampede->stage].spread;
  uint64_t ms = (uv_hrtime() - stampede->began) / MS;
  unsigned until =
      !spread || ms >= SPREAD_MS ? STAMPEDE_EACH : (unsigned)(ms * STAMPEDE_EACH / SPREAD_MS);
  for (int error = 0; stampede->asked < until && error == 0; stampede->asked++) {
    visitor_t *visitor = &stampede->visitor[stampede->asked];
    char key[32];
    *visitor = (visitor_t){.stampede = stampede, .asked = uv_hrtime()};
    visitor->request = (belay_request_t){.data = visitor, .timeout_ms = WAIT_MS};
    size_t len = key_of(visitor, key);
    error = belay_cache_get(stampede->cache, &visitor->request, key, len, on_page);
    if (error != 0)
      fail(stampede, error);
  }
}

/* Whether all have been served, or have found nothing. */
static bool have_asked(const stampede_t *stampede) {
  belay_cache_stats_t stats;
  belay_cache_stats(stampede->cache, &stats);
  return stats.hits + stats.stale_served + stats.misses >= STAMPEDE_EACH;
}

static bool is_over(const stampede_t *stampede) {
  belay_cache_stats_t stats;
  belay_cache_stats(stampede->cache, &stats);
  bool stored = !stages[stampede->stage].by_hand || stampede->stored == STAMPEDE_EACH;
  return stampede->served == STAMPEDE_EACH && stats.loading == 0 && stored;
}

/* ---- from stage to stage ------------------------------------------------------------------------------- */

static void tell(stampede_t *stampede) {
  belay_cache_stats_t stats;
  belay_cache_stats(stampede->cache, &stats);
  stampede->counts[STAMPEDE_LOADS] += (int64_t)stats.loads;
  stampede->counts[STAMPEDE_FRESH] = (int64_t)stats.hits;
  stampede->counts[STAMPEDE_ELSEWHERE] -= (int64_t)stats.hits;
  for (unsigned i = 0; i < STAMPEDE_COUNTS; i++)
    news_tell(stampede_words[i], stampede->counts[i]);
  news_tell(NEWS_STAGE, stampede->stage);
}

static void on_together(belay_barrier_t *barrier, int status, uint64_t generation) {
  stampede_t *stampede = belay_barrier_data(barrier);
  (void)generation;
  if (status != 0) {
    fail(stampede, status);
    return;
  }
  if (stampede->state == ASKED) {
    stampede->state = LOADING;
    return;
  }
  if (stampede->state == ARRIVING) {
    char key[32];
    size_t len = key_of(&stampede->visitor[0], key);
    stampede->state = ASKING;
    stampede->began = uv_hrtime();
    int error = stages[stampede->stage].pinned ? belay_cache_pin(stampede->cache, key, len) : 0;
    if (error != 0)
      fail(stampede, error);
    return;
  }
  tell(stampede);
  (void)belay_cache_close(stampede->cache, NULL);
  stampede->stage++;
  if (stampede->stage < STAMPEDE_STAGES)
    begin_stage(stampede);
  else
    finish(stampede);
}

static void wait_as(stampede_t *stampede, state_t state) {
  stampede->state = state;
  int error = belay_barrier_wait(stampede->barrier, WAIT_MS, on_together);
  if (error != 0)
    fail(stampede, error);
}

static void on_tick(uv_timer_t *timer) {
  stampede_t *stampede = timer->data;
  if (stampede->state == ASKING)
    ask_some(stampede);
  if (stampede->state == LOADING || stages[stampede->stage].spread)
    end_jobs(stampede);
  if (stampede->status != 0)
    return;
  if (stampede->state == ASKING && have_asked(stampede))
    wait_as(stampede, ASKED);
  else if (stampede->state == LOADING && is_over(stampede))
    wait_as(stampede, SERVED);
}

static void on_prepared(belay_request_t *request, int status, bool applied) {
  stampede_t *stampede = request->data;
  if (status != 0 || !applied)
    fail(stampede, status);
  else
    wait_as(stampede, ARRIVING);
}

static int open_cache(stampede_t *stampede) {
  const stage_t *stage = &stages[stampede->stage];
  belay_cache_options_t options;
  belay_cache_options_init(&options);
  options.name = stampede->name;
  options.name_len = strlen(stampede->name);
  options.load = stage->by_hand ? NULL : on_load;
  options.arg = stampede;
  options.ttl_ms = 60000;
  options.jitter_percent = 0;
  options.stale_ms = 60000;
  options.absent_ms = stage->absent_ms;
  options.refresh_ms = 10000;
  options.lock = stage->lock;
  options.limiter = stage->limiter ? stampede->limiter : NULL;
  options.filter = stage->filter ? stampede->filter : NULL;
  options.quiet = true;
  return belay_cache_new(stampede->client, &options, &stampede->cache);
}

/* The first of the processes puts there what is to be there. */
static void begin_stage(stampede_t *stampede) {
  const stage_t *stage = &stages[stampede->stage];
  visitor_t *visitor = &stampede->visitor[0];
  char key[32];
  stampede->state = PREPARING;
  stampede->asked = stampede->served = stampede->stored = stampede->jobs = stampede->ended = 0;
  memset(stampede->counts, 0, sizeof stampede->counts);
  *visitor = (visitor_t){.stampede = stampede};
  visitor->request = (belay_request_t){.data = stampede, .timeout_ms = WAIT_MS};
  size_t len = key_of(visitor, key);
  int error = open_cache(stampede);
  if (error == 0 && (stage->put_ms == 0 || stampede->number != 0)) {
    wait_as(stampede, ARRIVING);
    return;
  }
  if (error == 0)
    error = belay_cache_put(stampede->cache, &visitor->request, key, len, page, sizeof page - 1,
                            stage->put_ms, on_prepared);
  if (error != 0)
    fail(stampede, error);
}

/* ---- from start to end --------------------------------------------------------------------------------- */

int stampede_limiter(belay_client_t *client, const char *name, belay_limiter_t **out) {
  belay_limit_t limit = {.kind = BELAY_LIMIT_BUCKET, .period_us = 60000000};
  limit.burst = STAMPEDE_ALLOWED; /* and it is never filled again */
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.name = name;
  options.name_len = strlen(name);
  options.limits = &limit;
  options.limits_len = 1;
  return belay_limiter_new(client, &options, out);
}

int stampede_filter(belay_client_t *client, const char *name, belay_bloom_t **out) {
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.name = name;
  options.name_len = strlen(name);
  options.capacity = STAMPEDE_EXISTING;
  options.error_rate = 1e-6;
  options.ttl_ms = 60000;
  return belay_bloom_new(client, &options, out);
}

static int open_all(stampede_t *stampede, const char *run, const char *owner) {
  const char *parts[2];
  belay_client_options_t client;
  belay_latch_options_t barrier;
  worker_client_options(&client, parts, run, owner);
  belay_latch_options_init(&barrier);
  barrier.count = STAMPEDE_PROCESSES;
  barrier.ttl_ms = 60000;
  int error = belay_open(&stampede->loop, NULL, &stampede->belay);
  if (error == 0)
    error = belay_connect(stampede->belay, getenv(WORKER_URL), &client, &stampede->client);
  if (error == 0)
    error = belay_barrier_new(stampede->client, stampede->name, strlen(stampede->name), &barrier,
                              &stampede->barrier);
  if (error == 0)
    error = stampede_limiter(stampede->client, stampede->name, &stampede->limiter);
  if (error == 0)
    error = stampede_filter(stampede->client, stampede->name, &stampede->filter);
  if (error == 0)
    belay_barrier_set_data(stampede->barrier, stampede);
  return error;
}

int run_visitors(int argc, char **argv) {
  if (argc != 7)
    return 2;
  child_die_with(argv[2]);
  static stampede_t stampede;
  stampede.name = argv[5];
  stampede.number = (unsigned)strtoul(argv[6], NULL, 10);
  if (uv_loop_init(&stampede.loop) != 0)
    return 1;
  (void)uv_timer_init(&stampede.loop, &stampede.tick); /* never fails */
  stampede.tick.data = &stampede;
  int error = open_all(&stampede, argv[3], argv[4]);
  if (error == 0 && uv_timer_start(&stampede.tick, on_tick, TICK_MS, TICK_MS) != 0)
    error = BELAY_ESYSTEM;
  if (error == 0)
    begin_stage(&stampede);
  else
    fail(&stampede, error);
  (void)uv_run(&stampede.loop, UV_RUN_DEFAULT);
  return uv_loop_close(&stampede.loop) != 0 ? 1 : stampede.status;
}

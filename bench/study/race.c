#include "study/race.h"

#include <stdlib.h>
#include <time.h>

#include "core/call/call.h"
#include "core/client/client.h"
#include "server.h"

enum { BURST = 1000 /* peeks between two looks at the clock */ };

typedef struct race race_t;

typedef struct runner {
  belay_request_t request;
  race_t *race;
} runner_t;

struct race {
  fixture_t *fixture;
  const race_plan_t *plan;
  uint64_t asked, answered;
  unsigned next; /* of the keys */
  runner_t runners[RACE_PENDING_MAX];
};

static void begin(runner_t *runner);

static const fixture_key_t *next_key(race_t *race) {
  const fixture_key_t *key = &race->fixture->keys[race->next];
  race->next = race->next + 1 < race->plan->keys ? race->next + 1 : 0;
  return key;
}

static void over(runner_t *runner) {
  race_t *race = runner->race;
  race->answered++;
  if (race->asked < race->plan->calls)
    begin(runner);
}

static void on_put(belay_request_t *request, int status, bool applied) {
  fixture_must(status, "put");
  if (!applied)
    bench_die("a put was not applied");
  over(request->data);
}

static void put(runner_t *runner) {
  fixture_t *fixture = runner->race->fixture;
  const fixture_key_t *key = next_key(runner->race);
  fixture_must(belay_cache_put(fixture->cache, &runner->request, belay_bytes(key->key, FIXTURE_KEY),
                               belay_bytes(fixture->value, fixture->value_len), BELAY_DEFAULT,
                               on_put),
               "put");
}

static void on_raw(belay__call_t *call, const belay__result_t *result) {
  runner_t *runner = call->owner;
  race_t *race = runner->race;
  fixture_must(result->error, "GET");
  if (result->reply->type != BELAY__REPLY_STRING || result->reply->len <= race->fixture->value_len)
    bench_die("GET found nothing");
  over(runner);
  if (race->answered == race->plan->calls)
    belay__free_loop(race->fixture->belay);
}

static void raw(runner_t *runner) {
  fixture_t *fixture = runner->race->fixture;
  const fixture_key_t *key = next_key(runner->race);
  belay__call_t *call = belay__call_new(fixture->client, BELAY__CLASS_BULK);
  if (call == NULL)
    bench_die("out of memory");
  belay__call_command(call, "GET", 2);
  belay__call_arg(call, key->name, sizeof *key);
  call->deadline = belay__after_ms(fixture->belay, fixture->client->timeout_ms);
  call->done = on_raw;
  call->owner = runner;
  fixture_must(belay__call_send(&call, 1, true), "GET");
}

static void on_get(belay_request_t *request, int status, const belay_cache_result_t *result) {
  runner_t *runner = request->data;
  fixture_must(status, "get");
  if (result->len != runner->race->fixture->value_len)
    bench_die("a get brought %zu bytes", result->len);
  over(runner);
}

static void get(runner_t *runner) {
  const fixture_key_t *key = next_key(runner->race);
  fixture_must(belay_cache_get(runner->race->fixture->cache, &runner->request,
                               belay_bytes(key->key, FIXTURE_KEY), on_get),
               "get");
}

static void on_many(belay_request_t *request, int status, const belay_cache_result_t *results,
                    size_t n) {
  runner_t *runner = request->data;
  fixture_must(status, "get_many");
  for (size_t i = 0; i < n; i++)
    if (results[i].status != 0 || results[i].len != runner->race->fixture->value_len)
      bench_die("a get of many ended with %s", belay_err_name(results[i].status));
  over(runner);
}

static void get_many(runner_t *runner) {
  belay_bytes_t keys[RACE_MANY];
  for (unsigned i = 0; i < RACE_MANY; i++)
    keys[i] = (belay_bytes_t){.data = next_key(runner->race)->key, .len = FIXTURE_KEY};
  fixture_must(belay_cache_get_many(runner->race->fixture->cache, &runner->request, keys, RACE_MANY,
                                    on_many),
               "get_many");
}

static void miss(runner_t *runner) {
  char key[FIXTURE_KEY + 1];
  fixture_new_key(runner->race->fixture, key);
  fixture_must(belay_cache_get(runner->race->fixture->cache, &runner->request,
                               belay_bytes(key, FIXTURE_KEY), on_get),
               "get");
}

static void begin(runner_t *runner) {
  static void (*const ways[RACE_WAYS])(runner_t *) = {[RACE_PUT] = put,
                                                      [RACE_RAW] = raw,
                                                      [RACE_GET] = get,
                                                      [RACE_MANY_GET] = get_many,
                                                      [RACE_MISS] = miss};
  runner->race->asked++;
  ways[runner->race->plan->way](runner);
}

static int64_t cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static race_t *line_up(fixture_t *fixture, const race_plan_t *plan) {
  race_t *race = calloc(1, sizeof *race);
  if (race == NULL)
    bench_die("out of memory");
  race->fixture = fixture;
  race->plan = plan;
  for (unsigned i = 0; i < RACE_PENDING_MAX; i++)
    race->runners[i] = (runner_t){.request = {.data = &race->runners[i]}, .race = race};
  return race;
}

race_outcome_t race_run(fixture_t *fixture, const race_plan_t *plan) {
  double operations = (double)plan->calls * (plan->way == RACE_MANY_GET ? RACE_MANY : 1);
  belay_client_stats_t before, after;
  race_t *race = line_up(fixture, plan);
  if (plan->way == RACE_RAW)
    belay__hold_loop(fixture->belay); /* a request does that by itself */
  belay_client_stats(fixture->client, &before);
  uint64_t allocations = fixture_allocations(fixture);
  int64_t server = server_cpu(), client = cpu_now(), began = bench_now();
  for (unsigned i = 0; i < plan->pending && race->asked < plan->calls; i++)
    begin(&race->runners[i]);
  (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
  int64_t ended = bench_now();
  client = cpu_now() - client;
  if (race->answered != plan->calls)
    bench_die("%llu calls were answered", (unsigned long long)race->answered);
  belay_client_stats(fixture->client, &after);
  free(race);
  return (race_outcome_t){.rate = operations * 1e9 / (double)(ended - began),
                          .client_cpu = (double)client / operations,
                          .server_cpu = (double)(server_cpu() - server) / operations,
                          .allocations =
                              (double)(fixture_allocations(fixture) - allocations) / operations,
                          .commands = (double)(after.commands - before.commands) / operations};
}

peeks_outcome_t race_peeks(fixture_t *fixture, unsigned keys, double seconds) {
  int64_t began = bench_now(), length = (int64_t)(seconds * 1e9), now;
  uint64_t peeks = 0, allocations = fixture_allocations(fixture), random = 1;
  int64_t cpu = cpu_now();
  do {
    for (unsigned i = 0; i < BURST; i++) {
      belay_cache_result_t result;
      random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      const fixture_key_t *key = &fixture->keys[(random >> 32) * keys >> 32];
      fixture_must(belay_cache_peek(fixture->cache, belay_bytes(key->key, FIXTURE_KEY), &result),
                   "peek");
      if (result.len != fixture->value_len)
        bench_die("a peek brought %zu bytes", result.len);
    }
    peeks += BURST;
    now = bench_now();
  } while (now - began < length);
  return (peeks_outcome_t){.rate = (double)peeks * 1e9 / (double)(now - began),
                           .cpu = (double)(cpu_now() - cpu) / (double)peeks,
                           .allocations = (double)(fixture_allocations(fixture) - allocations)};
}

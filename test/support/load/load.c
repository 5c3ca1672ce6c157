/* The process of the load. loader.c reads its output. */
#include "support/load/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/client/client.h"
#include "core/key/key.h"
#include "support/fixtures/data/ids.h"
#include "support/load/pulse.h"

enum { LOCKERS = 4, ADDERS = 4, TICK_MS = 3, GRANTS_MAX = 400000, IDS_MAX = 2000000 };

#define LOCK_WAIT_MS 1000
#define LATE_MS 60 /* time for which a former holder keeps writing */
#define RATE 200
#define BURST 50

typedef struct locker {
  contender_t *contender;
  bool busy;              /* something was begun */
  bool holds;             /* as he believes */
  uint64_t floor, number; /* the largest number reported before its request; its own number */
  char token[BELAY_FENCE_TOKEN_MAX + 1];
  int64_t until; /* the time of its release; after that it keeps writing for a while */
} locker_t;

typedef struct adder {
  belay_request_t request;
  bool busy, due; /* due: there is an operation that is not confirmed */
  char id[32];
} adder_t;

static struct {
  env_t *env;
  belay_client_t *other;
  uv_timer_t tick;
  uv_poll_t input;
  size_t line_len;
  char line[64];
  bool ends;

  locker_t locker[LOCKERS];
  belay_fence_t fence; /* of the resource */
  uint64_t largest, grants, writes, refused, backwards;
  uint64_t numbers[GRANTS_MAX];

  belay_counter_t *counter;
  adder_t adder[ADDERS];
  char key[32];   /* of the counter, */
  uint32_t route; /* and its calls' */
  bool rests, rest_printed;
  uint64_t operations, confirmed, unconfirmed;

  belay_limiter_t *limiter;
  belay_request_t take;
  bool taking;
  uint64_t allowed;
  int64_t began;

  generator_t generator;
  id_op_t op;
  size_t ids_len;
  int64_t ids[IDS_MAX];

  bool pinging;
  uint32_t epoch; /* of the connection on which an answer last came */
  char run_id[BELAY__RUN_ID_MAX];
  pulse_t pulse;
  pulse_control_t control;
} my;

/* ---- the lock ---- */

/* The resource refuses the write if a later holder has written. */
static void write_guarded(const locker_t *locker) {
  if (belay_fence_guard(&my.fence, locker->number, belay_string(locker->token)) == 0)
    my.writes++;
  else
    my.refused++;
}

static void note_grant(locker_t *locker) {
  belay_lock_t *lock = locker->contender->lock;
  locker->holds = true;
  locker->number = belay_lock_fence(lock);
  belay_lock_token(lock, locker->token, sizeof locker->token);
  locker->until = clock_now() + (5 + (int64_t)(locker->number % 30)) * MS;
  my.backwards += locker->number <= locker->floor;
  if (locker->number > my.largest)
    my.largest = locker->number;
  assert_true(my.grants < GRANTS_MAX);
  my.numbers[my.grants++] = locker->number;
}

static void on_lock(contender_t *contender, event_t event) {
  locker_t *locker = contender->arg;
  if (event == EVENT_LOST) {
    locker->holds = false;
    locker->until = clock_now();
  } else if (event == EVENT_ENDED) {
    locker->busy = false;
    if (contender->status == 0 && belay_lock_fence(contender->lock) != 0)
      note_grant(locker);
  }
}

static void step_locker(locker_t *locker) {
  int64_t now = clock_now();
  bool late = now >= locker->until + LATE_MS * MS;
  if (locker->number != 0 && (locker->holds || !late))
    write_guarded(locker);
  if (locker->busy || my.ends)
    return;
  if (locker->holds && now >= locker->until) {
    locker->holds = false;
    locker->busy = begin_release(locker->contender) == 0;
  } else if (!locker->holds && late) {
    locker->floor = my.largest;
    locker->busy = begin_acquire(locker->contender, LOCK_WAIT_MS) == 0;
  }
}

/* ---- who answers ---- */

/* Reports the first reply on a connection to another server. */
static void note_server(belay__conn_class_t conn_class, uint32_t route) {
  const belay_client_t *client = my.env->client;
  const belay__server_info_t *server = client->node_ops->server(client, conn_class, route);
  if (server == NULL || server->epoch == my.epoch)
    return;
  my.epoch = server->epoch;
  if (server->run_id_len == 0 || belay__server_info_is(server, my.run_id, sizeof my.run_id))
    return;
  memcpy(my.run_id, server->run_id, sizeof my.run_id);
  printf("up %" PRId64 " %.*s\n", clock_now(), (int)sizeof my.run_id, my.run_id);
}

static bool is_cluster(void) {
  return my.env->client->node_ops->by_slots;
}

/* ---- the counter ---- */

static void on_added(belay_request_t *request, int status, const belay_counter_result_t *result) {
  adder_t *adder = request->data;
  (void)result;
  adder->busy = false;
  adder->due = status != 0;
  my.confirmed += status == 0;
  my.unconfirmed += status != 0;
  if (status == 0 && is_cluster())
    note_server(BELAY__CLASS_DATA, my.route);
}

static void step_adder(adder_t *adder) {
  if (adder->busy || (!adder->due && my.rests))
    return;
  if (!adder->due)
    snprintf(adder->id, sizeof adder->id, "%" PRIu64, ++my.operations);
  adder->due = true;
  adder->request = (belay_request_t){.data = adder};
  adder->busy = belay_counter_add_once(my.counter, &adder->request, belay_string(my.key), 1,
                                       belay_string(adder->id), on_added) == 0;
}

static bool is_confirmed(void) {
  for (int i = 0; i < ADDERS; i++)
    if (my.adder[i].due)
      return false;
  return true;
}

/* ---- limiter, ids, pings ---- */

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  (void)request;
  (void)status;
  my.taking = false;
  my.allowed += result->verdict == BELAY_ALLOWED;
}

static void step_limiter(void) {
  if (my.taking || my.ends)
    return;
  my.take = (belay_request_t){.timeout_ms = 0};
  my.taking = belay_limiter_take(my.limiter, &my.take, belay_string(LOAD_LIMIT), 1, on_taken) == 0;
}

static void keep_id(int64_t id) {
  assert_true(my.ids_len < IDS_MAX);
  my.ids[my.ids_len++] = id;
}

static void on_drawn(generator_t *generator) {
  (void)generator;
  if (my.op.status == 0 && my.op.n > 0)
    keep_id(my.op.first);
  my.op.n = 0;
}

static void step_ids(void) {
  int64_t id;
  if (belay_idgen_next(my.generator.idgen, &id) == 0)
    keep_id(id);
  else if (my.op.ended == my.op.begun && !my.ends)
    (void)begin_get(&my.generator, &my.op);
}

static void on_pinged(env_t *env) {
  my.pinging = false;
  if (env->pong_status == 0 && !is_cluster())
    note_server(BELAY__CLASS_LEASE, 0);
}

/* ---- reports and orders ---- */

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t count_same(void *values, size_t n) {
  const int64_t *sorted = values;
  uint64_t same = 0;
  qsort(values, n, sizeof *sorted, compare);
  for (size_t i = 1; i < n; i++)
    same += sorted[i] == sorted[i - 1];
  return same;
}

static void print_rest(void) {
  my.rest_printed = true;
  printf("rest %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
         my.operations, my.confirmed, my.pulse.longest / 1000, my.pulse.longest_held / 1000,
         my.pulse.longest_busy / 1000, pulse_control_end(&my.control) / 1000);
}

static void print_all(void) {
  uint64_t lost = 0, seconds = (uint64_t)(clock_since_ms(my.began) / 1000 + 1);
  for (int i = 0; i < LOCKERS; i++)
    lost += my.locker[i].contender->lost;
  printf("over %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %zu %" PRIu64 " %" PRIu64
         " %" PRIu64 " %d %" PRIu64 " %" PRIu64 "\n",
         my.grants, my.writes, my.refused, my.backwards, count_same(my.numbers, my.grants),
         my.ids_len, count_same(my.ids, my.ids_len), my.allowed, BURST + seconds * RATE, BURST,
         my.unconfirmed, lost);
}

static void go_on(void) {
  my.rests = my.rest_printed = false;
  pulse_control_begin(&my.control);
  pulse_reset(&my.pulse);
}

static void on_line(const char *line) {
  if (strncmp(line, "begin ", 6) == 0) {
    snprintf(my.key, sizeof my.key, "%.31s", line + 6);
    my.route = belay__key_route(my.key, strlen(my.key));
    my.operations = my.confirmed = 0;
    go_on();
  } else if (strcmp(line, "go on") == 0) {
    go_on();
  } else if (strcmp(line, "rest") == 0) {
    my.rests = true;
  } else {
    my.ends = true;
  }
}

static void on_input(uv_poll_t *poll, int status, int events) {
  char text[64];
  (void)poll, (void)events;
  ssize_t n = status < 0 ? 0 : read(STDIN_FILENO, text, sizeof text);
  if (n <= 0)
    _exit(1); /* the parent process is gone */
  for (ssize_t i = 0; i < n; i++) {
    if (text[i] != '\n') {
      assert_true(my.line_len + 1 < sizeof my.line);
      my.line[my.line_len++] = text[i];
      continue;
    }
    my.line[my.line_len] = '\0';
    my.line_len = 0;
    on_line(my.line);
  }
}

static void on_tick(uv_timer_t *timer) {
  (void)timer;
  for (int i = 0; i < LOCKERS; i++)
    step_locker(&my.locker[i]);
  for (int i = 0; i < ADDERS; i++)
    step_adder(&my.adder[i]);
  step_limiter();
  step_ids();
  if (!my.pinging && !my.ends)
    my.pinging = begin_ping(my.env) == 0;
  if (my.rests && !my.rest_printed && is_confirmed())
    print_rest();
}

/* ---- the process ---- */

static void make_lockers(void) {
  belay_lock_options_t o = watched(3000);
  o.fencing = true;
  for (int i = 0; i < LOCKERS; i++) {
    locker_t *locker = &my.locker[i];
    locker->contender = contender_of(my.env, i % 2 == 0 ? my.env->client : my.other, LOAD_LOCK, &o);
    locker->contender->then = on_lock;
    locker->contender->arg = locker;
  }
}

static void make_all(const char *url, unsigned replicas) {
  my.env = env_open_at(url, NULL);
  my.other = env_connect(my.env, url, NULL);
  my.env->then = on_pinged;
  make_lockers();
  belay_counter_options_t counter;
  belay_counter_options_init(&counter);
  counter.op_ttl_ms = 300000;
  assert_error(belay_counter_new(my.env->client, &counter, &my.counter), 0);
  const belay_limit_t limit = {
      .kind = BELAY_LIMIT_BUCKET, .count = RATE, .period_us = 1000000, .burst = BURST};
  belay_limiter_options_t limiter;
  belay_limiter_options_init(&limiter);
  limiter.limits = &limit;
  limiter.limits_len = 1;
  assert_error(belay_limiter_new(my.env->client, &limiter, &my.limiter), 0);
  belay_idgen_options_t ids = idgen_options(BELAY_IDGEN_SEGMENT);
  ids.name = belay_string(LOAD_IDS);
  ids.step = 50;
  ids.min_replicas = replicas;
  generator_of(&my.generator, my.env, my.other, &ids);
  my.generator.then = on_drawn;
}

int load_main(char **argv) {
  make_all(argv[2], (unsigned)atoi(argv[3]));
  my.rests = my.rest_printed = true;
  my.began = clock_now();
  setvbuf(stdout, NULL, _IOLBF, 0);
  uv_loop_t *loop = &my.env->loop;
  uv_poll_init(loop, &my.input, STDIN_FILENO);
  uv_poll_start(&my.input, UV_READABLE, on_input);
  uv_timer_init(loop, &my.tick);
  uv_timer_start(&my.tick, on_tick, TICK_MS, TICK_MS);
  pulse_begin(&my.pulse, loop);
  while (!my.ends)
    uv_run(loop, UV_RUN_ONCE);
  print_all();
  uv_close((uv_handle_t *)&my.input, NULL);
  uv_close((uv_handle_t *)&my.tick, NULL);
  pulse_end(&my.pulse);
  env_close(my.env);
  return 0;
}

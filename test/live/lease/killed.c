/* A process is killed at each step, with one handle or a few of each kind. Waiters in other
 * processes wait for the rest of its lease or of its place in the queue, and no longer. No key
 * stays.
 *
 * A stopped server catches the commands that the process had sent. After SIGCONT it executes the
 * commands of the dead process. */
#include <signal.h>
#include <stdio.h>

#include "support/load/player.h"
#include "support/servers/process.h"
#include "support/deployments/relay.h"

typedef enum step_id {
  QUEUED,    /* behind another handle of its process, which has it */
  WAITING,   /* on the server, for another holder or other parties */
  ACQUIRING, /* it was asked for, or counted, and not answered */
  HELD,      /* and not renewed */
  RENEWED,   /* held for longer than a ttl */
  RENEWING,  /* the renewal is not answered */
  EXTENDING, /* for twice the ttl */
  CHANGING,  /* a reader into a writer, or a writer into a reader */
  PASSING,   /* to the handle that is queued behind it */
  RELEASING, /* or withdrawing */
  STEPS
} step_id_t;

typedef struct step {
  const char *name;
  bool watched;
  int ttl;              /* of the killed process, in ms, times slow() */
  int lease;            /* the longest rest of its lease after the kill, in ms, times slow() */
  bool in_between;      /* of a call, for which the server stands still */
  const char *calls[3]; /* names of the calls contain one of these: SENT; none: any call */
} step_t;

#define TTL 700
#define COUNT_MS 60000 /* maximum time of one call */
#define WAITER_TTL 500

static const step_t steps[STEPS] = {
    [QUEUED] = {"queued", false, TTL, TTL, false, {NULL}},
    [WAITING] = {"waiting", false, 20000, 0, false, {NULL}},
    [ACQUIRING] = {"acquiring", false, TTL, TTL, true, {NULL}},
    [HELD] = {"held", false, TTL, TTL, false, {NULL}},
    [RENEWED] = {"renewed", true, TTL, TTL, false, {NULL}},
    [RENEWING] = {"renewing", true, TTL, TTL, true, {"extend"}},
    [EXTENDING] = {"extending", false, TTL, 2 * TTL, true, {"extend"}},
    [CHANGING] = {"changing", false, TTL, TTL, true, {"extend"}},
    [PASSING] = {"passing", false, 2 * TTL, 2 * TTL, true, {"hand_over", "release"}},
    [RELEASING] = {"releasing", false, 20000, 0, true, {"release", "withdraw"}},
};

/* Whether a kind has that step. */
static bool has_step(kind_id_t kind, step_id_t step) {
  switch (step) {
  case WAITING:
  case ACQUIRING:
    return true;
  case EXTENDING:
    return kinds[kind].extends;
  case CHANGING:
    return kind == READER || kind == WRITER;
  case RELEASING:
    return kind != LATCH;
  default:
    return kind < HELD_KINDS;
  }
}

static belay_lock_options_t options_of(step_id_t step) {
  belay_lock_options_t options = with_ttl(steps[step].ttl * slow());
  options.watchdog = steps[step].watched ? BELAY_WATCHDOG_ON : BELAY_WATCHDOG_OFF;
  options.waiter_ttl_ms = WAITER_TTL * slow();
  return options;
}

typedef struct victim {
  env_t *env;
  const step_t *step;
  step_id_t id;
  unsigned sent, kinds;
  player_t first[KINDS], second[KINDS]; /* of one client */
} victim_t;

static victim_t victim;

static void on_trace(void *ctx, const belay_trace_t *trace) {
  const char *const *calls = victim.step->calls;
  (void)ctx;
  if (trace->event != BELAY_TRACE_SENT)
    return;
  bool counts = calls[0] == NULL;
  for (; *calls != NULL; calls++)
    counts = counts || strstr(trace->command, *calls) != NULL;
  victim.sent += counts;
}

static void print_line(const char *what) {
  printf("%s\n", what);
  fflush(stdout);
}

/* Reports that the process is ready, and waits for the start signal. */
static void wait_for_go(void) {
  char line[8];
  print_line("ready");
  if (fgets(line, sizeof line, stdin) == NULL)
    exit(1);
  victim.sent = 0;
}

#define FOR_KINDS(k, step)                                                                         \
  for (kind_id_t k = (kind_id_t)0; k < KINDS; k++)                                                 \
    if (has_step(k, step))

/* Opens all connections and loads the scripts, so that later requests fit into one read of the
 * server. A server that cannot write a reply stops reading. */
static void warm_up(void) {
  FOR_KINDS(k, victim.id) {
    player_come(&victim.second[k]);
    if (k < HELD_KINDS)
      player_await(&victim.second[k]);
    else
      env_run_for(victim.env, 100 * slow());
    player_leave(&victim.second[k]);
    player_await_left(&victim.second[k]);
  }
  env_settle(victim.env);
}

static void prepare(void) {
  step_id_t step = victim.id;
  if (step == ACQUIRING)
    warm_up();
  if (step == ACQUIRING || step == WAITING)
    return;
  FOR_KINDS(k, step)
  player_come(&victim.first[k]);
  env_run_for(victim.env, 20);
  FOR_KINDS(k, step)
  if (k < HELD_KINDS)
    player_await(&victim.first[k]);
  if (step == QUEUED || step == PASSING)
    FOR_KINDS(k, step)
  player_come(&victim.second[k]);
  if (step == RENEWED)
    env_run_for(victim.env, TTL * 3 / 2 * slow());
  env_run_for(victim.env, (step == PASSING ? TTL / 3 : 100) * slow());
}

static void act_with(player_t *p) {
  switch (victim.id) {
  case WAITING:
    player_come(p);
    if (p->kind == ELECTION)
      player_observe(p);
    break;
  case ACQUIRING:
    if (p->kind == LATCH)
      player_begin_count(p, "dead");
    else
      player_come(p);
    break;
  case EXTENDING:
    player_extend(p, 2 * TTL * slow());
    break;
  case CHANGING:
    player_change(p);
    break;
  case PASSING:
  case RELEASING:
    player_leave(p);
    break;
  default: /* nothing is to be done for it */
    break;
  }
}

static _Noreturn void be_victim(const char *url, const char *number) {
  belay_client_options_t client = client_options();
  client.trace = on_trace;
  client.timeout_ms =
      COUNT_MS; /* nothing is done for a second time while the server stands still */
  client.stall_timeout_ms = 60000;
  victim.id = (step_id_t)atoi(number);
  victim.step = &steps[victim.id];
  victim.env = env_open_at(url, &client);
  belay_lock_options_t options = options_of(victim.id);
  FOR_KINDS(k, victim.id) {
    player_init(&victim.first[k], victim.env, victim.env->client, k, 0, &options);
    player_init(&victim.second[k], victim.env, victim.env->client, k, 1, &options);
    victim.kinds++;
  }
  prepare();
  if (victim.step->in_between)
    wait_for_go();
  FOR_KINDS(k, victim.id)
  act_with(&victim.first[k]);
  if (victim.step->in_between) {
    env_until(victim.env, victim.sent >= victim.kinds);
    env_run_for(victim.env, 20); /* and written */
  }
  print_line("there");
  for (;;)
    env_run_for(victim.env, 60000);
}

TEST_ROLE(victim, "--victim") {
  be_victim(argv[2], argv[3]);
}

typedef struct scene {
  step_id_t step;
  server_t *server;
  relay_t *relay; /* of the killed process, with TLS; else NULL */
  env_t *env;
  player_t holder[KINDS]; /* makes the waiters of this kind wait */
  player_t successor[KINDS], other[KINDS];
  int64_t killed, asked[KINDS]; /* time of the kill; time of the query for the rest of the lease */
  int64_t left[KINDS];          /* the rest of the lease at that time, in ms */
} scene_t;

static void open_scene(scene_t *s, step_id_t step) {
  belay_lock_options_t options = watched(20000 * slow());
  *s = (scene_t){.step = step, .server = server_start(NULL)};
  s->env = env_open_at(server_url(s->server), NULL);
  s->relay = servers_are_secure() ? relay_start(server_url(s->server)) : NULL;
  belay_client_t *successors = env_connect(s->env, server_url(s->server), NULL);
  belay_client_t *others = env_connect(s->env, server_url(s->server), NULL);
  FOR_KINDS(k, step) {
    player_init(&s->holder[k], s->env, s->env->client, k, 1, &options);
    options.waiter_ttl_ms = WAITER_TTL * slow();
    belay_lock_options_t o = options;
    o.ttl_ms = steps[step].ttl * slow(); /* a latch's is everybody's */
    player_init(&s->successor[k], s->env, successors, k, 1, &o);
    player_init(&s->other[k], s->env, others, k, 0, &o);
    if (step != WAITING || k >= HELD_KINDS)
      continue;
    player_come(&s->holder[k]);
    player_await(&s->holder[k]);
  }
}

/* Starts a process and kills it at the step. With TLS the server reads and answers one record at
 * a time. An answer to a closed connection makes the server discard unread bytes. So the
 * connection stays open after the process is dead. */
static void kill_one(scene_t *s) {
  char number[8];
  snprintf(number, sizeof number, "%d", (int)s->step);
  const char *url = s->relay != NULL ? relay_url(s->relay) : server_url(s->server);
  const char *argv[] = {process_self(), "--victim", url, number, NULL};
  process_t process = process_start(argv);
  if (steps[s->step].in_between) {
    process_expect_line(&process, "ready");
    server_pause(s->server);
    process_write_line(&process, "go");
  }
  process_expect_line(&process, "there");
  FOR_KINDS(k, s->step) {
    bool listens = kinds[k].notifies && s->step == WAITING;
    bool queues = kinds[k].queue[0] != NULL && (s->step == WAITING || s->step == QUEUED);
    player_until(&s->successor[k], (!queues || kind_queue(s->server, k) > 0) &&
                                       (!listens || kind_listeners(s->server, k) > 0));
  }
  if (s->relay != NULL && steps[s->step].in_between) {
    process_kill(&process, SIGSTOP);
    relay_haunt(s->relay);
  }
  process_finish(&process);
  s->killed = clock_now();
  if (steps[s->step].in_between)
    server_resume(s->server);
}

/* True if the process was killed at this step and its last requests were executed. */
static bool is_as_it_was_left(scene_t *s, kind_id_t k) {
  int64_t left = k < HELD_KINDS ? kind_lease_left(s->server, k) : 0;
  int64_t ttl = steps[s->step].ttl * slow();
  int64_t had = left > 0 ? left + clock_since_ms(s->killed) : 0; /* counted from the kill */
  const char *const *holders = kinds[k].holders;
  switch (s->step) {
  case ACQUIRING:
    return k == LATCH     ? server_integer(s->server, "HLEN", holders[0], NULL) == 3
           : k == BARRIER ? kind_queue(s->server, k) == 1
                          : left > 0;
  case RENEWING:
    return had > ttl * 9 / 10;
  case EXTENDING:
    return had > ttl * 6 / 5;
  case CHANGING:
    return left > 0 && server_integer(s->server, "EXISTS", holders[k == WRITER], NULL) == 1;
  case PASSING:
    return !kinds[k].passes || had > ttl * 9 / 10;
  case RELEASING:
    return left == 0 && (k != BARRIER || kind_queue(s->server, k) == 0);
  case WAITING:
    return k >= HELD_KINDS || left > 10000;
  default:
    return left > 0;
  }
}

static void expect_successors(scene_t *s) {
  FOR_KINDS(k, s->step) {
    player_until(&s->successor[k], is_as_it_was_left(s, k));
    s->asked[k] = clock_now();
    s->left[k] = s->step == WAITING || k >= HELD_KINDS ? 0 : kind_lease_left(s->server, k);
  }
  expect_ttl_on_every_key(s->server);
  FOR_KINDS(k, s->step)
  if (k < HELD_KINDS) {
    player_come(&s->successor[k]);
    if (s->step == WAITING)
      player_leave(&s->holder[k]);
  }
  FOR_KINDS(k, s->step)
  if (k < HELD_KINDS)
    player_await(&s->successor[k]);
  FOR_KINDS(k, s->step)
  if (k < HELD_KINDS) {
    int64_t after = (s->successor[k].came_time - s->asked[k]) / MS;
    int64_t took = (s->successor[k].came_time - s->killed) / MS;
    if (after < s->left[k] - 3)
      fail_msg("%s, %s: granted after %lld ms, but the lease had %lld left", steps[s->step].name,
               kinds[k].name, (long long)after, (long long)s->left[k]);
    if (took > (steps[s->step].lease + WAITER_TTL + 1500) * slow())
      fail_msg("%s, %s: granted %lld ms after the kill", steps[s->step].name, kinds[k].name,
               (long long)took);
    player_leave(&s->successor[k]);
    player_await_left(&s->successor[k]);
  }
}

/* The count of the killed process is not counted twice. */
static void open_latch(scene_t *s) {
  player_t *successor = &s->successor[LATCH], *other = &s->other[LATCH];
  bool counted = s->step == ACQUIRING;
  player_come(successor);
  assert_int_equal(player_count(other, "dead"), 1);
  assert_int_equal(successor->came, 0);
  assert_int_equal(player_count(other, counted ? "dead" : "second") > 0, counted);
  if (counted)
    assert_int_equal(player_count(other, "second"), 0);
  player_await(successor);
}

/* The place of the killed process expires. Two other parties pass in the first generation. */
static void pass_barrier(scene_t *s) {
  player_t *successor = &s->successor[BARRIER], *other = &s->other[BARRIER];
  int64_t rest = s->killed + WAITER_TTL * slow() * MS - clock_now();
  env_run_for(s->env, (rest > 0 ? rest / MS : 0) + 300 * slow());
  player_come(successor);
  env_run_for(s->env, 100 * slow());
  assert_int_equal(successor->came, 0);
  player_come(other);
  player_await(successor);
  player_await(other);
  assert_int_equal(successor->grant, 1);
  assert_int_equal(other->grant, 1);
}

/* After all processes have ended, the remaining keys expire. */
static void close_scene(scene_t *s) {
  char key[256] = "";
  env_settle(s->env);
  env_close(s->env);
  expect_ttl_on_every_key(s->server);
  int64_t began = clock_now();
  if (has_step(LATCH,
               s->step)) { /* it is remembered for as long as a count of it may be sent again */
    int64_t ttl = server_integer(s->server, "PTTL", kinds[LATCH].holders[0], NULL);
    assert_between(ttl, -2, COUNT_MS + 20000 * slow());
    server_do(s->server, "DEL", kinds[LATCH].holders[0], NULL);
  }
  server_do(s->server, "DEL", kinds[BARRIER].holders[0], NULL); /* and so is a barrier */
  while (keys_left(s->server, key, sizeof key) > 0) {
    if (strstr(key, "::contended") != NULL) /* a waiter's hint, which lives some seconds longer */
      server_do(s->server, "DEL", key, NULL);
    if (clock_since_ms(began) > (1000 + 500) * slow())
      fail_msg("%s: %s is still there", steps[s->step].name, key);
    stall_ms(10);
  }
  if (s->relay != NULL)
    relay_stop(s->relay);
  server_stop(s->server);
}

static void test_killed(void **state) {
  scene_t s;
  open_scene(&s, (step_id_t)(intptr_t)*state);
  kill_one(&s);
  expect_successors(&s);
  if (has_step(LATCH, s.step))
    open_latch(&s);
  if (has_step(BARRIER, s.step))
    pass_barrier(&s);
  close_scene(&s);
}

TEST_ROWS(killed) {
  for (int i = 0; i < STEPS; i++)
    test_add(__LINE__, test_killed, (void *)(intptr_t)i, "killed_%s", steps[i].name);
}

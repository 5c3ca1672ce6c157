#include "support/load/contest.h"

#include <stdio.h>

#define HOLD_MS 2
#define REST_MS 10 /* others have their turn */
#define IN_FLIGHT_MS 100

static contestant_t *contestant_of(const player_t *p) {
  return p->arg;
}

static void come(player_t *p) {
  contestant_of(p)->asked = clock_now();
  player_come(p);
}

/* ---- turns ---- */

static bool anybody_has(const contest_t *contest, kind_id_t kind) {
  for (int i = 0; i < CONTEST_EACH; i++)
    if (contest->player[kind][i].has)
      return true;
  return false;
}

/* It was wanted since the first of those who want it came. */
static int64_t wanted_since(const contest_t *contest, const player_t *granted) {
  int64_t since = contestant_of(granted)->asked;
  for (int i = 0; i < CONTEST_EACH; i++) {
    const player_t *p = &contest->player[granted->kind][i];
    int64_t asked = contest->contestant[granted->kind][i].asked;
    if (p->came < p->begun && asked < since)
      since = asked;
  }
  return since;
}

static void measure(contest_t *contest, const player_t *p) {
  int64_t *free_since = &contest->free_since[p->kind], since = wanted_since(contest, p);
  if (*free_since == 0)
    return;
  since = since > *free_since ? since : *free_since;
  int64_t took = clock_since_ms(since);
  if (took > contest->longest[p->kind])
    contest->longest[p->kind] = took;
  *free_since = 0;
}

static void note_failure(contest_t *contest, const player_t *p, int error) {
  if (contest->over)
    return;
  contest->failures[p->kind]++;
  contest->error[p->kind] = error;
}

static void judge(contest_t *contest, player_t *p) {
  if (clock_now() < contest->forgotten)
    p->forgotten = true;
  contest->clashes[p->kind] += players_clash(contest->player[p->kind], CONTEST_EACH);
  if (!kinds[p->kind].numbers || p->forgotten)
    return;
  contest->backward[p->kind] += p->grant <= contest->number[p->kind];
  contest->number[p->kind] = p->grant;
}

static void on_timer(uv_timer_t *timer) {
  player_t *p = timer->data;
  if (player_has(p))
    player_leave(p);
  else if (!p->has && p->left == p->leaving && p->came == p->begun)
    come(p);
}

static void on_event(player_t *p, happening_t what) {
  contestant_t *self = contestant_of(p);
  contest_t *contest = self->contest;
  int64_t next = REST_MS;
  if (what == CAME && p->status == 0) {
    self->grants++;
    measure(contest, p);
    judge(contest, p);
    next = HOLD_MS;
  } else {
    int error = what == CAME ? p->status : what == WENT ? p->left_status : BELAY_ENOTOWNER;
    if (error != 0)
      note_failure(contest, p, error);
    if (!anybody_has(contest, p->kind) && contest->free_since[p->kind] == 0)
      contest->free_since[p->kind] = clock_now();
  }
  if (!contest->over)
    uv_timer_start(&self->timer, on_timer, (uint64_t)next, 0);
}

/* ---- for the test ---- */

#define FOR_ALL(kind, i)                                                                           \
  for (kind_id_t kind = (kind_id_t)0; kind < HELD_KINDS; kind++)                                   \
    for (unsigned i = 0; i < CONTEST_EACH; i++)

void contest_begin(contest_t *contest, env_t *env, const char *url,
                   const belay_client_options_t *client_options,
                   const belay_lock_options_t *options) {
  belay_client_t *client[CONTEST_CLIENTS];
  *contest = (contest_t){.env = env};
  for (int i = 0; i < CONTEST_CLIENTS; i++)
    client[i] = env_connect(env, url, client_options);
  FOR_ALL(kind, i) {
    player_t *p = &contest->player[kind][i];
    contestant_t *self = &contest->contestant[kind][i];
    player_init(p, env, client[i / 2 % CONTEST_CLIENTS], kind, i, options);
    self->contest = contest;
    p->arg = self;
    p->then = on_event;
    uv_timer_init(&env->loop, &self->timer);
    self->timer.data = p;
    come(p);
  }
}

void contest_forget(contest_t *contest) {
  contest->forgotten = clock_now() + IN_FLIGHT_MS * slow() * MS;
  FOR_ALL(kind, i)
  contest->player[kind][i].forgotten |= contest->player[kind][i].has;
}

void contest_await_turns(contest_t *contest, unsigned turns) {
  unsigned before[HELD_KINDS][CONTEST_EACH];
  FOR_ALL(kind, i)
  before[kind][i] = contest->contestant[kind][i].grants;
  FOR_ALL(kind, i)
  player_until(&contest->player[kind][i],
               contest->contestant[kind][i].grants >= before[kind][i] + turns);
}

/* Holders leave, and so do waiters, which may be granted the lock meanwhile. */
static bool all_have_gone(contest_t *contest) {
  bool gone = true;
  FOR_ALL(kind, i) {
    player_t *p = &contest->player[kind][i];
    contestant_t *self = &contest->contestant[kind][i];
    bool waits = p->came < p->begun;
    if (player_has(p) || (waits && !self->gave_up))
      player_leave(p);
    self->gave_up |= waits;
    gone = gone && p->came == p->begun && p->left == p->leaving && !p->has;
  }
  return gone;
}

void contest_end(contest_t *contest) {
  contest->over = true;
  FOR_ALL(kind, i) {
    uv_close((uv_handle_t *)&contest->contestant[kind][i].timer, NULL);
  }
  env_until(contest->env, all_have_gone(contest));
  env_settle(contest->env);
  for (kind_id_t kind = (kind_id_t)0; kind < HELD_KINDS; kind++) {
    if (contest->clashes[kind] > 0)
      fail_msg("NEVER: %s: %u times too many had it", kinds[kind].name, contest->clashes[kind]);
    if (contest->backward[kind] > 0)
      fail_msg("NEVER: %s: %u numbers were not larger than the one before", kinds[kind].name,
               contest->backward[kind]);
  }
}

void contest_expect_no_failures(const contest_t *contest) {
  for (kind_id_t kind = (kind_id_t)0; kind < HELD_KINDS; kind++)
    if (contest->failures[kind] > 0)
      fail_msg("%s: %u failures, the last is %s", kinds[kind].name, contest->failures[kind],
               belay_err_name(contest->error[kind]));
}

void contest_expect_prompt(const contest_t *contest, int64_t ms) {
  kind_id_t worst = LOCK;
  for (kind_id_t kind = (kind_id_t)0; kind < HELD_KINDS; kind++)
    if (contest->longest[kind] > contest->longest[worst])
      worst = kind;
  print_message("free and wanted for %lld ms at most: %s\n", (long long)contest->longest[worst],
                kinds[worst].name);
  if (contest->longest[worst] > ms)
    fail_msg("%s was free for %lld ms, though it was wanted", kinds[worst].name,
             (long long)contest->longest[worst]);
}

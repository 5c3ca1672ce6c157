#include "support/load/player.h"

#include <stdio.h>

#define LOCK_KEY(name) "belay::lock::{" name "}"
#define RW_KEY(name) "belay::rwlock::{" name "}"
#define SEMAPHORE_KEY(name) "belay::semaphore::{" name "}"

// clang-format off
const kind_t kinds[KINDS] = {
    [LOCK] = {.name = "lock", .holders = {LOCK_KEY("lock")}, .notifies = true, .passes = true,
     .extends = true},
    [LOCK_FENCED] = {.name = "fenced", .holders = {LOCK_KEY("fenced")}, .notifies = true,
     .passes = true, .numbers = true, .extends = true},
    [LOCK_ALONE] = {.name = "alone", .holders = {LOCK_KEY("alone")}, .notifies = true,
     .extends = true},
    [LOCK_POLLING] = {.name = "polling", .holders = {LOCK_KEY("polling")}, .passes = true,
     .extends = true},
    [REENTRANT] = {.name = "reentrant", .holders = {LOCK_KEY("reentrant")}, .notifies = true,
     .extends = true},
    [FAIR] = {.name = "fair", .holders = {LOCK_KEY("fair")},
     .queue = {LOCK_KEY("fair") "::queue"}, .notifies = true, .numbers = true, .extends = true},
    [READER] = {.name = "reader", .holders = {RW_KEY("reader"), RW_KEY("reader") "::readers"},
     .queue = {RW_KEY("reader") "::writers", RW_KEY("reader") "::admitted"}, .notifies = true,
     .extends = true},
    [WRITER] = {.name = "writer", .holders = {RW_KEY("writer"), RW_KEY("writer") "::readers"},
     .queue = {RW_KEY("writer") "::writers"}, .notifies = true, .numbers = true, .extends = true},
    [SEMAPHORE] = {.name = "semaphore", .holders = {SEMAPHORE_KEY("semaphore")}, .notifies = true,
     .extends = true},
    [SEMAPHORE_FAIR] = {.name = "permits", .holders = {SEMAPHORE_KEY("permits")},
     .queue = {SEMAPHORE_KEY("permits") "::queue"}, .notifies = true, .extends = true},
    [MULTILOCK] = {.name = "multilock",
     .holders = {LOCK_KEY("multilock"), LOCK_KEY("multilock too")}, .notifies = true},
    [ELECTION] = {.name = "election", .holders = {"belay::election::{election}"}, .notifies = true,
     .numbers = true},
    [LATCH] = {.name = "latch", .holders = {"belay::latch::{latch}"}, .notifies = true},
    [BARRIER] = {.name = "barrier", .holders = {"belay::barrier::{barrier}"},
     .queue = {"belay::barrier::{barrier}::parties"}, .notifies = true},
};
// clang-format on

/* ---- callbacks ---- */

static void notify(player_t *p, happening_t what) {
  env_t *env = p->env;
  unsigned inside = env->inside;
  env->wrong += inside + (p->came > p->begun) + (p->left > p->leaving) + (p->changed > p->changing);
  env->inside = 0;
  if (p->then != NULL)
    p->then(p, what);
  env->inside = inside;
}

static void came(player_t *p, int status, uint64_t grant) {
  env_note(p->env, status);
  p->came++;
  p->status = status;
  p->has = status == 0 && p->kind < HELD_KINDS;
  p->forgotten = false;
  if (status == 0)
    p->grant = grant;
  p->came_time = clock_now();
  notify(p, CAME);
}

static void went(player_t *p, int status) {
  env_note(p->env, status);
  p->left++;
  p->left_status = status;
  p->left_time = clock_now();
  notify(p, WENT);
}

static void lost(player_t *p, belay_lost_t reason) {
  p->lost++;
  p->reason = reason;
  p->lost_time = clock_now();
  p->has = false;
  notify(p, LOST);
}

static void lock_came(belay_lock_t *lock, int status) {
  came(belay_lock_data(lock), status, belay_lock_fence(lock));
}

static void lock_went(belay_lock_t *lock, int status) {
  went(belay_lock_data(lock), status);
}

static void lock_changed(belay_lock_t *lock, int status) {
  player_t *p = belay_lock_data(lock);
  env_note(p->env, status);
  p->changed++;
  p->change_status = status;
}

static void lock_lost(belay_lock_t *lock, belay_lost_t reason) {
  lost(belay_lock_data(lock), reason);
}

static void multilock_came(belay_multilock_t *lock, int status) {
  came(belay_multilock_data(lock), status, 0);
}

static void multilock_went(belay_multilock_t *lock, int status) {
  went(belay_multilock_data(lock), status);
}

static void multilock_lost(belay_multilock_t *lock, belay_lost_t reason) {
  lost(belay_multilock_data(lock), reason);
}

/* The callback elected() reports a success, too, with the term. */
static void campaigned(belay_election_t *election, int status) {
  if (status != 0)
    came(belay_election_data(election), status, 0);
}

static void elected(belay_election_t *election, uint64_t term) {
  came(belay_election_data(election), 0, term);
}

static void resigned(belay_election_t *election, int status) {
  went(belay_election_data(election), status);
}

static void deposed(belay_election_t *election, belay_lost_t reason) {
  lost(belay_election_data(election), reason);
}

static void observed(belay_election_t *election, int status, const belay_leader_t *leader) {
  player_t *p = belay_election_data(election);
  if (status == 0) {
    p->sights++;
    p->seen = leader->term;
  }
}

static void latch_opened(belay_latch_t *latch, int status) {
  came(belay_latch_data(latch), status, 0);
}

static void barrier_opened(belay_barrier_t *barrier, int status, uint64_t generation) {
  came(belay_barrier_data(barrier), status, generation);
}

/* ---- making ---- */

static int make_lock(player_t *p, belay_lock_options_t *o, const char *name) {
  size_t len = strlen(name);
  belay_rwlock_mode_t mode =
      p->kind == WRITER || p->number % 2 == 1 ? BELAY_RWLOCK_WRITE : BELAY_RWLOCK_READ;
  unsigned permits = p->number % 3 == 2 ? 1 : 2;
  switch (p->kind) {
  case READER:
  case WRITER:
    o->fencing = p->kind == WRITER;
    return belay_rwlock_new(&p->client, 1, belay_bytes(name, len), mode, o, &p->lock);
  case SEMAPHORE:
  case SEMAPHORE_FAIR:
    o->fair = p->kind == SEMAPHORE_FAIR;
    return belay_semaphore_new(
        &p->client, 1, belay_bytes(name, len),
        &(belay_semaphore_size_t){.limit = SEMAPHORE_LIMIT, .permits = permits}, o, &p->lock);
  case REENTRANT:
    o->owner = belay_string(p->number % 2 == 0 ? "even" : "odd");
    break;
  default:
    o->fair = p->kind == FAIR;
    o->fencing = p->kind == LOCK_FENCED || p->kind == FAIR;
    o->max_handovers = p->kind == LOCK_ALONE ? 0 : o->max_handovers;
    o->wakeup = p->kind == LOCK_POLLING ? BELAY_WAKE_POLL : o->wakeup;
  }
  return belay_lock_new(p->client, belay_bytes(name, len), o, &p->lock);
}

static int make_multilock(player_t *p, const belay_lock_options_t *o, const char *name) {
  static const char second[] = "multilock too";
  belay_multilock_name_t names[] = {{p->client, belay_string(name)},
                                    {p->client, belay_string(second)}};
  return belay_multilock_new(names, 2, o, multilock_lost, &p->multilock);
}

static int make_election(player_t *p, const belay_lock_options_t *o, const char *name) {
  belay_election_options_t options;
  belay_election_options_init(&options);
  options.ttl_ms = o->ttl_ms;
  options.retry_min_ms = o->retry_min_ms;
  options.retry_max_ms = o->retry_max_ms;
  options.backoff_max_ms = o->retry_max_ms > 300 ? o->retry_max_ms : 300;
  options.on_elected = elected;
  options.on_deposed = deposed;
  options.on_observe = observed;
  options.data = p;
  return belay_election_new(p->client, belay_string(name), &options, &p->election);
}

static int make_meeting(player_t *p, const belay_lock_options_t *o, const char *name) {
  belay_latch_options_t options;
  int error;
  belay_latch_options_init(&options);
  options.count = MEETING;
  options.ttl_ms = o->ttl_ms > 1000 ? o->ttl_ms : 1000;
  options.retry_min_ms = o->retry_min_ms;
  options.retry_max_ms = o->retry_max_ms;
  options.waiter_ttl_ms = o->waiter_ttl_ms;
  if (p->kind == LATCH) {
    error = belay_latch_new(p->client, belay_string(name), &options, &p->latch);
    if (error == 0)
      belay_latch_set_data(p->latch, p);
    return error;
  }
  error = belay_barrier_new(p->client, belay_string(name), &options, &p->barrier);
  if (error == 0)
    belay_barrier_set_data(p->barrier, p);
  return error;
}

void player_init(player_t *p, env_t *env, belay_client_t *client, kind_id_t kind, unsigned number,
                 const belay_lock_options_t *options) {
  const char *name = kinds[kind].name;
  belay_lock_options_t o = *options;
  int error;
  *p = (player_t){.env = env, .client = client, .kind = kind, .number = number};
  o.data = p;
  o.on_lost = kind == MULTILOCK ? NULL : lock_lost;
  if (kind == MULTILOCK)
    error = make_multilock(p, &o, name);
  else if (kind == ELECTION)
    error = make_election(p, &o, name);
  else if (kind >= HELD_KINDS)
    error = make_meeting(p, &o, name);
  else
    error = make_lock(p, &o, name);
  if (error != 0)
    fail_msg("%s: %s: %s", name, belay_strerror(error), belay_detail(env->belay));
}

/* ---- doing ---- */

static void must(const player_t *p, const char *what, int error) {
  if (error != 0)
    fail_msg("%s %u %s: %s", kinds[p->kind].name, p->number, what, belay_err_name(error));
}

void player_come(player_t *p) {
  p->begun++;
  p->env->inside++;
  must(p, "comes",
       p->multilock  ? belay_multilock_acquire(p->multilock, BELAY_FOREVER, multilock_came)
       : p->election ? belay_election_campaign(p->election, campaigned)
       : p->latch    ? belay_latch_wait(p->latch, BELAY_FOREVER, latch_opened)
       : p->barrier  ? belay_barrier_wait(p->barrier, BELAY_FOREVER, barrier_opened)
                     : belay_lock_acquire(p->lock, BELAY_FOREVER, lock_came));
  p->env->inside--;
}

static int give_up(player_t *p) {
  return p->multilock ? belay_multilock_cancel(p->multilock)
         : p->latch   ? belay_latch_cancel(p->latch)
         : p->barrier ? belay_barrier_cancel(p->barrier)
                      : belay_lock_cancel(p->lock);
}

void player_leave(player_t *p) {
  bool releases = p->has || p->election != NULL;
  p->leaving += releases;
  p->has = false;
  p->env->inside++;
  must(p, "leaves",
       !releases      ? give_up(p)
       : p->election  ? belay_election_resign(p->election, resigned)
       : p->multilock ? belay_multilock_release(p->multilock, BELAY_DEFAULT, multilock_went)
                      : belay_lock_release(p->lock, BELAY_DEFAULT, lock_went));
  p->env->inside--;
}

void player_extend(player_t *p, int64_t ttl_ms) {
  p->changing++;
  must(p, "extends", belay_lock_extend(p->lock, ttl_ms, BELAY_DEFAULT, lock_changed));
}

void player_change(player_t *p) {
  bool writes = belay_rwlock_mode(p->lock) == BELAY_RWLOCK_WRITE;
  p->changing++;
  must(p, "changes",
       (writes ? belay_rwlock_downgrade : belay_rwlock_upgrade)(p->lock, BELAY_DEFAULT,
                                                                lock_changed));
}

void player_observe(player_t *p) {
  must(p, "observes", belay_election_observe(p->election, 1));
}

static void counted(belay_request_t *request, int status, unsigned left) {
  player_t *p = request->data;
  env_note(p->env, status);
  p->changed++;
  p->change_status = status;
  p->to_count = left;
}

void player_begin_count(player_t *p, const char *operation) {
  p->request = (belay_request_t){.data = p};
  p->changing++;
  must(p, "counts",
       belay_latch_count_down(p->latch, &p->request, belay_string(operation), counted));
}

unsigned player_count(player_t *p, const char *operation) {
  player_begin_count(p, operation);
  player_until(p, p->changed == p->changing);
  must(p, "counted", p->change_status);
  return p->to_count;
}

/* ---- waiting ---- */

void player_wait_begin(const player_t *p, const char *awaited) {
  static char text[256];
  snprintf(text, sizeof text, "%s %u: %s", kinds[p->kind].name, p->number, awaited);
  env_wait_begin(p->env, text);
}

void player_await(player_t *p) {
  player_until(p, p->came == p->begun);
  must(p, "came", p->status);
}

void player_await_left(player_t *p) {
  player_until(p, p->left == p->leaving);
  must(p, "left", p->left_status);
}

/* ---- overlapping holds ---- */

bool player_has(const player_t *p) {
  if (!p->has)
    return false;
  return (p->multilock  ? belay_multilock_remaining_us(p->multilock)
          : p->election ? belay_election_remaining_us(p->election)
                        : belay_lock_remaining_us(p->lock)) > 0;
}

static bool may_both(const player_t *a, const player_t *b) {
  if (a->kind == READER || a->kind == WRITER)
    return belay_rwlock_mode(a->lock) == BELAY_RWLOCK_READ &&
           belay_rwlock_mode(b->lock) == BELAY_RWLOCK_READ;
  return a->kind == SEMAPHORE || a->kind == SEMAPHORE_FAIR ||
         (a->kind == REENTRANT && a->client == b->client && a->number % 2 == b->number % 2);
}

static bool counts(const player_t *p) {
  return player_has(p) && !p->forgotten;
}

unsigned players_clash(const player_t *players, unsigned n) {
  unsigned clashes = 0, permits = 0;
  for (unsigned i = 0; i < n; i++) {
    if (!counts(&players[i]))
      continue;
    permits += players[i].number % 3 == 2 ? 1 : 2;
    for (unsigned j = 0; j < i; j++)
      clashes += counts(&players[j]) && !may_both(&players[i], &players[j]);
  }
  bool limited = players->kind == SEMAPHORE || players->kind == SEMAPHORE_FAIR;
  return clashes + (limited && permits > SEMAPHORE_LIMIT);
}

/* ---- keys of the server ---- */

static int64_t now_of(server_t *server) {
  const resp_t *time = server_ask(server, "TIME", NULL);
  return atoll(time->items[0]->str) * 1000 + atoll(time->items[1]->str) / 1000;
}

static int64_t lease_of(server_t *server, const char *key) {
  const resp_t *reply = server_ask(server, "TYPE", key, NULL);
  if (strcmp(reply->str, "zset") != 0) {
    int64_t left = server_integer(server, "PTTL", key, NULL);
    return left > 0 ? left : 0;
  }
  reply = server_ask(server, "ZRANGE", key, "0", "0", "REV", "WITHSCORES", NULL);
  int64_t until = reply->count == 2 ? atoll(reply->items[1]->str) : 0, now = now_of(server);
  return until > now ? until - now : 0;
}

int64_t kind_lease_left(server_t *server, kind_id_t kind) {
  int64_t left = 0;
  for (unsigned i = 0; i < 2 && kinds[kind].holders[i] != NULL; i++) {
    int64_t one = lease_of(server, kinds[kind].holders[i]);
    left = one > left ? one : left;
  }
  return left;
}

int64_t kind_queue(server_t *server, kind_id_t kind) {
  int64_t n = 0;
  for (unsigned i = 0; i < 2 && kinds[kind].queue[i] != NULL; i++)
    n += server_integer(server, "ZCARD", kinds[kind].queue[i], NULL);
  return n;
}

int64_t kind_listeners(server_t *server, kind_id_t kind) {
  char channel[128];
  int64_t n = 0;
  for (unsigned i = 0; i < 2 && kinds[kind].holders[i] != NULL; i++) {
    snprintf(channel, sizeof channel, "%s::wake", kinds[kind].holders[i]);
    n += server_listeners(server, channel);
  }
  return n;
}

enum { KEYS_MAX = 256 };

/* Their names, which are the caller's to free. */
static size_t list_keys(server_t *server, char *keys[KEYS_MAX]) {
  const resp_t *reply = server_ask(server, "KEYS", "*", NULL);
  assert_true(reply->count <= KEYS_MAX);
  for (size_t i = 0; i < reply->count; i++)
    keys[i] = strdup(reply->items[i]->str);
  return reply->count;
}

static bool ends_with(const char *text, const char *end) {
  size_t len = strlen(text), end_len = strlen(end);
  return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

void expect_ttl_on_every_key(server_t *server) {
  char *keys[KEYS_MAX];
  size_t n = list_keys(server, keys);
  for (size_t i = 0; i < n; i++) {
    if (server_integer(server, "PTTL", keys[i], NULL) == -1)
      fail_msg("%s has no ttl", keys[i]);
    free(keys[i]);
  }
}

int64_t keys_left(server_t *server, char *example, size_t size) {
  char *keys[KEYS_MAX];
  size_t n = list_keys(server, keys);
  int64_t left = 0;
  for (size_t i = 0; i < n; i++) {
    if (!ends_with(keys[i], "::fence") && !ends_with(keys[i], "::passed") &&
        !ends_with(keys[i], "::opened")) {
      left++;
      snprintf(example, size, "%s", keys[i]);
    }
    free(keys[i]);
  }
  return left;
}

/* Every lease kind as a least-privilege user, and as a user without one of these rights. */
#include <stdio.h>

#include "support/load/acl_cases.h"
#include "support/load/player.h"
#include "support/fixtures/lease/rw.h"

#define LONG 60000 /* a ttl that no test outlives */
#define PUBSUB "publish subscribe unsubscribe"

/* Another client, as in another process. */
static belay_client_t *elsewhere(env_t *env) {
  return env_connect(env, acl_user_url(env->server), NULL);
}

/* Takes it, extends it and gives it back, twice. */
static int use(contender_t *c) {
  for (int i = 0; i < 2; i++) {
    MUST(acquire(c, 0));
    assert_error(acquire(c, 0), BELAY_ESTATE);
    MUST(extend(c, LONG));
    MUST(release(c));
  }
  return 0;
}

/* The second one waits until the first one gives it back. */
static int hand_on(contender_t *first, contender_t *second, bool is_notified) {
  MUST(acquire(first, 0));
  assert_error(begin_acquire(second, BELAY_FOREVER), 0);
  env_settle(first->env);
  if (second->ended == second->begun)
    return second->status;
  if (is_notified)
    acl_case_await_subscriber(first->env, key_of(first));
  MUST(release(first));
  MUST(outcome(second));
  return release(second);
}

/* The server's queue is full. A new waiter looks for dead waiters and finds none. */
static int be_crowded(contender_t *c) {
  char queue[256], places[256];
  if (!acl_case_allows("zrangebyscore"))
    return 0;
  snprintf(queue, sizeof queue, "%s::queue", key_of(c));
  snprintf(places, sizeof places, "%s::alive", key_of(c));
  server_do(c->env->server, "EVAL",
            "for i = 1, 100000 do redis.call('ZADD', KEYS[1], i, i) end "
            "redis.call('ZADD', KEYS[2], redis.call('TIME')[1] * 1000 + 60000, 1)",
            "2", queue, places, NULL);
  int status = acquire(c, prompt_ms());
  return status == BELAY_EBUSY ? 0 : status;
}

static int fair_lock(env_t *env) {
  belay_lock_options_t options = with_ttl(LONG);
  options.fair = options.fencing = true;
  contender_t *a = contender_new(env, "queue", &options);
  contender_t *b = contender_of(env, elsewhere(env), "queue", &options);
  contender_t *c = contender_of(env, elsewhere(env), "queue", &options);
  MUST(use(a));
  MUST(hand_on(a, b, true));
  MUST(acquire(a, 0));
  assert_error(begin_acquire(b, BELAY_FOREVER), 0);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_settle(env);
  assert_error(cancel(b), 0);
  MUST(release(a));
  MUST(outcome(c));
  MUST(release(c));
  return be_crowded(c);
}

static int reentrant_lock(env_t *env) {
  belay_lock_options_t options = with_ttl(LONG);
  options.owner = belay_string("me");
  options.fencing = true;
  contender_t *outer = contender_new(env, "again", &options);
  contender_t *inner = contender_new(env, "again", &options);
  MUST(acquire(outer, 0));
  MUST(use(inner));
  MUST(extend(outer, LONG));
  return release(outer);
}

static int lock_case(env_t *env) {
  belay_lock_options_t options = with_ttl(LONG);
  contender_t *plain = contender_new(env, "door", &options);
  contender_t *behind = contender_new(env, "door", &options);
  contender_t *other = contender_of(env, elsewhere(env), "door", &options);
  MUST(use(plain));
  MUST(hand_on(plain, behind, false));
  MUST(hand_on(plain, other, true));
  options.fencing = true;
  contender_t *counted = contender_new(env, "gate", &options);
  MUST(use(counted));
  MUST(hand_on(counted, contender_new(env, "gate", &options), false));
  MUST(fair_lock(env));
  return reentrant_lock(env);
}

TEST(locks) {
  acl_case_check(&(acl_case_t){"lock", lock_case, PUBSUB, "unsubscribe", NULL, 0});
}

static void nodes_of(env_t *env, belay_client_t *clients[3]) {
  clients[0] = env->client;
  clients[1] = acl_case_node(env, 1);
  clients[2] = acl_case_node(env, 2);
}

static belay_lock_options_t quorum_options(void) {
  belay_lock_options_t options = with_ttl(LONG);
  options.quarantine = BELAY_QUARANTINE_OFF; /* fresh servers would not vote */
  options.timeout_ms = 2000;
  options.fencing = true;
  return options;
}

static int redlock_case(env_t *env) {
  belay_client_t *clients[3];
  nodes_of(env, clients);
  belay_lock_options_t options = quorum_options();
  MUST(use(contender_over(env, clients, 3, "door", &options)));
  options.fencing = false;
  return use(contender_over(env, clients, 3, "gate", &options));
}

TEST(redlocks) {
  acl_case_check(
      &(acl_case_t){"redlock", redlock_case, PUBSUB, "publish subscribe unsubscribe", NULL, 2});
}

static int change_twice(contender_t *c) {
  for (int i = 0; i < 2; i++) {
    MUST(downgrade(c));
    MUST(upgrade(c));
  }
  return 0;
}

/* A reader has it, a writer waits, and so another reader waits behind that. */
static int be_overtaken(contender_t *reads, contender_t *writes, contender_t *third, bool up) {
  MUST(acquire(reads, 0));
  assert_error(begin_acquire(writes, BELAY_FOREVER), 0);
  env_settle(reads->env);
  assert_error(begin_acquire(third, BELAY_FOREVER), 0);
  env_settle(reads->env);
  if (up) {
    MUST(upgrade(reads));
    MUST(downgrade(reads));
  }
  MUST(release(reads));
  MUST(outcome(up ? third : writes));
  MUST(release(up ? third : writes));
  MUST(outcome(up ? writes : third));
  return release(up ? writes : third);
}

static int rwlock_case(env_t *env) {
  belay_client_t *clients[3], *other = elsewhere(env);
  belay_lock_options_t options = with_ttl(LONG);
  nodes_of(env, clients);
  contender_t *reads = reader_of(env, env->client, "page", &options);
  contender_t *writes = writer_of(env, other, "page", &options);
  MUST(use(reads));
  MUST(use(writes));
  MUST(hand_on(reads, writes, true));
  MUST(hand_on(writes, reads, true));
  MUST(acquire(writes, 0));
  MUST(change_twice(writes));
  MUST(release(writes));
  contender_t *third = reader_of(env, elsewhere(env), "page", &options);
  MUST(be_overtaken(reads, writes, third, false));
  MUST(be_overtaken(reads, writes, third, true));
  options = quorum_options();
  return use(rw_over(env, clients, 3, "book", BELAY_RWLOCK_WRITE, &options));
}

TEST(readers_and_writers) {
  acl_case_check(&(acl_case_t){"rwlock", rwlock_case, PUBSUB, "unsubscribe", NULL, 2});
}

static int come(player_t *p) {
  player_come(p);
  player_until(p, p->came == p->begun);
  return p->status;
}

static int go(player_t *p) {
  player_leave(p);
  player_until(p, p->left == p->leaving);
  return p->left_status;
}

/* The first one has it, and the second one waits for that. */
static int play(env_t *env, kind_id_t kind, player_t *first, player_t *second) {
  belay_lock_options_t options = with_ttl(LONG);
  player_init(first, env, env->client, kind, 0, &options);
  player_init(second, env, elsewhere(env), kind, 0, &options);
  for (int i = 0; i < 2; i++) {
    MUST(come(first));
    player_come(second);
    env_settle(env);
    if (second->came == second->begun)
      return second->status;
    acl_case_await_subscriber(env, kinds[kind].holders[0]);
    MUST(go(first));
    player_until(second, second->came == second->begun);
    MUST(second->status);
    MUST(go(second));
  }
  return 0;
}

static int extend_it(player_t *p) {
  MUST(come(p));
  for (int i = 0; i < 2; i++) {
    player_extend(p, LONG);
    player_until(p, p->changed == p->changing);
    MUST(p->change_status);
  }
  return go(p);
}

static player_t players[4];

static int multilock_case(env_t *env) {
  return play(env, MULTILOCK, &players[0], &players[1]);
}

static int election_case(env_t *env) {
  MUST(play(env, ELECTION, &players[0], &players[1]));
  player_observe(&players[1]);
  MUST(come(&players[0]));
  player_until(&players[1], players[1].seen == players[0].grant || !acl_case_allows(NULL));
  return go(&players[0]);
}

TEST(several_names) {
  acl_case_check(
      &(acl_case_t){"multilock", multilock_case, PUBSUB, "pexpire unsubscribe", NULL, 0});
}

/* Two names, held by a user who is then deprived of a thing. */
static env_t *deprived(const char *word, const belay_lock_options_t *options) {
  server_t *server = server_start(NULL);
  acl_user_set_features(server, "multilock", NULL);
  env_t *env = env_open_at(acl_user_url(server), NULL);
  env->server = server;
  player_init(&players[0], env, env->client, MULTILOCK, 0, options);
  assert_error(come(&players[0]), 0);
  acl_user_set_features(server, "multilock", word);
  return env;
}

TEST(renewal_not_permitted) {
  belay_lock_options_t options = watched(kept_ttl());
  env_t *env = deprived("pexpire", &options);
  env_until(env, players[0].lost == 1);
  assert_error(belay_multilock_error(players[0].multilock, NULL), BELAY_EPERM);
  assert_true(client_stats(env).connects + client_stats(env).connect_errors <= 2);
  env_close(env);
}

/* Without the right to read the holder, the status does not claim another owner. */
TEST(release_without_get) {
  belay_lock_options_t options = with_ttl(LONG);
  env_t *env = deprived("get", &options);
  assert_error(go(&players[0]), BELAY_EPERM);
  assert_int_equal(server_keys(env->server), 2);
  env_close(env);
}

TEST(elections) {
  acl_case_check(&(acl_case_t){"election", election_case, PUBSUB, "unsubscribe", NULL, 0});
}

typedef struct answer {
  belay_request_t request;
  bool is_done;
  int status;
  unsigned limit;
  size_t holders;
} answer_t;

static void on_state(belay_request_t *request, int status, const belay_semaphore_state_t *state) {
  answer_t *q = request->data;
  q->is_done = true;
  q->status = status;
  q->limit = state == NULL ? 0 : state->limit;
}

static void on_holders(belay_request_t *request, int status,
                       const belay_semaphore_holder_t *holders, size_t n) {
  answer_t *q = request->data;
  (void)holders;
  q->is_done = true;
  q->status = status;
  q->holders = n;
}

static int answered(env_t *env, answer_t *q, int error) {
  assert_error(error, 0);
  env_until(env, q->is_done);
  return q->status;
}

/* Calls every query and setter of a semaphore that has holders. */
static int ask(env_t *env, unsigned limit) {
  static answer_t q;
  belay_client_t *client = env->client;
  for (int i = 0; i < 2; i++) {
    q = (answer_t){.request.data = &q};
    MUST(answered(
        env, &q,
        belay_semaphore_resize(client, &q.request, belay_string("semaphore"), limit, on_state)));
    q = (answer_t){.request.data = &q};
    MUST(answered(env, &q,
                  belay_semaphore_read(client, &q.request, belay_string("semaphore"), on_state)));
    assert_int_equal(q.limit, limit);
    q = (answer_t){.request.data = &q};
    MUST(answered(
        env, &q,
        belay_semaphore_holders(client, &q.request, belay_string("semaphore"), on_holders)));
    assert_int_equal(q.holders, 1);
  }
  return 0;
}

static int semaphore_case(env_t *env) {
  belay_lock_options_t options = with_ttl(LONG);
  MUST(play(env, SEMAPHORE, &players[0], &players[1]));
  MUST(play(env, SEMAPHORE_FAIR, &players[2], &players[3]));
  MUST(extend_it(&players[0]));
  MUST(come(&players[0]));
  MUST(ask(env, 5));
  MUST(go(&players[0]));
  options.fair = true;
  contender_t *c = contender_blank(env, &options);
  assert_error(belay_semaphore_new(&env->client, 1, belay_string("full"),
                                   &(belay_semaphore_size_t){.limit = 1, .permits = 1}, &options,
                                   &c->lock),
               0);
  return be_crowded(c);
}

TEST(semaphores) {
  acl_case_check(&(acl_case_t){"semaphore", semaphore_case, PUBSUB, "unsubscribe", NULL, 0});
}

static int await(player_t *p) {
  player_until(p, p->came == p->begun);
  return p->status;
}

/* Somebody waits, and it is counted down. */
static int use_latch(env_t *env, player_t *waits) {
  belay_lock_options_t options = with_ttl(LONG);
  player_init(waits, env, env->client, LATCH, 0, &options);
  player_come(waits);
  env_settle(env);
  if (waits->came == waits->begun)
    return waits->status;
  acl_case_await_subscriber(env, kinds[LATCH].holders[0]);
  for (unsigned i = 0; i < MEETING; i++) {
    player_begin_count(waits, i == 0 ? "a" : "b");
    player_until(waits, waits->changed == waits->changing);
    MUST(waits->change_status);
  }
  return await(waits);
}

/* One comes and goes, and comes again; with the other one it opens. */
static int use_barrier(env_t *env, player_t *first, player_t *second) {
  belay_lock_options_t options = with_ttl(LONG);
  player_init(first, env, env->client, BARRIER, 0, &options);
  player_init(second, env, env->client, BARRIER, 1, &options);
  player_come(first);
  env_settle(env);
  if (first->came < first->begun)
    player_leave(first);
  int status = await(first);
  MUST(status == BELAY_ECANCELED ? 0 : status);
  player_come(first);
  player_come(second);
  MUST(await(second)); /* the last party opens it, or is refused */
  return await(first);
}

static int latch_case(env_t *env) {
  MUST(use_latch(env, &players[0]));
  return use_barrier(env, &players[1], &players[2]);
}

TEST(latches_and_barriers) {
  acl_case_check(&(acl_case_t){"latch", latch_case, PUBSUB, "unsubscribe", NULL, 0});
}

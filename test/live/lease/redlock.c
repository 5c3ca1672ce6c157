/* Redlock on real servers: construction, the minimum of nodes, and the errors. */
#include <stdio.h>

#include "support/deployments/nodes.h"

static belay_lock_tally_t tally_of(const contender_t *c) {
  belay_lock_tally_t tally;
  belay_lock_tally(c->lock, &tally);
  return tally;
}

TEST_IN(acquire_and_release, nodes, nodes_open(5, NULL)) {
  belay_lock_options_t options = unhurried_options(10000);
  contender_t *c = nodes_contender(nodes, "door", &options);
  contender_t *d = nodes_contender(nodes, "door", &options);
  assert_error(try_lock(c), 0);
  assert_between(remaining_ms(c), 9898 - 1000 * slow(), 9898);
  nodes_settle(nodes);
  assert_int_equal(nodes_holding(nodes, c), 5);
  assert_int_equal(tally_of(c).nodes, 5);
  assert_int_equal(tally_of(c).quorum, 3);
  assert_int_equal(tally_of(c).votes[BELAY_VOTE_GRANTED], 5);
  assert_error(try_lock(d), BELAY_EHELD);
  assert_error(extend(c, 20000), 0);
  assert_between(remaining_ms(c), 19798 - 1000 * slow(), 19798);
  assert_error(release(c), 0);
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  assert_ok(try_lock(d), close_lock(d));
  nodes_expect_no_key(nodes);
}

/* On each node it has the key of the plain lock with this name. */
TEST_IN(same_key_as_plain_lock, nodes, nodes_open(3, NULL)) {
  belay_lock_options_t options = unhurried_options(10000);
  contender_t *c = nodes_contender(nodes, "door", &options);
  assert_error(try_lock(c), 0);
  nodes_settle(nodes);
  for (unsigned i = 0; i < 3; i++) {
    contender_t *plain = contender_of(nodes->env, nodes->client[i], "door", NULL);
    assert_error(try_lock(plain), BELAY_EHELD);
  }
}

TEST(tcp_and_unix_servers) {
  needs_quorum();
  enum { NODES = 5 };
  const server_options_t tcp = {.address = "127.0.0.1"};
  server_t *servers[NODES];
  belay_client_t *clients[NODES];
  for (int i = 0; i < NODES; i++)
    servers[i] = server_start(i % 2 == 0 ? &tcp : NULL);
  env_t *env = env_open_with(servers[0], NULL);
  clients[0] = env->client;
  for (int i = 1; i < NODES; i++)
    clients[i] = env_connect(env, server_url(servers[i]), NULL);
  belay_lock_options_t options = unhurried_options(10000);
  contender_t *c = contender_over(env, clients, NODES, "door", &options);
  assert_error(try_lock(c), 0);
  env_settle(env);
  assert_int_equal(tally_of(c).votes[BELAY_VOTE_GRANTED], NODES);
  assert_error(release(c), 0);
  env_settle(env);
  for (int i = 0; i < NODES; i++)
    assert_int_equal(server_keys(servers[i]), 0);
  env_close(env);
  for (int i = 1; i < NODES; i++)
    server_stop(servers[i]);
}

#define NOWHERE "unix:///nowhere/%u"

/* Creates a lock and closes it; returns the error of the constructor. */
static int make(env_t *env, belay_client_t *const *clients, size_t n,
                const belay_lock_options_t *options) {
  belay_lock_t *lock = (belay_lock_t *)env;
  int error = belay_redlock_new(clients, n, belay_string("door"), options, &lock);
  if (error == 0) {
    assert_error(belay_lock_close(lock, NULL), 0);
    return 0;
  }
  assert_null(lock);
  return error;
}

static const struct {
  size_t n;
  bool allow_small;
  int expected;
  unsigned quorum;
} sizes[] = {{0, false, BELAY_EINVAL, 0},
             {0, true, BELAY_EINVAL, 0},
             {1, false, 0, 1},
             {1, true, 0, 1},
             {2, false, BELAY_EINVAL, 0},
             {2, true, 0, 2},
             {3, false, 0, 2},
             {4, false, 0, 3},
             {5, false, 0, 3},
             {6, false, 0, 4},
             {7, false, 0, 4},
             {14, false, 0, 8},
             {15, false, 0, 8},
             {16, false, BELAY_EINVAL, 0}};

TEST_IN(numbers_of_nodes, env, env_open_at("unix:///nowhere", NULL)) {
  belay_client_t *clients[BELAY_NODES_MAX + 1];
  for (unsigned i = 0; i <= BELAY_NODES_MAX; i++) {
    char url[32];
    snprintf(url, sizeof url, NOWHERE, i);
    clients[i] = env_connect(env, url, NULL);
  }
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    belay_lock_options_t options = lock_options();
    options.allow_small = sizes[i].allow_small;
    assert_error(make(env, clients, sizes[i].n, &options), sizes[i].expected);
    if (sizes[i].expected != 0)
      continue;
    contender_t *c = contender_over(env, clients, sizes[i].n, "door", &options);
    assert_int_equal(tally_of(c).nodes, sizes[i].n);
    assert_int_equal(tally_of(c).quorum, sizes[i].quorum);
  }
}

/* A client with another owner or namespace than the others. */
static belay_client_t *client_of_another(env_t *env, const char *owner, const char *space) {
  belay_client_options_t options = client_options();
  options.owner = owner;
  if (space != NULL) {
    options.namespace_parts = &space;
    options.namespace_count = 1;
  }
  return env_connect(env, "unix:///nowhere/else", &options);
}

TEST(invalid_clients) {
  env_t *env = env_open_at("unix:///nowhere/0", NULL), *other = env_open_at("unix:///x", NULL);
  belay_client_t *a = env->client, *b = env_connect(env, "unix:///nowhere/1", NULL);
  belay_client_t *c = env_connect(env, "unix:///nowhere/2", NULL);
  const struct {
    belay_client_t *clients[3];
    const char *detail;
  } cases[] = {
      {{a, b, a}, "clients[2]: the same client as clients[0]"},
      {{a, b, b}, "clients[2]: the same client as clients[1]"},
      {{a, client_of_another(env, "somebody", NULL), c},
       "clients[1]: another owner than clients[0]"},
      {{a, b, client_of_another(env, NULL, "elsewhere")},
       "clients[2]: another namespace than clients[0]"},
      {{a, b, other->client}, "clients[2]: on another loop than clients[0]"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_error(make(env, cases[i].clients, 3, NULL), BELAY_EINVAL);
    assert_string_equal(belay_detail(env->belay), cases[i].detail);
  }
  assert_error(make(env, (belay_client_t *[]){a, b, c}, 3, NULL), 0);
  assert_error(make(env, (belay_client_t *[]){a, b, NULL}, 3, NULL), BELAY_EINVAL);
  assert_error(make(env, (belay_client_t *[]){NULL, b, c}, 3, NULL), BELAY_EINVAL);
  assert_error(make(env, NULL, 3, NULL), BELAY_EINVAL);
  env_close(other);
  env_close(env);
}

TEST_IN(node_timeout_range, env, env_open_at("unix:///nowhere/0", NULL)) {
  static const struct {
    int64_t ttl_ms, timeout_ms;
    int expected;
  } cases[] = {
      {10000, 1000, 0}, {10000, 1001, BELAY_EINVAL}, {1000, 100, 0}, {1000, 101, BELAY_EINVAL},
      {50, 5, 0},       {50, 6, BELAY_EINVAL},       {20, 5, 0},     {20, 6, BELAY_EINVAL},
      {10000, 1, 0},    {10000, 0, BELAY_EINVAL}};
  belay_client_t *clients[3];
  clients[0] = env->client;
  clients[1] = env_connect(env, "unix:///nowhere/1", NULL);
  clients[2] = env_connect(env, "unix:///nowhere/2", NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    belay_lock_options_t options = redlock_options(cases[i].ttl_ms);
    options.timeout_ms = cases[i].timeout_ms;
    assert_error(make(env, clients, 3, &options), cases[i].expected);
  }
}

/* Three clients for two servers. */
static void open_twins(nodes_t *nodes, belay_client_t *clients[3]) {
  clients[0] = nodes->client[0];
  clients[1] = nodes->client[1];
  clients[2] = env_connect(nodes->env, server_url(nodes->server[1]), NULL);
}

/* One server's two votes would be a majority of three. */
TEST(duplicate_server_found_by_acquire) {
  static const int64_t waits[] = {0, 60000};
  for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
    belay_client_t *clients[3];
    nodes_t *nodes = nodes_open(2, NULL);
    open_twins(nodes, clients);
    belay_lock_options_t options = unhurried_options(10000);
    contender_t *c = contender_over(nodes->env, clients, 3, "door", &options);
    nodes_pause(nodes, 1);
    assert_error(acquire(c, waits[i]), BELAY_EDUPLICATE);
    nodes_resume(nodes);
    nodes_expect_no_key(nodes);
    nodes_close(nodes);
  }
}

/* The duplicate is found when its second client connects. Until then both servers are a
 * majority. */
TEST_IN(duplicate_server_has_one_vote, nodes, nodes_open(2, NULL)) {
  belay_client_t *clients[3];
  open_twins(nodes, clients);
  belay_lock_options_t options = unhurried_options(10000);
  contender_t *c = contender_over(nodes->env, clients, 3, "door", &options);
  for (int i = 0; i < 20; i++) {
    int status = try_lock(c);
    assert_error(status, status == 0 ? 0 : BELAY_EDUPLICATE);
    assert_int_equal(nodes_holding(nodes, c), status == 0 ? 2 : 0);
    if (status == 0) {
      assert_true(tally_of(c).votes[BELAY_VOTE_GRANTED] >= 2);
      assert_error(release(c), 0);
    }
    nodes_expect_no_key(nodes);
  }
}

TEST_IN(duplicate_server_found_by_constructor, nodes, nodes_open(2, NULL)) {
  belay_client_t *clients[3];
  open_twins(nodes, clients);
  for (int i = 0; i < 3; i++) {
    contender_t *plain = contender_of(nodes->env, clients[i], "another door", NULL);
    assert_error(acquire(plain, 10000), 0); /* connected */
    assert_error(release(plain), 0);
  }
  assert_error(make(nodes->env, clients, 3, NULL), BELAY_EDUPLICATE);
}

/* Makes the server refuse with this error. */
static void refuse_with(server_t *server, const contender_t *c, int error) {
  if (error == BELAY_EWRONGTYPE)
    server_do(server, "HSET", key_of(c), "a", "b", NULL);
  else if (error == BELAY_EOOM)
    server_do(server, "CONFIG", "SET", "maxmemory", "1", NULL);
  else if (error == BELAY_EAUTH)
    server_do(server, "CONFIG", "SET", "requirepass", "another", NULL);
  else
    server_do(server, "ACL", "SETUSER", "default", "-set", "-eval", "-evalsha", NULL);
}

/* Makes the next attempt on one node end with this status. */
static void prepare_status(nodes_t *nodes, contender_t *c, int status) {
  if (status == BELAY_EHELD) {
    nodes_occupy(nodes, 0, c, 60000);
  } else if (status == BELAY_EUNREACHABLE) {
    nodes_kill(nodes, 1);
    env_run_for(nodes->env, 50);
  } else if (status == BELAY_EUNKNOWN) {
    nodes_pause(nodes, 1);
  } else if (status != 0) {
    refuse_with(nodes->server[0], c, status);
  }
}

TEST(statuses_of_one_node) {
  static const int statuses[] = {0,          BELAY_EHELD,     BELAY_EUNREACHABLE, BELAY_EUNKNOWN,
                                 BELAY_EOOM, BELAY_EWRONGTYPE};
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    for (int plain = 0; plain < 2; plain++) {
      nodes_t *nodes = nodes_open(1, NULL);
      belay_lock_options_t options = redlock_options(10000);
      options.timeout_ms = prompt_ms();
      contender_t *c = plain ? contender_new(nodes->env, "door", &options)
                             : nodes_contender(nodes, "door", &options);
      nodes_warm(nodes);
      prepare_status(nodes, c, statuses[i]);
      assert_error(try_lock(c), statuses[i]);
      assert_int_equal(tally_of(c).nodes, 1);
      assert_int_equal(tally_of(c).quorum, 1);
      nodes_close(nodes);
    }
}

static const struct {
  unsigned n, killed;
  int expected;
} losses[] = {
    {2, 0, 0}, {2, 1, BELAY_ENOQUORUM}, {2, 2, BELAY_ENOQUORUM},
    {3, 1, 0}, {3, 2, BELAY_ENOQUORUM}, {3, 3, BELAY_ENOQUORUM},
    {4, 1, 0}, {4, 2, BELAY_ENOQUORUM}, {4, 4, BELAY_ENOQUORUM},
    {5, 2, 0}, {5, 3, BELAY_ENOQUORUM}, {5, 5, BELAY_ENOQUORUM},
    {7, 3, 0}, {7, 4, BELAY_ENOQUORUM},
};

/* warm: connections are up before the nodes are killed. */
static void lose(size_t i, bool warm) {
  const int64_t deadline_ms = 200 * slow();
  nodes_t *nodes = nodes_open(losses[i].n, NULL);
  belay_lock_options_t options = unhurried_options(10 * deadline_ms);
  options.allow_small = true;
  contender_t *c = nodes_contender(nodes, "door", &options);
  if (warm)
    nodes_warm(nodes);
  nodes_kill(nodes, losses[i].killed);
  env_run_for(nodes->env, 20);
  assert_error(try_lock(c), losses[i].expected);
  if (c->status == 0)
    assert_error(release(c), 0);
  int64_t began = clock_now();
  assert_error(try_lock(c), losses[i].expected);
  assert_true((c->ended_time - began) / MS <= deadline_ms + lag());
  nodes_settle(nodes);
  for (unsigned node = 0; node < losses[i].killed; node++) {
    belay_vote_t vote = tally_of(c).node[node].vote;
    if (vote != BELAY_VOTE_NONE || c->status == 0) /* too many others were, too */
      assert_string_equal(belay_vote_name(vote), "unreachable");
  }
  assert_int_equal(nodes_holding(nodes, c),
                   losses[i].expected == 0 ? losses[i].n - losses[i].killed : 0);
  nodes_close(nodes);
}

TEST(minority_lost) {
  for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
    lose(i, true);
}

TEST(minority_never_reachable) {
  for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
    lose(i, false);
}

TEST_IN(two_nodes_need_both, nodes, nodes_open(2, NULL)) {
  belay_lock_options_t options = unhurried_options(10000);
  options.allow_small = true;
  contender_t *c = nodes_contender(nodes, "door", &options);
  for (unsigned node = 0; node < 2; node++) {
    nodes_occupy(nodes, node, c, 60000);
    assert_error(acquire(c, 0), BELAY_EHELD);
    nodes_settle(nodes);
    server_do(nodes->server[node], "DEL", key_of(c), NULL);
    assert_int_equal(nodes_keys(nodes), 0);
  }
  assert_error(acquire(c, 10000), 0);
  nodes_settle(nodes);
  assert_int_equal(nodes_holding(nodes, c), 2);
}

TEST_IN(waiter_acquires_when_majority_is_back, nodes, nodes_open(5, NULL)) {
  contender_t *c = nodes_contender(nodes, "door", NULL);
  nodes_warm(nodes);
  nodes_kill(nodes, 3);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(nodes->env, 300);
  assert_int_equal(c->ended, 0);
  nodes_restart(nodes, 1);
  assert_error(outcome(c), 0);
  assert_true(nodes_holding(nodes, c) >= 3);
}

static const struct {
  int error;
  unsigned nodes; /* that refuse with it */
  int expected;
} refusals[] = {{BELAY_EWRONGTYPE, 2, 0},
                {BELAY_EWRONGTYPE, 3, BELAY_EWRONGTYPE},
                {BELAY_EWRONGTYPE, 5, BELAY_EWRONGTYPE},
                {BELAY_EAUTH, 2, 0},
                {BELAY_EAUTH, 3, BELAY_EAUTH},
                {BELAY_EAUTH, 5, BELAY_EAUTH},
                {BELAY_EPERM, 2, 0},
                {BELAY_EPERM, 3, BELAY_EPERM}};

/* Also with a wait: the refusal would not change. */
TEST(lasting_refusal_is_reported) {
  static const int64_t waits[] = {0, 60000};
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
    for (size_t j = 0; j < sizeof waits / sizeof *waits; j++) {
      nodes_t *nodes = nodes_open(5, NULL);
      belay_lock_options_t options = unhurried_options(10000);
      contender_t *c = nodes_contender(nodes, "door", &options);
      for (unsigned node = 0; node < refusals[i].nodes; node++)
        refuse_with(nodes->server[node], c, refusals[i].error);
      assert_error(acquire(c, waits[j]), refusals[i].expected);
      nodes_close(nodes);
    }
}

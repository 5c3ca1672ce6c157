/* The election: one leader at a time, terms that grow, resignation and deposition. An observer
 * sees each leader that leads for long enough. */
#include "support/fixtures/lease/candidates.h"
#include "support/deployments/relay.h"

CANDIDATE_TEST(candidate_is_elected) {
  candidate_t *p = candidate_new(env, "me");
  assert_true(belay_election_term(p->election) == 0);
  assert_error(begin_resign(p), BELAY_ESTATE);
  assert_error(campaign(p), 0);
  assert_error(campaign(p), BELAY_ESTATE);
  env_until(env, p->elected == 1);
  assert_error(campaign(p), BELAY_ESTATE);
  assert_true(p->term > 0 && belay_election_term(p->election) == p->term);
  assert_between(belay_election_remaining_us(p->election), 1, 2000000 * slow());
  env_run_for(env, 3000 * slow()); /* longer than a ttl */
  assert_true(belay_election_term(p->election) == p->term);
  assert_string_equal(server_string(env->server, "HGET", KEY "::fence", "value", NULL), "me");
  assert_error(resign(p), 0);
  assert_true(belay_election_term(p->election) == 0);
  assert_int_equal(server_integer(env->server, "EXISTS", KEY, NULL), 0);
  assert_true(server_integer(env->server, "PTTL", KEY "::fence", NULL) > 0);
  assert_int_equal(p->deposed, 0);
  uint64_t before = p->term;
  lead(p);
  assert_true(p->term > before);
  assert_error(begin_close_election(p), 0);
  env_until(env, p->closed == 1);
  assert_int_equal(p->deposed, 0);
}

CANDIDATE_TEST(resign_elects_next) {
  enum { N = 3 };
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_election_options_t options = election_options(10000, NULL);
  options.retry_min_ms = options.retry_max_ms = options.backoff_max_ms = 60000;
  candidate_t *p[N], *watcher = candidate_of(env, client, &options);
  assert_error(observe(watcher, 1), 0);
  for (int i = 0; i < N; i++) {
    p[i] = candidate_of(env, i < 2 ? env->client : client, &options);
    assert_error(campaign(p[i]), 0);
  }
  uint64_t term = 0;
  for (int round = 0, last = -1; round < 12; round++) {
    int leader = -1;
    int64_t began = clock_now();
    while (leader < 0) {
      env_run_for(env, 2);
      for (int i = 0; i < N; i++)
        if (belay_election_term(p[i]->election) > 0)
          leader = i;
      assert_true(clock_since_ms(began) < 5000 * slow()); /* a message woke it: no poll is due */
    }
    for (int i = 0; i < N; i++)
      assert_true(i == leader || belay_election_term(p[i]->election) == 0);
    assert_true(p[leader]->term > term);
    term = p[leader]->term;
    env_until(env, sees(watcher, term));
    env_run_for(env, 50);
    assert_error(resign(p[leader]), 0);
    if (last >= 0)
      assert_error(campaign(p[last]), 0);
    last = leader; /* does not stand for the next term */
  }
}

CANDIDATE_TEST(resign_candidate) {
  candidate_t *leader = candidate_new(env, "a"), *p = candidate_new(env, "b");
  lead(leader);
  assert_error(campaign(p), 0);
  env_run_for(env, 100);
  assert_error(begin_resign(p), 0);
  assert_int_equal(p->campaigned, 0);
  assert_error(begin_resign(p), BELAY_ESTATE);
  env_until(env, p->resigned == 1);
  assert_error(p->resign_status, 0);
  assert_int_equal(p->campaigned, 1);
  assert_error(p->campaign_status, BELAY_ECANCELED);
  assert_ok(campaign(p), belay_election_resign(p->election, NULL));
  env_until(env, p->campaigned == 2);
  assert_int_equal(p->elected, 0);
  assert_error(belay_election_resign(leader->election, NULL), 0);
  env_until(env, server_integer(env->server, "EXISTS", KEY, NULL) == 0);
  assert_error(belay_election_campaign(p->election, NULL), 0);
  env_until(env, p->elected == 1);
}

static int64_t leads_until(const candidate_t *p) {
  int64_t now = clock_now();
  return now + belay_election_remaining_us(p->election) * 1000;
}

static void expect_deposed_in_time(candidate_t *p) {
  int64_t deadline = leads_until(p);
  assert_int_equal(p->deposed, 0);
  env_until(p->env, p->deposed == 1 || leads_until(p) > deadline + 50 * MS);
  assert_int_equal(p->deposed, 1);
  assert_int_equal(p->reason, BELAY_LOST_EXPIRED);
  assert_between((p->deposed_time - deadline) / MS, -50, lag());
}

CANDIDATE_TEST(deposed_at_local_deadline) {
  belay_election_options_t options = election_options(kept_ttl(), "a");
  candidate_t *p = candidate_of(env, env->client, &options);
  lead(p);
  env_run_for(env, kept_ttl() * 5 / 4);
  server_pause(env->server);
  expect_deposed_in_time(p);
  server_resume(env->server);
  lead(p);
}

CANDIDATE_TEST_ON(deposed_when_disconnected, env_open_relayed(NULL)) {
  belay_client_t *near = env_connect(env, server_url(env->server), NULL);
  belay_election_options_t options = election_options(kept_ttl(), "a");
  candidate_t *p = candidate_of(env, env->client, &options),
              *other = candidate_of(env, near, &options);
  lead(p);
  assert_error(campaign(other), 0);
  env_run_for(env, 300 * slow());
  relay_silence(env->relay);
  relay_delay(env->relay, 60000); /* new connections, too */
  expect_deposed_in_time(p);
  assert_int_equal(other->elected, 0); /* the server keeps it for longer than we believe */
  env_until(env, other->elected == 1);
  assert_true(other->term > p->term);
}

static void stand_again(candidate_t *p, candidate_event_t event) {
  if (event == DEPOSED)
    assert_error(campaign(p), 0);
}

CANDIDATE_TEST(campaign_in_deposed_callback) {
  belay_election_options_t options = election_options(kept_ttl(), "a");
  candidate_t *p = candidate_of(env, env->client, &options);
  p->then = stand_again;
  lead(p);
  for (unsigned i = 1; i <= 3; i++) {
    server_do(env->server, "DEL", KEY, NULL);
    env_until(env, p->deposed == i);
    assert_int_equal(p->reason, BELAY_LOST_TAKEN);
    env_until(env, p->elected == i + 1);
  }
}

CANDIDATE_TEST(observer_reports_changes) {
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_election_options_t options = election_options(kept_ttl(), "a");
  candidate_t *p = candidate_of(env, env->client, &options),
              *watcher = candidate_of(env, client, &options);
  assert_ok(observe(watcher, 1), observe(watcher, 1), observe(p, 1));
  assert_int_equal(watcher->seen_len, 0);
  env_until(env, watcher->seen_len == 1 && p->seen_len == 1);
  assert_true(sees(watcher, 0) && sees(p, 0)); /* the present leader first, or that there is none */
  lead(p);
  env_until(env, sees(watcher, p->term) && sees(p, p->term));
  assert_int_equal(last_seen(watcher)->ours, 0);
  assert_int_equal(last_seen(p)->ours, 1);
  assert_string_equal(last_seen(watcher)->value, "a");
  assert_between(last_seen(watcher)->remaining_ms, 1, kept_ttl());
  env_run_for(env, 2 * kept_ttl());
  assert_int_equal(watcher->seen_len, 2);
  assert_int_equal(p->seen_len, 2);
  assert_error(resign(p), 0);
  env_until(env, sees(watcher, 0) && sees(p, 0));
  assert_int_equal(watcher->seen_len, 3);
  assert_ok(observe(watcher, 0), observe(watcher, 0));
  lead(p);
  env_until(env, sees(p, p->term));
  env_run_for(env, 400);
  assert_int_equal(watcher->seen_len, 3);
  assert_error(observe(watcher, 1), 0);
  env_until(env, sees(watcher, p->term));
}

/* Also if the observer's reply comes before the candidate's own grant is reported. */
CANDIDATE_TEST(observer_reports_own_leadership) {
  enum { TERMS = 60 };
  candidate_t *p = candidate_new(env, "me");
  assert_error(observe(p, 1), 0);
  for (unsigned i = 0; i < TERMS; i++) {
    assert_error(campaign(p), 0);
    env_until(env, p->elected == i + 1);
    env_until(env, p->seen_len > 0 && p->seen[p->seen_len - 1].term == p->term &&
                       p->seen[p->seen_len - 1].ours);
    assert_error(resign(p), 0);
    p->seen_len = 0;
  }
}

/* A lease that expires sends no message. The observer knows its end. */
CANDIDATE_TEST(observer_reports_expiry) {
  belay_election_options_t options = election_options(2000, NULL);
  options.retry_min_ms = options.retry_max_ms = options.backoff_max_ms = 60000;
  candidate_t *watcher = candidate_of(env, env->client, &options);
  server_do(env->server, "SET", KEY, "somebody", "PX", "700", NULL);
  server_do(env->server, "HSET", KEY "::fence", "number", "12", "token", "somebody", "value", "x",
            NULL);
  assert_error(observe(watcher, 1), 0);
  env_until(env, sees(watcher, 12));
  assert_string_equal(last_seen(watcher)->value, "x");
  int64_t began = clock_now();
  env_until(env, sees(watcher, 0));
  assert_between(clock_since_ms(began), 0, 1500 * slow());
}

TEST(observer_reports_errors) {
  belay_client_options_t client = client_options();
  client.timeout_ms = prompt_ms();
  client.reconnect_max_ms = 50;
  env_t *env = env_open(&client);
  candidate_t *watcher = candidate_new(env, NULL);
  assert_error(observe(watcher, 1), 0);
  env_until(env, sees(watcher, 0));
  for (unsigned i = 0; i < 2; i++) {
    server_pause(env->server);
    env_until(env, last_seen(watcher)->status != 0);
    assert_error(last_seen(watcher)->status, BELAY_EUNKNOWN);
    env_run_for(env, 1000 * slow());
    server_resume(env->server);
    assert_int_equal(watcher->seen_len, 2 + 2 * i); /* once */
    env_until(env, sees(watcher, 0));
  }
  server_do(env->server, "SET", KEY, "a lock of another kind", NULL);
  env_until(env, last_seen(watcher)->status == BELAY_EWRONGTYPE);
  server_do(env->server, "DEL", KEY, NULL);
  env_until(env, sees(watcher, 0));
  candidates_close(env);
}

CANDIDATE_TEST(observer_with_ref_keeps_loop_alive) {
  candidate_t *p = candidate_new(env, NULL);
  assert_error(observe(p, 1), 0);
  env_until(env, p->seen_len == 1);
  env_settle(env);
  assert_int_equal(uv_loop_alive(&env->loop), 0);
  belay_election_ref(p->election);
  belay_election_ref(p->election);
  assert_int_equal(uv_loop_alive(&env->loop), 1);
  assert_error(observe(p, 0), 0);
  assert_int_equal(uv_loop_alive(&env->loop), 0);
  lead(p);
  env_settle(env);
  assert_int_equal(uv_loop_alive(&env->loop), 1);
  belay_election_unref(p->election);
  assert_int_equal(uv_loop_alive(&env->loop), 0);
}

ENV_TEST(invalid_arguments) {
  belay_election_options_t o;
  belay_election_t *election = (belay_election_t *)env;
  char longest[BELAY_ELECTION_VALUE_MAX + 2];
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  assert_error(belay_election_new(NULL, belay_string("crown"), NULL, &election), BELAY_EINVAL);
  assert_null(election);
  assert_error(belay_election_new(env->client, belay_string("crown"), NULL, NULL), BELAY_EINVAL);
  assert_error(belay_election_new(env->client, belay_bytes(NULL, 5), NULL, &election),
               BELAY_EINVAL);
  assert_error(belay_election_new(env->client, belay_string(""), NULL, &election), BELAY_EINVAL);
  o = election_options(9, NULL);
  assert_error(belay_election_new(env->client, belay_string("crown"), &o, &election), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "ttl_ms"));
  o = election_options(1000, longest);
  assert_error(belay_election_new(env->client, belay_string("crown"), &o, &election), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "value: "));
  o = election_options(1000, NULL);
  o.value.len = 1;
  assert_error(belay_election_new(env->client, belay_string("crown"), &o, &election), BELAY_EINVAL);
  assert_each(BELAY_EINVAL, belay_election_campaign(NULL, NULL), belay_election_resign(NULL, NULL));
  assert_each(BELAY_EINVAL, belay_election_observe(NULL, 1), belay_election_close(NULL, NULL));
  assert_true(belay_election_term(NULL) == 0);
  assert_true(belay_election_remaining_us(NULL) == 0);
  assert_null(belay_election_data(NULL));
  assert_error(belay_election_new(env->client, belay_string("crown"), NULL, &election), 0);
  assert_error(belay_election_observe(election, 1), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "on_observe"));
  env_run_for(env, 20);
  assert_int_equal(server_keys(env->server), 0);
}

static void expect_nobody(env_t *env) {
  assert_int_equal(server_integer(env->server, "EXISTS", KEY, NULL), 0);
}

CANDIDATE_TEST(leader_values) {
  char longest[BELAY_ELECTION_VALUE_MAX + 1];
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  const char *const leader_values[] = {"", longest, NULL};
  for (int i = 0; i < 3; i++) {
    candidate_t *p = candidate_new(env, leader_values[i]);
    assert_error(observe(p, 1), 0);
    lead(p);
    env_until(env, sees(p, p->term));
    if (leader_values[i] != NULL)
      assert_string_equal(last_seen(p)->value, leader_values[i]);
    else
      assert_true(strlen(last_seen(p)->value) > 0);
    assert_error(begin_close_election(p), 0);
    env_until(env, p->closed == 1);
    expect_nobody(env);
  }
}

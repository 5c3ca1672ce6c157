/* The election while servers forget, and leaders die or stand still. */
#include <signal.h>
#include <stdio.h>

#include "support/base/never.h"
#include "support/fixtures/lease/candidates.h"
#include "support/servers/process.h"

static void stand_again(candidate_t *p, candidate_event_t event) {
  if (event == DEPOSED)
    assert_error(campaign(p), 0);
}

TEST(temporary_faults) {
  belay_client_options_t client = client_options();
  client.timeout_ms = 200 * slow();
  client.reconnect_max_ms = 50;
  env_t *env = env_open(&client);
  belay_election_options_t options = election_options(kept_ttl(), "a");
  candidate_t *p = candidate_of(env, env->client, &options);
  assert_error(observe(p, 1), 0);
  server_kill(env->server);
  assert_error(campaign(p), 0);
  env_run_for(env, 300);
  assert_int_equal(p->campaigned, 0);
  server_restart(env->server);
  env_until(env, p->elected == 1);
  env_until(env, sees(p, p->term));
  p->then = stand_again;
  for (unsigned round = 2; round < 6; round++) {
    uint64_t before = p->term;
    if (round % 2 == 0)
      server_do(env->server, "FLUSHALL", NULL);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    if (round % 2 == 1) {
      server_kill(env->server);
      server_restart(env->server);
    }
    env_until(env, p->elected == round);
    assert_true(p->term >
                before); /* by the server's clock, although it has forgotten the last one */
    env_until(env, sees(p, p->term));
    env_run_for(env, 100);
  }
  candidates_close(env);
}

CANDIDATE_TEST(lasting_refusals) {
  candidate_t *p = candidate_new(env, NULL);
  server_do(env->server, "HSET", KEY, "something", "else", NULL);
  assert_error(campaign(p), 0);
  env_until(env, p->campaigned == 1);
  assert_error(p->campaign_status, BELAY_EWRONGTYPE);
  assert_int_equal(p->elected, 0);
  server_do(env->server, "DEL", KEY, NULL);
  lead(p);
}

/* A leader keeps its term for longer than terms are remembered. */
CANDIDATE_TEST(term_is_kept_while_led) {
  belay_election_options_t options = election_options(kept_ttl(), "a");
  candidate_t *p = candidate_of(env, env->client, &options);
  lead(p);
  server_do(env->server, "PEXPIRE", KEY "::fence", "5000", NULL);
  env_run_for(env, kept_ttl());
  assert_true(server_integer(env->server, "PTTL", KEY "::fence", NULL) > 5000);
}

enum { CANDIDATES = 5, ROUNDS = 14, LINES_MAX = 4096 };

static void say(const char *what, uint64_t term) {
  printf("%s %llu %lld\n", what, (unsigned long long)term, (long long)clock_now());
  fflush(stdout);
}

static void tell_and_stand_again(candidate_t *p, candidate_event_t event) {
  if (event == ELECTED)
    say("+", p->term);
  if (event == DEPOSED) {
    say("-", p->term);
    assert_error(campaign(p), 0);
  }
}

/* Runs until the process is killed. */
static _Noreturn void play_candidate(const char *url, const char *number) {
  env_t *env = env_open_at(url, NULL);
  belay_election_options_t options = election_options(700 * slow(), number);
  candidate_t *p = candidate_of(env, env->client, &options);
  p->then = tell_and_stand_again;
  assert_error(campaign(p), 0);
  belay_election_ref(p->election);
  for (;;)
    uv_run(&env->loop, UV_RUN_DEFAULT);
}

static process_t start_candidate(env_t *env, int i) {
  char number[12];
  snprintf(number, sizeof number, "%d", i);
  const char *argv[] = {process_self(), "--candidate", server_url(env->server), number, NULL};
  return process_start(argv);
}

/* The time in which a candidate leads. */
typedef struct leadership {
  uint64_t term;
  int64_t from, to; /* to: deposed, or killed */
} leadership_t;

static leadership_t leaderships[LINES_MAX];
static unsigned leaderships_len;

/* Reads the reports of a killed candidate. It led until it was deposed or killed. */
static void read_leaderships(process_t *process, int64_t died) {
  char line[128], what;
  unsigned long long term;
  long long at;
  while (process_read_line(process, line, sizeof line)) {
    assert_int_equal(sscanf(line, "%c %llu %lld", &what, &term, &at), 3);
    if (what == '+') {
      assert_true(leaderships_len < LINES_MAX);
      leaderships[leaderships_len++] = (leadership_t){.term = term, .from = at, .to = died};
    } else {
      assert_true(leaderships_len > 0 && leaderships[leaderships_len - 1].term == term);
      leaderships[leaderships_len - 1].to = at;
    }
  }
}

static int by_term(const void *a, const void *b) {
  const leadership_t *one = a, *other = b;
  return one->term < other->term ? -1 : one->term > other->term;
}

/* Terms grow, and each begins after the end of the one before it. */
static void judge_leaderships(void) {
  qsort(leaderships, leaderships_len, sizeof *leaderships, by_term);
  for (unsigned i = 1; i < leaderships_len; i++) {
    assert_never(leaderships[i].term <= leaderships[i - 1].term);
    assert_true(leaderships[i].from >= leaderships[i - 1].to);
  }
}

static int seen_leader(const candidate_t *watcher) {
  return atoi(last_seen(watcher)->value);
}

/* Leaders and subscriptions are killed. The observer sees each new leader, in a later term. */
CANDIDATE_TEST(killed_leaders) {
  process_t process[CANDIDATES];
  candidate_t *watcher = candidate_new(env, NULL);
  uint64_t term = 0;
  leaderships_len = 0;
  assert_error(observe(watcher, 1), 0);
  for (int i = 0; i < CANDIDATES; i++)
    process[i] = start_candidate(env, i);
  for (int round = 0; round < ROUNDS; round++) {
    env_until(env, last_seen(watcher)->status == 0 && last_seen(watcher)->term > term);
    term = last_seen(watcher)->term;
    int leader = seen_leader(watcher);
    if (round % 2 == 0)
      server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    env_run_for(env, round % 3 * 120);
    int64_t died = clock_now();
    process_kill(&process[leader], SIGKILL);
    read_leaderships(&process[leader], died);
    assert_int_equal(process_wait(&process[leader]), -SIGKILL);
    process[leader] = start_candidate(env, leader);
  }
  for (int i = 0; i < CANDIDATES; i++) {
    int64_t died = clock_now();
    process_kill(&process[i], SIGKILL);
    read_leaderships(&process[i], died);
    assert_int_equal(process_wait(&process[i]), -SIGKILL);
  }
  judge_leaderships();
  assert_true(leaderships_len >=
              ROUNDS / 2); /* a leader killed at once may have reported nothing */
}

/* A leader that was stalled for longer than its lease is deposed first. */
CANDIDATE_TEST(stalled_leader) {
  process_t process[2];
  candidate_t *watcher = candidate_new(env, NULL);
  char line[128];
  uint64_t term = 0;
  assert_error(observe(watcher, 1), 0);
  for (int i = 0; i < 2; i++)
    process[i] = start_candidate(env, i);
  for (int round = 0; round < 3; round++) {
    env_until(env, last_seen(watcher)->term > term);
    term = last_seen(watcher)->term;
    int leader = seen_leader(watcher);
    assert_true(process_read_line(&process[leader], line, sizeof line));
    assert_int_equal(line[0], '+');
    process_kill(&process[leader], SIGSTOP);
    env_until(env, last_seen(watcher)->term > term);
    assert_true(seen_leader(watcher) != leader);
    process_kill(&process[leader], SIGCONT);
    assert_true(process_read_line(&process[leader], line, sizeof line));
    assert_int_equal(line[0], '-');
  }
  for (int i = 0; i < 2; i++) {
    process_finish(&process[i]);
  }
}

TEST_ROLE(candidate, "--candidate") {
  play_candidate(argv[2], argv[3]);
  return 0;
}

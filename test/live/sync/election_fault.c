/* The election while servers forget, and leaders die or stand still. */
#include <signal.h>
#include <stdio.h>

#include "support/base/never.h"
#include "support/fixtures/lease/persons.h"
#include "support/servers/process.h"

static void stand_again(person_t *p, news_t event) {
  if (event == DEPOSED)
    assert_error(campaign(p), 0);
}

TEST(temporary_faults) {
  belay_client_options_t client = client_options();
  client.timeout_ms = 200 * slow();
  client.reconnect_max_ms = 50;
  bed_t *bed = bed_open(&client);
  belay_election_options_t options = election_options(kept_ttl(), "a");
  person_t *p = person_of(bed, bed->client, &options);
  assert_error(observe(p, 1), 0);
  server_kill(bed->server);
  assert_error(campaign(p), 0);
  bed_run_for(bed, 300);
  assert_int_equal(p->campaigned, 0);
  server_restart(bed->server);
  bed_until(bed, p->elected == 1);
  bed_until(bed, sees(p, p->term));
  p->then = stand_again;
  for (unsigned round = 2; round < 6; round++) {
    uint64_t before = p->term;
    if (round % 2 == 0)
      server_do(bed->server, "FLUSHALL", NULL);
    server_do(bed->server, "SCRIPT", "FLUSH", NULL);
    if (round % 2 == 1) {
      server_kill(bed->server);
      server_restart(bed->server);
    }
    bed_until(bed, p->elected == round);
    assert_true(p->term >
                before); /* by the server's clock, although it has forgotten the last one */
    bed_until(bed, sees(p, p->term));
    bed_run_for(bed, 100);
  }
  persons_close(bed);
}

PERSONS_TEST(lasting_refusals) {
  person_t *p = person_new(bed, NULL);
  server_do(bed->server, "HSET", KEY, "something", "else", NULL);
  assert_error(campaign(p), 0);
  bed_until(bed, p->campaigned == 1);
  assert_error(p->campaign_status, BELAY_EWRONGTYPE);
  assert_int_equal(p->elected, 0);
  server_do(bed->server, "DEL", KEY, NULL);
  lead(p);
}

/* A leader keeps its term for longer than terms are remembered. */
PERSONS_TEST(term_is_kept_while_led) {
  belay_election_options_t options = election_options(kept_ttl(), "a");
  person_t *p = person_of(bed, bed->client, &options);
  lead(p);
  server_do(bed->server, "PEXPIRE", KEY "::fence", "5000", NULL);
  bed_run_for(bed, kept_ttl());
  assert_true(server_integer(bed->server, "PTTL", KEY "::fence", NULL) > 5000);
}

enum { CANDIDATES = 5, ROUNDS = 14, LINES_MAX = 4096 };

static void say(const char *what, uint64_t term) {
  printf("%s %llu %lld\n", what, (unsigned long long)term, (long long)clock_now());
  fflush(stdout);
}

static void tell_and_stand_again(person_t *p, news_t event) {
  if (event == ELECTED)
    say("+", p->term);
  if (event == DEPOSED) {
    say("-", p->term);
    assert_error(campaign(p), 0);
  }
}

/* Until it is killed. */
static _Noreturn void play_candidate(const char *url, const char *number) {
  bed_t *bed = bed_open_at(url, NULL);
  belay_election_options_t options = election_options(700 * slow(), number);
  person_t *p = person_of(bed, bed->client, &options);
  p->then = tell_and_stand_again;
  assert_error(campaign(p), 0);
  belay_election_ref(p->election);
  for (;;)
    uv_run(&bed->loop, UV_RUN_DEFAULT);
}

static process_t start_candidate(bed_t *bed, int i) {
  char number[12];
  snprintf(number, sizeof number, "%d", i);
  const char *argv[] = {process_self(), "--candidate", server_url(bed->server), number, NULL};
  return process_start(argv);
}

/* A leadership, as the candidates told it. */
typedef struct reign {
  uint64_t term;
  int64_t from, to; /* to: deposed, or killed */
} reign_t;

static reign_t reigns[LINES_MAX];
static unsigned reigns_len;

/* Reads what a candidate that was killed has told; it led until then at most, or until it was
 * deposed. */
static void read_reigns(process_t *process, int64_t died) {
  char line[128], what;
  unsigned long long term;
  long long at;
  while (process_read_line(process, line, sizeof line)) {
    assert_int_equal(sscanf(line, "%c %llu %lld", &what, &term, &at), 3);
    if (what == '+') {
      assert_true(reigns_len < LINES_MAX);
      reigns[reigns_len++] = (reign_t){.term = term, .from = at, .to = died};
    } else {
      assert_true(reigns_len > 0 && reigns[reigns_len - 1].term == term);
      reigns[reigns_len - 1].to = at;
    }
  }
}

static int by_term(const void *a, const void *b) {
  const reign_t *one = a, *other = b;
  return one->term < other->term ? -1 : one->term > other->term;
}

/* Each began after the one of the term before it had ended: terms grow, and there were never
 * two. */
static void judge_reigns(void) {
  qsort(reigns, reigns_len, sizeof *reigns, by_term);
  for (unsigned i = 1; i < reigns_len; i++) {
    assert_never(reigns[i].term <= reigns[i - 1].term);
    assert_true(reigns[i].from >= reigns[i - 1].to);
  }
}

static int seen_leader(const person_t *watcher) {
  return atoi(last_sight(watcher)->value);
}

/* Leaders are killed, again and again; meanwhile listening connections, too. Each new leader is
 * seen, in a later term. */
PERSONS_TEST(killed_leaders) {
  process_t process[CANDIDATES];
  person_t *watcher = person_new(bed, NULL);
  uint64_t term = 0;
  reigns_len = 0;
  assert_error(observe(watcher, 1), 0);
  for (int i = 0; i < CANDIDATES; i++)
    process[i] = start_candidate(bed, i);
  for (int round = 0; round < ROUNDS; round++) {
    bed_until(bed, last_sight(watcher)->status == 0 && last_sight(watcher)->term > term);
    term = last_sight(watcher)->term;
    int leader = seen_leader(watcher);
    if (round % 2 == 0)
      server_do(bed->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    bed_run_for(bed, round % 3 * 120);
    int64_t died = clock_now();
    process_kill(&process[leader], SIGKILL);
    read_reigns(&process[leader], died);
    assert_int_equal(process_wait(&process[leader]), -SIGKILL);
    process[leader] = start_candidate(bed, leader);
  }
  for (int i = 0; i < CANDIDATES; i++) {
    int64_t died = clock_now();
    process_kill(&process[i], SIGKILL);
    read_reigns(&process[i], died);
    assert_int_equal(process_wait(&process[i]), -SIGKILL);
  }
  judge_reigns();
  assert_true(reigns_len >= ROUNDS / 2); /* a leader killed at once may have reported nothing */
}

/* A leader that stands still for longer than its lease finds itself deposed as the first thing. */
PERSONS_TEST(stalled_leader) {
  process_t process[2];
  person_t *watcher = person_new(bed, NULL);
  char line[128];
  uint64_t term = 0;
  assert_error(observe(watcher, 1), 0);
  for (int i = 0; i < 2; i++)
    process[i] = start_candidate(bed, i);
  for (int round = 0; round < 3; round++) {
    bed_until(bed, last_sight(watcher)->term > term);
    term = last_sight(watcher)->term;
    int leader = seen_leader(watcher);
    assert_true(process_read_line(&process[leader], line, sizeof line));
    assert_int_equal(line[0], '+');
    process_kill(&process[leader], SIGSTOP);
    bed_until(bed, last_sight(watcher)->term > term);
    assert_true(seen_leader(watcher) != leader);
    process_kill(&process[leader], SIGCONT);
    assert_true(process_read_line(&process[leader], line, sizeof line));
    assert_int_equal(line[0], '-');
  }
  for (int i = 0; i < 2; i++) {
    process_kill(&process[i], SIGKILL);
    assert_int_equal(process_wait(&process[i]), -SIGKILL);
  }
}

TEST_ROLE(candidate, "--candidate") {
  play_candidate(argv[2], argv[3]);
  return 0;
}

/* Chapter: a lock over five servers. Some of them are killed, and start again without their
 * data. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"
#include "demo/contender.h"
#include "demo/server.h"

enum { SERVERS = 5, MAJORITY = 3 };
enum { TTL_MS = 1000, MAX_TTL_MS = 1000, TIMEOUT_MS = 100, RECONNECT_MS = 100 };
enum { KEEP_MS = 1200, GRACE_MS = 1000, SOON_MS = 1000, PATIENCE_MS = 10000 };

/* A set of servers. */
enum { THREE = 4, FOUR = 8, FIVE = 16, ALL = 31 };

/* A or B, with a client for each server. */
typedef struct party {
  contender_t c;
  belay_client_t *client[SERVERS];
} party_t;

typedef struct quorum {
  demo_t *demo;
  server_t server[SERVERS];
  party_t a, b;
  uint64_t fence; /* the last fencing number */
  bool rising;    /* each was larger than the one before */
} quorum_t;

/* ---- output ---- */

/* Print an event and how the servers voted last. */
static void print_votes(const party_t *party, uint64_t at, const char *what) {
  static const char looks[BELAY_VOTES] = {
      [BELAY_VOTE_NONE] = ' ',     [BELAY_VOTE_GRANTED] = '#',     [BELAY_VOTE_HELD] = '.',
      [BELAY_VOTE_REFUSED] = 'x',  [BELAY_VOTE_TIMED_OUT] = 'x',   [BELAY_VOTE_UNREACHABLE] = 'x',
      [BELAY_VOTE_RESTORED] = 'o', [BELAY_VOTE_QUARANTINED] = 'o',
  };
  belay_lock_tally_t tally;
  char cells[32];
  size_t n = 0;
  belay_lock_tally(party->c.lock, &tally);
  for (unsigned i = 0; i < SERVERS; i++)
    n += (size_t)snprintf(cells + n, sizeof cells - n, "  %c", looks[tally.node[i].vote]);
  demo_event(party->c.demo, at, "%s    %s %s", cells, party->c.who == DEMO_A ? "A" : "B", what);
}

/* ---- votes ---- */

static unsigned votes(const party_t *party, belay_vote_t vote) {
  belay_lock_tally_t tally;
  belay_lock_tally(party->c.lock, &tally);
  return tally.votes[vote];
}

/* Wait until n servers vote like that and all have voted, then print the event. */
static void print_votes_when(party_t *party, belay_vote_t vote, unsigned n, const char *what) {
  DEMO_WAIT(party->c.demo, SOON_MS, votes(party, vote) == n && votes(party, BELAY_VOTE_NONE) == 0);
  print_votes(party, 0, what);
}

/* Wait for the lock, and compare its fencing number with the last one. */
static bool wait_for_grant(quorum_t *quorum, party_t *party) {
  if (!contender_wait(&party->c))
    return false;
  uint64_t fence = belay_lock_fence(party->c.lock);
  quorum->rising = fence > quorum->fence && (quorum->fence == 0 || quorum->rising);
  quorum->fence = fence;
  char text[64];
  (void)snprintf(text, sizeof text, "has the lock, number %" PRIu64, fence);
  print_votes(party, party->c.at, text);
  return true;
}

/* ---- opening and closing ---- */

static bool open_party(quorum_t *quorum, party_t *party, demo_who_t who) {
  demo_t *demo = quorum->demo;
  belay_client_options_t client;
  belay_lock_options_t lock;
  belay_client_options_init(&client);
  client.reconnect_max_ms = RECONNECT_MS; /* the client sees soon that a server is back */
  party->c = (contender_t){.demo = demo, .who = who};
  contender_options(&party->c, &lock, TTL_MS, true);
  lock.max_ttl_ms = MAX_TTL_MS;
  lock.timeout_ms = TIMEOUT_MS;
  lock.fencing = true;
  int error = 0;
  for (unsigned i = 0; i < SERVERS && error == 0; i++)
    error = belay_connect(demo->belay, quorum->server[i].url, &client, &party->client[i]);
  if (error == 0)
    error =
        belay_redlock_new(party->client, SERVERS, belay_string(demo->name), &lock, &party->c.lock);
  return demo_check(demo, "making a lock", error);
}

static void close_party(party_t *party) {
  if (party->c.lock != NULL)
    contender_close(&party->c);
  for (unsigned i = 0; i < SERVERS && party->client[i] != NULL; i++)
    (void)belay_client_close(party->client[i], NULL);
}

static bool start_servers(quorum_t *quorum, unsigned set) {
  for (unsigned i = 0; i < SERVERS; i++) {
    char name[SERVER_FILE_MAX];
    (void)snprintf(name, sizeof name, "node-%u", i + 1);
    const char *error =
        (set >> i & 1) == 0 ? NULL : server_start(&quorum->server[i], quorum->demo, name);
    if (error != NULL) {
      demo_trouble(quorum->demo, error, 0);
      return false;
    }
  }
  return true;
}

static void kill_servers(quorum_t *quorum, unsigned set) {
  for (unsigned i = 0; i < SERVERS; i++)
    if ((set >> i & 1) != 0)
      server_stop(&quorum->server[i]);
}

/* ---- the steps: each returns whether there can be a next one ---- */

static bool ask_fresh_servers(quorum_t *quorum, uint64_t started) {
  party_t *a = &quorum->a;
  if (!contender_start(&a->c, PATIENCE_MS))
    return false;
  print_votes_when(a, BELAY_VOTE_QUARANTINED, SERVERS, "asks, and waits: they are too new to vote");
  if (!wait_for_grant(quorum, a))
    return false;
  print_votes_when(a, BELAY_VOTE_GRANTED, SERVERS, "has it on all five");
  demo_fact(quorum->demo, a->c.at - started >= MAX_TTL_MS * DEMO_MS,
            "A had the lock %.1f s after the servers were started: for 1 s none votes\n",
            demo_seconds(started, a->c.at));
  return true;
}

static bool kill_two(quorum_t *quorum) {
  party_t *a = &quorum->a, *b = &quorum->b;
  demo_t *demo = quorum->demo;
  kill_servers(quorum, FOUR | FIVE);
  demo_event(demo, 0, "servers 4 and 5 are killed with kill -9");
  print_votes_when(a, BELAY_VOTE_GRANTED, MAJORITY, "renews the lease");
  DEMO_WAIT(demo, KEEP_MS, a->c.reason != 0);
  bool kept = a->c.reason == 0 && belay_lock_remaining_us(a->c.lock) > 0;
  print_votes_when(a, BELAY_VOTE_GRANTED, MAJORITY, "still has the lock, and releases it");
  uint64_t released = uv_hrtime();
  if (!kept || !contender_release(&a->c) || !contender_start(&b->c, PATIENCE_MS) ||
      !wait_for_grant(quorum, b))
    return false;
  demo_fact(demo, kept, "with two of five away A kept it for %.1f s; its ttl is 1 s",
            KEEP_MS / 1e3);
  demo_fact(demo, b->c.at - released <= GRACE_MS * DEMO_MS, "B had it %.0f ms after the release\n",
            1e3 * demo_seconds(released, b->c.at));
  return true;
}

/* B cannot renew its lease while a majority is away. When these servers come back empty, A could
 * get the lock that B still has, if they had a vote. */
static bool kill_majority(quorum_t *quorum) {
  party_t *a = &quorum->a, *b = &quorum->b;
  demo_t *demo = quorum->demo;
  kill_servers(quorum, THREE);
  demo_event(demo, 0, "server 3 is killed: three of five are away");
  if (!contender_start(&a->c, 0))
    return false;
  DEMO_WAIT(demo, PATIENCE_MS, a->c.ended);
  int refused = a->c.ended ? a->c.status : 0;
  double after_ms = 1e3 * demo_seconds(a->c.asked, a->c.at);
  print_votes(a, a->c.at, "asks, and cannot have it");
  if (!start_servers(quorum, THREE | FOUR | FIVE) || !contender_start(&a->c, PATIENCE_MS))
    return false;
  demo_event(demo, 0, "servers 3, 4 and 5 are started again, without their data");
  DEMO_WAIT(demo, PATIENCE_MS, b->c.reason != 0);
  if (b->c.reason == 0 || !wait_for_grant(quorum, a))
    return false;
  demo_fact(demo, refused == BELAY_ENOQUORUM && after_ms <= TIMEOUT_MS + GRACE_MS,
            "with three of five away A got an answer after %.0f ms: %s", after_ms,
            belay_err_name(refused));
  demo_fact(demo, b->c.lost < a->c.at,
            "three of five forgot B's lock; B learned it (%s) %.1f s before A had it",
            belay_lost_name(b->c.reason), demo_seconds(b->c.lost, a->c.at));
  demo_fact(demo, quorum->rising, "each grant has a larger number, though servers forgot theirs");
  return contender_release(&a->c);
}

void chapter_quorum(demo_t *demo) {
  static quorum_t quorum;
  quorum = (quorum_t){.demo = demo};
  uint64_t started = uv_hrtime();
  if (start_servers(&quorum, ALL) && open_party(&quorum, &quorum.a, DEMO_A) &&
      open_party(&quorum, &quorum.b, DEMO_B)) {
    demo_print(
        "  %s    time    1  2  3  4  5    # grants it  o does not vote yet  . another's  x away"
        "%s\n",
        demo_style(demo, DEMO_DIM), demo_style(demo, DEMO_NORMAL));
    if (!ask_fresh_servers(&quorum, started) || !kill_two(&quorum) || !kill_majority(&quorum))
      demo_trouble(demo, "the chapter cannot go on", 0);
  }
  close_party(&quorum.a);
  close_party(&quorum.b);
  demo_run(demo);
  kill_servers(&quorum, ALL);
}

/* Chapter: a lock over five servers, some of which are killed and come back without what they knew.
 *
 * It is long, and so it is told in steps, each of which runs the loop until what it waits for is the case. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"
#include "demo/contender.h"
#include "demo/server.h"

enum { SERVERS = 5, MAJORITY = 3 };
enum { TTL_MS = 1000, MAX_TTL_MS = 1000, TIMEOUT_MS = 100, RECONNECT_MS = 100 };
enum { KEEP_MS = 1200, GRACE_MS = 1000, SOON_MS = 1000, PATIENCE_MS = 10000 };
enum { CELLS_MAX = 128, TEXT_MAX = 96 };

/* Servers, as a set. */
enum { ONE = 1, TWO = 2, THREE = 4, FOUR = 8, FIVE = 16, ALL = ONE | TWO | THREE | FOUR | FIVE };

typedef struct quorum quorum_t;

/* A or B, with a client for each server. */
typedef struct party {
  contender_t c;
  quorum_t *quorum;
  belay_client_t *client[SERVERS];
} party_t;

/* What was found out. */
typedef struct findings {
  uint64_t fresh, first; /* when a majority was being started, and when A had the lock */
  bool kept;             /* A had it until the ttl was long over, with two servers away */
  uint64_t gave, taken;  /* when it gave it back then, and when B had it */
  uint64_t back, voted;  /* when a server was started again, and when its vote gave A the lock */
  int refused;           /* what B heard while a majority was away */
  uint64_t refused_ns;   /* and after how long */
  uint64_t won;          /* when B had the lock in the end */
  uint64_t number;       /* the last fencing number, */
  bool rising;           /* and whether each was larger than the one before */
} findings_t;

struct quorum {
  demo_t *demo;
  server_t server[SERVERS];
  uint64_t started[SERVERS]; /* just before it was */
  party_t party[DEMO_CONTENDERS];
  unsigned clients; /* that are open */
  findings_t found;
};

/* ---- what is said -------------------------------------------------------------------------------------- */

static size_t put_cell(char cells[CELLS_MAX], size_t n, const term_t *term, term_style_t style,
                       const char *glyph) {
  int len = snprintf(cells + n, CELLS_MAX - n, "  %s%s%s", term_style(term, style), glyph,
                     term_style(term, TERM_NORMAL));
  return n + (size_t)len;
}

static void print_head(quorum_t *quorum) {
  term_t *term = &quorum->demo->term;
  term_print(term,
             "  %s    time      1  2  3  4  5    %s grants it  %s does not vote yet  %s another's"
             "  %s away%s\n",
             term_style(term, TERM_DIM), term_glyph(term, TERM_HOLDS),
             term_glyph(term, TERM_HOLLOW), term_glyph(term, TERM_WAITS),
             term_glyph(term, TERM_AWAY), term_style(term, TERM_NORMAL));
}

/* What the servers told somebody last. */
static void draw_votes(const party_t *party, char cells[CELLS_MAX]) {
  static const struct {
    term_style_t style;
    term_glyph_t glyph;
  } looks[BELAY_VOTES] = {
      [BELAY_VOTE_GRANTED] = {TERM_GOOD, TERM_HOLDS},
      [BELAY_VOTE_HELD] = {TERM_NORMAL, TERM_WAITS},
      [BELAY_VOTE_REFUSED] = {TERM_BAD, TERM_AWAY},
      [BELAY_VOTE_TIMED_OUT] = {TERM_BAD, TERM_AWAY},
      [BELAY_VOTE_UNREACHABLE] = {TERM_BAD, TERM_AWAY},
      [BELAY_VOTE_QUARANTINED] = {TERM_NORMAL, TERM_HOLLOW},
      [BELAY_VOTE_RESTORED] = {TERM_NORMAL, TERM_HOLLOW},
  };
  const term_t *term = &party->quorum->demo->term;
  belay_lock_tally_t tally;
  belay_lock_tally(party->c.lock, &tally);
  size_t n = 0;
  for (unsigned i = 0; i < SERVERS; i++) {
    belay_vote_t vote = tally.node[i].vote;
    n = put_cell(cells, n, term, looks[vote].style,
                 vote == BELAY_VOTE_NONE ? " " : term_glyph(term, looks[vote].glyph));
  }
}

/* Something that somebody did, and what the servers say to it. */
static void say(const party_t *party, uint64_t at, const char *what) {
  const term_t *term = &party->quorum->demo->term;
  bool is_a = party->c.who == DEMO_A;
  char cells[CELLS_MAX];
  draw_votes(party, cells);
  demo_event(party->quorum->demo, at, "  %s    %s%s%s %s", cells,
             term_style(term, is_a ? TERM_A : TERM_B), is_a ? "A" : "B",
             term_style(term, TERM_NORMAL), what);
}

static void say_number(const party_t *party, const char *what) {
  char text[TEXT_MAX];
  (void)snprintf(text, sizeof text, "%s, number %" PRIu64, what, party->quorum->found.number);
  say(party, party->c.at, text);
}

/* Something that was done to servers. */
static void say_servers(quorum_t *quorum, unsigned set, term_style_t style, term_glyph_t glyph,
                        const char *what) {
  const term_t *term = &quorum->demo->term;
  char cells[CELLS_MAX];
  size_t n = 0;
  for (unsigned i = 0; i < SERVERS; i++)
    n = put_cell(cells, n, term, style, (set >> i & 1) != 0 ? term_glyph(term, glyph) : " ");
  demo_event(quorum->demo, 0, "  %s    %s", cells, what);
}

/* ---- what is waited for -------------------------------------------------------------------------------- */

static unsigned votes(const party_t *party, belay_vote_t vote) {
  belay_lock_tally_t tally;
  belay_lock_tally(party->c.lock, &tally);
  return tally.votes[vote];
}

static bool has_lost(const party_t *party) {
  return party->c.reason != 0;
}

static bool all_grant(const party_t *party) {
  return votes(party, BELAY_VOTE_GRANTED) == SERVERS;
}

static bool three_grant(const party_t *party) {
  return votes(party, BELAY_VOTE_GRANTED) == MAJORITY && votes(party, BELAY_VOTE_NONE) == 0;
}

static bool one_does_not_vote(const party_t *party) {
  return votes(party, BELAY_VOTE_QUARANTINED) == 1 && votes(party, BELAY_VOTE_NONE) == 0;
}

static bool three_do_not_vote(const party_t *party) {
  return votes(party, BELAY_VOTE_QUARANTINED) >= MAJORITY;
}

/* Print what the party does as soon as the servers' votes are like that, if they ever are. */
static void say_when(party_t *party, bool (*so)(const party_t *party), const char *what) {
  DEMO_WAIT(party->quorum->demo, SOON_MS, so(party));
  if (so(party))
    say(party, 0, what);
}

static bool trouble(quorum_t *quorum, const char *what, int error) {
  demo_trouble(quorum->demo, what, error);
  return false;
}

/* ---- A and B ------------------------------------------------------------------------------------------- */

/* Wait for the lock, and compare its fencing number with the last one. */
static bool win(party_t *party) {
  findings_t *found = &party->quorum->found;
  if (!contender_win(&party->c))
    return false;
  uint64_t number = belay_lock_fence(party->c.lock);
  found->rising = number > found->number && (found->number == 0 || found->rising);
  found->number = number;
  return true;
}

static bool give_back(party_t *party) {
  int error = contender_release(&party->c);
  return error == 0 || trouble(party->quorum, "giving the lock back", error);
}

static bool open_party(quorum_t *quorum, demo_who_t who) {
  demo_t *demo = quorum->demo;
  party_t *party = &quorum->party[who];
  belay_client_options_t client;
  const char *parts[2];
  worker_client_options(&client, parts, demo->run, who == DEMO_A ? "A" : "B");
  client.reconnect_max_ms = RECONNECT_MS; /* a server that is back is to be seen at once */
  *party = (party_t){.c = {.demo = demo, .who = who}, .quorum = quorum};
  for (unsigned i = 0; i < SERVERS; i++) {
    int error = belay_connect(demo->belay, quorum->server[i].url, &client, &party->client[i]);
    if (error != 0)
      return trouble(quorum, "making a client", error);
    quorum->clients++;
    belay_client_set_data(party->client[i], quorum);
  }
  belay_lock_options_t lock;
  contender_options(&party->c, &lock, TTL_MS, true);
  lock.max_ttl_ms = MAX_TTL_MS;
  lock.timeout_ms = TIMEOUT_MS;
  lock.fencing = true;
  const char *name = demo->name;
  int error = belay_redlock_new(party->client, SERVERS, name, strlen(name), &lock, &party->c.lock);
  return error == 0 || trouble(quorum, "making a lock", error);
}

static void on_client_closed(belay_client_t *client, void *data) {
  (void)client;
  quorum_t *quorum = data;
  quorum->clients--;
}

static void close_party(party_t *party) {
  if (party->c.lock != NULL)
    (void)belay_lock_close(party->c.lock, NULL);
  for (unsigned i = 0; i < SERVERS; i++)
    if (party->client[i] != NULL)
      (void)belay_client_close(party->client[i], on_client_closed);
}

/* ---- the servers --------------------------------------------------------------------------------------- */

static bool start_servers(quorum_t *quorum, unsigned set) {
  demo_t *demo = quorum->demo;
  for (unsigned i = 0; i < SERVERS; i++) {
    char name[SERVER_FILE_MAX];
    (void)snprintf(name, sizeof name, "node-%u", i + 1);
    if ((set >> i & 1) == 0)
      continue;
    quorum->started[i] = uv_hrtime();
    if (server_start(&quorum->server[i], &demo->family, demo->folder, name) == 0)
      continue;
    if (!server_missing(&quorum->server[i])) {
      server_complain(&quorum->server[i]);
      return trouble(quorum, "starting a server", 0);
    }
    term_print(&demo->term, "  Left out: it takes five servers of its own, and there is neither a\n"
                            "  redis-server nor a valkey-server here.\n");
    return false;
  }
  return true;
}

static void kill_servers(quorum_t *quorum, unsigned set) {
  for (unsigned i = 0; i < SERVERS; i++)
    if ((set >> i & 1) != 0)
      server_stop(&quorum->server[i]);
}

/* ---- the steps: each returns whether there can be a next one ------------------------------------------- */

static bool ask_fresh_servers(quorum_t *quorum) {
  party_t *a = &quorum->party[DEMO_A];
  quorum->found.fresh = quorum->started[MAJORITY - 1];
  if (!contender_ask(&a->c, PATIENCE_MS))
    return false;
  say_when(a, three_do_not_vote, "asks, and waits: they are too new to vote");
  if (!win(a))
    return false;
  quorum->found.first = a->c.at;
  say_number(a, "has the lock");
  say_when(a, all_grant, "has it on all five");
  return true;
}

static bool kill_two(quorum_t *quorum) {
  party_t *a = &quorum->party[DEMO_A], *b = &quorum->party[DEMO_B];
  findings_t *found = &quorum->found;
  kill_servers(quorum, FOUR | FIVE);
  say_servers(quorum, FOUR | FIVE, TERM_BAD, TERM_AWAY, "killed with kill -9");
  say_when(a, three_grant, "renews the lease");
  DEMO_WAIT(quorum->demo, KEEP_MS, has_lost(a));
  found->kept = !has_lost(a) && belay_lock_remaining_us(a->c.lock) > 0;
  if (!found->kept)
    return trouble(quorum, "A lost the lock", belay_lock_error(a->c.lock));
  say_when(a, three_grant, "still has the lock, and gives it back");
  found->gave = uv_hrtime();
  if (!give_back(a) || !contender_ask(&b->c, PATIENCE_MS) || !win(b))
    return false;
  found->taken = b->c.at;
  say_number(b, "has the lock");
  return give_back(b);
}

/* Three are there, but one of them has no vote yet. */
static bool restart_one(quorum_t *quorum) {
  party_t *a = &quorum->party[DEMO_A];
  if (!start_servers(quorum, FOUR))
    return false;
  quorum->found.back = quorum->started[3];
  say_servers(quorum, FOUR, TERM_NORMAL, TERM_BEGINS, "started again, without what it knew");
  kill_servers(quorum, THREE);
  say_servers(quorum, THREE, TERM_BAD, TERM_AWAY, "killed");
  if (!contender_ask(&a->c, PATIENCE_MS))
    return false;
  say_when(a, one_does_not_vote, "asks, and waits for a third vote");
  if (!win(a))
    return false;
  quorum->found.voted = a->c.at;
  say_number(a, "has the lock");
  return true;
}

/* While a majority is away, A cannot renew its lease; and as it comes back, B could have what is still A's, if all
 * that is there had a vote. */
static bool kill_majority(quorum_t *quorum) {
  party_t *a = &quorum->party[DEMO_A], *b = &quorum->party[DEMO_B];
  findings_t *found = &quorum->found;
  kill_servers(quorum, ONE);
  say_servers(quorum, ONE, TERM_BAD, TERM_AWAY, "killed: three of five are away");
  if (!contender_ask(&b->c, 0))
    return false;
  DEMO_WAIT(quorum->demo, PATIENCE_MS, b->c.ended);
  if (!b->c.ended)
    return trouble(quorum, "B gets no answer", 0);
  found->refused = b->c.status;
  found->refused_ns = b->c.at - b->c.asked;
  say(b, b->c.at, "asks, and cannot have it");
  if (!start_servers(quorum, ONE | THREE | FIVE))
    return false;
  say_servers(quorum, ONE | THREE | FIVE, TERM_NORMAL, TERM_BEGINS,
              "started again, without what they knew");
  if (!contender_ask(&b->c, PATIENCE_MS))
    return false;
  say_when(b, three_do_not_vote, "asks again, and waits");
  DEMO_WAIT(quorum->demo, PATIENCE_MS, has_lost(a));
  if (!has_lost(a))
    return trouble(quorum, "A is never told", 0);
  say(a, a->c.lost, "is told that it has lost the lock");
  if (!win(b))
    return false;
  found->won = b->c.at;
  say_number(b, "has the lock");
  return give_back(b);
}

/* ---- the facts ----------------------------------------------------------------------------------------- */

static void conclude(quorum_t *quorum) {
  demo_t *demo = quorum->demo;
  const findings_t *found = &quorum->found;
  const party_t *a = &quorum->party[DEMO_A];
  const uint64_t quarantine = MAX_TTL_MS * DEMO_MS;
  term_print(&demo->term, "\n");
  demo_fact(demo, found->first - found->fresh >= quarantine,
            "A had the lock %.1f s after the servers were started: for 1 s none votes",
            demo_seconds(found->fresh, found->first));
  demo_fact(demo, found->kept, "with two of five away A kept it for %.1f s; its ttl is 1 s",
            KEEP_MS / 1e3);
  demo_fact(demo, found->taken - found->gave <= GRACE_MS * DEMO_MS,
            "and gave it back, and B had it %.0f ms later",
            1e3 * demo_seconds(found->gave, found->taken));
  demo_fact(demo, found->voted - found->back >= quarantine,
            "two votes and a server that came back empty made no lock before %.1f s were over",
            demo_seconds(found->back, found->voted));
  demo_fact(demo,
            found->refused == BELAY_ENOQUORUM &&
                found->refused_ns <= (TIMEOUT_MS + GRACE_MS) * DEMO_MS,
            "with three of five away B was told so, after %.0f ms: %s",
            (double)found->refused_ns / 1e6, belay_err_name(found->refused));
  demo_fact(demo, a->c.lost < found->won,
            "three of five forgot A's lock; A was told (%s) %.1f s before B had it",
            belay_lost_name(a->c.reason), demo_seconds(a->c.lost, found->won));
  demo_fact(demo, found->rising,
            "four grants, each with a larger number, though four servers forgot theirs");
}

static bool play_steps(quorum_t *quorum) {
  return ask_fresh_servers(quorum) && kill_two(quorum) && restart_one(quorum) &&
         kill_majority(quorum);
}

void chapter_quorum(demo_t *demo) {
  quorum_t quorum = {.demo = demo};
  if (start_servers(&quorum, ALL) && open_party(&quorum, DEMO_A) && open_party(&quorum, DEMO_B)) {
    print_head(&quorum);
    say_servers(&quorum, ALL, TERM_NORMAL, TERM_BEGINS, "started, for this chapter alone");
    if (play_steps(&quorum))
      conclude(&quorum);
  }
  for (unsigned i = 0; i < DEMO_CONTENDERS; i++)
    close_party(&quorum.party[i]);
  while (quorum.clients > 0)
    (void)uv_run(&demo->loop, UV_RUN_ONCE);
  kill_servers(&quorum, ALL);
  demo_run(demo);
}

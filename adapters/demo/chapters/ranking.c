/* Chapter: a game's best results, two of which are the same. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { PLAYERS = 4, PLACES = 3 };
static const char board[] = "cup";

typedef struct ranking {
  demo_t *demo;
  belay_ranking_t *ranking;
  belay_request_t request;
  int status;
  int64_t rank;
  bool changed;
  char text[160]; /* what the last answer says of the board */
} ranking_t;

static void on_entries(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
                       size_t n) {
  ranking_t *ranking = request->data;
  size_t at = 0;
  ranking->status = status;
  ranking->text[0] = '\0';
  if (n > 0) {
    ranking->rank = entries[0].rank;
    ranking->changed = entries[0].changed;
  }
  for (size_t i = 0; i < n && at < sizeof ranking->text; i++)
    at += (size_t)snprintf(ranking->text + at, sizeof ranking->text - at, "%s%lld %.*s %lld",
                           i > 0 ? ", " : "", (long long)entries[i].rank + 1,
                           (int)entries[i].member.len, (const char *)entries[i].member.data,
                           (long long)entries[i].score);
}

static void on_count(belay_request_t *request, int status, int64_t count) {
  ranking_t *ranking = request->data;
  (void)count;
  ranking->status = status;
}

/* Until the answer is here. */
static void wait_for(ranking_t *ranking, int error) {
  if (error == 0)
    demo_run(ranking->demo);
  if (error != 0 || ranking->status != 0)
    demo_trouble(ranking->demo, "asking a ranking", error != 0 ? error : ranking->status);
}

static void submit(ranking_t *ranking, const char *who, int64_t points) {
  const belay_ranking_score_t item = {.member = {who, strlen(who)}, .score = points};
  wait_for(ranking, belay_ranking_submit(ranking->ranking, &ranking->request, board, strlen(board),
                                         BELAY_RANKING_BEST, &item, 1, on_entries));
}

static void play(ranking_t *ranking) {
  static const struct {
    const char *who;
    int64_t points;
  } games[PLAYERS] = {{"eve", 700}, {"bob", 900}, {"ada", 900}, {"zoe", 300}};
  demo_t *demo = ranking->demo;
  for (unsigned i = 0; i < PLAYERS; i++)
    submit(ranking, games[i].who, games[i].points);
  demo_event(demo, 0, "eve has 700, bob 900, ada 900, zoe 300; there are three places");
  bool none = ranking->rank == -1;
  submit(ranking, "bob", 800);
  demo_event(demo, 0, "bob has 800 this time, and stays number %lld", (long long)ranking->rank + 1);
  bool kept = !ranking->changed && ranking->rank == 0;
  wait_for(ranking, belay_ranking_top(ranking->ranking, &ranking->request, board, strlen(board),
                                      PLACES + 1, on_entries));
  demo_event(demo, 0, "the board: %s", ranking->text);
  bool right = strcmp(ranking->text, "1 bob 900, 2 ada 900, 3 eve 700") == 0;
  term_print(&demo->term, "\n");
  demo_fact(demo, right, "of two with 900 points the first is who had them first");
  demo_fact(demo, kept, "what is worse than somebody's best has changed nothing");
  demo_fact(demo, none, "who has no place is told so");
}

void chapter_ranking(demo_t *demo) {
  ranking_t ranking = {.demo = demo};
  belay_ranking_options_t options;
  belay_ranking_options_init(&options);
  options.ties = BELAY_RANKING_EARLIER_FIRST;
  options.max_members = PLACES;
  options.ttl_ms = 60000;
  int error = belay_ranking_new(demo->client[DEMO_A], &options, &ranking.ranking);
  if (error != 0) {
    demo_trouble(demo, "making a ranking", error);
    return;
  }
  ranking.request.data = &ranking;
  play(&ranking);
  wait_for(&ranking,
           belay_ranking_clear(ranking.ranking, &ranking.request, board, strlen(board), on_count));
  (void)belay_ranking_close(ranking.ranking, NULL);
  demo_run(demo);
}

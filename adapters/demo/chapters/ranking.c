/* Chapter: a game's best results, two of which are the same. */
#include <stdio.h>
#include <string.h>

#include "demo/chapters.h"

enum { PLACES = 3 };
static const char board[] = "cup";

typedef struct answer {
  int64_t rank;
  bool changed;
  char text[160]; /* all entries */
} answer_t;

static void on_entries(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
                       size_t n) {
  demo_t *demo = request->data;
  answer_t *answer = demo->out;
  size_t at = 0;
  if (n > 0)
    *answer = (answer_t){.rank = entries[0].rank, .changed = entries[0].changed};
  for (size_t i = 0; i < n && at < sizeof answer->text; i++)
    at += (size_t)snprintf(answer->text + at, sizeof answer->text - at, "%s%lld %.*s %lld",
                           i > 0 ? ", " : "", (long long)entries[i].rank + 1,
                           (int)entries[i].member.len, (const char *)entries[i].member.data,
                           (long long)entries[i].score);
  demo_done(demo, status);
}

static answer_t submit(demo_t *demo, belay_ranking_t *ranking, const char *player, int64_t points) {
  const belay_ranking_score_t item = {.member = {player, strlen(player)}, .score = points};
  answer_t answer = {0};
  demo->out = &answer;
  (void)demo_await(demo, "submitting a result",
                   belay_ranking_submit(ranking, &demo->request, belay_string(board),
                                        &(belay_ranking_submission_t){
                                            .mode = BELAY_RANKING_BEST, .items = &item, .n = 1},
                                        on_entries));
  return answer;
}

static void play(demo_t *demo, belay_ranking_t *ranking) {
  (void)submit(demo, ranking, "eve", 700);
  (void)submit(demo, ranking, "bob", 900);
  (void)submit(demo, ranking, "ada", 900);
  answer_t zoe = submit(demo, ranking, "zoe", 300), top = {0};
  demo_event(demo, 0, "eve has 700, bob 900, ada 900, zoe 300; there are three places");
  answer_t bob = submit(demo, ranking, "bob", 800);
  demo_event(demo, 0, "bob has 800 this time, and stays number %lld", (long long)bob.rank + 1);
  demo->out = &top;
  (void)demo_await(
      demo, "reading the board",
      belay_ranking_top(ranking, &demo->request, belay_string(board), PLACES + 1, on_entries));
  demo_event(demo, 0, "the board: %s", top.text);
  demo_print("\n");
  demo_fact(demo, strcmp(top.text, "1 bob 900, 2 ada 900, 3 eve 700") == 0,
            "of two players with 900 points the earlier one is first");
  demo_fact(demo, !bob.changed && bob.rank == 0,
            "a result below the player's best changes nothing");
  demo_fact(demo, zoe.rank == -1, "the answer names a player without a place");
}

void chapter_ranking(demo_t *demo) {
  belay_ranking_t *ranking;
  belay_ranking_options_t options;
  belay_ranking_options_init(&options);
  options.ties = BELAY_RANKING_EARLIER_FIRST;
  options.max_members = PLACES;
  if (!demo_made(demo, "a ranking", belay_ranking_new(demo->client[DEMO_A], &options, &ranking)))
    return;
  play(demo, ranking);
  (void)belay_ranking_close(ranking, NULL);
}

/* `belay rank`: leaderboards, members with scores. */
#include <inttypes.h>
#include <string.h>

#include "harness.h"
#include "query/record.h"

static struct {
  const char *name, *ties, *order; /* order: "low" or "high"; NULL: not given */
  int64_t ttl_ms, max_members, skip;
  bool low_first, best, worst;
} asked = {.ttl_ms = -1, .max_members = -1};

/* A subcommand. N is an argument; it may be left out if it is the last one. */
typedef struct operation {
  record_operation_t record;
  size_t at;                  /* index of the argument N; 0: there is no N */
  int64_t least, most, usual; /* range and default of N */
} operation_t;

static belay_ranking_t *ranking;
static int64_t number; /* N */

/* ---- shared by the subcommands ---- */

/* The board of a call. */
#define BOARD(h) (h)->items[0]

/* Return the rule for equal scores. If the record has a name that this version does not know, the
 * result is invalid, and the library refuses it. */
static belay_ranking_ties_t ties(void) {
  static const char *const names[] = {[BELAY_RANKING_BY_MEMBER] = "member",
                                      [BELAY_RANKING_EARLIER_FIRST] = "earlier",
                                      [BELAY_RANKING_LATER_FIRST] = "later"};
  size_t i = 0;
  while (i < sizeof names / sizeof *names && strcmp(asked.ties, names[i]) != 0)
    i++;
  return (belay_ranking_ties_t)i;
}

/* Open the handle when all options are known. */
static bool open_ranking(harness_t *h) {
  belay_ranking_options_t options;
  belay_ranking_options_init(&options);
  options.name = belay_string(asked.name != NULL ? asked.name : "");
  options.order =
      strcmp(asked.order, "low") == 0 ? BELAY_RANKING_LOW_FIRST : BELAY_RANKING_HIGH_FIRST;
  options.ties = ties();
  options.ttl_ms = asked.ttl_ms;
  options.max_members = asked.max_members;
  return harness_ok(h, belay_ranking_new(h->client[0], &options, &ranking));
}

static bool read_number(const harness_t *h, const operation_t *operation) {
  number = operation->usual;
  if (operation->at == 0 || operation->at >= h->arguments->n)
    return true;
  return units_number(h->arguments->item[operation->at], &number) && number >= operation->least &&
         number <= operation->most;
}

static void begin_rank(harness_t *h) {
  static const record_field_t fields[] = {
      RECORD_TEXT("order", "the order", &asked.order, "high"),
      RECORD_TEXT("ties", "--ties", &asked.ties, "member"),
      RECORD_DURATION("ttl_ms", "--ttl", &asked.ttl_ms, -1, 30 * DAY_MS, BELAY_CONFIG_LATEST),
      RECORD_NUMBER("max_members", "--max-members", &asked.max_members, -1, 0, BELAY_CONFIG_LATEST),
  };
  static const record_t record = {.kind = BELAY_CONFIG_RANKING,
                                  .name = &asked.name,
                                  .fields = fields,
                                  .n = sizeof fields / sizeof *fields,
                                  .life_ms = &asked.ttl_ms,
                                  .check = open_ranking};
  asked.order = asked.low_first ? "low" : NULL;
  if (read_number(h, h->command->data))
    record_begin(h, &record);
  else
    harness_refuse(h, "N is not a whole number, or is out of range");
}

/* Write an entry. Ranks start at 1, which is the best. */
static bool out_entry(const belay_ranking_entry_t *entry) {
  bool there = entry->rank >= 0;
  out_begin();
  out_number_if("rank", there, entry->rank + 1);
  out_text("member", entry->member.data, entry->member.len);
  out_wide_if("score", there, entry->score);
  return out_end();
}

/* Write several entries. The status is 1 if one of the members does not exist, or if there are
 * none. */
static void on_entries(belay_request_t *r, int status, const belay_ranking_entry_t *entries,
                       size_t n) {
  harness_t *h = r->data;
  bool all = n > 0, written = true;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n && written; i++) {
    all = all && entries[i].rank >= 0;
    written = out_entry(&entries[i]);
  }
  harness_done(h, all ? STATUS_YES : STATUS_NO);
}

/* ---- subcommands ---- */

static void on_submitted(belay_request_t *r, int status, const belay_ranking_entry_t *entries,
                         size_t n) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  if (n > 0)
    (void)out_entry(entries);
  bool there = n > 0 && entries->rank >= 0;
  harness_done(h, there && (entries->changed || !asked.best) ? STATUS_YES : STATUS_NO);
}

static void submit(harness_t *h, belay_ranking_mode_t mode) {
  const belay_ranking_score_t item = {.member = h->items[1], .score = number};
  harness_ok(
      h, belay_ranking_submit(ranking, &h->request, BOARD(h),
                              &(belay_ranking_submission_t){.mode = mode, .items = &item, .n = 1},
                              on_submitted));
}

static void add(harness_t *h) {
  submit(h, BELAY_RANKING_ADD);
}

static void set(harness_t *h) {
  submit(h, asked.best ? BELAY_RANKING_BEST : BELAY_RANKING_SET);
}

static void top(harness_t *h) {
  const belay_ranking_page_t page = {.from = asked.worst ? BELAY_RANKING_FROM_WORST
                                                         : BELAY_RANKING_FROM_BEST,
                                     .skip = asked.skip,
                                     .n = (size_t)number};
  harness_ok(h, belay_ranking_page(ranking, &h->request, BOARD(h), &page, on_entries));
}

static void around(harness_t *h) {
  const belay_ranking_around_t around = {
      .member = h->items[1], .before = (size_t)number, .after = (size_t)number};
  harness_ok(h, belay_ranking_around(ranking, &h->request, BOARD(h), &around, on_entries));
}

static void find_members(harness_t *h) {
  harness_ok(h, belay_ranking_find(ranking, &h->request, BOARD(h), h->items + 1,
                                   h->arguments->n - 1, on_entries));
}

/* Write a number. The status is 1 if it is 0. */
static void write_count(harness_t *h, int status, const char *member, int64_t n) {
  if (!harness_ok(h, status))
    return;
  out_begin();
  out_string("board", h->arguments->item[0]);
  out_number(member, n);
  out_say("%" PRId64, n);
  harness_answer(h, n > 0);
}

static void on_count(belay_request_t *r, int status, int64_t count) {
  write_count(r->data, status, "members", count);
}

static void count(harness_t *h) {
  harness_ok(h, belay_ranking_count(ranking, &h->request, BOARD(h), on_count));
}

static void on_removed(belay_request_t *r, int status, int64_t removed) {
  write_count(r->data, status, "removed", removed);
}

static void on_cleared(belay_request_t *r, int status, int64_t zero) {
  (void)zero;
  if (harness_ok(r->data, status))
    harness_answer_changed(r->data, "board", "deleted");
}

static void delete (harness_t *h) {
  size_t n = h->arguments->n - 1;
  harness_ok(
      h, n > 0 ? belay_ranking_remove(ranking, &h->request, BOARD(h), h->items + 1, n, on_removed)
               : belay_ranking_clear(ranking, &h->request, BOARD(h), on_cleared));
}

/* ---- tables ---- */

#define NAME_OPTION                                                                                \
  TEXT("name", "NAME", &asked.name,                                                                \
       "a group of boards, part of the keys: the same BOARD under another NAME is separate")
#define LOW_OPTION                                                                                 \
  FLAG("low-first", &asked.low_first, "the lowest score is the best: seconds, strokes")
#define TIES_OPTION                                                                                \
  TEXT("ties", "WHO", &asked.ties,                                                                 \
       "which of two members with the same score is better: member (by their bytes), earlier "     \
       "or later (the one that reached the score first, or last); default: that of BOARD; for "    \
       "a new BOARD member",                                                                       \
       .choices = "member earlier later")
#define CHANGE_OPTIONS                                                                             \
  DURATION("ttl", 1000, YEAR_MS, &asked.ttl_ms,                                                    \
           "the server deletes the board after this time without a change; default: that of "      \
           "BOARD; for a new BOARD 30d",                                                           \
           .forever = true),                                                                       \
      NUMBER("max-members", 1, BELAY_RANKING_SIZE_MAX, &asked.max_members,                         \
             "maximum number of members; the best are kept; default: that of BOARD; for a new "    \
             "BOARD no limit")
#define BOARD_OPTIONS LOW_OPTION, TIES_OPTION, NAME_OPTION

static const option_t board_options[] = {BOARD_OPTIONS, {0}};

#define OPERATION(...)                                                                             \
  &(const operation_t) {                                                                           \
    __VA_ARGS__                                                                                    \
  }

static const command_t subcommands[] = {
    {
        .name = "add",
        .arguments = "BOARD MEMBER [N]",
        .summary = "add N (default 1) to a member's score, and print its rank",
        .text = "If the reply to an add is lost, the add may have happened, and belay does not "
                "send it again: the status is 123. The status is 1 if --max-members leaves no "
                "place for the member.",
        .examples = EXAMPLES({"Five points for ada", "belay rank add points ada 5"}),
        .options = OPTIONS(BOARD_OPTIONS, CHANGE_OPTIONS),
        .begin = begin_rank,
        .data =
            OPERATION({RECORD_ADDS, add}, 2, BELAY_RANKING_SCORE_MIN, BELAY_RANKING_SCORE_MAX, 1),
    },
    {
        .name = "around",
        .arguments = "BOARD MEMBER [N]",
        .summary = "a member, with up to N (default 5) better and N worse members",
        .text = "The status is 1 if the member does not exist.",
        .examples =
            EXAMPLES({"The members just before and after ada", "belay rank around points ada 1"}),
        .options = board_options,
        .what = "cannot read",
        .begin = begin_rank,
        .data =
            OPERATION({RECORD_READS, around}, 2, 0, (int64_t)(BELAY_RANKING_PAGE_MAX - 1) / 2, 5),
    },
    {
        .name = "count",
        .arguments = "BOARD",
        .summary = "print the number of members; the status is 1 if there are none",
        .examples = EXAMPLES({"The number of players", "belay rank count points"}),
        .options = board_options,
        .begin = begin_rank,
        .data = OPERATION(.record = {RECORD_READS, count}),
    },
    {
        .name = "delete",
        .arguments = "BOARD [MEMBER]...",
        .summary = "delete members, and print how many existed; or delete the whole board",
        .text = "The status is 1 if none of the members existed.",
        .examples = EXAMPLES({"Delete a cheater", "belay rank delete points mallory"}),
        .options = board_options,
        .begin = begin_rank,
        .data = OPERATION(.record = {RECORD_REMOVES, delete}),
    },
    {
        .name = "of",
        .arguments = "BOARD MEMBER...",
        .summary = "print the ranks of members; the status is 1 if one does not exist",
        .examples = EXAMPLES({"The ranks of two members", "belay rank of points ada bob"}),
        .options = board_options,
        .what = "cannot read",
        .begin = begin_rank,
        .data = OPERATION(.record = {RECORD_READS, find_members}),
    },
    {
        .name = "set",
        .arguments = "BOARD MEMBER N",
        .summary = "set a member's score, and print its rank",
        .text = "The status is 1 if --max-members leaves no place for the member.",
        .examples = EXAMPLES(
            {"A personal best, in seconds", "belay rank set laps ada 73 --best --low-first"}),
        .options = OPTIONS(FLAG("best", &asked.best,
                                "only if N is better than the present score; the status is 1 "
                                "if not"),
                           BOARD_OPTIONS, CHANGE_OPTIONS),
        .begin = begin_rank,
        .data =
            OPERATION({RECORD_ADDS, set}, 2, BELAY_RANKING_SCORE_MIN, BELAY_RANKING_SCORE_MAX, 0),
    },
    {
        .name = "top",
        .arguments = "BOARD [N]",
        .summary = "the best N (default 10): rank, member, score; the status is 1 if none",
        .examples = EXAMPLES({"The fastest three", "belay rank top laps 3"}),
        .options = OPTIONS(
            NUMBER("skip", 0, BELAY_RANKING_SIZE_MAX, &asked.skip, "skip the first N members"),
            FLAG("worst", &asked.worst, "start with the worst member"), BOARD_OPTIONS),
        .what = "cannot read",
        .begin = begin_rank,
        .data = OPERATION({RECORD_READS, top}, 1, 1, (int64_t)BELAY_RANKING_PAGE_MAX, 10),
    },
    {0},
};

const command_t rank_command = {
    .name = "rank",
    .summary = "leaderboards: members with scores and ranks",
    .text = "Scores are whole numbers, up to 2^53 - 1; the best one has rank 1. The first add "
            "or set decides --low-first and --ties of a BOARD. The server stores them: later "
            "commands need not repeat them, and a command that contradicts them ends with an "
            "error.",
    .examples =
        EXAMPLES({"Add points, and print the best three",
                  "belay rank add points ada 5; belay rank top points 3"},
                 {"A personal best, in seconds", "belay rank set laps ada 73 --best --low-first"}),
    .subcommands = subcommands,
};

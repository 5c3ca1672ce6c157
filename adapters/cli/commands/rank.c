/* `belay rank`: members with scores, and who stands where. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "query/record.h"

static struct {
  const char *name, *ties, *order; /* order: "low" or "high"; NULL: not given */
  int64_t ttl_ms, max_members, skip;
  bool low_first, best, worst;
} asked = {.ttl_ms = -1, .max_members = -1};

static belay_ranking_t *ranking;
static belay_request_t request;
static belay_bytes_t members[TEXTS_MAX];
static size_t members_n;
static int64_t number;  /* the argument N */
static record_t record; /* what the board was made with */
static belay_ranking_mode_t mode;

static void fail(harness_t *h, int error) {
  harness_fail(h, "cannot rank", error);
}

static const char *board_of(const harness_t *h) {
  return h->arguments->item[0];
}

static size_t board_len(const harness_t *h) {
  return strlen(board_of(h));
}

/* ---- what they have in common -------------------------------------------------------------------------- */

static bool read_ties(belay_ranking_ties_t *out) {
  static const char *const names[] = {[BELAY_RANKING_BY_MEMBER] = "member",
                                      [BELAY_RANKING_EARLIER_FIRST] = "earlier",
                                      [BELAY_RANKING_LATER_FIRST] = "later"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (asked.ties != NULL && strcmp(asked.ties, names[i]) == 0) {
      *out = (belay_ranking_ties_t)i;
      return true;
    }
  return asked.ties == NULL;
}

/* All options are known now. */
static bool open_ranking(harness_t *h) {
  belay_ranking_options_t options;
  belay_ranking_options_init(&options);
  if (!read_ties(&options.ties)) {
    harness_refuse(h, "--ties is none of member, earlier, later");
    return false;
  }
  options.name = asked.name != NULL ? asked.name : "";
  options.name_len = strlen(options.name);
  bool low = asked.order != NULL && strcmp(asked.order, "low") == 0;
  options.order = low ? BELAY_RANKING_LOW_FIRST : BELAY_RANKING_HIGH_FIRST;
  options.ttl_ms = asked.ttl_ms;
  options.max_members = asked.max_members;
  request.data = h;
  int error = belay_ranking_new(h->client[0], &options, &ranking);
  fail(h, error);
  return error == 0;
}

/* A whole number among the arguments, if it is there; it goes to `number`. */
static bool read_number(harness_t *h, size_t i, int64_t least, int64_t most, int64_t usual) {
  number = usual;
  if (i >= h->arguments->n ||
      (units_number(h->arguments->item[i], &number) && number >= least && number <= most))
    return true;
  harness_refuse(h, "N is no whole number, or is out of range");
  return false;
}

/* Those behind the board. */
static void read_members(const harness_t *h) {
  const arguments_t *arguments = h->arguments;
  for (size_t i = 1; i < arguments->n; i++)
    members[i - 1] = (belay_bytes_t){arguments->item[i], strlen(arguments->item[i])};
  members_n = arguments->n - 1;
}

static void begin_with(harness_t *h, record_use_t use, void (*go)(harness_t *h)) {
  static const record_field_t fields[] = {
      {.name = "order",
       .option = "the order",
       .text = &asked.order,
       .usual_text = "high",
       .rule = BELAY_CONFIG_SAME},
      {.name = "ties", .option = "--ties", .text = &asked.ties, .usual_text = "member"},
      {.name = "ttl_ms",
       .option = "--ttl",
       .number = &asked.ttl_ms,
       .unset = -1,
       .usual = 30 * DAY_MS,
       .rule = BELAY_CONFIG_LATEST,
       .duration = true},
      {.name = "max_members",
       .option = "--max-members",
       .number = &asked.max_members,
       .unset = -1,
       .rule = BELAY_CONFIG_LATEST}};
  belay_ranking_ties_t ties;
  if (!read_ties(&ties)) {
    harness_refuse(h, "--ties is none of member, earlier, later");
    return;
  }
  asked.order = asked.low_first ? "low" : NULL;
  record = (record_t){.kind = BELAY_CONFIG_RANKING,
                      .name = asked.name,
                      .set = board_of(h),
                      .what = "cannot rank",
                      .fields = fields,
                      .n = sizeof fields / sizeof *fields,
                      .use = use,
                      .life_ms = &asked.ttl_ms,
                      .check = open_ranking,
                      .go = go};
  record_begin(h, &record);
}

/* Ranks are those of people: the best is 1. */
static bool out_entry(const belay_ranking_entry_t *entry) {
  bool there = entry->rank >= 0;
  out_begin();
  if (there)
    out_number("rank", entry->rank + 1);
  else
    out_null("rank");
  out_text("member", entry->member.data, entry->member.len);
  if (there)
    out_wide("score", entry->score);
  else
    out_null("score");
  return out_end();
}

/* Where a person looks on. */
static void out_headings(void) {
  if (out_form() == OUT_PLAIN && isatty(STDOUT_FILENO))
    (void)out_raw("RANK\tMEMBER\tSCORE\n", strlen("RANK\tMEMBER\tSCORE\n"));
}

/* Of several: the status is 1 if one is not there, or there are none. */
static void on_entries(belay_request_t *r, int status, const belay_ranking_entry_t *entries,
                       size_t n) {
  harness_t *h = r->data;
  bool all = n > 0;
  fail(h, status);
  if (n > 0)
    out_headings();
  for (size_t i = 0; i < n; i++) {
    all = all && entries[i].rank >= 0;
    if (!out_entry(&entries[i]))
      break;
  }
  harness_done(h, all ? STATUS_YES : STATUS_NO);
}

#define NAME_OPTION                                                                                \
  TEXT("name", "NAME", &asked.name,                                                                \
       "which boards: part of the keys, so that others may have a BOARD of the same name")
#define LOW_OPTION                                                                                 \
  FLAG("low-first", &asked.low_first, "the lowest score is the best: seconds, strokes")
#define TIES_OPTION                                                                                \
  TEXT("ties", "WHO", &asked.ties,                                                                 \
       "of those with the same score is better: member (by their bytes), earlier or later "        \
       "(who reached it first, last); default: that of the board; of a new one member",            \
       .choices = "member earlier later")
#define CHANGE_OPTIONS                                                                             \
  DURATION("ttl", 1000, YEAR_MS, &asked.ttl_ms,                                                    \
           "the server forgets the board after this time without a change; default: that of the "  \
           "board; of a new one 30d",                                                              \
           .forever = true),                                                                       \
      NUMBER(                                                                                      \
          "max-members", 1, BELAY_RANKING_SIZE_MAX, &asked.max_members,                            \
          "how many members stay, the best; default: that of the board; of a new one any number")
#define BOARD_OPTIONS LOW_OPTION, TIES_OPTION, NAME_OPTION

static const option_t board_options[] = {BOARD_OPTIONS, {0}};

/* ---- add, set ------------------------------------------------------------------------------------------ */

static void on_submitted(belay_request_t *r, int status, const belay_ranking_entry_t *entries,
                         size_t n) {
  harness_t *h = r->data;
  fail(h, status);
  if (n > 0)
    (void)out_entry(entries);
  harness_done(h, n > 0 && entries->rank >= 0 && (entries->changed || !asked.best) ? STATUS_YES
                                                                                   : STATUS_NO);
}

static void go_submit(harness_t *h) {
  const belay_ranking_score_t item = {.member = members[0], .score = number};
  fail(h, belay_ranking_submit(ranking, &request, board_of(h), board_len(h), mode, &item, 1,
                               on_submitted));
}

static void submit(harness_t *h, belay_ranking_mode_t how) {
  mode = how;
  read_members(h);
  if (read_number(h, 2, BELAY_RANKING_SCORE_MIN, BELAY_RANKING_SCORE_MAX, 1))
    begin_with(h, RECORD_ADDS, go_submit);
}

static void begin_add(harness_t *h) {
  submit(h, BELAY_RANKING_ADD);
}

static void begin_set(harness_t *h) {
  submit(h, asked.best ? BELAY_RANKING_BEST : BELAY_RANKING_SET);
}

/* ---- top, around, of ----------------------------------------------------------------------------------- */

static void go_top(harness_t *h) {
  fail(h, belay_ranking_range(ranking, &request, board_of(h), board_len(h),
                              asked.worst ? BELAY_RANKING_FROM_WORST : BELAY_RANKING_FROM_BEST,
                              asked.skip, (size_t)number, on_entries));
}

static void begin_top(harness_t *h) {
  if (read_number(h, 1, 1, (int64_t)BELAY_RANKING_PAGE_MAX, 10))
    begin_with(h, RECORD_READS, go_top);
}

static void go_around(harness_t *h) {
  fail(h, belay_ranking_around(ranking, &request, board_of(h), board_len(h), members[0].data,
                               members[0].len, (size_t)number, (size_t)number, on_entries));
}

static void begin_around(harness_t *h) {
  read_members(h);
  if (read_number(h, 2, 0, (int64_t)(BELAY_RANKING_PAGE_MAX - 1) / 2, 5))
    begin_with(h, RECORD_READS, go_around);
}

static void go_of(harness_t *h) {
  fail(h, belay_ranking_find(ranking, &request, board_of(h), board_len(h), members, members_n,
                             on_entries));
}

static void begin_of(harness_t *h) {
  read_members(h);
  begin_with(h, RECORD_READS, go_of);
}

/* ---- count, delete ------------------------------------------------------------------------------------- */

/* A number, and whether there is any. */
static void tell(belay_request_t *r, int status, const char *member, int64_t n) {
  harness_t *h = r->data;
  if (status != 0) {
    fail(h, status);
    return;
  }
  out_begin();
  out_string("board", board_of(h));
  out_number(member, n);
  out_say("%" PRId64, n);
  (void)out_end();
  harness_done(h, n > 0 ? STATUS_YES : STATUS_NO);
}

static void on_count(belay_request_t *r, int status, int64_t count) {
  tell(r, status, "members", count);
}

static void go_count(harness_t *h) {
  fail(h, belay_ranking_count(ranking, &request, board_of(h), board_len(h), on_count));
}

static void begin_count(harness_t *h) {
  begin_with(h, RECORD_READS, go_count);
}

static void on_removed(belay_request_t *r, int status, int64_t removed) {
  tell(r, status, "removed", removed);
}

static void on_cleared(belay_request_t *r, int status, int64_t zero) {
  harness_t *h = r->data;
  (void)zero;
  fail(h, status);
  if (status == 0 && out_form() == OUT_JSON) {
    out_begin();
    out_string("board", board_of(h));
    out_bool("deleted", true);
    (void)out_end();
  }
  harness_done(h, STATUS_YES);
}

static void go_delete(harness_t *h) {
  if (members_n > 0)
    fail(h, belay_ranking_remove(ranking, &request, board_of(h), board_len(h), members, members_n,
                                 on_removed));
  else
    fail(h, belay_ranking_clear(ranking, &request, board_of(h), board_len(h), on_cleared));
}

static void begin_delete(harness_t *h) {
  read_members(h);
  begin_with(h, RECORD_REMOVES, go_delete);
}

static const command_t parts[] = {
    {
        .name = "add",
        .arguments = "BOARD MEMBER [N]",
        .summary = "add N, or 1, to a member's score, and say where it stands",
        .text =
            "An add whose answer is lost may have happened, and is not sent again: the status is "
            "123. The status is 1 if --max-members leaves no place for it.",
        .examples = EXAMPLES({"Five points for ada", "belay rank add points ada 5"}),
        .options = OPTIONS(BOARD_OPTIONS, CHANGE_OPTIONS),
        .begin = begin_add,
    },
    {
        .name = "around",
        .arguments = "BOARD MEMBER [N]",
        .summary = "a member, and up to N (default 5) who are better, and who are worse",
        .text = "The status is 1 if it is not there.",
        .examples =
            EXAMPLES({"Who is just before ada, and just behind", "belay rank around points ada 1"}),
        .options = board_options,
        .begin = begin_around,
    },
    {
        .name = "count",
        .arguments = "BOARD",
        .summary = "how many members there are; the status is 1 if there are none",
        .examples = EXAMPLES({"How many take part", "belay rank count points"}),
        .options = board_options,
        .begin = begin_count,
    },
    {
        .name = "delete",
        .arguments = "BOARD [MEMBER]...",
        .summary = "take members off, and say how many were there; without any, the whole board",
        .text = "The status is 1 if none of the members was there.",
        .examples = EXAMPLES({"Somebody who has cheated", "belay rank delete points mallory"}),
        .options = board_options,
        .begin = begin_delete,
    },
    {
        .name = "of",
        .arguments = "BOARD MEMBER...",
        .summary = "where members stand; the status is 1 if one is not there",
        .examples = EXAMPLES({"Where two of them stand", "belay rank of points ada bob"}),
        .options = board_options,
        .begin = begin_of,
    },
    {
        .name = "set",
        .arguments = "BOARD MEMBER N",
        .summary = "give a member a score, and say where it stands",
        .text = "The status is 1 if --max-members leaves no place for it.",
        .examples = EXAMPLES(
            {"A personal best, in seconds", "belay rank set laps ada 73 --best --low-first"}),
        .options = OPTIONS(FLAG("best", &asked.best,
                                "only if that is better than what it has; the status is "
                                "1 if not"),
                           BOARD_OPTIONS, CHANGE_OPTIONS),
        .begin = begin_set,
    },
    {
        .name = "top",
        .arguments = "BOARD [N]",
        .summary = "the best N, or 10: rank, member, score; the status is 1 if there are none",
        .examples = EXAMPLES({"The fastest three", "belay rank top laps 3"}),
        .options = OPTIONS(
            NUMBER("skip", 0, BELAY_RANKING_SIZE_MAX, &asked.skip, "not the first N of them"),
            FLAG("worst", &asked.worst, "from the other end: the worst one first"), BOARD_OPTIONS),
        .begin = begin_top,
    },
    {0},
};

const command_t rank_command = {
    .name = "rank",
    .summary = "members with scores, and who stands where",
    .text =
        "Scores are whole numbers, up to 2^53 - 1; the best one has rank 1. The first add or set "
        "decides --low-first and --ties of a BOARD. The server keeps them: later commands need not "
        "repeat them, and a command that contradicts them ends with an error.",
    .examples = EXAMPLES(
        {"Points, and the best three", "belay rank add points ada 5; belay rank top points 3"},
        {"A personal best, in seconds", "belay rank set laps ada 73 --best --low-first"}),
    .parts = parts,
};

/* `belay online`: users and machines that are online. With a window each member expires by itself
 * (a dedup window); without a window all members expire together (a dedup set). */
#include <inttypes.h>
#include <string.h>

#include "harness.h"
#include "query/record.h"

#define KEY "online"
#define MEMBERS_MAX ((size_t)16384) /* in one command */
#define PAGE ((size_t)1000)

static struct {
  int64_t window_ms; /* 0: a member stays until it leaves */
  int64_t ttl_ms, life_ms;
} asked = {.ttl_ms = -1};

static belay_dedup_t *members;
static belay_presence_t *site; /* for a reset, which deletes the record */

/* The members on the command line, as arguments of a call. */
#define MEMBERS(h) (h)->items + 1, (h)->arguments->n - 1

/* ---- shared by the subcommands ---- */

/* Open the handles when all options are known. Their keys are in the slot of the site's record. */
static bool open_site(harness_t *h) {
  belay_presence_options_t site_options;
  belay_presence_options_init(&site_options);
  site_options.name = h->items[0];
  belay_dedup_options_t options;
  belay_dedup_options_init(&options);
  options.name = h->items[0];
  options.kind = asked.window_ms > 0 ? BELAY_DEDUP_WINDOW : BELAY_DEDUP_SET;
  if (asked.window_ms > 0)
    options.window_ms = asked.window_ms;
  options.ttl_ms = asked.ttl_ms;
  options.extend_ttl = true;
  asked.life_ms = asked.window_ms > 0 ? asked.window_ms : asked.ttl_ms;
  return harness_ok(h, belay_dedup_new(h->client[0], &options, &members)) &&
         harness_ok(h, belay_presence_new(h->client[0], &site_options, &site));
}

static void begin_online(harness_t *h) {
  static const record_field_t fields[] = {
      RECORD_DURATION("window_ms", "--window", &asked.window_ms, 0, 0, BELAY_CONFIG_SAME),
      RECORD_DURATION("ttl_ms", "--ttl", &asked.ttl_ms, -1, DAY_MS, BELAY_CONFIG_LATEST),
  };
  static const record_t record = {.kind = BELAY_CONFIG_PRESENCE,
                                  .fields = fields,
                                  .n = sizeof fields / sizeof *fields,
                                  .life_ms = &asked.life_ms,
                                  .check = open_site};
  if (h->arguments->n > MEMBERS_MAX + 1)
    harness_refuse(h, "more than 16384 members");
  else
    record_begin(h, &record);
}

/* ---- beat, leave, reset ---- */

static void on_changed(belay_request_t *r, int status) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  if (out_form() == OUT_JSON && !harness_is_done(h)) {
    out_begin();
    out_string("site", h->arguments->item[0]);
    out_string("event", h->command->name);
    out_number("members", (int64_t)h->arguments->n - 1);
    (void)out_end();
  }
  harness_done(h, STATUS_YES);
}

static void on_marked(belay_request_t *r, int status, const belay_dedup_verdict_t *verdicts,
                      size_t n) {
  harness_t *h = r->data;
  for (size_t i = 0; i < n && !harness_is_done(h); i++)
    if (verdicts[i] == BELAY_DEDUP_FULL) {
      complain("the site is full: it has a million members");
      harness_done(h, STATUS_TROUBLE);
    }
  on_changed(r, status);
}

static void beat(harness_t *h) {
  harness_ok(h,
             belay_dedup_mark_many(members, &h->request, belay_string(KEY), MEMBERS(h), on_marked));
}

static void on_forgotten(belay_request_t *r, int status, int64_t n) {
  (void)n;
  on_changed(r, status);
}

static void leave(harness_t *h) {
  harness_ok(h,
             belay_dedup_forget(members, &h->request, belay_string(KEY), MEMBERS(h), on_forgotten));
}

static void on_cleared(belay_request_t *r, int status, int64_t n) {
  harness_t *h = r->data;
  (void)n;
  if (status == 0)
    status = belay_presence_reset(site, r, on_changed);
  harness_ok(h, status);
}

static void reset(harness_t *h) {
  harness_ok(h, belay_dedup_clear(members, &h->request, belay_string(KEY), on_cleared));
}

/* ---- is, count ---- */

static void on_tested(belay_request_t *r, int status, const belay_dedup_verdict_t *verdicts,
                      size_t n) {
  harness_t *h = r->data;
  bool all = true, written = true;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n && written; i++) {
    bool online = verdicts[i] == BELAY_DEDUP_SEEN;
    all = all && online;
    out_begin();
    out_text("member", h->items[i + 1].data, h->items[i + 1].len);
    out_bool("online", online);
    if (n == 1)
      out_say("%s", online ? "online" : "not online");
    written = out_end();
  }
  harness_done(h, all ? STATUS_YES : STATUS_NO);
}

static void test(harness_t *h) {
  harness_ok(h,
             belay_dedup_seen_many(members, &h->request, belay_string(KEY), MEMBERS(h), on_tested));
}

static void on_counted(belay_request_t *r, int status, int64_t count) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  out_begin();
  out_string("site", h->arguments->item[0]);
  out_number("online", count);
  out_say("%" PRId64, count);
  harness_answer(h, true);
}

static void count(harness_t *h) {
  harness_ok(h, belay_dedup_count(members, &h->request, belay_string(KEY), on_counted));
}

/* ---- list ---- */

static int ask_page(harness_t *h, uint64_t cursor);

static void on_page(belay_request_t *r, int status, const belay_bytes_t *items, size_t n,
                    uint64_t next) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n; i++) {
    out_begin();
    out_text("member", items[i].data, items[i].len);
    if (!out_end()) {
      harness_done(h, STATUS_TROUBLE);
      return;
    }
  }
  if (next != 0)
    harness_ok(h, ask_page(h, next));
  else
    harness_done(h, STATUS_YES);
}

static int ask_page(harness_t *h, uint64_t cursor) {
  static const belay_bytes_t key = {KEY, sizeof KEY - 1};
  return belay_dedup_page(members, &h->request,
                          &(belay_dedup_sets_t){.how = BELAY_DEDUP_UNION, .keys = &key, .n = 1},
                          cursor, PAGE, on_page);
}

static void list(harness_t *h) {
  harness_ok(h, ask_page(h, 0));
}

/* ---- tables ---- */

static const option_t site_options[] = {
    DURATION("window", 100, YEAR_MS, &asked.window_ms,
             "time after its last beat for which a member is online; default: that of SITE; for a "
             "new SITE a member stays until it leaves",
             .letter = 'w'),
    DURATION("ttl", 1000, YEAR_MS, &asked.ttl_ms,
             "without --window: the server deletes all members after this time without a beat; "
             "default: that of SITE; for a new SITE 1d",
             .forever = true),
    {0},
};

#define OPERATION(use, go)                                                                         \
  &(const record_operation_t) {                                                                    \
    use, go                                                                                        \
  }

static const command_t subcommands[] = {
    {
        .name = "beat",
        .arguments = "SITE MEMBER...",
        .summary = "mark members as online",
        .examples = EXAMPLES({"A machine reports every minute that it is up",
                              "* * * * * belay online beat machines $(hostname) --window 3m"}),
        .options = site_options,
        .what = "cannot change SITE",
        .begin = begin_online,
        .data = OPERATION(RECORD_ADDS, beat),
    },
    {
        .name = "count",
        .arguments = "SITE",
        .summary = "print the number of members that are online",
        .examples =
            EXAMPLES({"The number of users in the last five minutes", "belay online count shop"}),
        .options = site_options,
        .begin = begin_online,
        .data = OPERATION(RECORD_READS, count),
    },
    {
        .name = "is",
        .arguments = "SITE MEMBER...",
        .summary = "test whether members are online; the status is 0 if all are",
        .examples =
            EXAMPLES({"In a script", "belay online is -q machines web-17 || echo web-17 is down"}),
        .options = site_options,
        .what = "cannot read SITE",
        .begin = begin_online,
        .data = OPERATION(RECORD_READS, test),
    },
    {
        .name = "leave",
        .arguments = "SITE MEMBER...",
        .summary = "mark members as offline",
        .examples = EXAMPLES({"A user has logged out", "belay online leave shop 17"}),
        .options = site_options,
        .what = "cannot change SITE",
        .begin = begin_online,
        .data = OPERATION(RECORD_REMOVES, leave),
    },
    {
        .name = "list",
        .arguments = "SITE",
        .summary = "print the members that are online, unsorted",
        .text = "belay reads 1000 members at a time. A member that comes or goes meanwhile may be "
                "listed twice or not at all.",
        .examples = EXAMPLES({"The machines that are up", "belay online list machines"}),
        .options = site_options,
        .begin = begin_online,
        .data = OPERATION(RECORD_READS, list),
    },
    {
        .name = "reset",
        .arguments = "SITE",
        .summary = "delete all members of SITE",
        .examples = EXAMPLES({"The shop was moved to another machine", "belay online reset shop"}),
        .options = site_options,
        .what = "cannot change SITE",
        .begin = begin_online,
        .data = OPERATION(RECORD_REMOVES, reset),
    },
    {0},
};

const command_t online_command = {
    .name = "online",
    .summary = "users or machines that are online",
    .text = "A MEMBER is a text of up to 512 bytes. With --window, a member without a beat in that "
            "time is offline. The first beat decides the options of a SITE. The server stores "
            "them: later commands need not repeat them, and a command that contradicts them ends "
            "with an error.",
    .examples =
        EXAMPLES({"The number of users in the last five minutes", "belay online count shop"}),
    .subcommands = subcommands,
};

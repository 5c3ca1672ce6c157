/* `belay online`: who is there. */
#include "commands/online.h"

#include <inttypes.h>
#include <string.h>

#include "query/record.h"

static struct {
  online_options_t options;
  bool by_name;
  const char *members; /* "ids" or "names" */
} asked = {.options = {.ttl_ms = -1, .max_id = -1}};

static struct {
  const online_kind_t *kind;
  int64_t life_ms;
} work;

static const char *site_of(const harness_t *h) {
  return h->arguments->item[0];
}

/* ---- what they have in common -------------------------------------------------------------------------- */

void online_changed(harness_t *h, int status) {
  harness_fail(h, "cannot tell", status);
  if (status == 0 && out_form() == OUT_JSON && !harness_is_done(h)) {
    out_begin();
    out_string("site", site_of(h));
    out_string("event", h->command->name);
    out_number("members", (int64_t)h->arguments->n - 1);
    (void)out_end();
  }
  harness_done(h, STATUS_YES);
}

void online_counted(harness_t *h, int status, int64_t count) {
  if (status != 0) {
    harness_fail(h, "cannot count", status);
    return;
  }
  out_begin();
  out_string("site", site_of(h));
  out_number("online", count);
  out_say("%" PRId64, count);
  (void)out_end();
  harness_done(h, STATUS_YES);
}

/* All options are known now. */
static bool open_site(harness_t *h) {
  work.kind = strcmp(asked.members, "names") == 0 ? &online_names : &online_ids;
  work.life_ms = asked.options.window_ms > 0 ? asked.options.window_ms : asked.options.ttl_ms;
  return work.kind->open(h, &asked.options);
}

static void begin_with(harness_t *h, record_use_t use, const char *what, void (*go)(harness_t *h)) {
  static const record_field_t fields[] = {
      {.name = "members", .option = "members:", .text = &asked.members, .usual_text = "ids"},
      {.name = "window_ms",
       .option = "--window",
       .number = &asked.options.window_ms,
       .duration = true},
      {.name = "slices", .option = "--slices", .number = &asked.options.slices, .usual = 4},
      {.name = "max_id",
       .option = "--max-id",
       .number = &asked.options.max_id,
       .unset = -1,
       .usual = (1 << 24) - 1,
       .rule = BELAY_CONFIG_LARGEST},
      {.name = "ttl_ms",
       .option = "--ttl",
       .number = &asked.options.ttl_ms,
       .unset = -1,
       .usual = DAY_MS,
       .rule = BELAY_CONFIG_LATEST,
       .duration = true}};
  static record_t record = {.kind = BELAY_CONFIG_PRESENCE,
                            .fields = fields,
                            .n = sizeof fields / sizeof *fields,
                            .life_ms = &work.life_ms,
                            .check = open_site};
  if (h->arguments->n > ONLINE_MEMBERS_MAX + 1) {
    harness_refuse(h, "more than 16384 members");
    return;
  }
  asked.members = asked.by_name ? "names" : NULL;
  record.set = site_of(h);
  record.what = what;
  record.use = use;
  record.go = go;
  record_begin(h, &record);
}

#define SITE_OPTIONS                                                                               \
  DURATION("window", 100, YEAR_MS, &asked.options.window_ms,                                       \
           "a member is online for this time after its last beat, and up to a slice of it "        \
           "longer; default: that of SITE; of a new one a member stays until it leaves",           \
           .letter = 'w'),                                                                         \
      NUMBER("slices", 1, 14, &asked.options.slices,                                               \
             "how many parts the window has: the window is exact to one of them; default: that "   \
             "of SITE; of a new one 4"),                                                           \
      DURATION("ttl", 1000, YEAR_MS, &asked.options.ttl_ms,                                        \
               "without --window: the server forgets all members after this time without a beat; " \
               "default: that of SITE; of a new one 1d",                                           \
               .forever = true),                                                                   \
      NUMBER("max-id", 0, UINT32_MAX, &asked.options.max_id,                                       \
             "the largest id there may be; default: that of SITE; of a new one 16777215"),         \
      FLAG("names", &asked.by_name,                                                                \
           "members are names of up to 512 bytes instead of numbers; only the first beat of a "    \
           "SITE needs it")

static const option_t site_options[] = {SITE_OPTIONS, {0}};

/* ---- beat, leave, reset -------------------------------------------------------------------------------- */

static void go_beat(harness_t *h) {
  work.kind->beat(h);
}

static void begin_beat(harness_t *h) {
  begin_with(h, RECORD_ADDS, "cannot tell", go_beat);
}

static void go_leave(harness_t *h) {
  work.kind->leave(h);
}

static void begin_leave(harness_t *h) {
  begin_with(h, RECORD_REMOVES, "cannot tell", go_leave);
}

static void go_reset(harness_t *h) {
  work.kind->reset(h);
}

static void begin_reset(harness_t *h) {
  begin_with(h, RECORD_REMOVES, "cannot tell", go_reset);
}

/* ---- is ------------------------------------------------------------------------------------------------ */

static void go_is(harness_t *h) {
  work.kind->is(h);
}

static void begin_is(harness_t *h) {
  begin_with(h, RECORD_READS, "cannot ask", go_is);
}

/* ---- count --------------------------------------------------------------------------------------------- */

static void go_count(harness_t *h) {
  work.kind->count(h);
}

static void begin_count(harness_t *h) {
  begin_with(h, RECORD_READS, "cannot count", go_count);
}

/* ---- list ---------------------------------------------------------------------------------------------- */

static void go_list(harness_t *h) {
  work.kind->list(h);
}

static void begin_list(harness_t *h) {
  begin_with(h, RECORD_READS, "cannot list", go_list);
}

static const command_t parts[] = {
    {
        .name = "beat",
        .arguments = "SITE ID...",
        .summary = "somebody is there, or several are",
        .examples =
            EXAMPLES({"A machine that says every minute that it lives",
                      "* * * * * belay online beat machines $(hostname) --names --window 3m"}),
        .options = site_options,
        .begin = begin_beat,
    },
    {
        .name = "count",
        .arguments = "SITE",
        .summary = "how many are there",
        .examples = EXAMPLES(
            {"How many were here within the last five minutes", "belay online count shop"}),
        .options = site_options,
        .begin = begin_count,
    },
    {
        .name = "is",
        .arguments = "SITE ID...",
        .summary = "whether somebody is there; the status is 0 if all of them are",
        .examples =
            EXAMPLES({"In a script", "belay online is -q machines web-17 || echo web-17 is down"}),
        .options = site_options,
        .begin = begin_is,
    },
    {
        .name = "leave",
        .arguments = "SITE ID...",
        .summary = "somebody is there no more",
        .examples = EXAMPLES({"Somebody has logged out", "belay online leave shop 17"}),
        .options = site_options,
        .begin = begin_leave,
    },
    {
        .name = "list",
        .arguments = "SITE",
        .summary = "who is there: ids in their order, names in none",
        .text = "It counts ids, and then asks for ids from 0 on, 16384 at a time, until it has "
                "found as "
                "many: one that comes or goes meanwhile may be listed or not. Names come 1000 at a "
                "time; "
                "one that comes or goes meanwhile may be listed twice or not at all.",
        .examples = EXAMPLES({"The machines that live", "belay online list machines"}),
        .options = site_options,
        .begin = begin_list,
    },
    {
        .name = "reset",
        .arguments = "SITE",
        .summary = "nobody is there any more",
        .examples = EXAMPLES({"The shop was moved to another machine", "belay online reset shop"}),
        .options = site_options,
        .begin = begin_reset,
    },
    {0},
};

const command_t online_command = {
    .name = "online",
    .summary = "who is there, a bit for each: users, machines",
    .text =
        "ID is a whole number from 0 on, at best from a sequence (belay id sequence): SITE takes "
        "as many bits as the largest of them. With --names it is any text, and each member takes "
        "about 100 bytes. With --window a member without a beat in that time is not online any "
        "more. The first beat decides the options of a SITE. The server keeps them: later "
        "commands need not repeat them, and a command that contradicts them ends with an error.",
    .examples =
        EXAMPLES({"How many were here within the last five minutes", "belay online count shop"}),
    .parts = parts,
};

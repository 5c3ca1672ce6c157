/* `belay online`: users and machines that are online. */
#include "commands/online.h"

#include <inttypes.h>
#include <string.h>

#include "query/record.h"

static struct {
  online_options_t options;
  bool by_name;
  const char *members; /* "ids" or "names" */
  int64_t life_ms;
} asked = {.options = {.ttl_ms = -1, .max_id = -1}};

/* A subcommand, for a site of ids and for one of names. */
typedef struct operation {
  record_operation_t record;
  void (*ids)(harness_t *h);
  void (*names)(harness_t *h);
} operation_t;

/* ---- shared by the subcommands ---- */

void online_changed(belay_request_t *request, int status) {
  harness_t *h = request->data;
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

void online_counted(belay_request_t *request, int status, int64_t count) {
  harness_t *h = request->data;
  if (!harness_ok(h, status))
    return;
  out_begin();
  out_string("site", h->arguments->item[0]);
  out_number("online", count);
  out_say("%" PRId64, count);
  harness_answer(h, true);
}

static bool is_by_name(void) {
  return strcmp(asked.members, "names") == 0;
}

/* Open the site when all options are known. */
static bool open_site(harness_t *h) {
  asked.life_ms = asked.options.window_ms > 0 ? asked.options.window_ms : asked.options.ttl_ms;
  return is_by_name() ? online_names_open(h, &asked.options) : online_ids_open(h, &asked.options);
}

static void go(harness_t *h) {
  const operation_t *operation = h->command->data;
  if (is_by_name())
    operation->names(h);
  else
    operation->ids(h);
}

static void begin(harness_t *h) {
  static const record_field_t fields[] = {
      RECORD_TEXT("members", "members:", &asked.members, "ids"),
      RECORD_DURATION("window_ms", "--window", &asked.options.window_ms, 0, 0, BELAY_CONFIG_SAME),
      RECORD_NUMBER("slices", "--slices", &asked.options.slices, 0, 4, BELAY_CONFIG_SAME),
      RECORD_NUMBER("max_id", "--max-id", &asked.options.max_id, -1, (1 << 24) - 1,
                    BELAY_CONFIG_LARGEST),
      RECORD_DURATION("ttl_ms", "--ttl", &asked.options.ttl_ms, -1, DAY_MS, BELAY_CONFIG_LATEST),
  };
  static const record_t record = {.kind = BELAY_CONFIG_PRESENCE,
                                  .fields = fields,
                                  .n = sizeof fields / sizeof *fields,
                                  .life_ms = &asked.life_ms,
                                  .check = open_site};
  asked.members = asked.by_name ? "names" : NULL;
  if (h->arguments->n > ONLINE_MEMBERS_MAX + 1)
    harness_refuse(h, "more than 16384 members");
  else
    record_begin(h, &record);
}

/* ---- tables ---- */

#define SITE_OPTIONS                                                                               \
  DURATION("window", 100, YEAR_MS, &asked.options.window_ms,                                       \
           "time after its last beat for which a member is online, or up to one slice longer; "    \
           "default: that of SITE; for a new SITE a member stays until it leaves",                 \
           .letter = 'w'),                                                                         \
      NUMBER("slices", 1, 14, &asked.options.slices,                                               \
             "number of slices of the window; the window is exact to one slice; default: that "    \
             "of SITE; for a new SITE 4"),                                                         \
      DURATION("ttl", 1000, YEAR_MS, &asked.options.ttl_ms,                                        \
               "without --window: the server deletes all members after this time without a "       \
               "beat; default: that of SITE; for a new SITE 1d",                                   \
               .forever = true),                                                                   \
      NUMBER("max-id", 0, UINT32_MAX, &asked.options.max_id,                                       \
             "largest id; default: that of SITE; for a new SITE 16777215"),                        \
      FLAG("names", &asked.by_name,                                                                \
           "members are names of up to 512 bytes instead of numbers; only the first beat of a "    \
           "SITE needs this option")

static const option_t site_options[] = {SITE_OPTIONS, {0}};

#define OPERATION(use, name)                                                                       \
  &(const operation_t) {                                                                           \
    {use, go}, online_ids_##name, online_names_##name                                              \
  }

static const command_t parts[] = {
    {
        .name = "beat",
        .arguments = "SITE ID...",
        .summary = "mark members as online",
        .examples =
            EXAMPLES({"A machine reports every minute that it is up",
                      "* * * * * belay online beat machines $(hostname) --names --window 3m"}),
        .options = site_options,
        .what = "cannot change SITE",
        .begin = begin,
        .data = OPERATION(RECORD_ADDS, beat),
    },
    {
        .name = "count",
        .arguments = "SITE",
        .summary = "print the number of members that are online",
        .examples =
            EXAMPLES({"The number of users in the last five minutes", "belay online count shop"}),
        .options = site_options,
        .begin = begin,
        .data = OPERATION(RECORD_READS, count),
    },
    {
        .name = "is",
        .arguments = "SITE ID...",
        .summary = "test whether members are online; the status is 0 if all are",
        .examples =
            EXAMPLES({"In a script", "belay online is -q machines web-17 || echo web-17 is down"}),
        .options = site_options,
        .what = "cannot read SITE",
        .begin = begin,
        .data = OPERATION(RECORD_READS, is),
    },
    {
        .name = "leave",
        .arguments = "SITE ID...",
        .summary = "mark members as offline",
        .examples = EXAMPLES({"A user has logged out", "belay online leave shop 17"}),
        .options = site_options,
        .what = "cannot change SITE",
        .begin = begin,
        .data = OPERATION(RECORD_REMOVES, leave),
    },
    {
        .name = "list",
        .arguments = "SITE",
        .summary = "print the members that are online: ids sorted, names unsorted",
        .text = "For ids, belay reads their number, and then queries ids from 0 on, 16384 at a "
                "time, until it has found as many. An id that comes or goes meanwhile may be "
                "listed or not. Names are read 1000 at a time; a name that comes or goes meanwhile "
                "may be listed twice or not at all.",
        .examples = EXAMPLES({"The machines that are up", "belay online list machines"}),
        .options = site_options,
        .begin = begin,
        .data = OPERATION(RECORD_READS, list),
    },
    {
        .name = "reset",
        .arguments = "SITE",
        .summary = "delete all members of SITE",
        .examples = EXAMPLES({"The shop was moved to another machine", "belay online reset shop"}),
        .options = site_options,
        .what = "cannot change SITE",
        .begin = begin,
        .data = OPERATION(RECORD_REMOVES, reset),
    },
    {0},
};

const command_t online_command = {
    .name = "online",
    .summary = "users or machines that are online, one bit each",
    .text =
        "ID is a whole number from 0 on, ideally from a sequence (belay id sequence): SITE "
        "takes as many bits as the largest id. With --names it is any text, and each member "
        "takes about 100 bytes. With --window, a member without a beat in that time is "
        "offline. The first beat decides the options of a SITE. The server stores them: later "
        "commands need not repeat them, and a command that contradicts them ends with an error.",
    .examples =
        EXAMPLES({"The number of users in the last five minutes", "belay online count shop"}),
    .parts = parts,
};

/* `belay online`: who is there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "harness.h"

static struct {
  int64_t window_ms, slices, ttl_ms, max_id;
} asked = {.slices = 4, .ttl_ms = DAY_MS, .max_id = (1 << 24) - 1};

static belay_presence_t *site;
static belay_request_t request;
static struct {
  uint32_t *ids; /* that are asked for, or set */
  size_t n;
  int64_t next,
      left; /* of a list: the first id that was not asked for; how many are still to be found */
} work;

static const char *site_of(const harness_t *h) {
  return h->arguments->item[0];
}

/* ---- what they have in common -------------------------------------------------------------------------- */

/* The arguments behind the site; valid to the end of the process. */
static bool read_ids(harness_t *h) {
  const arguments_t *arguments = h->arguments;
  work.n = arguments->n - 1;
  if (work.n > BELAY_PRESENCE_IDS_MAX) {
    harness_refuse(h, "more than 16384 ids");
    return false;
  }
  work.ids = calloc(work.n + 1, sizeof *work.ids);
  for (size_t i = 0; work.ids != NULL && i < work.n; i++) {
    int64_t id;
    if (!units_number(arguments->item[i + 1], &id) || id < 0 || id > asked.max_id) {
      harness_refuse(h, "ID is no whole number from 0 to --max-id");
      return false;
    }
    work.ids[i] = (uint32_t)id;
  }
  if (work.ids == NULL)
    harness_fail(h, "cannot begin", BELAY_ENOMEM);
  return work.ids != NULL;
}

static bool open_site(harness_t *h) {
  belay_presence_options_t options;
  belay_presence_options_init(&options);
  options.name = site_of(h);
  options.name_len = strlen(options.name);
  options.max_id = (uint32_t)asked.max_id;
  options.window_ms = asked.window_ms;
  options.slices = (uint32_t)asked.slices;
  options.ttl_ms = asked.ttl_ms == BELAY_FOREVER ? 0 : asked.ttl_ms;
  request.data = h;
  int error = belay_presence_new(h->client[0], &options, &site);
  harness_fail(h, "cannot begin", error);
  return error == 0;
}

#define SITE_OPTIONS                                                                               \
  {.name = "window",                                                                               \
   .letter = 'w',                                                                                  \
   .kind = OPTION_DURATION,                                                                        \
   .value = "DURATION",                                                                            \
   .to.number = &asked.window_ms,                                                                  \
   .min = 100,                                                                                     \
   .max = YEAR_MS,                                                                                 \
   .help = "who was seen is online for so long, and up to a slice of it more; default: until he "  \
           "leaves"},                                                                              \
      {.name = "slices",                                                                           \
       .kind = OPTION_NUMBER,                                                                      \
       .value = "N",                                                                               \
       .to.number = &asked.slices,                                                                 \
       .min = 1,                                                                                   \
       .max = 14,                                                                                  \
       .help = "of the window, as exact as that is; default 4"},                                   \
      {.name = "ttl",                                                                              \
       .kind = OPTION_DURATION,                                                                    \
       .value = "DURATION",                                                                        \
       .to.number = &asked.ttl_ms,                                                                 \
       .min = 1000,                                                                                \
       .max = YEAR_MS,                                                                             \
       .forever = true,                                                                            \
       .help = "without --window: all is forgotten if nobody came for so long; default 1d"},       \
  {                                                                                                \
    .name = "max-id", .kind = OPTION_NUMBER, .value = "N", .to.number = &asked.max_id,             \
    .max = UINT32_MAX, .help = "the largest id there may be; default 16777215"                     \
  }

static const option_t site_options[] = {SITE_OPTIONS, {0}};

/* ---- beat, leave, reset -------------------------------------------------------------------------------- */

static void on_done(belay_request_t *r, int status) {
  harness_t *h = r->data;
  harness_fail(h, "cannot tell", status);
  harness_done(h, STATUS_YES);
}

static void begin_beat(harness_t *h) {
  if (read_ids(h) && open_site(h))
    harness_fail(h, "cannot tell",
                 belay_presence_set_many(site, &request, work.ids, work.n, on_done));
}

static const command_t beat = {
    .name = "beat",
    .arguments = "SITE ID...",
    .summary = "somebody is there, or several are",
    .examples = (const example_t[]){{"A machine that says every minute that it lives",
                                     "* * * * * belay online beat machines 17 --window 3m"},
                                    {0}},
    .options = site_options,
    .least = 2,
    .most = ANY_NUMBER,
    .urls = 1,
    .begin = begin_beat,
};

static void begin_leave(harness_t *h) {
  if (read_ids(h) && open_site(h))
    harness_fail(h, "cannot tell",
                 belay_presence_clear_many(site, &request, work.ids, work.n, on_done));
}

static const command_t leave = {
    .name = "leave",
    .arguments = "SITE ID...",
    .summary = "somebody is there no more",
    .examples = (const example_t[]){{"Somebody has logged out", "belay online leave shop 17"}, {0}},
    .options = site_options,
    .least = 2,
    .most = ANY_NUMBER,
    .urls = 1,
    .begin = begin_leave,
};

static void begin_reset(harness_t *h) {
  if (open_site(h))
    harness_fail(h, "cannot tell", belay_presence_reset(site, &request, on_done));
}

static const command_t reset = {
    .name = "reset",
    .arguments = "SITE",
    .summary = "nobody is there any more",
    .examples =
        (const example_t[]){{"The shop was moved to another machine", "belay online reset shop"},
                            {0}},
    .options = site_options,
    .least = 1,
    .most = 1,
    .urls = 1,
    .begin = begin_reset,
};

/* ---- is ------------------------------------------------------------------------------------------------ */

static void on_is(belay_request_t *r, int status, const bool *online, size_t n) {
  harness_t *h = r->data;
  bool all = true;
  harness_fail(h, "cannot ask", status);
  for (size_t i = 0; i < n; i++) {
    all = all && online[i];
    out_begin();
    out_number("id", work.ids[i]);
    out_bool("online", online[i]);
    if (n == 1)
      out_say("%s", online[i] ? "online" : "not online");
    if (!out_end())
      break;
  }
  harness_done(h, all ? STATUS_YES : STATUS_NO);
}

static void begin_is(harness_t *h) {
  if (read_ids(h) && open_site(h))
    harness_fail(h, "cannot ask", belay_presence_is_many(site, &request, work.ids, work.n, on_is));
}

static const command_t is = {
    .name = "is",
    .arguments = "SITE ID...",
    .summary = "whether somebody is there; the status is 0 if all of them are",
    .examples =
        (const example_t[]){
            {"In a script",
             "belay online is -q machines 17 --window 3m || echo machine 17 is down"},
            {0}},
    .options = site_options,
    .least = 2,
    .most = ANY_NUMBER,
    .urls = 1,
    .reports = true,
    .begin = begin_is,
};

/* ---- count --------------------------------------------------------------------------------------------- */

static void on_count(belay_request_t *r, int status, int64_t count) {
  harness_t *h = r->data;
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

static void begin_count(harness_t *h) {
  if (open_site(h))
    harness_fail(h, "cannot count", belay_presence_count(site, &request, on_count));
}

static const command_t count = {
    .name = "count",
    .arguments = "SITE",
    .summary = "how many are there",
    .examples = (const example_t[]){{"How many were here within the last five minutes",
                                     "belay online count shop --window 5m"},
                                    {0}},
    .options = site_options,
    .least = 1,
    .most = 1,
    .urls = 1,
    .reports = true,
    .begin = begin_count,
};

/* ---- list ---------------------------------------------------------------------------------------------- */

static void ask_next(harness_t *h);

static void on_some(belay_request_t *r, int status, const bool *online, size_t n) {
  harness_t *h = r->data;
  harness_fail(h, "cannot list", status);
  for (size_t i = 0; i < n; i++) {
    if (!online[i])
      continue;
    work.left--;
    out_begin();
    out_number("id", work.ids[i]);
    if (!out_end()) {
      harness_done(h, STATUS_TROUBLE);
      return;
    }
  }
  if (status == 0)
    ask_next(h);
}

static void ask_next(harness_t *h) {
  if (work.left <= 0 || work.next > asked.max_id) {
    harness_done(h, STATUS_YES);
    return;
  }
  for (work.n = 0; work.n < BELAY_PRESENCE_IDS_MAX && work.next <= asked.max_id; work.n++)
    work.ids[work.n] = (uint32_t)work.next++;
  harness_fail(h, "cannot list", belay_presence_is_many(site, &request, work.ids, work.n, on_some));
}

static void on_how_many(belay_request_t *r, int status, int64_t online) {
  harness_t *h = r->data;
  harness_fail(h, "cannot list", status);
  work.left = online;
  if (status == 0)
    ask_next(h);
}

static void begin_list(harness_t *h) {
  work.ids = calloc(BELAY_PRESENCE_IDS_MAX, sizeof *work.ids);
  if (work.ids == NULL)
    harness_fail(h, "cannot list", BELAY_ENOMEM);
  else if (open_site(h))
    harness_fail(h, "cannot list", belay_presence_count(site, &request, on_how_many));
}

static const command_t list = {
    .name = "list",
    .arguments = "SITE",
    .summary = "who is there: ids, in their order",
    .text =
        "It counts them, and then asks for ids from 0 on, 16384 at a time, until it has found as "
        "many: who comes or goes meanwhile may be told or not.",
    .examples =
        (const example_t[]){{"The machines that live", "belay online list machines --window 3m"},
                            {0}},
    .options = site_options,
    .least = 1,
    .most = 1,
    .urls = 1,
    .reports = true,
    .begin = begin_list,
};

const command_t online_command = {
    .name = "online",
    .summary = "who is there, a bit for each: users, machines",
    .text =
        "ID is a whole number from 0 on, at best from a sequence (belay id sequence): SITE takes "
        "as many bits as the largest of them. With --window those who were not seen for so long "
        "are gone by themselves. All who share a SITE should say the same options.",
    .examples = (const example_t[]){{"How many were here within the last five minutes",
                                     "belay online count shop --window 5m"},
                                    {0}},
    .parts = (const command_t *const[]){&beat, &count, &is, &leave, &list, &reset, NULL},
};

/* `belay count`: shared counters. */
#include <inttypes.h>
#include <string.h>

#include "harness.h"

/* The options; each subcommand has some of them. */
static struct {
  const char *name, *id;
  int64_t ttl_ms, shards, min, max, delta;
  bool extend;
} asked = {.shards = 1, .min = INT64_MIN, .max = INT64_MAX, .delta = 1};

static belay_counter_t *counter;

#define NAME_OPTION                                                                                \
  TEXT("name", "NAME", &asked.name,                                                                \
       "a group of counters, part of the keys: the same KEY under another NAME is separate")
#define SHARDS_OPTION                                                                              \
  NUMBER("shards", 1, BELAY_COUNTER_SHARDS_MAX, &asked.shards,                                     \
         "number of keys over which the counter is spread, for very frequent adds. All users "     \
         "of the counter must give the same number; default 1")
#define TTL_OPTION                                                                                 \
  DURATION("ttl", 1, YEAR_MS, &asked.ttl_ms, "lifetime from its creation on; default: no limit")

/* ---- shared by the subcommands ---- */

static bool open_counter(harness_t *h) {
  belay_counter_options_t options;
  belay_counter_options_init(&options);
  options.name = belay_string(asked.name != NULL ? asked.name : "");
  options.ttl_ms = asked.ttl_ms;
  options.extend_ttl = asked.extend;
  options.shards = (unsigned)asked.shards;
  return harness_ok(h, belay_counter_new(h->client[0], &options, &counter));
}

/* Read argument 1, a whole number. */
static bool read_delta(harness_t *h) {
  if (h->arguments->n < 2 || units_number(h->arguments->item[1], &asked.delta))
    return true;
  harness_refuse(h, "N is not a whole number of 64 bits");
  return false;
}

/* Write a value, and a boolean about it. */
static void write_answer(harness_t *h, const char *member, int64_t value, const char *fact, bool is,
                         bool yes) {
  out_begin();
  out_string("key", h->arguments->item[0]);
  out_wide(member, value);
  out_bool(fact, is);
  out_say("%" PRId64, value);
  harness_answer(h, yes);
}

/* ---- add ---- */

static void on_added(belay_request_t *r, int status, const belay_counter_result_t *result) {
  if (harness_ok(r->data, status))
    write_answer(r->data, "value", result->value, "applied", result->applied,
                 result->applied || asked.id != NULL);
}

static bool is_bounded(void) {
  return asked.min != INT64_MIN || asked.max != INT64_MAX;
}

static int start_add(belay_request_t *r, belay_bytes_t key) {
  if (asked.id != NULL)
    return belay_counter_add_once(counter, r, key, asked.delta, belay_string(asked.id), on_added);
  if (is_bounded())
    return belay_counter_add_bounded(counter, r, key, asked.delta,
                                     &(belay_counter_bounds_t){.min = asked.min, .max = asked.max},
                                     on_added);
  return belay_counter_add(counter, r, key, asked.delta, on_added);
}

static void begin_add(harness_t *h) {
  if (asked.id != NULL && is_bounded())
    harness_refuse(h, "--id excludes --min and --max");
  else if (read_delta(h) && open_counter(h))
    harness_ok(h, start_add(&h->request, h->items[0]));
}

static const option_t add_options[] = {
    TEXT("id", "ID", &asked.id,
         "id of this add: a second add with the same ID within an hour "
         "has no effect"),
    NUMBER("min", 0, 0, &asked.min,
           "add nothing if the result would be less; the status is 1 then"),
    NUMBER("max", 0, 0, &asked.max,
           "add nothing if the result would be more; the status is 1 then"),
    TTL_OPTION,
    FLAG("extend", &asked.extend, "restart the ttl with this add"),
    SHARDS_OPTION,
    NAME_OPTION,
    {0},
};

/* ---- get ---- */

static void on_got(belay_request_t *r, int status, const belay_counter_result_t *results,
                   size_t n) {
  harness_t *h = r->data;
  bool all = true, written = true;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n && written; i++) {
    const char *key = h->arguments->item[i];
    all = all && results[i].found;
    out_begin();
    out_string("key", key);
    out_wide("value", results[i].value);
    out_bool("found", results[i].found);
    if (n == 1)
      out_say("%" PRId64, results[i].value);
    else
      out_say("%s\t%" PRId64, out_shown(key, strlen(key)), results[i].value);
    written = out_end();
  }
  harness_done(h, all ? STATUS_YES : STATUS_NO);
}

static void begin_get(harness_t *h) {
  if (open_counter(h))
    harness_ok(h, belay_counter_get_many(counter, &h->request, h->items, h->arguments->n, on_got));
}

/* ---- set, delete ---- */

static void on_set(belay_request_t *r, int status, const belay_counter_result_t *result) {
  if (harness_ok(r->data, status))
    write_answer(r->data, "before", result->value, "found", result->found, true);
}

static void begin_set(harness_t *h) {
  if (read_delta(h) && open_counter(h))
    harness_ok(h, belay_counter_set(counter, &h->request, h->items[0], asked.delta, on_set));
}

static void on_deleted(belay_request_t *r, int status, const belay_counter_result_t *result) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  out_begin();
  out_string("key", h->arguments->item[0]);
  out_bool("found", result->found);
  out_say("%s", result->found ? "deleted" : "not found");
  harness_answer(h, result->found);
}

static void begin_delete(harness_t *h) {
  if (open_counter(h))
    harness_ok(h, belay_counter_delete(counter, &h->request, h->items[0], on_deleted));
}

static const command_t subcommands[] = {
    {
        .name = "add",
        .arguments = "KEY [N]",
        .summary = "add N (default 1) and print the result",
        .text = "If the reply to an add is lost, the add may have happened, and belay does not "
                "send it again: the status is 123. With --id belay sends it again, and it "
                "counts once.",
        .examples = EXAMPLES({"Take one of ten seats, if one is left",
                              "belay count add seats --max 10 && echo welcome"}),
        .options = add_options,
        .begin = begin_add,
    },
    {
        .name = "get",
        .arguments = "KEY...",
        .summary = "print counters; a missing counter is 0, and the status is 1 then",
        .examples = EXAMPLES({"Print two counters", "belay count get visits orders"}),
        .options = OPTIONS(SHARDS_OPTION, NAME_OPTION),
        .what = "cannot read",
        .begin = begin_get,
    },
    {
        .name = "set",
        .arguments = "KEY N",
        .summary = "set a counter, and print its old value",
        .text = "With 0, this reads and resets in one step.",
        .examples = EXAMPLES(
            {"Print the count of the day, and start again at 0", "belay count set visits 0"}),
        .options = OPTIONS(TTL_OPTION, NAME_OPTION),
        .begin = begin_set,
    },
    {
        .name = "delete",
        .arguments = "KEY",
        .summary = "delete a counter; the status is 1 if it does not exist",
        .examples =
            EXAMPLES({"Delete the count of one day", "belay count delete visits::2024-02-29"}),
        .options = OPTIONS(SHARDS_OPTION, NAME_OPTION),
        .begin = begin_delete,
    },
    {0},
};

const command_t count_command = {
    .name = "count",
    .summary = "counters shared by all machines",
    .text = "A counter is a signed whole number of 64 bits; a missing counter is 0. An add whose "
            "result would leave that range changes nothing, and is an error.",
    .examples =
        EXAMPLES({"Count the restarts of this machine", "belay count add restarts::$(hostname)"}),
    .subcommands = subcommands,
};

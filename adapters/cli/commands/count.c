/* `belay count`: numbers that many add to. */
#include <inttypes.h>
#include <string.h>

#include "harness.h"

/* What was asked for: each part has some of these options. */
static struct {
  const char *name, *id, *field;
  int64_t ttl_ms, shards, min, max, delta;
  bool extend, all;
} asked = {.shards = 1, .min = INT64_MIN, .max = INT64_MAX, .delta = 1};

static belay_counter_t *counter;
static belay_request_t request;

#define NAME_OPTION                                                                                \
  TEXT("name", "NAME", &asked.name,                                                                \
       "which counters: part of the keys, so that others may have counters of the same KEY")
#define SHARDS_OPTION                                                                              \
  NUMBER("shards", 1, BELAY_COUNTER_SHARDS_MAX, &asked.shards,                                     \
         "spread over so many keys, for what very many add to at once; all who share the "         \
         "counter must say the same; default 1")
#define TTL_OPTION                                                                                 \
  DURATION("ttl", 1, YEAR_MS, &asked.ttl_ms,                                                       \
           "for how long it lives from when it is created; default: for ever")
#define FIELD_OPTION                                                                               \
  TEXT("field", "FIELD", &asked.field,                                                             \
       "the counter of this name among those that KEY is a group of")

/* ---- what they have in common -------------------------------------------------------------------------- */

static void fail(harness_t *h, int error) {
  harness_fail(h, "cannot count", error);
}

static bool open_counter(harness_t *h) {
  belay_counter_options_t options;
  belay_counter_options_init(&options);
  options.name = asked.name != NULL ? asked.name : "";
  options.name_len = strlen(options.name);
  options.ttl_ms = asked.ttl_ms;
  options.extend = asked.extend;
  options.shards = (unsigned)asked.shards;
  request.data = h;
  int error = belay_counter_new(h->client[0], &options, &counter);
  fail(h, error);
  return error == 0;
}

static const char *key_of(const harness_t *h) {
  return h->arguments->item[0];
}

/* The members that say which counter it is. */
static void out_which(const harness_t *h) {
  out_string("key", key_of(h));
  if (asked.field != NULL)
    out_string("field", asked.field);
}

/* A whole number among the arguments. */
static bool read_argument(harness_t *h, size_t i, int64_t *out) {
  if (i >= h->arguments->n || units_number(h->arguments->item[i], out))
    return true;
  harness_refuse(h, "N is no whole number of 64 bits");
  return false;
}

static bool refuse(harness_t *h, bool wrong, const char *what) {
  if (wrong)
    harness_refuse(h, what);
  return wrong;
}

/* ---- add ----------------------------------------------------------------------------------------------- */

static void on_added(belay_request_t *r, int status, const belay_counter_result_t *result) {
  harness_t *h = r->data;
  if (status != 0) {
    harness_fail(h, "cannot add", status);
    return;
  }
  out_begin();
  out_which(h);
  out_wide("value", result->value);
  out_bool("applied", result->applied);
  out_say("%" PRId64, result->value);
  (void)out_end();
  harness_done(h, result->applied || asked.id != NULL ? STATUS_YES : STATUS_NO);
}

static void begin_add(harness_t *h) {
  const char *key = key_of(h);
  size_t len = strlen(key);
  bool bounded = asked.min != INT64_MIN || asked.max != INT64_MAX;
  if (!read_argument(h, 1, &asked.delta) ||
      refuse(h, (asked.id != NULL) + bounded + (asked.field != NULL) > 1,
             "--id, --field, and --min or --max exclude each other") ||
      !open_counter(h))
    return;
  if (asked.field != NULL)
    fail(h, belay_counter_add_field(counter, &request, key, len, asked.field, strlen(asked.field),
                                    asked.delta, on_added));
  else if (asked.id != NULL)
    fail(h, belay_counter_add_once(counter, &request, key, len, asked.delta, asked.id,
                                   strlen(asked.id), on_added));
  else if (bounded)
    fail(h, belay_counter_add_bounded(counter, &request, key, len, asked.delta, asked.min,
                                      asked.max, on_added));
  else
    fail(h, belay_counter_add(counter, &request, key, len, asked.delta, on_added));
}

static const option_t add_options[] = {
    TEXT("id", "ID", &asked.id, "this add's own id: said again within an hour it counts once"),
    NUMBER("min", 0, 0, &asked.min,
           "add nothing if less than this would come out; the status is 1 then"),
    NUMBER("max", 0, 0, &asked.max,
           "add nothing if more than this would come out; the status is 1 then"),
    FIELD_OPTION,
    TTL_OPTION,
    FLAG("extend", &asked.extend, "the ttl begins again with this add"),
    SHARDS_OPTION,
    NAME_OPTION,
    {0},
};

/* ---- get ----------------------------------------------------------------------------------------------- */

static void on_got_many(belay_request_t *r, int status, const belay_counter_result_t *results,
                        size_t n) {
  harness_t *h = r->data;
  bool all = true;
  if (status != 0) {
    harness_fail(h, "cannot read", status);
    return;
  }
  for (size_t i = 0; i < n; i++) {
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
    if (!out_end())
      break;
  }
  harness_done(h, all ? STATUS_YES : STATUS_NO);
}

static void on_got_field(belay_request_t *r, int status, const belay_counter_result_t *result) {
  harness_t *h = r->data;
  if (status != 0) {
    harness_fail(h, "cannot read", status);
    return;
  }
  out_begin();
  out_which(h);
  out_wide("value", result->value);
  out_bool("found", result->found);
  out_say("%" PRId64, result->value);
  (void)out_end();
  harness_done(h, result->found ? STATUS_YES : STATUS_NO);
}

static void on_got_all(belay_request_t *r, int status, const belay_counter_field_t *fields,
                       size_t n) {
  harness_t *h = r->data;
  if (status != 0) {
    harness_fail(h, "cannot read", status);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    out_begin();
    out_string("key", key_of(h));
    out_text("field", fields[i].name, fields[i].name_len);
    out_wide("value", fields[i].value);
    out_say("%s\t%" PRId64, out_shown(fields[i].name, fields[i].name_len), fields[i].value);
    if (!out_end())
      break;
  }
  harness_done(h, n > 0 ? STATUS_YES : STATUS_NO);
}

static void begin_get(harness_t *h) {
  static belay_bytes_t keys[TEXTS_MAX];
  const arguments_t *arguments = h->arguments;
  bool group = asked.field != NULL || asked.all;
  if (refuse(h, group && arguments->n > 1, "--field and --all are of one KEY") ||
      refuse(h, asked.field != NULL && asked.all, "--field and --all exclude each other") ||
      !open_counter(h))
    return;
  for (size_t i = 0; i < arguments->n; i++)
    keys[i] = (belay_bytes_t){arguments->item[i], strlen(arguments->item[i])};
  if (asked.all)
    fail(h, belay_counter_get_all(counter, &request, keys[0].data, keys[0].len,
                                  BELAY_COUNTER_MANY_MAX, on_got_all));
  else if (asked.field != NULL)
    fail(h, belay_counter_get_field(counter, &request, keys[0].data, keys[0].len, asked.field,
                                    strlen(asked.field), on_got_field));
  else
    fail(h, belay_counter_get_many(counter, &request, keys, arguments->n, on_got_many));
}

static const option_t get_options[] = {
    FIELD_OPTION,  FLAG("all", &asked.all, "all counters that KEY is a group of, in no order"),
    SHARDS_OPTION, NAME_OPTION,
    {0},
};

/* ---- set, delete --------------------------------------------------------------------------------------- */

static void on_set(belay_request_t *r, int status, const belay_counter_result_t *result) {
  harness_t *h = r->data;
  if (status != 0) {
    harness_fail(h, "cannot set", status);
    return;
  }
  out_begin();
  out_which(h);
  out_wide("before", result->value);
  out_bool("found", result->found);
  out_say("%" PRId64, result->value);
  (void)out_end();
  harness_done(h, STATUS_YES);
}

static void begin_set(harness_t *h) {
  int64_t value = 0;
  if (read_argument(h, 1, &value) && open_counter(h))
    fail(h, belay_counter_set(counter, &request, key_of(h), strlen(key_of(h)), value, on_set));
}

static void on_deleted(belay_request_t *r, int status, const belay_counter_result_t *result) {
  harness_t *h = r->data;
  if (status != 0) {
    harness_fail(h, "cannot delete", status);
    return;
  }
  bool found = asked.field != NULL ? result->value > 0 : result->found;
  out_begin();
  out_which(h);
  out_bool("found", found);
  out_say("%s", found ? "deleted" : "not there");
  (void)out_end();
  harness_done(h, found ? STATUS_YES : STATUS_NO);
}

static void begin_delete(harness_t *h) {
  const char *key = key_of(h);
  if (!open_counter(h))
    return;
  if (asked.field == NULL) {
    fail(h, belay_counter_delete(counter, &request, key, strlen(key), on_deleted));
    return;
  }
  belay_bytes_t field = {asked.field, strlen(asked.field)};
  fail(h, belay_counter_delete_fields(counter, &request, key, strlen(key), &field, 1, on_deleted));
}

static const command_t parts[] = {
    {
        .name = "add",
        .arguments = "KEY [N]",
        .summary = "add N, or 1, and say what has come of it",
        .text = "An add whose answer is lost may have happened, and is not sent again: the status "
                "is 123. "
                "With --id it is, and counts once.",
        .examples = EXAMPLES({"Take one of ten seats, if there is one",
                              "belay count add seats --max 10 && echo welcome"}),
        .options = add_options,
        .begin = begin_add,
    },
    {
        .name = "get",
        .arguments = "KEY...",
        .summary = "say what counters are at: 0 where there is none, and the status is 1 then",
        .examples = EXAMPLES({"What two of them are at", "belay count get visits orders"}),
        .options = get_options,
        .begin = begin_get,
    },
    {
        .name = "set",
        .arguments = "KEY N",
        .summary = "replace what a counter is at, and say what that was",
        .text = "To 0: reads and resets in one step.",
        .examples =
            EXAMPLES({"The number of the day, and begin again at 0", "belay count set visits 0"}),
        .options = OPTIONS(TTL_OPTION, NAME_OPTION),
        .begin = begin_set,
    },
    {
        .name = "delete",
        .arguments = "KEY",
        .summary = "remove a counter, or a whole group; the status is 1 if it was not there",
        .examples =
            EXAMPLES({"What was counted of one day", "belay count delete visits::2024-02-29"}),
        .options = OPTIONS(FIELD_OPTION, SHARDS_OPTION, NAME_OPTION),
        .begin = begin_delete,
    },
    {0},
};

const command_t count_command = {
    .name = "count",
    .summary = "numbers that many add to",
    .text = "A counter is a whole number of 64 bits with a sign, 0 where there is none. Or KEY is "
            "a group of "
            "them, each with the name of a field. What would leave the range changes nothing, and "
            "is an error.",
    .examples =
        EXAMPLES({"How often this machine has restarted", "belay count add restarts::$(hostname)"},
                 {"The number of the day, and begin again at 0", "belay count set visits 0"}),
    .parts = parts,
};

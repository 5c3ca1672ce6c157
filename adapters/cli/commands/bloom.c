/* `belay bloom`: shared Bloom filters. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "query/items.h"
#include "ui/text.h"

static struct {
  const char *error_rate;
  int64_t capacity, ttl_ms;
  bool missing;
} asked = {.ttl_ms = -1};

/* handles of that name: any reads the stored options; bloom is opened with them */
static belay_bloom_t *any, *bloom;
static belay_bloom_options_t made;
static bool existed; /* true if the filter existed before this command */
static items_t items;
static struct {
  bool adds;       /* false: it tests */
  uint64_t n, yes; /* number of answers; of those that were "new" or "found" */
  text_t text;     /* output of one batch */
} work;

static void free_state(void) {
  items_stop(&items);
  text_free(&work.text);
}

/* ---- shared by the subcommands: open the filter with its stored options ---- */

static int open_bloom(harness_t *h, belay_bloom_options_t *options, belay_bloom_t **out) {
  options->name = h->items[0];
  return belay_bloom_new(h->client[0], options, out);
}

/* Read the stored options of the filter. */
static void read_filter(harness_t *h, belay_bloom_options_cb cb) {
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.capacity = 1;
  int error = open_bloom(h, &options, &any);
  harness_ok(h, error != 0 ? error : belay_bloom_read_options(any, &h->request, cb));
}

/* Open the filter; call it in the callback of read_filter(). status: the exit status if there is no
 * filter. */
static bool open_filter(harness_t *h, int error, const belay_bloom_options_t *options, int status) {
  if (error == BELAY_EABSENT) {
    const char *name = out_shown(h->items[0].data, h->items[0].len);
    complain("there is no filter %s: belay bloom create %s --capacity N makes one", name, name);
    harness_done(h, status);
    return false;
  }
  if (error == 0) {
    made = *options;
    error = open_bloom(h, &made, &bloom);
  }
  return harness_ok(h, error);
}

/* Write a boolean about the filter, and its line in plain output. */
static void write_answer(harness_t *h, const char *fact, bool is, const char *line, bool yes) {
  out_begin();
  out_text("name", h->items[0].data, h->items[0].len);
  out_bool(fact, is);
  out_say("%s", line);
  harness_answer(h, yes);
}

/* ---- create ---- */

/* Read 0.01 or 1%. */
static bool read_rate(const char *text, double *out) {
  char *end;
  if (text[strspn(text, "0123456789.e-%")] != '\0')
    return false;
  *out = strtod(text, &end);
  if (end == text)
    return false;
  if (strcmp(end, "%") == 0) {
    *out /= 100;
    end++;
  }
  return *end == '\0';
}

#if BELAY_HAS_BLOOM_GROWING
static struct {
  int64_t window_ms;
  bool scaling;
} growth;

static const char *read_growth(belay_bloom_options_t *out) {
  if (growth.scaling && growth.window_ms > 0)
    return "--scaling and --window exclude each other";
  if (growth.window_ms > 0 && asked.ttl_ms >= 0)
    return "--window and --ttl exclude each other: --window already limits the lifetime of "
           "items";
  out->window_ms = growth.window_ms;
  if (growth.window_ms > 0)
    out->kind = BELAY_BLOOM_ROTATING;
  else if (growth.scaling)
    out->kind = BELAY_BLOOM_SCALING;
  return NULL;
}

#define GROWTH_CAPACITY "; with --scaling: the first capacity; with --window: items in that time"
#define GROWTH_OPTIONS                                                                             \
  FLAG("scaling", &growth.scaling,                                                                 \
       "the filter grows beyond its capacity, and keeps its error "                                \
       "rate"),                                                                                    \
      DURATION("window", 1000, YEAR_MS, &growth.window_ms,                                         \
               "forget items after this time, at the latest after twice this time"),
#else
static const char *read_growth(belay_bloom_options_t *out) {
  (void)out;
  return NULL;
}

#define GROWTH_CAPACITY ""
#define GROWTH_OPTIONS
#endif

static const char *read_form(belay_bloom_options_t *out) {
  belay_bloom_options_init(out);
  if (asked.capacity == 0)
    return "--capacity is missing: the expected number of items";
  const char *wrong = read_growth(out);
  if (wrong != NULL)
    return wrong;
  if (asked.error_rate != NULL && !read_rate(asked.error_rate, &out->error_rate))
    return "--error-rate is not a number such as 0.01 or 1%";
  out->capacity = asked.capacity;
  if (asked.ttl_ms >= 0)
    out->ttl_ms = asked.ttl_ms == BELAY_FOREVER ? 0 : asked.ttl_ms;
  return NULL;
}

static void on_created(belay_request_t *r, int status) {
  if (harness_ok(r->data, status))
    write_answer(r->data, "created", !existed,
                 existed ? "exists already, with the same options" : "created", true);
}

static void on_filter_read(belay_request_t *r, int status, const belay_bloom_options_t *options) {
  harness_t *h = r->data;
  (void)options;
  existed = status == 0;
  int error = status == BELAY_EABSENT ? 0 : status;
  if (error == 0)
    error = open_bloom(h, &made, &bloom);
  harness_ok(h, error != 0 ? error : belay_bloom_open(bloom, r, on_created));
}

static void begin_create(harness_t *h) {
  const char *wrong = read_form(&made);
  if (wrong == NULL)
    read_filter(h, on_filter_read);
  else
    harness_refuse(h, wrong);
}

static const option_t create_options[] = {
    NUMBER("capacity", 1, BELAY_BLOOM_CAPACITY_MAX, &asked.capacity,
           "expected number of different items" GROWTH_CAPACITY, .letter = 'c'),
    TEXT("error-rate", "RATE", &asked.error_rate,
         "share of items that were never added but are found, when the filter is full: 0.001 "
         "or 0.1%; default 1%",
         .letter = 'e'),
    GROWTH_OPTIONS DURATION("ttl", 1000, 10 * YEAR_MS, &asked.ttl_ms,
                            "lifetime of the filter; default 30d", .forever = true),
    {0},
};

/* ---- add, has ---- */

/* Write an item. Plain output has only the selected items, one per line and unchanged, so that
 * another program can read them. On a terminal, control characters are escaped. */
static void write_plain(const belay_bytes_t *item) {
  static int terminal = -1;
  if (terminal == -1)
    terminal = isatty(STDOUT_FILENO);
  if (terminal == 1)
    text_add_shown(&work.text, item->data, item->len);
  else
    text_add(&work.text, item->data, item->len);
  text_add(&work.text, "\n", 1);
}

static bool write_answers(const bool *answers, size_t n) {
  bool written = true;
  text_clear(&work.text);
  for (size_t i = 0; i < n && written; i++) {
    const belay_bytes_t *item = &items.batch[i];
    work.n++;
    work.yes += answers[i];
    if (out_form() == OUT_JSON) {
      out_begin();
      out_text("item", item->data, item->len);
      out_bool(work.adds ? "new" : "found", answers[i]);
      written = out_end();
    } else if (out_form() == OUT_PLAIN && answers[i] != asked.missing)
      write_plain(item);
  }
  if (work.text.len > 0)
    written = !work.text.spoiled && out_raw(work.text.bytes, work.text.len);
  return written;
}

static void fail_items(harness_t *h, int error) {
  char what[96];
  if (work.n == 0)
    (void)snprintf(what, sizeof what, work.adds ? "cannot add" : "cannot test");
  else
    (void)snprintf(what, sizeof what, "cannot %s more than the first %" PRIu64,
                   work.adds ? "add" : "test", work.n);
  harness_fail(h, what, error);
}

static void on_answers(belay_request_t *r, int status, const bool *answers, size_t n) {
  harness_t *h = r->data;
  if (status != 0)
    fail_items(h, status);
  else if (write_answers(answers, n))
    items_next(&items);
  else
    harness_done(h, STATUS_TROUBLE);
}

static void on_batch(items_t *source, const belay_bytes_t *batch, size_t n) {
  harness_t *h = source->harness;
  int error = work.adds ? belay_bloom_add_many(bloom, &h->request, batch, n, on_answers)
                        : belay_bloom_exists_many(bloom, &h->request, batch, n, on_answers);
  if (error != 0)
    fail_items(h, error);
}

static void on_end(items_t *source, const char *wrong) {
  harness_t *h = source->harness;
  bool yes = work.adds ? work.yes > 0 || work.n == 0 : work.yes == work.n;
  if (wrong != NULL)
    complain("%s", wrong);
  harness_done(h, wrong != NULL ? STATUS_TROUBLE : yes ? STATUS_YES : STATUS_NO);
}

static void on_found(belay_request_t *r, int status, const belay_bloom_options_t *options) {
  harness_t *h = r->data;
  if (open_filter(h, status, options, STATUS_TROUBLE))
    items_start(&items, h, 1, on_batch, on_end);
}

static void begin_add(harness_t *h) {
  work.adds = true;
  read_filter(h, on_found);
}

static void begin_has(harness_t *h) {
  read_filter(h, on_found);
}

#define ABOUT_ITEMS                                                                                \
  "Items are arguments. Without arguments, or with \"-\", they are the lines of standard "         \
  "input, of at most one MiB each. Lines are processed as they arrive, and belay reads no "        \
  "further than it has processed."

/* ---- info ---- */

static const char *kind_name(belay_bloom_kind_t kind) {
  static const char *const names[] = {[BELAY_BLOOM_PLAIN] = "plain",
                                      [BELAY_BLOOM_SCALING] = "scaling",
                                      [BELAY_BLOOM_ROTATING] = "rotating"};
  return names[kind];
}

static void on_info(belay_request_t *r, int status, const belay_bloom_info_t *info) {
  harness_t *h = r->data;
  char ends[UNITS_DURATION_MAX];
  if (!harness_ok(h, status))
    return;
  out_begin();
  out_text("name", h->items[0].data, h->items[0].len);
  out_string("kind", kind_name(info->kind));
  out_number("items", info->items);
  out_number("capacity", info->capacity);
  out_fraction("error_rate", made.error_rate);
  out_fraction("saturation", info->saturation);
  out_number("bits", info->bits);
  out_number("bits_set", info->bits_set);
  out_number("hashes", info->hashes);
  out_number("layers", info->layers);
  out_number("segments", info->segments);
  out_duration("ttl_ms", info->remaining_ms);
  out_say("%s, about %" PRId64 " items of %" PRId64 ", %.3g%% of %" PRId64 " bits are set, %s%s",
          kind_name(info->kind), info->items, info->capacity, info->saturation * 100, info->bits,
          info->remaining_ms < 0 ? "no end" : "ends in ",
          info->remaining_ms < 0 ? "" : units_show_duration(ends, info->remaining_ms));
  harness_answer(h, true);
}

static void on_found_for_info(belay_request_t *r, int status,
                              const belay_bloom_options_t *options) {
  harness_t *h = r->data;
  if (open_filter(h, status, options, STATUS_NO))
    harness_ok(h, belay_bloom_info(bloom, r, on_info));
}

static void begin_info(harness_t *h) {
  read_filter(h, on_found_for_info);
}

/* ---- delete ---- */

static void on_deleted(belay_request_t *r, int status) {
  if (harness_ok(r->data, status))
    write_answer(r->data, "found", existed, existed ? "deleted" : "not found", existed);
}

/* Delete all parts, even of a filter whose options are lost. */
static void on_found_for_delete(belay_request_t *r, int status,
                                const belay_bloom_options_t *options) {
  (void)options;
  existed = status == 0;
  if (status == 0 || status == BELAY_EABSENT)
    status = belay_bloom_clear(any, r, on_deleted);
  harness_ok(r->data, status);
}

static void begin_delete(harness_t *h) {
  read_filter(h, on_found_for_delete);
}

static const command_t subcommands[] = {
    {
        .name = "create",
        .arguments = "NAME",
        .summary = "make a filter, if there is none with that name",
        .text = "It is no error if the filter exists with the same options. If it exists with "
                "other options, that is an error, and the filter is unchanged.",
        .examples = EXAMPLES({"A filter for a million addresses, with false positives of 0.1%",
                              "belay bloom create addresses --capacity 1000000 --error-rate 0.1%"}),
        .options = create_options,
        .begin = begin_create,
        .tidy = free_state,
    },
    {
        .name = "add",
        .arguments = "NAME [ITEM]...",
        .summary = "add items, and print those that are new",
        .text = ABOUT_ITEMS "\n\n"
                            "The status is 0 if at least one item was new, or if there were no "
                            "items; it is 1 if all had been added before. If the reply to an "
                            "add is lost, the add may have happened, and belay does not send "
                            "it again: the status is 123.",
        .examples = EXAMPLES({"Addresses in a log that were never seen before",
                              "cut -d' ' -f1 access.log | belay bloom add addresses"},
                             {"Once for each order, on any machine",
                              "belay bloom add -q orders \"$ID\" && mail-invoice \"$ID\""}),
        .begin = begin_add,
        .tidy = free_state,
    },
    {
        .name = "has",
        .arguments = "NAME [ITEM]...",
        .summary = "print items that were probably added; the status is 0 if all were",
        .text = ABOUT_ITEMS,
        .examples = EXAMPLES({"Addresses that did not get a mail yet",
                              "belay bloom has mailed --missing < addresses"}),
        .options =
            OPTIONS(FLAG("missing", &asked.missing,
                         "print the items that were certainly not added instead", .letter = 'm')),
        .what = "cannot test",
        .begin = begin_has,
        .tidy = free_state,
    },
    {
        .name = "info",
        .arguments = "NAME",
        .summary = "print the options and the load of a filter; the status is 1 if none",
        .examples = EXAMPLES({"The load of a filter, in a script",
                              "belay bloom info lines --json | jq .saturation"}),
        .what = "cannot read the filter",
        .begin = begin_info,
        .tidy = free_state,
    },
    {
        .name = "delete",
        .arguments = "NAME",
        .summary = "delete a filter; the status is 1 if it does not exist",
        .examples =
            EXAMPLES({"Start again with a larger filter",
                      "belay bloom delete lines; belay bloom create lines --capacity 10000000"}),
        .begin = begin_delete,
        .tidy = free_state,
    },
    {0},
};

const command_t bloom_command = {
    .name = "bloom",
    .summary = "Bloom filters: test whether an item was seen, with a few bits per item",
    .text = "An item that was added to a Bloom filter is always found. An item that was not "
            "added may be found too, with the probability --error-rate. Items cannot be "
            "removed. After create, the other subcommands need only the name: the server "
            "stores the options.",
    .examples = EXAMPLES(
        {"Lines that no machine has seen before",
         "belay bloom create lines --capacity 1000000; tail -f log | belay bloom add lines"}),
    .subcommands = subcommands,
};

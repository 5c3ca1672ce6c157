/* `belay allow`: permissions of users. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "query/record.h"
#include "ui/text.h"

#define WIDTH_DEFAULT 8

static struct {
  const char *name, *names;
  int64_t width, max_id, ttl_ms;
} asked = {.max_id = -1, .ttl_ms = -1};

/* The arguments that a subcommand takes behind KEY. */
typedef enum reads { READS_NOTHING, READS_IDS, READS_FIELD } reads_t;

/* The common type of the library's functions grant, revoke, set and has. */
typedef int (*change_t)(belay_permission_t *, belay_request_t *, belay_bytes_t,
                        const belay_permission_field_t *, size_t, belay_permission_cb);

/* A subcommand. */
typedef struct operation {
  record_operation_t record;
  reads_t reads;
  change_t change; /* for READS_FIELD */
} operation_t;

static belay_permission_t *permission;
static struct {
  const char *names[BELAY_PERMISSION_WIDTH_MAX]; /* the names of the bits, from the lowest on */
  size_t named;
  belay_permission_field_t field;            /* the field to query or to change */
  uint64_t ids[BELAY_PERMISSION_FIELDS_MAX]; /* the ids to list */
  uint64_t next;                             /* the first id that was not queried yet */
  bool some;                                 /* true if an entry was written */
} work;

/* The key of a call. */
#define KEY(h) (h)->items[0]

/* ---- shared by the subcommands ---- */

/* Split --names, or the names of the record. Returns what is wrong with them, or NULL. */
static const char *read_names(void) {
  char *copy = asked.names != NULL ? text_keep(asked.names, strlen(asked.names)) : NULL;
  work.named = 0;
  for (char *next = copy; next != NULL;) {
    char *name = next;
    next = strchr(name, ',');
    if (next != NULL)
      *next++ = '\0';
    if (work.named == BELAY_PERMISSION_WIDTH_MAX)
      return "--names: more than 63 names";
    if (*name == '\0' || (*name >= '0' && *name <= '9'))
      return "--names: a name must not begin with a digit: read,write,invite";
    for (size_t i = 0; i < work.named; i++)
      if (strcmp(work.names[i], name) == 0)
        return "--names: a name is given twice";
    work.names[work.named++] = name;
  }
  return NULL;
}

/* Read a name, or the number of a bit. */
static bool read_bit(const char *word, uint64_t *out) {
  int64_t number;
  for (size_t i = 0; i < work.named; i++)
    if (strcmp(work.names[i], word) == 0) {
      *out |= UINT64_C(1) << i;
      return true;
    }
  if (!units_number(word, &number) || number < 0 || number >= asked.width)
    return false;
  *out |= UINT64_C(1) << number;
  return true;
}

static bool read_id(const char *word, uint64_t *out) {
  int64_t id;
  if (!units_number(word, &id) || id < 0 || id > asked.max_id)
    return false;
  *out = (uint64_t)id;
  return true;
}

static const char not_an_id[] = "ID must be a whole number from 0 to --max-id";

/* Read the arguments behind KEY. Returns what is wrong with them, or NULL. */
static const char *read_arguments(const arguments_t *arguments, reads_t reads) {
  if (reads == READS_IDS && arguments->n - 1 > BELAY_PERMISSION_FIELDS_MAX)
    return "too many ids";
  for (size_t i = 1; reads == READS_IDS && i < arguments->n; i++)
    if (!read_id(arguments->item[i], &work.ids[i - 1]))
      return not_an_id;
  if (reads == READS_FIELD && !read_id(arguments->item[1], &work.field.index))
    return not_an_id;
  for (size_t i = 2; reads == READS_FIELD && i < arguments->n; i++)
    if (!read_bit(arguments->item[i], &work.field.value))
      return "PERMISSION must be one of --names, or a number below --width";
  return NULL;
}

static bool open_permission(harness_t *h) {
  belay_permission_options_t options;
  belay_permission_options_init(&options);
  options.name = belay_string(asked.name != NULL ? asked.name : "");
  options.width = (unsigned)asked.width;
  options.max_index = (uint64_t)asked.max_id;
  options.ttl_ms = asked.ttl_ms;
  return harness_ok(h, belay_permission_new(h->client[0], &options, &permission));
}

/* Check the arguments when all options are known. */
static bool check_arguments(harness_t *h) {
  const operation_t *operation = h->command->data;
  const char *wrong = read_names(); /* the names of the record, if --names was not given */
  if (wrong == NULL && work.named > (size_t)asked.width)
    wrong = "--names: more names than --width";
  if (wrong == NULL)
    wrong = read_arguments(h->arguments, operation->reads);
  if (wrong != NULL)
    harness_refuse(h, wrong);
  return wrong == NULL && open_permission(h);
}

static void begin_allow(harness_t *h) {
  static record_field_t fields[] = {
      RECORD_NUMBER("width", "--width", &asked.width, 0, WIDTH_DEFAULT, BELAY_CONFIG_SAME),
      RECORD_TEXT("names", "--names", &asked.names, NULL),
      RECORD_NUMBER("max_id", "--max-id", &asked.max_id, -1, 1048575, BELAY_CONFIG_LARGEST),
      RECORD_DURATION("ttl_ms", "--ttl", &asked.ttl_ms, -1, 0, BELAY_CONFIG_LATEST),
  };
  static const record_t record = {.kind = BELAY_CONFIG_PERMISSION,
                                  .name = &asked.name,
                                  .fields = fields,
                                  .n = sizeof fields / sizeof *fields,
                                  .life_ms = &asked.ttl_ms,
                                  .check = check_arguments};
  const char *wrong = read_names();
  if (work.named > 0)
    fields[0].usual = (int64_t)work.named;
  if (wrong == NULL)
    record_begin(h, &record);
  else
    harness_refuse(h, wrong);
}

/* Write the names of the bits that are set. A bit without a name is written as a number. */
static void out_bits(const char *name, uint64_t value) {
  out_list_begin(name);
  for (unsigned bit = 0; bit < (unsigned)asked.width; bit++) {
    char number[16];
    (void)snprintf(number, sizeof number, "%u", bit);
    const char *word = bit < work.named ? work.names[bit] : number;
    if (value >> bit & 1)
      out_list_text(word, strlen(word));
  }
  out_list_end();
}

static bool out_field(const belay_permission_result_t *result) {
  work.some = true;
  out_begin();
  out_wide("id", (int64_t)result->index);
  out_bits("may", result->value);
  return out_end();
}

/* ---- subcommands ---- */

static void on_result(belay_request_t *r, int status, const belay_permission_result_t *results,
                      size_t n) {
  harness_t *h = r->data;
  const operation_t *operation = h->command->data;
  bool checks = operation->change == belay_permission_has;
  if (!harness_ok(h, status) || n == 0)
    return;
  out_begin();
  out_wide("id", (int64_t)results->index);
  if (checks)
    out_bool("allowed", results->answer);
  out_bits("may", results->value);
  if (checks) {
    out_say("%s", results->answer ? "allowed" : "not allowed");
  } else {
    out_bits("before", results->before);
    out_bool("changed", results->answer);
    out_say("%s", results->answer ? "changed" : "unchanged");
  }
  harness_answer(h, results->answer || !checks);
}

static void go_field(harness_t *h) {
  const operation_t *operation = h->command->data;
  harness_ok(h, operation->change(permission, &h->request, KEY(h), &work.field, 1, on_result));
}

static void on_listed(belay_request_t *r, int status, const belay_permission_result_t *results,
                      size_t n) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n && out_field(&results[i]); i++) {
  }
  harness_done(h, STATUS_YES);
}

static void read_next_ids(harness_t *h);

/* Write the ids that have at least one permission. */
static void on_some(belay_request_t *r, int status, const belay_permission_result_t *results,
                    size_t n) {
  harness_t *h = r->data;
  if (!harness_ok(h, status))
    return;
  for (size_t i = 0; i < n; i++)
    if (results[i].value != 0 && !out_field(&results[i])) {
      harness_done(h, STATUS_TROUBLE);
      return;
    }
  read_next_ids(h);
}

static void read_ids(harness_t *h, size_t n, belay_permission_cb cb) {
  harness_ok(h, belay_permission_get(permission, &h->request, KEY(h), work.ids, n, cb));
}

static void read_next_ids(harness_t *h) {
  size_t n = 0;
  while (n < BELAY_PERMISSION_FIELDS_MAX && work.next <= (uint64_t)asked.max_id)
    work.ids[n++] = work.next++;
  if (n == 0)
    harness_done(h, work.some ? STATUS_YES : STATUS_NO);
  else
    read_ids(h, n, on_some);
}

static void go_list(harness_t *h) {
  if (h->arguments->n > 1)
    read_ids(h, h->arguments->n - 1, on_listed);
  else
    read_next_ids(h);
}

static void on_deleted(belay_request_t *r, int status, const belay_permission_result_t *results,
                       size_t n) {
  (void)results, (void)n;
  if (harness_ok(r->data, status))
    harness_answer_changed(r->data, "key", "deleted");
}

static void go_delete(harness_t *h) {
  harness_ok(h, belay_permission_clear(permission, &h->request, KEY(h), on_deleted));
}

/* ---- tables ---- */

#define KEY_OPTIONS                                                                                \
  TEXT("names", "NAME,...", &asked.names,                                                          \
       "names of the permissions, from number 0 on; default: the names of KEY"),                   \
      NUMBER("width", 1, BELAY_PERMISSION_WIDTH_MAX, &asked.width,                                 \
             "number of permissions; default: that of KEY; for a new KEY the number of names, "    \
             "or 8"),                                                                              \
      NUMBER("max-id", 0, UINT32_MAX, &asked.max_id,                                               \
             "largest id; default: that of KEY; for a new KEY 1048575"),                           \
      TEXT("name", "NAME", &asked.name,                                                            \
           "a group of permissions, part of the keys: the same KEY under another NAME is "         \
           "separate")
#define TTL_OPTION                                                                                 \
  DURATION("ttl", 1000, YEAR_MS, &asked.ttl_ms,                                                    \
           "the server deletes KEY after this time without a change; default: that of KEY; for "   \
           "a new KEY: never")

static const option_t key_options[] = {KEY_OPTIONS, {0}};
static const option_t change_options[] = {KEY_OPTIONS, TTL_OPTION, {0}};

#define OPERATION(...)                                                                             \
  &(const operation_t) {                                                                           \
    __VA_ARGS__                                                                                    \
  }

static const command_t subcommands[] = {
    {
        .name = "check",
        .arguments = "KEY ID PERMISSION...",
        .summary = "test whether a user has all of these permissions; the status is 1 if not",
        .examples = EXAMPLES({"In a script", "belay allow check -q forum $ID write || exit 1"}),
        .options = key_options,
        .what = "cannot ask",
        .begin = begin_allow,
        .data = OPERATION({RECORD_READS, go_field}, READS_FIELD, belay_permission_has),
    },
    {
        .name = "delete",
        .arguments = "KEY",
        .summary = "delete all permissions of KEY",
        .examples = EXAMPLES({"Close the forum", "belay allow delete forum"}),
        .options = key_options,
        .begin = begin_allow,
        .data = OPERATION(.record = {RECORD_REMOVES, go_delete}),
    },
    {
        .name = "grant",
        .arguments = "KEY ID PERMISSION...",
        .summary = "give a user more permissions",
        .examples = EXAMPLES({"Make a user a moderator of the forum",
                              "belay allow grant forum 17 write invite --names read,write,invite"}),
        .options = change_options,
        .what = "cannot change",
        .begin = begin_allow,
        .data = OPERATION({RECORD_ADDS, go_field}, READS_FIELD, belay_permission_grant),
    },
    {
        .name = "list",
        .arguments = "KEY [ID]...",
        .summary = "list the permissions of these users, or of all users that have any",
        .text = "Without an ID, belay queries all ids up to --max-id, 16384 at a time; the "
                "status is 1 if no user has a permission.",
        .examples = EXAMPLES({"List two users, as JSON", "belay allow list forum 17 23 --json"}),
        .options = key_options,
        .begin = begin_allow,
        .data = OPERATION(.record = {RECORD_READS, go_list}, .reads = READS_IDS),
    },
    {
        .name = "revoke",
        .arguments = "KEY ID PERMISSION...",
        .summary = "take permissions from a user",
        .examples =
            EXAMPLES({"Let a former member only read", "belay allow revoke forum 17 write invite"}),
        .options = change_options,
        .what = "cannot change",
        .begin = begin_allow,
        .data = OPERATION({RECORD_REMOVES, go_field}, READS_FIELD, belay_permission_revoke),
    },
    {
        .name = "set",
        .arguments = "KEY ID [PERMISSION]...",
        .summary = "give a user exactly these permissions",
        .examples = EXAMPLES({"Add a guest", "belay allow set forum 23 read"}),
        .options = change_options,
        .what = "cannot change",
        .begin = begin_allow,
        .data = OPERATION({RECORD_ADDS, go_field}, READS_FIELD, belay_permission_set),
    },
    {0},
};

const command_t allow_command = {
    .name = "allow",
    .summary = "permissions of users, a few bits for each",
    .text = "KEY names the object, such as a forum. ID is the number of a user, from 0 on. "
            "PERMISSION is one of --names, or a number below --width. The first grant sets the "
            "names and the width of a KEY. The server stores them: later commands need not repeat "
            "them, and a command that contradicts them ends with an error.",
    .examples = EXAMPLES(
        {"Make a user a moderator, and list all permissions",
         "belay allow grant forum 17 write --names read,write,invite; belay allow list forum"}),
    .subcommands = subcommands,
};

#include "query/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ui/text.h"

#define NUMBER_MAX 24
#define RECORD_LIFE_MAX (2 * YEAR_MS)

static struct {
  harness_t *h;
  const record_t *record;
  belay_config_t *config;
  bool there;   /* there is a record */
  bool changed; /* and it lacks a field, or has another value */
} work;

static const char *set_name(void) {
  return out_shown(work.h->items[0].data, work.h->items[0].len);
}

/* ---- values ---- */

static bool is_given(const record_field_t *field) {
  return field->number != NULL ? *field->number != field->unset : *field->text != NULL;
}

/* Return the value in the form of the record; NULL: there is no value. */
static const char *value_of(const record_field_t *field, char digits[NUMBER_MAX]) {
  if (field->number == NULL)
    return *field->text;
  (void)snprintf(digits, NUMBER_MAX, "%" PRId64, *field->number);
  return digits;
}

/* Return the value in the form of the command line. */
static const char *shown(const record_field_t *field, const char *value,
                         char buffer[UNITS_DURATION_MAX]) {
  int64_t ms;
  if (!field->duration || !units_number(value, &ms) || ms < 0)
    return out_shown(value, strlen(value));
  return ms == 0 ? "none" : units_show_exactly(buffer, ms);
}

static void print_contradiction(const record_field_t *field, const char *kept, const char *given) {
  char a[UNITS_DURATION_MAX], b[UNITS_DURATION_MAX];
  complain("%s was made with %s %s, and %s %s was given", set_name(), field->option,
           shown(field, kept, a), field->option, shown(field, given, b));
}

/* Take a value from the record. Returns false if it is invalid. */
static bool adopt(const record_field_t *field, const char *value) {
  int64_t n;
  if (field->number == NULL) {
    const char *copy = text_keep(value, strlen(value));
    *field->text = copy;
    return copy != NULL;
  }
  if (!units_number(value, &n) || n < 0)
    return false;
  *field->number = n;
  return true;
}

/* Merges the recorded value (NULL: none) with the command line's. Returns false after printing
 * an error. */
static bool merge(const record_field_t *field, const char *kept) {
  char digits[NUMBER_MAX];
  bool given = is_given(field);
  if (given && field->duration && *field->number == BELAY_FOREVER)
    *field->number = 0;
  if (kept == NULL && !given) {
    if (field->number != NULL)
      *field->number = field->usual;
    else
      *field->text = field->usual_text;
  }
  const char *value = value_of(field, digits);
  int64_t old, new;
  if (kept == NULL) {
    work.changed = work.changed || value != NULL;
    return true;
  }
  if (given && strcmp(value, kept) == 0)
    return true;
  if (given && field->rule == BELAY_CONFIG_SAME) {
    print_contradiction(field, kept, value);
    return false;
  }
  if (given) { /* a number below the stored largest one limits this command only */
    work.changed = work.changed || field->rule == BELAY_CONFIG_LATEST ||
                   (units_number(kept, &old) && units_number(value, &new) && new > old);
    return true;
  }
  if (!adopt(field, kept)) {
    complain("the configuration of %s has an invalid %s: %s", set_name(), field->name,
             out_shown(kept, strlen(kept)));
    return false;
  }
  return true;
}

/* ---- steps ---- */

static const record_operation_t *operation(void) {
  return work.h->command->data;
}

/* The record of a site belongs to a handle, and has no key. */
static belay_bytes_t key_of(const harness_t *h) {
  return work.record->name != NULL ? h->items[0] : (belay_bytes_t){NULL, 0};
}

static int new_config(int64_t ttl_ms) {
  belay_config_options_t options;
  belay_config_options_init(&options);
  const char *const *name = work.record->name;
  options.kind = work.record->kind;
  options.name = belay_string(name == NULL ? work.h->items[0].data : *name != NULL ? *name : "");
  options.ttl_ms = ttl_ms;
  return belay_config_new(work.h->client[0], &options, &work.config);
}

static void on_opened(belay_request_t *request, int status, const belay_config_field_t *fields,
                      size_t n) {
  (void)request, (void)fields, (void)n;
  if (harness_ok(work.h, status))
    operation()->go(work.h);
}

/* The time that the record lives: the time of the set, once more, and a day. */
static int64_t record_life(void) {
  int64_t ms = *work.record->life_ms;
  if (ms == 0)
    return 0;
  return 2 * ms + DAY_MS < RECORD_LIFE_MAX ? 2 * ms + DAY_MS : RECORD_LIFE_MAX;
}

static int open_record(void) {
  belay_config_field_t fields[BELAY_CONFIG_FIELDS_MAX];
  char digits[BELAY_CONFIG_FIELDS_MAX][NUMBER_MAX];
  const record_t *record = work.record;
  belay_bytes_t key = key_of(work.h);
  size_t n = 0;
  for (size_t i = 0; i < record->n; i++) {
    const char *value = value_of(&record->fields[i], digits[i]);
    if (value != NULL)
      fields[n++] = (belay_config_field_t){
          .name = record->fields[i].name, .value = value, .rule = record->fields[i].rule};
  }
  int error = new_config(record_life());
  if (error == 0)
    error = belay_config_open(work.config, &work.h->request, key, fields, n, on_opened);
  return error;
}

/* Without a record, the keys of the set are unknown. */
static void print_unknown(const record_t *record) {
  char options[128];
  size_t n = 0;
  for (size_t i = 0; i < record->n; i++)
    if (record->fields[i].rule == BELAY_CONFIG_SAME)
      n += (size_t)snprintf(options + n, sizeof options - n, "%s%s", n > 0 ? ", " : "",
                            record->fields[i].option);
  complain("there is no configuration of %s, so nothing was found: if another program uses it, "
           "give its options: %s",
           set_name(), options);
}

static void on_read(belay_request_t *request, int status, const belay_config_field_t *fields,
                    size_t n) {
  const record_t *record = work.record;
  bool located = false; /* true if an option locates the set */
  (void)request;
  if (status != BELAY_EABSENT && !harness_ok(work.h, status))
    return;
  work.there = status == 0;
  for (size_t i = 0; i < record->n; i++) {
    const record_field_t *field = &record->fields[i];
    const char *kept = NULL;
    located = located || (field->rule == BELAY_CONFIG_SAME && is_given(field));
    for (size_t j = 0; j < n; j++)
      if (strcmp(fields[j].name, field->name) == 0)
        kept = fields[j].value;
    if (!merge(field, kept)) {
      harness_done(work.h, status_of(BELAY_EMISMATCH));
      return;
    }
  }
  if (!record->check(work.h))
    return;
  if (operation()->use == RECORD_REMOVES && !work.there && !located) {
    print_unknown(record);
    harness_done(work.h, STATUS_NO);
  } else if (operation()->use == RECORD_ADDS && (work.changed || record_life() > 0))
    harness_ok(work.h, open_record());
  else
    operation()->go(work.h);
}

void record_begin(harness_t *h, const record_t *record) {
  work.h = h;
  work.record = record;
  belay_bytes_t key = key_of(h);
  int error = new_config(0);
  if (error == 0)
    error = belay_config_read(work.config, &h->request, key, on_read);
  harness_ok(h, error);
}

/* Strings and fields that are numbers. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"

enum { NUMBER_MAX = 24, FLOAT_MAX = 5 * 1024 };

/* Adds them; or complains that the sum does not fit. */
static bool add(engine_call_t *call, int64_t value, int64_t step, int64_t *sum) {
  if (!__builtin_add_overflow(value, step, sum))
    return true;
  engine_reply_error(call, "ERR increment or decrement would overflow");
  return false;
}

static engine_word_t print_integer(char text[NUMBER_MAX], int64_t value) {
  return (engine_word_t){text, (size_t)snprintf(text, NUMBER_MAX, "%lld", (long long)value)};
}

static void step_by(engine_call_t *call, int64_t step) {
  engine_object_t *object;
  int64_t value = 0;
  char text[NUMBER_MAX];
  if (!engine_find(call, call->argv[1], ENGINE_STRING, &object) ||
      (object != NULL && !engine_get_integer(call, engine_bytes(&object->as.string), &value)) ||
      !add(call, value, step, &value))
    return;
  engine_string_put(call, call->argv[1], print_integer(text, value), true);
  engine_reply_integer(call, value);
}

static void incr(engine_call_t *call) {
  step_by(call, 1);
}

static void decr(engine_call_t *call) {
  step_by(call, -1);
}

static void incrby(engine_call_t *call) {
  int64_t step;
  if (engine_get_integer(call, call->argv[2], &step))
    step_by(call, step);
}

static void decrby(engine_call_t *call) {
  int64_t step;
  if (!engine_get_integer(call, call->argv[2], &step))
    return;
  if (step == INT64_MIN)
    engine_reply_error(call, "ERR decrement would overflow");
  else
    step_by(call, -step);
}

/* ---- with a fraction ----------------------------------------------------------------------------------- */

static bool read_float(engine_word_t word, long double *value) {
  static char text[FLOAT_MAX];
  char *end;
  if (word.len < 1 || word.len >= sizeof text || isspace((unsigned char)word.at[0]))
    return false;
  memcpy(text, word.at, word.len);
  text[word.len] = '\0';
  errno = 0;
  *value = strtold(text, &end);
  bool too_much = errno == ERANGE && (isinf(*value) || *value == 0);
  return end == text + word.len && !too_much && !isnan(*value);
}

/* Without an exponent, and without zeros that say nothing. */
static engine_word_t print_float(long double value) {
  static char text[FLOAT_MAX];
  int printed = snprintf(text, sizeof text, "%.17Lf", value);
  size_t len = printed < 0 ? 0 : (size_t)printed;
  if (memchr(text, '.', len) != NULL) {
    while (text[len - 1] == '0')
      len--;
    len -= text[len - 1] == '.';
  }
  if (len == 2 && memcmp(text, "-0", 2) == 0)
    return engine_word("0");
  return (engine_word_t){text, len};
}

static bool get_float(engine_call_t *call, engine_word_t word, long double *value) {
  if (read_float(word, value))
    return true;
  engine_reply_error(call, "ERR value is not a valid float");
  return false;
}

static bool is_finite(engine_call_t *call, long double value) {
  if (!isnan(value) && !isinf(value))
    return true;
  engine_reply_error(call, "ERR increment would produce NaN or Infinity");
  return false;
}

static void incrbyfloat(engine_call_t *call) {
  engine_object_t *object;
  long double value = 0, step;
  if (!engine_find(call, call->argv[1], ENGINE_STRING, &object) ||
      (object != NULL && !get_float(call, engine_bytes(&object->as.string), &value)) ||
      !get_float(call, call->argv[2], &step) || !is_finite(call, value + step))
    return;
  engine_word_t text = print_float(value + step);
  engine_string_put(call, call->argv[1], text, true);
  engine_reply_word(call, text);
}

/* ---- fields -------------------------------------------------------------------------------------------- */

/* NULL: there is none of that name, or no hash. */
static const engine_field_t *field_of(const engine_object_t *object, engine_word_t name) {
  return object == NULL ? NULL : (const engine_field_t *)engine_table_find(&object->as.hash, name);
}

static void hincrby(engine_call_t *call) {
  engine_object_t *object;
  int64_t value = 0, step;
  char text[NUMBER_MAX];
  if (!engine_get_integer(call, call->argv[3], &step) ||
      !engine_find(call, call->argv[1], ENGINE_HASH, &object))
    return;
  const engine_field_t *field = field_of(object, call->argv[2]);
  if (field != NULL && !engine_word_integer(engine_bytes(&field->value), &value)) {
    engine_reply_error(call, "ERR hash value is not an integer");
    return;
  }
  if (!add(call, value, step, &value))
    return;
  (void)engine_field_put(call, call->argv[1], call->argv[2], print_integer(text, value));
  engine_reply_integer(call, value);
}

static void hincrbyfloat(engine_call_t *call) {
  engine_object_t *object;
  long double value = 0, step;
  if (!get_float(call, call->argv[3], &step))
    return;
  if (isinf(step)) {
    engine_reply_error(call, "ERR value is NaN or Infinity");
    return;
  }
  if (!engine_find(call, call->argv[1], ENGINE_HASH, &object))
    return;
  const engine_field_t *field = field_of(object, call->argv[2]);
  if (field != NULL && !read_float(engine_bytes(&field->value), &value)) {
    engine_reply_error(call, "ERR hash value is not a float");
    return;
  }
  if (!is_finite(call, value + step))
    return;
  engine_word_t text = print_float(value + step);
  (void)engine_field_put(call, call->argv[1], call->argv[2], text);
  engine_reply_word(call, text);
}

const engine_command_t engine_number_commands[] = {
    {"INCR", incr, 2, ENGINE_WRITES, NULL},
    {"DECR", decr, 2, ENGINE_WRITES, NULL},
    {"INCRBY", incrby, 3, ENGINE_WRITES, NULL},
    {"DECRBY", decrby, 3, ENGINE_WRITES, NULL},
    {"INCRBYFLOAT", incrbyfloat, 3, ENGINE_WRITES, NULL},
    {"HINCRBY", hincrby, 4, ENGINE_WRITES, NULL},
    {"HINCRBYFLOAT", hincrbyfloat, 4, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};

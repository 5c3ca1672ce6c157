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

static void incrby(engine_call_t *call) {
  int64_t step;
  if (engine_get_integer(call, call->argv[2], &step))
    step_by(call, step);
}

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

const engine_command_t engine_number_commands[] = {
    {"INCRBY", incrby, 3, ENGINE_WRITES, NULL},
    {"HINCRBY", hincrby, 4, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};

/* Configuration records. A record is a hash in the slot of the set that it describes. HGETALL reads
 * it, one script writes it. */
#include "belay/config.h"

#include <stdio.h>
#include <string.h>

#include "core/client/handle.h"
#include "scripts.gen.h"

#define TTL_MIN_MS 1000
#define TTL_MAX_MS INT64_C(63072000000) /* two years: twice the longest lifetime of a set */
#define TAIL "}::config"
#define SHOWN 120 /* maximum bytes of a value in a detail */

struct belay_config {
  belay__handle_t handle; /* first */
  belay_config_options_t options;
};

static const belay_config_options_t defaults = {.kind = BELAY_CONFIG_PERMISSION};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_config_options_t, kind, 0, BELAY_CONFIG_RANKING),
    BELAY__RANGE_OR(belay_config_options_t, ttl_ms, 0, TTL_MIN_MS, TTL_MAX_MS),
    {.name = NULL},
};

/* A record has the key prefix of the handle whose set it describes. */
#define VARIANT(family_)                                                                           \
  .family = (family_), BELAY__HANDLE_LAYOUT(config), .copy_at = offsetof(belay_config_t, options)
static const belay__handle_type_t variants[] = {
    [BELAY_CONFIG_PERMISSION] = {VARIANT("permission")},
    [BELAY_CONFIG_PRESENCE] = {VARIANT("presence"), .whole = true},
    [BELAY_CONFIG_RANKING] = {VARIANT("ranking")},
};

static const belay__handle_type_t *choose(const void *options) {
  return &variants[((const belay_config_options_t *)options)->kind];
}

const belay__handle_type_t belay__config_type = {
    BELAY__HANDLE_LAYOUT(config), .defaults = &defaults, .ranges = ranges, .variant = choose};

BELAY__HANDLE_FUNCTIONS(config)

/* The room of a request: the fields, followed by the bytes of their names and values. */
typedef struct room {
  size_t n;
  belay_config_field_t fields[];
} room_t;

static bool is_text(const belay__reply_t *reply, size_t max) {
  return reply->type == BELAY__REPLY_STRING && reply->len <= max &&
         memchr(reply->str, '\0', reply->len) == NULL;
}

static const char *put(char **at, const belay__reply_t *reply) {
  char *text = *at;
  memcpy(text, reply->str, reply->len);
  text[reply->len] = '\0';
  *at += reply->len + 1;
  return text;
}

static int not_a_record(const belay__call_t *call) {
  return belay__handle_mismatch(call, "it is no configuration record");
}

/* Read names and values from the item `first` on. */
static int take_fields(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply, size_t first) {
  size_t n = (reply->count - first) / 2, bytes = 0;
  if ((reply->count - first) % 2 != 0 || n > BELAY_CONFIG_FIELDS_MAX)
    return not_a_record(call);
  for (size_t i = first; i < reply->count; i++) {
    bool name = (i - first) % 2 == 0;
    if (!is_text(reply->items[i], name ? BELAY_CONFIG_NAME_MAX : BELAY_CONFIG_VALUE_MAX))
      return not_a_record(call);
    bytes += reply->items[i]->len + 1;
  }
  room_t *room = belay__request_room(operation, sizeof *room + n * sizeof room->fields[0] + bytes);
  if (room == NULL)
    return BELAY_ENOMEM;
  char *at = (char *)&room->fields[n];
  for (size_t i = 0; i < n; i++) {
    room->fields[i].name = put(&at, reply->items[first + 2 * i]);
    room->fields[i].value = put(&at, reply->items[first + 2 * i + 1]);
  }
  room->n = n;
  return 0;
}

static int read_record(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  if (reply->type != BELAY__REPLY_ARRAY)
    return BELAY_EPROTO;
  return reply->count == 0 ? BELAY_EABSENT : take_fields(operation, call, reply, 0);
}

/* Report the reply {0, name, recorded value, given value} as BELAY_EMISMATCH. */
static int contradiction(const belay__call_t *call, const belay__reply_t *reply) {
  char text[BELAY_CONFIG_NAME_MAX + (size_t)2 * SHOWN + 48];
  if (reply->count != 4)
    return BELAY_EPROTO;
  for (size_t i = 1; i < 4; i++)
    if (reply->items[i]->type != BELAY__REPLY_STRING)
      return BELAY_EPROTO;
  (void)snprintf(text, sizeof text, "%.64s is \"%.*s\" in the record, \"%.*s\" was given",
                 reply->items[1]->str, SHOWN, reply->items[2]->str, SHOWN, reply->items[3]->str);
  return belay__handle_mismatch(call, text);
}

static int read_opened(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  int64_t code;
  if (belay__reply_integer(reply, -1, -1, &code))
    return not_a_record(call);
  if (reply->type != BELAY__REPLY_ARRAY || reply->count < 1 ||
      !belay__reply_integer(reply->items[0], 0, 1, &code))
    return BELAY_EPROTO;
  return code == 0 ? contradiction(call, reply) : take_fields(operation, call, reply, 1);
}

static void notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const room_t *room = answer->status == 0 ? answer->room : NULL;
  ((belay_config_cb)cb)(request, answer->status, room != NULL ? room->fields : NULL,
                        room != NULL ? room->n : 0);
}

static const belay__request_ops_t read_ops = {
    .read = read_record, .notify = notify, .idempotent = true};
static const belay__request_ops_t open_ops = {
    .read = read_opened, .notify = notify, .idempotent = true};

static int check(const belay_config_t *config, const belay_request_t *request, belay_bytes_t key,
                 bool has_cb) {
  const belay__handle_t *handle = (const belay__handle_t *)config;
  if (config == NULL || !handle->type->whole)
    return belay__handle_check_key(handle, request, key, has_cb);
  int error = belay__handle_check_request(handle, request, has_cb);
  if (error != 0 || !belay__is_given(key))
    return error;
  return belay__invalid(handle->client->belay, "key: a presence has one record; NULL is expected");
}

static int check_fields(belay_t *belay, const belay_config_field_t *fields, size_t n) {
  int error = belay__check_count(belay, "field", fields, n, BELAY_CONFIG_FIELDS_MAX);
  for (size_t i = 0; i < n && error == 0; i++) {
    const belay_config_field_t *field = &fields[i];
    error = belay__check_bytes(
        belay, "name", belay_bytes(field->name, field->name != NULL ? strlen(field->name) : 0), 1,
        BELAY_CONFIG_NAME_MAX);
    if (error == 0 && field->value == NULL)
      error = belay__invalid(belay, "value: NULL");
    if (error == 0)
      error = belay__check_bytes(belay, "value", belay_bytes(field->value, strlen(field->value)), 0,
                                 BELAY_CONFIG_VALUE_MAX);
    if (error == 0)
      error = belay__check_range(belay, "rule", (int64_t)field->rule, 0, BELAY_CONFIG_LARGEST);
  }
  return error;
}

int belay_config_read(belay_config_t *config, belay_request_t *request, belay_bytes_t key,
                      belay_config_cb cb) {
  int error = check(config, request, key, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_command(&config->handle, "HGETALL", 2);
  belay__handle_arg(&config->handle, call, key.data, key.len, TAIL);
  return belay__handle_start(&config->handle, request, call, &read_ops, BELAY__CB(cb));
}

int belay_config_open(belay_config_t *config, belay_request_t *request, belay_bytes_t key,
                      const belay_config_field_t *fields, size_t n, belay_config_cb cb) {
  static const char *const rules[] = {"same", "latest", "largest"};
  int error = check(config, request, key, cb != NULL);
  if (error == 0)
    error = check_fields(config->handle.client->belay, fields, n);
  if (error != 0)
    return error;
  belay__call_t *call =
      belay__handle_script(&config->handle, &belay__script_config_open, 1, 1 + 3 * n);
  belay__handle_arg(&config->handle, call, key.data, key.len, TAIL);
  belay__call_arg_int(call, config->options.ttl_ms);
  for (size_t i = 0; i < n; i++) {
    belay__call_arg_text(call, rules[fields[i].rule]);
    belay__call_arg_text(call, fields[i].name);
    belay__call_arg_text(call, fields[i].value);
  }
  return belay__handle_start(&config->handle, request, call, &open_ops, BELAY__CB(cb));
}

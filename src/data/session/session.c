/* Session contexts. Each operation is one call of a script of its own. */
#include "belay/session.h"

#include <assert.h>
#include <string.h>

#include "belay/uuid.h"
#include "core/client/handle.h"
#include "core/key/uuid.h"
#include "scripts.gen.h"

#define TTL_MIN_MS INT64_C(1000)
#define TTL_MAX_MS INT64_C(31536000000) /* one year */
#define OP_TTL_MAX_MS INT64_C(86400000)
#define NUMBER_MAX ((INT64_C(1) << 53) - 1)
#define EVENT_BYTES ((size_t)160) /* bytes that an event takes of max_reply, besides its text */

struct belay_session {
  belay__handle_t handle; /* first */
  belay_session_options_t options;
};

/* The values of a request. The first eight stand for the items of the reply to a touch, in that
 * order. values[ID] is the length of the id; the bytes of the id begin at &values[ID_BYTES]. */
enum { NEW, TOUCHES, COUNT, KEPT, LOST, SINCE, DUE, ID, EXISTS, ENDED, LEFT, EVENTS, ID_BYTES };

static_assert(ID_BYTES * sizeof(int64_t) + BELAY_SESSION_ID_MAX <=
                  BELAY__REQUEST_VALUES * sizeof(int64_t),
              "an id fits behind the values");

static int fault(const belay__call_t *call, const belay__reply_t *reply) {
  static const belay__fault_t faults[] = {
      {BELAY_EMISMATCH, "it holds no context"},
      {BELAY_EWRONGTYPE, "its ::events holds no list"},
      {BELAY_EMISMATCH, "its ::op holds no answer of ours"},
  };
  return belay__handle_fault(call, reply, faults, sizeof faults / sizeof *faults);
}

static bool keep_id(belay__operation_t *operation, const belay__reply_t *id) {
  if (id->type != BELAY__REPLY_STRING || id->len < 1 || id->len > BELAY_SESSION_ID_MAX)
    return false;
  memcpy(&operation->values[ID_BYTES], id->str, id->len);
  operation->values[ID] = (int64_t)id->len;
  return true;
}

static int read_touched(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  int error = fault(call, reply);
  if (error != 0)
    return error;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != ID + 1)
    return BELAY_EPROTO;
  for (int i = NEW; i < ID; i++)
    if (!belay__reply_integer(reply->items[i], i == TOUCHES, i == NEW ? 1 : NUMBER_MAX,
                              &operation->values[i]))
      return BELAY_EPROTO;
  operation->values[EXISTS] = 1;
  return keep_id(operation, reply->items[ID]) ? 0 : BELAY_EPROTO;
}

static int read_ended(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int64_t *values = operation->values;
  int error = fault(call, reply);
  if (error != 0)
    return error;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 3 ||
      !belay__reply_integer(reply->items[0], 0, 1, &values[ENDED]) ||
      !belay__reply_integer(reply->items[1], 0, NUMBER_MAX, &values[COUNT]))
    return BELAY_EPROTO;
  if (!keep_id(operation, reply->items[2]) &&
      (values[ENDED] || !belay__reply_is(reply->items[2], "", 0)))
    return BELAY_EPROTO;
  values[EXISTS] = values[ID] > 0 && !values[ENDED];
  return operation->reply_lost && !values[ENDED] ? BELAY_EUNKNOWN : 0;
}

static int read_read(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  static const int order[] = {EXISTS, COUNT, KEPT, LOST, SINCE, LEFT};
  enum { NUMBERS = 6 };
  int error = fault(call, reply);
  if (error != 0)
    return error;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count < NUMBERS + 1)
    return BELAY_EPROTO;
  for (int i = 0; i < NUMBERS; i++)
    if (!belay__reply_integer(reply->items[i], order[i] == LEFT ? -1 : 0,
                              order[i] == EXISTS ? 1 : NUMBER_MAX, &operation->values[order[i]]))
      return BELAY_EPROTO;
  if (!operation->values[EXISTS])
    return reply->count == NUMBERS + 1 ? 0 : BELAY_EPROTO;
  if (!keep_id(operation, reply->items[NUMBERS]))
    return BELAY_EPROTO;
  operation->values[EVENTS] = (int64_t)(reply->count - NUMBERS - 1);
  return belay__request_keep(operation, reply->items + NUMBERS + 1, reply->count - NUMBERS - 1);
}

static void notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const int64_t *values = answer->values;
  belay_session_state_t state = {0};
  if (answer->status == 0)
    state = (belay_session_state_t){.exists = values[EXISTS] != 0,
                                    .is_new = values[NEW] != 0,
                                    .ended = values[ENDED] != 0,
                                    .id = values[ID] > 0 ? &values[ID_BYTES] : NULL,
                                    .id_len = (size_t)values[ID],
                                    .count = values[COUNT],
                                    .kept = values[KEPT],
                                    .lost = values[LOST],
                                    .since_ms = values[SINCE],
                                    .remaining_ms = values[LEFT],
                                    .events = answer->room,
                                    .events_len = (size_t)values[EVENTS]};
  ((belay_session_cb)cb)(request, answer->status, &state);
}

static const belay__request_ops_t touch_ops = {.read = read_touched, .notify = notify};
static const belay__request_ops_t touch_op_ops = {
    .read = read_touched, .notify = notify, .idempotent = true};
static const belay__request_ops_t end_ops = {.read = read_ended, .notify = notify};
static const belay__request_ops_t end_id_ops = {
    .read = read_ended, .notify = notify, .idempotent = true};
static const belay__request_ops_t read_ops = {
    .read = read_read, .notify = notify, .idempotent = true};

static int check(const belay_session_t *session, const belay_request_t *request, belay_bytes_t user,
                 bool has_cb) {
  int error = belay__handle_check_request((const belay__handle_t *)session, request, has_cb);
  return error != 0 ? error
                    : belay__check_bytes(session->handle.client->belay, "user", user, 1,
                                         BELAY_SESSION_USER_MAX);
}

static int check_touch(const belay_session_t *session, const belay_session_touch_t *touch) {
  belay_t *belay = session->handle.client->belay;
  int error = belay__check_bytes(belay, "event", touch->event, 0, BELAY_SESSION_EVENT_MAX);
  if (error == 0)
    error = belay__check_optional(belay, "id", touch->id, BELAY_SESSION_ID_MAX);
  if (error == 0)
    error = belay__check_optional(belay, "op_id", touch->op_id, BELAY_SESSION_OP_ID_MAX);
  return error;
}

static void put_keys(const belay_session_t *session, belay__call_t *call, belay_bytes_t user) {
  belay__handle_arg(&session->handle, call, user.data, user.len, "}");
  belay__handle_arg(&session->handle, call, user.data, user.len, "}::events");
}

int belay_session_touch(belay_session_t *session, belay_request_t *request, belay_bytes_t user,
                        const belay_session_touch_t *touch, belay_session_cb cb) {
  static const belay_session_touch_t nothing = {0};
  char uuid[BELAY_UUID_TEXT];
  if (touch == NULL)
    touch = &nothing;
  int error = check(session, request, user, cb != NULL);
  if (error == 0)
    error = check_touch(session, touch);
  if (error == 0 && touch->id.data == NULL)
    error = belay_uuid_v7(session->handle.client->belay, uuid);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_script(&session->handle, &belay__script_session_touch,
                                             touch->op_id.data != NULL ? 3 : 2, 6);
  put_keys(session, call, user);
  if (touch->op_id.data != NULL)
    belay__handle_arg_id(&session->handle, call, user, "}::op::", touch->op_id);
  belay__call_arg(call, touch->id.data != NULL ? touch->id.data : uuid,
                  touch->id.data != NULL ? touch->id.len : BELAY__UUID_TEXT);
  belay__call_arg_int(call, session->options.ttl_ms);
  belay__call_arg_int(call, session->options.max_events);
  belay__call_arg_int(call, touch->event.data != NULL);
  belay__call_arg(call, touch->event.len > 0 ? touch->event.data : "", touch->event.len);
  belay__call_arg_int(
      call, belay__request_keep_ms(session->handle.client, request, session->options.op_ttl_ms));
  return belay__handle_start(&session->handle, request, call,
                             touch->op_id.data != NULL ? &touch_op_ops : &touch_ops, BELAY__CB(cb));
}

int belay_session_read(belay_session_t *session, belay_request_t *request, belay_bytes_t user,
                       size_t n, belay_session_cb cb) {
  int error = check(session, request, user, cb != NULL);
  if (error == 0)
    error = belay__check_range(session->handle.client->belay, "n", n > INT32_MAX ? -1 : (int64_t)n,
                               0, BELAY_SESSION_EVENTS_MAX);
  if (error != 0)
    return error;
  size_t bytes = session->handle.client->max_reply / 2;
  belay__call_t *call = belay__handle_script(&session->handle, &belay__script_session_read, 2, 3);
  put_keys(session, call, user);
  belay__call_arg_int(call, (int64_t)n);
  belay__call_arg_int(call, bytes > (size_t)NUMBER_MAX ? NUMBER_MAX : (int64_t)bytes);
  belay__call_arg_int(call, EVENT_BYTES);
  return belay__handle_start(&session->handle, request, call, &read_ops, BELAY__CB(cb));
}

int belay_session_exists(belay_session_t *session, belay_request_t *request, belay_bytes_t user,
                         belay_session_cb cb) {
  return belay_session_read(session, request, user, 0, cb);
}

int belay_session_end(belay_session_t *session, belay_request_t *request, belay_bytes_t user,
                      belay_bytes_t id, belay_session_cb cb) {
  int error = check(session, request, user, cb != NULL);
  if (error == 0)
    error = belay__check_optional(session->handle.client->belay, "id", id, BELAY_SESSION_ID_MAX);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_script(&session->handle, &belay__script_session_end, 2, 1);
  put_keys(session, call, user);
  belay__call_arg(call, id.len > 0 ? id.data : "", id.len);
  return belay__handle_start(&session->handle, request, call,
                             id.data != NULL ? &end_id_ops : &end_ops, BELAY__CB(cb));
}

static const belay_session_options_t defaults = {
    .ttl_ms = 1800000, .max_events = 100, .op_ttl_ms = 60000};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_session_options_t, ttl_ms, TTL_MIN_MS, TTL_MAX_MS),
    BELAY__RANGE(belay_session_options_t, max_events, 0, BELAY_SESSION_EVENTS_MAX),
    BELAY__RANGE(belay_session_options_t, op_ttl_ms, TTL_MIN_MS, OP_TTL_MAX_MS),
    {.name = NULL},
};

const belay__handle_type_t belay__session_type = {
    .family = "session",
    BELAY__HANDLE_LAYOUT(session),
    .copy_at = offsetof(belay_session_t, options),
    .defaults = &defaults,
    .ranges = ranges,
};

BELAY__HANDLE_FUNCTIONS(session)

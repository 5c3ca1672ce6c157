/* Session contexts. A touch, and an end:
 *
 *   begun --the context's script--> (TOUCHED) --nothing is to be entered in the index--> told
 *                                      |
 *                                      +--the index's script (NOTING)--> told, whatever became of that
 *
 * The index is in another slot, and so is written second. That is done at the first, second, fourth, eighth ... touch of
 * a context, so that a write that was lost is made up for. */
#include "data/session/session.h"

#include <string.h>

#include "core/client/ranges.h"
#include "core/key/key.h"
#include "core/key/uuid.h"
#include "belay/uuid.h"
#include "scripts.gen.h"

#define TTL_MIN_MS INT64_C(1000)
#define TTL_MAX_MS INT64_C(31536000000) /* a year */
#define OP_TTL_MAX_MS INT64_C(86400000)
#define KEEP_MIN_MS INT64_C(3600000)
#define NUMBER_MAX ((INT64_C(1) << 53) - 1)
#define EVENT_BYTES ((size_t)160) /* of a reply, beside the event */

/* ---- answers ------------------------------------------------------------------------------------------- */

/* What the script of a touch answers, in its order; and what is known beside it. */
enum {
  NEW,
  TOUCHES,
  COUNT,
  KEPT,
  LOST,
  SINCE,
  DUE,
  ID,
  EXISTS,
  ENDED,
  LEFT,
  EVENTS,
  NOTING,
  UNNOTED
};

/* What is kept of a touch or an end, for the index; the room of the request. */
typedef struct note {
  size_t user_len;
  char id[BELAY_SESSION_ID_MAX];
  char user[];
} note_t;

static int wrong(const belay__call_t *call, int64_t what) {
  if (what == -2)
    return belay__call_blame(call, BELAY_EWRONGTYPE, "its ::events holds no list");
  return belay__handle_mismatch(call, what == -1 ? "it holds no context"
                                                 : "its ::op holds no answer of ours");
}

static bool is_id(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_STRING && reply->len >= 1 &&
         reply->len <= BELAY_SESSION_ID_MAX;
}

static void keep_id(belay__pending_t *pending, const belay__reply_t *id) {
  note_t *note = pending->room;
  memcpy(note->id, id->str, id->len);
  pending->values[ID] = (int64_t)id->len;
}

static int read_touched(belay__pending_t *pending, const belay__call_t *call,
                        const belay__reply_t *reply) {
  int64_t what;
  if (pending->values[NOTING])
    return belay__reply_integer(reply, 0, 0, &what) ? 0 : BELAY_EPROTO;
  if (belay__reply_integer(reply, -3, -1, &what))
    return wrong(call, what);
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != ID + 1 || !is_id(reply->items[ID]))
    return BELAY_EPROTO;
  for (int i = NEW; i < ID; i++)
    if (!belay__reply_integer(reply->items[i], i == TOUCHES, i == NEW ? 1 : NUMBER_MAX,
                              &pending->values[i]))
      return BELAY_EPROTO;
  keep_id(pending, reply->items[ID]);
  pending->values[EXISTS] = 1;
  return 0;
}

static int read_ended(belay__pending_t *pending, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int64_t what, *values = pending->values;
  if (values[NOTING])
    return belay__reply_integer(reply, 0, 0, &what) ? 0 : BELAY_EPROTO;
  if (belay__reply_integer(reply, -1, -1, &what))
    return wrong(call, what);
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 3 ||
      !belay__reply_integer(reply->items[0], 0, 1, &values[ENDED]) ||
      !belay__reply_integer(reply->items[1], 0, NUMBER_MAX, &values[COUNT]))
    return BELAY_EPROTO;
  if (is_id(reply->items[2]))
    keep_id(pending, reply->items[2]);
  else if (values[ENDED] || !belay__reply_is(reply->items[2], "", 0))
    return BELAY_EPROTO;
  values[EXISTS] = values[ID] > 0 && !values[ENDED];
  return pending->maybe && !values[ENDED] ? BELAY_EUNKNOWN : 0;
}

static bool is_due_to_be_noted(const belay_session_t *session, const int64_t *values) {
  return session->notice && !values[NOTING] &&
         (values[ENDED] || (values[TOUCHES] & (values[TOUCHES] - 1)) == 0);
}

static bool note_it(belay__pending_t *pending) {
  const belay_session_t *session = pending->context;
  const note_t *note = pending->room;
  const int64_t *values = pending->values;
  char entry[BELAY__SESSION_ENTRY_MAX];
  size_t len =
      belay__session_entry(entry, note->id, (size_t)values[ID], note->user, note->user_len);
  uint32_t shard = belay__session_shard(note->user, note->user_len);
  belay__call_t *call = belay__session_index(session, shard, values[ENDED] ? "XX" : "NX", 1);
  if (call == NULL)
    return false;
  belay__call_arg(call, entry, len);
  belay__call_arg_int(call, values[ENDED] ? 0 : values[DUE]);
  return belay__request_send(pending, call) == 0;
}

static int next(belay__pending_t *pending) {
  const belay_session_t *session = pending->context;
  int64_t *values = pending->values;
  if (values[EXISTS] + values[ENDED] == 0 || !is_due_to_be_noted(session, values))
    return 0;
  if (values[EXISTS] && values[TOUCHES] == 0)
    return 0; /* another one than was to end */
  values[NOTING] = 1;
  if (note_it(pending))
    return BELAY__REQUEST_PARK;
  values[UNNOTED] = 1;
  return 0;
}

static void tell_state(belay_request_t *request, belay_session_cb cb, int status,
                       const belay_session_state_t *state) {
  const belay_session_state_t unknown = {0};
  cb(request, status, status == 0 ? state : &unknown);
}

/* What was done is done, though the index does not know. */
static void tell_noted(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const int64_t *values = answer->values;
  const note_t *note = answer->room;
  bool lost = values[NOTING] && answer->status != 0 && answer->status != BELAY_ECANCELED;
  int status = lost ? 0 : answer->status;
  const belay_session_state_t state = {.exists = values[EXISTS] != 0,
                                       .is_new = values[NEW] != 0,
                                       .ended = values[ENDED] != 0,
                                       .unnoted = lost || values[UNNOTED],
                                       .id = values[ID] > 0 ? note->id : NULL,
                                       .id_len = (size_t)values[ID],
                                       .count = values[COUNT],
                                       .kept = values[KEPT],
                                       .lost = values[LOST],
                                       .since_ms = values[SINCE]};
  tell_state(request, (belay_session_cb)cb, status, &state);
}

/* Room: the events, then the id, then the bytes of the events. */
static int keep_events(belay__pending_t *pending, const belay__reply_t *id,
                       belay__reply_t *const *items, size_t n) {
  size_t bytes = n * sizeof(belay_bytes_t) + id->len;
  for (size_t i = 0; i < n; i++) {
    if (items[i]->type != BELAY__REPLY_STRING)
      return BELAY_EPROTO;
    bytes += items[i]->len;
  }
  belay_bytes_t *events = belay__request_room(pending, bytes);
  if (events == NULL)
    return BELAY_ENOMEM;
  char *at = (char *)(events + n);
  memcpy(at, id->str, id->len);
  at += id->len;
  for (size_t i = 0; i < n; i++) {
    if (items[i]->len > 0)
      memcpy(at, items[i]->str, items[i]->len);
    events[i] = (belay_bytes_t){.data = at, .len = items[i]->len};
    at += items[i]->len;
  }
  pending->values[ID] = (int64_t)id->len;
  pending->values[EVENTS] = (int64_t)n;
  return 0;
}

static int read_read(belay__pending_t *pending, const belay__call_t *call,
                     const belay__reply_t *reply) {
  static const int order[] = {EXISTS, COUNT, KEPT, LOST, SINCE, LEFT};
  enum { NUMBERS = 6 };
  int64_t what;
  if (belay__reply_integer(reply, -2, -1, &what))
    return wrong(call, what);
  if (reply->type != BELAY__REPLY_ARRAY || reply->count < NUMBERS + 1)
    return BELAY_EPROTO;
  for (int i = 0; i < NUMBERS; i++)
    if (!belay__reply_integer(reply->items[i], order[i] == LEFT ? -1 : 0,
                              order[i] == EXISTS ? 1 : NUMBER_MAX, &pending->values[order[i]]))
      return BELAY_EPROTO;
  if (!pending->values[EXISTS])
    return reply->count == NUMBERS + 1 ? 0 : BELAY_EPROTO;
  if (!is_id(reply->items[NUMBERS]))
    return BELAY_EPROTO;
  return keep_events(pending, reply->items[NUMBERS], reply->items + NUMBERS + 1,
                     reply->count - NUMBERS - 1);
}

static void tell_read(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const int64_t *values = answer->values;
  const belay_bytes_t *events = answer->room;
  size_t n = (size_t)values[EVENTS];
  const belay_session_state_t state = {.exists = values[EXISTS] != 0,
                                       .id = events != NULL ? (const void *)(events + n) : NULL,
                                       .id_len = (size_t)values[ID],
                                       .count = values[COUNT],
                                       .kept = values[KEPT],
                                       .lost = values[LOST],
                                       .since_ms = values[SINCE],
                                       .remaining_ms = values[LEFT],
                                       .events = n > 0 ? events : NULL,
                                       .events_len = n};
  tell_state(request, (belay_session_cb)cb, answer->status, &state);
}

static const belay__request_ops_t touch_ops = {
    .read = read_touched, .next = next, .tell = tell_noted};
static const belay__request_ops_t touch_op_ops = {
    .read = read_touched, .next = next, .tell = tell_noted, .idempotent = true};
static const belay__request_ops_t end_ops = {.read = read_ended, .next = next, .tell = tell_noted};
static const belay__request_ops_t end_id_ops = {
    .read = read_ended, .next = next, .tell = tell_noted, .idempotent = true};
static const belay__request_ops_t read_ops = {
    .read = read_read, .tell = tell_read, .idempotent = true};

/* ---- operations ---------------------------------------------------------------------------------------- */

static int check(const belay_session_t *session, const belay_request_t *request, const char *user,
                 size_t user_len, bool has_cb) {
  int error = belay__handle_check_request((const belay__handle_t *)session, request, has_cb);
  return error != 0 ? error
                    : belay__check_bytes(session->handle.client->belay, "user", user, user_len, 1,
                                         BELAY_SESSION_USER_MAX);
}

static int check_touch(const belay_session_t *session, const belay_session_touch_t *touch) {
  belay_t *belay = session->handle.client->belay;
  int error = belay__check_bytes(belay, "event", touch->event, touch->event_len, 0,
                                 BELAY_SESSION_EVENT_MAX);
  if (error == 0)
    error = belay__check_optional(belay, "id", touch->id, touch->id_len, BELAY_SESSION_ID_MAX);
  if (error == 0)
    error = belay__check_optional(belay, "op", touch->op, touch->op_len, BELAY_SESSION_OP_MAX);
  return error;
}

/* A request that keeps its user for the index; all its steps end by one deadline. */
static int begin(belay_session_t *session, belay_request_t *request,
                 const belay__request_ops_t *ops, const char *user, size_t user_len,
                 belay_session_cb cb, belay__pending_t **out) {
  belay_client_t *client = session->handle.client;
  int error = belay__handle_begin(&session->handle, request, ops, (void (*)(void))cb, out);
  if (error != 0)
    return error;
  (*out)->deadline = belay__after_ms(client->belay, belay__request_timeout_ms(client, request));
  note_t *note = belay__request_room(*out, sizeof *note + user_len);
  if (note == NULL) {
    belay__request_forget(*out);
    return BELAY_ENOMEM;
  }
  note->user_len = user_len;
  memcpy(note->user, user, user_len);
  return 0;
}

static int send(belay__pending_t *pending, belay__call_t *call) {
  int error = belay__request_send(pending, call);
  if (error != 0)
    belay__request_forget(pending);
  return error;
}

static void put_keys(const belay_session_t *session, belay__call_t *call, const char *user,
                     size_t user_len) {
  belay__handle_arg(&session->handle, call, user, user_len, "}");
  belay__handle_arg(&session->handle, call, user, user_len, "}::events");
}

static void put_op_key(const belay_session_t *session, belay__call_t *call, const char *user,
                       size_t user_len, const belay_session_touch_t *touch) {
  char tail[7 + 3 * BELAY_SESSION_OP_MAX + 1] = "}::op::";
  size_t n = belay__key_escape(tail + 7, touch->op, touch->op_len);
  tail[7 + n] = '\0';
  belay__handle_arg(&session->handle, call, user, user_len, tail);
}

/* What is kept of an operation outlives the last time that it may be sent. */
static int64_t op_ttl(const belay_session_t *session, const belay_request_t *request) {
  int64_t ms = belay__request_timeout_ms(session->handle.client, request);
  ms += ms / 100 + 2;
  return ms > session->op_ttl_ms ? ms : session->op_ttl_ms;
}

int belay_session_touch(belay_session_t *session, belay_request_t *request, const char *user,
                        size_t user_len, const belay_session_touch_t *touch, belay_session_cb cb) {
  user_len = belay__text_len(user, user_len);
  static const belay_session_touch_t nothing = {0};
  belay__pending_t *pending;
  char uuid[BELAY_UUID_TEXT];
  if (touch == NULL)
    touch = &nothing;
  int error = check(session, request, user, user_len, cb != NULL);
  if (error == 0)
    error = check_touch(session, touch);
  if (error == 0 && touch->id == NULL)
    error = belay_uuid_v7(session->handle.client->belay, uuid);
  if (error != 0)
    return error;
  const belay__request_ops_t *ops = touch->op != NULL ? &touch_op_ops : &touch_ops;
  error = begin(session, request, ops, user, user_len, cb, &pending);
  if (error != 0)
    return error;
  belay__call_t *call = belay__call_new(session->handle.client, BELAY__LANE_DATA);
  if (call != NULL) {
    belay__call_script(call, &belay__script_session_touch, touch->op != NULL ? 3 : 2, 6);
    put_keys(session, call, user, user_len);
    if (touch->op != NULL)
      put_op_key(session, call, user, user_len, touch);
    belay__call_arg(call, touch->id != NULL ? touch->id : uuid,
                    touch->id != NULL ? touch->id_len : BELAY__UUID_TEXT);
    belay__call_arg_int(call, session->ttl_ms);
    belay__call_arg_int(call, session->max_events);
    belay__call_arg_int(call, touch->event != NULL);
    belay__call_arg(call, touch->event_len > 0 ? touch->event : "", touch->event_len);
    belay__call_arg_int(call, op_ttl(session, request));
  }
  return send(pending, call);
}

int belay_session_read(belay_session_t *session, belay_request_t *request, const char *user,
                       size_t user_len, size_t n, belay_session_cb cb) {
  user_len = belay__text_len(user, user_len);
  int error = check(session, request, user, user_len, cb != NULL);
  if (error == 0 && n > BELAY_SESSION_EVENTS_MAX) {
    belay__detail(session->handle.client->belay, "n: not from 0 to %d", BELAY_SESSION_EVENTS_MAX);
    return BELAY_EINVAL;
  }
  if (error != 0)
    return error;
  belay_client_t *client = session->handle.client;
  size_t bytes = client->max_reply / 2;
  belay__call_t *call = belay__call_new(client, BELAY__LANE_DATA);
  if (call == NULL)
    return BELAY_ENOMEM;
  belay__call_script(call, &belay__script_session_read, 2, 3);
  put_keys(session, call, user, user_len);
  belay__call_arg_int(call, (int64_t)n);
  belay__call_arg_int(call, bytes > (size_t)NUMBER_MAX ? NUMBER_MAX : (int64_t)bytes);
  belay__call_arg_int(call, EVENT_BYTES);
  return belay__handle_start(&session->handle, request, call, &read_ops, (void (*)(void))cb);
}

int belay_session_exists(belay_session_t *session, belay_request_t *request, const char *user,
                         size_t user_len, belay_session_cb cb) {
  user_len = belay__text_len(user, user_len);
  return belay_session_read(session, request, user, user_len, 0, cb);
}

int belay_session_end(belay_session_t *session, belay_request_t *request, const char *user,
                      size_t user_len, const void *id, size_t id_len, belay_session_cb cb) {
  user_len = belay__text_len(user, user_len);
  belay__pending_t *pending;
  int error = check(session, request, user, user_len, cb != NULL);
  if (error == 0)
    error = belay__check_optional(session->handle.client->belay, "id", id, id_len,
                                  BELAY_SESSION_ID_MAX);
  if (error == 0)
    error =
        begin(session, request, id != NULL ? &end_id_ops : &end_ops, user, user_len, cb, &pending);
  if (error != 0)
    return error;
  belay__call_t *call = belay__call_new(session->handle.client, BELAY__LANE_DATA);
  if (call != NULL) {
    belay__call_script(call, &belay__script_session_end, 2, 1);
    put_keys(session, call, user, user_len);
    belay__call_arg(call, id_len > 0 ? id : "", id_len);
  }
  return send(pending, call);
}

/* ---- the handle ---------------------------------------------------------------------------------------- */

static void on_close(belay__handle_t *handle) {
  belay__session_watches_close((belay_session_t *)handle);
}

static void on_abort(belay__handle_t *handle) {
  belay__session_watches_abort((belay_session_t *)handle);
}

static void on_gone(belay__handle_t *handle) {
  belay_session_t *session = (belay_session_t *)handle;
  if (handle->close_cb != NULL)
    ((belay_session_close_cb)handle->close_cb)(session, handle->data);
}

static const belay__handle_ops_t handle_ops = {.name = "session",
                                               .size = sizeof(belay_session_t),
                                               .close = on_close,
                                               .abort = on_abort,
                                               .gone = on_gone};

void belay_session_options_init(belay_session_options_t *options) {
  if (options != NULL)
    *options = (belay_session_options_t){
        .ttl_ms = 1800000, .max_events = 100, .op_ttl_ms = 60000, .notice_keep_ms = 86400000};
}

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_session_options_t, ttl_ms, TTL_MIN_MS, TTL_MAX_MS),
    BELAY__RANGE(belay_session_options_t, max_events, 0, BELAY_SESSION_EVENTS_MAX),
    BELAY__RANGE(belay_session_options_t, op_ttl_ms, TTL_MIN_MS, OP_TTL_MAX_MS),
    BELAY__RANGE(belay_session_options_t, notice_keep_ms, KEEP_MIN_MS, TTL_MAX_MS),
    {.name = NULL},
};

int belay_session_new(belay_client_t *client, const belay_session_options_t *options,
                      belay_session_t **out) {
  belay_session_options_t o;
  belay__handle_t *handle;
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  belay_session_options_init(&o);
  int error = belay__options_take(client, &o, options, sizeof o, ranges);
  if (error == 0)
    error = belay__handle_new(client, &handle_ops, o.name, o.name_len, &handle);
  if (error != 0)
    return error;
  belay_session_t *session = *out = (belay_session_t *)handle;
  belay__list_init(&session->watches);
  handle->data = o.data;
  session->ttl_ms = o.ttl_ms;
  session->max_events = o.max_events;
  session->op_ttl_ms = o.op_ttl_ms;
  session->notice_keep_ms = o.notice_keep_ms;
  session->notice = o.notice;
  return 0;
}

void *belay_session_data(const belay_session_t *session) {
  return belay__handle_data((const belay__handle_t *)session);
}

int belay_session_close(belay_session_t *session, belay_session_close_cb cb) {
  return belay__handle_close((belay__handle_t *)session, (void (*)(void))cb);
}

/* Idempotency records. One script executes all operations except forget. A begin draws its token
 * before it sends the call, so a second attempt finds the record that the first attempt began. A
 * begin has a claim, with its key and token, until the request ends. If the begin may have been
 * executed, but the caller does not get its result, belay abandons the record in the background:
 *
 *    begun --result reported, refused, or not sent--> freed
 *      +--canceled after it was sent, or result lost: send an abandon--> freed
 *
 * The handle waits for the abandon. */
#include <string.h>

#include "belay/idempotency.h"

#include "core/client/handle.h"
#include "core/key/key.h"
#include "core/key/token.h"
#include "scripts.gen.h"

#define TTL_MIN_MS INT64_C(1000)
#define TTL_MAX_MS INT64_C(31536000000) /* one year */
#define DEADLINE_MAX_MS INT64_C(86400000)
#define NUMBER_MAX ((INT64_C(1) << 53) - 1)
#define TOKEN_TEXT ((size_t)2 * BELAY__TOKEN_BYTES)

_Static_assert(sizeof(belay_idempotency_token_t) == BELAY__TOKEN_BYTES, "the token sizes agree");
_Static_assert(BELAY_IDEMPOTENCY_OWNER_MAX == BELAY__OWNER_MAX, "the owner sizes agree");

struct belay_idempotency {
  belay__handle_t handle; /* first */
  belay_idempotency_options_t options;
};

static const belay_idempotency_options_t defaults = {
    .deadline_ms = 30000, .ttl_ms = 86400000, .grace_ms = 3600000};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_idempotency_options_t, deadline_ms, 1, DEADLINE_MAX_MS),
    BELAY__RANGE(belay_idempotency_options_t, ttl_ms, TTL_MIN_MS, TTL_MAX_MS),
    BELAY__RANGE(belay_idempotency_options_t, grace_ms, TTL_MIN_MS, TTL_MAX_MS),
    {.name = NULL},
};

const belay__handle_type_t belay__idempotency_type = {
    .family = "idempotency",
    BELAY__HANDLE_LAYOUT(idempotency),
    .copy_at = offsetof(belay_idempotency_t, options),
    .defaults = &defaults,
    .ranges = ranges,
};

BELAY__HANDLE_FUNCTIONS(idempotency)

/* The arguments of the script, without the key. */
typedef struct order {
  const char *verb;
  const void *token; /* BELAY__TOKEN_BYTES bytes; NULL: none */
  int64_t ms, keep_ms;
  belay_bytes_t text; /* Fingerprint or result */
} order_t;

static void put_key(const belay_idempotency_t *records, belay__call_t *call, belay_bytes_t key) {
  if (!records->options.exact_keys) {
    belay__handle_arg(&records->handle, call, key.data, key.len, "}");
  } else if (call != NULL) {
    belay__call_arg(call, key.data, key.len);
    call->route = belay__key_route(key.data, key.len);
  }
}

static belay__call_t *make_call(const belay_idempotency_t *records, belay_bytes_t key,
                                const order_t *order) {
  const belay_client_t *client = records->handle.client;
  char token[BELAY__TOKEN_TEXT_MAX];
  belay__token_t bytes;
  if (order->token != NULL)
    (void)belay__token_text(token, memcpy(&bytes, order->token, sizeof bytes), "", 0);
  belay__call_t *call = belay__handle_script(&records->handle, &belay__script_idempotency, 1, 6);
  put_key(records, call, key);
  belay__call_arg_text(call, order->verb);
  belay__call_arg(call, token, order->token != NULL ? TOKEN_TEXT : 0);
  belay__call_arg_int(call, order->ms);
  belay__call_arg_int(call, order->keep_ms);
  belay__call_arg(call, order->text.len == 0 ? "" : order->text.data, order->text.len);
  belay__call_arg(call, client->owner, client->owner_len);
  return call;
}

/* The claim of a begin. */
typedef struct claim {
  belay_idempotency_t *records;
  belay__token_t token;
  size_t key_len;
  char key[];
} claim_t;

static void claim_free(claim_t *claim) {
  belay__free(claim->records->handle.client->belay, claim, sizeof *claim + claim->key_len);
}

/* Make a claim with a fresh token. Returns 0, BELAY_ENOMEM or BELAY_ESYSTEM. */
static int claim_new(belay_idempotency_t *records, belay_bytes_t key, claim_t **out) {
  belay_t *belay = records->handle.client->belay;
  claim_t *claim = *out = belay__alloc(belay, sizeof *claim + key.len);
  if (claim == NULL)
    return BELAY_ENOMEM;
  *claim = (claim_t){.records = records, .key_len = key.len};
  memcpy(claim->key, key.data, key.len);
  int error = belay->host->random(belay, &claim->token, sizeof claim->token);
  if (error != 0)
    claim_free(claim);
  return error;
}

/* Free the claim. undo: first send an abandon. If the two calls use different connections and the
 * server executes the abandon first, the record stays in progress until its deadline. */
static void claim_end(claim_t *claim, bool undo) {
  belay_idempotency_t *records = claim->records;
  const order_t order = {
      .verb = "abandon", .token = &claim->token, .keep_ms = records->options.grace_ms};
  if (undo)
    belay__handle_give_back(&records->handle,
                            make_call(records, belay_bytes(claim->key, claim->key_len), &order));
  claim_free(claim);
}

static claim_t *claim_of(int64_t value) {
  return (claim_t *)(void *)(intptr_t)value; // NOLINT(performance-no-int-to-ptr)
}

/* The values of a request. The first six are the items of the reply, for the owner and the
 * result only the lengths. VERDICT: status for the callback if the request ends with 0. */
enum {
  WHAT,
  OURS,
  ATTEMPT,
  LEFT,
  OWNER_LEN,
  RESULT_LEN,
  VERDICT,
  CLAIM,
  SENT /* Start of the answered attempt, in nanoseconds of the host's clock */
};
enum { PARTS = 6, MALFORMED = -1, OTHER = -2 };

/* Copy the owner, a 0 and the result to the room. */
static int keep_texts(belay__operation_t *operation, const belay__reply_t *owner,
                      const belay__reply_t *result) {
  operation->values[OWNER_LEN] = (int64_t)owner->len;
  operation->values[RESULT_LEN] = (int64_t)result->len;
  char *room = belay__request_room(operation, owner->len + 1 + result->len);
  if (room == NULL)
    return BELAY_ENOMEM;
  memcpy(room, owner->str, owner->len); /* the room is all 0 */
  if (result->len > 0)
    memcpy(room + owner->len + 1, result->str, result->len);
  return 0;
}

static int read_state(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  static const int64_t min[] = {BELAY_IDEMPOTENCY_ABSENT, 0, 0, -1},
                       max[] = {BELAY_IDEMPOTENCY_ABANDONED, 1, NUMBER_MAX, NUMBER_MAX};
  int64_t what;
  operation->values[SENT] = (int64_t)call->started;
  if (belay__reply_integer(reply, OTHER, MALFORMED, &what))
    return belay__handle_mismatch(call, what == OTHER ? "it has another fingerprint"
                                                      : "it is no idempotency record");
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != PARTS)
    return BELAY_EPROTO;
  for (int i = 0; i <= LEFT; i++)
    if (!belay__reply_integer(reply->items[i], min[i], max[i], &operation->values[i]))
      return BELAY_EPROTO;
  const belay__reply_t *owner = reply->items[OWNER_LEN], *result = reply->items[RESULT_LEN];
  if (owner->type != BELAY__REPLY_STRING || owner->len > BELAY__OWNER_MAX ||
      result->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  return keep_texts(operation, owner, result);
}

/* Return the remaining time at the callback. For a record of the caller, subtract the time
 * since the start of the answered attempt, because the server may have counted from then. */
static int64_t remaining_ms(const belay__answer_t *answer) {
  const int64_t *values = answer->values;
  if (values[WHAT] != BELAY_IDEMPOTENCY_STARTED && values[WHAT] != BELAY_IDEMPOTENCY_TAKEN_OVER)
    return values[LEFT];
  uint64_t ns = belay__now(answer->client->belay) - (uint64_t)values[SENT];
  int64_t ms = (int64_t)((ns + BELAY__MS - 1) / BELAY__MS);
  return values[LEFT] > ms ? values[LEFT] - ms : 0;
}

/* Read the reply to an operation with a token. If the record does not belong to the token, set the
 * verdict BELAY_ENOTOWNER and return 0. After a retry, the request would report an error from here
 * as BELAY_EUNKNOWN. */
static int read_owned(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int error = read_state(operation, call, reply);
  if (error == 0 && !operation->values[OURS])
    operation->values[VERDICT] = BELAY_ENOTOWNER;
  return error;
}

/* As read_owned(), for an abandon. If a reply was lost and the record does not belong to the token,
 * return BELAY_EUNKNOWN. An earlier attempt may have abandoned the record, and another client may
 * have begun it since. */
static int read_abandoned(belay__operation_t *operation, const belay__call_t *call,
                          const belay__reply_t *reply) {
  int error = read_owned(operation, call, reply);
  return error == 0 && operation->reply_lost && !operation->values[OURS] ? BELAY_EUNKNOWN : error;
}

/* As read_owned(), for a finish. If a reply was lost and the record is absent, return
 * BELAY_EUNKNOWN. An earlier attempt may have stored the result, and the record may have expired
 * since. */
static int read_finished(belay__operation_t *operation, const belay__call_t *call,
                         const belay__reply_t *reply) {
  int error = read_owned(operation, call, reply);
  bool gone = error == 0 && operation->values[WHAT] == BELAY_IDEMPOTENCY_ABSENT;
  return operation->reply_lost && gone ? BELAY_EUNKNOWN : error;
}

static bool is_other(const belay__reply_t *reply) {
  int64_t what;
  return belay__reply_integer(reply, OTHER, OTHER, &what);
}

static int read_begun(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int error = read_state(operation, call, reply);
  if (is_other(reply)) {
    operation->values[VERDICT] = error; /* definite after a retry too: no attempt did anything */
    return 0;
  }
  /* The token is new: if the record is abandoned, another client with the same token has done
   * it. */
  if (error == 0 && operation->values[WHAT] == BELAY_IDEMPOTENCY_ABANDONED)
    operation->values[VERDICT] = BELAY_ENOTOWNER;
  return error;
}

static int read_forgotten(belay__operation_t *operation, const belay__call_t *call,
                          const belay__reply_t *reply) {
  (void)call;
  return belay__reply_integer(reply, 0, 1, &operation->values[OURS]) ? 0 : BELAY_EPROTO;
}

static const belay_idempotency_state_t unknown = {.outcome = BELAY_IDEMPOTENCY_UNKNOWN,
                                                  .owner = ""};

/* Run the callback with the state of the record. token: the token of a begin; NULL: none to
 * report. */
static void notify_state(belay_request_t *request, belay_idempotency_cb cb,
                         const belay__answer_t *answer, const belay__token_t *token) {
  const int64_t *values = answer->values;
  int status = answer->status != 0 ? answer->status : (int)values[VERDICT];
  bool known = answer->status == 0 && (status == 0 || status == BELAY_ENOTOWNER);
  if (answer->status == 0)
    belay__client_explain(answer->client, status, NULL, 0);
  belay_idempotency_state_t state = {.outcome = (belay_idempotency_outcome_t)values[WHAT],
                                     .attempt = values[ATTEMPT],
                                     .remaining_ms = remaining_ms(answer),
                                     .owner = answer->room != NULL ? answer->room : ""};
  if (state.outcome == BELAY_IDEMPOTENCY_DONE && !values[OURS]) {
    state.result = state.owner + values[OWNER_LEN] + 1;
    state.result_len = (size_t)values[RESULT_LEN];
  }
  if (token != NULL && values[OURS])
    memcpy(state.token.bytes, token->bytes, sizeof state.token.bytes);
  cb(request, status, known ? &state : &unknown);
}

static void notify(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  notify_state(request, (belay_idempotency_cb)cb, answer, NULL);
}

/* True if the begin may have been executed, but its result is lost. False if the client is closing,
 * because the client does not wait for an abandon that is sent now. */
static bool must_undo(const belay__answer_t *answer) {
  return !answer->client->closing &&
         (answer->status == BELAY_EUNKNOWN || answer->status == BELAY_EPROTO ||
          answer->status == BELAY_ENOMEM);
}

static void notify_begun(belay_request_t *request, void (*cb)(void),
                         const belay__answer_t *answer) {
  claim_t *claim = claim_of(answer->values[CLAIM]);
  belay__token_t token = {{0}};
  if (claim != NULL) {
    token = claim->token;
    claim_end(claim, must_undo(answer));
  }
  notify_state(request, (belay_idempotency_cb)cb, answer, &token);
}

/* Abandon the record if the server may have executed the begin. A closing handle waits for this
 * abandon. */
static void on_cancel(belay__operation_t *operation, bool sent) {
  claim_t *claim = claim_of(operation->values[CLAIM]);
  operation->values[CLAIM] = 0;
  claim_end(claim, sent);
}

static void notify_forgotten(belay_request_t *request, void (*cb)(void),
                             const belay__answer_t *answer) {
  const belay_idempotency_state_t state = {.owner = "", .existed = answer->values[OURS] != 0};
  ((belay_idempotency_cb)cb)(request, answer->status, answer->status == 0 ? &state : &unknown);
}

static const belay__request_ops_t begin_ops = {
    .read = read_begun, .notify = notify_begun, .left = on_cancel, .idempotent = true};
static const belay__request_ops_t extend_ops = {
    .read = read_owned, .notify = notify, .idempotent = true};
static const belay__request_ops_t finish_ops = {
    .read = read_finished, .notify = notify, .idempotent = true};
static const belay__request_ops_t abandon_ops = {
    .read = read_abandoned, .notify = notify, .idempotent = true};
static const belay__request_ops_t read_ops = {
    .read = read_state, .notify = notify, .idempotent = true};
static const belay__request_ops_t forget_ops = {.read = read_forgotten, .notify = notify_forgotten};

static int check(const belay_idempotency_t *records, const belay_request_t *request,
                 belay_bytes_t key, bool has_cb) {
  return belay__handle_check_key((const belay__handle_t *)records, request, key, has_cb);
}

/* Check as check() does, and that there is a token. */
static int check_owned(const belay_idempotency_t *records, const belay_request_t *request,
                       belay_bytes_t key, const belay_idempotency_token_t *token, bool has_cb) {
  int error = check(records, request, key, has_cb);
  if (error == 0 && token == NULL)
    return belay__invalid(records->handle.client->belay, "token: NULL");
  return error;
}

/* Replace 0 and BELAY_DEFAULT by the option, and check the range. */
static int check_ms(const belay_idempotency_t *records, const char *what, int64_t *ms,
                    int64_t option, int64_t min, int64_t max) {
  if (*ms == 0 || *ms == BELAY_DEFAULT)
    *ms = option;
  return belay__check_range(records->handle.client->belay, what, *ms, min, max);
}

static int check_deadline(const belay_idempotency_t *records, int64_t *ms) {
  return check_ms(records, "deadline_ms", ms, records->options.deadline_ms, 1, DEADLINE_MAX_MS);
}

/* Return the time for which the server keeps a record after the owner's deadline, or after an
 * abandon: options.grace_ms, or longer if this request may be sent again for longer. */
static int64_t grace_ms(const belay_idempotency_t *records, const belay_request_t *request) {
  return belay__request_keep_ms(records->handle.client, request, records->options.grace_ms);
}

static int start(belay_idempotency_t *records, belay_request_t *request, belay_bytes_t key,
                 const order_t *order, const belay__request_ops_t *ops, belay_idempotency_cb cb) {
  return belay__handle_start(&records->handle, request, make_call(records, key, order), ops,
                             BELAY__CB(cb));
}

int belay_idempotency_begin(belay_idempotency_t *records, belay_request_t *request,
                            belay_bytes_t key, belay_bytes_t fingerprint, int64_t deadline_ms,
                            belay_idempotency_cb cb) {
  claim_t *claim;
  belay__operation_t *operation;
  int error = check(records, request, key, cb != NULL);
  if (error == 0)
    error = belay__check_optional(records->handle.client->belay, "fingerprint", fingerprint,
                                  BELAY_IDEMPOTENCY_FINGERPRINT_MAX);
  if (error == 0)
    error = check_deadline(records, &deadline_ms);
  if (error == 0)
    error = claim_new(records, key, &claim);
  if (error != 0)
    return error;
  error = belay__handle_begin(&records->handle, request, &begin_ops, BELAY__CB(cb), &operation);
  if (error != 0) {
    claim_free(claim);
    return error;
  }
  const order_t order = {.verb = "begin",
                         .token = &claim->token,
                         .ms = deadline_ms,
                         .keep_ms = grace_ms(records, request),
                         .text = fingerprint};
  operation->values[CLAIM] = (int64_t)(intptr_t)claim;
  error = belay__request_send(operation, make_call(records, key, &order));
  if (error != 0) {
    belay__request_forget(operation);
    claim_free(claim);
  }
  return error;
}

int belay_idempotency_extend(belay_idempotency_t *records, belay_request_t *request,
                             belay_bytes_t key, const belay_idempotency_token_t *token,
                             int64_t deadline_ms, belay_idempotency_cb cb) {
  int error = check_owned(records, request, key, token, cb != NULL);
  if (error == 0)
    error = check_deadline(records, &deadline_ms);
  if (error != 0)
    return error;
  const order_t order = {
      .verb = "extend", .token = token, .ms = deadline_ms, .keep_ms = grace_ms(records, request)};
  return start(records, request, key, &order, &extend_ops, cb);
}

int belay_idempotency_finish(belay_idempotency_t *records, belay_request_t *request,
                             belay_bytes_t key, const belay_idempotency_token_t *token,
                             const belay_idempotency_finish_t *finish, belay_idempotency_cb cb) {
  int error = check_owned(records, request, key, token, cb != NULL);
  if (error == 0 && finish == NULL)
    return belay__invalid(records->handle.client->belay, "finish: NULL");
  int64_t ttl_ms = error == 0 ? finish->ttl_ms : 0;
  if (error == 0)
    error = check_ms(records, "ttl_ms", &ttl_ms, records->options.ttl_ms, TTL_MIN_MS, TTL_MAX_MS);
  if (error == 0) {
    size_t half = records->handle.client->max_reply / 2;
    size_t max = half < BELAY_IDEMPOTENCY_RESULT_MAX ? half : BELAY_IDEMPOTENCY_RESULT_MAX;
    error = belay__check_bytes(records->handle.client->belay, "result", finish->result, 0, max);
  }
  if (error != 0)
    return error;
  const order_t order = {.verb = "finish",
                         .token = token,
                         .ms = belay__request_keep_ms(records->handle.client, request, ttl_ms),
                         .text = finish->result};
  return start(records, request, key, &order, &finish_ops, cb);
}

int belay_idempotency_abandon(belay_idempotency_t *records, belay_request_t *request,
                              belay_bytes_t key, const belay_idempotency_token_t *token,
                              belay_idempotency_cb cb) {
  int error = check_owned(records, request, key, token, cb != NULL);
  if (error != 0)
    return error;
  const order_t order = {.verb = "abandon", .token = token, .keep_ms = grace_ms(records, request)};
  return start(records, request, key, &order, &abandon_ops, cb);
}

int belay_idempotency_read(belay_idempotency_t *records, belay_request_t *request,
                           belay_bytes_t key, belay_idempotency_cb cb) {
  int error = check(records, request, key, cb != NULL);
  if (error != 0)
    return error;
  const order_t order = {.verb = "read"};
  return start(records, request, key, &order, &read_ops, cb);
}

int belay_idempotency_forget(belay_idempotency_t *records, belay_request_t *request,
                             belay_bytes_t key, belay_idempotency_cb cb) {
  int error = check(records, request, key, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_command(&records->handle, "UNLINK", 2);
  put_key(records, call, key);
  return belay__handle_start(&records->handle, request, call, &forget_ops, BELAY__CB(cb));
}

#include "core/call.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/client.h"
#include "core/refusal.h"

#define FIRST_CAPACITY ((size_t)256)  /* bytes of a new call's buffer */
#define POOLED_CAPACITY ((size_t)512) /* a larger buffer is not kept */
#define POOLED_CALLS ((size_t)512)    /* calls that a client keeps for later */
#define REST_MIN_MS UINT64_C(10)      /* the first rest is drawn from 0 to this */
#define REST_MAX_MS UINT64_C(500)

/* ---- building ------------------------------------------------------------------------------------------ */

static void on_timer(belay__timer_t *timer);

belay__call_t *belay__call_new(belay_client_t *client, belay__lane_t lane) {
  belay__list_t *node = belay__list_pop(&client->pool);
  belay__call_t *call;
  char *data = NULL;
  size_t cap = 0;
  if (node != NULL) {
    client->pool_len--;
    call = BELAY__CONTAINER(node, belay__call_t, node);
    data = call->data;
    cap = call->cap;
  } else if ((call = belay__alloc(client->belay, sizeof *call)) == NULL) {
    return NULL;
  }
  *call = (belay__call_t){.timer = {.fire = on_timer},
                          .client = client,
                          .lane = (uint8_t)lane,
                          .data = data,
                          .cap = cap};
  belay__list_init(&call->node);
  return call;
}

static void free_call(belay__call_t *call) {
  belay_t *belay = call->client->belay;
  belay__free(belay, call->data, call->cap);
  belay__free(belay, call, sizeof *call);
}

/* Gives a call back to the pool. */
static void recycle(belay__call_t *call) {
  belay_client_t *client = call->client;
  assert(belay__list_empty(&call->node));
  belay__timer_stop(client->belay, BELAY__RANK_OTHER, &call->timer);
  if (call->counted) {
    client->stats.pending--;
    client->stats.pending_bytes -= call->len;
    call->counted = false;
  }
  if (call->cap > POOLED_CAPACITY || client->pool_len >= POOLED_CALLS) {
    free_call(call);
    return;
  }
  belay__list_push_front(&client->pool, &call->node);
  client->pool_len++;
}

void belay__call_pool_free(belay_client_t *client) {
  for (belay__list_t *node; (node = belay__list_pop(&client->pool)) != NULL;)
    free_call(BELAY__CONTAINER(node, belay__call_t, node));
  client->pool_len = 0;
}

/* Room for more bytes at the end, and for a 0 behind them: hiredis looks for what follows a command's name
 * without asking whether anything does. NULL and broken if memory is out. */
static char *grow(belay__call_t *call, size_t more) {
  more++;
  if (call->broken)
    return NULL;
  if (call->cap - call->len < more) {
    size_t cap = call->cap == 0 ? FIRST_CAPACITY : call->cap;
    while (cap - call->len < more)
      cap *= 2;
    char *data = belay__alloc(call->client->belay, cap);
    if (data == NULL) {
      call->broken = true;
      return NULL;
    }
    if (call->len > 0)
      memcpy(data, call->data, call->len);
    belay__free(call->client->belay, call->data, call->cap);
    call->data = data;
    call->cap = cap;
  }
  return call->data + call->len;
}

#define DIGITS_MAX 20

/* Writes a number; returns how many digits. Many times faster than snprintf(), and on the way of every call. */
static size_t put_digits(char out[DIGITS_MAX], uint64_t value) {
  char digits[DIGITS_MAX];
  size_t n = 0, at = 0;
  do {
    digits[n++] = (char)('0' + value % 10);
    value /= 10;
  } while (value > 0);
  while (n > 0)
    out[at++] = digits[--n];
  return at;
}

/* Writes a type byte, a number and a line end; returns the bytes written, at most 23. */
static size_t put_header(char *out, char type, uint64_t value) {
  size_t at = 0;
  out[at++] = type;
  at += put_digits(out + at, value);
  out[at++] = '\r';
  out[at++] = '\n';
  return at;
}

void belay__call_arg(belay__call_t *call, const char *data, size_t len) {
  belay__call_arg_joined(call, data, len, "", 0);
}

void belay__call_arg_joined(belay__call_t *call, const char *a, size_t a_len, const char *b,
                            size_t b_len) {
  char *out = grow(call, a_len + b_len + 32);
  if (out == NULL)
    return;
  size_t at = put_header(out, '$', a_len + b_len);
  memcpy(out + at, a, a_len);
  at += a_len;
  memcpy(out + at, b, b_len);
  at += b_len;
  out[at++] = '\r';
  out[at++] = '\n';
  out[at] = '\0';
  call->len += at;
}

void belay__call_arg_int(belay__call_t *call, int64_t value) {
  char text[1 + DIGITS_MAX] = "-";
  size_t sign = value < 0;
  size_t n = put_digits(text + sign, sign ? -(uint64_t)value : (uint64_t)value);
  belay__call_arg(call, text, sign + n);
}

static void put_count(belay__call_t *call, size_t argc) {
  char *out = grow(call, 32);
  if (out != NULL)
    call->len += put_header(out, '*', argc);
}

void belay__call_command(belay__call_t *call, const char *name, size_t argc) {
  call->command = name;
  put_count(call, argc);
  belay__call_arg(call, name, strlen(name));
}

static void put_script(belay__call_t *call, const belay__script_t *script, size_t keys, size_t args,
                       bool text) {
  call->script = script;
  call->command = script->name;
  call->as_eval = text;
  put_count(call, 3 + keys + args);
  belay__call_arg(call, text ? "EVAL" : "EVALSHA", text ? 4 : 7);
  belay__call_arg(call, text ? script->text : script->sha1, text ? script->len : 40);
  call->tail = call->len;
  belay__call_arg_int(call, (int64_t)keys);
}

static uint64_t *word_of(belay_client_t *client, const belay__script_t *script) {
  assert(script->index < BELAY__SCRIPTS_MAX);
  return &client->scripts[script->index / 64];
}

static uint64_t bit_of(const belay__script_t *script) {
  return UINT64_C(1) << script->index % 64;
}

/* A script that the server does not know would need a second trip, and a call behind it would overtake it: so it is
 * called by its hash only after the server has run it. */
void belay__call_script(belay__call_t *call, const belay__script_t *script, size_t keys,
                        size_t args) {
  put_script(call, script, keys, args, (*word_of(call->client, script) & bit_of(script)) == 0);
}

void belay__call_script_text(belay__call_t *call, const belay__script_t *script, size_t keys,
                             size_t args) {
  put_script(call, script, keys, args, true);
}

/* Puts the script's text in the place of its hash; false if memory is out. */
static bool become_eval(belay__call_t *call) {
  belay_client_t *client = call->client;
  size_t tail_len = call->len - call->tail;
  belay__call_t *fresh = belay__call_new(client, call->lane);
  if (fresh == NULL)
    return false;
  char *count_end = memchr(call->data, '\n', call->len);
  size_t count_len = (size_t)(count_end - call->data) + 1;
  char *out = grow(fresh, count_len + call->script->len + tail_len + 64);
  if (out != NULL) {
    memcpy(out, call->data, count_len);
    fresh->len = count_len;
    belay__call_arg(fresh, "EVAL", 4);
    belay__call_arg(fresh, call->script->text, call->script->len);
    size_t tail = fresh->len;
    memcpy(fresh->data + fresh->len, call->data + call->tail, tail_len + 1); /* the 0 too */
    client->stats.pending_bytes += fresh->len + tail_len - call->len;
    char *data = call->data;
    size_t cap = call->cap;
    call->data = fresh->data;
    call->cap = fresh->cap;
    call->len = fresh->len + tail_len;
    if (call->publisher != 0)
      call->publisher += tail - call->tail;
    call->tail = tail;
    call->as_eval = true;
    fresh->data = data;
    fresh->cap = cap;
  }
  recycle(fresh);
  return call->as_eval;
}

const char *belay__call_key(const belay__call_t *call, size_t *len) {
  const char *at = call->data + call->tail;
  int lines =
      call->script != NULL ? 2 : 3; /* the number of keys; the number of words, the command */
  for (int i = 0; i < lines; i++)
    at = (const char *)memchr(at, '\n', call->len) + 1;
  *len = 0;
  for (at++; *at != '\r'; at++)
    *len = 10 * *len + (size_t)(*at - '0');
  return at + 2;
}

belay__call_t *belay__call_copy(const belay__call_t *call) {
  belay__call_t *copy = belay__call_new(call->client, call->lane);
  char *out = copy == NULL ? NULL : grow(copy, call->len + 1); /* for a longer publisher */
  if (out == NULL) {
    if (copy != NULL)
      recycle(copy);
    return NULL;
  }
  memcpy(out, call->data, call->len + 1); /* the 0 too */
  copy->len = call->len;
  copy->settled = call->settled;
  copy->owner = call->owner;
  copy->script = call->script;
  copy->command = call->command;
  copy->deadline = call->deadline;
  copy->affinity = call->affinity;
  copy->urgent = call->urgent;
  copy->publisher = call->publisher;
  copy->as_eval = call->as_eval;
  copy->tail = call->tail;
  return copy;
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

static void trace(const belay__call_t *call, belay_trace_event_t event, belay_outcome_t outcome,
                  int error) {
  const belay_client_t *client = call->client;
  if (client->trace == NULL)
    return;
  belay_trace_t t = {
      .event = event,
      .call = call->id,
      .command = call->command,
      .bytes = call->len,
      .elapsed_ns = belay__now(client->belay) - call->started,
      .outcome = outcome,
      .error = error,
  };
  client->trace(client->trace_ctx, &t);
}

static void tell(belay__call_t *call, const belay__result_t *result) {
  belay_client_stats_t *stats = &call->client->stats;
  switch (result->outcome) {
  case BELAY_OUTCOME_REPLY:
    stats->replies++;
    break;
  case BELAY_OUTCOME_REFUSED:
    stats->refused++;
    break;
  case BELAY_OUTCOME_NOT_SENT:
    stats->not_sent++;
    break;
  case BELAY_OUTCOME_UNKNOWN:
    stats->unknown++;
    break;
  }
  trace(call, BELAY_TRACE_DONE, result->outcome, result->error);
  belay__call_cb done = call->done;
  call->done = NULL;
  if (done != NULL)
    done(call, result);
}

/* The call is over: tells whoever still wants to know, and gives it back. */
static void finish(belay__call_t *call, const belay__result_t *result) {
  if (call->state == BELAY__CALL_LATE) {
    if (result->outcome == BELAY_OUTCOME_REPLY)
      call->client->stats.settled_late++;
    trace(call, BELAY_TRACE_SETTLED, result->outcome, result->error);
    if (call->settled != NULL)
      call->settled(call, result);
  } else {
    tell(call, result);
  }
  recycle(call);
}

static void finish_with(belay__call_t *call, belay_outcome_t outcome, int error) {
  finish(call, &(belay__result_t){.outcome = outcome, .error = error});
}

/* ---- the way there and back ---------------------------------------------------------------------------- */

static void start(belay__call_t *call) {
  belay_client_t *client = call->client;
  client->stats.calls++;
  client->stats.pending++;
  client->stats.pending_bytes += call->len;
  call->counted = true;
  call->id = client->stats.calls;
  call->started = belay__now(client->belay);
  call->state = BELAY__CALL_QUEUED;
  belay__timer_set(client->belay, BELAY__RANK_OTHER, &call->timer, call->deadline);
  trace(call, BELAY_TRACE_STARTED, BELAY_OUTCOME_NOT_SENT, 0);
}

int belay__call_send(belay__call_t **calls, size_t n) {
  belay_client_t *client = calls[0]->client;
  size_t bytes = client->stats.pending_bytes;
  int error = 0;
  for (size_t i = 0; i < n; i++) {
    bytes += calls[i]->len;
    calls[i]->follows = i > 0;
    calls[i]->followed = i + 1 < n;
    if (calls[i]->broken)
      error = BELAY_ENOMEM;
  }
  if (error == 0 && bytes > client->max_bytes && !calls[0]->urgent)
    error = BELAY_EBUSY;
  for (size_t i = 0; i < n && error == 0; i++)
    start(calls[i]);
  if (error == 0)
    error = client->node_ops->submit(client, calls, n);
  for (size_t i = 0; i < n && error != 0; i++) {
    if (calls[i]->counted) {
      client->stats.not_sent++;
      trace(calls[i], BELAY_TRACE_DONE, BELAY_OUTCOME_NOT_SENT, error);
    }
    recycle(calls[i]);
  }
  return error;
}

void belay__call_sent(belay__call_t *call, uint32_t epoch) {
  assert(call->state == BELAY__CALL_QUEUED || call->state == BELAY__CALL_SENT);
  call->state = BELAY__CALL_SENT;
  call->epoch = epoch;
  if (call->first_sent == 0)
    call->first_sent = belay__now(call->client->belay);
  call->client->stats.commands++;
  trace(call, BELAY_TRACE_SENT, BELAY_OUTCOME_UNKNOWN, 0);
}

/* Backs off after a refusal that may pass, if there is time for another try. */
static bool rest(belay__call_t *call, int error) {
  belay_t *belay = call->client->belay;
  uint64_t limit = REST_MIN_MS << (call->tries < 6 ? call->tries : 6);
  uint64_t delay = (limit < REST_MAX_MS ? limit : REST_MAX_MS) * BELAY__MS;
  uint64_t when = belay__now(belay) + BELAY__MS + belay__random_below(belay, delay);
  if (when >= call->deadline || call->follows || call->followed || call->once)
    return false;
  call->state = BELAY__CALL_RESTING;
  call->last_error = error; /* first_sent stays: it only makes a lease believe in less */
  if (call->tries < UINT8_MAX)
    call->tries++;
  belay__list_push(&call->client->resting, &call->node);
  belay__timer_set(belay, BELAY__RANK_OTHER, &call->timer, when);
  return true;
}

void belay__call_end_rests(belay_client_t *client) {
  for (belay__list_t *node; (node = belay__list_pop(&client->resting)) != NULL;) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    finish_with(call, BELAY_OUTCOME_REFUSED, call->last_error);
  }
}

/* An error raised by a script may have come after a write, unless it is one that we know is raised before. */
static void refuse(belay__call_t *call, const belay__refusal_t *refusal) {
  bool unknown = call->script != NULL && refusal->error == BELAY_EREFUSED &&
                 refusal->remedy != BELAY__REMEDY_EVAL;
  finish_with(call, unknown ? BELAY_OUTCOME_UNKNOWN : BELAY_OUTCOME_REFUSED, refusal->error);
}

/* Keeps the server's words; where something is wrong with what is there already, behind the key. */
static void explain(const belay__call_t *call, const belay__refusal_t *refusal,
                    const belay__reply_t *reply) {
  char text[BELAY__REFUSAL_MAX];
  if (refusal->error != BELAY_EWRONGTYPE) {
    belay__client_refused(call->client, refusal->error, reply->str, reply->len);
    return;
  }
  size_t key_len;
  const char *key = belay__call_key(call, &key_len);
  int n = snprintf(text, sizeof text, "%.*s: %.*s", (int)(key_len < 64 ? key_len : 64), key,
                   (int)(reply->len < sizeof text ? reply->len : sizeof text), reply->str);
  belay__client_refused(call->client, refusal->error, text,
                        (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

belay__verdict_t belay__call_reply(belay__call_t *call, const belay__reply_t *reply) {
  if (reply->type != BELAY__REPLY_ERROR) {
    if (call->script != NULL)
      *word_of(call->client, call->script) |= bit_of(call->script);
    finish(call, &(belay__result_t){.outcome = BELAY_OUTCOME_REPLY, .reply = reply});
    return BELAY__VERDICT_OVER;
  }
  const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
  bool reconnect = refusal->remedy == BELAY__REMEDY_RECONNECT;
  if (call->state == BELAY__CALL_LATE) {
    refuse(call, refusal);
    return reconnect ? BELAY__VERDICT_RECONNECT : BELAY__VERDICT_OVER;
  }
  assert(!call->followed || call->script == NULL || call->as_eval);
  if (refusal->remedy == BELAY__REMEDY_EVAL && call->script != NULL && !call->as_eval &&
      !call->once) {
    call->first_sent = 0;
    if (become_eval(call))
      return BELAY__VERDICT_RESEND;
    finish_with(call, BELAY_OUTCOME_REFUSED, BELAY_ENOMEM);
    return BELAY__VERDICT_OVER;
  }
  if (refusal->remedy == BELAY__REMEDY_NONE || !rest(call, refusal->error)) {
    explain(call, refusal, reply);
    refuse(call, refusal);
  }
  return reconnect ? BELAY__VERDICT_RECONNECT : BELAY__VERDICT_OVER;
}

bool belay__call_dropped(belay__call_t *call, bool sent, int error) {
  if (call->state == BELAY__CALL_LATE || sent) {
    finish_with(call, sent ? BELAY_OUTCOME_UNKNOWN : BELAY_OUTCOME_NOT_SENT,
                error == BELAY_EPROTO ? BELAY_EPROTO : BELAY_EUNKNOWN);
    return false;
  }
  call->state = BELAY__CALL_QUEUED;
  call->first_sent = 0;
  call->epoch = 0;
  return true;
}

void belay__call_refused(belay__call_t *call, int error) {
  assert(call->state == BELAY__CALL_QUEUED);
  finish_with(call, BELAY_OUTCOME_NOT_SENT, error);
}

static void retry(belay__call_t *call) {
  belay_client_t *client = call->client;
  belay__list_remove(&call->node);
  call->state = BELAY__CALL_QUEUED;
  belay__timer_set(client->belay, BELAY__RANK_OTHER, &call->timer, call->deadline);
  int error = client->node_ops->submit(client, &call, 1);
  if (error != 0)
    finish_with(call, BELAY_OUTCOME_REFUSED, call->last_error);
}

static void on_timer(belay__timer_t *timer) {
  belay__call_t *call = BELAY__CONTAINER(timer, belay__call_t, timer);
  int error;
  switch ((belay__call_state_t)call->state) {
  case BELAY__CALL_RESTING:
    retry(call);
    break;
  case BELAY__CALL_QUEUED:
    error = call->client->node_ops->withdraw(call->client, call);
    if (call->last_error != 0)
      finish_with(call, BELAY_OUTCOME_REFUSED, call->last_error);
    else
      finish_with(call, BELAY_OUTCOME_NOT_SENT, error);
    break;
  case BELAY__CALL_SENT:
    call->state = BELAY__CALL_LATE;
    tell(call, &(belay__result_t){.outcome = BELAY_OUTCOME_UNKNOWN, .error = BELAY_EUNKNOWN});
    break;
  case BELAY__CALL_BUILDING:
  case BELAY__CALL_LATE:
    assert(false && "a timer that is not set in this state");
  }
}

bool belay__call_abandon(belay__call_t *call) {
  call->done = call->settled = NULL;
  belay__timer_stop(call->client->belay, BELAY__RANK_OTHER, &call->timer);
  switch ((belay__call_state_t)call->state) {
  case BELAY__CALL_QUEUED:
    (void)call->client->node_ops->withdraw(call->client, call);
    finish_with(call, BELAY_OUTCOME_NOT_SENT, BELAY_ECANCELED);
    return false;
  case BELAY__CALL_RESTING:
    belay__list_remove(&call->node);
    finish_with(call, BELAY_OUTCOME_REFUSED, BELAY_ECANCELED);
    return false;
  case BELAY__CALL_SENT:
    call->state = BELAY__CALL_LATE;
    tell(call, &(belay__result_t){.outcome = BELAY_OUTCOME_UNKNOWN, .error = BELAY_ECANCELED});
    return true;
  case BELAY__CALL_BUILDING:
    recycle(call);
    return false;
  case BELAY__CALL_LATE:
    return true;
  }
  return true;
}

void belay__call_distrust(belay__call_t *call) {
  belay_client_t *client = call->client;
  belay__log(client->belay, BELAY_LOG_ERROR, "%s: a reply of an unexpected type", call->command);
  client->node_ops->distrust(client, call);
}

#include "core/call/call.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/client/client.h"
#include "core/call/refusal.h"
#include "core/loop/backoff.h"

#define LINE_SHOWN ((size_t)80) /* bytes of a script line that a detail shows */
#define HOPS_MAX 5

_Static_assert(HOPS_MAX < 8, "more redirections than 3 bits count");
_Static_assert(BELAY__LANES <= 4, "more connection classes than 2 bits tell apart");
_Static_assert(1 + BELAY__DELEX < 8, "more features than 3 bits tell apart");

/* ---- ends ---- */

/* Return the address of the call's number, which follows the room of the node. Only calls of a
 * client with a trace hook have a number. */
static uint64_t *id_of(const belay__call_t *call) {
  size_t room = call->client->node_ops->call_room;
  return (uint64_t *)(uintptr_t)&call->room[(room + sizeof *call->room - 1) / sizeof *call->room];
}

static void trace_call(const belay__call_t *call, belay_trace_event_t event,
                       belay_outcome_t outcome, int error) {
  const belay_client_t *client = call->client;
  if (client->trace == NULL)
    return;
  belay_trace_t t = {
      .event = event,
      .call = *id_of(call),
      .command = belay__call_name(call),
      .bytes = call->len,
      .elapsed_ns = belay__now(client->belay) - call->started,
      .outcome = outcome,
      .error = error,
  };
  client->trace(client->trace_ctx, &t);
}

static void run_done(belay__call_t *call, const belay__result_t *result) {
  belay__call_cb done = call->done;
  call->done = NULL;
  if (done == NULL)
    return;
  if (call->place != NULL)
    *call->place = NULL;
  done(call, result);
}

static void notify_owner(belay__call_t *call, const belay__result_t *result) {
  belay_client_stats_t *stats = &call->client->stats;
  uint64_t *const counts[] = {
      [BELAY_OUTCOME_REPLY] = &stats->replies,
      [BELAY_OUTCOME_REFUSED] = &stats->refused,
      [BELAY_OUTCOME_NOT_SENT] = &stats->not_sent,
      [BELAY_OUTCOME_UNKNOWN] = &stats->unknown,
  };
  (*counts[result->outcome])++;
  trace_call(call, BELAY_TRACE_DONE, result->outcome, result->error);
  run_done(call, result);
}

/* End the call: run `done`, which a LATE call has only if it got another owner. Then give the call
 * back to the pool. */
static void finish_call(belay__call_t *call, const belay__result_t *result) {
  if (call->state == BELAY__CALL_LATE) {
    if (result->outcome == BELAY_OUTCOME_REPLY)
      call->client->stats.settled_late++;
    trace_call(call, BELAY_TRACE_SETTLED, result->outcome, result->error);
    run_done(call, result);
  } else {
    notify_owner(call, result);
  }
  belay__call_recycle(call);
}

static void finish_with(belay__call_t *call, belay_outcome_t outcome, int error) {
  finish_call(call, &(belay__result_t){.outcome = outcome, .error = error});
}

/* Notify the owner of UNKNOWN; the reply may still arrive. From now on the owner may be gone, or
 * have other plans: it is not asked for the command again. */
static void be_late(belay__call_t *call, int error) {
  call->state = BELAY__CALL_LATE;
  call->lean = false;
  notify_owner(call, &(belay__result_t){.outcome = BELAY_OUTCOME_UNKNOWN, .error = error});
}

/* ---- sending ---- */

static void on_timer(belay__timer_t *timer);

static void start_call(belay__call_t *call, uint64_t now) {
  belay_client_t *client = call->client;
  client->stats.calls++;
  client->stats.pending++;
  client->stats.pending_bytes += call->len;
  if (client->trace != NULL)
    *id_of(call) = client->stats.calls;
  call->started = now;
  call->state = BELAY__CALL_QUEUED;
  call->timer.fire = on_timer;
  if (call->deadline == 0)
    call->deadline = now + (uint64_t)client->timeout_ms * BELAY__MS;
  belay__timer_set(client->belay, BELAY__RANK_OTHER, &call->timer, call->deadline);
  trace_call(call, BELAY_TRACE_STARTED, BELAY_OUTCOME_NOT_SENT, 0);
}

int belay__call_send(belay__call_t **calls, size_t n, bool joined) {
  belay_client_t *client = calls[0]->client;
  if (client->yield_to != NULL)
    client->yield_to(client, calls, n);
  size_t bytes = client->stats.pending_bytes;
  int error = 0;
  for (size_t i = 0; i < n; i++) {
    bytes += calls[i]->len;
    calls[i]->follows = joined && i > 0;
    calls[i]->followed = joined && i + 1 < n;
    if (calls[i]->broken)
      error = BELAY_ENOMEM;
  }
  if (error == 0 && bytes > client->max_bytes && !calls[0]->urgent)
    error = BELAY_EBUSY;
  if (error == 0) {
    uint64_t now = belay__now(client->belay);
    for (size_t i = 0; i < n; i++)
      start_call(calls[i], now);
    client->sending = now;
    error = client->node_ops->submit(client, calls, n);
    client->sending = 0;
  }
  for (size_t i = 0; i < n && error == 0; i++)
    if (calls[i]->place != NULL)
      *calls[i]->place = calls[i];
  for (size_t i = 0; i < n && error != 0; i++) {
    if (calls[i]->state != BELAY__CALL_BUILDING) {
      client->stats.not_sent++;
      trace_call(calls[i], BELAY_TRACE_DONE, BELAY_OUTCOME_NOT_SENT, error);
    }
    belay__call_recycle(calls[i]);
  }
  return error;
}

int belay__call_start(belay__call_t **place, belay__call_t *call, belay__call_cb done,
                      void *owner) {
  assert(*place == NULL);
  if (call == NULL)
    return BELAY_ENOMEM;
  call->place = place;
  call->done = done;
  call->owner = owner;
  return belay__call_send(&call, 1, true);
}

void belay__call_own(belay__call_t **place, belay__call_t *call, belay__call_cb done, void *owner) {
  assert(call->state == BELAY__CALL_LATE || call->done != NULL);
  if (call->state != BELAY__CALL_LATE && call->place != NULL)
    *call->place = NULL;
  call->done = done;
  call->owner = owner;
  call->lean = false; /* only the former owner could build the command again */
  call->place = place;
  *place = call;
}

bool belay__call_cancel(belay__call_t **place) {
  belay__call_t *call = *place;
  *place = NULL;
  return call != NULL && belay__call_abandon(call);
}

void belay__call_sent(belay__call_t *call, uint32_t epoch) {
  assert(call->state == BELAY__CALL_QUEUED || call->state == BELAY__CALL_SENT);
  call->state = BELAY__CALL_SENT;
  call->epoch = epoch;
  belay_client_t *client = call->client;
  if (call->first_sent == 0)
    call->first_sent = client->sending != 0 ? client->sending : belay__now(client->belay);
  client->stats.commands++;
  trace_call(call, BELAY_TRACE_SENT, BELAY_OUTCOME_UNKNOWN, 0);
  if (call->lean)
    belay__call_lean(call);
}

/* Back off after a temporary refusal. Returns false if the call may not be retried, or if the delay
 * would end after the deadline. */
static bool rest_call(belay__call_t *call, int error) {
  belay_t *belay = call->client->belay;
  uint64_t when =
      belay__now(belay) + belay__backoff(belay, call->tries, BELAY__BACKOFF_MAX_MS * BELAY__MS);
  if (when >= call->deadline || call->follows || call->followed || call->no_retry ||
      call->no_rest || !belay__call_restore(call))
    return false;
  call->state = BELAY__CALL_RESTING;
  /* retry on the primary: it may be able to answer when this replica cannot */
  call->stale = false;
  /* first_sent stays: it only shortens the validity that a lease computes */
  call->last_error = (int16_t)error;
  call->hops = 0;
  if (call->tries < BELAY__TRIES_MAX)
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

void belay__call_hurry_rests(belay_client_t *client) {
  belay_t *belay = client->belay;
  for (belay__list_t *node = client->resting.next; node != &client->resting; node = node->next) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    uint64_t when = belay__now(belay) + belay__spread(belay, BELAY__SPREAD_MS * BELAY__MS);
    if (when < call->timer.when)
      belay__timer_set(belay, BELAY__RANK_OTHER, &call->timer, when);
  }
}

/* End the call with a refusal. A script may have written before the error that stopped it. The
 * script wrote nothing if the table says so, or if the server names a line within the script's
 * clean_lines. */
static void refuse_call(belay__call_t *call, const belay__refusal_t *refusal,
                        const belay__reply_t *reply) {
  bool may_have_written = call->script != NULL && refusal->may_have_written;
  if (may_have_written) {
    unsigned line = belay__refusal_line(reply->str, reply->len);
    may_have_written = line == 0 || line > call->script->clean_lines;
  }
  finish_with(call, may_have_written ? BELAY_OUTCOME_UNKNOWN : BELAY_OUTCOME_REFUSED,
              refusal->error);
}

int belay__call_blame_key(const belay__call_t *call, const char *key, size_t key_len, int error,
                          const char *text, size_t text_len) {
  belay__refused_t *refused = &call->client->refused;
  char *out = refused->text;
  size_t n = belay__words(out, BELAY__KEY_SHOWN, key, key_len);
  out[n++] = ':';
  out[n++] = ' ';
  (void)belay__words(out + n, sizeof refused->text - n, text, text_len);
  refused->key_len = n;
  refused->error = error;
  return error;
}

int belay__call_blame(const belay__call_t *call, int error, const char *text) {
  size_t key_len;
  const char *key = belay__call_key(call, &key_len);
  return belay__call_blame_key(call, key, key_len, error, text, strlen(text));
}

/* true if the error names a key of the client: it contains the namespace and "::". */
static bool names_a_key(const belay_client_t *client, const belay__reply_t *reply) {
  const char *at = reply->str, *end = at + reply->len;
  while ((at = memmem(at, (size_t)(end - at), client->prefix, client->prefix_len)) != NULL) {
    at += client->prefix_len;
    if (end - at >= 2 && memcmp(at, "::", 2) == 0)
      return true;
  }
  return false;
}

/* Write the server's error text without the call's arguments, which must not be shown. call: NULL
 * if the arguments are not available; then the text is empty. with_keys: keep keys of the client.
 * Returns the length of the text. */
static size_t words_of(const belay__call_t *call, const belay__reply_t *reply, bool with_keys,
                       char text[BELAY__WORDS_MAX]) {
  belay__redacted_t redacted;
  belay__redacted_init(&redacted, reply->str, call != NULL ? reply->len : 0);
  if (call != NULL)
    belay__call_redact(call, &redacted, with_keys);
  return belay__redacted_write(&redacted, text);
}

/* Keep a refusal of a script's command as the client's last refusal. Some servers name only the
 * line of the script, not the command. So the text shows that line of the script. */
static void blame_line(const belay__call_t *call, int error, const belay__reply_t *reply,
                       const char *text) {
  char about[BELAY__WORDS_MAX];
  size_t len;
  const char *line =
      belay__script_line(call->script, belay__refusal_line(reply->str, reply->len), &len);
  (void)snprintf(about, sizeof about, "%s: %.*s%s%.120s", call->script->name,
                 (int)(len < LINE_SHOWN ? len : LINE_SHOWN), line, len > 0 ? ": " : "", text);
  belay__client_refused(call->client, error, about, strlen(about));
}

/* Keep the server's error text as the client's last refusal. If the error concerns a key and the
 * text names no key, put the call's first key before the text. whole: the call with its arguments,
 * or NULL. */
static void keep_words(const belay__call_t *call, const belay__call_t *whole,
                       const belay__refusal_t *refusal, const belay__reply_t *reply) {
  char text[BELAY__WORDS_MAX], about[BELAY__WORDS_MAX];
  bool of_a_key = refusal->error == BELAY_EWRONGTYPE || refusal->error == BELAY_EMISMATCH ||
                  refusal->error == BELAY_ECROSSSLOT;
  size_t len = words_of(whole, reply, of_a_key, text), key_len;
  if (refusal->error == BELAY_EPERM && call->script != NULL) {
    blame_line(call, refusal->error, reply, text);
    return;
  }
  if (!of_a_key || whole == NULL || belay__call_key(whole, &key_len) == NULL ||
      names_a_key(call->client, reply)) {
    belay__client_refused(call->client, refusal->error, text, len);
    return;
  }
  (void)snprintf(about, sizeof about, "%.100s%s", text,
                 belay__call_has_keys(whole) ? " (or another key of this call)" : "");
  (void)belay__call_blame(whole, refusal->error, about);
}

static void keep_refusal(belay__call_t *call, const belay__refusal_t *refusal,
                         const belay__reply_t *reply) {
  belay__call_t *whole = belay__call_readable(call);
  keep_words(call, whole, refusal, reply);
  if (whole != NULL && whole != call)
    belay__call_recycle(whole);
}

/* Refuse a call with no_retry, which may not follow a redirection: the call would run after calls
 * that were sent later. */
bool belay__call_may_redirect(belay__call_t *call) {
  return call->state == BELAY__CALL_SENT && !call->no_retry && call->hops < HOPS_MAX &&
         belay__call_restore(call);
}

/* Start the call again: the server did not execute it. */
static void restart_call(belay__call_t *call) {
  call->state = BELAY__CALL_QUEUED;
  call->first_sent = 0;
  call->epoch = 0;
}

void belay__call_redirect(belay__call_t *call) {
  assert(belay__call_may_redirect(call));
  call->hops++;
  restart_call(call);
}

void belay__call_stay(belay__call_t *call, const belay__reply_t *reply, int error) {
  char text[BELAY__WORDS_MAX];
  belay__call_t *whole = reply != NULL ? belay__call_readable(call) : NULL;
  if (reply != NULL)
    belay__client_refused(call->client, error, text, words_of(whole, reply, false, text));
  if (whole != NULL && whole != call)
    belay__call_recycle(whole);
  bool waits =
      call->state == BELAY__CALL_SENT && error == BELAY_ECLUSTERDOWN && rest_call(call, error);
  if (!waits)
    finish_with(call, BELAY_OUTCOME_REFUSED, error);
}

unsigned belay__call_denied(belay__call_t *call, const belay__reply_t *reply) {
  if (call->needs == 0 || reply->type != BELAY__REPLY_ERROR)
    return 0;
  int error = belay__refusal_find(reply->str, reply->len)->error;
  call->denied = error == BELAY_EPERM || error == BELAY_EREFUSED;
  return call->denied ? 1u << (call->needs - 1) : 0;
}

belay__verdict_t belay__call_reply(belay__call_t *call, const belay__reply_t *reply) {
  if (reply->type != BELAY__REPLY_ERROR) {
    finish_call(call, &(belay__result_t){.outcome = BELAY_OUTCOME_REPLY, .reply = reply});
    return BELAY__VERDICT_OVER;
  }
  const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
  bool reauth = refusal->remedy == BELAY__REMEDY_REAUTH;
  bool reconnect = refusal->remedy == BELAY__REMEDY_RECONNECT || reauth;
  if (call->state == BELAY__CALL_LATE) {
    refuse_call(call, refusal, reply);
    return reconnect ? BELAY__VERDICT_RECONNECT : BELAY__VERDICT_OVER;
  }
  assert(!call->followed || call->script == NULL || call->as_eval);
  if (refusal->remedy == BELAY__REMEDY_EVAL && call->script != NULL && !call->as_eval &&
      !call->no_retry) {
    call->first_sent = 0;
    if (belay__call_become_eval(call))
      return BELAY__VERDICT_RESEND;
    finish_with(call, BELAY_OUTCOME_REFUSED, BELAY_ENOMEM);
    return BELAY__VERDICT_OVER;
  }
  /* the script had started when the error was raised */
  bool raised = memcmp(reply->str, "ERR ", reply->len < 4 ? reply->len : 4) == 0;
  if (refusal->remedy == BELAY__REMEDY_REDIRECT && !raised)
    return BELAY__VERDICT_REDIRECT;
  keep_refusal(call, refusal, reply);
  bool passes = (refusal->remedy == BELAY__REMEDY_RETRY || reconnect) &&
                !(reauth && call->last_error == BELAY_EAUTH);
  if (!passes || !rest_call(call, refusal->error))
    refuse_call(call, refusal, reply);
  return reconnect ? BELAY__VERDICT_RECONNECT : BELAY__VERDICT_OVER;
}

bool belay__call_dropped(belay__call_t *call, bool sent, int error) {
  if (call->state == BELAY__CALL_LATE || sent || !belay__call_restore(call)) {
    finish_with(call, sent ? BELAY_OUTCOME_UNKNOWN : BELAY_OUTCOME_NOT_SENT,
                error == BELAY_EPROTO ? BELAY_EPROTO : BELAY_EUNKNOWN);
    return false;
  }
  restart_call(call);
  return true;
}

void belay__call_refused(belay__call_t *call, int error) {
  assert(call->state == BELAY__CALL_QUEUED);
  finish_with(call, BELAY_OUTCOME_NOT_SENT, error);
}

static void retry_call(belay__call_t *call) {
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
  if (call->state == BELAY__CALL_RESTING) {
    retry_call(call);
  } else if (call->state == BELAY__CALL_QUEUED) {
    int error = call->client->node_ops->withdraw(call->client, call);
    if (call->last_error != 0)
      finish_with(call, BELAY_OUTCOME_REFUSED, call->last_error);
    else
      finish_with(call, BELAY_OUTCOME_NOT_SENT, error);
  } else {
    assert(call->state == BELAY__CALL_SENT);
    call->client->node_ops->overdue(call->client, call);
    be_late(call, BELAY_EUNKNOWN);
  }
}

bool belay__call_abandon(belay__call_t *call) {
  call->done = NULL;
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
    be_late(call, BELAY_ECANCELED);
    return true;
  case BELAY__CALL_BUILDING:
    belay__call_recycle(call);
    return false;
  case BELAY__CALL_LATE:
    return true;
  }
  return true;
}

void belay__calls_discard(belay__call_t *const *calls, size_t n) {
  for (size_t i = 0; i < n; i++) {
    assert(calls[i] == NULL || calls[i]->state == BELAY__CALL_BUILDING);
    if (calls[i] != NULL)
      belay__call_recycle(calls[i]);
  }
}

void belay__call_distrust(belay__call_t *call, const belay__reply_t *reply) {
  belay_client_t *client = call->client;
  bool of_a_script =
      call->script != NULL && reply->type != BELAY__REPLY_NIL && reply->type != BELAY__REPLY_STATUS;
  belay__log(client->belay, BELAY_LOG_ERROR, "%s: a reply of an unexpected %s",
             belay__call_name(call),
             of_a_script ? "content: the call fails" : "type: the connection is dropped");
  if (!of_a_script)
    client->node_ops->distrust(client, call);
}

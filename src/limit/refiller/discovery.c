/* What the pattern finds: one SCAN after the other, with pauses in between, so that a server hardly notices.
 *
 *   OFF --elected--> ASKING --answered--> PAUSING --time--> ASKING
 *                     ^  |  |
 *                     |  |  +--answered, the last--> DROPPING --all that was not found again is dropped--> RESTING
 *                     |  +--refused, lost, or answered over several connections: nothing is dropped--> RESTING
 *                     +--time for the next sweep-----------------RESTING
 *
 *   any --deposed, closed--> OFF
 *
 * The server knows keys, in which a name is escaped, and the pattern is about names: the server is given a pattern that
 * finds all of them and perhaps others, and what it finds is compared here. A cursor means something to the server that
 * made it, alone: behind another connection there may be another one, or the same with its keys in another order, and
 * what it does not tell may be there all the same. */
#include <string.h>

#include "core/key/glob.h"
#include "core/key/key.h"
#include "limit/refiller/refiller.h"

#define SCAN_COUNT ((size_t)1000)
#define PAUSE_MS UINT64_C(10)
#define RETRY_MS UINT64_C(1000) /* after one that failed, at most */
#define DROP_MAX 1000           /* keys in one turn */
#define KEY_REST_MAX (3 * BELAY_BUCKET_KEY_MAX + sizeof BELAY__BUCKET_INDEX)
#define ITEM_BYTES ((size_t)256) /* of a reply, beside the text */
#define TAIL "}*"                /* of what SCAN is given */

typedef enum event {
  EV_START,
  EV_ANSWER, /* more is to be asked */
  EV_LAST,   /* nothing more is, and all is known */
  EV_FAILED,
  EV_TIMER,
  EV_STOP
} event_t;

static void step(belay_refiller_t *refiller, event_t event);

static belay_refiller_t *refiller_of(belay__timer_t *timer) {
  return BELAY__CONTAINER(timer, belay_refiller_t, sweep.timer);
}

/* ---- asking -------------------------------------------------------------------------------------------- */

static bool read_cursor(const belay__reply_t *reply, uint64_t *cursor) {
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 2 ||
      !belay__reply_number(reply->items[0], 0, UINT64_MAX, cursor) ||
      reply->items[1]->type != BELAY__REPLY_ARRAY)
    return false;
  const belay__reply_t *keys = reply->items[1];
  for (size_t i = 0; i < keys->count; i++)
    if (keys->items[i]->type != BELAY__REPLY_STRING)
      return false;
  return true;
}

/* The name in a key; false if it is no bucket's, or none that the pattern matches. */
static bool read_name(const belay_refiller_t *refiller, const belay__reply_t *key,
                      char name[KEY_REST_MAX], size_t *len) {
  size_t prefix_len;
  const char *prefix = belay__bucket_prefix(refiller->bucket, &prefix_len);
  if (key->len < prefix_len || memcmp(key->str, prefix, prefix_len) != 0)
    return false;
  const char *rest = key->str + prefix_len;
  size_t rest_len = key->len - prefix_len, index_len = sizeof BELAY__BUCKET_INDEX - 1;
  const char *end = memchr(rest, '}', rest_len);
  if (end == NULL)
    return false;
  size_t escaped = (size_t)(end - rest), after = rest_len - escaped;
  bool is_index = after == index_len && memcmp(end, BELAY__BUCKET_INDEX, index_len) == 0;
  if ((after != 1 && !is_index) || escaped >= KEY_REST_MAX ||
      !belay__key_unescape(name, len, rest, escaped))
    return false;
  return *len >= 1 && *len <= BELAY_BUCKET_KEY_MAX &&
         belay__glob_match(refiller->sweep.pattern, refiller->sweep.len, name, *len);
}

static void take(belay_refiller_t *refiller, const char *name, size_t len) {
  belay__refill_key_t *key = belay__refill_find(refiller, name, len);
  if (key != NULL) {
    if (!belay__list_empty(&key->found)) /* who was added by hand stays so */
      belay__refill_found(refiller, key);
    return;
  }
  int error = belay__refill_add(refiller, name, len, &key);
  if (error == 0)
    belay__refill_found(refiller, key);
  else if (!refiller->sweep.full)
    belay__log(belay__refiller_host(refiller), BELAY_LOG_WARNING,
               "refiller: no room for all that the pattern finds: %s", belay_strerror(error));
  refiller->sweep.full |= error != 0;
}

static void take_all(belay_refiller_t *refiller, const belay__reply_t *keys) {
  char name[KEY_REST_MAX];
  size_t len;
  for (size_t i = 0; i < keys->count; i++)
    if (read_name(refiller, keys->items[i], name, &len))
      take(refiller, name, len);
  belay__defer(belay__refiller_host(refiller), &refiller->task);
}

static void on_scanned(belay__call_t *call, const belay__result_t *result) {
  belay_refiller_t *refiller = call->owner;
  belay__sweep_t *sweep = &refiller->sweep;
  if (result->outcome == BELAY_OUTCOME_REFUSED)
    belay__log(belay__refiller_host(refiller), BELAY_LOG_WARNING,
               "refiller: what the pattern means cannot be looked for: %s",
               belay_strerror(result->error));
  if (result->outcome != BELAY_OUTCOME_REPLY) {
    step(refiller, EV_FAILED);
    return;
  }
  if (!read_cursor(result->reply, &sweep->cursor)) {
    belay__call_distrust(call, result->reply);
    step(refiller, EV_FAILED);
    return;
  }
  sweep->torn |= sweep->epoch != 0 && sweep->epoch != call->epoch;
  sweep->epoch = call->epoch;
  take_all(refiller, result->reply->items[1]);
  step(refiller, sweep->cursor != 0 ? EV_ANSWER : sweep->torn ? EV_FAILED : EV_LAST);
}

/* So many keys are looked at in one call that those which match fit into a reply. */
static int64_t scan_count(const belay_refiller_t *refiller) {
  size_t prefix_len;
  (void)belay__bucket_prefix(refiller->bucket, &prefix_len);
  size_t fit = refiller->client->max_reply / (2 * (prefix_len + KEY_REST_MAX + ITEM_BYTES));
  return (int64_t)(fit < 1 ? 1 : fit < SCAN_COUNT ? fit : SCAN_COUNT);
}

static void put_number(belay__call_t *call, uint64_t number) {
  char text[20];
  size_t n = sizeof text;
  do
    text[--n] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  belay__call_arg(call, text + n, sizeof text - n);
}

/* False if it cannot be asked now. */
static bool ask(belay_refiller_t *refiller) {
  belay_client_t *client = refiller->client;
  belay__sweep_t *sweep = &refiller->sweep;
  belay__call_t *call = belay__call_new(client, BELAY__LANE_BULK);
  if (call == NULL)
    return false;
  belay__call_command(call, "SCAN", 6);
  put_number(call, sweep->cursor);
  belay__call_arg(call, "MATCH", 5);
  belay__call_arg(call, sweep->pattern + sweep->len, sweep->match_len);
  belay__call_arg(call, "COUNT", 5);
  belay__call_arg_int(call, scan_count(refiller));
  return belay__call_start(&sweep->call, call, on_scanned, refiller) == 0;
}

/* ---- the machine --------------------------------------------------------------------------------------- */

static void wait_until(belay_refiller_t *refiller, uint64_t when) {
  belay__timer_set(belay__refiller_host(refiller), BELAY__RANK_OTHER, &refiller->sweep.timer, when);
}

static belay__sweep_state_t pause(belay_refiller_t *refiller, belay__sweep_state_t state) {
  wait_until(refiller, belay__now(belay__refiller_host(refiller)) + PAUSE_MS * BELAY__MS);
  return state;
}

static belay__sweep_state_t rest(belay_refiller_t *refiller) {
  uint64_t next = refiller->sweep.began + refiller->sweep.ms * BELAY__MS;
  uint64_t soonest = belay__now(belay__refiller_host(refiller)) + PAUSE_MS * BELAY__MS;
  wait_until(refiller, next > soonest ? next : soonest);
  return BELAY__SWEEP_RESTING;
}

/* Who looks once a day looks sooner where that has failed. */
static belay__sweep_state_t give_up(belay_refiller_t *refiller) {
  uint64_t ms = refiller->sweep.ms < RETRY_MS ? refiller->sweep.ms : RETRY_MS;
  wait_until(refiller, belay__now(belay__refiller_host(refiller)) + ms * BELAY__MS);
  return BELAY__SWEEP_RESTING;
}

static belay__sweep_state_t go_on(belay_refiller_t *refiller) {
  return ask(refiller) ? BELAY__SWEEP_ASKING : give_up(refiller);
}

/* All that was found before is to be found again. */
static belay__sweep_state_t begin(belay_refiller_t *refiller) {
  belay__sweep_t *sweep = &refiller->sweep;
  belay__list_splice_front(&refiller->table.old, &refiller->table.seen);
  sweep->cursor = 0;
  sweep->epoch = 0;
  sweep->full = sweep->torn = false;
  sweep->began = belay__now(belay__refiller_host(refiller));
  return go_on(refiller);
}

static belay__sweep_state_t drop_some(belay_refiller_t *refiller) {
  belay__list_t *old = &refiller->table.old;
  for (int i = 0; i < DROP_MAX && !belay__list_empty(old); i++)
    belay__refill_drop(refiller, BELAY__CONTAINER(old->next, belay__refill_key_t, found));
  return belay__list_empty(old) ? rest(refiller) : pause(refiller, BELAY__SWEEP_DROPPING);
}

static belay__sweep_state_t stop(belay_refiller_t *refiller) {
  belay__timer_stop(belay__refiller_host(refiller), BELAY__RANK_OTHER, &refiller->sweep.timer);
  (void)belay__call_cancel(&refiller->sweep.call);
  return BELAY__SWEEP_OFF;
}

static belay__sweep_state_t on_time(belay_refiller_t *refiller) {
  switch (refiller->sweep.state) {
  case BELAY__SWEEP_PAUSING:
    return go_on(refiller);
  case BELAY__SWEEP_DROPPING:
    return drop_some(refiller);
  default:
    return begin(refiller);
  }
}

/* All transitions. */
static void step(belay_refiller_t *refiller, event_t event) {
  belay__sweep_t *sweep = &refiller->sweep;
  switch (event) {
  case EV_START:
    sweep->state = begin(refiller);
    break;
  case EV_ANSWER:
    sweep->state = pause(refiller, BELAY__SWEEP_PAUSING);
    break;
  case EV_LAST:
    sweep->state = drop_some(refiller);
    break;
  case EV_FAILED:
    sweep->state = give_up(refiller);
    break;
  case EV_TIMER:
    sweep->state = on_time(refiller);
    break;
  case EV_STOP:
    sweep->state = stop(refiller);
    break;
  }
}

static void on_timer(belay__timer_t *timer) {
  step(refiller_of(timer), EV_TIMER);
}

/* ---- the refiller's side ------------------------------------------------------------------------------- */

size_t belay__sweep_size(const belay_bucket_t *bucket, size_t pattern_len) {
  size_t prefix_len;
  (void)belay__bucket_prefix(bucket, &prefix_len);
  return pattern_len == 0 ? 0 : pattern_len + 2 * prefix_len + 3 * pattern_len + sizeof TAIL;
}

void belay__sweep_init(belay_refiller_t *refiller, char *room,
                       const belay_refiller_options_t *options) {
  belay__sweep_t *sweep = &refiller->sweep;
  size_t prefix_len, len = options->pattern == NULL ? 0 : options->pattern_len;
  const char *prefix = belay__bucket_prefix(refiller->bucket, &prefix_len);
  *sweep = (belay__sweep_t){
      .timer = {.fire = on_timer}, .ms = options->sweep_ms, .len = len, .pattern = room};
  if (len == 0)
    return;
  memcpy(room, options->pattern, len);
  char *match = room + len;
  size_t n = belay__glob_quote(match, prefix, prefix_len);
  n += belay__glob_widen(match + n, options->pattern, len);
  memcpy(match + n, TAIL, sizeof TAIL);
  sweep->match_len = n + sizeof TAIL - 1;
}

void belay__sweep_start(belay_refiller_t *refiller) {
  if (refiller->sweep.len > 0)
    step(refiller, EV_START);
}

void belay__sweep_stop(belay_refiller_t *refiller) {
  step(refiller, EV_STOP);
}

#include "lease/quorum/command.h"

#include <assert.h>
#include <string.h>

#include "core/call/publish.h"
#include "lease/machine/deadline.h"
#include "scripts.gen.h"

#define FENCE_PART "::fence"
#define TICKET_LEN 16 /* hexadecimal digits */

/* ---- tokens and tickets ---- */

size_t belay__lease_token(const belay__lease_t *lease, char out[BELAY__TOKEN_TEXT_MAX]) {
  size_t len;
  const char *label = belay__lease_label(lease, &len);
  return belay__token_text(out, &lease->token, label, len);
}

void belay__lease_put_token(const belay__lease_t *lease, belay__call_t *call) {
  char token[BELAY__TOKEN_TEXT_MAX];
  belay__call_arg(call, token, belay__lease_token(lease, token));
}

size_t belay__ticket_text(uint64_t ticket, char out[BELAY__TICKET_TEXT_MAX]) {
  static const char digits[] = "0123456789abcdef";
  if (ticket == 0)
    return 0;
  for (int i = TICKET_LEN; i-- > 0; ticket >>= 4)
    out[i] = digits[ticket & 15];
  return TICKET_LEN;
}

void belay__lease_put_ticket(const belay__lease_t *lease, belay__call_t *call) {
  char text[BELAY__TICKET_TEXT_MAX];
  belay__call_arg(call, text, belay__ticket_text(lease->active->ticket, text));
}

/* ---- keys ---- */

const char *belay__many_next(const char *list, size_t list_len, size_t *at, size_t *len) {
  uint16_t n;
  if (*at >= list_len)
    return NULL;
  memcpy(&n, list + *at, sizeof n);
  const char *key = list + *at + sizeof n;
  *at += sizeof n + n;
  *len = n;
  return key;
}

bool belay__kind_has_one_key(const belay__kind_t *kind) {
  return kind->suffixes == NULL && !kind->many;
}

static size_t count_keys(const belay__kind_t *kind, const char *key, size_t key_len) {
  size_t n = 1, at = 0, len;
  for (const char *const *suffix = kind->suffixes; suffix != NULL && *suffix != NULL; suffix++)
    n++;
  if (kind->many)
    for (n = 0; belay__many_next(key, key_len, &at, &len) != NULL;)
      n++;
  return n;
}

/* Adds the first n keys. */
static void put_keys(const belay__kind_t *kind, const char *key, size_t key_len, size_t n,
                     belay__call_t *call) {
  size_t at = 0, len;
  if (kind->many) {
    for (const char *one; n-- > 0 && (one = belay__many_next(key, key_len, &at, &len)) != NULL;)
      belay__call_arg(call, one, len);
    return;
  }
  belay__call_arg(call, key, key_len);
  for (size_t i = 0; i + 1 < n; i++)
    belay__call_arg_joined(call, key, key_len, kind->suffixes[i], strlen(kind->suffixes[i]));
}

static void put_fence_key(const belay__lease_t *lease, belay__call_t *call) {
  belay__call_arg_joined(call, belay__lease_key(lease), lease->key_len, FENCE_PART,
                         sizeof FENCE_PART - 1);
}

static void begin_script(const belay__lease_t *lease, belay__call_t *call,
                         const belay__script_t *script, size_t keys, bool fence, size_t args) {
  if (lease->config->min_replicas > 0)
    belay__call_script_text(call, script, keys + fence, args);
  else
    belay__call_script(call, script, keys + fence, args);
  put_keys(lease->config->kind, belay__lease_key(lease), lease->key_len, keys, call);
  if (fence)
    put_fence_key(lease, call);
}

void belay__lease_begin(const belay__lease_t *lease, belay__call_t *call,
                        const belay__script_t *script, bool fence, size_t args) {
  begin_script(lease, call, script,
               count_keys(lease->config->kind, belay__lease_key(lease), lease->key_len), fence,
               args);
}

static void put_token_and_ttl(const belay__lease_t *lease, belay__call_t *call) {
  belay__lease_put_token(lease, call);
  belay__call_arg_int(call, lease->ttl);
}

void belay__lease_begin_acquire(const belay__lease_t *lease, belay__call_t *call,
                                const belay__script_t *script, size_t args) {
  bool counts = belay__lease_counts(lease);
  belay__lease_begin(lease, call, script, counts, 2 + args + counts);
  put_token_and_ttl(lease, call);
}

void belay__lease_put_fence_ttl(const belay__lease_t *lease, belay__call_t *call) {
  if (belay__lease_counts(lease))
    belay__call_arg_int(call, BELAY__FENCE_TTL_MS);
}

/* Native commands that replace the release script of the lock, if the release removes only the
 * token. They publish nothing: a notification needs a PUBLISH of its own. */
static const struct {
  belay__capability_t needs;
  const char *name, *condition;
} removals[] = {
    {BELAY__DELIFEQ, "DELIFEQ", NULL},
    {BELAY__DELEX, "DELEX", "IFEQ"},
};

/* Builds the first native command that all servers of the client have. False if there is none. */
static bool remove_natively(const char *key, size_t key_len, const belay__release_t *release,
                            belay__call_t *call) {
  size_t i = 0;
  while (i < sizeof removals / sizeof *removals &&
         !belay__client_can(call->client, removals[i].needs))
    i++;
  if (i == sizeof removals / sizeof *removals)
    return false;
  const char *condition = removals[i].condition;
  belay__call_command(call, removals[i].name, condition != NULL ? 4 : 3);
  belay__call_needs(call, removals[i].needs);
  belay__call_arg(call, key, key_len);
  if (condition != NULL)
    belay__call_arg(call, condition, strlen(condition));
  belay__call_arg(call, release->token, release->token_len);
  return true;
}

void belay__release_build(const belay__kind_t *kind, const char *key, size_t key_len,
                          const belay__release_t *release, belay__call_t *call) {
  bool plain = kind->release == &belay__script_lock_release &&
               (!release->notify || release->separate_publish) && release->token_len > 0 &&
               release->other_len == 0;
  if (plain && remove_natively(key, key_len, release, call))
    return;
  size_t keys = count_keys(kind, key, key_len);
  belay__call_script(call, kind->release, keys, (size_t)3 + kind->publishes_always);
  put_keys(kind, key, key_len, keys, call);
  belay__call_arg(call, release->token, release->token_len);
  belay__publish_arg(call, release->notify);
  belay__call_arg(call, release->other, release->other_len);
  if (kind->publishes_always)
    belay__call_arg(call, "1", 1);
}

bool belay__release_read(const belay__call_t *call, const belay__reply_t *reply, int64_t *n) {
  return belay__reply_integer(reply, 0, call->script != NULL ? INT32_MAX : 1, n);
}

/* ---- rounds ---- */

static void build_fence(const belay__lease_t *lease, belay__call_t *call,
                        const belay__script_t *script, size_t args) {
  if (lease->config->min_replicas > 0)
    belay__call_script_text(call, script, 1, args);
  else
    belay__call_script(call, script, 1, args);
  put_fence_key(lease, call);
}

static void build_extend(const belay__lease_t *lease, belay__call_t *call, bool retake) {
  const belay__kind_t *kind = lease->config->kind;
  int64_t left = (int64_t)(belay__lease_remaining(lease) / BELAY__MS);
  size_t keys = kind->extend_keys;
  if (keys == 0)
    keys = count_keys(kind, belay__lease_key(lease), lease->key_len);
  begin_script(lease, call, kind->extend, keys, false, 3 + kind->extend_args);
  belay__lease_put_token(lease, call);
  belay__call_arg_int(call, lease->ttl);
  belay__call_arg_int(call, retake ? left : 0);
  if (kind->extend_more != NULL)
    kind->extend_more(lease, call);
}

static void build_release(const belay__lease_t *lease, belay__call_t *call) {
  /* A call that is sent again publishes by itself: it may have been sent without a PUBLISH. */
  belay__release_t release = {.notify = lease->config->notify,
                              .separate_publish = call->state == BELAY__CALL_BUILDING};
  release.token_len = belay__lease_token(lease, release.token);
  if (lease->active->partner !=
      NULL) /* a hand-over may have moved the lock to the partner's token */
    release.other_len = belay__lease_token(lease->active->partner, release.other);
  else /* a late execution of an acquire may have queued the ticket again */
    release.other_len = belay__ticket_text(lease->active->ticket, release.other);
  belay__release_build(lease->config->kind, belay__lease_key(lease), lease->key_len, &release,
                       call);
}

void belay__lease_build_command(const belay__lease_t *lease, belay__call_t *call, bool retake) {
  switch ((belay__round_t)lease->active->round) {
  case BELAY__ROUND_ACQUIRE:
    lease->config->kind->acquire(lease, call);
    break;
  case BELAY__ROUND_READ:
    build_fence(lease, call, &belay__script_fence_read, 0);
    break;
  case BELAY__ROUND_ACCEPT:
    build_fence(lease, call, &belay__script_fence_accept, 3);
    belay__call_arg_int(call, (int64_t)belay__lease_fence(lease));
    belay__lease_put_token(lease, call);
    belay__call_arg_int(call, BELAY__FENCE_TTL_MS);
    break;
  case BELAY__ROUND_EXTEND:
    build_extend(lease, call, retake);
    break;
  case BELAY__ROUND_RELEASE:
    build_release(lease, call);
    break;
  case BELAY__ROUND_NONE:
    assert(false && "no command without a round");
  }
}

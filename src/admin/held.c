/* Held objects: their keys, the queries, and the reading of replies. */
#include "admin/held.h"

#include <string.h>

#include "core/key/key.h"
#include "core/call/publish.h"
#include "core/key/siphash.h"
#include "core/key/token.h"
#include "scripts.gen.h"

#define LABEL_AT ((size_t)2 * BELAY__TOKEN_BYTES + 1)
#define HOLDER_BYTES ((size_t)1024) /* Upper bound for the memory of one holder in a reply */

const belay__held_kind_t belay__held_kinds[BELAY_HELD_KINDS] = {
    [BELAY_HELD_LOCK] = {.name = "lock",
                         .read = &belay__script_held_lock,
                         .suffixes = {"::fence", "::holds", "::alive"},
                         .release = &belay__script_lock_release},
    [BELAY_HELD_RWLOCK] = {.name = "rwlock",
                           .alternate = "::readers",
                           .read = &belay__script_held_rwlock,
                           .suffixes = {"::readers", "::waiting", "::writers", "::admitted",
                                        "::fence"},
                           .release = &belay__script_rwlock_release,
                           .release_suffixes = {"::readers", "::waiting", "::writers",
                                                "::admitted"}},
    [BELAY_HELD_SEMAPHORE] = {.name = "semaphore",
                              .read = &belay__script_held_semaphore,
                              .suffixes = {"::permits", "::alive"},
                              .release = &belay__script_semaphore_release,
                              .release_suffixes = {"::permits", "::queue", "::alive"}},
    [BELAY_HELD_ELECTION] = {.name = "election",
                             .read = &belay__script_held_lock,
                             .suffixes = {"::fence"},
                             .release = &belay__script_lock_release},
};

const char *belay_held_kind_name(belay_held_kind_t kind) {
  return (unsigned)kind < BELAY_HELD_KINDS ? belay__held_kinds[kind].name : "?";
}

/* ---- keys ---- */

/* Move *at behind the prefix `text`. Returns false if the bytes at *at do not begin with the
 * prefix. */
static bool skip_prefix(const char **at, size_t *len, const char *text, size_t text_len) {
  if (*len < text_len || memcmp(*at, text, text_len) != 0)
    return false;
  *at += text_len;
  *len -= text_len;
  return true;
}

static bool skip_string(const char **at, size_t *len, const char *text) {
  return skip_prefix(at, len, text, strlen(text));
}

static bool parse_as(belay_held_kind_t kind, const char *at, size_t len, belay__held_key_t *out) {
  const belay__held_kind_t *kind_info = &belay__held_kinds[kind];
  if (!skip_string(&at, &len, kind_info->name) || !skip_string(&at, &len, "::{"))
    return false;
  const char *close = memchr(at, '}', len);
  if (close == NULL || close == at || (size_t)(close - at) > 3 * BELAY__NAME_MAX)
    return false;
  out->kind = kind;
  out->name = at;
  out->name_len = (size_t)(close - at);
  out->key_len = (size_t)(close + 1 - out->key);
  at = close + 1;
  len -= out->name_len + 1;
  out->alternate = kind_info->alternate != NULL && skip_string(&at, &len, kind_info->alternate);
  return len == 0;
}

bool belay__held_parse(const belay_client_t *client, const char *key, size_t len,
                       belay__held_key_t *out) {
  const char *at = key;
  *out = (belay__held_key_t){.key = key};
  if (!skip_prefix(&at, &len, client->prefix, client->prefix_len) || !skip_string(&at, &len, "::"))
    return false;
  for (int kind = 0; kind < BELAY_HELD_KINDS; kind++)
    if (parse_as((belay_held_kind_t)kind, at, len, out))
      return true;
  return false;
}

belay__call_t *belay__held_script(belay_client_t *client, belay__conn_class_t conn_class,
                                  const belay__held_key_t *key, const belay__script_t *script,
                                  const char *const *suffixes, size_t args) {
  size_t n = 0;
  while (suffixes[n] != NULL)
    n++;
  belay__call_t *call = belay__call_new(client, conn_class);
  belay__call_script(call, script, 1 + n, args);
  if (call != NULL)
    call->route = belay__key_route(key->key, key->key_len);
  belay__call_arg(call, key->key, key->key_len);
  for (size_t i = 0; i < n; i++)
    belay__call_arg_joined(call, key->key, key->key_len, suffixes[i], strlen(suffixes[i]));
  return call;
}

belay__call_t *belay__held_call(belay_client_t *client, belay__conn_class_t conn_class,
                                const belay__held_key_t *key, size_t most) {
  const belay__held_kind_t *kind_info = &belay__held_kinds[key->kind];
  size_t fit = client->max_reply / HOLDER_BYTES;
  belay__call_t *call =
      belay__held_script(client, conn_class, key, kind_info->read, kind_info->suffixes, 2);
  belay__publish_arg(call, true);
  belay__call_arg_int(call, (int64_t)(fit < most ? fit : most));
  return call;
}

/* ---- replies ---- */

enum { FENCE, WAITING, LISTENING, LIMIT, USED, OWNER, COUNT }; /* the first items of a reply */
enum { TOKEN, LEFT, PERMITS, WRITES };                         /* the items of a holder */

static bool is_integer(const belay__reply_t *reply, int64_t min) {
  int64_t n;
  return belay__reply_integer(reply, min, INT64_MAX, &n);
}

bool belay__held_check(const belay__reply_t *reply, size_t *count, size_t *n) {
  if (reply->type != BELAY__REPLY_ARRAY || reply->count < BELAY__HELD_HEAD ||
      (reply->count - BELAY__HELD_HEAD) % BELAY__HELD_EACH != 0)
    return false;
  belay__reply_t *const *head = reply->items;
  if (head[FENCE]->type != BELAY__REPLY_STRING || head[OWNER]->type != BELAY__REPLY_STRING ||
      !is_integer(head[WAITING], 0) || !is_integer(head[LISTENING], -1) ||
      !is_integer(head[LIMIT], 0) || !is_integer(head[USED], 0) || !is_integer(head[COUNT], 0))
    return false;
  *count = (size_t)head[COUNT]->integer;
  *n = (reply->count - BELAY__HELD_HEAD) / BELAY__HELD_EACH;
  for (size_t i = 0; i < *n; i++) {
    belay__reply_t *const *item = &reply->items[BELAY__HELD_HEAD + i * BELAY__HELD_EACH];
    if (item[TOKEN]->type != BELAY__REPLY_STRING || !is_integer(item[LEFT], -1) ||
        !is_integer(item[PERMITS], 0) || !is_integer(item[WRITES], 0))
      return false;
  }
  return *n <= *count && *n <= BELAY_HELD_HOLDERS_MAX;
}

/* Compute the mark from 64 bits of a hash of the token. The mark does not reveal the token, which
 * has 160 random bits. */
belay__held_token_t belay__held_token(const belay__reply_t *reply, size_t i) {
  static const uint8_t key[BELAY__SIPHASH_KEY_LEN] = "belay: the mark";
  const belay__reply_t *token = reply->items[BELAY__HELD_HEAD + i * BELAY__HELD_EACH];
  return (belay__held_token_t){.token = token->str,
                               .len = token->len,
                               .mark = belay__siphash128(key, token->str, token->len).h1};
}

/* Returns the label after the digits of a token, and its length in *rest. NULL if there is no
 * label, or if the token does not have the form of belay's tokens. */
static const char *label_part(const char *token, size_t len, size_t *rest) {
  if (len <= LABEL_AT || token[LABEL_AT - 1] != ':')
    return NULL;
  for (size_t i = 0; i + 1 < LABEL_AT; i++)
    if (strchr("0123456789abcdef", token[i]) == NULL || token[i] == '\0')
      return NULL;
  *rest = len - LABEL_AT;
  return token + LABEL_AT;
}

static const char *label_of(belay__held_token_t token, size_t *len) {
  const char *label = label_part(token.token, token.len, len);
  if (label == NULL || *len > BELAY__OWNER_MAX)
    return NULL;
  for (size_t i = 0; i < *len; i++)
    if (label[i] < ' ' || label[i] > '~')
      return NULL;
  return label;
}

bool belay__held_is_owned(const belay__held_key_t *key, const belay__reply_t *reply) {
  return key->kind == BELAY_HELD_LOCK && reply->items[OWNER]->len > 0;
}

/* Returns the owner of a reentrant lock, or the value of an election's leader, and its length in
 * *len. NULL: none. The stored owner of a lock begins with the digits of its client, which the
 * function skips. */
static const char *owner_of(const belay__held_key_t *key, const belay__reply_t *reply,
                            size_t *len) {
  const belay__reply_t *owner = reply->items[OWNER];
  *len = owner->len;
  if (belay__held_is_owned(key, reply))
    return label_part(owner->str, owner->len, len);
  return owner->len > 0 ? owner->str : NULL;
}

/* Copy a text and a 0 to the free memory at *at, and move *at behind the 0. Returns the copy; NULL
 * if the text is NULL. */
static const char *copy_text(char **at, const char *text, size_t len) {
  char *out = *at;
  if (text == NULL)
    return NULL;
  memcpy(out, text, len);
  out[len] = '\0';
  *at += len + 1;
  return out;
}

static size_t measure(const belay__held_key_t *key, const belay__reply_t *reply, size_t n) {
  size_t len, size = sizeof(belay__held_t) + n * sizeof(belay_holder_t) + key->name_len + 1;
  if (owner_of(key, reply, &len) != NULL)
    size += len + 1;
  for (size_t i = 0; i < n; i++)
    if (label_of(belay__held_token(reply, i), &len) != NULL)
      size += len + 1;
  return size;
}

static void fill_holders(belay_holder_t *out, const belay__reply_t *reply, size_t n, char **at) {
  for (size_t i = 0; i < n; i++) {
    belay__reply_t *const *item = &reply->items[BELAY__HELD_HEAD + i * BELAY__HELD_EACH];
    belay__held_token_t token = belay__held_token(reply, i);
    size_t len = 0;
    const char *label = label_of(token, &len);
    out[i] = (belay_holder_t){
        .label = copy_text(at, label, len),
        .remaining_ms = item[LEFT]->integer == 0 ? 1 : item[LEFT]->integer,
        .permits = (unsigned)item[PERMITS]->integer,
        .writes = item[WRITES]->integer != 0,
        .mark = token.mark,
    };
  }
}

int belay__held_make(belay_t *belay, const belay__held_key_t *key, const belay__reply_t *reply,
                     belay__held_t **out) {
  size_t count, n, owner_len;
  if (!belay__held_check(reply, &count, &n))
    return BELAY_EPROTO;
  size_t size = measure(key, reply, n);
  belay__held_t *made = belay__alloc(belay, size);
  if (made == NULL)
    return BELAY_ENOMEM;
  *made = (belay__held_t){.size = size};
  belay__list_init(&made->node);
  belay_holder_t *holders = (belay_holder_t *)(made + 1);
  char *at = (char *)(holders + n), *name = at;
  belay__reply_t *const *head = reply->items;
  belay_held_t *held = &made->held;
  *held = (belay_held_t){.kind = key->kind,
                         .name = name,
                         .holders = n == 0 ? NULL : holders,
                         .holders_len = n,
                         .holders_count = count,
                         .waiting = (size_t)head[WAITING]->integer,
                         .listening = head[LISTENING]->integer,
                         .limit = (unsigned)head[LIMIT]->integer,
                         .used = (unsigned)head[USED]->integer};
  (void)belay__reply_number(head[FENCE], 0, UINT64_MAX, &held->fence);
  if (!belay__key_unescape(name, &held->name_len, key->name, key->name_len)) {
    /* belay did not make this key, because its escapes are invalid: the name is reported
     * unchanged */
    memcpy(name, key->name, key->name_len);
    held->name_len = key->name_len;
  }
  name[held->name_len] = '\0';
  at += key->name_len + 1;
  const char *owner = owner_of(key, reply, &owner_len);
  held->owner = copy_text(&at, owner, owner_len);
  held->owner_len = owner == NULL ? 0 : owner_len;
  fill_holders(holders, reply, n, &at);
  *out = made;
  return 0;
}

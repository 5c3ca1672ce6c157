/* The semaphore: permits. Each acquire is a lease whose end the server's clock decides. There are
 * two kinds with the same keys and scripts. The fair kind queues on the server like the fair lock.
 *
 *    key, a zset: token -> its end      ::permits, a hash: token -> number of permits; used; limit
 *    ::queue, ::alive: as the fair lock's; the plain kind reads them, so that it does not overtake
 *                      fair waiters */
#include "belay/semaphore.h"

#include <stdlib.h>
#include <string.h>

#include "core/key/key.h"
#include "core/call/publish.h"
#include "core/client/request.h"
#include "lease/kinds/fair.h"
#include "lease/kinds/lock_new.h"
#include "scripts.gen.h"

#define FAMILY "semaphore"

/* Builds the acquire command. Its last argument is 1 on a quorum: then the limit is 1, whatever
 * limit a node has stored. */
static void acquire(const belay__lease_t *lease, belay__call_t *call) {
  belay__lease_begin(lease, call, &belay__script_semaphore_acquire, false, 8);
  belay__lease_put_token(lease, call);
  belay__call_arg_int(call, lease->ttl);
  belay__call_arg_int(call, lease->config->permits);
  belay__call_arg_int(call, lease->config->limit);
  belay__fair_put_place(lease, call);
  belay__call_arg_int(call, lease->members > 1);
}

/* Adds the number of permits, so that the extend restores the number if the server lost it. */
static void extend_more(const belay__lease_t *lease, belay__call_t *call) {
  belay__call_arg_int(call, lease->config->permits);
}

static const char *const suffixes[] = {"::permits", "::queue", "::alive", NULL};
#define KEYS ((size_t)4) /* the key and its suffixed keys */

#define SEMAPHORE_KIND                                                                             \
  .family = FAMILY, .suffixes = suffixes, .extend = &belay__script_semaphore_extend,               \
  .release = &belay__script_semaphore_release, .acquire = acquire,                                 \
  .acquired = belay__fair_acquired, .extend_keys = 2, .extend_args = 1,                            \
  .extend_more = extend_more, .notify_owner = belay__lock_notify

/* Plain: in a client one lease asks at a time. The next one asks when the first one has its permits
 * or has given up. */
static const belay__kind_t plain = {SEMAPHORE_KIND, .client_queue = true};
static const belay__kind_t fair = {SEMAPHORE_KIND, .tickets = true};

static int check_options(belay_t *belay, size_t n, unsigned limit, unsigned permits,
                         const belay_lock_options_t *o) {
  unsigned without = BELAY__WITHOUT_OWNER | BELAY__WITHOUT_KEY | BELAY__WITHOUT_FENCING;
  int error = belay__lock_refuse(belay, o, without, "a semaphore");
  if (error == 0)
    error = belay__check_range(belay, "limit", limit, 1, BELAY_SEMAPHORE_MAX);
  if (error == 0)
    error = belay__check_range(belay, "permits", permits, 1, limit);
  if (error != 0)
    return error;
  if (n > 1 && limit > 1) {
    belay__detail(belay, "limit: over 1, with several clients");
    return BELAY_ESINGLE;
  }
  return belay__fair_check(belay, n, o);
}

int belay_semaphore_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                        const belay_semaphore_size_t *size, const belay_lock_options_t *options,
                        belay_lock_t **out) {
  belay_lock_options_t o;
  int error = belay__lock_check(clients, n, options, &o, out);
  if (error == 0 && size == NULL)
    return belay__invalid(clients[0]->belay, "size: NULL");
  if (error == 0)
    error = check_options(clients[0]->belay, n, size->limit, size->permits, &o);
  if (error != 0)
    return error;
  belay__lock_spec_t spec = {
      .kind = o.fair ? &fair : &plain, .limit = size->limit, .permits = size->permits};
  return belay__lock_make(clients, n, name, &o, &spec, out);
}

/* ---- requests ---- */

static int read_state(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  (void)call;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 4)
    return BELAY_EPROTO;
  for (size_t i = 0; i < 4; i++)
    if (!belay__reply_integer(reply->items[i], 0, UINT32_MAX, &operation->values[i]))
      return BELAY_EPROTO;
  return 0;
}

static void notify_state(belay_request_t *request, void (*cb)(void),
                         const belay__answer_t *answer) {
  belay_semaphore_state_t state = {0};
  if (answer->status == 0)
    state = (belay_semaphore_state_t){
        .limit = (unsigned)answer->values[0],
        .used = (unsigned)answer->values[1],
        .holders = (unsigned)answer->values[2],
        .waiting = (unsigned)answer->values[3],
    };
  ((belay_semaphore_cb)cb)(request, answer->status, &state);
}

static const belay__request_ops_t read_ops = {
    .read = read_state,
    .notify = notify_state,
    .idempotent = true,
};

/* A resize is not sent again after a lost reply: the server may execute the first call later, after
 * another client has set the limit. */
static const belay__request_ops_t resize_ops = {.read = read_state, .notify = notify_state};

/* Checks a request about a semaphore, and builds its call: a script and its keys. Returns 0 or an
 * error. */
static int begin_call(belay_client_t *client, const belay_request_t *request, bool has_cb,
                      belay_bytes_t name, const belay__script_t *script, size_t args,
                      belay__call_t **call) {
  char key[BELAY__KEY_MAX];
  int error = belay__client_check(client);
  if (error == 0)
    error = belay__request_check(client, request, has_cb);
  if (error == 0)
    error = belay__check_bytes(client->belay, "name", name, 1, BELAY__NAME_MAX);
  if (error != 0)
    return error;
  *call = belay__call_new(client, BELAY__CLASS_DATA);
  if (*call == NULL)
    return BELAY_ENOMEM;
  size_t len =
      belay__key_build(key, client->prefix, client->prefix_len, FAMILY, name.data, name.len);
  belay__call_script(*call, script, KEYS, args);
  belay__call_arg(*call, key, len);
  for (const char *const *suffix = suffixes; *suffix != NULL; suffix++)
    belay__call_arg_joined(*call, key, len, *suffix, strlen(*suffix));
  return 0;
}

int belay_semaphore_read(belay_client_t *client, belay_request_t *request, belay_bytes_t name,
                         belay_semaphore_cb cb) {
  belay__call_t *call;
  int error =
      begin_call(client, request, cb != NULL, name, &belay__script_semaphore_read, 0, &call);
  return error != 0 ? error
                    : belay__request_start(request, call, &read_ops, NULL, NULL, BELAY__CB(cb));
}

int belay_semaphore_resize(belay_client_t *client, belay_request_t *request, belay_bytes_t name,
                           unsigned limit, belay_semaphore_cb cb) {
  belay__call_t *call;
  int error = belay__client_check(client);
  if (error == 0)
    error = belay__check_range(client->belay, "limit", limit, 1, BELAY_SEMAPHORE_MAX);
  if (error == 0)
    error =
        begin_call(client, request, cb != NULL, name, &belay__script_semaphore_resize, 2, &call);
  if (error != 0)
    return error;
  belay__call_arg_int(call, limit);
  belay__publish_arg(call, true);
  return belay__request_start(request, call, &resize_ops, NULL, NULL, BELAY__CB(cb));
}

/* ---- holders ---- */

#define HOLDER_FIELDS ((size_t)3)
/* memory of one holder in a reply, at most */
#define HOLDER_BYTES ((size_t)768)
/* position of the label in a token */
#define LABEL_AT ((size_t)2 * BELAY__TOKEN_BYTES + 1)

static int compare(const void *a, const void *b) {
  const belay_semaphore_holder_t *one = a, *other = b;
  int order = strcmp(one->label, other->label);
  if (order != 0)
    return order;
  return (one->remaining_ms > other->remaining_ms) - (one->remaining_ms < other->remaining_ms);
}

/* Returns the length of the label in a token; 0: it is not a token of belay. */
static size_t label_len(const belay__reply_t *token) {
  if (token->type != BELAY__REPLY_STRING || token->len <= LABEL_AT ||
      token->len > BELAY__TOKEN_TEXT_MAX || token->str[LABEL_AT - 1] != ':' ||
      memchr(token->str, '\0', token->len) != NULL)
    return 0;
  return token->len - LABEL_AT;
}

/* Checks the reply, which has token, permits and remaining_ms of each holder. Sets *size to the
 * size of the list with its labels. Returns 0 or an error. */
static int measure_holders(const belay__reply_t *reply, size_t *size) {
  if (reply->type != BELAY__REPLY_ARRAY || reply->count % HOLDER_FIELDS != 0 ||
      reply->count > HOLDER_FIELDS * BELAY_SEMAPHORE_HOLDERS_MAX)
    return BELAY_EPROTO;
  *size = 0;
  for (size_t i = 0; i < reply->count; i += HOLDER_FIELDS) {
    int64_t n;
    size_t len = label_len(reply->items[i]);
    if (!belay__reply_integer(reply->items[i + 1], 0, BELAY_SEMAPHORE_MAX, &n) ||
        !belay__reply_integer(reply->items[i + 2], 1, INT64_MAX, &n))
      return BELAY_EPROTO;
    if (len == 0)
      return BELAY_EMISMATCH;
    *size += sizeof(belay_semaphore_holder_t) + len + 1;
  }
  return 0;
}

/* Makes the list of holders, followed by their labels, in the room of the request. */
static int read_holders(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  (void)call;
  size_t size, n = reply->count / HOLDER_FIELDS;
  int error = measure_holders(reply, &size);
  if (error != 0 || n == 0)
    return error;
  belay_semaphore_holder_t *list = belay__request_room(operation, size);
  if (list == NULL)
    return BELAY_ENOMEM;
  char *label = (char *)&list[n];
  for (size_t i = 0; i < n; i++) {
    belay__reply_t *const *item = &reply->items[HOLDER_FIELDS * i];
    size_t len = label_len(item[0]);
    memcpy(label, item[0]->str + LABEL_AT, len);
    label[len] = '\0';
    list[i] = (belay_semaphore_holder_t){
        .label = label, .permits = (unsigned)item[1]->integer, .remaining_ms = item[2]->integer};
    label += len + 1;
  }
  qsort(list, n, sizeof *list, compare);
  operation->values[0] = (int64_t)n;
  return 0;
}

static void notify_holders(belay_request_t *request, void (*cb)(void),
                           const belay__answer_t *answer) {
  static const belay_semaphore_holder_t none;
  const belay_semaphore_holder_t *list = answer->room == NULL ? &none : answer->room;
  bool ok = answer->status == 0;
  ((belay_semaphore_holders_cb)cb)(request, answer->status, ok ? list : NULL,
                                   ok ? (size_t)answer->values[0] : 0);
}

static const belay__request_ops_t holders_ops = {
    .read = read_holders,
    .notify = notify_holders,
    .idempotent = true,
};

int belay_semaphore_holders(belay_client_t *client, belay_request_t *request, belay_bytes_t name,
                            belay_semaphore_holders_cb cb) {
  belay__call_t *call;
  int error =
      begin_call(client, request, cb != NULL, name, &belay__script_semaphore_holders, 1, &call);
  if (error != 0)
    return error;
  size_t most = client->max_reply / HOLDER_BYTES;
  belay__call_arg_int(call, most < BELAY_SEMAPHORE_HOLDERS_MAX ? (int64_t)most
                                                               : BELAY_SEMAPHORE_HOLDERS_MAX);
  return belay__request_start(request, call, &holders_ops, NULL, NULL, BELAY__CB(cb));
}

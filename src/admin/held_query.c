/* Queries and breaks of one held object.
 *
 *    read:   query the holders --> callback
 *    break:  query the holders --some of the caller's are present--> release each --> callback
 *                              --none of them is present--> callback
 *
 * The caller of a break passes holders from an earlier read. These have marks, not tokens. The
 * query returns the tokens; a holder is present if its mark is that of a returned token. The server
 * returns a limited number of holders. If it has more, one that was not returned may be present.
 *
 * A release by a token does nothing if the token does not hold the object any more. So a later
 * holder is never affected. */
#include <assert.h>
#include <string.h>

#include "core/key/key.h"
#include "core/call/publish.h"
#include "admin/held.h"
#include "scripts.gen.h"

enum { HELD }; /* values of a read: a belay__held_t * */
/* values of a break, for the counts of a belay_broken_t */
enum { REMOVED, NOT_LISTED, OTHERS, RECEIVERS };

/* State of a request, in its room. The bytes of the key follow the marks. A read has no marks. */
typedef struct query {
  belay__held_key_t key;
  size_t marks_len;
  uint64_t marks[];
} query_t;

static int check(belay_client_t *client, const belay_request_t *request, belay_held_kind_t kind,
                 const char *name, size_t name_len, bool has_cb) {
  int error = belay__client_check(client);
  if (error == 0)
    error = belay__request_check(client, request, has_cb);
  if (error == 0)
    error = belay__check_range(client->belay, "kind", (int64_t)kind, 0, BELAY_HELD_KINDS - 1);
  return error != 0 ? error
                    : belay__check_bytes(client->belay, "name", belay_bytes(name, name_len), 1,
                                         BELAY__NAME_MAX);
}

/* Begin a request and send its query of the holders. */
static int start(belay_client_t *client, belay_request_t *request, const belay__request_ops_t *ops,
                 const belay_held_t *what, void (*cb)(void)) {
  const char *family = belay__held_kinds[what->kind].name;
  size_t key_len = belay__key_build(NULL, client->prefix, client->prefix_len, family, what->name,
                                    what->name_len);
  size_t n = what->holders_len;
  belay__operation_t *operation;
  int error = belay__request_begin(client, request, ops, NULL, NULL, cb, &operation);
  if (error != 0)
    return error;
  operation->deadline = belay__after_ms(client->belay, belay__request_timeout_ms(client, request));
  query_t *query =
      belay__request_room(operation, sizeof *query + n * sizeof *query->marks + key_len);
  if (query == NULL)
    return belay__request_begun(operation, BELAY_ENOMEM);
  char *key = (char *)&query->marks[n];
  belay__key_build(key, client->prefix, client->prefix_len, family, what->name, what->name_len);
  (void)belay__held_parse(client, key, key_len, &query->key);
  query->marks_len = n;
  for (size_t i = 0; i < n; i++)
    query->marks[i] = what->holders[i].mark;
  belay__call_t *call =
      belay__held_call(client, BELAY__CLASS_DATA, &query->key, BELAY_HELD_HOLDERS_MAX);
  return belay__request_begun(operation, belay__request_send(operation, call));
}

static int read_held(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  const query_t *query = operation->room;
  belay__held_t *held;
  (void)call;
  int error = belay__held_make(operation->client->belay, &query->key, reply, &held);
  if (error == 0)
    operation->values[HELD] = (int64_t)(intptr_t)held;
  return error;
}

/* Passes the result to the callback and frees it. */
static void notify_held(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const belay_held_t unknown = {.name = "", .listening = -1};
  belay__held_t *held = (void *)(intptr_t)answer->values[HELD];
  belay_t *belay = answer->client->belay;
  assert(answer->status != 0 || held != NULL);
  ((belay_held_cb)cb)(request, answer->status, answer->status == 0 ? &held->held : &unknown);
  if (held != NULL)
    belay__free(belay, held, held->size);
}

static const belay__request_ops_t read_ops = {
    .read = read_held, .notify = notify_held, .idempotent = true};

int belay_held_read(belay_client_t *client, belay_request_t *request, belay_held_kind_t kind,
                    belay_bytes_t name, belay_held_cb cb) {
  int error = check(client, request, kind, name.data, name.len, cb != NULL);
  if (error != 0)
    return error;
  const belay_held_t what = {.kind = kind, .name = name.data, .name_len = name.len};
  return start(client, request, &read_ops, &what, (void (*)(void))cb);
}

static bool is_marked(const query_t *query, uint64_t mark) {
  for (size_t i = 0; i < query->marks_len; i++)
    if (query->marks[i] == mark)
      return true;
  return false;
}

/* Make the call with which the holder itself would release its token. The message is for the holder
 * too, so it is published even if no waiter has set the contention flag. */
static belay__call_t *new_release(belay_client_t *client, const belay__held_key_t *key, bool owned,
                                  belay__held_token_t token) {
  static const char *const holds[BELAY__HELD_SUFFIXES_MAX] = {"::holds"};
  const belay__held_kind_t *how = &belay__held_kinds[key->kind];
  belay__call_t *call = belay__held_script(client, BELAY__CLASS_DATA, key,
                                           owned ? &belay__script_reentrant_release : how->release,
                                           owned ? holds : how->release_suffixes, 4);
  belay__call_arg(call, token.token, token.len);
  belay__publish_arg(call, true);
  belay__call_arg(call, "", 0);
  belay__call_arg(call, "1", 1);
  return call;
}

static int read_released(belay__operation_t *operation, const belay__call_t *call,
                         const belay__reply_t *reply) {
  int64_t n, *receivers = &operation->values[RECEIVERS];
  (void)call;
  if (!belay__reply_integer(reply, 0, INT32_MAX, &n))
    return BELAY_EPROTO;
  operation->values[REMOVED] += n > 0;
  if (n < INT32_MAX && n - 1 > *receivers) /* INT32_MAX: publishing was refused */
    *receivers = n - 1;
  return 0;
}

static void notify_broken(belay_request_t *request, void (*cb)(void),
                          const belay__answer_t *answer) {
  const query_t *query = answer->room;
  const belay_broken_t unknown = {0};
  const belay_broken_t broken = {
      .removed = (size_t)answer->values[REMOVED],
      .missed = query->marks_len - (size_t)(answer->values[REMOVED] + answer->values[NOT_LISTED]),
      .unseen = (size_t)answer->values[NOT_LISTED],
      .others = (size_t)answer->values[OTHERS],
      .notified = (size_t)answer->values[RECEIVERS],
  };
  ((belay_broken_cb)cb)(request, answer->status, answer->status == 0 ? &broken : &unknown);
}

/* A release is not sent again after a lost reply: if the first one had run, the second one would
 * report a missing token. */
static const belay__request_ops_t release_ops = {.read = read_released, .notify = notify_broken};

/* Send the releases of the n holders of the caller that are among the `listed` holders of the
 * reply. The request must be PARKED. Returns 0 or an error. */
static int release(belay__operation_t *operation, const belay__reply_t *reply, size_t listed,
                   size_t n) {
  belay_client_t *client = operation->client;
  const query_t *query = operation->room;
  belay__call_t **calls = belay__alloc(client->belay, n * sizeof(belay__call_t *));
  bool owned = belay__held_is_owned(&query->key, reply);
  size_t made = 0;
  if (calls == NULL)
    return BELAY_ENOMEM;
  for (size_t i = 0; i < listed; i++) {
    belay__held_token_t token = belay__held_token(reply, i);
    if (!is_marked(query, token.mark))
      continue;
    calls[made++] = new_release(client, &query->key, owned, token);
  }
  operation->ops = &release_ops;
  operation->reply_lost = false; /* the lost reply was one to a query, which changes nothing */
  int error = belay__request_send_all(operation, calls, made);
  belay__free(client->belay, calls, n * sizeof(belay__call_t *));
  return error;
}

static int read_seen(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  const query_t *query = operation->room;
  size_t count, listed, n = 0;
  (void)call;
  if (!belay__held_check(reply, &count, &listed))
    return BELAY_EPROTO;
  for (size_t i = 0; i < listed; i++)
    n += is_marked(query, belay__held_token(reply, i).mark);
  if (n > query->marks_len) /* a holder is listed twice */
    return BELAY_EPROTO;
  if (listed < count)
    operation->values[NOT_LISTED] = (int64_t)(query->marks_len - n);
  operation->values[OTHERS] = (int64_t)(count - n);
  if (n == 0)
    return 0;
  int error = release(operation, reply, listed, n);
  return error == 0 ? BELAY__REQUEST_PARK : error;
}

static const belay__request_ops_t seen_ops = {
    .read = read_seen, .notify = notify_broken, .idempotent = true};

int belay_held_break(belay_client_t *client, belay_request_t *request, const belay_held_t *held,
                     belay_broken_cb cb) {
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  if (held == NULL || (held->holders == NULL && held->holders_len > 0))
    return belay__invalid(client->belay, held == NULL ? "held: NULL" : "holders: NULL");
  belay_held_t seen = *held;
  error = check(client, request, held->kind, held->name, seen.name_len, cb != NULL);
  if (error == 0)
    error = belay__check_range(client->belay, "holders_len",
                               held->holders_len > INT32_MAX ? 0 : (int64_t)held->holders_len, 1,
                               BELAY_HELD_HOLDERS_MAX);
  return error != 0 ? error : start(client, request, &seen_ops, &seen, (void (*)(void))cb);
}

/* The reentrant lock: the value of the key is the owner, not a token. A second key has the
 * tokens of the holds.
 *
 *    KEY          <the client's 40 digits>:<the owner>
 *    KEY::holds   token of a hold -> its end, and the number of holds with it
 *
 * A client that uses the key as a plain lock sees it held or free. Each handle is a lease of its
 * own and asks the server itself: a holder's further handle must not queue behind another owner.
 * There is no quorum form: the servers could count different numbers of holds and disagree about
 * the last one. */
#include "lease/kinds/reentrant.h"

#include <string.h>

#include "scripts.gen.h"

#define OWNER_MAX ((size_t)64)
#define INSTANCE_LEN (2 * BELAY__TOKEN_BYTES + 1) /* the digits and a colon */

static const char *const suffixes[] = {"::holds", NULL};

static void acquire(const belay__lease_t *lease, belay__call_t *call) {
  belay__lease_begin_acquire(lease, call, &belay__script_reentrant_acquire, 1);
  belay__call_arg(call, belay__lease_extra(lease), lease->extra_len);
  belay__lease_put_fence_ttl(lease, call);
}

/* Two items are a grant: how many holds there are, and its number. */
static int read_grant(belay__lease_t *lease, const belay__reply_t *reply) {
  int64_t holds;
  if (reply->count != 2 || !belay__reply_integer(reply->items[0], 1, INT32_MAX, &holds))
    return BELAY_EPROTO;
  bool counted = belay__reply_number(reply->items[1], 1, BELAY__FENCE_MAX, &lease->fence);
  if (counted != belay__lease_counts(lease) ||
      (!counted && !belay__reply_is(reply->items[1], "", 0)))
    return BELAY_EPROTO;
  lease->holds = (uint32_t)holds;
  return 0;
}

static int acquired(belay__lease_t *lease, const belay__call_t *call, const belay__reply_t *reply,
                    int64_t *holder_ms) {
  if (reply->type == BELAY__REPLY_ARRAY)
    return read_grant(lease, reply);
  int status = belay__lock_acquired(lease, call, reply, holder_ms);
  return status == BELAY_EHELD ? status : BELAY_EPROTO;
}

static const belay__kind_t kind = {
    .family = "lock",
    .suffixes = suffixes,
    .extend = &belay__script_reentrant_extend,
    .release = &belay__script_reentrant_release,
    .owned = true,
    .acquire = acquire,
    .acquired = acquired,
    .notify_owner = belay__lock_notify,
};

/* ---- making ---------------------------------------------------------------------------------------------- */

/* Drawn when it is first needed. */
static int draw_instance(belay_client_t *client) {
  if (client->has_instance)
    return 0;
  belay_t *belay = client->belay;
  int error = belay->host->random(belay, &client->instance, sizeof client->instance);
  client->has_instance = error == 0;
  return error;
}

static int check(belay_t *belay, size_t n, const belay_lock_options_t *o) {
  if (n > 1) {
    belay__detail(belay, "owner: not on several servers, whose counts of holds may differ");
    return BELAY_ESINGLE;
  }
  int error = belay__lock_refuse(belay, o, BELAY__WITHOUT_KEY, "a lock with an owner");
  if (error != 0)
    return error;
  return belay__check_bytes(belay, "owner", o->owner, 1, OWNER_MAX);
}

int belay__reentrant_new(belay_client_t *const *clients, size_t n, const char *name,
                         size_t name_len, const belay_lock_options_t *options, belay_lock_t **out) {
  int error = check(clients[0]->belay, n, options);
  if (error == 0)
    error = draw_instance(clients[0]);
  if (error != 0)
    return error;
  char owner[INSTANCE_LEN + OWNER_MAX];
  size_t len =
      belay__token_text(owner, &clients[0]->instance, options->owner.data, options->owner.len);
  belay__lock_spec_t spec = {.kind = &kind, .extra = owner, .extra_len = len};
  return belay__lock_make(clients, n, name, name_len, options, &spec, out);
}

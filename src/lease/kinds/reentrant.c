/* The reentrant lock: the value of the key is the owner, not a token. A second key has the
 * tokens of the holds.
 *
 *    KEY          <the client's 40 digits>:<the owner>
 *    KEY::holds   token of a hold -> its end, and the number of holds when it was granted
 *
 * A client that uses the key as a plain lock sees it held or free. Each handle is a lease of its
 * own and asks the server itself: another handle of the present owner must not queue behind a
 * waiter of another owner. There is no quorum form: the servers could count different numbers of
 * holds and disagree about the last one. */
#include "lease/kinds/lock.h"
#include "lease/wait/wake.h"
#include "scripts.gen.h"

static const char *const suffixes[] = {"::holds", NULL};

static void acquire(const belay__lease_t *lease, belay__call_t *call) {
  belay__lease_begin_acquire(lease, call, &belay__script_reentrant_acquire, 2);
  belay__call_arg(call, belay__lease_extra(lease), lease->extra_len);
  belay__wake_put_flag_ttl(lease, call);
  belay__lease_put_fence_ttl(lease, call);
}

/* Reads the reply of a grant: the number of holds, and the fencing number or an empty string. */
static int read_grant(belay__lease_t *lease, const belay__reply_t *reply) {
  int64_t holds;
  if (reply->count != 2 || !belay__reply_integer(reply->items[0], 1, INT32_MAX, &holds))
    return BELAY_EPROTO;
  uint64_t number;
  bool counted = belay__reply_number(reply->items[1], 1, BELAY__FENCE_MAX, &number);
  if (counted != belay__lease_counts(lease) ||
      (!counted && !belay__reply_is(reply->items[1], "", 0)))
    return BELAY_EPROTO;
  if (counted)
    belay__lease_set_fence(lease, number);
  lease->active->holds = (uint32_t)holds;
  return 0;
}

static int acquired(belay__lease_t *lease, const belay__call_t *call, const belay__reply_t *reply,
                    int64_t *holder_ms) {
  if (reply->type == BELAY__REPLY_ARRAY)
    return read_grant(lease, reply);
  int status = belay__lock_acquired(lease, call, reply, holder_ms);
  return status == BELAY_EHELD ? status : BELAY_EPROTO;
}

const belay__kind_t belay__reentrant_kind = {
    .family = "lock",
    .suffixes = suffixes,
    .extend = &belay__script_reentrant_extend,
    .release = &belay__script_reentrant_release,
    .owned = true,
    .acquire = acquire,
    .acquired = acquired,
    .notify_owner = belay__lock_notify,
};

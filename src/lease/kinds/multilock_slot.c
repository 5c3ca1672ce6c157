/* The lock on several keys of one deployment, of a cluster in one slot: one script takes all of them or none. Each is the plain lock's key,
 * with our token; so it excludes, and is excluded by, plain locks, and others of several keys that have one in
 * common. */
#include <string.h>

#include "core/call/publish.h"
#include "lease/kinds/lock.h"
#include "lease/kinds/multilock.h"
#include "scripts.gen.h"

static void acquire(const belay__lease_t *lease, belay__call_t *call) {
  belay__lease_begin(lease, call, &belay__script_multi_acquire, false, 2);
  belay__lease_put_token(lease, call);
  belay__call_arg_int(call, lease->ttl);
}

static int acquired(belay__lease_t *lease, const belay__call_t *call, const belay__reply_t *reply,
                    int64_t *holder_ms) {
  int status = belay__lock_acquired(lease, call, reply, holder_ms);
  bool own = status == BELAY_EHELD && belay__multilock_overlaps(lease);
  return own ? BELAY_EDUPLICATE : status;
}

/* If one key is lost, the script releases the others and wakes their waiters. */
static void extend_more(const belay__lease_t *lease, belay__call_t *call) {
  belay__publish_arg(call, lease->config->notify);
}

const belay__kind_t belay__multi_kind = {
    .family = "lock",
    .extend = &belay__script_multi_extend,
    .release = &belay__script_multi_release,
    .many = true,
    .client_queue = true,
    .acquire = acquire,
    .acquired = acquired,
    .extend_args = 1,
    .extend_more = extend_more,
    .notify_owner = belay__multilock_notify,
};

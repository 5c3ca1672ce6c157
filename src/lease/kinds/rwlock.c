/* Readers and writers: a lease in one of two modes.
 *
 *    KEY             the writer's token
 *    KEY::readers    the readers' tokens, each with the end of its hold
 *    KEY::waiting    tickets of readers that wait behind a waiting writer
 *    KEY::writers    tickets of waiting writers
 *    KEY::admitted   tickets of readers that waited while a writer held the lock: they go before
 *                    waiting writers
 *
 * A ticket expires waiter_ttl after its owner's last attempt. lease->mode is the present mode,
 * lease->next_mode the mode for the next extend, lease->active->sent_mode the mode of the extend in
 * flight. A downgrade takes effect before it is sent, because a writer's state on the server
 * suffices for a reader. An upgrade takes effect when a quorum has confirmed it. Until then the
 * handle is a reader, and after a failure the next extend restores that on every member. */
#include "belay/rwlock.h"

#include "core/call/publish.h"
#include "lease/kinds/lock_new.h"
#include "scripts.gen.h"

static const char *const suffixes[] = {"::readers", "::waiting", "::writers", "::admitted", NULL};

/* Adds the token of the reader whose grant gave this one its turn in the client's queue; otherwise
 * ''. Only that reader had a place on the server. While it holds the lock, the server admits the
 * readers behind it, too. */
static void put_granted_token(const belay__lease_t *lease, belay__call_t *call) {
  char text[BELAY__TOKEN_TEXT_MAX];
  size_t len = 0;
  const belay_client_t *client = call->client;
  const belay__active_t *active = lease->active;
  if (active->acquiring && active->shares_grant && active->attempts == 1)
    len = belay__token_text(text, &active->granted_token, client->owner, client->owner_len);
  belay__call_arg(call, text, len);
}

static void acquire(const belay__lease_t *lease, belay__call_t *call) {
  bool reads = lease->mode == BELAY_RWLOCK_READ;
  const belay__script_t *script = reads ? &belay__script_rwlock_read : &belay__script_rwlock_write;
  belay__lease_begin_acquire(lease, call, script, reads ? 3 : 2);
  belay__lease_put_ticket(lease, call);
  belay__call_arg_int(call, lease->config->waiter_ttl);
  if (reads)
    put_granted_token(lease, call);
  belay__lease_put_fence_ttl(lease, call);
}

static void extend_more(const belay__lease_t *lease, belay__call_t *call) {
  belay__call_arg(call, lease->active->sent_mode != BELAY__EXTEND_AS_READ ? "w" : "r", 1);
  belay__publish_arg(call, lease->config->notify);
}

static int extended(belay__lease_t *lease, int64_t reply) {
  return reply == 3 && lease->active->sent_mode != BELAY__EXTEND_AS_READ ? BELAY_ESHARED
                                                                         : BELAY_EPROTO;
}

static bool may_share(const belay__lease_t *granted, const belay__lease_t *waiting) {
  return granted->mode == BELAY_RWLOCK_READ && waiting->mode == BELAY_RWLOCK_READ;
}

static const belay__kind_t kind = {
    .family = "rwlock",
    .suffixes = suffixes,
    .extend = &belay__script_rwlock_extend,
    .release = &belay__script_rwlock_release,
    .client_queue = true,
    .tickets = true,
    .acquire = acquire,
    .acquired = belay__lock_acquired,
    .extend_args = 2,
    .extend_more = extend_more,
    .extended = extended,
    .may_share = may_share,
    .notify_owner = belay__lock_notify,
};

/* ---- the public functions ---- */

static int check(belay_t *belay, belay_rwlock_mode_t mode, const belay_lock_options_t *o) {
  unsigned without =
      BELAY__WITHOUT_OWNER | BELAY__WITHOUT_KEY | BELAY__WITHOUT_LABEL | BELAY__WITHOUT_FAIR;
  int error = belay__lock_refuse(belay, o, without, "readers and writers");
  if (error != 0)
    return error;
  return belay__check_range(belay, "mode", (int64_t)mode, BELAY_RWLOCK_READ, BELAY_RWLOCK_WRITE);
}

int belay_rwlock_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                     belay_rwlock_mode_t mode, const belay_lock_options_t *options,
                     belay_lock_t **out) {
  belay_lock_options_t o;
  int error = belay__lock_check(clients, n, options, &o, out);
  if (error == 0)
    error = check(clients[0]->belay, mode, &o);
  if (error != 0)
    return error;
  belay__lock_spec_t spec = {.kind = &kind, .mode = (uint8_t)mode};
  return belay__lock_make(clients, n, name, &o, &spec, out);
}

belay_rwlock_mode_t belay_rwlock_mode(const belay_lock_t *lock) {
  return lock != NULL ? (belay_rwlock_mode_t)belay__lock_lease((belay_lock_t *)lock)->mode
                      : BELAY_RWLOCK_READ;
}

static int change(belay_lock_t *lock, bool up, int64_t timeout_ms, belay_lock_cb cb) {
  int error = belay__lock_usable(lock, &timeout_ms);
  if (error != 0)
    return error;
  belay__lease_t *lease = belay__lock_lease(lock);
  if (lease->config->kind != &kind)
    return belay__invalid(belay__lease_belay(lease), "lock: not a reader's or writer's");
  uint8_t mode = lease->mode, want = lease->next_mode;
  lease->next_mode = up ? BELAY_RWLOCK_WRITE : BELAY_RWLOCK_READ;
  if (!up)
    lease->mode = BELAY_RWLOCK_READ;
  error = belay__lock_extend(lock, lease->ttl, timeout_ms, cb);
  if (error == 0) {
    lease->mode_uncertain |= mode != lease->next_mode; /* false: a plain extend */
    lease->upgrading = lease->next_mode != lease->mode;
  } else {
    lease->mode = mode;
    lease->next_mode = want;
  }
  return error;
}

int belay_rwlock_downgrade(belay_lock_t *lock, int64_t timeout_ms, belay_lock_cb cb) {
  return change(lock, false, timeout_ms, cb);
}

int belay_rwlock_upgrade(belay_lock_t *lock, int64_t timeout_ms, belay_lock_cb cb) {
  return change(lock, true, timeout_ms, cb);
}

/* A belay_lock_t: its construction for all kinds of locks, and the functions that kinds share. */
#ifndef BELAY_LEASE_KINDS_LOCK_H
#define BELAY_LEASE_KINDS_LOCK_H

#include "lease/machine/lease.h"
#include "lease/machine/operations.h"
#include "lease/quorum/command.h"

/* Parameters of belay__lock_make() that depend on the kind. */
typedef struct belay__lock_spec {
  const belay__kind_t *kind;
  const char *key; /* NULL: made of the namespace, the kind's family and the name */
  size_t key_len;
  const char *extra; /* stored behind the key: belay__lease_extra() */
  size_t extra_len;
  uint32_t limit, permits;
  uint8_t mode;
} belay__lock_spec_t;

/* Makes a lock over n clients, which the caller has checked. Checks the options and the name. With
 * spec->key the name is not used and may be absent. Returns 0 or an error. */
int belay__lock_make(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                     const belay_lock_options_t *options, const belay__lock_spec_t *spec,
                     belay_lock_t **out);

/* The plain lock, on one node or several; the fair lock (fair.c) and the reentrant lock
 * (reentrant.c), on one node. */
extern const belay__kind_t belay__lock_kind, belay__fair_kind, belay__reentrant_kind;

/* The `notify_owner` of kinds whose handle is a belay_lock_t. */
void belay__lock_notify(belay__lease_t *lease, belay__notice_t news, int status);

/* The `acquired` of kinds whose scripts reply as src/lua/lock/acquire.lua does, or as
 * acquire_fenced.lua if the script counts the grants. Reads the reply of SET NX GET, too.
 *
 *   0                granted now; or before, on one node
 *   BELAY_EDUPLICATE several nodes: granted before, because two clients reach the same server
 *   BELAY_EHELD      another holder has the lock: for n ms, if the reply is a number n > 0
 *   BELAY_EPROTO     another reply */
int belay__lock_acquired(belay__lease_t *lease, const belay__call_t *call,
                         const belay__reply_t *reply, int64_t *holder_ms);

/* Checks the handle, which may be NULL, and the timeout of an operation. BELAY_DEFAULT becomes the
 * timeout of the lock's options. Returns 0 or an error. */
int belay__lock_usable(belay_lock_t *lock, int64_t *timeout_ms);
/* Starts an extend. The caller has checked the arguments. cb may be NULL. */
int belay__lock_extend(belay_lock_t *lock, int64_t ttl_ms, int64_t timeout_ms, belay_lock_cb cb);

/* Flags for options that a kind does not permit. */
enum {
  BELAY__WITHOUT_OWNER = 1,
  BELAY__WITHOUT_KEY = 2,
  BELAY__WITHOUT_FENCING = 4,
  BELAY__WITHOUT_LABEL = 8,
  BELAY__WITHOUT_FAIR = 16,
  BELAY__WITHOUT_ON_LOST = 32
};

/* Returns 0, or BELAY_EINVAL with a detail if the caller set one of the options in `without`. kind:
 * text of the detail that names the kind. */
int belay__lock_refuse(belay_t *belay, const belay_lock_options_t *options, unsigned without,
                       const char *kind);

belay__lease_t *belay__lock_lease(const belay_lock_t *lock);

/* ---- lock_options.c ---- */

/* Checks the options of a lock over n nodes, and makes a configuration of them. The caller sets its
 * kind, limit and permits. client: the first one. Returns 0, or BELAY_EINVAL with a detail. */
int belay__lock_config(const belay_client_t *client, size_t n, const belay_lock_options_t *options,
                       belay__lease_config_t *config);

/* Checks the ttl of an extend: its range and, with a quarantine, that it is at most max_ttl_ms.
 * Returns 0, or BELAY_EINVAL with a detail. */
int belay__lock_check_ttl(const belay__lease_t *lease, int64_t ttl_ms);

#endif /* BELAY_LEASE_KINDS_LOCK_H */

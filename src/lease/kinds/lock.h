/* A belay_lock_t: its construction for all kinds of locks, and the functions that kinds share. */
#ifndef BELAY_LEASE_KINDS_LOCK_H
#define BELAY_LEASE_KINDS_LOCK_H

#include "lease/machine/lease.h"
#include "lease/machine/operations.h"
#include "lease/quorum/command.h"

/* The parameters of a lock that is made. */
typedef struct belay__lock_spec {
  const belay__kind_t *kind;
  const char *key; /* NULL: made of the namespace, the kind's family and the name */
  size_t key_len;
  const char *extra; /* stored behind the key: belay__lease_extra() */
  size_t extra_len;
  uint32_t limit, permits;
  uint8_t mode;
} belay__lock_spec_t;

/* Makes a lock over n clients that were checked. Checks the name, which is not used if the spec has
 * a key. */
int belay__lock_make(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                     const belay_lock_options_t *options, const belay__lock_spec_t *spec,
                     belay_lock_t **out);

/* The plain lock, on one node or several; the fair lock (fair.c) and the reentrant lock
 * (reentrant.c), on one node. */
extern const belay__kind_t belay__lock_kind, belay__fair_kind, belay__reentrant_kind;

/* The `notify_owner` of kinds whose handle is a belay_lock_t. */
void belay__lock_notify(belay__lease_t *lease, belay__notice_t news, int status);

/* The `acquired` of kinds whose scripts reply as src/lua/lock/acquire_fenced.lua does: 0, or a
 * string if grants are counted: granted; -1: granted before; another number: BELAY_EHELD, for n
 * milliseconds if n is positive. Other replies are BELAY_EPROTO. */
int belay__lock_acquired(belay__lease_t *lease, const belay__call_t *call,
                         const belay__reply_t *reply, int64_t *holder_ms);

/* Checks the handle and the timeout of an operation, and resolves a default timeout. Returns 0 or
 * an error. */
int belay__lock_usable(belay_lock_t *lock, int64_t *timeout_ms);
/* Starts an extend with arguments that were checked. cb may be NULL. */
int belay__lock_extend(belay_lock_t *lock, int64_t ttl_ms, int64_t timeout_ms, belay_lock_cb cb);

/* Options that are not permitted for a kind. */
enum {
  BELAY__WITHOUT_OWNER = 1,
  BELAY__WITHOUT_KEY = 2,
  BELAY__WITHOUT_FENCING = 4,
  BELAY__WITHOUT_LABEL = 8,
  BELAY__WITHOUT_FAIR = 16,
  BELAY__WITHOUT_ON_LOST = 32
};

/* Returns 0, or BELAY_EINVAL with a detail if one of the options `without` is set. kind: in the
 * detail. */
int belay__lock_refuse(belay_t *belay, const belay_lock_options_t *options, unsigned without,
                       const char *kind);

belay__lease_t *belay__lock_lease(const belay_lock_t *lock);

/* ---- lock_options.c ---- */

/* Checks the options of a lock over n nodes, and makes a configuration of them. Returns 0, or
 * BELAY_EINVAL with a detail. */
int belay__lock_config(const belay_client_t *client, size_t n, const belay_lock_options_t *options,
                       belay__lease_config_t *config);

/* Checks another ttl for a lock that exists: its range, and max_ttl_ms with a quarantine. Returns
 * 0, or BELAY_EINVAL with a detail. */
int belay__lock_check_ttl(const belay__lease_t *lease, int64_t ttl_ms);

#endif /* BELAY_LEASE_KINDS_LOCK_H */

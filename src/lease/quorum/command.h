/* The commands of a lease: keys, tokens, scripts. No function here changes a lease. */
#ifndef BELAY_LEASE_QUORUM_COMMAND_H
#define BELAY_LEASE_QUORUM_COMMAND_H

#include "lease/machine/lease.h"

/* Time for which the server remembers a fencing number after its grant. */
#define BELAY__FENCE_TTL_MS INT64_C(604800000)
#define BELAY__FENCE_MAX ((UINT64_C(1) << 53) - 1)
#define BELAY__TICKET_TEXT_MAX 16

/* Writes the lease's token. Returns its length. */
size_t belay__lease_token(const belay__lease_t *lease, char out[BELAY__TOKEN_TEXT_MAX]);

/* Writes a ticket. Returns its length; 0 for no ticket. */
size_t belay__ticket_text(uint64_t ticket, char out[BELAY__TICKET_TEXT_MAX]);

/* Returns the key at *at in the list of a kind with `many`, and moves *at behind it; NULL at the
 * end. Each key in the list is a uint16_t with its length, and its bytes. */
const char *belay__many_next(const char *list, size_t list_len, size_t *at, size_t *len);

/* True if WRONGTYPE means that the lease is not on the server. With several keys, one may have
 * another type and the others may be ours. */
bool belay__kind_has_one_key(const belay__kind_t *kind);

/* Begins a script with the lease's keys, and with the key of the fencing counter as the last one if
 * `fence`. args: number of arguments that the caller adds. */
void belay__lease_begin(const belay__lease_t *lease, belay__call_t *call,
                        const belay__script_t *script, bool fence, size_t args);

/* Begins an acquire script: the lease's keys, the key of the fencing counter if one node counts the
 * grants, the token, the ttl. The caller adds args arguments, and then
 * belay__lease_put_fence_ttl(). */
void belay__lease_begin_acquire(const belay__lease_t *lease, belay__call_t *call,
                                const belay__script_t *script, size_t args);

/* Adds BELAY__FENCE_TTL_MS if one node counts the grants. */
void belay__lease_put_fence_ttl(const belay__lease_t *lease, belay__call_t *call);

/* Adds the token; the ticket, or '' if there is none. */
void belay__lease_put_token(const belay__lease_t *lease, belay__call_t *call);
void belay__lease_put_ticket(const belay__lease_t *lease, belay__call_t *call);

/* The tokens and tickets that a release removes. */
typedef struct belay__release {
  char token[BELAY__TOKEN_TEXT_MAX];
  size_t token_len;                  /* 0: none */
  char other[BELAY__TOKEN_TEXT_MAX]; /* a ticket, or another token: see kind->release */
  size_t other_len;
  bool notify; /* true if waiters are notified */
  /* true if a native command may be used, because the caller sends belay__wake_build_publish() */
  bool separate_publish;
} belay__release_t;

/* Builds the release of a kind. */
void belay__release_build(const belay__kind_t *kind, const char *key, size_t key_len,
                          const belay__release_t *release, belay__call_t *call);

/* Reads its reply, which is no error. *n: 0: the lock was not ours; otherwise 1 + the number of
 * connections that got the message. */
bool belay__release_read(const belay__call_t *call, const belay__reply_t *reply, int64_t *n);

/* Builds the command of the current round. retake: an extend that sets a missing key again. */
void belay__lease_build_command(const belay__lease_t *lease, belay__call_t *call, bool retake);

#endif /* BELAY_LEASE_QUORUM_COMMAND_H */

/* The commands of a lease: keys, tokens, scripts. No function here changes a lease. */
#ifndef BELAY_LEASE_QUORUM_COMMAND_H
#define BELAY_LEASE_QUORUM_COMMAND_H

#include "lease/machine/lease.h"

/* Time for which a server remembers a fencing number after it was stored, in ms. */
#define BELAY__FENCE_TTL_MS INT64_C(604800000)
#define BELAY__FENCE_MAX ((UINT64_C(1) << 53) - 1)
#define BELAY__TICKET_TEXT_MAX 16

/* Writes the lease's token as text. Returns the length of the text. */
size_t belay__lease_token(const belay__lease_t *lease, char out[BELAY__TOKEN_TEXT_MAX]);

/* Writes a ticket as text. Returns the length of the text; 0 if there is no ticket. */
size_t belay__ticket_text(uint64_t ticket, char out[BELAY__TICKET_TEXT_MAX]);

/* Returns the key at *at in the list of a kind with `many`, and moves *at behind it; NULL at the
 * end. Each key in the list is a uint16_t with its length, and its bytes. */
const char *belay__many_next(const char *list, size_t list_len, size_t *at, size_t *len);

/* True if the error WRONGTYPE means that the lease is not on the server. With several keys, one key
 * can have another type while the others still have our token. */
bool belay__kind_has_one_key(const belay__kind_t *kind);

/* Begins a script with the lease's keys. If `fence`, the last key is the fencing counter. args:
 * number of arguments that the caller adds. */
void belay__lease_begin(const belay__lease_t *lease, belay__call_t *call,
                        const belay__script_t *script, bool fence, size_t args);

/* Begins an acquire script: the lease's keys, the key of the fencing counter if
 * belay__lease_counts(), the token, the ttl. The caller adds args arguments, and then calls
 * belay__lease_put_fence_ttl(). */
void belay__lease_begin_acquire(const belay__lease_t *lease, belay__call_t *call,
                                const belay__script_t *script, size_t args);

/* Adds BELAY__FENCE_TTL_MS if belay__lease_counts(). */
void belay__lease_put_fence_ttl(const belay__lease_t *lease, belay__call_t *call);

/* Add the lease's token, or its ticket. Without a ticket the second function adds ''. */
void belay__lease_put_token(const belay__lease_t *lease, belay__call_t *call);
void belay__lease_put_ticket(const belay__lease_t *lease, belay__call_t *call);

/* The tokens and tickets that a release removes. */
typedef struct belay__release {
  char token[BELAY__TOKEN_TEXT_MAX];
  size_t token_len;                  /* 0: none */
  char other[BELAY__TOKEN_TEXT_MAX]; /* a ticket, or another token: see kind->release */
  size_t other_len;
  bool notify; /* true if waiters are notified */
  /* true if a native command may be used although it publishes nothing, because the caller also
   * sends belay__wake_build_publish() */
  bool separate_publish;
} belay__release_t;

/* Builds the release of a kind. */
void belay__release_build(const belay__kind_t *kind, const char *key, size_t key_len,
                          const belay__release_t *release, belay__call_t *call);

/* Reads the reply to a release, if it is not an error reply. Returns false if it is not valid. *n
 * is 0 if the token did not have the lease, else 1 + the number of connections that got the message
 * (1 after a native command). */
bool belay__release_read(const belay__call_t *call, const belay__reply_t *reply, int64_t *n);

/* Builds the command of the current round. retake: true if an extend sets a missing key again. */
void belay__lease_build_command(const belay__lease_t *lease, belay__call_t *call, bool retake);

#endif /* BELAY_LEASE_QUORUM_COMMAND_H */

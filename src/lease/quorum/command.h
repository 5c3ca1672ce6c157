/* The commands that a lease sends: keys, tokens, scripts. Nothing here changes a lease. */
#ifndef BELAY_LEASE_QUORUM_COMMAND_H
#define BELAY_LEASE_QUORUM_COMMAND_H

#include "lease/machine/lease.h"

/* time for which a number is remembered after its grant */
#define BELAY__FENCE_TTL_MS INT64_C(604800000)
#define BELAY__FENCE_MAX ((UINT64_C(1) << 53) - 1)
#define BELAY__TICKET_TEXT_MAX 16

/* The present lease's token, as it goes over the wire; returns its length. */
size_t belay__lease_token(const belay__lease_t *lease, char out[BELAY__TOKEN_TEXT_MAX]);

/* A ticket, as it stands in a server's queue; returns its length, 0 for none. */
size_t belay__ticket_text(uint64_t ticket, char out[BELAY__TICKET_TEXT_MAX]);

/* The key of a kind of many: each is a uint16_t, its length, and its bytes. The one at *at, which moves behind it;
 * NULL at the end. */
const char *belay__many_next(const char *list, size_t list_len, size_t *at, size_t *len);

/* Of several keys one may be of another type and the others ours: then WRONGTYPE does not mean that nothing is. */
bool belay__kind_has_one_key(const belay__kind_t *kind);

/* Begins a script with the lease's keys, and that of the fencing counter as the last, if `fence`; a WAIT may
 * follow. args arguments are to be added. */
void belay__lease_begin(const belay__lease_t *lease, belay__call_t *call,
                        const belay__script_t *script, bool fence, size_t args);

/* Begins an acquire script: the lease's keys; the fencing counter's key, if one node counts the grants; the token; the
 * ttl. args arguments are to be added, and then belay__lease_put_fence_ttl(). */
void belay__lease_begin_acquire(const belay__lease_t *lease, belay__call_t *call,
                                const belay__script_t *script, size_t args);

/* Adds for how long the fencing number is remembered, if one node counts the grants. */
void belay__lease_put_fence_ttl(const belay__lease_t *lease, belay__call_t *call);

/* The tokens and tickets that a release removes. */
typedef struct belay__release {
  char token[BELAY__TOKEN_TEXT_MAX];
  size_t token_len;                  /* 0: none */
  char other[BELAY__TOKEN_TEXT_MAX]; /* a ticket, or another token; as kind->release has it */
  size_t other_len;
  bool notify; /* tells who waits */
  bool
      /* true if a native release may be used: the caller then sends belay__wake_build_publish()
       * itself */
      separate_publish;
} belay__release_t;

/* belay__release_build() fills in the release of a kind. belay__release_read() reads its reply,
 * which is no error: 1 + the number of connections that got the message; 0: the lock was not
 * ours. */
void belay__release_build(const belay__kind_t *kind, const char *key, size_t key_len,
                          const belay__release_t *release, belay__call_t *call);
bool belay__release_read(const belay__call_t *call, const belay__reply_t *reply, int64_t *n);

/* Adds the token; and the ticket, or '' if there is none. */
void belay__lease_put_token(const belay__lease_t *lease, belay__call_t *call);
void belay__lease_put_ticket(const belay__lease_t *lease, belay__call_t *call);

/* Fills in the present round's. retake: an extend that takes it again if it is gone. */
void belay__lease_build_command(const belay__lease_t *lease, belay__call_t *call, bool retake);

#endif /* BELAY_LEASE_QUORUM_COMMAND_H */

/* What the files of session contexts share. */
#ifndef BELAY_DATA_SESSION_SESSION_H
#define BELAY_DATA_SESSION_SESSION_H

#include "belay/session.h"

#include "core/client/handle.h"

#define BELAY__SESSION_SHARDS 16 /* keys of the index of a kind */

struct belay_session {
  belay__handle_t handle; /* first */
  belay__list_t watches;
  int64_t ttl_ms, max_events, op_ttl_ms, notice_keep_ms;
  bool notice;
};

/* In which key of the index what is due of a user is; by how he is written in keys. */
uint32_t belay__session_shard(const char *user, size_t len);
uint32_t belay__session_shard_escaped(const char *escaped, size_t len);

/* Adds that key. */
void belay__session_due_arg(const belay_session_t *session, belay__call_t *call, uint32_t shard);

/* A context as it stands in the index: LENGTH:ID and the user. */
#define BELAY__SESSION_ENTRY_MAX (3 + BELAY_SESSION_ID_MAX + BELAY_SESSION_USER_MAX)
size_t belay__session_entry(char out[BELAY__SESSION_ENTRY_MAX], const void *id, size_t id_len,
                            const char *user, size_t user_len);
/* False if it is none. */
bool belay__session_entry_read(const char *entry, size_t len, belay_session_ended_t *out);

/* Enters, moves, takes out n of them, with two more arguments each, which are the caller's to add; mode: "NX", "XX", or
 * until when they are claimed. NULL if memory is out. */
belay__call_t *belay__session_index(const belay_session_t *session, uint32_t shard,
                                    const char *mode, size_t n);

/* watch.c: the session closes; and is out of patience. */
void belay__session_watches_close(belay_session_t *session);
void belay__session_watches_abort(belay_session_t *session);

#endif /* BELAY_DATA_SESSION_SESSION_H */

/* Held objects as read from the server (held.c). Queries and breaks of one object are in
 * held_query.c, lists in admin/sweep_held.c. */
#ifndef BELAY_ADMIN_HELD_H
#define BELAY_ADMIN_HELD_H

#include "belay/held.h"
#include "core/client/request.h"
#include "core/call/script.h"

#define BELAY__HELD_SUFFIXES_MAX 6

/* How a kind keeps what it keeps. */
typedef struct belay__held_kind {
  const char *name;            /* the family in its keys */
  const char *alternate;       /* it may be held where there is this part and no key; or NULL */
  const belay__script_t *read; /* reads the key and these: */
  const char *suffixes[BELAY__HELD_SUFFIXES_MAX]; /* up to a NULL */
  const belay__script_t *release;                 /* gives back by a token the key and these: */
  const char *release_suffixes[BELAY__HELD_SUFFIXES_MAX];
} belay__held_kind_t;

extern const belay__held_kind_t belay__held_kinds[BELAY_HELD_KINDS];

/* Which key it is. */
typedef struct belay__held_key {
  belay_held_kind_t kind;
  const char *key; /* up to the brace that closes, key_len bytes */
  size_t key_len;
  const char *name; /* in it, escaped */
  size_t name_len;
  /* true if the key was found by the kind's alternate suffix, not by the key itself */
  bool alternate;
} belay__held_key_t;

/* Whether something of the client's namespace itself may be held where there is this key. */
bool belay__held_parse(const belay_client_t *client, const char *key, size_t len,
                       belay__held_key_t *out);

/* Makes a call of a script with the key, the key with each of these suffixes
 * (up to a NULL), and `args` arguments still to be added. NULL: memory is out. */
belay__call_t *belay__held_script(belay_client_t *client, belay__conn_class_t conn_class,
                                  const belay__held_key_t *key, const belay__script_t *script,
                                  const char *const *suffixes, size_t args);

/* Makes a query of the holders. It returns at most `most` of them, or fewer if the client's
 * max_reply is too small. NULL: memory is out. */
belay__call_t *belay__held_call(belay_client_t *client, belay__conn_class_t conn_class,
                                const belay__held_key_t *key, size_t most);

/* A holder, as it stands in a reply. */
typedef struct belay__held_token {
  const char *token;
  size_t len;
  uint64_t mark;
} belay__held_token_t;

#define BELAY__HELD_HEAD ((size_t)7) /* items of a reply before the holders */
#define BELAY__HELD_EACH ((size_t)4) /* and of each of these */

/* Whether it is a reply of the scripts; then *count is how many holders there are, and *n how many it tells. */
bool belay__held_check(const belay__reply_t *reply, size_t *count, size_t *n);
/* The i-th holder. */
belay__held_token_t belay__held_token(const belay__reply_t *reply, size_t i);
/* Of a lock: whether it is held by its owner, whose holds these are. */
bool belay__held_is_owned(const belay__held_key_t *key, const belay__reply_t *reply);

/* The result, in one block of memory with all that it points to. */
typedef struct belay__held {
  belay__list_t node; /* its owner's */
  size_t size;
  belay_held_t held;
} belay__held_t;

/* Makes that of a reply: 0, BELAY_EPROTO or BELAY_ENOMEM. It is given back by belay__free(), with its size. */
int belay__held_make(belay_t *belay, const belay__held_key_t *key, const belay__reply_t *reply,
                     belay__held_t **out);

#endif /* BELAY_ADMIN_HELD_H */

/* Held objects as read from the server (held.c). Queries and breaks of one object are in
 * held_query.c, lists in admin/sweep_held.c. */
#ifndef BELAY_ADMIN_HELD_H
#define BELAY_ADMIN_HELD_H

#include "belay/held.h"
#include "core/client/request.h"
#include "core/call/script.h"

#define BELAY__HELD_SUFFIXES_MAX 6

/* The keys and scripts of a kind. */
typedef struct belay__held_kind {
  const char *name;      /* Family in its keys */
  const char *alternate; /* Part that may exist without the key of a held object; or NULL */
  /* Script that reads the key and the keys with these suffixes, up to a NULL */
  const belay__script_t *read;
  const char *suffixes[BELAY__HELD_SUFFIXES_MAX];
  /* Script that releases a token */
  const belay__script_t *release;
  const char *release_suffixes[BELAY__HELD_SUFFIXES_MAX];
} belay__held_kind_t;

extern const belay__held_kind_t belay__held_kinds[BELAY_HELD_KINDS];

/* A key of a held object. */
typedef struct belay__held_key {
  belay_held_kind_t kind;
  const char *key; /* The key up to the closing brace */
  size_t key_len;
  const char *name; /* The name in it, escaped */
  size_t name_len;
  /* true if the key was found by the kind's alternate suffix, not by the key itself */
  bool alternate;
} belay__held_key_t;

/* true if this may be a key of a held object in the client's namespace. */
bool belay__held_parse(const belay_client_t *client, const char *key, size_t len,
                       belay__held_key_t *out);

/* Make a call of a script with the key, the key with each of these suffixes
 * (up to a NULL), and `args` arguments still to be added. NULL: memory is out. */
belay__call_t *belay__held_script(belay_client_t *client, belay__conn_class_t conn_class,
                                  const belay__held_key_t *key, const belay__script_t *script,
                                  const char *const *suffixes, size_t args);

/* Make a query of the holders. It returns at most `most` of them, or fewer if the client's
 * max_reply is too small. NULL: memory is out. */
belay__call_t *belay__held_call(belay_client_t *client, belay__conn_class_t conn_class,
                                const belay__held_key_t *key, size_t most);

/* A holder in a reply. */
typedef struct belay__held_token {
  const char *token;
  size_t len;
  uint64_t mark;
} belay__held_token_t;

#define BELAY__HELD_HEAD ((size_t)7) /* Items of a reply before the holders */
#define BELAY__HELD_EACH ((size_t)4) /* Items of each holder */

/* true if the reply is valid. *count: number of holders; *n: number of holders in the reply. */
bool belay__held_check(const belay__reply_t *reply, size_t *count, size_t *n);
/* The i-th holder. */
belay__held_token_t belay__held_token(const belay__reply_t *reply, size_t i);
/* true if it is a reentrant lock; then the holders are the holds of one owner. */
bool belay__held_is_owned(const belay__held_key_t *key, const belay__reply_t *reply);

/* The result, in one block of memory with its texts. */
typedef struct belay__held {
  belay__list_t node; /* Link in a list of the owner */
  size_t size;
  belay_held_t held;
} belay__held_t;

/* Make the result of a reply. Returns 0, BELAY_EPROTO or BELAY_ENOMEM. Free it with belay__free()
 * and its size. */
int belay__held_make(belay_t *belay, const belay__held_key_t *key, const belay__reply_t *reply,
                     belay__held_t **out);

#endif /* BELAY_ADMIN_HELD_H */

/* Held objects, as held.c reads them from the server. Queries and breaks of one object are in
 * held_query.c, lists of all objects in sweep_held.c. */
#ifndef BELAY_ADMIN_HELD_H
#define BELAY_ADMIN_HELD_H

#include "belay/held.h"
#include "core/client/request.h"
#include "core/call/script.h"

#define BELAY__HELD_SUFFIXES_MAX 6

/* The keys and scripts of a kind. */
typedef struct belay__held_kind {
  const char *name; /* Family, as the keys contain it */
  /* Suffix of a key that can exist while the object is held without its main key; or NULL */
  const char *alternate;
  /* Script that reads the holders, from the main key and its `suffixes` */
  const belay__script_t *read;
  /* Suffixes of the further keys of `read`; NULL after the last */
  const char *suffixes[BELAY__HELD_SUFFIXES_MAX];
  /* Script that releases a token, with the main key and its `release_suffixes` */
  const belay__script_t *release;
  /* Suffixes of the further keys of `release`; NULL after the last */
  const char *release_suffixes[BELAY__HELD_SUFFIXES_MAX];
} belay__held_kind_t;

extern const belay__held_kind_t belay__held_kinds[BELAY_HELD_KINDS];

/* A parsed key of a held object. Its pointers point into the text of the parsed key. */
typedef struct belay__held_key {
  belay_held_kind_t kind;
  const char *key; /* The main key: the parsed key up to the closing brace, included */
  size_t key_len;
  const char *name; /* The name of the object, escaped as in the key */
  size_t name_len;
  /* true if the parsed key has the `alternate` suffix of the kind; false if it is the main key */
  bool alternate;
} belay__held_key_t;

/* Parses a key. true if it has the form of a main or alternate key of a held object in the client's
 * namespace. */
bool belay__held_parse(const belay_client_t *client, const char *key, size_t len,
                       belay__held_key_t *out);

/* Make a call of a script. Its keys are the main key, and the main key with each of the suffixes
 * (NULL after the last). The caller adds `args` arguments. NULL: memory is out. */
belay__call_t *belay__held_script(belay_client_t *client, belay__conn_class_t conn_class,
                                  const belay__held_key_t *key, const belay__script_t *script,
                                  const char *const *suffixes, size_t args);

/* Make a call that reads the holders: at most `most` of them, or fewer if the client's max_reply
 * has no room for that many. NULL: memory is out. */
belay__call_t *belay__held_call(belay_client_t *client, belay__conn_class_t conn_class,
                                const belay__held_key_t *key, size_t most);

/* The token of a holder in a reply, and its mark: the hash of the token that users see. */
typedef struct belay__held_token {
  const char *token;
  size_t len;
  uint64_t mark;
} belay__held_token_t;

#define BELAY__HELD_HEAD ((size_t)7) /* Items of a reply before the holders */
#define BELAY__HELD_EACH ((size_t)4) /* Items of each holder */

/* true if the reply to belay__held_call() is valid. *count: number of holders on the server; *n:
 * number of holders in the reply, which may be less. */
bool belay__held_check(const belay__reply_t *reply, size_t *count, size_t *n);
/* The token of the i-th holder in a valid reply. */
belay__held_token_t belay__held_token(const belay__reply_t *reply, size_t i);
/* true if the object is a lock whose owner has reentrant holds; then each holder in the reply is
 * one hold of that owner. */
bool belay__held_is_owned(const belay__held_key_t *key, const belay__reply_t *reply);

/* A held object for the user, in one block of memory with its holders and texts. */
typedef struct belay__held {
  belay__list_t node; /* Link in a list of the owner */
  size_t size;
  belay_held_t held;
} belay__held_t;

/* Make a belay__held_t from a reply. Returns 0, BELAY_EPROTO or BELAY_ENOMEM. The caller frees *out
 * with belay__free() and its size. */
int belay__held_make(belay_t *belay, const belay__held_key_t *key, const belay__reply_t *reply,
                     belay__held_t **out);

#endif /* BELAY_ADMIN_HELD_H */

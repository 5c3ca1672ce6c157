/* A family: what every handle of things on keys begins with. It knows its client, the beginning of its keys, its
 * requests, and how it ends.
 *
 *   OPEN --close, the client closes--> CLOSING: its requests are canceled; ops->close
 *                                        |--nobody holds it any more; the task
 *                                        v
 *                                      ops->gone tells the user; gone
 *
 * The task is queued behind those of the requests, so that they are told before. What closes keeps the loop alive.
 *
 * Its keys are NAMESPACE::FAMILY::NAME::{KEY}PART, or NAMESPACE::FAMILY::{NAME}PART for a family that is one thing, such
 * as a Bloom filter: all keys in one pair of braces live together in one slot of a cluster. */
#ifndef BELAY_CORE_CLIENT_HANDLE_H
#define BELAY_CORE_CLIENT_HANDLE_H

#include "core/client/request.h"

#define BELAY__FAMILY_NAME_MAX ((size_t)128) /* bytes of a handle's name */
#define BELAY__FAMILY_KEY_MAX ((size_t)1024) /* bytes of a key in it */
#define BELAY__FAMILY_KEYS_MAX 65536         /* keys or items in one request */

typedef struct belay__family belay__family_t;

/* Something that belongs to a family, closes with it, and is gone before it. */
typedef struct belay__part belay__part_t;

struct belay__part {
  belay__list_t node;
  /* Begin to end; called once. It may leave at once; no other part leaves in it, and nothing that is an object of the
   * client's goes: both lists are being walked. */
  void (*close)(belay__part_t *part);
};

typedef struct belay__family_ops {
  const char *name; /* in the keys; no byte of it is escaped */
  size_t size;      /* of the handle, which begins with the family */
  bool whole;       /* the handle's name is in the braces: the handle is one thing */

  /* Begin to end what runs in the background. NULL: nothing does. */
  void (*close)(belay__family_t *family);
  /* The client is out of patience: end it now. NULL: nothing takes time. */
  void (*abort)(belay__family_t *family);
  /* Give back what is the handle's alone, and call back. The memory of the handle is the family's to give back. */
  void (*gone)(belay__family_t *family);
} belay__family_ops_t;

struct belay__family {
  belay__object_t object; /* of the client */
  belay_client_t *client;
  const belay__family_ops_t *ops;
  belay__list_t requests; /* that are pending */
  belay__list_t parts;
  belay__list_t returns; /* of what is given back: belay__family_give_back() */
  belay__task_t task;
  void *data;             /* the user's */
  void (*close_cb)(void); /* the user's, of the type that ops->gone casts it to; or NULL */
  unsigned holds;
  bool closing;
  uint32_t affinity; /* of the name */
  size_t prefix_len;
  char *prefix; /* of its keys, from the namespace into the braces */
};

/* A new one, everything behind the family 0. Returns 0, BELAY_EINVAL (with a detail), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. What it is given may be NULL, but for ops. A whole one needs a name. */
int belay__family_new(belay_client_t *client, const belay__family_ops_t *ops, const char *name,
                      size_t name_len, belay__family_t **out);

/* What belay_X_close() does: checks, and begins to close. family may be NULL. */
int belay__family_close(belay__family_t *family, void (*cb)(void));

/* What belay_X_data() says. family may be NULL. */
void *belay__family_data(const belay__family_t *family);

/* Of one that is not closing. part->close is set. */
void belay__family_join(belay__family_t *family, belay__part_t *part);
/* The part touches the family no more. One that closes is gone some time after the last of them has left, and never
 * inside this. */
void belay__family_leave(belay__family_t *family, belay__part_t *part);

/* It is not gone before whoever holds it lets it go; which may be in ops->close. */
void belay__family_hold(belay__family_t *family);
void belay__family_free(belay__family_t *family);

/* Sends a call that gives something back (NULL: memory was out; then nothing is sent). Nobody is told how it ends. The
 * handle is not gone before that; a client that is out of patience abandons the call. */
void belay__family_give_back(belay__family_t *family, belay__call_t *call);

/* What all operations check: 0, or an error, with a detail where it is BELAY_EINVAL. NULL is BELAY_EINVAL. */
int belay__family_check(const belay__family_t *family);
/* And that the request is one, and that there is a callback. */
int belay__family_check_request(const belay__family_t *family, const belay_request_t *request,
                                bool has_cb);
/* And of one key: 1 to BELAY__FAMILY_KEY_MAX bytes. */
int belay__family_check_key(const belay__family_t *family, const belay_request_t *request,
                            const char *key, size_t key_len, bool has_cb);
/* Of an array of n items, 1 to BELAY__FAMILY_KEYS_MAX of them, each of min_len to max_len bytes. */
int belay__family_check_items(const belay__family_t *family, const belay_bytes_t *items, size_t n,
                              size_t min_len, size_t max_len);

/* Adds a key: prefix, the key (escaped; none in a whole family), and what closes the braces: "}", or "}::part". The
 * call's affinity is that of the key, or of the name: calls of one key share a connection, and so keep their order. */
void belay__family_arg(const belay__family_t *family, belay__call_t *call, const char *key,
                       size_t key_len, const char *tail);

/* A request that is one call (NULL: memory was out), with the family as its context. */
int belay__family_start(belay__family_t *family, belay_request_t *request, belay__call_t *call,
                        const belay__request_ops_t *ops, void (*cb)(void));

/* A request of several steps: PARKED, with the family as its context. */
int belay__family_begin(belay__family_t *family, belay_request_t *request,
                        const belay__request_ops_t *ops, void (*cb)(void), belay__pending_t **out);

/* What is kept there is not what this expects: makes text, behind the key of the call, the detail of BELAY_EMISMATCH,
 * which is returned. */
int belay__family_mismatch(const belay__call_t *call, const char *text);

#endif /* BELAY_CORE_CLIENT_HANDLE_H */

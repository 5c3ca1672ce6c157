/* A handle: the base of what a program opens on a client and closes (a limiter, a Bloom filter, a cache). It has its
 * client, the prefix of its keys, its requests and its children.
 *
 *   OPEN --close, the client closes--> CLOSING: its requests are canceled; ops->close
 *                                        |--nobody holds it any more; the task
 *                                        v
 *                                      ops->gone tells the user; gone
 *
 * The task is queued behind those of the requests, so that they are told before. What closes keeps the loop alive.
 *
 * Its keys are NAMESPACE::FAMILY::NAME::{KEY}PART, or NAMESPACE::FAMILY::{NAME}PART for a handle that is one thing, such
 * as a Bloom filter: all keys in one pair of braces live together in one slot of a cluster. */
#ifndef BELAY_CORE_CLIENT_HANDLE_H
#define BELAY_CORE_CLIENT_HANDLE_H

#include "core/client/request.h"

#define BELAY__HANDLE_NAME_MAX ((size_t)128) /* bytes of a handle's name */
#define BELAY__HANDLE_KEY_MAX ((size_t)1024) /* bytes of a key in it */
#define BELAY__HANDLE_KEYS_MAX 65536         /* keys or items in one request */

typedef struct belay__handle belay__handle_t;

/* An object of a handle, such as a load of a cache. It closes with the handle and is freed before it. */
typedef struct belay__child belay__child_t;

struct belay__child {
  belay__list_t node;
  /* Begin to end; called once. It may leave at once; no other child leaves in it, and nothing that is an object of the
   * client's goes: both lists are being walked. */
  void (*close)(belay__child_t *child);
};

typedef struct belay__handle_ops {
  const char *name; /* in the keys; no byte of it is escaped */
  size_t size;      /* of the struct, which begins with the handle */
  bool whole;       /* the handle's name is in the braces: the handle is one thing */

  /* Begin to end what runs in the background. NULL: nothing does. */
  void (*close)(belay__handle_t *handle);
  /* The client is out of patience: end it now. NULL: nothing takes time. */
  void (*abort)(belay__handle_t *handle);
  /* Free the fields of the struct, and run the close callback. The core frees the struct itself. */
  void (*gone)(belay__handle_t *handle);
} belay__handle_ops_t;

struct belay__handle {
  belay__object_t object; /* of the client */
  belay_client_t *client;
  const belay__handle_ops_t *ops;
  belay__list_t requests; /* that are pending */
  belay__list_t children;
  belay__list_t returns; /* of what is given back: belay__handle_give_back() */
  belay__task_t task;
  void *data;             /* the user's */
  void (*close_cb)(void); /* the user's, of the type that ops->gone casts it to; or NULL */
  unsigned holds;
  bool closing;
  uint32_t affinity; /* of the name */
  size_t prefix_len;
  char *prefix; /* of its keys, from the namespace into the braces */
};

/* A new one, everything behind the handle 0. Returns 0, BELAY_EINVAL (with a detail), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. What it is given may be NULL, but for ops. A whole one needs a name. */
int belay__handle_new(belay_client_t *client, const belay__handle_ops_t *ops, const char *name,
                      size_t name_len, belay__handle_t **out);

/* What belay_X_close() does: checks, and begins to close. handle may be NULL. */
int belay__handle_close(belay__handle_t *handle, void (*cb)(void));

/* What belay_X_data() says. handle may be NULL. */
void *belay__handle_data(const belay__handle_t *handle);

/* Of one that is not closing. child->close is set. */
void belay__handle_attach(belay__handle_t *handle, belay__child_t *child);
/* The child touches the handle no more. One that closes is gone some time after the last of them has left, and never
 * inside this. */
void belay__handle_detach(belay__handle_t *handle, belay__child_t *child);

/* It is not gone before whoever holds it lets it go; which may be in ops->close. */
void belay__handle_hold(belay__handle_t *handle);
void belay__handle_free(belay__handle_t *handle);

/* Sends a call that gives something back (NULL: memory was out; then nothing is sent). Nobody is told how it ends. The
 * handle is not gone before that; a client that is out of patience abandons the call. */
void belay__handle_give_back(belay__handle_t *handle, belay__call_t *call);

/* What all operations check: 0, or an error, with a detail where it is BELAY_EINVAL. NULL is BELAY_EINVAL. */
int belay__handle_check(const belay__handle_t *handle);
/* And that the request is one, and that there is a callback. */
int belay__handle_check_request(const belay__handle_t *handle, const belay_request_t *request,
                                bool has_cb);
/* And of one key: 1 to BELAY__HANDLE_KEY_MAX bytes. */
int belay__handle_check_key(const belay__handle_t *handle, const belay_request_t *request,
                            const char *key, size_t key_len, bool has_cb);
/* Of an array of n items, 1 to BELAY__HANDLE_KEYS_MAX of them, each of min_len to max_len bytes. */
int belay__handle_check_items(const belay__handle_t *handle, const belay_bytes_t *items, size_t n,
                              size_t min_len, size_t max_len);

/* Adds a key: prefix, the key (escaped; none in a whole handle), and what closes the braces: "}", or "}::part". The
 * call's affinity is that of the key, or of the name: calls of one key share a connection, and so keep their order. */
void belay__handle_arg(const belay__handle_t *handle, belay__call_t *call, const char *key,
                       size_t key_len, const char *tail);

/* A request that is one call (NULL: memory was out), with the handle as its context. */
int belay__handle_start(belay__handle_t *handle, belay_request_t *request, belay__call_t *call,
                        const belay__request_ops_t *ops, void (*cb)(void));

/* A request of several steps: PARKED, with the handle as its context. */
int belay__handle_begin(belay__handle_t *handle, belay_request_t *request,
                        const belay__request_ops_t *ops, void (*cb)(void), belay__pending_t **out);

/* What is kept there is not what this expects: makes text, behind the key of the call, the detail of BELAY_EMISMATCH,
 * which is returned. */
int belay__handle_mismatch(const belay__call_t *call, const char *text);

#endif /* BELAY_CORE_CLIENT_HANDLE_H */

/* A handle: the base of what a program opens on a client and closes (a limiter, a Bloom filter, a cache). It has its
 * client, the prefix of its keys, its requests and its children.
 *
 *   OPEN --close, the client closes--> CLOSING: its requests are canceled; type->close
 *                                        |--nothing holds it any more; the task
 *                                        v
 *                                      the close callback; type->deinit; freed
 *
 * The task is queued behind those of the requests, so that they are told before. What closes keeps the loop alive.
 *
 * Its keys are NAMESPACE::FAMILY::NAME::{KEY}PART, or NAMESPACE::FAMILY::{NAME}PART for a handle that is one thing, such
 * as a Bloom filter: all keys in one pair of braces live together in one slot of a cluster. */
#ifndef BELAY_CORE_CLIENT_HANDLE_H
#define BELAY_CORE_CLIENT_HANDLE_H

#include <string.h>

#include "core/client/ranges.h"
#include "core/client/request.h"

#define BELAY__HANDLE_NAME_MAX ((size_t)128) /* bytes of a handle's name */
#define BELAY__HANDLE_KEY_MAX ((size_t)1024) /* bytes of a key in it */
#define BELAY__HANDLE_KEYS_MAX 65536         /* keys or items in one request */

typedef struct belay__handle belay__handle_t;
typedef struct belay__handle_type belay__handle_type_t;

/* An object of a handle, such as a load of a cache. It closes with the handle and is freed before it. */
typedef struct belay__child belay__child_t;

struct belay__child {
  belay__list_t node;
  /* Begin to end; called once. It may leave at once; no other child leaves in it, and nothing that is an object of the
   * client's goes: both lists are being walked. */
  void (*close)(belay__child_t *child);
};

/* The type of a handle: in what belay_X_new(), belay_X_options_init() and the end of a handle differ. Hooks that are
 * NULL have nothing to do. */
struct belay__handle_type {
  const char *family; /* in the keys; no byte of it is escaped */
  size_t size;        /* of belay_X_t, which begins with belay__handle_t */
  bool whole;      /* the name is in the braces, so that all keys share a slot; it must be given */
  size_t name_max; /* at most BELAY__NAME_MAX; 0: BELAY__HANDLE_NAME_MAX */

  size_t options_size;          /* of belay_X_options_t */
  const void *defaults;         /* such options */
  const belay__range_t *ranges; /* of their numbers */
  size_t name_at;               /* offset of options.name */
  bool unnamed;                 /* the options have no name */
  size_t data_at;               /* offset of options.data */

  /* Choose another type by the options, which are in range. */
  const belay__handle_type_t *(*variant)(const void *options);
  /* Check what the ranges cannot say, and fill the struct, which is 0 behind the handle. options: a copy to resolve
   * defaults in. On an error, init frees what it allocated. */
  int (*init)(belay__handle_t *handle, void *options);
  /* Begin to end what runs in the background. */
  void (*close)(belay__handle_t *handle);
  /* The client's close_timeout is over: end it now. */
  void (*abort)(belay__handle_t *handle);
  /* Free the fields of the struct, after the close callback. */
  void (*deinit)(belay__handle_t *handle);
};

struct belay__handle {
  belay__object_t object; /* of the client */
  belay_client_t *client;
  const belay__handle_type_t *type;
  belay__list_t requests; /* that are pending */
  belay__list_t children;
  belay__list_t returns; /* belay__give_back_t */
  belay__task_t task;
  void *data;                                    /* the user's */
  void (*close_cb)(void);                        /* the user's, or NULL */
  void (*run_close_cb)(belay__handle_t *handle); /* casts close_cb to its type, and calls it */
  unsigned holds;
  bool closing;
  uint32_t route; /* of the name */
  size_t prefix_len;
  char *prefix; /* of its keys, from the namespace into the braces */
};

/* What types have in common: .size and the places of options that have a name. */
#define BELAY__HANDLE_LAYOUT(kind)                                                                 \
  .size = sizeof(belay_##kind##_t), .options_size = sizeof(belay_##kind##_options_t),              \
  .name_at = offsetof(belay_##kind##_options_t, name),                                             \
  .data_at = offsetof(belay_##kind##_options_t, data)

/* Defines belay_X_close() and belay_X_data(). */
#define BELAY__HANDLE_END(kind)                                                                    \
  static void run_close_cb(belay__handle_t *handle) {                                              \
    ((belay_##kind##_close_cb)handle->close_cb)((belay_##kind##_t *)handle, handle->data);         \
  }                                                                                                \
  int belay_##kind##_close(belay_##kind##_t *handle, belay_##kind##_close_cb cb) {                 \
    return belay__handle_close((belay__handle_t *)handle, (void (*)(void))cb, run_close_cb);       \
  }                                                                                                \
  void *belay_##kind##_data(const belay_##kind##_t *handle) {                                      \
    return handle == NULL ? NULL : ((const belay__handle_t *)handle)->data;                        \
  }

/* Defines belay_X_options_init(), belay_X_new(), belay_X_close() and belay_X_data() of the type belay__X_type. */
#define BELAY__HANDLE_FUNCTIONS(kind)                                                              \
  extern const belay__handle_type_t belay__##kind##_type;                                          \
  void belay_##kind##_options_init(belay_##kind##_options_t *options) {                            \
    if (options != NULL)                                                                           \
      memcpy(options, belay__##kind##_type.defaults, sizeof *options);                             \
  }                                                                                                \
  int belay_##kind##_new(belay_client_t *client, const belay_##kind##_options_t *options,          \
                         belay_##kind##_t **out) {                                                 \
    belay_##kind##_options_t filled;                                                               \
    belay__handle_t *handle = NULL;                                                                \
    if (out == NULL)                                                                               \
      return BELAY_EINVAL;                                                                         \
    int error = belay__handle_new(client, &belay__##kind##_type, options, &filled, &handle);       \
    *out = (belay_##kind##_t *)handle;                                                             \
    return error;                                                                                  \
  }                                                                                                \
  BELAY__HANDLE_END(kind)

/* Make a handle. filled: memory for the options, until this returns. Set *out on success only. Returns 0, BELAY_EINVAL
 * (with a detail), BELAY_ENOMEM, BELAY_ECLOSING, BELAY_EFORK, or the error of type->init. */
int belay__handle_new(belay_client_t *client, const belay__handle_type_t *type, const void *options,
                      void *filled, belay__handle_t **out);

/* Check the handle, which may be NULL, and begin to close it. cb may be NULL. */
int belay__handle_close(belay__handle_t *handle, void (*cb)(void),
                        void (*run_close_cb)(belay__handle_t *handle));

/* Of one that is not closing. child->close is set. */
void belay__handle_attach(belay__handle_t *handle, belay__child_t *child);
/* The child touches the handle no more. One that closes is gone some time after the last of them has left, and never
 * inside this. */
void belay__handle_detach(belay__handle_t *handle, belay__child_t *child);

/* The handle is not freed before each retain has its release, which may happen in type->close. */
void belay__handle_retain(belay__handle_t *handle);
void belay__handle_release(belay__handle_t *handle);

/* Something that a handle gives back in the background. The handle is not gone before that ends; a client that is out of
 * patience abandons it. */
typedef struct belay__give_back belay__give_back_t;
struct belay__give_back {
  belay__list_t node; /* in handle->returns */
  belay__handle_t *handle;
  belay__call_t *call; /* NULL in end */
  size_t size;
  /* The call has ended; without a call and a result it was not sent, or was abandoned: then this frees it. Otherwise this
   * frees it, sends another call or owns the late one. */
  void (*end)(belay__give_back_t *giving, belay__call_t *call, const belay__result_t *result);
};

/* size: of a struct that begins with it; all else in it is 0. NULL: memory is out. */
belay__give_back_t *belay__give_back_new(belay__handle_t *handle, size_t size);
void belay__give_back_free(belay__give_back_t *giving);

/* Sends a call; or takes over one that was sent. A LATE one is abandoned when the handle closes. */
void belay__give_back_send(belay__give_back_t *giving, belay__call_t *call);
void belay__give_back_own(belay__give_back_t *giving, belay__call_t *call);

/* Sends a call that gives something back (NULL: memory was out), and ignores how it ends. */
void belay__handle_give_back(belay__handle_t *handle, belay__call_t *call);

/* What all operations check: 0, or an error, with a detail where it is BELAY_EINVAL. NULL is BELAY_EINVAL. */
int belay__handle_check(const belay__handle_t *handle);
/* And that the request is one, and that there is a callback. */
int belay__handle_check_request(const belay__handle_t *handle, const belay_request_t *request,
                                bool has_cb);
/* And of one key: 1 to BELAY__HANDLE_KEY_MAX bytes. */
int belay__handle_check_key(const belay__handle_t *handle, const belay_request_t *request,
                            belay_bytes_t key, bool has_cb);
/* And of an array of 1 to max_n items, each of min_len to max_len bytes. what: one of them, such as "key". */
int belay__handle_check_array(const belay__handle_t *handle, const char *what,
                              const belay_bytes_t *items, size_t n, size_t max_n, size_t min_len,
                              size_t max_len);

/* A call of a command of argc words, or of a script, with BELAY__CLASS_DATA; NULL if memory is out. Add its words. */
belay__call_t *belay__handle_command(const belay__handle_t *handle, const char *name, size_t argc);
belay__call_t *belay__handle_script(const belay__handle_t *handle, const belay__script_t *script,
                                    size_t keys, size_t args);

/* Adds a key: prefix, the key (escaped; none in a whole handle), and what closes the braces: "}", or "}::part". The
 * call's route is that of the key, or of the name: calls of one key share a connection, and so keep their order. */
void belay__handle_arg(const belay__handle_t *handle, belay__call_t *call, const char *key,
                       size_t key_len, const char *tail);

/* A request that is one call (NULL: memory was out), with the handle as its context. */
int belay__handle_start(belay__handle_t *handle, belay_request_t *request, belay__call_t *call,
                        const belay__request_ops_t *ops, void (*cb)(void));

/* A request of several steps: PARKED, with the handle as its context. */
int belay__handle_begin(belay__handle_t *handle, belay_request_t *request,
                        const belay__request_ops_t *ops, void (*cb)(void),
                        belay__operation_t **out);

/* The same with a room of that many bytes (belay__request_room()). Returns BELAY_ENOMEM too. */
int belay__handle_begin_room(belay__handle_t *handle, belay_request_t *request,
                             const belay__request_ops_t *ops, void (*cb)(void), size_t room,
                             belay__operation_t **out);

/* A number below 0 that a script replies: what it stands for. */
typedef struct belay__fault {
  int error;
  const char *text; /* the detail, behind the key of the call; NULL: none */
} belay__fault_t;

/* Returns 0, or the error of faults[-1 - N] if the reply is the integer N, from -n to -1. */
int belay__handle_fault(const belay__call_t *call, const belay__reply_t *reply,
                        const belay__fault_t *faults, size_t n);

/* What is kept there is not what this expects: makes text, behind the key of the call, the detail of BELAY_EMISMATCH,
 * which is returned. */
int belay__handle_mismatch(const belay__call_t *call, const char *text);

#endif /* BELAY_CORE_CLIENT_HANDLE_H */

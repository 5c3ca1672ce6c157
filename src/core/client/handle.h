/* A handle: the base of each object that a program opens on a client and closes, such as a
 * limiter, a Bloom filter or a cache. It has a client, a key prefix, a list of requests and a
 * list of children.
 *
 *    OPEN --close, the client closes--> CLOSING: its requests are canceled; type->close
 *                                         |--no retain and no child is left; the task
 *                                         v
 *                                       the close callback; type->deinit; freed
 *
 * The task is queued behind the tasks of the requests, so that their callbacks run first. A
 * closing handle keeps the loop alive.
 *
 * The keys are NAMESPACE::FAMILY::NAME::{KEY}PART, without "NAME::" if the handle has no name. For
 * a handle that is one object, such as a Bloom filter, they are NAMESPACE::FAMILY::{NAME}PART. PART
 * is empty or "::" and a word. All keys with the same text in braces share a slot of a cluster. */
#ifndef BELAY_CORE_CLIENT_HANDLE_H
#define BELAY_CORE_CLIENT_HANDLE_H

#include <string.h>

#include "core/client/ranges.h"
#include "core/client/request.h"

#define BELAY__HANDLE_NAME_MAX ((size_t)128) /* bytes of a handle's name */
#define BELAY__HANDLE_KEY_MAX ((size_t)1024) /* bytes of a key in a handle */
#define BELAY__HANDLE_KEYS_MAX 65536         /* keys or items in one request */

typedef struct belay__handle belay__handle_t;
typedef struct belay__handle_type belay__handle_type_t;

/* An object of a handle, such as a load of a cache. It closes with the handle and is freed
 * before it. */
typedef struct belay__child belay__child_t;

struct belay__child {
  belay__list_t node;
  /* Called once: start to close. It may detach this child at once. It must not detach another
   * child or remove an object of the client, because the caller iterates over both lists. */
  void (*close)(belay__child_t *child);
};

/* The type of a handle: the data and hooks of belay_X_new(), belay_X_options_init() and the end
 * of a handle. A hook may be NULL. */
struct belay__handle_type {
  const char *family; /* Family part of the keys; it must need no escaping */
  size_t size;        /* Size of belay_X_t, which begins with belay__handle_t */
  /* true if the name is inside the braces, so that all keys share a slot; then a name is
   * mandatory */
  bool whole;
  /* Bytes of the longest name, at most BELAY__NAME_MAX; 0: BELAY__HANDLE_NAME_MAX */
  size_t name_max;

  size_t options_size;          /* Size of belay_X_options_t */
  const void *defaults;         /* Default options */
  const belay__range_t *ranges; /* Ranges of the options' numbers */
  size_t name_at;               /* Offset of options.name */
  bool unnamed;                 /* true if the options have no name */
  size_t data_at;               /* Offset of options.data */
  /* Offset in the struct of a copy of the options, made after init; its pointers are not valid. 0:
   * no copy */
  size_t copy_at;

  /* Select the type of the new handle by the options, whose ranges are already checked. */
  const belay__handle_type_t *(*variant)(const void *options);
  /* Check the options beyond their ranges, and fill the struct, which is 0 behind the handle.
   * options: a copy, in which defaults may be resolved. Returns 0 or an error. On an error, init
   * frees what it has allocated: deinit does not run. */
  int (*init)(belay__handle_t *handle, void *options);
  /* Start to end the background work. */
  void (*close)(belay__handle_t *handle);
  /* End the background work now. Called if children or holds are left when the client's
   * close_timeout is over, or when the program has closed the loop's handles. */
  void (*abort)(belay__handle_t *handle);
  /* Free the fields of the struct, after the close callback. */
  void (*deinit)(belay__handle_t *handle);
};

struct belay__handle {
  belay__object_t object; /* Object of the client */
  belay_client_t *client;
  const belay__handle_type_t *type;
  belay__list_t requests; /* Pending requests */
  belay__list_t children;
  belay__list_t returns; /* Background calls, of type belay__give_back_t */
  belay__task_t task;
  void *data;                                    /* Pointer of the user */
  void (*close_cb)(void);                        /* Close callback of the user, or NULL */
  void (*run_close_cb)(belay__handle_t *handle); /* Casts close_cb to its type and calls it */
  unsigned holds;
  bool closing;
  uint32_t route; /* Route of the name */
  size_t prefix_len;
  /* Prefix of the keys: from the namespace to the opening brace; if type->whole, to the name in the
   * braces */
  char *prefix;
};

/* Sets the fields that follow from the name of a type: the sizes of its structs, and the offsets of
 * the options `name` and `data`. */
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

/* Defines belay_X_options_init(), belay_X_new(), belay_X_close() and belay_X_data() of the type
 * belay__X_type. */
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

/* Create a handle. filled: memory of type->options_size bytes, which gets a copy of the options, or
 * of the defaults if options is NULL. Sets *out on success only. Returns 0, BELAY_EINVAL (with a
 * detail), BELAY_ENOMEM, BELAY_ECLOSING, BELAY_EFORK, or the error of type->init. */
int belay__handle_new(belay_client_t *client, const belay__handle_type_t *type, const void *options,
                      void *filled, belay__handle_t **out);

/* Check the handle, which may be NULL, and start to close it. cb may be NULL. */
int belay__handle_close(belay__handle_t *handle, void (*cb)(void),
                        void (*run_close_cb)(belay__handle_t *handle));

/* Add a child to a handle that is not closing. child->close must be set. */
void belay__handle_attach(belay__handle_t *handle, belay__child_t *child);
/* Remove a child. A closing handle is freed after its last child, never inside this function. */
void belay__handle_detach(belay__handle_t *handle, belay__child_t *child);

/* Delay the freeing of the handle until each retain has its release. type->close may call
 * release. */
void belay__handle_retain(belay__handle_t *handle);
void belay__handle_release(belay__handle_t *handle);

/* A call that gives something back in the background, such as tokens of a limit. The handle is
 * freed after this struct. After the client's close_timeout the call is abandoned. */
typedef struct belay__give_back belay__give_back_t;
struct belay__give_back {
  belay__list_t node; /* Link in handle->returns */
  belay__handle_t *handle;
  belay__call_t *call; /* The call; NULL inside `end` */
  size_t size;
  /* Called when the call has ended. call and result are NULL if the call was not sent or was
   * abandoned: then `end` must free this struct. Otherwise `end` frees this struct, sends another
   * call, or takes over the late call. */
  void (*end)(belay__give_back_t *giving, belay__call_t *call, const belay__result_t *result);
};

/* Allocate a struct of `size` bytes for a call that gives something back. The struct begins with a
 * belay__give_back_t; its other bytes are 0. Returns NULL if memory is out. */
belay__give_back_t *belay__give_back_new(belay__handle_t *handle, size_t size);
void belay__give_back_free(belay__give_back_t *giving);

/* belay__give_back_send() sends the call as urgent. belay__give_back_own() takes over a call that
 * was sent already. When the handle closes, it abandons a LATE call. */
void belay__give_back_send(belay__give_back_t *giving, belay__call_t *call);
void belay__give_back_own(belay__give_back_t *giving, belay__call_t *call);

/* Send a call that gives something back, and ignore its result. call: NULL if memory was out; then
 * nothing is sent. */
void belay__handle_give_back(belay__handle_t *handle, belay__call_t *call);

/* The checks that operations begin with. Each returns 0 or an error, with a detail for
 * BELAY_EINVAL. The first one checks the handle, which may be NULL. */
int belay__handle_check(const belay__handle_t *handle);
/* As belay__handle_check(); also check the request and that there is a callback. */
int belay__handle_check_request(const belay__handle_t *handle, const belay_request_t *request,
                                bool has_cb);
/* As belay__handle_check_request(); also check that the key has 1 to BELAY__HANDLE_KEY_MAX
 * bytes. */
int belay__handle_check_key(const belay__handle_t *handle, const belay_request_t *request,
                            belay_bytes_t key, bool has_cb);
/* Check an array of 1 to max_n items, each of min_len to max_len bytes. what: the name of one
 * item, such as "key". */
int belay__handle_check_array(const belay__handle_t *handle, const char *what,
                              const belay_bytes_t *items, size_t n, size_t max_n, size_t min_len,
                              size_t max_len);

/* Make a call of a command that has argc words with its name, or of a script. The connection class
 * is BELAY__CLASS_DATA. The caller adds the other words, or the keys and arguments. Returns NULL if
 * memory is out. */
belay__call_t *belay__handle_command(const belay__handle_t *handle, const char *name, size_t argc);
belay__call_t *belay__handle_script(const belay__handle_t *handle, const belay__script_t *script,
                                    size_t keys, size_t args);

/* Add a key to the call: the prefix, the key (escaped; empty if type->whole), and the tail: "}" or
 * "}::part". The call's route becomes the route of the key, or of the handle's name if the key is
 * empty. So calls of one key share a connection and keep their order. */
void belay__handle_arg(const belay__handle_t *handle, belay__call_t *call, const char *key,
                       size_t key_len, const char *tail);
/* Add the first key of the call `like` to the call, which also takes over the route of `like`. */
void belay__handle_arg_like(belay__call_t *call, const belay__call_t *like);
/* As belay__handle_arg(), with the escaped id behind the tail. */
void belay__handle_arg_id(const belay__handle_t *handle, belay__call_t *call, belay_bytes_t key,
                          const char *tail, belay_bytes_t id);

/* Start a request that is one call, with the handle as its context. call: NULL if memory was out.
 * Returns 0 or an error; BELAY_ENOMEM if the call is NULL. */
int belay__handle_start(belay__handle_t *handle, belay_request_t *request, belay__call_t *call,
                        const belay__request_ops_t *ops, void (*cb)(void));

/* Begin a request of several steps: PARKED, with the handle as its context. */
int belay__handle_begin(belay__handle_t *handle, belay_request_t *request,
                        const belay__request_ops_t *ops, void (*cb)(void),
                        belay__operation_t **out);

/* As belay__handle_begin(), and allocate operation->room with this number of bytes
 * (belay__request_room()). Can also return BELAY_ENOMEM; then the request is IDLE. */
int belay__handle_begin_room(belay__handle_t *handle, belay_request_t *request,
                             const belay__request_ops_t *ops, void (*cb)(void), size_t room,
                             belay__operation_t **out);

/* The meaning of a negative number that a script replies. */
typedef struct belay__fault {
  int error;
  const char *text; /* Text of the detail, behind the key of the call; NULL: none */
} belay__fault_t;

/* Returns the error of faults[-1 - N] if the reply is an integer N from -n to -1, else 0. */
int belay__handle_fault(const belay__call_t *call, const belay__reply_t *reply,
                        const belay__fault_t *faults, size_t n);

/* Call belay__call_blame() with BELAY_EMISMATCH. Returns BELAY_EMISMATCH. */
int belay__handle_mismatch(const belay__call_t *call, const char *text);

#endif /* BELAY_CORE_CLIENT_HANDLE_H */

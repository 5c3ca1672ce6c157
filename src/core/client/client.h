/* belay_client_t: the core's part of a client, which is connected to one deployment. The adapter's
 * struct of the client begins with it. core/client/lifecycle.h has the diagram of its states. */
#ifndef BELAY_CORE_CLIENT_CLIENT_H
#define BELAY_CORE_CLIENT_CLIENT_H

#include "belay/request.h"
#include "core/loop/loop.h"
#include "core/loop/pool.h"
#include "core/key/key.h"
#include "core/key/table.h"
#include "core/key/token.h"
#include "core/call/error_text.h"

#define BELAY__NAMESPACE_PARTS 8
#define BELAY__NAMESPACE_PART_MAX ((size_t)128)
/* bytes of the longest namespace, escaped and joined */
#define BELAY__NAMESPACE_MAX (BELAY__NAMESPACE_PARTS * (3 * BELAY__NAMESPACE_PART_MAX + 2))
/* bytes of a key or channel that is made of a namespace, a family, a name and a part, at most */
#define BELAY__KEY_MAX (BELAY__NAMESPACE_MAX + 3 * BELAY__NAME_MAX + 64)
#define BELAY__KEY_SHOWN ((size_t)151) /* bytes of a key in a detail, terminating 0 included */

/* An object of a client, such as a lock or an undo. When the client closes, it closes its
 * objects first. */
typedef struct belay__object belay__object_t;

typedef struct belay__object_ops {
  void (*close)(belay__object_t *object); /* Start to close; may be called when already closing */
  void (*abort)(belay__object_t *object); /* End now, without waiting for the network */
  /* Called when a connection of the client is up. Brings forward work that waits for a
   * connection; sends nothing itself. NULL: nothing to do. */
  void (*connected)(belay__object_t *object);
  /* Called when a connection of the client was lost, or keys moved to another server: the server
   * may be a different one. Adds and removes no object. NULL: nothing to do. */
  void (*lost_connection)(belay__object_t *object);
} belay__object_ops_t;

struct belay__object {
  belay__list_t node;
  const belay__object_ops_t *ops;
};

/* State that another file keeps for each client. That file allocates the extension when it first
 * needs one. The client frees the extension at the client's end, after all objects are gone. */
typedef struct belay__extension {
  void (*free)(belay_client_t *client, struct belay__extension *extension);
  /* Of leases: builds the command of a lean call again, for the call's owner, because the call has
   * given its command back (belay__call_lean()). */
  void (*rebuild)(belay__call_t *call);
} belay__extension_t;

/* Number of the sizes of buffers that a client keeps when they are unused. The buffers hold
 * commands of up to 256 and 512 bytes. */
#define BELAY__BUFFER_SIZES 2

/* The channels of a client; private to core/client/channel.c. */
typedef struct belay__channels {
  belay__table_t table;
  belay__list_t all;
  belay__list_t lingering; /* Channels without subscriptions, the longest unused first */
  size_t lingering_len;
  /* End of the linger time of the first lingering channel, or earlier */
  belay__timer_t timer;
} belay__channels_t;

/* A refusal of the server. */
typedef struct belay__refused {
  int error;
  size_t key_len; /* Bytes of the key and separator at the start of `text`; 0: no key there */
  char text[BELAY__WORDS_MAX];
} belay__refused_t;

struct belay_client {
  belay_t *belay;
  const belay__node_ops_t *node_ops;
  belay__closable_t closable; /* Link in belay's list */
  void *data;

  uint64_t place; /* Hash of the URL's addresses, primary name and database number */
  int db;         /* Database number */
  char *prefix;   /* The namespace, escaped and joined */
  size_t prefix_len;
  char owner[BELAY__OWNER_MAX + 1];
  size_t owner_len;
  int64_t timeout_ms, stall_timeout_ms, close_timeout_ms;
  size_t max_bytes, max_reply;
  belay_read_from_t read_from;
  belay_trace_fn trace;
  void *trace_ctx;

  belay__refused_t refused; /* Last refusal */

  /* Part of the owner in reentrant locks: clients whose owners have the same label differ by it.
   * Valid if has_instance */
  belay__token_t instance;
  bool has_instance;

  belay__extension_t *extension; /* Of the layer of leases; NULL: none yet */
  belay__list_t resting;         /* Calls that wait for the time to try again */
  belay__list_t pool;            /* Unused calls */
  size_t pool_len;
  belay__pool_t buffers[BELAY__BUFFER_SIZES]; /* Unused buffers of commands, by size */
  belay__pool_t rooms;                        /* Blocks for belay__request_room() */
  belay__extension_t *groups;                 /* Of core/client/group.c; NULL: none yet */
  /* Sends the held groups that n calls, which are about to be sent, must not overtake. NULL: no
   * group is held */
  void (*yield_to)(belay_client_t *client, belay__call_t *const *calls, size_t n);
  belay__list_t objects;
  belay__channels_t channels;
  belay_client_stats_t stats;

  belay_request_t ping; /* Request of core/client/ping.c */

  /* Number of calls with which caches change the server. A lookup is not shared after such a call
   * (cache/share.h) */
  uint64_t cache_writes;

  /* Time of sending for belay__call_sent(), in nanoseconds. Set during belay__call_send(), and
   * while the node sends a batch. 0: belay__call_sent() reads the clock */
  uint64_t sending;

  bool closing, node_closing;
  belay_client_close_cb close_cb;
  belay__timer_t close_timer;
  belay__task_t close_task;
};

/* Check that a client can be used. Returns 0, BELAY_EINVAL (NULL), BELAY_EFORK or
 * BELAY_ECLOSING. */
int belay__client_check(belay_client_t *client);

/* true if the text can be an owner's label or a client name: 1 to max printable ASCII bytes without
 * spaces. */
bool belay__is_label(const char *text, size_t max);

/* Keep the server's text of a refusal (core/call/error_text.h) as the client's last refusal. */
void belay__client_refused(belay_client_t *client, int error, const char *text, size_t len);
/* Set belay_detail() to the client's last refusal if its error is this status, else to "". key: the
 * key to name in the detail of a BELAY_EWRONGTYPE, because the last refusal may concern another
 * key; or NULL. */
void belay__client_explain(belay_client_t *client, int status, const char *key, size_t key_len);

/* true if all servers that the client is connected to have the feature and permit it; false without
 * a connection. */
bool belay__client_can(belay_client_t *client, belay__capability_t what);

/* true if a server may still execute a command that was sent on connection number `epoch` (0: none
 * was sent), although the server has answered `answered`, a call of the same connection class and
 * route. */
bool belay__client_may_run(const belay_client_t *client, const belay__call_t *answered,
                           uint32_t epoch);

#endif /* BELAY_CORE_CLIENT_CLIENT_H */

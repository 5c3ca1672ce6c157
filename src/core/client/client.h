/* belay_client_t: the core's part of one deployment. The adapter that connects to the deployment
 * embeds it as its first member. core/client/lifecycle.h has the diagram of its states. */
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

/* State that the layer of leases keeps for each client. The layer allocates it when it first needs
 * it. The client frees it at its end, after all objects are gone. */
typedef struct belay__extension {
  void (*free)(belay_client_t *client, struct belay__extension *extension);
} belay__extension_t;

/* The channels of a client; private to core/client/channel.c. */
typedef struct belay__channels {
  belay__table_t table;
  belay__list_t all;
  belay__list_t lingering; /* Channels without subscriptions, the longest unused first */
  size_t lingering_len;
  belay__timer_t timer; /* End of the linger time of the first one */
} belay__channels_t;

/* A refusal of the server. */
typedef struct belay__refused {
  int error;
  size_t key_len; /* Bytes at the start of the text that are a key and its separator */
  char text[BELAY__WORDS_MAX];
} belay__refused_t;

struct belay_client {
  belay_t *belay;
  const belay__node_ops_t *node_ops;
  belay__closable_t closable; /* Link in belay's list */
  void *data;

  uint64_t place; /* Number of the address in its URL: equal for equal URLs */
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

  /* Tells its owners from those of another client; valid if has_instance */
  belay__token_t instance;
  bool has_instance;

  belay__extension_t *extension; /* NULL: none yet */
  belay__list_t resting;         /* Calls that wait for the time to try again */
  belay__list_t pool;            /* Unused calls */
  size_t pool_len;
  belay__pool_t rooms; /* Blocks for belay__request_room() */
  belay__list_t objects;
  belay__channels_t channels;
  belay_client_stats_t stats;

  belay_request_t ping; /* Request of core/client/ping.c */

  /* Start time of the running belay__call_send(), in nanoseconds; 0: none is running */
  uint64_t sending;

  bool closing, node_closing;
  belay_client_close_cb close_cb;
  belay__timer_t close_timer;
  belay__task_t close_task;
};

/* Check that a client can be used. Returns 0, BELAY_EINVAL (NULL), BELAY_EFORK or
 * BELAY_ECLOSING. */
int belay__client_check(belay_client_t *client);

/* true if the text can be an owner's label, in a token or to the server: 1 to max printable
 * bytes without spaces. */
bool belay__is_label(const char *text, size_t max);

/* Keep the server's text of a refusal (core/call/error_text.h) as the client's last refusal. */
void belay__client_refused(belay_client_t *client, int error, const char *text, size_t len);
/* Set belay_detail() to the last refusal if that caused this status, else to "". key: the key of a
 * BELAY_EWRONGTYPE, where several refusals may arrive before one is reported; or NULL. */
void belay__client_explain(belay_client_t *client, int status, const char *key, size_t key_len);

/* true if all servers have the feature and permit it. */
bool belay__client_can(belay_client_t *client, belay__capability_t what);

/* true if the server may still execute a command that was sent on connection `epoch` (0: none
 * was), although it has executed `answered`, a call of the same connection class and route. */
bool belay__client_may_run(const belay_client_t *client, const belay__call_t *answered,
                           uint32_t epoch);

#endif /* BELAY_CORE_CLIENT_CLIENT_H */

/* belay_client_t: the core's part of one deployment, and what others ask of it. The adapter that reaches the deployment
 * embeds this as its first member. core/client/lifecycle.h has the diagram of its life. */
#ifndef BELAY_CORE_CLIENT_CLIENT_H
#define BELAY_CORE_CLIENT_CLIENT_H

#include "belay/request.h"
#include "core/loop/loop.h"
#include "core/key/table.h"
#include "core/key/token.h"
#include "core/call/error_text.h"

#define BELAY__NAMESPACE_PARTS 8
#define BELAY__NAMESPACE_PART_MAX ((size_t)128)
#define BELAY__KEY_SHOWN ((size_t)151) /* bytes of a key in a detail, a 0 included */

/* What lives on a client: locks, undos. Closing the client closes them first. */
typedef struct belay__object belay__object_t;

typedef struct belay__object_ops {
  void (*close)(belay__object_t *object); /* begin to end; may be called when it has begun */
  void (*abort)(belay__object_t *object); /* end now: the network is not waited for any more */
  /* A connection of the client's is up. Brings forward what waits only because there was none; sends nothing itself. NULL:
   * nothing does. */
  void (*connected)(belay__object_t *object);
  /* A connection of the client was lost, or keys belong to another server now: the server may be
   * another one than before. Adds and removes no object. NULL: nothing to do. */
  void (*lost_connection)(belay__object_t *object);
} belay__object_ops_t;

struct belay__object {
  belay__list_t node;
  const belay__object_ops_t *ops;
};

/* State that another layer, such as leases, keeps for each client. The layer allocates it when it first needs it, and
 * the client frees it at its end. */
typedef struct belay__extension belay__extension_t;

struct belay__extension {
  belay__extension_t *next;
  /* Frees the extension and what it owns; every object of the client is gone. Each layer has another function, by which
   * belay__client_extension() finds the extension of the layer. */
  void (*free)(belay_client_t *client, belay__extension_t *extension);
};

/* What the client listens to; core/client/channel.c's. */
typedef struct belay__channels {
  belay__table_t table;
  belay__list_t all;
  belay__list_t lingering; /* in the order in which they were left */
  size_t lingering_len;
  belay__timer_t timer; /* the first of them has lingered for long enough */
} belay__channels_t;

/* What the server refused with. */
typedef struct belay__refused {
  int error;
  size_t key_len; /* the text begins with a key, and what parts it from the server's words */
  char text[BELAY__WORDS_MAX];
} belay__refused_t;

struct belay_client {
  belay_t *belay;
  const belay__node_ops_t *node_ops;
  belay__closable_t closable; /* of belay */
  void *data;

  uint64_t place; /* where its URL leads: the same number wherever the URL is the same */
  int db;         /* the database there */
  char *prefix;   /* the namespace, escaped and joined */
  size_t prefix_len;
  char owner[BELAY__OWNER_MAX + 1];
  size_t owner_len;
  int64_t timeout_ms, stall_timeout_ms, close_timeout_ms;
  size_t max_bytes, max_reply;
  belay_read_from_t read_from;
  belay_trace_fn trace;
  void *trace_ctx;

  belay__refused_t refused; /* last */

  belay__token_t instance; /* tells its owners from another client's; if has_instance */
  bool has_instance;

  belay__extension_t *extensions;
  belay__list_t resting; /* calls that wait for the time to try again */
  belay__list_t pool;    /* calls that are not in use */
  size_t pool_len;
  belay__list_t objects;
  belay__channels_t channels;
  belay_client_stats_t stats;

  belay_request_t ping; /* core/client/ping.c's */

  uint64_t sending; /* inside belay__call_send(): when that began; else 0 */

  bool closing, node_closing;
  belay_client_close_cb close_cb;
  belay__timer_t close_timer;
  belay__task_t close_task;
};

/* 0, BELAY_EINVAL for NULL, BELAY_EFORK or BELAY_ECLOSING. */
int belay__client_check(belay_client_t *client);

/* The extension that this function frees; NULL if there is none yet. */
static inline belay__extension_t *belay__client_extension(const belay_client_t *client,
                                                          void (*free)(belay_client_t *,
                                                                       belay__extension_t *)) {
  belay__extension_t *extension = client->extensions;
  while (extension != NULL && extension->free != free)
    extension = extension->next;
  return extension;
}

/* Whether it says who somebody is, in a token or to the server: 1 to max printable bytes without spaces. */
bool belay__is_label(const char *text, size_t max);

/* Keeps what the server said when it refused, as core/call/error_text.h has it; belay__call_blame() puts a key before it. And makes
 * it belay_detail(), if it is what this status comes from. key: NULL, or what BELAY_EWRONGTYPE is about, if several may be refused before one
 * is told. */
void belay__client_refused(belay_client_t *client, int error, const char *text, size_t len);
void belay__client_explain(belay_client_t *client, int status, const char *key, size_t key_len);

/* Whether the servers can do that, and let us. */
bool belay__client_can(belay_client_t *client, belay__capability_t what);

/* Whether something that was sent on connection `epoch` (0: nothing was) may still be executed after
 * `answered`, a call of the same connection class and route, has been. */
bool belay__client_ghost(const belay_client_t *client, const belay__call_t *answered,
                         uint32_t epoch);

#endif /* BELAY_CORE_CLIENT_CLIENT_H */

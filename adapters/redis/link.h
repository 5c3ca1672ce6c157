/* A link: one connection slot to one server, hiredis on libuv. link.c has the diagram. */
#ifndef BELAY_REDIS_LINK_H
#define BELAY_REDIS_LINK_H

#include <hiredis/async.h>

#include "core/client.h"
#include "redis/dial.h"
#include "redis/reader.h"
#include "uv/host.h"

#define BELAY__RUN_ID_MAX 40 /* bytes of a server's run id */

/* What all links of a client share. */
typedef struct belay__line {
  belay_client_t *client;
  belay__host_t *host;
  belay__target_t target;
  const char *username, *password; /* NULL: none */
  const char *client_name;
  int db;
  int64_t connect_timeout_ms, stall_timeout_ms, idle_timeout_ms, reconnect_min_ms, reconnect_max_ms;
  size_t max_pending, max_reply;
  belay_on_full_t on_full;
  uint32_t epochs;  /* connections that became usable so far; numbers them from 1 */
  unsigned version; /* of the server last spoken to; 0: not known */
  size_t handles;   /* libuv handles that are open */
  void (*quiet)(struct belay__line *line); /* a handle, a look-up or a link is over */
} belay__line_t;

typedef enum belay__link_state {
  BELAY__LINK_DOWN,     /* not connected, and nobody wants it to be */
  BELAY__LINK_DIALING,  /* looking up, connecting */
  BELAY__LINK_SHAKING,  /* connected; the handshake is being answered */
  BELAY__LINK_UP,       /* calls go through */
  BELAY__LINK_CHECKING, /* was idle for long; a PING is out, calls wait for its answer */
  BELAY__LINK_BACKOFF,  /* waits before it dials again; calls wait */
  BELAY__LINK_REFUSED,  /* the same, and the server's reason is a lasting one: calls are refused */
  BELAY__LINK_CLOSED
} belay__link_state_t;

/* Who is at the other end of a connection: enough to have it killed from the next one. */
typedef struct belay__peer {
  uint32_t epoch; /* 0: there was none */
  int64_t id;     /* CLIENT ID; 0: not known */
  size_t run_id_len;
  char run_id[BELAY__RUN_ID_MAX]; /* of the server */
} belay__peer_t;

typedef struct belay__link {
  belay__line_t *line;
  belay__link_state_t state;
  bool extra; /* not the first of its lane: closed when it is idle */
  belay__dial_t dial;
  redisAsyncContext *ac;          /* SHAKING, UP, CHECKING */
  redisContextFuncs funcs;        /* hiredis's, but for reading and writing */
  const redisContextFuncs *stock; /* hiredis's */
  belay__handle_t *handle;
  belay__reader_t reader;
  belay__flush_t flush;
  belay__timer_t timer;  /* what it waits for depends on the state */
  belay__list_t queue;   /* calls that were not handed to a connection */
  belay__list_t dropped; /* calls of a connection that is being freed */
  size_t queue_len;
  size_t owed;         /* answers that the server owes, handshake included */
  size_t in_flight;    /* calls among them */
  unsigned unflushed;  /* commands since the last write */
  bool wants_write;    /* the last write was not taken whole */
  unsigned failures;   /* connections in a row that came to nothing */
  uint64_t appended;   /* bytes handed to the present connection */
  uint64_t written;    /* of them: bytes that the system took */
  uint64_t last_heard; /* when bytes last came, or the connection last owed nothing */
  bool suspect;        /* it has been silent for most of stall_timeout */
  int error;           /* why it is not up */
  belay__peer_t peer;  /* the present connection, or the last one */
  belay__peer_t
      ghost; /* the connection before it, while the server may still execute what was sent on it;
                          id 0 if there are several, so that killing one would not do */
  uint32_t dead_epoch; /* connections up to this one are known to be dead */
} belay__link_t;

void belay__link_init(belay__link_t *link, belay__line_t *line, bool extra);

/* 0, BELAY_EBUSY, or the error of a link that is REFUSED. */
int belay__link_submit(belay__link_t *link, belay__call_t *const *calls, size_t n);
int belay__link_withdraw(belay__link_t *link, belay__call_t *call);

/* Drops the connection, if it is the one of that number. */
void belay__link_distrust(belay__link_t *link, uint32_t epoch);

/* Ends everything at once. The link is over when belay__link_is_over(). */
void belay__link_close(belay__link_t *link);
bool belay__link_is_over(const belay__link_t *link);
/* Gives back what it still has; called last. */
void belay__link_fini(belay__link_t *link);

static inline bool belay__link_is_up(const belay__link_t *link) {
  return link->state == BELAY__LINK_UP || link->state == BELAY__LINK_CHECKING;
}

/* ---- redis/handshake.c --------------------------------------------------------------------------------- */

/* Sends what must be agreed on before the first call. */
void belay__handshake_start(belay__link_t *link);

/* ---- for it -------------------------------------------------------------------------------------------- */

/* Appends a command of the link's own; fn is called with the reply, or with NULL when the connection ends. */
void belay__link_command(belay__link_t *link, redisCallbackFn *fn, void *privdata, size_t argc,
                         const char *const *argv);
/* The handshake is through: 0, or the error that ends the connection. */
void belay__link_shaken(belay__link_t *link, int error);

#endif /* BELAY_REDIS_LINK_H */

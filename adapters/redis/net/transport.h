/* A transport: one connection, hiredis on libuv, from the connected socket to its end.
 *
 *    open ------------> OPEN --error, end of file, drop--> callbacks with NULL --> on_closed
 *      |                  ^ ^                                                          ^
 *      TLS  +--verified---+ +--accepted--+                                             |
 *      v    |                            |                                             |
 *    TLS_HANDSHAKE --verified--> TLS_CONFIRM, if the server may still refuse           |
 *           +----------------------------+------error, end of file, drop---------------+
 *
 * With TLS only the handshake is written before the server has proved its identity and, if it
 * asked for a client certificate, has answered a PING. Then on_ready is called, and commands may
 * be appended. The steps of a handshake queue at the work budget (uv/work_budget.h), so that
 * many handshakes do not stall the loop.
 *
 * Writing: commands are appended to hiredis's buffer, and the transport is on the host's flush
 * list. It is flushed before the loop sleeps and right after it wakes, or earlier where that
 * gains time (early_write.h). Read interest is armed once and stays;
 * write interest exists only after a partial write.
 *
 * The end: the connection is reset rather than closed. hiredis calls back every unanswered
 * command with NULL and frees its context: at once, or when the callback that called drop()
 * returns. */
#ifndef BELAY_REDIS_NET_TRANSPORT_H
#define BELAY_REDIS_NET_TRANSPORT_H

#include <hiredis/async.h>

#include "redis/net/dial.h"
#include "redis/net/reader.h"
#include "redis/net/tls_connection.h"
#include "uv/handle.h"
#include "uv/host.h"

typedef struct belay__transport belay__transport_t;

struct belay__transport {
  belay__host_t *host;
  belay_client_stats_t *stats;
  size_t max_reply;
  /* Commands may be appended. From the loop, or inside belay__transport_open(). */
  void (*on_ready)(belay__transport_t *transport);
  /* Called after each read, which may have ended the transport. */
  void (*on_read)(belay__transport_t *transport);
  /* Called for each push; with reader.push_mode also for each reply. NULL: RESP2, without pushes.
   * The callback must not drop the transport; it may break it. */
  void (*on_push)(belay__transport_t *transport, const belay__reply_t *reply);
  /* The transport has ended. It may be opened again. */
  void (*on_closed)(belay__transport_t *transport, int error);
  belay__dial_t *dial; /* made the handle, and closes it */

  redisAsyncContext *ac;   /* NULL: not open */
  redisContextFuncs funcs; /* hiredis's functions, with other socket operations */
  belay__uv_handle_t *handle;
  belay__tls_connection_t *tls_connection; /* NULL: there is no TLS */
  belay__job_t step;                       /* step of the TLS handshake: waits at the work budget */
  belay__reader_t reader;
  belay__flush_t flush;
  int error; /* error of drop() or break(); 0: none */
  /* Error of the socket, as libuv has it. UV_EOF: the server closed the connection. 0: none. */
  int system_error;
  /* In on_closed: the error as text if the server was never in use; NULL: no text. */
  const char *cause;
  /* Commands since the last write. The calls of a batch count one by one. */
  unsigned unflushed;
  uint64_t write_ns; /* smoothed time of a write; 0: none yet */
  enum {
    BELAY__TRANSPORT_TLS_HANDSHAKE,
    BELAY__TRANSPORT_TLS_CONFIRM,
    BELAY__TRANSPORT_OPEN
  } state;                /* unless ac is NULL */
  bool poll_failed;       /* the socket failed; bytes that arrived before are still read */
  bool nothing_read;      /* nothing was read yet */
  bool wants_write;       /* the last write was incomplete */
  bool has_secret;        /* the buffer may contain a password, which is wiped after the write */
  bool write_closed;      /* the peer reads no more; bytes that arrived before are still read */
  bool broken;            /* it ends when the loop flushes it */
  size_t replies_due;     /* number of replies that the server owes */
  uint64_t appended;      /* bytes appended since open */
  uint64_t written;       /* bytes that the system took; in on_closed: may have taken */
  uint64_t last_activity; /* time of the last read, or when a first reply became due */
  uint64_t last_read;     /* time of the last read; 0: none */
};

void belay__transport_init(belay__transport_t *transport);
void belay__transport_deinit(belay__transport_t *transport);

/* Opens the transport on a connected socket and a uv_poll that is not started. On an error both
 * are closed. tls: NULL, or the TLS settings for this host name or numeric address; they must
 * outlive the transport. Returns 0, BELAY_ENOMEM or BELAY_ESYSTEM. */
int belay__transport_open(belay__transport_t *transport, int fd, belay__uv_handle_t *handle,
                          belay_tls_t *tls, const char *host);

/* True if commands may be appended. */
bool belay__transport_is_open(const belay__transport_t *transport);

/* True if further commands should wait with their owner, because much is buffered. There they can
 * be withdrawn, and the buffer is not copied at each growth. */
bool belay__transport_is_full(const belay__transport_t *transport);

/* Appends one command. fn gets its reply (belay__transport_take_reply()). False if memory is out:
 * nothing was appended, fn will not be called, and the transport must be ended. */
bool belay__transport_append(belay__transport_t *transport, redisCallbackFn *fn, void *privdata,
                             const char *data, size_t len);
/* Appends and commits a command that is given as words. Ends the transport if memory is out. */
void belay__transport_command(belay__transport_t *transport, redisCallbackFn *fn, void *privdata,
                              size_t argc, const char *const *argv);
/* Appends more bytes of the last command, before belay__transport_commit(). The bytes before must
 * contain its first word and the begin of the next. */
void belay__transport_extend(belay__transport_t *transport, const char *data, size_t len);
/* Appends a command without a callback; it is written when the loop sleeps next. With `asks` the
 * server owes a reply, and the receiver of the reply decrements transport->replies_due. If
 * memory is out, the transport ends. */
void belay__transport_send(belay__transport_t *transport, size_t argc, const char *const *argv,
                           const size_t *lens, bool asks);
/* Ends an append: checks for memory, because hiredis reports no failed append, and writes early if
 * that gains time. in_flight: number of appended calls that await a reply; SIZE_MAX: the command
 * need not leave early. */
void belay__transport_commit(belay__transport_t *transport, size_t in_flight);

/* Called in a callback: returns the reply and counts it. NULL if the transport is ending. */
const belay__reply_t *belay__transport_take_reply(belay__transport_t *transport, void *object);

/* Ends the transport from the loop, before it sleeps: no callback runs inside this call. */
void belay__transport_break(belay__transport_t *transport, int error);

/* Ends the transport, also from inside a callback of a command. */
void belay__transport_drop(belay__transport_t *transport, int error);

#endif /* BELAY_REDIS_NET_TRANSPORT_H */

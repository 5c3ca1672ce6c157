/* A transport: one connection, hiredis on libuv, from the connected socket to its end.
 *
 *    open --> OPEN --error, end of file, drop--> the commands' callbacks with NULL --> on_gone --> closed
 *      |       ^                                                                         ^
 *      TLS     +--accepted-+                                                             |
 *      v                   |                                                             |
 *    HANDSHAKE --verified--> ASKING, if the server may still refuse --error, end, drop---+
 *
 * With TLS only the handshake is written before the server has proved its identity and, if it
 * asked for a client certificate, has answered a PING. Then `ready` is called, and commands may
 * be appended. The steps of a handshake queue at the work budget (uv/work_budget.h), so that
 * many handshakes do not stall the loop.
 *
 * Writing: commands are appended to hiredis's buffer, and the transport is on the host's flush
 * list. It is flushed before the loop sleeps and right after it wakes. A few commands are
 * written at once, so that an idle server starts early. Read interest is armed once and stays;
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
  void (*on_read)(
      belay__transport_t *transport); /* a read is through, and the transport may be gone since */
  /* NULL: the server speaks when it is asked, in RESP2. Else it may say what it likes: that comes here, and once
   * reader.pushed is set the answers do too. The transport is not dropped in it, but broken. */
  void (*on_push)(belay__transport_t *transport, const belay__reply_t *reply);
  void (*on_closed)(belay__transport_t *transport,
                    int error); /* it has ended; the memory may be opened again */
  belay__dial_t *dial;          /* made the handles, and closes them */

  redisAsyncContext *ac;   /* NULL: not open */
  redisContextFuncs funcs; /* hiredis's functions, with other socket operations */
  belay__uv_handle_t *handle;
  belay__tls_connection_t *tls_connection; /* NULL: there is no TLS */
  belay__job_t step;                       /* of the TLS handshake: waits at the work budget */
  belay__reader_t reader;
  belay__flush_t flush;
  int error; /* why it was dropped; 0: it was not */
  int system_error; /* the system's error that ended it, as libuv has it; UV_EOF: the server closed it; 0: none */
  /* In gone: the same in words, if the server was never spoken to; NULL: there are none. */
  const char *cause;
  unsigned unflushed; /* commands since the last write */
  enum {
    BELAY__TRANSPORT_TLS_HANDSHAKE,
    BELAY__TRANSPORT_TLS_CONFIRM,
    BELAY__TRANSPORT_OPEN
  } state;                /* unless ac is NULL */
  bool poll_failed;       /* the socket has failed; bytes from before are still read */
  bool nothing_read;      /* nothing was heard yet */
  bool wants_write;       /* the last write was not taken whole */
  bool has_secret;        /* something is to be written that must not be left in memory */
  bool write_closed;      /* the peer reads no more; its bytes from before are still read */
  bool broken;            /* it is of no use, and ends when the loop flushes it */
  size_t replies_due;     /* answers that the server owes */
  uint64_t appended;      /* bytes that were appended since it was opened */
  uint64_t written;       /* of them: bytes that the system took, or, in gone, may have taken */
  uint64_t last_activity; /* when bytes last came, or the server last owed nothing */
  uint64_t last_read;     /* when bytes last came; 0: none have */
};

void belay__transport_init(belay__transport_t *transport);
void belay__transport_deinit(belay__transport_t *transport);

/* Opens the transport on a connected socket and a uv_poll that is not started. On an error both
 * are closed. tls: NULL, or the TLS settings for this host name or numeric address; they must
 * outlive the transport. Returns 0, BELAY_ENOMEM or BELAY_ESYSTEM. */
int belay__transport_open(belay__transport_t *transport, int fd, belay__uv_handle_t *handle,
                          belay_tls_t *tls, const char *host);

/* Whether commands may be appended. */
bool belay__transport_is_open(const belay__transport_t *transport);

/* True if so much is buffered that further commands should wait with their owner. There they can
 * be withdrawn, and the buffer is not copied at each growth. Every buffered command gets a reply
 * eventually. */
bool belay__transport_is_full(const belay__transport_t *transport);

/* Appends one command; fn gets its reply, through belay__transport_take_reply(). False if memory is out: nothing was
 * appended, fn will not be called, and the transport is of no use any more. */
bool belay__transport_append(belay__transport_t *transport, redisCallbackFn *fn, void *privdata,
                             const char *data, size_t len);
/* The same for a command given as words; memory that is out ends the transport. */
void belay__transport_command(belay__transport_t *transport, redisCallbackFn *fn, void *privdata,
                              size_t argc, const char *const *argv);
/* Adds to the command that was appended last, which has begun with its first word, and a part of the next: before
 * belay__transport_commit(). */
void belay__transport_extend(belay__transport_t *transport, const char *data, size_t len);
/* Appends a command without a callback; it is written when the loop sleeps next. With `asks` the
 * server owes a reply, and the receiver of the reply decrements transport->replies_due. If
 * memory is out, the transport ends. */
void belay__transport_send(belay__transport_t *transport, size_t argc, const char *const *argv,
                           const size_t *lens, bool asks);
/* hiredis keeps a failed append to itself: call this when the command has been accounted for. */
void belay__transport_commit(belay__transport_t *transport);

/* In a callback: the reply, counted as given; NULL when the transport is ending. */
const belay__reply_t *belay__transport_take_reply(belay__transport_t *transport, void *object);

/* Ends the transport from the loop, before it sleeps: no callback runs inside this call. */
void belay__transport_break(belay__transport_t *transport, int error);

/* Ends it, also from inside a command's callback. */
void belay__transport_drop(belay__transport_t *transport, int error);

#endif /* BELAY_REDIS_NET_TRANSPORT_H */

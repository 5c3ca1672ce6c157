/* A wire: one connection, hiredis on libuv, from the connected socket to its end.
 *
 *   open --> OPEN --error, end of file, drop--> the commands' callbacks with NULL --> gone is told --> closed
 *     |       ^                                                                         ^
 *     TLS     +--let in--+                                                              |
 *     v                  |                                                              |
 *   SHAKING --verified--> ASKING, if the server may still turn us away --error, end, drop+
 *
 * With TLS nothing but the handshake is written before the server has proved who it is, and, if it asked for our
 * certificate, has answered a PING: then ready is told, and not before that may commands be appended. The steps of a
 * handshake wait for their turn at the gate (uv/work_budget.h), where no loop is held up by many of them at once.
 *
 * Writing: commands are appended to hiredis's buffer, and the wire is put on the host's list of what to flush
 * before the loop sleeps and right after it has woken; a few commands are written at once, so that the
 * server does not wait for us. The socket's read interest is armed once and stays; write interest is
 * asked for only after a write that the system did not take whole.
 *
 * The end: the connection is reset rather than closed. hiredis calls back every command that was not answered
 * with NULL, and frees its context: at once, or when the callback that drop() was called in returns. */
#ifndef BELAY_REDIS_NET_TRANSPORT_H
#define BELAY_REDIS_NET_TRANSPORT_H

#include <hiredis/async.h>

#include "redis/net/dial.h"
#include "redis/net/reader.h"
#include "redis/net/tls_connection.h"
#include "uv/handle.h"
#include "uv/host.h"

typedef struct belay__wire belay__wire_t;

struct belay__wire {
  belay__host_t *host;
  belay_client_stats_t *stats;
  size_t max_reply;
  /* Commands may be appended. From the loop, or inside belay__wire_open(). */
  void (*ready)(belay__wire_t *wire);
  void (*heard)(belay__wire_t *wire); /* a read is through, and the wire may be gone since */
  /* NULL: the server speaks when it is asked, in RESP2. Else it may say what it likes: that comes here, and once
   * reader.pushed is set the answers do too. The wire is not dropped in it, but broken. */
  void (*pushed)(belay__wire_t *wire, const belay__reply_t *reply);
  void (*gone)(belay__wire_t *wire, int error); /* it has ended; the memory may be opened again */
  belay__dial_t *dial;                          /* made the handles, and closes them */

  redisAsyncContext *ac;   /* NULL: not open */
  redisContextFuncs funcs; /* hiredis's, but for what is done with the socket */
  belay__uv_handle_t *handle;
  belay__tunnel_t *tunnel; /* NULL: there is no TLS */
  belay__chore_t step;     /* of the TLS handshake: waits at the gate */
  belay__reader_t reader;
  belay__flush_t flush;
  int error; /* why it was dropped; 0: it was not */
  int reason; /* the system's error that ended it, as libuv has it; UV_EOF: the server closed it; 0: none */
  /* In gone: the same in words, if the server was never spoken to; NULL: there are none. */
  const char *why;
  unsigned unflushed; /* commands since the last write */
  enum { BELAY__WIRE_SHAKING, BELAY__WIRE_ASKING, BELAY__WIRE_OPEN } state; /* unless ac is NULL */
  bool failing;        /* the socket has failed; what was said before is still read */
  bool silent;         /* nothing was heard yet */
  bool wants_write;    /* the last write was not taken whole */
  bool secret;         /* something is to be written that must not be left in memory */
  bool cut;            /* the other side takes no more; what it has said is still read */
  bool broken;         /* it is of no use, and ends when the loop flushes it */
  size_t owed;         /* answers that the server owes */
  uint64_t appended;   /* bytes that were appended since it was opened */
  uint64_t written;    /* of them: bytes that the system took, or, in gone, may have taken */
  uint64_t last_heard; /* when bytes last came, or the server last owed nothing */
  uint64_t last_read;  /* when bytes last came; 0: none have */
};

void belay__wire_init(belay__wire_t *wire);
void belay__wire_fini(belay__wire_t *wire);

/* Opens it on a connected socket and a uv_poll for it that is not started. On an error both are closed. tls: NULL,
 * or what is spoken to that host, a name or a numeric address; it must outlive the wire.
 * Returns 0, BELAY_ENOMEM or BELAY_ESYSTEM. */
int belay__wire_open(belay__wire_t *wire, int fd, belay__uv_handle_t *handle, belay_tls_t *tls,
                     const char *host);

/* Whether commands may be appended. */
bool belay__wire_is_open(const belay__wire_t *wire);

/* Whether so much waits to be written that more had better wait with its owner: there it may still be withdrawn, and the
 * buffer, which grows by steps, is not copied again and again. What waits here is answered some time. */
bool belay__wire_is_full(const belay__wire_t *wire);

/* Appends one command; fn gets its reply, through belay__wire_reply(). False if memory is out: nothing was
 * appended, fn will not be called, and the wire is of no use any more. */
bool belay__wire_append(belay__wire_t *wire, redisCallbackFn *fn, void *privdata, const char *data,
                        size_t len);
/* The same for a command given as words; memory that is out ends the wire. */
void belay__wire_command(belay__wire_t *wire, redisCallbackFn *fn, void *privdata, size_t argc,
                         const char *const *argv);
/* Adds to the command that was appended last, which has begun with its first word, and a part of the next: before
 * belay__wire_check(). */
void belay__wire_extend(belay__wire_t *wire, const char *data, size_t len);
/* Appends a command that nobody is called back for, and writes it when the loop sleeps next; with `asks` the
 * server owes an answer, and who hears it counts wire->owed down. Memory that is out ends the wire. */
void belay__wire_say(belay__wire_t *wire, size_t argc, const char *const *argv, const size_t *lens,
                     bool asks);
/* hiredis keeps a failed append to itself: call this when the command has been accounted for. */
void belay__wire_check(belay__wire_t *wire);

/* In a callback: the reply, counted as given; NULL when the wire is ending. */
const belay__reply_t *belay__wire_reply(belay__wire_t *wire, void *object);

/* Ends it from the loop, before that sleeps: nobody is called back inside this call. */
void belay__wire_break(belay__wire_t *wire, int error);

/* Ends it, also from inside a command's callback. */
void belay__wire_drop(belay__wire_t *wire, int error);

#endif /* BELAY_REDIS_NET_TRANSPORT_H */

#include "redis/net/transport.h"

#include <errno.h>
#include <hiredis/sds.h>
#include <openssl/crypto.h>

#include "redis/net/socket.h"

/* Commands that are written before the loop's turn ends: so few while the server has nothing else to do, that it is at work
 * while we are; but a system call, which may have to wake it, for each few is too much when it is busy anyway, or when there
 * are others at work: then so many times their number squared. */
#define FLUSH_AFTER 2
#define FLUSH_SHARE 8               /* of those that it owes answers to */
#define ROOM_KEPT ((size_t)1 << 16) /* bytes to be written in the next turns */
#define BACKLOG ((uint64_t)1 << 20) /* bytes; and the command that goes beyond */
#define REPLY_SLACK ((size_t)65536) /* bytes of several replies that may be in the buffer at once */
#define HANDSHAKE_ROOM 1024         /* bytes that what comes with AUTH fits into */

static void on_flush(belay__flush_t *flush);
static void on_step(belay__chore_t *step);

void belay__wire_init(belay__wire_t *wire) {
  belay__list_init(&wire->flush.node);
  wire->flush.run = on_flush;
  belay__chore_init(&wire->step, on_step);
  belay__reader_init(&wire->reader, &wire->host->base, wire->max_reply, &wire->owed);
}

void belay__wire_fini(belay__wire_t *wire) {
  belay__reader_fini(&wire->reader);
}

static bool is_writable(const belay__wire_t *wire) {
  return wire->ac != NULL && wire->state != BELAY__WIRE_SHAKING && !wire->cut && !wire->broken &&
         !(wire->ac->c.flags & REDIS_FREEING);
}

bool belay__wire_is_open(const belay__wire_t *wire) {
  return is_writable(wire) && wire->state == BELAY__WIRE_OPEN;
}

bool belay__wire_is_full(const belay__wire_t *wire) {
  return wire->appended - wire->written >= BACKLOG;
}

/* ---- hiredis's hooks ----------------------------------------------------------------------------------- */

static ssize_t read_some(redisContext *c, char *buffer, size_t size) {
  belay__wire_t *wire = c->privdata;
  ssize_t n = wire->tunnel != NULL ? belay__tunnel_read(wire->tunnel, buffer, size)
                                   : belay__socket_read(c->fd, buffer, size);
  if (n < 0 && belay__socket_error_passes(errno))
    return 0;
  if (n <= 0) {
    c->err = n == 0 ? REDIS_ERR_EOF : REDIS_ERR_IO;
    wire->reason = n == 0 ? UV_EOF : uv_translate_sys_error(errno);
    return -1;
  }
  wire->silent = false;
  wire->last_read = belay__now(&wire->host->base);
  wire->stats->bytes_in += (uint64_t)n;
  return n;
}

static ssize_t write_some(redisContext *c) {
  belay__wire_t *wire = c->privdata;
  ssize_t n = wire->tunnel != NULL ? belay__tunnel_write(wire->tunnel, c->obuf, sdslen(c->obuf))
                                   : belay__socket_write(c->fd, c->obuf, sdslen(c->obuf));
  if (n < 0 && belay__socket_error_passes(errno))
    return 0;
  if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
    wire->cut = true;
    return 0;
  }
  if (n < 0) {
    c->err = REDIS_ERR_IO;
    wire->reason = uv_translate_sys_error(errno);
    return -1;
  }
  wire->written += (uint64_t)n;
  wire->stats->bytes_out += (uint64_t)n;
  wire->stats->writes++;
  return n;
}

/* hiredis does not look whether this has freed its context. */
static void on_push(redisAsyncContext *ac, void *object) {
  belay__wire_t *wire = ac->data;
  if (!wire->broken)
    wire->pushed(wire, belay__reader_reply(object));
}

static void close_socket(redisContext *c) {
  if (c->fd != REDIS_INVALID_FD)
    belay__socket_reset(c->fd);
  c->fd = REDIS_INVALID_FD;
}

static void on_want_write(void *privdata) {
  belay__wire_t *wire = privdata;
  belay__host_flush_soon(wire->host, &wire->flush);
}

/* hiredis is through with the socket, and closes it next. May be called twice. */
static void on_cleanup(void *privdata) {
  belay__wire_t *wire = privdata;
  belay__host_flush_cancel(&wire->flush);
  belay__gate_leave(&wire->host->gate, &wire->step);
  if (wire->handle == NULL)
    return;
  belay__dial_close_handle(wire->dial, wire->handle);
  wire->handle = NULL;
}

/* What the network, or TLS, did to it; in words, if that is all that was ever had of the server. */
static const char *cause(const belay__wire_t *wire, int *error) {
  if (wire->tunnel != NULL)
    return belay__tunnel_why(wire->tunnel, error);
  *error = BELAY_EUNREACHABLE;
  if (!wire->silent || wire->error != 0)
    return NULL;
  return wire->reason == UV_EOF ? "end of file before any answer: perhaps it speaks only TLS"
         : wire->reason == UV_ECONNRESET
             ? "connection reset by peer before any answer: perhaps it speaks only TLS"
             : NULL;
}

/* The last thing that hiredis does with a context, after the callbacks with NULL. */
static void on_disconnect(const redisAsyncContext *ac, int status) {
  (void)status; /* always the same when the context is freed */
  belay__wire_t *wire = ac->data;
  belay__tunnel_t *tunnel = wire->tunnel;
  bool violation = ac->c.err == REDIS_ERR_PROTOCOL || wire->reader.refused != NULL;
  int caused;
  const char *why = cause(wire, &caused);
  int error = wire->error != 0 ? wire->error : (violation ? BELAY_EPROTO : caused);
  if (wire->reader.refused != NULL)
    belay__log(&wire->host->base, BELAY_LOG_ERROR, "connection dropped: %s", wire->reader.refused);
  wire->why = error == caused ? why : NULL;
  wire->written += tunnel != NULL ? belay__tunnel_begun(tunnel) : 0;
  if (ac->c.obuf != NULL)
    OPENSSL_cleanse(ac->c.obuf, sdslen(ac->c.obuf));
  wire->tunnel = NULL;
  wire->ac = NULL;
  wire->owed = 0;
  wire->gone(wire, error);
  belay__tunnel_free(tunnel); /* the words are its */
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events);

/* Gives a connected socket to hiredis; its own way of connecting is not used. */
static redisAsyncContext *adopt(belay__wire_t *wire, int fd) {
  redisOptions options = {.type = REDIS_CONN_USERFD, .endpoint.fd = REDIS_INVALID_FD};
  redisAsyncContext *ac = redisAsyncConnectWithOptions(&options);
  if (ac == NULL)
    return NULL;
  ac->c.fd = fd; /* now: a context that could not be made may or may not have closed it */
  wire->funcs = *ac->c.funcs;
  wire->funcs.close = close_socket;
  wire->funcs.read = read_some;
  wire->funcs.write = write_some;
  ac->c.funcs = &wire->funcs;
  ac->c.flags |= REDIS_CONNECTED;
  ac->c.privdata = wire;
  ac->data = wire;
  ac->ev.data = wire;
  ac->ev.addWrite = on_want_write;
  ac->ev.cleanup = on_cleanup;
  redisAsyncSetDisconnectCallback(ac, on_disconnect);
  if (wire->pushed != NULL)
    redisAsyncSetPushCallback(ac, on_push);
  wire->reader.resp3 = wire->pushed != NULL;
  wire->reader.pushed = false;
  belay__reader_attach(&wire->reader, ac->c.reader);
  return ac;
}

static int make(belay__wire_t *wire, int fd, belay__uv_handle_t *handle, belay_tls_t *tls,
                const char *host) {
  wire->tunnel = tls == NULL ? NULL : belay__tunnel_new(tls, fd, host);
  if (tls != NULL && wire->tunnel == NULL)
    return BELAY_ENOMEM;
  if (tls == NULL && belay__socket_watch(handle, UV_READABLE, on_poll) != 0)
    return BELAY_ESYSTEM;
  wire->ac = adopt(wire, fd);
  return wire->ac == NULL ? BELAY_ENOMEM : 0;
}

static void be_ready(belay__wire_t *wire) {
  wire->state = BELAY__WIRE_OPEN;
  wire->ready(wire);
}

int belay__wire_open(belay__wire_t *wire, int fd, belay__uv_handle_t *handle, belay_tls_t *tls,
                     const char *host) {
  int error = make(wire, fd, handle, tls, host);
  if (error != 0) {
    belay__tunnel_free(wire->tunnel);
    wire->tunnel = NULL;
    belay__dial_close_handle(wire->dial, handle);
    belay__socket_reset(fd);
    return error;
  }
  wire->handle = handle;
  handle->u.poll.data = wire;
  wire->reader.refused = NULL;
  wire->error = wire->reason = 0;
  wire->why = NULL;
  wire->last_read = 0;
  wire->owed = wire->unflushed = 0;
  wire->appended = wire->written = 0;
  wire->wants_write = wire->cut = wire->broken = wire->failing = wire->secret = false;
  wire->silent = true;
  wire->last_heard = belay__now(&wire->host->base);
  wire->state = BELAY__WIRE_SHAKING;
  if (tls != NULL)
    belay__gate_queue(&wire->host->gate, &wire->step);
  else
    be_ready(wire);
  return 0;
}

void belay__wire_drop(belay__wire_t *wire, int error) {
  if (wire->ac == NULL)
    return;
  if (wire->error == 0)
    wire->error = error;
  redisAsyncFree(wire->ac);
}

void belay__wire_break(belay__wire_t *wire, int error) {
  if (wire->ac == NULL || wire->broken)
    return;
  if (wire->error == 0)
    wire->error = error;
  wire->broken = true;
  belay__host_flush_soon(wire->host, &wire->flush);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/* Takes so many bytes away from what is to be written. hiredis would give the memory back each time, and not care what is
 * in it: a password may be, and nothing of that is to be left in memory that is given back. So wipe what moved up too;
 * grow() wipes what was moved, and on_disconnect() the rest. */
static void take_away(belay__wire_t *wire, size_t n) {
  redisContext *c = &wire->ac->c;
  size_t before = sdslen(c->obuf), left = before - n;
  memmove(c->obuf, c->obuf + n, left);
  if (wire->secret)
    OPENSSL_cleanse(c->obuf + left, n);
  c->obuf[left] = '\0';
  sdssetlen(c->obuf, left);
  if (left > 0)
    return;
  wire->secret = false;
  sds empty = sdsalloc(c->obuf) > ROOM_KEPT ? sdsempty() : NULL;
  if (empty != NULL) {
    sdsfree(c->obuf);
    c->obuf = empty;
  }
}

/* Writes what the socket takes; false if it is of no use any more. */
static bool write_out(belay__wire_t *wire) {
  redisContext *c = &wire->ac->c;
  ssize_t n = sdslen(c->obuf) > 0 ? write_some(c) : 0;
  if (n > 0)
    take_away(wire, (size_t)n);
  return n >= 0;
}

/* Makes room for so many bytes; false if memory is out. */
static bool grow(redisContext *c, size_t len) {
  size_t used = sdslen(c->obuf);
  if (sdsavail(c->obuf) >= len)
    return true;
  sds empty = sdsempty(), room = NULL;
  if (empty != NULL && (room = sdsMakeRoomFor(empty, used + len + HANDSHAKE_ROOM)) == NULL)
    sdsfree(empty);
  if (room == NULL)
    return false;
  room = sdscatlen(room, c->obuf, used); /* for which there is room */
  OPENSSL_cleanse(c->obuf, used);
  sdsfree(c->obuf);
  c->obuf = room;
  return true;
}

static void flush_now(belay__wire_t *wire) {
  wire->unflushed = 0;
  if (!is_writable(wire))
    return;
  if (!write_out(wire)) {
    belay__wire_break(wire, BELAY_EUNREACHABLE);
    return;
  }
  bool done = wire->cut || sdslen(wire->ac->c.obuf) == 0;
  if (wire->wants_write == !done || belay__socket_is_closing(wire->handle))
    return;
  wire->wants_write = !done; /* each of these costs an epoll_ctl */
  belay__socket_watch(wire->handle, done ? UV_READABLE : UV_READABLE | UV_WRITABLE, on_poll);
}

static void on_flush(belay__flush_t *flush) {
  belay__wire_t *wire = BELAY__CONTAINER(flush, belay__wire_t, flush);
  flush_now(wire);
  if (wire->broken)
    belay__wire_drop(wire, wire->error);
}

bool belay__wire_append(belay__wire_t *wire, redisCallbackFn *fn, void *privdata, const char *data,
                        size_t len) {
  if (redisAsyncFormattedCommand(wire->ac, fn, privdata, data, len) != REDIS_OK)
    return false;
  if (wire->owed++ == 0)
    wire->last_heard = belay__now(&wire->host->base);
  wire->appended += len;
  wire->unflushed++;
  return true;
}

void belay__wire_extend(belay__wire_t *wire, const char *data, size_t len) {
  (void)redisAppendFormattedCommand(&wire->ac->c, data, len); /* a failure is in c.err */
  wire->appended += len;
}

/* Whether so much waits to be written that it is not left for the end of the turn. Those to which something is written in
 * this turn count as at work; no more of them are counted than matter. */
static bool is_due(const belay__wire_t *wire) {
  const belay__list_t *all = &wire->host->flushes;
  size_t enough = FLUSH_AFTER + wire->owed / FLUSH_SHARE, n = 1;
  for (const belay__list_t *node = all->next; node != all && wire->unflushed >= enough * n * n;
       node = node->next)
    n += node != &wire->flush.node && BELAY__CONTAINER(node, belay__flush_t, node)->run == on_flush;
  return wire->unflushed >= enough * n * n;
}

void belay__wire_check(belay__wire_t *wire) {
  if (wire->ac != NULL && wire->ac->c.err != 0)
    belay__wire_break(wire, BELAY_ENOMEM);
  else if (is_due(wire))
    flush_now(wire);
}

void belay__wire_command(belay__wire_t *wire, redisCallbackFn *fn, void *privdata, size_t argc,
                         const char *const *argv) {
  char *text;
  if (!belay__wire_is_open(wire))
    return;
  const char **words = (const char **)(uintptr_t)argv; /* hiredis does not write to them */
  long long len = redisFormatCommandArgv(&text, (int)argc, words, NULL);
  wire->secret = true; /* it may be AUTH */
  bool ok = len >= 0 && grow(&wire->ac->c, (size_t)len) &&
            belay__wire_append(wire, fn, privdata, text, (size_t)len);
  if (len >= 0) {
    OPENSSL_cleanse(text, (size_t)len);
    redisFreeCommand(text);
  }
  if (!ok)
    belay__wire_break(wire, BELAY_ENOMEM);
  belay__wire_check(wire);
}

void belay__wire_say(belay__wire_t *wire, size_t argc, const char *const *argv, const size_t *lens,
                     bool asks) {
  char *text;
  if (!belay__wire_is_open(wire))
    return;
  const char **words = (const char **)(uintptr_t)argv; /* hiredis does not write to them */
  long long len = redisFormatCommandArgv(&text, (int)argc, words, lens);
  bool ok = len >= 0 && redisAppendFormattedCommand(&wire->ac->c, text, (size_t)len) == REDIS_OK;
  if (len >= 0)
    redisFreeCommand(text);
  if (!ok) {
    belay__wire_break(wire, BELAY_ENOMEM);
    return;
  }
  wire->appended += (uint64_t)len;
  if (asks && wire->owed++ == 0)
    wire->last_heard = belay__now(&wire->host->base);
  belay__host_flush_soon(wire->host, &wire->flush);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

const belay__reply_t *belay__wire_reply(belay__wire_t *wire, void *object) {
  if (object == NULL)
    return NULL;
  wire->owed--;
  return belay__reader_reply(object);
}

/* Reads what is there; it may end the wire. */
static void read_now(belay__wire_t *wire) {
  wire->last_heard = belay__now(&wire->host->base);
  if (wire->tunnel != NULL)
    belay__tunnel_may_read(wire->tunnel);
  do
    redisAsyncHandleRead(wire->ac);
  while (wire->tunnel != NULL && belay__tunnel_has_more(wire->tunnel));
}

/* The socket has something for an open wire. */
static void serve(belay__wire_t *wire, int status, int events) {
  if (events & UV_WRITABLE)
    flush_now(wire);
  /* an error too may come with words */
  if (wire->ac != NULL && (status < 0 || (events & UV_READABLE)))
    read_now(wire);
  if (status < 0) {
    wire->reason = wire->reason != 0 ? wire->reason : status;
    belay__wire_drop(wire, BELAY_EUNREACHABLE);
  }
  if (wire->ac != NULL && wire->ac->c.reader->len > wire->max_reply + REPLY_SLACK) {
    wire->reader.refused = "a reply is over the limit";
    belay__wire_drop(wire, BELAY_EPROTO);
  }
}

static void on_poll(uv_poll_t *poll, int status, int events) {
  belay__wire_t *wire = poll->data;
  belay_t *belay = &wire->host->base;
  if (!belay__enter(belay)) {
    belay__socket_ignore((belay__uv_handle_t *)poll);
    return;
  }
  if (wire->handle != NULL &&
      poll == &wire->handle->u.poll) { /* else a timer has just dropped it */
    if (wire->state == BELAY__WIRE_SHAKING) {
      wire->failing = status < 0;
      belay__socket_ignore(wire->handle); /* while it waits for its turn */
      belay__gate_queue(&wire->host->gate, &wire->step);
    } else {
      serve(wire, status, events);
      wire->heard(wire);
    }
  }
  belay__leave(belay);
}

/* ---- the handshake of TLS ------------------------------------------------------------------------------- */

/* Whatever it says: that it says something means that we are let in. Before AUTH it may well be an error. */
static void on_answer(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__wire_t *wire = ac->data;
  if (belay__wire_reply(wire, object) != NULL)
    be_ready(wire);
}

/* The server has proved who it is. */
static void on_verified(belay__wire_t *wire) {
  static const char ping[] = "*1\r\n$4\r\nPING\r\n";
  if (!belay__tunnel_is_doubted(wire->tunnel)) {
    be_ready(wire);
    return;
  }
  wire->state = BELAY__WIRE_ASKING;
  if (!belay__wire_append(wire, on_answer, NULL, ping, sizeof ping - 1))
    belay__wire_break(wire, BELAY_ENOMEM);
  belay__wire_check(wire);
}

static void on_step(belay__chore_t *step) {
  belay__wire_t *wire = BELAY__CONTAINER(step, belay__wire_t, step);
  int wants = belay__tunnel_shake(wire->tunnel);
  if (wants > 0 && wire->failing)
    wants = BELAY_EUNREACHABLE;
  if (wants >= 0 && belay__socket_is_closing(wire->handle))
    return;
  if (wants >= 0 &&
      belay__socket_watch(wire->handle, wants > 0 ? wants : UV_READABLE, on_poll) != 0)
    wants = BELAY_ESYSTEM;
  if (wants < 0)
    belay__wire_drop(wire, wants);
  if (wants != 0)
    return;
  on_verified(wire);
  if (wire->ac != NULL && belay__tunnel_has_more(wire->tunnel)) {
    read_now(wire); /* the socket has given it away already */
    wire->heard(wire);
  }
}

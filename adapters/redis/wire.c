#include "redis/wire.h"

#include <errno.h>
#include <hiredis/sds.h>

#include "redis/socket.h"

#define FLUSH_AFTER 16
#define REPLY_SLACK ((size_t)65536) /* bytes of several replies that may be in the buffer at once */

static void on_flush(belay__flush_t *flush);

void belay__wire_init(belay__wire_t *wire) {
  belay__list_init(&wire->flush.node);
  wire->flush.run = on_flush;
  belay__reader_init(&wire->reader, &wire->host->base, wire->max_reply, &wire->owed);
}

void belay__wire_fini(belay__wire_t *wire) {
  belay__reader_fini(&wire->reader);
}

bool belay__wire_is_open(const belay__wire_t *wire) {
  return wire->ac != NULL && !wire->cut && !wire->broken && !(wire->ac->c.flags & REDIS_FREEING);
}

/* ---- hiredis's hooks ----------------------------------------------------------------------------------- */

static bool is_passing(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static ssize_t read_some(redisContext *c, char *buffer, size_t size) {
  belay__wire_t *wire = c->privdata;
  ssize_t n = belay__socket_read(c->fd, buffer, size);
  if (n < 0 && is_passing(errno))
    return 0;
  if (n <= 0) {
    c->err = n == 0 ? REDIS_ERR_EOF : REDIS_ERR_IO;
    return -1;
  }
  wire->stats->bytes_in += (uint64_t)n;
  return n;
}

static ssize_t write_some(redisContext *c) {
  belay__wire_t *wire = c->privdata;
  ssize_t n = belay__socket_write(c->fd, c->obuf, sdslen(c->obuf));
  if (n < 0 && is_passing(errno))
    return 0;
  if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
    wire->cut = true;
    return 0;
  }
  if (n < 0) {
    c->err = REDIS_ERR_IO;
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
  if (wire->handle == NULL)
    return;
  wire->close_handle(wire, wire->handle);
  wire->handle = NULL;
}

/* The last thing that hiredis does with a context, after the callbacks with NULL. */
static void on_disconnect(const redisAsyncContext *ac, int status) {
  (void)status; /* always the same when the context is freed */
  belay__wire_t *wire = ac->data;
  bool violation = ac->c.err == REDIS_ERR_PROTOCOL || wire->reader.refused != NULL;
  int error = wire->error != 0 ? wire->error : (violation ? BELAY_EPROTO : BELAY_EUNREACHABLE);
  if (wire->reader.refused != NULL)
    belay__log(&wire->host->base, BELAY_LOG_ERROR, "connection dropped: %s", wire->reader.refused);
  wire->ac = NULL;
  wire->owed = 0;
  wire->gone(wire, error);
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

int belay__wire_open(belay__wire_t *wire, int fd, belay__handle_t *handle) {
  if (belay__socket_watch(handle, UV_READABLE, on_poll) != 0) {
    wire->close_handle(wire, handle);
    belay__socket_reset(fd);
    return BELAY_ESYSTEM;
  }
  wire->ac = adopt(wire, fd);
  if (wire->ac == NULL) {
    wire->close_handle(wire, handle);
    belay__socket_reset(fd);
    return BELAY_ENOMEM;
  }
  wire->handle = handle;
  handle->u.poll.data = wire;
  wire->reader.refused = NULL;
  wire->error = 0;
  wire->owed = wire->unflushed = 0;
  wire->appended = wire->written = 0;
  wire->wants_write = wire->cut = wire->broken = false;
  wire->last_heard = belay__now(&wire->host->base);
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

static void flush_now(belay__wire_t *wire) {
  int done = 0;
  wire->unflushed = 0;
  if (!belay__wire_is_open(wire))
    return;
  if (redisBufferWrite(&wire->ac->c, &done) != REDIS_OK) {
    belay__wire_break(wire, BELAY_EUNREACHABLE);
    return;
  }
  if (wire->cut)
    done = 1;
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

void belay__wire_check(belay__wire_t *wire) {
  if (wire->ac != NULL && wire->ac->c.err != 0)
    belay__wire_break(wire, BELAY_ENOMEM);
  else if (wire->unflushed >= FLUSH_AFTER)
    flush_now(wire);
}

void belay__wire_command(belay__wire_t *wire, redisCallbackFn *fn, size_t argc,
                         const char *const *argv) {
  char *text;
  if (!belay__wire_is_open(wire))
    return;
  const char **words = (const char **)(uintptr_t)argv; /* hiredis does not write to them */
  long long len = redisFormatCommandArgv(&text, (int)argc, words, NULL);
  bool ok = len >= 0 && belay__wire_append(wire, fn, NULL, text, (size_t)len);
  if (len >= 0)
    redisFreeCommand(text);
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

static void on_poll(uv_poll_t *poll, int status, int events) {
  belay__wire_t *wire = poll->data;
  belay_t *belay = &wire->host->base;
  if (!belay__enter(belay)) {
    belay__socket_ignore((belay__handle_t *)poll);
    return;
  }
  if (wire->handle != NULL &&
      poll == &wire->handle->u.poll) { /* else a timer has just dropped it */
    if (wire->ac != NULL && (events & UV_WRITABLE))
      flush_now(wire);
    if (wire->ac != NULL &&
        (status < 0 || (events & UV_READABLE))) { /* an error too may come with words */
      wire->last_heard = belay__now(belay);
      redisAsyncHandleRead(wire->ac);
    }
    if (status < 0)
      belay__wire_drop(wire, BELAY_EUNREACHABLE);
    if (wire->ac != NULL && wire->ac->c.reader->len > wire->max_reply + REPLY_SLACK) {
      wire->reader.refused = "a reply is over the limit";
      belay__wire_drop(wire, BELAY_EPROTO);
    }
    wire->heard(wire);
  }
  belay__leave(belay);
}

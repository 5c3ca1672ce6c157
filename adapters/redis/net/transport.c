#include "redis/net/transport.h"

#include <errno.h>
#include <hiredis/sds.h>
#include <openssl/crypto.h>

#include "redis/net/early_write.h"
#include "redis/net/socket.h"

#define ROOM_KEPT ((size_t)1 << 16) /* bytes of an empty buffer that are kept */
#define BACKLOG ((uint64_t)1 << 20) /* bytes after which the buffer counts as full */
#define REPLY_SLACK ((size_t)65536) /* bytes of several replies that may be in the buffer at once */
#define HANDSHAKE_ROOM 1024         /* bytes that the login commands fit into */

static void on_flush(belay__flush_t *flush);
static void on_step(belay__job_t *step);

void belay__transport_init(belay__transport_t *transport) {
  belay__list_init(&transport->flush.node);
  transport->flush.run = on_flush;
  belay__job_init(&transport->step, on_step);
  belay__reader_init(&transport->reader, &transport->host->base, transport->max_reply,
                     &transport->replies_due);
}

void belay__transport_deinit(belay__transport_t *transport) {
  belay__reader_deinit(&transport->reader);
}

static bool is_writable(const belay__transport_t *transport) {
  return transport->ac != NULL && transport->state != BELAY__TRANSPORT_TLS_HANDSHAKE &&
         !transport->write_closed && !transport->broken &&
         !(transport->ac->c.flags & REDIS_FREEING);
}

bool belay__transport_is_open(const belay__transport_t *transport) {
  return is_writable(transport) && transport->state == BELAY__TRANSPORT_OPEN;
}

bool belay__transport_is_full(const belay__transport_t *transport) {
  return transport->appended - transport->written >= BACKLOG;
}

/* ---- hiredis's hooks ---- */

static ssize_t read_some(redisContext *c, char *buffer, size_t size) {
  belay__transport_t *transport = c->privdata;
  ssize_t n = transport->tls_connection != NULL
                  ? belay__tls_connection_read(transport->tls_connection, buffer, size)
                  : belay__socket_read(c->fd, buffer, size);
  if (n < 0 && belay__socket_error_passes(errno))
    return 0;
  if (n <= 0) {
    c->err = n == 0 ? REDIS_ERR_EOF : REDIS_ERR_IO;
    transport->system_error = n == 0 ? UV_EOF : uv_translate_sys_error(errno);
    return -1;
  }
  transport->nothing_read = false;
  transport->last_read = belay__now(&transport->host->base);
  transport->stats->bytes_in += (uint64_t)n;
  return n;
}

static ssize_t write_some(redisContext *c) {
  belay__transport_t *transport = c->privdata;
  ssize_t n = transport->tls_connection != NULL
                  ? belay__tls_connection_write(transport->tls_connection, c->obuf, sdslen(c->obuf))
                  : belay__socket_write(c->fd, c->obuf, sdslen(c->obuf));
  if (n < 0 && belay__socket_error_passes(errno))
    return 0;
  if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
    transport->write_closed = true;
    return 0;
  }
  if (n < 0) {
    c->err = REDIS_ERR_IO;
    transport->system_error = uv_translate_sys_error(errno);
    return -1;
  }
  transport->written += (uint64_t)n;
  transport->stats->bytes_out += (uint64_t)n;
  transport->stats->writes++;
  return n;
}

/* hiredis does not check whether this callback has freed its context. */
static void on_push(redisAsyncContext *ac, void *object) {
  belay__transport_t *transport = ac->data;
  if (!transport->broken)
    transport->on_push(transport, belay__reader_reply(object));
}

static void close_socket(redisContext *c) {
  if (c->fd != REDIS_INVALID_FD)
    belay__socket_reset(c->fd);
  c->fd = REDIS_INVALID_FD;
}

static void on_want_write(void *privdata) {
  belay__transport_t *transport = privdata;
  belay__host_flush_soon(transport->host, &transport->flush);
}

/* hiredis closes the socket next. May be called twice. */
static void on_cleanup(void *privdata) {
  belay__transport_t *transport = privdata;
  belay__host_flush_cancel(&transport->flush);
  belay__work_budget_leave(&transport->host->work_budget, &transport->step);
  if (transport->handle == NULL)
    return;
  belay__dial_close_handle(transport->dial, transport->handle);
  transport->handle = NULL;
}

/* Finds the error of the network or of TLS; as text if the server never said anything else. */
static const char *find_cause(const belay__transport_t *transport, int *error) {
  if (transport->tls_connection != NULL)
    return belay__tls_connection_error(transport->tls_connection, error);
  *error = BELAY_EUNREACHABLE;
  if (!transport->nothing_read || transport->error != 0)
    return NULL;
  return transport->system_error == UV_EOF
             ? "end of file before any answer: perhaps it speaks only TLS"
         : transport->system_error == UV_ECONNRESET
             ? "connection reset by peer before any answer: perhaps it speaks only TLS"
             : NULL;
}

/* The last thing that hiredis does with a context, after the callbacks with NULL. */
static void on_disconnect(const redisAsyncContext *ac, int status) {
  (void)status; /* the same for every freed context */
  belay__transport_t *transport = ac->data;
  belay__tls_connection_t *tls_connection = transport->tls_connection;
  bool violation = ac->c.err == REDIS_ERR_PROTOCOL || transport->reader.rejection != NULL;
  int caused;
  const char *why = find_cause(transport, &caused);
  int error = transport->error != 0 ? transport->error : (violation ? BELAY_EPROTO : caused);
  if (transport->reader.rejection != NULL)
    belay__log(&transport->host->base, BELAY_LOG_ERROR, "connection dropped: %s",
               transport->reader.rejection);
  transport->cause = error == caused ? why : NULL;
  transport->written +=
      tls_connection != NULL ? belay__tls_connection_partial_bytes(tls_connection) : 0;
  if (ac->c.obuf != NULL)
    OPENSSL_cleanse(ac->c.obuf, sdslen(ac->c.obuf));
  transport->tls_connection = NULL;
  transport->ac = NULL;
  transport->replies_due = 0;
  transport->on_closed(transport, error);
  belay__tls_connection_free(tls_connection); /* transport->cause points into it */
}

/* ---- opening ---- */

static void on_poll(uv_poll_t *poll, int status, int events);

/* Gives a connected socket to hiredis, which does not connect itself. */
static redisAsyncContext *adopt(belay__transport_t *transport, int fd) {
  redisOptions options = {.type = REDIS_CONN_USERFD, .endpoint.fd = REDIS_INVALID_FD};
  redisAsyncContext *ac = redisAsyncConnectWithOptions(&options);
  if (ac == NULL)
    return NULL;
  ac->c.fd = fd; /* not before: a failed call may close the socket or not */
  transport->funcs = *ac->c.funcs;
  transport->funcs.close = close_socket;
  transport->funcs.read = read_some;
  transport->funcs.write = write_some;
  ac->c.funcs = &transport->funcs;
  ac->c.flags |= REDIS_CONNECTED;
  ac->c.privdata = transport;
  ac->data = transport;
  ac->ev.data = transport;
  ac->ev.addWrite = on_want_write;
  ac->ev.cleanup = on_cleanup;
  redisAsyncSetDisconnectCallback(ac, on_disconnect);
  if (transport->on_push != NULL)
    redisAsyncSetPushCallback(ac, on_push);
  transport->reader.resp3 = transport->on_push != NULL;
  transport->reader.push_mode = false;
  belay__reader_attach(&transport->reader, ac->c.reader);
  return ac;
}

static int make(belay__transport_t *transport, int fd, belay__uv_handle_t *handle, belay_tls_t *tls,
                const char *host) {
  transport->tls_connection = tls == NULL ? NULL : belay__tls_connection_new(tls, fd, host);
  if (tls != NULL && transport->tls_connection == NULL)
    return BELAY_ENOMEM;
  if (tls == NULL && belay__socket_watch(handle, UV_READABLE, on_poll) != 0)
    return BELAY_ESYSTEM;
  transport->ac = adopt(transport, fd);
  return transport->ac == NULL ? BELAY_ENOMEM : 0;
}

static void be_ready(belay__transport_t *transport) {
  transport->state = BELAY__TRANSPORT_OPEN;
  transport->on_ready(transport);
}

int belay__transport_open(belay__transport_t *transport, int fd, belay__uv_handle_t *handle,
                          belay_tls_t *tls, const char *host) {
  int error = make(transport, fd, handle, tls, host);
  if (error != 0) {
    belay__tls_connection_free(transport->tls_connection);
    transport->tls_connection = NULL;
    belay__dial_close_handle(transport->dial, handle);
    belay__socket_reset(fd);
    return error;
  }
  transport->handle = handle;
  handle->u.poll.data = transport;
  transport->reader.rejection = NULL;
  transport->error = transport->system_error = 0;
  transport->cause = NULL;
  transport->last_read = 0;
  transport->replies_due = transport->unflushed = 0;
  transport->appended = transport->written = 0;
  transport->wants_write = transport->write_closed = transport->broken = transport->poll_failed =
      transport->has_secret = false;
  transport->nothing_read = true;
  transport->last_activity = belay__now(&transport->host->base);
  transport->state = BELAY__TRANSPORT_TLS_HANDSHAKE;
  if (tls != NULL)
    belay__work_budget_queue(&transport->host->work_budget, &transport->step);
  else
    be_ready(transport);
  return 0;
}

void belay__transport_drop(belay__transport_t *transport, int error) {
  if (transport->ac == NULL)
    return;
  if (transport->error == 0)
    transport->error = error;
  redisAsyncFree(transport->ac);
}

void belay__transport_break(belay__transport_t *transport, int error) {
  if (transport->ac == NULL || transport->broken)
    return;
  if (transport->error == 0)
    transport->error = error;
  transport->broken = true;
  belay__host_flush_soon(transport->host, &transport->flush);
}

/* ---- writing ---- */

/* Removes n bytes from the front of the output buffer. hiredis would free the memory each time
 * without wiping it. The bytes may contain a password, so the moved part is wiped, too; grow()
 * and on_disconnect() wipe the rest. */
static void take_away(belay__transport_t *transport, size_t n) {
  redisContext *c = &transport->ac->c;
  size_t before = sdslen(c->obuf), left = before - n;
  memmove(c->obuf, c->obuf + n, left);
  if (transport->has_secret)
    OPENSSL_cleanse(c->obuf + left, n);
  c->obuf[left] = '\0';
  sdssetlen(c->obuf, left);
  if (left > 0)
    return;
  transport->has_secret = false;
  sds empty = sdsalloc(c->obuf) > ROOM_KEPT ? sdsempty() : NULL;
  if (empty != NULL) {
    sdsfree(c->obuf);
    c->obuf = empty;
  }
}

/* Writes what the socket takes. False if the socket failed. */
static bool write_out(belay__transport_t *transport) {
  redisContext *c = &transport->ac->c;
  ssize_t n = sdslen(c->obuf) > 0 ? write_some(c) : 0;
  if (n > 0)
    take_away(transport, (size_t)n);
  return n >= 0;
}

/* Makes room for len more bytes. False if memory is out. */
static bool grow(redisContext *c, size_t len) {
  size_t used = sdslen(c->obuf);
  if (sdsavail(c->obuf) >= len)
    return true;
  sds empty = sdsempty(), room = NULL;
  if (empty != NULL && (room = sdsMakeRoomFor(empty, used + len + HANDSHAKE_ROOM)) == NULL)
    sdsfree(empty);
  if (room == NULL)
    return false;
  room = sdscatlen(room, c->obuf, used); /* cannot fail: there is room */
  OPENSSL_cleanse(c->obuf, used);
  sdsfree(c->obuf);
  c->obuf = room;
  return true;
}

static void flush_now(belay__transport_t *transport) {
  transport->unflushed = 0;
  if (!is_writable(transport))
    return;
  if (!write_out(transport)) {
    belay__transport_break(transport, BELAY_EUNREACHABLE);
    return;
  }
  bool done = transport->write_closed || sdslen(transport->ac->c.obuf) == 0;
  if (transport->wants_write == !done || belay__socket_is_closing(transport->handle))
    return;
  transport->wants_write = !done; /* each change costs an epoll_ctl */
  belay__socket_watch(transport->handle, done ? UV_READABLE : UV_READABLE | UV_WRITABLE, on_poll);
}

/* Writes at the end of a turn, and measures the time of the write. */
static void on_flush(belay__flush_t *flush) {
  belay__transport_t *transport = BELAY__CONTAINER(flush, belay__transport_t, flush);
  uint64_t written = transport->written, began = belay__now(&transport->host->base);
  flush_now(transport);
  if (transport->written != written)
    belay__smooth(&transport->write_ns, belay__now(&transport->host->base) - began);
  if (transport->broken)
    belay__transport_drop(transport, transport->error);
}

bool belay__transport_append(belay__transport_t *transport, redisCallbackFn *fn, void *privdata,
                             const char *data, size_t len) {
  if (redisAsyncFormattedCommand(transport->ac, fn, privdata, data, len) != REDIS_OK)
    return false;
  if (transport->replies_due++ == 0)
    transport->last_activity = belay__now(&transport->host->base);
  transport->appended += len;
  transport->unflushed++;
  return true;
}

void belay__transport_extend(belay__transport_t *transport, const char *data, size_t len) {
  (void)redisAppendFormattedCommand(&transport->ac->c, data, len); /* c.err has a failure */
  transport->appended += len;
}

static size_t count_writers(const belay__transport_t *transport) {
  const belay__list_t *all = &transport->host->flushes;
  size_t n = 1;
  for (const belay__list_t *node = all->next; node != all; node = node->next)
    n += node != &transport->flush.node &&
         BELAY__CONTAINER(node, belay__flush_t, node)->run == on_flush;
  return n;
}

void belay__transport_commit(belay__transport_t *transport, size_t in_flight) {
  const belay_t *belay = &transport->host->base;
  size_t unwritten = transport->unflushed;
  belay__early_write_t now = {unwritten, in_flight > unwritten ? in_flight - unwritten : 0,
                              belay->tasks_len, belay->task_ns, transport->write_ns};
  if (transport->ac != NULL && transport->ac->c.err != 0)
    belay__transport_break(transport, BELAY_ENOMEM);
  else if (belay__early_write_pays(&now, 1) &&
           belay__early_write_pays(&now, count_writers(transport)))
    flush_now(transport);
}

void belay__transport_command(belay__transport_t *transport, redisCallbackFn *fn, void *privdata,
                              size_t argc, const char *const *argv) {
  char *text;
  if (!belay__transport_is_open(transport))
    return;
  const char **words = (const char **)(uintptr_t)argv; /* hiredis does not write to them */
  long long len = redisFormatCommandArgv(&text, (int)argc, words, NULL);
  transport->has_secret = true; /* it may be AUTH */
  bool ok = len >= 0 && grow(&transport->ac->c, (size_t)len) &&
            belay__transport_append(transport, fn, privdata, text, (size_t)len);
  if (len >= 0) {
    OPENSSL_cleanse(text, (size_t)len);
    redisFreeCommand(text);
  }
  if (!ok)
    belay__transport_break(transport, BELAY_ENOMEM);
  belay__transport_commit(transport, SIZE_MAX);
}

void belay__transport_send(belay__transport_t *transport, size_t argc, const char *const *argv,
                           const size_t *lens, bool asks) {
  char *text;
  if (!belay__transport_is_open(transport))
    return;
  const char **words = (const char **)(uintptr_t)argv; /* hiredis does not write to them */
  long long len = redisFormatCommandArgv(&text, (int)argc, words, lens);
  bool ok =
      len >= 0 && redisAppendFormattedCommand(&transport->ac->c, text, (size_t)len) == REDIS_OK;
  if (len >= 0)
    redisFreeCommand(text);
  if (!ok) {
    belay__transport_break(transport, BELAY_ENOMEM);
    return;
  }
  transport->appended += (uint64_t)len;
  if (asks && transport->replies_due++ == 0)
    transport->last_activity = belay__now(&transport->host->base);
  belay__host_flush_soon(transport->host, &transport->flush);
}

/* ---- reading ---- */

const belay__reply_t *belay__transport_take_reply(belay__transport_t *transport, void *object) {
  if (object == NULL)
    return NULL;
  transport->replies_due--;
  return belay__reader_reply(object);
}

/* Reads the available bytes. May end the transport. */
static void read_now(belay__transport_t *transport) {
  transport->last_activity = belay__now(&transport->host->base);
  if (transport->tls_connection != NULL)
    belay__tls_connection_allow_read(transport->tls_connection);
  do
    redisAsyncHandleRead(transport->ac);
  while (transport->tls_connection != NULL &&
         belay__tls_connection_has_more(transport->tls_connection));
}

/* Handles events of an open transport. */
static void serve(belay__transport_t *transport, int status, int events) {
  if (events & UV_WRITABLE)
    flush_now(transport);
  /* bytes may have arrived before an error */
  if (transport->ac != NULL && (status < 0 || (events & UV_READABLE)))
    read_now(transport);
  if (status < 0) {
    transport->system_error = transport->system_error != 0 ? transport->system_error : status;
    belay__transport_drop(transport, BELAY_EUNREACHABLE);
  }
  if (transport->ac != NULL && transport->ac->c.reader->len > transport->max_reply + REPLY_SLACK) {
    transport->reader.rejection = "a reply is over the limit";
    belay__transport_drop(transport, BELAY_EPROTO);
  }
}

static void on_poll(uv_poll_t *poll, int status, int events) {
  belay__transport_t *transport = poll->data;
  belay_t *belay = &transport->host->base;
  if (!belay__enter(belay)) {
    belay__socket_ignore((belay__uv_handle_t *)poll);
    return;
  }
  if (transport->handle != NULL &&
      poll == &transport->handle->u.poll) { /* else a timer has dropped it in this turn */
    if (transport->state == BELAY__TRANSPORT_TLS_HANDSHAKE) {
      transport->poll_failed = status < 0;
      belay__socket_ignore(transport->handle); /* while it waits for the work budget */
      belay__work_budget_queue(&transport->host->work_budget, &transport->step);
    } else {
      serve(transport, status, events);
      transport->on_read(transport);
    }
  }
  belay__leave(belay);
}

/* ---- the handshake of TLS ---- */

/* Any reply but an error means that the server accepts the client. Before AUTH it may be an
 * error. */
static void on_answer(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__transport_t *transport = ac->data;
  if (belay__transport_take_reply(transport, object) != NULL)
    be_ready(transport);
}

/* The server has proved its identity. */
static void on_verified(belay__transport_t *transport) {
  static const char ping[] = "*1\r\n$4\r\nPING\r\n";
  if (!belay__tls_connection_needs_confirmation(transport->tls_connection)) {
    be_ready(transport);
    return;
  }
  transport->state = BELAY__TRANSPORT_TLS_CONFIRM;
  if (!belay__transport_append(transport, on_answer, NULL, ping, sizeof ping - 1))
    belay__transport_break(transport, BELAY_ENOMEM);
  belay__transport_commit(transport, SIZE_MAX);
}

static void on_step(belay__job_t *step) {
  belay__transport_t *transport = BELAY__CONTAINER(step, belay__transport_t, step);
  int wants = belay__tls_connection_handshake(transport->tls_connection);
  if (wants > 0 && transport->poll_failed)
    wants = BELAY_EUNREACHABLE;
  if (wants >= 0 && belay__socket_is_closing(transport->handle))
    return;
  if (wants >= 0 &&
      belay__socket_watch(transport->handle, wants > 0 ? wants : UV_READABLE, on_poll) != 0)
    wants = BELAY_ESYSTEM;
  if (wants < 0)
    belay__transport_drop(transport, wants);
  if (wants != 0)
    return;
  on_verified(transport);
  if (transport->ac != NULL && belay__tls_connection_has_more(transport->tls_connection)) {
    read_now(transport); /* the data is no longer in the socket */
    transport->on_read(transport);
  }
}

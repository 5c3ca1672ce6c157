/* A link.
 *
 *   DOWN --a call--> DIALING --connected--> SHAKING --shaken--> UP --idle, then a call--> CHECKING --PONG--> UP
 *    ^                 |  ^                   |                  |                           |
 *    |                 |  | time to try again |  <------drop-----+------------<--------------+
 *    |                 v  |                   v
 *    |                BACKOFF, or REFUSED if the reason is a lasting one
 *    +--nobody waits---+
 *
 *   any --close--> CLOSED
 *
 * Writing: commands are appended to hiredis's buffer, and the link is put on the host's list of what to flush
 * before the loop sleeps and right after it has woken; sixteen commands are written at once, so that the
 * server does not wait for us. The socket's read interest is armed once and stays; write interest is
 * asked for only after a write that the system did not take whole.
 *
 * Dropping: hiredis hands back every callback with NULL; those calls are gathered, and when the context is gone
 * each is judged by its place in the stream of bytes: what left is UNKNOWN, what did not is queued again, in
 * order, before everything that has been queued since. The old connection is reset rather than closed, and
 * its number is kept as a ghost until it is known to be dead on the server's side (handshake.c). */
#include "redis/link.h"

#include <assert.h>
#include <errno.h>
#include <hiredis/sds.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_AFTER 16
#define REPLY_SLACK ((size_t)65536) /* bytes of several replies that may be in the buffer at once */

static void on_dialed(belay__dial_t *dial, int error, int fd, belay__handle_t *handle);
static void on_timer(belay__timer_t *timer);
static void on_flush(belay__flush_t *flush);
static void pump(belay__link_t *link);
static void drop(belay__link_t *link, int error);

static belay_t *belay_of(const belay__link_t *link) {
  return &link->line->host->base;
}

static void set_timer(belay__link_t *link, int64_t ms) {
  belay__timer_set(belay_of(link), BELAY__RANK_OTHER, &link->timer,
                   belay__after_ms(belay_of(link), ms));
}

static void stop_timer(belay__link_t *link) {
  belay__timer_stop(belay_of(link), BELAY__RANK_OTHER, &link->timer);
}

static void on_dial_over(belay__dial_t *dial) {
  belay__link_t *link = BELAY__CONTAINER(dial, belay__link_t, dial);
  link->line->quiet(link->line);
}

void belay__link_init(belay__link_t *link, belay__line_t *line, bool extra) {
  *link = (belay__link_t){
      .line = line, .extra = extra, .timer = {.fire = on_timer}, .flush = {.run = on_flush}};
  belay__list_init(&link->queue);
  belay__list_init(&link->dropped);
  belay__list_init(&link->flush.node);
  belay__dial_init(&link->dial, line->host, &line->target, &line->handles, on_dialed, on_dial_over);
  belay__reader_init(&link->reader, &line->host->base, line->max_reply, &link->owed);
}

/* ---- connecting and giving up -------------------------------------------------------------------------- */

static void dial(belay__link_t *link) {
  link->state = BELAY__LINK_DIALING;
  if (belay__dial_busy(&link->dial)) { /* a look-up that was given up is not back yet */
    set_timer(link, link->line->connect_timeout_ms);
    return;
  }
  set_timer(link, link->line->connect_timeout_ms);
  belay__dial_start(&link->dial, belay__after_ms(belay_of(link), link->line->connect_timeout_ms));
}

/* A reason that will not go away by itself: who asks is told at once, and nobody knocks too often. */
static bool is_lasting(int error) {
  return error == BELAY_EAUTH || error == BELAY_EPERM || error == BELAY_EREFUSED;
}

/* There is no connection. Calls wait for the next one, or are refused. */
static void back_off(belay__link_t *link, int error) {
  belay_t *belay = belay_of(link);
  const belay__line_t *line = link->line;
  if (link->state == BELAY__LINK_CLOSED)
    return;
  bool lasting = is_lasting(error);
  uint64_t limit = (uint64_t)line->reconnect_min_ms << (link->failures < 20 ? link->failures : 20);
  if (limit > (uint64_t)line->reconnect_max_ms || lasting)
    limit = (uint64_t)line->reconnect_max_ms;
  uint64_t least = lasting ? limit / 2 : 0;
  uint64_t delay = least * BELAY__MS + belay__random_below(belay, (limit - least) * BELAY__MS);
  link->error = error;
  link->failures++;
  link->state = lasting ? BELAY__LINK_REFUSED : BELAY__LINK_BACKOFF;
  belay__timer_set(belay, BELAY__RANK_OTHER, &link->timer, belay__now(belay) + 1 + delay);
  if (!lasting)
    return;
  belay__list_t refused;
  belay__list_init(&refused);
  belay__list_splice_front(&refused, &link->queue);
  link->queue_len = 0;
  for (belay__list_t *node; (node = belay__list_pop(&refused)) != NULL;)
    belay__call_refused(BELAY__CONTAINER(node, belay__call_t, node), error);
}

static void count_failure(belay__link_t *link, int error) {
  belay_client_t *client = link->line->client;
  client->stats.connect_errors++;
  belay__log(client->belay, is_lasting(error) ? BELAY_LOG_ERROR : BELAY_LOG_WARNING,
             "no connection: %s%s%s", belay_strerror(error), is_lasting(error) ? ": " : "",
             is_lasting(error) ? client->belay->detail : "");
}

/* ---- hiredis's hooks ----------------------------------------------------------------------------------- */

static ssize_t read_some(redisContext *c, char *buffer, size_t size) {
  belay__link_t *link = c->privdata;
  ssize_t n = link->stock->read(c, buffer, size);
  if (n > 0)
    link->line->client->stats.bytes_in += (uint64_t)n;
  return n;
}

static ssize_t write_some(redisContext *c) {
  belay__link_t *link = c->privdata;
  int flags = 0;
#ifdef MSG_NOSIGNAL
  flags = MSG_NOSIGNAL; /* a host that does not ignore SIGPIPE must not die of us */
#endif
  ssize_t n = send(c->fd, c->obuf, sdslen(c->obuf), flags);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    return 0;
  if (n < 0) {
    c->err = REDIS_ERR_IO;
    return -1;
  }
  link->written += (uint64_t)n;
  link->line->client->stats.bytes_out += (uint64_t)n;
  link->line->client->stats.writes++;
  return n;
}

static void on_want_write(void *privdata) {
  belay__link_t *link = privdata;
  belay__host_flush_soon(link->line->host, &link->flush);
}

/* hiredis is through with the socket, and closes it next. May be called twice. */
static void on_cleanup(void *privdata) {
  belay__link_t *link = privdata;
  belay__host_flush_cancel(&link->flush);
  if (link->handle == NULL)
    return;
  struct linger reset = {.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(link->ac->c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  belay__dial_close_handle(&link->dial, link->handle);
  link->handle = NULL;
}

/* Judges the calls of a connection that is gone. */
static void settle_dropped(belay__link_t *link, uint64_t written, int error) {
  belay__list_t again;
  belay__list_init(&again);
  bool kept = false; /* the call before was queued again */
  for (belay__list_t *node; (node = belay__list_pop(&link->dropped)) != NULL;) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    bool sent = call->offset < written, follows = call->follows;
    bool queue = belay__call_dropped(call, sent, error);
    if (queue && ((follows && !kept) || link->state == BELAY__LINK_CLOSED)) {
      belay__call_refused(call, BELAY_EUNREACHABLE); /* what it belongs behind is not sent again */
      queue = false;
    }
    if (queue) {
      belay__list_push(&again, &call->node);
      link->queue_len++;
    }
    kept = queue;
  }
  belay__list_splice_front(&link->queue, &again);
}

/* The last thing that hiredis does with a context. */
static void on_disconnect(const redisAsyncContext *ac, int status) {
  belay__link_t *link = ac->data;
  belay_client_t *client = link->line->client;
  bool was_usable = belay__link_is_up(link);
  int error = link->error;
  if (error == 0)
    error = ac->c.err == REDIS_ERR_PROTOCOL || ac->c.err == REDIS_ERR_OOM ? BELAY_EPROTO
                                                                          : BELAY_EUNREACHABLE;
  (void)status;
  if (link->reader.refused != NULL)
    belay__log(client->belay, BELAY_LOG_ERROR, "connection dropped: %s", link->reader.refused);
  link->reader.refused = NULL;
  link->ac = NULL;
  link->owed = link->in_flight = 0;
  if (link->peer.epoch != 0) {
    bool several = link->ghost.epoch != 0;
    link->ghost = link->peer;
    if (several)
      link->ghost.id = 0;
    link->peer.epoch = 0;
  }
  if (was_usable) {
    client->stats.drops++;
    belay__log(client->belay, BELAY_LOG_INFO, "connection lost: %s", belay_strerror(error));
  } else if (link->state != BELAY__LINK_CLOSED) {
    count_failure(link, error);
  }
  back_off(link, error);
  settle_dropped(link, link->written, error);
}

/* Ends the connection, also from inside one of hiredis's callbacks. */
static void drop(belay__link_t *link, int error) {
  if (link->ac == NULL)
    return;
  if (link->error == 0)
    link->error = error;
  redisAsyncFree(link->ac);
}

/* ---- the connection's life ----------------------------------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events);

/* Gives a connected socket to hiredis. */
static redisAsyncContext *adopt(belay__link_t *link, int fd) {
  redisOptions options = {.type = REDIS_CONN_USERFD, .endpoint.fd = fd};
  redisAsyncContext *ac = redisAsyncConnectWithOptions(&options);
  if (ac == NULL)
    return NULL;
  link->stock = ac->c.funcs;
  link->funcs = *ac->c.funcs;
  link->funcs.read = read_some;
  link->funcs.write = write_some;
  ac->c.funcs = &link->funcs;
  ac->c.flags |= REDIS_CONNECTED;
  ac->c.privdata = link;
  ac->data = link;
  ac->ev.data = link;
  ac->ev.addWrite = on_want_write;
  ac->ev.cleanup = on_cleanup;
  redisAsyncSetDisconnectCallback(ac, on_disconnect);
  belay__reader_attach(&link->reader, ac->c.reader);
  return ac;
}

static void on_dialed(belay__dial_t *dialed, int error, int fd, belay__handle_t *handle) {
  belay__link_t *link = BELAY__CONTAINER(dialed, belay__link_t, dial);
  assert(link->state == BELAY__LINK_DIALING);
  link->error = error;
  if (error != 0) {
    count_failure(link, error);
    back_off(link, error);
    return;
  }
  link->ac = adopt(link, fd);
  if (link->ac == NULL) {
    belay__dial_close_handle(&link->dial, handle);
    close(fd);
    back_off(link, BELAY_ENOMEM);
    return;
  }
  link->handle = handle;
  handle->u.poll.data = link;
  link->state = BELAY__LINK_SHAKING;
  link->owed = link->in_flight = link->unflushed = 0;
  link->appended = link->written = 0;
  link->wants_write = false;
  if (uv_poll_start(&handle->u.poll, UV_READABLE, on_poll) != 0) {
    drop(link, BELAY_ESYSTEM);
    return;
  }
  belay__handshake_start(link); /* the timer that dial() set goes on */
}

void belay__link_shaken(belay__link_t *link, int error) {
  belay__line_t *line = link->line;
  if (error != 0) {
    drop(link, error);
    return;
  }
  line->client->stats.connects++;
  link->peer.epoch = ++line->epochs;
  link->error = 0;
  link->state = BELAY__LINK_UP;
  link->suspect = false;
  link->last_heard = belay__now(belay_of(link));
  stop_timer(link);
  if (link->extra)
    set_timer(link, line->idle_timeout_ms);
  belay__log(line->client->belay, BELAY_LOG_INFO, "connected");
  pump(link);
}

static void flush_now(belay__link_t *link) {
  int done = 0;
  link->unflushed = 0;
  if (link->ac == NULL || (link->ac->c.flags & REDIS_FREEING))
    return;
  if (redisBufferWrite(&link->ac->c, &done) != REDIS_OK) {
    drop(link, BELAY_EUNREACHABLE);
    return;
  }
  if (link->wants_write == !done || uv_is_closing(&link->handle->u.any))
    return;
  link->wants_write = !done; /* each of these costs an epoll_ctl */
  uv_poll_start(&link->handle->u.poll, done ? UV_READABLE : UV_READABLE | UV_WRITABLE, on_poll);
}

static void on_flush(belay__flush_t *flush) {
  flush_now(BELAY__CONTAINER(flush, belay__link_t, flush));
}

static void on_poll(uv_poll_t *poll, int status, int events) {
  belay__link_t *link = poll->data;
  belay_t *belay = belay_of(link);
  belay__enter(belay);
  if (link->handle == NULL || poll != &link->handle->u.poll) { /* a timer has just dropped it */
    belay__leave(belay);
    return;
  }
  if (status < 0)
    drop(link, BELAY_EUNREACHABLE);
  if (link->ac != NULL && (events & UV_WRITABLE))
    flush_now(link);
  if (link->ac != NULL && (events & UV_READABLE)) {
    link->last_heard = belay__now(belay);
    link->suspect = false;
    redisAsyncHandleRead(link->ac);
  }
  if (link->ac != NULL && link->ac->c.reader->len > link->line->max_reply + REPLY_SLACK) {
    link->reader.refused = "a reply is over the limit";
    drop(link, BELAY_EPROTO);
  }
  pump(link);
  belay__leave(belay);
}

/* ---- commands ------------------------------------------------------------------------------------------ */

/* Appends bytes that are one command; false if the connection is of no use any more. */
static bool append(belay__link_t *link, redisCallbackFn *fn, void *privdata, const char *data,
                   size_t len) {
  redisAsyncContext *ac = link->ac;
  if (redisAsyncFormattedCommand(ac, fn, privdata, data, len) != REDIS_OK)
    return false;
  if (link->owed++ == 0)
    link->last_heard = belay__now(belay_of(link));
  link->appended += len;
  if (!belay__timer_is_set(&link->timer))
    set_timer(link, link->line->stall_timeout_ms * 3 / 4);
  return true;
}

/* hiredis tells of a buffer that could not grow only here. */
static void check_append(belay__link_t *link) {
  if (link->ac != NULL && link->ac->c.err != 0)
    drop(link, BELAY_ENOMEM);
}

void belay__link_command(belay__link_t *link, redisCallbackFn *fn, void *privdata, size_t argc,
                         const char *const *argv) {
  char *text;
  if (link->ac == NULL || (link->ac->c.flags & REDIS_FREEING))
    return;
  const char **words = (const char **)(uintptr_t)argv; /* hiredis does not write to them */
  long long len = redisFormatCommandArgv(&text, (int)argc, words, NULL);
  bool ok = len >= 0 && append(link, fn, privdata, text, (size_t)len);
  if (len >= 0)
    redisFreeCommand(text);
  if (!ok)
    drop(link, BELAY_ENOMEM);
  check_append(link);
}

static void on_reply(redisAsyncContext *ac, void *object, void *privdata);

/* Hands a call to the connection; false if it did not take it. */
static bool hand_over(belay__link_t *link, belay__call_t *call) {
  uint64_t offset = link->appended;
  if (!append(link, on_reply, call, call->data, call->len))
    return false;
  call->offset = offset;
  link->in_flight++;
  belay__call_sent(call, link->peer.epoch);
  return true;
}

static void on_reply(redisAsyncContext *ac, void *object, void *privdata) {
  belay__link_t *link = ac->data;
  belay__call_t *call = privdata;
  if (object == NULL) { /* the connection is going; on_disconnect() judges */
    belay__list_push(&link->dropped, &call->node);
    return;
  }
  link->owed--;
  link->in_flight--;
  link->failures = 0;
  switch (belay__call_reply(call, belay__reader_reply(object))) {
  case BELAY__VERDICT_OVER:
    break;
  case BELAY__VERDICT_RECONNECT:
    drop(link, BELAY_EREADONLY);
    break;
  case BELAY__VERDICT_RESEND:
    if (!hand_over(link, call)) {
      call->offset = UINT64_MAX;
      belay__list_push(&link->dropped, &call->node);
      drop(link, BELAY_ENOMEM);
    }
    check_append(link);
    break;
  }
}

static void on_pong(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__link_t *link = ac->data;
  if (object == NULL)
    return;
  link->owed--;
  if (link->state != BELAY__LINK_CHECKING)
    return;
  if (!belay__reply_is(belay__reader_reply(object), "PONG", 4)) {
    drop(link, BELAY_EPROTO);
    return;
  }
  link->state = BELAY__LINK_UP;
  stop_timer(link);
}

/* A connection that nothing was heard of for long may be dead, and would tell so only after a time-out. */
static void check_if_idle(belay__link_t *link) {
  int64_t idle = link->line->idle_timeout_ms;
  if (link->owed > 0 || idle == BELAY_FOREVER ||
      belay__now(belay_of(link)) - link->last_heard < (uint64_t)idle * BELAY__MS)
    return;
  static const char *const argv[] = {"PING"};
  link->state = BELAY__LINK_CHECKING;
  belay__link_command(link, on_pong, NULL, 1, argv);
  if (link->state == BELAY__LINK_CHECKING)
    set_timer(link, link->line->connect_timeout_ms);
}

/* Hands queued calls to the connection, as many as it may carry. */
static void pump(belay__link_t *link) {
  while (!belay__list_empty(&link->queue)) {
    belay__call_t *call = BELAY__CONTAINER(link->queue.next, belay__call_t, node);
    if (link->state == BELAY__LINK_UP)
      check_if_idle(link);
    if (link->state != BELAY__LINK_UP || link->ac == NULL || (link->ac->c.flags & REDIS_FREEING) ||
        (link->in_flight >= link->line->max_pending && !call->urgent))
      return;
    belay__list_remove(&call->node);
    link->queue_len--;
    if (!hand_over(link, call)) {
      belay__list_push_front(&link->queue, &call->node);
      link->queue_len++;
      drop(link, BELAY_ENOMEM);
      return;
    }
    check_append(link);
    if (++link->unflushed >= FLUSH_AFTER)
      flush_now(link);
  }
}

int belay__link_submit(belay__link_t *link, belay__call_t *const *calls, size_t n) {
  const belay__line_t *line = link->line;
  if (link->state == BELAY__LINK_CLOSED)
    return BELAY_ECLOSING;
  if (link->state == BELAY__LINK_REFUSED)
    return link->error;
  if (line->on_full == BELAY_FULL_REFUSE && !calls[0]->urgent &&
      link->in_flight + link->queue_len + n > line->max_pending)
    return BELAY_EBUSY;
  for (size_t i = 0; i < n; i++)
    belay__list_push(&link->queue, &calls[i]->node);
  link->queue_len += n;
  if (link->state == BELAY__LINK_DOWN)
    dial(link);
  pump(link);
  return 0;
}

int belay__link_withdraw(belay__link_t *link, belay__call_t *call) {
  belay__list_remove(&call->node);
  link->queue_len--;
  if (belay__link_is_up(link))
    return BELAY_EBUSY;
  return link->error == BELAY_ERESOLVE ? link->error : BELAY_EUNREACHABLE;
}

void belay__link_distrust(belay__link_t *link, uint32_t epoch) {
  if (link->peer.epoch == epoch)
    drop(link, BELAY_EPROTO);
}

/* ---- time ---------------------------------------------------------------------------------------------- */

/* UP: a link that owes nothing may be too many; one that owes something must be heard of. A loop that was away
 * itself has heard nothing: so the last quarter of the time only begins when this is first noticed. */
static void watch(belay__link_t *link) {
  belay_t *belay = belay_of(link);
  const belay__line_t *line = link->line;
  uint64_t silent = belay__now(belay) - link->last_heard;
  uint64_t idle = line->idle_timeout_ms == BELAY_FOREVER
                      ? BELAY__NEVER
                      : (uint64_t)line->idle_timeout_ms * BELAY__MS;
  uint64_t stall = (uint64_t)line->stall_timeout_ms * BELAY__MS * 3 / 4;
  if (link->owed == 0) {
    link->suspect = false;
    if (!link->extra || idle == BELAY__NEVER)
      return;
    if (silent < idle)
      belay__timer_set(belay, BELAY__RANK_OTHER, &link->timer, link->last_heard + idle);
    else
      drop(link, BELAY_EUNREACHABLE);
    return;
  }
  if (silent < stall) {
    belay__timer_set(belay, BELAY__RANK_OTHER, &link->timer, link->last_heard + stall);
  } else if (!link->suspect) {
    link->suspect = true;
    set_timer(link, line->stall_timeout_ms / 4 + 1);
  } else {
    belay__log(belay, BELAY_LOG_WARNING, "the server owes an answer and is silent");
    drop(link, BELAY_EUNREACHABLE);
  }
}

static void on_timer(belay__timer_t *timer) {
  belay__link_t *link = BELAY__CONTAINER(timer, belay__link_t, timer);
  switch (link->state) {
  case BELAY__LINK_DIALING:
    belay__dial_cancel(&link->dial);
    link->error = belay__dial_busy(&link->dial) ? BELAY_ERESOLVE : BELAY_EUNREACHABLE;
    count_failure(link, link->error);
    back_off(link, link->error);
    break;
  case BELAY__LINK_SHAKING:
  case BELAY__LINK_CHECKING:
    drop(link, BELAY_EUNREACHABLE);
    break;
  case BELAY__LINK_UP:
    watch(link);
    break;
  case BELAY__LINK_BACKOFF:
  case BELAY__LINK_REFUSED:
    if (belay__list_empty(&link->queue))
      link->state = BELAY__LINK_DOWN;
    else
      dial(link);
    break;
  case BELAY__LINK_DOWN:
  case BELAY__LINK_CLOSED:
    break;
  }
}

/* ---- the end ------------------------------------------------------------------------------------------- */

void belay__link_close(belay__link_t *link) {
  stop_timer(link);
  belay__dial_cancel(&link->dial);
  link->state = BELAY__LINK_CLOSED;
  drop(link, BELAY_ECANCELED);
  for (belay__list_t *node; (node = belay__list_pop(&link->queue)) != NULL;)
    belay__call_refused(BELAY__CONTAINER(node, belay__call_t, node), BELAY_ECANCELED);
  link->queue_len = 0;
}

void belay__link_fini(belay__link_t *link) {
  belay__reader_fini(&link->reader);
}

bool belay__link_is_over(const belay__link_t *link) {
  return link->state == BELAY__LINK_CLOSED && link->ac == NULL && !belay__dial_busy(&link->dial);
}

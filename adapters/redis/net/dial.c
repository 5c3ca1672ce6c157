#include "redis/net/dial.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void try_next(belay__dial_t *dial);

/* ---- ends ---- */

static void on_handle_closed(belay__uv_handle_t *handle) {
  belay__dial_t *dial = handle->data;
  belay__free(&dial->host->base, handle, sizeof *handle);
  --*dial->handles;
  dial->on_released(dial);
}

void belay__dial_close_handle(belay__dial_t *dial, belay__uv_handle_t *handle) {
  handle->data = dial;
  belay__uv_handle_close(handle, on_handle_closed);
}

/* Gives up the present address. */
static void release_attempt(belay__dial_t *dial) {
  belay__work_budget_leave(&dial->host->work_budget, &dial->start_slot);
  belay__timer_stop(&dial->host->base, BELAY__RANK_OTHER, &dial->timer);
  if (dial->handle != NULL)
    belay__dial_close_handle(dial, dial->handle);
  dial->handle = NULL;
  if (dial->fd >= 0)
    close(dial->fd);
  dial->fd = -1;
}

static void finish_failed(belay__dial_t *dial, int error) {
  release_attempt(dial);
  dial->active = false;
  dial->cb(dial, error, -1, NULL);
}

static void finish_connected(belay__dial_t *dial) {
  int fd = dial->fd;
  belay__uv_handle_t *handle = dial->handle;
  dial->fd = -1;
  dial->handle = NULL;
  release_attempt(dial);
  dial->active = false;
  dial->cb(dial, 0, fd, handle);
}

void belay__dial_cancel(belay__dial_t *dial) {
  dial->active = false;
  release_attempt(dial);
}

int belay__dial_expire(belay__dial_t *dial) {
  bool resolves = dial->resolving && dial->awaits_lookup;
  dial->system_error = UV_ETIMEDOUT;
  belay__dial_cancel(dial);
  return resolves ? BELAY_ERESOLVE : BELAY_EUNREACHABLE;
}

void belay__dial_close(belay__dial_t *dial) {
  belay__dial_cancel(dial);
  if (dial->resolving)
    (void)uv_cancel((uv_req_t *)&dial->request); /* works only before it has begun */
}

/* ---- connecting ---- */

static void set_int(int fd, int level, int name, int value) {
  (void)setsockopt(fd, level, name, &value, sizeof value); /* the socket works without it */
}

static void tune_tcp(int fd, const belay__target_t *target) {
  set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (target->keepalive_ms > 0) {
    int seconds = (int)((target->keepalive_ms + 999) / 1000);
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds < 3 ? 1 : seconds / 3);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
#else
    (void)seconds;
#endif
  }
#ifdef TCP_USER_TIMEOUT
  if (target->tcp_user_timeout_ms > 0)
    set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)target->tcp_user_timeout_ms);
#endif
}

/* A socket that no child process inherits. */
static int open_socket(int family) {
#ifdef SOCK_CLOEXEC
  return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
#else
  int fd = socket(family, SOCK_STREAM, 0);
  if (fd >= 0 && (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)) {
    close(fd);
    fd = -1;
  }
  return fd;
#endif
}

static socklen_t address_len(const struct sockaddr *address) {
  switch (address->sa_family) {
  case AF_INET:
    return sizeof(struct sockaddr_in);
  case AF_INET6:
    return sizeof(struct sockaddr_in6);
  default:
    return sizeof(struct sockaddr_un);
  }
}

static void on_writable(uv_poll_t *poll, int status, int events) {
  (void)events;
  belay__dial_t *dial = poll->data;
  belay_t *belay = &dial->host->base;
  if (!belay__enter(belay)) {
    uv_poll_stop(poll);
    return;
  }
  if (dial->handle != NULL &&
      poll == &dial->handle->u.poll) { /* else a timer has given it up in this turn */
    int error = 0;
    socklen_t len = sizeof error;
    uv_poll_stop(poll);
    if (getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0 &&
        status == 0) {
      finish_connected(dial);
    } else {
      dial->system_error = error != 0 ? uv_translate_sys_error(error) : status;
      try_next(dial);
    }
  }
  belay__leave(belay);
}

static bool note_error(belay__dial_t *dial) {
  dial->system_error = uv_translate_sys_error(errno);
  return false;
}

/* Starts to connect to one address. False if that failed at once. */
static bool dial_address(belay__dial_t *dial, const struct sockaddr *address) {
  belay_t *belay = &dial->host->base;
  dial->fd = open_socket(address->sa_family);
  if (dial->fd < 0)
    return note_error(dial);
  if (address->sa_family != AF_UNIX)
    tune_tcp(dial->fd, dial->target);
  if (connect(dial->fd, address, address_len(address)) < 0 && errno != EINPROGRESS)
    return note_error(dial);
  belay__uv_handle_t *handle = belay__alloc(belay, sizeof *handle);
  if (handle == NULL)
    return false;
  memset(handle, 0, sizeof *handle);
  if (uv_poll_init(dial->host->loop, &handle->u.poll, dial->fd) != 0) {
    belay__free(belay, handle, sizeof *handle);
    return false;
  }
  uv_unref(&handle->u.any);
  handle->u.poll.data = dial;
  dial->handle = handle;
  ++*dial->handles;
  return uv_poll_start(&handle->u.poll, UV_WRITABLE, on_writable) == 0;
}

/* Each address gets an equal share of the time that is left. */
static void try_next(belay__dial_t *dial) {
  belay_t *belay = &dial->host->base;
  uint64_t now = belay__now(belay);
  release_attempt(dial);
  while (dial->next < dial->count && now < dial->deadline) {
    size_t left = dial->count - dial->next;
    if (dial_address(dial, &dial->addresses[dial->next++].any)) {
      belay__timer_set(belay, BELAY__RANK_OTHER, &dial->timer, now + (dial->deadline - now) / left);
      return;
    }
    release_attempt(dial);
  }
  finish_failed(dial, BELAY_EUNREACHABLE);
}

static void on_timer(belay__timer_t *timer) {
  belay__dial_t *dial = BELAY__CONTAINER(timer, belay__dial_t, timer);
  dial->system_error = UV_ETIMEDOUT;
  try_next(dial);
}

static void on_turn(belay__job_t *begin) {
  try_next(BELAY__CONTAINER(begin, belay__dial_t, start_slot));
}

/* ---- resolving ---- */

static void look_up(belay__dial_t *dial);

static void use_answer(belay__dial_t *dial, const struct addrinfo *list) {
  dial->awaits_lookup = false;
  for (const struct addrinfo *i = list; i != NULL && dial->count < BELAY__DIAL_ADDRESSES;
       i = i->ai_next)
    if (i->ai_addrlen <= sizeof dial->addresses[0])
      memcpy(&dial->addresses[dial->count++], i->ai_addr, i->ai_addrlen);
  if (dial->count == 0)
    finish_failed(dial, BELAY_ERESOLVE);
  else
    belay__work_budget_queue(&dial->host->work_budget, &dial->start_slot);
}

/* A result for an older target is ignored. */
static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *list) {
  belay__dial_t *dial = request->data;
  belay_t *belay = &dial->host->base;
  if (!belay__enter(belay)) {
    uv_freeaddrinfo(list);
    return;
  }
  dial->resolving = false;
  if (!dial->active)
    dial->on_released(dial);
  else if (dial->awaits_lookup && belay__place_is(&dial->looked_up, &dial->target->place)) {
    dial->system_error = status;
    use_answer(dial, status == 0 ? list : NULL);
  } else if (dial->awaits_lookup)
    look_up(dial);
  uv_freeaddrinfo(list);
  belay__leave(belay);
}

/* Starts a name lookup, unless one for a canceled start is in progress: on_resolved() then uses its
 * result, or starts another one. */
static void look_up(belay__dial_t *dial) {
  char port[8];
  const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  if (dial->resolving)
    return;
  dial->looked_up = dial->target->place;
  dial->request.data = dial;
  snprintf(port, sizeof port, "%u", dial->looked_up.port);
  dial->resolving = uv_getaddrinfo(dial->host->loop, &dial->request, on_resolved,
                                   dial->looked_up.host, port, &hints) == 0;
  if (!dial->resolving)
    belay__work_budget_queue(&dial->host->work_budget,
                             &dial->start_slot); /* without an address the attempt fails there */
}

/* Sets an address that needs no lookup. False if the target is a name. */
static bool is_literal(belay__dial_t *dial) {
  const belay__target_t *target = dial->target;
  dial->count = 1;
  if (target->path != NULL) {
    dial->addresses[0].un = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(dial->addresses[0].un.sun_path, sizeof dial->addresses[0].un.sun_path, "%s",
             target->path);
    return true;
  }
  if (uv_ip4_addr(target->place.host, target->place.port, &dial->addresses[0].v4) == 0 ||
      uv_ip6_addr(target->place.host, target->place.port, &dial->addresses[0].v6) == 0)
    return true;
  dial->count = 0;
  return false;
}

void belay__dial_init(belay__dial_t *dial, belay__host_t *host, const belay__target_t *target,
                      size_t *handles, belay__dial_cb cb,
                      void (*on_released)(belay__dial_t *dial)) {
  *dial = (belay__dial_t){.host = host,
                          .target = target,
                          .handles = handles,
                          .cb = cb,
                          .on_released = on_released,
                          .timer = {.fire = on_timer},
                          .fd = -1};
  belay__job_init(&dial->start_slot, on_turn);
}

void belay__dial_start(belay__dial_t *dial, uint64_t deadline) {
  assert(!dial->active);
  dial->active = true;
  dial->next = dial->count = 0;
  dial->system_error = 0;
  dial->deadline = deadline;
  dial->awaits_lookup = !is_literal(dial);
  if (dial->awaits_lookup)
    look_up(dial);
  else
    belay__work_budget_queue(&dial->host->work_budget, &dial->start_slot);
}

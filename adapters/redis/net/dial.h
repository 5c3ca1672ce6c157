/* Dialing: from a name to a connected socket, over all addresses, without blocking.
 *
 *    start --name--> RESOLVING --addresses--> CONNECTING --connected--> callback: a socket
 *      |                |                       |    ^
 *      |                |                       +----+ next address: it failed, or its time is over
 *      |                |                       |
 *      |                +--does not resolve-----+--none is left--> callback: an error
 *      +--path, numeric address--> CONNECTING
 *
 * The first address waits for the work budget (uv/work_budget.h), so that many simultaneous
 * attempts do not all start in one turn of the loop.
 *
 * cancel() in any state: no callback runs any more. A name lookup cannot be stopped: until it
 * returns, belay__dial_busy() is true and the struct must stay; a start for the same name uses
 * its result. */
#ifndef BELAY_REDIS_NET_DIAL_H
#define BELAY_REDIS_NET_DIAL_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uv.h>

#include "redis/net/address.h"
#include "uv/handle.h"
#include "uv/host.h"

#define BELAY__DIAL_ADDRESSES 16

typedef struct belay__dial belay__dial_t;

/* Runs from the loop. error 0: fd is connected. The callee then owns fd and the handle, a uv_poll
 * for it that is not started. Otherwise BELAY_ERESOLVE or BELAY_EUNREACHABLE. */
typedef void (*belay__dial_cb)(belay__dial_t *dial, int error, int fd, belay__uv_handle_t *handle);

struct belay__dial {
  belay__host_t *host;
  const belay__target_t *target;
  size_t *handles; /* number of open handles */
  belay__dial_cb cb;
  void (*on_released)(belay__dial_t *dial); /* a handle or a name lookup ended */

  bool resolving, active;
  bool awaits_lookup; /* active, and waits for a name lookup */
  uv_getaddrinfo_t request;
  belay__place_t looked_up; /* the host of the lookup */
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
  } addresses[BELAY__DIAL_ADDRESSES];
  size_t count, next;
  uint64_t deadline;
  belay__job_t start_slot; /* waits at the work budget before the first address */
  belay__timer_t timer;    /* end of the present address's share of the time */
  int system_error;        /* error of the last address or the lookup, as libuv has it; 0: none */
  int fd;
  belay__uv_handle_t *handle; /* CONNECTING */
};

void belay__dial_init(belay__dial_t *dial, belay__host_t *host, const belay__target_t *target,
                      size_t *handles, belay__dial_cb cb, void (*on_released)(belay__dial_t *dial));

/* Starts a connection attempt to the present target. Calls back once, from the loop, never
 * inside this call. Not while an attempt is in progress. */
void belay__dial_start(belay__dial_t *dial, uint64_t deadline);
void belay__dial_cancel(belay__dial_t *dial);
/* Cancels at the end of the time. Returns BELAY_ERESOLVE during the name lookup, otherwise
 * BELAY_EUNREACHABLE. */
int belay__dial_expire(belay__dial_t *dial);
/* Cancels before the end of the dial. */
void belay__dial_close(belay__dial_t *dial);

static inline bool belay__dial_busy(const belay__dial_t *dial) {
  return dial->resolving;
}

/* Closes a handle that a dial made, and frees its memory afterwards. */
void belay__dial_close_handle(belay__dial_t *dial, belay__uv_handle_t *handle);

#endif /* BELAY_REDIS_NET_DIAL_H */

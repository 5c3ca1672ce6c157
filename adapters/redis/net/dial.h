/* Dialing: from a name to a connected socket, over all addresses, without blocking.
 *
 *    start --name--> RESOLVING --addresses--> CONNECTING --connected--> callback: a socket
 *      |                |                       |    ^
 *      |                |                       +----+ this address failed, or used its share of the time
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

/* error 0: fd is connected and, with the handle (a uv_poll on it that is not started), the callee's from now
 * on. Otherwise BELAY_ERESOLVE or BELAY_EUNREACHABLE. From the loop. */
typedef void (*belay__dial_cb)(belay__dial_t *dial, int error, int fd, belay__uv_handle_t *handle);

struct belay__dial {
  belay__host_t *host;
  const belay__target_t *target;
  size_t *handles; /* counts the handles that are open */
  belay__dial_cb cb;
  void (*on_released)(belay__dial_t *dial); /* a handle or a look-up of a dial is over */

  bool resolving, active;
  bool awaits_lookup; /* active, and waits for the answer to a look-up */
  uv_getaddrinfo_t request;
  belay__place_t looked_up; /* the host that is being looked up */
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
  } addresses[BELAY__DIAL_ADDRESSES];
  size_t count, next;
  uint64_t deadline;
  belay__job_t start_slot; /* waits at the work budget, to try the first address */
  belay__timer_t timer;    /* the present address's share of the time */
  int system_error; /* why the last address failed, or the name, as libuv has it; 0: nothing has failed */
  int fd;
  belay__uv_handle_t *handle; /* CONNECTING */
};

void belay__dial_init(belay__dial_t *dial, belay__host_t *host, const belay__target_t *target,
                      size_t *handles, belay__dial_cb cb, void (*on_released)(belay__dial_t *dial));

/* Starts a connection attempt to the present target. Calls back once, from the loop, never
 * inside this call. Not while an attempt is in progress. */
void belay__dial_start(belay__dial_t *dial, uint64_t deadline);
void belay__dial_cancel(belay__dial_t *dial);
/* The same when its time is over; returns the error that says how far it came. */
int belay__dial_expire(belay__dial_t *dial);
/* The same, for good. */
void belay__dial_close(belay__dial_t *dial);

static inline bool belay__dial_busy(const belay__dial_t *dial) {
  return dial->resolving;
}

/* Closes a handle that a dial made and gives its memory back when libuv is through with it. */
void belay__dial_close_handle(belay__dial_t *dial, belay__uv_handle_t *handle);

#endif /* BELAY_REDIS_NET_DIAL_H */

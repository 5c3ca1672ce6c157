/* Trunk, cable, link: what a client's connections have in common, what those to one server have, and one of them.
 *
 *   client -- trunk --+-- cable (one server) --+-- link (one connection)
 *                     |                        +-- link
 *                     +-- cable                +-- listener
 *
 * Whoever owns the trunk (single.c, cluster.c) says through its ops where the server of a cable is. */
#ifndef BELAY_REDIS_CONN_SERVER_H
#define BELAY_REDIS_CONN_SERVER_H

#include "core/call/call.h"
#include "core/client/client.h"
#include "redis/conn/auth.h"
#include "redis/net/dial.h"
#include "redis/deployment/slot_map.h"

typedef struct belay__trunk belay__trunk_t;
typedef struct belay__cable belay__cable_t;
typedef struct belay__link belay__link_t;
typedef struct belay__listener belay__listener_t;

/* What a server must be to be used; it is asked (ROLE) each time that it is connected to, and every few seconds. */
typedef enum belay__role {
  BELAY__ROLE_ANY, /* nobody asks */
  BELAY__ROLE_PRIMARY,
  BELAY__ROLE_REPLICA
} belay__role_t;

/* Each of them may be NULL. None is called inside a call into the cable or the link from its owner. */
typedef struct belay__trunk_ops {
  /* Find out where the cable's server is now: put it into cable->target, and tell belay__cable_found(), from the loop,
   * in time or not. NULL: it is where it was. */
  void (*find)(belay__cable_t *cable);
  /* A connection is up; one was lost, or was not to be had. */
  void (*up)(belay__link_t *link);
  void (*lost)(belay__link_t *link, int error);
  /* Calls were refused because their key is elsewhere: takes them all, which belong together, to be queued there. Or the
   * same of a channel, and no calls. NULL: nobody can. */
  void (*redirect)(belay__link_t *link, const belay__redirect_t *to, belay__list_t *calls);
  /* Who has what may not be as it was: the server is silent, or it says so, but not who. Not without redirect. */
  void (*doubt)(belay__link_t *link);
  /* A handle, a look-up or a link is over. */
  void (*quiet)(belay__cable_t *cable);
} belay__trunk_ops_t;

struct belay__trunk {
  const belay__trunk_ops_t *ops;
  belay_client_t *client;
  belay__host_t *host;
  belay__identity_t identity;
  belay_tls_t *tls; /* NULL: none is spoken */
  const char *client_name;
  int db;
  int64_t connect_timeout_ms, stall_timeout_ms, idle_timeout_ms, reconnect_min_ms, reconnect_max_ms;
  int64_t keepalive_ms, tcp_user_timeout_ms;
  size_t max_pending, max_reply;
  belay_on_full_t on_full;
  uint32_t epochs; /* connections that became usable so far; numbers them from 1 */
  uint64_t dials;  /* attempts to connect so far; numbers them from 1 */
  bool warned;     /* that the servers are a cluster's, which nobody has said */
  bool can_known;  /* no connection has come or gone since `can` was put together: */
  unsigned can;    /* a bit for each belay__capability_t of all servers that are connected */
};

struct belay__cable {
  belay__trunk_t *trunk;
  belay__target_t target;
  belay__role_t role;
  bool
      readonly; /* a cluster's replica: it answers what only reads once it is told that this is meant */
  bool
      rushed; /* all clients hear of its server at once: the first to dial waits for its turn too */
  size_t handles;            /* libuv handles that are open */
  belay__timer_t role_timer; /* the server is asked for its role again */
  void *of;                  /* its owner's */
  belay__listener_t *listener;

  /* Whether the server is away (redis/conn/outage.c). Times are nanoseconds of the loop's clock. */
  int failed;        /* error of the last attempt to connect; 0: it succeeded, or there was none */
  uint64_t heard_at; /* when a byte last came from the server, for a link that carries calls */
  uint64_t silent_since; /* since when a call that timed out heard nothing; 0: none has timed out */
  belay__link_t *probe; /* the link that tries to connect most often while failed is set, or NULL */
  uint64_t probe_until; /* links try to connect until then although no call waits */
  belay__timer_t refuse;      /* calls with fail_fast that are queued end */
  char why[BELAY__WORDS_MAX]; /* with failed: the server and the cause */

  size_t lane_links; /* links of LEASE and of DATA each; the other lanes have one */
  size_t count;      /* of all links that carry calls */
  belay__link_t *links;
};

/* Makes a cable with its links and its listener, in one piece of memory; its target is to be set. NULL: memory is out. */
belay__cable_t *belay__cable_new(belay__trunk_t *trunk, size_t lane_links);

/* Ends all its connections at once. It is over when belay__cable_is_over(); then its memory may be given back. */
void belay__cable_close(belay__cable_t *cable);
bool belay__cable_is_over(const belay__cable_t *cable);
void belay__cable_free(belay__cable_t *cable);

/* For a cable that gets no more calls: closes the links that nothing is under way on; the others end with the last answer,
 * and lost() is told. True if there are no others. */
bool belay__cable_drain(belay__cable_t *cable);

/* The link for calls of that lane and affinity. */
belay__link_t *belay__cable_link(const belay__cable_t *cable, belay__lane_t lane,
                                 uint32_t affinity);

size_t belay__cable_links_up(const belay__cable_t *cable);

/* Whether an answer is owed for so many milliseconds, by belay__link_owes(), belay__link_is_silent(). */
bool belay__cable_owes(const belay__cable_t *cable, uint64_t ms);
bool belay__cable_is_silent(belay__cable_t *cable, uint64_t ms);

/* For who reads from replicas. Connects, so that it can be read from. */
void belay__cable_want(belay__cable_t *cable);
/* Whether what only reads may be asked there now: it is connected, has been found to be what it must be, and is not
 * silent. */
bool belay__cable_reads(const belay__cable_t *cable, belay__lane_t lane, uint32_t affinity);

/* A link is up. */
void belay__cable_met(belay__cable_t *cable);

/* Takes out of *can what the server of one of its connections cannot do; false if there is none. */
bool belay__cable_can(const belay__cable_t *cable, unsigned *can);

/* What find() was to find out: 0 with the target set, or an error. */
void belay__cable_found(belay__cable_t *cable, int error);

/* Those that wait before they try again need not wait any longer: there is reason to hope. */
void belay__cable_hurry(belay__cable_t *cable);

/* Its connections lead to a server that is not the right one any more: they end before the loop sleeps. */
/* cause: in words. */
void belay__cable_leave(belay__cable_t *cable, int error, const char *cause);
/* The server is to be used for something else from now on: those that carry calls end when they have been answered. */
void belay__cable_renew(belay__cable_t *cable);

#endif /* BELAY_REDIS_CONN_SERVER_H */

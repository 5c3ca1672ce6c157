/* The subscriber: the one connection to a server that is told what is published. subscriber.c has the diagrams. */
#ifndef BELAY_REDIS_CONN_SUBSCRIBER_H
#define BELAY_REDIS_CONN_SUBSCRIBER_H

#include "core/client/channel.h"
#include "redis/conn/state.h"

#define BELAY__SUBSCRIBER_GROUPS 64 /* batches of subscriptions that are not answered */

/* What was sent up to one PING, or up to several with nothing but good-byes between them. */
typedef struct belay__subscription_group {
  enum {
    BELAY__GROUP_TOGETHER,   /* one command for several channels */
    BELAY__GROUP_ALONE,      /* one command for each */
    BELAY__GROUP_UNSUBSCRIBE /* channels that are not wanted any more */
  } kind;
  uint32_t pings; /* that are not answered */
  uint32_t left;  /* LEAVE: commands that are not answered */
  uint64_t last;  /* number of the last subscription up to here */
} belay__subscription_group_t;

struct belay__subscriber {
  belay__connection_t connection;
  belay__server_info_t calls_at; /* the server that calls go to, by the last attempt to connect, */
  uint64_t calls_dialed;         /* and which that was; 0: none yet */
  belay__list_t queue;           /* to be asked for */
  belay__list_t asked;           /* by number */
  belay__list_t up;              /* confirmed */
  belay__list_t refused;         /* by the server, each for itself */
  uint64_t last_number;          /* subscriptions of this connection so far */
  uint64_t answered_count;       /* of them, that were answered */
  belay__flush_t flush;          /* asks for what is in the queue */
  belay__timer_t retry_timer;    /* asks for some of those that were refused */
  size_t first, count, open_groups; /* batches that are not answered; of them, subscriptions */
  belay__subscription_group_t
      groups[2 * BELAY__SUBSCRIBER_GROUPS + 1]; /* a ring: a good-bye before and after each */
};

void belay__subscriber_init(belay__subscriber_t *subscriber, belay__server_t *server);

void belay__subscriber_add(belay__subscriber_t *subscriber, belay__channel_t *channel);
void belay__subscriber_remove(belay__subscriber_t *subscriber, belay__channel_t *channel);
void belay__subscriber_close(belay__subscriber_t *subscriber);

/* ---- for the connection --------------------------------------------------------------------------------------- */

/* A connection that carries calls is up. If that leads to another server than where is listened, and was begun later,
 * then what is heard here is not the truth any more. */
void belay__subscriber_check_server(belay__subscriber_t *subscriber,
                                    const belay__connection_t *connection);

/* The connection is usable. */
void belay__subscriber_connected(belay__subscriber_t *subscriber);

/* It is gone, or was not to be had; told by the connection before it is made again. */
void belay__subscriber_lost(belay__subscriber_t *subscriber, int error);

#endif /* BELAY_REDIS_CONN_SUBSCRIBER_H */

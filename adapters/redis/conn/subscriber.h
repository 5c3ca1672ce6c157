/* The subscriber: the one connection to a server that receives messages of channels.
 * subscriber.c has the diagram. */
#ifndef BELAY_REDIS_CONN_SUBSCRIBER_H
#define BELAY_REDIS_CONN_SUBSCRIBER_H

#include "core/client/channel.h"
#include "redis/conn/state.h"

#define BELAY__SUBSCRIBER_GROUPS 64 /* groups of subscriptions without all replies */

/* The commands up to one PING, or up to several PINGs with only UNSUBSCRIBE between them. */
typedef struct belay__subscription_group {
  bool unsubscribes; /* true for UNSUBSCRIBE commands; false for SUBSCRIBE commands */
  uint32_t pings;    /* number of PINGs without a reply */
  uint32_t left;     /* With unsubscribes: number of commands without a reply. */
  uint64_t last;     /* number of the last subscription in this group or before it */
} belay__subscription_group_t;

struct belay__subscriber {
  belay__connection_t connection;
  belay__server_info_t calls_at; /* The server of the calls, by the newest of their connections. */
  uint64_t calls_dialed;         /* Number of that connection's attempt; 0: none yet. */
  belay__list_t queue;           /* channels to subscribe to */
  belay__list_t asked;           /* subscriptions without a reply, by number */
  belay__list_t up;              /* confirmed subscriptions */
  belay__list_t refused;         /* channels that the server refused one by one */
  /* Number of the newest subscription of this connection; the first is 1. */
  uint64_t last_number;
  uint64_t answered_count;    /* number of subscriptions with a reply */
  belay__flush_t flush;       /* sends groups before the loop sleeps */
  belay__timer_t retry_timer; /* sends some of the refused channels again */
  /* groups[] is a ring: index of the first group, number of groups, number of groups with
   * subscriptions. */
  size_t first, count, open_groups;
  /* room for an UNSUBSCRIBE group before and after each group */
  belay__subscription_group_t groups[2 * BELAY__SUBSCRIBER_GROUPS + 1];
};

void belay__subscriber_init(belay__subscriber_t *subscriber, belay__server_t *server);

void belay__subscriber_add(belay__subscriber_t *subscriber, belay__channel_t *channel);
void belay__subscriber_remove(belay__subscriber_t *subscriber, belay__channel_t *channel);
void belay__subscriber_close(belay__subscriber_t *subscriber);

/* ---- for the connection ---- */

/* Called when a connection that carries calls is up. If that connection was started later and
 * leads to another server, the subscriber's server is out of date, and its connection is
 * dropped. */
void belay__subscriber_check_server(belay__subscriber_t *subscriber,
                                    const belay__connection_t *connection);

/* The subscriber's connection is usable. */
void belay__subscriber_connected(belay__subscriber_t *subscriber);

/* The subscriber's connection was lost or not made. Called before the next attempt. */
void belay__subscriber_lost(belay__subscriber_t *subscriber, int error);

#endif /* BELAY_REDIS_CONN_SUBSCRIBER_H */

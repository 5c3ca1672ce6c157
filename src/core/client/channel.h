/* Channels that a client subscribes to, on one connection (in a cluster: one for each server).
 * Messages are hints: while the connection is down, messages are lost.
 *
 *    belay__listen() --> requested --the node subscribes--> confirmed: UP
 *                          ^                                    |
 *                          +--connection lost: GAP--------------+
 *
 * A channel whose last subscription has gone is kept for a while, so that a new subscription
 * finds it confirmed. */
#ifndef BELAY_CORE_CLIENT_CHANNEL_H
#define BELAY_CORE_CLIENT_CHANNEL_H

#include "core/client/client.h"

typedef struct belay__subscription belay__subscription_t;

typedef enum belay__channel_event {
  /* The server confirmed the subscription: from now on messages arrive. Reported
   * first (unless the channel was up at belay__listen()), and after each gap */
  BELAY__CHANNEL_UP,
  BELAY__CHANNEL_MESSAGE, /* a message arrived */
  /* Messages are lost from now on. Reported to each subscription that was UP. A subscription that
   * was not UP gets a GAP only for a lasting error, once per error: the server refuses the
   * subscription, or refuses the connection. In all cases the node subscribes again. */
  BELAY__CHANNEL_GAP
} belay__channel_event_t;

/* A subscription to a channel, embedded in its owner. {0} subscribes to nothing. */
struct belay__subscription {
  belay__list_t node; /* Link in the channel's list */
  belay__channel_t *channel;
  /* true if the owner was notified of UP, or the channel was up at belay__listen(), and no GAP was
   * reported since */
  bool up;
  /* Lasting error of the last GAP that the owner was notified of; 0: none since UP */
  int reported;
  /* Called for each event. data and len: the message; status: the cause of a GAP. Never called
   * inside belay__listen() or belay__unlisten(), which it may call. */
  void (*on_event)(belay__subscription_t *subscription, belay__channel_event_t what,
                   const char *data, size_t len, int status);
};

/* Subscribe to a channel; the name is copied. The subscription must not have a channel. If the
 * channel is confirmed already, no UP event follows: check belay__subscription_is_up(). Returns 0,
 * BELAY_ENOMEM, or BELAY_EBUSY if the client has too many channels. */
int belay__listen(belay_client_t *client, const char *name, size_t len,
                  belay__subscription_t *subscription);

/* End a subscription; no effect if it has no channel. */
void belay__unlisten(belay__subscription_t *subscription);

/* true if the server has confirmed the subscription, so that messages arrive now. */
bool belay__subscription_is_up(const belay__subscription_t *subscription);

/* true if the server has confirmed this client's subscription to the channel, so that messages
 * arrive now. */
bool belay__channel_is_up(belay_client_t *client, const char *name, size_t len);

void belay__channels_init(belay_client_t *client);
/* Stop the linger timer, because the client closes. No channel has subscriptions any more. */
void belay__channels_close(belay_client_t *client);
/* Free the memory of all channels. */
void belay__channels_free(belay_client_t *client);

/* ---- for the node ---- */

/* A channel that the client subscribes to. From node_ops->listen() until node_ops->unlisten() the
 * node links the channel by `node`. */
struct belay__channel {
  belay__keyed_t keyed; /* First; link in the client's table, and the name */
  belay__list_t all;    /* Link in the client's list of all channels */
  /* Link in the client's list of channels without subscriptions; unlinked: the channel has a
   * subscription */
  belay__list_t lingers;
  uint64_t lingers_until; /* End of the linger time, in nanoseconds */
  belay_client_t *client;
  belay__list_t subscriptions;
  bool busy; /* true while its subscriptions are being notified */
  bool up;   /* true if the server confirmed the subscription */

  struct {
    belay__list_t list; /* Link in a queue of the node */
    uint64_t number;    /* Position among the subscriptions sent on the connection, from 1 */
    void *at;           /* The node's connection for messages that has the channel; NULL: none */
    /* true if the server refused the channel, and the node tests whether it still does */
    bool probe;
    uint8_t state;
    uint16_t slot; /* Slot in a cluster */
  } node;
};

/* The channel of this name; NULL if there is none. */
belay__channel_t *belay__channel_find(belay_client_t *client, const char *name, size_t len);

/* Report that the server confirmed the subscription. */
void belay__channel_confirmed(belay__channel_t *channel);

/* Report a message. */
void belay__channel_message(belay_client_t *client, const char *name, size_t name_len,
                            const char *data, size_t len);

/* Report that the server refused the subscription, that the connection for the channel was lost or
 * cannot be made, or that the channel's slot moved to another server. */
void belay__channel_lost(belay__channel_t *channel, int error);

/* Call a function for each channel of a client. The function may listen and unlisten. */
void belay__channels_each(belay_client_t *client,
                          void (*visit)(belay__channel_t *channel, void *arg), void *arg);

#endif /* BELAY_CORE_CLIENT_CHANNEL_H */

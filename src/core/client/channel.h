/* Channels: what a client listens to, on one connection for all who want to hear. What is heard is a hint, never the
 * truth: messages are lost with every connection.
 *
 *   subscription --listen--> channel, wanted --the node subscribes--> confirmed: UP --connection lost: GAP--> wanted
 *
 * A channel whose last subscription has gone stays for a while, so that who comes back soon finds it confirmed. */
#ifndef BELAY_CORE_CLIENT_CHANNEL_H
#define BELAY_CORE_CLIENT_CHANNEL_H

#include "core/client/client.h"

typedef struct belay__subscription belay__subscription_t;

typedef enum belay__channel_event {
  BELAY__CHANNEL_UP, /* confirmed: from now on messages come; the first time, and after each gap */
  BELAY__CHANNEL_MESSAGE, /* one came */
  /* From now on messages are lost. Told to who was UP; and to who was not yet, if the server refuses for a reason
   * that is a lasting one, once for each reason. It is tried again all the same. */
  BELAY__CHANNEL_GAP
} belay__channel_event_t;

/* Who wants to hear a channel; lives in its owner. {0} listens to nothing. */
struct belay__subscription {
  belay__list_t node; /* in the channel's list */
  belay__channel_t *channel;
  bool up;  /* it was told so */
  int told; /* the refusal that it was told of; 0: none since it was UP */
  /* data and len with MESSAGE; status with GAP. Never called inside belay__listen() or belay__unlisten(). It may
   * listen and unlisten, itself and others. */
  void (*hear)(belay__subscription_t *subscription, belay__channel_event_t what, const char *data,
               size_t len, int status);
};

/* Listens to a channel (the name is copied); not for an subscription that listens to one already. One that is confirmed
 * already is not told so: belay__subscription_is_up(). One that the server had refused is asked for again.
 * Returns 0, BELAY_ENOMEM, or BELAY_EBUSY if the client listens to too many. */
int belay__listen(belay_client_t *client, const char *name, size_t len,
                  belay__subscription_t *subscription);

/* Does not want to hear it any more; also for one that listens to nothing. */
void belay__unlisten(belay__subscription_t *subscription);

/* Whether messages come now. */
bool belay__subscription_is_up(const belay__subscription_t *subscription);

/* Whether this client is among those who get what is published there. */
bool belay__channel_is_up(belay_client_t *client, const char *name, size_t len);

void belay__channels_init(belay_client_t *client);
/* The client closes: nobody listens any more, and nothing is told. */
void belay__channels_close(belay_client_t *client);
/* Its memory goes. */
void belay__channels_free(belay_client_t *client);

/* ---- for the node --------------------------------------------------------------------------------------- */

/* A name that is listened to. It is the node's, by `node`, from listen() to unlisten(). */
struct belay__channel {
  belay__entry_t entry;   /* in the client's table */
  belay__list_t all;      /* in the client's list */
  belay__list_t lingers;  /* in the client's list of those that nobody hears; else alone */
  uint64_t lingers_until; /* then it is left */
  belay_client_t *client;
  belay__list_t subscriptions;
  bool busy; /* its subscriptions are being told */
  bool up;   /* confirmed */

  struct {
    belay__list_t list; /* a queue of the node's */
    uint64_t number;    /* of the subscription */
    void *at;           /* who listens to it; NULL: nobody yet */
    bool alone;         /* is not asked for together with others */
    bool probe;         /* was refused, and is asked for to see whether it still is */
    uint8_t state;
    uint16_t slot; /* in a cluster */
  } node;

  size_t len;
  char name[];
};

/* NULL if nobody listens to one of that name. */
belay__channel_t *belay__channel_find(belay_client_t *client, const char *name, size_t len);

/* The server has confirmed the subscription. */
void belay__channel_confirmed(belay__channel_t *channel);

/* A message came. */
void belay__channel_message(belay_client_t *client, const char *name, size_t name_len,
                            const char *data, size_t len);

/* The server refuses the subscription, or its connection is lost or cannot be made. */
void belay__channel_lost(belay__channel_t *channel, int error);

/* Does something with each of a client's channels; that may listen and unlisten. */
void belay__channels_each(belay_client_t *client,
                          void (*visit)(belay__channel_t *channel, void *arg), void *arg);

#endif /* BELAY_CORE_CLIENT_CHANNEL_H */

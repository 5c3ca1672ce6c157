/* The listener: the one link to a server that is told what is published. subscriber.c has the diagrams. */
#ifndef BELAY_REDIS_CONN_SUBSCRIBER_H
#define BELAY_REDIS_CONN_SUBSCRIBER_H

#include "core/client/channel.h"
#include "redis/conn/state.h"

#define BELAY__LISTENER_ASKS 64 /* batches of subscriptions that are not answered */

/* What was sent up to one PING, or up to several with nothing but good-byes between them. */
typedef struct belay__batch {
  enum {
    BELAY__BATCH_TOGETHER, /* one command for several channels */
    BELAY__BATCH_ALONE,    /* one command for each */
    BELAY__BATCH_LEAVE     /* channels that are not wanted any more */
  } kind;
  uint32_t pings; /* that are not answered */
  uint32_t left;  /* LEAVE: commands that are not answered */
  uint64_t last;  /* number of the last subscription up to here */
} belay__batch_t;

struct belay__listener {
  belay__link_t link;
  belay__server_t calls_at;  /* the server that calls go to, by the last attempt to connect, */
  uint64_t calls_dialed;     /* and which that was; 0: none yet */
  belay__list_t queue;       /* to be asked for */
  belay__list_t asked;       /* by number */
  belay__list_t up;          /* confirmed */
  belay__list_t refused;     /* by the server, each for itself */
  uint64_t numbers;          /* subscriptions of this connection so far */
  uint64_t heard;            /* of them, that were answered */
  belay__flush_t flush;      /* asks for what is in the queue */
  belay__timer_t again;      /* asks for some of those that were refused */
  size_t first, count, asks; /* batches that are not answered; of them, subscriptions */
  belay__batch_t
      batches[2 * BELAY__LISTENER_ASKS + 1]; /* a ring: a good-bye before and after each */
};

void belay__listener_init(belay__listener_t *listener, belay__cable_t *cable);

void belay__listener_listen(belay__listener_t *listener, belay__channel_t *channel);
void belay__listener_unlisten(belay__listener_t *listener, belay__channel_t *channel);
void belay__listener_close(belay__listener_t *listener);

/* ---- for the link --------------------------------------------------------------------------------------- */

/* A link that carries calls is up. If that leads to another server than where is listened, and was begun later,
 * then what is heard here is not the truth any more. */
void belay__listener_met(belay__listener_t *listener, const belay__link_t *link);

/* The connection is usable. */
void belay__listener_up(belay__listener_t *listener);

/* It is gone, or was not to be had; told by the link before it is made again. */
void belay__listener_lost(belay__listener_t *listener, int error);

#endif /* BELAY_REDIS_CONN_SUBSCRIBER_H */

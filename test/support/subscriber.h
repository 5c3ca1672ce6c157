/* Who listens to a topic, and who publishes on one. The memory is the test's, and outlives the bed. */
#ifndef TEST_SUBSCRIBER_H
#define TEST_SUBSCRIBER_H

#include "support/bed.h"

typedef struct subscriber subscriber_t;

/* Runs at the end of each callback. */
typedef void (*subscriber_then_fn)(subscriber_t *subscriber, belay_topic_event_t event);

enum { STORY_MAX = 64, TEXT_MAX = 64 };

struct subscriber {
  bed_t *bed;
  belay_subscription_t *handle;
  unsigned listening, messages, gaps, closing, closed;
  bool up;                   /* LISTENING, and no GAP since */
  int status;                /* of the last gap */
  char story[STORY_MAX + 1]; /* the first events: L, M, G */
  char text[TEXT_MAX];       /* how the last message begins, */
  size_t len;                /* and how long it is */
  uint64_t sum;              /* over all messages, so that their order matters */
  subscriber_then_fn then;   /* NULL: nothing */
  void *arg;                 /* the test's */
};

/* What belay returned. Each callback is checked: not inside a call, not after a close, and in an order that can be. */
int subscribe_to(bed_t *bed, belay_client_t *client, subscriber_t *subscriber, const char *name,
                 size_t len);
/* With the bed's first client; returns when it listens. */
void subscribe(bed_t *bed, subscriber_t *subscriber, const char *name);
/* Begins to close it; what belay returned. */
int unsubscribe(subscriber_t *subscriber);

/* The number that `sum` is after messages "0" to n - 1 in this order. */
uint64_t sum_of_numbers(unsigned n);

typedef struct publication {
  belay_request_t request;
  bed_t *bed;
  unsigned ended;
  int status;
  int64_t receivers;
  void (*then)(struct publication *publication); /* NULL: nothing */
  void *arg;
} publication_t;

/* What belay returned. */
int begin_publish(bed_t *bed, belay_client_t *client, publication_t *publication, const char *name,
                  const void *message, size_t len);
/* With the bed's first client, and to the end: its status. */
int publish(bed_t *bed, publication_t *publication, const char *name, const char *text);

/* Publishes the numbers 0 to n - 1, one behind the other, and waits for the last. */
void publish_numbers(bed_t *bed, belay_client_t *client, const char *name, unsigned n);

#endif /* TEST_SUBSCRIBER_H */

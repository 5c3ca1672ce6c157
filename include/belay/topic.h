/* Topics: messages to whoever listens at that moment. */
#ifndef BELAY_TOPIC_H
#define BELAY_TOPIC_H

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_TOPIC_MESSAGE_MAX ((size_t)1 << 20) /**< bytes of a message */

/** A callback of the shape of belay/request.h: how a publication ended. receivers: connections that the
 * server gave it to, on the server that was asked; several subscriptions of one client are one connection. 0 unless
 * status is 0.
 *
 *   0                    the server has passed it on
 *   BELAY_EUNKNOWN       sent, and not answered: it may have been passed on. It is not sent again
 *   BELAY_EUNREACHABLE   nothing was sent
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EBUSY, BELAY_ENOMEM, BELAY_ERESOLVE, BELAY_EAUTH and others of a connection that is not there: nothing
 * was sent
 *   another error        the server's refusal, such as BELAY_EPERM */
typedef void (*belay_topic_publish_cb)(belay_request_t *request, int status, int64_t receivers);

/** Publishes a message (any bytes, at most BELAY_TOPIC_MESSAGE_MAX; copied) on a topic of the client's namespace.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_topic_publish(belay_client_t *client, belay_request_t *request,
                                  belay_bytes_t name, belay_bytes_t message,
                                  belay_topic_publish_cb cb);

/** A subscription to one topic. All subscriptions of a client, and its waiters, share one connection; in a cluster one to
 * each node, where a topic is at the node that has its slot. */
typedef struct belay_subscription belay_subscription_t;

/** What a subscriber is told. */
typedef enum belay_topic_event {
  /** The server has confirmed the subscription: every message from here on is told, until a GAP. Comes first, and
   * again when a GAP is over. What was published before is not told: look at the data itself now. */
  BELAY_TOPIC_LISTENING = 1,
  BELAY_TOPIC_MESSAGE, /**< a message */
  /** Messages are being lost: the connection is, or the topic has moved to another node of a cluster, or more came than
   * the subscription may queue. Without a LISTENING before it: the server refuses, for a reason that does not pass by
   * itself. It is asked again all the same, about as often as reconnect_max_ms says; one that is too old (before Redis
   * 6) ever more seldom, up to every five minutes. */
  BELAY_TOPIC_GAP
} belay_topic_event_t;

/** message and len with BELAY_TOPIC_MESSAGE; valid until the callback returns. status with BELAY_TOPIC_GAP: why, such
 * as BELAY_EUNREACHABLE, BELAY_EPERM, or BELAY_EBUSY for what it may queue. Anything of belay's may be called in
 * it, a close too. */
typedef void (*belay_topic_cb)(belay_subscription_t *subscription, belay_topic_event_t event,
                               const void *message, size_t len, int status);

/** Listens to a topic until the subscription is closed. data: belay_subscription_data(). The callback runs on the
 * loop, never inside this call. It keeps the loop alive only if belay_subscription_ref() says so. At most 65,536
 * channels in a client; messages that wait for their callback take at most the client's max_reply bytes in each
 * subscription, or are one.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EBUSY, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_topic_subscribe(belay_client_t *client, belay_bytes_t name, belay_topic_cb cb,
                                    void *data, belay_subscription_t **out);

BELAY_API void *belay_subscription_data(const belay_subscription_t *subscription);
BELAY_API void belay_subscription_ref(belay_subscription_t *subscription);
BELAY_API void belay_subscription_unref(belay_subscription_t *subscription);

/** Runs once when belay_subscription_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_subscription_close_cb)(belay_subscription_t *subscription, void *data);

/** Ends it, in any callback; no event comes after this call. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_subscription_close(belay_subscription_t *subscription,
                                       belay_subscription_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_TOPIC_H */

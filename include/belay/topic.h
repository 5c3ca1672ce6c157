/* Topics: publish and subscribe. */
#ifndef BELAY_TOPIC_H
#define BELAY_TOPIC_H

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_TOPIC_MESSAGE_MAX ((size_t)1 << 20) /**< bytes of a message */

/** A subscription to one topic. A topic delivers a message to all present subscribers. It stores
 * nothing: a client that is not subscribed at that moment never gets the message.
 *
 * Use a topic to announce that data has changed, and read the data after each LISTENING event. Do
 * not use it for messages that must arrive: use a stream or a queue for those.
 *
 * All subscriptions and waiters of a client share one connection. In a cluster there is one per
 * node, and a topic is served by the node of its slot.
 *
 * @code
 * static void on_event(belay_subscription_t *subscription, belay_topic_event_t event,
 *                      const void *message, size_t len, int status) {
 *   (void)subscription;
 *   if (event == BELAY_TOPIC_LISTENING)
 *     printf("subscribed: read the whole configuration now\n");
 *   else if (event == BELAY_TOPIC_MESSAGE)
 *     printf("changed: %.*s\n", (int)len, (const char *)message);
 *   else
 *     printf("messages may be lost: %s\n", belay_strerror(status));
 * }
 *
 * int watch_config(belay_client_t *client, belay_subscription_t **out) {
 *   return belay_topic_subscribe(client, belay_string("config"), on_event, NULL, out);
 * }
 * @endcode */
typedef struct belay_subscription belay_subscription_t;

/** Reports the end of a publication; see CALLBACKS in belay/request.h. receivers is the number of
 * connections to which the asked server delivered the message; several subscriptions of one client
 * are one connection. It is 0 unless status is 0. status:
 *
 *   0                    the server has delivered the message
 *   BELAY_EUNKNOWN       sent and not answered: it may have been delivered; it is not sent again
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EUNREACHABLE, BELAY_EBUSY, BELAY_ENOMEM, BELAY_ERESOLVE, BELAY_EAUTH and others of
 *   belay_connect()      nothing was sent
 *   another error        the server refused it, such as BELAY_EPERM */
typedef void (*belay_topic_publish_cb)(belay_request_t *request, int status, int64_t receivers);

/** Publish a message (0 to BELAY_TOPIC_MESSAGE_MAX bytes of any value; copied) on a topic of the
 * client's namespace. name is 1 to 1024 bytes.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_topic_publish(belay_client_t *client, belay_request_t *request,
                                  belay_bytes_t name, belay_bytes_t message,
                                  belay_topic_publish_cb cb);

/** Events of a subscription. */
typedef enum belay_topic_event {
  /** The server has confirmed the subscription. From here on every message is reported, until a
   * GAP. It is the first event, and comes again after each GAP. Earlier messages are not reported:
   * read the data itself now. */
  BELAY_TOPIC_LISTENING = 1,
  /** A message has arrived. */
  BELAY_TOPIC_MESSAGE,
  /** Messages are being lost. It follows the messages that arrived before it, and comes once per
   * outage. Reasons: the connection is lost; the topic has moved to another node of a cluster; more
   * messages arrived than the subscription may queue (LISTENING follows at once).
   *
   * A GAP before the first LISTENING, or right after another GAP, means that the server refuses the
   * subscription for a lasting reason. The client still repeats it, about once per
   * reconnect_max_ms. On a server before Redis 6 the delay grows up to five minutes. */
  BELAY_TOPIC_GAP
} belay_topic_event_t;

/** Reports an event. Runs once per event, on the loop, never inside belay_topic_subscribe().
 *
 * message and len are valid with BELAY_TOPIC_MESSAGE, until the callback returns. status is valid
 * with BELAY_TOPIC_GAP: the cause, such as BELAY_EUNREACHABLE, BELAY_EPERM, or BELAY_EBUSY if too
 * many messages were queued. */
typedef void (*belay_topic_cb)(belay_subscription_t *subscription, belay_topic_event_t event,
                               const void *message, size_t len, int status);

/** Subscribe to a topic (name: 1 to 1024 bytes) until the subscription is closed. data is the
 * pointer that belay_subscription_data() returns. The subscription keeps the loop alive only after
 * belay_subscription_ref().
 *
 * Limits: a client has at most 65,536 channels, otherwise BELAY_EBUSY. Messages that wait for the
 * callback of a subscription take at most the client's max_reply bytes; a single message may be
 * larger.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EBUSY, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_topic_subscribe(belay_client_t *client, belay_bytes_t name, belay_topic_cb cb,
                                    void *data, belay_subscription_t **out);

/** Return the data argument of belay_topic_subscribe(). */
BELAY_API void *belay_subscription_data(const belay_subscription_t *subscription);
/** Let the subscription keep the loop alive. Off by default. Further calls have no effect. */
BELAY_API void belay_subscription_ref(belay_subscription_t *subscription);
/** Undo belay_subscription_ref(), also if it was called several times. */
BELAY_API void belay_subscription_unref(belay_subscription_t *subscription);

/** Runs once when the subscription is gone. data is described at CLOSING in belay/loop.h. */
typedef void (*belay_subscription_close_cb)(belay_subscription_t *subscription, void *data);

/** Close a subscription, in any callback. No event is reported after this call. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_subscription_close(belay_subscription_t *subscription,
                                       belay_subscription_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_TOPIC_H */

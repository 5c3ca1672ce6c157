/* Topics. A subscription is a handle:
 *
 *    LISTENING: messages are queued
 *      |    ^
 *      v    | the callback got the gap, and the channel is up
 *    GAP: messages are lost
 *
 * A gap begins when the connection is lost, when the server refuses the subscription, or when there
 * is no room for a message: the queue is bounded in bytes. A task passes the queue, and then the
 * gap, to the callback. All events until the callback gets the gap belong to the gap, and are
 * dropped. */
#include <belay/topic.h>
#include <string.h>

#include "core/call/publish.h"
#include "core/client/channel.h"
#include "core/client/handle.h"
#include "core/client/lifecycle.h"
#include "core/key/key.h"

#define FAMILY "topic"
/* maximum of events that one task reports, because deadlines must not wait for the whole queue */
#define EVENTS_PER_TASK 64

/* Writes the name of a topic's channel. Returns its length. */
static size_t build_channel(char out[BELAY__KEY_MAX], const belay_client_t *client,
                            belay_bytes_t name) {
  return belay__key_build(out, client->prefix, client->prefix_len, FAMILY, name.data, name.len);
}

/* ---- publishing ---- */

static int read_receivers(belay__operation_t *operation, const belay__call_t *call,
                          const belay__reply_t *reply) {
  (void)call;
  return belay__reply_integer(reply, 0, INT64_MAX, &operation->values[0]) ? 0 : BELAY_EPROTO;
}

static const belay__request_ops_t publish_ops = {.read = read_receivers,
                                                 .notify = belay__request_notify_count};

int belay_topic_publish(belay_client_t *client, belay_request_t *request, belay_bytes_t name,
                        belay_bytes_t message, belay_topic_publish_cb cb) {
  int error = belay__client_check(client);
  if (error == 0)
    error = belay__request_check(client, request, cb != NULL);
  if (error == 0)
    error = belay__check_bytes(client->belay, "name", name, 1, BELAY__NAME_MAX);
  if (error != 0)
    return error;
  if (message.len > BELAY_TOPIC_MESSAGE_MAX || (message.data == NULL && message.len > 0))
    return belay__invalid(client->belay, "message: NULL, or more than 1,048,576 bytes");
  belay__call_t *call = belay__call_new(client, BELAY__CLASS_DATA);
  if (call == NULL)
    return BELAY_ENOMEM;
  char channel[BELAY__KEY_MAX];
  size_t len = build_channel(channel, client, name);
  belay__publish_build(call, channel, len, message.len == 0 ? "" : message.data, message.len);
  call->route = belay__key_route(channel, len);
  return belay__request_start(request, call, &publish_ops, NULL, NULL, BELAY__CB(cb));
}

/* ---- a subscription ---- */

typedef struct message {
  belay__list_t node;
  size_t len;
  char data[];
} message_t;

struct belay_subscription {
  belay__handle_t handle; /* first */
  belay__subscription_t subscription;
  belay__task_t task;
  belay_topic_cb cb;
  bool ref;
  bool listening;      /* true if LISTENING must be reported, before the queue */
  int gap;             /* status of a gap that must be reported, after the queue; 0: none */
  belay__list_t queue; /* messages */
  size_t bytes;        /* size of the queue */
};

/* The arguments of belay_topic_subscribe(). */
typedef struct arguments {
  belay_bytes_t name;
  belay_topic_cb cb;
  void *data;
} arguments_t;

static size_t size_of(const message_t *message) {
  return sizeof *message + message->len;
}

/* Takes the first message out of the queue, which is not empty. The caller frees the message with
 * free_message(). */
static message_t *pop_message(belay_subscription_t *subscription) {
  message_t *message = BELAY__CONTAINER(belay__list_pop(&subscription->queue), message_t, node);
  subscription->bytes -= size_of(message);
  return message;
}

static void free_message(belay_client_t *client, message_t *message) {
  belay__free(client->belay, message, size_of(message));
}

/* Adds a copy of the message to the queue. Returns 0, or the error because of which the message is
 * lost. An empty queue has room for any message. */
static int add_message(belay_subscription_t *subscription, const char *data, size_t len) {
  belay_client_t *client = subscription->handle.client;
  size_t bytes = subscription->bytes + sizeof(message_t) + len;
  if (subscription->bytes > 0 && bytes > client->max_reply)
    return BELAY_EBUSY;
  message_t *message = belay__alloc(client->belay, sizeof *message + len);
  if (message == NULL)
    return BELAY_ENOMEM;
  message->len = len;
  if (len > 0)
    memcpy(message->data, data, len);
  belay__list_push(&subscription->queue, &message->node);
  subscription->bytes += size_of(message);
  return 0;
}

static void on_message(belay__subscription_t *base, belay__channel_event_t what, const char *data,
                       size_t len, int status) {
  belay_subscription_t *subscription = BELAY__CONTAINER(base, belay_subscription_t, subscription);
  if (subscription->gap != 0)
    /* drop the event, which is part of the gap; the task checks later if the channel is up again */
    return;
  switch (what) {
  case BELAY__CHANNEL_UP:
    subscription->listening = true;
    break;
  case BELAY__CHANNEL_MESSAGE:
    subscription->gap = add_message(subscription, data, len);
    break;
  case BELAY__CHANNEL_GAP:
    subscription->gap = status;
    break;
  }
  belay__defer(subscription->handle.client->belay, &subscription->task);
}

/* Reports the first event that is due. False if there is none. */
static bool deliver_one(belay_subscription_t *subscription) {
  belay_client_t *client = subscription->handle.client;
  if (subscription->listening) {
    subscription->listening = false;
    subscription->cb(subscription, BELAY_TOPIC_LISTENING, NULL, 0, 0);
    return true;
  }
  if (!belay__list_empty(&subscription->queue)) {
    message_t *message = pop_message(subscription);
    subscription->cb(subscription, BELAY_TOPIC_MESSAGE, message->data, message->len, 0);
    free_message(client, message);
    return true;
  }
  if (subscription->gap != 0) {
    int status = subscription->gap;
    subscription->gap = 0;
    subscription->listening = belay__subscription_is_up(&subscription->subscription);
    belay__client_explain(client, status, NULL, 0);
    subscription->cb(subscription, BELAY_TOPIC_GAP, NULL, 0, status);
    return true;
  }
  return false;
}

static void on_task(belay__task_t *task) {
  belay_subscription_t *subscription = BELAY__CONTAINER(task, belay_subscription_t, task);
  bool more = true;
  for (int i = 0; i < EVENTS_PER_TASK && more && !subscription->handle.closing; i++)
    more = deliver_one(subscription);
  if (more && !subscription->handle.closing)
    belay__defer(subscription->handle.client->belay, &subscription->task);
}

static void on_close(belay__handle_t *handle) {
  belay_subscription_t *subscription = (belay_subscription_t *)handle;
  belay__unlisten(&subscription->subscription);
  while (!belay__list_empty(&subscription->queue))
    free_message(handle->client, pop_message(subscription));
  belay__task_stop(handle->client->belay, &subscription->task);
}

static void on_deinit(belay__handle_t *handle) {
  if (((belay_subscription_t *)handle)->ref)
    belay__free_loop(handle->client->belay);
}

static int on_init(belay__handle_t *handle, void *options) {
  belay_subscription_t *subscription = (belay_subscription_t *)handle;
  const arguments_t *arguments = options;
  belay_client_t *client = handle->client;
  if (arguments->cb == NULL)
    return belay__invalid(client->belay, "cb: NULL");
  subscription->cb = arguments->cb;
  subscription->subscription.on_event = on_message;
  belay__list_init(&subscription->queue);
  belay__task_init(&subscription->task, on_task);
  char channel[BELAY__KEY_MAX];
  size_t len = build_channel(channel, client, arguments->name);
  int error = belay__listen(client, channel, len, &subscription->subscription);
  if (error != 0)
    return error;
  subscription->listening = belay__subscription_is_up(&subscription->subscription);
  if (subscription->listening)
    belay__defer(client->belay, &subscription->task);
  return 0;
}

static const belay__handle_type_t subscription_type = {
    .family = FAMILY,
    .size = sizeof(belay_subscription_t),
    .whole = true,
    .name_max = BELAY__NAME_MAX,
    .options_size = sizeof(arguments_t),
    .name_at = offsetof(arguments_t, name),
    .data_at = offsetof(arguments_t, data),
    .init = on_init,
    .close = on_close,
    .deinit = on_deinit,
};

int belay_topic_subscribe(belay_client_t *client, belay_bytes_t name, belay_topic_cb cb, void *data,
                          belay_subscription_t **out) {
  const arguments_t given = {.name = name, .cb = cb, .data = data};
  arguments_t filled;
  belay__handle_t *handle = NULL;
  if (out == NULL)
    return BELAY_EINVAL;
  int error = belay__handle_new(client, &subscription_type, &given, &filled, &handle);
  *out = (belay_subscription_t *)handle;
  return error;
}

/* ---- the rest ---- */

BELAY__HANDLE_END(subscription)

static void set_ref(belay_subscription_t *subscription, bool ref) {
  if (subscription == NULL || subscription->ref == ref || subscription->handle.closing)
    return;
  subscription->ref = ref;
  if (ref)
    belay__hold_loop(subscription->handle.client->belay);
  else
    belay__free_loop(subscription->handle.client->belay);
}

void belay_subscription_ref(belay_subscription_t *subscription) {
  set_ref(subscription, true);
}

void belay_subscription_unref(belay_subscription_t *subscription) {
  set_ref(subscription, false);
}

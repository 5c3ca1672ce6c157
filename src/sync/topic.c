/* Topics. A subscription is a handle:
 *
 *    LISTENING: messages are queued
 *      |    ^
 *      v    | the callback got the gap, and the channel is up
 *    GAP: messages are lost
 *
 * A task passes the queue, and the gap behind it, to the callback. All events of the connection
 * before that belong to the same gap, so the queue is bounded in bytes. */
#include <belay/topic.h>
#include <string.h>

#include "core/call/publish.h"
#include "core/client/channel.h"
#include "core/client/handle.h"
#include "core/client/lifecycle.h"
#include "core/key/key.h"

#define FAMILY "topic"
#define EVENTS_PER_TASK 64 /* other deadlines must not wait for the whole queue */

/* The name of a topic's channel; NULL if memory is out. */
static char *channel_new(belay_client_t *client, const char *name, size_t name_len, size_t *len) {
  *len = belay__key_build(NULL, client->prefix, client->prefix_len, FAMILY, name, name_len);
  char *channel = belay__alloc(client->belay, *len);
  if (channel != NULL)
    belay__key_build(channel, client->prefix, client->prefix_len, FAMILY, name, name_len);
  return channel;
}

/* ---- publishing ---------------------------------------------------------------------------------------- */

static int read_receivers(belay__operation_t *operation, const belay__call_t *call,
                          const belay__reply_t *reply) {
  (void)call;
  return belay__reply_integer(reply, 0, INT64_MAX, &operation->values[0]) ? 0 : BELAY_EPROTO;
}

static void tell_published(belay_request_t *request, void (*cb)(void),
                           const belay__answer_t *answer) {
  ((belay_topic_publish_cb)cb)(request, answer->status, answer->values[0]);
}

static const belay__request_ops_t publish_ops = {.read = read_receivers, .notify = tell_published};

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
  size_t channel_len;
  char *channel = channel_new(client, name.data, name.len, &channel_len);
  belay__call_t *call = channel == NULL ? NULL : belay__call_new(client, BELAY__CLASS_DATA);
  if (call != NULL) {
    belay__publish_build(call, channel, channel_len, message.len == 0 ? "" : message.data,
                         message.len);
    call->route = belay__key_route(channel, channel_len);
  }
  belay__free(client->belay, channel, channel_len);
  return call == NULL
             ? BELAY_ENOMEM
             : belay__request_start(request, call, &publish_ops, NULL, NULL, (void (*)(void))cb);
}

/* ---- a subscription ------------------------------------------------------------------------------------ */

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
  bool listening;      /* LISTENING is due, before the queue */
  int gap;             /* status of a gap that is due, behind the queue; 0: none */
  belay__list_t queue; /* messages */
  size_t bytes;        /* of the queue */
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

static void free_first(belay_subscription_t *subscription) {
  message_t *message = BELAY__CONTAINER(belay__list_pop(&subscription->queue), message_t, node);
  subscription->bytes -= size_of(message);
  belay__free(subscription->handle.client->belay, message, size_of(message));
}

/* 0, or why the message is lost. One that comes alone has room. */
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
    return; /* it is in the gap; when that has been told, the task looks whether it is over */
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

/* Tells the first event that waits; false if none does. */
static bool deliver_one(belay_subscription_t *subscription) {
  belay_client_t *client = subscription->handle.client;
  if (subscription->listening) {
    subscription->listening = false;
    subscription->cb(subscription, BELAY_TOPIC_LISTENING, NULL, 0, 0);
    return true;
  }
  if (!belay__list_empty(&subscription->queue)) {
    message_t *message = BELAY__CONTAINER(subscription->queue.next, message_t, node);
    belay__list_remove(&message->node);
    subscription->bytes -= size_of(message);
    subscription->cb(subscription, BELAY_TOPIC_MESSAGE, message->data, message->len, 0);
    belay__free(client->belay, message, size_of(message));
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
    free_first(subscription);
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
  size_t len;
  char *channel = channel_new(client, arguments->name.data, arguments->name.len, &len);
  int error = channel == NULL ? BELAY_ENOMEM
                              : belay__listen(client, channel, len, &subscription->subscription);
  belay__free(client->belay, channel, len);
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

/* ---- the rest ------------------------------------------------------------------------------------------ */

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

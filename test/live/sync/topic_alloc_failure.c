/* Allocations of a topic's publisher and subscriber fail, one after another: belay's own, then
 * hiredis's. Expected: no crash, no leak, every callback runs as documented, and a message that
 * is not delivered lies in a reported gap. */
#include <belay.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/servers/server.h"
#include "support/base/alloc.h"
#include "support/base/test.h"

#define LISTENERS 3
#define PATIENCE_MS 2000

typedef struct play play_t;

typedef struct listener {
  play_t *play;
  belay_subscription_t *handle;
  bool listens, was_gap, closed;
  unsigned messages;
} listener_t;

struct play {
  server_t *server;
  uv_loop_t loop;
  uv_timer_t timer;
  belay_t *belay;
  belay_client_t *client;
  listener_t listener[LISTENERS];
  belay_request_t request;
  int pending; /* publications */
  unsigned published;
  bool lost; /* a connection was */
  bool closing, closed;
};

static void advance(play_t *play);

static void on_closed(belay_t *belay, void *data) {
  (void)belay;
  ((play_t *)data)->closed = true;
}

static void end(play_t *play) {
  if (play->closing)
    return;
  play->closing = true;
  uv_close((uv_handle_t *)&play->timer, NULL);
  assert_int_equal(belay_close(play->belay, on_closed), 0);
}

static void on_timer(uv_timer_t *timer) {
  end(timer->data);
}

static void on_published(belay_request_t *request, int status, int64_t receivers) {
  play_t *play = request->data;
  play->pending--;
  assert_true(status == 0 || receivers == 0);
  if (!play->closing)
    advance(play);
}

static void on_listener_closed(belay_subscription_t *handle, void *data) {
  listener_t *listener = data;
  assert_ptr_equal(listener->handle, handle);
  assert_false(listener->closed);
  listener->closed = true;
}

static void on_event(belay_subscription_t *handle, belay_topic_event_t event, const void *message,
                     size_t len, int status) {
  listener_t *listener = belay_subscription_data(handle);
  play_t *play = listener->play;
  assert_false(play->closing || listener->closed);
  switch (event) {
  case BELAY_TOPIC_LISTENING:
    assert_false(listener->listens);
    listener->listens = true;
    break;
  case BELAY_TOPIC_MESSAGE:
    assert_true(listener->listens && len == 4);
    assert_memory_equal(message, "word", 4);
    listener->messages++;
    break;
  case BELAY_TOPIC_GAP:
    assert_true(listener->listens && status != 0);
    listener->listens = false;
    listener->was_gap = true;
    break;
  }
  advance(play);
}

/* True if each subscriber has received all published words or a report of a gap. */
static bool is_heard(const play_t *play) {
  for (int i = 0; i < LISTENERS; i++) {
    const listener_t *listener = &play->listener[i];
    if (listener->handle != NULL && !listener->closed &&
        (!listener->listens || (listener->messages < play->published && !listener->was_gap)))
      return false;
  }
  return true;
}

static void publish(play_t *play) {
  play->request.data = play;
  if (belay_topic_publish(play->client, &play->request, belay_string("news"), belay_string("word"),
                          on_published) == 0)
    play->pending++;
  play->published++;
}

static void advance(play_t *play) {
  if (play->closing || play->pending > 0 || !is_heard(play))
    return;
  if (play->published == 0) {
    publish(play);
  } else if (!play->lost) {
    play->lost = true;
    server_do(play->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  } else if (play->published == 1 && play->listener[0].was_gap) {
    publish(play);
    for (int i = 0; i < LISTENERS; i++)
      play->listener[i].was_gap = play->listener[i].messages < 1; /* of the first word */
  } else if (play->published == 2) {
    if (play->listener[1].handle != NULL)
      belay_subscription_close(play->listener[1].handle, on_listener_closed);
    end(play);
  }
}

static void perform(play_t *play, const belay_options_t *options) {
  assert_int_equal(uv_loop_init(&play->loop), 0);
  uv_timer_init(&play->loop, &play->timer);
  play->timer.data = play;
  belay_client_options_t o;
  belay_client_options_init(&o);
  o.close_timeout_ms = 100;
  o.reconnect_max_ms = 20;
  if (belay_open(&play->loop, options, &play->belay) != 0) {
    uv_close((uv_handle_t *)&play->timer, NULL);
  } else {
    belay_set_data(play->belay, play);
    uv_timer_start(&play->timer, on_timer, PATIENCE_MS, 0);
    bool connected = belay_connect(play->belay, server_url(play->server), &o, &play->client) == 0;
    for (int i = 0; i < LISTENERS && connected; i++) {
      listener_t *listener = &play->listener[i];
      listener->play = play;
      int error = belay_topic_subscribe(play->client, belay_bytes(i == 2 ? "more" : "news", 4),
                                        on_event, listener, &listener->handle);
      assert_true(error == 0 || error == BELAY_ENOMEM);
      listener->messages = i == 2 ? 2 : 0; /* nothing is said to this one */
    }
    if (!connected || play->listener[0].handle == NULL)
      end(play);
  }
  uv_run(&play->loop, UV_RUN_DEFAULT);
  assert_true(play->belay == NULL || play->closed);
  assert_int_equal(play->pending, 0);
  assert_int_equal(uv_loop_close(&play->loop), 0);
}

static unsigned through; /* runs in which both words were published */

static void run(const belay_options_t *options, void *server) {
  play_t *play = calloc(1, sizeof *play);
  play->server = server;
  perform(play, options);
  through += play->published == 2;
  if (!alloc_has_failed()) {
    assert_int_equal(play->listener[0].messages, 2);
    assert_int_equal(play->published, 2);
  }
  free(play);
}

static void expect_most_succeed(alloc_owner_t owner) {
  server_t *server = server_start(NULL);
  through = 0;
  size_t runs = alloc_fail_each(owner, run, server);
  assert_true(runs > 10 && through > runs / 2); /* belay repeats what failed */
  server_stop(server);
}

TEST(allocations_of_belay_fail) {
  expect_most_succeed(ALLOC_BELAY);
}

TEST(allocations_of_hiredis_fail) {
  expect_most_succeed(ALLOC_HIREDIS);
}

#include "support/subscriber.h"

#include <stdio.h>

static uint64_t add_to(uint64_t sum, const char *bytes, size_t len) {
  for (size_t i = 0; i < len; i++)
    sum = sum * 31 + (unsigned char)bytes[i];
  return sum * 31 + len;
}

static void note(subscriber_t *s, belay_topic_event_t event, const void *message, size_t len,
                 int status) {
  size_t n = s->listening + s->messages + s->gaps;
  static const char letters[] = {[BELAY_TOPIC_LISTENING] = 'L', 'M', 'G'};
  if (n < STORY_MAX)
    s->story[n] = letters[event];
  switch (event) {
  case BELAY_TOPIC_LISTENING:
    s->bed->wrong += s->up; /* one that is not over */
    s->up = true;
    s->listening++;
    break;
  case BELAY_TOPIC_MESSAGE:
    s->bed->wrong += !s->up;
    s->messages++;
    s->len = len;
    memcpy(s->text, message, len < TEXT_MAX ? len : TEXT_MAX);
    s->sum = add_to(s->sum, message, len);
    break;
  case BELAY_TOPIC_GAP:
    s->bed->wrong += !s->up && belay_err_retryable(status); /* else it is a refusal */
    s->up = false;
    s->gaps++;
    s->status = status;
    break;
  }
}

static void on_event(belay_subscription_t *handle, belay_topic_event_t event, const void *message,
                     size_t len, int status) {
  subscriber_t *s = belay_subscription_data(handle);
  bed_t *bed = s->bed;
  bed->sequence++;
  bed->wrong += bed->inside + (s->handle != handle) + s->closing;
  note(s, event, message, len, status);
  unsigned inside = bed->inside;
  bed->inside = 0;
  if (s->then != NULL)
    s->then(s, event);
  bed->inside = inside;
}

int subscribe_to(bed_t *bed, belay_client_t *client, subscriber_t *s, const char *name,
                 size_t len) {
  subscriber_then_fn then = s->then;
  void *arg = s->arg;
  *s = (subscriber_t){.bed = bed, .then = then, .arg = arg};
  bed->inside++;
  int error = belay_topic_subscribe(client, name, len, on_event, s, &s->handle);
  bed->inside--;
  assert_int_equal(error == 0, s->handle != NULL);
  return error;
}

void subscribe(bed_t *bed, subscriber_t *s, const char *name) {
  assert_error(subscribe_to(bed, bed->client, s, name, strlen(name)), 0);
  bed_until(bed, s->listening == 1);
}

static void on_closed(belay_subscription_t *handle, void *data) {
  subscriber_t *s = data;
  s->bed->sequence++;
  s->bed->wrong += s->bed->inside + (s->handle != handle) + s->closed;
  s->closed++;
  s->handle = NULL;
}

int unsubscribe(subscriber_t *s) {
  s->bed->inside++;
  int error = belay_subscription_close(s->handle, on_closed);
  s->bed->inside--;
  s->closing += error == 0;
  return error;
}

uint64_t sum_of_numbers(unsigned n) {
  uint64_t sum = 0;
  char text[16];
  for (unsigned i = 0; i < n; i++)
    sum = add_to(sum, text, (size_t)snprintf(text, sizeof text, "%u", i));
  return sum;
}

/* ---- publishing ---------------------------------------------------------------------------------------- */

static void on_published(belay_request_t *request, int status, int64_t receivers) {
  publication_t *p = request->data;
  bed_t *bed = p->bed;
  bed->sequence++;
  bed->wrong += bed->inside + (request != &p->request) + (status != 0 && receivers != 0);
  p->ended++;
  p->status = status;
  p->receivers = receivers;
  unsigned inside = bed->inside;
  bed->inside = 0;
  if (p->then != NULL)
    p->then(p);
  bed->inside = inside;
}

int begin_publish(bed_t *bed, belay_client_t *client, publication_t *p, const char *name,
                  const void *message, size_t len) {
  p->bed = bed;
  p->request.data = p;
  bed->inside++;
  int error =
      belay_topic_publish(client, &p->request, name, strlen(name), message, len, on_published);
  bed->inside--;
  return error;
}

int publish(bed_t *bed, publication_t *p, const char *name, const char *text) {
  unsigned ended = p->ended;
  int error = begin_publish(bed, bed->client, p, name, text, strlen(text));
  if (error != 0)
    return error;
  bed_until(bed, p->ended > ended);
  assert_int_equal(p->ended, ended + 1);
  return p->status;
}

void publish_numbers(bed_t *bed, belay_client_t *client, const char *name, unsigned n) {
  publication_t *all = calloc(n, sizeof *all);
  char text[16];
  for (unsigned i = 0; i < n; i++) {
    int len = snprintf(text, sizeof text, "%u", i);
    assert_error(begin_publish(bed, client, &all[i], name, text, (size_t)len), 0);
  }
  bed_until(bed, all[n - 1].ended == 1);
  for (unsigned i = 0; i < n; i++) {
    assert_int_equal(all[i].ended, 1);
    assert_error(all[i].status, 0);
  }
  free(all);
}

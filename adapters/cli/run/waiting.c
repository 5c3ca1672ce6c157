/* A timer checks the servers. It queries one server at a time, and the next one if that does not
 * answer. */
#include "run/waiting.h"

#include <stdio.h>
#include <string.h>

#include "query/query.h"

#define CHECK_MS 1000
#define PROBE_MS 5000 /* for servers that get no other query */
#define AGAIN_MS 60000
#define NAME_AGAIN_MS 10000

static void tell_trouble(waiting_t *waiting, const char *trouble) {
  uint64_t now = uv_now(&waiting->harness->loop);
  if (trouble == NULL) {
    if (waiting->reported_at != 0)
      complain("waiting: the servers answer again");
    waiting->reported_at = 0;
  } else if (waiting->reported_at == 0 || now - waiting->reported_at >= AGAIN_MS) {
    complain("waiting: %s", trouble);
    waiting->reported_at = now;
  }
}

static void name_holder(waiting_t *waiting, const belay_held_t *held) {
  uint64_t now = uv_now(&waiting->harness->loop);
  if (held->holders_len == 0)
    return;
  if (held->holders[0].mark == waiting->mark && now - waiting->named_at < NAME_AGAIN_MS)
    return;
  char left[QUERY_TEXT_MAX], more[48] = "";
  if (held->holders_count > 1)
    (void)snprintf(more, sizeof more, " and %zu more", held->holders_count - 1);
  remark("waiting for %s%s, %s left", query_owner_name(held), more,
         query_time_left(left, held->holders[0].remaining_ms));
  waiting->mark = held->holders[0].mark;
  waiting->named_at = now;
}

static void on_answer(waiting_t *waiting, int status, const belay_held_t *held) {
  waiting->asking = false;
  if (waiting->harness == NULL || harness_is_done(waiting->harness) ||
      !uv_is_active((uv_handle_t *)&waiting->timer))
    return;
  const char *detail = belay_detail(waiting->harness->belay);
  if (status != 0)
    (void)snprintf(waiting->words, sizeof waiting->words, "%s: %s%s%s", harness_url(waiting->next),
                   belay_strerror(status), *detail != '\0' ? ": " : "", detail);
  if (waiting->trouble == NULL)
    tell_trouble(waiting, status != 0 ? waiting->words : NULL);
  if (status == 0 && held != NULL)
    name_holder(waiting, held);
  else if (status != 0)
    waiting->next = (waiting->next + 1) % waiting->harness->clients;
}

static void on_held(belay_request_t *request, int status, const belay_held_t *held) {
  on_answer(request->data, status, held);
}

static void on_ping(belay_client_t *client, int status) {
  on_answer(belay_client_data(client), status, NULL);
}

static void on_look(uv_timer_t *timer) {
  waiting_t *waiting = timer->data;
  harness_t *h = waiting->harness;
  if (waiting->trouble != NULL)
    tell_trouble(waiting, waiting->trouble(waiting));
  bool named = waiting->name != NULL && (common.verbose || waiting->trouble == NULL);
  belay_client_t *client = h->client[waiting->next];
  if (waiting->asking || (!named && waiting->trouble != NULL))
    return;
  waiting->request.data = waiting;
  belay_client_set_data(client, waiting);
  waiting->asking = (named ? belay_held_read(client, &waiting->request, waiting->kind,
                                             belay_string(waiting->name), on_held)
                           : belay_client_ping(client, BELAY_DEFAULT, on_ping)) == 0;
}

void waiting_begin(waiting_t *waiting, harness_t *harness) {
  if (waiting->harness == NULL)
    (void)uv_timer_init(&harness->loop, &waiting->timer);
  waiting->harness = harness;
  waiting->timer.data = waiting;
  bool probes = waiting->trouble == NULL;
  (void)uv_timer_start(&waiting->timer, on_look, probes ? 0 : CHECK_MS,
                       probes && !common.verbose ? PROBE_MS : CHECK_MS);
  uv_unref((uv_handle_t *)&waiting->timer);
}

void waiting_pause(waiting_t *waiting) {
  if (waiting->harness != NULL)
    (void)uv_timer_stop(&waiting->timer);
  waiting->reported_at = waiting->mark = 0;
}

void waiting_end(waiting_t *waiting) {
  if (waiting->harness == NULL)
    return;
  if (waiting->asking && waiting->name != NULL)
    (void)belay_request_cancel(&waiting->request);
  uv_close((uv_handle_t *)&waiting->timer, NULL);
  waiting->harness = NULL;
}

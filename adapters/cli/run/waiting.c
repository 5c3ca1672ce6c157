#include "run/waiting.h"

#include <stdio.h>

#define CHECK_MS 1000
#define PING_MS 5000
#define AGAIN_MS 60000

static void report(waiting_t *waiting, const char *trouble) {
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

static void on_ping(belay_client_t *client, int status) {
  waiting_t *waiting = belay_client_data(client);
  char words[1024];
  waiting->pinging = false;
  if (waiting->harness == NULL || harness_is_done(waiting->harness) ||
      !uv_is_active((uv_handle_t *)&waiting->timer))
    return;
  const char *detail = belay_detail(waiting->harness->belay);
  (void)snprintf(words, sizeof words, "%s: %s%s%s", harness_url(0), belay_strerror(status),
                 *detail != '\0' ? ": " : "", detail);
  report(waiting, status != 0 ? words : NULL);
}

static void on_check(uv_timer_t *timer) {
  waiting_t *waiting = timer->data;
  belay_client_t *client = waiting->harness->client[0];
  if (waiting->trouble != NULL) {
    report(waiting, waiting->trouble());
  } else if (!waiting->pinging) {
    belay_client_set_data(client, waiting);
    waiting->pinging = belay_client_ping(client, BELAY_DEFAULT, on_ping) == 0;
  }
}

void waiting_start(waiting_t *waiting, harness_t *harness) {
  if (waiting->harness == NULL)
    (void)uv_timer_init(&harness->loop, &waiting->timer);
  waiting->harness = harness;
  waiting->timer.data = waiting;
  bool pings = waiting->trouble == NULL;
  (void)uv_timer_start(&waiting->timer, on_check, pings ? 0 : CHECK_MS, pings ? PING_MS : CHECK_MS);
  uv_unref((uv_handle_t *)&waiting->timer);
}

void waiting_pause(waiting_t *waiting) {
  if (waiting->harness != NULL)
    (void)uv_timer_stop(&waiting->timer);
  waiting->reported_at = 0;
}

void waiting_end(waiting_t *waiting) {
  if (waiting->harness == NULL)
    return;
  uv_close((uv_handle_t *)&waiting->timer, NULL);
  waiting->harness = NULL;
}

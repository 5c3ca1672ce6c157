#include "support/deployments/failover_log.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/base/clock.h"
#include "support/base/unit.h"

struct failover_log {
  pthread_t thread;
  int stop[2];
  resp_client_t client[GROUP_SENTINELS];
  _Atomic int64_t times[GROUP_SENTINELS];
};

/* A message is short, and comes in one piece. */
static void read_message(failover_log_t *failover_log, unsigned i) {
  char text[1024];
  int64_t none = 0;
  ssize_t n = recv(failover_log->client[i].fd, text, sizeof text, 0);
  if (n <= 0)
    resp_hang_up(&failover_log->client[i]);
  else if (memmem(text, (size_t)n, "message", 7) != NULL)
    atomic_compare_exchange_strong(&failover_log->times[i], &none, clock_now());
}

static void *listen_to_all(void *arg) {
  failover_log_t *failover_log = arg;
  for (;;) {
    struct pollfd polls[GROUP_SENTINELS + 1];
    polls[GROUP_SENTINELS] = (struct pollfd){.fd = failover_log->stop[0], .events = POLLIN};
    for (unsigned i = 0; i < GROUP_SENTINELS; i++)
      polls[i] = (struct pollfd){.fd = failover_log->client[i].fd, .events = POLLIN};
    if (poll(polls, GROUP_SENTINELS + 1, -1) < 0)
      continue;
    if (polls[GROUP_SENTINELS].revents != 0)
      return NULL;
    for (unsigned i = 0; i < GROUP_SENTINELS; i++)
      if (polls[i].revents != 0)
        read_message(failover_log, i);
  }
}

failover_log_t *failover_log_start(const group_t *group) {
  static const resp_words_t subscribe = {2, {"SUBSCRIBE", "+switch-master"}, {9, 14}};
  failover_log_t *failover_log = calloc(1, sizeof *failover_log);
  assert_int_equal(pipe2(failover_log->stop, O_CLOEXEC), 0);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++) {
    int port = server_port(group_sentinel(group, i));
    assert_int_equal(resp_dial_tcp(&failover_log->client[i], "127.0.0.1", port), 0);
    resp_t *reply = resp_call(&failover_log->client[i], &subscribe);
    assert_non_null(reply);
    resp_free(reply);
  }
  assert_int_equal(pthread_create(&failover_log->thread, NULL, listen_to_all, failover_log), 0);
  return failover_log;
}

void failover_log_stop(failover_log_t *failover_log) {
  close(failover_log->stop[1]);
  pthread_join(failover_log->thread, NULL);
  close(failover_log->stop[0]);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    resp_hang_up(&failover_log->client[i]);
  free(failover_log);
}

void failover_log_reset(failover_log_t *failover_log) {
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    atomic_store(&failover_log->times[i], 0);
}

int64_t failover_log_time(failover_log_t *failover_log, unsigned sentinel) {
  return atomic_load(&failover_log->times[sentinel]);
}

int64_t failover_log_first(failover_log_t *failover_log) {
  int64_t first = 0;
  for (unsigned i = 0; i < GROUP_SENTINELS; i++) {
    int64_t time = failover_log_time(failover_log, i);
    if (time != 0 && (first == 0 || time < first))
      first = time;
  }
  return first;
}

#include "support/deployments/herald.h"

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

struct herald {
  pthread_t thread;
  int stop[2];
  resp_client_t client[GROUP_SENTINELS];
  _Atomic int64_t heard[GROUP_SENTINELS];
};

/* A message is short, and comes in one piece. */
static void hear(herald_t *herald, unsigned i) {
  char text[1024];
  int64_t none = 0;
  ssize_t n = recv(herald->client[i].fd, text, sizeof text, 0);
  if (n <= 0)
    resp_hang_up(&herald->client[i]);
  else if (memmem(text, (size_t)n, "message", 7) != NULL)
    atomic_compare_exchange_strong(&herald->heard[i], &none, clock_now());
}

static void *listen_to_all(void *arg) {
  herald_t *herald = arg;
  for (;;) {
    struct pollfd polls[GROUP_SENTINELS + 1];
    polls[GROUP_SENTINELS] = (struct pollfd){.fd = herald->stop[0], .events = POLLIN};
    for (unsigned i = 0; i < GROUP_SENTINELS; i++)
      polls[i] = (struct pollfd){.fd = herald->client[i].fd, .events = POLLIN};
    if (poll(polls, GROUP_SENTINELS + 1, -1) < 0)
      continue;
    if (polls[GROUP_SENTINELS].revents != 0)
      return NULL;
    for (unsigned i = 0; i < GROUP_SENTINELS; i++)
      if (polls[i].revents != 0)
        hear(herald, i);
  }
}

herald_t *herald_start(const group_t *group) {
  static const resp_words_t subscribe = {2, {"SUBSCRIBE", "+switch-master"}, {9, 14}};
  herald_t *herald = calloc(1, sizeof *herald);
  assert_int_equal(pipe2(herald->stop, O_CLOEXEC), 0);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++) {
    int port = server_port(group_sentinel(group, i));
    assert_int_equal(resp_dial_tcp(&herald->client[i], "127.0.0.1", port), 0);
    resp_t *reply = resp_call(&herald->client[i], &subscribe);
    assert_non_null(reply);
    resp_free(reply);
  }
  assert_int_equal(pthread_create(&herald->thread, NULL, listen_to_all, herald), 0);
  return herald;
}

void herald_stop(herald_t *herald) {
  close(herald->stop[1]);
  pthread_join(herald->thread, NULL);
  close(herald->stop[0]);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    resp_hang_up(&herald->client[i]);
  free(herald);
}

void herald_reset(herald_t *herald) {
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    atomic_store(&herald->heard[i], 0);
}

int64_t herald_heard(herald_t *herald, unsigned sentinel) {
  return atomic_load(&herald->heard[sentinel]);
}

int64_t herald_heard_first(herald_t *herald) {
  int64_t first = 0;
  for (unsigned i = 0; i < GROUP_SENTINELS; i++) {
    int64_t heard = herald_heard(herald, i);
    if (heard != 0 && (first == 0 || heard < first))
      first = heard;
  }
  return first;
}

#include "load/subjects/player.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"
#include "load/driver/meter.h"

enum { CHUNK = 1 << 16 };

void player_open(player_t *player, const char *url, tape_t tape) {
  size_t at = 0;
  *player = (player_t){.server = meter_dial(url), .tape = tape};
  player->ends = bench_alloc(tape.commands + 1, sizeof *player->ends);
  for (uint64_t i = 0; i < tape.commands; i++)
    player->ends[i] = at += tape_command_len(tape.bytes + at, tape.len - at);
  if (at != tape.len)
    bench_die("a tape ends amid a command");
}

void player_close(player_t *player) {
  redisFree(player->server);
  free(player->tape.bytes);
  free(player->ends);
}

static void receive(player_t *player, int flags) {
  static char chunk[CHUNK];
  ssize_t n = recv(player->server->fd, chunk, CHUNK, flags);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
    bench_die("the server has hung up");
  if (!answers_count(&player->replies, chunk, n > 0 ? (size_t)n : 0))
    bench_die("the server refuses: %s", player->replies.line);
}

static uint64_t unanswered(const player_t *player) {
  return player->asked - player->replies.n;
}

/* How many more may be written. Not each as soon as one is answered: that would be as many writes,
 * for the server to read. */
static uint64_t room(player_t *player, uint64_t window, bool over) {
  uint64_t n = unanswered(player);
  if (over)
    return player->part > 0; /* a command that was begun is written to its end */
  if (n <= window / 2)
    player->filling = true;
  else if (n >= window)
    player->filling = false;
  return player->filling ? window - n : 0;
}

static void put_some(player_t *player, uint64_t most) {
  const tape_t *tape = &player->tape;
  uint64_t at = player->asked % tape->commands, end = at + most;
  if (end > tape->commands || end < at)
    end = tape->commands;
  size_t from = (at > 0 ? player->ends[at - 1] : 0) + player->part;
  ssize_t n = send(player->server->fd, tape->bytes + from, player->ends[end - 1] - from,
                   MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && errno != EAGAIN && errno != EINTR)
    bench_die("the server has hung up");
  size_t to = from + (n > 0 ? (size_t)n : 0);
  for (; at < end && player->ends[at] <= to; at++)
    player->asked++;
  player->part = to - (at > 0 ? player->ends[at - 1] : 0);
}

double players_play(player_t *players, unsigned n, const play_options_t *options, double seconds) {
  int64_t ends = bench_now() + (int64_t)(seconds * 1e9);
  double times = 0;
  uint64_t last[JOB_SERVERS_MAX];
  for (unsigned i = 0; i < n; i++) {
    times -= (double)players[i].replies.n / (double)players[i].tape.commands;
    last[i] = players[i].asked + players[i].tape.commands;
  }
  for (unsigned playing = n; playing > 0;) {
    struct pollfd fds[JOB_SERVERS_MAX];
    uint64_t rooms[JOB_SERVERS_MAX];
    bool late = bench_now() >= ends;
    playing = 0;
    for (unsigned i = 0; i < n; i++) {
      bool over = options->once ? players[i].asked == last[i] : late;
      rooms[i] = room(&players[i], options->window, over);
      bool done = over && players[i].part == 0 && unanswered(&players[i]) == 0;
      short events = rooms[i] > 0 ? POLLIN | POLLOUT : POLLIN;
      fds[i] = (struct pollfd){done ? -1 : players[i].server->fd, events, 0};
      playing += !done;
    }
    if (playing > 0 && poll(fds, n, options->awake ? 0 : -1) < 0 && errno != EINTR)
      bench_die("poll: %s", strerror(errno));
    for (unsigned i = 0; i < n && playing > 0; i++) {
      if ((fds[i].revents & POLLOUT) != 0)
        put_some(&players[i], rooms[i]);
      if ((fds[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
        receive(&players[i], MSG_DONTWAIT);
    }
  }
  for (unsigned i = 0; i < n; i++)
    times += (double)players[i].replies.n / (double)players[i].tape.commands;
  return times / n;
}

static void put(player_t *player, uint64_t at) {
  size_t from = at > 0 ? player->ends[at - 1] : 0, len = player->ends[at] - from;
  if (send(player->server->fd, player->tape.bytes + from, len, MSG_NOSIGNAL) != (ssize_t)len)
    bench_die("a whole command cannot be written");
  player->asked++;
}

/* Wait for a reply of any server; with one server, by a blocking read. */
static void read_some(player_t *players, unsigned n) {
  struct pollfd fds[JOB_SERVERS_MAX];
  for (unsigned i = 0; i < n; i++)
    fds[i] = (struct pollfd){players[i].server->fd, POLLIN, n == 1 ? POLLIN : 0};
  if (n > 1 && poll(fds, n, -1) < 0)
    bench_die("poll: %s", strerror(errno));
  for (unsigned i = 0; i < n; i++)
    if (fds[i].revents != 0)
      receive(&players[i], 0);
}

static void await(player_t *players, unsigned n, unsigned wanted) {
  for (unsigned settled = 0; settled < wanted;) {
    settled = 0;
    for (unsigned i = 0; i < n; i++)
      settled += unanswered(&players[i]) == 0;
    if (settled < wanted)
      read_some(players, n);
  }
}

static void hold(int timer, double seconds) {
  struct itimerspec when = {
      .it_value = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}};
  uint64_t times;
  if (timerfd_settime(timer, 0, &when, NULL) != 0 || read(timer, &times, sizeof times) < 0)
    bench_die("no timer: %s", strerror(errno));
}

uint64_t players_walk(const job_t *job, player_t *players, uint64_t steps, double seconds,
                      hist_t *latency) {
  unsigned n = job->servers;
  uint64_t most = UINT64_MAX, done = 0;
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  int64_t began = bench_now(), now = began, ends = began + (int64_t)(seconds * 1e9);
  for (unsigned i = 0; i < n; i++)
    most = players[i].tape.commands < most ? players[i].tape.commands : most;
  most -= most % steps;
  if (most == 0 || timer < 0)
    bench_die("%s: nothing to be walked through", job->scenario);
  while (now < ends) {
    for (unsigned i = 0; i < n; i++)
      put(&players[i], done % most);
    await(players, n, n / 2 + 1);
    if (job->hold > 0)
      hold(timer, job->hold);
    if (++done % steps == 0) {
      now = bench_now();
      hist_add(latency, (uint64_t)(now - began));
      began = now;
    }
    if (done % most == 0)
      await(players, n, n);
  }
  close(timer);
  await(players, n, n);
  return done;
}

#include "load/ceiling.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"
#include "load/meter.h"
#include "load/tap.h"

enum { CHUNK = 1 << 16, LINE_MAX_LEN = 128 };
#define RECORD_S 0.25 /* of belay's commands are enough */

/* ---- answers are counted ------------------------------------------------------------------------------------- */

typedef struct counter {
  uint64_t answers;
  uint64_t items; /* of the answer that is being read, still to come */
  size_t skip;    /* bytes of a string, still to come */
  size_t len;     /* of the line */
  char line[LINE_MAX_LEN];
} counter_t;

static void end_line(counter_t *counter) {
  const char *line = counter->line;
  counter->line[counter->len] = '\0';
  counter->len = 0;
  long n = strtol(line + 1, NULL, 10);
  if (line[0] == '-')
    bench_die("the server refuses: %s", line);
  if (counter->items == 0)
    counter->items = 1;
  counter->items--;
  if (line[0] == '*')
    counter->items += n > 0 ? (uint64_t)n : 0;
  else if (line[0] == '$' && n >= 0)
    counter->skip = (size_t)n + 2;
  counter->answers += counter->items == 0;
}

static void count(counter_t *counter, const char *bytes, size_t n) {
  for (size_t i = 0; i < n;) {
    if (counter->skip > 0) {
      size_t skip = counter->skip < n - i ? counter->skip : n - i;
      counter->skip -= skip;
      i += skip;
    } else if (bytes[i++] != '\n') {
      if (counter->len < LINE_MAX_LEN - 1)
        counter->line[counter->len++] = bytes[i - 1];
    } else {
      end_line(counter);
    }
  }
}

/* ---- a pass over the tapes ------------------------------------------------------------------------------------- */

typedef struct player {
  redisContext *server;
  tape_t tape;
  size_t sent;
  uint64_t asked; /* one at a time: commands that were written */
  counter_t counter;
} player_t;

static void turn(player_t *player, short events) {
  static char chunk[CHUNK];
  ssize_t n;
  if ((events & POLLOUT) != 0) {
    n = send(player->server->fd, player->tape.bytes + player->sent, player->tape.len - player->sent,
             MSG_NOSIGNAL | MSG_DONTWAIT);
    player->sent += n > 0 ? (size_t)n : 0;
  }
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
    n = recv(player->server->fd, chunk, CHUNK, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
      bench_die("the server has hung up");
    count(&player->counter, chunk, n > 0 ? (size_t)n : 0);
  }
}

static void rewind_all(player_t *players, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    players[i].sent = 0;
    players[i].asked = players[i].counter.answers = 0;
  }
}

static void play(player_t *players, unsigned n) {
  unsigned playing = n;
  rewind_all(players, n);
  while (playing > 0) {
    struct pollfd fds[JOB_SERVERS_MAX];
    playing = 0;
    for (unsigned i = 0; i < n; i++) {
      bool over = players[i].counter.answers >= players[i].tape.commands;
      short events = players[i].sent < players[i].tape.len ? POLLIN | POLLOUT : POLLIN;
      fds[i] = (struct pollfd){over ? -1 : players[i].server->fd, events, 0};
      playing += !over;
    }
    if (playing > 0 && poll(fds, n, -1) < 0 && errno != EINTR)
      bench_die("poll: %s", strerror(errno));
    for (unsigned i = 0; i < n; i++)
      turn(&players[i], fds[i].revents);
  }
}

/* ---- one at a time ------------------------------------------------------------------------------------------- */

/* Writes the next command. */
static void put(player_t *player) {
  const char *next = player->tape.bytes + player->sent;
  size_t len = tape_command_len(next, player->tape.len - player->sent);
  if (len == 0 || send(player->server->fd, next, len, MSG_NOSIGNAL) != (ssize_t)len)
    bench_die("a whole command cannot be written");
  player->sent += len;
  player->asked++;
}

/* Waits until somebody answers: in the reading itself where there is but one. */
static void read_some(player_t *players, unsigned n) {
  static char chunk[CHUNK];
  struct pollfd fds[JOB_SERVERS_MAX];
  for (unsigned i = 0; i < n; i++)
    fds[i] = (struct pollfd){players[i].server->fd, POLLIN, n == 1 ? POLLIN : 0};
  if (n > 1 && poll(fds, n, -1) < 0)
    bench_die("poll: %s", strerror(errno));
  for (unsigned i = 0; i < n; i++) {
    if (fds[i].revents == 0)
      continue;
    ssize_t len = recv(players[i].server->fd, chunk, CHUNK, 0);
    if (len <= 0)
      bench_die("the server has hung up");
    count(&players[i].counter, chunk, (size_t)len);
  }
}

static void await(player_t *players, unsigned n, unsigned wanted) {
  for (unsigned settled = 0; settled < wanted;) {
    settled = 0;
    for (unsigned i = 0; i < n; i++)
      settled += players[i].counter.answers == players[i].asked;
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

/* Returns how many commands it was to each server; so many steps are an operation. */
static uint64_t walk(const job_t *job, player_t *players, uint64_t steps, double seconds,
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
  rewind_all(players, n);
  while (now < ends) {
    for (unsigned i = 0; i < n; i++)
      put(&players[i]);
    await(players, n, n / 2 + 1);
    if (job->hold > 0)
      hold(timer, job->hold);
    if (++done % steps == 0) {
      now = bench_now();
      hist_add(latency, (uint64_t)(now - began));
      began = now;
    }
    if (done % most == 0) {
      await(players, n, n);
      rewind_all(players, n);
    }
  }
  close(timer);
  await(players, n, n);
  return done;
}

/* ---- from begin to end ------------------------------------------------------------------------------------------- */

static tap_t *taps[JOB_SERVERS_MAX];

static void on_quiet(driver_t *driver, bool before) {
  for (unsigned i = 0; i < driver->job->servers; i++)
    tap_write(taps[i], before);
}

/* Returns how many operations it was. */
static uint64_t record(const job_t *job, const doer_t *belay, player_t *players) {
  job_t tapped = *job;
  stage_t *unused = bench_alloc(1, sizeof *unused);
  tapped.rate = 0;
  tapped.warm_up = 0;
  tapped.seconds = RECORD_S;
  for (unsigned i = 0; i < job->servers; i++)
    taps[i] = tap_open(job->urls[i], tapped.urls[i], sizeof tapped.urls[i]);
  uint64_t operations = driver_run_watched(&tapped, unused, belay, on_quiet);
  for (unsigned i = 0; i < job->servers; i++) {
    players[i].tape = tap_close(taps[i]);
    players[i].server = meter_dial(job->urls[i]);
  }
  free(unused);
  return operations * job->batch;
}

static bool is_silent(const player_t *players, unsigned n) {
  for (unsigned i = 0; i < n; i++)
    if (players[i].tape.commands > 0)
      return false;
  return true;
}

/* As often as it goes; returns how many operations. */
static uint64_t play_for(const job_t *job, player_t *players, uint64_t operations) {
  int64_t ends = bench_now() + (int64_t)(job->seconds * 1e9);
  uint64_t passes = 0;
  do {
    play(players, job->servers);
    passes++;
  } while (bench_now() < ends);
  return operations * passes;
}

static uint64_t walk_for(const job_t *job, player_t *players, uint64_t operations,
                         hist_t *latency) {
  double each = job->hold > 0 ? 1 : (double)players[0].tape.commands / (double)operations;
  uint64_t steps = each < 1 ? 1 : (uint64_t)(each + 0.5);
  return (uint64_t)((double)walk(job, players, steps, job->seconds, latency) / each);
}

void ceiling_run(const job_t *job, outcome_t *outcome, const doer_t *belay) {
  player_t *players = bench_alloc(job->servers, sizeof *players);
  bool one_at_a_time = job->concurrency == 1 || job->hold > 0;
  meter_t meter;
  reading_t before, after;
  uint64_t operations = record(job, belay, players);
  if (is_silent(players, job->servers))
    bench_die("%s: belay has asked nobody", job->scenario);
  meter_open(&meter, job);
  play(players, job->servers);
  meter_read(&meter, &before);
  int64_t began = bench_now();
  outcome->operations = one_at_a_time ? walk_for(job, players, operations, &outcome->latency)
                                      : play_for(job, players, operations);
  outcome->elapsed = (double)(bench_now() - began) / 1e9;
  meter_read(&meter, &after);
  outcome->client_cpu = after.client_cpu - before.client_cpu;
  outcome->server_cpu = after.server_cpu - before.server_cpu;
  outcome->commands = after.commands - before.commands - job->servers;
  outcome->done = true;
  for (unsigned i = 0; i < job->servers; i++) {
    redisFree(players[i].server);
    free(players[i].tape.bytes);
  }
  meter_close(&meter);
  free(players);
}

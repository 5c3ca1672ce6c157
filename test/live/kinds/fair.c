/* The fair lock against a real server: first come, first served; and what it costs when waiters die. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "support/servers/acl.h"
#include "support/fixtures/bed.h"
#include "support/servers/process.h"

static belay_lock_options_t fair_options(int64_t waiter_ttl_ms) {
  belay_lock_options_t options = lock_options();
  options.fair = true;
  options.waiter_ttl_ms = waiter_ttl_ms;
  return options;
}

static const char *queue_of(const contender_t *c) {
  static char key[1100];
  snprintf(key, sizeof key, "%s::queue", key_of(c));
  return key;
}

static const char *alive_of(const contender_t *c) {
  static char key[1100];
  snprintf(key, sizeof key, "%s::alive", key_of(c));
  return key;
}

static int64_t queue_len(const contender_t *c) {
  return server_integer(c->bed->server, "ZCARD", queue_of(c), NULL);
}

/* Begins to wait, and returns when that is known on the server. */
static void queue_up(contender_t *c) {
  int64_t before = queue_len(c);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  bed_until(c->bed, queue_len(c) == before + 1);
}

/* Somebody else has come first, and keeps his place for so long. */
static void strangers_place(const contender_t *c, int64_t ms) {
  char until[24];
  const resp_t *time = server_ask(c->bed->server, "TIME", NULL);
  long long now = atoll(time->items[0]->str) * 1000 + atoll(time->items[1]->str) / 1000;
  snprintf(until, sizeof until, "%lld", now + (long long)ms);
  server_do(c->bed->server, "ZADD", queue_of(c), "1", "stranger", NULL);
  server_do(c->bed->server, "ZADD", alive_of(c), until, "stranger", NULL);
}

/* ---- order ----------------------------------------------------------------------------------------------- */

enum { CROWD = 8 };

static void serve_in_order(const belay_lock_options_t *options, bool through_clients) {
  bed_t *bed = bed_open(NULL);
  contender_t *c[CROWD];
  for (int i = 0; i < CROWD; i++) {
    belay_client_t *client =
        through_clients && i > 0 ? bed_connect(bed, server_url(bed->server), NULL) : bed->client;
    c[i] = contender_of(bed, client, "door", options);
  }
  assert_error(try_lock(c[0]), 0);
  for (int i = 1; i < CROWD; i++)
    queue_up(c[i]);
  uint64_t fence = belay_lock_fence(c[0]->lock);
  for (int i = 0; i + 1 < CROWD; i++) {
    assert_error(begin_release(c[i]), 0);
    bed_until(bed, belay_lock_remaining_us(c[i + 1]->lock) > 0);
    assert_true(is_on_server(c[i + 1]));
    assert_int_equal(queue_len(c[0]), CROWD - 2 - i);
    if (options->fencing)
      assert_true(belay_lock_fence(c[i + 1]->lock) > fence);
    fence = belay_lock_fence(c[i + 1]->lock);
  }
  assert_error(release(c[CROWD - 1]), 0);
  bed_settle(bed);
  assert_int_equal(server_keys(bed->server), options->fencing);
  bed_close(bed);
}

TEST(who_comes_first_is_served_first) {
  belay_lock_options_t options = fair_options(3000 * slow());
  serve_in_order(&options, false);
  serve_in_order(&options, true);
}

TEST(by_polling_too) {
  belay_lock_options_t options = fair_options(3000 * slow());
  options.wakeup = BELAY_WAKE_POLL;
  serve_in_order(&options, true);
}

TEST(and_with_fencing_numbers) {
  belay_lock_options_t options = fair_options(3000 * slow());
  options.fencing = true;
  serve_in_order(&options, true);
}

/* The one that is meant alone is woken: the next one asks soon after the release, and the others do not. */
BED_TEST(a_release_wakes_the_next_one_and_nobody_else) {
  belay_lock_options_t options = fair_options(600000);
  options.retry_min_ms = options.retry_max_ms = 20000 * slow();
  contender_t *c[CROWD];
  for (int i = 0; i < CROWD; i++)
    c[i] = contender_of(bed, bed_connect(bed, server_url(bed->server), NULL), "door", &options);
  assert_error(try_lock(c[0]), 0);
  for (int i = 1; i < CROWD; i++)
    queue_up(c[i]);
  bed_run_for(bed, 300 * slow()); /* all have asked again, when they had begun to listen */
  bed_settle(bed);
  int64_t calls = server_calls(bed->server, "evalsha") + server_calls(bed->server, "eval");
  for (int i = 0; i + 1 < CROWD; i++) {
    assert_error(begin_release(c[i]), 0);
    bed_until(bed, belay_lock_remaining_us(c[i + 1]->lock) > 0);
  }
  bed_settle(bed);
  int64_t more = server_calls(bed->server, "evalsha") + server_calls(bed->server, "eval") - calls;
  assert_between(more, 2 * (CROWD - 1),
                 3 * (CROWD - 1) + 1); /* a NOSCRIPT is answered by an EVAL */
}

/* ---- who does not wait, and who does not any more ---------------------------------------------------------- */

BED_TEST(a_try_overtakes_nobody_and_leaves_nothing) {
  belay_lock_options_t options = fair_options(3000 * slow());
  contender_t *c = contender_new(bed, "door", &options);
  strangers_place(c, 60000);
  assert_error(try_lock(c), BELAY_EHELD);
  assert_int_equal(queue_len(c), 1);
  assert_error(acquire(c, 100), BELAY_ETIMEDOUT);
  bed_settle(bed);
  assert_int_equal(queue_len(c), 1);
  server_do(bed->server, "DEL", queue_of(c), NULL);
  assert_error(try_lock(c), 0);
}

typedef int (*leaving_t)(contender_t *c);

/* The first in line goes while the lock is free, or a moment before: the next one has it soon. */
static void leave_the_line(leaving_t leave) {
  bed_t *bed = bed_open(NULL);
  belay_lock_options_t options = fair_options(600000);
  options.retry_min_ms = options.retry_max_ms = 20000 * slow();
  contender_t *holder = contender_new(bed, "door", &options);
  contender_t *first = contender_new(bed, "door", &options);
  contender_t *next = contender_new(bed, "door", &options);
  assert_error(try_lock(holder), 0);
  queue_up(first);
  queue_up(next);
  bed_run_for(bed, 200 * slow());
  server_do(bed->server, "DEL", key_of(holder), NULL); /* nobody is told of that */
  int64_t left = clock_now();
  assert_error(leave(first), 0);
  assert_error(outcome(next), 0);
  assert_between((clock_now() - left) / MS, 0, 5000 * slow());
  bed_settle(bed);
  assert_int_equal(queue_len(holder), 0);
  bed_close(bed);
}

TEST(who_leaves_the_line_wakes_the_next_one) {
  leave_the_line(cancel);
  leave_the_line(begin_close);
}

BED_TEST(nothing_is_left_of_who_leaves) {
  belay_lock_options_t options = fair_options(600000);
  contender_t *a = contender_new(bed, "door", &options), *b = contender_new(bed, "door", &options);
  contender_t *c = contender_new(bed, "door", &options);
  assert_error(try_lock(a), 0);
  queue_up(b);
  queue_up(c);
  assert_error(cancel(b), 0);
  assert_error(outcome(b), BELAY_ECANCELED);
  bed_until(bed, queue_len(a) == 1);
  assert_error(close_lock(c), 0);
  assert_error(outcome(c), BELAY_ECANCELED);
  assert_error(close_lock(a), 0);
  bed_settle(bed);
  assert_int_equal(server_keys(bed->server), 0);
}

BED_TEST(a_place_of_the_dead_costs_what_is_left_of_it) {
  int64_t place = 700 * slow();
  belay_lock_options_t options = fair_options(600000);
  contender_t *c = contender_new(bed, "door", &options);
  strangers_place(c, place);
  int64_t begun = clock_now();
  assert_error(acquire(c, BELAY_FOREVER), 0);
  assert_between((clock_now() - begun) / MS, place - 50, place + 400 * slow());
}

/* ---- beside others --------------------------------------------------------------------------------------- */

BED_TEST(it_and_the_plain_lock_exclude_each_other) {
  belay_lock_options_t options = fair_options(3000 * slow());
  contender_t *fair = contender_new(bed, "door", &options);
  contender_t *plain = contender_new(bed, "door", NULL);
  assert_error(try_lock(fair), 0);
  assert_error(try_lock(plain), BELAY_EHELD);
  assert_error(extend(fair, 60000), 0);
  assert_error(release(fair), 0);
  assert_error(try_lock(plain), 0);
  assert_error(begin_acquire(fair, BELAY_FOREVER), 0);
  bed_run_for(bed, 50);
  assert_error(release(plain), 0);
  assert_error(outcome(fair), 0);
  server_do(bed->server, "SET", key_of(fair), "stolen", NULL);
  assert_error(release(fair), BELAY_ENOTOWNER);
  assert_error(acquire(fair, 60), BELAY_ETIMEDOUT);
  server_do(bed->server, "DEL", key_of(fair), NULL);
  server_do(bed->server, "LPUSH", key_of(fair), "x", NULL);
  assert_error(acquire(fair, 1000), BELAY_EWRONGTYPE);
  server_do(bed->server, "DEL", key_of(fair), NULL);
  server_do(bed->server, "SET", queue_of(fair), "x", NULL);
  assert_error(acquire(fair, 1000), BELAY_EWRONGTYPE);
}

/* Whatever the server forgets, those who wait are served; nobody waits for ever. */
BED_TEST(what_the_server_forgets_is_said_again) {
  belay_lock_options_t options = fair_options(900);
  contender_t *c[4];
  for (int i = 0; i < 4; i++)
    c[i] = contender_new(bed, "door", &options);
  assert_error(try_lock(c[0]), 0);
  for (int i = 1; i < 4; i++)
    queue_up(c[i]);
  server_do(bed->server, "SCRIPT", "FLUSH", NULL);
  server_do(bed->server, "FLUSHALL", NULL);
  bed_until(bed, c[1]->ended + c[2]->ended + c[3]->ended == 1);
  server_kill(bed->server);
  server_restart(bed->server);
  bed_until(bed, c[1]->ended + c[2]->ended + c[3]->ended >= 2);
  server_do(bed->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  server_do(bed->server, "FLUSHALL", NULL);
  bed_until(bed, c[1]->ended + c[2]->ended + c[3]->ended == 3);
}

BED_TEST(a_line_that_is_too_long_is_busy) {
  static const char fill[] = "for i = 1, 100000 do redis.call('ZADD', KEYS[1], i, 'x' .. i) "
                             "redis.call('ZADD', KEYS[2], ARGV[1], 'x' .. i) end return 1";
  belay_lock_options_t options = fair_options(3000);
  contender_t *c = contender_new(bed, "door", &options);
  char queue[1100];
  snprintf(queue, sizeof queue, "%s", queue_of(c));
  server_do(bed->server, "EVAL", fill, "2", queue, alive_of(c), "9999999999999", NULL);
  assert_error(acquire(c, prompt_ms()), BELAY_EBUSY);
}

static int make(bed_t *bed, size_t n, const belay_lock_options_t *options) {
  belay_client_t *clients[3] = {bed->client};
  belay_lock_t *lock;
  for (size_t i = 1; i < n; i++)
    clients[i] = bed_connect(bed, "unix:///nowhere", NULL);
  int error = n == 1 ? belay_lock_new(clients[0], "door", 4, options, &lock)
                     : belay_redlock_new(clients, n, "door", 4, options, &lock);
  if (error == 0)
    assert_error(belay_lock_close(lock, NULL), 0);
  else
    assert_null(lock);
  return error;
}

TEST_IN(what_it_does_not_go_with, bed, bed_open_at("unix:///nowhere", NULL)) {
  belay_lock_options_t options = fair_options(3000);
  assert_error(make(bed, 1, &options), 0);
  assert_error(make(bed, 3, &options), BELAY_ESINGLE);
  assert_non_null(strstr(belay_detail(bed->belay), "fair"));
  options.owner = "me";
  options.owner_len = 2;
  assert_error(make(bed, 1, &options), BELAY_EINVAL);
  options = fair_options(3000);
  options.key = "k";
  options.key_len = 1;
  assert_error(make(bed, 1, &options), BELAY_EINVAL);
  options = fair_options(99);
  assert_error(make(bed, 1, &options), BELAY_EINVAL);
}

/* ---- eight processes, and some that are killed --------------------------------------------------------------- */

enum { PROCESSES = 8, WAITERS = 9, VICTIMS = 8, SECONDS = 6, TICKETS_MAX = 200000 };

typedef struct waiter {
  contender_t *contender;
  uv_timer_t timer;
  unsigned grants;
} waiter_t;

static bool over;

static void release_it(uv_timer_t *timer) {
  waiter_t *waiter = timer->data;
  (void)begin_release(waiter->contender); /* or it is lost */
}

static void on_event(contender_t *c, event_t event) {
  waiter_t *waiter = c->arg;
  if (event != EVENT_ENDED && event != EVENT_LOST)
    return;
  if (belay_lock_remaining_us(c->lock) > 0) {
    waiter->grants++;
    uv_timer_start(&waiter->timer, release_it, 1, 0);
  } else if (!over) {
    assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  }
}

/* Waits, holds, and waits again; says how often the one of its waiters was served that was served least, and most. */
static int be_worker(const char *url, const char *name, const char *count, const char *ttl) {
  static waiter_t waiters[WAITERS];
  belay_client_options_t client = client_options();
  client.owner = name;
  bed_t *bed = bed_open_at(url, &client);
  belay_lock_options_t options = fair_options(atoi(ttl));
  options.ttl_ms = atoi(ttl);
  options.watchdog = BELAY_WATCHDOG_ON;
  int n = atoi(count);
  for (int i = 0; i < n; i++) {
    waiter_t *waiter = &waiters[i];
    waiter->contender = contender_new(bed, "door", &options);
    waiter->contender->arg = waiter;
    waiter->contender->then = on_event;
    uv_timer_init(&bed->loop, &waiter->timer);
    waiter->timer.data = waiter;
    assert_error(begin_acquire(waiter->contender, BELAY_FOREVER), 0);
  }
  bed_run_for(bed, SECONDS * 1000);
  over = true;
  unsigned least = UINT32_MAX, most = 0;
  for (int i = 0; i < n; i++) {
    uv_close((uv_handle_t *)&waiters[i].timer, NULL);
    least = waiters[i].grants < least ? waiters[i].grants : least;
    most = waiters[i].grants > most ? waiters[i].grants : most;
  }
  bed_close(bed);
  printf("%u %u\n", least, most);
  return 0;
}

/* Everything that the server executes, in that order. */
typedef struct monitor {
  resp_client_t client;
  pthread_t thread;
  char *text;
  size_t len, cap;
} monitor_t;

static void *read_all(void *arg) {
  monitor_t *m = arg;
  for (ssize_t n = 1; n > 0; m->len += n > 0 ? (size_t)n : 0) {
    if (m->cap - m->len < 65537)
      m->text = realloc(m->text, m->cap = 2 * m->cap + 131072);
    n = recv(m->client.fd, m->text + m->len, 65536, 0);
  }
  m->text[m->len] = '\0';
  return NULL;
}

static void monitor_start(monitor_t *m, const server_t *server) {
  *m = (monitor_t){.len = 0};
  assert_int_equal(acl_dial(NULL, &m->client, server_path(server)), 0);
  assert_int_equal(resp_send(m->client.fd, "MONITOR\r\n", 9), 0);
  assert_int_equal(pthread_create(&m->thread, NULL, read_all, m), 0);
}

static void monitor_stop(monitor_t *m) {
  shutdown(m->client.fd, SHUT_RDWR);
  pthread_join(m->thread, NULL);
  resp_hang_up(&m->client);
}

enum { WORDS = 12 };

/* The words of a line, each ended in place; how many. Of one that is longer the last ones. */
static int split(char *line, char *words[WORDS]) {
  int n = 0;
  for (char *at = line; (at = strchr(at, '"')) != NULL;) {
    char *end = ++at;
    while (*end != '"' && *end != '\0')
      end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    if (n == WORDS)
      memmove(words, words + 1, (size_t)--n * sizeof *words);
    words[n++] = at;
    if (*end == '\0')
      break;
    *end = '\0';
    at = end + 1;
  }
  return n;
}

/* Who has come, in the order of first calls; and whether they have gone. */
typedef struct arrivals {
  struct {
    char ticket[17];
    char owner[8];
    bool gone;
  } at[TICKETS_MAX];
  int count, first;            /* of those that have not gone */
  char token[128], ticket[17]; /* of the last acquire */
  int grants, out_of_order, dead;
  int dead_here;              /* since the last grant */
  double granted_at, longest; /* longest: between two grants, for each who died between them */
} arrivals_t;

static int find(const arrivals_t *a, const char *ticket) {
  for (int i = a->count; i-- > a->first;)
    if (!a->at[i].gone && strcmp(a->at[i].ticket, ticket) == 0)
      return i;
  return -1;
}

static void gone(arrivals_t *a, int i) {
  a->at[i].gone = true;
  while (a->first < a->count && a->at[a->first].gone)
    a->first++;
}

/* An acquire: ... token, ttl, ticket, place, how. */
static void note_acquire(arrivals_t *a, const char *token, const char *ticket) {
  snprintf(a->token, sizeof a->token, "%s", token);
  snprintf(a->ticket, sizeof a->ticket, "%s", ticket);
  if (find(a, ticket) >= 0)
    return;
  assert_true(a->count < TICKETS_MAX);
  snprintf(a->at[a->count].ticket, sizeof a->at[0].ticket, "%s", ticket);
  const char *owner = strchr(token, ':');
  snprintf(a->at[a->count++].owner, sizeof a->at[0].owner, "%s", owner == NULL ? "" : owner + 1);
}

static void note_grant(arrivals_t *a, const char *token, double time) {
  int i = find(a, a->ticket);
  assert_string_equal(token, a->token);
  a->grants++;
  a->out_of_order += i != a->first;
  double took = a->granted_at > 0 ? time - a->granted_at : 0;
  took /= a->dead_here > 1 ? a->dead_here : 1;
  a->longest = took > a->longest ? took : a->longest;
  a->dead_here = 0;
  a->granted_at = time;
  gone(a, i);
}

static void note_line(arrivals_t *a, char *line, const char *key) {
  char *words[WORDS];
  double time = atof(line[0] == '+' ? line + 1 : line);
  bool lua = strstr(line, " lua] ") != NULL;
  int n = split(line, words);
  if (!lua && n >= 8 && strcmp(words[n - 1], deployment_publish()) == 0 &&
      strlen(words[n - 3]) == 16)
    note_acquire(a, words[n - 5], words[n - 3]);
  else if (!lua && n >= 6 && strcmp(words[n - 2], deployment_publish()) == 0 &&
           strlen(words[n - 1]) == 16 && find(a, words[n - 1]) >= 0)
    gone(a, find(a, words[n - 1])); /* a withdrawal */
  else if (lua && n == 5 && strcmp(words[0], "SET") == 0 && strcmp(words[1], key) == 0)
    note_grant(a, words[2], time);
  else if (lua && n == 3 && strcmp(words[0], "ZREM") == 0 && find(a, words[2]) >= 0 &&
           strcmp(words[2], a->ticket) != 0) { /* it was taken for dead */
    int i = find(a, words[2]);
    assert_int_equal(a->at[i].owner[0], 'v');
    a->dead++;
    a->dead_here++;
    gone(a, i);
  }
}

static void kill_them(process_t *victims) {
  for (int i = 0; i < VICTIMS; i++) {
    struct timespec pause = {.tv_nsec = (200 + rand() % 200) * 1000000};
    nanosleep(&pause, NULL);
    process_kill(&victims[i], SIGKILL);
  }
}

TEST(eight_processes_are_served_in_the_order_of_arrival_whoever_dies) {
  needs_one_process("one that tells all that it is asked");
  static arrivals_t arrivals;
  const char *key = "belay::lock::{door}";
  int64_t ttl = 1000 * slow();
  char ttl_text[24], names[PROCESSES + VICTIMS][8], count[12], text[64];
  server_t *server = server_start(NULL);
  monitor_t monitor;
  process_t all[PROCESSES + VICTIMS];
  monitor_start(&monitor, server);
  snprintf(ttl_text, sizeof ttl_text, "%lld", (long long)ttl);
  for (int i = 0; i < PROCESSES + VICTIMS; i++) {
    snprintf(names[i], sizeof names[i], "%c%d", i < PROCESSES ? 'w' : 'v', i);
    snprintf(count, sizeof count, "%d", i < PROCESSES ? WAITERS : 1);
    const char *argv[] = {process_self(), "--worker", server_url(server), names[i], count,
                          ttl_text,       NULL};
    all[i] = process_start(argv);
  }
  kill_them(all + PROCESSES);
  unsigned least = UINT32_MAX, most = 0;
  for (int i = 0; i < PROCESSES; i++) {
    assert_true(process_read_line(&all[i], text, sizeof text));
    unsigned low = (unsigned)strtoul(text, NULL, 10);
    unsigned high = (unsigned)strtoul(strchr(text, ' '), NULL, 10);
    least = low < least ? low : least;
    most = high > most ? high : most;
  }
  for (int i = 0; i < PROCESSES + VICTIMS; i++)
    assert_int_equal(process_wait(&all[i]), i < PROCESSES ? 0 : -SIGKILL);
  monitor_stop(&monitor);
  for (char *line = monitor.text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = '\0';
    note_line(&arrivals, line, key);
  }
  free(monitor.text);
  print_message("%d grants in %d s; each of %d waiters was served %u to %u times; %d died in line; "
                "one of them cost %.0f ms\n",
                arrivals.grants, SECONDS, PROCESSES * WAITERS, least, most, arrivals.dead,
                arrivals.longest * 1000);
  assert_int_equal(arrivals.out_of_order, 0);
  assert_true(arrivals.grants > PROCESSES * WAITERS);
  assert_true(arrivals.dead > 0);
  assert_true(least > 0);
  assert_true(arrivals.longest * 1000 < (double)(ttl + 500 * slow()));
  server_stop(server);
}

TEST_ROLE(worker, "--worker") {
  return be_worker(argv[2], argv[3], argv[4], argv[5]);
}

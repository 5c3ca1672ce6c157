/* The fair lock of eight processes, some of which are killed: the order of arrival. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "support/servers/acl.h"
#include "support/fixtures/env.h"
#include "support/servers/process.h"

static belay_lock_options_t fair_options(int64_t waiter_ttl_ms) {
  belay_lock_options_t options = lock_options();
  options.fair = true;
  options.waiter_ttl_ms = waiter_ttl_ms;
  return options;
}

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

/* Each waiter acquires, holds and acquires again. Prints the lowest and the highest count of
 * grants. */
static int be_worker(const char *url, const char *name, const char *count, const char *ttl) {
  static waiter_t waiters[WAITERS];
  belay_client_options_t client = client_options();
  client.owner = name;
  env_t *env = env_open_at(url, &client);
  belay_lock_options_t options = fair_options(atoi(ttl));
  options.ttl_ms = atoi(ttl);
  options.watchdog = BELAY_WATCHDOG_ON;
  int n = atoi(count);
  for (int i = 0; i < n; i++) {
    waiter_t *waiter = &waiters[i];
    waiter->contender = contender_new(env, "door", &options);
    waiter->contender->arg = waiter;
    waiter->contender->then = on_event;
    uv_timer_init(&env->loop, &waiter->timer);
    waiter->timer.data = waiter;
    assert_error(begin_acquire(waiter->contender, BELAY_FOREVER), 0);
  }
  env_run_for(env, SECONDS * 1000);
  over = true;
  unsigned least = UINT32_MAX, most = 0;
  for (int i = 0; i < n; i++) {
    uv_close((uv_handle_t *)&waiters[i].timer, NULL);
    least = waiters[i].grants < least ? waiters[i].grants : least;
    most = waiters[i].grants > most ? waiters[i].grants : most;
  }
  env_close(env);
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

/* The order in which processes first asked, and those that have ended. */
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

TEST(order_of_arrival_with_killed_processes) {
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

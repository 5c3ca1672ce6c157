/* belay inside of programs that have a loop and a life of their own: handles that they close by
 * themselves, threads, child processes. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include <belay.h>

#include "support/fixtures/env.h"
#include "support/servers/process.h"

enum { THREADS = 2, TIMERS = 1000, LOCKS = 8, RUN_MS = 400 };

/* In which order the host's end and belay's come. */
typedef enum order {
  BELAY_FIRST,     /* belay_close(); when it is through, all handles */
  WALK_FIRST,      /* all handles, then belay_close() */
  WALK_AND_RUN,    /* all handles; when the loop has ended, belay_close() and the loop once more */
  WALK_IN_BETWEEN, /* belay_close(), in the same turn all handles, belay_close() again */
  WALK_MEANWHILE   /* belay_close(), which waits for a server; some turns later as before */
} order_t;

typedef struct host {
  pthread_t thread;
  const char *url;
  order_t order;

  uv_loop_t loop;
  uv_timer_t timers[TIMERS], end;
  belay_t *belay;
  belay_client_t *client;
  belay_lock_t *locks[LOCKS];

  size_t blocks; /* belay's, that are not given back */
  uint64_t ticks, cycles;
  unsigned wrong, belay_closed;
  int closed_again, loop_closed;
} host_t;

static void *count_alloc(void *ctx, size_t size) {
  host_t *host = ctx;
  host->blocks++;
  return malloc(size);
}

static void count_free(void *ctx, void *ptr) {
  host_t *host = ctx;
  host->blocks--;
  free(ptr);
}

static void on_host_timer(uv_timer_t *timer) {
  host_t *host = timer->data;
  host->ticks++;
}

static void start_timers(host_t *host) {
  for (size_t i = 0; i < TIMERS; i++) {
    uv_timer_init(&host->loop, &host->timers[i]);
    host->timers[i].data = host;
    uv_timer_start(&host->timers[i], on_host_timer, 1 + i % 50, 1 + i % 50);
  }
}

/* The first lock is held all the time; the others come and go. */
static void on_released(belay_lock_t *lock, int status);

static void on_acquired(belay_lock_t *lock, int status) {
  host_t *host = belay_lock_data(lock);
  if (status == BELAY_ECANCELED)
    return;
  host->wrong += status != 0;
  host->cycles++;
  if (lock != host->locks[0])
    host->wrong += belay_lock_release(lock, BELAY_DEFAULT, on_released) != 0;
}

static void on_released(belay_lock_t *lock, int status) {
  host_t *host = belay_lock_data(lock);
  if (status == BELAY_ECANCELED)
    return;
  host->wrong += status != 0;
  host->wrong += belay_lock_acquire(lock, BELAY_FOREVER, on_acquired) != 0;
}

static void start_belay(host_t *host) {
  belay_options_t options;
  belay_options_init(&options);
  options.allocator = (belay_allocator_t){.alloc = count_alloc, .free = count_free, .ctx = host};
  host->wrong += belay_open(&host->loop, &options, &host->belay) != 0;
  belay_set_data(host->belay, host);
  host->wrong += belay_connect(host->belay, host->url, NULL, &host->client) != 0;
  for (size_t i = 0; i < LOCKS; i++) {
    char name[32];
    int len = i == 0 ? snprintf(name, sizeof name, "of-%p", (void *)host)
                     : snprintf(name, sizeof name, "door-%zu", i);
    host->wrong +=
        belay_lock_new(host->client, belay_bytes(name, (size_t)len), NULL, &host->locks[i]) != 0;
    belay_lock_set_data(host->locks[i], host);
    host->wrong += belay_lock_acquire(host->locks[i], BELAY_FOREVER, on_acquired) != 0;
  }
}

static void close_handle(uv_handle_t *handle, void *arg) {
  (void)arg;
  if (!uv_is_closing(handle))
    uv_close(handle, NULL);
}

static void close_all_handles(host_t *host) {
  uv_walk(&host->loop, close_handle, NULL);
}

static void on_belay_closed(belay_t *belay, void *data) {
  host_t *host = data;
  (void)belay;
  host->belay_closed++;
  if (host->order == BELAY_FIRST)
    close_all_handles(host);
}

static void close_again(host_t *host) {
  host->closed_again = belay_close(host->belay, on_belay_closed);
}

static void walk_and_close_again(uv_timer_t *timer) {
  host_t *host = timer->data;
  close_all_handles(host);
  close_again(host);
}

static void on_end(uv_timer_t *timer) {
  host_t *host = timer->data;
  switch (host->order) {
  case BELAY_FIRST:
    host->wrong += belay_close(host->belay, on_belay_closed) != 0;
    break;
  case WALK_FIRST:
    close_all_handles(host);
    close_again(host);
    break;
  case WALK_AND_RUN:
    close_all_handles(host);
    break;
  case WALK_IN_BETWEEN:
    host->wrong += belay_close(host->belay, on_belay_closed) != 0;
    walk_and_close_again(timer);
    break;
  case WALK_MEANWHILE:
    host->wrong += belay_close(host->belay, on_belay_closed) != 0;
    uv_timer_start(timer, walk_and_close_again, 50, 0);
    break;
  }
}

static void *run_host(void *arg) {
  host_t *host = arg;
  host->closed_again = 0;
  host->wrong += uv_loop_init(&host->loop) != 0;
  start_timers(host);
  start_belay(host);
  uv_timer_init(&host->loop, &host->end);
  host->end.data = host;
  uv_timer_start(&host->end, on_end, RUN_MS * (uint64_t)slow(), 0);
  uv_run(&host->loop, UV_RUN_DEFAULT);
  if (host->order == WALK_AND_RUN) {
    close_again(host);
    uv_run(&host->loop, UV_RUN_DEFAULT);
  }
  host->loop_closed = uv_loop_close(&host->loop);
  return NULL;
}

/* A server that stands still makes belay_close() take its time. */
static void pause_before_the_end(server_t *server) {
  stall_ms(RUN_MS * slow() - RUN_MS / 4);
  server_pause(server);
}

static void check_order(order_t order) {
  static host_t hosts[THREADS];
  server_t *server = server_start(NULL);
  for (size_t i = 0; i < THREADS; i++) {
    hosts[i] = (host_t){.url = server_url(server), .order = order};
    assert_int_equal(pthread_create(&hosts[i].thread, NULL, run_host, &hosts[i]), 0);
  }
  if (order == WALK_MEANWHILE)
    pause_before_the_end(server);
  for (size_t i = 0; i < THREADS; i++) {
    host_t *host = &hosts[i];
    assert_int_equal(pthread_join(host->thread, NULL), 0);
    assert_int_equal(host->wrong, 0);
    assert_int_equal(host->closed_again, 0);
    assert_int_equal(host->belay_closed, 1);
    assert_int_equal(host->loop_closed, 0);
    assert_int_equal(host->blocks, 0);
    assert_true(host->cycles > LOCKS);
    assert_true(host->ticks > TIMERS);
  }
  if (order == BELAY_FIRST)
    assert_int_equal(server_keys(server), 0);
  server_stop(server);
}

TEST(two_hosts_close_belay_first) {
  check_order(BELAY_FIRST);
}

TEST(two_hosts_close_all_handles_first) {
  check_order(WALK_FIRST);
}

TEST(two_hosts_close_handles_and_end_loop_first) {
  check_order(WALK_AND_RUN);
}

TEST(two_hosts_close_all_handles_after_belay) {
  check_order(WALK_IN_BETWEEN);
}

TEST(two_hosts_close_all_handles_during_belay_close) {
  check_order(WALK_MEANWHILE);
}

/* The earliest that a host can change its mind. */
TEST(host_closes_all_handles_before_loop_runs) {
  for (order_t order = WALK_FIRST; order <= WALK_IN_BETWEEN; order++) {
    host_t *host = calloc(1, sizeof *host);
    host->url = "redis://localhost:1";
    host->order = order;
    assert_int_equal(uv_loop_init(&host->loop), 0);
    start_belay(host);
    uv_timer_init(&host->loop, &host->end);
    host->end.data = host;
    on_end(&host->end);
    uv_run(&host->loop, UV_RUN_DEFAULT);
    if (order == WALK_AND_RUN) {
      close_again(host);
      uv_run(&host->loop, UV_RUN_DEFAULT);
    }
    assert_int_equal(uv_loop_close(&host->loop), 0);
    assert_int_equal(host->closed_again, 0);
    assert_int_equal(host->belay_closed, 1);
    assert_int_equal(host->blocks, 0);
    assert_int_equal(host->wrong, 0);
    free(host);
  }
}

/* Prints what this process has open beyond the first three. */
static int list_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  struct dirent *entry;
  char target[256];
  while ((entry = readdir(folder)) != NULL) {
    int fd = atoi(entry->d_name);
    ssize_t n = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
    if (n < 0 || fd <= 2 || fd == dirfd(folder))
      continue;
    target[n] = '\0';
    printf("%d %s\n", fd, target);
  }
  puts("end");
  closedir(folder);
  return 0;
}

/* The open descriptors of a child, without those inherited from the parent of this process. */
static void descriptors_of_a_child(char *out, size_t size) {
  const char *argv[] = {process_self(), "--list-descriptors", NULL};
  process_t child = process_start(argv);
  char line[512];
  size_t n = 0;
  out[0] = '\0';
  while (process_read_line(&child, line, sizeof line) && strcmp(line, "end") != 0)
    n += (size_t)snprintf(out + n, size - n, "%s\n", line);
  assert_int_equal(process_wait(&child), 0);
}

TEST(child_process_inherits_no_descriptors) {
  static char before[8192], during[8192];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  descriptors_of_a_child(before, sizeof before);
  belay_client_options_t options = client_options();
  options.connections = 4;
  env_t *env = env_open_with(server, &options);
  char name[16];
  for (int i = 0; i < 20; i++) {
    snprintf(name, sizeof name, "door-%d", i);
    assert_error(try_lock(contender_new(env, name, NULL)), 0);
  }
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 1);
  assert_int_equal(client_stats(env).connections_up, 4);
  descriptors_of_a_child(during, sizeof during);
  assert_string_equal(during, before);
  env_close(env);
}

/* Also while it connects. */
TEST(child_process_during_connect_inherits_no_descriptors) {
  static char before[8192], during[8192];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  descriptors_of_a_child(before, sizeof before);
  server_pause(server); /* the handshake is not answered */
  env_t *env = env_open_with(server, NULL);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(env, 50);
  descriptors_of_a_child(during, sizeof during);
  assert_string_equal(during, before);
  server_resume(server);
  env_close(env);
}

/* The report of a forked child. */
typedef struct report {
  int failure; /* 0: none */
  char token[128];
} report_t;

/* It ends as another program: neither its exit nor its memory is anybody's business. */
static report_t in_a_fork(report_t (*run)(const void *arg), const void *arg) {
  report_t report = {.failure = -1};
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    report = run(arg);
    (void)!write(ends[1], &report, sizeof report);
    execlp("true", "true", NULL);
    _exit(0);
  }
  close(ends[1]);
  assert_int_equal(read(ends[0], &report, sizeof report), sizeof report);
  close(ends[0]);
  assert_int_equal(waitpid(child, NULL, 0), child);
  return report;
}

static void never_called(belay_lock_t *lock, int status) {
  (void)lock;
  (void)status;
  _exit(99);
}

static void never_pinged(belay_client_t *client, int status) {
  (void)client;
  (void)status;
  _exit(99);
}

/* The number of the first function that lets a fork in. */
static report_t knock_everywhere(const void *arg) {
  const contender_t *held = arg;
  belay_client_t *client = held->env->client, *other;
  belay_lock_t *lock = held->lock, *idle = held->next->lock, *another;
  const int errors[] = {
      belay_connect(held->env->belay, "redis://localhost", NULL, &other),
      belay_client_ping(client, BELAY_DEFAULT, never_pinged),
      belay_lock_new(client, belay_string("door"), NULL, &another),
      belay_lock_acquire(idle, 0, never_called),
      belay_lock_try(idle, never_called),
      belay_lock_cancel(idle),
      belay_lock_release(lock, BELAY_DEFAULT, never_called),
      belay_lock_extend(lock, 1000, BELAY_DEFAULT, never_called),
      belay_lock_close(idle, NULL),
      belay_lock_close(lock, NULL),
      belay_client_close(client, NULL),
      belay_close(held->env->belay, NULL),
  };
  for (int i = 0; i < (int)(sizeof errors / sizeof *errors); i++)
    if (errors[i] != BELAY_EFORK)
      return (report_t){.failure = i + 1};
  return (report_t){.failure = 0};
}

ENV_TEST(forked_child_is_refused) {
  contender_t *idle = contender_new(env, "idle", NULL), *held = contender_new(env, "held", NULL);
  assert_error(try_lock(held), 0);
  assert_int_equal(in_a_fork(knock_everywhere, held).failure, 0);

  /* the parent did not notice */
  assert_int_equal(held->lost, 0);
  assert_true(is_on_server(held));
  assert_error(extend(held, 20000), 0);
  assert_error(try_lock(idle), 0);
  assert_error(release(held), 0);
  assert_int_equal(client_stats(env).drops, 0);
}

static void on_tried(belay_lock_t *lock, int status) {
  int *out = belay_lock_data(lock);
  *out = status;
}

/* A loop and a belay_t of the fork's own. */
static report_t start_over(const void *url) {
  report_t report = {.failure = 1};
  uv_loop_t loop;
  belay_t *belay;
  belay_client_t *client;
  belay_lock_t *lock;
  int status = 1;
  if (uv_loop_init(&loop) != 0 || belay_open(&loop, NULL, &belay) != 0 ||
      belay_connect(belay, url, NULL, &client) != 0 ||
      belay_lock_new(client, belay_string("child"), NULL, &lock) != 0)
    return report;
  belay_lock_set_data(lock, &status);
  report.failure = 2;
  if (belay_lock_try(lock, on_tried) != 0 || uv_run(&loop, UV_RUN_DEFAULT) != 0 || status != 0)
    return report;
  belay_lock_token(lock, report.token, sizeof report.token);
  report.failure = 3;
  if (belay_close(belay, NULL) != 0 || uv_run(&loop, UV_RUN_DEFAULT) != 0 ||
      uv_loop_close(&loop) != 0)
    return report;
  report.failure = 0;
  return report;
}

/* No token of the child's is one of the parent's, whatever random bytes lay ready. */
TEST(forked_child_opens_belay_again) {
  env_t *env = env_open(NULL);
  contender_t *c = contender_new(env, "parent", NULL);
  char token[128] = "";
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  report_t report = in_a_fork(start_over, server_url(env->server));
  assert_int_equal(report.failure, 0);
  assert_error(try_lock(c), 0);
  belay_lock_token(c->lock, token, sizeof token);
  assert_int_equal(strcspn(report.token, ":"), 40);
  assert_memory_not_equal(token, report.token, 40);
  env_close(env);
}

TEST_ROLE(list_descriptors, "--list-descriptors") {
  return list_descriptors();
}

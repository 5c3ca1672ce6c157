/* Two thousand clients in four processes lose their primary at once: that of a Sentinel group,
 * or the cluster node whose slot they all use. Together they make at most a thousand connection
 * attempts per second, before and after the promotion. Five seconds after it all are connected.
 *
 * With BELAY_FAILOVERS in the environment. Otherwise there are two hundred clients, and they
 * have more time, because the machine may be busy. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/client/client.h"
#include "support/fixtures/env.h"
#include "support/deployments/cluster.h"
#include "support/deployments/failover_log.h"
#include "support/servers/process.h"

enum { PROCESSES = 4, MANY = 500, FEW = 50, PER_SECOND = 1000, BACK_MS = 5000 };
enum { BUCKET_MS = 100, BUCKETS = 2400, PATIENCE_MS = 60000 };

#define ROLE "--clients"
#define PAUSE_MS 200 /* between two calls of a client's */

static bool is_strict(void) {
  return getenv("BELAY_FAILOVERS") != NULL && slow() == 1;
}

/* Each client has one connection to its primary and one for discovery. */
static unsigned clients_each(void) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  unsigned wanted = getenv("BELAY_FAILOVERS") != NULL ? MANY : FEW;
  unsigned most = files.rlim_cur > 300 ? (unsigned)(files.rlim_cur - 200) / 2 : 50;
  if (most < wanted)
    print_message("# no more than %u files: %u clients in a process\n", (unsigned)files.rlim_cur,
                  most);
  return most < wanted ? most : wanted;
}

/* ---- a process with clients ---- */

typedef struct client_state {
  belay_client_t *client;
  uv_timer_t pause;
  bool came; /* it has been answered, by the server with this run id */
  char run_id[BELAY__RUN_ID_MAX];
  bool back; /* and by another one since */
} client_state_t;

static struct {
  env_t *env;
  unsigned n, came, back;
  client_state_t *clients;
  uint64_t attempts; /* so far */
  uv_timer_t count;
  bool ends;
} my;

static void on_answer(belay_client_t *client, int status);

static void on_pause(uv_timer_t *pause) {
  client_state_t *state = pause->data;
  assert_error(belay_client_ping(state->client, 30000, on_answer), 0);
}

static void on_answer(belay_client_t *client, int status) {
  client_state_t *state = belay_client_data(client);
  const belay__server_info_t *server = client->node_ops->server(client, BELAY__CLASS_LEASE, 0);
  if (status == 0 && server != NULL && !state->came) {
    state->came = true;
    memcpy(state->run_id, server->run_id, sizeof state->run_id);
    if (++my.came == my.n)
      printf("ready\n");
  } else if (status == 0 && server != NULL && !state->back &&
             !belay__server_info_is(server, state->run_id, sizeof state->run_id)) {
    state->back = true;
    if (++my.back == my.n)
      printf("back %" PRId64 "\n", clock_now());
  }
  if (!my.ends)
    uv_timer_start(&state->pause, on_pause, PAUSE_MS, 0);
}

/* Counts each client's attempts. */
static void on_count(uv_timer_t *timer) {
  uint64_t attempts = 0;
  (void)timer;
  for (unsigned i = 0; i < my.n; i++) {
    belay_client_stats_t stats;
    belay_client_stats(my.clients[i].client, &stats);
    attempts += stats.connects + stats.connect_errors;
  }
  if (attempts > my.attempts)
    printf("tried %" PRId64 " %" PRIu64 "\n", clock_now(), attempts - my.attempts);
  my.attempts = attempts;
}

/* "note": it begins anew, with the servers that they are at now. Else: it ends. */
static void on_line(uv_poll_t *input, int status, int events) {
  char text[16];
  (void)input, (void)events;
  ssize_t n = status < 0 ? 0 : read(STDIN_FILENO, text, sizeof text);
  if (n <= 0)
    _exit(1);
  if (memcmp(text, "note", 4) != 0) {
    my.ends = true;
    return;
  }
  my.came = my.back = 0;
  for (unsigned i = 0; i < my.n; i++)
    my.clients[i].came = my.clients[i].back = false;
}

static int be_clients(char **argv) {
  uv_poll_t input;
  my.n = (unsigned)atoi(argv[3]);
  my.clients = calloc(my.n, sizeof *my.clients);
  my.env = env_bare();
  uv_loop_t *loop = &my.env->loop;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (unsigned i = 0; i < my.n; i++) {
    client_state_t *state = &my.clients[i];
    assert_error(belay_connect(my.env->belay, argv[2], NULL, &state->client), 0);
    belay_client_set_data(state->client, state);
    uv_timer_init(loop, &state->pause);
    state->pause.data = state;
    uv_timer_start(&state->pause, on_pause, 1 + i % PAUSE_MS, 0);
  }
  uv_timer_init(loop, &my.count);
  uv_timer_start(&my.count, on_count, BUCKET_MS, BUCKET_MS);
  uv_poll_init(loop, &input, STDIN_FILENO);
  uv_poll_start(&input, UV_READABLE, on_line);
  while (!my.ends)
    uv_run(loop, UV_RUN_ONCE);
  for (unsigned i = 0; i < my.n; i++)
    uv_close((uv_handle_t *)&my.clients[i].pause, NULL);
  uv_close((uv_handle_t *)&my.count, NULL);
  uv_close((uv_handle_t *)&input, NULL);
  env_close(my.env);
  free(my.clients);
  return 0;
}

/* ---- the deployment ---- */

typedef struct target {
  const char *name;
  const char *(*start)(void); /* its URL */
  bool (*is_whole)(void);
  void (*kill)(void);
  int64_t (*promoted)(void); /* when that was first known; 0: not yet */
  void (*stop)(void);
} target_t;

static group_t *group;
static failover_log_t *failover_log;

static const char *start_group(void) {
  group = group_start(NULL);
  failover_log = failover_log_start(group);
  return group_url(group);
}

static bool group_is_well(void) {
  return group_is_whole(group);
}

static void kill_in_group(void) {
  failover_log_reset(failover_log);
  group_begin_fail_over(group, GROUP_KILLED);
}

static int64_t promoted_in_group(void) {
  return failover_log_first(failover_log);
}

static void stop_group(void) {
  failover_log_stop(failover_log);
  group_stop(group);
}

static cluster_t *cluster;

static const char *start_cluster(void) {
  cluster = cluster_start(NULL);
  return cluster_url(cluster);
}

static bool cluster_is_well(void) {
  return cluster_is_whole(cluster);
}

/* A call without a key, such as a PING, is for slot 0. */
static void kill_in_cluster(void) {
  cluster_begin_fail_over(cluster, 0, CLUSTER_KILLED);
}

static int64_t promoted_in_cluster(void) {
  return cluster_has_failed_over(cluster) ? clock_now() : 0;
}

static void stop_cluster(void) {
  cluster_stop(cluster);
}

static const target_t a_group = {"a group",     start_group,       group_is_well,
                                 kill_in_group, promoted_in_group, stop_group};
static const target_t a_cluster = {"a cluster",     start_cluster,       cluster_is_well,
                                   kill_in_cluster, promoted_in_cluster, stop_cluster};

/* ---- all of it ---- */

typedef struct processes {
  process_t process[PROCESSES];
  unsigned ready, back;
  int64_t last_back, began;
  uint64_t tried[BUCKETS]; /* in each tenth of a second */
} processes_t;

static void read_line(processes_t *processes, const char *line) {
  int64_t at;
  uint64_t n;
  if (strcmp(line, "ready") == 0) {
    processes->ready++;
  } else if (sscanf(line, "back %" SCNd64, &at) == 1) {
    processes->back++;
    processes->last_back = at > processes->last_back ? at : processes->last_back;
  } else if (sscanf(line, "tried %" SCNd64 " %" SCNu64, &at, &n) == 2) {
    int64_t bucket = (at - processes->began) / (BUCKET_MS * MS);
    if (bucket >= 0 && bucket < BUCKETS)
      processes->tried[bucket] += n;
  }
}

static void read_reports(processes_t *processes) {
  struct pollfd inputs[PROCESSES];
  char line[128];
  for (int i = 0; i < PROCESSES; i++)
    inputs[i] = (struct pollfd){.fd = processes->process[i].out, .events = POLLIN};
  if (poll(inputs, PROCESSES, 5) <= 0)
    return;
  for (int i = 0; i < PROCESSES; i++)
    if (inputs[i].revents != 0) {
      assert_true(process_read_line(&processes->process[i], line, sizeof line));
      read_line(processes, line);
    }
}

#define AWAIT(processes, condition)                                                                \
  do {                                                                                             \
    int64_t began_ = clock_now();                                                                  \
    while (!(condition)) {                                                                         \
      read_reports(processes);                                                                     \
      if (clock_since_ms(began_) > PATIENCE_MS * slow())                                           \
        fail_msg("waited in vain for: %s", #condition);                                            \
    }                                                                                              \
  } while (0)

static void tell_all(processes_t *processes, const char *line) {
  for (int i = 0; i < PROCESSES; i++)
    process_write_line(&processes->process[i], line);
}

/* The most in a second, wherever that begins. */
static uint64_t most_in_a_second(const processes_t *processes) {
  uint64_t most = 0;
  for (int i = 0; i + 10 <= BUCKETS; i++) {
    uint64_t sum = 0;
    for (int k = i; k < i + 10; k++)
      sum += processes->tried[k];
    most = sum > most ? sum : most;
  }
  return most;
}

static void come_back(const target_t *target) {
  static processes_t processes;
  char number[12];
  unsigned each = clients_each();
  int64_t promoted = 0;
  processes = (processes_t){.ready = 0};
  const char *url = target->start();
  snprintf(number, sizeof number, "%u", each);
  const char *argv[] = {process_self(), ROLE, url, number, NULL};
  for (int i = 0; i < PROCESSES; i++)
    processes.process[i] = process_start(argv);
  AWAIT(&processes, processes.ready == PROCESSES);
  /* So many at once may have been taken for the end of the primary. */
  AWAIT(&processes, target->is_whole());
  processes.ready = processes.back = 0;
  tell_all(&processes, "note");
  AWAIT(&processes, processes.ready == PROCESSES);
  processes.back = 0;
  processes.began = clock_now();
  target->kill();
  AWAIT(&processes, (promoted = target->promoted()) != 0);
  AWAIT(&processes, processes.back == PROCESSES);
  int64_t after = (processes.last_back - promoted) / MS;
  int64_t done = clock_now();
  AWAIT(&processes, clock_since_ms(done) > 1000);
  uint64_t most = most_in_a_second(&processes), all = 0;
  for (int i = 0; i < BUCKETS; i++)
    all += processes.tried[i];
  print_message(
      "# %s, %u clients: all are back %" PRId64 " ms after the promotion was known, which was "
      "%" PRId64 " ms after the kill; %" PRIu64 " attempts to connect in all, at most %" PRIu64
      " in a second\n",
      target->name, PROCESSES * each, after, (promoted - processes.began) / MS, all, most);
  tell_all(&processes, "end");
  for (int i = 0; i < PROCESSES; i++)
    assert_int_equal(process_wait(&processes.process[i]), 0);
  assert_between((long long)most, 0, PER_SECOND);
  assert_true(after <= (is_strict() ? BACK_MS : 4 * slow() * BACK_MS));
  target->stop();
}

TEST(many_clients_reconnect_to_a_sentinel_group) {
  come_back(&a_group);
}

TEST(many_clients_reconnect_to_a_cluster) {
  come_back(&a_cluster);
}

TEST_ROLE(role, ROLE) {
  return be_clients(argv);
}

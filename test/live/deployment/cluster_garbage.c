/* Cluster nodes with invalid replies: maps that are invalid or endless, and redirections that lead
 * nowhere or in a circle. No call follows them endlessly, and no client stalls. */
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/key/slot.h"
#include "support/servers/acl.h"
#include "support/fixtures/env.h"
#include "support/deployments/cluster.h"
#include "support/deployments/fake.h"

typedef struct bad_node {
  fake_t *fake;
  int port;
  _Atomic(const char *) map, answer; /* replies to CLUSTER and to calls; NULL: the true ones */
  atomic_bool leads_on;              /* true if each call is redirected to another unused address */
  atomic_uint calls, asked, asking;  /* calls, CLUSTER, ASKING */
} bad_node_t;

static unsigned door(void) {
  return belay__slot("door", 4);
}

static void put_error(char *out, size_t size, const char *what, const char *host, int port) {
  snprintf(out, size, "-%s %u %s:%d\r\n", what, door(), host, port);
}

/* ---- where nobody is ---- */

enum { NOWHERES = 65536 };

static struct {
  unsigned dials, places;
  bool seen[NOWHERES];
} nowhere;

/* The n-th of them. */
static void put_nowhere(char *out, size_t size, unsigned n) {
  char host[24];
  snprintf(host, sizeof host, "127.2.%u.%u", n / 256 % 256, n % 256);
  put_error(out, size, n % 2 == 0 ? "ASK" : "MOVED", host, 1);
}

/* Counts the calls of connect(). */
int note_dial(int fd, const struct sockaddr *address, socklen_t len) __asm__("connect");

int note_dial(int fd, const struct sockaddr *address, socklen_t len) {
  uint32_t ip = 0;
  if (address->sa_family == AF_INET)
    ip = ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);
  if (ip >> 16 == (127 << 8 | 2)) {
    nowhere.dials++;
    nowhere.places += !nowhere.seen[ip % NOWHERES];
    nowhere.seen[ip % NOWHERES] = true;
  }
  return (int)syscall(SYS_connect, fd, address, len);
}

/* In the fake's thread. */
static void answer_badly(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  bad_node_t *bad_node = arg;
  const char *map = atomic_load(&bad_node->map), *answer = atomic_load(&bad_node->answer);
  if (strcasecmp(words[0], "CLUSTER") == 0) {
    atomic_fetch_add(&bad_node->asked, 1);
    fake_say(link, map);
  } else if (strcasecmp(words[0], "ASKING") == 0) {
    atomic_fetch_add(&bad_node->asking, 1);
    fake_say(link, "+OK\r\n");
  } else if (fake_is_handshake(words)) {
    fake_behave(link, words, count);
  } else if (atomic_load(&bad_node->leads_on)) {
    char away[64];
    put_nowhere(away, sizeof away, atomic_fetch_add(&bad_node->calls, 1));
    fake_say(link, away);
  } else if (answer == NULL) {
    fake_behave(link, words, count);
  } else {
    atomic_fetch_add(&bad_node->calls, 1);
    fake_say(link, answer);
  }
}

static void bad_node_start(bad_node_t *bad_node) {
  atomic_store(&bad_node->map, "*0\r\n");
  bad_node->fake = fake_start(&(fake_options_t){.on_command = answer_badly, .arg = bad_node});
  bad_node->port = atoi(strrchr(fake_url(bad_node->fake), ':') + 1);
}

/* All slots are that one's. */
static void put_map(char *out, size_t size, int port) {
  snprintf(out, size, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n", port);
}

static env_t *open_at(const bad_node_t *first, int second, const belay_client_options_t *options) {
  char url[128];
  int n = snprintf(url, sizeof url, "redis+cluster://%s127.0.0.1:%d",
                   acl_login(&(server_options_t){0}), first->port);
  if (second > 0)
    snprintf(url + n, sizeof url - (size_t)n, ",127.0.0.1:%d", second);
  return env_open_at(url, options);
}

static belay_client_options_t hasty(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 1000;
  return options;
}

/* ---- maps ---- */

/* The next one is asked. */
TEST_ON(invalid_maps, cluster, cluster_start(&(cluster_options_t){.without_replicas = true})) {
  static const char *const maps[] = {
      "+OK\r\n",
      ":1\r\n",
      "$-1\r\n",
      "*-1\r\n",
      "*0\r\n",
      "$5\r\nslots\r\n",
      "-ERR no\r\n",
      "*1\r\n*0\r\n",
      "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n",
      "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\n?\r\n:1\r\n",
      "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:0\r\n",
      "*1\r\n*4\r\n$5\r\nslots\r\n*0\r\n$5\r\nnodes\r\n*0\r\n",
      "*2\r\n*3\r\n:0\r\n:9\r\n*2\r\n$1\r\na\r\n:1\r\n*3\r\n:9\r\n:9\r\n*2\r\n$1\r\na\r\n:1\r\n",
      "!\r\n",
      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
  };
  bad_node_t bad_node = {0};
  bad_node_start(&bad_node);
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
    atomic_store(&bad_node.map, maps[i]);
    env_t *env = open_at(&bad_node, server_port(cluster_node(cluster, 1)), NULL);
    contender_t *c = contender_new(env, "door", NULL);
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
    env_close(env);
  }
  assert_true(atomic_load(&bad_node.asked) >= sizeof maps / sizeof *maps);
  fake_stop(bad_node.fake);
}

/* The map has more servers than the client has room for. The servers that fit are used. */
TEST(map_with_too_many_servers) {
  enum { COUNT = 4096, EACH = CLUSTER_SLOTS / COUNT };
  bad_node_t bad_node = {0};
  char *map = malloc(COUNT * 80);
  bad_node_start(&bad_node);
  size_t n = (size_t)sprintf(map, "*%d\r\n", COUNT);
  for (int i = 0; i < COUNT; i++) {
    int from = i * EACH, to = from + EACH - 1;
    bool ours = from <= (int)door() && (int)door() <= to;
    char host[24];
    snprintf(host, sizeof host, ours ? "127.0.0.1" : "127.1.%d.%d", i / 256, i % 256);
    n += (size_t)sprintf(map + n, "*3\r\n:%d\r\n:%d\r\n*2\r\n$%zu\r\n%s\r\n:%d\r\n", from, to,
                         strlen(host), host, bad_node.port);
  }
  atomic_store(&bad_node.map, map);
  belay_client_options_t options = hasty();
  env_t *env = open_at(&bad_node, 0, &options);
  contender_t *c = contender_new(env, "door", NULL), *first = contender_new(env, "0", NULL);
  (void)try_lock(first); /* whoever that is */
  unsigned number = door() / EACH;
  assert_error(try_lock(c), number < 1024 ? 0 : BELAY_ECLUSTERDOWN);
  assert_int_equal(env->errors, 1);
  print_message("# %zu kB for a cluster of 1024 servers\n", env->bytes / 1024);
  assert_true(env->bytes < 64u << 20);
  env_close(env);
  fake_stop(bad_node.fake);
  free(map);
}

/* All named addresses are unused. */
TEST(map_with_dead_addresses) {
  bad_node_t bad_node = {0};
  char map[128];
  bad_node_start(&bad_node);
  put_map(map, sizeof map, 1);
  atomic_store(&bad_node.map, map);
  belay_client_options_t options = hasty();
  env_t *env = open_at(&bad_node, 0, &options);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  char right[128];
  put_map(right, sizeof right, bad_node.port);
  atomic_store(&bad_node.map, right);
  assert_error(acquire(c, 10000), 0);
  env_close(env);
  fake_stop(bad_node.fake);
}

/* ---- redirections ---- */

typedef struct two {
  bad_node_t one, other;
  char map[128], to_one[128], to_other[128];
  env_t *env;
} two_t;

/* The map says: all is the first one's. */
static two_t *two_open(void) {
  belay_client_options_t options = hasty();
  two_t *two = calloc(1, sizeof *two);
  bad_node_start(&two->one);
  bad_node_start(&two->other);
  put_map(two->map, sizeof two->map, two->one.port);
  atomic_store(&two->one.map, two->map);
  atomic_store(&two->other.map, two->map);
  two->env = open_at(&two->one, 0, &options);
  return two;
}

/* The bad_node redirects all calls; text: memory of the reply. */
static void redirect(bad_node_t *bad_node, char text[128], const char *word, const char *host,
                     int port) {
  put_error(text, 128, word, host, port);
  atomic_store(&bad_node->answer, text);
}

static void two_close(two_t *two) {
  env_close(two->env);
  fake_stop(two->one.fake);
  fake_stop(two->other.fake);
  free(two);
}

TEST(redirect_without_host) {
  static const char *const words[] = {"MOVED", "ASK"};
  for (int i = 0; i < 2; i++) {
    two_t *two = two_open();
    redirect(&two->one, two->to_other, words[i], "", two->other.port);
    contender_t *c = contender_new(two->env, "door", NULL);
    assert_error(try_lock(c), 0);
    assert_int_equal(atomic_load(&two->one.calls), 1);
    two_close(two);
  }
}

TEST_ON(redirect_to_ipv6, server, server_start(&(server_options_t){.address = "::1"})) {
  two_t *two = two_open();
  redirect(&two->one, two->to_other, "MOVED", "::1", server_port(server));
  contender_t *c = contender_new(two->env, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_keys(server), 1);
  assert_error(release(c), 0);
  two_close(two);
}

/* The client follows five redirections at once. Then it waits longer and longer, until the
 * deadline, which may pass during a call. */
static void expect_patience(two_t *two, unsigned each) {
  contender_t *c = contender_new(two->env, "door", NULL);
  int64_t began = clock_now();
  if (try_lock(c) != BELAY_EUNKNOWN)
    assert_error(c->status, BELAY_ECLUSTERDOWN);
  unsigned calls = atomic_load(&two->one.calls) + atomic_load(&two->other.calls);
  assert_true(clock_since_ms(began) >= 100);
  assert_between(calls, 3 * each, 30 * each);
  assert_between(atomic_load(&two->one.asked) + atomic_load(&two->other.asked), 1,
                 clock_since_ms(began) / 1000 + 2);
}

TEST(redirect_circle) {
  static const char *const words[] = {"MOVED", "ASK"};
  for (int i = 0; i < 4; i++) {
    two_t *two = two_open();
    redirect(&two->one, two->to_other, words[i % 2], "127.0.0.1", two->other.port);
    redirect(&two->other, two->to_one, words[i / 2], "127.0.0.1", two->one.port);
    expect_patience(two, 6);
    atomic_store(&two->other.answer, NULL); /* it has become wise */
    contender_t *c = contender_new(two->env, "another", NULL);
    assert_error(acquire(c, 10000), 0);
    two_close(two);
  }
}

TEST_IN(redirect_to_the_same_node, two, two_open()) {
  redirect(&two->one, two->to_one, "MOVED", "127.0.0.1", two->one.port);
  expect_patience(two, 6);
}

TEST(invalid_redirects) {
  static const char *const answers[] = {
      "-MOVED\r\n",
      "-MOVED 1\r\n",
      "-MOVED 99999 127.0.0.1:1\r\n",
      "-MOVED 1 ?:7000\r\n",
      "-MOVED 1 127.0.0.1:99999\r\n",
      "-ASK 1 nowhere\r\n",
      "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
      "-CLUSTERDOWN The cluster is down\r\n",
      "-CLUSTERDOWN Hash slot not served\r\n",
  };
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    two_t *two = two_open();
    atomic_store(&two->one.answer, answers[i]);
    expect_patience(two, 1);
    contender_t *c = contender_new(two->env, "another", NULL);
    assert_error(begin_acquire(c, 10000), 0);
    env_run_for(two->env, 100);
    atomic_store(&two->one.answer, NULL);
    assert_error(outcome(c), 0);
    two_close(two);
  }
}

/* ASK names a dead node. The client asks the slot's owner again, which serves the key by then. */
TEST_IN(ask_to_a_dead_node, two, two_open()) {
  redirect(&two->one, two->to_other, "ASK", "127.0.0.1", 1);
  contender_t *c = contender_new(two->env, "door", NULL);
  assert_error(begin_acquire(c, 0), 0);
  env_run_for(two->env, 200);
  assert_int_equal(c->ended, 0);
  atomic_store(&two->one.answer, NULL);
  assert_error(outcome(c), 0);
}

/* The server that ASK names refuses for now. The call begins again at the slot's owner, without
 * ASKING: a server that imports the slot would serve the call although the owner has the key. */
TEST_IN(ask_then_refused, two, two_open()) {
  redirect(&two->one, two->to_other, "ASK", "127.0.0.1", two->other.port);
  atomic_store(&two->other.answer, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
  contender_t *c = contender_new(two->env, "door", NULL);
  assert_error(begin_acquire(c, 0), 0);
  env_until(two->env, atomic_load(&two->one.calls) >= 3);
  atomic_store(&two->one.answer, NULL);
  assert_error(outcome(c), 0);
  assert_true(atomic_load(&two->other.asking) >= 2);
  assert_int_equal(atomic_load(&two->one.asking), 0);
}

/* A slot of another call's, a server for each redirection. */
TEST_IN(redirects_to_many_servers, two, two_open()) {
  enum { COUNT = 1500 };
  belay_client_options_t options = client_options();
  options.timeout_ms = 100;
  char url[64];
  snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", two->one.port);
  belay_client_t *client = env_connect(two->env, url, &options);
  contender_t *c = contender_of(two->env, client, "door", NULL);
  char answer[2][128];
  size_t bytes = 0;
  for (int i = 0; i < COUNT && bytes < 64u << 20; i++) {
    char host[24];
    snprintf(host, sizeof host, "127.2.%d.%d", i / 256, i % 256);
    put_error(answer[i % 2], sizeof *answer, "ASK", host, 1);
    atomic_store(&two->one.answer, answer[i % 2]);
    if (i % 30 == 29)
      (void)try_lock(c);
    bytes = two->env->bytes;
  }
  assert_true(bytes < 64u << 20);
  atomic_store(&two->one.answer, NULL);
  assert_error(acquire(c, 10000), 0);
}

/* As many as call at once are led on, each to somewhere else each time. */
static void lead_on(two_t *two, belay_client_t *client, int count) {
  atomic_store(&two->one.leads_on, true);
  for (int i = 0; i < count; i++) {
    char name[16];
    snprintf(name, sizeof name, "door %d", i);
    assert_error(begin_acquire(contender_of(two->env, client, name, NULL), 0), 0);
  }
}

/* Of servers that no map names there are few at a time. */
TEST_IN(redirects_to_endless_servers, two, two_open()) {
  enum { FEW = 16 };
  memset(&nowhere, 0, sizeof nowhere);
  lead_on(two, two->env->client, 100);
  env_run_for(two->env, 800);
  assert_true(atomic_load(&two->one.calls) > 100);
  assert_between(nowhere.places, 1, (int64_t)FEW * (atomic_load(&two->one.asked) + 1));
  atomic_store(&two->one.leads_on, false);
  assert_error(acquire(contender_new(two->env, "door", NULL), 10000), 0);
}

/* Attempts after redirections are spread, too: see belay_options_t.reconnects_per_s. */
TEST_IN(redirects_respect_the_connect_limiter, two, two_open()) {
  enum { CLIENTS = 40, PER_S = 200, BURST = PER_S / 5 };
  char url[64];
  belay_client_options_t options = hasty();
  options.timeout_ms *= slow();
  memset(&nowhere, 0, sizeof nowhere);
  snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", two->one.port);
  int64_t began = clock_now();
  for (int i = 0; i < CLIENTS; i++)
    lead_on(two, env_connect(two->env, url, &options), 20);
  env_until(two->env, nowhere.dials > 0);
  env_run_for(two->env, 200);
  int64_t most = BURST + 1 + PER_S * clock_since_ms(began) / 1000;
  assert_between(nowhere.dials, 1, most);
  atomic_store(&two->one.leads_on, false);
  assert_error(acquire(contender_new(two->env, "door", NULL), 10000), 0);
}

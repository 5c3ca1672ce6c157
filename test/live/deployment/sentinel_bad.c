/* Useless Sentinels and the resulting errors: unreachable, without an answer, access refused,
 * garbage; and names that need a lookup. */
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/fixtures/scene.h"

#define SECRET "correct-horse"

/* ---- names that only this program knows ---- */

#define SLOW_NAME "slow.test"
#define QUICK_NAME "quick.test"

static atomic_int lookup_ms; /* of the slow one */

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list);

/* libuv's look-ups come by here. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list) {
  getaddrinfo_fn *function;
  void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
  memcpy(&function, &symbol, sizeof function);
  if (name != NULL && strcmp(name, SLOW_NAME) == 0)
    stall_ms(atomic_load(&lookup_ms));
  if (name != NULL && (strcmp(name, SLOW_NAME) == 0 || strcmp(name, QUICK_NAME) == 0))
    name = "127.0.0.1";
  return function(name, service, hints, list);
}

/* ---- the ends of requests ---- */

/* A ping ends with `status`, and its detail contains `words` and no secret. */
static void expect(env_t *env, int status, const char *words) {
  const char *detail;
  assert_error(pong(env, &detail), status);
  if (words != NULL && strstr(detail, words) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", words, detail);
  assert_null(strstr(detail, SECRET));
}

static belay_client_options_t hasty(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 500 * slow();
  options.connect_timeout_ms = 400 * slow();
  return options;
}

static void expect_none(bool mute) {
  belay_client_options_t options = hasty();
  scene_t *scene = scene_start(2, NULL);
  for (unsigned i = 0; i < 2; i++) {
    if (mute)
      fake_sentinel_mute(scene->sentinel[i], true);
    else
      scene_end_sentinel(scene, i);
  }
  env_t *env = scene_open(scene, &options);
  expect(env, BELAY_ENOSENTINEL, "127.0.0.1:");
  assert_int_equal(client_stats(env).not_sent, 1);
  assert_true(client_stats(env).connect_errors >= 1);
  for (unsigned i = 0; mute && i < 2; i++)
    fake_sentinel_mute(scene->sentinel[i], false);
  if (mute)
    scene_await(scene, 0);
  scene_stop(scene);
}

TEST(dead_sentinels) {
  expect_none(false);
}

TEST(silent_sentinels) {
  expect_none(true);
}

SCENE_TEST(unknown_master, 3) {
  belay_client_options_t options = hasty();
  scene_end_sentinel(scene, 2); /* that one says nothing is no news */
  for (unsigned i = 0; i < 2; i++)
    fake_sentinel_set_primary(scene->sentinel[i], NULL, 0, 0);
  env_t *env = scene_open(scene, &options);
  expect(env, BELAY_ENOMASTER, "it knows no master " FAKE_SENTINEL_MASTER);
  fake_sentinel_set_primary(scene->sentinel[1], "127.0.0.1", scene_port(scene, 0), 1);
  scene_await(scene, 0);
}

/* ---- who is let in ---- */

static void expect_refusal_by_sentinels(const char *wanted, const char *given, const char *words) {
  char from[64];
  belay_client_options_t options = hasty();
  options.sentinel_password = given;
  scene_t *scene = scene_start(1, &(fake_sentinel_options_t){.password = wanted});
  snprintf(from, sizeof from, "127.0.0.1:%d: %s", fake_sentinel_port(scene->sentinel[0]), words);
  env_t *env = scene_open(scene, &options);
  expect(env, BELAY_EAUTH, from);
  int64_t began = clock_now();
  expect(env, BELAY_EAUTH, from); /* at once: the reason is a lasting one */
  assert_true(clock_since_ms(began) < options.timeout_ms);
  assert_int_equal(scene_queries(scene), 0); /* nothing was asked behind it */
  scene_stop(scene);
}

TEST(sentinel_refuses_the_password) {
  expect_refusal_by_sentinels("another", SECRET, "WRONGPASS");
}

TEST(sentinel_without_password) {
  expect_refusal_by_sentinels(NULL, SECRET, "ERR AUTH");
}

TEST_ON(sentinel_password, scene, scene_start(1, &(fake_sentinel_options_t){.password = SECRET})) {
  belay_client_options_t options = hasty();
  options.sentinel_password = SECRET;
  scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
}

/* One of them lets us in, and that is enough. */
TEST(one_sentinel_accepts_the_password) {
  belay_client_options_t options = hasty();
  options.sentinel_password = SECRET;
  scene_t *scene = scene_start(1, &(fake_sentinel_options_t){.password = "another"});
  fake_sentinel_t *good = fake_sentinel_start(&(fake_sentinel_options_t){.password = SECRET});
  fake_sentinel_set_primary(good, "127.0.0.1", scene_port(scene, 0), 1);
  snprintf(scene->url, sizeof scene->url,
           "redis+sentinel://%s127.0.0.1:%d,127.0.0.1:%d/" FAKE_SENTINEL_MASTER,
           server_login(scene->server[0]), fake_sentinel_port(scene->sentinel[0]),
           fake_sentinel_port(good));
  scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
  scene_stop(scene);
  fake_sentinel_stop(good);
}

/* The servers refuse the password, not the Sentinels, which never receive it. */
TEST_ON(server_refuses_the_password, scene,
        scene_start(1, &(fake_sentinel_options_t){.password = "never asked for"})) {
  belay_client_options_t options = hasty();
  options.password = SECRET;
  server_do(scene->server[0], "CONFIG", "SET", "requirepass", "another", NULL);
  env_t *env = scene_open(scene, &options);
  const char *detail;
  assert_error(pong(env, &detail), BELAY_EAUTH);
  assert_memory_equal(detail, "WRONGPASS", 9);
  assert_true(scene_queries(scene) > 0);
}

ENV_TEST(options_of_other_deployments) {
  belay_client_t *client;
  belay_client_options_t options = client_options();
  options.sentinel_password = SECRET;
  assert_error(belay_connect(env->belay, "redis://127.0.0.1:1", &options, &client), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "sentinel_password"));
  options = client_options();
  options.sentinel_username = "me";
  assert_error(belay_connect(env->belay, "redis+replicas://127.0.0.1:1", &options, &client),
               BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "sentinel_username"));
  options = client_options();
  options.read_from = BELAY_READ_ANY;
  assert_error(belay_connect(env->belay, "redis://127.0.0.1:1", &options, &client), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "read_from"));
}

/* ---- those who can do less ---- */

TEST_ON(sentinel_without_resp3, scene, scene_start(1, &(fake_sentinel_options_t){.old = true})) {
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  assert_int_equal(fake_sentinel_subscribers(scene->sentinel[0]), 0);
  scene_name(scene, 1, 2);
  server_kill(scene->server[0]);
  env_until(env, client_stats(env).connections_up == 0);
  assert_error(pong(env, NULL), 0);
  assert_int_equal(fake_sentinel_connections(scene->sentinel[0]), 1);
  server_restart(scene->server[0]);
  assert_int_equal(scene_answering(scene), 1);
  fake_sentinel_set_primary(scene->sentinel[0], NULL, 0, 0); /* its nil is one of RESP2 */
}

TEST_ON(sentinel_refuses_subscribe, scene,
        scene_start(1, &(fake_sentinel_options_t){.secretive = true})) {
  scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  assert_int_equal(fake_sentinel_connections(scene->sentinel[0]), 1);
}

/* ---- garbage ---- */

#define LONG_HOST                                                                                  \
  "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"                               \
  "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"                               \
  "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"                               \
  "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"

TEST(garbage_answers) {
  static const char *const answers[] = {
      "*2\r\n$0\r\n\r\n$4\r\n6379\r\n",
      "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n0\r\n",
      "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n65536\r\n",
      "*2\r\n$9\r\n127.0.0.1\r\n$1\r\nx\r\n",
      "*2\r\n$9\r\n127.0.0.1\r\n:6379\r\n",
      "*2\r\n:1\r\n$4\r\n6379\r\n",
      "*2\r\n*0\r\n*0\r\n",
      "*2\r\n_\r\n_\r\n",
      "*1\r\n$9\r\n127.0.0.1\r\n",
      "*3\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n$1\r\nx\r\n",
      "*0\r\n",
      ":1\r\n",
      "+OK\r\n",
      "$9\r\n127.0.0.1\r\n",
      "*2\r\n$256\r\n" LONG_HOST "\r\n$4\r\n6379\r\n",
      "-LOADING it is loading\r\n",
      "-ERR is this a sentinel?\r\n",
      "%1\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n",
      ">2\r\n$1\r\na\r\n$1\r\nb\r\n",
      "?what\r\n",
      "*9999999\r\n",
      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
  };
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    scene_t *scene = scene_start(2, NULL);
    fake_sentinel_set_reply(scene->sentinel[0], answers[i]);
    env_t *env = scene_open(scene, NULL);
    if (scene_answering(scene) != 0)
      fail_msg("%s", answers[i]);
    env_until(env, fake_sentinel_subscribers(scene->sentinel[1]) == 1);
    scene_stop(scene);
  }
}

SCENE_TEST(unprintable_host_name, 1) {
  belay_client_options_t options = hasty();
  fake_sentinel_set_reply(scene->sentinel[0], "*2\r\n$4\r\na\x01"
                                              "bc\r\n$4\r\n6379\r\n");
  env_t *env = scene_open(scene, &options);
  expect(env, BELAY_ERESOLVE, NULL); /* any text is only looked up */
}

/* An unsolicited message is no answer and does no harm. */
SCENE_TEST(unsolicited_messages, 1) {
  static const char *const texts[] = {
      ">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n:1\r\n",
      ">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$14\r\n+switch-master\r\n$1\r\nx\r\n",
      ">2\r\n$10\r\ninvalidate\r\n_\r\n",
      ">0\r\n",
      ">1\r\n:1\r\n",
      "+OK\r\n",
      "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n",
      "-ERR\r\n",
  };
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    unsigned listeners = fake_sentinel_subscribers(scene->sentinel[0]);
    env_until(env, listeners > 0);
    fake_sentinel_set_any_reply(scene->sentinel[0], texts[i]);
    env_run_for(env, 50);
  }
  assert_int_equal(client_stats(env).drops, 0);
  assert_int_equal(scene_answering(scene), 0);
}

/* ---- names ---- */

SCENE_TEST(host_names, 1) {
  snprintf(scene->url, sizeof scene->url,
           "redis+sentinel://%s" QUICK_NAME ":%d/" FAKE_SENTINEL_MASTER,
           server_login(scene->server[0]), fake_sentinel_port(scene->sentinel[0]));
  fake_sentinel_set_primary(scene->sentinel[0], QUICK_NAME, scene_port(scene, 0), 1);
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  fake_sentinel_set_primary(scene->sentinel[0], QUICK_NAME, scene_port(scene, 1), 2);
  scene_hint(scene, 0, FAKE_SENTINEL_MASTER);
  env_until(env, client_stats(env).drops == 1);
  assert_int_equal(scene_answering(scene), 1);
}

/* The second address replaces the first one during its name lookup: the client does not connect
 * to the first one. A numeric address waits for no lookup. */
static void expect_move_during_lookup(const char *to) {
  belay_client_options_t options = client_options();
  options.timeout_ms = options.connect_timeout_ms = 20000;
  atomic_store(&lookup_ms, 1500 * (int)slow());
  scene_t *scene = scene_start(1, NULL);
  fake_sentinel_set_primary(scene->sentinel[0], SLOW_NAME, scene_port(scene, 0), 1);
  int64_t connections = server_info(scene->server[0], "stats", "total_connections_received");
  env_t *env = scene_open(scene, &options);
  assert_error(begin_ping(env), 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[0]) == 1);
  env_run_for(env, 100);
  int64_t began = clock_now();
  fake_sentinel_set_primary(scene->sentinel[0], to, scene_port(scene, 1), 2);
  scene_hint(scene, 0, FAKE_SENTINEL_MASTER);
  env_until(env, env->pongs == 1);
  assert_error(env->pong_status, 0);
  if (strcmp(to, "127.0.0.1") == 0)
    assert_true(clock_since_ms(began) < atomic_load(&lookup_ms) / 2);
  assert_int_equal(scene_answering(scene), 1);
  assert_int_equal(server_info(scene->server[0], "stats", "total_connections_received"),
                   connections);
  scene_stop(scene);
}

TEST(address_during_name_lookup) {
  expect_move_during_lookup("127.0.0.1");
}

TEST(other_name_during_name_lookup) {
  expect_move_during_lookup(QUICK_NAME);
}

/* The second Sentinel is asked during the name lookup of the first one. */
SCENE_TEST(slow_sentinel_name_lookup, 2) {
  atomic_store(&lookup_ms, 3000 * (int)slow());
  snprintf(scene->url, sizeof scene->url,
           "redis+sentinel://%s" SLOW_NAME ":%d,127.0.0.1:%d/" FAKE_SENTINEL_MASTER,
           server_login(scene->server[0]), fake_sentinel_port(scene->sentinel[0]),
           fake_sentinel_port(scene->sentinel[1]));
  int64_t began = clock_now();
  scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  assert_true(clock_since_ms(began) < 3000 * slow());
  assert_int_equal(fake_sentinel_connections(scene->sentinel[0]), 0);
  assert_int_equal(fake_sentinel_connections(scene->sentinel[1]), 1);
}

SCENE_TEST(unknown_host_name, 1) {
  belay_client_options_t options = hasty();
  fake_sentinel_set_primary(scene->sentinel[0], "nobody.invalid", scene_port(scene, 0), 1);
  env_t *env = scene_open(scene, &options);
  expect(env, BELAY_ERESOLVE, NULL);
}

/* ---- closing ---- */

/* At each step all calls end, and nothing leaks. */
TEST(close_at_any_time) {
  for (int i = 0; i < 40; i++) {
    atomic_store(&lookup_ms, 30);
    scene_t *scene = scene_start(2, NULL);
    if (i % 4 == 1)
      fake_sentinel_mute(scene->sentinel[0], true);
    if (i % 4 == 2)
      fake_sentinel_set_primary(scene->sentinel[0], SLOW_NAME, scene_port(scene, 0), 1);
    if (i % 4 == 3)
      scene_end_sentinel(scene, 0);
    env_t *env = scene_open(scene, NULL);
    assert_error(begin_ping(env), 0);
    if (i >= 4)
      env_run_for(env, i / 4);
    scene_stop(scene);
  }
}

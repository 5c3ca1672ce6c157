/* Bad input: the documented error, no callback, no change of state, and a detail that names the
 * argument. */
#include <limits.h>
#include <stdio.h>

#include "support/fixtures/env.h"

/* no server listens there; refused calls do not reach it */
#define NOWHERE "unix:///nonexistent/socket"

static int calls_back; /* callbacks that must not run */

static void on_lock(belay_lock_t *lock, int status) {
  (void)lock;
  (void)status;
  calls_back++;
}

static void on_client(belay_client_t *client, int status) {
  (void)client;
  (void)status;
  calls_back++;
}

static void expect_no_callback(env_t *env) {
  env_run_for(env, 20);
  assert_int_equal(calls_back, 0);
}

static void expect_detail(const env_t *env, const char *name) {
  if (strstr(belay_detail(env->belay), name) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", name, belay_detail(env->belay));
}

/* ---- NULL and no memory ---- */

TEST_IN(null_as_handle_is_refused, env, env_open_at(NOWHERE, NULL)) {
  belay_t *belay = env->belay;
  belay_client_t *client = env->client;
  belay_lock_t *lock = (belay_lock_t *)env;
  assert_error(belay_open(NULL, NULL, &belay), BELAY_EINVAL);
  assert_null(belay);
  assert_error(belay_open(&env->loop, NULL, NULL), BELAY_EINVAL);
  assert_error(belay_close(NULL, NULL), BELAY_EINVAL);
  assert_string_equal(belay_detail(NULL), "");

  assert_error(belay_connect(NULL, NOWHERE, NULL, &client), BELAY_EINVAL);
  assert_null(client);
  assert_error(belay_connect(env->belay, NOWHERE, NULL, NULL), BELAY_EINVAL);
  assert_error(belay_client_ping(NULL, BELAY_DEFAULT, on_client), BELAY_EINVAL);
  assert_error(belay_client_close(NULL, NULL), BELAY_EINVAL);

  assert_error(belay_lock_new(NULL, belay_string("door"), NULL, &lock), BELAY_EINVAL);
  assert_null(lock);
  assert_error(belay_lock_new(env->client, belay_string("door"), NULL, NULL), BELAY_EINVAL);
  assert_error(belay_lock_acquire(NULL, 0, on_lock), BELAY_EINVAL);
  assert_error(belay_lock_try(NULL, on_lock), BELAY_EINVAL);
  assert_error(belay_lock_release(NULL, BELAY_DEFAULT, on_lock), BELAY_EINVAL);
  assert_error(belay_lock_extend(NULL, 1000, BELAY_DEFAULT, on_lock), BELAY_EINVAL);
  assert_error(belay_lock_cancel(NULL), BELAY_EINVAL);
  assert_error(belay_lock_close(NULL, NULL), BELAY_EINVAL);
  expect_no_callback(env);
}

TEST(allocator_without_functions_is_refused) {
  uv_loop_t loop;
  belay_t *belay = (belay_t *)&loop;
  belay_options_t options;
  assert_int_equal(uv_loop_init(&loop), 0);
  belay_options_init(&options);
  options.allocator.alloc = NULL;
  assert_error(belay_open(&loop, &options, &belay), BELAY_EINVAL);
  assert_null(belay);
  belay_options_init(&options);
  options.allocator.free = NULL;
  assert_error(belay_open(&loop, &options, &belay), BELAY_EINVAL);
  assert_int_equal(uv_loop_close(&loop), 0);
}

static void *no_memory(void *ctx, size_t size) {
  (void)ctx;
  (void)size;
  return NULL;
}

static void never_free(void *ctx, void *ptr) {
  (void)ctx;
  (void)ptr;
  calls_back++;
}

TEST(allocator_without_memory) {
  uv_loop_t loop;
  belay_t *belay = (belay_t *)&loop;
  belay_options_t options;
  assert_int_equal(uv_loop_init(&loop), 0);
  belay_options_init(&options);
  options.allocator = (belay_allocator_t){.alloc = no_memory, .free = never_free};
  assert_error(belay_open(&loop, &options, &belay), BELAY_ENOMEM);
  assert_null(belay);
  uv_run(&loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&loop), 0);
  assert_int_equal(calls_back, 0);
}

ENV_TEST(null_as_callback_is_refused) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(belay_lock_acquire(c->lock, 0, NULL), BELAY_EINVAL);
  expect_detail(env, "cb");
  assert_error(belay_lock_try(c->lock, NULL), BELAY_EINVAL);
  assert_error(belay_client_ping(env->client, BELAY_DEFAULT, NULL), BELAY_EINVAL);
  expect_detail(env, "cb");
  env_run_for(env, 20);
  assert_int_equal(server_keys(env->server), 0);
  assert_int_equal(client_stats(env).calls, 0);
  assert_error(try_lock(c), 0);
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 1);
}

/* ---- names and keys ---- */

TEST_IN(names_and_keys_out_of_range, env, env_open_at(NOWHERE, NULL)) {
  static char lengthy[1025];
  memset(lengthy, 'x', sizeof lengthy);
  const belay_bytes_t names[] = {
      belay_string(""), belay_string(NULL), {NULL, 4}, {lengthy, 1025}, {lengthy, SIZE_MAX}};
  size_t objects = client_stats(env).objects;
  belay_lock_t *lock;
  belay_barrier_t *barrier;
  belay_election_t *election;
  belay_subscription_t *subscription;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    lock = (belay_lock_t *)env;
    assert_error(belay_lock_new(env->client, names[i], NULL, &lock), BELAY_EINVAL);
    assert_null(lock);
    expect_detail(env, "name");
    assert_error(belay_barrier_new(env->client, names[i], NULL, &barrier), BELAY_EINVAL);
    assert_error(belay_election_new(env->client, names[i], NULL, &election), BELAY_EINVAL);
    assert_error(belay_topic_subscribe(env->client, names[i], NULL, NULL, &subscription),
                 BELAY_EINVAL);
    belay_lock_options_t options = lock_options();
    options.key = names[i];
    lock = (belay_lock_t *)env;
    if (names[i].len == 0 && names[i].data == NULL)
      continue; /* no key */
    assert_error(belay_lock_new(env->client, belay_string("door"), &options, &lock), BELAY_EINVAL);
    assert_null(lock);
    expect_detail(env, "key");
  }
  assert_int_equal(client_stats(env).objects, objects);
  assert_error(belay_lock_new(env->client, belay_bytes(lengthy, 1024), NULL, &lock), 0);
}

static void expect_key(belay_lock_t *lock, belay_bytes_t expected) {
  size_t len;
  const char *key = belay_lock_key(lock, &len);
  assert_int_equal(len, expected.len);
  assert_memory_equal(key, expected.data, len);
}

/* belay does not read the byte behind a name, and escapes a 0 in it as other bytes. */
ENV_TEST(names_have_exact_lengths) {
  belay_lock_t *lock;
  assert_error(belay_lock_new(env->client, belay_bytes("door!", 4), NULL, &lock), 0);
  expect_key(lock, belay_string("belay::lock::{door}"));
  assert_error(belay_lock_new(env->client, belay_bytes("a\0b", 3), NULL, &lock), 0);
  expect_key(lock, belay_string("belay::lock::{a%00b}"));
}

ENV_TEST(a_fence_takes_no_empty_token) {
  belay_fence_t fence = {0};
  (void)env;
  assert_error(belay_fence_guard(&fence, 7, belay_bytes("token", 0)), BELAY_EINVAL);
  assert_int_equal(fence.token_len, 0);
  assert_error(belay_fence_guard(&fence, 7, belay_string("token")), 0);
}

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  assert_error(status, 0);
  assert_int_equal(result->verdict, BELAY_ALLOWED);
  ++*(unsigned *)request->data;
}

ENV_TEST(limiters_of_two_names_do_not_share_a_key) {
  static const char *const names[] = {"one", "two"};
  const belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 1, .period_us = 60000000};
  unsigned taken = 0;
  for (unsigned i = 0; i < 2; i++) {
    belay_limiter_options_t options;
    belay_limiter_t *limiter;
    belay_request_t request = {.data = &taken};
    belay_limiter_options_init(&options);
    options.name = belay_string(names[i]);
    options.limits = &limit;
    options.limits_len = 1;
    assert_error(belay_limiter_new(env->client, &options, &limiter), 0);
    assert_error(belay_limiter_take(limiter, &request, belay_string("k"), 1, on_taken), 0);
    env_until(env, taken == i + 1);
  }
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::limit::one::{k}",
                                  "belay::limit::two::{k}", NULL),
                   2);
}

ENV_TEST(an_exact_key_needs_no_name) {
  belay_lock_options_t options = lock_options();
  belay_lock_t *exact, *named;
  options.key = belay_string("another's:key");
  assert_error(belay_lock_new(env->client, belay_string(NULL), &options, &exact), 0);
  expect_key(exact, options.key);
  assert_error(belay_lock_new(env->client, belay_string("not used"), &options, &named), 0);
  expect_key(named, options.key);
  assert_error(belay_lock_new(env->client, belay_bytes(NULL, 3), &options, &named), BELAY_EINVAL);
  options.key = belay_string("");
  assert_error(belay_lock_new(env->client, belay_string(NULL), &options, &named), BELAY_EINVAL);
  options.key = belay_string(NULL);
  assert_error(belay_lock_new(env->client, belay_string(NULL), &options, &named), BELAY_EINVAL);
}

TEST(exact_keys_of_several_servers_need_no_name) {
  env_t *env = env_open(NULL);
  belay_client_t *clients[3] = {env->client};
  belay_lock_options_t options = lock_options();
  belay_lock_t *lock;
  if (deployment_is_cluster()) {
    env_close(env);
    skip(); /* where there is no quarantine */
  }
  for (int i = 1; i < 3; i++)
    clients[i] = env_connect(env, server_url(env->server), NULL);
  options.key = belay_string("another's:key");
  assert_error(belay_redlock_new(clients, 3, belay_string(NULL), &options, &lock), 0);
  expect_key(lock, options.key);
  env_close(env);
}

#define HOURS_24 INT64_C(86400000)

/* ---- arguments of operations ---- */

ENV_TEST(times_out_of_range) {
  contender_t *c = contender_new(env, "door", NULL);
  static const int64_t waits[] = {-2, INT64_MIN}, ttls[] = {0, -2, 9, HOURS_24 + 1, BELAY_FOREVER},
                       timeouts[] = {0, -2, 600001, BELAY_FOREVER};
  for (size_t i = 0; i < 2; i++) {
    assert_error(belay_lock_acquire(c->lock, waits[i], on_lock), BELAY_EINVAL);
    expect_detail(env, "wait_ms");
  }
  assert_error(try_lock(c), 0);
  int64_t left = belay_lock_remaining_us(c->lock);
  for (size_t i = 0; i < 5; i++) {
    assert_error(belay_lock_extend(c->lock, ttls[i], BELAY_DEFAULT, on_lock), BELAY_EINVAL);
    expect_detail(env, "ttl_ms");
  }
  for (size_t i = 0; i < 4; i++) {
    assert_error(belay_lock_extend(c->lock, 1000, timeouts[i], on_lock), BELAY_EINVAL);
    expect_detail(env, "timeout_ms");
    assert_error(belay_lock_release(c->lock, timeouts[i], on_lock), BELAY_EINVAL);
    expect_detail(env, "timeout_ms");
    assert_error(belay_client_ping(env->client, timeouts[i], on_client), BELAY_EINVAL);
    expect_detail(env, "timeout_ms");
  }
  expect_no_callback(env);
  assert_true(is_on_server(c));
  assert_between(left - belay_lock_remaining_us(c->lock), 0, 1000000 * slow());
  assert_error(release(c), 0);
}

ENV_TEST(operations_in_the_wrong_state) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(belay_lock_release(c->lock, BELAY_DEFAULT, on_lock), BELAY_ENOTOWNER);
  assert_error(belay_lock_extend(c->lock, 1000, BELAY_DEFAULT, on_lock), BELAY_ENOTOWNER);
  assert_error(belay_lock_cancel(c->lock), BELAY_ESTATE);
  assert_error(begin_acquire(c, 0), 0);
  assert_error(belay_lock_acquire(c->lock, 0, on_lock), BELAY_ESTATE);
  assert_error(belay_lock_release(c->lock, BELAY_DEFAULT, on_lock), BELAY_ENOTOWNER);
  assert_error(outcome(c), 0);
  assert_error(belay_lock_acquire(c->lock, 0, on_lock), BELAY_ESTATE);
  assert_error(belay_lock_cancel(c->lock), BELAY_ESTATE);
  assert_true(is_on_server(c));
  expect_no_callback(env);
}

/* ---- closing objects ---- */

typedef enum target { A_LOCK, A_CLIENT, A_BELAY, TARGETS } target_t;

static void expect_closing(target_t target) {
  env_t *env = env_open(NULL);
  contender_t *c = contender_holding(env, "door", NULL);
  belay_lock_t *lock = (belay_lock_t *)env;
  belay_client_t *client = (belay_client_t *)env;
  assert_error(target == A_LOCK     ? begin_close(c)
               : target == A_CLIENT ? begin_client_close(env)
                                    : begin_belay_close(env),
               0);
  assert_error(belay_lock_acquire(c->lock, 0, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_try(c->lock, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_release(c->lock, BELAY_DEFAULT, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_extend(c->lock, 1000, BELAY_DEFAULT, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_cancel(c->lock), BELAY_ECLOSING);
  assert_error(belay_lock_close(c->lock, NULL), BELAY_ECLOSING);
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  if (target >= A_CLIENT) {
    assert_error(belay_lock_new(env->client, belay_string("door"), NULL, &lock), BELAY_ECLOSING);
    assert_null(lock);
    assert_error(belay_client_ping(env->client, BELAY_DEFAULT, on_client), BELAY_ECLOSING);
    assert_error(belay_client_close(env->client, NULL), BELAY_ECLOSING);
  }
  if (target == A_BELAY) {
    assert_error(belay_close(env->belay, NULL), BELAY_ECLOSING);
    assert_error(belay_connect(env->belay, NOWHERE, NULL, &client), BELAY_ECLOSING);
    assert_null(client);
  }
  env_until(env, c->closed == 1 || env->client_closed == 1 || env->belay_closed == 1);
  expect_no_callback(env);
  env_close(env);
}

TEST(closing_objects_refuse_all_calls) {
  for (target_t target = A_LOCK; target < TARGETS; target++)
    expect_closing(target);
}

/* ---- URLs ---- */

TEST_IN(malformed_urls_name_the_part, env, env_open_at(NOWHERE, NULL)) {
  static const struct {
    const char *url, *part;
  } all[] = {
      {NULL, "url"},
      {"", "scheme"},
      {"localhost", "scheme"},
      {"http://localhost", "scheme"},
      {"redis:/localhost", "scheme"},
      {"redis://", "host"},
      {"redis://:6379", "host"},
      {"redis://bad host", "host"},
      {"redis://[::1", "host"},
      {"redis://[::g]", "host"},
      {"redis://::1", "host"},
      {"redis://localhost:", "port"},
      {"redis://localhost:0", "port"},
      {"redis://localhost:65536", "port"},
      {"redis://localhost:port", "port"},
      {"redis://localhost:99999999999999999999", "port"},
      {"redis://localhost:-1", "port"},
      {"redis://localhost/x", "db"},
      {"redis://localhost/-1", "db"},
      {"redis://localhost/65536", "db"},
      {"redis://localhost/99999999999999999999", "db"},
      {"redis://us%zzer@localhost", "user"},
      {"redis://user:pass%2@localhost", "password"},
      {"redis://user:pa%00ss@localhost", "password"},
      {"unix://", "path"},
      {"unix://relative/path", "path"},
      {"unix:///tmp/socket?db=x", "db"},
      {"unix:///tmp/socket?what=1", "query"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    belay_client_t *client = (belay_client_t *)env;
    assert_error(belay_connect(env->belay, all[i].url, NULL, &client), BELAY_EURL);
    assert_null(client);
    const char *detail = belay_detail(env->belay);
    if (strncmp(detail, all[i].part, strlen(all[i].part)) != 0)
      fail_msg("%s: %s", all[i].url, detail);
    assert_null(strstr(detail, "pass%2"));
  }
}

TEST_IN(urls_too_long, env, env_open_at(NOWHERE, NULL)) {
  static char url[100001];
  static const char *const starts[] = {"redis://", "unix:///", "redis://user:"};
  for (size_t i = 0; i < 3; i++) {
    belay_client_t *client = (belay_client_t *)env;
    memset(url, 'x', sizeof url - 1);
    memcpy(url, starts[i], strlen(starts[i]));
    assert_error(belay_connect(env->belay, url, NULL, &client), BELAY_EURL);
    assert_null(client);
    assert_true(strlen(belay_detail(env->belay)) > 0);
  }
}

/* ---- options of a client ---- */

static void expect_client_options(env_t *env, const belay_client_options_t *options,
                                  const char *wrong) {
  belay_client_t *client = (belay_client_t *)env;
  int error = belay_connect(env->belay, NOWHERE, options, &client);
  if (error != (wrong != NULL ? BELAY_EINVAL : 0))
    fail_msg("%s: %s", wrong != NULL ? wrong : belay_detail(env->belay), belay_err_name(error));
  if (wrong == NULL)
    return;
  assert_null(client);
  expect_detail(env, wrong);
}

TEST_IN(client_texts_out_of_range, env, env_open_at(NOWHERE, NULL)) {
  char lengthy[1001];
  memset(lengthy, 'x', sizeof lengthy);
  lengthy[sizeof lengthy - 1] = '\0';
  const char *const long_by_one = lengthy + sizeof lengthy - 1 - 65;
  const struct {
    const char *field, *text;
  } all[] = {
      {"client_name", NULL},
      {"client_name", ""},
      {"client_name", "two words"},
      {"client_name", "tab\there"},
      {"client_name", long_by_one},
      {"client_name", "\xc3\xa4"},
      {"owner", ""},
      {"owner", "two words"},
      {"owner", "line\n"},
      {"owner", long_by_one},
      {"username", lengthy},
      {"password", lengthy},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    belay_client_options_t o = client_options();
    const char **field = strcmp(all[i].field, "client_name") == 0 ? &o.client_name
                         : strcmp(all[i].field, "owner") == 0     ? &o.owner
                         : strcmp(all[i].field, "username") == 0  ? &o.username
                                                                  : &o.password;
    *field = all[i].text;
    expect_client_options(env, &o, all[i].field);
    assert_null(strstr(belay_detail(env->belay), "xxxx"));
  }
}

TEST_IN(namespaces_out_of_range, env, env_open_at(NOWHERE, NULL)) {
  char lengthy[130];
  memset(lengthy, 'x', sizeof lengthy);
  lengthy[129] = '\0';
  const char *empty[] = {"good", ""}, *null[] = {"good", NULL}, *too_long[] = {lengthy};
  const char *nine[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  const struct {
    const char *const *parts;
    size_t count;
    const char *wrong;
  } all[] = {
      {empty, 2, "namespace_parts"},
      {null, 2, "namespace_parts"},
      {too_long, 1, "namespace_parts"},
      {NULL, 1, "namespace_parts"},
      {nine, 9, "namespace_count"},
      {nine, 0, "namespace_count"},
      {nine, 8, NULL},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    belay_client_options_t o = client_options();
    o.namespace_parts = all[i].parts;
    o.namespace_count = all[i].count;
    expect_client_options(env, &o, all[i].wrong);
  }
}

/* ---- the detail ---- */

TEST_IN(next_call_clears_the_detail, env, env_open_at(NOWHERE, NULL)) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_string_equal(belay_detail(env->belay), "");
  assert_error(belay_lock_acquire(c->lock, 0, NULL), BELAY_EINVAL);
  assert_string_not_equal(belay_detail(env->belay), "");
  assert_error(belay_lock_cancel(c->lock), BELAY_ESTATE);
  assert_string_equal(belay_detail(env->belay), "");
}

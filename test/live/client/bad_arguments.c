/* Bad input: a documented error, no callback, no change of state, and a detail that names what is wrong. */
#include <limits.h>
#include <stdio.h>

#include "support/fixtures/bed.h"

/* no server listens there: refused calls do not get that far */
#define NOWHERE "unix:///nonexistent/socket"

static int calls_back; /* callbacks that must not come */

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

static void expect_no_callback(bed_t *bed) {
  bed_run_for(bed, 20);
  assert_int_equal(calls_back, 0);
}

static void expect_detail(const bed_t *bed, const char *name) {
  if (strstr(belay_detail(bed->belay), name) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", name, belay_detail(bed->belay));
}

/* ---- nothing at all -------------------------------------------------------------------------------------- */

TEST_IN(null_in_the_place_of_a_handle, bed, bed_open_at(NOWHERE, NULL)) {
  belay_t *belay = bed->belay;
  belay_client_t *client = bed->client;
  belay_lock_t *lock = (belay_lock_t *)bed;
  assert_error(belay_open(NULL, NULL, &belay), BELAY_EINVAL);
  assert_null(belay);
  assert_error(belay_open(&bed->loop, NULL, NULL), BELAY_EINVAL);
  assert_error(belay_close(NULL, NULL), BELAY_EINVAL);
  assert_string_equal(belay_detail(NULL), "");

  assert_error(belay_connect(NULL, NOWHERE, NULL, &client), BELAY_EINVAL);
  assert_null(client);
  assert_error(belay_connect(bed->belay, NOWHERE, NULL, NULL), BELAY_EINVAL);
  assert_error(belay_client_ping(NULL, BELAY_DEFAULT, on_client), BELAY_EINVAL);
  assert_error(belay_client_close(NULL, NULL), BELAY_EINVAL);

  assert_error(belay_lock_new(NULL, belay_string("door"), NULL, &lock), BELAY_EINVAL);
  assert_null(lock);
  assert_error(belay_lock_new(bed->client, belay_string("door"), NULL, NULL), BELAY_EINVAL);
  assert_error(belay_lock_acquire(NULL, 0, on_lock), BELAY_EINVAL);
  assert_error(belay_lock_try(NULL, on_lock), BELAY_EINVAL);
  assert_error(belay_lock_release(NULL, BELAY_DEFAULT, on_lock), BELAY_EINVAL);
  assert_error(belay_lock_extend(NULL, 1000, BELAY_DEFAULT, on_lock), BELAY_EINVAL);
  assert_error(belay_lock_cancel(NULL), BELAY_EINVAL);
  assert_error(belay_lock_close(NULL, NULL), BELAY_EINVAL);
  expect_no_callback(bed);
}

TEST(an_allocator_without_its_functions) {
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

TEST(an_allocator_that_has_nothing) {
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

BED_TEST(null_in_the_place_of_a_callback) {
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(belay_lock_acquire(c->lock, 0, NULL), BELAY_EINVAL);
  expect_detail(bed, "cb");
  assert_error(belay_lock_try(c->lock, NULL), BELAY_EINVAL);
  assert_error(belay_client_ping(bed->client, BELAY_DEFAULT, NULL), BELAY_EINVAL);
  expect_detail(bed, "cb");
  bed_run_for(bed, 20);
  assert_int_equal(server_keys(bed->server), 0);
  assert_int_equal(client_stats(bed).calls, 0);
  assert_error(try_lock(c), 0);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 1);
}

/* ---- names ----------------------------------------------------------------------------------------------- */

static void expect_bad_name(bed_t *bed, const char *name, size_t len) {
  belay_lock_t *lock = (belay_lock_t *)bed;
  assert_error(belay_lock_new(bed->client, belay_bytes(name, len), NULL, &lock), BELAY_EINVAL);
  assert_null(lock);
  expect_detail(bed, "name");
}

TEST_IN(names_that_are_none, bed, bed_open_at(NOWHERE, NULL)) {
  static char lengthy[1025];
  memset(lengthy, 'x', sizeof lengthy);
  size_t objects = client_stats(bed).objects;
  expect_bad_name(bed, NULL, 4);
  expect_bad_name(bed, NULL, 0);
  expect_bad_name(bed, "", 0);
  expect_bad_name(bed, lengthy, 1025);
  expect_bad_name(bed, lengthy, SIZE_MAX);
  assert_int_equal(client_stats(bed).objects, objects);
  belay_lock_t *lock;
  assert_error(belay_lock_new(bed->client, belay_bytes(lengthy, 1024), NULL, &lock), 0);
}

TEST_IN(exact_keys_that_are_none, bed, bed_open_at(NOWHERE, NULL)) {
  static char lengthy[1025];
  const size_t lengths[] = {1025, SIZE_MAX};
  memset(lengthy, 'x', sizeof lengthy);
  for (size_t i = 0; i < 2; i++) {
    belay_lock_options_t options = lock_options();
    belay_lock_t *lock = (belay_lock_t *)bed;
    options.key = belay_bytes(lengthy, lengths[i]);
    assert_error(belay_lock_new(bed->client, belay_string("door"), &options, &lock), BELAY_EINVAL);
    assert_null(lock);
    expect_detail(bed, "key");
  }
}

/* ---- options of a lock ----------------------------------------------------------------------------------- */

#define HOURS_24 INT64_C(86400000)

/* ---- arguments of operations ------------------------------------------------------------------------------ */

BED_TEST(times_that_are_out_of_range) {
  contender_t *c = contender_new(bed, "door", NULL);
  static const int64_t waits[] = {-2, INT64_MIN}, ttls[] = {0, -2, 9, HOURS_24 + 1, BELAY_FOREVER},
                       timeouts[] = {0, -2, 600001, BELAY_FOREVER};
  for (size_t i = 0; i < 2; i++) {
    assert_error(belay_lock_acquire(c->lock, waits[i], on_lock), BELAY_EINVAL);
    expect_detail(bed, "wait_ms");
  }
  assert_error(try_lock(c), 0);
  int64_t left = belay_lock_remaining_us(c->lock);
  for (size_t i = 0; i < 5; i++) {
    assert_error(belay_lock_extend(c->lock, ttls[i], BELAY_DEFAULT, on_lock), BELAY_EINVAL);
    expect_detail(bed, "ttl_ms");
  }
  for (size_t i = 0; i < 4; i++) {
    assert_error(belay_lock_extend(c->lock, 1000, timeouts[i], on_lock), BELAY_EINVAL);
    expect_detail(bed, "timeout_ms");
    assert_error(belay_lock_release(c->lock, timeouts[i], on_lock), BELAY_EINVAL);
    expect_detail(bed, "timeout_ms");
    assert_error(belay_client_ping(bed->client, timeouts[i], on_client), BELAY_EINVAL);
    expect_detail(bed, "timeout_ms");
  }
  expect_no_callback(bed);
  assert_true(is_on_server(c));
  assert_between(left - belay_lock_remaining_us(c->lock), 0, 1000000 * slow());
  assert_error(release(c), 0);
}

BED_TEST(operations_that_the_state_does_not_allow) {
  contender_t *c = contender_new(bed, "door", NULL);
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
  expect_no_callback(bed);
}

/* ---- what is closing --------------------------------------------------------------------------------------- */

BED_TEST(a_lock_that_is_closing) {
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(begin_close(c), 0);
  assert_error(belay_lock_acquire(c->lock, 0, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_try(c->lock, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_release(c->lock, BELAY_DEFAULT, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_extend(c->lock, 1000, BELAY_DEFAULT, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_cancel(c->lock), BELAY_ECLOSING);
  assert_error(belay_lock_close(c->lock, NULL), BELAY_ECLOSING);
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  bed_until(bed, c->closed == 1);
  expect_no_callback(bed);
}

BED_TEST(a_client_that_is_closing) {
  contender_t *c = contender_new(bed, "door", NULL);
  belay_lock_t *lock = (belay_lock_t *)bed;
  assert_error(try_lock(c), 0);
  assert_error(begin_client_close(bed), 0);
  assert_error(belay_lock_new(bed->client, belay_string("door"), NULL, &lock), BELAY_ECLOSING);
  assert_null(lock);
  assert_error(belay_client_ping(bed->client, BELAY_DEFAULT, on_client), BELAY_ECLOSING);
  assert_error(belay_client_close(bed->client, NULL), BELAY_ECLOSING);
  assert_error(belay_lock_acquire(c->lock, 0, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_release(c->lock, BELAY_DEFAULT, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_close(c->lock, NULL), BELAY_ECLOSING);
  bed_until(bed, bed->client_closed == 1);
  expect_no_callback(bed);
}

BED_TEST(a_belay_that_is_closing) {
  contender_t *c = contender_new(bed, "door", NULL);
  belay_client_t *client = (belay_client_t *)bed;
  belay_lock_t *lock;
  assert_error(try_lock(c), 0);
  assert_error(begin_belay_close(bed), 0);
  assert_error(belay_close(bed->belay, NULL), BELAY_ECLOSING);
  assert_error(belay_connect(bed->belay, NOWHERE, NULL, &client), BELAY_ECLOSING);
  assert_null(client);
  assert_error(belay_lock_new(bed->client, belay_string("door"), NULL, &lock), BELAY_ECLOSING);
  assert_error(belay_client_ping(bed->client, BELAY_DEFAULT, on_client), BELAY_ECLOSING);
  assert_error(belay_client_close(bed->client, NULL), BELAY_ECLOSING);
  assert_error(belay_lock_acquire(c->lock, 0, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_extend(c->lock, 1000, BELAY_DEFAULT, on_lock), BELAY_ECLOSING);
  assert_error(belay_lock_close(c->lock, NULL), BELAY_ECLOSING);
  bed_until(bed, bed->belay_closed == 1);
  expect_no_callback(bed);
}

/* ---- URLs -------------------------------------------------------------------------------------------------- */

TEST_IN(urls_that_are_malformed_name_the_part, bed, bed_open_at(NOWHERE, NULL)) {
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
    belay_client_t *client = (belay_client_t *)bed;
    assert_error(belay_connect(bed->belay, all[i].url, NULL, &client), BELAY_EURL);
    assert_null(client);
    const char *detail = belay_detail(bed->belay);
    if (strncmp(detail, all[i].part, strlen(all[i].part)) != 0)
      fail_msg("%s: %s", all[i].url, detail);
    assert_null(strstr(detail, "pass%2"));
  }
}

TEST_IN(urls_that_are_too_long, bed, bed_open_at(NOWHERE, NULL)) {
  static char url[100001];
  static const char *const starts[] = {"redis://", "unix:///", "redis://user:"};
  for (size_t i = 0; i < 3; i++) {
    belay_client_t *client = (belay_client_t *)bed;
    memset(url, 'x', sizeof url - 1);
    memcpy(url, starts[i], strlen(starts[i]));
    assert_error(belay_connect(bed->belay, url, NULL, &client), BELAY_EURL);
    assert_null(client);
    assert_true(strlen(belay_detail(bed->belay)) > 0);
  }
}

/* ---- options of a client ---------------------------------------------------------------------------------- */

static void expect_client_options(bed_t *bed, const belay_client_options_t *options,
                                  const char *wrong) {
  belay_client_t *client = (belay_client_t *)bed;
  int error = belay_connect(bed->belay, NOWHERE, options, &client);
  if (error != (wrong != NULL ? BELAY_EINVAL : 0))
    fail_msg("%s: %s", wrong != NULL ? wrong : belay_detail(bed->belay), belay_err_name(error));
  if (wrong == NULL)
    return;
  assert_null(client);
  expect_detail(bed, wrong);
}

TEST_IN(texts_of_a_client_that_are_out_of_range, bed, bed_open_at(NOWHERE, NULL)) {
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
    expect_client_options(bed, &o, all[i].field);
    assert_null(strstr(belay_detail(bed->belay), "xxxx"));
  }
}

TEST_IN(namespaces_that_are_none, bed, bed_open_at(NOWHERE, NULL)) {
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
    expect_client_options(bed, &o, all[i].wrong);
  }
}

/* ---- the detail -------------------------------------------------------------------------------------------- */

TEST_IN(the_detail_is_gone_with_the_next_call, bed, bed_open_at(NOWHERE, NULL)) {
  contender_t *c = contender_new(bed, "door", NULL);
  assert_string_equal(belay_detail(bed->belay), "");
  assert_error(belay_lock_acquire(c->lock, 0, NULL), BELAY_EINVAL);
  assert_string_not_equal(belay_detail(bed->belay), "");
  assert_error(belay_lock_cancel(c->lock), BELAY_ESTATE);
  assert_string_equal(belay_detail(bed->belay), "");
}

TEST(every_error_has_a_name_and_a_text) {
#define CHECK(name, value, retryable, text)                                                        \
  assert_int_equal(BELAY_##name, value);                                                           \
  assert_string_equal(belay_err_name(BELAY_##name), #name);                                        \
  assert_string_equal(belay_strerror(BELAY_##name), text);                                         \
  assert_int_equal(belay_err_retryable(BELAY_##name), retryable);
  BELAY_ERRORS(CHECK)
#undef CHECK
  assert_string_equal(belay_err_name(0), "OK");
  assert_string_equal(belay_err_name(12345), "E?");
  assert_string_equal(belay_err_name(INT_MIN), "E?");
  assert_non_null(belay_strerror(INT_MIN));
  assert_int_equal(belay_err_retryable(INT_MAX), 0);
}

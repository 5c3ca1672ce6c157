/* Credentials that a callback supplies at each connection. */
#include <errno.h>
#include <hiredis/alloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "support/servers/acl.h"
#include "support/deployments/fake.h"
#include "support/servers/secure.h"

/* The callback's answers. */
typedef struct supplier {
  unsigned asked;
  int error;
  const char *username, *password;
} supplier_t;

static int supply(void *ctx, belay_credentials_t *out) {
  supplier_t *supplier = ctx;
  supplier->asked++;
  assert_null(out->username);
  assert_null(out->password);
  out->username = supplier->username;
  out->password = supplier->password;
  return supplier->error;
}

static belay_client_options_t supplied_options(supplier_t *supplier) {
  belay_client_options_t o = client_options();
  o.credentials = supply;
  o.credentials_ctx = supplier;
  o.reconnect_max_ms = 50;
  return o;
}

static void expect_in_the_end(env_t *env, int status) {
  for (int64_t began = clock_now(); pong(env, NULL) != status;)
    assert_between(clock_since_ms(began), 0, 10000 * slow());
}

/* The server changes its password and drops all clients. The callback supplies the new password. */
TEST(password_changes) {
  supplier_t supplier = {.password = "first"};
  belay_client_options_t o = supplied_options(&supplier);
  env_t *env = env_open_with(server_start(&(server_options_t){.password = "first"}), &o);
  contender_t *c = contender_new(env, "x", NULL);
  assert_error(try_lock(c), 0);
  assert_int_equal(supplier.asked, 1);
  for (int i = 0; i < 3; i++) {
    char next[16];
    snprintf(next, sizeof next, "secret %d", i);
    server_do(env->server, "CONFIG", "SET", "requirepass", next, NULL);
    supplier.password = next;
    uint64_t drops = client_stats(env).drops;
    server_do(env->server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
    env_until(env, client_stats(env).drops > drops);
    assert_error(extend(c, 20000), 0);
    assert_true(supplier.asked >= (unsigned)i + 2);
  }
  assert_error(release(c), 0);
  assert_int_equal(client_stats(env).connect_errors, 0);
  server_do(env->server, "CONFIG", "SET", "requirepass", "first", NULL);
  env_close(env);
}

/* The callback's credentials replace those of the URL and the options. */
TEST(callback_overrides_url_and_options) {
  static const struct {
    const char *username, *password;
  } rows[] = {{"worker", "nine"}, {NULL, "sesame"}, {"", "sesame"}, {"open", NULL}, {"open", ""}};
  server_t *server = server_start(&(server_options_t){.password = "sesame"});
  server_do(server, "ACL", "SETUSER", "worker", "on", ">nine", "~*", "&*", "+@all", NULL);
  server_do(server, "ACL", "SETUSER", "open", "on", "nopass", "~*", "&*", "+@all", NULL);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    supplier_t supplier = {.username = rows[i].username, .password = rows[i].password};
    belay_client_options_t o = supplied_options(&supplier);
    o.username = "nobody";
    o.password = "wrong";
    env_t *env = env_open_at(server_url(server), &o);
    assert_error(pong(env, NULL), 0);
    const char *clients = server_string(server, "CLIENT", "LIST", NULL);
    char user[32];
    snprintf(user, sizeof user, "user=%s ",
             rows[i].username != NULL && rows[i].username[0] != '\0' ? rows[i].username
                                                                     : "default");
    assert_non_null(strstr(strstr(clients, "name=belay"), user));
    env_close(env);
  }
  server_stop(server);
}

TEST(callback_without_password) {
  acl_skip("a client without a user has no rights");
  supplier_t supplier = {0};
  belay_client_options_t o = supplied_options(&supplier);
  env_t *env = env_open(&o);
  assert_error(pong(env, NULL), 0);
  assert_int_equal(supplier.asked, 1);
  assert_int_equal(server_calls(env->server, "auth"), 0);
  env_close(env);
}

/* Without credentials the connection is refused, and the callback runs again after a delay. */
TEST(callback_fails) {
  static char too_long[70000];
  memset(too_long, 'x', sizeof too_long - 1);
  supplier_t suppliers[] = {{.error = -1, .password = "sesame"},
                            {.error = 7},
                            {.password = too_long},
                            {.username = too_long, .password = "sesame"}};
  static const char *const why[] = {"the credentials function has failed",
                                    "the credentials function has failed",
                                    "the credentials function: password: too long",
                                    "the credentials function: username: too long"};
  for (size_t i = 0; i < sizeof suppliers / sizeof *suppliers; i++) {
    supplier_t supplier = suppliers[i];
    belay_client_options_t o = supplied_options(&supplier);
    env_t *env = env_open_with(server_start(&(server_options_t){.password = "sesame"}), &o);
    const char *detail;
    server_do(env->server, "CONFIG", "RESETSTAT", NULL);
    assert_error(pong(env, &detail), BELAY_EAUTH);
    assert_string_equal(detail, why[i]);
    env_run_for(env, 200);
    assert_in_range(supplier.asked, 1, 10);
    assert_int_equal(env->errors, 1);
    assert_int_equal(server_calls(env->server, "auth"), 0);
    supplier = (supplier_t){.password = "sesame"};
    expect_in_the_end(env, 0);
    env_close(env);
  }
}

/* A server that repeats unknown words in its errors: the log must not contain them. */
static void repeat(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  char text[256];
  (void)arg;
  snprintf(text, sizeof text, "-ERR no such thing: %s\r\n", words[count - 1]);
  fake_say(link, text);
}

TEST(server_repeats_credentials) {
  supplier_t supplier = {.username = "me", .password = "sesame"};
  belay_client_options_t o = supplied_options(&supplier);
  fake_t *fake = fake_start(&(fake_options_t){.on_command = repeat});
  env_t *env = env_open_at(fake_url(fake), &o);
  const char *detail;
  assert_error(pong(env, &detail), BELAY_EAUTH);
  assert_string_equal(detail, "AUTH was refused");
  env_close(env);
  fake_stop(fake);
}

/* The callback runs only after the server has proved its identity. The secret is long. */
TEST(callback_runs_after_tls_verification) {
  static char token[4000];
  memset(token, 't', sizeof token - 1);
  certs_t *certs = certs_new("ca");
  certs_make(certs, "server", NULL);
  certs_make(certs, "client", NULL);
  certs_make(certs, "elsewhere", &(cert_options_t){.names = "DNS:elsewhere"});
  supplier_t supplier = {.password = token};
  belay_client_options_t o = supplied_options(&supplier);
  server_t *server =
      secure_server(certs, &(secure_t){.cert = "elsewhere", .clients = "yes", .password = token});
  const char *url = url_of("rediss", NULL, "localhost", server_port(server));
  belay_tls_options_t tls = trust(certs, "client");
  env_t *env = secure_env(url, &tls, &o);
  assert_error(pong(env, NULL), BELAY_ETLS);
  env_close(env);
  assert_int_equal(supplier.asked, 0);

  server_do(server, "CONFIG", "SET", "tls-cert-file", certs_path(certs, "server.crt"),
            "tls-key-file", certs_path(certs, "server.key"), NULL);
  tls = trust(certs, NULL); /* nor before the server has let us in */
  env = secure_env(url, &tls, &o);
  assert_error(pong(env, NULL), BELAY_ETLS);
  env_close(env);
  assert_int_equal(supplier.asked, 0);

  tls = trust(certs, "client");
  env = secure_env(url, &tls, &o);
  assert_error(pong(env, NULL), 0);
  assert_int_equal(supplier.asked, 1);
  env_close(env);
  server_stop(server);
  certs_free(certs);
}

/* ---- what is left of it in memory ---- */

static const char piece[] = "Pa55w0rd"; /* a password is many of these */
/* number of bytes that the system takes per write; 0: none */
static size_t at_once = SIZE_MAX;
static unsigned left_behind;

ssize_t send(int fd, const void *data, size_t len, int flags) {
  struct iovec part = {(void *)(uintptr_t)data, len < at_once ? len : at_once};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (at_once == 0)
    errno = EAGAIN;
  return at_once == 0 ? -1 : sendmsg(fd, &message, flags);
}

/* Memory that knows its length, which stands before it. */
typedef union block {
  size_t len;
  max_align_t align;
} block_t;

static void *block_new(size_t len) {
  block_t *block = calloc(1, sizeof *block + len);
  if (block == NULL)
    return NULL;
  block->len = len;
  return block + 1;
}

static void block_free(void *data) {
  if (data == NULL)
    return;
  block_t *block = (block_t *)data - 1;
  left_behind += memmem(data, block->len, piece, sizeof piece - 1) != NULL;
  free(block);
}

static void *block_new_array(size_t n, size_t size) {
  return block_new(n * size);
}

static void *block_resize(void *data, size_t len) {
  void *larger = block_new(len);
  if (data != NULL && larger != NULL) {
    size_t was = ((block_t *)data - 1)->len;
    memcpy(larger, data, was < len ? was : len);
    block_free(data);
  }
  return larger;
}

static char *block_copy(const char *text) {
  char *copy = block_new(strlen(text) + 1);
  return copy == NULL ? NULL : memcpy(copy, text, strlen(text) + 1);
}

/* Of a password of any length, however it is sent, or if it never is. */
TEST(password_is_wiped_from_memory) {
  static const size_t lengths[] = {8, 500, 1000, 3000, 60000}, most[] = {SIZE_MAX, 700, 0};
  static char password[65536];
  hiredisAllocFuncs funcs = {block_new, block_new_array, block_resize, block_copy, block_free};
  for (size_t i = 0; i < sizeof password - sizeof piece; i += sizeof piece - 1)
    memcpy(password + i, piece, sizeof piece - 1);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (size_t k = 0; k < sizeof most / sizeof *most; k++) {
      char rest = password[lengths[i]];
      password[lengths[i]] = '\0';
      supplier_t supplier = {.password = password};
      belay_client_options_t o = supplied_options(&supplier);
      o.timeout_ms = most[k] == 0 ? 200 : 10000 * slow();
      fake_t *fake = fake_start(NULL);
      hiredisSetAllocators(&funcs);
      env_t *env = env_open_at(fake_url(fake), &o);
      at_once = most[k];
      assert_error(pong(env, NULL), most[k] == 0 ? BELAY_EUNREACHABLE : 0);
      at_once = SIZE_MAX;
      env_close(env);
      hiredisResetAllocators();
      fake_stop(fake);
      password[lengths[i]] = rest;
      if (left_behind > 0)
        fail_msg("%u blocks of a password of %zu bytes", left_behind, lengths[i]);
    }
}

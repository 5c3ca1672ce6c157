/* Passwords and users of a client: how a server refuses them, and how often the client asks. */
#include <stdio.h>

#include "support/fixtures/env.h"

typedef struct access {
  const char *name;
  const char *password;          /* the default user's on the server; NULL: none */
  const char *rules[2];          /* of the user alice; NULL: there is none */
  const char *login;             /* of the URL */
  const char *username, *option; /* user and password of the options; NULL: none */
  int error;                     /* of an acquire */
  const char *says;              /* in the detail, or in CLIENT LIST if there is no error */
} access_t;

static const access_t rows[] = {
    {.name = "wrong_password",
     .password = "right",
     .login = ":wrong@",
     .error = BELAY_EAUTH,
     .says = "WRONGPASS"},
    {.name = "no_password", .password = "right", .login = "", .error = BELAY_EAUTH},
    {.name = "escaped_password", .password = "p@ss/w:rd%", .login = ":p%40ss%2Fw%3Ard%25@"},
    {.name = "password_of_the_options", .password = "right", .login = ":wrong@", .option = "right"},
    {.name = "user_and_password",
     .rules = {"~*", "+@all"},
     .login = "alice:secret@",
     .says = "user=alice"},
    {.name = "user_of_the_options",
     .rules = {"~*", "+@all"},
     .login = "bob:wrong@",
     .username = "alice",
     .option = "secret",
     .says = "user=alice"},
    {.name = "command_not_permitted",
     .rules = {"~*", "+@connection"},
     .login = "alice:secret@",
     .error = BELAY_EPERM},
    {.name = "key_not_permitted",
     .rules = {"~other:*", "+@all"},
     .login = "alice:secret@",
     .error = BELAY_EPERM},
};

static env_t *open_env(server_t *server, const char *login, const belay_client_options_t *options) {
  char url[256];
  needs_one_process("a URL of its own");
  snprintf(url, sizeof url, "unix://%s%s", login, server_path(server));
  env_t *env = env_open_at(url, options);
  env->server = server;
  return env;
}

static server_t *open_server(const access_t *row) {
  server_t *server = server_start(&(server_options_t){.password = row->password});
  if (row->rules[0] != NULL)
    server_do(server, "ACL", "SETUSER", "alice", "on", ">secret", row->rules[0], row->rules[1],
              NULL);
  return server;
}

static void expect_detail(const contender_t *c, const access_t *row) {
  assert_error(c->env->failed, row->error);
  if (row->says != NULL)
    assert_non_null(strstr(c->env->detail, row->says));
  assert_null(strstr(c->env->detail, "wrong"));
}

/* However long and often the client asks, it makes few connections. */
static void expect_refusal(env_t *env, const access_t *row) {
  contender_t *c = contender_new(env, "door", NULL);
  int64_t before = server_info(env->server, "stats", "total_connections_received");
  int64_t began = clock_now();
  assert_error(try_lock(c), row->error);
  assert_error(acquire(c, 10000), row->error);
  assert_true(clock_since_ms(began) < 1500 * slow());
  for (int i = 0; i < 50; i++) {
    env->detail[0] = '\0';
    assert_error(try_lock(c), row->error);
    expect_detail(c, row);
    env_run_for(env, 10);
  }
  int64_t connections = server_info(env->server, "stats", "total_connections_received") - before;
  assert_between(connections, 0, 10 + 5 * slow());
  assert_false(belay_err_retryable(row->error));
}

static void test_access(void **state) {
  const access_t *row = *state;
  belay_client_options_t options = client_options();
  options.username = row->username;
  options.password = row->option;
  server_t *server = open_server(row);
  env_t *env = open_env(server, row->login, &options);
  if (row->error != 0) {
    expect_refusal(env, row);
  } else {
    assert_error(try_lock(contender_new(env, "door", NULL)), 0);
    if (row->says != NULL)
      assert_non_null(strstr(server_string(server, "CLIENT", "LIST", NULL), row->says));
  }
  env_close(env);
}

TEST_ROWS(access) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    test_add(__LINE__, test_access, &rows[i], "%s", rows[i].name);
}

TEST(password_changed_on_the_server) {
  server_t *server = server_start(NULL);
  server_do(server, "ACL", "SETUSER", "alice", "on", ">old", "~*", "+@all", NULL);
  belay_client_options_t options = client_options();
  options.reconnect_max_ms = 200;
  env_t *env = open_env(server, "alice:new@", &options);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), BELAY_EAUTH);
  server_do(server, "ACL", "SETUSER", "alice", ">new", NULL);
  for (int i = 0; i < 50 && try_lock(c) != 0; i++)
    env_run_for(env, 100); /* the client does not ask all the time */
  assert_error(c->status, 0);
  env_close(env);
}

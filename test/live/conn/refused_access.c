/* Access: changed passwords, deleted users, protected addresses, renamed commands. Errors never
 * repeat the words of a command. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>

#include "support/servers/acl.h"
#include "support/load/op_set.h"

#define ALL(error)                                                                                 \
  { error, error, error, error, error, false, 0 }

static const op_statuses_t nothing = ALL(0);
static const op_statuses_t locked_out = ALL(BELAY_EAUTH);

static void drop_clients(server_t *server) {
  server_do(server, "CLIENT", "KILL", "TYPE", "normal", NULL);
}

/* ---- passwords and users ---- */

static void add_alice(server_t *server, const char *password) {
  char right[64];
  snprintf(right, sizeof right, ">%s", password);
  server_do(server, "ACL", "SETUSER", "alice", "on", "resetpass", right, "~*", "&*", "+@all", NULL);
}

static op_set_t *open_as_alice(void) {
  server_t *server = server_start(NULL);
  add_alice(server, "sesame");
  op_set_t *op_set = op_set_open(server, "alice", "sesame");
  op_set_use_all(op_set);
  return op_set;
}

#define ALICE_TEST(name) TEST_IN(name, op_set, open_as_alice())

/* Present connections stay. New ones fail until the password is right again. */
ALICE_TEST(password_changed) {
  add_alice(op_set->server, "barley");
  assert_error(op_set_take(op_set), 0);
  assert_error(op_set_add(op_set), 0);
  assert_error(op_set_acquire(op_set), 0);
  assert_error(release(op_set->acquirer), 0);
  drop_clients(op_set->server);
  op_set_expect(op_set, "another password", &locked_out, "WRONGPASS ");
  assert_null(strstr(op_set->detail, "sesame"));
  add_alice(op_set->server, "sesame");
  op_set_expect_recovered(op_set);
}

ALICE_TEST(user_disabled) {
  server_do(op_set->server, "ACL", "SETUSER", "alice", "off", NULL);
  drop_clients(op_set->server);
  op_set_expect(op_set, "off", &locked_out, "WRONGPASS ");
  server_do(op_set->server, "ACL", "SETUSER", "alice", "on", NULL);
  op_set_expect_recovered(op_set);
}

/* The server ends the user's connections. */
ALICE_TEST(user_deleted) {
  server_do(op_set->server, "ACL", "DELUSER", "alice", NULL);
  op_set_expect(op_set, "gone", &locked_out, "WRONGPASS ");
  add_alice(op_set->server, "sesame");
  op_set_expect_recovered(op_set);
}

/* A user who may not touch the keys. */
ALICE_TEST(keys_not_permitted) {
  static const op_statuses_t forbidden = ALL(BELAY_EPERM);
  server_do(op_set->server, "ACL", "SETUSER", "alice", "resetkeys", "~other:*", NULL);
  op_set_expect(op_set, "other keys", &forbidden, "NOPERM ");
  server_do(op_set->server, "ACL", "SETUSER", "alice", "~*", NULL);
  op_set_expect_recovered(op_set);
}

/* ---- addresses ---- */

/* An address of this machine that is not its own to itself. */
static bool find_address(char out[INET_ADDRSTRLEN]) {
  struct ifaddrs *all;
  bool found = false;
  if (getifaddrs(&all) != 0)
    return false;
  for (const struct ifaddrs *at = all; at != NULL && !found; at = at->ifa_next) {
    if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET)
      continue;
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)at->ifa_addr;
    found = ntohl(in->sin_addr.s_addr) >> 24 != 127 &&
            inet_ntop(AF_INET, &in->sin_addr, out, INET_ADDRSTRLEN) != NULL;
  }
  freeifaddrs(all);
  return found;
}

TEST(protected_mode) {
  if (deployment_is_cluster())
    skip(); /* which has an address of its own */
  acl_skip("it protects servers that have no password");
  static char address[INET_ADDRSTRLEN];
  if (!find_address(address)) {
    print_message("this machine has no address that others could use\n");
    skip();
  }
  server_t *server = server_start(
      &(server_options_t){.address = address, .arguments = {"--protected-mode", "no", NULL}});
  op_set_t *op_set = op_set_open(server, NULL, NULL);
  op_set_use_all(op_set);
  server_do(server, "CONFIG", "SET", "protected-mode", "yes", NULL);
  drop_clients(server);
  op_set_expect(op_set, "protected mode", &locked_out, "DENIED ");
  server_do(server, "CONFIG", "SET", "protected-mode", "no", NULL);
  op_set_expect_recovered(op_set);
  op_set_close(op_set);
}

/* ---- renamed commands ---- */

#define FROM_SCRIPT "command called from script" /* "ERR Unknown Redis ", or "ERR Unknown " */

static server_t *server_without(const char *command) {
  return server_start(&(server_options_t){.arguments = {"--rename-command", command, "", NULL}});
}

/* The refusal is lasting, and its text contains neither a token nor a key. */
static void expect_unknown(op_set_t *op_set, int status, const char *says) {
  assert_error(status, BELAY_EREFUSED);
  if (strstr(op_set->detail, says) == NULL)
    fail_msg("\"%s\", without \"%s\"", op_set->detail, says);
  assert_null(strstr(op_set->detail, "belay"));
  assert_null(strstr(op_set->detail, "args"));
  assert_int_equal(server_keys(op_set->server), 0);
}

TEST_IN(a_missing_command_in_a_script, op_set, op_set_open(server_without("SET"), NULL, NULL)) {
  for (int i = 0; i < 2; i++) /* the first time it is not known whether SET takes NX with GET */
    expect_unknown(op_set, op_set_acquire(op_set), FROM_SCRIPT);
  expect_unknown(op_set, op_set_take(op_set), FROM_SCRIPT);
  assert_error(op_set_add(op_set), 0);
  assert_int_equal(client_stats(op_set->env).undo_pending, 0); /* the script did nothing */
  assert_int_equal(client_stats(op_set->env).unknown, 0);
}

TEST_IN(a_missing_command, op_set, op_set_open(server_without("INCRBY"), NULL, NULL)) {
  expect_unknown(op_set, op_set_add(op_set), "ERR unknown command 'INCRBY'");
  assert_error(op_set_acquire(op_set), 0);
  assert_error(op_set_take(op_set), 0);
}

/* A script that cannot be called has not written. */
TEST_IN(eval_missing, op_set, op_set_open(server_without("EVAL"), NULL, NULL)) {
  expect_unknown(op_set, op_set_take(op_set), "ERR unknown command 'EVAL'");
  assert_error(op_set_acquire(op_set), 0); /* by SET */
  assert_error(release(op_set->acquirer), BELAY_EREFUSED);
  assert_non_null(strstr(op_set->detail, "ERR unknown command 'EVAL'"));
  assert_null(strstr(op_set->detail, "belay"));
  assert_int_equal(client_stats(op_set->env).unknown, 0);
}

/* And where a server does not tell what it can do, all is done in the older way. */
TEST_IN(command_info_missing, op_set, op_set_open(server_without("COMMAND"), NULL, NULL)) {
  op_set_use_all(op_set);
  op_set_expect(op_set, "without COMMAND", &nothing, NULL);
  op_set_expect_recovered(op_set);
  assert_int_equal(server_calls(op_set->server, "set") > 0, true); /* in scripts */
  assert_true(server_calls(op_set->server, "eval") + server_calls(op_set->server, "evalsha") >= 4);
}

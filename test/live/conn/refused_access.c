/* Access: changed passwords, deleted users, protected addresses, renamed commands. Errors never
 * repeat the words of a command. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>

#include "support/servers/acl.h"
#include "support/load/house.h"

#define ALL(error)                                                                                 \
  { error, error, error, error, error, false, 0 }

static const house_told_t nothing = ALL(0);
static const house_told_t shut_out = ALL(BELAY_EAUTH);

static void drop_everybody(server_t *server) {
  server_do(server, "CLIENT", "KILL", "TYPE", "normal", NULL);
}

/* ---- passwords and users --------------------------------------------------------------------------------- */

static void add_alice(server_t *server, const char *password) {
  char right[64];
  snprintf(right, sizeof right, ">%s", password);
  server_do(server, "ACL", "SETUSER", "alice", "on", "resetpass", right, "~*", "&*", "+@all", NULL);
}

/* Present connections stay. New ones fail until the password is right again. */
TEST(a_password_that_changes) {
  house_t house;
  server_t *server = server_start(NULL);
  add_alice(server, "sesame");
  house_open(&house, server, "alice", "sesame");
  house_move_in(&house);
  add_alice(server, "barley");
  assert_error(house_take(&house), 0);
  assert_error(house_add(&house), 0);
  assert_error(house_acquire(&house), 0);
  assert_error(release(house.wanted), 0);
  drop_everybody(server);
  house_expect(&house, "another password", &shut_out, "WRONGPASS ");
  assert_null(strstr(house.detail, "sesame"));
  add_alice(server, "sesame");
  house_expect_well(&house);
  house_close(&house);
}

TEST(a_user_who_is_switched_off) {
  house_t house;
  server_t *server = server_start(NULL);
  add_alice(server, "sesame");
  house_open(&house, server, "alice", "sesame");
  house_move_in(&house);
  server_do(server, "ACL", "SETUSER", "alice", "off", NULL);
  drop_everybody(server);
  house_expect(&house, "off", &shut_out, "WRONGPASS ");
  server_do(server, "ACL", "SETUSER", "alice", "on", NULL);
  house_expect_well(&house);
  house_close(&house);
}

/* The server ends the user's connections. */
TEST(a_user_who_goes) {
  house_t house;
  server_t *server = server_start(NULL);
  add_alice(server, "sesame");
  house_open(&house, server, "alice", "sesame");
  house_move_in(&house);
  server_do(server, "ACL", "DELUSER", "alice", NULL);
  house_expect(&house, "gone", &shut_out, "WRONGPASS ");
  add_alice(server, "sesame");
  house_expect_well(&house);
  house_close(&house);
}

/* A user who may not touch the keys. */
TEST(a_user_of_other_keys) {
  static const house_told_t forbidden = ALL(BELAY_EPERM);
  house_t house;
  server_t *server = server_start(NULL);
  add_alice(server, "sesame");
  house_open(&house, server, "alice", "sesame");
  house_move_in(&house);
  server_do(server, "ACL", "SETUSER", "alice", "resetkeys", "~other:*", NULL);
  house_expect(&house, "other keys", &forbidden, "NOPERM ");
  server_do(server, "ACL", "SETUSER", "alice", "~*", NULL);
  house_expect_well(&house);
  house_close(&house);
}

/* ---- addresses ------------------------------------------------------------------------------------------- */

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
  house_t house;
  if (!find_address(address)) {
    print_message("this machine has no address that others could use\n");
    skip();
  }
  server_t *server = server_start(
      &(server_options_t){.address = address, .arguments = {"--protected-mode", "no", NULL}});
  house_open(&house, server, NULL, NULL);
  house_move_in(&house);
  server_do(server, "CONFIG", "SET", "protected-mode", "yes", NULL);
  drop_everybody(server);
  house_expect(&house, "protected mode", &shut_out, "DENIED ");
  server_do(server, "CONFIG", "SET", "protected-mode", "no", NULL);
  house_expect_well(&house);
  house_close(&house);
}

/* ---- commands that have another name --------------------------------------------------------------------- */

#define FROM_SCRIPT "command called from script" /* "ERR Unknown Redis ", or "ERR Unknown " */

static server_t *server_without(const char *command) {
  return server_start(&(server_options_t){.arguments = {"--rename-command", command, "", NULL}});
}

/* The refusal is lasting, and its text contains neither a token nor a key. */
static void expect_unknown(house_t *house, int status, const char *says) {
  assert_error(status, BELAY_EREFUSED);
  if (strstr(house->detail, says) == NULL)
    fail_msg("\"%s\", without \"%s\"", house->detail, says);
  assert_null(strstr(house->detail, "belay"));
  assert_null(strstr(house->detail, "args"));
  assert_int_equal(server_keys(house->server), 0);
}

TEST(a_command_that_has_another_name) {
  house_t house;
  house_open(&house, server_without("SET"), NULL, NULL);
  for (int i = 0; i < 2;
       i++) /* it is not known yet to have SET with NX and GET; then it is asked first */
    expect_unknown(&house, house_acquire(&house), FROM_SCRIPT);
  expect_unknown(&house, house_take(&house), FROM_SCRIPT);
  assert_error(house_add(&house), 0);
  assert_int_equal(client_stats(house.bed).undo_pending, 0); /* it did nothing: that is known */
  assert_int_equal(client_stats(house.bed).unknown, 0);
  house_close(&house);
  house_open(&house, server_without("INCRBY"), NULL, NULL);
  expect_unknown(&house, house_add(&house), "ERR unknown command 'INCRBY'");
  assert_error(house_acquire(&house), 0);
  assert_error(house_take(&house), 0);
  house_close(&house);
}

/* A script that cannot be called has not written. */
TEST(scripts_that_have_another_name) {
  house_t house;
  house_open(&house, server_without("EVAL"), NULL, NULL);
  expect_unknown(&house, house_take(&house), "ERR unknown command 'EVAL'");
  assert_error(house_acquire(&house), 0); /* by SET */
  assert_error(release(house.wanted), BELAY_EREFUSED);
  assert_non_null(strstr(house.detail, "ERR unknown command 'EVAL'"));
  assert_null(strstr(house.detail, "belay"));
  assert_int_equal(client_stats(house.bed).unknown, 0);
  house_close(&house);
}

/* And where a server does not tell what it can do, all is done in the older way. */
TEST(a_server_that_does_not_tell_what_it_can_do) {
  house_t house;
  house_open(&house, server_without("COMMAND"), NULL, NULL);
  house_move_in(&house);
  house_expect(&house, "without COMMAND", &nothing, NULL);
  house_expect_well(&house);
  assert_int_equal(server_calls(house.server, "set") > 0, true); /* in scripts */
  assert_true(server_calls(house.server, "eval") + server_calls(house.server, "evalsha") >= 4);
  house_close(&house);
}

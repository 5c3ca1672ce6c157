/* The meaning of refusals. The replies are real server texts. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "belay/error.h"
#include "core/call/refusal.h"
#include "support/base/test.h"

typedef struct row {
  const char *prefix, *reply;
  int error;
  belay__remedy_t remedy;
} row_t;

static const row_t rows[] = {
    {"NOSCRIPT", "NOSCRIPT No matching script. Please use EVAL.", BELAY_EREFUSED,
     BELAY__REMEDY_EVAL},
    {"TRYAGAIN", "TRYAGAIN Multiple keys request during rehashing of slot", BELAY_ECLUSTERDOWN,
     BELAY__REMEDY_RETRY},
    {"CLUSTERDOWN", "CLUSTERDOWN The cluster is down", BELAY_ECLUSTERDOWN, BELAY__REMEDY_RETRY},
    {"MASTERDOWN",
     "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     BELAY_ECLUSTERDOWN, BELAY__REMEDY_RETRY},
    {"LOADING", "LOADING Redis is loading the dataset in memory", BELAY_ELOADING,
     BELAY__REMEDY_RETRY},
    {"BUSY",
     "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     BELAY_ESCRIPTBUSY, BELAY__REMEDY_RETRY},
    {"READONLY", "READONLY You can't write against a read only replica.", BELAY_EREADONLY,
     BELAY__REMEDY_RECONNECT},
    {"UNBLOCKED",
     "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
     BELAY_EREADONLY, BELAY__REMEDY_RECONNECT},
    {"ERR WAIT cannot be used with replica",
     "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a "
     "replica is configured to be writable (which is not the default) writes to replicas are just "
     "local and are not propagated.",
     BELAY_EREADONLY, BELAY__REMEDY_RECONNECT},
    {"NOAUTH", "NOAUTH Authentication required.", BELAY_EAUTH, BELAY__REMEDY_REAUTH},
    {"WRONGPASS", "WRONGPASS invalid username-password pair or user is disabled.", BELAY_EAUTH,
     BELAY__REMEDY_NONE},
    {"ERR invalid password", "ERR invalid password", BELAY_EAUTH, BELAY__REMEDY_NONE},
    {"ERR AUTH",
     "ERR AUTH <password> called without any password configured for the default user. Are you "
     "sure your configuration is correct?",
     BELAY_EAUTH, BELAY__REMEDY_NONE},
    {"ERR Client sent", "ERR Client sent AUTH, but no password is set", BELAY_EAUTH,
     BELAY__REMEDY_NONE},
    {"DENIED", "DENIED Redis is running in protected mode because protected mode is enabled",
     BELAY_EAUTH, BELAY__REMEDY_NONE},
    {"NOPERM", "NOPERM this user has no permissions to run the 'set' command", BELAY_EPERM,
     BELAY__REMEDY_NONE},
    {"ERR The user executing the script can't",
     "ERR The user executing the script can't run this command or subcommand", BELAY_EPERM,
     BELAY__REMEDY_NONE},
    {"ERR ACL failure in script:",
     "ERR ACL failure in script: User guest has no permissions to run the 'set' command",
     BELAY_EPERM, BELAY__REMEDY_NONE},
    {"WRONGTYPE", "WRONGTYPE Operation against a key holding the wrong kind of value",
     BELAY_EWRONGTYPE, BELAY__REMEDY_NONE},
    {"ERR Key should be of string type",
     "ERR Key should be of string type if conditions are specified", BELAY_EWRONGTYPE,
     BELAY__REMEDY_NONE},
    {"ERR value is not an integer", "ERR value is not an integer or out of range", BELAY_EWRONGTYPE,
     BELAY__REMEDY_NONE},
    {"ERR hash value is not an integer", "ERR hash value is not an integer", BELAY_EWRONGTYPE,
     BELAY__REMEDY_NONE},
    {"ERR increment or decrement would overflow", "ERR increment or decrement would overflow",
     BELAY_EOVERFLOW, BELAY__REMEDY_NONE},
    {"INVALIDOBJ", "INVALIDOBJ Corrupted HLL object detected", BELAY_EMISMATCH, BELAY__REMEDY_NONE},
    {"CROSSSLOT", "CROSSSLOT Keys in request don't hash to the same slot", BELAY_ECROSSSLOT,
     BELAY__REMEDY_NONE},
    {"MOVED", "MOVED 3999 127.0.0.1:6381", BELAY_EMOVED, BELAY__REMEDY_REDIRECT},
    {"ASK", "ASK 3999 127.0.0.1:6381", BELAY_EMOVED, BELAY__REMEDY_REDIRECT},
    {"OOM", "OOM command not allowed when used memory > 'maxmemory'.", BELAY_EOOM,
     BELAY__REMEDY_NONE},
    {"MISCONF",
     "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
     "disk.",
     BELAY_EMISCONF, BELAY__REMEDY_NONE},
    {"NOREPLICAS", "NOREPLICAS Not enough good replicas to write.", BELAY_ENOREPLICAS,
     BELAY__REMEDY_NONE},
    {"ERR max number of clients", "ERR max number of clients reached", BELAY_EMAXCLIENTS,
     BELAY__REMEDY_NONE},
    {"ERR max number of clients", "ERR max number of clients + cluster connections reached",
     BELAY_EMAXCLIENTS, BELAY__REMEDY_NONE},
    {"ERR unknown command", "ERR unknown command 'SET', with args beginning with: ", BELAY_EREFUSED,
     BELAY__REMEDY_NONE},
};
#define ROWS (sizeof rows / sizeof *rows)

/* Pass a copy without a byte behind it, so that the sanitizer finds a read behind the end. */
static const belay__refusal_t *find(const char *text, size_t len) {
  char *copy = malloc(len > 0 ? len : 1);
  assert_non_null(copy);
  memcpy(copy, text, len);
  const belay__refusal_t *found = belay__refusal_find(copy, len);
  free(copy);
  assert_non_null(found);
  return found;
}

/* true if a script may stop with this error after a write. */
static bool is_open(const row_t *row) {
  return row->prefix[0] == '\0' || strncmp(row->prefix, "ERR The user", 12) == 0 ||
         strncmp(row->prefix, "ERR ACL", 7) == 0;
}

static void check(const char *text, size_t len, const row_t *row) {
  const belay__refusal_t *found = find(text, len);
  if (strcmp(found->prefix, row->prefix) != 0 || found->error != row->error ||
      found->remedy != row->remedy || found->may_have_written != is_open(row))
    fail_msg("\"%.*s\": row \"%s\", error %s, remedy %d%s", (int)len, text, found->prefix,
             belay_err_name(found->error), (int)found->remedy,
             found->may_have_written ? ", maybe" : "");
}

static const row_t unknown = {"", "", BELAY_EREFUSED, BELAY__REMEDY_NONE};

static void check_unknown(const char *text) {
  check(text, strlen(text), &unknown);
}

TEST(each_refusal_has_its_error_and_remedy) {
  char text[600];
  for (size_t i = 0; i < ROWS; i++) {
    check(rows[i].reply, strlen(rows[i].reply), &rows[i]);
    check(rows[i].prefix, strlen(rows[i].prefix), &rows[i]);
    for (size_t n = 0; n < strlen(rows[i].prefix); n++) /* a part of the prefix */
      check(rows[i].prefix, n, &unknown);
    int n = snprintf(text, sizeof text, "ERR %s", rows[i].reply); /* not at the beginning */
    check(text, (size_t)n, &unknown);
    check(text + 3, (size_t)n - 3, &unknown);
  }
}

TEST(a_prefix_followed_by_anything_but_a_space_is_another_word) {
  static const char next[] = {'X', 'x', '1', '-', ':', '.', '\t', '\r', '\0'};
  char text[64];
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < sizeof next; j++) {
      size_t n = strlen(rows[i].prefix);
      memcpy(text, rows[i].prefix, n);
      text[n] = next[j];
      memcpy(text + n + 1, " more", 5);
      check(text, n + 1, &unknown);
      check(text, n + 6, &unknown);
    }
}

TEST(replies_without_a_row) {
  static const char *const replies[] = {
      "",
      " ",
      "ERR unknown subcommand 'FOO'. Try CLIENT HELP.",
      "ERR syntax error",
      "ERR Unknown Redis command called from script script: 6b1bf486, on @user_script:1.",
      "ERR DB index is out of range",
      "BUSYGROUP Consumer Group name already exists",
      "BUSYKEY Target key name already exists.",
      "NOGOODSLAVE no good replica",
      "NOPROTO unsupported protocol version",
      "EXECABORT Transaction discarded because of previous errors.",
      "UNKILLABLE Sorry the script already executed write commands against the dataset.",
      "busy in lower case",
      "noscript No matching script.",
  };
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++)
    check_unknown(replies[i]);
}

TEST(wrapped_error_of_a_script) {
  char text[600];
  for (size_t i = 0; i < ROWS; i++) {
    int n =
        snprintf(text, sizeof text,
                 "ERR Error running script (call to f_d84cf40a3f4794e719eb7224df187207df1d6e66): "
                 "@user_script:1: %s",
                 rows[i].reply);
    check(text, (size_t)n, &rows[i]);
    n = snprintf(text, sizeof text,
                 "ERR Error running script (call to f_b33cee3d30ad82bc09env3eff321ee16d217adf3): "
                 "@user_script:12: @user_script: 12: -%s",
                 rows[i].reply);
    check(text, (size_t)n, &rows[i]);
    if (strncmp(rows[i].reply, "ERR ", 4) != 0)
      continue;
    n = snprintf(text, sizeof text,
                 "ERR Error running script (call to f_b33cee3d30ad82bc09env3eff321ee16d217adf3): "
                 "@user_script:12: @user_script: 12: %s",
                 rows[i].reply + 4);
    check(text, (size_t)n, &rows[i]);
  }
  check_unknown("The user executing the script can't run this command or subcommand");
  check_unknown("ERR Error running script (call to f_d84c): @user_script:1: attempt to call a nil");
  check_unknown("ERR Error running script (call to f_d84c): @user_script:1:");
  check_unknown("ERR Error running script (call to f_d84c): OOM is not what it says");
}

/* The line is known only if the server names it. */
TEST(line_of_a_script_error) {
  static const struct {
    const char *text;
    unsigned line;
  } all[] = {
      {"ERR The user executing the script can't run this command or subcommand script: "
       "38a90d6b2a1a3a9d7a4e8d0d5c9e3a2f1b0c9d8e, on @user_script:17.",
       17},
      {"ERR Error running script (call to f_d84c): @user_script:12: @user_script: 12: -OOM no", 12},
      {"ERR Error running script (call to f_d84c): @user_script:3: attempt to index a nil", 3},
      {"NOPERM this user has no permissions to run the 'evalsha' command", 0},
      {"ERR on @user_script:", 0},
      {"ERR on @user_script: 5", 0},
      {"ERR on @user_script:x5", 0},
      {"ERR on @user_script", 0},
      {"", 0},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    size_t len = strlen(all[i].text);
    char *copy = malloc(len + 1);
    memcpy(copy, all[i].text, len);
    assert_int_equal(belay__refusal_line(copy, len), all[i].line);
    free(copy);
  }
  assert_int_equal(belay__refusal_line("on @user_script:123", 18), 12); /* and no byte more */
  assert_true(belay__refusal_line("@user_script:99999999999999999999", 33) >= 100000);
}

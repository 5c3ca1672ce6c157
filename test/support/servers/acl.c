#include "support/servers/acl.h"

#include <belay.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "support/servers/program.h"
#include "support/base/unit.h"

#define RULES_MAX 4096
#define NAMES_MAX 32

unsigned acl_version(void) {
  return program_is_since(7, 0) ? 70000 : program_is_since(6, 2) ? 60200 : 60000;
}

/* Words in place: where each begins. */
static size_t divide(char *text, const char **words, size_t max) {
  size_t n = 0;
  char *next;
  for (char *word = strtok_r(text, " ", &next); word != NULL; word = strtok_r(NULL, " ", &next)) {
    assert_true(n < max);
    words[n++] = word;
  }
  return n;
}

#if BELAY_HAS_ACL
/* The features of each test program, as names of belay_acl_options_t, and additional rules with
 * their reason. The first matching row counts. */
static const struct {
  const char *program, *names, *more;
} rows[] = {
    {"live-active*", "active", NULL},
    {"live-barrier*", "latch", NULL},
    {"live-bloom*", "bloom", NULL},
    {"live-bucket*", "bucket", NULL},
    {"live-cache*", "cache bloom limiter", NULL},
    {"live-cluster*", "all cluster", NULL},
    {"live-counter", "lock redlock", NULL}, /* of fencing numbers */
    {"live-counters*", "counter", NULL},
    {"live-dedup*", "dedup", NULL},
    {"live-config", "config permission presence ranking", NULL},
    {"live-election*", "election", NULL},
    {"live-failover*", "all sentinel", NULL},
    {"live-failover*", "all sentinel", NULL},
    {"live-idempotency*", "idempotency", NULL},
    {"live-idgen*", "idgen durable", NULL},
    {"live-interop", "lock", "~shared:door &shared:door::wake +script|load"}, /* as redis-py, too */
    {"live-latch*", "latch", NULL},
    {"live-limiter", "limiter", "~shop::*"}, /* other namespaces */
    {"live-limit*", "limiter", NULL},
    {"live-lock", "lock",
     "~shop::* ~some{thing}::else &some{thing}::else::wake"}, /* an exact key */
    {"live-multilock*", "lock multilock", "+select|1"},       /* the same server by two databases */
    {"live-net", "lock", "+select"},                          /* databases there are, and are not */
    {"live-permission*", "permission", NULL},
    {"live-presence*", "presence", NULL},
    {"live-quarantine", "redlock durable", "~visit*"}, /* a namespace for each test */
    {"live-quarantine_*", "all replicas sentinel", NULL},
    {"live-ranking*", "ranking", NULL},
    {"live-replica*", "all replicas", NULL},
    {"live-sentinel*", "all sentinel", NULL},
    {"live-refiller*", "refiller", NULL},
    {"live-request", "all", "~n ~s ~absent +incr"}, /* a request of the test's own */
    {"live-rwlock_fault", "rwlock durable", NULL},
    {"live-rwlock*", "rwlock", NULL},
    {"live-semaphore*", "semaphore", NULL},
    {"live-session*", "session", NULL},
    {"live-steps", "all", "~k* ~counter* ~lock ~words +append +incr"}, /* the same */
    {"live-sweep", "sweep", "~*"},                                     /* namespaces by chance */
    {"live-sweep*", "sweep", NULL},
    {"live-tls_deployments", "all replicas sentinel", NULL},
    {"live-waiter", "latch", "~bell ~left &bell::wake +getset"}, /* the same */
    {"*", "all", NULL},
};

static size_t row_of_program(void) {
  size_t i = 0;
  while (fnmatch(rows[i].program, program_invocation_short_name, 0) != 0)
    i++;
  return i;
}

/* All that the worker may, in words. */
static void write_rules(char *out, bool cluster) {
  char text[256];
  const char *names[NAMES_MAX], *more = rows[row_of_program()].more;
  size_t len;
  belay_acl_options_t options;
  belay_acl_options_init(&options);
  const char *where = deployment() == DEPLOYMENT_SENTINEL ? " sentinel" : "";
  snprintf(text, sizeof text, "%s%s", rows[row_of_program()].names, cluster ? " cluster" : where);
  options.names = names;
  options.server_version = acl_version();
  options.names_count = divide(text, names, NAMES_MAX);
  assert_int_equal(belay_acl_rules(&options, out, RULES_MAX, &len), 0);
  if (more != NULL)
    snprintf(out + len, RULES_MAX - len, " %s", more);
}
#else
static void write_rules(char *out, bool cluster) {
  (void)cluster;
  snprintf(out, RULES_MAX, "+@all");
  fail_msg("BELAY_TEST_ACL needs a build with the option acl");
}
#endif

bool acl_applies(const server_options_t *options) {
  if (getenv("BELAY_TEST_ACL") == NULL || options->sentinel)
    return false;
  for (size_t i = 0; i < SERVER_ARGUMENTS && options->arguments[i] != NULL; i++)
    if (strcmp(options->arguments[i], "--rename-command") == 0)
      return false; /* rules with a command that it does not have are no rules */
  return true;
}

void acl_skip(const char *why) {
  if (getenv("BELAY_TEST_ACL") == NULL)
    return;
  print_message("skipped: %s\n", why);
  skip();
}

void acl_write(FILE *out, const server_options_t *options) {
  char rules[RULES_MAX];
  write_rules(rules, options->cluster);
  fprintf(out, "user admin on \">%s\" ~* &* +@all\n", ACL_ADMIN_PASSWORD);
  fprintf(out, "user worker \">at work\" %s\n", rules);
  /* A test's own password is that of clients without a user name. Otherwise no client is that
   * user, but a server reads its AOF as that user: see "Rights" in adapters/redis/README.md. */
  if (options->password != NULL)
    fprintf(out, "user default \">%s\" %s\n", options->password, rules);
  else
    fprintf(out, "user default off resetpass ~* &* +@all\n");
  fprintf(out, "masteruser admin\nmasterauth \"%s\"\n", ACL_ADMIN_PASSWORD);
}

/* ---- what is said behind the scenes ---- */

static bool is_word(const resp_words_t *words, size_t i, const char *word) {
  return i < words->count && words->len[i] == strlen(word) &&
         memcmp(words->word[i], word, words->len[i]) == 0;
}

static void put(resp_words_t *words, const char *word) {
  assert_true(words->count < RESP_WORDS);
  words->word[words->count] = word;
  words->len[words->count++] = strlen(word);
}

/* Another password from now on; or, where none would be asked for, the one that there was. */
static void change_password(resp_words_t *words) {
  static char rule[128];
  snprintf(rule, sizeof rule, ">%s", words->len[3] == 0 ? "at work" : words->word[3]);
  words->count = 0;
  put(words, "ACL");
  put(words, "SETUSER");
  put(words, "worker");
  put(words, "resetpass");
  put(words, rule);
}

void acl_translate(const server_options_t *options, resp_words_t *words) {
  static char rules[RULES_MAX];
  const char *each[RESP_WORDS];
  if (!acl_applies(options) || options->password != NULL)
    return;
  if (is_word(words, 0, "CONFIG") && is_word(words, 1, "SET") && is_word(words, 2, "requirepass"))
    change_password(words);
  if (!is_word(words, 0, "ACL") || !is_word(words, 1, "SETUSER") || !is_word(words, 2, "default"))
    return;
  resp_words_t said = *words;
  words->count = 2;
  put(words, "worker");
  for (size_t i = 3; i < said.count; i++) {
    if (!is_word(&said, i, "+@all") && !is_word(&said, i, "allkeys") &&
        !is_word(&said, i, "allchannels")) {
      put(words, said.word[i]);
      continue;
    }
    write_rules(rules, options->cluster);
    size_t n = divide(rules, each, RESP_WORDS);
    for (size_t j = 0; j < n; j++)
      put(words, each[j]);
  }
}

static bool log_in(resp_client_t *client) {
  const resp_words_t auth = {3,
                             {"AUTH", ACL_ADMIN, ACL_ADMIN_PASSWORD},
                             {4, sizeof ACL_ADMIN - 1, sizeof ACL_ADMIN_PASSWORD - 1}};
  resp_t *reply = resp_call(client, &auth);
  bool ok = reply != NULL && reply->type == RESP_STATUS;
  resp_free(reply);
  return ok;
}

int acl_dial(const server_options_t *options, resp_client_t *client, const char *path) {
  static const server_options_t none;
  int error = resp_dial_unix(client, path);
  if (error != 0 || !acl_applies(options == NULL ? &none : options) || log_in(client))
    return error;
  resp_hang_up(client);
  return -1;
}

const char *acl_login(const server_options_t *options) {
  static char login[600]; /* room for the URL */
  snprintf(login, sizeof login, ":%s@", options->password == NULL ? "" : options->password);
  if (options->password != NULL)
    return login;
  return acl_applies(options) ? "worker:at%20work@" : "";
}

/* The rules of a least-privilege user, as text. The table behind them covers all scripts and all
 * headers. */
#include <belay.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.gen.h"
#include "support/base/test.h"

#define RULES_MAX 4096

static belay_acl_options_t usual(const char *const *names, size_t n) {
  belay_acl_options_t options;
  belay_acl_options_init(&options);
  options.names = names;
  options.names_count = n;
  return options;
}

static const char *rules_of(const belay_acl_options_t *options) {
  static char rules[RULES_MAX];
  size_t len;
  assert_error(belay_acl_rules(options, rules, sizeof rules, &len), 0);
  assert_int_equal(strlen(rules), len);
  return rules;
}

/* ends: characters that may follow the word, beside the end of the text. */
static bool has_before(const char *text, const char *word, size_t len, const char *ends) {
  for (const char *at = text; (at = strstr(at, " +")) != NULL;) {
    at += 2;
    if (strncmp(at, word, len) == 0 && (at[len] == '\0' || strchr(ends, at[len]) != NULL))
      return true;
  }
  return false;
}

static bool has_word(const char *text, const char *word, size_t len) {
  return has_before(text, word, len, " ");
}

static bool allows(const belay_acl_options_t *options, const char *word) {
  return has_word(rules_of(options), word, strlen(word));
}

/* ---- the text ---- */

TEST(text_of_the_rules) {
  static const char *const parts[] = {"app", "e*u"}, *const keys[] = {"door", "a[1]"},
                           *const names[] = {"topic", "sweep"};
  belay_acl_options_t options = usual(names, 2);
  options.namespace_parts = parts;
  options.namespace_count = 2;
  assert_string_equal(
      rules_of(&options),
      "on resetkeys resetchannels clearselectors -@all ~app::e\\*u::* &app::e\\*u::* "
      "+client|kill +client|setname +command|info +hello +info|replication +info|server +ping "
      "+publish +scan +subscribe +unlink +unsubscribe");
  options.keys = keys;
  options.keys_count = 2;
  options.db = 7;
  options.server_version = 60200;
  assert_string_equal(rules_of(&options),
                      "on resetkeys resetchannels -@all ~app::e\\*u::* ~door ~door::contended "
                      "~a\\[1\\] ~a\\[1\\]::contended "
                      "&app::e\\*u::* &door::wake &a\\[1\\]::wake "
                      "+client|kill +client|setname +command|info +hello +info|replication "
                      "+info|server +ping +publish +scan +subscribe +unlink +unsubscribe "
                      "+select|7");
  options.server_version = 60000;
  options.keys_count = 0;
  assert_null(strchr(rules_of(&options), '&'));
  assert_null(strstr(rules_of(&options), "resetchannels"));
  options.sentinel = true;
  options.server_version = 70000;
  assert_string_equal(
      rules_of(&options),
      "on resetkeys resetchannels clearselectors -@all "
      "&+failover-state-wait-promotion &+promoted-slave &+sdown "
      "&+switch-master &+vote-for-leader +hello +sentinel|get-master-addr-by-name +sentinel|master "
      "+sentinel|replicas "
      "+sentinel|sentinels +subscribe");
  assert_non_null(strstr(rules_of(NULL), " ~belay::* &belay::* "));
}

TEST(each_word_once_and_in_order) {
  static const char *const names[] = {"all", "cluster", "lock", "all"};
  belay_acl_options_t options = usual(names, 4);
  char last[64] = "";
  unsigned words = 0;
  for (const char *at = rules_of(&options); (at = strstr(at, " +")) != NULL; words++) {
    char word[64];
    at += 2;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
    if (strcmp(last, word) >= 0)
      fail_msg("%s is not before %s", last, word);
    snprintf(last, sizeof last, "%s", word);
  }
  assert_true(words > 70);
}

/* Commands that no user of belay may ever get. */
TEST(commands_never_allowed) {
  static const char *const names[] = {"all", "cluster", "replicas", "sentinel"};
  static const char *const never[] = {"keys",   "flushall", "flushdb",  "config",       "script",
                                      "debug",  "monitor",  "shutdown", "script|flush", "acl",
                                      "client", "info",     "cluster",  "command",      "@all",
                                      "select", "auth",     "save",     "replicaof",    "migrate"};
  belay_acl_options_t options = usual(names, 4);
  options.db = 3;
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    if (allows(&options, never[i]))
      fail_msg("%s is allowed", never[i]);
  assert_null(strstr(rules_of(&options), "nopass"));
  assert_null(strchr(rules_of(&options), '>'));
}

/* A server refuses all rules if it does not know one of the commands. */
TEST(commands_depend_on_the_server) {
  static const char *const names[] = {"all", "cluster"};
  static const struct {
    const char *word;
    unsigned version;
    bool valkey, cluster, allowed;
  } rows[] = {
      {"sintercard", 70000, false, false, true},   {"sintercard", 60200, false, false, false},
      {"sinter", 60200, false, false, true},       {"sinter", 70000, false, false, false},
      {"publish", 70000, false, false, true},      {"publish", 70000, false, true, false},
      {"spublish", 70000, false, true, true},      {"spublish", 70000, false, false, false},
      {"publish", 60200, false, true, true},       {"spublish", 60200, false, true, false},
      {"ssubscribe", 80000, true, true, true},     {"subscribe", 80000, true, true, false},
      {"cluster|slots", 60200, false, true, true}, {"delex", 80200, false, false, false},
      {"delex", 80400, false, false, true},        {"delex", 90000, true, false, false},
      {"delifeq", 90000, true, false, true},       {"delifeq", 80000, true, false, false},
      {"delifeq", 90000, false, false, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay_acl_options_t options = usual(names, rows[i].cluster ? 2 : 1);
    options.server_version = rows[i].version;
    options.valkey = rows[i].valkey;
    if (allows(&options, rows[i].word) != rows[i].allowed)
      fail_msg("row %zu: %s", i, rows[i].word);
  }
}

/* ---- what is refused ---- */

TEST(buffer_too_small) {
  char rules[RULES_MAX];
  size_t len, again;
  assert_error(belay_acl_rules(NULL, NULL, 0, &len), 0);
  assert_true(len > 500);
  for (size_t size = 0; size <= len; size++) {
    memset(rules, 'x', sizeof rules);
    assert_error(belay_acl_rules(NULL, rules, size, &again), BELAY_EINVAL);
    assert_int_equal(again, len);
    assert_int_equal(rules[0], size > 0 ? '\0' : 'x');
    assert_int_equal(rules[size], 'x');
  }
  assert_error(belay_acl_rules(NULL, rules, len + 1, &again), 0);
  assert_int_equal(strlen(rules), len);
  assert_error(belay_acl_rules(NULL, rules, sizeof rules, NULL), BELAY_EINVAL);
}

TEST(options_out_of_range) {
  static const char *const empty[] = {""}, *const spaced[] = {"a b"}, *const none[] = {NULL},
                           *const unknown[] = {"locks"}, *const part[] = {"lease"},
                           *const control[] = {"a\nb"};
  char lengthy[1026];
  const char *const too_long[] = {lengthy};
  memset(lengthy, 'x', sizeof lengthy);
  lengthy[1025] = '\0';
  const struct {
    const char *const *parts, *const *keys, *const *names;
    size_t parts_count, keys_count, names_count;
    int db;
    unsigned version;
    bool fine;
  } rows[] = {
      {control, control, NULL, 1, 0, 0, 0, 70000, true}, /* in a namespace it is escaped */
      {empty, NULL, NULL, 1, 0, 0, 0, 70000, false},
      {none, NULL, NULL, 1, 0, 0, 0, 70000, false},
      {NULL, NULL, NULL, 1, 0, 0, 0, 70000, false},
      {control, NULL, NULL, 0, 0, 0, 0, 70000, false},
      {control, NULL, NULL, 9, 0, 0, 0, 70000, false},
      {spaced, NULL, NULL, 1, 0, 0, 0, 70000, false},
      {too_long, NULL, NULL, 1, 0, 0, 0, 70000, false},
      {control, control, NULL, 1, 1, 0, 0, 70000, false},
      {control, spaced, NULL, 1, 1, 0, 0, 70000, false},
      {control, empty, NULL, 1, 1, 0, 0, 70000, false},
      {control, too_long, NULL, 1, 1, 0, 0, 70000, false},
      {control, NULL, NULL, 1, 1, 0, 0, 70000, false},
      {control, NULL, unknown, 1, 0, 1, 0, 70000, false},
      {control, NULL, part, 1, 0, 1, 0, 70000, false},
      {control, NULL, empty, 1, 0, 1, 0, 70000, false},
      {control, NULL, none, 1, 0, 1, 0, 70000, false},
      {control, NULL, NULL, 1, 0, 1, 0, 70000, false},
      {control, NULL, NULL, 1, 0, 0, -1, 70000, false},
      {control, NULL, NULL, 1, 0, 0, 65536, 70000, false},
      {control, NULL, NULL, 1, 0, 0, 65535, 70000, true},
      {control, NULL, NULL, 1, 0, 0, 0, 59999, false},
      {control, NULL, NULL, 1, 0, 0, 0, 60000, true},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    size_t len = 1;
    belay_acl_options_t o;
    belay_acl_options_init(&o);
    o.namespace_parts = rows[i].parts;
    o.namespace_count = rows[i].parts_count;
    o.keys = rows[i].keys;
    o.keys_count = rows[i].keys_count;
    if (rows[i].names_count > 0) {
      o.names = rows[i].names;
      o.names_count = rows[i].names_count;
    }
    o.db = rows[i].db;
    o.server_version = rows[i].version;
    int error = belay_acl_rules(&o, NULL, 0, &len);
    if (error != (rows[i].fine ? 0 : BELAY_EINVAL))
      fail_msg("row %zu: %s", i, belay_err_name(error));
    assert_int_equal(len > 0, rows[i].fine);
  }
  belay_acl_options_init(NULL);
}

/* ---- the table ---- */

static bool is_name(const char *text) {
  const char *name;
  for (size_t i = 0; (name = belay_acl_name(i, NULL)) != NULL; i++)
    if (strcmp(name, text) == 0)
      return true;
  return false;
}

static const char *source_path(const char *below) {
  static char path[1024];
  const char *tests = getenv("BELAY_TEST_SOURCE");
  snprintf(path, sizeof path, "%s/../%s", tests != NULL ? tests : "test", below);
  return path;
}

/* Each header has a name in the table, or needs no server. */
TEST(each_header_has_a_name) {
  /* fence: a script of the caller */
  static const char others[] = " acl bytes client error export fence loop request uuid tls ";
  unsigned names = 0;
  DIR *dir = opendir(source_path("include/belay"));
  assert_non_null(dir);
  for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    char name[64], word[68];
    size_t len = strlen(entry->d_name);
    if (len < 3 || strcmp(entry->d_name + len - 2, ".h") != 0)
      continue;
    snprintf(name, sizeof name, "%.*s", (int)(len - 2), entry->d_name);
    snprintf(word, sizeof word, " %s ", name);
    if (!is_name(name) && strstr(others, word) == NULL)
      fail_msg("%s.h has no name in the table", name);
    names += is_name(name);
  }
  closedir(dir);
  assert_true(names > 20);
}

/* The family of scripts whose names do not begin with it. */
static const struct {
  const char *script, *names[4];
} owners[] = {
    {"barrier_arrive", {"latch"}},
    {"barrier_withdraw", {"latch"}},
    {"fair_acquire", {"lock"}},
    {"fair_release", {"lock"}},
    {"fence_accept", {"redlock", "rwlock"}},
    {"fence_guard", {NULL}},
    {"fence_read", {"redlock", "rwlock"}},
    {"limit", {"limiter"}},
    {"limit_log", {"limiter"}},
    {"lock_acquire", {"lock", "redlock"}},
    {"lock_extend", {"lock", "redlock"}},
    {"lock_release", {"lock", "redlock", "election"}},
    {"multi_acquire", {"multilock"}},
    {"multi_extend", {"multilock"}},
    {"multi_release", {"multilock"}},
    {"quarantine", {"lock", "redlock", "rwlock"}},
    {"reentrant_acquire", {"lock"}},
    {"reentrant_extend", {"lock"}},
    {"reentrant_release", {"lock"}},
};

/* true if the user may run the command, or a subcommand, on some server version. */
static bool ever_allows(const char *name, const char *word, size_t len) {
  static const unsigned versions[] = {60000, 70000};
  for (size_t i = 0; i < 2; i++) {
    belay_acl_options_t options = usual(&name, 1);
    options.server_version = versions[i];
    if (has_before(rules_of(&options), word, len, " |"))
      return true;
  }
  return false;
}

/* Quoted words in capitals in a script's code: those of call('...'), and other commands, unless
 * they are arguments as well. */
static void check_script(const belay__script_t *script, const char *name) {
  for (const char *at = script->text; (at = strchr(at, '\'')) != NULL; at++) {
    char word[64];
    size_t len = strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    if (len < 2 || at[1 + len] != '\'' || len >= sizeof word)
      continue;
    for (size_t i = 0; i < len; i++)
      word[i] = (char)tolower((unsigned char)at[1 + i]);
    word[len] = '\0';
    bool called = at - script->text > 5 && memcmp(at - 5, "call(", 5) == 0;
    bool known =
        ever_allows("all", word, len) && strcmp(word, "get") != 0 && strcmp(word, "set") != 0;
    if ((called || known) && !ever_allows(name, word, len))
      fail_msg("%s.lua calls %s, which %s is not allowed", script->name, word, name);
  }
}

TEST(each_script_is_allowed) {
  unsigned checked = 0;
  for (size_t i = 0; i < BELAY__SCRIPTS; i++) {
    const belay__script_t *script = belay__scripts[i];
    size_t row = 0, rows = sizeof owners / sizeof *owners;
    while (row < rows && strcmp(owners[row].script, script->name) != 0)
      row++;
    char own[64];
    snprintf(own, sizeof own, "%.*s", (int)strcspn(script->name, "_"), script->name);
    const char *const names[4] = {own};
    for (const char *const *name = row < rows ? owners[row].names : names; *name != NULL; name++) {
      if (!is_name(*name))
        fail_msg("nothing in the table is about %s.lua", script->name);
      check_script(script, *name);
      checked++;
    }
  }
  assert_true(checked >= BELAY__SCRIPTS);
}

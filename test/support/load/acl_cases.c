#include "support/load/acl_cases.h"

#include <ctype.h>
#include <stdio.h>

#include "scripts.gen.h"
#include "support/servers/acl.h"

#define RULES_MAX 4096
#define NAMES_MAX 8
#define WORDS_MAX 128
#define NODES_MAX 4
#define CONNECTS_MAX 8 /* a connection class each, the listener, and a few more */

static const char *missing; /* the word that the user lacks; NULL: none */
static server_t *nodes[NODES_MAX];

bool acl_case_allows(const char *word) {
  return missing == NULL || (word != NULL && strcmp(missing, word) == 0);
}

belay_client_t *acl_case_node(env_t *env, unsigned i) {
  belay_client_options_t options = client_options();
  options.close_timeout_ms = 20;
  return env_connect(env, acl_user_url(nodes[i]), &options);
}

void acl_case_await_subscriber(env_t *env, const char *key) {
  char channel[256];
  snprintf(channel, sizeof channel, "%s::wake", key);
  if (missing == NULL)
    env_until(env, server_listeners(env->server, channel) > 0);
}

/* ---- words ---- */

typedef struct words {
  char text[RULES_MAX];
  size_t n;
  const char *at[WORDS_MAX];
} words_t;

static void divide(words_t *words, const char *text) {
  char *next;
  snprintf(words->text, sizeof words->text, "%s", text);
  words->n = 0;
  for (char *word = strtok_r(words->text, " ", &next); word != NULL;
       word = strtok_r(NULL, " ", &next)) {
    assert_true(words->n < WORDS_MAX);
    words->at[words->n++] = word;
  }
}

static bool has(const char *text, const char *word) {
  words_t words;
  divide(&words, text == NULL ? "" : text);
  for (size_t i = 0; i < words.n; i++)
    if (strcmp(words.at[i], word) == 0)
      return true;
  return false;
}

static void rules_for(const char *names, char *out) {
  words_t words;
  size_t len;
  belay_acl_options_t options;
  belay_acl_options_init(&options);
  divide(&words, names);
  options.names = words.at;
  options.names_count = words.n;
  options.server_version = acl_version();
  assert_int_equal(belay_acl_rules(&options, out, RULES_MAX, &len), 0);
}

/* ---- the user ---- */

static void add(resp_words_t *words, const char *word) {
  assert_true(words->count < RESP_WORDS);
  words->word[words->count] = word;
  words->len[words->count++] = strlen(word);
}

void acl_user_set_rules(server_t *server, const char *rules, const char *less) {
  static const char *const first[] = {"ACL", "SETUSER", "worker", "reset", ">secret"};
  resp_words_t command = {0};
  words_t words;
  for (size_t i = 0; i < sizeof first / sizeof *first; i++)
    add(&command, first[i]);
  divide(&words, rules);
  for (size_t i = 0; i < words.n; i++)
    if (less == NULL || words.at[i][0] != '+' || strcmp(words.at[i] + 1, less) != 0)
      add(&command, words.at[i]);
  const resp_t *reply = server_ask_words(server, &command);
  if (reply->type == RESP_ERROR)
    fail_msg("%s: %s", rules, reply->str);
}

void acl_user_set_features(server_t *server, const char *names, const char *less) {
  char rules[RULES_MAX];
  rules_for(names, rules);
  acl_user_set_rules(server, rules, less);
}

const char *acl_user_url(const server_t *server) {
  static char url[160];
  if (server_path(server) != NULL)
    snprintf(url, sizeof url, "unix://worker:secret@%s", server_path(server));
  else
    snprintf(url, sizeof url, "redis://worker:secret@127.0.0.1:%d", server_port(server));
  return url;
}

/* ---- one acl_case ---- */

typedef struct outcome {
  int status;
  uint64_t connects;
  char detail[256];
} outcome_t;

static outcome_t run(const acl_case_t *acl_case) {
  server_t *server = nodes[0];
  belay_client_options_t options = client_options();
  options.close_timeout_ms = 20; /* an undo that the user may not run is not waited for */
  env_t *env = env_open_at(acl_user_url(server), &options);
  env->server = server;
  outcome_t result = {.status = acl_case->run(env)};
  bool noted = result.status != 0 && env->failed == result.status;
  snprintf(result.detail, sizeof result.detail, "%s",
           noted ? env->detail : belay_detail(env->belay));
  if (result.status == 0 && missing == NULL)
    env_settle(env); /* of several servers not all have answered yet */
  belay_client_stats_t stats = client_stats(env);
  result.connects = stats.connects + stats.connect_errors;
  env->server = NULL; /* there is more to be done with it */
  env_close(env);
  return result;
}

/* The commands that the server executed, without the test's own queries. */
static void executed(server_t *server, char *out, size_t size) {
  static const char own[] =
      "acl|setuser config|resetstat flushall info auth pubsub|numsub mset dbsize";
  size_t n = 0;
  out[0] = '\0';
  const char *at = server_string(server, "INFO", "commandstats", NULL);
  while ((at = strstr(at, "cmdstat_")) != NULL) {
    char word[64];
    at += strlen("cmdstat_");
    snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ":"), at);
    const char *calls = strstr(at, "calls=");
    if (calls != NULL && strtoll(calls + 6, NULL, 10) > 0 && !has(own, word))
      n += (size_t)snprintf(out + n, size - n, "%s%s", n > 0 ? " " : "", word);
    assert_true(n < size);
  }
}

/* Whether the rules allow it: by itself, or with some first arguments. */
static bool allowed(const words_t *rules, const char *word) {
  size_t len = strlen(word);
  for (size_t i = 0; i < rules->n; i++)
    if (rules->at[i][0] == '+' && strncmp(rules->at[i] + 1, word, len) == 0 &&
        (rules->at[i][len + 1] == '\0' || rules->at[i][len + 1] == '|'))
      return true;
  return false;
}

/* On all servers, which have nothing else. */
static void give(const acl_case_t *acl_case, const char *less) {
  missing = less;
  for (unsigned i = 0; i <= acl_case->more; i++) {
    server_do(nodes[i], "FLUSHALL", NULL);
    acl_user_set_features(nodes[i], acl_case->names, less);
  }
}

/* The words that the acl_case is to show. */
typedef struct shown {
  words_t rules;
  char base[RULES_MAX];    /* rules of every client, and WAIT */
  char covered[RULES_MAX]; /* rules that other cases cover */
} shown_t;

static bool is_shown(const shown_t *shown, const acl_case_t *acl_case, const char *rule) {
  return rule[0] == '+' && !has(shown->base, rule) && !has(shown->covered, rule) &&
         !has(acl_case->elsewhere, rule + 1);
}

static void check_whole(const acl_case_t *acl_case, const shown_t *shown) {
  const words_t *rules = &shown->rules;
  char used[RULES_MAX];
  give(acl_case, NULL);
  server_do(nodes[0], "CONFIG", "RESETSTAT", NULL);
  outcome_t result = run(acl_case);
  if (result.status != 0)
    fail_msg("%s: %s: %s", acl_case->names, belay_err_name(result.status), result.detail);
  executed(nodes[0], used, sizeof used);
  words_t words;
  divide(&words, used);
  for (size_t i = 0; i < words.n; i++)
    if (!allowed(rules, words.at[i]))
      fail_msg("%s: %s is executed, and not allowed", acl_case->names, words.at[i]);
  for (size_t i = 0; i < rules->n; i++) {
    const char *word = rules->at[i] + 1;
    if (is_shown(shown, acl_case, rules->at[i]) && !has(used, word))
      fail_msg("%s: %s is allowed, and never executed", acl_case->names, word);
  }
}

/* In a server's words, or in the line of the script that they are about. Where a script has
 * caught the error, or has the command in a variable, it is only the script. */
static bool names(const char *detail, const char *word) {
  char quoted[64];
  if (strcasestr(detail, word) != NULL)
    return true;
  snprintf(quoted, sizeof quoted, "'%s'", word);
  for (size_t i = 0; i < BELAY__SCRIPTS; i++) {
    const belay__script_t *script = belay__scripts[i];
    size_t len = strlen(script->name);
    if (strncmp(detail, script->name, len) != 0 || detail[len] != ':' || strstr(detail, "call('"))
      continue;
    return strcasestr(script->text, quoted) != NULL || strstr(detail, "call(ARGV[") != NULL;
  }
  return false;
}

static void check_without(const acl_case_t *acl_case, const char *word) {
  give(acl_case, word);
  outcome_t result = run(acl_case);
  if (getenv("BELAY_TEST_LOG") != NULL)
    print_message("# %s without %s: %s: %s\n", acl_case->names, word, belay_err_name(result.status),
                  result.detail);
  int expected = has(acl_case->spared, word) ? 0 : BELAY_EPERM;
  if (result.status != expected)
    fail_msg("%s without %s: %s, not %s: %s", acl_case->names, word, belay_err_name(result.status),
             belay_err_name(expected), result.detail);
  if (expected != 0 && !names(result.detail, word))
    fail_msg("%s without %s: it is not named: %s", acl_case->names, word, result.detail);
  if (result.connects > CONNECTS_MAX)
    fail_msg("%s without %s: %llu connections", acl_case->names, word,
             (unsigned long long)result.connects);
}

void acl_case_check(const acl_case_t *acl_case) {
  static shown_t shown;
  char text[RULES_MAX];
  assert_true(acl_case->more < NODES_MAX);
  for (unsigned i = 0; i <= acl_case->more; i++)
    nodes[i] = server_start(NULL);
  rules_for(acl_case->names, text);
  divide(&shown.rules, text);
  rules_for("durable", shown.base);
  rules_for(acl_case->covered == NULL ? "durable" : acl_case->covered, shown.covered);
  check_whole(acl_case, &shown);
  for (size_t i = 0; i < shown.rules.n; i++)
    if (is_shown(&shown, acl_case, shown.rules.at[i]))
      check_without(acl_case, shown.rules.at[i] + 1);
  missing = NULL;
  for (unsigned i = 0; i <= acl_case->more; i++)
    server_stop(nodes[i]);
}

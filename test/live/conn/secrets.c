/* A server that repeats all arguments in its errors: logs, details and traces contain only names
 * of commands, and keys. */
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/fixtures/data/blooms.h"
#include "support/fixtures/limit/buckets.h"
#include "support/fixtures/cache/cache.h"
#include "support/fixtures/data/counters.h"
#include "support/fixtures/data/dedups.h"
#include "support/deployments/fake.h"
#include "support/fixtures/data/ids.h"
#include "support/fixtures/data/once.h"
#include "support/fixtures/data/permissions.h"
#include "support/fixtures/lease/rw.h"
#include "support/fixtures/data/seen.h"
#include "support/fixtures/data/sessions.h"
#include "support/fixtures/data/stands.h"

/* ---- the server ---- */

enum { SENT_WORDS_MAX = 256, HEAD = 6, LINE_MAX_LEN = 4096 };

/* The form of an error: its beginning, the repeated part of each word, and the text around it. */
typedef struct manner {
  const char *code;
  size_t most;
  const char *before, *after;
} manner_t;

static const manner_t manners[] = {
    {"ERR unknown command 'X', with args beginning with:", 128, "'", "'"},
    {"ERR you said", 4000, "", ""},
    {"ERR no such thing:", 8, "`", "`,"},
    {"OOM", 4000, "\"", "\""},
    {"WRONGTYPE", 4000, "", ""},
    {"INVALIDOBJ", 40, "[", "]"},
    {"CROSSSLOT", 4000, "", ";"},
    {"NOPERM this user has no permissions to run", 4000, "'", "'"},
    {"ERR The user executing the script can't", 4000, "", ""},
    {"ERR Error running script (call to f_0): @user_script:1:", 4000, "", ""},
    {"ERR value is not an integer", 64, "'", "'"},
    {"MOVED 1 127.0.0.1:1", 4000, "", ""},
    {"LOADING", 4000, "", ""},
    {"READONLY", 4000, "", ""},
};
#define MANNERS (sizeof manners / sizeof *manners)

/* The beginnings of the received words. */
typedef struct echo {
  const manner_t *manner;
  bool grants; /* it does what takes a lock, and refuses all else */
  fake_t *fake;
  env_t *env;
  pthread_mutex_t mutex;
  unsigned errors;
  size_t sent_words_len;
  char sent_words[SENT_WORDS_MAX][HEAD + 1];
} echo_t;

/* Keys are none; and an operation's id is part of one. The publish command of a script is none. */
static bool is_secret(const char *word) {
  return strlen(word) >= HEAD && strncmp(word, "belay::", 7) != 0 && strcmp(word, "PUBLISH") != 0 &&
         strcmp(word, "SPUBLISH") != 0;
}

static void remember(echo_t *echo, const char *const *words, size_t count) {
  pthread_mutex_lock(&echo->mutex);
  bool script = strncmp(words[0], "EVAL", 4) == 0; /* that is no secret */
  echo->errors++;
  for (size_t i = script ? 2 : 1; i < count && echo->sent_words_len < SENT_WORDS_MAX; i++)
    if (is_secret(words[i]))
      snprintf(echo->sent_words[echo->sent_words_len++], HEAD + 1, "%s", words[i]);
  pthread_mutex_unlock(&echo->mutex);
}

static void repeat(fake_link_t *link, const manner_t *manner, const char *const *words,
                   size_t count) {
  static char line[LINE_MAX_LEN + 3];
  size_t n = (size_t)snprintf(line, LINE_MAX_LEN, "-%s", manner->code);
  for (size_t i = 1; i < count && n < LINE_MAX_LEN; i++)
    n += (size_t)snprintf(line + n, LINE_MAX_LEN - n, " %s%.*s%s", manner->before,
                          (int)manner->most, words[i], manner->after);
  for (char *p = line; *p != '\0'; p++)
    if (*p == '\r' || *p == '\n')
      *p = ' ';
  memcpy(line + strlen(line), "\r\n", 3);
  fake_say(link, line);
}

static void answer_with_echo(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  echo_t *echo = arg;
  bool takes = strcmp(words[0], "SET") == 0 ||
               (strncmp(words[0], "EVAL", 4) == 0 && fake_link_command(link) == 1);
  if (fake_is_handshake(words) || (echo->grants && takes)) {
    fake_behave(link, words, count);
    return;
  }
  remember(echo, words, count);
  repeat(link, echo->manner, words, count);
}

/* ---- the texts of the library ---- */

static const char *const secrets[] = {"hunter2-password", "value-0f-worth", "alice-in-chains"};

static void check(echo_t *echo, const char *where, const char *text) {
  for (const char *p = text; *p != '\0'; p++)
    if (*p < ' ' || *p > '~')
      fail_msg("%s is not in print: \"%s\"", where, text);
  for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
    if (strstr(text, secrets[i]) != NULL)
      fail_msg("%s has \"%s\" in it: \"%s\"", where, secrets[i], text);
  pthread_mutex_lock(&echo->mutex);
  for (size_t i = 0; i < echo->sent_words_len; i++)
    if (strstr(text, echo->sent_words[i]) != NULL)
      fail_msg("%s has \"%s\" in it: \"%s\"", where, echo->sent_words[i], text);
  pthread_mutex_unlock(&echo->mutex);
}

static void on_line(env_t *env, const char *line) {
  check(env->arg, "a line of the log", line);
}

static void on_trace(void *ctx, const belay_trace_t *trace) {
  const char *name = trace->command;
  (void)ctx;
  assert_true(strlen(name) < 32);
  for (; *name != '\0'; name++)
    assert_true(isalnum((unsigned char)*name) || *name == '_');
}

static void echo_open(echo_t *echo, const manner_t *manner, bool grants) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 400 * slow();
  options.reconnect_max_ms = 20;
  options.close_timeout_ms = 10;
  options.trace = on_trace;
  options.password = secrets[0];
  *echo = (echo_t){.manner = manner, .grants = grants};
  pthread_mutex_init(&echo->mutex, NULL);
  echo->fake = fake_start(&(fake_options_t){.on_command = answer_with_echo, .arg = echo});
  echo->env = env_open_at(fake_url(echo->fake), &options);
  echo->env->on_log = on_line;
  echo->env->arg = echo;
}

static void echo_close(echo_t *echo) {
  env_close(echo->env);
  fake_stop(echo->fake);
  pthread_mutex_destroy(&echo->mutex);
}

/* ---- one of each family ---- */

static void use_lock(env_t *env) {
  belay_lock_options_t fenced = lock_options(), fair = lock_options(), owned = lock_options();
  fenced.fencing = true;
  fair.fair = true;
  owned.owner = belay_string(secrets[2]);
  (void)try_lock(contender_new(env, "door", NULL));
  (void)try_lock(contender_new(env, "gate", &fenced));
  (void)try_lock(contender_new(env, "desk", &fair));
  (void)try_lock(contender_new(env, "room", &owned));
}

static void use_rwlock(env_t *env) {
  (void)try_lock(reader_of(env, env->client, "page", NULL));
  (void)try_lock(writer_of(env, env->client, "page", NULL));
}

static void use_limiter(env_t *env) {
  belay_limit_t limit = bucket_limit(10, 1000000, 10);
  (void)take(env, limiter_new(env, &limit, 1), "key", 1);
}

static void use_bucket(env_t *env) {
  static bucket_t bucket;
  bucket_op_t op = {.begun = 0};
  bucket_open(&bucket, env, 10, true);
  assert_error(begin_fetch(&bucket, &op, "key", 1), 0);
  (void)end_of_bucket_op(&op);
}

static void use_bloom(env_t *env) {
  static filter_t filter;
  filter_op_t op = {.n = 0};
  filter_new(&filter, env, 1000, 0.01);
  assert_error(begin_filter_add(&filter, &op, secrets[1], strlen(secrets[1])), 0);
  (void)end_of_filter_op(&op);
}

static void use_counter(env_t *env) {
  static counters_t counters;
  static count_t count;
  count = (count_t){.n = 0};
  counters_new(&counters, env, NULL);
  assert_error(BEGIN(&counters, &count, add_once, belay_string("key"), 1, belay_string("operation"),
                     on_result),
               0);
  (void)end_of_count(&count);
  assert_error(BEGIN(&counters, &count, add_field, belay_string("key"), belay_string(secrets[1]), 1,
                     on_result),
               0);
  (void)end_of_count(&count);
}

static void use_ids(env_t *env) {
  static generator_t generator;
  id_op_t ids = {.n = 0};
  belay_idgen_options_t options = idgen_options(BELAY_IDGEN_SEGMENT);
  generator_new(&generator, env, &options);
  assert_error(begin_get(&generator, &ids), 0);
  (void)end_of_id_op(&ids);
}

static void use_dedup(env_t *env) {
  static book_t book;
  static entry_t entry;
  entry = (entry_t){.n = 0};
  book_new(&book, env, BELAY_DEDUP_SET);
  assert_error(begin_mark(&book, &entry, "key", secrets[1]), 0);
  (void)end_of_entry(&entry);
  assert_error(begin_mark_once(&book, &entry, "key", "value-0f-worth,other", "operation"), 0);
  (void)end_of_entry(&entry);
}

static void use_active(env_t *env) {
  belay_active_t *active;
  belay_active_options_t options;
  seen_t seen = {.begun = 0};
  belay_active_options_init(&options);
  options.name = belay_string("daily");
  assert_error(belay_active_new(env->client, &options, &active), 0);
  (void)seen_do(env, &seen,
                belay_active_mark(active, r_, belay_string(secrets[2]), 86400000, on_seen));
}

static void use_presence(env_t *env) {
  belay_presence_t *presence;
  belay_presence_options_t options;
  seen_t seen = {.begun = 0};
  belay_presence_options_init(&options);
  options.name = belay_string("site");
  assert_error(belay_presence_new(env->client, &options, &presence), 0);
  (void)seen_do(env, &seen, belay_presence_set(presence, r_, 123456, on_seen));
}

static void use_ranking(env_t *env) {
  static stand_t stand;
  static query_t query;
  query = (query_t){.n = 0};
  stand_new(&stand, env, BELAY_RANKING_HIGH_FIRST, BELAY_RANKING_BY_MEMBER);
  assert_error(begin_submit(&stand, &query, BELAY_RANKING_SET, secrets[2], 1234567), 0);
  (void)end_of_query(&query);
}

static void use_session(env_t *env) {
  static place_t place;
  stay_t stay = {.begun = 0};
  place_new(&place, env);
  assert_error(begin_touch(&place, &stay, "user", secrets[1], "id-of-a-session", "operation"), 0);
  (void)end_of_stay(&stay);
}

static void use_idempotency(env_t *env) {
  static once_t once;
  turn_t turn = {.begun = 0};
  belay_idempotency_token_t token = {.bytes = {0x5e}};
  once_new(&once, env);
  assert_error(once_begin(&once, &turn, "key", secrets[2], 60000), 0);
  (void)end_of_turn(&turn);
  assert_error(once_finish(&once, &turn, "key", &token, secrets[1], 60000), 0);
  (void)end_of_turn(&turn);
}

static void use_cache(env_t *env) {
  static cache_t cache;
  static get_t get;
  change_t change = {.begun = 0};
  cache = (cache_t){.value = secrets[1]};
  get = (get_t){.begun = 0};
  cache_open(&cache, env, NULL);
  assert_error(begin_put(&cache, &change, "key", secrets[1]), 0);
  (void)end_of_change(&change);
  assert_error(begin_cache_get(&cache, &get, "key"), 0);
  (void)end_of_get(&get);
  get_free(&get);
}

static void use_permission(env_t *env) {
  static perms_t perms;
  static perm_op_t perm_op;
  static const belay_permission_field_t field = {.index = 7, .value = 1};
  perm_op = (perm_op_t){.n = 0};
  perms_new(&perms, env, 4);
  belay_request_t *request = begin_perm_op(&perms, &perm_op);
  int begun =
      belay_permission_set(perms.permission, request, belay_string("user"), &field, 1, on_perm_op);
  assert_error(begun_perm_op(&perm_op, begun), 0);
  env_until(env, perm_op.ended == perm_op.begun);
}

static unsigned calls; /* callbacks of those that have no helper of their own */

static void on_published(belay_request_t *request, int status, int64_t receivers) {
  (void)request;
  (void)status;
  (void)receivers;
  calls++;
}

static void on_counted_down(belay_request_t *request, int status, unsigned left) {
  (void)request;
  (void)status;
  (void)left;
  calls++;
}

static void on_campaigned(belay_election_t *election, int status) {
  (void)election;
  (void)status;
  calls++;
}

static void use_topic(env_t *env) {
  belay_request_t request = {.data = NULL};
  calls = 0;
  assert_error(belay_topic_publish(env->client, &request, belay_string("news"),
                                   belay_string(secrets[1]), on_published),
               0);
  env_until(env, calls == 1);
}

static void use_latch(env_t *env) {
  belay_request_t request = {.data = NULL};
  belay_latch_t *latch;
  calls = 0;
  assert_error(belay_latch_new(env->client, belay_string("start"), NULL, &latch), 0);
  assert_error(belay_latch_count_down(latch, &request, belay_string(secrets[2]), on_counted_down),
               0);
  env_until(env, calls == 1);
}

static void use_election(env_t *env) {
  belay_election_t *election;
  belay_election_options_t options;
  belay_election_options_init(&options);
  options.value = belay_string(secrets[1]);
  calls = 0;
  assert_error(belay_election_new(env->client, belay_string("crown"), &options, &election), 0);
  assert_error(belay_election_campaign(election, on_campaigned), 0);
  env_run_for(env, 50 * slow()); /* it goes on for ever */
}

static const struct {
  const char *name;
  void (*use)(env_t *env);
} families[] = {
    {"locks", use_lock},
    {"readers and writers", use_rwlock},
    {"limiters", use_limiter},
    {"buckets", use_bucket},
    {"Bloom filters", use_bloom},
    {"counters", use_counter},
    {"ids", use_ids},
    {"dedup", use_dedup},
    {"active users", use_active},
    {"presence", use_presence},
    {"rankings", use_ranking},
    {"sessions", use_session},
    {"operations", use_idempotency},
    {"caches", use_cache},
    {"permissions", use_permission},
    {"topics", use_topic},
    {"latches", use_latch},
    {"elections", use_election},
};

TEST(repeated_words_of_all_families) {
  for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
    print_message("%s\n", families[f].name);
    for (size_t m = 0; m < MANNERS; m++) {
      echo_t echo;
      echo_open(&echo, &manners[m], false);
      families[f].use(echo.env);
      env_until(echo.env, echo.errors > 0); /* an election goes on for ever */
      check(&echo, "the detail", belay_detail(echo.env->belay));
      echo_close(&echo);
    }
  }
}

/* A held lock's token is also stored on the server. */
TEST(repeated_token) {
  for (size_t m = 0; m < MANNERS; m++) {
    echo_t echo;
    char token[128];
    echo_open(&echo, &manners[m], true);
    contender_t *c = contender_new(echo.env, "door", NULL);
    assert_error(try_lock(c), 0);
    assert_true(belay_lock_token(c->lock, token, sizeof token) > 40);
    token[HEAD] = '\0';
    (void)extend(c, 60000);
    assert_null(strstr(belay_detail(echo.env->belay), token));
    check(&echo, "the detail", belay_detail(echo.env->belay));
    (void)release(c);
    assert_null(strstr(belay_detail(echo.env->belay), token));
    check(&echo, "the detail", belay_detail(echo.env->belay));
    echo_close(&echo);
  }
}

/* ---- who may not come in ---- */

static void repeat_the_password(fake_link_t *link, const char *const *words, size_t count,
                                void *arg) {
  echo_t *echo = arg;
  if (strcmp(words[0], "AUTH") != 0) {
    fake_behave(link, words, count);
    return;
  }
  remember(echo, words, count);
  repeat(link, echo->manner, words, count);
}

static void keep_detail(contender_t *contender, event_t event) {
  (void)event;
  snprintf(contender->arg, 256, "%s", belay_detail(contender->env->belay));
}

TEST(repeated_password) {
  for (int user = 0; user < 2; user++)
    for (size_t m = 0; m < MANNERS; m++) {
      echo_t echo = {.manner = &manners[m]};
      char detail[256] = "";
      belay_client_options_t options = client_options();
      options.username = user ? "bob" : NULL;
      options.password = secrets[0];
      pthread_mutex_init(&echo.mutex, NULL);
      echo.fake = fake_start(&(fake_options_t){.on_command = repeat_the_password, .arg = &echo});
      echo.env = env_open_at(fake_url(echo.fake), &options);
      echo.env->on_log = on_line;
      echo.env->arg = &echo;
      contender_t *c = contender_new(echo.env, "door", NULL);
      c->then = keep_detail;
      c->arg = detail;
      assert_error(try_lock(c), BELAY_EAUTH);
      assert_true(echo.errors > 0);
      assert_int_equal(echo.env->errors, 1); /* and it is said once */
      check(&echo, "the detail", detail);
      assert_memory_equal(detail, manners[m].code, 2); /* something of it is */
      echo_close(&echo);
    }
}

/* ---- what is not in print ---- */

static void say_what_is_not_in_print(fake_link_t *link, const char *const *words, size_t count,
                                     void *arg) {
  static const char hostile[] =
      "-ERR \x1b[2J\x1b]0;title\x07 \x80\xff \xe2\x80\xae txt.exe \xc2\x9b"
      "31m\x00 more\r\n";
  (void)arg;
  if (fake_is_handshake(words))
    fake_behave(link, words, count);
  else
    fake_say_bytes(link, hostile, sizeof hostile - 1);
}

TEST_ON(unprintable_text_is_escaped, fake,
        fake_start(&(fake_options_t){.on_command = say_what_is_not_in_print})) {
  char detail[256] = "";
  env_t *env = env_open_at(fake_url(fake), NULL);
  contender_t *c = contender_new(env, "door", NULL);
  c->then = keep_detail;
  c->arg = detail;
  assert_error(try_lock(c), BELAY_EREFUSED);
  assert_string_equal(detail, "ERR \\x1b[2J\\x1b]0;title\\x07 \\x80\\xff \\xe2\\x80\\xae txt.exe "
                              "\\xc2\\x9b31m\\x00 more");
  env_close(env);
}

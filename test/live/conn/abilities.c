/* Abilities of a server are asked once per connection, and used only if all connections have
 * them. A lock without notifications is released by one command where the server has it. No
 * available server has these commands: a fake server replies as their documentation says. */
#include <pthread.h>
#include <stdio.h>
#include <strings.h>

#include "support/fixtures/data/blooms.h"
#include "support/base/clock.h"
#include "support/fixtures/data/counters.h"
#include "support/deployments/fake.h"

/* ---- the fake server ---- */

/* A fake server that records the names of the commands it gets, "script" for all scripts. A
 * compare-and-delete is recorded with its words, in which KEY and TOKEN stand for those of the SET
 * before. */
typedef struct recorder {
  const char *commands; /* reply to COMMAND INFO; NULL: the fake's own */
  unsigned commands_of; /* by the connection of this number only; 0: by all */
  const char *removal;  /* reply to a compare-and-delete; NULL: 1 */
  const char *set;      /* reply to SET; NULL: the fake's own */
  bool slow_to_set;     /* answers the next SET when it is asked something else */
  bool owes;            /* that answer */
  fake_t *fake;
  env_t *env;
  pthread_mutex_t mutex;
  unsigned removals;
  char key[256], token[256], recorded[1024];
} recorder_t;

/* Repetitions of the last command are recorded once. */
static void note(recorder_t *recorder, const char *text) {
  size_t n = strlen(recorder->recorded), len = strlen(text);
  if (n >= len && strcmp(recorder->recorded + n - len, text) == 0)
    return;
  snprintf(recorder->recorded + n, sizeof recorder->recorded - n, "%s%s", n > 0 ? " " : "", text);
}

static void note_removal(recorder_t *recorder, const char *const *words, size_t count) {
  char text[600];
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    const char *word = strcmp(words[i], recorder->key) == 0     ? "KEY"
                       : strcmp(words[i], recorder->token) == 0 ? "TOKEN"
                                                                : words[i];
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? ":" : "", word);
  }
  note(recorder, text);
  recorder->removals++;
}

static bool is(const char *word, const char *name) {
  return strcasecmp(word, name) == 0;
}

static bool is_removal(const char *word) {
  return is(word, "DELIFEQ") || is(word, "DELEX");
}

static void note_command(recorder_t *recorder, const char *const *words, size_t count) {
  bool script = is(words[0], "EVAL") || is(words[0], "EVALSHA");
  if (is_removal(words[0])) {
    note_removal(recorder, words, count);
    return;
  }
  if (is(words[0], "SET") || script) {
    snprintf(recorder->key, sizeof recorder->key, "%s", words[script ? 3 : 1]);
    snprintf(recorder->token, sizeof recorder->token, "%s", words[script ? 4 : 2]);
  }
  note(recorder, script ? "script" : words[0]);
}

static void answer_by_script(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  recorder_t *recorder = arg;
  bool asks = is(words[0], "COMMAND") && recorder->commands != NULL &&
              (recorder->commands_of == 0 || recorder->commands_of == fake_link_number(link));
  pthread_mutex_lock(&recorder->mutex);
  const char *removal = recorder->removal;
  bool owed = recorder->owes;
  if (!fake_is_handshake(words))
    note_command(recorder, words, count);
  recorder->owes = recorder->slow_to_set && is(words[0], "SET");
  recorder->slow_to_set &= !recorder->owes;
  bool waits = recorder->owes;
  pthread_mutex_unlock(&recorder->mutex);
  if (owed)
    fake_say(link, "$-1\r\n");
  if (asks)
    fake_say(link, recorder->commands);
  else if (is_removal(words[0]) && removal != NULL)
    fake_say(link, removal);
  else if (is(words[0], "SET") && recorder->set != NULL)
    fake_say(link, recorder->set);
  else if (!waits)
    fake_behave(link, words, count);
}

/* Sets the reply to a compare-and-delete. */
static void answer_removals(recorder_t *recorder, const char *reply) {
  pthread_mutex_lock(&recorder->mutex);
  recorder->removal = reply;
  pthread_mutex_unlock(&recorder->mutex);
}

typedef void on_command_fn(fake_link_t *link, const char *const *words, size_t count, void *arg);

static recorder_t *recorder_open_with(recorder_t init, const char *knows,
                                      on_command_fn *on_command) {
  belay_client_options_t options = client_options();
  recorder_t *recorder = malloc(sizeof *recorder);
  *recorder = init;
  options.timeout_ms = prompt_ms();
  pthread_mutex_init(&recorder->mutex, NULL);
  recorder->fake =
      fake_start(&(fake_options_t){.on_command = on_command, .arg = recorder, .knows = knows});
  recorder->env = env_open_at(fake_url(recorder->fake), &options);
  return recorder;
}

static recorder_t *recorder_open(recorder_t init, const char *knows) {
  return recorder_open_with(init, knows, answer_by_script);
}

static void recorder_close(recorder_t *recorder) {
  env_close(recorder->env);
  fake_stop(recorder->fake);
  pthread_mutex_destroy(&recorder->mutex);
  free(recorder);
}

static bool has_recorded(recorder_t *recorder, const char *expected) {
  pthread_mutex_lock(&recorder->mutex);
  bool has = strcmp(recorder->recorded, expected) == 0;
  if (has)
    recorder->recorded[0] = '\0';
  pthread_mutex_unlock(&recorder->mutex);
  return has;
}

/* Calls without a waiter, such as PUBLISH, may still be in flight. */
static void expect_recorded(recorder_t *recorder, const char *name, const char *expected) {
  int64_t began = clock_now();
  while (!has_recorded(recorder, expected)) {
    if (clock_since_ms(began) > 10 * prompt_ms())
      fail_msg("%s: \"%s\", not \"%s\"", name, recorder->recorded, expected);
    stall_ms(1);
  }
}

/* A release sends no notification. */
static contender_t *silent_contender(recorder_t *recorder) {
  belay_lock_options_t options = lock_options();
  options.wakeup = BELAY_WAKE_POLL;
  return contender_new(recorder->env, "door", &options);
}

/* Connected: the abilities of the server are known. */
static contender_t *known_contender(recorder_t *recorder) {
  contender_t *c = silent_contender(recorder);
  assert_error(try_lock(c), 0);
  (void)release(c);
  env_settle(recorder->env);
  pthread_mutex_lock(&recorder->mutex);
  recorder->recorded[0] = '\0';
  recorder->removals = 0;
  pthread_mutex_unlock(&recorder->mutex);
  return c;
}

static void lock_and_release(contender_t *c) {
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
}

/* ---- the reply to COMMAND INFO ---- */

#define NONE "$-1\r\n"
#define HAS(len, name) "*2\r\n$" len "\r\n" name "\r\n:-2\r\n"
#define ALL_OF_7 HAS("11", "bitfield_ro") HAS("10", "ssubscribe")

TEST(command_info_replies) {
  static const struct {
    const char *name, *commands, *recorded;
  } rows[] = {
      {"nothing", "*4\r\n" NONE NONE NONE NONE, "script"},
      {"Redis 7", "*4\r\n" ALL_OF_7 NONE NONE, "SET script"},
      {"Redis 6", "*4\r\n" HAS("11", "bitfield_ro") NONE NONE NONE, "script"},
      {"Valkey 9", "*4\r\n" ALL_OF_7 HAS("7", "delifeq") NONE, "SET DELIFEQ:KEY:TOKEN"},
      {"Redis 8.4", "*4\r\n" ALL_OF_7 NONE HAS("5", "delex"), "SET DELEX:KEY:IFEQ:TOKEN"},
      {"all", "*4\r\n" ALL_OF_7 HAS("7", "delifeq") HAS("5", "delex"), "SET DELIFEQ:KEY:TOKEN"},
      {"that it is not allowed", "-NOPERM this user has no permissions\r\n", "script"},
      {"that it does not know",
       "-ERR unknown command 'COMMAND', with args beginning with: 'INFO' \r\n", "script"},
      {"too little", "*3\r\n" ALL_OF_7 NONE, "script"},
      {"too much", "*5\r\n" ALL_OF_7 NONE NONE NONE, "script"},
      {"something else", "*4\r\n" HAS("10", "ssubscribe") HAS("11", "bitfield_ro") NONE NONE,
       "script"},
      {"numbers", "*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n", "script"},
      {"nothing of all", "*4\r\n*0\r\n*0\r\n*0\r\n*0\r\n", "script"},
      {"yes", "+OK\r\n", "script"},
      {"nil", NONE, "script"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    recorder_t *recorder = recorder_open((recorder_t){.commands = rows[i].commands}, NULL);
    contender_t *c = known_contender(recorder);
    lock_and_release(c);
    expect_recorded(recorder, rows[i].name, rows[i].recorded);
    assert_int_equal(fake_connections(recorder->fake), 1);
    recorder_close(recorder);
  }
}

/* Before the first handshake no capability is known. */
TEST_IN(capabilities_unknown_before_the_handshake, recorder,
        recorder_open((recorder_t){0}, "delex")) {
  contender_t *c = silent_contender(recorder);
  assert_error(try_lock(c), 0);
  expect_recorded(recorder, "the first", "script");
  assert_error(release(c), 0);
  assert_error(try_lock(c), 0);
  expect_recorded(recorder, "the others", "DELEX:KEY:IFEQ:TOKEN SET");
}

/* An ability that one connection's server lacks is not used. */
TEST(one_connection_lacks_a_capability) {
  counters_t counters;
  count_t count = {.n = 0};
  recorder_t *recorder = recorder_open(
      (recorder_t){.commands = "*4\r\n" NONE NONE NONE NONE, .commands_of = 2}, "delifeq");
  contender_t *c = known_contender(recorder);
  lock_and_release(c);
  expect_recorded(recorder, "one connection", "SET DELIFEQ:KEY:TOKEN");
  counters_new(&counters, recorder->env, NULL);
  assert_error(BEGIN(&counters, &count, add, belay_string("n"), 1, on_result), 0);
  assert_error(end_of_count(&count), 0);
  assert_int_equal(fake_connections(recorder->fake), 2);
  lock_and_release(c);
  expect_recorded(recorder, "and another one", "INCRBY script");
  recorder_close(recorder);
}

static void hang_up_then_answer(fake_link_t *link, const char *const *words, size_t count,
                                void *arg) {
  if (is(words[0], "PING") && fake_link_number(link) == 1)
    fake_hang_up(link);
  else
    answer_by_script(link, words, count, arg);
}

/* The next server may be another one. */
TEST_IN(reconnect_resets_capabilities, recorder,
        recorder_open_with((recorder_t){.commands = "*4\r\n" NONE NONE NONE NONE, .commands_of = 2},
                           "delifeq", hang_up_then_answer)) {
  contender_t *c = known_contender(recorder);
  assert_error(try_lock(c), 0);
  expect_recorded(recorder, "the first", "SET");
  assert_error(begin_ping(recorder->env), 0);
  env_until(recorder->env, recorder->env->pongs == 1);
  env_until(recorder->env, client_stats(recorder->env).drops == 1);
  assert_error(release(c), 0);
  assert_error(try_lock(c), 0);
  expect_recorded(recorder, "the second", "script");
  assert_int_equal(fake_connections(recorder->fake), 2);
}

/* ---- the reply to a compare-and-delete ---- */

/* removals: expected number of compare-and-deletes; 0: repeated until the outcome is known. */
static void expect_release(const char *knows, const char *reply, int status, const char *recorded,
                           unsigned removals, unsigned drops) {
  recorder_t *recorder = recorder_open((recorder_t){.commands = NULL}, knows);
  contender_t *c = known_contender(recorder);
  assert_error(try_lock(c), 0);
  answer_removals(recorder, reply);
  int released = release(c);
  if (released != status)
    fail_msg("%s: %s: %s", knows, reply, belay_err_name(released));
  answer_removals(recorder, NULL);
  env_settle(recorder->env);
  if (recorded != NULL)
    expect_recorded(recorder, reply, recorded);
  assert_true(removals > 0 ? recorder->removals == removals : recorder->removals > 1 || drops > 0);
  assert_int_equal(client_stats(recorder->env).drops, drops);
  assert_int_equal(c->lost, 0);
  recorder_close(recorder);
}

TEST(compare_and_delete_replies) {
  static const char delifeq[] = "SET DELIFEQ:KEY:TOKEN", delex[] = "SET DELEX:KEY:IFEQ:TOKEN";
  expect_release("delifeq", ":1\r\n", 0, delifeq, 1, 0);
  expect_release("delifeq", ":0\r\n", BELAY_ENOTOWNER, delifeq, 1, 0);
  expect_release("delifeq",
                 "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
                 BELAY_ENOTOWNER, delifeq, 1, 0);
  expect_release("delex", ":1\r\n", 0, delex, 1, 0);
  expect_release("delex", ":0\r\n", BELAY_ENOTOWNER, delex, 1, 0);
  expect_release("delex", "-ERR Key should be of string type if conditions are specified\r\n",
                 BELAY_ENOTOWNER, delex, 1, 0);
}

/* The release is repeated on the next connection until its outcome is known. */
TEST(compare_and_delete_invalid_replies) {
  static const char *const replies[] = {":2\r\n",      ":-1\r\n", "+OK\r\n",    "$-1\r\n",
                                        "$1\r\n1\r\n", "*0\r\n",  "$0\r\n\r\n", "*1\r\n:1\r\n"};
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++)
    expect_release("delifeq", replies[i], BELAY_EPROTO, NULL, 0, 1);
}

/* The user may not run the command, or the server does not know it: the script runs instead, and
 * the command is not tried again. */
TEST(compare_and_delete_refused) {
  static const char *const replies[] = {
      "-NOPERM this user has no permissions to run the 'delifeq' command\r\n",
      "-NOPERM User alice has no permissions to run the 'delifeq' command\r\n",
      "-ERR unknown command 'DELIFEQ', with args beginning with: 'key' 'token' \r\n",
      "-ERR syntax error\r\n"};
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
    recorder_t *recorder = recorder_open((recorder_t){.removal = replies[i]}, "delifeq");
    contender_t *c = silent_contender(recorder);
    lock_and_release(c);
    expect_recorded(recorder, replies[i], "script DELIFEQ:KEY:TOKEN script");
    lock_and_release(c);
    expect_recorded(recorder, replies[i], "SET script");
    assert_int_equal(client_stats(recorder->env).undo_failed, 0);
    recorder_close(recorder);
  }
}

/* The server is not what it reported, or the call came to another server. */
TEST(set_refused) {
  static const char *const replies[] = {
      "-ERR syntax error\r\n", "-NOPERM this user has no permissions to run the 'set' command\r\n"};
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
    recorder_t *recorder = recorder_open((recorder_t){.set = replies[i]}, NULL);
    contender_t *c = known_contender(recorder);
    for (int turn = 0; turn < 2; turn++) {
      assert_error(try_lock(c), 0);
      expect_recorded(recorder, replies[i], turn == 0 ? "SET script" : "script");
      assert_error(release(c), 0);
      expect_recorded(recorder, replies[i], "script");
    }
    recorder_close(recorder);
  }
}

/* A user who may not, until the second connection. */
static void deny_then_hang_up(fake_link_t *link, const char *const *words, size_t count,
                              void *arg) {
  recorder_t *recorder = arg;
  if (is(words[0], "PING") && fake_link_number(link) == 1) {
    answer_removals(recorder, NULL);
    fake_hang_up(link);
  } else {
    answer_by_script(link, words, count, arg);
  }
}

TEST_IN(reconnect_resets_refused_commands, recorder,
        recorder_open_with(
            (recorder_t){
                .removal = "-NOPERM this user has no permissions to run the 'delifeq' command\r\n"},
            "delifeq", deny_then_hang_up)) {
  contender_t *c = silent_contender(recorder);
  lock_and_release(c);
  expect_recorded(recorder, "the first", "script DELIFEQ:KEY:TOKEN script");
  lock_and_release(c);
  expect_recorded(recorder, "it once more", "SET script");
  assert_error(begin_ping(recorder->env), 0);
  env_until(recorder->env, recorder->env->pongs == 1);
  env_until(recorder->env, client_stats(recorder->env).drops == 1);
  lock_and_release(c);
  expect_recorded(recorder, "the second", "script DELIFEQ:KEY:TOKEN");
  assert_int_equal(fake_connections(recorder->fake), 2);
}

/* A temporary refusal is no missing ability. */
TEST(temporary_refusal_keeps_capabilities) {
  expect_release("delifeq", "-MISCONF Errors writing to the AOF file\r\n", BELAY_EMISCONF,
                 "SET DELIFEQ:KEY:TOKEN", 0, 0);
  expect_release("delex", "-NOREPLICAS Not enough good replicas to write.\r\n", BELAY_ENOREPLICAS,
                 "SET DELEX:KEY:IFEQ:TOKEN", 0, 0);
}

/* ---- uses ---- */

TEST(release_with_notification) {
  static const struct {
    const char *removal, *recorded;
    int status;
  } rows[] = {
      {NULL, "SET DELIFEQ:KEY:TOKEN PUBLISH", 0},
      {":0\r\n", "SET DELIFEQ:KEY:TOKEN PUBLISH", BELAY_ENOTOWNER},
      {"-NOPERM this user has no permissions to run the 'delifeq' command\r\n",
       "SET DELIFEQ:KEY:TOKEN PUBLISH script", 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    recorder_t *recorder = recorder_open((recorder_t){.commands = NULL}, "delifeq");
    (void)known_contender(recorder);
    contender_t *c = contender_new(recorder->env, "door", NULL);
    assert_error(try_lock(c), 0);
    answer_removals(recorder, rows[i].removal);
    assert_error(release(c), rows[i].status);
    expect_recorded(recorder, "a lock that wakes others", rows[i].recorded);
    recorder_close(recorder);
  }
}

/* The second connection's server refuses the first command for now. */
static void hang_up_then_refuse(fake_link_t *link, const char *const *words, size_t count,
                                void *arg) {
  if (fake_link_number(link) != 2 || fake_is_handshake(words) || fake_link_command(link) != 1) {
    hang_up_then_answer(link, words, count, arg);
    return;
  }
  recorder_t *recorder = arg;
  pthread_mutex_lock(&recorder->mutex);
  note_command(recorder, words, count);
  pthread_mutex_unlock(&recorder->mutex);
  fake_say(link, "-BUSY Redis is busy running a script.\r\n");
}

/* A release begins without a connection, by the script, which publishes. It is sent again when
 * compare-and-delete is known. That command alone would wake no waiter. */
TEST_IN(release_sent_again_still_notifies, recorder,
        recorder_open_with((recorder_t){0}, "delifeq", hang_up_then_refuse)) {
  (void)known_contender(recorder);
  contender_t *c = contender_new(recorder->env, "door", NULL);
  assert_error(try_lock(c), 0);
  expect_recorded(recorder, "an acquire", "SET");
  assert_error(begin_ping(recorder->env), 0);
  env_until(recorder->env, client_stats(recorder->env).drops == 1);
  assert_error(release(c), 0);
  env_settle(recorder->env);
  expect_recorded(recorder, "a release", "script");
}

TEST_IN(undo_by_compare_and_delete, recorder, recorder_open((recorder_t){0}, "delex")) {
  contender_t *c = known_contender(recorder);
  pthread_mutex_lock(&recorder->mutex);
  recorder->slow_to_set = true;
  pthread_mutex_unlock(&recorder->mutex);
  assert_error(try_lock(c), BELAY_EUNKNOWN);
  env_settle(recorder->env);
  expect_recorded(recorder, "an undo", "SET DELEX:KEY:IFEQ:TOKEN");
  assert_int_equal(client_stats(recorder->env).undone, 1);
}

/* ---- a real server ---- */

static void expect_reads_by(server_t *server, const char *command, const char *other) {
  env_t *env = env_open_with(server, NULL);
  filter_t filter;
  filter_new(&filter, env, 1000, 0.01);
  assert_false(filter_exists(&filter, "a"));
  (void)filter_add(&filter, "a");
  int64_t before = server_calls(server, command), others = server_calls(server, other);
  assert_true(filter_exists(&filter, "a"));
  assert_int_equal(server_calls(server, command), before + 1);
  assert_int_equal(server_calls(server, other), others);
  env_close(env);
}

TEST(renamed_command) {
  expect_reads_by(server_start(NULL), "bitfield_ro", "bitfield");
  expect_reads_by(
      server_start(&(server_options_t){.arguments = {"--rename-command", "BITFIELD_RO", "", NULL}}),
      "bitfield", "bitfield_ro");
}

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

/* ---- who pretends ---------------------------------------------------------------------------------------- */

/* Notes what it is asked: the names of commands, "script" for all scripts. A compare and delete is noted with its words:
 * KEY and TOKEN where they are those of the SET before. */
typedef struct desk {
  const char *commands; /* reply to COMMAND INFO; NULL: the fake's own */
  unsigned commands_of; /* by the connection of this number only; 0: by all */
  const char *removal;  /* reply to a compare-and-delete; NULL: 1 */
  const char *set;      /* reply to SET; NULL: the fake's own */
  bool slow_to_set;     /* answers the next SET when it is asked something else */
  bool owes;            /* that answer */
  fake_t *fake;
  bed_t *bed;
  pthread_mutex_t mutex;
  unsigned removals;
  char key[256], token[256], heard[1024];
} desk_t;

/* The same several times in a row is noted once. */
static void note(desk_t *desk, const char *text) {
  size_t n = strlen(desk->heard), len = strlen(text);
  if (n >= len && strcmp(desk->heard + n - len, text) == 0)
    return;
  snprintf(desk->heard + n, sizeof desk->heard - n, "%s%s", n > 0 ? " " : "", text);
}

static void note_removal(desk_t *desk, const char *const *words, size_t count) {
  char text[600];
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    const char *word = strcmp(words[i], desk->key) == 0     ? "KEY"
                       : strcmp(words[i], desk->token) == 0 ? "TOKEN"
                                                            : words[i];
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? ":" : "", word);
  }
  note(desk, text);
  desk->removals++;
}

static bool is(const char *word, const char *name) {
  return strcasecmp(word, name) == 0;
}

static bool is_removal(const char *word) {
  return is(word, "DELIFEQ") || is(word, "DELEX");
}

static void note_command(desk_t *desk, const char *const *words, size_t count) {
  bool script = is(words[0], "EVAL") || is(words[0], "EVALSHA");
  if (is_removal(words[0])) {
    note_removal(desk, words, count);
    return;
  }
  if (is(words[0], "SET") || script) {
    snprintf(desk->key, sizeof desk->key, "%s", words[script ? 3 : 1]);
    snprintf(desk->token, sizeof desk->token, "%s", words[script ? 4 : 2]);
  }
  note(desk, script ? "script" : words[0]);
}

static void answer_as_told(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  desk_t *desk = arg;
  bool asks = is(words[0], "COMMAND") && desk->commands != NULL &&
              (desk->commands_of == 0 || desk->commands_of == fake_link_number(link));
  pthread_mutex_lock(&desk->mutex);
  const char *removal = desk->removal;
  bool owed = desk->owes;
  if (!fake_is_handshake(words))
    note_command(desk, words, count);
  desk->owes = desk->slow_to_set && is(words[0], "SET");
  desk->slow_to_set &= !desk->owes;
  bool waits = desk->owes;
  pthread_mutex_unlock(&desk->mutex);
  if (owed)
    fake_say(link, "$-1\r\n");
  if (asks)
    fake_say(link, desk->commands);
  else if (is_removal(words[0]) && removal != NULL)
    fake_say(link, removal);
  else if (is(words[0], "SET") && desk->set != NULL)
    fake_say(link, desk->set);
  else if (!waits)
    fake_behave(link, words, count);
}

/* Sets the reply to a compare-and-delete. */
static void answer_removals(desk_t *desk, const char *reply) {
  pthread_mutex_lock(&desk->mutex);
  desk->removal = reply;
  pthread_mutex_unlock(&desk->mutex);
}

static void desk_open(desk_t *desk, const char *knows) {
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  pthread_mutex_init(&desk->mutex, NULL);
  desk->fake =
      fake_start(&(fake_options_t){.on_command = answer_as_told, .arg = desk, .knows = knows});
  desk->bed = bed_open_at(fake_url(desk->fake), &options);
}

static void desk_close(desk_t *desk) {
  bed_close(desk->bed);
  fake_stop(desk->fake);
  pthread_mutex_destroy(&desk->mutex);
}

static bool has_heard(desk_t *desk, const char *expected) {
  pthread_mutex_lock(&desk->mutex);
  bool has = strcmp(desk->heard, expected) == 0;
  if (has)
    desk->heard[0] = '\0';
  pthread_mutex_unlock(&desk->mutex);
  return has;
}

/* Calls without a waiter, such as PUBLISH, may still be in flight. */
static void expect_heard(desk_t *desk, const char *name, const char *expected) {
  int64_t began = clock_now();
  while (!has_heard(desk, expected)) {
    if (clock_since_ms(began) > 10 * prompt_ms())
      fail_msg("%s: \"%s\", not \"%s\"", name, desk->heard, expected);
    stall_ms(1);
  }
}

/* A release sends no notification. */
static contender_t *silent_contender(desk_t *desk) {
  belay_lock_options_t options = lock_options();
  options.wakeup = BELAY_WAKE_POLL;
  return contender_new(desk->bed, "door", &options);
}

/* Connected: the abilities of the server are known. */
static contender_t *known_contender(desk_t *desk) {
  contender_t *c = silent_contender(desk);
  assert_error(try_lock(c), 0);
  (void)release(c);
  bed_settle(desk->bed);
  pthread_mutex_lock(&desk->mutex);
  desk->heard[0] = '\0';
  desk->removals = 0;
  pthread_mutex_unlock(&desk->mutex);
  return c;
}

/* ---- what a server says of itself ------------------------------------------------------------------------ */

#define NONE "$-1\r\n"
#define HAS(len, name) "*2\r\n$" len "\r\n" name "\r\n:-2\r\n"
#define ALL_OF_7 HAS("11", "bitfield_ro") HAS("10", "ssubscribe")

TEST(what_a_server_says_that_it_can_do) {
  static const struct {
    const char *name, *commands, *heard;
  } rows[] = {
      {"nothing", "*4\r\n" NONE NONE NONE NONE, "script"},
      {"what Redis 7 can", "*4\r\n" ALL_OF_7 NONE NONE, "SET script"},
      {"what Redis 6 can", "*4\r\n" HAS("11", "bitfield_ro") NONE NONE NONE, "script"},
      {"what Valkey 9 can", "*4\r\n" ALL_OF_7 HAS("7", "delifeq") NONE, "SET DELIFEQ:KEY:TOKEN"},
      {"what Redis 8.4 can", "*4\r\n" ALL_OF_7 NONE HAS("5", "delex"), "SET DELEX:KEY:IFEQ:TOKEN"},
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
    desk_t desk = {.commands = rows[i].commands};
    desk_open(&desk, NULL);
    contender_t *c = known_contender(&desk);
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
    expect_heard(&desk, rows[i].name, rows[i].heard);
    assert_int_equal(fake_connections(desk.fake), 1);
    desk_close(&desk);
  }
}

/* Before anybody has answered it cannot be known. */
TEST(at_first_nothing_is_known) {
  desk_t desk = {.commands = NULL};
  desk_open(&desk, "delex");
  contender_t *c = silent_contender(&desk);
  assert_error(try_lock(c), 0);
  expect_heard(&desk, "the first", "script");
  assert_error(release(c), 0);
  assert_error(try_lock(c), 0);
  expect_heard(&desk, "the others", "DELEX:KEY:IFEQ:TOKEN SET");
  desk_close(&desk);
}

/* An ability that one connection's server lacks is not used. */
TEST(all_of_the_connections_count) {
  desk_t desk = {.commands = "*4\r\n" NONE NONE NONE NONE, .commands_of = 2};
  till_t till;
  count_t count = {.n = 0};
  desk_open(&desk, "delifeq");
  contender_t *c = known_contender(&desk);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  expect_heard(&desk, "one connection", "SET DELIFEQ:KEY:TOKEN");
  till_new(&till, desk.bed, NULL);
  assert_error(BEGIN(&till, &count, add, belay_string("n"), 1, on_result), 0);
  assert_error(end_of_count(&count), 0);
  assert_int_equal(fake_connections(desk.fake), 2);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  expect_heard(&desk, "and another one", "INCRBY script");
  desk_close(&desk);
}

static void hang_up_then_answer(fake_link_t *link, const char *const *words, size_t count,
                                void *arg) {
  if (is(words[0], "PING") && fake_link_number(link) == 1)
    fake_hang_up(link);
  else
    answer_as_told(link, words, count, arg);
}

/* The next server may be another one. */
TEST(it_is_forgotten_with_the_connection) {
  desk_t desk = {.commands = "*4\r\n" NONE NONE NONE NONE, .commands_of = 2};
  pthread_mutex_init(&desk.mutex, NULL);
  desk.fake = fake_start(
      &(fake_options_t){.on_command = hang_up_then_answer, .arg = &desk, .knows = "delifeq"});
  desk.bed = bed_open_at(fake_url(desk.fake), NULL);
  contender_t *c = known_contender(&desk);
  assert_error(try_lock(c), 0);
  expect_heard(&desk, "the first", "SET");
  assert_error(begin_ping(desk.bed), 0);
  bed_until(desk.bed, desk.bed->pongs == 1);
  bed_until(desk.bed, client_stats(desk.bed).drops == 1);
  assert_error(release(c), 0);
  assert_error(try_lock(c), 0);
  expect_heard(&desk, "the second", "script");
  assert_int_equal(fake_connections(desk.fake), 2);
  desk_close(&desk);
}

/* ---- what a compare and delete replies ------------------------------------------------------------------- */

/* removals: how many there are; 0: it is done again until it is known. */
static void expect_release(const char *knows, const char *reply, int status, const char *heard,
                           unsigned removals, unsigned drops) {
  desk_t desk = {.commands = NULL};
  desk_open(&desk, knows);
  contender_t *c = known_contender(&desk);
  assert_error(try_lock(c), 0);
  answer_removals(&desk, reply);
  int released = release(c);
  if (released != status)
    fail_msg("%s: %s: %s", knows, reply, belay_err_name(released));
  answer_removals(&desk, NULL);
  bed_settle(desk.bed);
  if (heard != NULL)
    expect_heard(&desk, reply, heard);
  assert_true(removals > 0 ? desk.removals == removals : desk.removals > 1 || drops > 0);
  assert_int_equal(client_stats(desk.bed).drops, drops);
  assert_int_equal(c->lost, 0);
  desk_close(&desk);
}

TEST(it_was_ours_or_not) {
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

/* And it is done again, on the next connection, until it is known. */
TEST(replies_that_it_cannot_give) {
  static const char *const replies[] = {":2\r\n",      ":-1\r\n", "+OK\r\n",    "$-1\r\n",
                                        "$1\r\n1\r\n", "*0\r\n",  "$0\r\n\r\n", "*1\r\n:1\r\n"};
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++)
    expect_release("delifeq", replies[i], BELAY_EPROTO, NULL, 0, 1);
}

/* A user who may not, or a server that cannot after all: the script does it, and it is not tried again. */
TEST(a_command_that_is_refused) {
  static const char *const replies[] = {
      "-NOPERM this user has no permissions to run the 'delifeq' command\r\n",
      "-NOPERM User alice has no permissions to run the 'delifeq' command\r\n",
      "-ERR unknown command 'DELIFEQ', with args beginning with: 'key' 'token' \r\n",
      "-ERR syntax error\r\n"};
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
    desk_t desk = {.removal = replies[i]};
    desk_open(&desk, "delifeq");
    contender_t *c = silent_contender(&desk);
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
    expect_heard(&desk, replies[i], "script DELIFEQ:KEY:TOKEN script");
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
    expect_heard(&desk, replies[i], "SET script");
    assert_int_equal(client_stats(desk.bed).undo_failed, 0);
    desk_close(&desk);
  }
}

/* It is not what it seemed to be, or came to another server than it was made for. */
TEST(a_set_that_is_refused) {
  static const char *const replies[] = {
      "-ERR syntax error\r\n", "-NOPERM this user has no permissions to run the 'set' command\r\n"};
  for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
    desk_t desk = {.set = replies[i]};
    desk_open(&desk, NULL);
    contender_t *c = known_contender(&desk);
    for (int turn = 0; turn < 2; turn++) {
      assert_error(try_lock(c), 0);
      expect_heard(&desk, replies[i], turn == 0 ? "SET script" : "script");
      assert_error(release(c), 0);
      expect_heard(&desk, replies[i], "script");
    }
    desk_close(&desk);
  }
}

/* A user who may not, until the second connection. */
static void deny_then_hang_up(fake_link_t *link, const char *const *words, size_t count,
                              void *arg) {
  desk_t *desk = arg;
  if (is(words[0], "PING") && fake_link_number(link) == 1) {
    answer_removals(desk, NULL);
    fake_hang_up(link);
  } else {
    answer_as_told(link, words, count, arg);
  }
}

static void lock_and_release(contender_t *c) {
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
}

TEST(a_refusal_is_forgotten_with_the_connection) {
  desk_t desk = {.removal =
                     "-NOPERM this user has no permissions to run the 'delifeq' command\r\n"};
  pthread_mutex_init(&desk.mutex, NULL);
  desk.fake = fake_start(
      &(fake_options_t){.on_command = deny_then_hang_up, .arg = &desk, .knows = "delifeq"});
  desk.bed = bed_open_at(fake_url(desk.fake), NULL);
  contender_t *c = silent_contender(&desk);
  lock_and_release(c);
  expect_heard(&desk, "the first", "script DELIFEQ:KEY:TOKEN script");
  lock_and_release(c);
  expect_heard(&desk, "it once more", "SET script");
  assert_error(begin_ping(desk.bed), 0);
  bed_until(desk.bed, desk.bed->pongs == 1);
  bed_until(desk.bed, client_stats(desk.bed).drops == 1);
  lock_and_release(c);
  expect_heard(&desk, "the second", "script DELIFEQ:KEY:TOKEN");
  assert_int_equal(fake_connections(desk.fake), 2);
  desk_close(&desk);
}

/* A temporary refusal is no missing ability. */
TEST(a_refusal_that_passes_changes_nothing) {
  expect_release("delifeq", "-MISCONF Errors writing to the AOF file\r\n", BELAY_EMISCONF,
                 "SET DELIFEQ:KEY:TOKEN", 0, 0);
  expect_release("delex", "-NOREPLICAS Not enough good replicas to write.\r\n", BELAY_ENOREPLICAS,
                 "SET DELEX:KEY:IFEQ:TOKEN", 0, 0);
}

/* ---- where it is used ------------------------------------------------------------------------------------ */

TEST(who_waits_is_told_by_another_command) {
  static const struct {
    const char *removal, *heard;
    int status;
  } rows[] = {
      {NULL, "SET DELIFEQ:KEY:TOKEN PUBLISH", 0},
      {":0\r\n", "SET DELIFEQ:KEY:TOKEN PUBLISH", BELAY_ENOTOWNER},
      {"-NOPERM this user has no permissions to run the 'delifeq' command\r\n",
       "SET DELIFEQ:KEY:TOKEN PUBLISH script", 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    desk_t desk = {.commands = NULL};
    desk_open(&desk, "delifeq");
    (void)known_contender(&desk);
    contender_t *c = contender_new(desk.bed, "door", NULL);
    assert_error(try_lock(c), 0);
    answer_removals(&desk, rows[i].removal);
    assert_error(release(c), rows[i].status);
    expect_heard(&desk, "a lock that wakes others", rows[i].heard);
    desk_close(&desk);
  }
}

TEST(what_may_have_been_taken_is_taken_back) {
  desk_t desk = {.commands = NULL};
  desk_open(&desk, "delex");
  contender_t *c = known_contender(&desk);
  pthread_mutex_lock(&desk.mutex);
  desk.slow_to_set = true;
  pthread_mutex_unlock(&desk.mutex);
  assert_error(try_lock(c), BELAY_EUNKNOWN);
  bed_settle(desk.bed);
  expect_heard(&desk, "an undo", "SET DELEX:KEY:IFEQ:TOKEN");
  assert_int_equal(client_stats(desk.bed).undone, 1);
  desk_close(&desk);
}

/* ---- a real server --------------------------------------------------------------------------------------- */

static void expect_reads_by(server_t *server, const char *command, const char *other) {
  bed_t *bed = bed_open_with(server, NULL);
  sieve_t sieve;
  sieve_new(&sieve, bed, 1000, 0.01);
  assert_false(sift_exists(&sieve, "a"));
  (void)sift_add(&sieve, "a");
  int64_t before = server_calls(server, command), others = server_calls(server, other);
  assert_true(sift_exists(&sieve, "a"));
  assert_int_equal(server_calls(server, command), before + 1);
  assert_int_equal(server_calls(server, other), others);
  bed_close(bed);
}

TEST(a_command_that_has_another_name_is_missing) {
  expect_reads_by(server_start(NULL), "bitfield_ro", "bitfield");
  expect_reads_by(
      server_start(&(server_options_t){.arguments = {"--rename-command", "BITFIELD_RO", "", NULL}}),
      "bitfield", "bitfield_ro");
}

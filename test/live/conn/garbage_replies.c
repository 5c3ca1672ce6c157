/* Servers that answer what no server answers, and servers that refuse. */
#include <stdio.h>

#include "support/fixtures/env.h"
#include "support/deployments/fake.h"
#include "support/deployments/relay.h"

/* ---- servers that answer nonsense ---- */

typedef struct nonsense {
  const char *name;
  const char *text;
  int status; /* status of the acquire */
  bool alone; /* only that call fails: the connection stays */
} nonsense_t;

/* The first acquire of a client is a script, because the server's abilities are unknown. The
 * next one, after a release, is a plain SET. */
enum { AS_SCRIPT = 1, RELEASE = 2, AS_SET = 3 };

typedef struct plot {
  const nonsense_t *nonsense;
  unsigned at;   /* says it to this command of the first connection */
  bool hangs_up; /* and then FIN */
} plot_t;

static void talk_nonsense(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  const plot_t *plot = arg;
  if (fake_is_handshake(words) || fake_link_number(link) > 1 ||
      fake_link_command(link) != plot->at) {
    fake_behave(link, words, count);
    return;
  }
  fake_say(link, plot->nonsense->text);
  if (plot->hangs_up)
    fake_hang_up(link);
}

static void expect_status(const nonsense_t *nonsense, int status) {
  if (status != nonsense->status)
    fail_msg("%s: %s instead of %s", nonsense->name, belay_err_name(status),
             belay_err_name(nonsense->status));
}

static void expect_survival(const nonsense_t *nonsense, unsigned at, bool hangs_up) {
  plot_t plot = {.nonsense = nonsense, .at = at, .hangs_up = hangs_up};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
  env_t *env = env_open_at(fake_url(fake), NULL);
  contender_t *c = contender_new(env, "door", NULL);
  if (at == AS_SET) {
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
  }
  expect_status(nonsense, try_lock(c));
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  if (!nonsense->alone)
    env_until(env, client_stats(env).drops == 1);
  assert_error(try_lock(c), 0); /* the next call, perhaps on the next connection, succeeds */
  assert_int_equal(client_stats(env).drops, !nonsense->alone);
  assert_int_equal(fake_connections(fake), nonsense->alone ? 1 : 2);
  assert_error(release(c), 0);
  env_close(env);
  fake_stop(fake);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

TEST(truncated_replies) {
  static const nonsense_t all[] = {
      {"nothing", "", BELAY_EUNKNOWN, false},
      {"half a bulk", "$45\r\n0123456789", BELAY_EUNKNOWN, false},
      {"half a header", "$4", BELAY_EUNKNOWN, false},
      {"half a nil", "$-1", BELAY_EUNKNOWN, false},
      {"half a number", ":0", BELAY_EUNKNOWN, false},
      {"half an error", "-ERR some", BELAY_EUNKNOWN, false},
      {"half an array", "*2\r\n$3\r\nfoo\r\n", BELAY_EUNKNOWN, false},
  };
  for (size_t i = 0; i < COUNT(all); i++) {
    expect_survival(&all[i], AS_SCRIPT, true);
    expect_survival(&all[i], AS_SET, true);
  }
}

TEST(garbage_replies) {
  static const nonsense_t all[] = {
      {"text", "HTTP/1.1 400 Bad Request\r\n\r\n", BELAY_EPROTO, false},
      {"a type that does not exist", "\x01\x02\x03\r\n", BELAY_EPROTO, false},
      {"a number that is none", ":twelve\r\n", BELAY_EPROTO, false},
      {"a length that is none", "$x\r\n", BELAY_EPROTO, false},
      {"a length below nil", "$-7\r\n", BELAY_EPROTO, false},
      {"a length beyond all numbers", "$99999999999999999999\r\n", BELAY_EPROTO, false},
      {"a huge array", "*2000000000\r\n", BELAY_EPROTO, false},
      {"a number beyond all numbers", ":99999999999999999999\r\n", BELAY_EPROTO, false},
      {"a truth of the next protocol", "#t\r\n", BELAY_EPROTO, false},
      {"a push of the next protocol", ">2\r\n+a\r\n+b\r\n", BELAY_EPROTO, false},
  };
  for (size_t i = 0; i < COUNT(all); i++) {
    expect_survival(&all[i], AS_SCRIPT, false);
    expect_survival(&all[i], AS_SET, false);
  }
}

TEST(wrong_type_for_set) {
  static const nonsense_t all[] = {
      {"an integer", ":1\r\n", BELAY_EPROTO, false},
      {"a status", "+OK\r\n", BELAY_EPROTO, false},
      {"an empty array", "*0\r\n", BELAY_EPROTO, false},
      {"an array", "*1\r\n$1\r\nx\r\n", BELAY_EPROTO, false},
      {"a null that is an array", "*-1\r\n", BELAY_EPROTO, false}, /* no grant */
      {"a null of the next protocol", "_\r\n", BELAY_EPROTO, false},
  };
  for (size_t i = 0; i < COUNT(all); i++)
    expect_survival(&all[i], AS_SET, false);
}

TEST(wrong_type_for_a_script) {
  static const nonsense_t all[] = {
      {"a nil", "$-1\r\n", BELAY_EPROTO, false},
      {"a status", "+OK\r\n", BELAY_EPROTO, false},
      {"a string", "$1\r\n0\r\n", BELAY_EPROTO, true},
      {"an array", "*1\r\n:0\r\n", BELAY_EPROTO, true},
      {"out of range", ":-3\r\n", BELAY_EPROTO, true},
  };
  for (size_t i = 0; i < COUNT(all); i++)
    expect_survival(&all[i], AS_SCRIPT, false);
}

/* Nothing is assumed: neither that it was extended, nor that it was lost. */
static void expect_an_extend_to_survive(const nonsense_t *nonsense) {
  plot_t plot = {.nonsense = nonsense, .at = AS_SCRIPT + 1};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
  env_t *env = env_open_at(fake_url(fake), NULL);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), 0);
  int64_t left = remaining_ms(c);
  expect_status(nonsense, extend(c, 60000));
  assert_int_equal(c->lost, 0);
  assert_true(remaining_ms(c) > 0 && remaining_ms(c) <= left);
  if (!nonsense->alone)
    env_until(env, client_stats(env).drops == 1);
  assert_error(extend(c, 60000), 0);
  assert_int_equal(client_stats(env).drops, !nonsense->alone);
  assert_true(remaining_ms(c) > left);
  env_close(env);
  fake_stop(fake);
}

TEST(wrong_type_for_an_extend) {
  static const nonsense_t all[] = {
      {"a nil", "$-1\r\n", BELAY_EPROTO, false},
      {"a status", "+OK\r\n", BELAY_EPROTO, false},
      {"out of range", ":2\r\n", BELAY_EPROTO, true},
      {"below it", ":-1\r\n", BELAY_EPROTO, true},
  };
  for (size_t i = 0; i < COUNT(all); i++)
    expect_an_extend_to_survive(&all[i]);
}

/* It is not known whether the key is gone: belay asks again in the background. */
static void expect_a_release_to_go_on(const nonsense_t *nonsense) {
  plot_t plot = {.nonsense = nonsense, .at = RELEASE};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
  env_t *env = env_open_at(fake_url(fake), NULL);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), 0);
  expect_status(nonsense, release(c));
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  env_settle(env);
  assert_true(client_stats(env).undone >= 1);
  assert_true(fake_commands(fake) >= 3);
  assert_error(try_lock(c), 0);
  env_close(env);
  fake_stop(fake);
}

TEST(wrong_type_for_a_release) {
  static const nonsense_t all[] = {
      {"a nil", "$-1\r\n", BELAY_EPROTO, false},
      {"a status", "+OK\r\n", BELAY_EPROTO, false},
      {"out of range", ":-1\r\n", BELAY_EPROTO, false},
  };
  for (size_t i = 0; i < COUNT(all); i++)
    expect_a_release_to_go_on(&all[i]);
}

/* The header announces more bytes than follow: the stall timeout drops the connection. */
TEST(huge_bulk_announced) {
  static const nonsense_t huge = {"a huge bulk", "$1073741824\r\nx", BELAY_EUNKNOWN, false};
  plot_t plot = {.nonsense = &huge, .at = AS_SCRIPT};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  options.stall_timeout_ms = prompt_ms() + 100;
  env_t *env = env_open_at(fake_url(fake), &options);
  contender_t *c = contender_new(env, "door", NULL);
  int status = try_lock(c);
  assert_true(status == BELAY_EUNKNOWN || status == BELAY_EPROTO);
  env_until(env, client_stats(env).drops == 1);
  assert_error(try_lock(c), 0);
  env_close(env);
  fake_stop(fake);
}

TEST(huge_bulk_sent) {
  enum { SIZE = 1 << 20 };
  char *text = malloc(SIZE + 1);
  memset(text, 'x', SIZE);
  memcpy(text, "$1000000\r\n", 10);
  text[SIZE] = '\0';
  const nonsense_t huge = {"a huge bulk", text, BELAY_EPROTO, false};
  plot_t plot = {.nonsense = &huge, .at = AS_SCRIPT};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
  belay_client_options_t options = client_options();
  options.max_reply = 65536;
  env_t *env = env_open_at(fake_url(fake), &options);
  contender_t *c = contender_new(env, "door", NULL);
  expect_status(&huge, try_lock(c));
  env_until(env, client_stats(env).drops == 1);
  assert_true(client_stats(env).bytes_in < 300000); /* it was not read to its end */
  assert_error(try_lock(c), 0);
  env_close(env);
  fake_stop(fake);
  free(text);
}

TEST(deeply_nested_arrays) {
  enum { DEPTH = 400000 };
  char *text = malloc(4 * DEPTH + 1);
  for (size_t i = 0; i < DEPTH; i++)
    memcpy(text + 4 * i, "*1\r\n", 4);
  text[(size_t)4 * DEPTH] = '\0';
  const nonsense_t deep = {"nested arrays", text, BELAY_EPROTO, false};
  expect_survival(&deep, AS_SCRIPT, false);
  expect_survival(&deep, AS_SET, false);
  free(text);
}

/* A surplus reply follows the reply of the grant. */
TEST(unsolicited_reply) {
  static const nonsense_t all[] = {{"a status", ":0\r\n+OK\r\n", 0, false},
                                   {"a nil", ":0\r\n$-1\r\n", 0, false},
                                   {"an array", ":0\r\n*1\r\n:1\r\n", 0, false},
                                   {"an error", ":0\r\n-ERR out of the blue\r\n", 0, false}};
  for (size_t i = 0; i < COUNT(all); i++) {
    plot_t plot = {.nonsense = &all[i], .at = AS_SCRIPT};
    fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
    env_t *env = env_open_at(fake_url(fake), NULL);
    contender_t *c = contender_new(env, "door", NULL);
    expect_status(&all[i], try_lock(c));
    env_until(env, client_stats(env).drops == 1);
    assert_error(release(c), 0);
    assert_int_equal(fake_connections(fake), 2);
    env_close(env);
    fake_stop(fake);
  }
}

TEST(reply_before_any_command) {
  static const char *const greetings[] = {"+hello\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
                                          "-ERR max number of clients reached\r\n",
                                          "-DENIED Redis is running in protected mode\r\n"};
  static const int errors[] = {BELAY_EPROTO, BELAY_EPROTO, BELAY_EMAXCLIENTS, BELAY_EAUTH};
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    fake_t *fake = fake_start(&(fake_options_t){.mute = true, .greeting = greetings[i]});
    belay_client_options_t options = client_options();
    options.timeout_ms = 300 * slow();
    options.connect_timeout_ms = 50 * slow();
    env_t *env = env_open_at(fake_url(fake), &options);
    int status = try_lock(contender_new(env, "door", NULL));
    if (status != errors[i] && status != BELAY_EUNREACHABLE)
      fail_msg("\"%s\": %s", greetings[i], belay_err_name(status));
    assert_int_equal(fake_commands(fake), 0);
    env_close(env);
    fake_stop(fake);
  }
}

/* ---- refusals, one by one ---- */

typedef struct refusal {
  const char *text; /* NULL: as it should */
  int status;
} refusal_t;

static void refuse(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  const refusal_t *refusal = arg;
  if (fake_is_handshake(words))
    fake_behave(link, words, count);
  else
    fake_say(link, refusal->text);
}

TEST(error_of_each_refusal) {
  static const refusal_t all[] = {
      {"-LOADING Redis is loading the dataset in memory\r\n", BELAY_ELOADING},
      {"-BUSY Redis is busy running a script.\r\n", BELAY_ESCRIPTBUSY},
      {"-MASTERDOWN Link with MASTER is down\r\n", BELAY_ECLUSTERDOWN},
      {"-CLUSTERDOWN The cluster is down\r\n", BELAY_ECLUSTERDOWN},
      {"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", BELAY_ECLUSTERDOWN},
      {"-READONLY You can't write against a read only replica.\r\n", BELAY_EREADONLY},
      {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", BELAY_EOOM},
      {"-MISCONF Redis is configured to save RDB snapshots\r\n", BELAY_EMISCONF},
      {"-NOREPLICAS Not enough good replicas to write.\r\n", BELAY_ENOREPLICAS},
      {"-NOAUTH Authentication required.\r\n", BELAY_EAUTH},
      {"-NOPERM this user has no permissions\r\n", BELAY_EPERM},
      {"-WRONGTYPE Operation against a key\r\n", BELAY_EWRONGTYPE},
      {"-CROSSSLOT Keys in request don't hash to the same slot\r\n", BELAY_ECROSSSLOT},
      {"-MOVED 3999 127.0.0.1:6381\r\n", BELAY_EMOVED},
      {"-ASK 3999 127.0.0.1:6381\r\n", BELAY_EMOVED},
      {"-ERR max number of clients reached\r\n", BELAY_EMAXCLIENTS},
      {"-ERR something else\r\n", BELAY_EREFUSED},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    fake_options_t options = {.on_command = refuse, .arg = (void *)(uintptr_t)&all[i]};
    fake_t *fake = fake_start(&options);
    belay_client_options_t client = client_options();
    client.timeout_ms = 60 * slow();
    env_t *env = env_open_at(fake_url(fake), &client);
    contender_t *c = contender_new(env, "door", NULL);
    int status = try_lock(c);
    for (int tries = 1; tries < 5 && (status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE);
         tries++)
      status = try_lock(c); /* its time was over while it asked again, or before it was connected */
    if (status != all[i].status)
      fail_msg("%.20s: %s instead of %s", all[i].text, belay_err_name(status),
               belay_err_name(all[i].status));
    env_close(env);
    fake_stop(fake);
  }
}

/* Refuses a few times what will be granted later. */
static void refuse_at_first(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  if (!fake_is_handshake(words) && fake_link_command(link) <= 3 && fake_link_number(link) <= 3)
    fake_say(link, arg);
  else
    fake_behave(link, words, count);
}

TEST(temporary_refusal_is_retried) {
  static char loading[] = "-LOADING Redis is loading the dataset in memory\r\n";
  static char readonly[] = "-READONLY You can't write against a read only replica.\r\n";
  char *const all[] = {loading, readonly};
  for (size_t i = 0; i < 2; i++) {
    fake_t *fake = fake_start(&(fake_options_t){.on_command = refuse_at_first, .arg = all[i]});
    env_t *env = env_open_at(fake_url(fake), NULL);
    assert_error(try_lock(contender_new(env, "door", NULL)), 0);
    assert_int_equal(fake_connections(fake),
                     i == 0 ? 1 : 4); /* read-only: another address, perhaps */
    env_close(env);
    fake_stop(fake);
  }
}

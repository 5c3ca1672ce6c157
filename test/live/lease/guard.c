/* The guard of a resource in Redis accepts and refuses the same tokens as the guard in C. A
 * refused command does not run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "belay/error.h"
#include "belay/fence.h"
#include "support/base/random.h"
#include "support/servers/server.h"
#include "support/base/test.h"

#define FENCE "{door}:fence"
#define WORK "{door}:work" /* key of the guarded commands */
#define LARGEST (UINT64_C(1) << 53)

#define NO_NUMBER "FENCED not a fencing number"
#define NO_TOKEN "FENCED not a token"
#define NO_COMMAND "FENCED not a command"
#define NO_FENCE "FENCED not a fence"
#define TOO_LATE "FENCED a later holder has been here"

typedef struct bytes {
  const char *at;
  size_t len;
} bytes_t;

#define BYTES(literal)                                                                             \
  { literal, sizeof literal - 1 }
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Words up to a NULL. */
typedef const char *const *command_t;
#define COMMAND(...) ((const char *const[]){__VA_ARGS__, NULL})
#define WORK_ONCE COMMAND("INCR", WORK)

static bytes_t bytes(const char *string) {
  return (bytes_t){string, strlen(string)};
}

/* Valid until the next one. */
static bytes_t decimal(uint64_t number) {
  static char text[24];
  snprintf(text, sizeof text, "%" PRIu64, number);
  return bytes(text);
}

static void add(resp_words_t *words, bytes_t word) {
  assert_true(words->count < RESP_WORDS);
  words->word[words->count] = word.at;
  words->len[words->count++] = word.len;
}

static void add_command(resp_words_t *words, command_t command) {
  for (; *command != NULL; command++)
    add(words, bytes(*command));
}

static const resp_t *ask_plainly(server_t *server, command_t command) {
  resp_words_t words = {0};
  add_command(&words, command);
  return server_ask_words(server, &words);
}

/* The command, if a request with that number and token may go on. */
static const resp_t *ask_guarded(server_t *server, bytes_t number, bytes_t token,
                                 command_t command) {
  resp_words_t words = {0};
  bytes_t script;
  script.at = belay_fence_script(&script.len);
  add(&words, bytes("EVAL"));
  add(&words, script);
  add_command(&words, COMMAND("2", FENCE, WORK));
  add(&words, number);
  add(&words, token);
  add_command(&words, command);
  return server_ask_words(server, &words);
}

static const resp_t *ask(server_t *server, const char *number, const char *token,
                         command_t command) {
  return ask_guarded(server, bytes(number), bytes(token), command);
}

static void expect_error(const resp_t *reply, const char *text) {
  assert_int_equal(reply->type, RESP_ERROR);
  assert_string_equal(reply->str, text);
}

/* An error of the server whose text contains this word. */
static void expect_error_with(const resp_t *reply, const char *word) {
  assert_int_equal(reply->type, RESP_ERROR);
  if (strstr(reply->str, word) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", word, reply->str);
}

static void put_fence(server_t *server, const char *number, const char *token) {
  server_do(server, "HSET", FENCE, "number", number, "token", token, NULL);
}

/* The stored fence in the form of the guard in C; zeros if there is none. */
static belay_fence_t fence_on(server_t *server) {
  belay_fence_t fence;
  memset(&fence, 0, sizeof fence);
  if (server_integer(server, "EXISTS", FENCE, NULL) == 0)
    return fence;
  assert_int_equal(server_integer(server, "HLEN", FENCE, NULL), 2);
  assert_int_equal(server_integer(server, "TTL", FENCE, NULL), -1);
  fence.number = strtoull(server_string(server, "HGET", FENCE, "number", NULL), NULL, 10);
  const resp_t *token = server_ask(server, "HGET", FENCE, "token", NULL);
  assert_in_range(token->len, 1, sizeof fence.token);
  fence.token_len = token->len;
  memcpy(fence.token, token->str, token->len);
  return fence;
}

static void expect_fence(server_t *server, const belay_fence_t *expected) {
  belay_fence_t fence = fence_on(server);
  assert_memory_equal(&fence, expected, sizeof fence);
}

static void expect_work(server_t *server, const char *expected) {
  const char *work = server_string(server, "GET", WORK, NULL);
  assert_string_equal(work != NULL ? work : "nothing", expected);
}

static const char *refusal_for(uint64_t number, int error) {
  if (error == BELAY_EFENCED)
    return TOO_LATE;
  return number == 0 || number > LARGEST ? NO_NUMBER : NO_TOKEN;
}

/* Sends the request to both guards. They store the same fence, and the command runs only if
 * allowed. */
static void ask_both(server_t *server, belay_fence_t *fence, uint64_t number, bytes_t token) {
  int error = belay_fence_guard(fence, number, belay_bytes(token.at, token.len));
  uint64_t before = strtoull(server_string(server, "GET", WORK, NULL), NULL, 10);
  const resp_t *reply = ask_guarded(server, decimal(number), token, WORK_ONCE);
  if (error != 0)
    expect_error(reply, refusal_for(number, error));
  else
    assert_int_equal(reply->integer, before + 1);
  expect_work(server, decimal(before + (error == 0)).at);
  expect_fence(server, fence);
}

/* The same for a command that fails: the fence does not change. */
static void send_failing_to_both(server_t *server, const belay_fence_t *fence, uint64_t number,
                                 bytes_t token) {
  belay_fence_t tried = *fence;
  int error = belay_fence_guard(&tried, number, belay_bytes(token.at, token.len));
  const resp_t *reply = ask_guarded(server, decimal(number), token, COMMAND("LPUSH", WORK, "x"));
  if (error != 0)
    expect_error(reply, refusal_for(number, error));
  else
    expect_error_with(reply, "WRONGTYPE");
  expect_fence(server, fence);
}

static const char longest[BELAY_FENCE_TOKEN_MAX + 2] =
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef!";

static const bytes_t tokens[] = {
    BYTES("mine"),   BYTES("another"), BYTES("min"), BYTES("mine!"), BYTES("MINE"),
    BYTES("mine\0"), BYTES("mi\0ne"),  BYTES("\0"),  BYTES("\r\n"),  BYTES("\xff\xfe"),
    BYTES("7"),      {longest, 1},     {longest, 0}, {longest, 128}, {longest, 129},
};

static const uint64_t numbers[] = {0,           1,       99,          100,         101,
                                   LARGEST - 1, LARGEST, LARGEST + 1, LARGEST + 2, UINT64_MAX};

TEST_ON(guard_agrees_with_c, server, server_start(NULL)) {
  static const uint64_t seen[] = {0, 1, 100, LARGEST - 1, LARGEST};
  server_do(server, "SET", WORK, "0", NULL);
  for (size_t i = 0; i < COUNT(seen); i++)
    for (size_t j = 0; j < COUNT(numbers); j++)
      for (size_t k = 0; k < COUNT(tokens); k++) {
        belay_fence_t fence = {0};
        server_do(server, "DEL", FENCE, NULL);
        if (seen[i] != 0)
          ask_both(server, &fence, seen[i], tokens[0]);
        send_failing_to_both(server, &fence, numbers[j], tokens[k]);
        ask_both(server, &fence, numbers[j], tokens[k]);
      }
}

/* Requests in random order, with numbers near the last accepted one, up to the largest. */
TEST_ON(random_requests_agree_with_c, server, server_start(NULL)) {
  enum { ROUNDS = 1000 };
  uint64_t seed = 1;
  belay_fence_t fence = {0};
  server_do(server, "SET", WORK, "0", NULL);
  for (int i = 0; i < ROUNDS; i++) {
    if (i == ROUNDS / 2)
      ask_both(server, &fence, LARGEST - ROUNDS / 32, tokens[0]);
    uint64_t number = fence.number + next_random(&seed) % 6 - (fence.number > 4 ? 4 : 0);
    bytes_t token = tokens[next_random(&seed) % 4];
    if (next_random(&seed) % 4 == 0)
      send_failing_to_both(server, &fence, number, token);
    else
      ask_both(server, &fence, number, token);
  }
  assert_true(fence.number == LARGEST);
}

static const bytes_t no_numbers[] = {BYTES(""),
                                     BYTES("0"),
                                     BYTES("-1"),
                                     BYTES("+1"),
                                     BYTES("01"),
                                     BYTES("00"),
                                     BYTES(" 5"),
                                     BYTES("5 "),
                                     BYTES("5\n"),
                                     BYTES("5\0"),
                                     BYTES("5\0x"),
                                     BYTES("5x"),
                                     BYTES("1e3"),
                                     BYTES("0x10"),
                                     BYTES("1.0"),
                                     BYTES("1."),
                                     BYTES(".5"),
                                     BYTES("0.5"),
                                     BYTES("nan"),
                                     BYTES("-nan"),
                                     BYTES("inf"),
                                     BYTES("-0"),
                                     BYTES("five"),
                                     BYTES("1,000"),
                                     BYTES("1e-400"),
                                     BYTES("1e400"),
                                     BYTES("9007199254740993"),
                                     BYTES("09007199254740992"),
                                     BYTES("9007199254740994"),
                                     BYTES("9999999999999999"),
                                     BYTES("90071992547409920"),
                                     BYTES("9.007199254740992e15")};

TEST_ON(invalid_number_is_refused, server, server_start(NULL)) {
  for (size_t i = 0; i < COUNT(no_numbers); i++) {
    const resp_t *reply = ask_guarded(server, no_numbers[i], bytes("mine"), WORK_ONCE);
    if (reply->type != RESP_ERROR || strcmp(reply->str, NO_NUMBER) != 0)
      fail_msg("row %zu: \"%s\"", i, no_numbers[i].at);
  }
  assert_int_equal(server_keys(server), 0);
}

static void expect_no_fence(server_t *server) {
  expect_error(ask(server, "5", "mine", WORK_ONCE), NO_FENCE);
  expect_error(ask(server, "9007199254740992", "mine", WORK_ONCE), NO_FENCE);
  expect_work(server, "nothing");
}

/* The last accepted number is unreadable, so every token is refused. */
TEST_ON(damaged_fence_refuses_all, server, server_start(NULL)) {
  for (size_t i = 0; i < COUNT(no_numbers); i++) {
    resp_words_t words = {0};
    add_command(&words, COMMAND("HSET", FENCE, "token", "mine", "number"));
    add(&words, no_numbers[i]);
    server_ask_words(server, &words);
    expect_no_fence(server);
  }
  server_do(server, "HDEL", FENCE, "number", NULL);
  expect_no_fence(server);
  server_do(server, "DEL", FENCE, NULL);
  server_do(server, "HSET", FENCE, "number", "5", NULL);
  expect_no_fence(server);
}

TEST_ON(key_of_other_type_is_kept, server, server_start(NULL)) {
  server_do(server, "RPUSH", FENCE, "a", "b", NULL);
  expect_error_with(ask(server, "5", "mine", WORK_ONCE), "WRONGTYPE");
  assert_int_equal(server_integer(server, "LLEN", FENCE, NULL), 2);
  assert_int_equal(server_keys(server), 1);
}

TEST_ON(missing_command_is_refused, server, server_start(NULL)) {
  expect_error(ask(server, "5", "mine", COMMAND(NULL)), NO_COMMAND);
  const char *text = belay_fence_script(NULL);
  expect_error(server_ask(server, "EVAL", text, "1", FENCE, "5", NULL), NO_TOKEN);
  expect_error(server_ask(server, "EVAL", text, "1", FENCE, NULL), NO_NUMBER);
  assert_int_equal(server_keys(server), 0);
}

static void expect_same(const resp_t *a, const resp_t *b) {
  assert_int_equal(a->type, b->type);
  assert_int_equal(a->integer, b->integer);
  assert_int_equal(a->len, b->len);
  if (a->len > 0)
    assert_memory_equal(a->str, b->str, a->len);
  assert_int_equal(a->count, b->count);
  for (size_t i = 0; i < a->count; i++)
    expect_same(a->items[i], b->items[i]);
}

/* Two servers get the same commands, one of them through the guard. The replies must be equal. */
TEST(guard_replies_as_the_command) {
  const command_t commands[] = {
      COMMAND("PING"),                               /* a status */
      COMMAND("SET", WORK, "7"),                     /* OK */
      COMMAND("SET", WORK, "8", "NX"),               /* nil */
      COMMAND("GET", WORK),                          /* a string */
      COMMAND("INCR", WORK),                         /* an integer */
      COMMAND("INCRBYFLOAT", WORK, "0.5"),           /* a number that is a string */
      COMMAND("INCR", WORK),                         /* an error */
      COMMAND("LPUSH", WORK, "x"),                   /* an error with a name of its own */
      COMMAND("MGET", WORK, "{door}:none", WORK),    /* an array with a nil in it */
      COMMAND("MGET", "{door}:none", "{door}:none"), /* one of nothing else */
      COMMAND("DEL", WORK),
      COMMAND("GET", WORK),
      COMMAND("LRANGE", WORK, "0", "-1"), /* an array with nothing in it */
      COMMAND("SET", WORK, ""),
      COMMAND("GET", WORK), /* a string with nothing in it */
  };
  server_t *guarded = server_start(NULL), *plain = server_start(NULL);
  for (size_t i = 0; i < COUNT(commands); i++)
    expect_same(ask(guarded, "5", "mine", commands[i]), ask_plainly(plain, commands[i]));
  server_stop(guarded);
  server_stop(plain);
}

/* A failed command does not change the fence: the number from before stays stored. */
TEST(failed_command_keeps_fence) {
  const command_t failing[] = {
      COMMAND("LPUSH", WORK, "x"), COMMAND("INCR", WORK),     COMMAND("SET", WORK),
      COMMAND("NOSUCH", WORK),     COMMAND("SUBSCRIBE", "x"), COMMAND(""),
  };
  static const char *const earlier[] = {"4", "5"};
  server_t *server = server_start(NULL);
  server_do(server, "SET", WORK, "a text", NULL);
  for (size_t i = 0; i < COUNT(failing); i++) {
    server_do(server, "DEL", FENCE, NULL);
    assert_int_equal(ask(server, "5", "mine", failing[i])->type, RESP_ERROR);
    assert_int_equal(server_integer(server, "EXISTS", FENCE, NULL), 0);
    for (size_t j = 0; j < COUNT(earlier); j++) {
      put_fence(server, earlier[j], "mine");
      belay_fence_t before = fence_on(server);
      assert_int_equal(ask(server, "5", "mine", failing[i])->type, RESP_ERROR);
      expect_fence(server, &before);
    }
  }
  expect_work(server, "a text");
  server_stop(server);
}

/* Sends the script with a request of `words` words, more than a resp_words_t holds. */
static const resp_t *ask_for_words(server_t *server, int words) {
  static char text[8192];
  int len = snprintf(text, sizeof text,
                     "local ARGV = {'5', 'mine', 'RPUSH', KEYS[2]}\n"
                     "for i = 1, %d do ARGV[#ARGV + 1] = 'x' end\n%s",
                     words - 2, belay_fence_script(NULL));
  assert_in_range(len, 1, sizeof text - 1);
  return server_ask(server, "EVAL", text, "2", FENCE, WORK, NULL);
}

TEST_ON(too_many_words, server, server_start(NULL)) {
  assert_int_equal(ask_for_words(server, 9000)->type, RESP_ERROR);
  assert_int_equal(server_keys(server), 0);
  assert_int_equal(ask_for_words(server, 7000)->integer, 6998);
  assert_int_equal(server_keys(server), 2);
}

TEST(guard_without_write_permission) {
  needs_one_process("rights in one place");
  server_t *server = server_start(NULL);
  server_do(server, "ACL", "SETUSER", "limited", "on", "nopass", "~*", "+@all", "-hset", NULL);
  server_do(server, "AUTH", "limited", "", NULL);
  assert_int_equal(ask(server, "5", "mine", WORK_ONCE)->type, RESP_ERROR);
  assert_int_equal(server_keys(server), 0);
  server_stop(server);
}

TEST_ON(guard_out_of_memory, server, server_start(NULL)) {
  put_fence(server, "4", "another");
  server_do(server, "SET", WORK, "7", NULL);
  server_do(server, "CONFIG", "SET", "maxmemory", "1", NULL);
  belay_fence_t before = fence_on(server);
  expect_error_with(ask(server, "5", "mine", COMMAND("DEL", WORK)), "OOM");
  expect_work(server, "7");
  expect_fence(server, &before);
  /* A known number needs no additional memory. */
  assert_int_equal(ask(server, "4", "another", COMMAND("DEL", WORK))->integer, 1);
}

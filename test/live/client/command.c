/* The belay command: its printed rules create working users, and its output never contains a
 * password. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/servers/process.h"
#include "support/servers/server.h"
#include "support/base/test.h"

#define SECRET "hunter2isgeheim"
#define OUTPUT_MAX 65536
#define ARGS_MAX 32
#define URLS_MAX 40

static const char *belay; /* the program */

/* Output, error output and exit status of a command. */
typedef struct result {
  char out[OUTPUT_MAX];
  int status;
} result_t;

/* err: target of the error output: "&1" (with the output), or a file. */
static process_t start(const char *err, const char *const *args) {
  const char *argv[ARGS_MAX] = {"sh", "-c", NULL, belay};
  char script[64];
  snprintf(script, sizeof script, "exec \"$0\" \"$@\" 2>%s", err);
  argv[2] = script;
  for (size_t i = 0; args[i] != NULL; i++)
    argv[4 + i] = args[i];
  return process_start(argv);
}

/* Read all output, and wait for the end. Valid until the next call. */
static const result_t *read_output(process_t *process) {
  static result_t result;
  size_t n = 0;
  ssize_t got;
  while ((got = read(process->out, result.out + n, sizeof result.out - 1 - n)) > 0)
    n += (size_t)got;
  result.out[n] = '\0';
  result.status = process_wait(process);
  return &result;
}

static const result_t *run_to(const char *err, const char *const *args) {
  process_t process = start(err, args);
  return read_output(&process);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define RUN(...) run_to("&1", ARGS(__VA_ARGS__))
#define PRINTED(...) run_to("/dev/null", ARGS(__VA_ARGS__)) /* without the error output */

/* ---- belay acl ---- */

/* Send a line as redis-cli does that reads it from a pipe. */
static void send_line(server_t *server, const char *line) {
  resp_client_t client;
  char reply[256];
  assert_int_equal(resp_dial_unix(&client, server_path(server)), 0);
  assert_int_equal(resp_send(client.fd, line, strlen(line)), 0);
  ssize_t n = read(client.fd, reply, sizeof reply - 1);
  assert_true(n > 0);
  reply[n] = '\0';
  resp_hang_up(&client);
  if (strcmp(reply, "+OK\r\n") != 0)
    fail_msg("%s%s", reply, line);
}

static bool may(server_t *server, const char *user, const char *command, const char *key) {
  return strcmp(server_string(server, "ACL", "DRYRUN", user, command, key, NULL), "OK") == 0;
}

static bool logs_in(server_t *server, const char *user, const char *password) {
  resp_client_t client;
  resp_words_t auth = {3, {"AUTH", user, password}, {4, strlen(user), strlen(password)}};
  assert_int_equal(resp_dial_unix(&client, server_path(server)), 0);
  resp_t *reply = resp_call(&client, &auth);
  bool ok = reply->type == RESP_STATUS;
  resp_free(reply);
  resp_hang_up(&client);
  return ok;
}

#define STRANGE "we\"i'rd*\\::part"

/* The lines for redis-cli create the requested user, in any namespace. */
TEST_ON(acl_line_for_redis_cli, server, server_start(NULL)) {
  const result_t *result =
      PRINTED("acl", "--user", "app", "--namespace", STRANGE, "--key", "the \"door", "lock");
  assert_int_equal(result->status, 2); /* a key with a space */
  result = PRINTED("acl", "--user", "app", "--namespace", STRANGE, "--key", "the\"door'", "--db",
                   "2", "--server", "7.0.15", "lock", "limiter");
  assert_int_equal(result->status, 0);
  send_line(server, result->out);
  assert_true(may(server, "app", "GET", "we\"i'rd*\\::part::x"));
  assert_true(may(server, "app", "GET", "the\"door'"));
  assert_false(may(server, "app", "GET", "we\"i'rdish\\::part::x"));
  assert_false(may(server, "app", "GET", "door"));
  assert_true(may(server, "app", "SELECT", "2"));
  assert_false(may(server, "app", "SELECT", "1"));
  assert_false(may(server, "app", "LLEN", "we\"i'rd*\\::part::x"));
}

/* A new user cannot log in, and a changed user keeps its password. */
TEST_ON(acl_line_keeps_the_password, server, server_start(NULL)) {
  const result_t *result = PRINTED("acl", "--user=app", "--namespace=app", "all");
  assert_null(strchr(result->out, '>'));
  assert_null(strstr(result->out, "nopass"));
  send_line(server, result->out);
  assert_false(logs_in(server, "app", ""));
  assert_false(logs_in(server, "app", "secret"));
  server_do(server, "ACL", "SETUSER", "app", ">secret", "+keys", "~other", "(+del ~*)", NULL);
  assert_true(logs_in(server, "app", "secret"));
  assert_true(may(server, "app", "KEYS", "*") && may(server, "app", "DEL", "anything"));
  send_line(server, result->out);
  assert_true(logs_in(server, "app", "secret"));
  assert_false(may(server, "app", "KEYS", "*") || may(server, "app", "DEL", "anything"));
  result = RUN("acl", "--user=app", "--namespace=app", "all");
  assert_non_null(strstr(result->out, "password")); /* the output mentions it */
}

static int by_word(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The rules of the server's first user, sorted. */
static const char *listed(server_t *server) {
  static char list[4096];
  const char *words[256];
  size_t n = 0, at = 0;
  char *text = strdup(server_ask(server, "ACL", "LIST", NULL)->items[0]->str), *next;
  for (char *word = strtok_r(text, " ", &next); word != NULL; word = strtok_r(NULL, " ", &next))
    words[n++] = word;
  qsort(words, n, sizeof *words, by_word);
  for (size_t i = 0; i < n; i++)
    at += (size_t)snprintf(list + at, sizeof list - at, "%s ", words[i]);
  free(text);
  return list;
}

/* The same user from a file. */
TEST(acl_line_for_a_file) {
  char path[] = "/tmp/belay-test-users-XXXXXX.acl", lines[128], list[4096];
  const result_t *result = PRINTED("acl", "--user", "app", "--namespace", STRANGE, "all");
  server_t *server = server_start(NULL);
  send_line(server, result->out);
  snprintf(list, sizeof list, "%s", listed(server));
  server_stop(server);

  result = PRINTED("acl", "--file", "--user", "app", "--namespace", STRANGE, "all");
  assert_memory_equal(result->out, "user app on ", 12);
  int fd = mkstemps(path, 4);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, result->out, strlen(result->out)), strlen(result->out));
  close(fd);
  snprintf(lines, sizeof lines, "aclfile %s", path);
  server = server_start(&(server_options_t){.lines = lines});
  assert_non_null(strstr(list, " user "));
  assert_string_equal(listed(server), list);
  unlink(path);
  server_stop(server);
}

TEST(acl_lines_with_sentinels) {
  const result_t *result =
      PRINTED("acl", "--user", "app", "--namespace", "app", "--sentinel", "lock");
  const char *second = strchr(result->out, '\n') + 1;
  assert_memory_equal(second, "ACL SETUSER app on ", 19);
  assert_non_null(strstr(second, "+sentinel|get-master-addr-by-name"));
  assert_null(strstr(second, " ~"));
  assert_true(strstr(result->out, "+role") < second);
  server_t *server = server_start(NULL);
  server_t *sentinel = server_start(&(server_options_t){.address = "127.0.0.1", .sentinel = true});
  char first[4096];
  snprintf(first, sizeof first, "%.*s", (int)(second - result->out), result->out);
  send_line(server, first);
  resp_client_t client;
  char reply[64] = "";
  assert_int_equal(resp_dial_tcp(&client, "127.0.0.1", server_port(sentinel)), 0);
  assert_int_equal(resp_send(client.fd, second, strlen(second)), 0);
  assert_true(read(client.fd, reply, sizeof reply - 1) > 0);
  assert_string_equal(reply, "+OK\r\n");
  resp_hang_up(&client);
  server_stop(sentinel);
  server_stop(server);
}

TEST(acl_arguments_that_are_refused) {
  static const char *const lines[][10] = {
      {"acl"},
      {"acl", "lock"},
      {"acl", "--user", "app", "lock"},
      {"acl", "--user", "app", "--namespace", "app"},
      {"acl", "--namespace", "app", "lock"},
      {"acl", "--user", "", "--namespace", "app", "lock"},
      {"acl", "--user", "a b", "--namespace", "app", "lock"},
      {"acl", "--user", "app", "--namespace", "", "lock"},
      {"acl", "--user", "app", "--namespace", "a::", "lock"},
      {"acl", "--user", "app", "--namespace", "a b", "lock"},
      {"acl", "--user", "app", "--namespace", "1::2::3::4::5::6::7::8::9", "lock"},
      {"acl", "--user", "app", "--namespace", "app", "locks"},
      {"acl", "--user", "app", "--namespace", "app", "--db", "-1", "lock"},
      {"acl", "--user", "app", "--namespace", "app", "--db", "65536", "lock"},
      {"acl", "--user", "app", "--namespace", "app", "--db", "1x", "lock"},
      {"acl", "--user", "app", "--namespace", "app", "--server", "5.0", "lock"},
      {"acl", "--user", "app", "--namespace", "app", "--server", "7.", "lock"},
      {"acl", "--user", "app", "--namespace", "app", "--server", "new", "lock"},
      {"acl", "--user", "app", "--namespace", "app", "--key", "", "lock"},
      {"acl", "--user", "app", "--namespace", "app", "--what", "lock"},
      {"acl", "--user", "app", "--namespace", "app", "lock", "--db"},
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    const result_t *result = run_to("/dev/null", lines[i]);
    if (result->status != 2 || result->out[0] != '\0')
      fail_msg("line %zu: status %d: %s", i, result->status, result->out);
    result = run_to("&1", lines[i]);
    assert_non_null(strstr(result->out, "belay: acl: "));
  }
}

TEST(help) {
  const result_t *result = RUN("help");
  assert_int_equal(result->status, 0);
  assert_non_null(strstr(result->out, "\n  acl "));
  assert_non_null(strstr(result->out, "BELAY_URL"));
  assert_non_null(strstr(result->out, "may read a command line"));
  result = RUN("acl", "--help");
  assert_int_equal(result->status, 0);
  assert_non_null(strstr(result->out, " limiter "));
  assert_non_null(
      strstr(result->out, "belay acl --user app --namespace app lock limiter | redis-cli"));
  process_t process = process_start(
      ARGS("sh", "-c", "\"$0\" acl --user a --namespace a all 2>&1 >/dev/full", belay));
  char line[256];
  do
    assert_true(process_read_line(&process, line, sizeof line));
  while (strstr(line, "belay: acl: the output could not be written: ") == NULL);
  assert_int_equal(process_wait(&process), 123);
}

/* ---- secrets ---- */

static void expect_no_secret(const result_t *result) {
  assert_null(strstr(result->out, SECRET));
}

/* Run the command with each URL as an option, in both forms, and in the environment: it fails and
 * does not print the password. All processes run at once, because some take long. */
static void expect_failures(const char *const *urls, size_t n, int least) {
  static process_t processes[3 * URLS_MAX];
  assert_true(n <= URLS_MAX);
  for (size_t i = 0; i < n; i++) {
    char option[512];
    snprintf(option, sizeof option, "--url=%s", urls[i]);
    processes[3 * i] = start("&1", ARGS("ls", "--url", urls[i]));
    processes[3 * i + 1] = start("&1", ARGS("ls", option));
    setenv("BELAY_URL", urls[i], 1);
    processes[3 * i + 2] = start("&1", ARGS("ls"));
    unsetenv("BELAY_URL");
  }
  for (size_t i = 0; i < 3 * n; i++) {
    const result_t *result = read_output(&processes[i]);
    expect_no_secret(result);
    assert_non_null(strstr(result->out, "belay: "));
    assert_in_range(result->status, least, 123);
  }
}

TEST(malformed_urls_do_not_show_the_password) {
  static const char *const urls[] = {
      "redis://user:" SECRET "@",
      "redis://user:" SECRET "@:6379",
      "redis://user:" SECRET "@host:port",
      "redis://user:" SECRET "@host:99999",
      "redis://user:" SECRET "@host:1:2",
      "redis://user:" SECRET "@host/db",
      "redis://user:" SECRET "@host/1/2",
      "redis://user:" SECRET "@[::1",
      "redis://user:" SECRET "@ho st",
      "redis://user:" SECRET "@host#fragment",
      "redis://user:" SECRET "@host?query=1",
      "redis://user:" SECRET "%@host",
      "redis://user:" SECRET "%zz@host",
      "redis://user:" SECRET "%00@host",
      "redis://user:" SECRET "/slash@host",
      "redis://user:" SECRET "?question@host",
      "redis://user:" SECRET "#hash@host",
      "redis://user:" SECRET " space@host",
      "redis://user:" SECRET "\ttab@host",
      "redis://" SECRET ":" SECRET ":" SECRET "@host:" SECRET,
      "redis://:" SECRET,
      "redis:" SECRET,
      "//user:" SECRET "@host",
      "user:" SECRET "@host",
      SECRET,
      "http://user:" SECRET "@host",
      "unix://user:" SECRET "@relative",
      "unix://user:" SECRET "@/socket?db=" SECRET,
      "unix://user:" SECRET "@/socket?what=1",
      "redis+sentinel://user:" SECRET "@host",
      "redis+sentinel://user:" SECRET "@host/" SECRET "/" SECRET,
      "redis+cluster://user:" SECRET "@host/1",
      "redis+replicas://user:" SECRET "@",
      "rediss+what://user:" SECRET "@host",
  };
  expect_failures(urls, sizeof urls / sizeof *urls, 2);
}

/* Servers that are absent, refuse the user, forbid the command, or repeat its arguments. */
TEST(refusals_do_not_show_the_password) {
  static const char *const nowhere[] = {
      "redis://user:" SECRET "@127.0.0.1:1",
      "redis://user:" SECRET "@no-such-host.invalid",
      "rediss://user:" SECRET "@127.0.0.1:1",
      "redis+sentinel://user:" SECRET "@127.0.0.1:1/main",
      "redis+cluster://user:" SECRET "@127.0.0.1:1",
      "redis+replicas://user:" SECRET "@127.0.0.1:1",
      "unix://user:" SECRET "@/nonexistent/socket",
  };
  static const server_options_t all[] = {
      {.password = "another"},
      {.lines = "user user on >" SECRET " -@all +hello ~*"},
      {.lines = "user user on >" SECRET " +@all -select ~*"},
      {.arguments = {"--rename-command", "AUTH", ""}},
      {.arguments = {"--rename-command", "AUTH", "", "--rename-command", "SELECT", ""}},
  };
  server_t *servers[sizeof all / sizeof *all];
  char url[sizeof all / sizeof *all][256];
  const char *urls[URLS_MAX];
  size_t n = 0;
  for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++)
    urls[n++] = nowhere[i];
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    servers[i] = server_start(&all[i]);
    snprintf(url[i], sizeof url[i], "unix://user:" SECRET "@%s?db=1", server_path(servers[i]));
    urls[n++] = url[i];
  }
  expect_failures(urls, n, 120);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    server_stop(servers[i]);
}

/* Wrong command lines that contain a URL. */
TEST(wrong_command_lines_do_not_show_the_password) {
  static const char url[] = "redis://user:" SECRET "@host",
                    option[] = "--url=redis://:" SECRET "@h";
  static const char *const lines[][10] = {
      {url},
      {option},
      {"help", url},
      {"version", url},
      {"demo", url},
      {"demo", "--ulr", url},
      {"demo", "--url"},
      {"demo", option, option},
      {"demo", "--url", url, url},
      {"acl", url},
      {"acl", option},
      {"acl", "--url", url},
      {"acl", "--user", "app", "--namespace", "app", url},
      {"acl", "--user", "app", "--namespace", "app", option, "lock"},
      {"acl", "--user", "app", "--namespace", "app", "--db", url, "lock"},
      {"acl", "--user", "app", "--namespace", "app", "--server", url, "lock"},
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    const result_t *result = run_to("&1", lines[i]);
    expect_no_secret(result);
    assert_int_not_equal(result->status, 0);
  }
}

TEST_BEGIN {
  belay = getenv("BELAY_COMMAND");
  if (belay == NULL) {
    print_message("skipped: there is no belay command (BELAY_COMMAND)\n");
    exit(77);
  }
  unsetenv("BELAY_URL");
}

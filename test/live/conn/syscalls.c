/* System calls: after connecting no epoll_ctl, for any number of commands. */
#include <stdio.h>

#include "support/fixtures/env.h"
#include "support/load/cycles.h"
#include "support/servers/process.h"

/* ---- what is looked at ---- */

static int be_client(const char *url, const char *cycles) {
  env_t *env = env_open_at(url, NULL);
  lockers_t lockers = lockers_new(env, 64, false);
  run_cycles(env, &lockers, (size_t)atoi(cycles));
  env_close(env);
  return 0;
}

/* ---- looking ---- */

/* A process can be watched, or watches another already, or may not be. */
static bool may_trace(void) {
  const char *argv[] = {"strace", "-f", "-o", "/dev/null", "true", NULL};
  process_t strace = process_start(argv);
  int status = process_wait(&strace);
  if (status == 127)
    fail_msg("this test needs the program strace, which is not installed");
  return status == 0;
}

/* The number of epoll_ctl calls of a client that runs `cycles` cycles. */
static unsigned calls_for(server_t *server, const char *cycles) {
  const char *argv[] = {"env",
                        "ASAN_OPTIONS=detect_leaks=0", /* not while it is watched */
                        "strace",
                        "-f",
                        "-qq",
                        "-e",
                        "trace=epoll_ctl",
                        "-o",
                        "/dev/stdout",
                        process_self(),
                        "--client",
                        server_url(server),
                        cycles,
                        NULL};
  process_t strace = process_start(argv);
  char line[1024];
  unsigned calls = 0;
  while (process_read_line(&strace, line, sizeof line))
    calls += strstr(line, "epoll_ctl(") != NULL;
  assert_int_equal(process_wait(&strace), 0);
  return calls;
}

TEST(epoll_ctl_calls_per_command) {
  if (!may_trace())
    skip();
  server_t *server = server_start(NULL);
  int64_t before = server_commands(server);
  unsigned few = calls_for(server, "500");
  int64_t between = server_commands(server);
  unsigned many = calls_for(server, "10000");
  int64_t after = server_commands(server);
  print_message("epoll_ctl: %u for %lld commands, %u for %lld\n", few,
                (long long)(between - before), many, (long long)(after - between));
  assert_true(after - between > 20000);
  assert_int_equal(few, many);
  server_stop(server);
}

TEST_ROLE(client, "--client") {
  return be_client(argv[2], argv[3]);
}

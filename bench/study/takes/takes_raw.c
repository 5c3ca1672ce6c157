/* The calls, by hiredis and by redis-benchmark. */
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scripts.gen.h"
#include "server.h"
#include "study/takes/takes.h"

enum { AT_ONCE = 1000, ARGS = 7, KEY_MAX = 64 };
#define NUMBER_SIZE sizeof(double)

static const char empty_script[] = "return 1";

void takes_digits(uint64_t number, char out[TAKES_DIGITS]) {
  for (unsigned i = TAKES_DIGITS; i-- > 0; number /= 10)
    out[i] = (char)('0' + number % 10);
}

/* ---- by hiredis ---------------------------------------------------------------------------------------- */

typedef struct raw {
  redisContext *connection;
  const takes_t *takes;
  char sha[SERVER_SHA_SIZE];
  size_t reply_len; /* 0: an integer */
} raw_t;

static redisContext *dial(void) {
  redisContext *connection = redisConnectUnix(server_path());
  if (connection == NULL || connection->err != 0)
    bench_die("cannot connect");
  return connection;
}

static void name_key(const takes_t *takes, uint64_t i, char key[KEY_MAX]) {
  char digits[TAKES_DIGITS];
  takes_digits(takes->keys == TAKES_DENIED ? i % TAKES_SPENT : i, digits);
  (void)snprintf(key, KEY_MAX, TAKES_KEY, digits);
}

static void append(const raw_t *raw, uint64_t i) {
  const takes_policy_t *policy = raw->takes->policy;
  char key[KEY_MAX];
  name_key(raw->takes, i, key);
  const char *argv[] = {"EVALSHA", raw->sha, "1", key, "take", (const char *)policy->numbers, "1"};
  size_t lens[] = {7, SERVER_SHA_SIZE - 1, 1, strlen(key), 4, 4 * NUMBER_SIZE * policy->n, 1};
  if (redisAppendCommandArgv(raw->connection, ARGS, argv, lens) != REDIS_OK)
    bench_die("out of memory");
}

static void read_reply(const raw_t *raw) {
  redisReply *reply;
  if (redisGetReply(raw->connection, (void **)&reply) != REDIS_OK)
    bench_die("the server does not answer: %s", raw->connection->errstr);
  if (reply->type == REDIS_REPLY_ERROR)
    bench_die("the server refuses: %s", reply->str);
  if (raw->reply_len == 0 ? reply->type != REDIS_REPLY_INTEGER
                          : reply->type != REDIS_REPLY_STRING || reply->len != raw->reply_len)
    bench_die("a call was not answered as it should be");
  freeReplyObject(reply);
}

/* The length of a reply that says: allowed; or denied, which a script of one limit says in fewer words, and of a bucket in
 * a number: 0. */
static size_t reply_len(const takes_t *takes) {
  size_t n = takes->policy->n;
  bool brief = takes->keys == TAKES_DENIED && n == 1;
  if (brief && takes->policy->limits[0].kind == BELAY_LIMIT_BUCKET)
    return 0;
  return NUMBER_SIZE * (4 + (brief ? 3 : 7) * n);
}

static void call(const takes_t *takes, const char *script, size_t len, uint64_t calls) {
  raw_t raw = {.connection = dial(), .takes = takes, .reply_len = len};
  server_load(script, raw.sha);
  for (uint64_t i = 0; i < calls;) {
    uint64_t end = i + AT_ONCE < calls ? i + AT_ONCE : calls, n = end - i;
    for (; i < end; i++)
      append(&raw, i);
    while (n-- > 0)
      read_reply(&raw);
  }
  redisFree(raw.connection);
}

void takes_prepare(const takes_t *takes) {
  takes_t spend = *takes;
  servers_flush();
  spend.keys = TAKES_FRESH;
  if (takes->keys == TAKES_DENIED)
    call(&spend, belay__script_limit.text, reply_len(&spend), TAKES_SPENT);
}

double takes_cost(const takes_t *takes, bool empty) {
  const char *script = empty ? empty_script : belay__script_limit.text;
  takes_prepare(takes);
  double before = server_used_cpu();
  call(takes, script, empty ? 0 : reply_len(takes), takes->calls);
  return (server_used_cpu() - before) * 1e6 / (double)takes->calls;
}

void takes_compare(const takes_policy_t *policy) {
  takes_t takes = {.policy = policy, .keys = TAKES_FRESH, .in_flight = 1, .calls = 1};
  char key[KEY_MAX];
  takes_prepare(&takes);
  (void)takes_by_belay(&takes);
  name_key(&takes, 0, key);
  redisContext *connection = dial();
  redisReply *reply = redisCommand(connection, "GET %s", key);
  if (reply == NULL || reply->type != REDIS_REPLY_STRING || reply->len != reply_len(&takes))
    bench_die("belay takes from another key");
  for (size_t i = 0; i < 4 * policy->n; i++) {
    double number; /* four of them, behind those that count */
    memcpy(&number, reply->str + NUMBER_SIZE * (4 + 7 * (i / 4) + 3 + i % 4), sizeof number);
    if (number != policy->numbers[i])
      bench_die("belay has another policy");
  }
  freeReplyObject(reply);
  redisFree(connection);
}

/* ---- by redis-benchmark -------------------------------------------------------------------------------- */

enum { NOT_THERE = 127, OUTPUT_MAX = 4096 };

/* redis-benchmark sends nothing with a zero byte in it, as policies have. So it sends something else of that length, and
 * the script begins by putting the policy in its place, which takes no time beside the rest. */
static void load_for_redis_benchmark(const takes_policy_t *policy, char sha[SERVER_SHA_SIZE]) {
  const unsigned char *bytes = (const unsigned char *)policy->numbers;
  char *script = malloc(belay__script_limit.len + 5 * sizeof policy->numbers);
  if (script == NULL)
    bench_die("out of memory");
  int n = sprintf(script, "ARGV[2]='");
  for (size_t i = 0; i < 4 * NUMBER_SIZE * policy->n; i++)
    n += sprintf(script + n, "\\%03u", bytes[i]);
  n += sprintf(script + n, "'\n");
  memcpy(script + n, belay__script_limit.text, belay__script_limit.len + 1);
  server_load(script, sha);
  free(script);
}

bool takes_have_redis_benchmark(void) {
  pid_t pid = fork();
  if (pid == 0) {
    const char *argv[] = {"redis-benchmark", "--version", NULL};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDOUT_FILENO) >= 0)
      execvp(argv[0], (char **)(uintptr_t)argv);
    _exit(NOT_THERE);
  }
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static _Noreturn void become_redis_benchmark(const takes_t *takes, const char *sha, pid_t parent,
                                             int output) {
  char key[KEY_MAX], policy[sizeof takes->policy->numbers + 1] = "", calls[24], in_flight[12];
  const char *range = takes->keys == TAKES_DENIED ? "1000" : "2000000000";
  _Static_assert(TAKES_SPENT == 1000, "the range is that of the spent keys");
  (void)snprintf(key, sizeof key, TAKES_KEY, "__rand_int__");
  memset(policy, 'x', 4 * NUMBER_SIZE * takes->policy->n);
  (void)snprintf(calls, sizeof calls, "%llu", (unsigned long long)takes->calls);
  (void)snprintf(in_flight, sizeof in_flight, "%u", takes->in_flight);
  const char *argv[] = {"redis-benchmark",
                        "-s",
                        server_path(),
                        "-c",
                        "1",
                        "-P",
                        in_flight,
                        "-n",
                        calls,
                        "-r",
                        range,
                        "--csv",
                        "EVALSHA",
                        sha,
                        "1",
                        key,
                        "take",
                        policy,
                        "1",
                        NULL};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent || dup2(output, STDOUT_FILENO) < 0)
    _exit(126);
  execvp(argv[0], (char **)(uintptr_t)argv);
  _exit(NOT_THERE);
}

/* All that a process writes, until it ends. Returns its status. */
static int read_all(pid_t pid, int fd, char text[OUTPUT_MAX], struct rusage *usage) {
  size_t len = 0;
  int status = 0;
  for (ssize_t n; (n = read(fd, text + len, OUTPUT_MAX - 1 - len)) > 0;)
    len += (size_t)n;
  text[len] = '\0';
  if (wait4(pid, &status, 0, usage) != pid)
    bench_die("redis-benchmark is lost");
  return status;
}

/* The second field of the last line. */
static double read_rate(const char *text) {
  double rate = 0;
  for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
    line += *line == '\n';
    const char *field = strstr(line, "\",\"");
    if (field != NULL)
      rate = strtod(field + 3, NULL);
  }
  return rate;
}

static double cpu_ns(const struct rusage *usage) {
  return 1e9 * ((double)usage->ru_utime.tv_sec + (double)usage->ru_stime.tv_sec) +
         1e3 * ((double)usage->ru_utime.tv_usec + (double)usage->ru_stime.tv_usec);
}

takes_outcome_t takes_by_redis_benchmark(const takes_t *takes) {
  char sha[SERVER_SHA_SIZE], text[OUTPUT_MAX];
  struct rusage usage;
  int ends[2];
  takes_prepare(takes);
  load_for_redis_benchmark(takes->policy, sha);
  if (pipe(ends) != 0)
    bench_die("no pipe");
  fflush(NULL);
  int64_t cpu = server_cpu();
  pid_t parent = getpid(), pid = fork();
  if (pid == 0)
    become_redis_benchmark(takes, sha, parent, ends[1]);
  if (pid < 0)
    bench_die("no process for redis-benchmark");
  close(ends[1]);
  int status = read_all(pid, ends[0], text, &usage);
  close(ends[0]);
  double calls = (double)takes->calls, rate = read_rate(text);
  if (status != 0 || !(rate > 0))
    bench_die("redis-benchmark ended with %d, and said: %s", status, text);
  cpu = server_cpu() - cpu;
  uint64_t keys = server_keys();
  double fewest = calls * 0.99; /* some random keys are the same */
  if (takes->keys == TAKES_DENIED ? keys != TAKES_SPENT : (double)keys < fewest)
    bench_die("redis-benchmark did not what it was to do: there are %llu keys",
              (unsigned long long)keys);
  /* It counts whole milliseconds; of none it says that it was infinitely fast. */
  return (takes_outcome_t){.rate = rate < calls * 2000 ? rate : calls * 2000,
                           .client_cpu = cpu_ns(&usage) / calls,
                           .server_cpu = (double)cpu / calls};
}

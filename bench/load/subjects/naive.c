/* What a careful C programmer writes: hiredis with its stock libuv adapter, one connection to each
 * server, and well-known commands. It sends all commands of one turn of the loop in one write. On
 * several servers a majority decides, as Redlock describes it, and late replies do not count. */
#include <hiredis/adapters/libuv.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "query.h"
#include "bench.h"
#include "load/driver/meter.h"
#include "load/subjects/naive.h"

enum { TOKEN_SIZE = 48, KEY_SIZE = 48, VALUE = 1024, POLL_MS = 1, TTL_MS = 60000 };

#define CONTENDED "naive:contended"

static const char delete_script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
static const char renew_script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then return "
                                   "redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";

typedef struct naive {
  unsigned n;
  redisAsyncContext *connection[JOB_SERVERS_MAX];
  const char *script;
  char sha[QUERY_SHA_SIZE];
  uint64_t turns;
} naive_t;

/* One runner's lock. */
typedef struct own {
  char key[KEY_SIZE], token[TOKEN_SIZE];
  unsigned sent, answered[JOB_SERVERS_MAX]; /* commands to all servers; replies of each */
  unsigned yes;                             /* replies to the last command */
  uint64_t until;                           /* end of the lease, less the drift, in ms */
  bool held;
  uv_timer_t timer; /* until it asks again */
} own_t;

static void send_to(naive_t *naive, unsigned server, redisCallbackFn *function, runner_t *runner,
                    int argc, const char **argv) {
  redisAsyncContext *connection = naive->connection[server];
  if (redisAsyncCommandArgv(connection, function, runner, argc, argv, NULL) != REDIS_OK)
    bench_die("cannot send: %s", connection->errstr);
}

static void send_all(runner_t *runner, redisCallbackFn *function, int argc, const char **argv) {
  naive_t *naive = runner->driver->own;
  own_t *own = runner->own;
  own->sent++;
  own->yes = 0;
  for (unsigned i = 0; i < naive->n; i++)
    send_to(naive, i, function, runner, argc, argv);
}

static const redisReply *good(void *reply, int type) {
  const redisReply *r = reply;
  if (r == NULL)
    bench_die("a connection was lost");
  if (r->type != type)
    bench_die("an unexpected reply: %s", r->str != NULL ? r->str : "?");
  return r;
}

/* Count a reply. Returns true for the reply that makes a majority. */
static bool decides(runner_t *runner, const redisAsyncContext *connection) {
  own_t *own = runner->own;
  const naive_t *naive = runner->driver->own;
  unsigned server = (unsigned)(uintptr_t)connection->data;
  return ++own->answered[server] == own->sent && ++own->yes == naive->n / 2 + 1;
}

static void on_deleted(redisAsyncContext *connection, void *reply, void *data) {
  if (good(reply, REDIS_REPLY_INTEGER)->integer != 1)
    bench_die("the lock was gone when it was released");
  if (decides(data, connection))
    driver_done(data);
}

static void on_set(redisAsyncContext *connection, void *reply, void *data) {
  runner_t *runner = data;
  naive_t *naive = runner->driver->own;
  own_t *own = runner->own;
  (void)good(reply, REDIS_REPLY_STATUS);
  if (!decides(runner, connection))
    return;
  if (uv_now(&runner->driver->loop) >= own->until)
    bench_die("the lock was granted too late");
  const char *argv[] = {"EVALSHA", naive->sha, "1", own->key, own->token};
  send_all(runner, on_deleted, 5, argv);
}

static void set(runner_t *runner, redisCallbackFn *function) {
  naive_t *naive = runner->driver->own;
  own_t *own = runner->own;
  (void)snprintf(own->token, sizeof own->token, "%040llx", (unsigned long long)naive->turns++);
  own->until = uv_now(&runner->driver->loop) + TTL_MS - TTL_MS / 100;
  const char *argv[] = {"SET", own->key, own->token, "NX", "PX", "60000"};
  send_all(runner, function, 6, argv);
}

static void want(runner_t *runner);

static void on_given_back(redisAsyncContext *connection, void *reply, void *data) {
  (void)connection;
  if (good(reply, REDIS_REPLY_INTEGER)->integer != 1)
    bench_die("the lock was gone when it was released");
  driver_done(data);
}

static void on_time(uv_timer_t *timer) {
  want(timer->data);
}

static void give_back(runner_t *runner) {
  own_t *own = runner->own;
  naive_t *naive = runner->driver->own;
  const char *argv[] = {"EVALSHA", naive->sha, "1", CONTENDED, own->token};
  send_to(naive, 0, on_given_back, runner, 5, argv);
}

static void on_asked(redisAsyncContext *connection, void *reply, void *data) {
  runner_t *runner = data;
  own_t *own = runner->own;
  const redisReply *r = reply;
  (void)connection;
  if (r == NULL || r->type == REDIS_REPLY_ERROR)
    bench_die("SET: %s", r != NULL ? r->str : "a connection was lost");
  if (r->type != REDIS_REPLY_NIL)
    driver_hold(runner, 1, runner->driver->job->hold, give_back);
  else
    uv_timer_start(&own->timer, on_time, POLL_MS, 0);
}

static void want(runner_t *runner) {
  own_t *own = runner->own;
  const char *argv[] = {"SET", CONTENDED, own->token, "NX", "PX", "60000"};
  send_to(runner->driver->own, 0, on_asked, runner, 6, argv);
}

static void begin_contending(runner_t *runner) {
  naive_t *naive = runner->driver->own;
  own_t *own = runner->own;
  (void)snprintf(own->token, sizeof own->token, "%d:%u:%llu", (int)getpid(), runner->number,
                 (unsigned long long)naive->turns++);
  want(runner);
}

static void begin_lock(runner_t *runner) {
  set(runner, on_set);
}

static void on_done(redisAsyncContext *connection, void *reply, void *data) {
  (void)connection;
  (void)good(reply, REDIS_REPLY_INTEGER);
  driver_done(data);
}

static void on_kept(redisAsyncContext *connection, void *reply, void *data) {
  runner_t *runner = data;
  (void)connection;
  (void)good(reply, REDIS_REPLY_STATUS);
  ((own_t *)runner->own)->held = true;
  driver_done(runner);
}

static void begin_renew(runner_t *runner) {
  naive_t *naive = runner->driver->own;
  own_t *own = runner->own;
  const char *argv[] = {"EVALSHA", naive->sha, "1", own->key, own->token, "60000"};
  if (own->held)
    send_to(naive, 0, on_done, runner, 6, argv);
  else
    set(runner, on_kept);
}

static void begin_keeping(runner_t *runner) {
  (void)driver_next_key(runner->driver);
  begin_renew(runner);
}

static const char *next_key(runner_t *runner) {
  static char key[] = "naive:0123456789";
  driver_next_key_text(runner->driver, key + 6);
  return key;
}

static void on_ttl(redisAsyncContext *connection, void *reply, void *data) {
  (void)connection;
  (void)data;
  (void)good(reply, REDIS_REPLY_INTEGER);
}

/* NX: only a key without a ttl gets one, so that a window ends. If the second command is lost, that
 * of a later take sets the ttl. */
static void begin_limit(runner_t *runner) {
  naive_t *naive = runner->driver->own;
  const char *key = next_key(runner);
  const char *add[] = {"INCR", key}, *limit[] = {"PEXPIRE", key, "1000", "NX"};
  send_to(naive, 0, on_done, runner, 2, add);
  send_to(naive, 0, on_ttl, runner, 4, limit);
}

static void begin_count(runner_t *runner) {
  const char *argv[] = {"INCRBY", next_key(runner), "1"};
  send_to(runner->driver->own, 0, on_done, runner, 3, argv);
}

static void begin_id(runner_t *runner) {
  const char *argv[] = {"INCR", "naive:ids"};
  send_to(runner->driver->own, 0, on_done, runner, 2, argv);
}

static void on_got(redisAsyncContext *connection, void *reply, void *data) {
  (void)connection;
  (void)good(reply, REDIS_REPLY_STRING);
  driver_done(data);
}

static void begin_get(runner_t *runner) {
  const char *argv[] = {"GET", next_key(runner)};
  send_to(runner->driver->own, 0, on_got, runner, 2, argv);
}

static void on_connected(const redisAsyncContext *connection, int status) {
  if (status != REDIS_OK)
    bench_die("cannot connect: %s", connection->errstr);
}

static redisAsyncContext *dial(const char *url, uv_loop_t *loop) {
  char host[JOB_URL_MAX];
  int port = 6379;
  bool local = strncmp(url, "unix://", 7) == 0;
  if (!local && sscanf(url, "redis://%159[^:/]:%d", host, &port) < 1)
    bench_die("which host? %s", url);
  redisAsyncContext *connection =
      local ? redisAsyncConnectUnix(url + 7) : redisAsyncConnect(host, port);
  if (connection == NULL || connection->err != 0)
    bench_die("cannot connect: %s", connection != NULL ? connection->errstr : "out of memory");
  if (redisLibuvAttach(connection, loop) != REDIS_OK)
    bench_die("hiredis and libuv do not come together");
  redisAsyncSetConnectCallback(connection, on_connected);
  return connection;
}

static void open_naive(driver_t *driver, const char *script) {
  const job_t *job = driver->job;
  naive_t *naive = driver->own = bench_alloc(1, sizeof *naive);
  own_t *owns = bench_alloc(job->concurrency, sizeof *owns);
  naive->n = job->servers;
  for (unsigned i = 0; i < naive->n; i++) {
    naive->connection[i] = dial(job->urls[i], &driver->loop);
    naive->connection[i]->data = (void *)(uintptr_t)i;
    if (script == NULL)
      continue;
    redisContext *server = meter_dial(job->urls[i]);
    query_load_script(server, script, naive->sha);
    redisFree(server);
  }
  for (unsigned i = 0; i < job->concurrency; i++) {
    (void)snprintf(owns[i].key, KEY_SIZE, "naive:lock-%07u", i);
    driver->runners[i].own = &owns[i];
    uv_timer_init(&driver->loop, &owns[i].timer);
    owns[i].timer.data = &driver->runners[i];
  }
}

static void open_lock(driver_t *driver) {
  open_naive(driver, delete_script);
}

static void open_renew(driver_t *driver) {
  open_naive(driver, renew_script);
}

static void open_plain(driver_t *driver) {
  open_naive(driver, NULL);
}

static void open_get(driver_t *driver) {
  static char value[VALUE + 1];
  redisContext *server = meter_dial(driver->job->urls[0]);
  memset(value, 'v', VALUE);
  for (unsigned i = 0; i < driver->job->keys; i++)
    freeReplyObject(redisCommand(server, "SET naive:%010u %s", i, value));
  redisFree(server);
  open_naive(driver, NULL);
}

static void close_naive(driver_t *driver) {
  const naive_t *naive = driver->own;
  for (unsigned i = 0; i < naive->n; i++)
    redisAsyncDisconnect(naive->connection[i]);
  for (unsigned i = 0; i < driver->job->concurrency; i++)
    uv_close((uv_handle_t *)&((own_t *)driver->runners[i].own)->timer, NULL);
}

const doer_t naive_lock = {open_lock, begin_lock, close_naive, NULL};
const doer_t naive_contention = {open_lock, begin_contending, close_naive, NULL};
const doer_t naive_renew = {open_renew, begin_renew, close_naive, begin_keeping};
const doer_t naive_limit = {open_plain, begin_limit, close_naive, NULL};
const doer_t naive_counter = {open_plain, begin_count, close_naive, NULL};
const doer_t naive_ids = {open_plain, begin_id, close_naive, NULL};
const doer_t naive_cache = {open_get, begin_get, close_naive, NULL};

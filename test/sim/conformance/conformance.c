/* The engine behaves like a real server: both get the same random commands (repeatable by a
 * seed), and every reply is compared.
 *
 * BELAY_SIM_SEEDS=N: seeds per family. BELAY_SIM_SEED=S: this seed only. With a family's name as
 * argument, the program runs that family only.
 *
 * The engine gets the wall clock of the moment before the real command. So times differ by at
 * most the real command's duration; all other replies must be equal bytes. Ttls are longer than
 * a sequence, or so short that the test waits until they have ended. */
#include "sim/conformance/peers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/base/test.h"

#define COMMANDS 400     /* of a sequence */
#define SEEDS 30         /* of a family */
#define BATCH 64         /* commands that the server is sent at once */
#define PAUSE_US 6000    /* short ttls are over by then */
#define ROUNDING_US 2000 /* effect of rounding to milliseconds, twice */
#define TRIES 4          /* that a difference has to be there in a row */
#define DAYS_MS (UINT64_C(86400000) * 30)

static uint64_t wall_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void sleep_us(uint64_t us) {
  struct timespec left = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
  while (nanosleep(&left, &left) != 0)
    ;
}

/* ---- asking both ---- */

typedef struct run {
  conformance_peers_t *peers;
  const conformance_sequence_t *sequence;
  conformance_times_t times;
  size_t at; /* the command that is compared */
  FILE *out; /* where to tell; NULL: nowhere */
} run_t;

static bool differ(const run_t *run, const char *what, engine_bytes_t engines,
                   engine_bytes_t servers) {
  if (run->out == NULL)
    return false;
  fprintf(run->out, "%s\n  engine: ", what);
  conformance_print(run->out, engines);
  fprintf(run->out, "\n  server: ");
  conformance_print(run->out, servers);
  fputc('\n', run->out);
  return false;
}

static size_t count_replies(engine_bytes_t bytes) {
  size_t count = 0;
  for (size_t n; (n = conformance_reply_length(bytes.at, bytes.len)) > 0; count++)
    bytes = (engine_bytes_t){bytes.at + n, bytes.len - n};
  return count;
}

/* Asks the engine, which takes the same bytes as the server; false: it has not understood them. */
static bool ask_engine(run_t *run, const conformance_command_t *command, engine_buffer_t *out) {
  static engine_bytes_t words[ENGINE_ARGS_MAX];
  conformance_peers_t *peers = run->peers;
  engine_buffer_t bytes = {0};
  size_t count = 0;
  conformance_add(&bytes, command);
  bool good = engine_parse(bytes.at, bytes.len - 1, words, &count) == 0 &&
              engine_parse(bytes.at, bytes.len, words, &count) == (long)bytes.len &&
              count == command->argc;
  if (good)
    engine_execute(peers->engine, &peers->conn[command->conn], run->times.now_us, words, count,
                   out);
  engine_buffer_free(&bytes);
  return good;
}

/* Expects the published messages and nothing else. */
static bool compare_pushed_to(run_t *run, unsigned conn) {
  conformance_peers_t *peers = run->peers;
  engine_bytes_t engines = {peers->pushed[conn].at, peers->pushed[conn].len};
  engine_bytes_t servers = conformance_next_few(peers, conn, count_replies(engines));
  bool same = servers.len == engines.len &&
              (engines.len == 0 || memcmp(servers.at, engines.at, engines.len) == 0);
  if (!same)
    differ(run, "the published messages differ", engines, servers);
  conformance_drop(&peers->received[conn], servers.len);
  peers->pushed[conn].len = 0;
  return same;
}

static bool compare_pushed(run_t *run) {
  bool same = true;
  for (unsigned i = 0; i < run->peers->conns && same; i++)
    same = compare_pushed_to(run, i);
  return same;
}

/* Runs the command in the engine and compares. Messages to itself (RESP3) precede the reply. */
static bool compare_one(run_t *run, const conformance_command_t *command) {
  conformance_peers_t *peers = run->peers;
  engine_buffer_t out = {0};
  if (command->restart)
    conformance_restart(peers);
  bool same = ask_engine(run, command, &out);
  if (!compare_pushed_to(run, command->conn)) {
    engine_buffer_free(&out);
    return false;
  }
  engine_bytes_t engines = {out.at != NULL ? out.at : "", out.len};
  size_t count = count_replies(engines);
  engine_bytes_t servers = conformance_next_few(peers, command->conn, count > 0 ? count : 1);
  same = same && conformance_is_like(command->like, &run->times, engines, servers);
  if (!same)
    differ(run, "the replies differ", engines, servers);
  conformance_drop(&peers->received[command->conn], servers.len);
  engine_buffer_free(&out);
  const char *wrong = conformance_shadow_check(peers->shadow, peers->engine, run->times.now_us);
  if (wrong == NULL || !same)
    return same;
  return differ(run, wrong, engines, servers);
}

static size_t batch_length(const conformance_sequence_t *sequence, size_t from, size_t most) {
  size_t n = 0;
  while (n < most && from + n < sequence->count)
    if (sequence->command[from + n++].pause)
      break;
  return n;
}

static bool run_batch(run_t *run, size_t from, size_t count) {
  const conformance_command_t *command = &run->sequence->command[from];
  unsigned conn = command->conn;
  engine_buffer_t bytes = {0};
  for (size_t i = 0; i < count; i++)
    conformance_add(&bytes, &command[i]);
  run->times.now_us = wall_us();
  conformance_send(&run->peers->client[conn], &bytes);
  engine_buffer_free(&bytes);
  conformance_next_few(run->peers, conn, count);
  uint64_t took = wall_us() - run->times.now_us + ROUNDING_US;
  if (took > run->times.tolerance_us)
    run->times.tolerance_us = took;
  for (size_t i = 0; i < count; i++) {
    run->at = from + i;
    if (!compare_one(run, &command[i]))
      return false;
  }
  if (command[count - 1].pause)
    sleep_us(PAUSE_US);
  return run->peers->conns == 1 || compare_pushed(run);
}

/* Something that comes late or twice would come before this. */
static bool compare_ends(run_t *run) {
  static const engine_bytes_t ping = {"PING", 4};
  for (unsigned i = 0; i < run->peers->conns; i++) {
    conformance_command_t command = {.argv = {ping}, .argc = 1, .conn = i};
    engine_buffer_t bytes = {0};
    conformance_add(&bytes, &command);
    conformance_send(&run->peers->client[i], &bytes);
    engine_buffer_free(&bytes);
    if (!compare_one(run, &command))
      return false;
  }
  return true;
}

/* True: no difference. Else the last command of them is the one at run->at. */
static bool run_all(run_t *run) {
  size_t most = run->sequence->count;
  conformance_peers_t *peers = run->peers;
  bool same = true;
  run->times.tolerance_us = ROUNDING_US;
  for (size_t i = 0; i < most && same;) {
    size_t n = batch_length(run->sequence, i, peers->conns == 1 ? BATCH : 1);
    same = run_batch(run, i, n);
    i += n;
  }
  return same && compare_ends(run);
}

static bool is_same(conformance_peers_t *peers, const conformance_family_t *family,
                    const conformance_sequence_t *sequence, FILE *out, size_t *at) {
  run_t run = {.peers = peers, .sequence = sequence, .out = out};
  conformance_begin(peers, family->conns, family->resp);
  bool same = run_all(&run);
  conformance_end(peers);
  *at = run.at;
  return same;
}

/* ---- telling ---- */

/* The last commands about the same keys. */
static void print_commands(FILE *out, const conformance_sequence_t *sequence, size_t at) {
  uint64_t keys = sequence->command[at].keys;
  size_t first = at, shown = 0;
  for (size_t i = at + 1; i-- > 0 && shown < 20;)
    if (keys == 0 || (sequence->command[i].keys & keys) != 0 || i == at) {
      first = i;
      shown++;
    }
  for (size_t i = first; i <= at; i++) {
    const conformance_command_t *command = &sequence->command[i];
    if (keys != 0 && (command->keys & keys) == 0 && i != at)
      continue;
    fprintf(out, "  %zu (%u): ", i, command->conn);
    conformance_print_command(out, command);
    fputs(command->pause ? "; a pause\n" : "\n", out);
  }
}

/* The clock of the server advances between two commands, so that it may order things that are
 * simultaneous in the engine. So a difference counts if it is there each time. */
static void run_seed(conformance_peers_t *peers, const conformance_family_t *family,
                     uint64_t seed) {
  uint64_t absolute_ms = wall_us() / 1000 + DAYS_MS;
  conformance_sequence_t sequence = conformance_generate(family, seed, COMMANDS, absolute_ms);
  bool same = false;
  for (int i = 1; i <= TRIES && !same; i++) {
    char *text = NULL;
    size_t len, at;
    FILE *out = open_memstream(&text, &len);
    same = is_same(peers, family, &sequence, out, &at);
    fclose(out);
    if (!same)
      fprintf(stderr, "%s, seed %" PRIu64 ", command %zu: %s", family->name, seed, at, text);
    if (!same && i == TRIES) {
      print_commands(stderr, &sequence, at);
      fail_msg("%s: a difference with BELAY_SIM_SEED=%" PRIu64, family->name, seed);
    }
    free(text);
  }
  conformance_free(&sequence);
}

/* ---- tests ---- */

static void ask_sha1(void *ctx, const char *text, char out[41]) {
  const resp_t *reply = server_ask(ctx, "SCRIPT", "LOAD", text, NULL);
  snprintf(out, 41, "%s", reply->type == RESP_STRING ? reply->str : "no script");
}

static server_t *start_server(void) {
  const server_options_t options = {.arguments = {"--databases", "1"}};
  return server_start(&options);
}

/* The engine imitates server 7.0; differences of other versions are not compared. */
static void learn(conformance_peers_t *peers) {
  const char *info = server_string(peers->server, "INFO", "server", NULL);
  const char *run_id = strstr(info, "\nrun_id:");
  assert_non_null(run_id);
  snprintf(peers->run_id, sizeof peers->run_id, "%s", run_id + 8);
  if (strstr(info, "redis_version:7.0.") == NULL) {
    server_stop(peers->server);
    skip();
  }
  int64_t uptime = server_info(peers->server, "server", "uptime_in_seconds");
  peers->started_us = wall_us() - (uint64_t)uptime * 1000000;
}

static uint64_t from_environment(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void test_family(void **state) {
  const conformance_family_t *family = *state;
  conformance_peers_t peers = {.server = start_server()};
  uint64_t first = from_environment("BELAY_SIM_SEED", 1);
  uint64_t seeds = from_environment("BELAY_SIM_SEEDS", SEEDS);
  learn(&peers);
  conformance_scripts_name(ask_sha1, peers.server);
  if (getenv("BELAY_SIM_SEED") != NULL)
    seeds = 1;
  for (uint64_t seed = first; seed < first + seeds; seed++)
    run_seed(&peers, family, seed);
  server_stop(peers.server);
}

/* The reply, and the closed connections; a connection does not close itself. */
TEST(kill) {
  conformance_peers_t peers = {.server = start_server()};
  learn(&peers);
  conformance_begin(&peers, 2, 2);
  for (unsigned victim = 0; victim < 2; victim++) {
    char id[24];
    int len = snprintf(id, sizeof id, "%" PRId64, peers.conn[victim].id);
    conformance_command_t kill = {
        .argv = {{"CLIENT", 6}, {"KILL", 4}, {"ID", 2}, {id, (size_t)len}}, .argc = 4};
    const conformance_sequence_t sequence = {&kill, 1};
    run_t run = {.peers = &peers, .sequence = &sequence, .out = stderr};
    peers.killed = 0;
    assert_true(run_batch(&run, 0, 1));
    assert_int_equal(peers.killed, victim == 0 ? 0 : peers.conn[victim].id);
  }
  assert_int_equal(conformance_next(&peers, 1).len, 0); /* the server has closed it */
  conformance_end(&peers);
  server_stop(peers.server);
}

/* Of HyperLogLogs all is the same but their bytes. */
TEST(sketch) {
  enum { ASKED = 3000 };
  static char text[ASKED][64];
  static conformance_command_t commands[ASKED];
  static const char keys[] = "abcd", *const foreign[] = {"DEL d", "SET d x", "DEL d", "SADD d x"};
  static const char *const formats[] = {"PFADD %c %.*u",  "PFADD %c %.*u",   "PFADD %c",
                                        "PFADD %c %.*u",  "PFADD %c %.*u x", "PFCOUNT %c c a",
                                        "PFCOUNT %c a b", "PFADD %c %.*u",   "PFCOUNT %c"};
  conformance_peers_t peers = {.server = start_server()};
  learn(&peers);
  conformance_begin(&peers, 1, 2);
  for (unsigned i = 0; i < ASKED; i++) {
    const char *format = i % 300 == 299 ? foreign[i / 300 % 4] : formats[i % 9];
    char *rest = NULL;
    snprintf(text[i], sizeof text[i], format, keys[i / 11 % 4], (int)(i % 20 + 1), i * 7919 % 2500);
    for (char *word = strtok_r(text[i], " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
      commands[i].argv[commands[i].argc++] = (engine_bytes_t){word, strlen(word)};
  }
  const conformance_sequence_t sequence = {commands, ASKED};
  run_t run = {.peers = &peers, .sequence = &sequence, .out = stderr};
  assert_true(run_batch(&run, 0, ASKED));
  conformance_end(&peers);
  server_stop(peers.server);
}

TEST_ROWS(families) {
  for (size_t i = 0; i < conformance_families_count; i++)
    test_add(0, test_family, &conformance_families[i], "%s", conformance_families[i].name);
}

TEST_END {
  engine_shutdown();
}

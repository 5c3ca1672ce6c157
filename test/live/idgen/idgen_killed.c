/* Eight processes draw ids and write them to disk. They are killed and restarted, their clocks
 * step, and the server is restarted. No id is written twice, and each process's grow. With a
 * clock_rate that goes for a server too whose keys are removed again and again.
 *
 * BELAY_SOAK_SECONDS in the environment: for how long, each mode; default 1.5. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/loop/list.h"
#include "support/fixtures/data/ids.h"
#include "support/base/never.h"
#include "support/servers/process.h"

enum { PROCESSES = 8, BURST = 40, PATH = 300 };
#define BEGINS INT64_C(-1) /* in a file: a process begins */

static int64_t duration_ms(void) {
  const char *text = getenv("BELAY_SOAK_SECONDS");
  return text != NULL ? strtoll(text, NULL, 10) * 1000 : 1500;
}

typedef struct issuer {
  env_t *env;
  generator_t generator;
  id_op_t op;
  int file;
  uint64_t random;
} issuer_t;

static uint64_t below(uint64_t *random, uint64_t n) { /* xorshift64* */
  *random ^= *random >> 12;
  *random ^= *random << 25;
  *random ^= *random >> 27;
  return (*random * UINT64_C(2685821657736338717) >> 11) % n;
}

static void put(const issuer_t *issuer, const int64_t *ids, size_t n) {
  ssize_t size = (ssize_t)(n * sizeof *ids);
  if (n > 0 && write(issuer->file, ids, (size_t)size) != size)
    fail_msg("the disk is full");
}

/* As many as are here, and then some that are waited for. */
static void give_some(issuer_t *issuer) {
  int64_t ids[BURST];
  size_t n = 0;
  while (n < BURST && belay_idgen_next(issuer->generator.idgen, &ids[n]) == 0)
    n++;
  put(issuer, ids, n);
  if (issuer->op.ended == issuer->op.begun && below(&issuer->random, 4) == 0)
    assert_error(begin_get(&issuer->generator, &issuer->op), 0);
}

static void take_note(generator_t *generator) {
  issuer_t *issuer = BELAY__CONTAINER(generator, issuer_t, generator);
  if (issuer->op.status == 0 && issuer->op.n > 0)
    put(issuer, &issuer->op.first, 1);
  issuer->op.n = 0;
}

static int be_issuer(char **argv) {
  enum { URL = 2, MODE, INDEX, FILE_NAME, TIME, RATE };
  static issuer_t issuer;
  int64_t until = clock_now() + strtoll(argv[TIME], NULL, 10) * MS, begins = BEGINS;
  int index = atoi(argv[INDEX]);
  belay_client_options_t client = client_options();
  client.timeout_ms = 300 * slow();
  client.reconnect_max_ms = 20;
  issuer.env = env_open_at(argv[URL], &client);
  issuer.random = (uint64_t)clock_now() | 1;
  issuer.file = open(argv[FILE_NAME], O_WRONLY | O_CREAT | O_APPEND, 0600);
  put(&issuer, &begins, 1);
  belay_idgen_options_t options = idgen_options((belay_idgen_mode_t)atoi(argv[MODE]));
  options.step = 100;
  options.clock_rate = strtoll(argv[RATE], NULL, 10);
  options.clock_skew_ms = 10;
  options.ttl_ms = 300 * slow();
  options.ahead_ms = 100;
  options.worker = index < 4 ? index / 2 : -1; /* some must wait for one that was killed */
  env_fake_wall(issuer.env);
  generator_new(&issuer.generator, issuer.env, &options);
  issuer.generator.then = take_note;
  for (unsigned turn = 0; clock_now() < until; turn++) {
    if (turn % 50 == 0) /* further than a lock's ttl: the next owner may get used times */
      fake_wall.shift = (int64_t)below(&issuer.random, 800) - 400;
    give_some(&issuer);
    env_run_for(issuer.env, 1);
  }
  env_until(issuer.env, issuer.op.ended == issuer.op.begun);
  issuer.generator.then = NULL;
  env_close(issuer.env);
  return close(issuer.file);
}

typedef struct family {
  server_t *server;
  char folder[64];
  belay_idgen_mode_t mode;
  int64_t clock_rate; /* more than 0: the server loses its keys again and again */
  process_t process[PROCESSES];
  unsigned killed;
  int64_t until;
} family_t;

static void path_of(const family_t *family, int i, char path[PATH]) {
  snprintf(path, PATH, "%s/%d", family->folder, i);
}

static void start(family_t *family, int i) {
  char mode[12], index[12], path[PATH], ms[24], rate[24];
  snprintf(mode, sizeof mode, "%d", (int)family->mode);
  snprintf(index, sizeof index, "%d", i);
  path_of(family, i, path);
  int64_t left = (family->until - clock_now()) / MS;
  snprintf(ms, sizeof ms, "%" PRId64, left > 0 ? left : 0);
  snprintf(rate, sizeof rate, "%" PRId64, family->clock_rate);
  const char *argv[] = {
      process_self(), "--issuer", server_url(family->server), mode, index, path, ms, rate, NULL};
  family->process[i] = process_start(argv);
}

static int64_t written(const family_t *family, int i) {
  char path[PATH];
  struct stat about;
  path_of(family, i, path);
  return stat(path, &about) == 0 ? (int64_t)about.st_size : 0;
}

/* The server loses all its keys, and the process that starts asks before those that have ids. */
static void start_on_empty(family_t *family, int i) {
  int64_t begins = written(family, i) + (int64_t)sizeof BEGINS, began = clock_now();
  for (int j = 0; j < PROCESSES; j++)
    if (j != i)
      process_kill(&family->process[j], SIGSTOP);
  server_do(family->server, "FLUSHALL", NULL);
  start(family, i);
  while (written(family, i) <= begins && clock_since_ms(began) < 2000 * slow())
    stall_ms(1);
  for (int j = 0; j < PROCESSES; j++)
    if (j != i)
      process_kill(&family->process[j], SIGCONT);
}

static void play(family_t *family, int64_t ms) {
  uint64_t random = (uint64_t)clock_now() | 1;
  int64_t began = clock_now();
  bool restarted = false;
  family->until = began + ms * MS;
  for (int i = 0; i < PROCESSES; i++)
    start(family, i);
  while (clock_since_ms(began) < ms - ms / 5) {
    stall_ms((int64_t)below(&random, 120));
    int i = (int)below(&random, PROCESSES);
    process_kill(&family->process[i], SIGKILL);
    assert_int_equal(process_wait(&family->process[i]), -SIGKILL);
    family->killed++;
    if (family->clock_rate > 0)
      start_on_empty(family, i);
    else
      start(family, i);
    if (!restarted && clock_since_ms(began) > ms / 2) {
      restarted = true;
      server_kill(family->server);
      server_restart(family->server);
    }
  }
  for (int i = 0; i < PROCESSES; i++)
    assert_int_equal(process_wait(&family->process[i]), 0);
  assert_true(restarted);
}

typedef struct ids {
  int64_t *id;
  size_t n;
} ids_t;

static void add_file(ids_t *ids, const char *path) {
  struct stat about;
  int file = open(path, O_RDONLY);
  assert_true(file >= 0 && fstat(file, &about) == 0);
  size_t n = (size_t)about.st_size / sizeof(int64_t), kept = 0;
  ids->id = realloc(ids->id, (ids->n + n) * sizeof(int64_t));
  assert_non_null(ids->id);
  int64_t *id = &ids->id[ids->n], before = BEGINS;
  for (size_t at = 0, size = n * sizeof(int64_t); at < size;) {
    ssize_t got = read(file, (char *)id + at, size - at);
    assert_true(got > 0);
    at += (size_t)got;
  }
  assert_int_equal(close(file), 0);
  for (size_t i = 0; i < n; i++) {
    if (id[i] != BEGINS && id[i] <= before)
      fail_msg("%" PRId64 " comes after %" PRId64, id[i], before);
    before = id[i];
    if (id[i] != BEGINS)
      id[kept++] = id[i];
  }
  ids->n += kept;
}

static int by_size(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static size_t duplicates(ids_t *ids) {
  size_t n = 0;
  qsort(ids->id, ids->n, sizeof *ids->id, by_size);
  for (size_t i = 1; i < ids->n; i++)
    n += ids->id[i] == ids->id[i - 1];
  return n;
}

static void hammer(belay_idgen_mode_t mode, int64_t clock_rate) {
  family_t family = {.mode = mode, .clock_rate = clock_rate, .folder = "/tmp/belay-ids-XXXXXX"};
  ids_t ids = {0};
  assert_non_null(mkdtemp(family.folder));
  family.server = server_start(
      &(server_options_t){.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
  play(&family, duration_ms());
  for (int i = 0; i < PROCESSES; i++) {
    char path[PATH];
    path_of(&family, i, path);
    add_file(&ids, path);
    assert_int_equal(unlink(path), 0);
  }
  assert_int_equal(rmdir(family.folder), 0);
  print_message("%zu ids, %u killed\n", ids.n, family.killed);
  assert_never(duplicates(&ids) > 0);
  assert_true(ids.n > 1000); /* it did something */
  free(ids.id);
  server_stop(family.server);
}

TEST(segments_are_unique) {
  hammer(BELAY_IDGEN_SEGMENT, 0);
}

TEST(snowflakes_are_unique) {
  hammer(BELAY_IDGEN_SNOWFLAKE, 0);
}

TEST(segments_are_unique_after_key_loss) {
  hammer(BELAY_IDGEN_SEGMENT, BELAY_IDGEN_CLOCK_RATE_MAX);
}

TEST(checker_finds_duplicates) {
  int64_t twice[] = {7, 3, 9, 3, -1}, once[] = {7, 3, 9, -3, 1};
  assert_int_equal(duplicates(&(ids_t){twice, 5}), 1);
  assert_int_equal(duplicates(&(ids_t){once, 5}), 0);
}

TEST_ROLE(issuer, "--issuer") {
  return be_issuer(argv);
}

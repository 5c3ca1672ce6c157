/* What a network and a server can do to a connection, and how connections are made and kept. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/bed.h"
#include "support/fake.h"
#include "support/relay.h"

/* ---- names that only this program knows ------------------------------------------------------------------ */

#define SLOW_LOOKUP_MS 300

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list);

static getaddrinfo_fn *real_getaddrinfo(void) {
  getaddrinfo_fn *function;
  void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
  memcpy(&function, &symbol, sizeof function);
  return function;
}

/* Several addresses, of which only the last may have somebody who listens. */
static int several(const char *service, const struct addrinfo *hints, struct addrinfo **list) {
  static const char *const addresses[] = {"127.0.0.3", "127.0.0.2", "127.0.0.1"};
  struct addrinfo **end = list;
  for (size_t i = 0; i < 3; i++) {
    int error = real_getaddrinfo()(addresses[i], service, hints, end);
    if (error != 0)
      return error;
    while (*end != NULL)
      end = &(*end)->ai_next;
  }
  return 0;
}

/* libuv's look-ups come by here. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list) {
  if (name != NULL && strcmp(name, "several.test") == 0)
    return several(service, hints, list);
  if (name != NULL && strncmp(name, "slow.", 5) == 0)
    stall_ms(SLOW_LOOKUP_MS);
  if (name != NULL && strcmp(name, "slow.nobody.test") == 0)
    return EAI_NONAME;
  if (name != NULL && strcmp(name, "slow.somebody.test") == 0)
    name = "127.0.0.1";
  return real_getaddrinfo()(name, service, hints, list);
}

/* ---- the loop goes on ------------------------------------------------------------------------------------ */

typedef struct ticking {
  uv_timer_t timer;
  int64_t last, largest_gap; /* nanoseconds */
} ticking_t;

static void on_tick(uv_timer_t *timer) {
  ticking_t *ticking = timer->data;
  int64_t now = clock_now();
  if (now - ticking->last > ticking->largest_gap)
    ticking->largest_gap = now - ticking->last;
  ticking->last = now;
}

static void ticking_start(ticking_t *ticking, bed_t *bed) {
  *ticking = (ticking_t){.last = clock_now()};
  uv_timer_init(&bed->loop, &ticking->timer);
  ticking->timer.data = ticking;
  uv_update_time(&bed->loop);
  uv_timer_start(&ticking->timer, on_tick, 1, 1);
}

static int64_t ticking_stop(ticking_t *ticking) {
  uv_close((uv_handle_t *)&ticking->timer, NULL);
  return ticking->largest_gap;
}

/* The smallest of the largest gaps of a few tries: what is left then is belay's. */
static void expect_ticking(int64_t (*largest_gap)(void)) {
  int64_t best = INT64_MAX;
  for (int i = 0; i < 5 && best >= 5 * MS * slow(); i++) {
    int64_t gap = largest_gap();
    if (gap < best)
      best = gap;
  }
  if (best >= 5 * MS * slow())
    fail_msg("the loop stood still for %lld us", (long long)(best / 1000));
}

/* ---- servers that do not answer -------------------------------------------------------------------------- */

static void test_a_server_that_never_says_a_word_is_unreachable(void **state) {
  (void)state;
  fake_t *fake = fake_start(&(fake_options_t){.mute = true});
  belay_client_options_t options = client_options();
  options.connect_timeout_ms = 150 * slow();
  options.timeout_ms = 500 * slow();
  bed_t *bed = bed_open_at(fake_url(fake), &options);
  contender_t *c = contender_new(bed, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  assert_between(clock_since_ms(began), 498 * slow(), 1000 * slow());
  assert_int_equal(fake_commands(fake), 0); /* only the handshake was tried */
  assert_true(fake_connections(fake) >= 2);
  assert_true(client_stats(bed).connect_errors >= 1);
  assert_error(acquire(c, 600 * slow()), BELAY_EUNREACHABLE);
  bed_close(bed);
  fake_stop(fake);
}

static int64_t gap_while_nobody_answers(void) {
  fake_t *fake = fake_start(&(fake_options_t){.mute = true});
  belay_client_options_t options = client_options();
  options.connect_timeout_ms = 50;
  options.timeout_ms = 300;
  bed_t *bed = bed_open_at(fake_url(fake), &options);
  ticking_t ticking;
  ticking_start(&ticking, bed);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  int64_t gap = ticking_stop(&ticking);
  bed_close(bed);
  fake_stop(fake);
  return gap;
}

static void test_the_loop_ticks_while_nobody_answers(void **state) {
  (void)state;
  expect_ticking(gap_while_nobody_answers);
}

/* Shakes hands, and is silent from then on. */
static void only_shake_hands(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  (void)arg;
  if (fake_is_handshake(words))
    fake_behave(link, words, count);
}

static void test_a_server_that_falls_silent_leaves_an_unknown_outcome(void **state) {
  (void)state;
  fake_t *fake = fake_start(&(fake_options_t){.on_command = only_shake_hands});
  belay_client_options_t options = client_options();
  options.timeout_ms = 200 * slow();
  bed_t *bed = bed_open_at(fake_url(fake), &options);
  contender_t *c = contender_new(bed, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNKNOWN);
  assert_between(clock_since_ms(began), 198 * slow(), 600 * slow());
  assert_false(belay_err_retryable(BELAY_EUNKNOWN));
  bed_close(bed);
  fake_stop(fake);
}

static void test_a_port_where_nobody_listens(void **state) {
  (void)state;
  char url[64];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  snprintf(url, sizeof url, "%s", server_url(server));
  server_kill(server);
  belay_client_options_t options = client_options();
  options.timeout_ms = 300;
  bed_t *bed = bed_open_at(url, &options);
  contender_t *c = contender_new(bed, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  assert_true(clock_since_ms(began) < 500 * slow());
  assert_true(belay_err_retryable(BELAY_EUNREACHABLE));
  assert_error(acquire(c, 400), BELAY_EUNREACHABLE);
  assert_int_equal(client_stats(bed).unknown, 0);
  assert_true(client_stats(bed).connect_errors >= 1);
  bed_close(bed);
  server_stop(server);
}

static void test_a_socket_that_is_not_there(void **state) {
  (void)state;
  belay_client_options_t options = client_options();
  options.timeout_ms = 100;
  bed_t *bed = bed_open_at("unix:///nonexistent/socket", &options);
  assert_error(try_lock(contender_new(bed, "door", NULL)), BELAY_EUNREACHABLE);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 1);
  assert_error(bed->pong_status, BELAY_EUNREACHABLE);
  bed_close(bed);
}

/* ---- servers that answer nonsense ------------------------------------------------------------------------ */

typedef struct nonsense {
  const char *name;
  const char *text;
  int status; /* what an acquire is told then */
} nonsense_t;

/* The first acquire of a client goes out as a script: what the server can do is not known yet. The next one,
 * after a release, is a plain SET. */
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
  bed_t *bed = bed_open_at(fake_url(fake), NULL);
  contender_t *c = contender_new(bed, "door", NULL);
  if (at == AS_SET) {
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
  }
  expect_status(nonsense, try_lock(c));
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  bed_until(bed, client_stats(bed).drops == 1);
  assert_error(try_lock(c), 0); /* on the next connection all is well */
  assert_int_equal(fake_connections(fake), 2);
  assert_error(release(c), 0);
  bed_close(bed);
  fake_stop(fake);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void test_replies_that_are_cut_off(void **state) {
  (void)state;
  static const nonsense_t all[] = {
      {"nothing", "", BELAY_EUNKNOWN},
      {"half a bulk", "$45\r\n0123456789", BELAY_EUNKNOWN},
      {"half a header", "$4", BELAY_EUNKNOWN},
      {"half a nil", "$-1", BELAY_EUNKNOWN},
      {"half a number", ":0", BELAY_EUNKNOWN},
      {"half an error", "-ERR some", BELAY_EUNKNOWN},
      {"half an array", "*2\r\n$3\r\nfoo\r\n", BELAY_EUNKNOWN},
  };
  for (size_t i = 0; i < COUNT(all); i++) {
    expect_survival(&all[i], AS_SCRIPT, true);
    expect_survival(&all[i], AS_SET, true);
  }
}

static void test_replies_that_are_garbage(void **state) {
  (void)state;
  static const nonsense_t all[] = {
      {"text", "HTTP/1.1 400 Bad Request\r\n\r\n", BELAY_EPROTO},
      {"a type that does not exist", "\x01\x02\x03\r\n", BELAY_EPROTO},
      {"a number that is none", ":twelve\r\n", BELAY_EPROTO},
      {"a length that is none", "$x\r\n", BELAY_EPROTO},
      {"a length below nil", "$-7\r\n", BELAY_EPROTO},
      {"a length beyond all numbers", "$99999999999999999999\r\n", BELAY_EPROTO},
      {"a huge array", "*2000000000\r\n", BELAY_EPROTO},
      {"a number beyond all numbers", ":99999999999999999999\r\n", BELAY_EPROTO},
      {"a truth of the next protocol", "#t\r\n", BELAY_EPROTO},
      {"a push of the next protocol", ">2\r\n+a\r\n+b\r\n", BELAY_EPROTO},
  };
  for (size_t i = 0; i < COUNT(all); i++) {
    expect_survival(&all[i], AS_SCRIPT, false);
    expect_survival(&all[i], AS_SET, false);
  }
}

static void test_replies_of_the_wrong_type_to_set(void **state) {
  (void)state;
  static const nonsense_t all[] = {
      {"an integer", ":1\r\n", BELAY_EPROTO},
      {"a status", "+OK\r\n", BELAY_EPROTO},
      {"an empty array", "*0\r\n", BELAY_EPROTO},
      {"an array", "*1\r\n$1\r\nx\r\n", BELAY_EPROTO},
  };
  for (size_t i = 0; i < COUNT(all); i++)
    expect_survival(&all[i], AS_SET, false);
}

static void test_replies_of_the_wrong_type_to_a_script(void **state) {
  (void)state;
  static const nonsense_t all[] = {
      {"a nil", "$-1\r\n", BELAY_EPROTO},        {"a status", "+OK\r\n", BELAY_EPROTO},
      {"a string", "$1\r\n0\r\n", BELAY_EPROTO}, {"an array", "*1\r\n:0\r\n", BELAY_EPROTO},
      {"out of range", ":-3\r\n", BELAY_EPROTO},
  };
  for (size_t i = 0; i < COUNT(all); i++)
    expect_survival(&all[i], AS_SCRIPT, false);
}

/* Nothing is assumed: neither that it was extended, nor that it was lost. */
static void expect_an_extend_to_survive(const nonsense_t *nonsense) {
  plot_t plot = {.nonsense = nonsense, .at = AS_SCRIPT + 1};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
  bed_t *bed = bed_open_at(fake_url(fake), NULL);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  int64_t left = remaining_ms(c);
  expect_status(nonsense, extend(c, 60000));
  assert_int_equal(c->lost, 0);
  assert_true(remaining_ms(c) > 0 && remaining_ms(c) <= left);
  bed_until(bed, client_stats(bed).drops == 1);
  assert_error(extend(c, 60000), 0);
  assert_true(remaining_ms(c) > left);
  bed_close(bed);
  fake_stop(fake);
}

static void test_replies_of_the_wrong_type_to_an_extend(void **state) {
  (void)state;
  static const nonsense_t all[] = {
      {"a nil", "$-1\r\n", BELAY_EPROTO},
      {"a status", "+OK\r\n", BELAY_EPROTO},
      {"out of range", ":2\r\n", BELAY_EPROTO},
      {"below it", ":-1\r\n", BELAY_EPROTO},
  };
  for (size_t i = 0; i < COUNT(all); i++)
    expect_an_extend_to_survive(&all[i]);
}

/* It is not known whether the key is gone: belay asks again in the background. */
static void expect_a_release_to_go_on(const nonsense_t *nonsense) {
  plot_t plot = {.nonsense = nonsense, .at = RELEASE};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
  bed_t *bed = bed_open_at(fake_url(fake), NULL);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  expect_status(nonsense, release(c));
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  bed_settle(bed);
  assert_true(client_stats(bed).undone >= 1);
  assert_true(fake_commands(fake) >= 3);
  assert_error(try_lock(c), 0);
  bed_close(bed);
  fake_stop(fake);
}

static void test_replies_of_the_wrong_type_to_a_release(void **state) {
  (void)state;
  static const nonsense_t all[] = {
      {"a nil", "$-1\r\n", BELAY_EPROTO},
      {"a status", "+OK\r\n", BELAY_EPROTO},
      {"out of range", ":2\r\n", BELAY_EPROTO},
  };
  for (size_t i = 0; i < COUNT(all); i++)
    expect_a_release_to_go_on(&all[i]);
}

/* A header that promises more than comes: the connection is given up when it has been silent for too long. */
static void test_a_huge_bulk_that_never_comes(void **state) {
  (void)state;
  static const nonsense_t huge = {"a huge bulk", "$1073741824\r\nx", BELAY_EUNKNOWN};
  plot_t plot = {.nonsense = &huge, .at = AS_SCRIPT};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
  belay_client_options_t options = client_options();
  options.timeout_ms = 200 * slow();
  options.stall_timeout_ms = 400 * slow();
  bed_t *bed = bed_open_at(fake_url(fake), &options);
  contender_t *c = contender_new(bed, "door", NULL);
  int status = try_lock(c);
  assert_true(status == BELAY_EUNKNOWN || status == BELAY_EPROTO);
  bed_until(bed, client_stats(bed).drops == 1);
  assert_error(try_lock(c), 0);
  bed_close(bed);
  fake_stop(fake);
}

static void test_a_huge_bulk_that_comes(void **state) {
  (void)state;
  enum { SIZE = 1 << 20 };
  char *text = malloc(SIZE + 1);
  memset(text, 'x', SIZE);
  memcpy(text, "$1000000\r\n", 10);
  text[SIZE] = '\0';
  const nonsense_t huge = {"a huge bulk", text, BELAY_EPROTO};
  plot_t plot = {.nonsense = &huge, .at = AS_SCRIPT};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
  belay_client_options_t options = client_options();
  options.max_reply = 65536;
  bed_t *bed = bed_open_at(fake_url(fake), &options);
  contender_t *c = contender_new(bed, "door", NULL);
  expect_status(&huge, try_lock(c));
  bed_until(bed, client_stats(bed).drops == 1);
  assert_true(client_stats(bed).bytes_in < 300000); /* it was not read to its end */
  assert_error(try_lock(c), 0);
  bed_close(bed);
  fake_stop(fake);
  free(text);
}

static void test_arrays_that_are_nested_very_deep(void **state) {
  (void)state;
  enum { DEPTH = 400000 };
  char *text = malloc(4 * DEPTH + 1);
  for (size_t i = 0; i < DEPTH; i++)
    memcpy(text + 4 * i, "*1\r\n", 4);
  text[(size_t)4 * DEPTH] = '\0';
  const nonsense_t deep = {"nested arrays", text, BELAY_EPROTO};
  expect_survival(&deep, AS_SCRIPT, false);
  expect_survival(&deep, AS_SET, false);
  free(text);
}

/* What follows the granting reply was not asked for. */
static void test_a_reply_that_nobody_asked_for_ends_the_connection(void **state) {
  (void)state;
  static const nonsense_t all[] = {{"a status", ":0\r\n+OK\r\n", 0},
                                   {"a nil", ":0\r\n$-1\r\n", 0},
                                   {"an array", ":0\r\n*1\r\n:1\r\n", 0},
                                   {"an error", ":0\r\n-ERR out of the blue\r\n", 0}};
  for (size_t i = 0; i < COUNT(all); i++) {
    plot_t plot = {.nonsense = &all[i], .at = AS_SCRIPT};
    fake_t *fake = fake_start(&(fake_options_t){.on_command = talk_nonsense, .arg = &plot});
    bed_t *bed = bed_open_at(fake_url(fake), NULL);
    contender_t *c = contender_new(bed, "door", NULL);
    expect_status(&all[i], try_lock(c));
    bed_until(bed, client_stats(bed).drops == 1);
    assert_error(release(c), 0);
    assert_int_equal(fake_connections(fake), 2);
    bed_close(bed);
    fake_stop(fake);
  }
}

static void test_a_server_that_talks_first(void **state) {
  (void)state;
  static const char *const greetings[] = {"+hello\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
                                          "-ERR max number of clients reached\r\n",
                                          "-DENIED Redis is running in protected mode\r\n"};
  static const int errors[] = {BELAY_EPROTO, BELAY_EPROTO, BELAY_EMAXCLIENTS, BELAY_EAUTH};
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    fake_t *fake = fake_start(&(fake_options_t){.mute = true, .greeting = greetings[i]});
    belay_client_options_t options = client_options();
    options.timeout_ms = 300 * slow();
    options.connect_timeout_ms = 50 * slow();
    bed_t *bed = bed_open_at(fake_url(fake), &options);
    int status = try_lock(contender_new(bed, "door", NULL));
    if (status != errors[i] && status != BELAY_EUNREACHABLE)
      fail_msg("\"%s\": %s", greetings[i], belay_err_name(status));
    assert_int_equal(fake_commands(fake), 0);
    bed_close(bed);
    fake_stop(fake);
  }
}

/* ---- refusals, one by one -------------------------------------------------------------------------------- */

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

static void test_what_a_server_refuses_has_its_own_error(void **state) {
  (void)state;
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
    bed_t *bed = bed_open_at(fake_url(fake), &client);
    int status = try_lock(contender_new(bed, "door", NULL));
    if (status != all[i].status)
      fail_msg("%.20s: %s instead of %s", all[i].text, belay_err_name(status),
               belay_err_name(all[i].status));
    bed_close(bed);
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

static void test_a_refusal_that_passes_is_waited_for(void **state) {
  (void)state;
  static char loading[] = "-LOADING Redis is loading the dataset in memory\r\n";
  static char readonly[] = "-READONLY You can't write against a read only replica.\r\n";
  char *const all[] = {loading, readonly};
  for (size_t i = 0; i < 2; i++) {
    fake_t *fake = fake_start(&(fake_options_t){.on_command = refuse_at_first, .arg = all[i]});
    bed_t *bed = bed_open_at(fake_url(fake), NULL);
    assert_error(try_lock(contender_new(bed, "door", NULL)), 0);
    assert_int_equal(fake_connections(fake),
                     i == 0 ? 1 : 4); /* read-only: another address, perhaps */
    bed_close(bed);
    fake_stop(fake);
  }
}

/* ---- names and addresses --------------------------------------------------------------------------------- */

static void test_a_name_that_does_not_resolve(void **state) {
  (void)state;
  struct addrinfo *list;
  int64_t began = clock_now();
  assert_int_not_equal(getaddrinfo("no-such-host.invalid", "6379", NULL, &list), 0);
  bool resolver_is_quick = clock_since_ms(began) < 500;
  bed_t *bed = bed_open_at("redis://no-such-host.invalid:6379", NULL);
  contender_t *c = contender_new(bed, "door", NULL);
  int status = try_lock(c);
  if (resolver_is_quick)
    assert_error(status, BELAY_ERESOLVE);
  else
    assert_true(status == BELAY_ERESOLVE || status == BELAY_EUNREACHABLE);
  assert_int_equal(client_stats(bed).unknown, 0);
  bed_close(bed);
}

static int64_t gap_while_a_name_is_looked_up(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 2 * SLOW_LOOKUP_MS;
  bed_t *bed = bed_open_at("redis://slow.nobody.test", &options);
  ticking_t ticking;
  ticking_start(&ticking, bed);
  int64_t began = clock_now();
  assert_error(try_lock(contender_new(bed, "door", NULL)), BELAY_ERESOLVE);
  assert_true(clock_since_ms(began) >= SLOW_LOOKUP_MS);
  int64_t gap = ticking_stop(&ticking);
  bed_close(bed);
  return gap;
}

static void test_the_loop_ticks_while_a_name_is_looked_up(void **state) {
  (void)state;
  expect_ticking(gap_while_a_name_is_looked_up);
}

static void test_a_name_that_resolves_slowly(void **state) {
  (void)state;
  char url[64];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  snprintf(url, sizeof url, "redis://slow.somebody.test:%d", server_port(server));
  bed_t *bed = bed_open_at(url, NULL);
  bed->server = server;
  assert_error(try_lock(contender_new(bed, "door", NULL)), 0);
  bed_close(bed);
}

/* A look-up cannot be stopped: the close waits for it, and no longer. */
static void test_a_close_during_a_look_up(void **state) {
  (void)state;
  bed_t *bed = bed_open_at("redis://slow.nobody.test", NULL);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  bed_run_for(bed, 50);
  assert_error(begin_belay_close(bed), 0);
  bed_until(bed, c->ended == 1);
  assert_error(c->status, BELAY_ECANCELED);
  bed_until(bed, bed->belay_closed == 1);
  bed_close(bed);
}

static void test_every_address_of_a_name_is_tried(void **state) {
  (void)state;
  char url[64];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  snprintf(url, sizeof url, "redis://several.test:%d", server_port(server));
  bed_t *bed = bed_open_at(url, NULL);
  bed->server = server;
  assert_error(try_lock(contender_new(bed, "door", NULL)), 0);
  bed_close(bed);
}

static void test_localhost(void **state) {
  (void)state;
  char url[64];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  snprintf(url, sizeof url, "redis://localhost:%d", server_port(server));
  bed_t *bed = bed_open_at(url, NULL);
  bed->server = server;
  assert_error(try_lock(contender_new(bed, "door", NULL)), 0);
  bed_close(bed);
}

static bool has_ipv6(void) {
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool has = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
  if (fd >= 0)
    close(fd);
  return has;
}

static void test_an_ipv6_address(void **state) {
  (void)state;
  if (!has_ipv6())
    skip();
  bed_t *bed = bed_open_with(server_start(&(server_options_t){.address = "::1"}), NULL);
  assert_non_null(strstr(server_url(bed->server), "redis://[::1]:"));
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_true(is_on_server(c));
  bed_close(bed);
}

static void test_a_socket_and_a_database_of_a_url(void **state) {
  (void)state;
  char url[256];
  server_t *server = server_start(NULL);
  snprintf(url, sizeof url, "unix://%s?db=3", server_path(server));
  bed_t *bed = bed_open_at(url, NULL);
  bed->server = server;
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_keys(server), 0);
  server_do(server, "SELECT", "3", NULL);
  assert_int_equal(server_keys(server), 1);
  assert_true(is_on_server(c));
  bed_close(bed);
}

static void test_a_port_and_a_database_of_a_url(void **state) {
  (void)state;
  char url[256];
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  snprintf(url, sizeof url, "%s/5", server_url(server));
  bed_t *bed = bed_open_at(url, NULL);
  bed->server = server;
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  server_do(server, "SELECT", "5", NULL);
  assert_true(is_on_server(c));
  bed_close(bed);
}

static void test_the_options_database_counts_more_than_the_urls(void **state) {
  (void)state;
  char url[256];
  server_t *server = server_start(NULL);
  snprintf(url, sizeof url, "unix://%s?db=3", server_path(server));
  belay_client_options_t options = client_options();
  options.db = 0;
  bed_t *bed = bed_open_at(url, &options);
  bed->server = server;
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_true(is_on_server(c));
  bed_close(bed);
}

static void test_a_database_that_the_server_does_not_have(void **state) {
  (void)state;
  char url[256];
  server_t *server = server_start(NULL);
  snprintf(url, sizeof url, "unix://%s?db=999", server_path(server));
  belay_client_options_t options = client_options();
  options.timeout_ms = 300;
  bed_t *bed = bed_open_at(url, &options);
  bed->server = server;
  assert_error(try_lock(contender_new(bed, "door", NULL)), BELAY_EREFUSED);
  assert_int_equal(server_keys(server), 0);
  bed_close(bed);
}

static void test_the_client_says_its_name(void **state) {
  (void)state;
  belay_client_options_t options = client_options();
  options.client_name = "billing";
  bed_t *bed = bed_open(&options);
  assert_error(try_lock(contender_new(bed, "door", NULL)), 0);
  assert_non_null(strstr(server_string(bed->server, "CLIENT", "LIST", NULL), "name=billing"));
  bed_close(bed);
}

/* ---- links ----------------------------------------------------------------------------------------------- */

static void test_an_idle_link_is_checked_before_it_is_used(void **state) {
  (void)state;
  belay_client_options_t options = client_options();
  options.idle_timeout_ms = 100;
  bed_t *bed = bed_open(&options);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  int64_t pings = server_calls(bed->server, "ping");
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  assert_int_equal(server_calls(bed->server, "ping"), pings); /* not idle for long */
  bed_run_for(bed, 200);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_calls(bed->server, "ping"), pings + 1);
  bed_close(bed);
}

static void test_an_idle_link_that_was_killed_does_no_harm(void **state) {
  (void)state;
  belay_client_options_t options = client_options();
  options.idle_timeout_ms = 50;
  bed_t *bed = bed_open(&options);
  contender_t *c = contender_new(bed, "door", NULL);
  for (int i = 0; i < 3; i++) {
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
    bed_run_for(bed, 100);
    server_do(bed->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  }
  assert_error(try_lock(c), 0);
  assert_int_equal(client_stats(bed).unknown, 0);
  bed_close(bed);
}

/* The wire is dead, and nobody was told: the check finds out, and no outcome is unknown because of it. */
static void test_an_idle_link_that_died_silently_is_found_out(void **state) {
  (void)state;
  server_t *server = server_start(NULL);
  relay_t *relay = relay_start(server_path(server));
  belay_client_options_t options = client_options();
  options.idle_timeout_ms = 50;
  options.connect_timeout_ms = 300 * slow();
  options.timeout_ms = 2000 * slow();
  bed_t *bed = bed_open_at(relay_url(relay), &options);
  bed->server = server;
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  bed_run_for(bed, 100);
  relay_silence(relay);
  assert_error(try_lock(c), 0);
  assert_int_equal(client_stats(bed).unknown, 0);
  assert_int_equal(relay_connections(relay), 2);
  assert_true(is_on_server(c));
  bed_close(bed);
  relay_stop(relay);
}

/* Nothing was sent, and that is what is said. */
static void test_who_waits_for_a_check_that_is_not_answered_is_told_the_truth(void **state) {
  (void)state;
  belay_client_options_t options = client_options();
  options.idle_timeout_ms = 50;
  options.timeout_ms = 300 * slow();
  bed_t *bed = bed_open(&options);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  bed_run_for(bed, 100);
  server_pause(bed->server);
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  server_resume(bed->server);
  assert_error(acquire(c, 5000), 0);
  bed_close(bed);
}

static void test_several_links_and_only_one_of_them_stays_when_idle(void **state) {
  (void)state;
  belay_client_options_t options = client_options();
  options.links = 4;
  options.idle_timeout_ms = 200 * slow();
  bed_t *bed = bed_open(&options);
  char name[16];
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "door-%d", i);
    contender_t *c = contender_new(bed, name, NULL);
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
  }
  assert_int_equal(client_stats(bed).links_up, 4);
  bed_until(bed, client_stats(bed).links_up == 1);
  assert_int_equal(client_stats(bed).drops, 0); /* nothing was lost */
  bed_close(bed);
}

static void test_it_connects_when_it_is_first_used(void **state) {
  (void)state;
  bed_t *bed = bed_open(NULL);
  contender_t *c = contender_new(bed, "door", NULL);
  int64_t before = server_info(bed->server, "stats", "total_connections_received");
  bed_run_for(bed, 50);
  assert_int_equal(server_info(bed->server, "stats", "total_connections_received"), before);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_info(bed->server, "stats", "total_connections_received"), before + 1);
  assert_int_equal(client_stats(bed).connects, 1);
  assert_int_equal(client_stats(bed).links_up, 1);
  bed_close(bed);
}

/* ---- limits ---------------------------------------------------------------------------------------------- */

enum { CROWD = 10, ROOM = 4 };

/* Ten contenders on a connection that has room for four calls and a server that stands still. */
static void crowd(bed_t *bed, contender_t **all) {
  char name[32];
  contender_t *first = contender_new(bed, "first", NULL);
  assert_error(try_lock(first), 0);
  assert_error(release(first), 0);
  server_pause(bed->server);
  for (int i = 0; i < CROWD; i++) {
    snprintf(name, sizeof name, "door-%d", i);
    all[i] = contender_new(bed, name, NULL);
    assert_error(begin_acquire(all[i], 0), 0);
  }
}

static void test_more_calls_than_there_is_room_for_are_refused(void **state) {
  (void)state;
  belay_client_options_t options = client_options();
  options.max_pending = ROOM;
  options.timeout_ms = 10000;
  bed_t *bed = bed_open(&options);
  contender_t *all[CROWD];
  crowd(bed, all);
  bed_until(bed, all[CROWD - 1]->ended == 1);
  for (int i = ROOM; i < CROWD; i++)
    assert_error(outcome(all[i]), BELAY_EBUSY);
  assert_true(belay_err_retryable(BELAY_EBUSY));
  server_resume(bed->server);
  for (int i = 0; i < ROOM; i++)
    assert_error(outcome(all[i]), 0);
  assert_int_equal(server_keys(bed->server), ROOM);
  bed_close(bed);
}

static void test_more_calls_than_there_is_room_for_wait(void **state) {
  (void)state;
  belay_client_options_t options = client_options();
  options.max_pending = ROOM;
  options.timeout_ms = 10000;
  options.on_full = BELAY_FULL_WAIT;
  bed_t *bed = bed_open(&options);
  contender_t *all[CROWD];
  crowd(bed, all);
  bed_run_for(bed, 100);
  for (int i = 0; i < CROWD; i++)
    assert_int_equal(all[i]->ended, 0);
  server_resume(bed->server);
  for (int i = 0; i < CROWD; i++)
    assert_error(outcome(all[i]), 0);
  assert_int_equal(server_keys(bed->server), CROWD);
  bed_close(bed);
}

static void test_who_waits_for_room_waits_until_his_deadline(void **state) {
  (void)state;
  belay_client_options_t options = client_options();
  options.max_pending = ROOM;
  options.timeout_ms = 300 * slow();
  options.on_full = BELAY_FULL_WAIT;
  bed_t *bed = bed_open(&options);
  contender_t *all[CROWD];
  crowd(bed, all);
  for (int i = 0; i < CROWD; i++)
    assert_error(outcome(all[i]), i < ROOM ? BELAY_EUNKNOWN : BELAY_EBUSY);
  server_resume(bed->server);
  bed_settle(bed);
  bed_until(bed, server_keys(bed->server) == 0);
  bed_close(bed);
}

static void test_more_bytes_than_a_client_may_have_under_way(void **state) {
  (void)state;
  enum { MANY = 120 };
  belay_client_options_t options = client_options();
  options.max_bytes = 65536;
  options.timeout_ms = 10000;
  options.on_full = BELAY_FULL_WAIT;
  bed_t *bed = bed_open(&options);
  contender_t *all[MANY];
  char name[1001];
  contender_t *first = contender_new(bed, "first", NULL);
  assert_error(try_lock(first), 0);
  server_pause(bed->server);
  int busy = 0;
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "%01000d", i);
    all[i] = contender_new(bed, name, NULL);
    assert_error(begin_acquire(all[i], 0), 0);
  }
  assert_true(client_stats(bed).pending_bytes <= 65536);
  assert_error(begin_release(first), 0); /* gives something back: not subject to the limit */
  server_resume(bed->server);
  for (int i = 0; i < MANY; i++) {
    int status = outcome(all[i]);
    assert_true(status == 0 || status == BELAY_EBUSY);
    busy += status == BELAY_EBUSY;
  }
  assert_error(outcome(first), 0);
  assert_between(busy, 50, 70); /* a call is a little more than a kilobyte */
  assert_int_equal(client_stats(bed).pending_bytes, 0);
  bed_close(bed);
}

/* ---- hooks ----------------------------------------------------------------------------------------------- */

typedef struct traced {
  char text[256];
} traced_t;

static void on_trace(void *ctx, const belay_trace_t *trace) {
  static const char *const events[] = {"started", "sent", "done", "settled"};
  traced_t *traced = ctx;
  size_t n = strlen(traced->text);
  snprintf(traced->text + n, sizeof traced->text - n, "%s %s %s; ", trace->command,
           events[trace->event],
           trace->event < BELAY_TRACE_DONE ? "-" : belay_err_name(trace->error));
}

static void test_the_trace_hook_hears_of_each_station(void **state) {
  (void)state;
  traced_t traced = {""};
  belay_client_options_t options = client_options();
  options.trace = on_trace;
  options.trace_ctx = &traced;
  bed_t *bed = bed_open(&options);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 1);
  assert_string_equal(traced.text, "PING started -; PING sent -; PING done OK; ");
  bed_close(bed);
}

static void test_the_trace_hook_hears_of_late_answers(void **state) {
  (void)state;
  traced_t traced = {""};
  belay_client_options_t options = client_options();
  options.trace = on_trace;
  options.trace_ctx = &traced;
  options.timeout_ms = 200 * slow();
  bed_t *bed = bed_open(&options);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 1);
  server_pause(bed->server);
  traced.text[0] = '\0';
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 2);
  assert_error(bed->pong_status, BELAY_EUNKNOWN);
  server_resume(bed->server);
  bed_until(bed, strstr(traced.text, "settled") != NULL);
  assert_string_equal(traced.text,
                      "PING started -; PING sent -; PING done EUNKNOWN; PING settled OK; ");
  bed_close(bed);
}

static void test_ping(void **state) {
  (void)state;
  bed_t *bed = bed_open(NULL);
  assert_error(begin_ping(bed), 0);
  assert_error(begin_ping(bed), BELAY_ESTATE);
  bed_until(bed, bed->pongs == 1);
  assert_error(bed->pong_status, 0);
  server_pause(bed->server);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 2);
  assert_error(bed->pong_status, BELAY_EUNKNOWN);
  server_resume(bed->server);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 3);
  assert_error(bed->pong_status, 0);
  bed_close(bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_server_that_never_says_a_word_is_unreachable),
      cmocka_unit_test(test_the_loop_ticks_while_nobody_answers),
      cmocka_unit_test(test_a_server_that_falls_silent_leaves_an_unknown_outcome),
      cmocka_unit_test(test_a_port_where_nobody_listens),
      cmocka_unit_test(test_a_socket_that_is_not_there),
      cmocka_unit_test(test_replies_that_are_cut_off),
      cmocka_unit_test(test_replies_that_are_garbage),
      cmocka_unit_test(test_replies_of_the_wrong_type_to_set),
      cmocka_unit_test(test_replies_of_the_wrong_type_to_a_script),
      cmocka_unit_test(test_replies_of_the_wrong_type_to_an_extend),
      cmocka_unit_test(test_replies_of_the_wrong_type_to_a_release),
      cmocka_unit_test(test_a_huge_bulk_that_never_comes),
      cmocka_unit_test(test_a_huge_bulk_that_comes),
      cmocka_unit_test(test_arrays_that_are_nested_very_deep),
      cmocka_unit_test(test_a_reply_that_nobody_asked_for_ends_the_connection),
      cmocka_unit_test(test_a_server_that_talks_first),
      cmocka_unit_test(test_what_a_server_refuses_has_its_own_error),
      cmocka_unit_test(test_a_refusal_that_passes_is_waited_for),
      cmocka_unit_test(test_a_name_that_does_not_resolve),
      cmocka_unit_test(test_the_loop_ticks_while_a_name_is_looked_up),
      cmocka_unit_test(test_a_name_that_resolves_slowly),
      cmocka_unit_test(test_a_close_during_a_look_up),
      cmocka_unit_test(test_every_address_of_a_name_is_tried),
      cmocka_unit_test(test_localhost),
      cmocka_unit_test(test_an_ipv6_address),
      cmocka_unit_test(test_a_socket_and_a_database_of_a_url),
      cmocka_unit_test(test_a_port_and_a_database_of_a_url),
      cmocka_unit_test(test_the_options_database_counts_more_than_the_urls),
      cmocka_unit_test(test_a_database_that_the_server_does_not_have),
      cmocka_unit_test(test_the_client_says_its_name),
      cmocka_unit_test(test_an_idle_link_is_checked_before_it_is_used),
      cmocka_unit_test(test_an_idle_link_that_was_killed_does_no_harm),
      cmocka_unit_test(test_an_idle_link_that_died_silently_is_found_out),
      cmocka_unit_test(test_who_waits_for_a_check_that_is_not_answered_is_told_the_truth),
      cmocka_unit_test(test_several_links_and_only_one_of_them_stays_when_idle),
      cmocka_unit_test(test_it_connects_when_it_is_first_used),
      cmocka_unit_test(test_more_calls_than_there_is_room_for_are_refused),
      cmocka_unit_test(test_more_calls_than_there_is_room_for_wait),
      cmocka_unit_test(test_who_waits_for_room_waits_until_his_deadline),
      cmocka_unit_test(test_more_bytes_than_a_client_may_have_under_way),
      cmocka_unit_test(test_the_trace_hook_hears_of_each_station),
      cmocka_unit_test(test_the_trace_hook_hears_of_late_answers),
      cmocka_unit_test(test_ping),
  };
  return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}

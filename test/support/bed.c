#include "support/bed.h"
#include "support/never.h"

#include <stdio.h>

#define PATIENCE_MS 15000
#define TICK_MS 5

/* ---- memory -------------------------------------------------------------------------------------------- */

typedef union block {
  size_t size;
  max_align_t aligned;
} block_t;

static void *count_alloc(void *ctx, size_t size) {
  bed_t *bed = ctx;
  block_t *block = malloc(sizeof *block + size);
  if (block == NULL)
    return NULL;
  block->size = size;
  bed->bytes += size;
  bed->allocations++;
  memset(block + 1, 0xa5, size); /* whoever forgets to initialize it shall notice */
  return block + 1;
}

static void count_free(void *ctx, void *ptr) {
  bed_t *bed = ctx;
  block_t *block = (block_t *)ptr - 1;
  bed->bytes -= block->size;
  memset(ptr, 0x5a, block->size);
  free(block);
}

/* ---- time ---------------------------------------------------------------------------------------------- */

static void on_patience(uv_timer_t *timer) {
  bed_t *bed = timer->data;
  bed->in_vain = true;
}

static void on_tick(uv_timer_t *timer) {
  (void)timer; /* the loop turns, and the condition is looked at */
}

static void wait_at_most(bed_t *bed, int64_t ms) {
  bed->in_vain = false;
  uv_update_time(&bed->loop);
  uv_timer_start(&bed->patience, on_patience, (uint64_t)ms, 0);
}

void bed_wait_begin(bed_t *bed, const char *awaited) {
  if (bed->awaited != NULL)
    fail_msg("\"%s\" is awaited inside of \"%s\"", awaited, bed->awaited);
  bed->awaited = awaited;
  wait_at_most(bed, PATIENCE_MS * slow());
  uv_timer_start(&bed->ticker, on_tick, TICK_MS, TICK_MS);
}

void bed_turn(bed_t *bed) {
  uv_run(&bed->loop, UV_RUN_ONCE);
  if (!bed->in_vain)
    return;
  const char *awaited = bed->awaited;
  bed_wait_end(bed);
  fail_msg("waited in vain for: %s", awaited);
}

void bed_wait_end(bed_t *bed) {
  uv_timer_stop(&bed->patience);
  uv_timer_stop(&bed->ticker);
  bed->awaited = NULL;
}

void bed_run_for(bed_t *bed, int64_t ms) {
  wait_at_most(bed, ms);
  while (!bed->in_vain)
    uv_run(&bed->loop, UV_RUN_ONCE);
}

static bool is_settled(const bed_t *bed) {
  belay_client_stats_t stats;
  for (unsigned i = 0; i < bed->clients; i++) {
    belay_client_stats(bed->all[i], &stats);
    if (stats.pending > 0 || stats.undo_pending > 0)
      return false;
  }
  return true;
}

void bed_settle(bed_t *bed) {
  bed_until(bed, is_settled(bed));
}

/* ---- beds ---------------------------------------------------------------------------------------------- */

static void log_line(void *ctx, belay_log_level_t level, const char *message) {
  bed_t *bed = ctx;
  bed->errors += level == BELAY_LOG_ERROR;
  bed->warnings += level == BELAY_LOG_WARNING;
  if (bed->heard != NULL)
    bed->heard(bed, message);
  if (getenv("BELAY_TEST_LOG") != NULL)
    print_message("# %d %s\n", (int)level, message);
}

bed_t *bed_bare(void) {
  bed_t *bed = calloc(1, sizeof *bed);
  assert_int_equal(uv_loop_init(&bed->loop), 0);
  uv_timer_init(&bed->loop, &bed->patience);
  uv_timer_init(&bed->loop, &bed->ticker);
  bed->patience.data = bed->ticker.data = bed;
  belay_options_t options;
  belay_options_init(&options);
  options.allocator = (belay_allocator_t){.alloc = count_alloc, .free = count_free, .ctx = bed};
  options.log = log_line;
  options.log_ctx = bed;
  assert_error(belay_open(&bed->loop, &options, &bed->belay), 0);
  belay_set_data(bed->belay, bed);
  return bed;
}

belay_client_options_t client_options(void) {
  belay_client_options_t options;
  belay_client_options_init(&options);
  return options;
}

belay_client_t *bed_connect(bed_t *bed, const char *url, const belay_client_options_t *options) {
  belay_client_t *client;
  int error = belay_connect(bed->belay, url, options, &client);
  if (error != 0)
    fail_msg("belay_connect(%s): %s: %s", url, belay_strerror(error), belay_detail(bed->belay));
  belay_client_set_data(client, bed);
  assert_true(bed->clients < BED_CLIENTS_MAX);
  bed->all[bed->clients++] = client;
  return client;
}

bed_t *bed_open_at(const char *url, const belay_client_options_t *options) {
  bed_t *bed = bed_bare();
  bed->client = bed_connect(bed, url, options);
  return bed;
}

bed_t *bed_open_with(server_t *server, const belay_client_options_t *options) {
  bed_t *bed = bed_open_at(server_url(server), options);
  bed->server = server;
  return bed;
}

/* Without options of its own a test has calls that do not end because the machine stands still. */
bed_t *bed_open(const belay_client_options_t *options) {
  belay_client_options_t patient = client_options();
  patient.timeout_ms = 10000;
  return bed_open_with(server_start(NULL), options != NULL ? options : &patient);
}

static void on_belay_closed(belay_t *belay, void *data) {
  bed_t *bed = data;
  (void)belay;
  bed->sequence++;
  bed->wrong += bed->inside;
  bed->belay_closed++;
  bed->clients = 0;
}

int begin_belay_close(bed_t *bed) {
  bed->inside++;
  int error = belay_close(bed->belay, on_belay_closed);
  bed->inside--;
  return error;
}

static void forget_client(bed_t *bed, const belay_client_t *client) {
  unsigned i = 0;
  while (i < bed->clients && bed->all[i] != client)
    i++;
  if (i < bed->clients)
    bed->all[i] = bed->all[--bed->clients];
}

static void on_client_closed(belay_client_t *client, void *data) {
  bed_t *bed = data;
  bed->sequence++;
  bed->wrong += bed->inside;
  bed->client_closed++;
  forget_client(bed, client);
}

int begin_close_of(bed_t *bed, belay_client_t *client) {
  bed->inside++;
  int error = belay_client_close(client, on_client_closed);
  bed->inside--;
  return error;
}

int begin_client_close(bed_t *bed) {
  return begin_close_of(bed, bed->client);
}

static void on_pong(belay_client_t *client, int status) {
  bed_t *bed = belay_client_data(client);
  bed->sequence++;
  bed->wrong += bed->inside;
  bed->pongs++;
  bed->pong_status = status;
  if (bed->then != NULL)
    bed->then(bed);
}

int begin_ping(bed_t *bed) {
  bed->inside++;
  int error = belay_client_ping(bed->client, BELAY_DEFAULT, on_pong);
  bed->inside--;
  return error;
}

belay_client_stats_t client_stats(const bed_t *bed) {
  belay_client_stats_t stats;
  belay_client_stats(bed->client, &stats);
  return stats;
}

static void check_contender(const contender_t *c) {
  assert_int_equal(c->ended, c->begun);
  assert_int_equal(c->extended, c->begun_extend);
  assert_int_equal(c->closed, c->closing);
}

static void free_contenders(bed_t *bed) {
  while (bed->first != NULL) {
    contender_t *c = bed->first;
    bed->first = c->next;
    free(c);
  }
}

void bed_close(bed_t *bed) {
  if (bed->belay_closed == 0) {
    int error = begin_belay_close(bed);
    assert_true(error == 0 || error == BELAY_ECLOSING);
  }
  bed_until(bed, bed->belay_closed > 0);
  uv_close((uv_handle_t *)&bed->patience, NULL);
  uv_close((uv_handle_t *)&bed->ticker, NULL);
  uv_run(&bed->loop, UV_RUN_DEFAULT);
  assert_int_equal(bed->belay_closed, 1);
  assert_int_equal(uv_loop_close(&bed->loop), 0);
  assert_int_equal(bed->bytes, 0);
  assert_never(bed->wrong > 0);
  for (contender_t *c = bed->first; c != NULL; c = c->next)
    check_contender(c);
  free_contenders(bed);
  server_stop(bed->server);
  free(bed);
}

/* ---- what a contender hears ----------------------------------------------------------------------------- */

static void heard(contender_t *c, event_t event, unsigned *at) {
  bed_t *bed = c->bed;
  *at = ++bed->sequence;
  bed->wrong += bed->inside + (c->closed > 1) + (event != EVENT_CLOSED && c->closed > 0);
  unsigned inside = bed->inside;
  bed->inside = 0;
  if (c->then != NULL)
    c->then(c, event);
  bed->inside = inside;
}

void bed_note(bed_t *bed, int status) {
  if (status == 0)
    return;
  bed->failed = status;
  snprintf(bed->detail, sizeof bed->detail, "%s", belay_detail(bed->belay));
}

static void on_ended(belay_lock_t *lock, int status) {
  contender_t *c = belay_lock_data(lock);
  bed_note(c->bed, status);
  c->ended++;
  c->status = status;
  c->ended_time = clock_now();
  c->bed->wrong += c->ended > c->begun;
  heard(c, EVENT_ENDED, &c->ended_at);
}

static void on_extended(belay_lock_t *lock, int status) {
  contender_t *c = belay_lock_data(lock);
  bed_note(c->bed, status);
  c->extended++;
  c->extend_status = status;
  c->bed->wrong += c->extended > c->begun_extend;
  heard(c, EVENT_EXTENDED, &c->extended_at);
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  contender_t *c = belay_lock_data(lock);
  c->lost++;
  c->reason = reason;
  c->lost_time = clock_now();
  c->bed->wrong += remaining_ms(c) > 0;
  heard(c, EVENT_LOST, &c->lost_at);
}

static void on_closed(belay_lock_t *lock, void *data) {
  contender_t *c = data;
  (void)lock;
  c->closed++;
  c->bed->wrong += c->ended != c->begun || c->extended != c->begun_extend;
  c->lock = NULL;
  heard(c, EVENT_CLOSED, &c->closed_at);
}

/* ---- contenders ---------------------------------------------------------------------------------------- */

belay_lock_options_t lock_options(void) {
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  return options;
}

belay_lock_options_t with_ttl(int64_t ttl_ms) {
  belay_lock_options_t options = lock_options();
  options.ttl_ms = ttl_ms;
  options.watchdog = BELAY_WATCHDOG_OFF;
  return options;
}

belay_lock_options_t watched(int64_t ttl_ms) {
  belay_lock_options_t options = with_ttl(ttl_ms);
  options.watchdog = BELAY_WATCHDOG_ON;
  return options;
}

contender_t *contender_blank(bed_t *bed, belay_lock_options_t *options) {
  contender_t *c = calloc(1, sizeof *c);
  c->bed = bed;
  c->next = bed->first;
  bed->first = c;
  options->on_lost = on_lost;
  options->data = c;
  return c;
}

contender_t *contender_of(bed_t *bed, belay_client_t *client, const char *name,
                          const belay_lock_options_t *options) {
  belay_lock_options_t o = options != NULL ? *options : lock_options();
  contender_t *c = contender_blank(bed, &o);
  int error = belay_lock_new(client, name, strlen(name), &o, &c->lock);
  if (error != 0)
    fail_msg("belay_lock_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  return c;
}

contender_t *contender_new(bed_t *bed, const char *name, const belay_lock_options_t *options) {
  return contender_of(bed, bed->client, name, options);
}

int begin_acquire(contender_t *c, int64_t wait_ms) {
  c->bed->inside++;
  int error = belay_lock_acquire(c->lock, wait_ms, on_ended);
  c->bed->inside--;
  c->begun += error == 0;
  return error;
}

int begin_release(contender_t *c) {
  c->bed->inside++;
  int error = belay_lock_release(c->lock, BELAY_DEFAULT, on_ended);
  c->bed->inside--;
  c->begun += error == 0;
  return error;
}

int begin_extend(contender_t *c, int64_t ttl_ms) {
  c->bed->inside++;
  int error = belay_lock_extend(c->lock, ttl_ms, BELAY_DEFAULT, on_extended);
  c->bed->inside--;
  c->begun_extend += error == 0;
  return error;
}

int begin_change(contender_t *c, bool up) {
  c->bed->inside++;
  int error =
      (up ? belay_rwlock_upgrade : belay_rwlock_downgrade)(c->lock, BELAY_DEFAULT, on_extended);
  c->bed->inside--;
  c->begun_extend += error == 0;
  return error;
}

int begin_close(contender_t *c) {
  c->bed->inside++;
  int error = belay_lock_close(c->lock, on_closed);
  c->bed->inside--;
  c->closing += error == 0;
  return error;
}

int cancel(contender_t *c) {
  c->bed->inside++;
  int error = belay_lock_cancel(c->lock);
  c->bed->inside--;
  return error;
}

int outcome(contender_t *c) {
  bed_until(c->bed, c->ended == c->begun);
  return c->status;
}

int acquire(contender_t *c, int64_t wait_ms) {
  int error = begin_acquire(c, wait_ms);
  return error != 0 ? error : outcome(c);
}

int try_lock(contender_t *c) {
  return acquire(c, 0);
}

int release(contender_t *c) {
  int error = begin_release(c);
  return error != 0 ? error : outcome(c);
}

int extend(contender_t *c, int64_t ttl_ms) {
  int error = begin_extend(c, ttl_ms);
  if (error != 0)
    return error;
  bed_until(c->bed, c->extended == c->begun_extend);
  return c->extend_status;
}

int close_lock(contender_t *c) {
  int error = begin_close(c);
  if (error == 0)
    bed_until(c->bed, c->closed == c->closing);
  return error;
}

/* ---- questions ----------------------------------------------------------------------------------------- */

int64_t believed_until(const contender_t *c) {
  int64_t now = clock_now();
  return now + belay_lock_remaining_us(c->lock) * 1000;
}

void await_loss_at(contender_t *c, int64_t deadline) {
  bed_until(c->bed, c->lost == 1 || believed_until(c) > deadline + 50 * MS);
  assert_int_equal(c->lost, 1);
  assert_int_equal(c->reason, BELAY_LOST_EXPIRED);
  assert_between((c->lost_time - deadline) / MS, -50, lag());
}

int64_t remaining_ms(const contender_t *c) {
  return belay_lock_remaining_us(c->lock) / 1000;
}

const char *key_of(const contender_t *c) {
  static char key[4096];
  size_t len;
  const char *at = belay_lock_key(c->lock, &len);
  assert_true(len < sizeof key);
  memcpy(key, at, len);
  key[len] = '\0';
  return key;
}

const char *value_of(contender_t *c) {
  return server_string(c->bed->server, "GET", key_of(c), NULL);
}

int64_t pttl_of(contender_t *c) {
  return server_integer(c->bed->server, "PTTL", key_of(c), NULL);
}

bool is_on_server(contender_t *c) {
  char token[256];
  const char *value = value_of(c);
  belay_lock_token(c->lock, token, sizeof token);
  return value != NULL && token[0] != '\0' && strcmp(value, token) == 0;
}

void foreign_holder(contender_t *c, int64_t ttl_ms) {
  char ttl[24];
  snprintf(ttl, sizeof ttl, "%lld", (long long)ttl_ms);
  server_do(c->bed->server, "SET", key_of(c), "somebody else", "PX", ttl, NULL);
}

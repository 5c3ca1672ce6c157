#include "support/sweeps.h"

#include <stdio.h>

belay_sweep_options_t sweep_options(const char *pattern, bool remove) {
  belay_sweep_options_t options;
  belay_sweep_options_init(&options);
  options.pattern = pattern;
  options.pattern_len = strlen(pattern);
  options.remove = remove;
  options.keys_per_s = 10000000;
  return options;
}

static void then(broom_t *broom, broom_event_t event) {
  unsigned inside = broom->bed->inside;
  broom->bed->wrong += inside;
  broom->bed->inside = 0;
  if (broom->then != NULL)
    broom->then(broom, event);
  broom->bed->inside = inside;
}

static void on_keys(belay_sweep_t *sweep, const belay_bytes_t *keys, size_t n) {
  broom_t *broom = belay_sweep_data(sweep);
  assert_true(n > 0);
  broom->pages++;
  broom->bed->wrong += broom->done == broom->begun;
  for (size_t i = 0; i < n; i++) {
    if (broom->found < BROOM_KEYS_MAX)
      snprintf(broom->key[broom->found], BROOM_KEY_MAX, "%.*s", (int)keys[i].len,
               (const char *)keys[i].data);
    broom->found++;
  }
  then(broom, BROOM_KEYS);
}

static void on_progress(belay_sweep_t *sweep, const belay_sweep_totals_t *totals) {
  broom_t *broom = belay_sweep_data(sweep);
  broom->progress++;
  broom->bed->wrong += broom->done == broom->begun;
  assert_int_equal(totals->pages, broom->progress);
  assert_true(totals->scanned > broom->last.scanned && totals->matched >= broom->last.matched &&
              totals->deleted >= broom->last.deleted);
  assert_true(totals->deleted <= totals->matched);
  broom->last = *totals;
  then(broom, BROOM_PROGRESS);
}

static void on_done(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  broom_t *broom = belay_sweep_data(sweep);
  broom->done++;
  broom->bed->wrong += broom->done > broom->begun || broom->closed > 0;
  broom->status = status;
  broom->totals = *totals;
  broom->done_at = clock_now();
  then(broom, BROOM_DONE);
}

static void on_closed(belay_sweep_t *sweep, void *data) {
  broom_t *broom = data;
  assert_ptr_equal(sweep, broom->sweep);
  broom->sweep = NULL;
  broom->closed++;
  broom->bed->wrong += broom->done < broom->begun || broom->closed > broom->closing;
  then(broom, BROOM_CLOSED);
}

broom_t *broom_new(bed_t *bed, belay_client_t *client, const belay_sweep_options_t *options) {
  broom_t *broom = calloc(1, sizeof *broom);
  belay_sweep_options_t o = *options;
  assert_non_null(broom);
  broom->bed = bed;
  o.on_keys = on_keys;
  o.on_progress = on_progress;
  o.data = broom;
  int error = belay_sweep_new(client, &o, &broom->sweep);
  if (error != 0)
    fail_msg("belay_sweep_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_sweep_data(broom->sweep), broom);
  return broom;
}

void broom_free(broom_t *broom) {
  free(broom);
}

int begin_sweep(broom_t *broom) {
  broom->bed->inside++;
  int error = belay_sweep_start(broom->sweep, on_done);
  broom->bed->inside--;
  if (error != 0)
    return error;
  broom->begun++;
  broom->found = broom->pages = broom->progress = 0;
  broom->last = (belay_sweep_totals_t){0};
  return 0;
}

int begin_close_broom(broom_t *broom) {
  broom->bed->inside++;
  int error = belay_sweep_close(broom->sweep, on_closed);
  broom->bed->inside--;
  broom->closing += error == 0;
  return error;
}

int end_of_sweep(broom_t *broom) {
  bed_until(broom->bed, broom->done == broom->begun);
  return broom->status;
}

broom_t *sweep_once(bed_t *bed, const belay_sweep_options_t *options) {
  broom_t *broom = broom_new(bed, bed->client, options);
  assert_error(begin_sweep(broom), 0);
  assert_error(end_of_sweep(broom), 0);
  assert_int_equal(broom->totals.matched, broom->found);
  assert_int_equal(broom->totals.pages, broom->progress);
  assert_error(begin_close_broom(broom), 0);
  bed_until(bed, broom->closed == 1);
  return broom;
}

unsigned times_found(const broom_t *broom, const char *key) {
  unsigned n = 0;
  for (unsigned i = 0; i < broom->found && i < BROOM_KEYS_MAX; i++)
    n += strcmp(broom->key[i], key) == 0;
  return n;
}

/* One by one where a script has only the keys of one node. */
static void with_each(server_t *server, const char *script, const char *command, const char *prefix,
                      unsigned n) {
  char number[16], key[BROOM_KEY_MAX];
  snprintf(number, sizeof number, "%u", n);
  if (deployment() != DEPLOYMENT_CLUSTER3)
    server_do(server, "EVAL", script, "0", prefix, number, NULL);
  for (unsigned i = 1; deployment() == DEPLOYMENT_CLUSTER3 && i <= n; i++) {
    snprintf(key, sizeof key, "%s%u", prefix, i);
    server_do(server, command, key, *command == 'S' ? "1" : NULL, NULL);
  }
}

void make_keys(server_t *server, const char *prefix, unsigned n) {
  with_each(server, "for i = 1, ARGV[2] do redis.call('SET', ARGV[1] .. i, i) end", "SET", prefix,
            n);
}

void drop_keys(server_t *server, const char *prefix, unsigned n) {
  with_each(server, "for i = 1, ARGV[2] do redis.call('DEL', ARGV[1] .. i) end", "DEL", prefix, n);
}

#include "support/caches.h"

#include <stdio.h>

/* ---- the loader ---------------------------------------------------------------------------------------- */

typedef struct later {
  uv_timer_t timer;
  hoard_t *hoard;
  belay_cache_load_t *load;
  int error;
  bool absent;
  size_t len;
  char value[1200];
} later_t;

static void end_load(const later_t *later) {
  int error;
  if (later->error != 0)
    error = belay_cache_load_failed(later->load, later->error);
  else if (later->absent)
    error = belay_cache_load_absent(later->load);
  else
    error = belay_cache_load_done(later->load, later->value, later->len);
  assert_int_equal(error, 0);
}

static void on_later_closed(uv_handle_t *handle) {
  later_t *later = handle->data;
  later->hoard->timers--;
  free(later);
}

static void on_later(uv_timer_t *timer) {
  end_load(timer->data);
  uv_close((uv_handle_t *)timer, on_later_closed);
}

static void load_one(hoard_t *hoard, belay_cache_load_t *load, const char *key, size_t key_len) {
  assert_true(hoard->bed->inside == 0);
  hoard->loaded++;
  if (hoard->loading == LOADING_BY_HAND) {
    assert_true(hoard->held < HOARD_LOADS_MAX);
    hoard->loads[hoard->held++] = load;
    return;
  }
  later_t *later = calloc(1, sizeof *later);
  *later = (later_t){.hoard = hoard, .load = load, .error = hoard->error, .absent = hoard->absent};
  int n = hoard->value != NULL ? snprintf(later->value, sizeof later->value, "%s", hoard->value)
                               : snprintf(later->value, sizeof later->value, "%.*s#%u",
                                          (int)key_len, key, hoard->loaded);
  later->len = (size_t)n;
  if (hoard->loading == LOADING_AT_ONCE) {
    end_load(later);
    free(later);
    return;
  }
  later->timer.data = later;
  hoard->timers++;
  assert_int_equal(uv_timer_init(&hoard->bed->loop, &later->timer), 0);
  assert_int_equal(uv_timer_start(&later->timer, on_later, (uint64_t)hoard->delay_ms, 0), 0);
}

static void on_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  load_one(arg, load, key, key_len);
}

static void on_load_many(belay_cache_load_t *const *loads, const belay_bytes_t *keys, size_t n,
                         void *arg) {
  hoard_t *hoard = arg;
  hoard->batches++;
  hoard->batch = n;
  for (size_t i = 0; i < n; i++)
    load_one(hoard, loads[i], keys[i].data, keys[i].len);
}

static void end_oldest(hoard_t *hoard) {
  hoard->held--;
  memmove(hoard->loads, hoard->loads + 1, hoard->held * sizeof *hoard->loads);
}

int hand_over_bytes(hoard_t *hoard, const void *value, size_t len) {
  assert_true(hoard->held > 0);
  belay_cache_load_t *load = hoard->loads[0];
  end_oldest(hoard);
  return belay_cache_load_done(load, value, len);
}

int hand_over(hoard_t *hoard, const char *value) {
  return hand_over_bytes(hoard, value, strlen(value));
}

int hand_absent(hoard_t *hoard) {
  assert_true(hoard->held > 0);
  belay_cache_load_t *load = hoard->loads[0];
  end_oldest(hoard);
  return belay_cache_load_absent(load);
}

int hand_failure(hoard_t *hoard, int error) {
  assert_true(hoard->held > 0);
  belay_cache_load_t *load = hoard->loads[0];
  end_oldest(hoard);
  return belay_cache_load_failed(load, error);
}

/* ---- handles ------------------------------------------------------------------------------------------- */

belay_cache_options_t cache_options(hoard_t *hoard) {
  belay_cache_options_t options;
  belay_cache_options_init(&options);
  options.name = "pages";
  options.name_len = 5;
  options.load = on_load;
  options.arg = hoard;
  options.jitter_percent = 0;
  return options;
}

belay_cache_options_t batch_options(hoard_t *hoard) {
  belay_cache_options_t options = cache_options(hoard);
  options.load = NULL;
  options.load_many = on_load_many;
  return options;
}

belay_cache_options_t bare_options(hoard_t *hoard) {
  belay_cache_options_t options = cache_options(hoard);
  options.load = NULL;
  return options;
}

void hoard_of(hoard_t *hoard, bed_t *bed, belay_client_t *client,
              const belay_cache_options_t *options) {
  belay_cache_options_t o = options != NULL ? *options : cache_options(hoard);
  hoard->bed = bed;
  o.data = hoard;
  assert_int_equal(belay_cache_new(client, &o, &hoard->cache), 0);
  assert_ptr_equal(belay_cache_data(hoard->cache), hoard);
}

void hoard_new(hoard_t *hoard, bed_t *bed, const belay_cache_options_t *options) {
  hoard_of(hoard, bed, bed->client, options);
}

belay_cache_stats_t hoard_stats(const hoard_t *hoard) {
  belay_cache_stats_t stats;
  belay_cache_stats(hoard->cache, &stats);
  return stats;
}

static void on_closed(belay_cache_t *cache, void *data) {
  hoard_t *hoard = data;
  (void)cache;
  assert_int_equal(hoard->bed->inside, 0);
  assert_int_equal(hoard->pending, 0);
  hoard->closed++;
  hoard->cache = NULL;
}

int begin_close_hoard(hoard_t *hoard) {
  hoard->bed->inside++;
  int error = belay_cache_close(hoard->cache, on_closed);
  hoard->bed->inside--;
  hoard->closing += error == 0;
  return error;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

void on_fetched(belay_request_t *request, int status, const belay_cache_result_t *result) {
  fetch_t *fetch = request->data;
  assert_int_equal(fetch->hoard->bed->inside, 0);
  assert_int_equal(status, result->status);
  assert_non_null(result->data);
  fetch->ended++;
  fetch->hoard->pending--;
  fetch->result = *result;
  fetch->result.data = NULL;
  if (status == 0) {
    fetch->data = malloc(result->len + 1);
    memcpy(fetch->data, result->data, result->len);
    fetch->data[result->len] = '\0';
  }
  if (fetch->then != NULL)
    fetch->then(fetch);
}

void on_changed(belay_request_t *request, int status, bool applied) {
  change_t *change = request->data;
  assert_int_equal(change->hoard->bed->inside, 0);
  change->ended++;
  change->hoard->pending--;
  change->status = status;
  change->applied = applied;
}

static int fetch_begun(hoard_t *hoard, fetch_t *fetch, int error) {
  hoard->bed->inside--;
  fetch->begun += error == 0;
  hoard->pending += error == 0;
  return error;
}

static void fetch_begin(hoard_t *hoard, fetch_t *fetch) {
  fetch_free(fetch);
  fetch->hoard = hoard;
  fetch->request.data = fetch;
  hoard->bed->inside++;
}

int begin_cache_get(hoard_t *hoard, fetch_t *fetch, const char *key) {
  fetch_begin(hoard, fetch);
  return fetch_begun(hoard, fetch,
                     belay_cache_get(hoard->cache, &fetch->request, key, strlen(key), on_fetched));
}

int begin_get_late(hoard_t *hoard, fetch_t *fetch, const char *key, belay_cache_late_t late) {
  fetch_begin(hoard, fetch);
  return fetch_begun(
      hoard, fetch,
      belay_cache_get_late(hoard->cache, &fetch->request, key, strlen(key), late, on_fetched));
}

static int change_begun(hoard_t *hoard, change_t *change, int error) {
  hoard->bed->inside--;
  change->begun += error == 0;
  hoard->pending += error == 0;
  return error;
}

static void change_begin(hoard_t *hoard, change_t *change) {
  change->hoard = hoard;
  change->request.data = change;
  hoard->bed->inside++;
}

int begin_put(hoard_t *hoard, change_t *change, const char *key, const char *value) {
  change_begin(hoard, change);
  return change_begun(hoard, change,
                      belay_cache_put(hoard->cache, &change->request, key, strlen(key), value,
                                      strlen(value), BELAY_DEFAULT, on_changed));
}

int begin_cache_touch(hoard_t *hoard, change_t *change, const char *key, int64_t ttl_ms) {
  change_begin(hoard, change);
  return change_begun(
      hoard, change,
      belay_cache_touch(hoard->cache, &change->request, key, strlen(key), ttl_ms, on_changed));
}

int begin_invalidate(hoard_t *hoard, change_t *change, const char *key) {
  change_begin(hoard, change);
  return change_begun(
      hoard, change,
      belay_cache_invalidate(hoard->cache, &change->request, key, strlen(key), on_changed));
}

int begin_invalidate_tag(hoard_t *hoard, change_t *change, const char *tag) {
  change_begin(hoard, change);
  return change_begun(
      hoard, change,
      belay_cache_invalidate_tag(hoard->cache, &change->request, tag, strlen(tag), on_changed));
}

int end_of_fetch(fetch_t *fetch) {
  bed_until(fetch->hoard->bed, fetch->ended == fetch->begun);
  return fetch->result.status;
}

int end_of_change(change_t *change) {
  bed_until(change->hoard->bed, change->ended == change->begun);
  return change->status;
}

void fetch_free(fetch_t *fetch) {
  free(fetch->data);
  fetch->data = NULL;
}

/* ---- begin, wait, compare ------------------------------------------------------------------------------ */

void expect_fetched(fetch_t *fetch, const char *value, belay_cache_from_t from) {
  assert_error(end_of_fetch(fetch), 0);
  assert_string_equal(fetch->data, value);
  assert_int_equal(fetch->result.len, strlen(value));
  assert_int_equal(fetch->result.from, from);
  assert_false(fetch->result.stale);
  assert_int_equal(fetch->result.reason, 0);
  assert_int_equal(fetch->result.load_error, 0);
  fetch_free(fetch);
}

void expect_fetched_stale(fetch_t *fetch, const char *value, int reason) {
  assert_error(end_of_fetch(fetch), 0);
  assert_string_equal(fetch->data, value);
  assert_true(fetch->result.stale);
  assert_error(fetch->result.reason, reason);
  assert_int_equal(fetch->result.ttl_ms, 0);
  fetch_free(fetch);
}

void expect_nothing_fetched(fetch_t *fetch, int status) {
  assert_error(end_of_fetch(fetch), status);
  assert_null(fetch->data);
  assert_int_equal(fetch->result.len, 0);
  assert_false(fetch->result.stale);
  assert_int_equal(fetch->result.reason, 0);
}

void expect_cached(hoard_t *hoard, const char *key, const char *value, belay_cache_from_t from) {
  fetch_t fetch = {0};
  assert_int_equal(begin_cache_get(hoard, &fetch, key), 0);
  expect_fetched(&fetch, value, from);
}

void expect_stale(hoard_t *hoard, const char *key, const char *value, int reason) {
  fetch_t fetch = {0};
  assert_int_equal(begin_cache_get(hoard, &fetch, key), 0);
  expect_fetched_stale(&fetch, value, reason);
}

void expect_no_value(hoard_t *hoard, const char *key, int status) {
  fetch_t fetch = {0};
  assert_int_equal(begin_cache_get(hoard, &fetch, key), 0);
  expect_nothing_fetched(&fetch, status);
}

static void expect_change(change_t *change, bool applied) {
  assert_int_equal(end_of_change(change), 0);
  assert_int_equal(change->applied, applied);
}

void expect_put(hoard_t *hoard, const char *key, const char *value, bool applied) {
  change_t change = {0};
  assert_int_equal(begin_put(hoard, &change, key, value), 0);
  expect_change(&change, applied);
}

void expect_touch(hoard_t *hoard, const char *key, int64_t ttl_ms, bool applied) {
  change_t change = {0};
  assert_int_equal(begin_cache_touch(hoard, &change, key, ttl_ms), 0);
  expect_change(&change, applied);
}

void expect_invalidate(hoard_t *hoard, const char *key) {
  change_t change = {0};
  assert_int_equal(begin_invalidate(hoard, &change, key), 0);
  expect_change(&change, true);
}

void expect_invalidate_tag(hoard_t *hoard, const char *tag) {
  change_t change = {0};
  assert_int_equal(begin_invalidate_tag(hoard, &change, tag), 0);
  expect_change(&change, true);
}

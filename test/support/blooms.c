#include "support/blooms.h"

#include <stdio.h>

belay_bloom_options_t bloom_options(int64_t capacity, double rate) {
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.name = "seen";
  options.name_len = 4;
  options.capacity = capacity;
  options.error_rate = rate;
  return options;
}

void sieve_of(sieve_t *sieve, bed_t *bed, belay_client_t *client,
              const belay_bloom_options_t *options) {
  *sieve = (sieve_t){.bed = bed};
  belay_bloom_options_t o = *options;
  o.data = sieve;
  int error = belay_bloom_new(client, &o, &sieve->bloom);
  if (error != 0)
    fail_msg("belay_bloom_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_bloom_data(sieve->bloom), sieve);
}

void sieve_new(sieve_t *sieve, bed_t *bed, int64_t capacity, double rate) {
  belay_bloom_options_t options = bloom_options(capacity, rate);
  sieve_of(sieve, bed, bed->client, &options);
}

/* ---- callbacks ------------------------------------------------------------------------------------------- */

static void then(sieve_t *sieve) {
  unsigned inside = sieve->bed->inside;
  sieve->bed->wrong += inside;
  sieve->bed->inside = 0;
  if (sieve->then != NULL)
    sieve->then(sieve);
  sieve->bed->inside = inside;
}

static void ended(sift_t *sift, int status) {
  sieve_t *sieve = sift->sieve;
  sift->ended++;
  sift->status = status;
  (void)snprintf(sift->detail, sizeof sift->detail, "%s", belay_detail(sieve->bed->belay));
  sieve->bed->wrong += sift->ended > sift->begun || sieve->closed > 0;
  sieve->pending--;
  then(sieve);
}

static void on_ended(belay_request_t *request, int status) {
  ended(request->data, status);
}

static void on_answer(belay_request_t *request, int status, bool answer) {
  sift_t *sift = request->data;
  assert_true(status == 0 || !answer);
  sift->answer = answer;
  ended(sift, status);
}

static void on_answers(belay_request_t *request, int status, const bool *answers, size_t n) {
  sift_t *sift = request->data;
  assert_int_equal(answers != NULL, status == 0);
  assert_int_equal(n, status == 0 ? sift->n : 0);
  if (answers != NULL && sift->answers != NULL)
    memcpy(sift->answers, answers, n * sizeof *answers);
  ended(sift, status);
}

static void on_info(belay_request_t *request, int status, const belay_bloom_info_t *info) {
  sift_t *sift = request->data;
  assert_non_null(info);
  assert_int_equal(info->generation != 0, status == 0);
  if (status == 0)
    sift->info = *info;
  ended(sift, status);
}

static void on_made(belay_request_t *request, int status, const belay_bloom_options_t *options) {
  sift_t *sift = request->data;
  assert_non_null(options);
  assert_int_equal(options->capacity + options->bits != 0, status == 0);
  if (status == 0)
    sift->made = *options;
  ended(sift, status);
}

static void on_closed(belay_bloom_t *bloom, void *data) {
  sieve_t *sieve = data;
  assert_ptr_equal(bloom, sieve->bloom);
  sieve->closed++;
  sieve->bed->wrong += sieve->pending > 0 || sieve->closed > sieve->closing;
  sieve->bloom = NULL;
  then(sieve);
}

/* ---- operations ------------------------------------------------------------------------------------------ */

static belay_request_t *begin(sieve_t *sieve, sift_t *sift) {
  sift->sieve = sieve;
  sift->request.data = sift;
  sieve->bed->inside++;
  return &sift->request;
}

static int begun(sieve_t *sieve, sift_t *sift, int error) {
  sieve->bed->inside--;
  sieve->pending += error == 0;
  sift->begun += error == 0;
  return error;
}

int begin_open_sieve(sieve_t *sieve, sift_t *sift) {
  belay_request_t *request = begin(sieve, sift);
  return begun(sieve, sift, belay_bloom_open(sieve->bloom, request, on_ended));
}

int begin_sift_add(sieve_t *sieve, sift_t *sift, const void *item, size_t len) {
  belay_request_t *request = begin(sieve, sift);
  return begun(sieve, sift, belay_bloom_add(sieve->bloom, request, item, len, on_answer));
}

int begin_sift_exists(sieve_t *sieve, sift_t *sift, const void *item, size_t len) {
  belay_request_t *request = begin(sieve, sift);
  return begun(sieve, sift, belay_bloom_exists(sieve->bloom, request, item, len, on_answer));
}

int begin_sift_many(sieve_t *sieve, sift_t *sift, bool add, const belay_bytes_t *items, size_t n) {
  belay_request_t *request = begin(sieve, sift);
  sift->n = n;
  int error = add ? belay_bloom_add_many(sieve->bloom, request, items, n, on_answers)
                  : belay_bloom_exists_many(sieve->bloom, request, items, n, on_answers);
  return begun(sieve, sift, error);
}

int begin_sift_info(sieve_t *sieve, sift_t *sift) {
  belay_request_t *request = begin(sieve, sift);
  return begun(sieve, sift, belay_bloom_info(sieve->bloom, request, on_info));
}

int begin_sift_made(sieve_t *sieve, sift_t *sift) {
  belay_request_t *request = begin(sieve, sift);
  return begun(sieve, sift, belay_bloom_made(sieve->bloom, request, on_made));
}

int begin_sift_clear(sieve_t *sieve, sift_t *sift) {
  belay_request_t *request = begin(sieve, sift);
  return begun(sieve, sift, belay_bloom_clear(sieve->bloom, request, on_ended));
}

int begin_close_sieve(sieve_t *sieve) {
  sieve->bed->inside++;
  int error = belay_bloom_close(sieve->bloom, on_closed);
  sieve->bed->inside--;
  sieve->closing += error == 0;
  return error;
}

int end_of_sift(sift_t *sift) {
  bed_until(sift->sieve->bed, sift->ended == sift->begun);
  return sift->status;
}

/* ---- that must go well ----------------------------------------------------------------------------------- */

static void expect_well(sift_t *sift, int error) {
  if (error != 0 || end_of_sift(sift) != 0)
    fail_msg("%s: %s", belay_err_name(error != 0 ? error : sift->status), sift->detail);
}

bool sift_add(sieve_t *sieve, const char *item) {
  sift_t sift = {0};
  expect_well(&sift, begin_sift_add(sieve, &sift, item, strlen(item)));
  return sift.answer;
}

bool sift_exists(sieve_t *sieve, const char *item) {
  sift_t sift = {0};
  expect_well(&sift, begin_sift_exists(sieve, &sift, item, strlen(item)));
  return sift.answer;
}

void sift_many(sieve_t *sieve, bool add, const belay_bytes_t *items, size_t n, bool *answers) {
  sift_t sift = {.answers = answers};
  expect_well(&sift, begin_sift_many(sieve, &sift, add, items, n));
}

belay_bloom_info_t sift_info(sieve_t *sieve) {
  sift_t sift = {0};
  expect_well(&sift, begin_sift_info(sieve, &sift));
  return sift.info;
}

void sift_clear(sieve_t *sieve) {
  sift_t sift = {0};
  expect_well(&sift, begin_sift_clear(sieve, &sift));
}

static const char *expect_fails(sift_t *sift, int begun_with, int error) {
  static char detail[256];
  assert_error(begun_with, 0);
  assert_error(end_of_sift(sift), error);
  memcpy(detail, sift->detail, sizeof detail);
  return detail;
}

const char *expect_add_fails(sieve_t *sieve, const char *item, int error) {
  sift_t sift = {0};
  return expect_fails(&sift, begin_sift_add(sieve, &sift, item, strlen(item)), error);
}

const char *expect_exists_fails(sieve_t *sieve, const char *item, int error) {
  sift_t sift = {0};
  return expect_fails(&sift, begin_sift_exists(sieve, &sift, item, strlen(item)), error);
}

const char *expect_open_fails(sieve_t *sieve, int error) {
  sift_t sift = {0};
  return expect_fails(&sift, begin_open_sieve(sieve, &sift), error);
}

/* ---- items and bits -------------------------------------------------------------------------------------- */

const belay_bytes_t *sift_items(uint64_t from, size_t n) {
  static belay_bytes_t items[SIFT_MAX];
  static uint64_t numbers[SIFT_MAX];
  assert_true(n <= SIFT_MAX);
  for (size_t i = 0; i < n; i++) {
    numbers[i] = from + i;
    items[i] = (belay_bytes_t){.data = &numbers[i], .len = sizeof numbers[i]};
  }
  return items;
}

void expect_same_bits(server_t *server, const char *key, const belay_bloomset_t *set,
                      unsigned segment) {
  size_t len;
  const uint8_t *bits = belay_bloomset_bits(set, segment, &len);
  assert_non_null(bits);
  const resp_t *reply = server_ask(server, "GETRANGE", key, "8", "-1", NULL);
  assert_int_equal(reply->type, RESP_STRING);
  assert_true(reply->len <= len);
  assert_memory_equal(reply->str, bits, reply->len);
  for (size_t i = reply->len; i < len; i++)
    assert_int_equal(bits[i], 0);
}

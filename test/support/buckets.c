#include "support/buckets.h"

belay_bucket_options_t bucket_options(int64_t capacity, bool full) {
  belay_bucket_options_t options;
  belay_bucket_options_init(&options);
  options.capacity = capacity;
  options.full = full;
  return options;
}

void pail_of(pail_t *pail, bed_t *bed, belay_client_t *client,
             const belay_bucket_options_t *options) {
  *pail = (pail_t){.bed = bed};
  belay_bucket_options_t o = *options;
  o.data = pail;
  int error = belay_bucket_new(client, &o, &pail->bucket);
  if (error != 0)
    fail_msg("belay_bucket_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_bucket_data(pail->bucket), pail);
}

void pail_new(pail_t *pail, bed_t *bed, int64_t capacity, bool full) {
  belay_bucket_options_t options = bucket_options(capacity, full);
  pail_of(pail, bed, bed->client, &options);
}

static void then(pail_t *pail) {
  unsigned inside = pail->bed->inside;
  pail->bed->wrong += inside;
  pail->bed->inside = 0;
  if (pail->then != NULL)
    pail->then(pail);
  pail->bed->inside = inside;
}

void on_dipped(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  dip_t *dip = request->data;
  pail_t *pail = dip->pail;
  assert_non_null(state);
  assert_int_equal(state->tokens == -1 && state->index == -1 && !state->applied, status != 0);
  dip->ended++;
  dip->status = status;
  dip->state = *state;
  pail->bed->wrong += dip->ended > dip->begun || pail->closed > 0;
  pail->pending--;
  then(pail);
}

static void on_pail_closed(belay_bucket_t *bucket, void *data) {
  pail_t *pail = data;
  assert_ptr_equal(bucket, pail->bucket);
  pail->closed++;
  pail->bed->wrong += pail->pending > 0 || pail->closed > pail->closing;
  pail->bucket = NULL;
  then(pail);
}

static belay_request_t *begin(pail_t *pail, dip_t *dip) {
  dip->pail = pail;
  dip->request.data = dip;
  pail->bed->inside++;
  return &dip->request;
}

static int begun(pail_t *pail, dip_t *dip, int error) {
  pail->bed->inside--;
  pail->pending += error == 0;
  dip->begun += error == 0;
  return error;
}

int begin_fetch(pail_t *pail, dip_t *dip, const char *key, int64_t tokens) {
  belay_request_t *request = begin(pail, dip);
  return begun(pail, dip,
               belay_bucket_fetch(pail->bucket, request, key, strlen(key), tokens, on_dipped));
}

int begin_add(pail_t *pail, dip_t *dip, const char *key, int64_t tokens, int64_t index) {
  belay_request_t *request = begin(pail, dip);
  return begun(pail, dip,
               belay_bucket_add(pail->bucket, request, key, strlen(key), tokens, index, on_dipped));
}

int begin_read(pail_t *pail, dip_t *dip, const char *key) {
  belay_request_t *request = begin(pail, dip);
  return begun(pail, dip, belay_bucket_read(pail->bucket, request, key, strlen(key), on_dipped));
}

int begin_delete(pail_t *pail, dip_t *dip, const char *key) {
  belay_request_t *request = begin(pail, dip);
  return begun(pail, dip, belay_bucket_delete(pail->bucket, request, key, strlen(key), on_dipped));
}

int begin_close_pail(pail_t *pail) {
  pail->bed->inside++;
  int error = belay_bucket_close(pail->bucket, on_pail_closed);
  pail->bed->inside--;
  pail->closing += error == 0;
  return error;
}

int end_of_dip(dip_t *dip) {
  bed_until(dip->pail->bed, dip->ended == dip->begun);
  return dip->status;
}

static void expect(dip_t *dip, int error, bool applied, int64_t tokens, int64_t index) {
  assert_error(error, 0);
  assert_error(end_of_dip(dip), 0);
  assert_int_equal(dip->state.applied, applied);
  assert_int_equal(dip->state.tokens, tokens);
  assert_int_equal(dip->state.index, index);
}

void expect_fetch(pail_t *pail, const char *key, int64_t tokens, bool applied, int64_t left,
                  int64_t index) {
  dip_t dip = {0};
  expect(&dip, begin_fetch(pail, &dip, key, tokens), applied, left, index);
}

void expect_add(pail_t *pail, const char *key, int64_t tokens, int64_t index, bool applied,
                int64_t left, int64_t next) {
  dip_t dip = {0};
  expect(&dip, begin_add(pail, &dip, key, tokens, index), applied, left, next);
}

void expect_read(pail_t *pail, const char *key, int64_t tokens, int64_t index) {
  dip_t dip = {0};
  expect(&dip, begin_read(pail, &dip, key), false, tokens, index);
}

void expect_delete(pail_t *pail, const char *key, bool applied, int64_t tokens) {
  dip_t dip = {0};
  expect(&dip, begin_delete(pail, &dip, key), applied, tokens, 0);
}

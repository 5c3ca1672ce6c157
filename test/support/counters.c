#include "support/counters.h"

belay_counter_options_t counter_options(void) {
  belay_counter_options_t options;
  belay_counter_options_init(&options);
  return options;
}

static void then(till_t *till) {
  unsigned inside = till->bed->inside;
  till->bed->wrong += inside;
  till->bed->inside = 0;
  if (till->then != NULL)
    till->then(till);
  till->bed->inside = inside;
}

static void on_lost(belay_counter_t *counter, void *data, const belay_counter_loss_t *loss) {
  till_t *till = data;
  assert_ptr_equal(counter, till->counter);
  assert_true(till->losses < LOSSES_MAX && loss->key_len < sizeof till->loss->key);
  loss_t *kept = &till->loss[till->losses++];
  *kept = (loss_t){.amount = loss->amount, .status = loss->status, .maybe = loss->maybe};
  memcpy(kept->key, loss->key, loss->key_len);
  till->bed->wrong += till->closed > 0;
  then(till);
}

void till_of(till_t *till, bed_t *bed, belay_client_t *client,
             const belay_counter_options_t *options) {
  *till = (till_t){.bed = bed};
  belay_counter_options_t o = options != NULL ? *options : counter_options();
  o.data = till;
  o.on_lost = on_lost;
  int error = belay_counter_new(client, &o, &till->counter);
  if (error != 0)
    fail_msg("belay_counter_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_counter_data(till->counter), till);
}

void till_new(till_t *till, bed_t *bed, const belay_counter_options_t *options) {
  till_of(till, bed, bed->client, options);
}

static count_t *ended(belay_request_t *request, int status) {
  count_t *count = request->data;
  till_t *till = count->till;
  count->ended++;
  count->status = status;
  till->bed->wrong += count->ended > count->begun || till->closed > 0;
  till->pending--;
  return count;
}

void on_counter_told(belay_request_t *request, int status, const belay_counter_result_t *result) {
  count_t *count = ended(request, status);
  assert_non_null(result);
  assert_int_equal(result->status, status);
  assert_true(status == 0 || (!result->applied && !result->found && result->value == 0));
  count->result = status == 0 ? *result : (belay_counter_result_t){.value = -77};
  then(count->till);
}

void on_many(belay_request_t *request, int status, const belay_counter_result_t *results,
             size_t n) {
  count_t *count = ended(request, status);
  count->n = n;
  memcpy(count->many, results, (n < COUNT_MANY_MAX ? n : COUNT_MANY_MAX) * sizeof *results);
  bool well = true;
  for (size_t i = 0; i < n; i++)
    well = well && results[i].status == 0;
  assert_int_equal(well, status == 0);
  then(count->till);
}

void on_all(belay_request_t *request, int status, const belay_counter_field_t *fields, size_t n) {
  count_t *count = ended(request, status);
  assert_true(n <= COUNT_MANY_MAX && (status == 0 || n == 0));
  assert_int_equal(fields != NULL, n > 0);
  count->n = n;
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(strlen(fields[i].name), fields[i].name_len);
    assert_true(fields[i].name_len < sizeof count->names[i]);
    strcpy(count->names[i], fields[i].name);
    count->values[i] = fields[i].value;
  }
  then(count->till);
}

static void on_till_closed(belay_counter_t *counter, void *data) {
  till_t *till = data;
  assert_ptr_equal(counter, till->counter);
  till->closed++;
  till->bed->wrong += till->pending > 0 || till->closed > till->closing;
  till->counter = NULL;
  then(till);
}

void count_begin(till_t *till, count_t *count) {
  count->till = till;
  count->request.data = count;
  till->bed->inside++;
}

int count_begun(till_t *till, count_t *count, int error) {
  till->bed->inside--;
  till->pending += error == 0;
  count->begun += error == 0;
  return error;
}

int begin_close_till(till_t *till) {
  till->bed->inside++;
  int error = belay_counter_close(till->counter, on_till_closed);
  till->bed->inside--;
  till->closing += error == 0;
  return error;
}

int end_of_count(count_t *count) {
  bed_until(count->till->bed, count->ended == count->begun);
  return count->status;
}

void expect_status(count_t *count, int error, int status) {
  assert_error(error, 0);
  assert_error(end_of_count(count), status);
}

static void expect(count_t *count, int error, bool applied, bool found, int64_t value) {
  expect_status(count, error, 0);
  assert_int_equal(count->result.applied, applied);
  assert_int_equal(count->result.found, found);
  assert_int_equal(count->result.value, value);
}

void expect_added(till_t *till, const char *key, int64_t delta, int64_t value) {
  count_t count = {0};
  expect(&count, BEGIN(till, &count, add, KEY(key), delta, on_counter_told), true, false, value);
}

void expect_bounded(till_t *till, const char *key, int64_t delta, int64_t min, int64_t max,
                    bool applied, int64_t value) {
  count_t count = {0};
  expect(&count, BEGIN(till, &count, add_bounded, KEY(key), delta, min, max, on_counter_told),
         applied, false, value);
}

void expect_once(till_t *till, const char *key, int64_t delta, const char *id, int64_t value) {
  count_t count = {0};
  expect(&count, BEGIN(till, &count, add_once, KEY(key), delta, KEY(id), on_counter_told), true,
         false, value);
}

void expect_got(till_t *till, const char *key, bool found, int64_t value) {
  count_t count = {0};
  expect(&count, BEGIN(till, &count, get, KEY(key), on_counter_told), false, found, value);
}

void expect_set(till_t *till, const char *key, int64_t value, bool found, int64_t before) {
  count_t count = {0};
  expect(&count, BEGIN(till, &count, set, KEY(key), value, on_counter_told), true, found, before);
}

void expect_deleted(till_t *till, const char *key, bool found) {
  count_t count = {0};
  expect(&count, BEGIN(till, &count, delete, KEY(key), on_counter_told), true, found, 0);
}

void expect_field_added(till_t *till, const char *key, const char *field, int64_t delta,
                        int64_t value) {
  count_t count = {0};
  expect(&count, BEGIN(till, &count, add_field, KEY(key), KEY(field), delta, on_counter_told), true,
         false, value);
}

void expect_field(till_t *till, const char *key, const char *field, bool found, int64_t value) {
  count_t count = {0};
  expect(&count, BEGIN(till, &count, get_field, KEY(key), KEY(field), on_counter_told), false,
         found, value);
}

void expect_no_key_for_ever(server_t *server) {
  static const char script[] = "local n = 0 "
                               "for _, key in ipairs(redis.call('KEYS', '*')) do "
                               "  if redis.call('PTTL', key) < 0 then n = n + 1 end "
                               "end "
                               "return n";
  assert_int_equal(server_integer(server, "EVAL", script, "0", NULL), 0);
}

/* ---- what is added here first ---------------------------------------------------------------------------- */

belay_counter_options_t counter_options_every(int64_t batch_ms) {
  belay_counter_options_t options = counter_options();
  options.batch_ms = batch_ms;
  return options;
}

belay_counter_stats_t stats_of(const till_t *till) {
  belay_counter_stats_t stats;
  belay_counter_stats(till->counter, &stats);
  return stats;
}

int add_local(till_t *till, const char *key, int64_t delta) {
  till->bed->inside++;
  int error = belay_counter_add_local(till->counter, KEY(key), delta);
  till->bed->inside--;
  return error;
}

void expect_idle(till_t *till) {
  bed_until(till->bed, stats_of(till).keys == 0);
}

int64_t number_at(server_t *server, const char *key) {
  const char *text = server_string(server, "GET", key, NULL);
  return text == NULL ? 0 : atoll(text);
}

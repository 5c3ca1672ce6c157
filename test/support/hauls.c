#include "support/hauls.h"

#include "support/deployment.h"

haul_t *haul_new(hoard_t *hoard) {
  haul_t *haul = calloc(1, sizeof *haul);
  haul->hoard = hoard;
  haul->request.data = haul;
  return haul;
}

static void clear(haul_t *haul) {
  for (size_t i = 0; i < HAUL_MAX; i++) {
    free(haul->data[i]);
    haul->data[i] = NULL;
  }
  haul->n = 0;
}

void haul_free(haul_t *haul) {
  clear(haul);
  free(haul);
}

static void keep(haul_t *haul, size_t i, const belay_cache_result_t *result) {
  assert_non_null(result->data);
  haul->results[i] = *result;
  haul->results[i].data = NULL;
  if (result->status != 0)
    return;
  haul->data[i] = malloc(result->len + 1);
  memcpy(haul->data[i], result->data, result->len);
  haul->data[i][result->len] = '\0';
}

static void on_hauled(belay_request_t *request, int status, const belay_cache_result_t *results,
                      size_t n) {
  haul_t *haul = request->data;
  assert_int_equal(haul->hoard->bed->inside, 0);
  assert_true(results != NULL && n > 0);
  haul->ended++;
  haul->hoard->pending--;
  haul->status = status;
  haul->n = n;
  for (size_t i = 0; i < n; i++) {
    assert_true(status == 0 || results[i].status == status);
    keep(haul, i, &results[i]);
  }
}

int begin_haul_bytes(haul_t *haul, const belay_bytes_t *keys, size_t n) {
  hoard_t *hoard = haul->hoard;
  clear(haul);
  hoard->bed->inside++;
  int error = belay_cache_get_many(hoard->cache, &haul->request, keys, n, on_hauled);
  hoard->bed->inside--;
  haul->begun += error == 0;
  hoard->pending += error == 0;
  return error;
}

int begin_haul(haul_t *haul, const char *const *keys, size_t n) {
  belay_bytes_t bytes[HAUL_MAX];
  for (size_t i = 0; i < n; i++)
    bytes[i] = (belay_bytes_t){keys[i], strlen(keys[i])};
  return begin_haul_bytes(haul, bytes, n);
}

int end_of_haul(haul_t *haul) {
  bed_until(haul->hoard->bed, haul->ended == haul->begun);
  return haul->status;
}

/* KEY#NUMBER, of the load. Several nodes answer in any order, and so are loads numbered then: it is not looked at. */
static void expect_data(const char *data, const char *value) {
  if (deployment() != DEPLOYMENT_CLUSTER3)
    assert_string_equal(data, value);
  else if (strncmp(data, value, strcspn(value, "#") + 1) != 0)
    fail_msg("%s: not of the key of %s", data, value);
}

void expect_hauled(const haul_t *haul, size_t i, const char *value, belay_cache_from_t from) {
  assert_true(i < haul->n);
  assert_error(haul->results[i].status, 0);
  expect_data(haul->data[i], value);
  assert_int_equal(haul->results[i].len, strlen(haul->data[i]));
  assert_int_equal(haul->results[i].from, from);
  assert_false(haul->results[i].stale);
  assert_int_equal(haul->results[i].reason, 0);
}

void expect_not_hauled(const haul_t *haul, size_t i, int status) {
  assert_true(i < haul->n);
  assert_error(haul->results[i].status, status);
  assert_int_equal(haul->results[i].len, 0);
  assert_null(haul->data[i]);
}

#include "support/permits.h"

belay_permission_options_t permission_options(unsigned width) {
  belay_permission_options_t options;
  belay_permission_options_init(&options);
  options.width = width;
  return options;
}

void gate_of(gate_t *gate, bed_t *bed, const belay_permission_options_t *options) {
  *gate = (gate_t){.bed = bed};
  belay_permission_options_t o = *options;
  o.data = gate;
  int error = belay_permission_new(bed->client, &o, &gate->permission);
  if (error != 0)
    fail_msg("belay_permission_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_permission_data(gate->permission), gate);
}

void gate_new(gate_t *gate, bed_t *bed, unsigned width) {
  belay_permission_options_t options = permission_options(width);
  gate_of(gate, bed, &options);
}

static void then(gate_t *gate) {
  unsigned inside = gate->bed->inside;
  gate->bed->wrong += inside;
  gate->bed->inside = 0;
  if (gate->then != NULL)
    gate->then(gate);
  gate->bed->inside = inside;
}

void on_permit(belay_request_t *request, int status, const belay_permission_result_t *results,
               size_t n) {
  permit_t *permit = request->data;
  gate_t *gate = permit->gate;
  assert_int_equal(results != NULL, n > 0);
  assert_true(status == 0 || n == 0);
  permit->ended++;
  permit->status = status;
  permit->n = n;
  permit->sum = 0;
  for (size_t i = 0; i < n; i++) {
    if (i < PERMIT_RESULTS_MAX)
      permit->results[i] = results[i];
    permit->sum += results[i].value;
  }
  gate->bed->wrong += permit->ended > permit->begun || gate->closed > 0;
  gate->pending--;
  then(gate);
}

static void on_gate_closed(belay_permission_t *permission, void *data) {
  gate_t *gate = data;
  assert_ptr_equal(permission, gate->permission);
  gate->closed++;
  gate->bed->wrong += gate->pending > 0 || gate->closed > gate->closing;
  gate->permission = NULL;
  then(gate);
}

belay_request_t *gate_begin(gate_t *gate, permit_t *permit) {
  permit->gate = gate;
  permit->request.data = permit;
  gate->bed->inside++;
  return &permit->request;
}

int gate_begun(gate_t *gate, permit_t *permit, int error) {
  gate->bed->inside--;
  gate->pending += error == 0;
  permit->begun += error == 0;
  return error;
}

int begin_close_gate(gate_t *gate) {
  gate->bed->inside++;
  int error = belay_permission_close(gate->permission, on_gate_closed);
  gate->bed->inside--;
  gate->closing += error == 0;
  return error;
}

static int ask(belay_permission_t *p, belay_request_t *r, deed_t deed,
               const belay_permission_field_t *field) {
  const char *key = "forum";
  switch (deed) {
  case DEED_GET:
    return belay_permission_get(p, r, key, 5, &field->index, 1, on_permit);
  case DEED_HAS:
    return belay_permission_has(p, r, key, 5, field, 1, on_permit);
  case DEED_SET:
    return belay_permission_set(p, r, key, 5, field, 1, on_permit);
  case DEED_GRANT:
    return belay_permission_grant(p, r, key, 5, field, 1, on_permit);
  case DEED_REVOKE:
    return belay_permission_revoke(p, r, key, 5, field, 1, on_permit);
  case DEED_SWAP:
    return belay_permission_compare_and_set(p, r, key, 5, field->index, 0, field->value, on_permit);
  case DEED_CLEAR:
    return belay_permission_clear(p, r, key, 5, on_permit);
  }
  return BELAY_EINVAL;
}

int begin_deed(gate_t *gate, permit_t *permit, deed_t deed, uint64_t index, uint64_t value) {
  const belay_permission_field_t field = {index, value};
  belay_request_t *request = gate_begin(gate, permit);
  return gate_begun(gate, permit, ask(gate->permission, request, deed, &field));
}

int end_of_permit(permit_t *permit) {
  bed_until(permit->gate->bed, permit->ended == permit->begun);
  return permit->status;
}

void expect_deed(gate_t *gate, deed_t deed, uint64_t index, uint64_t value, uint64_t before,
                 uint64_t now, bool yes) {
  permit_t permit = {0};
  assert_error(begin_deed(gate, &permit, deed, index, value), 0);
  assert_error(end_of_permit(&permit), 0);
  assert_int_equal(permit.n, deed == DEED_CLEAR ? 0 : 1);
  if (deed == DEED_CLEAR)
    return;
  assert_true(permit.results[0].index == index);
  if (permit.results[0].before != before || permit.results[0].value != now)
    fail_msg("%llu, %llu: not %llu, %llu", (unsigned long long)permit.results[0].before,
             (unsigned long long)permit.results[0].value, (unsigned long long)before,
             (unsigned long long)now);
  assert_int_equal(permit.results[0].yes, yes);
}

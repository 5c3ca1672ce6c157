#include "support/seen.h"

#include <stdio.h>

belay_request_t *r_;

static void over(seen_t *seen, int status) {
  bed_t *bed = seen->bed;
  seen->ended++;
  seen->status = status;
  bed->wrong += bed->inside + (seen->ended > seen->begun);
  snprintf(seen->detail, sizeof seen->detail, "%s", belay_detail(bed->belay));
  unsigned inside = bed->inside;
  bed->inside = 0;
  if (seen->then != NULL)
    seen->then(seen);
  bed->inside = inside;
}

void on_seen(belay_request_t *request, int status) {
  over(request->data, status);
}

void on_seen_counts(belay_request_t *request, int status, const int64_t *counts, size_t n) {
  seen_t *seen = request->data;
  assert_int_equal(counts != NULL, status == 0);
  assert_int_equal(n > 0, status == 0);
  assert_true(n <= SEEN_COUNTS_MAX);
  seen->n = n;
  for (size_t i = 0; i < n; i++)
    seen->counts[i] = counts[i];
  over(seen, status);
}

void on_seen_is(belay_request_t *request, int status, const bool *online, size_t n) {
  seen_t *seen = request->data;
  assert_int_equal(online != NULL, status == 0);
  assert_int_equal(n > 0, status == 0);
  seen->n = n;
  seen->online_len = 0;
  for (size_t i = 0; i < n; i++) {
    seen->online_len += online[i];
    if (i < sizeof seen->online / sizeof *seen->online)
      seen->online[i] = online[i];
  }
  over(seen, status);
}

void on_seen_count(belay_request_t *request, int status, int64_t count) {
  seen_t *seen = request->data;
  assert_true(status == 0 || count == 0);
  seen->counts[0] = count;
  over(seen, status);
}

belay_request_t *seen_begin(bed_t *bed, seen_t *seen) {
  seen->bed = bed;
  seen->request.data = seen;
  bed->inside++;
  return &seen->request;
}

int seen_begun(seen_t *seen, int error) {
  seen->bed->inside--;
  seen->begun += error == 0;
  if (error != 0)
    seen->status = error;
  return error;
}

void seen_do_(bed_t *bed, seen_t *seen) {
  (void)seen_begin(bed, seen);
}

int end_of_seen(seen_t *seen) {
  bed_until(seen->bed, seen->ended == seen->begun);
  return seen->status;
}

void seen_wire_open(seen_wire_t *wire) {
  wire->server = server_start(NULL);
  wire->relay = relay_start(server_path(wire->server));
  belay_client_options_t options = relay_client_options();
  wire->bed = bed_open_at(relay_url(wire->relay), &options);
  wire->bed->server = wire->server;
}

void seen_wire_close(seen_wire_t *wire) {
  bed_close(wire->bed);
  relay_stop(wire->relay);
}

void seen_lose_answer(seen_wire_t *wire, const char *command, int64_t calls) {
  while (server_calls(wire->server, command) < calls)
    uv_run(&wire->bed->loop, UV_RUN_NOWAIT);
  relay_cut(wire->relay);
  relay_delay(wire->relay, 0);
}

uint64_t seen_random(uint64_t *state, uint64_t n) { /* xorshift64* */
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (*state * UINT64_C(2685821657736338717) >> 11) % n;
}

#include "support/latches.h"

belay_latch_options_t latch_options(unsigned count) {
  belay_latch_options_t options;
  belay_latch_options_init(&options);
  options.count = count;
  return options;
}

void handle_of(handle_t *h, bed_t *bed, belay_client_t *client,
               const belay_latch_options_t *options) {
  *h = (handle_t){.bed = bed};
  int error = belay_latch_new(client, "gate", 4, options, &h->latch);
  if (error != 0)
    fail_msg("belay_latch_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  belay_latch_set_data(h->latch, h);
}

void handle_new(handle_t *h, bed_t *bed, unsigned count) {
  belay_latch_options_t options = latch_options(count);
  handle_of(h, bed, bed->client, &options);
}

static void then(handle_t *h) {
  unsigned inside = h->bed->inside;
  h->bed->wrong += inside;
  h->bed->inside = 0;
  if (h->then != NULL)
    h->then(h);
  h->bed->inside = inside;
}

void on_latch_ended(belay_latch_t *latch, int status) {
  handle_t *h = belay_latch_data(latch);
  bed_note(h->bed, status);
  h->ended++;
  h->status = status;
  h->bed->wrong += h->ended > h->begun || h->closed > 0;
  then(h);
}

static void on_closed(belay_latch_t *latch, void *data) {
  handle_t *h = data;
  (void)latch;
  h->closed++;
  h->bed->wrong += h->ended != h->begun || h->closed > 1;
  h->latch = NULL;
  then(h);
}

int begin_latch_wait(handle_t *h, int64_t wait_ms) {
  h->bed->inside++;
  int error = belay_latch_wait(h->latch, wait_ms, on_latch_ended);
  h->bed->inside--;
  h->begun += error == 0;
  return error;
}

int end_of_latch_wait(handle_t *h) {
  bed_until(h->bed, h->ended == h->begun);
  return h->status;
}

int latch_wait_for(handle_t *h, int64_t wait_ms) {
  int error = begin_latch_wait(h, wait_ms);
  return error != 0 ? error : end_of_latch_wait(h);
}

int begin_close_latch(handle_t *h) {
  h->bed->inside++;
  int error = belay_latch_close(h->latch, on_closed);
  h->bed->inside--;
  return error;
}

void on_counted(belay_request_t *request, int status, unsigned left) {
  tally_t *t = request->data;
  bed_note(t->handle->bed, status);
  t->ended++;
  t->status = status;
  t->left = left;
  t->handle->bed->wrong += t->ended > t->begun || t->handle->closed > 0;
  then(t->handle);
}

int begin_count(handle_t *h, tally_t *t, const char *operation) {
  t->handle = h;
  t->request.data = t;
  h->bed->inside++;
  int error = belay_latch_count_down(h->latch, &t->request, operation,
                                     operation == NULL ? 0 : strlen(operation), on_counted);
  h->bed->inside--;
  t->begun += error == 0;
  return error;
}

int64_t count_within_ms = BELAY_DEFAULT;

unsigned count(handle_t *h, const char *operation) {
  tally_t t = {.request = {.timeout_ms = count_within_ms}};
  assert_error(begin_count(h, &t, operation), 0);
  bed_until(h->bed, t.ended == 1);
  assert_error(t.status, 0);
  return t.left;
}

int64_t counted(bed_t *bed) {
  return server_integer(bed->server, "HLEN", KEY, NULL) - 2;
}

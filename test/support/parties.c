#include "support/parties.h"

belay_latch_options_t barrier_options(unsigned count) {
  belay_latch_options_t options;
  belay_latch_options_init(&options);
  options.count = count;
  return options;
}

void party_of(party_t *p, bed_t *bed, belay_client_t *client,
              const belay_latch_options_t *options) {
  *p = (party_t){.bed = bed};
  int error = belay_barrier_new(client, "gate", 4, options, &p->barrier);
  if (error != 0)
    fail_msg("belay_barrier_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  belay_barrier_set_data(p->barrier, p);
}

void party_new(party_t *p, bed_t *bed, unsigned count) {
  belay_latch_options_t options = barrier_options(count);
  party_of(p, bed, bed->client, &options);
}

static void then(party_t *p) {
  unsigned inside = p->bed->inside;
  p->bed->wrong += inside;
  p->bed->inside = 0;
  if (p->then != NULL)
    p->then(p);
  p->bed->inside = inside;
}

void on_barrier_ended(belay_barrier_t *barrier, int status, uint64_t generation) {
  party_t *p = belay_barrier_data(barrier);
  bed_note(p->bed, status);
  p->ended++;
  p->status = status;
  p->generation = generation;
  p->bed->wrong += p->ended > p->begun || p->closed > 0 || (status == 0) != (generation > 0);
  then(p);
}

static void on_closed(belay_barrier_t *barrier, void *data) {
  party_t *p = data;
  (void)barrier;
  p->closed++;
  p->bed->wrong += p->ended != p->begun || p->closed > 1;
  p->barrier = NULL;
  then(p);
}

int begin_barrier_wait(party_t *p, int64_t wait_ms) {
  p->bed->inside++;
  int error = belay_barrier_wait(p->barrier, wait_ms, on_barrier_ended);
  p->bed->inside--;
  p->begun += error == 0;
  return error;
}

int end_of_barrier_wait(party_t *p) {
  bed_until(p->bed, p->ended == p->begun);
  return p->status;
}

int barrier_wait_for(party_t *p, int64_t wait_ms) {
  int error = begin_barrier_wait(p, wait_ms);
  return error != 0 ? error : end_of_barrier_wait(p);
}

int begin_close_barrier(party_t *p) {
  p->bed->inside++;
  int error = belay_barrier_close(p->barrier, on_closed);
  p->bed->inside--;
  return error;
}

int64_t there(bed_t *bed) {
  return server_integer(bed->server, "ZCARD", PARTIES, NULL);
}

void begin_and_come(party_t *p, int64_t wait_ms) {
  int64_t before = there(p->bed);
  assert_error(begin_barrier_wait(p, wait_ms), 0);
  bed_until(p->bed, there(p->bed) == before + 1);
}

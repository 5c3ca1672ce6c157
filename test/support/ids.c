#include "support/ids.h"

#include <time.h>

#include "core/base.h"

belay_idgen_options_t idgen_options(belay_idgen_mode_t mode) {
  belay_idgen_options_t options;
  belay_idgen_options_init(&options);
  options.name = "users";
  options.name_len = 5;
  options.mode = mode;
  return options;
}

void spring_of(spring_t *spring, bed_t *bed, belay_client_t *client,
               const belay_idgen_options_t *options) {
  *spring = (spring_t){.bed = bed};
  belay_idgen_options_t o = *options;
  o.data = spring;
  int error = belay_idgen_new(client, &o, &spring->idgen);
  if (error != 0)
    fail_msg("belay_idgen_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  assert_ptr_equal(belay_idgen_data(spring->idgen), spring);
}

void spring_new(spring_t *spring, bed_t *bed, const belay_idgen_options_t *options) {
  spring_of(spring, bed, bed->client, options);
}

/* ---- what is heard ----------------------------------------------------------------------------------------- */

static void then(spring_t *spring) {
  unsigned inside = spring->bed->inside;
  spring->bed->wrong += inside;
  spring->bed->inside = 0;
  if (spring->then != NULL)
    spring->then(spring);
  spring->bed->inside = inside;
}

static void ended(draw_t *draw, int status) {
  spring_t *spring = draw->spring;
  draw->ended++;
  draw->status = status;
  spring->bed->wrong += draw->ended > draw->begun || spring->closed > 0;
  spring->pending--;
  then(spring);
}

static void on_one(belay_request_t *request, int status, int64_t id) {
  draw_t *draw = request->data;
  draw->first = draw->last = id;
  draw->n = status == 0;
  draw->growing = true;
  if (status == 0 && draw->each != NULL)
    draw->each(id);
  ended(draw, status);
}

static void on_many(belay_request_t *request, int status, const int64_t *ids, size_t n) {
  draw_t *draw = request->data;
  assert_int_equal(ids != NULL, status == 0);
  assert_int_equal(n > 0, status == 0);
  draw->n = n;
  draw->growing = true;
  if (n > 0) {
    draw->first = ids[0];
    draw->last = ids[n - 1];
  }
  for (size_t i = 1; i < n; i++)
    draw->growing = draw->growing && ids[i] > ids[i - 1];
  for (size_t i = 0; i < n && draw->each != NULL; i++)
    draw->each(ids[i]);
  ended(draw, status);
}

static void on_spring_closed(belay_idgen_t *idgen, void *data) {
  spring_t *spring = data;
  assert_ptr_equal(idgen, spring->idgen);
  spring->closed++;
  spring->bed->wrong += spring->pending > 0 || spring->closed > spring->closing;
  spring->idgen = NULL;
  then(spring);
}

/* ---- what is begun ----------------------------------------------------------------------------------------- */

static belay_request_t *begin(spring_t *spring, draw_t *draw) {
  draw->spring = spring;
  draw->request.data = draw;
  spring->bed->inside++;
  return &draw->request;
}

static int begun(spring_t *spring, draw_t *draw, int error) {
  spring->bed->inside--;
  spring->pending += error == 0;
  draw->begun += error == 0;
  return error;
}

int begin_get(spring_t *spring, draw_t *draw) {
  belay_request_t *request = begin(spring, draw);
  return begun(spring, draw, belay_idgen_get(spring->idgen, request, on_one));
}

int begin_get_many(spring_t *spring, draw_t *draw, size_t n) {
  belay_request_t *request = begin(spring, draw);
  return begun(spring, draw, belay_idgen_get_many(spring->idgen, request, n, on_many));
}

int begin_close_spring(spring_t *spring) {
  spring->bed->inside++;
  int error = belay_idgen_close(spring->idgen, on_spring_closed);
  spring->bed->inside--;
  spring->closing += error == 0;
  return error;
}

int end_of_draw(draw_t *draw) {
  bed_until(draw->spring->bed, draw->ended == draw->begun);
  return draw->status;
}

/* ---- all of it --------------------------------------------------------------------------------------------- */

void expect_get(spring_t *spring, int status) {
  draw_t draw = {0};
  assert_error(begin_get(spring, &draw), 0);
  assert_error(end_of_draw(&draw), status);
}

int64_t get_id(spring_t *spring) {
  draw_t draw = {.request.timeout_ms = 10000 * slow()};
  assert_error(begin_get(spring, &draw), 0);
  assert_error(end_of_draw(&draw), 0);
  return draw.first;
}

int64_t next_id(spring_t *spring) {
  int64_t id;
  int error = belay_idgen_next(spring->idgen, &id);
  if (error == 0)
    return id;
  assert_error(error, BELAY_EAGAIN);
  return get_id(spring);
}

void close_spring(spring_t *spring) {
  assert_error(begin_close_spring(spring), 0);
  bed_until(spring->bed, spring->closed == 1);
}

/* ---- another wall clock ------------------------------------------------------------------------------------ */

fake_wall_t fake_wall;

static int64_t wall_us(belay_t *belay) {
  (void)belay;
  struct timespec ts;
  if (fake_wall.at != 0)
    return fake_wall.at * 1000;
  if (fake_wall.slow > 0)
    stall_ms(fake_wall.slow);
  clock_gettime(CLOCK_REALTIME, &ts);
  return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 + fake_wall.shift * 1000;
}

void bed_fake_wall(bed_t *bed) {
  static belay__host_ops_t host;
  host = *bed->belay->host;
  host.wall_us = wall_us;
  bed->belay->host = &host;
  fake_wall = (fake_wall_t){0};
}

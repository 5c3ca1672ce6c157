#include "support/rw.h"

#include <stdio.h>

contender_t *rw_over(bed_t *bed, belay_client_t *const *clients, size_t n, const char *name,
                     belay_rwlock_mode_t mode, const belay_lock_options_t *options) {
  belay_lock_options_t o = options != NULL ? *options : lock_options();
  contender_t *c = contender_blank(bed, &o);
  int error = belay_rwlock_new(clients, n, name, strlen(name), mode, &o, &c->lock);
  if (error != 0)
    fail_msg("belay_rwlock_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  return c;
}

contender_t *reader_of(bed_t *bed, belay_client_t *client, const char *name,
                       const belay_lock_options_t *options) {
  return rw_over(bed, &client, 1, name, BELAY_RWLOCK_READ, options);
}

contender_t *writer_of(bed_t *bed, belay_client_t *client, const char *name,
                       const belay_lock_options_t *options) {
  return rw_over(bed, &client, 1, name, BELAY_RWLOCK_WRITE, options);
}

static int change(contender_t *c, bool up) {
  int error = begin_change(c, up);
  if (error != 0)
    return error;
  bed_until(c->bed, c->extended == c->begun_extend);
  return c->extend_status;
}

int upgrade(contender_t *c) {
  return change(c, true);
}

int downgrade(contender_t *c) {
  return change(c, false);
}

bool is_writer(const contender_t *c) {
  return belay_rwlock_mode(c->lock) == BELAY_RWLOCK_WRITE;
}

bool is_held(const contender_t *c) {
  return belay_lock_remaining_us(c->lock) > 0;
}

int64_t count_in(server_t *server, contender_t *c, const char *set) {
  char key[4200];
  snprintf(key, sizeof key, "%s::%s", key_of(c), set);
  return server_integer(server, "ZCARD", key, NULL);
}

belay_client_t *rw_client(bed_t *bed) {
  return bed_connect(bed, server_url(bed->server), NULL);
}

contender_t *lone_reader(bed_t *bed, const belay_lock_options_t *options) {
  return reader_of(bed, rw_client(bed), "page", options);
}

contender_t *lone_writer(bed_t *bed, const belay_lock_options_t *options) {
  return writer_of(bed, rw_client(bed), "page", options);
}

void wait_in(contender_t *c, const char *set) {
  int64_t before = count_in(c->bed->server, c, set);
  assert_error(begin_acquire(c, 60000), 0);
  bed_until(c->bed, count_in(c->bed->server, c, set) == before + 1);
}

void expect_empty(bed_t *bed) {
  bed_settle(bed);
  bed_until(bed, server_keys(bed->server) == 0);
  bed_run_for(bed, 50);
  assert_int_equal(server_keys(bed->server), 0);
}

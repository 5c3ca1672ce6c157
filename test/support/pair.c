#include "support/pair.h"

#include <stdio.h>

pair_t *pair_open(void) {
  pair_t *pair = calloc(1, sizeof *pair);
  pair->server[0] = server_start(NULL);
  pair->server[1] = server_start(NULL);
  pair->bed = bed_open_with(pair->server[0], NULL);
  pair->client[0] = pair->bed->client;
  pair->client[1] = bed_connect(pair->bed, server_url(pair->server[1]), NULL);
  return pair;
}

void pair_close(pair_t *pair) {
  server_t *second = pair->server[1];
  bed_close(pair->bed);
  for (int i = 0; i < pair->count; i++) {
    assert_int_equal(pair->holder[i].ended, pair->holder[i].begun);
    assert_int_equal(pair->holder[i].closed, pair->holder[i].closing);
  }
  server_stop(second);
  free(pair);
}

void pair_expect_no_key(pair_t *pair) {
  bed_settle(pair->bed);
  for (int i = 0; i < 2; i++)
    assert_int_equal(server_keys(pair->server[i]), 0);
}

/* ---- handles --------------------------------------------------------------------------------------------- */

static void heard(holder_t *h, char event) {
  h->bed->wrong += h->bed->inside;
  if (h->then != NULL)
    h->then(h, event);
}

static void on_ended(belay_multilock_t *lock, int status) {
  holder_t *h = belay_multilock_data(lock);
  h->ended++;
  h->status = status;
  h->bed->wrong += h->closed + (h->ended > h->begun);
  heard(h, 'e');
}

static void on_lost(belay_multilock_t *lock, belay_lost_t reason) {
  holder_t *h = belay_multilock_data(lock);
  h->lost++;
  h->reason = reason;
  h->bed->wrong += h->closed + (belay_multilock_remaining_us(lock) > 0);
  heard(h, 'l');
}

static void on_closed(belay_multilock_t *lock, void *data) {
  holder_t *h = data;
  (void)lock;
  h->closed++;
  h->bed->wrong += h->ended != h->begun;
  h->lock = NULL;
  heard(h, 'c');
}

holder_t *holder_new(pair_t *pair, const char *names, const belay_lock_options_t *options) {
  char text[512], *rest = text;
  belay_multilock_name_t list[BELAY_MULTILOCK_MAX];
  size_t n = 0;
  belay_lock_options_t o = options != NULL ? *options : lock_options();
  assert_true(pair->count < HOLDERS_MAX);
  holder_t *h = &pair->holder[pair->count++];
  h->bed = pair->bed;
  o.data = h;
  snprintf(text, sizeof text, "%s", names);
  for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL; n++)
    list[n] = (belay_multilock_name_t){pair->client[word[0] - '0'], word + 2, strlen(word + 2)};
  int error = belay_multilock_new(list, n, &o, on_lost, &h->lock);
  if (error != 0)
    fail_msg("belay_multilock_new: %s: %s", belay_strerror(error), belay_detail(pair->bed->belay));
  return h;
}

int holder_begin(holder_t *h, int64_t wait_ms) {
  h->bed->inside++;
  int error = belay_multilock_acquire(h->lock, wait_ms, on_ended);
  h->bed->inside--;
  h->begun += error == 0;
  return error;
}

int holder_begin_release(holder_t *h) {
  h->bed->inside++;
  int error = belay_multilock_release(h->lock, BELAY_DEFAULT, on_ended);
  h->bed->inside--;
  h->begun += error == 0;
  return error;
}

int holder_cancel(holder_t *h) {
  h->bed->inside++;
  int error = belay_multilock_cancel(h->lock);
  h->bed->inside--;
  return error;
}

int holder_begin_close(holder_t *h) {
  h->bed->inside++;
  int error = belay_multilock_close(h->lock, on_closed);
  h->bed->inside--;
  h->closing += error == 0;
  return error;
}

int holder_outcome(holder_t *h) {
  bed_until(h->bed, h->ended == h->begun);
  return h->status;
}

int holder_acquire(holder_t *h, int64_t wait_ms) {
  int error = holder_begin(h, wait_ms);
  return error != 0 ? error : holder_outcome(h);
}

int holder_release(holder_t *h) {
  int error = holder_begin_release(h);
  return error != 0 ? error : holder_outcome(h);
}

bool holder_holds(const holder_t *h) {
  return belay_multilock_remaining_us(h->lock) > 0;
}

contender_t *pair_plain(pair_t *pair, int server, const char *name) {
  return contender_of(pair->bed, pair->client[server], name, NULL);
}

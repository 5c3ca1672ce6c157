#include "support/fencing.h"

#include <inttypes.h>
#include <stdio.h>

#include "scripts.gen.h"

#define HOUR_US (UINT64_C(3600) * 1000000)

/* ---- locks with fencing ---------------------------------------------------------------------------------- */

belay_lock_options_t fencing_options(void) {
  belay_lock_options_t options = redlock_options(10000 * slow());
  options.fencing = true;
  options.timeout_ms = 500 * slow();
  return options;
}

contender_t *fenced(nodes_t *nodes, const char *name) {
  belay_lock_options_t options = fencing_options();
  return nodes_contender(nodes, name, &options);
}

uint64_t fence_of(const contender_t *c) {
  return belay_lock_fence(c->lock);
}

uint64_t grow(contender_t *c, uint64_t last) {
  assert_error(acquire(c, 5000 * slow()), 0);
  uint64_t fence = fence_of(c);
  if (fence <= last || fence > LARGEST_FENCE)
    fail_msg("%" PRIu64 " was granted after %" PRIu64, fence, last);
  assert_error(release(c), 0);
  assert_int_equal(fence_of(c), 0);
  return fence;
}

void expect_nothing_left(nodes_t *nodes, const contender_t *c) {
  assert_int_equal(fence_of(c), 0);
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  nodes_settle(nodes);
  assert_int_equal(nodes_keys(nodes), 0);
}

/* ---- the counter ----------------------------------------------------------------------------------------- */

const char *counter_of(const contender_t *c) {
  static char key[256];
  snprintf(key, sizeof key, "%s::fence", key_of(c));
  return key;
}

const char *digits(uint64_t number) {
  static char text[2][24];
  static unsigned turn;
  turn ^= 1;
  snprintf(text[turn], sizeof text[turn], "%" PRIu64, number);
  return text[turn];
}

void plant(server_t *server, const contender_t *c, const char *number, const char *token) {
  server_do(server, "HSET", counter_of(c), "number", number, "token", token, NULL);
}

void plant_on_all(nodes_t *nodes, const contender_t *c, const char *number) {
  for (unsigned i = 0; i < nodes->n; i++)
    plant(nodes->server[i], c, number, "somebody else");
}

uint64_t in_an_hour(server_t *server) {
  const resp_t *time = server_ask(server, "TIME", NULL);
  return strtoull(time->items[0]->str, NULL, 10) * 1000000 + HOUR_US;
}

uint64_t read_by_hand(server_t *server, const contender_t *c) {
  const char *number =
      server_string(server, "EVAL", belay__script_fence_read.text, "1", counter_of(c), NULL);
  assert_non_null(number);
  return strtoull(number, NULL, 10);
}

unsigned accept_by_hand(server_t *server, const contender_t *c, uint64_t number,
                        const char *token) {
  return (unsigned)server_integer(server, "EVAL", belay__script_fence_accept.text, "1",
                                  counter_of(c), digits(number), token, DAY_MS, NULL);
}

uint64_t read_all_by_hand(nodes_t *nodes, const contender_t *c) {
  uint64_t max = 0;
  for (unsigned i = 0; i < nodes->n; i++) {
    uint64_t number = read_by_hand(nodes->server[i], c);
    max = number > max ? number : max;
  }
  return max;
}

unsigned accept_all_by_hand(nodes_t *nodes, const contender_t *c, uint64_t number,
                            const char *token) {
  unsigned accepted = 0;
  for (unsigned i = 0; i < nodes->n; i++)
    accepted += accept_by_hand(nodes->server[i], c, number, token);
  return accepted;
}

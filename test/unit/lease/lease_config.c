/* The effect of a lock's options: the timeout of one of several nodes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "lease/kinds/lock.h"
#include "support/base/test.h"

static belay_t belay;
static belay_client_t client = {.belay = &belay, .timeout_ms = 2000, .stall_timeout_ms = 5000};

static belay_lock_options_t with(int64_t ttl_ms, int64_t timeout_ms) {
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.ttl_ms = ttl_ms;
  options.timeout_ms = timeout_ms;
  return options;
}

TEST(default_node_timeout) {
  static const struct {
    size_t nodes;
    int64_t ttl_ms;
    uint32_t timeout_ms;
  } rows[] = {
      {1, 10000, 2000}, /* the client's */
      {3, BELAY_DEFAULT, 50}, {5, 10000, 50}, {5, 2500, 50}, {5, 2000, 40}, {5, 1000, 20},
      {15, 3000, 20},         {5, 250, 5},    {5, 249, 5},   {5, 10, 5},    {15, 300, 5},
      {15, 86400000, 50},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay_lock_options_t options = with(rows[i].ttl_ms, BELAY_DEFAULT);
    belay__lease_config_t config;
    assert_int_equal(belay__lock_config(&client, rows[i].nodes, &options, &config), 0);
    assert_int_equal(config.timeout, rows[i].timeout_ms);
  }
}

TEST(node_timeout_range) {
  static const struct {
    size_t nodes;
    int64_t ttl_ms, most;
  } rows[] = {{3, 10000, 1000}, {5, 1000, 100}, {5, 50, 5}, {15, 10, 5}, {1, 1000, 600000}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay__lease_config_t config;
    belay_lock_options_t options = with(rows[i].ttl_ms, rows[i].most);
    assert_int_equal(belay__lock_config(&client, rows[i].nodes, &options, &config), 0);
    assert_int_equal(config.timeout, rows[i].most);
    options.timeout_ms++;
    assert_int_equal(belay__lock_config(&client, rows[i].nodes, &options, &config), BELAY_EINVAL);
  }
}

TEST(watchdog_default) {
  static const int64_t ttls[] = {BELAY_DEFAULT, 10, 10000, 86400000};
  for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++) {
    belay__lease_config_t config;
    belay_lock_options_t options = with(ttls[i], BELAY_DEFAULT);
    assert_int_equal(belay__lock_config(&client, 1, &options, &config), 0);
    assert_true(config.renew);
    options.watchdog = BELAY_WATCHDOG_OFF;
    assert_int_equal(belay__lock_config(&client, 1, &options, &config), 0);
    assert_false(config.renew);
  }
}

/* The options of a lock: defaults, ranges, and their translation for the lease. */
#include "lease/kinds/lock.h"

#include "core/client/ranges.h"
#include "core/key/key.h"

#define TTL_MS INT64_C(10000)     /* default of ttl_ms */
#define MAX_TTL_MS INT64_C(30000) /* default of max_ttl_ms */
#define TIMEOUT_MAX_MS INT64_C(600000)
#define NODE_TIMEOUT_MS INT64_C(50) /* longest default timeout with several nodes */
/* shortest default timeout with several nodes, and lower limit for the maximum of timeout_ms */
#define NODE_TIMEOUT_LEAST_MS INT64_C(5)
#define BACKOFF_MAX_MS INT64_C(300)
#define TTL_PART 10 /* several nodes: the timeout is at most a tenth of the ttl */

void belay_lock_options_init(belay_lock_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_lock_options_t){
      .ttl_ms = BELAY_DEFAULT,
      .watchdog = BELAY_WATCHDOG_ON,
      .renew_after_ms = BELAY_DEFAULT,
      .max_hold_ms = BELAY_FOREVER,
      .wait_ms = 5000,
      .retry_min_ms = 25,
      .retry_max_ms = 75,
      .backoff_max_ms = BELAY_DEFAULT,
      .wakeup = BELAY_WAKE_NOTIFY,
      .max_handovers = 16,
      .waiter_ttl_ms = 3000,
      .drift_ms = BELAY_DEFAULT,
      .timeout_ms = BELAY_DEFAULT,
      .replica_timeout_ms = BELAY_DEFAULT,
      .quarantine = BELAY_QUARANTINE_AUTO,
      .max_ttl_ms = MAX_TTL_MS,
  };
}

static int64_t or_default(int64_t value, int64_t standard) {
  return value == BELAY_DEFAULT ? standard : value;
}

static int64_t at_least(int64_t value, int64_t least) {
  return value > least ? value : least;
}

/* Default timeout of one call. With several nodes the timeouts of n calls one after another are a
 * tenth of the ttl, but each is 5 to 50 ms. */
static int64_t default_timeout(const belay_client_t *client, size_t n, int64_t ttl) {
  if (n == 1)
    return client->timeout_ms;
  int64_t share = ttl / (TTL_PART * (int64_t)n);
  return at_least(share < NODE_TIMEOUT_MS ? share : NODE_TIMEOUT_MS, NODE_TIMEOUT_LEAST_MS);
}

static int64_t default_replica_timeout(const belay_client_t *client, int64_t timeout) {
  int64_t least = timeout < client->stall_timeout_ms ? timeout : client->stall_timeout_ms;
  return at_least(least / 2, 1);
}

static int check_quarantine(belay_t *belay, bool quarantine, int64_t max_ttl, int64_t ttl) {
  if (!quarantine || ttl <= max_ttl)
    return 0;
  return belay__invalid(belay, "ttl_ms: over max_ttl_ms, %lld", (long long)max_ttl);
}

int belay__lock_check_ttl(const belay__lease_t *lease, int64_t ttl_ms) {
  const belay__lease_config_t *config = lease->config;
  int error = belay__check_range(belay__lease_belay(lease), "ttl_ms", ttl_ms, BELAY__TTL_MIN_MS,
                                 BELAY__TTL_MAX_MS);
  return error != 0 ? error
                    : check_quarantine(belay__lease_belay(lease), config->quarantine,
                                       config->max_ttl, ttl_ms);
}

static bool has_quarantine(const belay_lock_options_t *o) {
  return o->quarantine == BELAY_QUARANTINE_ON || o->quarantine == BELAY_QUARANTINE_TRUST;
}

/* Refuses a quarantine in a cluster: the marker key is on one server, and proves nothing about the
 * other servers. */
static int check_deployment(const belay_client_t *client, bool quarantine) {
  if (!quarantine || !client->node_ops->by_slots)
    return 0;
  return belay__invalid(client->belay, "quarantine: not for a client of a cluster");
}

static int check_key(belay_t *belay, const belay_lock_options_t *o) {
  if (o->fencing && belay__is_given(o->key))
    return belay__invalid(belay, "fencing: not with an exact key");
  return belay__check_optional(belay, "key", o->key, BELAY__NAME_MAX);
}

static const belay__range_t ranges[] = {
    BELAY__RANGE_OR(belay_lock_options_t, ttl_ms, DEFAULT, BELAY__TTL_MIN_MS, BELAY__TTL_MAX_MS),
    BELAY__RANGE(belay_lock_options_t, watchdog, BELAY_WATCHDOG_ON, BELAY_WATCHDOG_OFF),
    BELAY__RANGE(belay_lock_options_t, max_hold_ms, 1, BELAY_FOREVER),
    BELAY__RANGE(belay_lock_options_t, wait_ms, 0, BELAY_FOREVER),
    BELAY__RANGE(belay_lock_options_t, retry_min_ms, 1, 3600000),
    BELAY__RANGE_FROM(belay_lock_options_t, retry_max_ms, NOTHING, retry_min_ms, 3600000),
    BELAY__RANGE_FROM(belay_lock_options_t, backoff_max_ms, DEFAULT, retry_max_ms, 3600000),
    BELAY__RANGE(belay_lock_options_t, wakeup, BELAY_WAKE_NOTIFY, BELAY_WAKE_POLL),
    BELAY__RANGE(belay_lock_options_t, max_handovers, 0, 1000000),
    BELAY__RANGE(belay_lock_options_t, waiter_ttl_ms, 100, 600000),
    BELAY__RANGE(belay_lock_options_t, min_replicas, 0, UINT8_MAX),
    BELAY__RANGE(belay_lock_options_t, quarantine, BELAY_QUARANTINE_AUTO, BELAY_QUARANTINE_OFF),
    BELAY__RANGE(belay_lock_options_t, max_ttl_ms, BELAY__TTL_MIN_MS, BELAY__TTL_MAX_MS),
    {.name = NULL},
};

/* Checks the options whose ranges depend on the ttl, on n or on the client. Each of them may be
 * BELAY_DEFAULT too. */
static int check_dependent(const belay_client_t *client, size_t n, const belay_lock_options_t *o,
                           int64_t ttl) {
  int64_t most = n == 1 ? TIMEOUT_MAX_MS : at_least(ttl / TTL_PART, NODE_TIMEOUT_LEAST_MS);
  int64_t timeout = or_default(o->timeout_ms, default_timeout(client, n, ttl));
  /* A connection must not count as stalled while its server waits for replicas. */
  int64_t stall = client->stall_timeout_ms / 2;
  const struct {
    const char *name;
    int64_t value, min, max;
  } rows[] = {
      {"renew_after_ms", o->renew_after_ms, ttl / 10, ttl / 2},
      {"drift_ms", o->drift_ms, 2, ttl / 2},
      {"timeout_ms", o->timeout_ms, 1, most < TIMEOUT_MAX_MS ? most : TIMEOUT_MAX_MS},
      {"replica_timeout_ms", o->replica_timeout_ms, 1, timeout < stall ? timeout : stall},
  };
  int error = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows && error == 0; i++)
    if (rows[i].value != BELAY_DEFAULT)
      error =
          belay__check_range(client->belay, rows[i].name, rows[i].value, rows[i].min, rows[i].max);
  return error;
}

static int check(const belay_client_t *client, size_t n, const belay_lock_options_t *o) {
  belay_t *belay = client->belay;
  int64_t ttl = or_default(o->ttl_ms, TTL_MS);
  int error = belay__check_ranges(belay, o, ranges);
  if (error == 0)
    error = check_dependent(client, n, o, ttl);
  if (error != 0)
    return error;
  if (o->label != NULL && !belay__is_label(o->label, BELAY__OWNER_MAX))
    return belay__invalid(belay, "label: not 1 to %d printable bytes", BELAY__OWNER_MAX);
  error = check_deployment(client, has_quarantine(o));
  if (error == 0)
    error = check_quarantine(belay, has_quarantine(o), o->max_ttl_ms, ttl);
  return error != 0 ? error : check_key(belay, o);
}

int belay__lock_config(const belay_client_t *client, size_t n, const belay_lock_options_t *o,
                       belay__lease_config_t *config) {
  int error = check(client, n, o);
  if (error != 0)
    return error;
  int64_t ttl = or_default(o->ttl_ms, TTL_MS);
  int64_t timeout = or_default(o->timeout_ms, default_timeout(client, n, ttl));
  *config = (belay__lease_config_t){
      .ttl = (uint32_t)ttl,
      .renew_after = (uint32_t)or_default(o->renew_after_ms, 0),
      .drift = (int32_t)o->drift_ms,
      .retry_min = (uint32_t)o->retry_min_ms,
      .retry_max = (uint32_t)o->retry_max_ms,
      .backoff_max =
          (uint32_t)or_default(o->backoff_max_ms, at_least(BACKOFF_MAX_MS, o->retry_max_ms)),
      .max_handovers = o->max_handovers,
      .waiter_ttl = (uint32_t)o->waiter_ttl_ms,
      .max_attempts = o->max_attempts,
      .timeout = (uint32_t)timeout,
      .replica_timeout =
          (uint32_t)or_default(o->replica_timeout_ms, default_replica_timeout(client, timeout)),
      .max_ttl = (uint32_t)o->max_ttl_ms,
      .on_lost = o->on_lost,
      .max_hold = o->max_hold_ms,
      .wait = o->wait_ms,
      .min_replicas = (uint8_t)o->min_replicas,
      .renew = o->watchdog == BELAY_WATCHDOG_ON,
      .fencing = o->fencing,
      .quarantine = has_quarantine(o),
      .trust = o->quarantine == BELAY_QUARANTINE_TRUST,
      .notify = o->wakeup == BELAY_WAKE_NOTIFY,
      .notice_break = o->notice_break,
      .repeat_release = o->repeat_release,
  };
  return 0;
}

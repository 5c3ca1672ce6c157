/* belay_limiter_t: a policy, and the pending operations that use it. A close ends when the
 * callbacks of all requests have run and all background refunds are over, at the latest after the
 * client's close_timeout_ms. */
#include "limit/denial_cache.h"
#include "limit/fallback.h"
#include "limit/group.h"
#include "limit/token_lease.h"

/* ---- close ---- */

static void on_close(belay__handle_t *handle) {
  belay__token_leases_close((belay_limiter_t *)handle);
}

static void on_deinit(belay__handle_t *handle) {
  belay_limiter_t *limiter = (belay_limiter_t *)handle;
  belay_t *belay = handle->client->belay;
  belay__policy_release(belay, limiter->policy);
  belay__table_free(belay, &limiter->queues);
  belay__denied_clear(limiter);
  belay__fallback_clear(limiter);
}

/* ---- creation ---- */

static const belay_limiter_options_t defaults = {
    .max_denied = 4096,
    .lease_ms = 1000,
    .max_leases = 4096,
    .away = BELAY_AWAY_UNKNOWN,
    .away_percent = 10,
    .max_away = 4096,
    .max_waiting = 1024,
};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_limiter_options_t, lease_tokens, 0, BELAY_LIMITER_UNITS_MAX),
    BELAY__RANGE(belay_limiter_options_t, lease_ms, 1, 3600000),
    BELAY__RANGE(belay_limiter_options_t, away, BELAY_AWAY_UNKNOWN, BELAY_AWAY_LOCAL),
    BELAY__RANGE(belay_limiter_options_t, away_percent, 1, 100),
    {.name = NULL},
};

static int on_init(belay__handle_t *handle, void *options) {
  belay_limiter_t *limiter = (belay_limiter_t *)handle;
  const belay_limiter_options_t *o = options;
  limiter->options = *o;
  limiter->options.name.data = NULL;
  limiter->options.limits = NULL;
  belay__list_init(&limiter->leases.all);
  belay__list_init(&limiter->fallback.used);
  return belay__policy_new(handle->client->belay, o->limits, o->limits_len, &limiter->policy);
}

const belay__handle_type_t belay__limiter_type = {
    .family = "limit",
    BELAY__HANDLE_LAYOUT(limiter),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
    .close = on_close,
    .deinit = on_deinit,
};

BELAY__HANDLE_FUNCTIONS(limiter)

int belay_limiter_reconfigure(belay_limiter_t *limiter, const belay_limit_t *limits, size_t n) {
  int error = belay__handle_check((const belay__handle_t *)limiter);
  if (error != 0)
    return error;
  belay_t *belay = belay__limiter_belay(limiter);
  belay__policy_t *policy = NULL;
  error = belay__policy_new(belay, limits, n, &policy);
  if (error != 0)
    return error;
  if (belay__policy_is_log(policy) != belay__policy_is_log(limiter->policy)) {
    belay__policy_release(belay, policy);
    return belay__invalid(belay, "limits: a log stays one, and nothing else becomes one");
  }
  belay__groups_release(limiter->handle.client);
  belay__token_leases_suspend(limiter);
  belay__policy_release(belay, limiter->policy);
  limiter->policy = policy;
  belay__denied_clear(limiter);
  belay__fallback_clear(limiter);
  belay__token_leases_resume(limiter);
  return 0;
}

void belay_limiter_stats(const belay_limiter_t *limiter, belay_limiter_stats_t *stats) {
  if (limiter == NULL || stats == NULL)
    return;
  *stats = limiter->stats;
  stats->leases = limiter->leases.table.count;
  stats->denied_keys = belay__denied_count(limiter);
}

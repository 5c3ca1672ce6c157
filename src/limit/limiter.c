/* belay_limiter_t: a policy, and the operations that are pending under it. A close waits until each request is told and
 * each refund in the background is over, or the client is out of patience. */
#include "limit/fallback.h"
#include "limit/refund.h"
#include "limit/take.h"
#include "limit/token_lease.h"

void belay_limiter_options_init(belay_limiter_options_t *options) {
  if (options != NULL)
    *options = (belay_limiter_options_t){
        .max_denied = 4096,
        .slice_ms = 1000,
        .max_slices = 4096,
        .away = BELAY_AWAY_UNKNOWN,
        .away_percent = 10,
        .max_away = 4096,
        .max_waiting = 1024,
    };
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void on_gone(belay__handle_t *handle) {
  belay_limiter_t *limiter = (belay_limiter_t *)handle;
  belay_t *belay = handle->client->belay;
  if (handle->close_cb != NULL)
    ((belay_limiter_close_cb)handle->close_cb)(limiter, handle->data);
  belay__policy_drop(belay, limiter->policy);
  belay__table_free(belay, &limiter->queues);
  belay__denied_clear(belay, &limiter->denied);
  belay__fallback_clear(limiter);
}

static void on_close(belay__handle_t *handle) {
  belay_limiter_t *limiter = (belay_limiter_t *)handle;
  belay__token_leases_close(limiter);
  belay__refunds_close(limiter);
}

static void on_abort(belay__handle_t *handle) {
  belay__refunds_abort((belay_limiter_t *)handle);
}

static const belay__handle_ops_t handle_ops = {.name = "limit",
                                               .size = sizeof(belay_limiter_t),
                                               .close = on_close,
                                               .abort = on_abort,
                                               .gone = on_gone};

int belay_limiter_close(belay_limiter_t *limiter, belay_limiter_close_cb cb) {
  return belay__handle_close((belay__handle_t *)limiter, (void (*)(void))cb);
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

static int check_options(belay_t *belay, const belay_limiter_options_t *o) {
  int error = belay__check_range(belay, "slice", o->slice, 0, BELAY_LIMITER_UNITS_MAX);
  if (error == 0)
    error = belay__check_range(belay, "slice_ms", o->slice_ms, 1, 3600000);
  if (error == 0)
    error =
        belay__check_range(belay, "away", (int64_t)o->away, BELAY_AWAY_UNKNOWN, BELAY_AWAY_LOCAL);
  if (error == 0)
    error = belay__check_range(belay, "away_percent", o->away_percent, 1, 100);
  return error;
}

int belay_limiter_new(belay_client_t *client, const belay_limiter_options_t *options,
                      belay_limiter_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  belay_t *belay = client->belay;
  if (options == NULL) {
    belay__detail(belay, "limits: NULL, and there is no policy without");
    return BELAY_EINVAL;
  }
  error = check_options(belay, options);
  belay__policy_t *policy = NULL;
  if (error == 0)
    error = belay__policy_new(belay, options->limits, options->limits_len, &policy);
  if (error != 0)
    return error;
  belay__handle_t *handle;
  error = belay__handle_new(client, &handle_ops, options->name, options->name_len, &handle);
  if (error != 0) {
    belay__policy_drop(belay, policy);
    return error;
  }
  belay_limiter_t *limiter = (belay_limiter_t *)handle;
  handle->data = options->data;
  limiter->client = client;
  limiter->policy = policy;
  limiter->options = *options;
  limiter->options.name = NULL;
  limiter->options.limits = NULL;
  belay__list_init(&limiter->refunds);
  belay__list_init(&limiter->leases.all);
  belay__list_init(&limiter->fallback.used);
  *out = limiter;
  return 0;
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

int belay_limiter_reconfigure(belay_limiter_t *limiter, const belay_limit_t *limits, size_t n) {
  int error = belay__handle_check((const belay__handle_t *)limiter);
  if (error != 0)
    return error;
  belay_t *belay = limiter->client->belay;
  belay__policy_t *policy = NULL;
  error = belay__policy_new(belay, limits, n, &policy);
  if (error != 0)
    return error;
  if (belay__policy_is_log(policy) != belay__policy_is_log(limiter->policy)) {
    belay__policy_drop(belay, policy);
    belay__detail(belay, "limits: a log stays one, and nothing else becomes one");
    return BELAY_EINVAL;
  }
  belay__token_leases_suspend(limiter);
  belay__policy_drop(belay, limiter->policy);
  limiter->policy = policy;
  belay__denied_clear(belay, &limiter->denied);
  belay__fallback_clear(limiter);
  belay__token_leases_resume(limiter, belay__take_route);
  return 0;
}

void *belay_limiter_data(const belay_limiter_t *limiter) {
  return belay__handle_data((const belay__handle_t *)limiter);
}

void belay_limiter_stats(const belay_limiter_t *limiter, belay_limiter_stats_t *stats) {
  if (limiter == NULL || stats == NULL)
    return;
  *stats = limiter->stats;
  stats->slices = limiter->leases.table.count;
  stats->denied_keys = belay__denied_count(&limiter->denied, belay__now(limiter->client->belay));
}

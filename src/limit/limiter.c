#include "limit/limiter.h"

#include "limit/refund.h"

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

static void on_gone(belay__family_t *family) {
  belay_limiter_t *limiter = (belay_limiter_t *)family;
  belay_t *belay = family->client->belay;
  if (family->close_cb != NULL)
    ((belay_limiter_close_cb)family->close_cb)(limiter, family->data);
  belay__policy_drop(belay, limiter->policy);
  belay__table_free(belay, &limiter->queues);
  belay__denied_clear(belay, &limiter->denied);
  belay__away_clear(limiter);
}

static void on_close(belay__family_t *family) {
  belay_limiter_t *limiter = (belay_limiter_t *)family;
  belay__slices_close(limiter);
  belay__errands_close(limiter);
}

static void on_abort(belay__family_t *family) {
  belay__errands_abort((belay_limiter_t *)family);
}

static const belay__family_ops_t family_ops = {.name = "limit",
                                               .size = sizeof(belay_limiter_t),
                                               .close = on_close,
                                               .abort = on_abort,
                                               .gone = on_gone};

int belay_limiter_close(belay_limiter_t *limiter, belay_limiter_close_cb cb) {
  return belay__family_close((belay__family_t *)limiter, (void (*)(void))cb);
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

static int refuse(belay_t *belay, const char *why) {
  belay__detail(belay, "%s", why);
  return BELAY_EINVAL;
}

static int check_options(belay_t *belay, const belay_limiter_options_t *o) {
  if (o->slice < 0 || o->slice > BELAY_LIMITER_UNITS_MAX)
    return refuse(belay, "slice: not 0 to BELAY_LIMITER_UNITS_MAX");
  if (o->slice_ms < 1 || o->slice_ms > 3600000)
    return refuse(belay, "slice_ms: not 1 to 3,600,000");
  if (o->away > BELAY_AWAY_LOCAL)
    return refuse(belay, "away: none of those that there are");
  if (o->away_percent < 1 || o->away_percent > 100)
    return refuse(belay, "away_percent: not 1 to 100");
  return 0;
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
  if (options == NULL)
    return refuse(belay, "limits: NULL, and there is no policy without");
  error = check_options(belay, options);
  belay__policy_t *policy = NULL;
  if (error == 0)
    error = belay__policy_new(belay, options->limits, options->limits_len, &policy);
  if (error != 0)
    return error;
  belay__family_t *family;
  error = belay__family_new(client, &family_ops, options->name, options->name_len, &family);
  if (error != 0) {
    belay__policy_drop(belay, policy);
    return error;
  }
  belay_limiter_t *limiter = (belay_limiter_t *)family;
  family->data = options->data;
  limiter->client = client;
  limiter->policy = policy;
  limiter->options = *options;
  limiter->options.name = NULL;
  limiter->options.limits = NULL;
  belay__list_init(&limiter->errands);
  belay__slices_init(&limiter->slices);
  belay__away_init(&limiter->away);
  *out = limiter;
  return 0;
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

static int check(belay_limiter_t *limiter) {
  int error = limiter == NULL ? BELAY_EINVAL : belay__check(limiter->client->belay);
  return error == 0 && limiter->family.closing ? BELAY_ECLOSING : error;
}

int belay_limiter_reconfigure(belay_limiter_t *limiter, const belay_limit_t *limits, size_t n) {
  int error = check(limiter);
  if (error != 0)
    return error;
  belay_t *belay = limiter->client->belay;
  belay__policy_t *policy = NULL;
  error = belay__policy_new(belay, limits, n, &policy);
  if (error != 0)
    return error;
  if (belay__policy_is_log(policy) != belay__policy_is_log(limiter->policy)) {
    belay__policy_drop(belay, policy);
    return refuse(belay, "limits: a log stays one, and nothing else becomes one");
  }
  belay__slices_suspend(limiter);
  belay__policy_drop(belay, limiter->policy);
  limiter->policy = policy;
  belay__denied_clear(belay, &limiter->denied);
  belay__away_clear(limiter);
  belay__slices_resume(limiter);
  return 0;
}

int belay__limiter_check(belay_limiter_t *limiter, const char *key, size_t key_len) {
  int error = check(limiter);
  if (error == 0 && (key == NULL || key_len < 1 || key_len > BELAY_LIMITER_KEY_MAX))
    error = refuse(limiter->client->belay, "key: NULL, or not 1 to 1024 bytes");
  return error;
}

int belay__limiter_check_request(belay_limiter_t *limiter, const belay_request_t *request,
                                 const char *key, size_t key_len, belay_limiter_cb cb) {
  int error = belay__limiter_check(limiter, key, key_len);
  if (error == 0)
    error = belay__client_check(limiter->client);
  if (error == 0)
    error = belay__request_check(limiter->client, request, cb != NULL);
  return error;
}

void *belay_limiter_data(const belay_limiter_t *limiter) {
  return belay__family_data((const belay__family_t *)limiter);
}

void belay_limiter_stats(const belay_limiter_t *limiter, belay_limiter_stats_t *stats) {
  if (limiter == NULL || stats == NULL)
    return;
  *stats = limiter->stats;
  stats->slices = limiter->slices.table.count;
  stats->denied_keys = belay__denied_count(&limiter->denied, belay__now(limiter->client->belay));
}

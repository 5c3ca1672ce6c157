#include "limit/limiter.h"

#include <string.h>

#include "core/key.h"
#include "limit/errand.h"

#define FAMILY "limit"
#define NAME_MAX_BYTES ((size_t)128)

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

static void finish(belay_limiter_t *limiter) {
  belay_client_t *client = limiter->client;
  belay_t *belay = client->belay;
  if (limiter->close_cb != NULL)
    limiter->close_cb(limiter, limiter->options.data);
  belay__policy_drop(belay, limiter->policy);
  belay__free(belay, limiter->prefix, limiter->prefix_len);
  belay__table_free(belay, &limiter->queues);
  belay__denied_clear(belay, &limiter->denied);
  belay__away_clear(limiter);
  belay__client_remove(client, &limiter->object);
  belay__free_loop(belay);
  belay__free(belay, limiter, sizeof *limiter);
}

static void on_task(belay__task_t *task) {
  belay_limiter_t *limiter = BELAY__CONTAINER(task, belay_limiter_t, task);
  if (belay__list_empty(&limiter->errands)) /* else the last of them comes back here */
    finish(limiter);
}

/* Begins to close, unless it has begun. The requests' tasks come before ours, which an errand that could not even be sent
 * may have queued already. */
static void on_close(belay__object_t *object) {
  belay_limiter_t *limiter = BELAY__CONTAINER(object, belay_limiter_t, object);
  belay_t *belay = limiter->client->belay;
  if (limiter->closing)
    return;
  limiter->closing = true;
  belay__hold_loop(belay);
  belay__requests_cancel(&limiter->requests);
  belay__slices_close(limiter);
  belay__errands_close(limiter);
  belay__task_stop(belay, &limiter->task);
  belay__defer(belay, &limiter->task);
}

static void on_abort(belay__object_t *object) {
  belay_limiter_t *limiter = BELAY__CONTAINER(object, belay_limiter_t, object);
  on_close(object);
  belay__errands_abort(limiter);
}

static const belay__object_ops_t object_ops = {.close = on_close, .abort = on_abort};

int belay_limiter_close(belay_limiter_t *limiter, belay_limiter_close_cb cb) {
  int error = limiter == NULL ? BELAY_EINVAL : belay__check(limiter->client->belay);
  if (error == 0 && limiter->closing)
    error = BELAY_ECLOSING;
  if (error != 0)
    return error;
  limiter->close_cb = cb;
  on_close(&limiter->object);
  return 0;
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

static int refuse(belay_t *belay, const char *why) {
  belay__detail(belay, "%s", why);
  return BELAY_EINVAL;
}

static int check_options(belay_t *belay, const belay_limiter_options_t *o) {
  if (o->name_len > NAME_MAX_BYTES || (o->name == NULL && o->name_len > 0))
    return refuse(belay, "name: NULL, or over 128 bytes");
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

/* NAMESPACE::limit::NAME::, or without the name. */
static bool make_prefix(belay_limiter_t *limiter, const char *name, size_t name_len) {
  static const char family[] = "::" FAMILY "::";
  const belay_client_t *client = limiter->client;
  size_t escaped = belay__key_escape(NULL, name, name_len);
  size_t len = client->prefix_len + sizeof family - 1 + (name_len > 0 ? escaped + 2 : 0);
  char *out = limiter->prefix = belay__alloc(client->belay, len);
  if (out == NULL)
    return false;
  limiter->prefix_len = len;
  memcpy(out, client->prefix, client->prefix_len);
  out += client->prefix_len;
  memcpy(out, family, sizeof family - 1);
  if (name_len > 0) {
    out += sizeof family - 1;
    out += belay__key_escape(out, name, name_len);
    memcpy(out, "::", 2);
  }
  return true;
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
    return refuse(belay, "options: NULL, and there is no policy without");
  error = check_options(belay, options);
  belay__policy_t *policy = NULL;
  if (error == 0)
    error = belay__policy_new(belay, options->limits, options->limits_len, &policy);
  if (error != 0)
    return error;
  belay_limiter_t *limiter = belay__alloc(belay, sizeof *limiter);
  if (limiter != NULL)
    *limiter = (belay_limiter_t){
        .object = {.ops = &object_ops}, .client = client, .policy = policy, .options = *options};
  if (limiter == NULL || !make_prefix(limiter, options->name, options->name_len)) {
    belay__free(belay, limiter, sizeof *limiter);
    belay__policy_drop(belay, policy);
    return BELAY_ENOMEM;
  }
  limiter->options.name = NULL;
  limiter->options.limits = NULL;
  belay__list_init(&limiter->requests);
  belay__list_init(&limiter->errands);
  belay__slices_init(&limiter->slices);
  belay__away_init(&limiter->away);
  belay__task_init(&limiter->task, on_task);
  belay__client_add(client, &limiter->object);
  *out = limiter;
  return 0;
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

static int check(belay_limiter_t *limiter) {
  int error = limiter == NULL ? BELAY_EINVAL : belay__check(limiter->client->belay);
  return error == 0 && limiter->closing ? BELAY_ECLOSING : error;
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
    error = belay__request_check(limiter->client, request);
  if (error == 0 && cb == NULL)
    error = refuse(limiter->client->belay, "cb: NULL");
  return error;
}

void *belay_limiter_data(const belay_limiter_t *limiter) {
  return limiter == NULL ? NULL : limiter->options.data;
}

void belay_limiter_stats(const belay_limiter_t *limiter, belay_limiter_stats_t *stats) {
  if (limiter == NULL || stats == NULL)
    return;
  *stats = limiter->stats;
  stats->slices = limiter->slices.table.count;
  stats->denied_keys = belay__denied_count(&limiter->denied, belay__now(limiter->client->belay));
}

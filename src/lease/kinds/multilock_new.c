/* The lock on several names: how it is made. */
#include "lease/kinds/lock.h"
#include "lease/kinds/multilock.h"

/* Makes the configuration of a member of that client. Returns 0 or an error, with a detail. */
static int share_config(belay_client_t *client, const belay_lock_options_t *options,
                        const belay__lease_config_t **shared) {
  belay__lease_config_t config;
  int error = belay__lock_config(client, 1, options, &config);
  if (error != 0)
    return error;
  config.kind = &belay__multi_kind;
  *shared = belay__lease_config_share(&client, 1, &config);
  return *shared != NULL ? 0 : BELAY_ENOMEM;
}

/* Releases the first n configurations after a failure. */
static void release_configs(const belay__multilock_keys_t *keys,
                            const belay__lease_config_t *const *config, size_t n) {
  for (size_t i = 0, from = 0; i < n; i++, from = belay__multilock_group_end(keys, from))
    belay__lease_config_release(keys->at[from].client, config[i]);
}

static int new_multilock(const belay__multilock_keys_t *keys, const belay_lock_options_t *options,
                         belay_multilock_t **out) {
  const belay__lease_config_t *config[BELAY_MULTILOCK_MAX] = {NULL};
  belay_t *belay = keys->at[0].client->belay;
  size_t members = 0, list_len = 0, at = 0, n = 0;
  int error = belay__multilock_measure(keys, &members, &list_len);
  for (size_t from = 0; from < keys->count && error == 0;
       from = belay__multilock_group_end(keys, from)) {
    error = share_config(keys->at[from].client, options, &config[n]);
    n += error == 0;
  }
  size_t size = sizeof(belay_multilock_t) + members * sizeof(belay__multilock_member_t) + list_len;
  belay_multilock_t *multilock = error == 0 ? belay__alloc(belay, size) : NULL;
  if (multilock == NULL) {
    release_configs(keys, config, n);
    return error == 0 ? BELAY_ENOMEM : error;
  }
  *multilock = (belay_multilock_t){.belay = belay,
                                   .timer = {.fire = belay__multilock_on_timer},
                                   .data = options->data,
                                   .members = (uint8_t)members,
                                   .size = size};
  belay__task_init(&multilock->task, belay__multilock_on_task);
  char *list = (char *)&multilock->member[members];
  for (size_t i = 0; i < members; i++) {
    size_t end = belay__multilock_group_end(keys, at);
    size_t len = belay__multilock_list(keys, at, end, list);
    belay_client_t *client = keys->at[at].client;
    belay__multilock_member_t *member = &multilock->member[i];
    member->multilock = multilock;
    member->status = 0;
    member->closed = false;
    belay__lease_init(&member->lease, &client, 1, config[i], list, len, 0);
    list += len;
    at = end;
  }
  *out = multilock;
  return 0;
}

int belay_multilock_new(const belay_multilock_name_t *names, size_t n,
                        const belay_lock_options_t *options, belay_multilock_lost_cb on_lost,
                        belay_multilock_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  belay_lock_options_t defaults;
  belay_lock_options_init(&defaults);
  const belay_lock_options_t *o = options == NULL ? &defaults : options;
  belay__multilock_keys_t keys;
  int error = belay__multilock_keys(names, n, &keys);
  if (error != 0)
    return error;
  belay_t *belay = keys.at[0].client->belay;
  error =
      belay__lock_refuse(belay, o,
                         BELAY__WITHOUT_OWNER | BELAY__WITHOUT_KEY | BELAY__WITHOUT_FENCING |
                             BELAY__WITHOUT_LABEL | BELAY__WITHOUT_FAIR | BELAY__WITHOUT_ON_LOST,
                         "a lock on several names");
  if (error == 0)
    error = new_multilock(&keys, o, out);
  belay__free(belay, keys.text, keys.text_len);
  if (error == 0)
    (*out)->on_lost = on_lost;
  return error;
}

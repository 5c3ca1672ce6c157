/* The lock on several names: how it is made. */
#include "lease/kinds/lock.h"
#include "lease/kinds/multilock.h"

/* The terms of a part of that client's. Returns 0 or an error, with a detail. */
static int share(belay_client_t *client, const belay_lock_options_t *options,
                 const belay__terms_t **shared) {
  belay__terms_t terms;
  int error = belay__lock_terms(client, 1, options, &terms);
  if (error != 0)
    return error;
  terms.kind = &belay__multi_kind;
  *shared = belay__terms_share(&client, 1, &terms);
  return *shared != NULL ? 0 : BELAY_ENOMEM;
}

/* Those of the first n parts, which come to nothing. */
static void leave(const belay__multilock_keys_t *keys, const belay__terms_t *const *terms,
                  size_t n) {
  for (size_t i = 0, from = 0; i < n; i++, from = belay__multilock_group_end(keys, from))
    belay__terms_leave(keys->at[from].client, terms[i]);
}

static int make(const belay__multilock_keys_t *keys, const belay_lock_options_t *options,
                belay_multilock_t **out) {
  const belay__terms_t *terms[BELAY_MULTILOCK_MAX] = {NULL};
  belay_t *belay = keys->at[0].client->belay;
  size_t parts = 0, list_len = 0, at = 0, n = 0;
  int error = belay__multilock_measure(keys, &parts, &list_len);
  for (size_t from = 0; from < keys->count && error == 0;
       from = belay__multilock_group_end(keys, from)) {
    error = share(keys->at[from].client, options, &terms[n]);
    n += error == 0;
  }
  size_t size = sizeof(belay_multilock_t) + parts * sizeof(belay__multilock_part_t) + list_len;
  belay_multilock_t *whole = error == 0 ? belay__alloc(belay, size) : NULL;
  if (whole == NULL) {
    leave(keys, terms, n);
    return error == 0 ? BELAY_ENOMEM : error;
  }
  *whole = (belay_multilock_t){.belay = belay,
                               .timer = {.fire = belay__multilock_on_timer},
                               .data = options->data,
                               .parts = (uint8_t)parts,
                               .size = size};
  belay__task_init(&whole->task, belay__multilock_on_task);
  char *list = (char *)&whole->part[parts];
  for (size_t i = 0; i < parts; i++) {
    size_t end = belay__multilock_group_end(keys, at);
    size_t len = belay__multilock_list(keys, at, end, list);
    belay_client_t *client = keys->at[at].client;
    belay__multilock_part_t *part = &whole->part[i];
    part->whole = whole;
    part->status = 0;
    part->closed = false;
    belay__lease_init(&part->lease, &client, 1, terms[i], list, len, 0);
    list += len;
    at = end;
  }
  *out = whole;
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
    error = make(&keys, o, out);
  belay__free(belay, keys.text, keys.text_len);
  if (error == 0)
    (*out)->on_lost = on_lost;
  return error;
}

/* Constructors of locks: the options name the kind. */
#include "lease/kinds/lock_new.h"

#include "belay/redlock.h"
#include "lease/kinds/fair.h"
#include "lease/kinds/redlock.h"
#include "lease/kinds/reentrant.h"

int belay__lock_check(belay_client_t *const *clients, size_t n, const belay_lock_options_t *options,
                      belay_lock_options_t *resolved, belay_lock_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  if (clients == NULL || n == 0 || clients[0] == NULL)
    return BELAY_EINVAL;
  if (options != NULL)
    *resolved = *options;
  else
    belay_lock_options_init(resolved);
  int error = belay__client_check(clients[0]);
  return error != 0 || n == 1 ? error : belay__redlock_check(clients, n, resolved);
}

int belay__lock_new(belay_client_t *const *clients, size_t n, const char *name, size_t name_len,
                    const belay_lock_options_t *o, belay_lock_t **out) {
  int error = belay__fair_check(clients[0]->belay, n, o);
  if (error != 0)
    return error;
  if (belay__is_given(o->owner))
    return belay__reentrant_new(clients, n, name, name_len, o, out);
  belay__lock_spec_t spec = {.kind = o->fair ? &belay__fair_kind : &belay__lock_kind,
                             .key = o->key.data,
                             .key_len = o->key.len};
  return belay__lock_make(clients, n, name, name_len, o, &spec, out);
}

int belay_lock_new(belay_client_t *client, belay_bytes_t name, const belay_lock_options_t *options,
                   belay_lock_t **out) {
  belay_lock_options_t o;
  int error = belay__lock_check(&client, 1, options, &o, out);
  return error != 0 ? error : belay__lock_new(&client, 1, name.data, name.len, &o, out);
}

int belay_redlock_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                      const belay_lock_options_t *options, belay_lock_t **out) {
  belay_lock_options_t o;
  int error = belay__lock_check(clients, n, options, &o, out);
  if (error == 0 && n == 1)
    error = belay__redlock_check(clients, n, &o);
  return error != 0 ? error : belay__lock_new(clients, n, name.data, name.len, &o, out);
}

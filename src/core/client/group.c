#include "core/client/group.h"

#include <assert.h>
#include <string.h>

/* The key of a held call. */
typedef struct place {
  uint64_t hash;
  /* true if the first request has left: no other may join, and the call is built again, because it
   * was the call of that request */
  bool orphaned;
  size_t key_len;
  char key[BELAY__GROUP_KEY_MAX];
} place_t;

typedef struct groups {
  belay__extension_t extension; /* first */
  belay_client_t *client;
  belay__flush_t flush; /* Queued while a call is held */
  size_t held;          /* Number of held calls */
  /* By hash. A held call, whose owner is the first request of its group; NULL: the place is free.
   * No two held calls have the same route */
  belay__call_t *calls[BELAY__GROUPS_HELD];
  uint32_t routes[BELAY__GROUPS_HELD]; /* Not valid if the place is free */
  place_t places[BELAY__GROUPS_HELD];
} groups_t;

static groups_t *groups_of(const belay_client_t *client) {
  return (groups_t *)client->groups;
}

static bool is_alone(const belay__operation_t *operation) {
  return belay__list_empty(&operation->queued);
}

/* ---- the end of a call ---- */

/* Take the first request out of the ring. Returns the next one; NULL if it was the last. */
static belay__operation_t *take_out(belay__operation_t *first) {
  belay__operation_t *next = is_alone(first) ? NULL : belay__group_next(first);
  belay__list_remove(&first->queued);
  first->call = NULL;
  return next;
}

static void end_all(belay__operation_t *first, int status) {
  for (belay__operation_t *next; first != NULL; first = next) {
    next = take_out(first);
    belay__request_end(first, status);
  }
}

static int send_alone(belay__operation_t *operation, belay__call_t *call) {
  const belay__group_ops_t *ops = operation->ops->group;
  int error = belay__request_send(operation, call);
  /* calls_len is 0 if the node refused the call at once */
  if (error == 0 && operation->calls_len > 0 && ops->sent != NULL)
    ops->sent(operation);
  return error;
}

/* Send a request alone, in the time that is left. */
static void send_again(belay__operation_t *operation, const belay__call_t *call) {
  operation->deadline = call->deadline;
  int error = send_alone(operation, operation->ops->group->make(operation, 1, call));
  if (error != 0)
    belay__request_end(operation, error);
}

static void on_done(belay__call_t *call, const belay__result_t *result) {
  belay__operation_t *first = call->owner;
  int64_t values[BELAY__REQUEST_VALUES];
  int status = result->error;
  if (result->outcome == BELAY_OUTCOME_REPLY) {
    status = first->ops->read(first, call, result->reply);
    if (status == BELAY_EPROTO)
      belay__call_distrust(call, result->reply);
  }
  if (result->outcome == BELAY_OUTCOME_UNKNOWN || status == BELAY_EPROTO) {
    end_all(first, belay__request_unknown(first->client, status));
    return;
  }
  memcpy(values, first->values, sizeof values);
  for (belay__operation_t *next; first != NULL; first = next) {
    next = take_out(first);
    int own = first->ops->group->share(first, values, call, status);
    if (own == BELAY__GROUP_AGAIN)
      send_again(first, call);
    else
      belay__request_end(first, own);
  }
}

/* ---- sending ---- */

static int64_t timeout_of(belay__operation_t *operation) {
  return belay__request_timeout_ms(operation->client, belay__request_of(operation));
}

/* Set `index` of the requests of the ring, from 0. Returns the number of requests. */
static size_t number(belay__operation_t *first) {
  size_t n = 0;
  belay__operation_t *operation = first;
  do {
    operation->index = (uint32_t)n++;
    operation = belay__group_next(operation);
  } while (operation != first);
  return n;
}

static void send_group(belay__operation_t *first, belay__call_t *held) {
  belay_client_t *client = first->client;
  size_t n = number(first);
  belay__call_t *call = first->ops->group->make(first, n, held);
  belay__calls_discard(&held, 1);
  int error = BELAY_ENOMEM;
  if (call != NULL) {
    call->deadline = belay__after_ms(client->belay, timeout_of(first));
    call->fail_fast = first->fail_fast;
    call->done = on_done;
    call->owner = first;
    error = belay__call_send(&call, 1, false);
  }
  if (error != 0) {
    end_all(first, error);
    return;
  }
  for (size_t i = 0; i < n; i++, first = belay__group_next(first)) {
    first->call = call;
    first->calls_open = (uint32_t)n;
  }
  client->stats.grouped += n;
  if (first->ops->group->sent != NULL)
    first->ops->group->sent(first);
}

/* ---- held calls ---- */

static void yield_to(belay_client_t *client, belay__call_t *const *calls, size_t n);

static belay__call_t *free_place(groups_t *groups, size_t i) {
  belay__call_t *call = groups->calls[i];
  groups->calls[i] = NULL;
  if (--groups->held == 0)
    groups->client->yield_to = NULL;
  return call;
}

/* Send a held call, and free its place. The call need not yield to the other held calls, because
 * these have other routes and one key each. */
static void release(groups_t *groups, size_t i) {
  belay__call_t *call = free_place(groups, i);
  belay__operation_t *first = call->owner;
  groups->client->yield_to = NULL;
  if (!is_alone(first)) {
    send_group(first, call);
  } else {
    first->call = NULL;
    if (groups->places[i].orphaned) {
      belay__call_t *own = first->ops->group->make(first, 1, call);
      belay__calls_discard(&call, 1);
      call = own;
    }
    int error = send_alone(first, call);
    if (error != 0)
      belay__request_end(first, error);
  }
  if (groups->held > 0)
    groups->client->yield_to = yield_to;
}

/* Send all held calls. Calls for a single request go first. Calls of a group have more arguments,
 * and the node sends calls with equal numbers of arguments as one command. */
static void release_all(groups_t *groups) {
  for (int groups_too = 0; groups_too < 2; groups_too++)
    for (size_t i = 0; i < BELAY__GROUPS_HELD && groups->held > 0; i++)
      if (groups->calls[i] != NULL && (groups_too || is_alone(groups->calls[i]->owner)))
        release(groups, i);
}

/* Send the held calls of a route. Most often there is none, so the function first counts them,
 * without branches. */
static void release_route(groups_t *groups, uint32_t route) {
  unsigned n = 0;
  for (size_t i = 0; i < BELAY__GROUPS_HELD; i++)
    n += groups->routes[i] == route;
  for (size_t i = 0; i < BELAY__GROUPS_HELD && n > 0; i++)
    if (groups->calls[i] != NULL && groups->routes[i] == route)
      release(groups, i);
}

/* Send the held calls that the n calls must not overtake: those of the same routes. Send all if one
 * of the n calls has several keys, because any of these may be the key of a held call. A broken
 * call is not sent, so its keys do not count. */
static void yield_to(belay_client_t *client, belay__call_t *const *calls, size_t n) {
  groups_t *groups = groups_of(client);
  bool all = n > BELAY__GROUPS_HELD;
  for (size_t i = 0; i < n && !all; i++) {
    all = !calls[i]->broken && belay__call_has_keys(calls[i]);
    release_route(groups, calls[i]->route);
  }
  if (all)
    release_all(groups);
}

static void on_flush(belay__flush_t *flush) {
  groups_t *groups = BELAY__CONTAINER(flush, groups_t, flush);
  belay_t *belay = groups->client->belay;
  bool stopped = belay__stop_clock(belay);
  release_all(groups);
  belay__start_clock(belay, stopped);
}

void belay__groups_release(belay_client_t *client) {
  if (client->groups != NULL)
    release_all(groups_of(client));
}

static void free_groups(belay_client_t *client, belay__extension_t *extension) {
  groups_t *groups = (groups_t *)extension;
  assert(groups->held == 0);
  belay__list_remove(&groups->flush.node);
  belay__free(client->belay, groups, sizeof *groups);
}

/* Return the groups of the client, which are allocated at first use; NULL if memory is out. */
static groups_t *find_groups(belay_client_t *client) {
  if (client->groups != NULL)
    return groups_of(client);
  groups_t *groups = belay__alloc(client->belay, sizeof *groups);
  if (groups == NULL)
    return NULL;
  memset(groups, 0, sizeof *groups);
  groups->extension.free = free_groups;
  groups->client = client;
  groups->flush.run = on_flush;
  belay__list_init(&groups->flush.node);
  client->groups = &groups->extension;
  return groups;
}

/* Free place i for a call of this route. Returns false if the place has a group of several
 * requests, because more requests are likely to join that group. */
static bool make_room(groups_t *groups, size_t i, uint32_t route) {
  release_route(groups, route);
  if (groups->calls[i] != NULL && !is_alone(groups->calls[i]->owner))
    return false;
  if (groups->calls[i] != NULL)
    release(groups, i);
  return true;
}

static void hold(groups_t *groups, size_t i, belay__call_t *call, uint64_t hash,
                 belay_bytes_t key) {
  place_t *place = &groups->places[i];
  belay_t *belay = groups->client->belay;
  groups->calls[i] = call;
  groups->routes[i] = call->route;
  place->hash = hash;
  place->orphaned = false;
  place->key_len = key.len;
  memcpy(place->key, key.data, key.len);
  if (groups->held++ == 0)
    belay->host->before_sleep(belay, &groups->flush);
  groups->client->yield_to = yield_to;
}

int belay__group_hold(belay__operation_t *operation, belay__call_t *call, uint64_t hash,
                      belay_bytes_t key) {
  belay_client_t *client = operation->client;
  int error = call == NULL || call->broken ? BELAY_ENOMEM : 0;
  if (error == 0 && client->stats.pending_bytes + call->len > client->max_bytes)
    error = BELAY_EBUSY;
  if (error != 0) {
    belay__calls_discard(&call, 1);
    return error;
  }
  groups_t *groups = key.len > BELAY__GROUP_KEY_MAX ? NULL : find_groups(client);
  size_t i = hash % BELAY__GROUPS_HELD;
  if (groups == NULL || !make_room(groups, i, call->route))
    return send_alone(operation, call);
  call->owner = operation;
  operation->call = call;
  hold(groups, i, call, hash, key);
  return 0;
}

bool belay__group_join(belay__operation_t *operation, uint64_t hash, belay_bytes_t key) {
  if (operation->client->yield_to == NULL)
    return false;
  const groups_t *groups = groups_of(operation->client);
  size_t i = hash % BELAY__GROUPS_HELD;
  const place_t *place = &groups->places[i];
  if (place->hash != hash || groups->calls[i] == NULL || place->orphaned ||
      place->key_len != key.len || memcmp(place->key, key.data, key.len) != 0)
    return false;
  belay__operation_t *first = groups->calls[i]->owner;
  if (first->ops != operation->ops || first->context != operation->context ||
      timeout_of(first) != timeout_of(operation) || !first->ops->group->fits(first, operation))
    return false;
  belay__list_push(&first->queued, &operation->queued);
  operation->call = groups->calls[i];
  return true;
}

/* Return the place of a held call; BELAY__GROUPS_HELD: the call is not held any more. */
static size_t find_place(const groups_t *groups, const belay__call_t *call) {
  size_t i = 0;
  while (i < BELAY__GROUPS_HELD && groups->calls[i] != call)
    i++;
  return i;
}

void belay__group_leave(belay__operation_t *operation) {
  belay__call_t *call = operation->call;
  if (call == NULL)
    return;
  groups_t *groups = groups_of(operation->client);
  belay__operation_t *next = take_out(operation);
  size_t i = find_place(groups, call);
  if (next != NULL && call->owner == operation) {
    call->owner = next;
    if (i < BELAY__GROUPS_HELD)
      groups->places[i].orphaned = true;
  }
  if (next != NULL)
    return;
  if (i < BELAY__GROUPS_HELD)
    (void)free_place(groups, i);
  (void)belay__call_abandon(call);
}

/* Actors with a cache, on keys that all processes share: gets, at times two of a key at once; loads
 * that take time, fail, or never end; and changes of the source, which are invalidated by key or
 * tag, or put.
 *
 * The source of truth is a number per key, which each change increases before it calls the cache. A
 * loader reads it when it is called.
 *
 *    stale      a get is never served a value older than a change that was acknowledged before the
 *               get; from the table of the process, than one acknowledged longer ago than
 *               local_ttl_ms. A put value may be older than a change made during the put
 *    exclusion  without faults, one process at a time loads a key */
#include <belay/cache.h>
#include <stdlib.h>
#include <string.h>

#include "sim/actors/actor.h"
#include "sim/check/check_state.h"

#define KEYS 3
#define LOADS 8       /* of an actor */
#define CHANGES 16384 /* of a key */
#define LOCAL_TTL_MS 300

enum { GET, AGAIN, CHANGE };

typedef struct change {
  bool is_put, acknowledged;
  uint32_t called, ended; /* numbers of moments; 0: not yet */
  uint64_t at;            /* the world's time when it was acknowledged */
} change_t;

typedef struct shared {
  uint32_t moment;
  struct {
    uint32_t version, floor; /* floor: the latest acknowledged version */
    change_t change[CHANGES];
  } key[KEYS];
} shared_t;

typedef struct load {
  belay_cache_load_t *load; /* NULL: none */
  unsigned key;
  uint32_t version;
  bool alone; /* no fault had happened when it began */
} load_t;

typedef struct cache {
  sim_actor_t base; /* first */
  struct {
    unsigned key;
    uint32_t called;
    uint64_t at;
  } get[2]; /* GET, AGAIN */
  unsigned change_key;
  uint32_t version; /* of the change; 0: a touch */
  load_t load[LOADS];
} cache_t;

static const char *const keys[KEYS] = {"c0", "c1", "c2"}, *const tags[KEYS] = {"t0", "t0", NULL};

static shared_t *shared_of(const cache_t *self) {
  return sim_shared(self->base.world, sizeof(shared_t));
}

static void violate(const cache_t *self, const char *checker, const char *what, unsigned key,
                    uint32_t version) {
  sim_violation(self->base.world, "%s: %s: %s: %s, version %u", checker, self->base.who, keys[key],
                what, version);
}

/* ---- served values ---- */

/* True if the value of that version was being put when the change was made. */
static bool overlaps(const change_t *put, const change_t *change) {
  return put->is_put && (put->ended == 0 || put->ended > change->called);
}

static const char *find_fault(const cache_t *self, const belay_cache_result_t *result, unsigned key,
                              uint32_t called, uint64_t at) {
  const shared_t *shared = shared_of(self);
  uint32_t version;
  char kind;
  if (!sim_read_version(result->data, result->len, &kind, &version) ||
      version > shared->key[key].version || version >= CHANGES)
    return "served a value that was never stored";
  for (uint32_t i = version + 1; i <= shared->key[key].floor; i++) {
    const change_t *change = &shared->key[key].change[i];
    bool before = change->acknowledged && change->ended < called;
    bool local = result->from == BELAY_CACHE_FROM_LOCAL &&
                 at <= change->at + LOCAL_TTL_MS * SIM_MS * 101 / 100 + SIM_TICK;
    if (before && !local && (kind != 'p' || !overlaps(&shared->key[key].change[version], change)))
      return "served a value that was invalidated before the get";
  }
  return NULL;
}

static void check_served(cache_t *self, const belay_cache_result_t *result, unsigned key,
                         uint32_t called, uint64_t at) {
  const char *wrong = find_fault(self, result, key, called, at);
  sim_note(self->base.world, self->base.who, "%s is %.*s, from %d%s", keys[key], (int)result->len,
           (const char *)result->data, (int)result->from, result->stale ? ", stale" : "");
  if (wrong != NULL)
    violate(self, "stale", wrong, key, shared_of(self)->key[key].floor);
}

/* ---- loads ---- */

static void end_load(cache_t *self, load_t *load, bool well) {
  belay_cache_load_t *ended = load->load;
  char text[16];
  int n = snprintf(text, sizeof text, "v%u", load->version);
  load->load = NULL;
  int error = well ? belay_cache_load_done(ended, belay_bytes(text, (size_t)n))
                   : belay_cache_load_failed(ended, 7);
  (void)sim_actor_leave(&self->base, "load", error, 0);
}

static void end_loads(sim_actor_t *actor) {
  cache_t *self = (cache_t *)actor;
  for (unsigned i = 0; i < LOADS; i++)
    if (self->load[i].load != NULL)
      end_load(self, &self->load[i], true);
}

/* Present loads of that key in all processes that must not overlap: without loads that took too
 * long or whose cache was closed. */
static unsigned count_loads(const sim_world_t *world, unsigned key) {
  unsigned n = 0;
  for (unsigned i = 0; i < sim_actors_count(world); i++) {
    const cache_t *other = (const cache_t *)sim_actor_at(world, i);
    for (unsigned j = 0; other != NULL && j < LOADS; j++) {
      const load_t *load = &other->load[j];
      n += load->load != NULL && load->key == key && load->alone &&
           belay_cache_load_is_wanted(load->load);
    }
  }
  return n;
}

static unsigned key_of(const char *key, size_t key_len) {
  unsigned i = 0;
  while (i < KEYS - 1 && (key_len != 2 || memcmp(key, keys[i], 2) != 0))
    i++;
  return i;
}

static void on_load(belay_cache_load_t *ours, const char *key, size_t key_len, void *arg) {
  cache_t *self = arg;
  sim_actor_t *actor = &self->base;
  load_t *load = self->load;
  while (load < self->load + LOADS - 1 && load->load != NULL)
    load++;
  if (load->load != NULL) {
    (void)belay_cache_load_failed(ours, 1);
    return;
  }
  unsigned number = key_of(key, key_len);
  *load = (load_t){.load = ours,
                   .key = number,
                   .version = shared_of(self)->key[number].version,
                   .alone = actor->world->phase == SIM_CALM};
  sim_note(actor->world, actor->who, "loads %s: %u", keys[number], load->version);
  if (load->alone && count_loads(actor->world, number) > 1)
    violate(self, "exclusion", "loaded twice at once", number, load->version);
  if (actor->healing || actor->stopping || sim_actor_chance(actor, 200))
    end_load(self, load, true);
}

static size_t on_tags(const char *key, size_t key_len, belay_bytes_t into[BELAY_CACHE_TAGS_MAX],
                      void *arg) {
  const char *tag = tags[key_of(key, key_len)];
  (void)arg;
  into[0] = (belay_bytes_t){tag, 2};
  return tag != NULL ? 1 : 0;
}

/* ---- gets ---- */

static void on_got(belay_request_t *request, int status, const belay_cache_result_t *result) {
  cache_t *self = request->data;
  unsigned i = (unsigned)(request - self->base.request);
  sim_actor_ended(&self->base, i, status);
  if (status != 0)
    return;
  check_served(self, result, self->get[i].key, self->get[i].called, self->get[i].at);
  sim_actor_granted(&self->base);
  self->base.served |= self->base.healing;
}

/* i: GET or AGAIN */
static void get(cache_t *self, unsigned i, unsigned key) {
  sim_actor_t *actor = &self->base;
  belay_request_t *request = sim_actor_request(actor, i);
  int64_t timeout_ms = request->timeout_ms;
  self->get[i].key = key;
  self->get[i].called = ++shared_of(self)->moment;
  self->get[i].at = sim_world_time(actor->process);
  if (SIM_CALL(actor, actor->type->op[i], BELAY_EBUSY,
               belay_cache_get(actor->handle, request, belay_bytes(keys[key], 2), on_got)))
    sim_actor_expect(actor, i, timeout_ms);
}

static void peek(cache_t *self) {
  sim_actor_t *actor = &self->base;
  belay_cache_result_t result;
  unsigned key = (unsigned)sim_actor_between(actor, 0, KEYS - 1);
  sim_actor_enter(actor);
  int error = belay_cache_peek(actor->handle, belay_bytes(keys[key], 2), &result);
  if (sim_actor_leave(actor, "peek", error == BELAY_ELOAD ? BELAY_EAGAIN : error, BELAY_EAGAIN))
    check_served(self, &result, key, ++shared_of(self)->moment, sim_world_time(actor->process));
}

/* ---- changes ---- */

static change_t *present_change(const cache_t *self) {
  return &shared_of(self)->key[self->change_key].change[self->version];
}

static void on_changed(belay_request_t *request, int status, bool applied) {
  cache_t *self = request->data;
  shared_t *shared = shared_of(self);
  (void)applied;
  sim_actor_ended(&self->base, CHANGE, status);
  if (self->version == 0)
    return;
  change_t *change = present_change(self);
  change->ended = ++shared->moment;
  change->acknowledged = status == 0;
  change->at = sim_world_time(self->base.process);
  if (status == 0 && shared->key[self->change_key].floor < self->version)
    shared->key[self->change_key].floor = self->version;
}

/* The first two keys have the same tag: the rules only use what all changes had before. */
static int call_change(cache_t *self, unsigned how) {
  belay_cache_t *cache = self->base.handle;
  belay_request_t *request = &self->base.request[CHANGE];
  belay_bytes_t key = belay_bytes(keys[self->change_key], 2);
  char text[16];
  if (self->version == 0)
    return belay_cache_touch(cache, request, key, 150, on_changed);
  if (how == 0) {
    int n = snprintf(text, sizeof text, "p%u", self->version);
    return belay_cache_put(cache, request, key, belay_bytes(text, (size_t)n), BELAY_DEFAULT,
                           on_changed);
  }
  if (how == 1 && tags[self->change_key] != NULL)
    return belay_cache_invalidate_tag(cache, request, belay_bytes(tags[self->change_key], 2),
                                      on_changed);
  return belay_cache_invalidate(cache, request, key, on_changed);
}

static void change(cache_t *self) {
  sim_actor_t *actor = &self->base;
  shared_t *shared = shared_of(self);
  unsigned how = (unsigned)sim_actor_between(actor, 0, 5);
  self->change_key = (unsigned)sim_actor_between(actor, 0, KEYS - 1);
  uint32_t *version = &shared->key[self->change_key].version;
  if (*version + 1 >= CHANGES)
    return;
  self->version = how == 5 ? 0 : ++*version;
  if (self->version != 0)
    *present_change(self) = (change_t){.is_put = how == 0, .called = ++shared->moment};
  int64_t timeout_ms = sim_actor_request(actor, CHANGE)->timeout_ms;
  if (SIM_CALL(actor, "change", BELAY_EBUSY, call_change(self, how)))
    sim_actor_expect(actor, CHANGE, timeout_ms);
  else if (self->version != 0)
    present_change(self)->ended = shared->moment;
}

/* ---- actions ---- */

SIM_ACTOR_CLOSE(cache)

static int make(sim_actor_t *actor) {
  belay_cache_options_t options;
  belay_cache_options_init(&options);
  options.load = on_load;
  options.tags = on_tags;
  options.arg = options.data = actor;
  options.ttl_ms = 250;
  options.stale_ms = sim_actor_chance(actor, 500) ? 150 : 0;
  options.error_ms = sim_actor_chance(actor, 300) ? 20 : 0;
  options.beta = sim_actor_chance(actor, 300) ? 1 : 0;
  options.lease_ms = 400;
  options.load_timeout_ms = 600;
  options.local_bytes = sim_actor_chance(actor, 500) ? 1 << 16 : 0;
  options.local_ttl_ms = LOCAL_TTL_MS;
  return belay_cache_new(actor->process->client[0], &options, (belay_cache_t **)&actor->handle);
}

static void keep_fresh(sim_actor_t *actor, bool on) {
  (void)SIM_CALL(actor, on ? "keep fresh" : "let expire", BELAY_ESTATE,
                 on ? belay_cache_keep_fresh(actor->handle, belay_bytes(keys[0], 2))
                    : belay_cache_let_expire(actor->handle, belay_bytes(keys[0], 2)));
}

/* Gets a key, sometimes twice, and sometimes with a change in between. */
static void get_some(cache_t *self) {
  sim_actor_t *actor = &self->base;
  unsigned key = (unsigned)sim_actor_between(actor, 0, KEYS - 1);
  get(self, GET, key);
  if (actor->op[AGAIN].pending || !sim_actor_chance(actor, 500))
    return;
  if (!actor->healing && !actor->op[CHANGE].pending && sim_actor_chance(actor, 100))
    change(self);
  get(self, AGAIN, key);
}

static void cancel_some(sim_actor_t *actor, unsigned i) {
  if (actor->op[i].pending && sim_actor_chance(actor, 20))
    sim_actor_cancel_request(actor, i);
}

static void work(cache_t *self) {
  sim_actor_t *actor = &self->base;
  load_t *load = &self->load[sim_actor_between(actor, 0, 2)];
  if (load->load != NULL && (actor->healing || sim_actor_chance(actor, 600))) {
    sim_actor_enter(actor);
    end_load(self, load, actor->healing || !sim_actor_chance(actor, 150));
  }
  if (sim_actor_chance(actor, 300))
    peek(self);
  if (!actor->op[GET].pending)
    get_some(self);
  else if (!actor->healing)
    cancel_some(actor, GET);
  if (actor->healing)
    return;
  cancel_some(actor, AGAIN);
  if (!actor->op[CHANGE].pending && sim_actor_chance(actor, 300))
    change(self);
  else
    cancel_some(actor, CHANGE);
  if (sim_actor_chance(actor, 10))
    keep_fresh(actor, sim_actor_chance(actor, 500));
}

static void act(sim_actor_t *actor) {
  bool closing = sim_actor_is_closing(actor);
  if (closing || (actor->handle == NULL && sim_actor_chance(actor, 500)))
    end_loads(actor);
  if (actor->handle == NULL)
    sim_actor_make(actor);
  else if (!closing && !actor->healing && sim_actor_chance(actor, 10))
    sim_actor_close(actor);
  else if (!closing)
    work((cache_t *)actor);
  sim_actor_think(actor);
}

/* Its memory is freed or about to be. Its unfinished puts no longer count. */
static void ended(sim_actor_t *actor) {
  cache_t *self = (cache_t *)actor;
  if (actor->op[CHANGE].pending && self->version != 0)
    present_change(self)->ended = ++shared_of(self)->moment;
}

const sim_actor_type_t sim_cache_type = {
    .size = sizeof(cache_t),
    .op = {"get", "get again", "change", "close"},
    .ends = {[GET] = {BELAY_ETIMEDOUT, BELAY_ELOAD}, [AGAIN] = {BELAY_ETIMEDOUT, BELAY_ELOAD}},
    .make = make,
    .close = close_cache,
    .act = act,
    .stop = end_loads,
    .ended = ended,
};

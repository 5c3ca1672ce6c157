/* A hand with a cache, on keys that all processes share: gets; loads that take time, fail, or
 * never end; and changes of the source, which are invalidated by key or tag, or put.
 *
 * The source of truth is a number per key, which each change increases before it calls the
 * cache. A loader reads it when it is called.
 *
 *    stale      a get is never served a value older than a change that was acknowledged before the get;
 *               from the process's table, than one acknowledged longer ago than local_ttl_ms. A put
 *               value may be older than a change made during the put
 *    exclusion  without faults, one process at a time loads a key */
#include <belay/cache.h>
#include <stdlib.h>
#include <string.h>

#include "sim/actors/hand.h"
#include "sim/world/process.h"

#define KEYS 3
#define LOADS 8       /* of a hand */
#define CHANGES 16384 /* of a key */
#define LOCAL_TTL_MS 300

enum { GET, CHANGE };

typedef struct change {
  bool is_put, acknowledged;
  uint32_t called, ended; /* numbers of moments; 0: not yet */
  uint64_t at;            /* when it was acknowledged, of the world's */
} change_t;

/* The world's account. */
typedef struct ledger {
  uint32_t moment;
  struct {
    uint32_t version, floor; /* floor: the latest that was acknowledged */
    change_t change[CHANGES];
  } key[KEYS];
} ledger_t;

typedef struct load {
  belay_cache_load_t *load; /* NULL: none */
  unsigned key;
  uint32_t version;
  bool alone; /* nothing had gone wrong when it began */
} load_t;

typedef struct cache_hand {
  sim_hand_t base; /* first */
  belay_cache_t *cache;
  belay_request_t get, change;
  unsigned get_key, change_key;
  uint32_t get_called, version; /* version: of the change; 0: it is a touch */
  uint64_t get_at;
  load_t load[LOADS];
} cache_hand_t;

static const char *const keys[KEYS] = {"c0", "c1", "c2"}, *const tags[KEYS] = {"t0", "t0", "t2"};

static cache_hand_t *of(sim_hand_t *base) {
  return (cache_hand_t *)base;
}

static ledger_t *ledger_of(const cache_hand_t *hand) {
  return sim_ledger(sim_world_of(&hand->base), sizeof(ledger_t));
}

static void violate(const cache_hand_t *hand, const char *checker, const char *what, unsigned key,
                    uint32_t version) {
  sim_world_t *world = sim_world_of(&hand->base);
  sim_violation(world, "%s: %s: %s: %s, version %u", checker, hand->base.who, keys[key], what,
                version);
}

/* ---- what is served -------------------------------------------------------------------------------------- */

/* The value of that version was being put when the change was made. */
static bool was_beside(const change_t *put, const change_t *change) {
  return put->is_put && (put->ended == 0 || put->ended > change->called);
}

static const char *judge(const cache_hand_t *hand, const belay_cache_result_t *result, unsigned key,
                         uint32_t called, uint64_t at) {
  const ledger_t *ledger = ledger_of(hand);
  const char *data = result->data;
  char text[16] = "";
  if (result->len < 2 || result->len >= sizeof text || (*data != 'v' && *data != 'p'))
    return "served what was never stored";
  memcpy(text, data + 1, result->len - 1);
  uint32_t version = (uint32_t)strtoul(text, NULL, 10);
  if (version > ledger->key[key].version || version >= CHANGES)
    return "served what was never stored";
  for (uint32_t i = version + 1; i <= ledger->key[key].floor; i++) {
    const change_t *change = &ledger->key[key].change[i];
    bool before = change->acknowledged && change->ended < called;
    bool local = result->from == BELAY_CACHE_FROM_LOCAL &&
                 at <= change->at + LOCAL_TTL_MS * SIM_MS * 101 / 100 + SIM_TICK;
    if (before && !local &&
        (*data != 'p' || !was_beside(&ledger->key[key].change[version], change)))
      return "served what was invalidated before it was asked for";
  }
  return NULL;
}

static void check_served(cache_hand_t *hand, const belay_cache_result_t *result, unsigned key,
                         uint32_t called, uint64_t at) {
  const char *wrong = judge(hand, result, key, called, at);
  sim_note(sim_world_of(&hand->base), hand->base.who, "%s is %.*s, from %d%s", keys[key],
           (int)result->len, (const char *)result->data, (int)result->from,
           result->stale ? ", stale" : "");
  if (wrong != NULL)
    violate(hand, "stale", wrong, key, ledger_of(hand)->key[key].floor);
}

/* ---- loads ----------------------------------------------------------------------------------------------- */

static void end(cache_hand_t *hand, load_t *load, bool well) {
  sim_hand_t *base = &hand->base;
  belay_cache_load_t *ended = load->load;
  char text[16];
  int n = snprintf(text, sizeof text, "v%u", load->version);
  load->load = NULL;
  int error = well ? belay_cache_load_done(ended, belay_bytes(text, (size_t)n))
                   : belay_cache_load_failed(ended, 7);
  (void)sim_hand_leave(base, "load", error, 0);
}

static void end_all(cache_hand_t *hand) {
  for (unsigned i = 0; i < LOADS; i++)
    if (hand->load[i].load != NULL)
      end(hand, &hand->load[i], true);
}

/* Present loads of that key in all processes that must not overlap: without loads that took too
 * long or whose cache was closed. */
static unsigned loads_of(const sim_world_t *world, unsigned key) {
  unsigned n = 0;
  for (unsigned i = 0; i < sim_hands_count(world); i++) {
    sim_hand_t *base = sim_hand_at(world, i);
    for (unsigned j = 0; base != NULL && j < LOADS; j++) {
      const load_t *load = &of(base)->load[j];
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
  cache_hand_t *hand = arg;
  ledger_t *ledger = ledger_of(hand);
  sim_world_t *world = sim_world_of(&hand->base);
  load_t *load = hand->load;
  while (load < hand->load + LOADS - 1 && load->load != NULL)
    load++;
  if (load->load != NULL) {
    (void)belay_cache_load_failed(ours, 1);
    return;
  }
  unsigned number = key_of(key, key_len);
  *load = (load_t){.load = ours,
                   .key = number,
                   .version = ledger->key[number].version,
                   .alone = world->phase == SIM_CALM};
  sim_note(world, hand->base.who, "loads %s: %u", keys[number], load->version);
  if (load->alone && loads_of(world, number) > 1)
    violate(hand, "exclusion", "loaded twice at once", number, load->version);
  if (hand->base.healing || hand->base.resting || sim_hand_chance(&hand->base, 200))
    end(hand, load, true);
}

static size_t on_tags(const char *key, size_t key_len, belay_bytes_t into[BELAY_CACHE_TAGS_MAX],
                      void *arg) {
  (void)arg;
  into[0] = (belay_bytes_t){tags[key_of(key, key_len)], 2};
  return 1;
}

/* ---- asking ---------------------------------------------------------------------------------------------- */

static void on_got(belay_request_t *request, int status, const belay_cache_result_t *result) {
  cache_hand_t *hand = request->data;
  sim_hand_kept(&hand->base, GET, status);
  if (status != 0)
    return;
  check_served(hand, result, hand->get_key, hand->get_called, hand->get_at);
  sim_hand_granted(&hand->base);
  hand->base.cured |= hand->base.healing;
}

static void get(cache_hand_t *hand) {
  sim_hand_t *base = &hand->base;
  hand->get_key = (unsigned)sim_hand_between(base, 0, KEYS - 1);
  hand->get = sim_hand_request(base);
  hand->get_called = ++ledger_of(hand)->moment;
  hand->get_at = sim_world_time(base->process);
  sim_hand_enter(base);
  int error = belay_cache_get(hand->cache, &hand->get, belay_bytes(keys[hand->get_key], 2), on_got);
  if (sim_hand_leave(base, "get", error, BELAY_EBUSY))
    sim_hand_promise(base, GET, hand->get.timeout_ms);
}

static void peek(cache_hand_t *hand) {
  sim_hand_t *base = &hand->base;
  belay_cache_result_t result;
  unsigned key = (unsigned)sim_hand_between(base, 0, KEYS - 1);
  sim_hand_enter(base);
  int error = belay_cache_peek(hand->cache, belay_bytes(keys[key], 2), &result);
  bool found = sim_hand_leave(base, "peek", error == BELAY_ELOAD ? BELAY_EAGAIN : error, //
                              BELAY_EAGAIN);
  if (found)
    check_served(hand, &result, key, ++ledger_of(hand)->moment, sim_world_time(base->process));
}

/* ---- changing -------------------------------------------------------------------------------------------- */

static void on_changed(belay_request_t *request, int status, bool applied) {
  cache_hand_t *hand = request->data;
  ledger_t *ledger = ledger_of(hand);
  (void)applied;
  sim_hand_kept(&hand->base, CHANGE, status);
  if (hand->version == 0)
    return;
  change_t *change = &ledger->key[hand->change_key].change[hand->version];
  change->ended = ++ledger->moment;
  change->acknowledged = status == 0;
  change->at = sim_world_time(hand->base.process);
  if (status == 0 && ledger->key[hand->change_key].floor < hand->version)
    ledger->key[hand->change_key].floor = hand->version;
}

/* The tag of the first two is the same: only what all of them had before is said of it. */
static int ask_change(cache_hand_t *hand, unsigned how) {
  unsigned key = hand->change_key;
  char text[16];
  if (hand->version == 0)
    return belay_cache_touch(hand->cache, &hand->change, belay_bytes(keys[key], 2), 150,
                             on_changed);
  if (how == 0) {
    int n = snprintf(text, sizeof text, "p%u", hand->version);
    return belay_cache_put(hand->cache, &hand->change, belay_bytes(keys[key], 2),
                           belay_bytes(text, (size_t)n), BELAY_DEFAULT, on_changed);
  }
  if (how == 1)
    return belay_cache_invalidate_tag(hand->cache, &hand->change, belay_bytes(tags[key], 2),
                                      on_changed);
  return belay_cache_invalidate(hand->cache, &hand->change, belay_bytes(keys[key], 2), on_changed);
}

static void change(cache_hand_t *hand) {
  sim_hand_t *base = &hand->base;
  ledger_t *ledger = ledger_of(hand);
  unsigned how = (unsigned)sim_hand_between(base, 0, 5);
  hand->change_key = (unsigned)sim_hand_between(base, 0, KEYS - 1);
  uint32_t *version = &ledger->key[hand->change_key].version;
  if (*version + 1 >= CHANGES)
    return;
  hand->version = how == 5 ? 0 : ++*version;
  if (hand->version != 0)
    ledger->key[hand->change_key].change[hand->version] =
        (change_t){.is_put = how == 0, .called = ++ledger->moment};
  hand->change = sim_hand_request(base);
  sim_hand_enter(base);
  int error = ask_change(hand, how);
  if (sim_hand_leave(base, "change", error, BELAY_EBUSY))
    sim_hand_promise(base, CHANGE, hand->change.timeout_ms);
  else if (hand->version != 0)
    ledger->key[hand->change_key].change[hand->version].ended = ledger->moment;
}

/* ---- a cache --------------------------------------------------------------------------------------------- */

static void make(cache_hand_t *hand) {
  sim_hand_t *base = &hand->base;
  belay_cache_options_t options;
  belay_cache_options_init(&options);
  options.load = on_load;
  options.tags = on_tags;
  options.arg = options.data = hand;
  options.ttl_ms = 250;
  options.stale_ms = sim_hand_chance(base, 500) ? 150 : 0;
  options.error_ms = sim_hand_chance(base, 300) ? 20 : 0;
  options.beta = sim_hand_chance(base, 300) ? 1 : 0;
  options.lease_ms = 400;
  options.load_timeout_ms = 600;
  options.local_bytes = sim_hand_chance(base, 500) ? 1 << 16 : 0;
  options.local_ttl_ms = LOCAL_TTL_MS;
  sim_hand_enter(base);
  int error = belay_cache_new(base->process->client[0], &options, &hand->cache);
  if (!sim_hand_leave(base, "new", error, 0))
    hand->cache = NULL;
}

static void on_closed(belay_cache_t *cache, void *data) {
  cache_hand_t *hand = data;
  (void)cache;
  hand->cache = NULL;
  sim_hand_closed(&hand->base);
}

static void close_it(cache_hand_t *hand) {
  sim_hand_enter(&hand->base);
  sim_hand_close(&hand->base, belay_cache_close(hand->cache, on_closed));
}

static void pin(cache_hand_t *hand, bool on) {
  sim_hand_t *base = &hand->base;
  sim_hand_enter(base);
  int error = on ? belay_cache_keep_fresh(hand->cache, belay_bytes(keys[0], 2))
                 : belay_cache_let_expire(hand->cache, belay_bytes(keys[0], 2));
  (void)sim_hand_leave(base, on ? "pin" : "unpin", error, BELAY_ESTATE);
}

/* ---- what it does ---------------------------------------------------------------------------------------- */

static void work(cache_hand_t *hand) {
  sim_hand_t *base = &hand->base;
  load_t *load = &hand->load[sim_hand_between(base, 0, 2)];
  if (load->load != NULL && (base->healing || sim_hand_chance(base, 600))) {
    sim_hand_enter(base);
    end(hand, load, base->healing || !sim_hand_chance(base, 150));
  }
  if (sim_hand_chance(base, 300))
    peek(hand);
  if (!base->promise[GET].pending)
    get(hand);
  else if (!base->healing && sim_hand_chance(base, 20))
    sim_hand_cancel_request(base, GET, &hand->get);
  if (base->healing)
    return;
  if (!base->promise[CHANGE].pending && sim_hand_chance(base, 300))
    change(hand);
  else if (base->promise[CHANGE].pending && sim_hand_chance(base, 20))
    sim_hand_cancel_request(base, CHANGE, &hand->change);
  if (sim_hand_chance(base, 10))
    pin(hand, sim_hand_chance(base, 500));
}

static void act(sim_hand_t *base) {
  cache_hand_t *hand = of(base);
  if (sim_hand_is_closing(base) || (hand->cache == NULL && sim_hand_chance(base, 500)))
    end_all(hand);
  if (sim_hand_is_closing(base)) {
    sim_hand_think(base);
    return;
  }
  if (hand->cache == NULL)
    make(hand);
  else if (!base->healing && sim_hand_chance(base, 10))
    close_it(hand);
  else
    work(hand);
  sim_hand_think(base);
}

static void rest(sim_hand_t *base) {
  end_all(of(base));
}

/* Its memory is freed or about to be. Its unfinished puts no longer count. */
static void gone(sim_hand_t *base) {
  cache_hand_t *hand = of(base);
  ledger_t *ledger = ledger_of(hand);
  if (base->promise[CHANGE].pending && hand->version != 0)
    ledger->key[hand->change_key].change[hand->version].ended = ++ledger->moment;
}

const sim_trade_t sim_cache_trade = {
    .size = sizeof(cache_hand_t),
    .op = {"get", "change", "close"},
    .ends = {[GET] = {BELAY_ETIMEDOUT, BELAY_ELOAD}},
    .act = act,
    .rest = rest,
    .gone = gone,
};

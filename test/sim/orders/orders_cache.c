/* Orders of two processes' operations on a key of a cache; each step is a letter.
 *
 *    G  a get                                  I  the source changes, and the key is invalidated
 *    E  the oldest load of this process ends   T  ... and the tag is
 *    F  it fails                               P  ... and its new value is put
 *    W  half a second passes                   R, N, Y  the record, its generation or the tag's
 *    B  G, I and G before anything is sent        is evicted
 *
 * The source of truth is a number, which each change increases before it calls the cache. A
 * loader reads it when it is called, and returns it when it ends. After all steps, all calls and
 * loads end, and each process gets the key once more.
 *
 *    stale      a get is never served a value older than a change acknowledged before the get,
 *               or, without lost connections, than the change of its step B.
 *               Its process's table may be older: for local_ttl_ms, unless this process made the
 *               change or has the message. A put value may be older if the put's first call was
 *               executed after the change took effect: their order is unknown
 *    callbacks  each runs once; with 0 if no reply is lost and no load fails
 *    liveness   nothing is pending at the end */
#include <stdlib.h>
#include <string.h>

#include "sim/check/check.h"
#include "sim/check/check_state.h"
#include "sim/actors/actor.h"
#include "sim/orders/orders_cache.h"
#include "sim/report.h"

#define DRAINED (20 * SIM_S)
#define PATIENCE (25 * SIM_MS)
#define GRACEFULLY 32 /* one of this many worlds is closed gracefully */

orders_t *sim_orders_current;

static void violate(orders_t *self, const char *checker, const char *what, unsigned process,
                    unsigned version) {
  char acts[360];
  sim_orders_tell(&self->search, acts, sizeof acts);
  sim_violation(self->base.world, "%s: %s; p%u, version %u of %u; %s: %s | %s;%s", checker, what,
                process, version, self->version, self->part->config->name, self->steps[0],
                self->steps[1], acts);
}

/* ---- what a get may be served ---- */

/* True if a message to that process is in flight, or the process is not subscribed. */
static bool is_deaf(const orders_t *self, unsigned process) {
  const sim_net_t *net = self->base.world->net;
  bool listens = false;
  for (belay__list_t *i = net->conns.next; i != &net->conns; i = i->next) {
    const sim_conn_t *conn = BELAY__CONTAINER(i, sim_conn_t, node);
    if (conn->process_index != process || conn->process == NULL || conn->engine.channels == 0)
      continue;
    listens = true;
    if (conn->pipe[SIM_TO_PROCESS].first != NULL)
      return true;
  }
  return !listens;
}

static bool may_be_local(const orders_t *self, const get_t *get, const change_t *change) {
  const sim_config_t *config = self->part->config;
  uint64_t since = self->base.world->now - change->at;
  return change->process != get->process && since <= (uint64_t)config->local_ttl_ms * SIM_MS &&
         (config->quiet || is_deaf(self, get->process));
}

static bool may_be_put(const orders_t *self, unsigned version, const change_t *change) {
  for (unsigned i = 0; i < self->changes; i++) {
    const change_t *put = &self->change[i];
    unsigned began = change->is_tag ? put->captured : put->executed;
    if (put->is_put && put->version == version)
      return (put->ended == 0 || put->ended > change->called) && change->executed != 0 &&
             (began == 0 || began > change->executed);
  }
  return false;
}

static void check_served(orders_t *self, const get_t *get, const belay_cache_result_t *result) {
  const char *data = result->data;
  char text[16] = "";
  if (result->len == 0 || result->len >= sizeof text || strchr("vp", *data) == NULL) {
    violate(self, "stale", "served a value that was never stored", get->process, 0);
    return;
  }
  memcpy(text, data + 1, result->len - 1);
  unsigned version = (unsigned)strtoul(text, NULL, 10);
  if (version > self->version)
    violate(self, "stale", "served a value that was never stored", get->process, version);
  for (unsigned i = 0; i < self->changes; i++) {
    const change_t *change = &self->change[i];
    if ((get->acknowledged & 1u << i) == 0 || version >= change->version)
      continue;
    if (result->from == BELAY_CACHE_FROM_LOCAL && may_be_local(self, get, change))
      continue;
    if (*data == 'p' && may_be_put(self, version, change))
      continue;
    violate(self, "stale", "served a value that was invalidated before the get", get->process,
            version);
  }
}

static bool may_fail(const orders_t *self, int status) {
  if (status == BELAY_ELOAD)
    return self->failed;
  return self->base.lost && (status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE);
}

static void on_got(belay_request_t *request, int status, const belay_cache_result_t *result) {
  get_t *get = request->data;
  orders_t *self = get->orders;
  sim_note(self->base.world, self->base.world->process[get->process].name, "get -> %s %.*s from %d",
           belay_err_name(status), status == 0 ? (int)result->len : 0,
           status == 0 ? (const char *)result->data : "", (int)result->from);
  if (++get->callbacks != 1)
    violate(self, "callbacks", "a get calls back twice", get->process, 0);
  if (status == 0)
    check_served(self, get, result);
  else if (!may_fail(self, status))
    violate(self, "callbacks", belay_err_name(status), get->process, 0);
}

/* ---- the steps ---- */

static void expect_0(orders_t *self, unsigned process, int error) {
  if (error != 0)
    violate(self, "callbacks", belay_err_name(error), process, 0);
}

static void take_get(orders_t *self, unsigned process) {
  get_t *get = &self->get[self->gets++];
  *get = (get_t){.orders = self, .process = process};
  get->request.data = get;
  for (unsigned i = 0; i < self->changes; i++)
    get->acknowledged |= self->change[i].acknowledged ? 1u << i : 0;
  expect_0(self, process,
           belay_cache_get(self->cache[process], &get->request, belay_string(self->key), on_got));
}

static void on_changed(belay_request_t *request, int status, bool applied) {
  change_t *change = request->data;
  orders_t *self = change->orders;
  sim_note(self->base.world, self->base.world->process[change->process].name, "%s %u -> %s%s",
           change->is_put ? "put" : "invalidate", change->version, belay_err_name(status),
           applied ? "" : ", not applied");
  change->ended = ++self->moment;
  change->at = self->base.world->now;
  change->acknowledged = status == 0;
  if (++change->callbacks != 1)
    violate(self, "callbacks", "a change calls back twice", change->process, change->version);
  if (status != 0 && !may_fail(self, status))
    violate(self, "callbacks", belay_err_name(status), change->process, change->version);
}

static void take_change(orders_t *self, unsigned process, char step) {
  change_t *change = &self->change[self->changes++];
  belay_cache_t *cache = self->cache[process];
  char text[24];
  *change = (change_t){.orders = self,
                       .process = process,
                       .version = ++self->version,
                       .is_put = step == 'P',
                       .is_tag = step == 'T',
                       .called = ++self->moment};
  change->request.data = change;
  size_t len = strlen(self->key);
  int error;
  if (step == 'P') {
    int n = snprintf(text, sizeof text, "p%u", change->version);
    error = belay_cache_put(cache, &change->request, belay_bytes(self->key, len),
                            belay_bytes(text, (size_t)n), BELAY_DEFAULT, on_changed);
  } else if (step == 'T') {
    int n = snprintf(text, sizeof text, "t%s", self->key);
    error = belay_cache_invalidate_tag(cache, &change->request, belay_bytes(text, (size_t)n),
                                       on_changed);
  } else {
    error =
        belay_cache_invalidate(cache, &change->request, belay_bytes(self->key, len), on_changed);
  }
  expect_0(self, process, error);
}

static load_t *oldest(orders_t *self, unsigned process) {
  for (unsigned i = 0; i < self->loads; i++)
    if (self->load[i].load != NULL && self->load[i].process == process)
      return &self->load[i];
  return NULL;
}

static void end(orders_t *self, load_t *load, bool well) {
  belay_cache_load_t *ended = load->load;
  char text[16];
  int n = snprintf(text, sizeof text, "v%u", load->version);
  load->load = NULL;
  self->failed |= !well;
  expect_0(self, load->process,
           well ? belay_cache_load_done(ended, belay_bytes(text, (size_t)n))
                : belay_cache_load_failed(ended, 7));
}

static void on_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  orders_t *self = sim_orders_current;
  unsigned process = arg == &self->cache[0] ? 0 : 1;
  if (*key == 'x') {
    (void)belay_cache_load_absent(load);
    return;
  }
  if (self->loads == LOADS || key_len != strlen(self->key) ||
      memcmp(key, self->key, key_len) != 0) {
    violate(self, "callbacks", "a load of another key", process, 0);
    (void)belay_cache_load_failed(load, 1);
    return;
  }
  sim_note(self->base.world, self->base.world->process[process].name, "loads %u", self->version);
  load_t *mine = &self->load[self->loads++];
  *mine = (load_t){.load = load, .process = process, .version = self->version};
  if (self->ends_at_once)
    end(self, mine, true);
}

static size_t on_tags(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                      void *arg) {
  static char tag[20];
  (void)arg;
  int n = snprintf(tag, sizeof tag, "t%.*s", (int)key_len, key);
  tags[0] = (belay_bytes_t){tag, (size_t)n};
  return 1;
}

static void evict(orders_t *self, char step) {
  char key[64];
  snprintf(key, sizeof key, "belay::cache::o::{%s%s}%s", step == 'Y' ? "t" : "", self->key,
           step == 'R'   ? ""
           : step == 'N' ? "::gen"
                         : "::tag");
  const char *const words[] = {"DEL", key};
  sim_server_command(&self->base.world->server[0], words, 2);
}

static bool can_step(sim_subject_t *subject, unsigned process) {
  orders_t *self = (orders_t *)subject;
  char step = self->steps[process][self->taken[process]];
  return step != '\0' && ((step != 'E' && step != 'F') || oldest(self, process) != NULL);
}

static void on_filler(belay_request_t *request, int status, const belay_cache_result_t *result) {
  (void)status, (void)result;
  request->data = NULL;
}

/* Gets other keys, which do not exist. */
static void take_fillers(orders_t *self, unsigned process) {
  for (unsigned i = 0; i < FILLERS; i++) {
    char key[16];
    int n = snprintf(key, sizeof key, "x%u", i);
    self->filler[i] = (belay_request_t){.data = self};
    expect_0(self, process,
             belay_cache_get(self->cache[process], &self->filler[i], belay_bytes(key, (size_t)n),
                             on_filler));
  }
}

/* The second get follows the invalidation on the connection. */
static void take_three(orders_t *self, unsigned process) {
  take_fillers(self, process);
  take_get(self, process);
  take_change(self, process, 'I');
  take_get(self, process);
  if (!self->base.lossy)
    self->get[self->gets - 1].acknowledged |= 1u << (self->changes - 1);
}

static void take_step(sim_subject_t *subject, unsigned process) {
  orders_t *self = (orders_t *)subject;
  char step = self->steps[process][self->taken[process]++];
  sim_note(subject->world, subject->world->process[process].name, "step %c", step);
  if (step == 'G')
    take_get(self, process);
  else if (step == 'B')
    take_three(self, process);
  else if (step == 'E' || step == 'F')
    end(self, oldest(self, process), step == 'E');
  else if (step == 'W')
    sim_orders_wait(subject->world, SIM_WAITS);
  else if (strchr("ITP", step) != NULL)
    take_change(self, process, step);
  else
    evict(self, step);
}

/* ---- worlds ---- */

static void begin_key(orders_t *self) {
  snprintf(self->key, sizeof self->key, "k%u;", self->keys++);
  self->version = self->moment = self->gets = self->changes = self->loads = 0;
  self->taken[0] = self->taken[1] = 0;
  self->failed = self->base.lost = self->ends_at_once = false;
}

static bool is_idle(const orders_t *self) {
  bool idle = true;
  for (unsigned i = 0; i < self->gets; i++)
    idle &= self->get[i].callbacks > 0;
  for (unsigned i = 0; i < self->changes; i++)
    idle &= self->change[i].callbacks > 0;
  for (unsigned i = 0; i < PAIR; i++) {
    belay_cache_stats_t stats;
    belay_cache_stats(self->cache[i], &stats);
    idle &= stats.loading == 0;
  }
  for (unsigned i = 0; i < FILLERS; i++)
    idle &= self->filler[i].data == NULL;
  return idle;
}

/* All ends that has begun. */
static void drain(orders_t *self) {
  sim_world_t *world = self->base.world;
  uint64_t until = world->now + DRAINED;
  self->ends_at_once = true;
  for (;;) {
    for (unsigned i = 0; i < PAIR; i++) {
      sim_current = &world->process[i];
      for (load_t *load; (load = oldest(self, i)) != NULL;)
        end(self, load, true);
      sim_current = NULL;
    }
    sim_orders_settle(world);
    if (world->failed || is_idle(self))
      return;
    if (world->now > until) {
      violate(self, "liveness", "something is pending, and nothing happens", 0, 0);
      return;
    }
    sim_orders_wait(world, PATIENCE);
  }
}

static void ask_once_more(orders_t *self) {
  for (unsigned i = 0; i < PAIR; i++) {
    sim_current = &self->base.world->process[i];
    take_get(self, i);
    sim_current = NULL;
    drain(self);
  }
}

static void make_cache(orders_t *self, unsigned process) {
  const sim_config_t *config = self->part->config;
  belay_cache_options_t options;
  belay_cache_options_init(&options);
  options.name = belay_string("o");
  options.load = on_load;
  options.tags = config->tags ? on_tags : NULL;
  options.arg = &self->cache[process];
  options.lock = config->lock;
  options.ttl_ms = config->ttl_ms;
  options.jitter_percent = 0;
  options.stale_ms = config->stale_ms;
  options.keep_ms = config->stale_ms;
  options.local_bytes = config->local_ttl_ms > 0 ? 1 << 20 : 0;
  options.local_ttl_ms = config->local_ttl_ms > 0 ? config->local_ttl_ms : options.local_ttl_ms;
  options.quiet = config->quiet;
  expect_0(self, process,
           belay_cache_new(self->base.world->process[process].client[0], &options,
                           &self->cache[process]));
}

/* Two processes with a cache each, which are connected, and whose scripts the server knows. */
static void open_world(orders_t *self) {
  sim_world_t *world = self->base.world;
  sim_world_open(world);
  world->server[0].secretive = self->part->ghosts;
  for (unsigned i = 0; i < PAIR; i++) {
    sim_process_start(&world->process[i]);
    sim_current = &world->process[i];
    make_cache(self, i);
    sim_current = NULL;
  }
  for (unsigned i = 0; i < PAIR && !world->failed; i++) {
    begin_key(self);
    ask_once_more(self);
    sim_current = &world->process[i];
    take_change(self, i, 'P');
    sim_current = NULL;
    drain(self);
  }
}

static void close_world(orders_t *self, bool gracefully, sim_figures_t *figures) {
  sim_world_t *world = self->base.world;
  if (!world->failed)
    sim_check_regularly(world);
  for (unsigned i = 0; i < PAIR && gracefully && !world->failed; i++)
    sim_process_close(&world->process[i]);
  sim_orders_wait(world, gracefully ? 3 * SIM_S : 0);
  for (unsigned i = 0; i < PAIR && gracefully && !world->failed; i++)
    if (world->process[i].life != SIM_DOWN)
      violate(self, "liveness", "it is not closed", i, 0);
  sim_world_close(world);
  sim_figures_add(figures, &world->figures);
  bool failed = world->failed;
  char verdict[sizeof world->verdict];
  memcpy(verdict, world->verdict, sizeof verdict);
  *world =
      (sim_world_t){.scenario = world->scenario, .seed = world->seed, .timeline = world->timeline};
  world->failed = failed;
  memcpy(world->verdict, verdict, sizeof verdict);
}

/* ---- a part ---- */

/* Everything is over before the next step: the world lasts. */
static void run_steps(orders_t *self) {
  self->search = (sim_search_t){0};
  do {
    begin_key(self);
    sim_orders_follow(&self->search, &self->base);
    drain(self);
    ask_once_more(self);
  } while (!self->base.world->failed && sim_orders_advance(&self->search));
}

/* Commands and answers too: a world for each run, so that it is the same each time. */
static void run_calls(orders_t *self, sim_figures_t *figures) {
  sim_world_t *world = self->base.world;
  self->search = (sim_search_t){0};
  do {
    self->keys = 0;
    open_world(self);
    begin_key(self);
    self->base.lossy = self->part->lossy;
    sim_orders_hold(world, true);
    bool whole = sim_orders_follow(&self->search, &self->base);
    sim_orders_hold(world, false);
    if (whole) {
      drain(self);
      ask_once_more(self);
    }
    close_world(self, whole && self->search.runs % GRACEFULLY == 1, figures);
  } while (!world->failed && self->search.runs < SIM_CALLS_MAX &&
           sim_orders_advance(&self->search));
}

bool sim_orders_run(sim_world_t *world, sim_figures_t *figures, char *verdict,
                    size_t verdict_size) {
  orders_t *self = sim_alloc(sizeof *self);
  sim_part_t part;
  uint64_t runs = 0;
  sim_part_find(world->seed, &part);
  self->base = (sim_subject_t){
      .world = world, .can_step = can_step, .step = take_step, .mark = sim_orders_mark};
  self->part = &part;
  sim_orders_current = self;
  if (!part.calls)
    open_world(self);
  for (bool more = true; more && !world->failed; more = sim_part_next(&part)) {
    self->puts = strchr(part.steps[0], 'P') != NULL || strchr(part.steps[1], 'P') != NULL;
    for (unsigned i = 0; i < PAIR; i++)
      self->steps[i] = part.steps[i];
    if (part.calls)
      run_calls(self, figures);
    else
      run_steps(self);
    runs += self->search.runs;
  }
  if (!part.calls)
    close_world(self, true, figures);
  figures->runs++;
  figures->violations += world->failed;
  figures->orders += runs;
  if (verdict != NULL)
    snprintf(verdict, verdict_size, "%s", world->verdict);
  bool failed = world->failed;
  free(self);
  return !failed;
}

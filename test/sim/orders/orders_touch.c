/* Orders of two processes' operations on a cache: the state that each act touches, and the
 * servers' commands. */
#include <string.h>

#include "sim/actors/actor.h"
#include "sim/orders/orders_cache.h"
#include "sim/world/server.h"

/* ---- what acts touch ---- */

enum { RECORD = 1, TAG = 2, LEASE = 4, CHANNEL = 8, SOURCE = 16, NOTIFIED = 32 };

static bool has(engine_bytes_t word, const char *text) {
  return memmem(word.at, word.len, text, strlen(text)) != NULL;
}

static uint8_t part_of(engine_bytes_t key) {
  return has(key, "::tag")        ? TAG
         : has(key, "::lease")    ? LEASE
         : has(key, "}::dropped") ? CHANNEL
                                  : RECORD;
}

static void mark_command(sim_act_t *act, const engine_bytes_t *argv, size_t argc) {
  bool reads = has(argv[0], "GET");
  if (has(argv[0], "EVAL")) {
    act->touches = part_of(argv[3]);
    for (size_t i = 4; i < argc; i++)
      act->touches |= has(argv[i], "PUBLISH") ? CHANNEL : 0;
  } else {
    act->touches = part_of(argv[1]);
  }
  act->changes = reads ? 0 : act->touches;
}

/* A step may read results and change the source; a reply may end a change and begin a load. */
void sim_orders_mark(sim_subject_t *subject, sim_act_t *act, const engine_bytes_t *argv,
                     size_t argc) {
  const orders_t *self = (orders_t *)subject;
  char step = self->steps[act->process][self->taken[act->process]];
  switch (act->kind) {
  case SIM_ACT_STEP:
    act->touches = step == 'G' || step == 'B' || (step == 'P' || self->puts) ? NOTIFIED : 0;
    act->changes = strchr("BITP", step) != NULL ? SOURCE : strchr("RNYW", step) != NULL ? 255 : 0;
    break;
  case SIM_ACT_ANSWER:
    for (unsigned i = 0; i < self->gets; i++)
      if (self->get[i].process == act->process && self->get[i].callbacks == 0)
        act->touches = SOURCE;
    for (unsigned i = 0; i < self->changes; i++)
      if (self->change[i].process == act->process && self->change[i].callbacks == 0)
        act->changes = NOTIFIED;
    break;
  case SIM_ACT_EXECUTE:
    mark_command(act, argv, argc);
    break;
  case SIM_ACT_LOSE:
    break;
  }
  act->touches |= act->changes;
}

/* ---- what servers execute ---- */

static bool is_about(const orders_t *self, const engine_bytes_t *argv, size_t argc) {
  size_t len = strlen(self->key);
  for (size_t i = 1; i < argc && i < 4; i++)
    if (memmem(argv[i].at, argv[i].len, self->key, len) != NULL)
      return true;
  return false;
}

/* The first of its kind, of a change of that process's: begin, a tag, DEL. */
static void on_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                        engine_bytes_t reply) {
  orders_t *self = sim_orders_current;
  bool evaluates = has(argv[0], "EVAL"), captures = evaluates && argc == 6;
  bool removes = has(argv[0], "DEL"), begins = evaluates && argc == 8;
  (void)reply;
  if ((!removes && !begins && !captures) || !is_about(self, argv, argc))
    return;
  for (unsigned i = 0; i < self->changes; i++) {
    change_t *change = &self->change[i];
    unsigned *moment = captures ? &change->captured : &change->executed;
    if (change->process != server->from || *moment != 0 || change->is_put == removes)
      continue;
    *moment = ++self->moment;
    return;
  }
}

const sim_actor_type_t sim_orders_type = {.size = sizeof(sim_actor_t), .executed = on_executed};

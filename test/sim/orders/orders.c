#include "sim/orders/orders.h"

#include <stdlib.h>
#include <string.h>

#include "sim/world/process.h"
#include "sim/scenarios/scenario.h"
#include "sim/world/server.h"

#define AT_ONCE (500 * SIM_US)     /* more than a segment travels, less than any timer waits */
#define RECONNECTED (300 * SIM_MS) /* within this a connection that was lost is another one */

/* ---- the world's time ---- */

void sim_orders_settle(sim_world_t *world) {
  while (!world->failed && sim_world_turn(world, world->now + AT_ONCE)) {
  }
}

void sim_orders_wait(sim_world_t *world, uint64_t ns) {
  uint64_t until = world->now + ns;
  while (!world->failed && sim_world_turn(world, until)) {
  }
  world->now = until;
}

void sim_orders_hold(sim_world_t *world, bool on) {
  world->held = on;
  if (on)
    return;
  sim_net_let_all(world->net);
  for (unsigned i = 0; i < world->scenario->servers; i++)
    sim_server_let_all(&world->server[i]);
  sim_orders_settle(world);
}

/* ---- what can come next ---- */

static bool is_live(const sim_conn_t *conn) {
  return conn->process != NULL || conn->accepted;
}

/* Connections stand in the order in which they were made. */
static sim_conn_t *conn_at(sim_world_t *world, unsigned process, unsigned conn) {
  for (belay__list_t *i = world->net->conns.next; i != &world->net->conns; i = i->next) {
    sim_conn_t *found = BELAY__CONTAINER(i, sim_conn_t, node);
    if (found->process_index == process && is_live(found) && conn-- == 0)
      return found;
  }
  return NULL;
}

static void add(sim_subject_t *subject, sim_choice_t *choice, sim_act_t act) {
  static engine_bytes_t argv[ENGINE_ARGS_MAX];
  size_t argc = 0;
  if (choice->len == SIM_CHOICES)
    abort();
  if (act.kind == SIM_ACT_EXECUTE)
    argc = sim_server_next(conn_at(subject->world, act.process, act.conn), argv);
  subject->mark(subject, &act, argv, argc);
  choice->act[choice->len++] = act;
}

static void collect(sim_subject_t *subject, sim_choice_t *choice) {
  static engine_bytes_t argv[ENGINE_ARGS_MAX];
  sim_world_t *world = subject->world;
  for (uint8_t i = 0; i < world->scenario->processes; i++) {
    if (subject->can_step(subject, i))
      add(subject, choice, (sim_act_t){.kind = SIM_ACT_STEP, .process = i});
    sim_conn_t *conn;
    for (uint8_t j = 0; world->held && (conn = conn_at(world, i, j)) != NULL; j++) {
      bool command = sim_server_next(conn, argv) > 0, answer = sim_conn_has_answer(conn);
      if (command)
        add(subject, choice, (sim_act_t){.kind = SIM_ACT_EXECUTE, .process = i, .conn = j});
      if (answer)
        add(subject, choice, (sim_act_t){.kind = SIM_ACT_ANSWER, .process = i, .conn = j});
      if (subject->lossy && !subject->lost && (command || answer) && conn->process != NULL)
        add(subject, choice, (sim_act_t){.kind = SIM_ACT_LOSE, .process = i, .conn = j});
    }
  }
}

static void perform(sim_subject_t *subject, sim_act_t act) {
  sim_world_t *world = subject->world;
  sim_conn_t *conn = conn_at(world, act.process, act.conn);
  switch (act.kind) {
  case SIM_ACT_STEP:
    sim_current = &world->process[act.process];
    subject->step(subject, act.process);
    sim_current = NULL;
    break;
  case SIM_ACT_EXECUTE:
    sim_server_let_command(conn);
    break;
  case SIM_ACT_ANSWER:
    sim_conn_let_answer(conn);
    break;
  case SIM_ACT_LOSE:
    subject->lost = true;
    sim_conn_break(conn);
    sim_orders_wait(world, RECONNECTED);
    break;
  }
  sim_orders_settle(world);
}

/* ---- the search ---- */

static bool is_same(sim_act_t a, sim_act_t b) {
  return a.kind == b.kind && a.process == b.process && a.conn == b.conn;
}

/* Whether it matters which of the two comes first. */
static bool depend(sim_act_t a, sim_act_t b) {
  if (a.kind == SIM_ACT_LOSE || b.kind == SIM_ACT_LOSE)
    return true;
  if ((a.changes & b.touches) != 0 || (b.changes & a.touches) != 0)
    return true;
  return a.kind != SIM_ACT_EXECUTE && b.kind != SIM_ACT_EXECUTE && a.process == b.process;
}

/* True if the act was tried before and is independent of the acts since. */
static bool sleeps(const sim_choice_t *before, sim_act_t act) {
  for (unsigned i = 0; i < before->len; i++)
    if (before->done[i] && is_same(before->act[i], act))
      return !depend(before->act[before->at], act);
  return false;
}

/* The first that is left; false: none is. */
static bool choose(sim_choice_t *choice) {
  for (choice->at = 0; choice->at < choice->len; choice->at++)
    if (!choice->done[choice->at])
      return true;
  return false;
}

bool sim_orders_follow(sim_search_t *search, sim_subject_t *subject) {
  search->runs++;
  for (search->at = 0; !subject->world->failed; search->at++) {
    sim_choice_t *choice = &search->choice[search->at];
    if (search->at == search->depth) {
      *choice = (sim_choice_t){0};
      collect(subject, choice);
      for (unsigned i = 0; search->at > 0 && i < choice->len; i++)
        choice->done[i] = sleeps(choice - 1, choice->act[i]);
      if (choice->len == 0)
        return true;
      if (search->depth == SIM_ACTS)
        abort(); /* a cut search would not be exhaustive */
      if (!choose(choice))
        return false;
      search->depth++;
    }
    perform(subject, choice->act[choice->at]);
  }
  return true;
}

bool sim_orders_advance(sim_search_t *search) {
  for (; search->depth > 0; search->depth--) {
    sim_choice_t *choice = &search->choice[search->depth - 1];
    choice->done[choice->at] = true;
    if (choose(choice))
      return true;
  }
  return false;
}

void sim_orders_tell(const sim_search_t *search, char *text, size_t size) {
  size_t n = 0;
  text[0] = '\0';
  for (unsigned i = 0; i < search->at && i < search->depth && n + 8 < size; i++) {
    const sim_choice_t *choice = &search->choice[i];
    sim_act_t act = choice->act[choice->at];
    n += (size_t)snprintf(text + n, size - n, " %c%u", "peax"[act.kind], act.process);
  }
}

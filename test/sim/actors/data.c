#include "sim/actors/data.h"

#include <stdlib.h>
#include <string.h>

enum { ASK };

static sim_data_hand_t *of(sim_hand_t *base) {
  return (sim_data_hand_t *)base;
}

static sim_data_t *ledger_of(sim_world_t *world) {
  return sim_ledger(world, sizeof(sim_data_t));
}

sim_data_t *sim_data_of(const sim_data_hand_t *hand) {
  return ledger_of(sim_world_of(&hand->base));
}

sim_data_ask_t *sim_data_asked(const sim_data_hand_t *hand) {
  return &sim_data_of(hand)->ask[hand->ask];
}

/* ---- rules ---------------------------------------------------------------------------------------------- */

static void executed(sim_server_t *server, unsigned number) {
  sim_data_t *data = ledger_of(server->world);
  sim_data_ask_t *ask = &data->ask[number];
  const char *wrong = NULL;
  if (ask->unsent)
    wrong = "and who asked was told that it was not sent, or refused";
  if (ask->executed > 0 && (ask->craft->how & SIM_ONCE) != 0)
    wrong = "for the second time";
  if (wrong != NULL)
    sim_violation(server->world, "truth: %s executes %s #%u %s", server->name, ask->craft->name,
                  number, wrong);
  if (ask->executed++ == 0 && ask->craft->executed != NULL)
    ask->craft->executed(data, ask);
}

/* Finds the next tag in a word, from there on; 0: there is none. */
static unsigned next_tag(engine_word_t word, size_t *at) {
  for (; *at < word.len; ++*at) {
    size_t end = *at + 1;
    unsigned number = 0;
    if (word.at[*at] != '#')
      continue;
    for (; end < word.len && end < *at + 7 && word.at[end] >= '0' && word.at[end] <= '9'; end++)
      number = number * 10 + (unsigned)(word.at[end] - '0');
    if (end == *at + 1 || end == word.len || word.at[end] != '#' || number >= SIM_DATA_ASKS)
      continue;
    *at = end + 1;
    return number;
  }
  return 0;
}

static void on_executed(sim_server_t *server, const engine_word_t *argv, size_t argc,
                        engine_word_t reply) {
  const sim_data_t *data = ledger_of(server->world);
  unsigned last = 0;
  if (reply.len == 0 || reply.at[0] == '-')
    return;
  for (size_t i = 1; i < argc; i++) {
    size_t at = 0;
    if (i == 2 && argv[0].len == 4 && memcmp(argv[0].at, "EVAL", 4) == 0)
      continue;
    for (unsigned number; (number = next_tag(argv[i], &at)) != 0;) {
      if (number <= data->asks && number != last)
        executed(server, number);
      last = number; /* which may be in it several times */
    }
  }
}

const char *sim_data_given(sim_data_hand_t *hand, int64_t id) {
  uint64_t *ids = sim_data_of(hand)->ids;
  if (id < 1 || id >= SIM_DATA_IDS)
    return "an id that nobody can have been given";
  uint64_t bit = UINT64_C(1) << id % 64;
  bool taken = (ids[id / 64] & bit) != 0;
  ids[id / 64] |= bit;
  if (taken)
    return "an id that was given to somebody";
  if (id <= hand->last)
    return "an id that is less than the one before";
  hand->last = id;
  return NULL;
}

/* ---- what it is told ------------------------------------------------------------------------------------ */

static void false_to(const sim_data_hand_t *hand, int status, const char *what) {
  sim_world_t *world = sim_world_of(&hand->base);
  sim_violation(world, "truth: %s, %s #%u is told %s: %s", hand->base.who, hand->craft->name,
                hand->ask, belay_err_name(status), what);
}

static void judge(sim_data_hand_t *hand, int status, const char *wrong) {
  sim_data_ask_t *ask = sim_data_asked(hand);
  if (status == 0 && wrong != NULL)
    false_to(hand, status, wrong);
  if (status == 0 && ask->executed == 0 && (hand->craft->how & SIM_SILENT) == 0)
    false_to(hand, status, "and no server has done it");
  if (status == 0) {
    sim_hand_granted(&hand->base);
  } else if (status == BELAY_EUNKNOWN || status == BELAY_ECANCELED) {
    ask->maybe = true;
  } else if (!ask->maybe) {
    ask->unsent = true;
    if (ask->executed > 0)
      false_to(hand, status, "and a server has executed it");
  }
}

void sim_data_told(sim_data_hand_t *hand, int status, const char *wrong) {
  sim_hand_t *base = &hand->base;
  sim_hand_kept(base, ASK, status);
  if (status == BELAY_ETIMEDOUT && (hand->craft->how & SIM_SILENT) == 0)
    sim_violation(sim_world_of(base), "callbacks: %s: %s must not time out", base->who,
                  hand->craft->name);
  judge(hand, status, wrong);
  base->cured |= base->healing && status == 0;
  hand->again = status == BELAY_EUNKNOWN && (hand->craft->how & SIM_AGAIN) != 0 ? hand->ask : 0;
  hand->ask = 0;
}

void sim_data_closed(sim_data_hand_t *hand) {
  hand->handle = NULL;
  hand->again = hand->known = 0;
  sim_hand_closed(&hand->base);
}

/* ---- what it does --------------------------------------------------------------------------------------- */

static const sim_craft_t *choose(sim_hand_t *base) {
  const sim_scenario_t *scenario = sim_world_of(base)->scenario;
  size_t len, i = 0;
  const sim_craft_t *crafts = sim_crafts(scenario->kind, &len);
  if (scenario->craft == NULL)
    return &crafts[sim_hand_between(base, 0, len - 1)];
  while (strcmp(crafts[i].name, scenario->craft) != 0)
    i++;
  return &crafts[i];
}

static void make(sim_data_hand_t *hand) {
  sim_hand_t *base = &hand->base;
  hand->craft = choose(base);
  hand->last = 0;
  hand->known = hand->again = 0;
  sim_hand_enter(base);
  int error = hand->craft->make(hand);
  if (!sim_hand_leave(base, hand->craft->name, error, 0))
    hand->handle = NULL;
}

static void close_it(sim_data_hand_t *hand) {
  sim_hand_enter(&hand->base);
  sim_hand_close(&hand->base, hand->craft->close(hand));
}

/* A new one, or one that is to be asked for again; 0: there are no numbers left. */
static unsigned number(sim_data_hand_t *hand) {
  sim_hand_t *base = &hand->base;
  sim_data_t *data = sim_data_of(hand);
  unsigned most = base->healing ? SIM_DATA_ASKS : SIM_DATA_ASKS - SIM_DATA_ASKS / 16;
  if (hand->again != 0 && sim_hand_chance(base, 700))
    return hand->again;
  if (data->asks + 1 >= most)
    return 0;
  unsigned number = ++data->asks;
  data->ask[number].craft = hand->craft;
  data->ask[number].key = (uint8_t)sim_hand_between(base, 0, SIM_DATA_KEYS - 1);
  return number;
}

static void ask(sim_data_hand_t *hand) {
  sim_hand_t *base = &hand->base;
  char tag[16];
  hand->ask = number(hand);
  if (hand->ask == 0)
    return;
  int len = snprintf(tag, sizeof tag, "#%u#", hand->ask);
  hand->request = sim_hand_request(base);
  sim_data_ask_t *asked = sim_data_asked(hand);
  sim_hand_enter(base);
  int error = hand->craft->ask(hand, asked, tag, (size_t)len);
  if (sim_hand_leave(base, tag, error, BELAY_EBUSY)) {
    sim_hand_promise(base, ASK, hand->request.timeout_ms);
    return;
  }
  asked->unsent |= !asked->maybe;
  hand->ask = 0;
}

static void act(sim_hand_t *base) {
  sim_data_hand_t *hand = of(base);
  if (sim_hand_is_closing(base))
    return;
  if (hand->handle == NULL)
    make(hand);
  else if (!base->healing && sim_hand_chance(base, 10))
    close_it(hand);
  else if (!base->promise[ASK].pending)
    ask(hand);
  else if (!base->healing && sim_hand_chance(base, 30))
    sim_hand_cancel_request(base, ASK, &hand->request);
  sim_hand_think(base);
}

const sim_trade_t sim_data_trade = {
    .size = sizeof(sim_data_hand_t),
    .op = {"question", "close"},
    .ends = {[ASK] = {BELAY_ETIMEDOUT}},
    .act = act,
    .executed = on_executed,
};

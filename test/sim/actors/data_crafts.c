/* The crafts of data.c: what is asked of each kind of handle, and what may be told. */
#include <belay/counter.h>
#include <belay/dedup.h>
#include <belay/idempotency.h>
#include <belay/idgen.h>
#include <belay/ranking.h>
#include <string.h>

#include "sim/actors/data.h"

static const char *const keys[SIM_DATA_KEYS] = {"k0", "k1", "k2"};

static belay_client_t *client_of(const sim_data_hand_t *hand) {
  return hand->base.process->client[0];
}

/* ---- counters -------------------------------------------------------------------------------------------- */

static void on_counter_closed(belay_counter_t *counter, void *data) {
  (void)counter;
  sim_data_closed(data);
}

static int make_counter(sim_data_hand_t *hand) {
  belay_counter_options_t options;
  belay_counter_options_init(&options);
  options.ttl_ms = 3600000;
  options.data = hand;
  return belay_counter_new(client_of(hand), &options, (belay_counter_t **)&hand->handle);
}

static int make_counter_of_operations(sim_data_hand_t *hand) {
  belay_counter_options_t options;
  belay_counter_options_init(&options);
  options.name = "ops";
  options.name_len = 3;
  options.ttl_ms = 3600000;
  options.extend = true;
  options.max_ops = BELAY_COUNTER_OPS_MAX;
  options.data = hand;
  return belay_counter_new(client_of(hand), &options, (belay_counter_t **)&hand->handle);
}

static int close_counter(sim_data_hand_t *hand) {
  return belay_counter_close(hand->handle, on_counter_closed);
}

/* The key is its own: so what it is told is what it has added. */
static void on_added(belay_request_t *request, int status, const belay_counter_result_t *result) {
  sim_data_hand_t *hand = request->data;
  bool right = status != 0 || result->value == hand->ask;
  sim_data_told(hand, status, right ? NULL : "another sum");
}

static int ask_add(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag, size_t len) {
  (void)ask;
  return belay_counter_add(hand->handle, &hand->request, tag, len, hand->ask, on_added);
}

static void count_once(sim_data_t *data, sim_data_ask_t *ask) {
  ask->value = ++data->sum[ask->key];
}

static void count_operation(sim_data_t *data, sim_data_ask_t *ask) {
  ask->value = ++data->operations[ask->key];
}

static void on_added_once(belay_request_t *request, int status,
                          const belay_counter_result_t *result) {
  sim_data_hand_t *hand = request->data;
  bool right = status != 0 || result->value == sim_data_asked(hand)->value;
  sim_data_told(hand, status, right ? NULL : "another sum than at the first time");
}

static int ask_add_once(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                        size_t len) {
  return belay_counter_add_once(hand->handle, &hand->request, keys[ask->key], 2, 1, tag, len,
                                on_added_once);
}

static const sim_craft_t add = {
    .name = "add", .once = true, .make = make_counter, .close = close_counter, .ask = ask_add};
static const sim_craft_t add_once = {.name = "add once",
                                     .again = true,
                                     .make = make_counter,
                                     .close = close_counter,
                                     .ask = ask_add_once,
                                     .executed = count_once};
static const sim_craft_t add_operation = {.name = "add operation",
                                          .again = true,
                                          .make = make_counter_of_operations,
                                          .close = close_counter,
                                          .ask = ask_add_once,
                                          .executed = count_operation};

/* ---- dedup ----------------------------------------------------------------------------------------------- */

static void on_dedup_closed(belay_dedup_t *dedup, void *data) {
  (void)dedup;
  sim_data_closed(data);
}

static int make_dedup(sim_data_hand_t *hand, belay_dedup_kind_t kind) {
  belay_dedup_options_t options;
  belay_dedup_options_init(&options);
  options.kind = kind;
  options.name = kind == BELAY_DEDUP_SET ? "set" : "window";
  options.name_len = strlen(options.name);
  options.data = hand;
  return belay_dedup_new(client_of(hand), &options, (belay_dedup_t **)&hand->handle);
}

static int make_set(sim_data_hand_t *hand) {
  return make_dedup(hand, BELAY_DEDUP_SET);
}

static int make_window(sim_data_hand_t *hand) {
  return make_dedup(hand, BELAY_DEDUP_WINDOW);
}

static int close_dedup(sim_data_hand_t *hand) {
  return belay_dedup_close(hand->handle, on_dedup_closed);
}

/* Nobody else marks that one. */
static void on_mark(belay_request_t *request, int status, belay_dedup_verdict_t verdict) {
  bool right = status != 0 || verdict == BELAY_DEDUP_NEW;
  sim_data_told(request->data, status, right ? NULL : "that it was seen, because of its own try");
}

static int ask_mark(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag, size_t len) {
  return belay_dedup_mark(hand->handle, &hand->request, keys[ask->key], 2, tag, len, on_mark);
}

static void on_marked(belay_request_t *request, int status, const belay_dedup_verdict_t *verdicts,
                      size_t n) {
  bool right = status != 0 || (n == 2 && verdicts[0] == BELAY_DEDUP_NEW);
  sim_data_told(request->data, status, right ? NULL : "that it was seen, because of its own try");
}

static int ask_mark_once(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                         size_t len) {
  const belay_bytes_t items[] = {{tag, len}, {keys[hand->ask % SIM_DATA_KEYS], 2}};
  return belay_dedup_mark_once(hand->handle, &hand->request, keys[ask->key], 2, items, 2, tag, len,
                               on_marked);
}

static const sim_craft_t mark = {
    .name = "mark", .once = true, .make = make_set, .close = close_dedup, .ask = ask_mark};
static const sim_craft_t mark_window = {
    .name = "window", .once = true, .make = make_window, .close = close_dedup, .ask = ask_mark};
static const sim_craft_t mark_once = {.name = "mark once",
                                      .again = true,
                                      .make = make_set,
                                      .close = close_dedup,
                                      .ask = ask_mark_once};
static const sim_craft_t mark_window_once = {.name = "window once",
                                             .again = true,
                                             .make = make_window,
                                             .close = close_dedup,
                                             .ask = ask_mark_once};

/* ---- idempotency records --------------------------------------------------------------------------------- */

/* Records that several begin, of whom one at a time has it, and one result is ever seen. `known` is the record that is
 * ours, by our token. */
enum { RECORDS = 400 };

static void on_records_closed(belay_idempotency_t *records, void *data) {
  (void)records;
  sim_data_closed(data);
}

static int make_records(sim_data_hand_t *hand) {
  belay_idempotency_options_t options;
  belay_idempotency_options_init(&options);
  options.deadline_ms = 30; /* so that many are taken over */
  options.data = hand;
  return belay_idempotency_new(client_of(hand), &options, (belay_idempotency_t **)&hand->handle);
}

static int close_records(sim_data_hand_t *hand) {
  return belay_idempotency_close(hand->handle, on_records_closed);
}

static const char *check_result(sim_data_hand_t *hand, unsigned record,
                                const belay_idempotency_state_t *state) {
  int64_t *done = &sim_data_of(hand)->done[record], result;
  if (state->result_len != sizeof result)
    return "a result that nobody brought";
  memcpy(&result, state->result, sizeof result);
  if (*done != 0 && *done != result)
    return "another result than others were told";
  *done = result;
  return NULL;
}

static void on_begun(belay_request_t *request, int status, const belay_idempotency_state_t *state) {
  sim_data_hand_t *hand = request->data;
  const char *wrong = NULL;
  unsigned record = (unsigned)hand->last;
  _Static_assert(sizeof state->token <= sizeof hand->token, "it has room");
  if (status == 0 && state->outcome == BELAY_IDEMPOTENCY_DONE) {
    wrong = check_result(hand, record, state);
  } else if (status == 0 && (state->outcome == BELAY_IDEMPOTENCY_STARTED ||
                             state->outcome == BELAY_IDEMPOTENCY_TAKEN_OVER)) {
    if (sim_data_of(hand)->done[record] != 0 && state->remaining_ms > 0) /* 0: he is late */
      wrong = "to begin what is done";
    hand->known = record;
    hand->attempt = state->attempt;
    memcpy(hand->token, &state->token, sizeof state->token);
  }
  sim_data_told(hand, status, wrong);
}

/* It is ours to finish, or it is not any more; but not done with another result and ours too, and not if somebody has
 * begun it after us. */
static void on_finished(belay_request_t *request, int status,
                        const belay_idempotency_state_t *state) {
  sim_data_hand_t *hand = request->data;
  unsigned record = (unsigned)hand->last;
  int64_t *done = &sim_data_of(hand)->done[record];
  const char *wrong = NULL;
  if (status == 0 && *done != 0 && *done != (int64_t)hand->ask)
    wrong = "that its result is there, and others were told another one";
  if (status == 0 && state->attempt != hand->attempt)
    wrong = "that its result is there, and it was taken over";
  if (status == 0)
    *done = (int64_t)hand->ask;
  if (status == BELAY_ENOTOWNER && state->outcome == BELAY_IDEMPOTENCY_DONE)
    wrong = check_result(hand, record, state);
  sim_data_told(hand, status == BELAY_ENOTOWNER ? 0 : status, wrong);
}

static int ask_record(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                      size_t len) {
  char key[16];
  int64_t result = hand->ask;
  (void)ask, (void)tag, (void)len;
  hand->last = hand->known != 0 ? hand->known : 1 + hand->ask / 8 % RECORDS;
  int key_len = snprintf(key, sizeof key, "r%u", (unsigned)hand->last);
  if (hand->known == 0)
    return belay_idempotency_begin(hand->handle, &hand->request, key, (size_t)key_len, "same", 4, 0,
                                   on_begun);
  hand->known = 0;
  belay_idempotency_token_t token;
  memcpy(&token, hand->token, sizeof token);
  return belay_idempotency_finish(hand->handle, &hand->request, key, (size_t)key_len, &token,
                                  &result, sizeof result, 0, on_finished);
}

static const sim_craft_t records = {.name = "record",
                                    .silent = true,
                                    .make = make_records,
                                    .close = close_records,
                                    .ask = ask_record};

/* ---- ids ------------------------------------------------------------------------------------------------- */

static void on_ids_closed(belay_idgen_t *idgen, void *data) {
  (void)idgen;
  sim_data_closed(data);
}

static int make_ids(sim_data_hand_t *hand) {
  belay_idgen_options_t options;
  belay_idgen_options_init(&options);
  options.name = "ids";
  options.name_len = 3;
  options.step = 8;
  options.gap = 64; /* a jump is up to a thousand of them */
  options.data = hand;
  return belay_idgen_new(client_of(hand), &options, (belay_idgen_t **)&hand->handle);
}

static int close_ids(sim_data_hand_t *hand) {
  return belay_idgen_close(hand->handle, on_ids_closed);
}

static void on_id(belay_request_t *request, int status, int64_t id) {
  sim_data_hand_t *hand = request->data;
  const char *wrong = status == 0 ? sim_data_given(hand, id) : NULL;
  for (int i = 0; i < 3 && status == 0 && wrong == NULL; i++)
    if (belay_idgen_next(hand->handle, &id) == 0)
      wrong = sim_data_given(hand, id);
  sim_data_told(hand, status, wrong);
}

static int ask_id(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag, size_t len) {
  (void)ask, (void)tag, (void)len;
  return belay_idgen_get(hand->handle, &hand->request, on_id);
}

static const sim_craft_t ids = {
    .name = "id", .silent = true, .make = make_ids, .close = close_ids, .ask = ask_id};

/* ---- rankings -------------------------------------------------------------------------------------------- */

static void on_ranking_closed(belay_ranking_t *ranking, void *data) {
  (void)ranking;
  sim_data_closed(data);
}

static int make_ranking(sim_data_hand_t *hand) {
  belay_ranking_options_t options;
  belay_ranking_options_init(&options);
  options.ties = BELAY_RANKING_EARLIER_FIRST;
  options.data = hand;
  return belay_ranking_new(client_of(hand), &options, (belay_ranking_t **)&hand->handle);
}

static int close_ranking(sim_data_hand_t *hand) {
  return belay_ranking_close(hand->handle, on_ranking_closed);
}

static void on_submitted(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
                         size_t n) {
  sim_data_hand_t *hand = request->data;
  bool right = status != 0 || (n == 1 && entries->changed && entries->score == hand->ask);
  sim_data_told(hand, status, right ? NULL : "another score than it has submitted");
}

static int ask_submit(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                      size_t len) {
  const belay_ranking_score_t item = {.member = {tag, len}, .score = hand->ask};
  return belay_ranking_submit(hand->handle, &hand->request, keys[ask->key], 2, BELAY_RANKING_ADD,
                              &item, 1, on_submitted);
}

static const sim_craft_t submit = {.name = "submit",
                                   .once = true,
                                   .make = make_ranking,
                                   .close = close_ranking,
                                   .ask = ask_submit};

/* ---- all of them ----------------------------------------------------------------------------------------- */

static const sim_craft_t *const data[] = {
    &sim_craft_bloom,
    &sim_craft_scaling,
    &sim_craft_rotating,
    &add,
    &add_once,
    &add_operation,
    &mark,
    &mark_window,
    &mark_once,
    &mark_window_once,
    &records,
    &ids,
    &submit,
};
static const sim_craft_t *const users[] = {
    &sim_craft_permission, &sim_craft_swap,  &sim_craft_presence,   &sim_craft_presence_window,
    &sim_craft_active,     &sim_craft_touch, &sim_craft_touch_once, &sim_craft_flake,
};

const sim_craft_t *const *sim_crafts(sim_kind_t kind, size_t *len) {
  *len = kind == SIM_USERS ? sizeof users / sizeof *users : sizeof data / sizeof *data;
  return kind == SIM_USERS ? users : data;
}

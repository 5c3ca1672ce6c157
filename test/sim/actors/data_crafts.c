/* The kinds of data.c: the requests of each handle, and the permitted results. */
#include <belay/bloom.h>
#include <belay/counter.h>
#include <belay/dedup.h>
#include <belay/idempotency.h>
#include <belay/idgen.h>
#include <belay/ranking.h>
#include <string.h>

#include "sim/actors/data.h"

static const char *const keys[SIM_DATA_KEYS] = {"k0", "k1", "k2"};

/* ---- counters -------------------------------------------------------------------------------------------- */

SIM_CRAFT_CLOSE(counter)

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
  options.name = belay_string("ops");
  options.ttl_ms = 3600000;
  options.extend_ttl = true;
  options.max_ops = BELAY_COUNTER_OPS_MAX;
  options.data = hand;
  return belay_counter_new(client_of(hand), &options, (belay_counter_t **)&hand->handle);
}

/* The key belongs to this hand, so the result is its own sum. */
static void on_added(belay_request_t *request, int status, const belay_counter_result_t *result) {
  sim_data_hand_t *hand = request->data;
  bool right = status != 0 || result->value == hand->ask;
  sim_data_told(hand, status, right ? NULL : "another sum");
}

static int ask_add(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag, size_t len) {
  (void)ask;
  return belay_counter_add(hand->handle, &hand->request, belay_bytes(tag, len), hand->ask,
                           on_added);
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
  return belay_counter_add_once(hand->handle, &hand->request, belay_bytes(keys[ask->key], 2), 1,
                                belay_bytes(tag, len), on_added_once);
}

/* ---- dedup ----------------------------------------------------------------------------------------------- */

SIM_CRAFT_CLOSE(dedup)

static int make_dedup(sim_data_hand_t *hand, belay_dedup_kind_t kind) {
  belay_dedup_options_t options;
  belay_dedup_options_init(&options);
  options.kind = kind;
  options.name = belay_string(kind == BELAY_DEDUP_SET ? "set" : "window");
  options.data = hand;
  return belay_dedup_new(client_of(hand), &options, (belay_dedup_t **)&hand->handle);
}

static int make_set(sim_data_hand_t *hand) {
  return make_dedup(hand, BELAY_DEDUP_SET);
}

static int make_window(sim_data_hand_t *hand) {
  return make_dedup(hand, BELAY_DEDUP_WINDOW);
}

/* Nobody else marks that one. */
static void on_mark(belay_request_t *request, int status, belay_dedup_verdict_t verdict) {
  bool right = status != 0 || verdict == BELAY_DEDUP_NEW;
  sim_data_told(request->data, status, right ? NULL : "that it was seen, because of its own try");
}

static int ask_mark(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag, size_t len) {
  return belay_dedup_mark(hand->handle, &hand->request, belay_bytes(keys[ask->key], 2),
                          belay_bytes(tag, len), on_mark);
}

static void on_marked(belay_request_t *request, int status, const belay_dedup_verdict_t *verdicts,
                      size_t n) {
  bool right = status != 0 || (n == 2 && verdicts[0] == BELAY_DEDUP_NEW);
  sim_data_told(request->data, status, right ? NULL : "that it was seen, because of its own try");
}

static int ask_mark_once(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                         size_t len) {
  const belay_bytes_t items[] = {{tag, len}, {keys[hand->ask % SIM_DATA_KEYS], 2}};
  return belay_dedup_mark_once(
      hand->handle, &hand->request, belay_bytes(keys[ask->key], 2),
      &(belay_dedup_once_t){.items = items, .n = 2, .op_id = belay_bytes(tag, len)}, on_marked);
}

/* ---- Bloom filters --------------------------------------------------------------------------------------- */

SIM_CRAFT_CLOSE(bloom)

/* None of a world's items is found by chance. One grows, one forgets. */
static int make_bloom_of(sim_data_hand_t *hand, belay_bloom_kind_t kind, const char *name) {
  belay_bloom_options_t options;
  belay_bloom_options_init(&options);
  options.kind = kind;
  options.name = belay_string(name);
  options.capacity = kind == BELAY_BLOOM_SCALING ? 20 : SIM_DATA_ASKS;
  options.error_rate = BELAY_BLOOM_ERROR_RATE_MIN;
  options.window_ms = kind == BELAY_BLOOM_ROTATING ? 1000 : 0;
  options.data = hand;
  return belay_bloom_new(client_of(hand), &options, (belay_bloom_t **)&hand->handle);
}

static int make_plain(sim_data_hand_t *hand) {
  return make_bloom_of(hand, BELAY_BLOOM_PLAIN, "plain");
}

static int make_scaling(sim_data_hand_t *hand) {
  return make_bloom_of(hand, BELAY_BLOOM_SCALING, "scaling");
}

static int make_rotating(sim_data_hand_t *hand) {
  return make_bloom_of(hand, BELAY_BLOOM_ROTATING, "rotating");
}

static void on_bloom_added(belay_request_t *request, int status, bool answer) {
  sim_data_hand_t *hand = request->data;
  if (status == 0)
    hand->known = hand->ask;
  tell(hand, status, answer, "that it was added before, because of its own try");
}

static void on_found(belay_request_t *request, int status, const bool *answers, size_t n) {
  bool right = n == 2 && answers[0] && !answers[1];
  tell(request->data, status, right, "that what was added is absent, or what was not is there");
}

static int ask_bloom_add(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                         size_t len) {
  (void)ask, (void)tag, (void)len;
  return belay_bloom_add(hand->handle, &hand->request, belay_bytes(&hand->ask, sizeof hand->ask),
                         on_bloom_added);
}

static int ask_bloom(sim_data_hand_t *hand, const sim_data_ask_t *ask, const char *tag,
                     size_t len) {
  unsigned known = take_known(hand), absent = NOBODY + known;
  if (known == 0)
    return ask_bloom_add(hand, ask, tag, len);
  const belay_bytes_t items[] = {{&known, sizeof known}, {&absent, sizeof absent}};
  return belay_bloom_exists_many(hand->handle, &hand->request, items, 2, on_found);
}

/* ---- idempotency records --------------------------------------------------------------------------------- */

/* Idempotency records that several hands begin. One at a time owns a record, and only one result
 * is ever seen. `known` is the record that this hand owns. */
enum { RECORDS = 400 };

SIM_CRAFT_CLOSE(idempotency)

static int make_records(sim_data_hand_t *hand) {
  belay_idempotency_options_t options;
  belay_idempotency_options_init(&options);
  options.deadline_ms = 30; /* so that many are taken over */
  options.data = hand;
  return belay_idempotency_new(client_of(hand), &options, (belay_idempotency_t **)&hand->handle);
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

/* The finish succeeds or ends as not-owner. It never succeeds after another result, or after
 * another owner began the record. */
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
    return belay_idempotency_begin(hand->handle, &hand->request, belay_bytes(key, (size_t)key_len),
                                   belay_string("same"), 0, on_begun);
  hand->known = 0;
  belay_idempotency_token_t token;
  memcpy(&token, hand->token, sizeof token);
  return belay_idempotency_finish(
      hand->handle, &hand->request, belay_bytes(key, (size_t)key_len), &token,
      &(belay_idempotency_finish_t){.result = belay_bytes(&result, sizeof result), .ttl_ms = 0},
      on_finished);
}

/* ---- ids ------------------------------------------------------------------------------------------------- */

SIM_CRAFT_CLOSE(idgen)

static int make_ids(sim_data_hand_t *hand) {
  belay_idgen_options_t options;
  belay_idgen_options_init(&options);
  options.name = belay_string("ids");
  options.step = 8;
  options.gap = 64; /* a jump is up to a thousand of them */
  options.data = hand;
  return belay_idgen_new(client_of(hand), &options, (belay_idgen_t **)&hand->handle);
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

/* ---- rankings -------------------------------------------------------------------------------------------- */

SIM_CRAFT_CLOSE(ranking)

static int make_ranking(sim_data_hand_t *hand) {
  belay_ranking_options_t options;
  belay_ranking_options_init(&options);
  options.ties = BELAY_RANKING_EARLIER_FIRST;
  options.data = hand;
  return belay_ranking_new(client_of(hand), &options, (belay_ranking_t **)&hand->handle);
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
  return belay_ranking_submit(
      hand->handle, &hand->request, belay_bytes(keys[ask->key], 2),
      &(belay_ranking_submission_t){.mode = BELAY_RANKING_ADD, .items = &item, .n = 1},
      on_submitted);
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

static const sim_craft_t crafts[] = {
    {"bloom", SIM_SILENT, make_plain, close_bloom, ask_bloom, NULL},
    {"scaling bloom", SIM_SILENT, make_scaling, close_bloom, ask_bloom, NULL},
    {"rotating bloom", SIM_SILENT, make_rotating, close_bloom, ask_bloom_add, NULL},
    {"add", SIM_ONCE, make_counter, close_counter, ask_add, NULL},
    {"add once", SIM_AGAIN, make_counter, close_counter, ask_add_once, count_once},
    {"add operation", SIM_AGAIN, make_counter_of_operations, close_counter, ask_add_once,
     count_operation},
    {"mark", SIM_ONCE, make_set, close_dedup, ask_mark, NULL},
    {"window", SIM_ONCE, make_window, close_dedup, ask_mark, NULL},
    {"mark once", SIM_AGAIN, make_set, close_dedup, ask_mark_once, NULL},
    {"window once", SIM_AGAIN, make_window, close_dedup, ask_mark_once, NULL},
    {"record", SIM_SILENT, make_records, close_idempotency, ask_record, NULL},
    {"id", SIM_SILENT, make_ids, close_idgen, ask_id, NULL},
    {"submit", SIM_ONCE, make_ranking, close_ranking, ask_submit, NULL},
};

const sim_craft_t *sim_crafts(sim_kind_t kind, size_t *len) {
  if (kind == SIM_USERS)
    return sim_crafts_of_users(len);
  *len = sizeof crafts / sizeof *crafts;
  return crafts;
}

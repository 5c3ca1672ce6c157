/* The subjects of data.c: the request of each handle, and its permitted results. */
#include <belay/bloom.h>
#include <belay/counter.h>
#include <belay/dedup.h>
#include <belay/idempotency.h>
#include <belay/idgen.h>
#include <belay/ranking.h>
#include <string.h>

#include "sim/actors/data.h"

#define HOUR_MS 3600000

/* ---- counters ---- */

SIM_ACTOR_CLOSE(counter)
SIM_DATA_MAKE(counter, make_counter, options.ttl_ms = HOUR_MS)
SIM_DATA_MAKE(counter, make_operations, options.name = belay_string("ops");
              options.ttl_ms = HOUR_MS; options.extend_ttl = true;
              options.max_ops = BELAY_COUNTER_OPS_MAX)

/* The key belongs to this request, so the result is its own number. */
static void on_added(belay_request_t *request, int status, const belay_counter_result_t *result) {
  sim_data_t *self = request->data;
  sim_data_check(self, status, status == 0 && result->value == self->number, "another sum");
}

static int ask_add(sim_data_t *self) {
  return belay_counter_add(SIM_DATA_ARGS(self), self->tag, self->number, on_added);
}

static void count_once(sim_data_shared_t *shared, sim_data_request_t *request) {
  request->value = ++shared->sum[request->key];
}

static void count_operation(sim_data_shared_t *shared, sim_data_request_t *request) {
  request->value = ++shared->operations[request->key];
}

static void on_added_once(belay_request_t *request, int status,
                          const belay_counter_result_t *result) {
  sim_data_t *self = request->data;
  bool right = status == 0 && result->value == sim_data_request(self)->value;
  sim_data_check(self, status, right, "another sum than at the first execution");
}

static int ask_add_once(sim_data_t *self) {
  return belay_counter_add_once(SIM_DATA_ARGS(self), self->key, 1, self->tag, on_added_once);
}

/* ---- dedup ---- */

SIM_ACTOR_CLOSE(dedup)
SIM_DATA_MAKE(dedup, make_set, options.kind = BELAY_DEDUP_SET; options.name = belay_string("set"))
SIM_DATA_MAKE(dedup, make_window, options.kind = BELAY_DEDUP_WINDOW;
              options.name = belay_string("window"))

#define SEEN "it was marked before, although only this request marks it"

static void on_mark(belay_request_t *request, int status, belay_dedup_verdict_t verdict) {
  sim_data_check(request->data, status, verdict == BELAY_DEDUP_NEW, SEEN);
}

static int ask_mark(sim_data_t *self) {
  return belay_dedup_mark(SIM_DATA_ARGS(self), self->key, self->tag, on_mark);
}

static void on_marked(belay_request_t *request, int status, const belay_dedup_verdict_t *verdicts,
                      size_t n) {
  sim_data_check(request->data, status, n == 2 && verdicts[0] == BELAY_DEDUP_NEW, SEEN);
}

static int ask_mark_once(sim_data_t *self) {
  static const char *const common[SIM_DATA_KEYS] = {"k0", "k1", "k2"};
  const belay_bytes_t items[] = {self->tag, {common[self->number % SIM_DATA_KEYS], 2}};
  const belay_dedup_once_t once = {.items = items, .n = 2, .op_id = self->tag};
  return belay_dedup_mark_once(SIM_DATA_ARGS(self), self->key, &once, on_marked);
}

/* ---- Bloom filters ---- */

/* No item of a world is found by chance. */
SIM_ACTOR_CLOSE(bloom)
SIM_DATA_MAKE(bloom, make_plain, options.kind = BELAY_BLOOM_PLAIN;
              options.name = belay_string("plain"); options.capacity = SIM_DATA_REQUESTS;
              options.error_rate = BELAY_BLOOM_ERROR_RATE_MIN)
SIM_DATA_MAKE(bloom, make_scaling, options.kind = BELAY_BLOOM_SCALING;
              options.name = belay_string("scaling"); options.capacity = 20;
              options.error_rate = BELAY_BLOOM_ERROR_RATE_MIN)
SIM_DATA_MAKE(bloom, make_rotating, options.kind = BELAY_BLOOM_ROTATING;
              options.name = belay_string("rotating"); options.capacity = SIM_DATA_REQUESTS;
              options.error_rate = BELAY_BLOOM_ERROR_RATE_MIN; options.window_ms = 1000)

static void on_bloom_added(belay_request_t *request, int status, bool answer) {
  sim_data_t *self = request->data;
  if (status == 0)
    self->known = self->number;
  sim_data_check(self, status, answer, "it was added before, although only this request adds it");
}

static void on_found(belay_request_t *request, int status, const bool *answers, size_t n) {
  sim_data_check(request->data, status, n == 2 && answers[0] && !answers[1],
                 "an added item is absent, or an absent one is found");
}

static int ask_bloom_add(sim_data_t *self) {
  return belay_bloom_add(SIM_DATA_ARGS(self), belay_bytes(&self->number, sizeof self->number),
                         on_bloom_added);
}

static int ask_bloom(sim_data_t *self) {
  unsigned known = sim_data_take_known(self), absent = SIM_DATA_ABSENT + known;
  if (known == 0)
    return ask_bloom_add(self);
  const belay_bytes_t items[] = {{&known, sizeof known}, {&absent, sizeof absent}};
  return belay_bloom_exists_many(SIM_DATA_ARGS(self), items, 2, on_found);
}

/* ---- idempotency records ---- */

/* Records that several actors begin. One at a time owns a record, and only one result is ever
 * reported. `last` is the record of the request; `known` is the record that this actor owns. */
enum { RECORDS = 400 };

SIM_ACTOR_CLOSE(idempotency)
SIM_DATA_MAKE(idempotency, make_records, options.deadline_ms = 30) /* many are taken over */

static int64_t *result_of(sim_data_t *self) {
  return &sim_data_shared(self)->done[self->last];
}

static const char *check_result(sim_data_t *self, const belay_idempotency_state_t *state) {
  int64_t *done = result_of(self), result;
  if (state->result_len != sizeof result)
    return "a result that no actor stored";
  memcpy(&result, state->result, sizeof result);
  if (*done != 0 && *done != result)
    return "another result than was reported before";
  *done = result;
  return NULL;
}

static void on_begun(belay_request_t *request, int status, const belay_idempotency_state_t *state) {
  sim_data_t *self = request->data;
  const char *fault = NULL;
  _Static_assert(sizeof state->token <= sizeof self->token, "it has room");
  if (status == 0 && state->outcome == BELAY_IDEMPOTENCY_DONE) {
    fault = check_result(self, state);
  } else if (status == 0 && (state->outcome == BELAY_IDEMPOTENCY_STARTED ||
                             state->outcome == BELAY_IDEMPOTENCY_TAKEN_OVER)) {
    if (*result_of(self) != 0 && state->remaining_ms > 0) /* 0: the callback is late */
      fault = "started, and it is finished";
    self->known = (unsigned)self->last;
    self->attempt = state->attempt;
    memcpy(self->token, &state->token, sizeof state->token);
  }
  sim_data_ended(self, status, fault);
}

/* The finish succeeds or ends as not-owner. It never succeeds after another result, or after
 * another owner began the record. */
static void on_finished(belay_request_t *request, int status,
                        const belay_idempotency_state_t *state) {
  sim_data_t *self = request->data;
  int64_t *done = result_of(self);
  const char *fault = NULL;
  if (status == 0 && *done != 0 && *done != (int64_t)self->number)
    fault = "finished, and another result was reported before";
  if (status == 0 && state->attempt != self->attempt)
    fault = "finished, and it was taken over";
  if (status == 0)
    *done = (int64_t)self->number;
  if (status == BELAY_ENOTOWNER && state->outcome == BELAY_IDEMPOTENCY_DONE)
    fault = check_result(self, state);
  sim_data_ended(self, status == BELAY_ENOTOWNER ? 0 : status, fault);
}

static int ask_record(sim_data_t *self) {
  char text[16];
  int64_t result = self->number;
  self->last = self->known != 0 ? self->known : 1 + self->number / 8 % RECORDS;
  int len = snprintf(text, sizeof text, "r%u", (unsigned)self->last);
  belay_bytes_t key = belay_bytes(text, (size_t)len);
  if (self->known == 0)
    return belay_idempotency_begin(SIM_DATA_ARGS(self), key, belay_string("same"), 0, on_begun);
  self->known = 0;
  belay_idempotency_token_t token;
  memcpy(&token, self->token, sizeof token);
  const belay_idempotency_finish_t finish = {.result = belay_bytes(&result, sizeof result)};
  return belay_idempotency_finish(SIM_DATA_ARGS(self), key, &token, &finish, on_finished);
}

/* ---- ids ---- */

SIM_ACTOR_CLOSE(idgen)
SIM_DATA_MAKE(idgen, make_ids, options.name = belay_string("ids"); options.step = 8;
              options.gap = 64) /* a jump is up to a thousand of them */

static const char *check_id(sim_data_t *self, int64_t id) {
  if (id < 1 || id >= SIM_DATA_IDS)
    return "an id out of range";
  uint64_t *ids = &sim_data_shared(self)->ids[id / 64], bit = UINT64_C(1) << id % 64;
  bool taken = (*ids & bit) != 0;
  *ids |= bit;
  if (taken)
    return "an id that was reported before";
  if (id <= self->last)
    return "an id that is less than the one before";
  self->last = id;
  return NULL;
}

static void on_id(belay_request_t *request, int status, int64_t id) {
  sim_data_t *self = request->data;
  const char *fault = status == 0 ? check_id(self, id) : NULL;
  for (int i = 0; i < 3 && status == 0 && fault == NULL; i++)
    if (belay_idgen_next(self->base.handle, &id) == 0)
      fault = check_id(self, id);
  sim_data_ended(self, status, fault);
}

static int ask_id(sim_data_t *self) {
  return belay_idgen_get(SIM_DATA_ARGS(self), on_id);
}

/* ---- rankings ---- */

SIM_ACTOR_CLOSE(ranking)
SIM_DATA_MAKE(ranking, make_ranking, options.ties = BELAY_RANKING_EARLIER_FIRST)

static void on_submitted(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
                         size_t n) {
  sim_data_t *self = request->data;
  sim_data_check(self, status, n == 1 && entries->changed && entries->score == self->number,
                 "another score than was submitted");
}

static int ask_submit(sim_data_t *self) {
  const belay_ranking_score_t item = {.member = self->tag, .score = self->number};
  const belay_ranking_submission_t submission = {.mode = BELAY_RANKING_ADD, .items = &item, .n = 1};
  return belay_ranking_submit(SIM_DATA_ARGS(self), self->key, &submission, on_submitted);
}

/* ---- all subjects ---- */

const sim_data_subject_t sim_data_subjects[] = {
    {"bloom", SIM_SILENT, make_plain, close_bloom, ask_bloom, NULL},
    {"scaling bloom", SIM_SILENT, make_scaling, close_bloom, ask_bloom, NULL},
    {"rotating bloom", SIM_SILENT, make_rotating, close_bloom, ask_bloom_add, NULL},
    {"add", SIM_ONCE, make_counter, close_counter, ask_add, NULL},
    {"add once", SIM_AGAIN, make_counter, close_counter, ask_add_once, count_once},
    {"add operation", SIM_AGAIN, make_operations, close_counter, ask_add_once, count_operation},
    {"mark", SIM_ONCE, make_set, close_dedup, ask_mark, NULL},
    {"window", SIM_ONCE, make_window, close_dedup, ask_mark, NULL},
    {"mark once", SIM_AGAIN, make_set, close_dedup, ask_mark_once, NULL},
    {"window once", SIM_AGAIN, make_window, close_dedup, ask_mark_once, NULL},
    {"record", SIM_SILENT, make_records, close_idempotency, ask_record, NULL},
    {"id", SIM_SILENT, make_ids, close_idgen, ask_id, NULL},
    {"submit", SIM_ONCE, make_ranking, close_ranking, ask_submit, NULL},
};
const size_t sim_data_subjects_len = sizeof sim_data_subjects / sizeof *sim_data_subjects;

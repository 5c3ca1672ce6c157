#include "support/contract/contract.h"

/* ---- Bloom filters ---- */

static void on_done(belay_request_t *request, int status) {
  rig_on_ended(request, status);
}
RIG_ANSWER(on_bloom, bool)
RIG_ANSWERS(on_blooms, const bool *)
RIG_ANSWER(on_bloom_info, const belay_bloom_info_t *)
RIG_ANSWER(on_bloom_made, const belay_bloom_options_t *)
RIG_HANDLE(bloom)
RIG_MAKE(bloom, bloom, o.capacity = 100)
#if BELAY_HAS_BLOOM_GROWING
RIG_MAKE(bloom, bloom_scaling, o.capacity = 100; o.kind = BELAY_BLOOM_SCALING)
#endif

static int bloom_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_bloom_t *b = handle;
  belay_bloom_answer_cb one = with_cb ? on_bloom : NULL;
  belay_bloom_answers_cb many = with_cb ? on_blooms : NULL;
  const belay_bytes_t item = {"x", 1};
  return n == 0   ? belay_bloom_add(b, r, belay_string("x"), one)
         : n == 1 ? belay_bloom_exists(b, r, belay_string("x"), one)
         : n == 2 ? belay_bloom_add_many(b, r, &item, 1, many)
         : n == 3 ? belay_bloom_exists_many(b, r, &item, 1, many)
         : n == 4 ? belay_bloom_open(b, r, with_cb ? on_done : NULL)
         : n == 5 ? belay_bloom_info(b, r, with_cb ? on_bloom_info : NULL)
         : n == 6 ? belay_bloom_read_options(b, r, with_cb ? on_bloom_made : NULL)
                  : belay_bloom_clear(b, r, with_cb ? on_done : NULL);
}

/* ---- configuration records ---- */

RIG_ANSWERS(on_config, const belay_config_field_t *)
RIG_HANDLE(config)
RIG_MAKE(config, config, o.kind = BELAY_CONFIG_PERMISSION)

static int config_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  const belay_config_field_t field = {.name = "a", .value = "b"};
  return n == 0 ? belay_config_open(handle, r, belay_string("k"), &field, 1,
                                    with_cb ? on_config : NULL)
                : belay_config_read(handle, r, belay_string("k"), with_cb ? on_config : NULL);
}

/* ---- counters ---- */

RIG_ANSWER(on_counter, const belay_counter_result_t *)
RIG_ANSWERS(on_counters, const belay_counter_result_t *)
RIG_ANSWERS(on_counter_fields, const belay_counter_field_t *)
RIG_HANDLE(counter)
RIG_MAKE(counter, counter, (void)o)

static int counter_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_counter_t *c = handle;
  belay_counter_cb cb = with_cb ? on_counter : NULL;
  belay_counter_many_cb many = with_cb ? on_counters : NULL;
  const belay_counter_add_item_t item = {.key = belay_string("f"), .delta = 1};
  const belay_bytes_t f = {"f", 1};
  return n == 0    ? belay_counter_add(c, r, belay_string("k"), 1, cb)
         : n == 1  ? belay_counter_add_bounded(c, r, belay_string("k"), 1,
                                               &(belay_counter_bounds_t){.min = 0, .max = 9}, cb)
         : n == 2  ? belay_counter_add_once(c, r, belay_string("k"), 1, belay_string("i"), cb)
         : n == 3  ? belay_counter_get(c, r, belay_string("k"), cb)
         : n == 4  ? belay_counter_set(c, r, belay_string("k"), 1, cb)
         : n == 5  ? belay_counter_add_many(c, r, &item, 1, many)
         : n == 6  ? belay_counter_get_many(c, r, &f, 1, many)
         : n == 7  ? belay_counter_add_field(c, r, belay_string("k"), belay_string("f"), 1, cb)
         : n == 8  ? belay_counter_add_fields(c, r, belay_string("k"), &item, 1, many)
         : n == 9  ? belay_counter_get_field(c, r, belay_string("k"), belay_string("f"), cb)
         : n == 10 ? belay_counter_get_fields(c, r, belay_string("k"), &f, 1, many)
         : n == 11
             ? belay_counter_get_all(c, r, belay_string("k"), 9, with_cb ? on_counter_fields : NULL)
         : n == 12 ? belay_counter_delete_fields(c, r, belay_string("k"), &f, 1, cb)
                   : belay_counter_delete(c, r, belay_string("k"), cb);
}

/* ---- deduplication ---- */

RIG_ANSWER(on_verdict, belay_dedup_verdict_t)
RIG_ANSWERS(on_verdicts, const belay_dedup_verdict_t *)
RIG_ANSWER(on_number, int64_t)
static void on_page(belay_request_t *request, int status,
                    __attribute__((unused)) const belay_bytes_t *items,
                    __attribute__((unused)) size_t n, __attribute__((unused)) uint64_t next) {
  rig_on_ended(request, status);
}
RIG_HANDLE(dedup)
RIG_MAKE(dedup, dedup, (void)o)

static int dedup_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_dedup_t *d = handle;
  belay_dedup_cb one = with_cb ? on_verdict : NULL;
  belay_dedup_many_cb many = with_cb ? on_verdicts : NULL;
  belay_dedup_count_cb count = with_cb ? on_number : NULL;
  const belay_dedup_operator_t both = BELAY_DEDUP_UNION;
  const belay_bytes_t a = {"a", 1};
  return n == 0   ? belay_dedup_mark(d, r, belay_string("k"), belay_string("a"), one)
         : n == 1 ? belay_dedup_mark_many(d, r, belay_string("k"), &a, 1, many)
         : n == 2
             ? belay_dedup_mark_once(
                   d, r, belay_string("k"),
                   &(belay_dedup_once_t){.items = &a, .n = 1, .op_id = belay_string("i")}, many)
         : n == 3 ? belay_dedup_seen(d, r, belay_string("k"), belay_string("a"), one)
         : n == 4 ? belay_dedup_seen_many(d, r, belay_string("k"), &a, 1, many)
         : n == 5 ? belay_dedup_count(d, r, belay_string("k"), count)
         : n == 6 ? belay_dedup_count_of(
                        d, r, &(belay_dedup_sets_t){.how = both, .keys = &a, .n = 1}, count)
         : n == 7 ? belay_dedup_store(d, r, &(belay_dedup_sets_t){.how = both, .keys = &a, .n = 1},
                                      belay_string("b"), count)
         : n == 8 ? belay_dedup_page(d, r, &(belay_dedup_sets_t){.how = both, .keys = &a, .n = 1},
                                     0, 1, with_cb ? on_page : NULL)
         : n == 9 ? belay_dedup_forget(d, r, belay_string("k"), &a, 1, count)
                  : belay_dedup_clear(d, r, belay_string("k"), count);
}

/* ---- idempotency records ---- */

RIG_ANSWER(on_idempotency, const belay_idempotency_state_t *)
RIG_HANDLE(idempotency)
RIG_MAKE(idempotency, idempotency, (void)o)

static int idempotency_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  belay_idempotency_t *i = handle;
  belay_idempotency_cb cb = with_cb ? on_idempotency : NULL;
  const belay_idempotency_token_t token = {{1}};
  return n == 0   ? belay_idempotency_begin(i, r, belay_string("k"), belay_string("f"), 0, cb)
         : n == 1 ? belay_idempotency_extend(i, r, belay_string("k"), &token, 0, cb)
         : n == 2 ? belay_idempotency_finish(
                        i, r, belay_string("k"), &token,
                        &(belay_idempotency_finish_t){.result = belay_string("v"), .ttl_ms = 0}, cb)
         : n == 3 ? belay_idempotency_abandon(i, r, belay_string("k"), &token, cb)
         : n == 4 ? belay_idempotency_read(i, r, belay_string("k"), cb)
                  : belay_idempotency_forget(i, r, belay_string("k"), cb);
}

/* ---- ids ---- */

RIG_ANSWERS(on_ids, const int64_t *)
RIG_HANDLE(idgen)
RIG_MAKE(idgen, idgen_segment, o.mode = BELAY_IDGEN_SEGMENT)
RIG_MAKE(idgen, idgen_snowflake, o.mode = BELAY_IDGEN_SNOWFLAKE)
RIG_MAKE(idgen, idgen_sequence, o.mode = BELAY_IDGEN_SEQUENCE; o.sequence = belay_string("k"))

static int idgen_begin(void *handle, belay_request_t *r, unsigned n, bool with_cb) {
  return n == 0 ? belay_idgen_get(handle, r, with_cb ? on_number : NULL)
                : belay_idgen_get_many(handle, r, 2, with_cb ? on_ids : NULL);
}

const contract_t contracts_of_keys[] = {
    RIG_ROW_LOCAL(bloom, bloom, 8),
#if BELAY_HAS_BLOOM_GROWING
    RIG_ROW_LOCAL(bloom, bloom_scaling, 8),
#endif
    RIG_ROW(config, config, 2),
    RIG_ROW(counter, counter, 14),
    RIG_ROW(dedup, dedup, 11),
    RIG_ROW(idempotency, idempotency, 6),
    RIG_ROW_LOCAL(idgen, idgen_segment, 2),
    RIG_ROW_LOCAL(idgen, idgen_snowflake, 2),
    RIG_ROW(idgen, idgen_sequence, 2),
    {0},
};

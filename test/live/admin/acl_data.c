/* Data primitives as a least-privilege user, and as a user without one of these rights. */
#include <stdio.h>

#include "support/fixtures/data/blooms.h"
#include "support/fixtures/data/counters.h"
#include "support/fixtures/data/dedups.h"
#include "support/load/acl_cases.h"
#include "support/fixtures/data/ids.h"
#include "support/fixtures/data/once.h"
#include "support/fixtures/data/permissions.h"
#include "support/fixtures/data/seen.h"
#include "support/fixtures/data/stands.h"

#define DAY INT64_C(86400000)
#define THEN INT64_C(2209111200000) /* 2040-01-02 10:00 UTC */

/* The status of an operation, after its end. */
#define DONE(end, begin)                                                                           \
  do {                                                                                             \
    assert_error(begin, 0);                                                                        \
    MUST(end);                                                                                     \
  } while (0)

static int use_filter(env_t *env, belay_bloom_options_t *options) {
  static filter_t filter;
  static filter_op_t s;
  filter_of(&filter, env, env->client, options);
  s = (filter_op_t){0};
  for (int i = 0; i < 2; i++) {
    DONE(end_of_filter_op(&s), begin_filter_add(&filter, &s, "a", 1));
    assert_int_equal(s.answer, i == 0);
    DONE(end_of_filter_op(&s), begin_filter_exists(&filter, &s, "a", 1));
    assert_true(s.answer);
    DONE(end_of_filter_op(&s), begin_filter_exists(&filter, &s, "b", 1));
    assert_false(s.answer);
    DONE(end_of_filter_op(&s), begin_filter_info(&filter, &s));
  }
  DONE(end_of_filter_op(&s), begin_filter_many(&filter, &s, true, filter_items(0, 300), 300));
  DONE(end_of_filter_op(&s), begin_filter_many(&filter, &s, false, filter_items(0, 300), 300));
  DONE(end_of_filter_op(&s), begin_filter_many(&filter, &s, true, filter_items(0, 3000), 3000));
  DONE(end_of_filter_op(&s), begin_filter_many(&filter, &s, false, filter_items(0, 3000), 3000));
  DONE(end_of_filter_op(&s), begin_filter_made(&filter, &s));
  DONE(end_of_filter_op(&s), begin_filter_clear(&filter, &s));
  DONE(end_of_filter_op(&s), begin_filter_exists(&filter, &s, "a", 1));
  assert_false(s.answer);
  return 0;
}

static int bloom_case(env_t *env) {
  static const struct {
    const char *name;
    belay_bloom_kind_t kind;
  } all[] = {
    {"plain", BELAY_BLOOM_PLAIN},
#if BELAY_HAS_BLOOM_GROWING
    {"scaling", BELAY_BLOOM_SCALING},
    {"rotating", BELAY_BLOOM_ROTATING},
#endif
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    belay_bloom_options_t options = bloom_options(200, 0.001);
    options.name = belay_string(all[i].name);
    options.kind = all[i].kind;
    options.window_ms = all[i].kind == BELAY_BLOOM_ROTATING ? 60000 : 0;
    MUST(use_filter(env, &options));
  }
  return 0;
}

TEST(bloom_filters) {
  acl_case_check(&(acl_case_t){"bloom", bloom_case, NULL, NULL, NULL, 0});
}

static int counter_case(env_t *env) {
  static const belay_counter_add_item_t item = {.key = {"f", 1}, .delta = 1};
  static const belay_bytes_t name = {"f", 1};
  static counters_t counters;
  static count_t c;
  belay_counter_options_t options = counter_options();
  options.ttl_ms = 60000;
  counters_new(&counters, env, &options);
  c = (count_t){0};
  for (int i = 0; i < 2; i++) {
    DONE(end_of_count(&c), BEGIN(&counters, &c, add, belay_string("n"), 1, on_result));
    DONE(end_of_count(&c), BEGIN(&counters, &c, add_bounded, belay_string("n"), 1,
                                 &(belay_counter_bounds_t){.min = 0, .max = 100}, on_result));
    DONE(end_of_count(&c),
         BEGIN(&counters, &c, add_once, belay_string("n"), 1, belay_string("op"), on_result));
    DONE(end_of_count(&c), BEGIN(&counters, &c, get, belay_string("n"), on_result));
    assert_int_equal(c.result.value, i == 0 ? 3 : 5);
    DONE(end_of_count(&c),
         BEGIN(&counters, &c, add_field, belay_string("g"), belay_string("f"), 1, on_result));
    DONE(end_of_count(&c), BEGIN(&counters, &c, add_fields, belay_string("g"), &item, 1, on_many));
    DONE(end_of_count(&c),
         BEGIN(&counters, &c, get_field, belay_string("g"), belay_string("f"), on_result));
    assert_int_equal(c.result.value, i == 0 ? 2 : 4);
    DONE(end_of_count(&c), BEGIN(&counters, &c, get_fields, belay_string("g"), &name, 1, on_many));
    DONE(end_of_count(&c), BEGIN(&counters, &c, get_all, belay_string("g"), 100, on_all));
  }
  DONE(end_of_count(&c), BEGIN(&counters, &c, set, belay_string("n"), 9, on_result));
  DONE(end_of_count(&c), BEGIN(&counters, &c, delete, belay_string("n"), on_result));
  DONE(end_of_count(&c),
       BEGIN(&counters, &c, delete_fields, belay_string("g"), &name, 1, on_result));
  options.ttl_ms = 0;
  counters_new(&counters, env, &options);
  DONE(end_of_count(&c), BEGIN(&counters, &c, add, belay_string("m"), 1, on_result));
  DONE(end_of_count(&c), BEGIN(&counters, &c, set, belay_string("m"), 9, on_result));
  DONE(end_of_count(&c),
       BEGIN(&counters, &c, add_field, belay_string("h"), belay_string("f"), 1, on_result));
  options.max_ops = 10;
  counters_new(&counters, env, &options);
  DONE(end_of_count(&c),
       BEGIN(&counters, &c, add_once, belay_string("o"), 1, belay_string("op"), on_result));
  return 0;
}

TEST(counters) {
  acl_case_check(&(acl_case_t){"counter", counter_case, NULL, NULL, NULL, 0});
}

static int combine(book_t *book, entry_t *e, belay_dedup_operator_t how) {
  DONE(end_of_entry(e), begin_mark_many(book, e, "k", "1,2"));
  DONE(end_of_entry(e), begin_mark_many(book, e, "l", "2,3"));
  DONE(end_of_entry(e), begin_count_of(book, e, how, "k,l"));
  DONE(end_of_entry(e), begin_store(book, e, how, "k,l", "into"));
  return 0;
}

static int dedup_case(env_t *env) {
  static const belay_dedup_kind_t all[] = {BELAY_DEDUP_SET, BELAY_DEDUP_COUNT, BELAY_DEDUP_WINDOW,
                                           BELAY_DEDUP_BITMAP};
  static book_t book;
  static entry_t e;
  for (size_t i = 0; i < DEDUP_KINDS; i++) {
    belay_dedup_options_t options = dedup_options(all[i]);
    options.name = belay_bytes(i == 0 ? "a" : i == 1 ? "b" : i == 2 ? "c" : "d", 1);
    book_of(&book, env, env->client, &options);
    e = (entry_t){0};
    for (int n = 0; n < 2 * DEDUP_OPERATIONS; n++)
      if (can_dedup(all[i], n % DEDUP_OPERATIONS))
        DONE(end_of_entry(&e), begin_dedup_nth(&book, &e, n % DEDUP_OPERATIONS));
    if (all[i] == BELAY_DEDUP_BITMAP) {
      DONE(end_of_entry(&e), begin_mark(&book, &e, "k", "1"));
      DONE(end_of_entry(&e), begin_forget(&book, &e, "k", "1"));
    }
    for (int n = 0; n < 2 && all[i] == BELAY_DEDUP_WINDOW; n++)
      DONE(end_of_entry(&e), begin_page(&book, &e, BELAY_DEDUP_UNION, "k", 0, 10));
    MUST(all[i] == BELAY_DEDUP_COUNT ? combine(&book, &e, BELAY_DEDUP_UNION) : 0);
    for (int how = BELAY_DEDUP_UNION; all[i] == BELAY_DEDUP_SET && how < BELAY_DEDUP_UNION + 3;
         how++) {
      MUST(combine(&book, &e, (belay_dedup_operator_t)how));
      DONE(end_of_entry(&e), begin_page(&book, &e, (belay_dedup_operator_t)how, "k,l", 0, 10));
    }
  }
  return 0;
}

TEST(dedup) {
  acl_case_check(&(acl_case_t){"dedup", dedup_case, NULL, NULL, NULL, 0});
}

static int idempotency_case(env_t *env) {
  static once_t once;
  static turn_t t;
  once_new(&once, env);
  t = (turn_t){0};
  for (int i = 0; i < 2; i++) {
    DONE(end_of_turn(&t), once_begin(&once, &t, "k", "print", 60000));
    belay_idempotency_token_t token = t.state.token;
    DONE(end_of_turn(&t), once_extend(&once, &t, "k", &token, 60000));
    DONE(end_of_turn(&t), once_abandon(&once, &t, "k", &token));
    DONE(end_of_turn(&t), once_begin(&once, &t, "k", "print", 60000));
    token = t.state.token;
    DONE(end_of_turn(&t), once_finish(&once, &t, "k", &token, "result", 60000));
    DONE(end_of_turn(&t), once_read(&once, &t, "k"));
    assert_true(t.has_result);
    DONE(end_of_turn(&t), once_forget(&once, &t, "k"));
  }
  return 0;
}

TEST(idempotency) {
  /* DEL takes back what could not be given a ttl: only who may not PEXPIRE needs it. */
  acl_case_check(&(acl_case_t){"idempotency", idempotency_case, NULL, "del", NULL, 0});
}

static int use_ids(env_t *env, belay_idgen_mode_t mode, const char *name, int64_t gap) {
  static generator_t generators[4];
  static id_op_t d;
  generator_t *generator = &generators[(mode + (gap == 0)) % 4];
  belay_idgen_options_t options = idgen_options(mode);
  options.name = belay_string(name);
  options.step = 2;
  options.gap = gap;
  options.ahead_ms = 100;
  options.ttl_ms = 1000 * slow();
  generator_new(generator, env, &options);
  d = (id_op_t){.request.timeout_ms = 20000};
  for (int i = 0; i < 2; i++)
    DONE(end_of_id_op(&d), begin_get_many(generator, &d, 3));
  return 0;
}

static int idgen_case(env_t *env) {
  MUST(use_ids(env, BELAY_IDGEN_SEGMENT, "a", 100));
  MUST(use_ids(env, BELAY_IDGEN_SEGMENT, "b", 0));
  MUST(use_ids(env, BELAY_IDGEN_SEQUENCE, "c", 100));
  return use_ids(env, BELAY_IDGEN_SNOWFLAKE, "d", 100);
}

TEST(ids) {
  acl_case_check(&(acl_case_t){"idgen", idgen_case, NULL, NULL, "lock", 0});
}

static int permission_case(env_t *env) {
  static perms_t perms_list[2];
  static perm_op_t p;
  for (int i = 0; i < 2; i++) {
    belay_permission_options_t options = permission_options(4);
    options.ttl_ms = i == 0 ? 0 : 60000;
    perms_of(&perms_list[i], env, env->client, &options);
    p = (perm_op_t){0};
    for (int n = 0; n < 2 * PERMS_OPERATIONS; n++)
      DONE(end_of_perm_op(&p),
           begin_perm(&perms_list[i], &p, (perm_verb_t)(n % PERMS_OPERATIONS), 3, 1));
  }
  return 0;
}

TEST(permissions) {
  acl_case_check(&(acl_case_t){"permission", permission_case, NULL, NULL, NULL, 0});
}

static void on_config(belay_request_t *request, int status, const belay_config_field_t *fields,
                      size_t n) {
  (void)fields, (void)n;
  *(int *)request->data = status;
}

static int config_case(env_t *env) {
  static const belay_config_field_t field = {.name = "width", .value = "3"};
  static int status;
  static belay_request_t request;
  for (int i = 0; i < 4; i++) {
    belay_config_options_t options;
    belay_config_t *config;
    belay_config_options_init(&options);
    options.ttl_ms = i % 2 == 0 ? 0 : 60000;
    MUST(belay_config_new(env->client, &options, &config));
    request.data = &status;
    status = 1;
    MUST(belay_config_open(config, &request, belay_string("forum"), &field, 1, on_config));
    env_until(env, status != 1);
    MUST(status);
    status = 1;
    MUST(belay_config_read(config, &request, belay_string("forum"), on_config));
    env_until(env, status != 1);
    MUST(status);
  }
  return 0;
}

TEST(configs) {
  acl_case_check(&(acl_case_t){"config", config_case, NULL, NULL, NULL, 0});
}

static int ranking_case(env_t *env) {
  static stand_t stands[4];
  static query_t q;
  for (int i = 0; i < 4; i++) {
    belay_ranking_options_t options =
        ranking_options(i < 2 ? BELAY_RANKING_HIGH_FIRST : BELAY_RANKING_LOW_FIRST,
                        i % 2 == 0 ? BELAY_RANKING_BY_MEMBER : BELAY_RANKING_EARLIER_FIRST);
    options.ttl_ms = i == 0 ? 0 : 60000;
    options.max_members = 2;
    stand_of(&stands[i], env, env->client, &options);
    q = (query_t){0};
    for (unsigned n = 0; n < 2 * STAND_OPERATIONS; n++)
      DONE(end_of_query(&q), begin_operation(&stands[i], &q, n % STAND_OPERATIONS));
    for (unsigned n = 0; n < 3; n++)
      DONE(end_of_query(&q), begin_submit(&stands[i], &q, BELAY_RANKING_SET,
                                          n == 0   ? "a"
                                          : n == 1 ? "b"
                                                   : "c",
                                          n));
    DONE(end_of_query(&q), begin_operation(&stands[i], &q, STAND_OPERATIONS - 1));
  }
  return 0;
}

TEST(rankings) {
  acl_case_check(&(acl_case_t){"ranking", ranking_case, NULL, NULL, NULL, 0});
}

#define SEEN(call)                                                                                 \
  do {                                                                                             \
    static seen_t s;                                                                               \
    s = (seen_t){0};                                                                               \
    belay_request_t *r = seen_begin(env, &s);                                                      \
    DONE(end_of_seen(&s), seen_begun(&s, call));                                                   \
  } while (0)

static int presence_case(env_t *env) {
  static const uint32_t ids[] = {3, BELAY__PRESENCE_SEGMENT, 4};
  for (int i = 0; i < 3; i++) {
    belay_presence_t *p;
    belay_presence_options_t o;
    belay_presence_options_init(&o);
    o.name = belay_bytes(i == 0 ? "a" : i == 1 ? "b" : "c", 1);
    o.max_id = 2 * BELAY__PRESENCE_SEGMENT - 1;
    o.window_ms = i == 0 ? DAY : 0;
    o.ttl_ms = i == 1 ? 0 : 60000;
    assert_error(belay_presence_new(env->client, &o, &p), 0);
    for (int n = 0; n < 2; n++) {
      SEEN(belay_presence_set(p, r, 3, on_seen));
      SEEN(belay_presence_set_many(p, r, ids, 3, on_seen));
      p->time.shift_us += o.window_ms / 4 * 1000; /* the next slice */
      SEEN(belay_presence_set(p, r, 3, on_seen));
      SEEN(belay_presence_is(p, r, 3, on_seen_is));
      SEEN(belay_presence_is_many(p, r, ids, 3, on_seen_is));
      SEEN(belay_presence_count(p, r, on_seen_count));
      SEEN(belay_presence_clear(p, r, 3, on_seen));
    }
    SEEN(belay_presence_reset(p, r, on_seen));
  }
  return 0;
}

TEST(presence) {
  acl_case_check(&(acl_case_t){"presence", presence_case, NULL, NULL, NULL, 0});
}

static int active_case(env_t *env) {
  static const belay_bytes_t label = {"x", 1};
  for (int i = 0; i < 2; i++) {
    belay_active_t *a;
    belay_active_options_t o;
    belay_active_options_init(&o);
    o.name = belay_bytes(i == 0 ? "a" : "b", 1);
    o.archive_ttl_ms = i == 0 ? 0 : DAY;
    assert_error(belay_active_new(env->client, &o, &a), 0);
    for (int n = 0; n < 2; n++) {
      SEEN(belay_active_mark(a, r, belay_string("ann"), THEN, on_seen));
      SEEN(belay_active_count(a, r, THEN, on_seen_counts));
      SEEN(belay_active_count_last(a, r, BELAY_ACTIVE_NOW, NULL, 0, on_seen_counts));
      SEEN(belay_active_archive(a, r, THEN, THEN, belay_string("x"), on_seen_counts));
      SEEN(belay_active_count_archives(a, r, &label, 1, on_seen_counts));
    }
    SEEN(belay_active_clear(a, r, THEN, THEN, on_seen));
    SEEN(belay_active_clear_archives(a, r, &label, 1, on_seen));
  }
  return 0;
}

TEST(active_users) {
  acl_case_check(&(acl_case_t){"active", active_case, NULL, NULL, NULL, 0});
}

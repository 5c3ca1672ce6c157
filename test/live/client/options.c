/* Options out of range: each handle refuses them, and its detail names the field and its range. */
#include <limits.h>

#include "support/fixtures/env.h"

#define NOWHERE "unix:///nonexistent/socket"
#define YEAR INT64_C(31536000000)
#define DAY INT64_C(86400000)

/* An options struct of any handle. */
typedef belay_idgen_t belay_idgen_snowflake_t;
typedef belay_idgen_options_t belay_idgen_snowflake_options_t;
#define belay_idgen_snowflake_options_init belay_idgen_options_init

typedef union options {
  belay_active_options_t active;
  belay_bloom_options_t bloom;
  belay_bucket_options_t bucket;
  belay_client_options_t client;
  belay_config_options_t config;
  belay_counter_options_t counter;
  belay_dedup_options_t dedup;
  belay_election_options_t election;
  belay_idempotency_options_t idempotency;
  belay_idgen_options_t idgen, idgen_snowflake;
  belay_latch_options_t latch;
  belay_limiter_options_t limiter;
  belay_lock_options_t lock;
  belay_permission_options_t permission;
  belay_presence_options_t presence;
  belay_ranking_options_t ranking;
  belay_session_options_t session;
  unsigned char bytes[1];
} options_t;

/* The valid values of a number field, and another valid one. */
typedef struct range {
  const char *name; /* NULL ends a table */
  size_t offset, size;
  bool has_sign;
  int64_t min, max, also;
} range_t;

typedef struct subject {
  const char *name;
  void (*fill)(options_t *options); /* with valid ones */
  int (*make)(env_t *env, const options_t *options);
  const range_t *ranges;
} subject_t;

#define MAKE(type, ...)                                                                            \
  static int make_##type(env_t *env, const options_t *options) {                                   \
    belay_##type##_t *out = (belay_##type##_t *)(void *)env;                                       \
    int error = __VA_ARGS__;                                                                       \
    assert_true((out == NULL) == (error != 0));                                                    \
    return error;                                                                                  \
  }
/* The statements set options `o`. */
#define FILL(type, ...)                                                                            \
  static void fill_##type(options_t *options) {                                                    \
    belay_##type##_options_t *o = &options->type;                                                  \
    belay_##type##_options_init(o);                                                                \
    __VA_ARGS__;                                                                                   \
  }
#define RANGES(type) static const range_t ranges_of_##type[]
#define HANDLE(type, ...)                                                                          \
  MAKE(type, belay_##type##_new(env->client, &options->type, &out))                                \
  FILL(type, __VA_ARGS__)                                                                          \
  RANGES(type)
#define HANDLE_OF_NAME(type, ...)                                                                  \
  MAKE(type, belay_##type##_new(env->client, belay_string("n"), &options->type, &out))             \
  FILL(type, __VA_ARGS__)                                                                          \
  RANGES(type)
#define R_OR(type, field, least, most, special)                                                    \
  {                                                                                                \
    .name = #field, .offset = offsetof(belay_##type##_options_t, field),                           \
    .size = sizeof(((belay_##type##_options_t *)0)->field),                                        \
    .has_sign = (__typeof__(((belay_##type##_options_t *)0)->field))-1 < 1, .min = (least),        \
    .max = (most), .also = (special)                                                               \
  }
#define R(type, field, min, max) R_OR(type, field, min, max, min)
#define R0(type, field, min, max) R_OR(type, field, min, max, 0)

HANDLE(active, o->name = belay_string("n")) = {
    R(active, unit, 1, 2),
    R(active, utc_offset_minutes, -720, 840),
    R(active, ttl_ms, 1000, INT64_C(315360000000)),
    R0(active, archive_ttl_ms, 1000, INT64_C(315360000000)),
    {0},
};
HANDLE(bloom, o->name = belay_string("n"); o->capacity = 1) = {
    R0(bloom, capacity, 1, INT64_C(4294967296)),
    R0(bloom, ttl_ms, 1000, INT64_C(315360000000)),
    {0},
};
HANDLE(bucket, o->capacity = 1; o->idle_ms = 1000; o->index_ms = YEAR) = {
    R(bucket, capacity, 1, BELAY_BUCKET_TOKENS_MAX),
    R(bucket, idle_ms, 1000, YEAR),
    R(bucket, index_ms, 1000, YEAR),
    {0},
};
HANDLE(config, (void)o) = {
    R(config, kind, 0, 2),
    R0(config, ttl_ms, 1000, 2 * YEAR),
    {0},
};
HANDLE(counter, (void)o) = {
    R(counter, ttl_ms, 0, YEAR),      R(counter, op_ttl_ms, 1000, YEAR),
    R(counter, shards, 1, 256),       R(counter, max_ops, 0, BELAY_COUNTER_OPS_MAX),
    R(counter, batch_ms, 1, 60000),   R(counter, batch_max, 0, INT64_MAX),
    R(counter, max_keys, 1, 1000000), {0},
};
HANDLE(dedup, o->name = belay_string("n")) = {
    R(dedup, kind, 0, 3),
    R0(dedup, ttl_ms, 1000, YEAR),
    R(dedup, window_ms, 1, YEAR),
    R(dedup, max_items, 1, 100000000),
    R(dedup, op_ttl_ms, 1000, DAY),
    R(dedup, max_offset, 0, INT64_C(4294967295)),
    {0},
};
HANDLE(idempotency, (void)o) = {
    R(idempotency, deadline_ms, 1, DAY),
    R(idempotency, ttl_ms, 1000, YEAR),
    R(idempotency, grace_ms, 1000, YEAR),
    {0},
};
HANDLE(idgen, o->name = belay_string("n")) = {
    R(idgen, mode, 0, 2),
    R(idgen, start, 0, INT64_MAX),
    R(idgen, step, 1, BELAY_IDGEN_STEP_MAX),
    R(idgen, clock_rate, 0, BELAY_IDGEN_CLOCK_RATE_MAX),
    R(idgen, clock_skew_ms, 0, 60000),
    R(idgen, max_waiting, 1, 65536),
    {0},
};
HANDLE_OF_NAME(latch, o->count = 1) = {
    R(latch, count, 1, BELAY_LATCH_COUNT_MAX),
    R(latch, ttl_ms, 1000, 604800000),
    R(latch, waiter_ttl_ms, 100, 600000),
    R(latch, timeout_ms, 1, 600000),
    {0},
};
HANDLE(limiter, static const belay_limit_t limit = {.kind = BELAY_LIMIT_BUCKET,
                                                    .count = 1,
                                                    .period_us = 1000000,
                                                    .burst = 1};
       o->limits = &limit; o->limits_len = 1) = {
    R(limiter, lease_ms, 1, 3600000),
    R(limiter, away, 0, 3),
    R(limiter, away_percent, 1, 100),
    {0},
};
HANDLE_OF_NAME(lock, (void)o) = {
    R_OR(lock, ttl_ms, 10, DAY, BELAY_DEFAULT),
    R(lock, watchdog, 1, 2),
    R(lock, renew_after_ms, 1000, 5000), /* of the default ttl, 10,000 */
    R(lock, max_hold_ms, 1, INT64_MAX),
    R(lock, wait_ms, 0, INT64_MAX),
    R(lock, retry_min_ms, 1, 3600000),
    R(lock, retry_max_ms, 25, 3600000), /* of the default retry_min_ms */
    R(lock, drift_ms, 2, 5000),
    R(lock, timeout_ms, 1, 600000),
    {0},
};
HANDLE(permission, o->width = 1) = {
    R(permission, width, 1, 63),
    R(permission, max_index, 0, INT64_C(4294967295)), /* of a width of 1 */
    R0(permission, ttl_ms, 1000, YEAR),
    {0},
};
HANDLE(presence, o->name = belay_string("n")) = {
    R(presence, slices, 1, 14),
    R0(presence, window_ms, 100, YEAR),
    R0(presence, ttl_ms, 1000, YEAR),
    {0},
};
HANDLE(ranking, (void)o) = {
    R(ranking, order, 0, 1),
    R(ranking, ties, 0, 2),
    R0(ranking, ttl_ms, 1000, YEAR),
    R(ranking, max_members, 0, BELAY_RANKING_SIZE_MAX),
    {0},
};
HANDLE(session, (void)o) = {
    R(session, ttl_ms, 1000, YEAR),
    R(session, max_events, 0, 10000),
    R(session, op_ttl_ms, 1000, DAY),
    {0},
};
MAKE(client, belay_connect(env->belay, NOWHERE, &options->client, &out))
FILL(client, (void)o)
RANGES(client) = {
    R(client, db, -1, 65535),
    R(client, connections, 1, 64),
    R(client, connect_timeout_ms, 1, 600000),
    R(client, timeout_ms, 1, 600000),
    R(client, stall_timeout_ms, 10, 600000),
    R_OR(client, idle_timeout_ms, 10, DAY, BELAY_FOREVER),
    R(client, reconnect_min_ms, 1, 60000),
    R(client, reconnect_max_ms, 20, 600000), /* of the default reconnect_min_ms */
    R(client, close_timeout_ms, 0, 600000),
    R(client, tcp_user_timeout_ms, 0, DAY),
    R(client, keepalive_ms, 0, DAY),
    R(client, max_pending, 1, INT64_MAX),
    R(client, max_bytes, 65536, INT64_MAX),
    R(client, max_reply, 65536, INT64_MAX),
    R(client, on_full, 0, 1),
    {0},
};

FILL(idgen_snowflake, o->name = belay_string("n"); o->mode = BELAY_IDGEN_SNOWFLAKE)
MAKE(idgen_snowflake, belay_idgen_new(env->client, &options->idgen_snowflake, &out))
RANGES(idgen_snowflake) = {
    R(idgen, worker, -1, 1023),
    R(idgen, ttl_ms, 100, DAY),
    R(idgen, ahead_ms, 100, 60000),
    R(idgen, epoch_ms, 0, INT64_C(1) << 42),
    {0},
};

static unsigned wrong;

/* A test prints all failures before it fails. */
#define complain(...) (wrong++, print_error(__VA_ARGS__), print_error("\n"))
#define OPTIONS_TEST(name)                                                                         \
  static void check_##name(env_t *env);                                                            \
  TEST_IN(name, env, env_open_at(NOWHERE, NULL)) {                                                 \
    wrong = 0;                                                                                     \
    check_##name(env);                                                                             \
    assert_int_equal(wrong, 0);                                                                    \
  }                                                                                                \
  static void check_##name(env_t *env)

/* ---- ranges ---- */

static bool has_type_of(const range_t *range, int64_t value) {
  if (range->size == sizeof value)
    return range->has_sign || value >= 0;
  return range->has_sign ? value >= INT_MIN && value <= INT_MAX : value >= 0 && value <= UINT32_MAX;
}

static void set(options_t *options, const range_t *range, int64_t value) {
  const int small = (int)value;
  memcpy(options->bytes + range->offset,
         range->size == sizeof value ? (const void *)&value : (const void *)&small, range->size);
}

/* A valid value may be refused because of another field. */
static void expect_range(env_t *env, const subject_t *subject, const range_t *range,
                         int64_t value) {
  options_t options;
  const size_t len = strlen(range->name);
  const bool good = (value >= range->min && value <= range->max) || value == range->also;
  if (!has_type_of(range, value))
    return;
  subject->fill(&options);
  set(&options, range, value);
  int error = subject->make(env, &options);
  const char *detail = belay_detail(env->belay);
  const bool named = strncmp(detail, range->name, len) == 0 && detail[len] == ':';
  if (good ? error != 0 && named : error != BELAY_EINVAL || !named)
    complain("%s.%s = %lld: %s: %s", subject->name, range->name, (long long)value,
             belay_err_name(error), detail);
}

static const subject_t subjects[] = {
#define ROW(type)                                                                                  \
  { #type, fill_##type, make_##type, ranges_of_##type }
    ROW(active), ROW(bloom),       ROW(bucket),   ROW(client),          ROW(config),  ROW(counter),
    ROW(dedup),  ROW(idempotency), ROW(idgen),    ROW(idgen_snowflake), ROW(latch),   ROW(limiter),
    ROW(lock),   ROW(permission),  ROW(presence), ROW(ranking),         ROW(session),
};

OPTIONS_TEST(numbers_out_of_range) {
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
    for (const range_t *range = subjects[i].ranges; range->name != NULL; range++) {
      const int64_t values[] = {INT64_MIN,  INT_MIN,    range->min - 1,
                                range->min, range->max, range->also};
      for (size_t j = 0; j < sizeof values / sizeof *values; j++)
        expect_range(env, &subjects[i], range, values[j]);
      if (range->max < INT64_MAX)
        expect_range(env, &subjects[i], range, range->max + 1);
    }
}

/* ---- names ---- */

typedef struct named {
  const subject_t subject;
  size_t name_at;
  bool required;
} named_t;

static void expect_name(env_t *env, const named_t *named, const char *name, size_t len, bool good) {
  options_t options;
  named->subject.fill(&options);
  const belay_bytes_t bytes = {name, len};
  memcpy(options.bytes + named->name_at, &bytes, sizeof bytes);
  int error = named->subject.make(env, &options);
  if (good ? error != 0
           : error != BELAY_EINVAL || strncmp(belay_detail(env->belay), "name: ", 6) != 0)
    complain("%s: %zu bytes: %s: %s", named->subject.name, len, belay_err_name(error),
             belay_detail(env->belay));
}

OPTIONS_TEST(names_of_handles) {
  static char longest[129];
  memset(longest, 'x', sizeof longest);
#define NAMED(type, required)                                                                      \
  { ROW(type), offsetof(belay_##type##_options_t, name), (required) }
  static const named_t rows[] = {
      NAMED(active, true),   NAMED(bloom, true),    NAMED(bucket, false),
      NAMED(counter, false), NAMED(dedup, true),    NAMED(idempotency, false),
      NAMED(idgen, true),    NAMED(limiter, false), NAMED(permission, false),
      NAMED(presence, true), NAMED(ranking, false), NAMED(session, false),
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    expect_name(env, &rows[i], longest, 128, true);
    expect_name(env, &rows[i], longest, 129, false);
    expect_name(env, &rows[i], NULL, 1, false);
    expect_name(env, &rows[i], NULL, 0, !rows[i].required);
  }
}

/* ---- fields that depend on each other ---- */

static void expect_options(env_t *env, int error, const char *detail) {
  const char *actual = belay_detail(env->belay);
  if (error != (detail != NULL ? BELAY_EINVAL : 0) ||
      strcmp(actual, detail != NULL ? detail : "") != 0)
    complain("%s: %s instead of: %s", belay_err_name(error), actual, detail);
}

/* The statements set options `o`; detail: NULL if they are valid. */
#define EXPECT(type, detail, ...)                                                                  \
  do {                                                                                             \
    options_t options_;                                                                            \
    fill_##type(&options_);                                                                        \
    belay_##type##_options_t *o = &options_.type;                                                  \
    __VA_ARGS__;                                                                                   \
    expect_options(env, make_##type(env, &options_), detail);                                      \
  } while (0)

OPTIONS_TEST(options_of_a_permission) {
  char long_name[130];
  memset(long_name, 'n', sizeof long_name - 1);
  long_name[129] = '\0';
  const char *bad[] = {"a", long_name}, *good[] = {"a", long_name + 1};
  const uint64_t max63 = (UINT64_C(1) << 32) / 63 - 1;
  const char *const too_many = "names: NULL, or more than 65536 of them";
  EXPECT(permission, "width: neither it nor levels nor names are given", o->width = 0);
  EXPECT(permission, "levels: more than 2^63", o->width = 0; o->levels = (UINT64_C(1) << 63) + 1);
  EXPECT(permission, "levels: more than fit into width", o->width = 3; o->levels = 9);
  EXPECT(permission, NULL, o->width = 3; o->levels = 8);
  EXPECT(permission, NULL, o->width = 0; o->levels = UINT64_C(1) << 63);
  EXPECT(permission, too_many, o->width = 0; o->names_len = 1);
  EXPECT(permission, too_many, o->width = 0; o->names = good; o->names_len = 65537);
  EXPECT(permission, "names: one of more than 128 bytes", o->width = 0; o->names = bad;
         o->names_len = 2);
  EXPECT(permission, NULL, o->width = 0; o->names = good; o->names_len = 2);
  EXPECT(permission, "names: more than there are values", o->width = 0; o->names = good;
         o->names_len = 2; o->levels = 1);
  EXPECT(permission, "max_index: not from 0 to 68174083", o->width = 63; o->max_index = max63 + 1);
  EXPECT(permission, "max_index: not from 0 to 68174083", o->width = 63; o->max_index = UINT64_MAX);
  EXPECT(permission, NULL, o->width = 63; o->max_index = max63);
}

OPTIONS_TEST(options_that_depend_on_each_other) {
  static char text[129];
  memset(text, 'x', sizeof text);
  EXPECT(bloom, "capacity, bits: one of them must be given", o->capacity = 0);
  EXPECT(bucket, "index_ms: not from 2000 to 31536000000", o->idle_ms = 2000; o->index_ms = 1999);
  EXPECT(counter, "extend_ttl: without ttl_ms", o->extend_ttl = true);
  EXPECT(counter, "max_keys: not from 1 to 1000000", o->max_keys = SIZE_MAX);
  EXPECT(dedup, "max_offset: not from 0 to 4294967295", o->max_offset = UINT64_MAX);
  EXPECT(limiter, "limits: NULL, or not 1 to 4", o->limits = NULL);
  EXPECT(latch, "retry_max_ms: not from 76 to 3600000", o->retry_min_ms = 76);
  EXPECT(latch, "backoff_max_ms: not from 75 to 3600000", o->backoff_max_ms = 74);
  EXPECT(idgen, "start: not from 0 to 4503599627370496", o->clock_rate = 1;
         o->start = (INT64_C(1) << 52) + 1);
  EXPECT(idgen, "min_replicas: not from 0 to 255", o->min_replicas = 256);
  EXPECT(idgen, "sequence: not 1 to 128 bytes", o->mode = BELAY_IDGEN_SEQUENCE;
         o->sequence = belay_string(NULL));
  EXPECT(idgen, "sequence: not 1 to 128 bytes", o->mode = BELAY_IDGEN_SEQUENCE;
         o->sequence = belay_bytes(text, sizeof text));
}

/* ---- no options ---- */

ENV_TEST(options_may_be_null) {
  belay_client_t *client = env->client;
  void *out = NULL;
  belay_bucket_t *bucket;
  belay_bucket_options_t b;
  belay_bucket_options_init(&b);
  b.name = belay_string("n");
  b.capacity = 1;
  assert_error(belay_bucket_new(client, &b, &bucket), 0);
#define NEW(type, ...) belay_##type##_new(__VA_ARGS__, NULL, (belay_##type##_t **)(void *)&out)
  const struct {
    const char *name;
    int error, expected;
  } rows[] = {
      {"active", NEW(active, client), BELAY_EINVAL}, /* a name */
      {"bloom", NEW(bloom, client), BELAY_EINVAL},   /* a name, a size */
      {"bucket", NEW(bucket, client), BELAY_EINVAL}, /* a capacity */
      {"cache", NEW(cache, client), 0},
      {"config", NEW(config, client), 0},
      {"counter", NEW(counter, client), 0},
      {"dedup", NEW(dedup, client), BELAY_EINVAL}, /* a name */
      {"election", NEW(election, client, belay_string("n")), 0},
      {"idempotency", NEW(idempotency, client), 0},
      {"idgen", NEW(idgen, client), BELAY_EINVAL}, /* a name */
      {"latch", NEW(latch, client, belay_string("n")), 0},
      {"barrier", NEW(barrier, client, belay_string("n")), 0},
      {"limiter", NEW(limiter, client), BELAY_EINVAL}, /* limits */
      {"lock", NEW(lock, client, belay_string("n")), 0},
      {"permission", NEW(permission, client), BELAY_EINVAL}, /* a width */
      {"presence", NEW(presence, client), BELAY_EINVAL},     /* a name */
      {"ranking", NEW(ranking, client), 0},
      {"refiller", NEW(refiller, bucket), BELAY_EINVAL}, /* a name */
      {"session", NEW(session, client), 0},
      {"sweep", NEW(sweep, client), BELAY_EINVAL}, /* a pattern, or a callback */
      {"tls", NEW(tls, env->belay), 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].error != rows[i].expected)
      fail_msg("belay_%s_new(): %s", rows[i].name, belay_err_name(rows[i].error));
    if (strcmp(rows[i].name, "tls") == 0)
      belay_tls_close(out);
  }
  assert_error(belay_bloomset_new(NULL, NULL, (belay_bloomset_t **)(void *)&out), BELAY_EINVAL);
}

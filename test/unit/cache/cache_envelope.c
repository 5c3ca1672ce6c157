/* Envelopes: foreign bytes are refused, and the format stays stable. */
#include "support/models/envelopes.h"

/* ---- nothing else is read ---- */

static void expect_refused(world_t *world, const envelope_t *envelope, const char *what) {
  uint64_t allocations = world->belay.stats.allocations;
  int error = read_as(world, envelope, MIB);
  if (error != BELAY_EMISMATCH)
    fail_msg("%s: %s", what, belay_err_name(error));
  assert_true(world->belay.stats.allocations - allocations <= 1);
  assert_true(world->belay.stats.allocations == allocations || envelope->len < MIB);
}

/* A small one in plain, one that is compressed, and those that have no data. */
static envelope_t sample(world_t *world, int which) {
  static const struct {
    belay__record_kind_t kind;
    size_t len, tags_len;
  } shapes[] = {
      {BELAY__RECORD_VALUE, 41, 2}, {BELAY__RECORD_VALUE, 400, 1}, {BELAY__RECORD_VALUE, 0, 0},
      {BELAY__RECORD_ABSENT, 0, 8}, {BELAY__RECORD_ERROR, 0, 0},
  };
  belay__record_t *record =
      new_record(world, shapes[which].kind, shapes[which].len, shapes[which].tags_len, TEXT);
  envelope_t envelope = written(world, record, 100);
  assert_int_equal(envelope.bytes[ENCODING], which == 1);
  belay__record_release(&world->belay, record);
  return envelope;
}
#define SAMPLES 5

WORLD_TEST(every_truncation_is_refused) {
  for (int which = 0; which < SAMPLES; which++) {
    envelope_t whole = sample(world, which);
    for (size_t len = 0; len < whole.len; len++) {
      envelope_t part = copy_of(whole.bytes, len);
      expect_refused(world, &part, "truncated");
      if (len >= HEAD) { /* even one whose sum is right */
        seal(&part);
        expect_refused(world, &part, "truncated and sealed");
      }
      free(part.bytes);
    }
    for (size_t more = 1; more <= 16; more++) {
      envelope_t longer = {calloc(1, whole.len + more), whole.len + more};
      assert_non_null(longer.bytes);
      memcpy(longer.bytes, whole.bytes, whole.len);
      seal(&longer);
      expect_refused(world, &longer, "longer");
      free(longer.bytes);
    }
    free(whole.bytes);
  }
}

WORLD_TEST(every_flipped_bit_is_noticed) {
  for (int which = 0; which < SAMPLES; which++) {
    envelope_t envelope = sample(world, which);
    for (size_t bit = 0; bit < 8 * envelope.len; bit++) {
      bool sign = bit == 8 * RETRY - 1 || bit == 8 * SUM - 1;
      bool checked = bit / 8 < FRESH || bit / 8 >= SUM || sign;
      envelope.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
      if (checked)
        expect_refused(world, &envelope, "a bit is flipped");
      else
        assert_error(read_as(world, &envelope, MIB), 0);
      envelope.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_error(read_as(world, &envelope, MIB), 0);
    free(envelope.bytes);
  }
}

WORLD_TEST(foreign_values_are_refused) {
  static const char *const values[] = {
      "",
      "0",
      "hello",
      "\xbely",
      BELAY__RECORD_MAGIC,
      "{\"name\":\"value\",\"and\":\"so on, for long\"}",
      "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    envelope_t value = copy_of(values[i], strlen(values[i]));
    expect_refused(world, &value, values[i]);
    free(value.bytes);
  }
  belay__record_t *record;
  assert_error(belay__record_read(&world->belay, NULL, 0, MIB, &record), BELAY_EMISMATCH);
  assert_null(record);
}

/* Sums that are right do not prove that belay wrote a record. */
static const struct {
  const char *what;
  int which;
  size_t at;
  uint64_t number;
  size_t len;
} lies[] = {
    {"another magic", 0, 0, 'l', 1},
    {"another version", 0, 3, 2, 1},
    {"no kind", 0, KIND, 0, 1},
    {"another kind", 0, KIND, 4, 1},
    {"no kind, and no data", 2, KIND, 0, 1},
    {"another kind, and no data", 2, KIND, 4, 1},
    {"absent, and with data", 0, KIND, BELAY__RECORD_ABSENT, 1},
    {"an error, and with data", 0, KIND, BELAY__RECORD_ERROR, 1},
    {"an error that is none", 4, ERROR, 0, 4},
    {"an error of a value", 0, ERROR, 1, 4},
    {"an error of what is absent", 3, ERROR, 1, 4},
    {"another encoding", 0, ENCODING, 2, 1},
    {"plain, and said to be compressed", 0, ENCODING, 1, 1},
    {"empty, and said to be compressed", 2, ENCODING, 1, 1},
    {"compressed, and said to be plain", 1, ENCODING, 0, 1},
    {"fewer tags", 0, TAGS, 1, 1},
    {"more tags", 0, TAGS, 3, 1},
    {"too many tags", 3, TAGS, 9, 1},
    {"255 tags", 0, TAGS, 255, 1},
    {"not 0", 0, ZERO, 1, 1},
    {"stored before 1970", 0, CREATED, UINT64_MAX, 8},
    {"fresh before 1970", 0, FRESH, UINT64_MAX, 8},
    {"rests before 1970", 0, RETRY, UINT64_C(1) << 63, 8},
    {"more than there is", 0, RAW, 42, 4},
    {"less than there is", 0, RAW, 40, 4},
    {"nothing", 0, RAW, 0, 4},
    {"more is written", 0, WRITTEN, 42, 4},
    {"less is written", 0, WRITTEN, 40, 4},
    {"most is written", 0, WRITTEN, UINT32_MAX, 4},
    {"it unpacks to more", 1, RAW, 399, 4},
    {"it unpacks to less", 1, RAW, 401, 4},
    {"it unpacks to far less", 1, RAW, 5000, 4},
    {"it unpacks to nothing", 1, RAW, 0, 4},
    {"it unpacks to more than is wanted", 1, RAW, MIB + 1, 4},
    {"it unpacks to the most", 1, RAW, UINT32_MAX, 4},
    {"less is compressed", 1, WRITTEN, 10, 4},
    {"more is compressed", 1, WRITTEN, 399, 4},
};

WORLD_TEST(false_headers_refused) {
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    envelope_t envelope = sample(world, lies[i].which);
    put(&envelope, lies[i].at, lies[i].number, lies[i].len);
    seal(&envelope);
    expect_refused(world, &envelope, lies[i].what);
    free(envelope.bytes);
  }
  for (int which = 0; which < SAMPLES; which++) { /* sealing alone makes no lie */
    envelope_t envelope = sample(world, which), before = copy_of(envelope.bytes, envelope.len);
    seal(&envelope);
    assert_memory_equal(envelope.bytes, before.bytes, before.len);
    free(envelope.bytes);
    free(before.bytes);
  }
}

/* Complete envelopes except for their type. */
WORLD_TEST(malformed_records_refused) {
  envelope_t eight = sample(world, 3), nine = {malloc(eight.len + 16), eight.len + 16};
  assert_non_null(nine.bytes);
  memcpy(nine.bytes, eight.bytes, eight.len);
  memset(nine.bytes + eight.len, 0, 16);
  put(&nine, TAGS, 9, 1);
  seal(&nine);
  expect_refused(world, &nine, "nine tags");
  free(eight.bytes);
  free(nine.bytes);

  envelope_t plain = sample(world, 2), larger = {malloc(HEAD + 6), HEAD + 6};
  assert_non_null(larger.bytes);
  memcpy(larger.bytes, plain.bytes, HEAD);
  memcpy(larger.bytes + HEAD,
         "\x50"
         "aaaaa",
         6); /* LZ4's, of five bytes as they are */
  put(&larger, ENCODING, 1, 1);
  put(&larger, RAW, 5, 4);
  put(&larger, WRITTEN, 6, 4);
  seal(&larger);
  expect_refused(world, &larger, "compressed, and larger for it");
  free(larger.bytes);

  const size_t len = BELAY_CACHE_VALUE_MAX + 1;
  envelope_t largest = {calloc(1, HEAD + len), HEAD + len};
  assert_non_null(largest.bytes);
  memcpy(largest.bytes, plain.bytes, HEAD);
  put(&largest, RAW, len, 4);
  put(&largest, WRITTEN, len, 4);
  seal(&largest);
  assert_error(read_as(world, &largest, SIZE_MAX), BELAY_EMISMATCH);
  free(largest.bytes);
  free(plain.bytes);
}

/* So much as a few bytes can stand for. */
WORLD_TEST(decompression_bombs_refused) {
  belay__record_t *record = new_record(world, BELAY__RECORD_VALUE, 8 * MIB, 0, ZEROS);
  envelope_t bomb = written(world, record, 1);
  belay__record_release(&world->belay, record);
  assert_true(bomb.len < 8 * MIB / 200);
  assert_error(read_as(world, &bomb, 8 * MIB), 0);
  uint64_t allocations = world->belay.stats.allocations;
  assert_error(read_as(world, &bomb, 8 * MIB - 1), BELAY_EMISMATCH);
  assert_error(read_as(world, &bomb, 0), BELAY_EMISMATCH);
  assert_int_equal(world->belay.stats.allocations, allocations); /* nothing was made for it */
  static const size_t sizes[] = {8 * MIB - 1, MIB, 8 * MIB + 1, 2 * (size_t)8 * MIB};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    put(&bomb, RAW, sizes[i], 4);
    seal(&bomb);
    assert_error(read_as(world, &bomb, SIZE_MAX), BELAY_EMISMATCH);
  }
  /* More than LZ4 can do: not even tried. And more than any value has. */
  allocations = world->belay.stats.allocations;
  put(&bomb, RAW, 32 * MIB, 4);
  seal(&bomb);
  assert_error(read_as(world, &bomb, SIZE_MAX), BELAY_EMISMATCH);
  put(&bomb, RAW, BELAY_CACHE_VALUE_MAX + 1, 4);
  seal(&bomb);
  assert_error(read_as(world, &bomb, SIZE_MAX), BELAY_EMISMATCH);
  assert_int_equal(world->belay.stats.allocations, allocations);
  free(bomb.bytes);
}

/* Random bytes are read as they say, or refused. */
WORLD_TEST(random_bytes) {
  size_t accepted = 0;
  for (int i = 0; i < 60000; i++) {
    envelope_t envelope = sample(world, i % SAMPLES);
    size_t hits = 1 + draw(world) % 3;
    for (size_t j = 0; j < hits; j++) {
      size_t from = i % 2 == 0 ? HEAD : 0; /* every other time the data, which LZ4 reads */
      if (envelope.len > from)
        envelope.bytes[from + draw(world) % (envelope.len - from)] = (unsigned char)draw(world);
    }
    seal(&envelope);
    belay__record_t *record;
    int error = belay__record_read(&world->belay, envelope.bytes, envelope.len, 1000, &record);
    if (error == 0) {
      accepted++;
      assert_true(record->len <= 1000);
      envelope_t again = written(world, record, 100); /* it is one that may be kept */
      assert_error(read_as(world, &again, record->len), 0);
      free(again.bytes);
    } else {
      assert_error(error, BELAY_EMISMATCH);
    }
    belay__record_release(&world->belay, record);
    free(envelope.bytes);
  }
  print_message("%zu of 60000 are records\n", accepted);
  assert_true(accepted > 1000 && accepted < 59000);
  for (int i = 0; i < 20000; i++) { /* and from nothing */
    envelope_t envelope = {malloc(200), draw(world) % 200};
    assert_non_null(envelope.bytes);
    fill(world, envelope.bytes, envelope.len, RANDOM);
    memcpy(envelope.bytes, BELAY__RECORD_MAGIC, envelope.len < 4 ? envelope.len : 4);
    expect_refused(world, &envelope, "at random");
    free(envelope.bytes);
  }
}

/* ---- the format ---- */

/* Other processes, and versions to come, read these. */
// clang-format off
static const unsigned char golden_value[] = {
    0xbe, 'l', 'y', 1, 1, 0, 1, 0, /* a value, in plain, one tag */
    1, 2, 3, 4, 5, 6, 7, 8, /* fresh */
    8, 7, 6, 5, 4, 3, 2, 1, /* retry */
    0x55, 0xdf, 0x53, 0x38, 0xdb, 0xf6, 0x1f, 0x49, /* sum */
    0xef, 0xcd, 0xab, 0x90, 0x78, 0x56, 0x34, 0x12, /* stored */
    0xd2, 0x02, 0x96, 0x49, 0, 0, 0, 0, /* load, error */
    'i', 'd', 'e', 'n', 't', 'i', 't', 'y', /* id */
    '-', '-', 'o', 'f', '-', 'o', 'n', 'e',
    5, 0, 0, 0, 5, 0, 0, 0, /* data, as it is written */
    't', 'a', 'g', '\'', 's', ' ', 'g', 'e', /* generation */
    'n', 'e', 'r', 'a', 't', 'i', 'o', 'n',
    'h', 'e', 'l', 'l', 'o', /* data */
};
static const unsigned char golden_error[] = {
    0xbe, 'l', 'y', 1, 3, 0, 0, 0, /* an error */
    2, 0, 0, 0, 0, 0, 0, 0, /* fresh */
    0, 0, 0, 0, 0, 0, 0, 0, /* retry */
    0xa5, 0x0b, 0x96, 0x47, 0x96, 0xf9, 0xe7, 0x67, /* sum */
    1, 0, 0, 0, 0, 0, 0, 0, /* stored */
    0xff, 0xff, 0xff, 0xff, 0xfb, 0xff, 0xff, 0xff, /* load, error: -5 */
    0, 1, 2, 3, 4, 5, 6, 7, /* id */
    8, 9, 10, 11, 12, 13, 14, 15,
    0, 0, 0, 0, 0, 0, 0, 0, /* no data */
};
/* A hundred times 'a': one literal, and a match of 94 at a distance of 1; then five literals. */
static const unsigned char golden_lz4[] = {
    0xbe, 'l', 'y', 1, 1, 1, 0, 0, /* a value, compressed */
    2, 0, 0, 0, 0, 0, 0, 0, /* fresh */
    0, 0, 0, 0, 0, 0, 0, 0, /* retry */
    0x07, 0x55, 0x02, 0xe7, 0x2a, 0xc6, 0xfc, 0x1a, /* sum */
    1, 0, 0, 0, 0, 0, 0, 0, /* stored */
    1, 0, 0, 0, 0, 0, 0, 0, /* load, error */
    0, 1, 2, 3, 4, 5, 6, 7, /* id */
    8, 9, 10, 11, 12, 13, 14, 15,
    100, 0, 0, 0, 11, 0, 0, 0, /* data, as it is written */
    0x1f, 'a', 1, 0, 75, 0x50, 'a', 'a', /* data */
    'a', 'a', 'a',
};
// clang-format on

static void expect_written(world_t *world, const belay__record_t *record, const void *golden,
                           size_t len) {
  envelope_t envelope = written(world, record, 0);
  assert_int_equal(envelope.len, len);
  assert_memory_equal(envelope.bytes, golden, len);
  free(envelope.bytes);
}

static belay__record_t *read_golden(world_t *world, const void *golden, size_t len) {
  belay__record_t *record;
  assert_error(belay__record_read(&world->belay, golden, len, 100, &record), 0);
  return record;
}

WORLD_TEST(format_is_stable) {
  belay__record_t *record = read_golden(world, golden_value, sizeof golden_value);
  assert_int_equal(record->kind, BELAY__RECORD_VALUE);
  assert_true(record->created_ms == INT64_C(0x1234567890abcdef));
  assert_true(record->fresh_ms == INT64_C(0x0807060504030201));
  assert_true(record->retry_ms == INT64_C(0x0102030405060708));
  assert_int_equal(record->load_us, 1234567890);
  assert_int_equal(record->error, 0);
  assert_memory_equal(record->id, "identity--of-one", BELAY__RECORD_ID);
  assert_int_equal(record->tags_len, 1);
  assert_memory_equal(belay__record_tag(record, 0), "tag's generation", BELAY__RECORD_ID);
  assert_int_equal(record->len, 5);
  assert_memory_equal(record->bytes, "hello", 5);
  expect_written(world, record, golden_value, sizeof golden_value);
  belay__record_release(&world->belay, record);

  record = read_golden(world, golden_error, sizeof golden_error);
  assert_int_equal(record->kind, BELAY__RECORD_ERROR);
  assert_int_equal(record->error, -5);
  assert_int_equal(record->load_us, UINT32_MAX);
  expect_written(world, record, golden_error, sizeof golden_error);
  belay__record_release(&world->belay, record);

  record = read_golden(world, golden_lz4, sizeof golden_lz4); /* how LZ4 writes it is its own */
  assert_int_equal(record->len, 100);
  for (size_t i = 0; i < 100; i++)
    assert_int_equal(record->bytes[i], 'a');
  belay__record_release(&world->belay, record);
}

WORLD_TEST(scripts_write_times_in_place) {
  static const struct {
    int64_t ms;
    unsigned char bytes[8];
  } cases[] = {
      {0, {0}},
      {1, {1}},
      {1700000000123, {0x7b, 0x68, 0xe5, 0xcf, 0x8b, 0x01}},
      {INT64_MAX, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}},
  };
  envelope_t envelope = sample(world, 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char ms[8];
    belay__record_put_ms(ms, cases[i].ms);
    assert_memory_equal(ms, cases[i].bytes, 8);
    memcpy(envelope.bytes + BELAY__RECORD_AT_FRESH, ms, 8);
    belay__record_put_ms(ms, cases[i].ms / 2);
    memcpy(envelope.bytes + BELAY__RECORD_AT_RETRY, ms, 8);
    belay__record_t *record;
    assert_error(belay__record_read(&world->belay, envelope.bytes, envelope.len, MIB, &record), 0);
    assert_true(record->fresh_ms == cases[i].ms && record->retry_ms == cases[i].ms / 2);
    assert_memory_equal(record->id, envelope.bytes + BELAY__RECORD_AT_ID, BELAY__RECORD_ID);
    belay__record_release(&world->belay, record);
  }
  free(envelope.bytes);
}

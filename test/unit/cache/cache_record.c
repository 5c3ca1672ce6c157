/* Envelopes: a written one is read. */
#include "support/models/envelopes.h"

/* ---- what was written is read ---- */

static void expect_same(const belay__record_t *a, const belay__record_t *b) {
  assert_int_equal(a->kind, b->kind);
  assert_int_equal(a->tags_len, b->tags_len);
  assert_int_equal(a->error, b->error);
  assert_int_equal(a->load_us, b->load_us);
  assert_true(a->created_ms == b->created_ms && a->fresh_ms == b->fresh_ms &&
              a->retry_ms == b->retry_ms);
  assert_memory_equal(a->id, b->id, sizeof a->id);
  assert_int_equal(a->len, b->len);
  assert_int_equal(memcmp(a->bytes, b->bytes, a->len + a->tags_len * BELAY__RECORD_ID), 0);
}

static void round_trip(world_t *world, const belay__record_t *record, size_t compress_bytes) {
  envelope_t envelope = written(world, record, compress_bytes);
  size_t plain = HEAD + record->tags_len * BELAY__RECORD_ID + record->len;
  bool compressed = envelope.bytes[ENCODING] == 1;
  assert_true(compressed ? envelope.len < plain : envelope.len == plain);
  if (compress_bytes == 0 || record->len < compress_bytes)
    assert_false(compressed);
  belay__record_t *back;
  assert_error(belay__record_read(&world->belay, envelope.bytes, envelope.len, record->len, &back),
               0);
  expect_same(back, record);
  assert_int_equal(back->refs, 1);
  assert_int_equal(belay__record_size(back), belay__record_size(record));
  belay__record_release(&world->belay, back);
  if (record->len > 0)
    assert_error(read_as(world, &envelope, record->len - 1), BELAY_EMISMATCH);
  free(envelope.bytes);
}

WORLD_TEST(any_bytes_round_trip) {
  static const size_t lens[] = {0,  1,   2,   11,  12,   13,    15,     16,
                                17, 100, 240, 241, 1000, 65536, 100001, MIB + 3};
  static const size_t tags[] = {0, 1, 8};
  for (size_t i = 0; i < sizeof lens / sizeof *lens; i++)
    for (size_t j = 0; j < sizeof tags / sizeof *tags; j++)
      for (content_t content = ZEROS; content < CONTENTS; content++) {
        belay__record_t *record = new_record(world, BELAY__RECORD_VALUE, lens[i], tags[j], content);
        round_trip(world, record, 0);
        round_trip(world, record, 1);
        round_trip(world, record, lens[i]);
        round_trip(world, record, lens[i] + 1);
        belay__record_release(&world->belay, record);
      }
}

WORLD_TEST(large_values) {
  static const size_t lens[] = {8 * MIB - 1, 8 * MIB, BELAY_CACHE_VALUE_MAX};
  for (size_t i = 0; i < sizeof lens / sizeof *lens; i++)
    for (content_t content = ZEROS; content < CONTENTS; content += 2) {
      belay__record_t *record = new_record(world, BELAY__RECORD_VALUE, lens[i], 8, content);
      round_trip(world, record, content == ZEROS ? 1 : 0);
      belay__record_release(&world->belay, record);
    }
}

WORLD_TEST(records_without_data) {
  static const int32_t errors[] = {1, -1, INT32_MAX, INT32_MIN, BELAY_ETIMEDOUT};
  belay__record_t *record = new_record(world, BELAY__RECORD_ABSENT, 0, 3, ZEROS);
  round_trip(world, record, 1);
  belay__record_release(&world->belay, record);
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    record = new_record(world, BELAY__RECORD_ERROR, 0, i, ZEROS);
    record->error = errors[i];
    round_trip(world, record, 1);
    belay__record_release(&world->belay, record);
  }
}

WORLD_TEST(numbers_at_their_ends) {
  belay__record_t *record = new_record(world, BELAY__RECORD_VALUE, 3, 0, TEXT);
  record->created_ms = record->fresh_ms = record->retry_ms = INT64_MAX;
  record->load_us = UINT32_MAX;
  round_trip(world, record, 0);
  record->created_ms = record->fresh_ms = record->retry_ms = 0;
  record->load_us = 0;
  round_trip(world, record, 0);
  belay__record_release(&world->belay, record);
}

WORLD_TEST(compression_only_if_smaller) {
  static const struct {
    size_t len, compress_bytes;
    content_t content;
    bool compressed;
  } cases[] = {
      {1000, 0, TEXT, false},     {1000, 1000, TEXT, true},    {1000, 1001, TEXT, false},
      {1000, 1000, ZEROS, true},  {1000, 1000, RANDOM, false}, {1, 1, ZEROS, false},
      {MIB, 1000, RANDOM, false}, {MIB, 1000, ZEROS, true},    {0, 1, ZEROS, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    belay__record_t *record =
        new_record(world, BELAY__RECORD_VALUE, cases[i].len, 0, cases[i].content);
    envelope_t envelope = written(world, record, cases[i].compress_bytes);
    assert_int_equal(envelope.bytes[ENCODING], cases[i].compressed);
    if (cases[i].compressed)
      assert_true(envelope.len < HEAD + cases[i].len / 4);
    free(envelope.bytes);
    belay__record_release(&world->belay, record);
  }
}

/* Compressed by one byte, by none, or not: also such are read. */
WORLD_TEST(compression_threshold) {
  size_t ended[2] = {0};
  for (size_t noise = 0; noise < 64; noise++)
    for (size_t zeros = 0; zeros < 32; zeros++) {
      belay__record_t *record = new_record(world, BELAY__RECORD_VALUE, noise + zeros, 0, ZEROS);
      fill(world, record->bytes, noise, RANDOM);
      round_trip(world, record, 1);
      envelope_t envelope = written(world, record, 1);
      ended[envelope.bytes[ENCODING]]++;
      free(envelope.bytes);
      belay__record_release(&world->belay, record);
    }
  assert_true(ended[0] > 500 && ended[1] > 500);
  for (size_t behind = 8; behind < 15; behind++) { /* four bytes again, which costs four */
    belay__record_t *record = new_record(world, BELAY__RECORD_VALUE, 12 + behind, 0, RANDOM);
    memcpy(record->bytes + 8, record->bytes, 4);
    round_trip(world, record, 1);
    belay__record_release(&world->belay, record);
  }
}

WORLD_TEST(record_as_value) {
  belay__record_t *inner = new_record(world, BELAY__RECORD_VALUE, 300, 2, TEXT);
  for (size_t compress = 0; compress <= 1; compress++) {
    envelope_t inside = written(world, inner, compress);
    belay__record_t *outer = belay__record_new(&world->belay, BELAY__RECORD_VALUE, inside.len, 0);
    assert_non_null(outer);
    memcpy(outer->bytes, inside.bytes, inside.len);
    round_trip(world, outer, compress);
    envelope_t outside = written(world, outer, 0);
    assert_memory_equal(outside.bytes + HEAD, inside.bytes, inside.len);
    outside.bytes[outside.len - 1] ^= 1; /* the outer one answers for the inner one */
    assert_error(read_as(world, &outside, MIB), BELAY_EMISMATCH);
    free(outside.bytes);
    free(inside.bytes);
    belay__record_release(&world->belay, outer);
  }
  belay__record_release(&world->belay, inner);
}

/* ---- memory ---- */

WORLD_TEST(last_release_frees) {
  belay__record_t *record = new_record(world, BELAY__RECORD_VALUE, 100, 3, TEXT);
  assert_int_equal(world->belay.stats.memory_bytes, belay__record_size(record));
  assert_true(belay__record_size(record) >= sizeof *record + 100 + 3 * BELAY__RECORD_ID);
  assert_ptr_equal(belay__record_retain(record), record);
  belay__record_release(&world->belay, record);
  assert_int_equal(record->refs, 1);
  assert_int_equal(record->len, 100);
  belay__record_release(&world->belay, record);
  assert_int_equal(world->belay.stats.memory_bytes, 0);
  belay__record_release(&world->belay, NULL);
}

WORLD_TEST(new_record_is_empty) {
  belay__record_t *record = belay__record_new(&world->belay, BELAY__RECORD_ABSENT, 0, 0);
  static const unsigned char none[BELAY__RECORD_ID] = {0};
  assert_int_equal(record->refs, 1);
  assert_int_equal(record->kind, BELAY__RECORD_ABSENT);
  assert_true(record->tags_len == 0 && record->error == 0 && record->load_us == 0);
  assert_true(record->created_ms == 0 && record->fresh_ms == 0 && record->retry_ms == 0);
  assert_memory_equal(record->id, none, sizeof none);
  assert_true(record->len == 0);
  belay__record_release(&world->belay, record);
}

WORLD_TEST(no_memory) {
  belay__record_t *record = new_record(world, BELAY__RECORD_VALUE, 1000, 1, TEXT), *back;
  envelope_t envelope = written(world, record, 1);
  char *out;
  size_t len, size;
  world->allocations = 0;
  world->fail_at = 1;
  world->fail_on = true;
  assert_null(belay__record_new(&world->belay, BELAY__RECORD_VALUE, 1, 0));
  for (size_t compress = 0; compress <= 1; compress++) {
    assert_error(belay__record_write(&world->belay, record, compress, &out, &len, &size),
                 BELAY_ENOMEM);
    assert_null(out);
  }
  assert_error(belay__record_read(&world->belay, envelope.bytes, envelope.len, MIB, &back),
               BELAY_ENOMEM);
  assert_null(back);
  world->allocations = 0; /* each of them is content with one */
  world->fail_at = 2;
  assert_error(belay__record_read(&world->belay, envelope.bytes, envelope.len, MIB, &back), 0);
  world->allocations = 0;
  assert_error(belay__record_write(&world->belay, record, 1, &out, &len, &size), 0);
  belay__free(&world->belay, out, size);
  belay__record_release(&world->belay, back);
  belay__record_release(&world->belay, record);
  free(envelope.bytes);
}

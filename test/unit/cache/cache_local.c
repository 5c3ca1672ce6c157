/* The table of records of a process: its limits. Lookups and lifetimes: cache_local_model.c. */
#include <stdio.h>
#include <string.h>

#include "cache/local.h"
#include "support/base/small.h"

#define COUNTERS_SIZE (BELAY__LOCAL_COUNTERS * sizeof(uint32_t))
#define BUCKET sizeof(void *)

/* ---- putting and finding ---- */

static belay__record_t *new_record(world_t *world, size_t len, int64_t serial) {
  belay__record_t *record = belay__record_new(&world->belay, BELAY__RECORD_VALUE, len, 0);
  if (record != NULL)
    record->created_ms = serial;
  return record;
}

static belay__stamp_t stamp_of(const belay__local_t *local, const char *key, const char *tag) {
  belay_bytes_t tags = {.data = tag, .len = tag == NULL ? 0 : strlen(tag)};
  belay__stamp_t stamp;
  belay__local_stamp(local, key, strlen(key), &tags, tag != NULL, &stamp);
  return stamp;
}

/* Puts a record of 100 bytes that is good until 1000, and kept until 2000. */
static void put_stamped(world_t *world, belay__local_t *local, const char *key, int64_t serial,
                        const belay__stamp_t *stamp) {
  belay__record_t *record = new_record(world, 100, serial);
  assert_non_null(record);
  belay__local_put(local, key, strlen(key), record, stamp, 1000, 2000);
  belay__record_release(&world->belay, record);
}

static void put(world_t *world, belay__local_t *local, const char *key, int64_t serial) {
  belay__stamp_t stamp = stamp_of(local, key, NULL);
  put_stamped(world, local, key, serial, &stamp);
}

/* Its serial, or 0. */
static int64_t found(belay__local_t *local, const char *key, uint64_t now, bool fresh) {
  belay__local_hit_t hit = belay__local_find(local, key, strlen(key), now);
  if (hit.record == NULL) {
    assert_false(hit.fresh);
    return 0;
  }
  assert_int_equal(hit.fresh, fresh);
  return hit.record->created_ms;
}

static void invalidate(belay__local_t *local, const char *name, bool is_tag) {
  belay__local_invalidate(local, belay__local_hash(name, strlen(name), is_tag));
}

static void init(world_t *world, belay__local_t *local, size_t max_bytes) {
  assert_error(belay__local_init(local, &world->belay, max_bytes), 0);
}

/* ---- one thing after the other ---- */

/* Published hashes, which all versions must understand. */
TEST(hashes_are_what_they_were) {
  static const char longer[] = "a longer key, of more than sixteen bytes";
  assert_true(belay__local_hash("", 0, false) == UINT64_C(0x2d06800538d394c2));
  assert_true(belay__local_hash("key", 3, false) == UINT64_C(0xbbea0d63a05165e3));
  assert_true(belay__local_hash("key", 3, true) == UINT64_C(0x0c37033bf42105f2));
  assert_true(belay__local_hash("tag", 3, true) == UINT64_C(0xb52b6927413a7098));
  assert_true(belay__local_hash(longer, sizeof longer - 1, false) == UINT64_C(0xe6e8c8371e80e17a));
  assert_true(belay__local_hash(longer, sizeof longer - 1, true) == UINT64_C(0x63c1c9127108ad57));
}

WORLD_TEST(names_are_bytes) {
  belay__local_t local;
  init(world, &local, 100000);
  static char longest[BELAY_CACHE_KEY_MAX];
  memset(longest, 'k', sizeof longest);
  const belay_bytes_t keys[] = {{.data = "a", .len = 1},
                                {.data = "a\0", .len = 2},
                                {.data = "a\0b", .len = 3},
                                {.data = "ab", .len = 2},
                                {.data = longest, .len = sizeof longest},
                                {.data = longest, .len = sizeof longest - 1}};
  enum { N = sizeof keys / sizeof *keys };
  for (int i = 0; i < N; i++) {
    belay__stamp_t stamp;
    belay__local_stamp(&local, keys[i].data, keys[i].len, NULL, 0, &stamp);
    belay__record_t *record = new_record(world, 0, i + 1);
    belay__local_put(&local, keys[i].data, keys[i].len, record, &stamp, 10, 10);
    belay__record_release(&world->belay, record);
  }
  for (int i = 0; i < N; i++) {
    belay__local_hit_t hit = belay__local_find(&local, keys[i].data, keys[i].len, 0);
    assert_non_null(hit.record);
    assert_int_equal(hit.record->created_ms, i + 1);
  }
  belay__local_free(&local);
}

WORLD_TEST(tag_invalidates_its_entries) {
  belay__local_t local;
  init(world, &local, 10000);
  belay__stamp_t red = stamp_of(&local, "a", "red"), blue = stamp_of(&local, "b", "blue");
  put_stamped(world, &local, "a", 1, &red);
  put_stamped(world, &local, "b", 2, &blue);
  belay__stamp_t other = stamp_of(&local, "c", "red");
  put_stamped(world, &local, "c", 3, &other);
  invalidate(&local, "red", false); /* a key is no tag */
  assert_int_equal(found(&local, "a", 0, true), 1);
  invalidate(&local, "red", true);
  assert_int_equal(found(&local, "a", 0, false), 0);
  assert_int_equal(found(&local, "b", 0, true), 2);
  assert_int_equal(found(&local, "c", 0, false), 0);
  belay_bytes_t tags[BELAY_CACHE_TAGS_MAX]; /* the last of many counts too */
  static const char *const names[] = {"1", "2", "3", "4", "5", "6", "7", "8"};
  for (size_t i = 0; i < BELAY_CACHE_TAGS_MAX; i++)
    tags[i] = (belay_bytes_t){.data = names[i], .len = 1};
  for (size_t i = 0; i < BELAY_CACHE_TAGS_MAX; i++) {
    belay__stamp_t stamp;
    belay__local_stamp(&local, "d", 1, tags, BELAY_CACHE_TAGS_MAX, &stamp);
    put_stamped(world, &local, "d", 4, &stamp);
    assert_int_equal(found(&local, "d", 0, true), 4);
    invalidate(&local, names[i], true);
    assert_int_equal(found(&local, "d", 0, false), 0);
  }
  belay__local_free(&local);
}

WORLD_TEST(put_replaces_entry) {
  belay__local_t local;
  init(world, &local, 10000);
  put(world, &local, "a", 1);
  size_t bytes = local.bytes;
  put(world, &local, "a", 2);
  assert_int_equal(local.bytes, bytes);
  assert_int_equal(local.table.count, 1);
  /* Also by itself, under another stamp and for longer. */
  belay__record_t *record = belay__local_find(&local, "a", 1, 0).record;
  belay__stamp_t stamp = stamp_of(&local, "a", NULL);
  belay__local_put(&local, "a", 1, record, &stamp, 5000, 5000);
  assert_int_equal(found(&local, "a", 4999, true), 2);
  assert_int_equal(local.bytes, bytes);
  assert_int_equal(record->refs, 1);
  belay__local_free(&local);
}

WORLD_TEST(record_outlives_its_entry) {
  belay__local_t local;
  init(world, &local, 10000);
  put(world, &local, "a", 1);
  belay__record_t *record = belay__record_retain(belay__local_find(&local, "a", 1, 0).record);
  belay__local_free(&local);
  assert_int_equal(record->refs, 1);
  assert_int_equal(record->created_ms, 1);
  belay__record_release(&world->belay, record);
}

/* ---- room ---- */

/* Bytes that one of put() takes, of a key of one byte. */
static size_t size_of_one(world_t *world) {
  belay__local_t local;
  init(world, &local, 10000);
  put(world, &local, "a", 1);
  size_t bytes = local.bytes - 16 * BUCKET;
  assert_int_equal(world->belay.stats.memory_bytes, local.bytes + COUNTERS_SIZE);
  belay__local_free(&local);
  return bytes;
}

WORLD_TEST(buckets_count) {
  belay__local_t local;
  size_t one = size_of_one(world);
  init(world, &local, 16 * BUCKET + 16 * one); /* full, and the buckets are too */
  const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                              "j", "k", "l", "m", "n", "o", "p", "q"};
  for (int i = 0; i < 17; i++)
    put(world, &local, keys[i], i + 1);
  assert_int_equal(local.table.count, 16);
  assert_int_equal(local.table.size, 16); /* as one went before the last one came */
  assert_int_equal(found(&local, "a", 0, false), 0);
  belay__local_free(&local);
  init(world, &local,
       16 * BUCKET + 17 * one); /* one more fits, but for the buckets that it needs */
  for (int i = 0; i < 17; i++)
    put(world, &local, keys[i], i + 1);
  assert_int_equal(local.table.size, 32);
  assert_true(local.bytes <= local.max_bytes);
  assert_int_equal(local.table.count, 16);
  assert_int_equal(found(&local, "a", 0, false), 0);
  assert_int_equal(found(&local, "q", 0, true), 17);
  belay__local_free(&local);
}

WORLD_TEST(large_record_not_stored) {
  belay__local_t local;
  size_t one = size_of_one(world);
  init(world, &local, 16 * BUCKET + 3 * one);
  static const size_t lens[] = {1, 2, 3};
  put(world, &local, "a", 1);
  put(world, &local, "b", 2);
  for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
    bool fits = lens[i] < 3; /* just; or one byte more */
    belay__record_t *record = new_record(world, 100 + 2 * one + (fits ? 0 : 1), 3);
    belay__stamp_t stamp = stamp_of(&local, "b", NULL);
    belay__local_put(&local, "b", 1, record, &stamp, 1000, 1000);
    belay__record_release(&world->belay, record);
    assert_int_equal(found(&local, "b", 0, fits), fits ? 3 : 0);
    assert_int_equal(local.table.count, fits ? 1 : 0);
    assert_true(local.bytes <= local.max_bytes);
  }
  put(world, &local, "a", 1);
  belay__record_t *record = new_record(world, (size_t)8 * 1024 * 1024, 4);
  belay__stamp_t stamp = stamp_of(&local, "c", NULL);
  belay__local_put(&local, "c", 1, record, &stamp, 1000, 1000);
  belay__record_release(&world->belay, record);
  assert_int_equal(found(&local, "c", 0, false), 0);
  assert_int_equal(found(&local, "a", 0, true), 1); /* no other lookup used it */
  belay__local_free(&local);
}

/* A table that is smaller than its first buckets, and one that has no room beside them. */
WORLD_TEST(a_tiny_table_holds_nothing) {
  static const size_t sizes[] = {1, 16 * BUCKET, 16 * BUCKET + 100};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    belay__local_t local;
    init(world, &local, sizes[i]);
    for (int j = 1; j < 4; j++) {
      put(world, &local, "a", j);
      assert_int_equal(found(&local, "a", 0, false), 0);
      assert_true(local.bytes <= local.max_bytes);
    }
    belay__local_free(&local);
  }
}

WORLD_TEST(without_a_table_stamps_are_good) {
  belay__local_t local;
  init(world, &local, 0);
  assert_int_equal(world->belay.stats.memory_bytes, 0);
  belay__stamp_t stamp = stamp_of(&local, "a", "red");
  invalidate(&local, "a", false);
  invalidate(&local, "red", true);
  assert_true(belay__local_is_good(&local, &stamp));
  belay__local_note_gap(&local);
  belay__local_restamp(&local, &stamp);
  assert_true(belay__local_is_good(&local, &stamp));
  put_stamped(world, &local, "a", 1, &stamp);
  assert_int_equal(found(&local, "a", 0, false), 0);
  assert_int_equal(local.bytes, 0);
  belay__local_free(&local);
}

WORLD_TEST(a_hit_allocates_nothing) {
  belay__local_t local;
  init(world, &local, 1000000);
  static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  for (int i = 0; i < 8; i++)
    put(world, &local, keys[i], i + 1);
  size_t allocations = world->allocations;
  for (int i = 0; i < 1000; i++)
    assert_int_equal(found(&local, keys[i % 8], 0, true), i % 8 + 1);
  assert_int_equal(found(&local, "x", 0, false), 0);
  assert_int_equal(world->allocations, allocations);
  belay__local_free(&local);
}

/* ---- memory ---- */

/* Puts and finds: after any failure, a found value is the last one put. */
static void exercise(world_t *world, belay__local_t *local) {
  int64_t last[40] = {0};
  for (int i = 0; i < 120; i++) {
    char key[32];
    int k = i * 7 % 40;
    size_t len = (size_t)snprintf(key, sizeof key, "key %d", k);
    belay__record_t *record = new_record(world, (size_t)(i % 50), i + 1);
    last[k] = i + 1;
    if (record != NULL) {
      belay__stamp_t stamp;
      belay__local_stamp(local, key, len, NULL, 0, &stamp);
      belay__local_put(local, key, len, record, &stamp, 10, 10);
      belay__record_release(&world->belay, record);
    } else {
      belay__local_invalidate(local, belay__local_hash(key, len, false));
      last[k] = 0;
    }
    belay__local_hit_t hit = belay__local_find(local, key, len, 0);
    if (hit.record != NULL)
      assert_int_equal(hit.record->created_ms, last[k]);
    else if (world->fail_at == 0)
      fail_msg("%s is not there", key);
    assert_true(local->bytes <= local->max_bytes);
    assert_int_equal(world->belay.stats.memory_bytes, local->bytes + COUNTERS_SIZE);
  }
}

WORLD_TEST(each_allocation_fails_in_turn) {
  for (int on = 0; on <= 1; on++) {
    bool failed = true;
    for (size_t at = 1; failed; at++) {
      world->allocations = 0;
      world->fail_at = at;
      world->fail_on = on;
      belay__local_t local;
      int error = belay__local_init(&local, &world->belay, 6000);
      assert_error(error, at == 1 ? BELAY_ENOMEM : 0);
      if (error == 0)
        exercise(world, &local);
      belay__local_free(&local);
      assert_int_equal(world->belay.stats.memory_bytes, 0);
      failed = world->allocations >= at;
    }
    world->fail_at = 0;
  }
  belay__local_t local;
  init(world, &local, 6000);
  exercise(world, &local);
  belay__local_free(&local);
}

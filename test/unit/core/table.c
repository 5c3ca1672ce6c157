/* The table that lives inside what it holds. */
#include <belay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/loop/loop.h"
#include "core/key/table.h"
#include "support/base/test.h"

#define ITEMS 5000

typedef struct item {
  char name[16];
  belay__entry_t entry; /* not the first member, so that the container is not the entry */
} item_t;

typedef struct world {
  belay_t belay;
  size_t allocations, fail_from; /* 0: never */
  uint64_t seed;
} world_t;

static void *count_alloc(void *ctx, size_t size) {
  world_t *world = ctx;
  if (++world->allocations >= world->fail_from && world->fail_from > 0)
    return NULL;
  return malloc(size);
}

static void count_free(void *ctx, void *ptr) {
  (void)ctx;
  free(ptr);
}

static int draw(belay_t *belay, void *buffer, size_t len) {
  world_t *world = BELAY__CONTAINER(belay, world_t, belay);
  memset(buffer, 0, len);
  memcpy(buffer, &world->seed, sizeof world->seed);
  return 0;
}

static const belay__host_ops_t host = {.random = draw};

static world_t *world_new(uint64_t seed) {
  world_t *world = calloc(1, sizeof *world);
  belay_options_t options;
  belay_options_init(&options);
  options.allocator = (belay_allocator_t){count_alloc, count_free, world};
  belay__init(&world->belay, &host, &options);
  world->seed = seed;
  return world;
}

static bool is_item(const belay__entry_t *entry, const void *name, size_t len) {
  const item_t *item = BELAY__CONTAINER(entry, item_t, entry);
  return strlen(item->name) == len && memcmp(item->name, name, len) == 0;
}

static item_t *find(world_t *world, belay__table_t *table, const char *name) {
  uint64_t hash = belay__table_hash(&world->belay, table, name, strlen(name));
  belay__entry_t *entry = belay__table_find(table, hash, is_item, name, strlen(name));
  return entry == NULL ? NULL : BELAY__CONTAINER(entry, item_t, entry);
}

static int add(world_t *world, belay__table_t *table, item_t *item, int number) {
  snprintf(item->name, sizeof item->name, "n%d", number);
  uint64_t hash = belay__table_hash(&world->belay, table, item->name, strlen(item->name));
  return belay__table_add(&world->belay, table, &item->entry, hash);
}

TEST(everything_that_was_added_is_found_until_it_is_taken_out) {
  world_t *world = world_new(7);
  belay__table_t table = {0};
  static item_t items[ITEMS];
  assert_null(find(world, &table, "n0"));
  for (int i = 0; i < ITEMS; i++) {
    assert_error(add(world, &table, &items[i], i), 0);
    assert_int_equal(table.count, i + 1);
  }
  assert_true(table.size >= ITEMS / 2);
  for (int i = 0; i < ITEMS; i++)
    assert_ptr_equal(find(world, &table, items[i].name), &items[i]);
  assert_null(find(world, &table, "n5000"));
  assert_null(find(world, &table, ""));
  for (int i = 0; i < ITEMS; i += 2)
    belay__table_remove(&table, &items[i].entry);
  assert_int_equal(table.count, ITEMS / 2);
  for (int i = 0; i < ITEMS; i++)
    assert_ptr_equal(find(world, &table, items[i].name), i % 2 == 0 ? NULL : &items[i]);
  belay__table_free(&world->belay, &table);
  assert_int_equal(world->belay.stats.memory_bytes, 0);
  assert_null(find(world, &table, "n1"));
  free(world);
}

TEST(names_that_meet_are_told_apart) {
  world_t *world = world_new(7);
  belay__table_t table = {0};
  item_t items[3] = {{.name = "one"}, {.name = "two"}, {.name = "three"}};
  for (int i = 0; i < 3; i++)
    assert_error(belay__table_add(&world->belay, &table, &items[i].entry, 42), 0);
  assert_ptr_equal(belay__table_find(&table, 42, is_item, "one", 3), &items[0].entry);
  assert_ptr_equal(belay__table_find(&table, 42, is_item, "three", 5), &items[2].entry);
  assert_null(belay__table_find(&table, 42 + 16, is_item, "one", 3)); /* the same bucket */
  belay__table_remove(&table, &items[1].entry);
  assert_null(belay__table_find(&table, 42, is_item, "two", 3));
  assert_ptr_equal(belay__table_find(&table, 42, is_item, "one", 3), &items[0].entry);
  belay__table_free(&world->belay, &table);
  free(world);
}

TEST(without_memory_only_the_first_cannot_be_added) {
  world_t *world = world_new(7);
  belay__table_t table = {0};
  static item_t items[500];
  world->fail_from = 1;
  assert_error(add(world, &table, &items[0], 0), BELAY_ENOMEM);
  assert_int_equal(table.count, 0);
  world->fail_from = 3; /* the first buckets can be made, and none after them */
  for (int i = 0; i < 500; i++)
    assert_error(add(world, &table, &items[i], i), 0);
  assert_int_equal(table.size, 16);
  for (int i = 0; i < 500; i++)
    assert_ptr_equal(find(world, &table, items[i].name), &items[i]);
  world->fail_from = 0;
  item_t last;
  assert_error(add(world, &table, &last, 500), 0);
  assert_int_equal(table.size, 32); /* it goes on growing */
  for (int i = 0; i < 500; i++)
    assert_ptr_equal(find(world, &table, items[i].name), &items[i]);
  belay__table_free(&world->belay, &table);
  free(world);
}

TEST(another_seed_is_another_hash) {
  world_t *one = world_new(1), *two = world_new(2);
  belay__table_t a = {0}, b = {0}, c = {0};
  uint64_t hash = belay__table_hash(&one->belay, &a, "name", 4);
  assert_true(hash == belay__table_hash(&one->belay, &b, "name", 4));
  assert_true(hash != belay__table_hash(&two->belay, &c, "name", 4));
  assert_true(hash != belay__table_hash(&one->belay, &a, "name\0", 5));
  free(one);
  free(two);
}

/* SipHash-1-3 of 0, 1, ... 14 under the key 0, 1, ... 15. */
static int draw_key(belay_t *belay, void *buffer, size_t len) {
  (void)belay;
  for (size_t i = 0; i < len; i++)
    ((unsigned char *)buffer)[i] = (unsigned char)i;
  return 0;
}

TEST(it_is_siphash) {
  static const belay__host_ops_t keyed = {.random = draw_key};
  world_t *world = world_new(0);
  world->belay.host = &keyed;
  belay__table_t table = {0};
  unsigned char bytes[15];
  for (unsigned char i = 0; i < sizeof bytes; i++)
    bytes[i] = i;
  assert_true(belay__table_hash(&world->belay, &table, bytes, 15) == UINT64_C(0xd320d86d2a519956));
  assert_true(belay__table_hash(&world->belay, &table, bytes, 0) == UINT64_C(0xabac0158050fc4dc));
  free(world);
}

/* The hash table whose links are inside its entries. */
#include <stdio.h>

#include "core/key/table.h"
#include "support/base/small.h"

#define ITEMS 5000

typedef struct item {
  char name[16];
  belay__entry_t entry; /* not the first member, so that the container is not the entry */
} item_t;

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

WORLD_TEST(entries_are_found_until_they_are_removed) {
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
  assert_null(find(world, &table, "n1"));
}

WORLD_TEST(an_entry_has_a_copy_of_its_key) {
  belay__table_t table = {0};
  char key[] = {'k', '\0', '1'};
  uint64_t hash = belay__table_hash(&world->belay, &table, key, sizeof key);
  belay__keyed_t *keyed =
      belay__keyed_new(&world->belay, &table, hash, sizeof *keyed, key, sizeof key);
  key[2] = '2';
  assert_ptr_equal(belay__keyed_find(&table, hash, "k\0001", 3), keyed);
  assert_null(belay__keyed_find(&table, hash, key, sizeof key));
  assert_null(belay__keyed_find(&table, hash, "k\0001", 2));
  belay__table_remove(&table, &keyed->entry);
  belay__keyed_free(&world->belay, keyed);
  belay__table_free(&world->belay, &table);
}

WORLD_TEST(names_of_one_hash_are_distinguished) {
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
}

WORLD_TEST(without_memory_the_table_keeps_its_size) {
  belay__table_t table = {0};
  static item_t items[500];
  world->fail_at = 1;
  assert_error(add(world, &table, &items[0], 0), BELAY_ENOMEM);
  assert_int_equal(table.count, 0);
  world->fail_at = 3; /* the first buckets can be made, and none after them */
  world->fail_on = true;
  for (int i = 0; i < 500; i++)
    assert_error(add(world, &table, &items[i], i), 0);
  assert_int_equal(table.size, 16);
  for (int i = 0; i < 500; i++)
    assert_ptr_equal(find(world, &table, items[i].name), &items[i]);
  world->fail_at = 0;
  item_t last;
  assert_error(add(world, &table, &last, 500), 0);
  assert_int_equal(table.size, 32); /* the table grows again */
  for (int i = 0; i < 500; i++)
    assert_ptr_equal(find(world, &table, items[i].name), &items[i]);
  belay__table_free(&world->belay, &table);
}

WORLD_TEST(another_seed_is_another_hash) {
  belay__table_t one = {0}, two = {0};
  uint64_t hash = belay__table_hash(&world->belay, &one, "name", 4);
  assert_true(hash == belay__table_hash(&world->belay, &one, "name", 4));
  assert_true(hash != belay__table_hash(&world->belay, &two, "name", 4));
  assert_true(hash != belay__table_hash(&world->belay, &one, "name\0", 5));
}

/* SipHash-1-3 of 0, 1, ... 14 under the key 0, 1, ... 15. */
static int draw_key(belay_t *belay, void *buffer, size_t len) {
  (void)belay;
  for (size_t i = 0; i < len; i++)
    ((unsigned char *)buffer)[i] = (unsigned char)i;
  return 0;
}

WORLD_TEST(hash_is_siphash) {
  static const belay__host_ops_t keyed = {.random = draw_key};
  world->belay.host = &keyed;
  belay__table_t table = {0};
  unsigned char bytes[15];
  for (unsigned char i = 0; i < sizeof bytes; i++)
    bytes[i] = i;
  assert_true(belay__table_hash(&world->belay, &table, bytes, 15) == UINT64_C(0xd320d86d2a519956));
  assert_true(belay__table_hash(&world->belay, &table, bytes, 0) == UINT64_C(0xabac0158050fc4dc));
}

/* The ring that lives inside what it links. */
#include <stddef.h>
#include <stdint.h>

#include "core/loop/list.h"
#include "support/base/test.h"

#define ITEMS 6

typedef struct item {
  int id;
  belay__list_t node; /* not the first member, so that the container is not the node */
} item_t;

typedef struct fixture {
  belay__list_t list, other;
  item_t items[ITEMS];
} fixture_t;

/* Two empty lists, and items 0 to 5 in neither. */
static void init(fixture_t *f) {
  belay__list_init(&f->list);
  belay__list_init(&f->other);
  for (int i = 0; i < ITEMS; i++) {
    f->items[i].id = i;
    belay__list_init(&f->items[i].node);
  }
}

static void push(belay__list_t *list, item_t *items, int from, int to) {
  for (int i = from; i <= to; i++)
    belay__list_push(list, &items[i].node);
}

/* The list is exactly these ids, read forwards and backwards. */
static void check(const belay__list_t *list, const int *ids, size_t n) {
  assert_int_equal(belay__list_empty(list), n == 0);
  const belay__list_t *node = list->next;
  for (size_t i = 0; i < n; i++, node = node->next) {
    assert_ptr_not_equal(node, list);
    assert_int_equal(BELAY__CONTAINER(node, item_t, node)->id, ids[i]);
  }
  assert_ptr_equal(node, list);
  node = list->prev;
  for (size_t i = n; i > 0; i--, node = node->prev) {
    assert_ptr_not_equal(node, list);
    assert_int_equal(BELAY__CONTAINER(node, item_t, node)->id, ids[i - 1]);
  }
  assert_ptr_equal(node, list);
}

#define CHECK(list, ...)                                                                           \
  check(list, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
#define CHECK_EMPTY(list) check(list, NULL, 0)

TEST(new_list_is_empty_and_pops_nothing) {
  fixture_t f;
  init(&f);
  CHECK_EMPTY(&f.list);
  assert_null(belay__list_pop(&f.list));
}

TEST(push_appends) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 3);
  CHECK(&f.list, 0, 1, 2, 3);
}

TEST(push_front_prepends) {
  fixture_t f;
  init(&f);
  for (int i = 0; i < 4; i++)
    belay__list_push_front(&f.list, &f.items[i].node);
  CHECK(&f.list, 3, 2, 1, 0);
}

TEST(insert_before_puts_it_there) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 2);
  belay__list_insert_before(&f.items[1].node, &f.items[4].node);
  CHECK(&f.list, 0, 4, 1, 2);
}

TEST(pop_takes_out_the_first) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 1);
  assert_ptr_equal(belay__list_pop(&f.list), &f.items[0].node);
  CHECK(&f.list, 1);
  assert_ptr_equal(belay__list_pop(&f.list), &f.items[1].node);
  CHECK_EMPTY(&f.list);
  assert_null(belay__list_pop(&f.list));
}

TEST(popped_node_points_to_itself) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 1);
  belay__list_t *node = belay__list_pop(&f.list);
  assert_true(belay__list_empty(node));
  assert_ptr_equal(node->prev, node);
}

TEST(remove_takes_out_first_middle_and_last) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 4);
  belay__list_remove(&f.items[2].node);
  CHECK(&f.list, 0, 1, 3, 4);
  belay__list_remove(&f.items[0].node);
  CHECK(&f.list, 1, 3, 4);
  belay__list_remove(&f.items[4].node);
  CHECK(&f.list, 1, 3);
  belay__list_remove(&f.items[1].node);
  belay__list_remove(&f.items[3].node);
  CHECK_EMPTY(&f.list);
}

TEST(removing_what_is_in_no_list_changes_nothing) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 1);
  belay__list_remove(&f.items[1].node);
  belay__list_remove(&f.items[1].node);
  belay__list_remove(&f.items[5].node);
  CHECK(&f.list, 0);
  assert_true(belay__list_empty(&f.items[5].node));
}

TEST(removed_node_can_be_pushed_again) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 2);
  belay__list_remove(&f.items[0].node);
  belay__list_push(&f.list, &f.items[0].node);
  CHECK(&f.list, 1, 2, 0);
}

TEST(splice_front_keeps_the_order_of_both) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 2);
  push(&f.other, f.items, 3, 5);
  belay__list_splice_front(&f.list, &f.other);
  CHECK(&f.list, 3, 4, 5, 0, 1, 2);
  CHECK_EMPTY(&f.other);
}

TEST(splice_front_of_one_node) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 0);
  push(&f.other, f.items, 1, 1);
  belay__list_splice_front(&f.list, &f.other);
  CHECK(&f.list, 1, 0);
  CHECK_EMPTY(&f.other);
}

TEST(splice_front_into_an_empty_list) {
  fixture_t f;
  init(&f);
  push(&f.other, f.items, 0, 2);
  belay__list_splice_front(&f.list, &f.other);
  CHECK(&f.list, 0, 1, 2);
  CHECK_EMPTY(&f.other);
}

TEST(splice_front_of_an_empty_list_changes_nothing) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 2);
  belay__list_splice_front(&f.list, &f.other);
  CHECK(&f.list, 0, 1, 2);
  CHECK_EMPTY(&f.other);
}

TEST(spliced_lists_live_on) {
  fixture_t f;
  init(&f);
  push(&f.list, f.items, 0, 1);
  push(&f.other, f.items, 2, 3);
  belay__list_splice_front(&f.list, &f.other);
  belay__list_push(&f.other, &f.items[4].node);
  belay__list_remove(&f.items[3].node);
  belay__list_push(&f.list, &f.items[3].node);
  CHECK(&f.list, 2, 0, 1, 3);
  CHECK(&f.other, 4);
}

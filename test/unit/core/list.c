/* The ring whose links are inside the objects, against arrays. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/loop/list.h"
#include "support/base/random.h"
#include "support/base/test.h"

#define ITEMS 6
#define OPERATIONS 20000

typedef struct item {
  int id;
  belay__list_t node; /* not the first member, so that the container is not the node */
} item_t;

typedef struct model {
  item_t *items[ITEMS];
  size_t len;
} model_t;

typedef struct fixture {
  belay__list_t list[2];
  model_t model[2];
  item_t items[ITEMS];
} fixture_t;

/* The list is exactly the model, read forwards and backwards. */
static void check(const belay__list_t *list, const model_t *model) {
  assert_int_equal(belay__list_empty(list), model->len == 0);
  const belay__list_t *forwards = list->next, *backwards = list->prev;
  for (size_t i = 0; i < model->len; i++) {
    assert_ptr_equal(forwards, &model->items[i]->node);
    assert_ptr_equal(BELAY__CONTAINER(forwards, item_t, node), model->items[i]);
    assert_ptr_equal(backwards, &model->items[model->len - 1 - i]->node);
    forwards = forwards->next;
    backwards = backwards->prev;
  }
  assert_ptr_equal(forwards, list);
  assert_ptr_equal(backwards, list);
}

static void check_alone(const belay__list_t *node) {
  assert_true(belay__list_empty(node));
  assert_ptr_equal(node->prev, node);
}

static size_t place_of(const model_t *model, const item_t *item) {
  size_t at = 0;
  while (at < model->len && model->items[at] != item)
    at++;
  return at;
}

static void model_insert(model_t *model, size_t at, item_t *item) {
  memmove(model->items + at + 1, model->items + at, (model->len - at) * sizeof(item_t *));
  model->items[at] = item;
  model->len++;
}

static void model_remove(model_t *model, const item_t *item) {
  size_t at = place_of(model, item);
  if (at == model->len)
    return;
  model->len--;
  memmove(model->items + at, model->items + at + 1, (model->len - at) * sizeof(item_t *));
}

/* Insert an unlinked item: in front, at the end, or before another item. */
static void insert(fixture_t *f, size_t which, item_t *item, uint64_t random) {
  belay__list_t *list = &f->list[which];
  model_t *model = &f->model[which];
  size_t at = random % 3 == 0 ? 0 : random % 3 == 1 ? model->len : random / 3 % (model->len + 1);
  if (random % 3 == 0)
    belay__list_push_front(list, &item->node);
  else if (at == model->len)
    belay__list_push(list, &item->node);
  else
    belay__list_insert_before(&model->items[at]->node, &item->node);
  model_insert(model, at, item);
}

static void remove_item(fixture_t *f, item_t *item) {
  belay__list_remove(&item->node); /* in a list, or in none */
  check_alone(&item->node);
  for (size_t i = 0; i < 2; i++)
    model_remove(&f->model[i], item);
}

static void pop(fixture_t *f, size_t which) {
  model_t *model = &f->model[which];
  belay__list_t *node = belay__list_pop(&f->list[which]);
  assert_ptr_equal(node, model->len == 0 ? NULL : &model->items[0]->node);
  if (node == NULL)
    return;
  check_alone(node);
  model_remove(model, model->items[0]);
}

static void splice(fixture_t *f, size_t to) {
  model_t *from = &f->model[1 - to];
  belay__list_splice_front(&f->list[to], &f->list[1 - to]);
  while (from->len > 0)
    model_insert(&f->model[to], 0, from->items[--from->len]);
}

TEST(random_operations_agree_with_arrays) {
  fixture_t f = {0};
  uint64_t seed = 1;
  for (size_t i = 0; i < 2; i++)
    belay__list_init(&f.list[i]);
  for (size_t i = 0; i < ITEMS; i++)
    belay__list_init(&f.items[i].node);
  for (int i = 0; i < OPERATIONS; i++) {
    uint64_t random = next_random(&seed);
    size_t which = random % 2, what = random / 2 % 8;
    item_t *item = &f.items[random / 16 % ITEMS];
    bool is_free = place_of(&f.model[0], item) == f.model[0].len &&
                   place_of(&f.model[1], item) == f.model[1].len;
    if (what == 0)
      splice(&f, which);
    else if (what == 1)
      pop(&f, which);
    else if (is_free && what > 2)
      insert(&f, which, item, random / 128);
    else
      remove_item(&f, item);
    check(&f.list[0], &f.model[0]);
    check(&f.list[1], &f.model[1]);
  }
}

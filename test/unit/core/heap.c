/* The pairing heap of timers, against a sorted array. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/loop/heap.h"
#include "support/base/random.h"
#include "support/base/test.h"

#define OPERATIONS 100000
#define TIMERS 512

/* Check all timers below this one: their links agree, and none is earlier than its parent. Returns
 * the number of timers. */
static size_t check_below(const belay__timer_t *parent) {
  size_t count = 1;
  const belay__timer_t *before = parent;
  for (const belay__timer_t *i = parent->child; i != NULL; before = i, i = i->next) {
    assert_ptr_equal(i->prev, before);
    assert_true(i->when >= parent->when);
    count += check_below(i);
  }
  return count;
}

static void check_heap(const belay__heap_t *heap, size_t count) {
  if (heap->root == NULL) {
    assert_int_equal(count, 0);
    return;
  }
  assert_null(heap->root->prev);
  assert_null(heap->root->next);
  assert_int_equal(check_below(heap->root), count);
}

static belay__timer_t *pop(belay__heap_t *heap) {
  belay__timer_t *timer = heap->root;
  assert_non_null(timer);
  belay__heap_remove(heap, timer);
  assert_false(belay__timer_is_set(timer));
  return timer;
}

/* ---- the model: pointers to timers, by time ---- */

typedef struct model {
  belay__timer_t *sorted[TIMERS];
  size_t len;
} model_t;

static void model_insert(model_t *model, belay__timer_t *timer) {
  size_t i = model->len++;
  for (; i > 0 && model->sorted[i - 1]->when > timer->when; i--)
    model->sorted[i] = model->sorted[i - 1];
  model->sorted[i] = timer;
}

static void model_remove(model_t *model, const belay__timer_t *timer) {
  size_t i = 0;
  while (i < model->len && model->sorted[i] != timer)
    i++;
  assert_true(i < model->len);
  model->len--;
  memmove(&model->sorted[i], &model->sorted[i + 1], (model->len - i) * sizeof model->sorted[0]);
}

/* Inserts, removes and pops at random; range is small for many ties. */
static void run_against_model(uint64_t seed, uint64_t range) {
  belay__timer_t timers[TIMERS] = {0};
  belay__heap_t heap = {0};
  model_t model = {.len = 0};
  for (int i = 0; i < OPERATIONS; i++) {
    belay__timer_t *timer = &timers[next_random(&seed) % TIMERS];
    bool popping = model.len > 0 && next_random(&seed) % 4 == 0;
    if (popping)
      timer = heap.root;
    if (belay__timer_is_set(timer)) {
      model_remove(&model, timer);
      belay__heap_remove(&heap, timer);
    } else {
      belay__heap_insert(&heap, timer, 1 + next_random(&seed) % range);
      model_insert(&model, timer);
    }
    if (model.len == 0)
      assert_null(heap.root);
    else
      assert_int_equal(heap.root->when, model.sorted[0]->when);
    if (i % 16 == 0 || model.len < 8)
      check_heap(&heap, model.len);
  }
  while (model.len > 0) {
    assert_int_equal(heap.root->when, model.sorted[0]->when);
    model_remove(&model, pop(&heap));
  }
  assert_null(heap.root);
}

TEST(random_operations_agree_with_a_sorted_array) {
  run_against_model(1, UINT64_MAX - 1);
}

TEST(random_operations_with_many_ties_agree_with_a_sorted_array) {
  run_against_model(2, 16);
}

/* ---- small heaps ---- */

TEST(single_timer) {
  belay__timer_t timer = {0};
  belay__heap_t heap = {0};
  assert_false(belay__timer_is_set(&timer));
  belay__heap_insert(&heap, &timer, 7);
  assert_true(belay__timer_is_set(&timer));
  assert_ptr_equal(heap.root, &timer);
  belay__heap_remove(&heap, &timer);
  assert_false(belay__timer_is_set(&timer));
  assert_null(heap.root);
}

TEST(first_of_equal_timers_is_the_root) {
  belay__timer_t timers[2] = {0};
  belay__heap_t heap = {0};
  for (size_t i = 0; i < 2; i++)
    belay__heap_insert(&heap, &timers[i], 4);
  assert_ptr_equal(heap.root, &timers[0]);
}

/* A row of siblings and a chain of only children, both as long as they can get. */
TEST(large_heaps_need_no_deep_stack) {
  const size_t n = 1000000;
  belay__timer_t *timers = calloc(n, sizeof *timers);
  assert_non_null(timers);
  for (int descending = 0; descending < 2; descending++) {
    belay__heap_t heap = {0};
    for (size_t i = 0; i < n; i++)
      belay__heap_insert(&heap, &timers[i], descending ? n - i : i + 1);
    for (size_t i = 1; i <= n; i++)
      if (heap.root->when != i || pop(&heap) == NULL)
        fail_msg("not %zu", i);
    assert_null(heap.root);
  }
  free(timers);
}

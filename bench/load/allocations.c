/* Counts what is allocated, whoever asks for it: the C library's own functions have other names, too. */
#include <stdatomic.h>
#include <stddef.h>

#include "load/meter.h"

void *__libc_malloc(size_t size);               /* NOLINT(bugprone-reserved-identifier) */
void *__libc_calloc(size_t count, size_t size); /* NOLINT(bugprone-reserved-identifier) */
void *__libc_realloc(void *ptr, size_t size);   /* NOLINT(bugprone-reserved-identifier) */

static _Atomic uint64_t count;

#ifndef __SANITIZE_ADDRESS__ /* it counts by itself */
static void count_one(void) {
  atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

void *malloc(size_t size) {
  count_one();
  return __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
  count_one();
  return __libc_calloc(n, size);
}

void *realloc(void *ptr, size_t size) {
  count_one();
  return __libc_realloc(ptr, size);
}
#endif

uint64_t meter_allocations(void) {
  return atomic_load_explicit(&count, memory_order_relaxed);
}

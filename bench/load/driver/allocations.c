/* Counts what a thread allocates, whoever asks for it: the C library's own functions have other
 * names, too. Each has a plain counter of its own, or those who allocate more would seem slower by
 * the counting. */
#include <stddef.h>

#include "load/driver/meter.h"

void *__libc_malloc(size_t size);               /* NOLINT(bugprone-reserved-identifier) */
void *__libc_calloc(size_t count, size_t size); /* NOLINT(bugprone-reserved-identifier) */
void *__libc_realloc(void *ptr, size_t size);   /* NOLINT(bugprone-reserved-identifier) */

static _Thread_local uint64_t count;

#ifndef __SANITIZE_ADDRESS__ /* it counts by itself */
static void count_one(void) {
  count++;
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
  return count;
}

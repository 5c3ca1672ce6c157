/* Counts the allocations of a thread, by any caller; it also replaces the other names of the C
 * library's functions. Each thread has a plain counter of its own, so that counting does not slow
 * down a thread that allocates more. */
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

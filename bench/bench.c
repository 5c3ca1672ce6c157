#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void bench_die(const char *format, ...) {
  va_list values;
  va_start(values, format);
  fputs("bench: ", stderr);
  vfprintf(stderr, format, values);
  fputc('\n', stderr);
  va_end(values);
  exit(1);
}

int64_t bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void *bench_alloc(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (memory == NULL)
    bench_die("out of memory");
  return memory;
}

#include "samples.h"

#include <stdlib.h>

static int compare_double(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int compare_u32(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static size_t place(size_t count, double share) {
  size_t i = (size_t)(share * (double)count);
  return i < count ? i : count - 1;
}

double samples_at(double *values, size_t count, double share) {
  if (count == 0)
    return 0;
  qsort(values, count, sizeof *values, compare_double);
  return values[place(count, share)];
}

double samples_median(double *values, size_t count) {
  double upper = samples_at(values, count, 0.5);
  return count > 0 && count % 2 == 0 ? (values[count / 2 - 1] + upper) / 2 : upper;
}

uint32_t samples_at_u32(uint32_t *values, size_t count, double share) {
  if (count == 0)
    return 0;
  qsort(values, count, sizeof *values, compare_u32);
  return values[place(count, share)];
}

#include "support/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

int64_t clock_now(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000 * MS + ts.tv_nsec;
}

int64_t clock_since_ms(int64_t then) {
  return (clock_now() - then) / MS;
}

static int under_valgrind(void) {
  const char *preload = getenv("LD_PRELOAD");
  return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

int memory_is_watched(void) {
  return SANITIZED || under_valgrind();
}

int64_t slow(void) {
  const char *setting = getenv("BELAY_TEST_SLOW");
  if (setting != NULL && atoi(setting) > 0)
    return atoi(setting);
  return under_valgrind() ? 10 : SANITIZED ? 3 : 1;
}

int64_t lag(void) {
  return 1000 + 50 * slow();
}

int64_t prompt_ms(void) {
  return lag() + 100 * slow();
}

int64_t kept_ttl(void) {
  return lag() * 3 / 2 + 300 * slow(); /* it is renewed after a third of that at the latest */
}

void stall_ms(int64_t ms) {
  struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000 * MS)};
  while (nanosleep(&left, &left) < 0 && errno == EINTR) {
  }
}

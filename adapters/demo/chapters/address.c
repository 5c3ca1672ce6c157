/* Chapter: calls by addresses, of which each has so many a minute. */
#include <string.h>

#include "demo/chapters.h"

enum { CALLS = 10, MOST = 3, MINUTE_MS = 60000, GRACE_MS = 500 };
static const char one[] = "192.0.2.7", other[] = "198.51.100.23"; /* of documentation (RFC 5737) */

typedef struct address {
  demo_t *demo;
  belay_limiter_t *limiter;
  belay_request_t request;
  const char *who;         /* calls */
  unsigned calls;          /* by the one */
  unsigned allowed;        /* of these */
  unsigned denied_at_once; /* without the server */
  bool in_turn;            /* the allowed ones came first */
  double told;             /* the first denied one: when to come again, in seconds */
  bool other_allowed;
} address_t;

static void call(address_t *address);

static void print_call(const address_t *address, const belay_limiter_result_t *result) {
  const term_t *term = &address->demo->term;
  bool allowed = result->verdict == BELAY_ALLOWED;
  const char *tick = term_glyph(term, allowed ? TERM_HOLDS : TERM_AWAY);
  if (allowed)
    demo_event(address->demo, 0, "%-14s %s%s%s  allowed, %lld left", address->who,
               term_style(term, TERM_GOOD), tick, term_style(term, TERM_NORMAL),
               (long long)result->remaining);
  else
    demo_event(address->demo, 0, "%-14s %s%s%s  denied %s: again in %.3f s", address->who,
               term_style(term, TERM_BAD), tick, term_style(term, TERM_NORMAL),
               result->source == BELAY_SOURCE_DENIAL ? "from memory" : "by the server",
               (double)result->retry_after_us / 1e6);
}

static void on_answer(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  address_t *address = request->data;
  if (status != 0) {
    demo_trouble(address->demo, "a call", status);
    return;
  }
  print_call(address, result);
  if (address->who == other) {
    address->other_allowed = result->verdict == BELAY_ALLOWED;
    return;
  }
  address->calls++;
  if (result->verdict == BELAY_ALLOWED) {
    address->allowed++;
    address->in_turn = address->allowed == address->calls;
  } else if (address->told == 0) {
    address->told = (double)result->retry_after_us / 1e6;
  }
  address->denied_at_once += result->source == BELAY_SOURCE_DENIAL;
  if (address->calls == CALLS)
    address->who = other;
  call(address);
}

static void call(address_t *address) {
  int error = belay_limiter_take(address->limiter, &address->request, address->who,
                                 strlen(address->who), 1, on_answer);
  if (error != 0)
    demo_trouble(address->demo, "a call", error);
}

static void conclude(const address_t *address) {
  demo_t *demo = address->demo;
  belay_limiter_stats_t stats;
  belay_limiter_stats(address->limiter, &stats);
  term_print(&demo->term, "\n");
  demo_fact(demo, address->allowed == MOST && address->in_turn,
            "of ten calls by %s the first three passed", one);
  demo_fact(demo, address->told <= MINUTE_MS / 1e3 && address->told >= (MINUTE_MS - GRACE_MS) / 1e3,
            "the fourth was told to come again in %.1f s: a minute after the first", address->told);
  demo_fact(demo,
            address->denied_at_once == CALLS - MOST - 1 && stats.asked == MOST + 2 &&
                stats.denials == address->denied_at_once,
            "the six after it cost nothing: the server was asked %llu times in all",
            (unsigned long long)stats.asked);
  demo_fact(demo, address->other_allowed, "and %s, which has calls of its own, passed", other);
}

void chapter_address(demo_t *demo) {
  static const belay_limit_t limit = {
      .kind = BELAY_LIMIT_FIXED, .count = MOST, .period_us = MINUTE_MS * INT64_C(1000)};
  address_t address = {.demo = demo, .limiter = demo_limiter(demo, &limit, 1), .who = one};
  if (address.limiter == NULL)
    return;
  address.request.data = &address;
  call(&address);
  demo_run(demo);
  if (address.calls == CALLS)
    conclude(&address);
  static const char *const keys[] = {one, other};
  demo_limiter_close(demo, address.limiter, keys, 2);
}

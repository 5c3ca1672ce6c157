/* Replies: any bytes of a server, in any chunks, and the functions that read replies strictly. */
#include <math.h>
#include <string.h>

#include "admin/held.h"
#include "fuzz/fuzz.h"
#include "limit/policy.h"
#include "redis/deployment/redirect.h"
#include "redis/deployment/slot_map.h"

#define DEPTH_MAX 8

static const belay__place_t here = {.host = "10.0.0.1", .port = 6379};

/* Reads every byte of a reply, so that a sanitizer notices what is not there. */
static size_t walk(const belay__reply_t *reply, unsigned depth) {
  size_t sum = reply->len;
  REQUIRE(depth <= DEPTH_MAX);
  if (reply->type == BELAY__REPLY_ARRAY)
    for (size_t i = 0; i < reply->count; i++)
      sum += walk(reply->items[i], depth + 1);
  else
    REQUIRE(reply->items == NULL);
  for (size_t i = 0; i < reply->len; i++)
    sum += (unsigned char)reply->str[i];
  if (reply->str != NULL)
    REQUIRE(reply->str[reply->len] == 0);
  return sum;
}

static void on_range(const belay__range_t *range, void *arg) {
  size_t *slots = arg;
  REQUIRE(range->from <= range->to && range->to < 16384);
  REQUIRE(range->primary.host[0] != 0 && range->replica_count <= BELAY__SHARD_REPLICAS);
  *slots += range->to - range->from + (size_t)1;
}

static void check_cluster(const belay__reply_t *reply) {
  belay__redirect_t redirect;
  size_t slots = 0, count = belay__slot_map_count(reply, &here);
  REQUIRE(count <= 16384);
  belay__slot_map_read(reply, &here, on_range, &slots);
  REQUIRE(count == 0 || slots == count);
  if (reply->type == BELAY__REPLY_ERROR && belay__redirect_parse(reply, &here, &redirect))
    REQUIRE(redirect.slot < 16384 && redirect.place.host[0] != 0 && redirect.place.port != 0);
}

static void check_numbers(const belay__reply_t *reply) {
  int64_t integer;
  uint64_t number;
  size_t len;
  if (belay__reply_integer(reply, -1, 100, &integer))
    REQUIRE(integer >= -1 && integer <= 100);
  if (belay__reply_number(reply, 1, 1000, &number))
    REQUIRE(number >= 1 && number <= 1000);
  (void)belay__reply_int64(reply, &integer);
  const char *value = belay__info_field(reply, "run_id", &len);
  if (value != NULL)
    REQUIRE(value >= reply->str && value + len <= reply->str + reply->len);
  if (belay__info_number(reply, "uptime_in_seconds", 1, 1 << 20, &number))
    REQUIRE(number >= 1 && number <= 1 << 20);
  (void)belay__reply_field(reply, "name");
}

static void check_limits(const belay__reply_t *reply) {
  static const belay_limit_t limits[] = {
      {.kind = BELAY_LIMIT_BUCKET, .count = 10, .period_us = 1000000},
      {.kind = BELAY_LIMIT_SLIDING, .count = 100, .period_us = 60000000}};
  belay_t belay;
  belay__policy_t *policy;
  belay__limit_reply_t numbers;
  fuzz_belay_init(&belay);
  for (size_t n = 1; n <= 2; n++) {
    REQUIRE(belay__policy_new(&belay, limits, n, &policy) == 0);
    if (belay__policy_read(policy, reply, NULL, &numbers)) {
      belay_limiter_result_t result = {0};
      belay__policy_judge(policy, &numbers, 1, &result);
      REQUIRE(result.remaining >= 0 && result.remaining <= 10);
      REQUIRE(result.retry_after_us >= -1 && result.reset_after_us >= -1);
    }
    belay__policy_release(&belay, policy);
  }
}

static void check_held(const belay__reply_t *reply) {
  size_t count, n;
  if (!belay__held_check(reply, &count, &n))
    return;
  REQUIRE(n <= count && BELAY__HELD_HEAD + n * BELAY__HELD_EACH <= reply->count);
  for (size_t i = 0; i < n; i++)
    REQUIRE(belay__held_token(reply, i).token != NULL);
}

static void check(const belay__reply_t *reply) {
  (void)walk(reply, 0);
  check_cluster(reply);
  check_numbers(reply);
  check_limits(reply);
  check_held(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
  fuzz_replies(data, len, check);
  return 0;
}

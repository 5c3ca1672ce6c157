#include "redis/deployment/slot_map.h"

#include "core/key/slot.h"
#include "redis/deployment/redirect.h"

static bool is_array(const belay__reply_t *reply, size_t count_min) {
  return reply->type == BELAY__REPLY_ARRAY && reply->count >= count_min;
}

/* A server: host, port, and more that is not used. */
static bool read_place(const belay__reply_t *server, const belay__place_t *here,
                       belay__place_t *out) {
  int64_t port;
  if (!is_array(server, 2) || !belay__reply_integer(server->items[1], 1, UINT16_MAX, &port))
    return false;
  const belay__reply_t *host = server->items[0];
  out->port = (uint16_t)port;
  if (host->type == BELAY__REPLY_NIL)
    return belay__redirect_read_host("", 0, here, out);
  return host->type == BELAY__REPLY_STRING &&
         belay__redirect_read_host(host->str, host->len, here, out);
}

/* A range: from, to, primary, replicas. */
static bool read_range(const belay__reply_t *reply, const belay__place_t *here,
                       belay__range_t *out) {
  int64_t from, to;
  if (!is_array(reply, 3) || !belay__reply_integer(reply->items[0], 0, BELAY__SLOTS - 1, &from) ||
      !belay__reply_integer(reply->items[1], from, BELAY__SLOTS - 1, &to) ||
      !read_place(reply->items[2], here, &out->primary))
    return false;
  out->from = (uint16_t)from;
  out->to = (uint16_t)to;
  out->replica_count = 0;
  for (size_t i = 3; i < reply->count && out->replica_count < BELAY__SHARD_REPLICAS; i++)
    out->replica_count += read_place(reply->items[i], here, &out->replicas[out->replica_count]);
  return true;
}

void belay__slot_map_read(const belay__reply_t *reply, const belay__place_t *here,
                          belay__range_fn visit, void *arg) {
  belay__range_t range;
  for (size_t i = 0; is_array(reply, 0) && i < reply->count; i++)
    if (read_range(reply->items[i], here, &range))
      visit(&range, arg);
}

typedef struct slot_set {
  uint64_t bits[BELAY__SLOTS / 64];
  size_t count;
  bool repeated; /* true if a slot was added twice */
} slot_set_t;

static void add_range(const belay__range_t *range, void *arg) {
  slot_set_t *set = arg;
  for (size_t slot = range->from; slot <= range->to && !set->repeated; slot++) {
    uint64_t bit = UINT64_C(1) << slot % 64;
    set->repeated = (set->bits[slot / 64] & bit) != 0;
    set->bits[slot / 64] |= bit;
    set->count++;
  }
}

size_t belay__slot_map_count(const belay__reply_t *reply, const belay__place_t *here) {
  slot_set_t set = {.count = 0};
  belay__slot_map_read(reply, here, add_range, &set);
  return set.repeated ? 0 : set.count;
}

#include "redis/deployment/slot_map.h"

#include "core/key/slot.h"
#include "redis/deployment/redirect.h"

static const belay__reply_t *item(const belay__reply_t *reply, size_t i) {
  return reply != NULL && reply->type == BELAY__REPLY_ARRAY && i < reply->count ? reply->items[i]
                                                                                : NULL;
}

static bool is_list(const belay__reply_t *reply) {
  return reply != NULL && reply->type == BELAY__REPLY_ARRAY;
}

static bool read_place(const belay__reply_t *host, const belay__reply_t *port,
                       const belay__place_t *here, belay__place_t *out) {
  int64_t number;
  bool told = host != NULL && (host->type == BELAY__REPLY_STRING || host->type == BELAY__REPLY_NIL);
  if (!told || port == NULL || !belay__reply_integer(port, 1, UINT16_MAX, &number))
    return false;
  out->port = (uint16_t)number;
  return belay__redirect_read_host(host->str, host->type == BELAY__REPLY_NIL ? 0 : host->len, here,
                                   out);
}

static bool read_slots(const belay__reply_t *from, const belay__reply_t *to, belay__range_t *out) {
  int64_t first, last;
  if (from == NULL || to == NULL || !belay__reply_integer(from, 0, BELAY__SLOTS - 1, &first) ||
      !belay__reply_integer(to, first, BELAY__SLOTS - 1, &last))
    return false;
  out->from = (uint16_t)first;
  out->to = (uint16_t)last;
  return true;
}

/* ---- CLUSTER SLOTS: from, to, primary, replicas; each of these host, port, ... ---- */

static bool read_range(const belay__reply_t *reply, const belay__place_t *here,
                       belay__range_t *out) {
  const belay__reply_t *primary = item(reply, 2);
  out->replica_count = 0;
  if (!read_slots(item(reply, 0), item(reply, 1), out) ||
      !read_place(item(primary, 0), item(primary, 1), here, &out->primary))
    return false;
  for (size_t i = 3; i < reply->count && out->replica_count < BELAY__SHARD_REPLICAS; i++)
    if (read_place(item(reply->items[i], 0), item(reply->items[i], 1), here,
                   &out->replicas[out->replica_count]))
      out->replica_count++;
  return true;
}

/* ---- CLUSTER SHARDS: fields of a shard, among them a list of slots and one of nodes, which are fields --- */

static bool read_node(const belay__reply_t *node, const belay__place_t *here, bool tls,
                      belay__place_t *out) {
  const belay__reply_t *port = belay__reply_field(node, tls ? "tls-port" : "port");
  const belay__reply_t *health = belay__reply_field(node, "health");
  return (health == NULL || belay__reply_is(health, "online", 6)) &&
         read_place(belay__reply_field(node, "endpoint"), port, here, out);
}

static bool read_nodes(const belay__reply_t *nodes, const belay__place_t *here, bool tls,
                       belay__range_t *out) {
  bool has_primary = false;
  out->replica_count = 0;
  for (size_t i = 0; is_list(nodes) && i < nodes->count; i++) {
    const belay__reply_t *role = belay__reply_field(nodes->items[i], "role");
    belay__place_t place;
    if (role == NULL || !read_node(nodes->items[i], here, tls, &place))
      continue;
    if (belay__reply_is(role, "master", 6)) {
      out->primary = place;
      has_primary = true;
    } else if (out->replica_count < BELAY__SHARD_REPLICAS) {
      out->replicas[out->replica_count++] = place;
    }
  }
  return has_primary;
}

/* ---- both ---- */

void belay__slot_map_read(const belay__reply_t *reply, const belay__place_t *here, bool tls,
                          belay__range_fn visit, void *arg) {
  belay__range_t range;
  for (size_t i = 0; is_list(reply) && i < reply->count; i++) {
    const belay__reply_t *entry = reply->items[i];
    const belay__reply_t *slots = belay__reply_field(entry, "slots");
    if (slots == NULL && read_range(entry, here, &range))
      visit(&range, arg);
    bool shard = slots != NULL && read_nodes(belay__reply_field(entry, "nodes"), here, tls, &range);
    for (size_t k = 0; shard && is_list(slots) && k + 1 < slots->count; k += 2)
      if (read_slots(slots->items[k], slots->items[k + 1], &range))
        visit(&range, arg);
  }
}

typedef struct told {
  uint64_t bits[BELAY__SLOTS / 64];
  size_t count;
  bool twice;
} told_t;

static void count(const belay__range_t *range, void *arg) {
  told_t *told = arg;
  for (size_t slot = range->from; slot <= range->to && !told->twice; slot++) {
    uint64_t bit = UINT64_C(1) << slot % 64;
    told->twice = (told->bits[slot / 64] & bit) != 0;
    told->bits[slot / 64] |= bit;
    told->count++;
  }
}

size_t belay__slot_map_count(const belay__reply_t *reply, const belay__place_t *here, bool tls) {
  told_t told = {.count = 0};
  belay__slot_map_read(reply, here, tls, count, &told);
  return told.twice ? 0 : told.count;
}

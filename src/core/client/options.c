#include "core/client/options.h"

#include <string.h>

static const char *const default_namespace[] = {"belay"};

void belay_client_options_init(belay_client_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_client_options_t){
      .db = -1,
      .namespace_parts = default_namespace,
      .namespace_count = 1,
      .client_name = "belay",
      .links = 1,
      .connect_timeout_ms = 2000,
      .timeout_ms = 2000,
      .stall_timeout_ms = 5000,
      .idle_timeout_ms = 30000,
      .reconnect_min_ms = 20,
      .reconnect_max_ms = 2000,
      .close_timeout_ms = 1000,
      .tcp_user_timeout_ms = 10000,
      .keepalive_ms = 15000,
      .max_pending = 65536,
      .max_bytes = (size_t)64 << 20,
      .max_reply = (size_t)16 << 20,
      .on_full = BELAY_FULL_REFUSE,
  };
}

static int check_ranges(belay_t *belay, const belay_client_options_t *o) {
  const struct {
    const char *name;
    int64_t value, min, max;
  } ranges[] = {
      {"db", o->db, -1, 65535},
      {"namespace_count", (int64_t)o->namespace_count, 1, BELAY__NAMESPACE_PARTS},
      {"links", o->links, 1, 64},
      {"connect_timeout_ms", o->connect_timeout_ms, 1, 600000},
      {"timeout_ms", o->timeout_ms, 1, 600000},
      {"stall_timeout_ms", o->stall_timeout_ms, 10, 600000},
      {"idle_timeout_ms", o->idle_timeout_ms == BELAY_FOREVER ? 10 : o->idle_timeout_ms, 10,
       86400000},
      {"reconnect_min_ms", o->reconnect_min_ms, 1, 60000},
      {"reconnect_max_ms", o->reconnect_max_ms, o->reconnect_min_ms, 600000},
      {"close_timeout_ms", o->close_timeout_ms, 0, 600000},
      {"tcp_user_timeout_ms", o->tcp_user_timeout_ms, 0, 86400000},
      {"keepalive_ms", o->keepalive_ms, 0, 86400000},
      {"max_pending", o->max_pending > INT32_MAX ? INT32_MAX : (int64_t)o->max_pending, 1,
       INT32_MAX},
      {"max_bytes", o->max_bytes > INT64_MAX ? 0 : (int64_t)o->max_bytes, 65536, INT64_MAX},
      {"max_reply", o->max_reply > INT64_MAX ? 0 : (int64_t)o->max_reply, 65536, INT64_MAX},
      {"on_full", (int64_t)o->on_full, BELAY_FULL_REFUSE, BELAY_FULL_WAIT},
      {"read_from", (int64_t)o->read_from, BELAY_READ_PRIMARY, BELAY_READ_ANY},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max) {
      belay__detail(belay, "%s: not from %lld to %lld", ranges[i].name, (long long)ranges[i].min,
                    (long long)ranges[i].max);
      return BELAY_EINVAL;
    }
  return 0;
}

int belay__client_options_check(belay_t *belay, const belay_client_options_t *o) {
  int error = check_ranges(belay, o);
  if (error != 0)
    return error;
  if (o->namespace_parts == NULL) {
    belay__detail(belay, "namespace_parts: NULL");
    return BELAY_EINVAL;
  }
  for (size_t i = 0; i < o->namespace_count; i++) {
    size_t n = o->namespace_parts[i] == NULL ? 0 : strlen(o->namespace_parts[i]);
    if (n < 1 || n > BELAY__NAMESPACE_PART_MAX) {
      belay__detail(belay, "namespace_parts[%zu]: not 1 to 128 bytes", i);
      return BELAY_EINVAL;
    }
  }
  if (o->client_name == NULL || !belay__is_label(o->client_name, 64)) {
    belay__detail(belay, "client_name: not 1 to 64 printable bytes");
    return BELAY_EINVAL;
  }
  if (o->owner != NULL && !belay__is_label(o->owner, BELAY__OWNER_MAX)) {
    belay__detail(belay, "owner: not 1 to 64 printable bytes");
    return BELAY_EINVAL;
  }
  return 0;
}

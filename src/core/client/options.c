#include "core/client/lifecycle.h"

#include <string.h>

#include "core/client/ranges.h"

static const char *const default_namespace[] = {"belay"};

void belay_client_options_init(belay_client_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_client_options_t){
      .db = -1,
      .namespace_parts = default_namespace,
      .namespace_count = 1,
      .client_name = "belay",
      .connections = 1,
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

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_client_options_t, db, -1, 65535),
    BELAY__RANGE(belay_client_options_t, namespace_count, 1, BELAY__NAMESPACE_PARTS),
    BELAY__RANGE(belay_client_options_t, connections, 1, 64),
    BELAY__RANGE(belay_client_options_t, connect_timeout_ms, 1, 600000),
    BELAY__RANGE(belay_client_options_t, timeout_ms, 1, 600000),
    BELAY__RANGE(belay_client_options_t, stall_timeout_ms, 10, 600000),
    BELAY__RANGE_OR(belay_client_options_t, idle_timeout_ms, FOREVER, 10, 86400000),
    BELAY__RANGE(belay_client_options_t, reconnect_min_ms, 1, 60000),
    BELAY__RANGE_FROM(belay_client_options_t, reconnect_max_ms, NOTHING, reconnect_min_ms, 600000),
    BELAY__RANGE(belay_client_options_t, close_timeout_ms, 0, 600000),
    BELAY__RANGE(belay_client_options_t, tcp_user_timeout_ms, 0, 86400000),
    BELAY__RANGE(belay_client_options_t, keepalive_ms, 0, 86400000),
    BELAY__RANGE(belay_client_options_t, max_bytes, 65536, INT64_MAX),
    BELAY__RANGE(belay_client_options_t, max_reply, 65536, INT64_MAX),
    BELAY__RANGE(belay_client_options_t, on_full, BELAY_FULL_REFUSE, BELAY_FULL_WAIT),
    BELAY__RANGE(belay_client_options_t, read_from, BELAY_READ_PRIMARY, BELAY_READ_ANY),
    {.name = NULL},
};

int belay__client_options_check(belay_t *belay, const belay_client_options_t *o) {
  int error = belay__check_ranges(belay, o, ranges);
  if (error == 0 && o->max_pending == 0) /* all other values are valid */
    error = belay__check_range(belay, "max_pending", 0, 1, INT32_MAX);
  if (error != 0)
    return error;
  if (o->namespace_parts == NULL)
    return belay__invalid(belay, "namespace_parts: NULL");
  for (size_t i = 0; i < o->namespace_count; i++) {
    size_t n = o->namespace_parts[i] == NULL ? 0 : strlen(o->namespace_parts[i]);
    if (n < 1 || n > BELAY__NAMESPACE_PART_MAX)
      return belay__invalid(belay, "namespace_parts[%zu]: not 1 to 128 bytes", i);
  }
  if (o->client_name == NULL || !belay__is_label(o->client_name, 64))
    return belay__invalid(belay, "client_name: not 1 to 64 printable bytes");
  if (o->owner != NULL && !belay__is_label(o->owner, BELAY__OWNER_MAX))
    return belay__invalid(belay, "owner: not 1 to 64 printable bytes");
  return 0;
}

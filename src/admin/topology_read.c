#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/topology.h"

static const char *const roles[] = {[BELAY_ROLE_UNKNOWN] = "unknown",
                                    [BELAY_ROLE_PRIMARY] = "primary",
                                    [BELAY_ROLE_REPLICA] = "replica",
                                    [BELAY_ROLE_SENTINEL] = "sentinel"};

const char *belay_role_name(belay_role_t role) {
  return (size_t)role < sizeof roles / sizeof *roles ? roles[role] : "?";
}

void belay__topology_entry_init(belay__topology_entry_t *info, const char *address) {
  memset(info, 0, sizeof *info);
  (void)snprintf(info->address, sizeof info->address, "%s", address);
  info->result.replicated = info->result.commands = -1;
}

static bool is_text(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_STRING || reply->type == BELAY__REPLY_STATUS;
}

static void take_field(const belay__reply_t *reply, const char *name, char *out, size_t size) {
  const belay__reply_t *field = belay__reply_field(reply, name);
  if (field != NULL && is_text(field) && field->len < size)
    (void)snprintf(out, size, "%s", field->str);
}

void belay__topology_entry_read_hello(belay__topology_entry_t *info, const belay__reply_t *reply) {
  take_field(reply, "server", info->software, sizeof info->software);
  take_field(reply, "version", info->version, sizeof info->version);
}

/* Writes an address. The port is an integer or a string of digits. false if a part is invalid. */
static bool write_place(const belay__reply_t *host, const belay__reply_t *port, char *out) {
  uint64_t number = 0;
  if (port->type == BELAY__REPLY_INTEGER && port->integer > 0)
    number = (uint64_t)port->integer;
  else if (!belay__reply_number(port, 1, UINT16_MAX, &number))
    return false;
  if (!is_text(host) || host->len == 0 || host->len > BELAY__PLACE_MAX - sizeof "[]:65535" ||
      memchr(host->str, '\0', host->len) != NULL || number > UINT16_MAX)
    return false;
  bool bare = strchr(host->str, ':') == NULL;
  (void)snprintf(out, BELAY__PLACE_MAX, bare ? "%s:%u" : "[%s]:%u", host->str, (unsigned)number);
  return true;
}

/* Reads a ROLE reply of a primary: "master", the replication offset, the replicas. */
static void read_primary(belay__topology_entry_t *info, const belay__reply_t *reply) {
  info->result.role = BELAY_ROLE_PRIMARY;
  if (reply->count < 3)
    return;
  if (reply->items[1]->type == BELAY__REPLY_INTEGER && reply->items[1]->integer >= 0)
    info->result.replicated = reply->items[1]->integer;
  if (reply->items[2]->type == BELAY__REPLY_ARRAY)
    info->result.replicas = (unsigned)reply->items[2]->count;
}

/* Reads a ROLE reply of a replica: "slave", the primary's host and port, the state of the link, the
 * replication offset. */
static void read_replica(belay__topology_entry_t *info, const belay__reply_t *reply) {
  info->result.role = BELAY_ROLE_REPLICA;
  if (reply->count < 5)
    return;
  (void)write_place(reply->items[1], reply->items[2], info->primary);
  info->result.in_sync = belay__reply_is(reply->items[3], "connected", 9);
  if (reply->items[4]->type == BELAY__REPLY_INTEGER && reply->items[4]->integer >= 0)
    info->result.replicated = reply->items[4]->integer;
}

void belay__topology_entry_read_role(belay__topology_entry_t *info, const belay__reply_t *reply) {
  if (reply->type != BELAY__REPLY_ARRAY || reply->count == 0)
    return;
  if (belay__reply_is(reply->items[0], "master", 6))
    read_primary(info, reply);
  else if (belay__reply_is(reply->items[0], "slave", 5))
    read_replica(info, reply);
  else if (belay__reply_is(reply->items[0], "sentinel", 8))
    info->result.role = BELAY_ROLE_SENTINEL;
}

void belay__topology_entry_read_stats(belay__topology_entry_t *info, const belay__reply_t *reply) {
  uint64_t commands;
  if (belay__info_number(reply, "total_commands_processed", 0, INT64_MAX, &commands))
    info->result.commands = (int64_t)commands;
}

bool belay__topology_entry_replica(const belay__reply_t *reply, size_t i,
                                   char out[BELAY__PLACE_MAX]) {
  out[0] = '\0';
  if (reply->type != BELAY__REPLY_ARRAY || reply->count < 3 ||
      !belay__reply_is(reply->items[0], "master", 6) ||
      reply->items[2]->type != BELAY__REPLY_ARRAY || i >= reply->items[2]->count)
    return false;
  const belay__reply_t *replica = reply->items[2]->items[i];
  if (replica->type == BELAY__REPLY_ARRAY && replica->count >= 2)
    (void)write_place(replica->items[0], replica->items[1], out);
  return true;
}

/* Narrows the bounds of the difference between the server's clock and the local clock with those of
 * one sample. The server read its clock between the request and the reply, so each sample gives two
 * bounds. The bounds of all samples hold, unless a clock was set between two samples. */
static void narrow(belay__topology_entry_t *info, int64_t min_us, int64_t max_us) {
  bool first = info->result.samples == 0;
  if (first || min_us > info->ahead_min_us)
    info->ahead_min_us = min_us;
  if (first || max_us < info->ahead_max_us)
    info->ahead_max_us = max_us;
  if (info->ahead_min_us > info->ahead_max_us) { /* a clock was set: the last sample holds */
    info->ahead_min_us = min_us;
    info->ahead_max_us = max_us;
  }
}

bool belay__topology_entry_read_time(belay__topology_entry_t *info, const belay__reply_t *reply,
                                     uint64_t took, int64_t wall_us) {
  uint64_t s, us;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 2 ||
      !belay__reply_number(reply->items[0], 0, INT64_MAX / 2000000, &s) ||
      !belay__reply_number(reply->items[1], 0, 999999, &us) ||
      info->result.samples == BELAY_TOPOLOGY_SAMPLES_MAX)
    return false;
  int64_t theirs = (int64_t)(s * 1000000 + us), took_us = (int64_t)(took / 1000);
  /* theirs, wall_us and took_us are rounded down, each by less than a microsecond */
  narrow(info, theirs - wall_us - 1, theirs - wall_us + took_us + 2);
  info->rtt_us[info->result.samples++] = took_us;
  return true;
}

static int compare(const void *a, const void *b) {
  const int64_t *one = a, *other = b;
  return (*one > *other) - (*one < *other);
}

void belay__topology_entry_sum_up(belay__topology_entry_t *info) {
  belay_topology_server_t *result = &info->result;
  result->address = info->address;
  result->detail = info->detail;
  result->software = info->software;
  result->version = info->version;
  result->run_id = info->run_id;
  result->primary = info->primary;
  if (result->samples == 0)
    return;
  qsort(info->rtt_us, result->samples, sizeof *info->rtt_us, compare);
  result->rtt_min_us = info->rtt_us[0];
  result->rtt_median_us = info->rtt_us[(result->samples - 1) / 2];
  int64_t width = info->ahead_max_us - info->ahead_min_us;
  result->clock_ahead_us = info->ahead_min_us + width / 2;
  result->clock_error_us = width - width / 2;
}

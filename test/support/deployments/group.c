#include "support/deployments/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/servers/acl.h"
#include "support/base/clock.h"
#include "support/base/unit.h"

#define WAIT_MS 30000
#define ASK_AGAIN_MS 200

struct group {
  replicas_t *replicas;
  server_t *sentinel[GROUP_SENTINELS];
  group_options_t options;
  int old, new;    /* the primary when a failover began, and since; -1: none yet */
  group_way_t way; /* of that failover */
  int64_t asked;   /* when it was asked for last */
  const struct mood *mood;
  char url[256];
};

/* ---- how they go about it ---- */

/* Sentinels detect changes slowly and act on them quickly. A Sentinel that does not know of a
 * failover turns the new primary back into a replica after four publish periods, and the leader
 * is rarely polled more often than once a second. So the Sentinels are slow until all know of
 * the failover. Then they are quick: they finish the failover without waiting for each replica,
 * and do not declare new servers dead. */
static const struct mood {
  const char *info, *publish, *timeout; /* milliseconds */
  /* three Sentinels that vote for themselves elect none: one is late */
  const char *down[GROUP_SENTINELS];
} deciding = {"1000", "500", "2000", {"500", "500", "1000"}},
  healing = {"100", "50", "100", {"3000", "3000", "3000"}};

/* Settings outside its file. A loaded machine must not stop it; a replica's reply is valid for
 * five pings. */
static void hurry(server_t *sentinel) {
  server_do(sentinel, "SENTINEL", "DEBUG", "ping-period", "250", "ask-period", "100",
            "min-link-reconnect-period", "100", "tilt-trigger", "3600000", NULL);
}

static void set_mood(group_t *group, const struct mood *mood) {
  for (unsigned i = 0; group->mood != mood && i < GROUP_SENTINELS; i++) {
    server_t *sentinel = group->sentinel[i];
    (void)server_try(sentinel, "SENTINEL", "DEBUG", "info-period", mood->info, "publish-period",
                     mood->publish, NULL);
    (void)server_try(sentinel, "SENTINEL", "SET", GROUP_NAME, "failover-timeout", mood->timeout,
                     "down-after-milliseconds", mood->down[i], NULL);
  }
  group->mood = mood;
}

/* ---- starting ---- */

static void begin_sentinels(group_t *group) {
  char lines[128] = "";
  server_options_t each = {.address = "127.0.0.1",
                           .password = group->options.sentinel_password,
                           .tls = group->options.nodes.tls,
                           .sentinel = true,
                           .lines = lines};
  server_set(&each, "--tls-replication", each.tls ? "yes" : NULL);
  server_add(&each, group->options.sentinel_arguments);
  if (each.password != NULL)
    snprintf(lines, sizeof lines, "sentinel sentinel-pass %s\n", each.password);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++) {
    group->sentinel[i] = server_make(&each);
    server_spawn(group->sentinel[i]);
  }
}

static void watch(const group_t *group, unsigned i) {
  server_t *sentinel = group->sentinel[i];
  const char *password = group->options.nodes.password;
  char port[12];
  snprintf(port, sizeof port, "%d", server_port(group_node(group, 0)));
  hurry(sentinel);
  server_do(sentinel, "SENTINEL", "MONITOR", GROUP_NAME, "127.0.0.1", port, "2", NULL);
  if (acl_applies(&(server_options_t){0}))
    server_do(sentinel, "SENTINEL", "SET", GROUP_NAME, "auth-user", ACL_ADMIN, "auth-pass",
              ACL_ADMIN_PASSWORD, NULL);
  else if (password != NULL)
    server_do(sentinel, "SENTINEL", "SET", GROUP_NAME, "auth-pass", password, NULL);
  server_do(sentinel, "SENTINEL", "SET", GROUP_NAME, "parallel-syncs", "2", NULL);
}

group_t *group_start(const group_options_t *options) {
  group_t *group = calloc(1, sizeof *group);
  if (options != NULL)
    group->options = *options;
  group->options.nodes.tls = group->options.nodes.tls || servers_are_secure();
  begin_sentinels(group);
  group->replicas = replicas_start(&group->options.nodes);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++) {
    server_await(group->sentinel[i]);
    watch(group, i);
  }
  server_name_several(group->url, sizeof group->url, "sentinel", group_node(group, 0),
                      group->sentinel, GROUP_SENTINELS);
  strcat(group->url, "/" GROUP_NAME);
  group_wait(group);
  return group;
}

void group_stop(group_t *group) {
  if (group == NULL)
    return;
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    server_stop(group->sentinel[i]);
  replicas_stop(group->replicas);
  free(group);
}

const char *group_url(const group_t *group) {
  return group->url;
}

replicas_t *group_replicas(const group_t *group) {
  return group->replicas;
}

server_t *group_node(const group_t *group, unsigned i) {
  return replicas_node(group->replicas, i);
}

server_t *group_sentinel(const group_t *group, unsigned i) {
  assert_true(i < GROUP_SENTINELS);
  return group->sentinel[i];
}

void group_revive_sentinel(group_t *group, unsigned i) {
  server_restart(group->sentinel[i]);
  hurry(group->sentinel[i]);
  group->mood = NULL; /* this one does not know it */
}

/* ---- what they say ---- */

/* The node that this Sentinel names; -1: it names none. */
static int named_by(group_t *group, unsigned i) {
  const resp_t *reply =
      server_try(group->sentinel[i], "SENTINEL", "GET-MASTER-ADDR-BY-NAME", GROUP_NAME, NULL);
  if (reply == NULL || reply->type != RESP_ARRAY)
    return -1;
  return replicas_find(group->replicas, atoi(reply->items[1]->str));
}

/* The node that a Sentinel names and that agrees, and that is not this one. */
static int primary_but(group_t *group, int other) {
  for (unsigned i = 0; i < GROUP_SENTINELS; i++) {
    int named = named_by(group, i);
    if (named >= 0 && named != other && server_is_primary(group_node(group, (unsigned)named)))
      return named;
  }
  return -1;
}

int group_primary(group_t *group) {
  return primary_but(group, -1);
}

/* From a list of names and values. */
static const char *field(const resp_t *list, const char *name) {
  for (size_t i = 0; i + 1 < list->count; i += 2)
    if (strcmp(list->items[i]->str, name) == 0)
      return list->items[i + 1]->str;
  return "";
}

static bool is(const resp_t *list, const char *name, const char *value) {
  return strcmp(field(list, name), value) == 0;
}

/* Whether a Sentinel has nothing to say against anybody. */
static bool is_content(group_t *group, unsigned i, const char *primary_port) {
  server_t *sentinel = group->sentinel[i];
  const resp_t *r = server_try(sentinel, "SENTINEL", "MASTER", GROUP_NAME, NULL);
  if (r == NULL || r->type != RESP_ARRAY || !is(r, "flags", "master") ||
      !is(r, "port", primary_port) || !is(r, "num-slaves", "2") ||
      !is(r, "num-other-sentinels", "2"))
    return false;
  r = server_try(sentinel, "SENTINEL", "SENTINELS", GROUP_NAME, NULL);
  for (size_t n = 0; r != NULL && n < r->count; n++)
    if (!is(r->items[n], "flags", "sentinel"))
      return false;
  r = server_try(sentinel, "SENTINEL", "REPLICAS", GROUP_NAME, NULL);
  for (size_t n = 0; r != NULL && n < r->count; n++)
    if (!is(r->items[n], "flags", "slave") || !is(r->items[n], "master-port", primary_port))
      return false;
  return r != NULL;
}

/* True if no running Sentinel names another primary. */
static bool is_agreed(group_t *group, int primary) {
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    if (named_by(group, i) != primary && server_is_running(group->sentinel[i]))
      return false;
  return primary >= 0;
}

bool group_is_whole(group_t *group) {
  char port[12];
  int primary = group_primary(group);
  if (is_agreed(group, primary))
    set_mood(group, &healing);
  if (primary < 0 || !replicas_are_in_line(group->replicas, (unsigned)primary))
    return false;
  snprintf(port, sizeof port, "%d", server_port(group_node(group, (unsigned)primary)));
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    if (!is_content(group, i, port))
      return false;
  set_mood(group, &deciding);
  return true;
}

void group_wait(group_t *group) {
  int64_t began = clock_now();
  while (!group_is_whole(group)) {
    if (clock_since_ms(began) > WAIT_MS * slow())
      fail_msg("a Sentinel group does not come together");
    stall_ms(5);
  }
}

/* ---- failing over ---- */

/* A Sentinel refuses while a failover runs, or while it has no recent news of the replicas. */
static void ask_for_it(group_t *group) {
  if (clock_since_ms(group->asked) < ASK_AGAIN_MS)
    return;
  for (unsigned i = 0; i < GROUP_SENTINELS; i++) {
    const resp_t *reply = server_try(group->sentinel[i], "SENTINEL", "FAILOVER", GROUP_NAME, NULL);
    group->asked = clock_now();
    if (reply != NULL)
      return;
  }
}

void group_begin_fail_over(group_t *group, group_way_t way) {
  group->old = group_primary(group);
  group->way = way;
  assert_true(group->old >= 0);
  set_mood(group, &deciding);
  server_t *primary = group_node(group, (unsigned)group->old);
  if (way == GROUP_KILLED)
    server_kill(primary);
  else if (way == GROUP_PAUSED)
    server_pause(primary);
  else
    ask_for_it(group);
}

bool group_has_failed_over(group_t *group) {
  group->new = primary_but(group, group->old);
  if (group->new >= 0)
    return true;
  if (group->way == GROUP_ASKED)
    ask_for_it(group);
  return false;
}

unsigned group_fail_over(group_t *group, group_way_t way) {
  int64_t began = clock_now();
  group_begin_fail_over(group, way);
  while (!group_has_failed_over(group)) {
    if (clock_since_ms(began) > WAIT_MS * slow())
      fail_msg("a Sentinel group does not fail over");
    stall_ms(2);
  }
  return (unsigned)group->new;
}

void group_mend(group_t *group) {
  for (unsigned i = 0; i < REPLICAS_NODES; i++) {
    int primary = group_primary(group);
    server_resume(group_node(group, i));
    if (!server_is_running(group_node(group, i)) && primary >= 0)
      replicas_revive(group->replicas, i, (unsigned)primary);
  }
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    if (server_is_paused(group->sentinel[i])) {
      server_resume(group->sentinel[i]);
      group->mood = NULL; /* it may have missed it */
    } else if (!server_is_running(group->sentinel[i])) {
      group_revive_sentinel(group, i);
    }
}

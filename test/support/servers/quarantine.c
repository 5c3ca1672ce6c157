#include "support/servers/quarantine.h"

#include <stdio.h>

static const char *namespace_name = "belay"; /* of the test that is running */

/* ---- locks with a quarantine ---- */

belay_lock_options_t quarantine_options(void) {
  belay_lock_options_t options = redlock_options(TTL);
  options.quarantine = BELAY_QUARANTINE_ON;
  options.max_ttl_ms = MAX_TTL;
  options.timeout_ms = TTL / 10;
  return options;
}

belay_lock_options_t quarantine_options_with(belay_quarantine_t quarantine) {
  belay_lock_options_t options = quarantine_options();
  options.quarantine = quarantine;
  return options;
}

contender_t *quarantined(nodes_t *nodes, const char *name) {
  belay_lock_options_t options = quarantine_options();
  return nodes_contender(nodes, name, &options);
}

belay_lock_tally_t tally_of(const contender_t *c) {
  belay_lock_tally_t tally;
  belay_lock_tally(c->lock, &tally);
  return tally;
}

int wait_for(contender_t *c) {
  return acquire(c, 12 * SECONDS * slow());
}

void ask_until(contender_t *c, belay_vote_t vote, unsigned count) {
  int64_t began = clock_now();
  for (;;) {
    int status = try_lock(c);
    env_run_for(c->env, 20); /* answers that were not needed */
    unsigned found = tally_of(c).votes[vote];
    if (status == 0)
      (void)release(c);
    if (found >= count)
      return;
    if (clock_since_ms(began) > 12 * SECONDS * slow())
      fail_msg("%u nodes say %s, not %u", found, belay_vote_name(vote), count);
  }
}

nodes_t *seasoned(unsigned n) {
  nodes_t *nodes = nodes_open(n, NULL);
  ask_until(quarantined(nodes, "season"), BELAY_VOTE_GRANTED, n);
  nodes_settle(nodes);
  return nodes;
}

/* ---- servers that are old already ---- */

static server_t *veteran[VETERANS];

void start_veterans(void) {
  for (int i = 0; i < VETERANS; i++)
    veteran[i] = server_start(NULL);
  stall_ms(MAX_TTL + 3 * SECONDS);
}

void stop_veterans(void) {
  for (int i = 0; i < VETERANS; i++)
    server_stop(veteran[i]);
}

/* user: NULL, or "name:password@". */
static nodes_t *visit_as(const char *user) {
  static char name[24], url[256];
  static unsigned visits;
  const char *const parts[] = {name};
  belay_client_options_t options = client_options();
  nodes_t *nodes = calloc(1, sizeof *nodes);
  snprintf(name, sizeof name, "visit%u", ++visits);
  namespace_name = name;
  options.namespace_parts = parts;
  nodes->n = VETERANS;
  for (unsigned i = 0; i < VETERANS; i++) {
    nodes->server[i] = veteran[i];
    snprintf(url, sizeof url, "unix://%s%s", user != NULL ? user : server_login(veteran[i]),
             server_path(veteran[i]));
    if (i == 0)
      nodes->env = env_open_at(url, &options);
    nodes->client[i] = i == 0 ? nodes->env->client : env_connect(nodes->env, url, &options);
  }
  return nodes;
}

nodes_t *visit(void) {
  return visit_as(NULL);
}

nodes_t *visit_without_info(void) {
  for (int i = 0; i < VETERANS; i++)
    server_do(veteran[i], "ACL", "SETUSER", "guest", "on", ">pw", "~*", "&*", "+@all", "-info",
              NULL);
  return visit_as("guest:pw@");
}

void leave(nodes_t *nodes) {
  namespace_name = "belay";
  env_close(nodes->env);
  free(nodes);
}

/* ---- the marker ---- */

const char *marker_key(void) {
  static char key[64];
  snprintf(key, sizeof key, "%s::node::{marker}", namespace_name);
  return key;
}

const char *marker(server_t *server, const char *field) {
  return server_string(server, "HGET", marker_key(), field, NULL);
}

int64_t marker_since(server_t *server) {
  const char *text = marker(server, "since");
  assert_non_null(text);
  return strtoll(text, NULL, 10);
}

int64_t server_time_ms(server_t *server) {
  const resp_t *time = server_ask(server, "TIME", NULL);
  return strtoll(time->items[0]->str, NULL, 10) * 1000 +
         strtoll(time->items[1]->str, NULL, 10) / 1000;
}

void expect_marker_of(server_t *server) {
  static const char field[] = "\nrun_id:";
  char run_id[64];
  const char *info = strstr(server_string(server, "INFO", "server", NULL), field);
  assert_non_null(info);
  snprintf(run_id, sizeof run_id, "%.40s", info + sizeof field - 1);
  assert_non_null(marker(server, "server"));
  assert_non_null(strstr(marker(server, "server"), run_id));
}

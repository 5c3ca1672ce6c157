#include "support/deployments/cluster.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/servers/acl.h"
#include "support/base/clock.h"
#include "support/deployments/cluster_view.h"
#include "support/servers/program.h"
#include "support/deployments/replicas.h"
#include "support/base/unit.h"

#define WAIT_MS 30000
/* Time of silence after which a node counts as failed; and the same during a start or a failover.
 * A shard votes again, and a node that came back counts again, after twice that time. */
#define TIMEOUT_MS "60000"
#define SOON_MS "1000"
#define ASK_AGAIN_MS 1000
#define BATCH 32 /* keys that move at once */

typedef struct node {
  server_t *server; /* NULL: forgotten */
  char id[CLUSTER_ID_SIZE];
} node_t;

struct cluster {
  cluster_options_t options;
  unsigned primaries, size;
  node_t node[CLUSTER_NODES_MAX];
  unsigned slot; /* that fails over */
  int old, new;  /* the former and the present primary */
  cluster_way_t way;
  int64_t asked;      /* when the replica was asked for it last */
  bool suspects_soon; /* see cluster_suspect_soon() */
  char url[256];
};

/* ---- what a node says ---- */

static const char *view_of(cluster_t *cluster, unsigned i) {
  if (cluster->node[i].server == NULL)
    return NULL;
  const resp_t *reply = server_try(cluster->node[i].server, "CLUSTER", "NODES", NULL);
  return reply != NULL && reply->type == RESP_STRING ? reply->str : NULL;
}

int cluster_owner(cluster_t *cluster, unsigned slot) {
  cluster_line_t line;
  unsigned long long epoch = 0;
  int owner = -1;
  for (unsigned i = 0; i < cluster->size; i++)
    if (cluster_look_up(view_of(cluster, i), cluster->node[i].id, &line) &&
        cluster_has_slot(&line, slot) && (owner < 0 || line.epoch > epoch)) {
      owner = (int)i;
      epoch = line.epoch;
    }
  return owner;
}

unsigned cluster_slot(cluster_t *cluster, const char *key) {
  return (unsigned)server_integer(cluster->node[0].server, "CLUSTER", "KEYSLOT", key, NULL);
}

static int find(const cluster_t *cluster, const char *id) {
  for (unsigned i = 0; i < cluster->size; i++)
    if (cluster->node[i].server != NULL && strcmp(cluster->node[i].id, id) == 0)
      return (int)i;
  return -1;
}

/* ---- starting ---- */

/* Writes a random node id, as a node chooses it; the clock makes it unique. */
static void name_node(char *id) {
  static unsigned count;
  snprintf(id, CLUSTER_ID_SIZE, "%016llx%016x%08x", (unsigned long long)clock_now(),
           (unsigned)getpid(), ++count);
}

static void make_node(cluster_t *cluster) {
  const cluster_options_t *o = &cluster->options;
  server_options_t each = {.cluster = true, .password = o->password, .tls = o->tls};
  server_set(&each, "--hz", "100");
  server_set(&each, "--repl-diskless-sync", "no"); /* as in replicas.c */
  server_set(&each, "--cluster-replica-validity-factor", "0");
  server_set(&each, "--cluster-allow-replica-migration", "no");
  server_set(&each, "--cluster-node-timeout", SOON_MS);
  server_set(&each, "--masterauth", o->password);
  server_set(&each, "--cluster-announce-hostname", o->hostname);
  server_set(&each, "--cluster-preferred-endpoint-type", o->endpoints);
  server_set(&each, "--tls-replication", o->tls ? "yes" : NULL);
  server_set(&each, "--tls-cluster", o->tls ? "yes" : NULL);
  server_add(&each, o->arguments);
  each.lines = o->lines;
  assert_true(cluster->size < CLUSTER_NODES_MAX);
  cluster->node[cluster->size++].server = server_make(&each);
}

static void name_url(cluster_t *cluster) {
  server_t *some[3];
  unsigned n = 0;
  for (; n < 3 && n < cluster->size; n++)
    some[n] = cluster->node[n].server;
  server_name_several(cluster->url, sizeof cluster->url, "cluster", some[0], some, n);
}

/* Writes the first cluster map of a node: each shard has an unreachable primary. All nodes are
 * replicas, because replicas take commands as soon as they know the map; a starting primary
 * waits two seconds. */
static void write_map(const cluster_t *cluster, unsigned self, char (*nowhere)[CLUSTER_ID_SIZE]) {
  char path[128];
  unsigned shards = cluster->primaries;
  const char *named = program_is_since(7, 2) ? ",,tls-port=0,shard-id=" : ""; /* since then */
  snprintf(path, sizeof path, "%s/nodes.conf", server_folder(cluster->node[self].server));
  FILE *out = fopen(path, "we");
  assert_non_null(out);
  for (unsigned i = 0; i < shards; i++)
    fprintf(out, "%s 127.0.0.1:1@1%s%s master - 0 0 %u connected %u-%u\n", nowhere[i], named,
            named[0] != '\0' ? nowhere[i] : "", i + 1, i * CLUSTER_SLOTS / shards,
            (i + 1) * CLUSTER_SLOTS / shards - 1);
  for (unsigned i = 0; i < cluster->size; i++)
    fprintf(out, "%s 127.0.0.1:%d@%d%s%s %sslave %s 0 0 %u connected\n", cluster->node[i].id,
            server_port(cluster->node[i].server), server_bus(cluster->node[i].server), named,
            named[0] != '\0' ? nowhere[i % shards] : "", i == self ? "myself," : "",
            nowhere[i % shards], i % shards + 1);
  /* Each takes over with a number of its own. */
  fprintf(out, "vars currentEpoch %u lastVoteEpoch 0\n", shards + self);
  fclose(out);
}

static bool is_ready(cluster_t *cluster, unsigned i) {
  const resp_t *reply = server_try(cluster->node[i].server, "CLUSTER", "INFO", NULL);
  return reply != NULL && reply->str != NULL && strstr(reply->str, "cluster_state:ok") != NULL;
}

/* True if all nodes know that the first ones are the primaries, and follow no others. */
static bool have_taken_over(cluster_t *cluster, unsigned unused) {
  (void)unused;
  cluster_line_t line;
  for (unsigned i = 0; i < cluster->size; i++) {
    if (!cluster_look_up(view_of(cluster, i), cluster->node[i].id, &line) ||
        (line.primary[0] != '-' && find(cluster, line.primary) < 0))
      return false;
    for (unsigned j = 0; j < cluster->primaries; j++)
      if (!cluster_look_up(view_of(cluster, i), cluster->node[j].id, &line) ||
          line.slots[0] == '\0')
        return false;
  }
  return true;
}

static void print_views(cluster_t *cluster) {
  for (unsigned i = 0; i < cluster->size; i++) {
    const char *view = view_of(cluster, i);
    print_message("# %s says:\n%s", cluster->node[i].id, view != NULL ? view : "nothing\n");
  }
}

static void wait_until(cluster_t *cluster, bool (*condition)(cluster_t *, unsigned), unsigned i,
                       const char *what) {
  int64_t began = clock_now();
  while (!condition(cluster, i)) {
    if (clock_since_ms(began) > WAIT_MS * slow()) {
      print_views(cluster);
      fail_msg("a cluster: %s", what);
    }
    stall_ms(2);
  }
}

/* Starts the processes, none of which runs, and lets the first ones take over. */
static void launch(cluster_t *cluster) {
  cluster->suspects_soon = true;
  char nowhere[CLUSTER_NODES_MAX][CLUSTER_ID_SIZE];
  for (unsigned i = 0; i < cluster->primaries; i++)
    name_node(nowhere[i]);
  for (unsigned i = 0; i < cluster->size; i++) {
    write_map(cluster, i, nowhere);
    server_spawn(cluster->node[i].server);
  }
  for (unsigned i = 0; i < cluster->size; i++) {
    server_await(cluster->node[i].server);
    wait_until(cluster, is_ready, i, "no node takes commands");
  }
  for (unsigned i = 0; i < cluster->primaries; i++)
    server_do(cluster->node[i].server, "CLUSTER", "FAILOVER", "TAKEOVER", NULL);
  wait_until(cluster, have_taken_over, 0, "nobody takes over");
  for (unsigned i = 0; i < cluster->size; i++)
    for (unsigned j = 0; j < cluster->primaries; j++)
      server_do(cluster->node[i].server, "CLUSTER", "FORGET", nowhere[j], NULL);
  cluster_wait(cluster);
}

cluster_t *cluster_start(const cluster_options_t *options) {
  cluster_t *cluster = calloc(1, sizeof *cluster);
  if (options != NULL)
    cluster->options = *options;
  cluster->options.tls = cluster->options.tls || servers_are_secure();
  cluster->primaries = cluster->options.primaries > 0 ? cluster->options.primaries : 3;
  unsigned size = cluster->primaries * (cluster->options.without_replicas ? 1 : 2);
  for (unsigned i = 0; i < size; i++) {
    make_node(cluster);
    name_node(cluster->node[i].id);
  }
  name_url(cluster);
  launch(cluster);
  return cluster;
}

void cluster_restart(cluster_t *cluster) {
  for (unsigned i = 0; i < cluster->size; i++)
    server_kill(cluster->node[i].server);
  launch(cluster);
}

void cluster_stop(cluster_t *cluster) {
  for (unsigned i = 0; cluster != NULL && i < cluster->size; i++)
    server_stop(cluster->node[i].server);
  free(cluster);
}

const char *cluster_url(const cluster_t *cluster) {
  return cluster->url;
}

unsigned cluster_size(const cluster_t *cluster) {
  return cluster->size;
}

server_t *cluster_node(const cluster_t *cluster, unsigned i) {
  assert_true(i < cluster->size);
  return cluster->node[i].server;
}

/* ---- whole ---- */

/* True if this view has no unexpected node and agrees with each node's view of itself. */
static bool agrees(const cluster_t *cluster, char *const *view, unsigned i) {
  cluster_line_t seen, own;
  for (const char *text = view[i]; (text = cluster_read_line(text, &seen)) != NULL;) {
    int j = find(cluster, seen.id);
    if (j < 0 || !cluster_look_up(view[j], seen.id, &own) || strstr(seen.flags, "fail") != NULL ||
        strcmp(seen.link, "connected") != 0 || seen.epoch != own.epoch ||
        cluster_is_primary(&seen) != cluster_is_primary(&own) ||
        strcmp(seen.primary, own.primary) != 0 || strcmp(seen.slots, own.slots) != 0)
      return false;
  }
  for (unsigned j = 0; j < cluster->size; j++)
    if (cluster->node[j].server != NULL && !cluster_look_up(view[i], cluster->node[j].id, &seen))
      return false;
  return true;
}

/* Whether it takes commands, and if it is a replica, has what its primary has. */
static bool is_up_to_date(cluster_t *cluster, const char *view, unsigned i) {
  cluster_line_t line;
  if (!is_ready(cluster, i) || !cluster_look_up(view, cluster->node[i].id, &line))
    return false;
  int primary = find(cluster, line.primary);
  return cluster_is_primary(&line) ||
         (primary >= 0 &&
          server_is_in_step(cluster->node[i].server, cluster->node[primary].server));
}

bool cluster_is_whole(cluster_t *cluster) {
  char *view[CLUSTER_NODES_MAX] = {0};
  bool whole = true;
  for (unsigned i = 0; whole && i < cluster->size; i++) {
    const char *text = view_of(cluster, i);
    view[i] = text == NULL ? NULL : strdup(text);
    whole = text != NULL || cluster->node[i].server == NULL;
  }
  for (unsigned i = 0; whole && i < cluster->size; i++)
    whole = view[i] == NULL || (agrees(cluster, view, i) && is_up_to_date(cluster, view[i], i));
  for (unsigned i = 0; i < cluster->size; i++)
    free(view[i]);
  return whole;
}

static bool is_whole(cluster_t *cluster, unsigned unused) {
  (void)unused;
  return cluster_is_whole(cluster);
}

static void set_timeout(cluster_t *cluster, const char *ms) {
  for (unsigned i = 0; i < cluster->size; i++) {
    server_t *server = cluster->node[i].server;
    if (server != NULL && server_is_running(server) && !server_is_paused(server))
      server_do(server, "CONFIG", "SET", "cluster-node-timeout", ms, NULL);
  }
}

void cluster_wait(cluster_t *cluster) {
  wait_until(cluster, is_whole, 0, "it does not come together");
  if (cluster->suspects_soon) {
    set_timeout(cluster, TIMEOUT_MS);
    cluster->suspects_soon = false;
  }
}

/* ---- failing over ---- */

/* The first that runs; -1: none. */
static int replica_of(cluster_t *cluster, unsigned primary) {
  cluster_line_t line;
  for (unsigned i = 0; i < cluster->size; i++)
    if (cluster_look_up(view_of(cluster, i), cluster->node[i].id, &line) &&
        strcmp(line.primary, cluster->node[primary].id) == 0)
      return (int)i;
  return -1;
}

/* An elected node cannot be elected again for four seconds, and neither can its shard. The failover
 * is then requested again. */
static void ask_for_it(cluster_t *cluster) {
  static const char *const words[] = {
      [CLUSTER_ASKED] = NULL, [CLUSTER_FORCED] = "FORCE", [CLUSTER_TAKEN] = "TAKEOVER"};
  int replica = replica_of(cluster, (unsigned)cluster->old);
  cluster->asked = clock_now();
  if (replica >= 0)
    server_ask(cluster->node[replica].server, "CLUSTER", "FAILOVER", words[cluster->way], NULL);
}

void cluster_suspect_soon(cluster_t *cluster) {
  cluster->suspects_soon = true;
  set_timeout(cluster, SOON_MS);
}

void cluster_begin_fail_over(cluster_t *cluster, unsigned slot, cluster_way_t way) {
  cluster->slot = slot;
  cluster->way = way;
  cluster->old = cluster_owner(cluster, slot);
  assert_true(cluster->old >= 0);
  server_t *old = cluster->node[cluster->old].server;
  if (way == CLUSTER_KILLED)
    server_kill(old);
  else if (way == CLUSTER_PAUSED)
    server_pause(old);
  cluster_suspect_soon(cluster);
  if (way <= CLUSTER_TAKEN)
    ask_for_it(cluster);
}

bool cluster_has_failed_over(cluster_t *cluster) {
  cluster->new = cluster_owner(cluster, cluster->slot);
  if (cluster->new >= 0 && cluster->new != cluster->old)
    return true;
  if (cluster->way <= CLUSTER_TAKEN && clock_since_ms(cluster->asked) > ASK_AGAIN_MS)
    ask_for_it(cluster);
  return false;
}

static bool has_failed_over(cluster_t *cluster, unsigned unused) {
  (void)unused;
  return cluster_has_failed_over(cluster);
}

unsigned cluster_fail_over(cluster_t *cluster, unsigned slot, cluster_way_t way) {
  cluster_begin_fail_over(cluster, slot, way);
  wait_until(cluster, has_failed_over, 0, "it does not fail over");
  return (unsigned)cluster->new;
}

void cluster_mend(cluster_t *cluster) {
  for (unsigned i = 0; i < cluster->size; i++)
    if (cluster->node[i].server != NULL)
      server_resume(cluster->node[i].server);
  for (unsigned i = 0; i < cluster->size; i++)
    if (cluster->node[i].server != NULL && !server_is_running(cluster->node[i].server)) {
      server_spawn(cluster->node[i].server);
      cluster->suspects_soon = true;
    }
}

/* ---- moving slots ---- */

static server_t *owner_of(cluster_t *cluster, unsigned slot) {
  int owner = cluster_owner(cluster, slot);
  assert_true(owner >= 0);
  return cluster->node[owner].server;
}

void cluster_move_begin(cluster_t *cluster, unsigned slot, unsigned to) {
  char number[12];
  int from = cluster_owner(cluster, slot);
  assert_true(from >= 0 && from != (int)to);
  snprintf(number, sizeof number, "%u", slot);
  server_do(cluster->node[to].server, "CLUSTER", "SETSLOT", number, "IMPORTING",
            cluster->node[from].id, NULL);
  server_do(cluster->node[from].server, "CLUSTER", "SETSLOT", number, "MIGRATING",
            cluster->node[to].id, NULL);
}

static void add_word(resp_words_t *words, const char *word, size_t len) {
  assert_true(words->count < RESP_WORDS);
  words->word[words->count] = word;
  words->len[words->count++] = len;
}

static void migrate(const cluster_t *cluster, server_t *from, unsigned to, const resp_t *keys) {
  char port[12];
  resp_words_t words = {0};
  const char *password = cluster->options.password;
  snprintf(port, sizeof port, "%d", server_port(cluster->node[to].server));
  const char *first[] = {"MIGRATE", "127.0.0.1", port, "", "0", "10000", "REPLACE"};
  for (size_t i = 0; i < sizeof first / sizeof *first; i++)
    add_word(&words, first[i], strlen(first[i]));
  if (acl_applies(&(server_options_t){0})) {
    add_word(&words, "AUTH2", 5);
    add_word(&words, ACL_ADMIN, sizeof ACL_ADMIN - 1);
    add_word(&words, ACL_ADMIN_PASSWORD, sizeof ACL_ADMIN_PASSWORD - 1);
  } else if (password != NULL) {
    add_word(&words, "AUTH", 4);
    add_word(&words, password, strlen(password));
  }
  add_word(&words, "KEYS", 4);
  for (size_t i = 0; i < keys->count; i++)
    add_word(&words, keys->items[i]->str, keys->items[i]->len);
  const resp_t *reply = server_ask_words(from, &words);
  if (reply->type == RESP_ERROR)
    fail_msg("keys do not move: %s", reply->str);
}

unsigned cluster_move_keys(cluster_t *cluster, unsigned slot, unsigned to, unsigned count) {
  char number[12], limit[12];
  unsigned moved = 0;
  server_t *from = owner_of(cluster, slot);
  snprintf(number, sizeof number, "%u", slot);
  while (moved < count) {
    snprintf(limit, sizeof limit, "%u", count - moved < BATCH ? count - moved : BATCH);
    const resp_t *keys = server_ask(from, "CLUSTER", "GETKEYSINSLOT", number, limit, NULL);
    assert_int_equal(keys->type, RESP_ARRAY);
    if (keys->count == 0)
      break;
    moved += (unsigned)keys->count;
    migrate(cluster, from, to, keys);
  }
  return moved;
}

/* First who gets it, then who had it: in between both say that it is theirs, never neither. */
void cluster_move_end(cluster_t *cluster, unsigned slot, unsigned to) {
  char number[12];
  int from = cluster_owner(cluster, slot);
  snprintf(number, sizeof number, "%u", slot);
  server_do(cluster->node[to].server, "CLUSTER", "SETSLOT", number, "NODE", cluster->node[to].id,
            NULL);
  if (from >= 0 && from != (int)to)
    server_do(cluster->node[from].server, "CLUSTER", "SETSLOT", number, "NODE",
              cluster->node[to].id, NULL);
  for (unsigned i = 0; i < cluster->size; i++)
    if (i != to && (int)i != from && cluster->node[i].server != NULL &&
        server_is_primary(cluster->node[i].server))
      server_do(cluster->node[i].server, "CLUSTER", "SETSLOT", number, "NODE", cluster->node[to].id,
                NULL);
}

void cluster_move(cluster_t *cluster, unsigned slot, unsigned to) {
  cluster_wait(cluster);
  cluster_move_begin(cluster, slot, to);
  (void)cluster_move_keys(cluster, slot, to, UINT_MAX);
  cluster_move_end(cluster, slot, to);
}

/* ---- nodes that come and go ---- */

unsigned cluster_add(cluster_t *cluster) {
  char port[12], bus[12];
  unsigned added = cluster->size;
  make_node(cluster);
  node_t *node = &cluster->node[added];
  server_spawn(node->server);
  server_await(node->server);
  snprintf(node->id, CLUSTER_ID_SIZE, "%s", server_string(node->server, "CLUSTER", "MYID", NULL));
  snprintf(port, sizeof port, "%d", server_port(node->server));
  snprintf(bus, sizeof bus, "%d", server_bus(node->server));
  for (unsigned i = 0; i < added; i++)
    if (cluster->node[i].server != NULL)
      server_do(cluster->node[i].server, "CLUSTER", "MEET", "127.0.0.1", port, bus, NULL);
  cluster_wait(cluster);
  return added;
}

void cluster_replicate(cluster_t *cluster, unsigned i, unsigned primary) {
  server_do(cluster->node[i].server, "CLUSTER", "REPLICATE", cluster->node[primary].id, NULL);
  cluster_wait(cluster);
}

void cluster_forget(cluster_t *cluster, unsigned i) {
  node_t *node = &cluster->node[i];
  server_stop(node->server);
  node->server = NULL;
  for (unsigned other = 0; other < cluster->size; other++)
    if (cluster->node[other].server != NULL)
      server_do(cluster->node[other].server, "CLUSTER", "FORGET", node->id, NULL);
  cluster_wait(cluster);
}

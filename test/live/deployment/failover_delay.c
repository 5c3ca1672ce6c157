/* The time until a client uses the new primary of a Sentinel group: from the first ROLE reply
 * "master" of the new primary to the first reply of a plain call, and to the first grant of a
 * lock.
 *
 * The primary is killed or stopped, in turn. A thread asks both replicas for their role every
 * two milliseconds.
 *
 * BELAY_FAILOVERS in the environment: the number of failovers; default 2. With it the limit of
 * the medians is LIMIT_MS. Otherwise the limit is generous, because the machine may be busy. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/client/client.h"
#include "support/fixtures/env.h"
#include "support/load/drill.h"
#include "support/deployments/group.h"

enum { LIMIT_MS = 200, PATIENCE_MS = 60000, LOCK_WAIT_MS = 60000, POLL_MS = 2 };

/* ---- the servers' own word ---- */

typedef struct watch {
  pthread_t thread;
  int port[REPLICAS_NODES]; /* of the replicas; 0: this was the primary */
  atomic_bool stop;
  /* When a replica first answered that it is a primary, by clock_now(); 0: none yet. */
  _Atomic int64_t promoted;
} watch_t;

static bool says_primary(resp_client_t *client, int port) {
  static const resp_words_t role = {1, {"ROLE"}, {4}};
  if (client->fd < 0 && resp_dial_tcp(client, "127.0.0.1", port) != 0)
    return false;
  resp_t *reply = resp_call(client, &role);
  if (reply == NULL) {
    resp_hang_up(client);
    return false;
  }
  bool yes =
      reply->type == RESP_ARRAY && reply->count > 0 && strcmp(reply->items[0]->str, "master") == 0;
  resp_free(reply);
  return yes;
}

static void *watch_roles(void *arg) {
  watch_t *watch = arg;
  resp_client_t client[REPLICAS_NODES];
  for (int i = 0; i < REPLICAS_NODES; i++)
    client[i].fd = -1;
  while (!atomic_load(&watch->stop)) {
    for (int i = 0; i < REPLICAS_NODES; i++)
      if (watch->port[i] != 0 && atomic_load(&watch->promoted) == 0 &&
          says_primary(&client[i], watch->port[i]))
        atomic_store(&watch->promoted, clock_now());
    stall_ms(POLL_MS);
  }
  for (int i = 0; i < REPLICAS_NODES; i++)
    if (client[i].fd >= 0)
      resp_hang_up(&client[i]);
  return NULL;
}

static void watch_begin(watch_t *watch, group_t *group) {
  int primary = group_primary(group);
  *watch = (watch_t){.port = {0}};
  for (int i = 0; i < REPLICAS_NODES; i++)
    watch->port[i] = i == primary ? 0 : server_port(group_node(group, (unsigned)i));
  assert_int_equal(pthread_create(&watch->thread, NULL, watch_roles, watch), 0);
}

static void watch_end(watch_t *watch) {
  atomic_store(&watch->stop, true);
  pthread_join(watch->thread, NULL);
}

/* ---- the clients ---- */

typedef struct drill {
  group_t *group;
  env_t *env;
  contender_t *contender;
  watch_t watch;
  int64_t pong, grant; /* the first success since the promotion, by clock_now(); 0: none yet */
  double call_ms[DRILLS_MAX], lock_ms[DRILLS_MAX];
  unsigned count;
} drill_t;

static void on_pong(env_t *env) {
  drill_t *drill = env->arg;
  if (env->pong_status == 0 && drill->pong == 0 && atomic_load(&drill->watch.promoted) != 0)
    drill->pong = clock_now();
}

static void on_lock(contender_t *contender, event_t event) {
  drill_t *drill = contender->arg;
  if (event != EVENT_ENDED || contender->status != 0 || remaining_ms(contender) <= 0)
    return;
  if (drill->grant == 0 && atomic_load(&drill->watch.promoted) != 0)
    drill->grant = clock_now();
}

/* A plain call at a time, and a lock that is taken and given back at once. */
static void go_on(drill_t *drill) {
  static int begun;
  env_t *env = drill->env;
  contender_t *contender = drill->contender;
  if (env->pongs == begun)
    begun += begin_ping(env) == 0;
  if (contender->begun > contender->ended)
    return;
  if (remaining_ms(contender) > 0)
    (void)begin_release(contender);
  else
    (void)begin_acquire(contender, LOCK_WAIT_MS);
}

static void run_for(drill_t *drill, int64_t ms) {
  int64_t began = clock_now();
  env_wait_begin(drill->env, "time");
  while (clock_since_ms(began) < ms) {
    go_on(drill);
    env_turn(drill->env);
  }
  env_wait_end(drill->env);
}

/* Every other pair of failovers begins late, when what is tried again and again has backed off. */
static void set_down_after(group_t *group, const char *ms) {
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    server_do(group_sentinel(group, i), "SENTINEL", "SET", GROUP_NAME, "down-after-milliseconds",
              ms, NULL);
}

static void fail_over(drill_t *drill, group_way_t way) {
  unsigned n = drill->count++;
  run_for(drill, 200);
  if (n % 4 >= 2)
    set_down_after(drill->group, "4000");
  watch_begin(&drill->watch, drill->group);
  drill->pong = drill->grant = 0;
  group_begin_fail_over(drill->group, way);
  env_wait_begin(drill->env, "an answer and a grant of the new primary");
  while (drill->pong == 0 || drill->grant == 0) {
    go_on(drill);
    env_turn(drill->env);
  }
  env_wait_end(drill->env);
  watch_end(&drill->watch);
  drill->call_ms[n] = drill_after(drill->watch.promoted, drill->pong);
  drill->lock_ms[n] = drill_after(drill->watch.promoted, drill->grant);
  print_message("# %3u %s: from the new primary's own ROLE answer to the first success: call %.1f "
                "ms, lock %.1f ms\n",
                n, way == GROUP_KILLED ? "killed" : "paused", drill->call_ms[n], drill->lock_ms[n]);
  while (!group_has_failed_over(drill->group))
    run_for(drill, 5);
  group_mend(drill->group);
  while (!group_is_whole(drill->group))
    run_for(drill, 5);
}

TEST(new_primary_is_used_at_once) {
  static drill_t drill;
  belay_lock_options_t lock = watched(3000);
  drill.group = group_start(NULL);
  drill.env = env_open_at(group_url(drill.group), NULL);
  drill.env->then = on_pong;
  drill.env->arg = &drill;
  drill.contender = contender_new(drill.env, "hatch", &lock);
  drill.contender->then = on_lock;
  drill.contender->arg = &drill;
  unsigned n = drill_setting("BELAY_FAILOVERS", 2);
  while (drill.count < n)
    fail_over(&drill, drill.count % 2 == 0 ? GROUP_KILLED : GROUP_PAUSED);
  (void)drill_print("plain call", drill.call_ms, n);
  (void)drill_print("lock", drill.lock_ms, n);
  double limit = drill_is_strict() ? LIMIT_MS : 20.0 * LIMIT_MS * (double)slow();
  assert_true(drill.call_ms[n / 2] <= limit && drill.lock_ms[n / 2] <= limit);
  env_close(drill.env);
  group_stop(drill.group);
}

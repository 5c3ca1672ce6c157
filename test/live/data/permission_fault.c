/* Permissions where something goes wrong: answers are lost, keys hold something else, everything
 * is closed. */
#include <stdio.h>

#include "support/fixtures/data/permissions.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define KEY PERMS_KEY "4"

/* Without a ttl, or with one: then what changes something is a script. */
static void perms_either(perms_t *perms, env_t *env, int ttl) {
  belay_permission_options_t options = permission_options(4);
  options.ttl_ms = ttl == 0 ? 0 : 100000;
  perms_of(perms, env, env->client, &options);
}

static char detail[256];

static void keep_detail(perms_t *perms) {
  snprintf(detail, sizeof detail, "%s", belay_detail(perms->env->belay));
}

TEST_IN(wrong_type_is_left_unchanged, env, env_open_with(server_with_digest(), NULL)) {
  for (int ttl = 0; ttl < 2; ttl++) {
    perms_t perms;
    perms_either(&perms, env, ttl);
    perms.then = keep_detail;
    server_do(env->server, "RPUSH", KEY, "text", NULL);
    uint64_t digest = server_digest(env->server);
    for (perm_verb_t verb = PERM_GET; verb <= PERM_SWAP; verb++) {
      perm_op_t perm_op = {0};
      assert_ends(begin_perm(&perms, &perm_op, verb, 1, 7), end_of_perm_op(&perm_op),
                  BELAY_EWRONGTYPE);
      assert_int_equal(strncmp(detail, KEY ": WRONGTYPE", strlen(KEY ": WRONGTYPE")), 0);
      assert_true(server_digest(env->server) == digest);
      assert_int_equal(server_integer(env->server, "PTTL", KEY, NULL), -1);
    }
    expect_perm(&perms, PERM_CLEAR, 0, 0, 0, 0, false);
    expect_perm(&perms, PERM_SET, 1, 7, 0, 7, true);
    server_do(env->server, "FLUSHALL", NULL);
    expect_perm(&perms, PERM_GET, 1, 0, 0, 0, false);
  }
}

/* It is executed, and the connection is cut before the answer comes. */
TEST(lost_replies) {
  static const uint64_t after[] = {1, 1, 6, 14, 8, 8, 0};
  for (int ttl = 0; ttl < 2; ttl++) {
    belay_client_options_t options = relay_client_options();
    env_t *env = env_open_relayed(&options);
    perms_t perms;
    perms_either(&perms, env, ttl);
    expect_perm(&perms, PERM_SET, 1, 1, 0, 1, true);
    for (perm_verb_t verb = PERM_GET; verb <= PERM_CLEAR; verb++) {
      perm_op_t perm_op = {0};
      relay_delay(env->relay, RELAY_LONG);
      int64_t looks = 1, before = server_commands(env->server);
      assert_error(begin_perm(&perms, &perm_op, verb, 1, verb == PERM_GRANT ? 8 : 6), 0);
      for (; server_commands(env->server) == before + looks; looks++) /* each is a command too */
        uv_run(&env->loop, UV_RUN_NOWAIT);
      relay_cut(env->relay);
      relay_delay(env->relay, 0);
      assert_error(end_of_perm_op(&perm_op), PERM_IS_SENT_AGAIN(verb) ? 0 : BELAY_EUNKNOWN);
      expect_perm(&perms, PERM_GET, 1, 0, after[verb], after[verb], after[verb] != 0);
    }
    env_close(env);
  }
}

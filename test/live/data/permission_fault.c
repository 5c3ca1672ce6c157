/* Permissions where something goes wrong: answers are lost, keys hold something else, everything
 * is closed. */
#include <stdio.h>

#include "support/fixtures/data/permits.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define KEY GATE_KEY "4"

/* Without a ttl, or with one: then what changes something is a script. */
static void gate_either(gate_t *gate, env_t *env, int ttl) {
  belay_permission_options_t options = permission_options(4);
  options.ttl_ms = ttl == 0 ? 0 : 100000;
  gate_of(gate, env, env->client, &options);
}

static char detail[256];

static void keep_detail(gate_t *gate) {
  snprintf(detail, sizeof detail, "%s", belay_detail(gate->env->belay));
}

TEST_IN(wrong_type_is_left_unchanged, env, env_open_with(server_with_digest(), NULL)) {
  for (int ttl = 0; ttl < 2; ttl++) {
    gate_t gate;
    gate_either(&gate, env, ttl);
    gate.then = keep_detail;
    server_do(env->server, "RPUSH", KEY, "text", NULL);
    uint64_t digest = server_digest(env->server);
    for (deed_t deed = DEED_GET; deed <= DEED_SWAP; deed++) {
      permit_t permit = {0};
      assert_ends(begin_deed(&gate, &permit, deed, 1, 7), end_of_permit(&permit), BELAY_EWRONGTYPE);
      assert_int_equal(strncmp(detail, KEY ": WRONGTYPE", strlen(KEY ": WRONGTYPE")), 0);
      assert_true(server_digest(env->server) == digest);
      assert_int_equal(server_integer(env->server, "PTTL", KEY, NULL), -1);
    }
    expect_deed(&gate, DEED_CLEAR, 0, 0, 0, 0, false);
    expect_deed(&gate, DEED_SET, 1, 7, 0, 7, true);
    server_do(env->server, "FLUSHALL", NULL);
    expect_deed(&gate, DEED_GET, 1, 0, 0, 0, false);
  }
}

/* It is executed, and the connection is cut before the answer comes. */
TEST(lost_replies) {
  static const uint64_t after[] = {1, 1, 6, 14, 8, 8, 0};
  for (int ttl = 0; ttl < 2; ttl++) {
    belay_client_options_t options = relay_client_options();
    env_t *env = env_open_relayed(&options);
    gate_t gate;
    gate_either(&gate, env, ttl);
    expect_deed(&gate, DEED_SET, 1, 1, 0, 1, true);
    for (deed_t deed = DEED_GET; deed <= DEED_CLEAR; deed++) {
      permit_t permit = {0};
      relay_delay(env->relay, RELAY_LONG);
      int64_t looks = 1, before = server_commands(env->server);
      assert_error(begin_deed(&gate, &permit, deed, 1, deed == DEED_GRANT ? 8 : 6), 0);
      for (; server_commands(env->server) == before + looks; looks++) /* each is a command too */
        uv_run(&env->loop, UV_RUN_NOWAIT);
      relay_cut(env->relay);
      relay_delay(env->relay, 0);
      assert_error(end_of_permit(&permit), DEED_IS_SENT_AGAIN(deed) ? 0 : BELAY_EUNKNOWN);
      expect_deed(&gate, DEED_GET, 1, 0, after[deed], after[deed], after[deed] != 0);
    }
    env_close(env);
  }
}

/* The command that publishes: always that of the server which gets the call. */
#include "core/call/publish.h"

#include <stdio.h>

#include "core/client/client.h"
#include "support/fixtures/env.h"
#include "support/deployments/relay.h"

static server_t *start_cluster(void) {
  const server_options_t options = {.cluster = true};
  server_t *server = server_start(&options);
  server_do(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL);
  while (strstr(server_string(server, "CLUSTER", "INFO", NULL), "cluster_state:ok") == NULL)
    uv_sleep(10);
  return server;
}

/* A script that publishes. */
typedef struct resize {
  belay_request_t request;
  unsigned ended;
  int status;
} resize_t;

static void on_resized(belay_request_t *request, int status, const belay_semaphore_state_t *state) {
  resize_t *resize = request->data;
  (void)state;
  resize->ended++;
  resize->status = status;
}

static void begin_resize(env_t *env, resize_t *resize) {
  *resize = (resize_t){.request.data = resize};
  assert_error(
      belay_semaphore_resize(env->client, &resize->request, belay_string("pool"), 7, on_resized),
      0);
}

static void resize(env_t *env) {
  resize_t resize;
  begin_resize(env, &resize);
  env_until(env, resize.ended == 1);
  assert_error(resize.status, 0);
}

static void assert_published(server_t *server, int64_t plain, int64_t sharded) {
  assert_int_equal(server_calls(server, "publish"), plain);
  assert_int_equal(server_calls(server, "spublish"), sharded);
}

/* ---- the words ---- */

ENV_TEST(publish_in_each_kind_of_server) {
  static const char plain[] = "*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$5\r\nhello\r\n";
  static const char sharded[] = "*3\r\n$8\r\nSPUBLISH\r\n$1\r\nc\r\n$5\r\nhello\r\n";
  belay__call_t *call = belay__call_new(env->client, BELAY__CLASS_DATA);
  belay__publish_build(call, "c", 1, "hello", 5);
  for (int i = 0; i < 4; i++) {
    belay__publish_as(call, i % 2 == 1);
    const char *expected = i % 2 == 1 ? sharded : plain;
    assert_int_equal(call->len, strlen(expected));
    assert_string_equal(call->data, expected);
    belay__publish_as(call, i % 2 == 1);
    assert_string_equal(call->data, expected);
  }
  belay__call_abandon(call);
}

/* A copy of the shorter one has room for the longer one, whatever is left of its buffer. */
ENV_TEST(copied_publish) {
  char message[600], text[700];
  memset(message, 'x', sizeof message);
  for (size_t len = 180; len < sizeof message; len++) {
    belay__call_t *call = belay__call_new(env->client, BELAY__CLASS_DATA);
    belay__publish_build(call, "c", 1, message, len);
    belay__publish_as(call, false);
    belay__call_t *copy = belay__call_copy(call);
    assert_non_null(copy);
    belay__publish_as(copy, true);
    snprintf(text, sizeof text, "*3\r\n$8\r\nSPUBLISH\r\n$1\r\nc\r\n$%zu\r\n%.*s\r\n", len,
             (int)len, message);
    assert_string_equal(copy->data, text);
    belay__call_abandon(call);
    belay__call_abandon(copy);
  }
}

/* ---- who has just come ---- */

TEST(publish_as_first_call) {
  needs_one_server("one that is no cluster");
  server_t *servers[] = {server_start(NULL), start_cluster()};
  for (int i = 0; i < 2; i++) {
    env_t *env = env_open_with(servers[i], NULL);
    resize(env);
    assert_published(env->server, i == 0, i == 1);
    resize(env); /* by its hash */
    assert_published(env->server, 2 * (i == 0), 2 * (i == 1));
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    resize(env); /* by its hash, and then by its text */
    assert_published(env->server, 3 * (i == 0), 3 * (i == 1));
    env_close(env);
  }
}

/* ---- a server in the place of another one ---- */

typedef struct move {
  server_t *from, *to;
  relay_t *relay;
  env_t *env;
} move_t;

static move_t begin_move(bool to_cluster) {
  needs_one_server("servers of both kinds in one place");
  const server_options_t tcp = {.address = "127.0.0.1"};
  server_t *cluster = start_cluster(), *single = server_start(&tcp);
  move_t m = {.from = to_cluster ? single : cluster, .to = to_cluster ? cluster : single};
  m.relay = relay_start(server_url(m.from));
  m.env = env_open_at(relay_url(m.relay), NULL);
  resize(m.env);
  assert_published(m.from, to_cluster ? 1 : 0, to_cluster ? 0 : 1);
  return m;
}

/* Calls in flight get no reply, and the next connection goes to the other server. */
static void lead_to_the_other(move_t *m) {
  relay_lead(m->relay, server_url(m->to));
  relay_cut(m->relay); /* first: the answer may be just coming */
  relay_delay(m->relay, 0);
}

static void end_move(move_t *m) {
  env_close(m->env);
  relay_stop(m->relay);
  server_stop(m->from);
  server_stop(m->to);
}

static void on_counted(belay_request_t *request, int status, unsigned left) {
  resize_t *count = request->data;
  (void)left;
  count->ended++;
  count->status = status;
}

/* The count that opens a latch is sent again; where it is executed it is published. */
TEST(resend_to_another_kind_of_server) {
  for (int to_cluster = 0; to_cluster < 2; to_cluster++) {
    move_t m = begin_move(to_cluster);
    resize_t again = {.request.data = &again};
    belay_latch_t *latch;
    assert_error(belay_latch_new(m.env->client, belay_string("gate"), NULL, &latch), 0);
    relay_delay(m.relay, 300 * slow());
    assert_error(belay_latch_count_down(latch, &again.request, belay_bytes(NULL, 0), on_counted),
                 0);
    env_run_for(m.env, 20);
    lead_to_the_other(&m);
    env_until(m.env, again.ended == 1);
    assert_error(again.status, 0);
    assert_published(m.to, !to_cluster, to_cluster);
    end_move(&m);
  }
}

/* The primary moves with the lock's key. The release gets no reply and is repeated on the new
 * server. */
TEST(release_to_another_kind_of_server) {
  for (int to_cluster = 0; to_cluster < 2; to_cluster++) {
    move_t m = begin_move(to_cluster);
    belay_lock_options_t options = with_ttl(60000);
    contender_t *holder = contender_new(m.env, "door", &options);
    assert_error(try_lock(holder), 0);
    char token[256], flag[256];
    snprintf(token, sizeof token, "%s", server_string(m.from, "GET", key_of(holder), NULL));
    snprintf(flag, sizeof flag, "%s::contended", key_of(holder));
    server_do(m.to, "SET", key_of(holder), token, "PX", "60000", NULL);
    server_do(m.to, "SET", flag, "", "PX", "60000", NULL);
    relay_delay(m.relay, 300 * slow());
    assert_error(begin_release(holder), 0);
    env_run_for(m.env, 20);
    lead_to_the_other(&m);
    (void)outcome(holder);
    env_settle(m.env);
    assert_null(server_string(m.to, "GET", key_of(holder), NULL));
    assert_published(m.to, !to_cluster, to_cluster);
    end_move(&m);
  }
}

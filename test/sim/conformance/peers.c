#include "sim/conformance/peers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "support/base/test.h"

/* ---- the engine's hooks ---- */

static void on_push(void *ctx, engine_conn_t *conn, const char *at, size_t len) {
  conformance_peers_t *peers = ctx;
  engine_buffer_add(&peers->pushed[conn - peers->conn], at, len);
}

static bool on_kill(void *ctx, int64_t id) {
  conformance_peers_t *peers = ctx;
  for (unsigned i = 0; i < peers->conns; i++)
    if (peers->conn[i].id == id) {
      peers->killed = id;
      return true;
    }
  return false;
}

static void on_changed(void *ctx, engine_bytes_t key, engine_bytes_t was, engine_bytes_t is,
                       engine_cause_t cause) {
  const conformance_peers_t *peers = ctx;
  (void)cause;
  conformance_shadow_changed(peers->shadow, key, was, is);
}

/* ---- bytes ---- */

static void add_text(engine_buffer_t *buffer, const char *text) {
  engine_buffer_add(buffer, text, strlen(text));
}

void conformance_send(resp_client_t *client, engine_buffer_t *bytes) {
  assert_int_equal(resp_send(client->fd, bytes->at, bytes->len), 0);
  bytes->len = 0;
}

void conformance_add(engine_buffer_t *to, const conformance_command_t *command) {
  char head[32];
  snprintf(head, sizeof head, "*%zu\r\n", command->argc);
  add_text(to, head);
  for (size_t i = 0; i < command->argc; i++) {
    snprintf(head, sizeof head, "$%zu\r\n", command->argv[i].len);
    add_text(to, head);
    engine_buffer_add(to, command->argv[i].at, command->argv[i].len);
    add_text(to, "\r\n");
  }
}

void conformance_drop(engine_buffer_t *buffer, size_t len) {
  if (len == 0)
    return;
  memmove(buffer->at, buffer->at + len, buffer->len - len);
  buffer->len -= len;
}

engine_bytes_t conformance_next(conformance_peers_t *peers, unsigned conn) {
  engine_buffer_t *received = &peers->received[conn];
  for (;;) {
    size_t n = conformance_reply_length(received->at, received->len);
    if (n > 0)
      return (engine_bytes_t){received->at, n};
    char bytes[16384];
    ssize_t got = recv(peers->client[conn].fd, bytes, sizeof bytes, 0);
    if (got <= 0)
      return (engine_bytes_t){received->at, 0};
    engine_buffer_add(received, bytes, (size_t)got);
  }
}

engine_bytes_t conformance_next_few(conformance_peers_t *peers, unsigned conn, size_t count) {
  engine_buffer_t *received = &peers->received[conn], rest = {0};
  size_t len = 0;
  for (; count > 0; count--) {
    engine_bytes_t reply = conformance_next(peers, conn);
    if (reply.len == 0)
      break;
    len += reply.len;
    engine_buffer_add(&rest, reply.at, reply.len);
    conformance_drop(received, reply.len);
  }
  if (received->len > 0)
    engine_buffer_add(&rest, received->at, received->len);
  engine_buffer_free(received);
  *received = rest;
  return (engine_bytes_t){received->at, len};
}

/* ---- beginning and ending ---- */

/* Both sides get the same replies, except about themselves. */
static void speak_resp3(conformance_peers_t *peers, unsigned conn) {
  const engine_bytes_t hello[] = {{"HELLO", 5}, {"3", 1}};
  engine_buffer_t bytes = {0};
  engine_execute(peers->engine, &peers->conn[conn], peers->started_us, hello, 2, &bytes);
  bytes.len = 0;
  add_text(&bytes, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
  conformance_send(&peers->client[conn], &bytes);
  engine_buffer_free(&bytes);
  engine_bytes_t reply = conformance_next(peers, conn);
  assert_true(reply.len > 0 && reply.at[0] == '%');
  conformance_drop(&peers->received[conn], reply.len);
}

static void connect_all(conformance_peers_t *peers) {
  for (unsigned i = 0; i < peers->conns; i++) {
    engine_buffer_t bytes = {0};
    assert_int_equal(resp_dial_unix(&peers->client[i], server_path(peers->server)), 0);
    add_text(&bytes, "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n");
    conformance_send(&peers->client[i], &bytes);
    engine_buffer_free(&bytes);
    engine_bytes_t id = conformance_next(peers, i);
    assert_true(id.len > 0 && id.at[0] == ':');
    peers->conn[i] = (engine_conn_t){.id = strtoll(id.at + 1, NULL, 10)};
    conformance_drop(&peers->received[i], id.len);
    if (peers->resp == 3)
      speak_resp3(peers, i);
  }
}

static engine_t *make_engine(conformance_peers_t *peers) {
  const engine_options_t options = {
      .hooks = {.ctx = peers, .changed = on_changed, .kill = on_kill, .push = on_push},
      .run_id = peers->run_id,
      .started_us = peers->started_us,
  };
  return engine_new(&options);
}

void conformance_begin(conformance_peers_t *peers, unsigned conns, int resp) {
  server_do(peers->server, "FLUSHALL", NULL);
  server_do(peers->server, "SCRIPT", "FLUSH", NULL);
  peers->conns = conns;
  peers->resp = resp;
  peers->shadow = conformance_shadow_new();
  peers->engine = make_engine(peers);
  connect_all(peers);
}

static void disconnect_all(conformance_peers_t *peers) {
  for (unsigned i = 0; i < peers->conns; i++)
    engine_disconnect(peers->engine, &peers->conn[i]);
}

void conformance_restart(conformance_peers_t *peers) {
  engine_image_t *image = engine_save(peers->engine);
  disconnect_all(peers);
  engine_free(peers->engine);
  for (unsigned i = 0; i < peers->conns; i++)
    peers->conn[i] = (engine_conn_t){.id = peers->conn[i].id, .resp = peers->conn[i].resp};
  peers->engine = make_engine(peers);
  engine_load(peers->engine, image);
  engine_image_free(image);
}

void conformance_end(conformance_peers_t *peers) {
  disconnect_all(peers);
  for (unsigned i = 0; i < peers->conns; i++) {
    resp_hang_up(&peers->client[i]);
    engine_buffer_free(&peers->pushed[i]);
    engine_buffer_free(&peers->received[i]);
    peers->pushed[i] = peers->received[i] = (engine_buffer_t){0};
  }
  engine_free(peers->engine);
  conformance_shadow_free(peers->shadow);
  peers->engine = NULL;
}

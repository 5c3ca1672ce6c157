/* belay_tls_new(), belay_tls_reload() and belay_connect() with contradictory options; and a
 * reload under load. */
#include <stdio.h>
#include <unistd.h>

#include "support/servers/secure.h"

static certs_t *certs;
static char long_name[300];

TEST_BEGIN {
  memset(long_name, 'x', sizeof long_name - 1);
  certs = certs_new("ca");
  certs_make(certs, "server", NULL);
  certs_make(certs, "client", NULL);
  certs_make(certs, "other", NULL);
  certs_make(certs, "locked", &(cert_options_t){.pass = "sesame"});
  certs_write(certs, "garbage.pem", "-----BEGIN CERTIFICATE-----\nnonsense\n");
  certs_write(certs, "empty.pem", "");
}

TEST_END {
  certs_free(certs);
}

/* ---- options ---- */

typedef struct row {
  const char *ca_file, *ca_dir, *cert_file,
      *key_file; /* in the folder, unless they begin with '/' */
  const char *server_name;
  int min_version;
  const char *detail; /* NULL: they are good */
} row_t;

static const row_t rows[] = {
    {.ca_file = "ca.crt"},
    {.ca_dir = "/tmp"},
    {.ca_file = "ca.crt", .ca_dir = "/tmp"},
    {.ca_file = "ca.pem"}, /* a key without a certificate does no harm */
    {.cert_file = "client.pem"},
    {.cert_file = "client.crt", .key_file = "client.key"},
    {.cert_file = "client.crt", .key_file = "client.pem"},
    {.server_name = "redis.example.com", .min_version = BELAY_TLS_1_3},
    {.server_name = "10.0.0.1"},
    {.ca_file = "none.pem", .detail = "ca_file: No such file or directory"},
    {.ca_file = "", .detail = "ca_file: is a folder"},
    {.ca_file = "/", .detail = "ca_file: is a folder"},
    {.ca_file = "garbage.pem", .detail = "ca_file: holds no certificate"},
    {.ca_file = "empty.pem", .detail = "ca_file: holds no certificate"},
    {.ca_file = "/dev/null", .detail = "ca_file: is a device"},
    {.ca_file = "/dev/zero", .detail = "ca_file: is a device"},
    {.ca_dir = "/none", .detail = "ca_dir: No such file or directory"},
    {.ca_dir = "ca.crt", .detail = "ca_dir: is not a folder"},
    {.cert_file = "/dev/zero", .detail = "cert_file: is a device"},
    {.cert_file = "none.pem", .detail = "cert_file: No such file or directory"},
    {.cert_file = "garbage.pem", .detail = "cert_file: holds no certificate"},
    {.cert_file = "client.key", .detail = "cert_file: holds no certificate"},
    {.cert_file = "client.crt",
     .detail = "cert_file: holds no key that can be read without a pass phrase"},
    {.cert_file = "client.crt",
     .key_file = "none.key",
     .detail = "key_file: No such file or directory"},
    {.cert_file = "client.crt",
     .key_file = "client.crt",
     .detail = "key_file: holds no key that can be read without a pass phrase"},
    {.cert_file = "client.crt",
     .key_file = "other.key",
     .detail = "key_file: is not the key of cert_file"},
    {.cert_file = "locked.crt",
     .key_file = "locked.key",
     .detail = "key_file: holds no key that can be read without a pass phrase"},
    {.key_file = "client.key", .detail = "key_file: without a cert_file"},
    {.server_name = "", .detail = "server_name: not 1 to 255 bytes"},
    {.server_name = long_name, .detail = "server_name: not 1 to 255 bytes"},
    {.min_version = 2, .detail = "min_version: not from 0 to 1"},
    {.min_version = -1, .detail = "min_version: not from 0 to 1"},
};

static const char *place(const char *file) {
  return file == NULL || file[0] == '/' ? file : certs_path(certs, file);
}

static belay_tls_options_t options_of(const row_t *row) {
  belay_tls_options_t o;
  belay_tls_options_init(&o);
  o.ca_file = place(row->ca_file);
  o.ca_dir = place(row->ca_dir);
  o.cert_file = place(row->cert_file);
  o.key_file = place(row->key_file);
  o.server_name = row->server_name;
  o.min_version = (belay_tls_version_t)row->min_version;
  return o;
}

TEST_IN(option_errors, env, env_bare()) {
  belay_tls_t *tls, *kept;
  assert_error(belay_tls_new(env->belay, NULL, &kept), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const belay_tls_options_t o = options_of(&rows[i]);
    size_t before = env->bytes;
    int expected = rows[i].detail == NULL ? 0 : BELAY_EINVAL;
    int error = belay_tls_new(env->belay, &o, &tls);
    if (error != expected || (error != 0 && strcmp(belay_detail(env->belay), rows[i].detail) != 0))
      fail_msg("%zu: %s: \"%s\"", i, belay_err_name(error), belay_detail(env->belay));
    assert_true((tls != NULL) == (error == 0));
    belay_tls_close(tls);
    assert_int_equal(env->bytes, before);
    assert_error(belay_tls_reload(kept, &o), expected);
    assert_string_equal(belay_detail(env->belay), error == 0 ? "" : rows[i].detail);
  }
  belay_tls_close(kept);
}

/* It outlives its belay_t: that is an error, and nothing is lost. */
TEST(close_after_belay_close) {
  uv_loop_t loop;
  belay_t *belay;
  belay_tls_t *tls;
  assert_int_equal(uv_loop_init(&loop), 0);
  assert_error(belay_open(&loop, NULL, &belay), 0);
  assert_error(belay_tls_new(belay, NULL, &tls), 0);
  assert_error(belay_close(belay, NULL), 0);
  assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
  assert_int_equal(uv_loop_close(&loop), 0);
  assert_error(belay_tls_reload(tls, NULL), BELAY_ESTATE);
  assert_error(belay_tls_close(tls), BELAY_ESTATE);
}

TEST_IN(missing_files, env, env_bare()) {
  belay_tls_t *tls;
  belay_tls_options_init(NULL);
  assert_error(belay_tls_close(NULL), 0);
  assert_error(belay_tls_new(env->belay, NULL, NULL), BELAY_EINVAL);
  assert_error(belay_tls_new(NULL, NULL, &tls), BELAY_EINVAL);
  assert_null(tls);
  assert_error(belay_tls_reload(NULL, NULL), BELAY_EINVAL);
  assert_error(belay_tls_new(env->belay, NULL, &tls), 0);
  begin_belay_close(env);
  assert_error(belay_tls_reload(tls, NULL), BELAY_ECLOSING);
  belay_tls_close(tls);
  assert_error(belay_tls_new(env->belay, NULL, &tls), BELAY_ECLOSING);
}

/* No option does nothing, and nothing falls back to plain. */
TEST(tls_needs_rediss) {
  static const char *const plain[] = {"redis://localhost", "unix:///tmp/socket",
                                      "redis+sentinel://localhost/main",
                                      "redis+cluster://localhost", "redis+replicas://localhost"};
  static const char *const good[] = {"rediss://localhost", "rediss+sentinel://localhost/main",
                                     "rediss+cluster://localhost", "rediss+replicas://localhost"};
  env_t *env = env_bare(), *other = env_bare();
  belay_client_t *client;
  belay_client_options_t o = client_options();
  assert_error(belay_tls_new(env->belay, NULL, &o.tls), 0);
  size_t before = env->bytes;
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    assert_error(belay_connect(env->belay, plain[i], &o, &client), BELAY_EINVAL);
    assert_string_equal(belay_detail(env->belay), "tls: the URL does not begin with rediss");
    assert_null(client);
    assert_int_equal(env->bytes, before);
  }
  assert_error(belay_connect(other->belay, good[0], &o, &client), BELAY_EINVAL);
  assert_string_equal(belay_detail(other->belay), "tls: of another belay_t");
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    (void)env_connect(env, good[i], &o);
  belay_tls_close(o.tls);
  env_close(other);
  env_close(env);
}

/* ---- reload ---- */

static size_t links_of(const belay_client_t *client) {
  belay_client_stats_t stats;
  belay_client_stats(client, &stats);
  return stats.connections_up;
}

/* The server drops both, and both notice. */
static void drop_all(env_t *env, const belay_client_t *other) {
  server_do(env->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  env_until(env, links_of(env->client) == 0 && links_of(other) == 0);
}

/* The server's certificate and its authority are replaced while two clients share their TLS
 * settings. */
TEST(reload_concerns_new_connections) {
  certs_t *new_certs = certs_new("ca");
  certs_make(new_certs, "server", NULL);
  server_t *server = secure_server(certs, NULL);
  belay_tls_options_t o = trust(certs, NULL);
  belay_client_options_t client = client_options();
  client.reconnect_max_ms = 50;
  env_t *env = env_bare();
  assert_error(belay_tls_new(env->belay, &o, &client.tls), 0);
  const char *url = url_of("rediss", NULL, "localhost", server_port(server));
  env->server = server;
  env->client = env_connect(env, url, &client);
  belay_client_t *other = env_connect(env, url, &client);
  contender_t *mine = contender_new(env, "mine", NULL);
  contender_t *others = contender_of(env, other, "other's", NULL);
  assert_error(try_lock(mine), 0);
  assert_error(try_lock(others), 0);

  o.ca_file = certs_path(new_certs, "none.crt"); /* a slip of the hand */
  assert_error(belay_tls_reload(client.tls, &o), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "ca_file: No such file or directory");
  drop_all(env, other);
  assert_error(extend(mine, 20000), 0); /* as if nothing had been */

  server_do(server, "CONFIG", "SET", "tls-cert-file", certs_path(new_certs, "server.crt"),
            "tls-key-file", certs_path(new_certs, "server.key"), NULL);
  uint64_t connects = client_stats(env).connects;
  assert_error(extend(mine, 20000), 0); /* the present connection stays, */
  o.ca_file = certs_path(new_certs, "ca.crt");
  assert_error(belay_tls_reload(client.tls, &o), 0);
  assert_error(extend(mine, 20000), 0);
  assert_int_equal(client_stats(env).connects, connects);
  drop_all(env, other);
  assert_error(extend(mine, 20000), 0); /* and the next one uses the new certificate */
  assert_error(extend(others, 20000), 0);
  assert_true(client_stats(env).connects > connects);
  assert_int_equal(client_stats(env).connect_errors, 0);

  belay_tls_close(client.tls);
  assert_error(release(mine), 0);
  assert_error(release(others), 0);
  env_close(env);
  certs_free(new_certs);
}

/* Before the reload the client is refused; after it the next attempt succeeds. */
TEST(reload_ends_refusals) {
  server_t *server = secure_server(certs, &(secure_t){.clients = "yes"});
  belay_tls_options_t o = trust(certs, NULL);
  belay_client_options_t client = client_options();
  client.reconnect_max_ms = 50;
  env_t *env = env_bare();
  assert_error(belay_tls_new(env->belay, &o, &client.tls), 0);
  env->server = server;
  env->client = env_connect(env, url_of("rediss", NULL, "localhost", server_port(server)), &client);
  assert_error(pong(env, NULL), BELAY_ETLS);
  o = trust(certs, "client");
  assert_error(belay_tls_reload(client.tls, &o), 0);
  for (int64_t began = clock_now(); pong(env, NULL) != 0;)
    assert_between(clock_since_ms(began), 0, 10000 * slow());
  belay_tls_close(client.tls);
  env_close(env);
}

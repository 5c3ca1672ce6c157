/* All operations work over TLS, with each setting of the server and the client. */
#include <stdio.h>

#include "support/fixtures/data/counters.h"
#include "support/servers/secure.h"
#include "support/fixtures/subscriber.h"

enum { PIPELINE = 4000, FIELDS = 30000 };

static certs_t *certs;

TEST_BEGIN {
  certs = certs_new("ca");
  certs_make(certs, "server", NULL);
  certs_make(certs, "client", NULL);
}

TEST_END {
  certs_free(certs);
}

/* ---- what is done with a client ---- */

static void lock_and_release(env_t *env) {
  contender_t *c = contender_new(env, "over TLS", NULL);
  assert_error(try_lock(c), 0);
  assert_true(is_on_server(c));
  assert_error(extend(c, 20000), 0);
  assert_error(release(c), 0);
  assert_null(value_of(c));
}

/* Thousands of calls that are on their way at once. */
static void fill_pipeline(env_t *env) {
  static count_t counts[PIPELINE];
  counters_t counters;
  counters_new(&counters, env, NULL);
  for (int i = 0; i < PIPELINE; i++) {
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    assert_error(BEGIN(&counters, &counts[i], add, belay_string(key), i, on_result), 0);
  }
  env_until(env, counters.pending == 0);
  for (int i = 0; i < PIPELINE; i++) {
    assert_error(counts[i].status, 0);
    assert_int_equal(counts[i].result.value, i);
  }
  begin_close_counters(&counters);
  env_until(env, counters.closed == counters.closing);
}

static void on_fields(belay_request_t *request, int status, const belay_counter_field_t *fields,
                      size_t n) {
  size_t *count = request->data;
  assert_error(status, 0);
  assert_non_null(strstr(fields[n - 1].name, "a field that is called"));
  *count = n;
}

/* A reply of more than a megabyte. */
static void read_large(env_t *env) {
  size_t n = 0;
  belay_request_t request;
  counters_t counters;
  counters_new(&counters, env, NULL);
  char script[128];
  snprintf(script, sizeof script,
           "for i = 1, %d do redis.call('HSET', KEYS[1], 'a field that is called ' .. i, i) end",
           FIELDS);
  server_do(env->server, "EVAL", script, "1", "belay::counter::{large}", NULL);
  uint64_t before = client_stats(env).bytes_in;
  belay_request_init(&request);
  request.data = &n;
  assert_error(
      belay_counter_get_all(counters.counter, &request, belay_string("large"), FIELDS, on_fields),
      0);
  env_until(env, n > 0);
  assert_int_equal(n, FIELDS);
  assert_true(client_stats(env).bytes_in - before > 1 << 20);
  begin_close_counters(&counters);
  env_until(env, counters.closed == counters.closing);
}

/* A megabyte there and back, behind a few that are small. */
static void listen_and_publish(env_t *env) {
  static subscriber_t subscriber;
  static publication_t publication;
  static char message[BELAY_TOPIC_MESSAGE_MAX];
  subscriber = (subscriber_t){0};
  publication = (publication_t){0};
  subscribe(env, &subscriber, "news");
  publish_numbers(env, env->client, "news", 100);
  env_until(env, subscriber.messages == 100);
  assert_true(subscriber.sum == sum_of_numbers(100));
  memset(message, 'x', sizeof message);
  assert_error(begin_publish(env, env->client, &publication, "news", message, sizeof message), 0);
  env_until(env, subscriber.messages == 101 && publication.ended == 1);
  assert_int_equal(subscriber.len, sizeof message);
  assert_int_equal(subscriber.gaps, 0);
  unsubscribe(&subscriber);
  env_until(env, subscriber.closed == 1);
}

/* Does all of it, and closes the env. */
static void use(env_t *env, server_t *server) {
  env->server = server;
  lock_and_release(env);
  fill_pipeline(env);
  read_large(env);
  listen_and_publish(env);
  assert_int_equal(client_stats(env).connect_errors, 0);
  assert_int_equal(client_stats(env).drops, 0);
  assert_int_equal(env->errors + env->warnings, 0);
  assert_int_equal(server_info(server, "stats", "rejected_connections"), 0);
  env_close(env);
}

/* ---- in which ways ---- */

TEST(name_and_address) {
  belay_tls_options_t o = trust(certs, NULL);
  for (int i = 0; i < 2; i++) {
    server_t *server = secure_server(certs, NULL);
    const char *host = i == 0 ? "localhost" : "127.0.0.1";
    use(secure_env(url_of("rediss", NULL, host, server_port(server)), &o, NULL), server);
  }
}

TEST(password_and_client_certificate) {
  static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
  belay_tls_options_t o = trust(certs, "client");
  for (int i = 0; i < 2; i++) {
    server_t *server = secure_server(
        certs, &(secure_t){.clients = "yes", .versions = versions[i], .password = "sesame"});
    use(secure_env(url_of("rediss", "sesame", "localhost", server_port(server)), &o, NULL), server);
  }
}

TEST(tls_1_3_only) {
  server_t *server = secure_server(certs, NULL);
  belay_tls_options_t o = trust(certs, NULL);
  o.min_version = BELAY_TLS_1_3;
  use(secure_env(url_of("rediss", NULL, "localhost", server_port(server)), &o, NULL), server);
}

TEST(ca_dir) {
  server_t *server = secure_server(certs, NULL);
  belay_tls_options_t o = trust(certs, NULL);
  o.ca_file = NULL;
  o.ca_dir = certs_folder(certs);
  use(secure_env(url_of("rediss", NULL, "localhost", server_port(server)), &o, NULL), server);
}

/* The certificate is for neither the name nor the address that leads there. */
TEST(server_name) {
  certs_make(certs, "named", &(cert_options_t){.names = "DNS:redis.example.com"});
  server_t *server = secure_server(certs, &(secure_t){.cert = "named"});
  belay_tls_options_t o = trust(certs, NULL);
  o.server_name = "redis.example.com";
  use(secure_env(url_of("rediss", NULL, "127.0.0.1", server_port(server)), &o, NULL), server);
}

/* A client without TLS settings trusts the system's authorities. All such clients share one
 * instance. */
TEST(system_authorities) {
  setenv("SSL_CERT_FILE", certs_path(certs, "ca.crt"), 1);
  server_t *server = secure_server(certs, NULL);
  const char *url = url_of("rediss", NULL, "localhost", server_port(server));
  env_t *env = env_open_at(url, NULL);
  size_t first = env->bytes;
  belay_client_t *other = env_connect(env, url, NULL);
  size_t second = env->bytes - first;
  belay_client_t *third = env_connect(env, url, NULL);
  assert_int_equal(env->bytes - first - second, second);
  assert_error(begin_close_of(env, other), 0);
  assert_error(begin_close_of(env, third), 0);
  env_until(env, env->client_closed == 2);
  use(env, server);
  unsetenv("SSL_CERT_FILE");

  server = secure_server(certs, NULL); /* the system does not trust us */
  env = env_open_at(url_of("rediss", NULL, "localhost", server_port(server)), NULL);
  env->server = server;
  assert_error(pong(env, NULL), BELAY_ETLS);
  env_close(env);
}

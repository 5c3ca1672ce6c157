/* Peers that cannot prove their identity are refused, each with its own error, before any secret
 * is sent. */
#include <stdio.h>

#include "support/deployments/fake.h"
#include "support/deployments/relay.h"
#include "support/servers/secure.h"
#include "support/fixtures/subscriber.h"

/* A record with AUTH in it is as long as this at least, encrypted or not. */
#define SECRET                                                                                     \
  "an-open-sesame-of-sixty-four-bytes-that-no-other-command-is-as-long-as."                        \
  "an-open-sesame-of-sixty-four-bytes-that-no-other-command-is-as-long-as."                        \
  "an-open-sesame-of-sixty-four-bytes-that-no-other-command-is-as-long-as."

static certs_t *certs;

TEST_BEGIN {
  certs = certs_new("ca");
  certs_make(certs, "server", NULL);
  certs_make(certs, "client", NULL);
  certs_make(certs, "elsewhere", &(cert_options_t){.names = "DNS:elsewhere,DNS:*.localhost"});
  certs_make(certs, "named", &(cert_options_t){.names = "DNS:localhost"});
  certs_make(certs, "localhost", &(cert_options_t){.names = ""});
  certs_make(certs, "expired", &(cert_options_t){.from_day = -5, .days = 3});
  certs_make(certs, "early", &(cert_options_t){.from_day = 2});
  certs_make(certs, "self", &(cert_options_t){.self_signed = true});
  certs_make(certs, "old", &(cert_options_t){.from_day = -5, .days = 3});
  certs_authority(certs, "foreign");
  certs_make(certs, "strange", NULL);
}

TEST_END {
  certs_free(certs);
}

/* ---- what has left ---- */

enum { RECORD_HEAD = 5, RECORD_HANDSHAKE = 22, RECORD_DATA = 23 };

/* The longest record of data (in TLS 1.3 the end of the handshake looks like data too). */
static size_t longest_data(const unsigned char *bytes, size_t len) {
  size_t longest = 0;
  for (size_t at = 0; at + RECORD_HEAD <= len;) {
    size_t n = (size_t)bytes[at + 3] << 8 | bytes[at + 4];
    assert_in_range(bytes[at], 20, 23);
    if (bytes[at] == RECORD_DATA && n > longest)
      longest = n;
    at += RECORD_HEAD + n;
  }
  return longest;
}

/* The client's bytes contain no secret, in plain or encoded. With client_cert the client's
 * certificate, which is as long as a secret, may be among them. */
static void expect_nothing_left(relay_t *relay, bool client_cert) {
  size_t len;
  unsigned char *bytes = (unsigned char *)relay_capture(relay, &len);
  assert_false(relay_received(relay, "AUTH"));
  assert_false(relay_received(relay, "sesame"));
  assert_true(len == 0 || bytes[0] == RECORD_HANDSHAKE); /* a reset may take all of it away */
  if (!client_cert)
    assert_in_range(longest_data(bytes, len), 0, strlen(SECRET) - 1);
  free(bytes);
}

/* A relay to a server whose URL has a password in it. */
static relay_t *relay_to(server_t *server, const char *scheme) {
  static char target[64];
  snprintf(target, sizeof target, "%s://127.0.0.1:%d", scheme, server_port(server));
  relay_t *relay = relay_start(target);
  relay_listen(relay);
  return relay;
}

/* ---- each refusal ---- */

typedef struct refusal {
  const char *name;
  secure_t server;
  const char *host;     /* NULL: localhost */
  const char *ca;       /* file of the client's trusted certificates; NULL: ca.crt */
  const char *own_cert; /* NULL: none */
  belay_tls_version_t min_version;
  const char *why;
} refusal_t;

static const refusal_t refusals[] = {
    {.name = "wrong name",
     .server = {.cert = "elsewhere"},
     .why = "is for another name than localhost"},
    {.name = "a common name only",
     .server = {.cert = "localhost"},
     .why = "is for another name than localhost"},
    {.name = "address not in it",
     .server = {.cert = "named"},
     .host = "127.0.0.1",
     .why = "is not for the address 127.0.0.1"},
    {.name = "expired", .server = {.cert = "expired"}, .why = "certificate has expired"},
    {.name = "not yet valid", .server = {.cert = "early"}, .why = "certificate is not valid yet"},
    {.name = "self-signed", .server = {.cert = "self"}, .why = "certificate is self-signed"},
    {.name = "unknown authority",
     .server = {.cert = "strange"},
     .why = "certificate is signed by an unknown authority"},
    {.name = "another authority",
     .ca = "foreign.crt",
     .why = "certificate is signed by an unknown authority"},
    {.name = "without a certificate, 1.2",
     .server = {.clients = "yes", .versions = "TLSv1.2"},
     .why = "the server demands a certificate of the client"},
    {.name = "without a certificate, 1.3",
     .server = {.clients = "yes", .versions = "TLSv1.3"},
     .why = "the server demands a certificate of the client"},
    {.name = "with a foreign certificate, 1.2",
     .server = {.clients = "yes", .versions = "TLSv1.2"},
     .own_cert = "strange",
     .why = "does not accept the client's certificate: unknown CA"},
    {.name = "with a foreign certificate, 1.3",
     .server = {.clients = "yes", .versions = "TLSv1.3"},
     .own_cert = "strange",
     .why = "does not accept the client's certificate: unknown CA"},
    {.name = "with an old certificate",
     .server = {.clients = "yes"},
     .own_cert = "old",
     .why = "does not accept the client's certificate: certificate expired"},
    {.name = "version too old",
     .server = {.versions = "TLSv1.2"},
     .min_version = BELAY_TLS_1_3,
     .why = "the server speaks no version of TLS that is new enough"},
};

static env_t *refused_env(const refusal_t *row, int port) {
  belay_tls_options_t o = trust(certs, row->own_cert);
  if (row->ca != NULL)
    o.ca_file = certs_path(certs, row->ca);
  o.min_version = row->min_version;
  belay_client_options_t client = client_options();
  client.reconnect_max_ms = 300;
  return secure_env(url_of("rediss", SECRET, row->host != NULL ? row->host : "localhost", port), &o,
                    &client);
}

static void expect_refused(const refusal_t *row) {
  secure_t options = row->server;
  options.password = SECRET;
  server_t *server = secure_server(certs, &options);
  server_do(server, "CONFIG", "RESETSTAT", NULL);
  relay_t *relay = relay_to(server, "rediss");
  env_t *env = refused_env(row, port_of(relay_url(relay)));
  const char *detail;
  print_message("# %s\n", row->name);
  assert_error(pong(env, &detail), BELAY_ETLS);
  if (strstr(detail, row->why) == NULL)
    fail_msg("%s: %s", row->why, detail);
  assert_int_equal(env->errors, 1);

  contender_t *c = contender_new(env, "x", NULL); /* a caller gets the error at once, */
  assert_error(acquire(c, BELAY_FOREVER), BELAY_ETLS);
  env_run_for(env, 1000); /* the client does not retry all the time, */
  assert_error(pong(env, &detail), BELAY_ETLS);
  assert_non_null(strstr(detail, row->why));
  assert_in_range(relay_connections(relay), 1, 12);
  assert_int_equal(env->errors, 1); /* and once is enough for the log */

  assert_int_equal(server_calls(server, "auth"), 0);
  assert_int_equal(server_calls(server, "set"), 0);
  expect_nothing_left(relay, row->own_cert != NULL);
  env_close(env);
  relay_stop(relay);
  server_stop(server);
}

TEST(reason_of_each_refusal) {
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
    expect_refused(&refusals[i]);
}

/* The control: the observed bytes contain the secret if the peer is accepted. */
TEST_ON(secret_only_after_verification, server,
        secure_server(certs,
                      &(secure_t){.clients = "yes", .password = SECRET, .versions = "TLSv1.2"})) {
  server_do(server, "CONFIG", "RESETSTAT", NULL);
  relay_t *relay = relay_to(server, "rediss");
  env_t *env = refused_env(&(refusal_t){.own_cert = "client"}, port_of(relay_url(relay)));
  size_t len;
  assert_error(pong(env, NULL), 0);
  unsigned char *bytes = (unsigned char *)relay_capture(relay, &len);
  assert_true(longest_data(bytes, len) > strlen(SECRET));
  assert_false(relay_received(relay, "AUTH"));
  assert_int_equal(server_calls(server, "auth"), 1);
  free(bytes);
  env_close(env);
  relay_stop(relay);
}

/* ---- who speaks no TLS ---- */

/* A server, or a peer in between, without TLS: the client sends nothing to it. */
TEST(plain_text_reply) {
  static const char *const greetings[] = {"-ERR Protocol error\r\n", "+OK\r\n", "+PONG\r\n"};
  for (size_t i = 0; i < sizeof greetings / sizeof *greetings; i++) {
    fake_t *fake = fake_start(&(fake_options_t){.mute = true, .greeting = greetings[i]});
    relay_t *relay = relay_start(fake_url(fake));
    relay_listen(relay);
    env_t *env = refused_env(&(refusal_t){0}, port_of(relay_url(relay)));
    const char *detail;
    assert_error(pong(env, &detail), BELAY_ETLS);
    assert_string_equal(detail, "the server does not speak TLS");
    expect_nothing_left(relay, false);
    assert_int_equal(fake_commands(fake), 0);
    env_close(env);
    relay_stop(relay);
    fake_stop(fake);
  }
}

/* A real one waits for the end of a line, and says nothing for ever: that might pass. */
TEST(server_without_tls) {
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1", .password = SECRET});
  if (strncmp(server_url(server), "rediss", 6) == 0) { /* all servers expect TLS */
    server_stop(server);
    skip();
  }
  server_do(server, "CONFIG", "RESETSTAT", NULL);
  relay_t *relay = relay_to(server, "redis");
  belay_tls_options_t o = trust(certs, NULL);
  belay_client_options_t client = client_options();
  client.connect_timeout_ms = 300;
  const char *url = url_of("rediss", SECRET, "localhost", port_of(relay_url(relay))), *detail;
  env_t *env = secure_env(url, &o, &client);
  assert_error(pong(env, &detail), BELAY_EUNREACHABLE);
  assert_non_null(strstr(detail, "perhaps it does not speak TLS"));
  assert_int_equal(server_calls(server, "auth"), 0);
  expect_nothing_left(relay, false);
  env_close(env);
  relay_stop(relay);
  server_stop(server);
}

/* A client without TLS at a TLS server: the server closes the connection. Only the plain parts
 * of the URL were sent. */
TEST(client_without_tls) {
  server_t *server = secure_server(certs, NULL);
  env_t *env = env_open_at(url_of("redis", NULL, "localhost", server_port(server)), NULL);
  const char *detail;
  env->server = server;
  assert_error(pong(env, &detail), BELAY_EUNREACHABLE);
  assert_non_null(strstr(detail, "perhaps it speaks only TLS"));
  server_kill(server); /* and those words do not stay */
  env_run_for(env, 100);
  assert_error(pong(env, &detail), BELAY_EUNREACHABLE);
  assert_non_null(strstr(detail, "connection refused"));
  assert_null(strstr(detail, "TLS"));
  env_close(env);
}

/* ---- who listens, and who comes back ---- */

TEST(subscriber_gets_the_reason) {
  static subscriber_t subscriber;
  subscriber = (subscriber_t){0};
  server_t *server = secure_server(certs, &(secure_t){.cert = "expired"});
  env_t *env = refused_env(&(refusal_t){0}, server_port(server));
  env->server = server;
  assert_error(subscribe_to(env, env->client, &subscriber, "news", 4), 0);
  env_until(env, subscriber.gaps == 1);
  assert_error(subscriber.status, BELAY_ETLS);
  unsubscribe(&subscriber);
  env_until(env, subscriber.closed == 1);
  env_close(env);
}

/* The same port, and another certificate: no call needs to know. */
TEST(certificate_repaired) {
  server_t *server = secure_server(certs, &(secure_t){.cert = "expired", .password = SECRET});
  env_t *env = refused_env(&(refusal_t){0}, server_port(server));
  env->server = server;
  assert_error(pong(env, NULL), BELAY_ETLS);
  server_do(server, "CONFIG", "SET", "tls-cert-file", certs_path(certs, "server.crt"),
            "tls-key-file", certs_path(certs, "server.key"), NULL);
  for (int64_t began = clock_now(); pong(env, NULL) != 0;)
    assert_between(clock_since_ms(began), 0, 10000 * slow());
  contender_t *c = contender_new(env, "x", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  env_close(env);
}

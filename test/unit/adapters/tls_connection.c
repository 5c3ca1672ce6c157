/* TLS connections: handshakes, certificates, and wrong servers. */
#include "unit/adapters/tls_ends.h"

/* ---- the handshake ---- */

TEST(handshake_byte_by_byte) {
  ends_t *ends = connect_to(&(settings_t){0});
  unsigned readable = 0, writable = 0;
  net.gives = 1;
  for (;;) {
    net.takes = 7;
    int wants = belay__tls_connection_handshake(ends->connection);
    if (wants == 0)
      break;
    assert_true(wants == UV_READABLE || wants == UV_WRITABLE);
    readable += wants == UV_READABLE;
    writable += wants == UV_WRITABLE;
    serve(ends);
  }
  assert_true(readable > 0 && writable > 10);
  serve(ends);
  assert_int_equal(SSL_is_init_finished(ends->server), 1);
  assert_null(why(ends, BELAY_EUNREACHABLE));
  hang_up(ends);
}

TEST(endless_handshake_is_split) {
  ends_t *ends = connect_to(&(settings_t){0});
  assert_int_equal(belay__tls_connection_handshake(ends->connection), UV_READABLE);
  serve(ends);
  net.gives = 1;
  net.reads = 0;
  assert_int_equal(belay__tls_connection_handshake(ends->connection), UV_READABLE);
  assert_in_range(net.reads, 1, 64);
  hang_up(ends);
}

/* The names in a certificate, and the hosts that they permit. */
TEST(name_comparison) {
  static const struct {
    const char *names, *host, *server_name;
    bool good;
  } rows[] = {
      {"DNS:redis.example.com", "redis.example.com", NULL, true},
      {"DNS:redis.example.com", "REDIS.Example.com", NULL, true},
      {"DNS:redis.example.com", "redis.example.com.", NULL, true},
      {"DNS:redis.example.com", "example.com", NULL, false},
      {"DNS:redis.example.com", "xredis.example.com", NULL, false},
      {"DNS:a.example.com,DNS:b.example.com", "b.example.com", NULL, true},
      {"DNS:*.example.com", "redis.example.com", NULL, true},
      {"DNS:*.example.com", "example.com", NULL, false},
      {"DNS:*.example.com", "a.redis.example.com", NULL, false},
      {"DNS:r*.example.com", "redis.example.com", NULL, false},
      {"DNS:*s.example.com", "redis.example.com", NULL, false},
      {"DNS:*.com", "example.com", NULL, false},
      {"IP:10.0.0.7", "10.0.0.7", NULL, true},
      {"IP:10.0.0.7", "10.0.0.8", NULL, false},
      {"DNS:10.0.0.7", "10.0.0.7", NULL, false}, /* a name that looks like an address is none */
      {"DNS:localhost", "127.0.0.1", NULL, false},
      {"IP:127.0.0.1", "localhost", NULL, false},
      {"IP:fe80::1", "fe80::1%eth0", NULL, true},
      {"IP:fe80::1", "fe80:0:0::1", NULL, true},
      {"IP:fe80::1", "fe80::2", NULL, false},
      {"DNS:redis.example.com", "10.0.0.7", "redis.example.com", true},
      {"DNS:redis.example.com", "redis.example.com", "other.example.com", false},
      {"IP:10.0.0.7", "redis.example.com", "10.0.0.7", true},
      /* special names, some of which OpenSSL treats as wildcards */
      {"DNS:redis.example.com", "%eth0", NULL, false},
      {"DNS:redis.example.com", "redis.example.com", "%", false},
      {"DNS:redis.example.com", "redis.example.com", ".example.com", false},
      {"DNS:redis.example.com", ".com", NULL, false},
      {"DNS:redis.example.com", ".", NULL, false},
      {"DNS:redis.example.com", "", NULL, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay_tls_options_t o = {.server_name = rows[i].server_name};
    ends_t *ends = connect_to(&(settings_t){
        .cert = &(cert_options_t){.names = rows[i].names}, .host = rows[i].host, .o = &o});
    int error = shake(ends);
    if (error != (rows[i].good ? 0 : BELAY_ETLS))
      fail_msg("%s for %s: %d", rows[i].names, rows[i].host, error);
    if (error != 0)
      assert_non_null(strstr(why(ends, BELAY_ETLS), "certificate is"));
    assert_int_equal(ends->received_len, 0);
    hang_up(ends);
  }
}

static int save_name(SSL *ssl, int *alert, void *arg) {
  (void)alert;
  const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  snprintf(arg, 64, "%s", name == NULL ? "" : name);
  return SSL_TLSEXT_ERR_OK;
}

TEST(server_name_indication) {
  static const struct {
    const char *host, *server_name, *asked_name;
  } rows[] = {
      {"localhost", NULL, "localhost"},
      {"localhost.", NULL, "localhost"},
      {"127.0.0.1", NULL, ""},
      {"10.0.0.9", "localhost", "localhost"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char asked_name[64] = "?";
    belay_tls_options_t o = {.server_name = rows[i].server_name};
    ends_t *ends = connect_to(&(settings_t){.host = rows[i].host, .o = &o});
    SSL_CTX_set_tlsext_servername_callback(ends->context, save_name);
    SSL_CTX_set_tlsext_servername_arg(ends->context, asked_name);
    assert_int_equal(shake(ends), 0);
    assert_string_equal(asked_name, rows[i].asked_name);
    hang_up(ends);
  }
}

/* ---- what a server may turn out to be ---- */

TEST(certificate_errors) {
  static const struct {
    cert_options_t cert;
    const char *why;
  } rows[] = {
      {{.from_day = -5, .days = 3}, "has expired"},
      {{.from_day = 2}, "is not valid yet"},
      {{.self_signed = true}, "is self-signed"},
      {{.usage = "clientAuth"}, "was not accepted"},
      {{.names = "DNS:elsewhere"}, "for another name than localhost"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ends_t *ends = connect_to(&(settings_t){.cert = &rows[i].cert});
    assert_int_equal(shake(ends), BELAY_ETLS);
    if (strstr(why(ends, BELAY_ETLS), rows[i].why) == NULL)
      fail_msg("%s: %s", rows[i].why, why(ends, BELAY_ETLS));
    assert_int_equal(ends->received_len, 0);
    hang_up(ends);
  }
}

TEST(server_without_tls) {
  static const char *const words[] = {"-ERR unknown command\r\n", "+OK\r\n",
                                      "HTTP/1.1 400 Bad Request\r\n\r\n", "\0\0\0\0\0\0"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    ends_t *ends = connect_to(&(settings_t){0});
    assert_int_equal(belay__tls_connection_handshake(ends->connection), UV_READABLE);
    put(&net.to_client, words[i], i == 3 ? 6 : strlen(words[i]));
    assert_int_equal(shake(ends), BELAY_ETLS);
    assert_string_equal(why(ends, BELAY_ETLS), "the server does not speak TLS");
    hang_up(ends);
  }
}

TEST(old_tls_versions) {
  belay_tls_options_t o;
  belay_tls_options_init(&o);
  o.min_version = BELAY_TLS_1_3;
  ends_t *ends = connect_to(&(settings_t){.o = &o, .max_version = TLS1_2_VERSION});
  assert_int_equal(shake(ends), BELAY_ETLS);
  assert_non_null(strstr(why(ends, BELAY_ETLS), "no version of TLS that is new enough"));
  hang_up(ends);

  ends = connect_to(&(settings_t){.max_version = TLS1_1_VERSION});
  SSL_set_security_level(ends->server, 0);
  SSL_set_cipher_list(ends->server, "ALL:@SECLEVEL=0");
  assert_int_equal(shake(ends), BELAY_ETLS);
  assert_non_null(strstr(why(ends, BELAY_ETLS), "no version of TLS that is new enough"));
  hang_up(ends);
}

/* A server that was reached, and then was not. */
TEST(connection_lost_in_handshake) {
  static const struct {
    int read_error, write_error;
    bool ended, answered;
  } rows[] = {
      {ECONNRESET, 0, false, false}, {ECONNRESET, 0, false, true}, {0, EPIPE, false, false},
      {0, 0, true, false},           {0, 0, true, true},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ends_t *ends = connect_to(&(settings_t){0});
    net.write_error = rows[i].write_error;
    int wants = belay__tls_connection_handshake(ends->connection);
    if (rows[i].answered) {
      serve(ends);
      net.to_client.end = 100;
    }
    net.read_error = rows[i].read_error;
    net.ended = rows[i].ended;
    if (wants > 0)
      wants = belay__tls_connection_handshake(ends->connection);
    assert_int_equal(wants, BELAY_EUNREACHABLE);
    assert_non_null(strstr(why(ends, BELAY_EUNREACHABLE), "hung up"));
    hang_up(ends);
  }
}

TEST(silent_server) {
  ends_t *ends = connect_to(&(settings_t){0});
  assert_null(why(ends, BELAY_EUNREACHABLE)); /* nothing was done yet */
  assert_int_equal(belay__tls_connection_handshake(ends->connection), UV_READABLE);
  assert_non_null(strstr(why(ends, BELAY_EUNREACHABLE), "perhaps it does not speak TLS"));
  serve(ends);
  net.to_client.end -= 10;
  assert_int_equal(belay__tls_connection_handshake(ends->connection), UV_READABLE);
  assert_string_equal(why(ends, BELAY_EUNREACHABLE),
                      "the server stopped in the middle of the TLS handshake");
  hang_up(ends);
}

/* ---- who asks for our certificate ---- */

TEST(client_certificate_missing) {
  char buffer[16];
  ends_t *ends = handshake_done(&(settings_t){.demands = true});
  assert_true(belay__tls_connection_needs_confirmation(ends->connection));
  assert_int_equal(read_once(ends, buffer, sizeof buffer), -1);
  assert_int_equal(errno, EPROTO);
  assert_string_equal(why(ends, BELAY_ETLS), "the server demands a certificate of the client");
  hang_up(ends);

  ends = connect_to(&(settings_t){.demands = true, .max_version = TLS1_2_VERSION});
  assert_int_equal(shake(ends), BELAY_ETLS);
  assert_string_equal(why(ends, BELAY_ETLS), "the server demands a certificate of the client");
  hang_up(ends);
}

TEST(confirmation_by_the_first_reply) {
  char buffer[16];
  ends_t *ends = connect_to(&(settings_t){.demands = true});
  SSL_set_verify(ends->server, SSL_VERIFY_PEER, NULL); /* without is fine too */
  assert_int_equal(shake(ends), 0);
  assert_true(belay__tls_connection_needs_confirmation(ends->connection));
  serve(ends);
  read_tickets(ends);
  assert_true(belay__tls_connection_needs_confirmation(ends->connection));
  say(ends, "+PONG\r\n", 7);
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 7);
  assert_false(belay__tls_connection_needs_confirmation(ends->connection));
  hang_up(ends);

  ends = handshake_done(NULL); /* without a check there is no doubt */
  assert_false(belay__tls_connection_needs_confirmation(ends->connection));
  hang_up(ends);
}

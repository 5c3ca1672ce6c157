/* A tunnel whose socket takes and gives as much as the test wants, and a server of OpenSSL's at its other end. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/net/socket.h"
#include "redis/net/tls_connection.h"
#include "support/servers/certs.h"
#include "support/base/test.h"

#define PLENTY ((size_t)1 << 30)
#define RECORD ((size_t)16384)

/* ---- the network ------------------------------------------------------------------------------------------ */

typedef struct way {
  char data[1 << 20];
  size_t start, end;
} way_t;

static struct {
  way_t to_server, to_client;
  size_t takes; /* bytes that the socket still takes */
  size_t gives; /* bytes at most at a time */
  bool ended;   /* behind what is there */
  int read_error, write_error;
  unsigned reads;
} net;

static void put(way_t *way, const char *data, size_t len) {
  assert_true(way->end + len <= sizeof way->data);
  memcpy(way->data + way->end, data, len);
  way->end += len;
}

static size_t get(way_t *way, char *data, size_t size) {
  size_t n = way->end - way->start;
  n = n < size ? n : size;
  memcpy(data, way->data + way->start, n);
  way->start += n;
  if (way->start == way->end)
    way->start = way->end = 0;
  return n;
}

static ssize_t fail_with(int error) {
  errno = error;
  return -1;
}

ssize_t belay__socket_read(int fd, char *buffer, size_t size) {
  (void)fd;
  net.reads++;
  size_t n = get(&net.to_client, buffer, size < net.gives ? size : net.gives);
  if (n > 0 || net.ended)
    return (ssize_t)n;
  return fail_with(net.read_error != 0 ? net.read_error : EAGAIN);
}

ssize_t belay__socket_write(int fd, const char *data, size_t len) {
  (void)fd;
  size_t n = len < net.takes ? len : net.takes;
  if (net.write_error != 0 || n == 0)
    return fail_with(net.write_error != 0 ? net.write_error : EAGAIN);
  put(&net.to_server, data, n);
  net.takes -= n;
  return (ssize_t)n;
}

void belay__socket_reset(int fd) {
  (void)fd;
}

int belay__socket_watch(belay__uv_handle_t *handle, int events, uv_poll_cb cb) {
  (void)handle;
  (void)events;
  (void)cb;
  return 0;
}

void belay__socket_ignore(belay__uv_handle_t *handle) {
  (void)handle;
}

bool belay__socket_is_closing(const belay__uv_handle_t *handle) {
  (void)handle;
  return false;
}

/* ---- both ends -------------------------------------------------------------------------------------------- */

typedef struct ends {
  certs_t *certs;
  belay__host_t host;
  belay_tls_t *tls;
  belay__tunnel_t *tunnel;
  SSL_CTX *context;
  SSL *server;
  char *heard; /* what the server was told */
  size_t heard_len;
  size_t bytes; /* that belay has */
} ends_t;

static bool never_forked(const belay_t *belay) {
  (void)belay;
  return false;
}

static const belay__host_ops_t host_ops = {.forked = never_forked};

typedef struct settings {
  const cert_options_t *cert;
  const char *host;       /* that is connected to; NULL: localhost */
  belay_tls_options_t *o; /* of the client; NULL: the authority */
  int max_version;        /* of the server; 0: any */
  bool demands;           /* the server wants a certificate */
} settings_t;

static ends_t *connect_to(const settings_t *settings) {
  ends_t *ends = calloc(1, sizeof *ends);
  memset(&net, 0, sizeof net);
  net.takes = net.gives = PLENTY;
  ends->certs = certs_new("ca");
  certs_make(ends->certs, "server", settings->cert);
  belay_options_t options;
  belay_options_init(&options);
  belay__init(&ends->host.base, &host_ops, &options);
  belay_tls_options_t o;
  belay_tls_options_init(&o);
  if (settings->o != NULL)
    o = *settings->o;
  o.ca_file = certs_path(ends->certs, "ca.crt");
  assert_int_equal(belay_tls_new(&ends->host.base, &o, &ends->tls), 0);
  ends->tunnel =
      belay__tunnel_new(ends->tls, -1, settings->host == NULL ? "localhost" : settings->host);

  ends->context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_use_certificate_chain_file(ends->context, certs_path(ends->certs, "server.crt"));
  SSL_CTX_use_PrivateKey_file(ends->context, certs_path(ends->certs, "server.key"),
                              SSL_FILETYPE_PEM);
  SSL_CTX_set_max_proto_version(ends->context, settings->max_version);
  if (settings->demands)
    SSL_CTX_set_verify(ends->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  ends->server = SSL_new(ends->context);
  SSL_set_bio(ends->server, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_accept_state(ends->server);
  return ends;
}

static void hang_up(ends_t *ends) {
  belay__tunnel_free(ends->tunnel);
  belay_tls_close(ends->tls);
  assert_int_equal(ends->host.base.stats.memory_bytes, 0);
  SSL_free(ends->server);
  SSL_CTX_free(ends->context);
  certs_free(ends->certs);
  free(ends->heard);
  free(ends);
}

static void drain(ends_t *ends) {
  char buffer[4096];
  int n;
  while ((n = BIO_read(SSL_get_wbio(ends->server), buffer, sizeof buffer)) > 0)
    put(&net.to_client, buffer, (size_t)n);
}

/* The server does with what has come whatever can be done with it. */
static void serve(ends_t *ends) {
  char buffer[4096];
  size_t n;
  while ((n = get(&net.to_server, buffer, sizeof buffer)) > 0)
    BIO_write(SSL_get_rbio(ends->server), buffer, (int)n);
  ERR_clear_error();
  while (SSL_read_ex(ends->server, buffer, sizeof buffer, &n) == 1) {
    ends->heard = realloc(ends->heard, ends->heard_len + n);
    memcpy(ends->heard + ends->heard_len, buffer, n);
    ends->heard_len += n;
  }
  drain(ends);
}

static void say(ends_t *ends, const char *data, size_t len) {
  size_t n = 0;
  assert_int_equal(SSL_write_ex(ends->server, data, len, &n), 1);
  assert_int_equal(n, len);
  drain(ends);
}

/* Shakes hands to the end: 0, or an error. */
static int shake(ends_t *ends) {
  for (int i = 0; i < 20000; i++) {
    int wants = belay__tunnel_shake(ends->tunnel);
    if (wants <= 0)
      return wants;
    serve(ends);
  }
  fail_msg("a handshake that never ends");
  return 0;
}

static ends_t *shaken(const settings_t *settings) {
  ends_t *ends = connect_to(settings == NULL ? &(settings_t){0} : settings);
  assert_int_equal(shake(ends), 0);
  serve(ends);
  return ends;
}

static const char *why(const ends_t *ends, int expected) {
  int error;
  const char *words = belay__tunnel_why(ends->tunnel, &error);
  assert_int_equal(error, expected);
  return words;
}

/* Reads what has come, as a wire does: the socket once. */
static ssize_t read_once(ends_t *ends, char *buffer, size_t size) {
  belay__tunnel_may_read(ends->tunnel);
  return belay__tunnel_read(ends->tunnel, buffer, size);
}

/* What TLS has to say to us that is no data: tickets. */
static void read_tickets(ends_t *ends) {
  char buffer[16];
  for (int i = 0; i < 100 && net.to_client.end > 0; i++)
    assert_int_equal(read_once(ends, buffer, sizeof buffer), -1);
}

static char *noise(size_t len) {
  char *data = malloc(len);
  for (size_t i = 0; i < len; i++)
    data[i] = (char)(rand() >> 7);
  return data;
}

/* ---- the handshake ---------------------------------------------------------------------------------------- */

TEST(bytes_may_come_one_by_one) {
  ends_t *ends = connect_to(&(settings_t){0});
  unsigned readable = 0, writable = 0;
  net.gives = 1;
  for (;;) {
    net.takes = 7;
    int wants = belay__tunnel_shake(ends->tunnel);
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

TEST(who_never_stops_shaking_gets_a_step_at_a_time) {
  ends_t *ends = connect_to(&(settings_t){0});
  assert_int_equal(belay__tunnel_shake(ends->tunnel), UV_READABLE);
  serve(ends);
  net.gives = 1;
  net.reads = 0;
  assert_int_equal(belay__tunnel_shake(ends->tunnel), UV_READABLE);
  assert_in_range(net.reads, 1, 64);
  hang_up(ends);
}

/* The names in a certificate, and who may be connected to by it. */
TEST(names_are_compared_as_they_should_be) {
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
      /* names of nobody in particular, some of which OpenSSL takes for anybody's */
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
    assert_int_equal(ends->heard_len, 0);
    hang_up(ends);
  }
}

static int save_name(SSL *ssl, int *alert, void *arg) {
  (void)alert;
  const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  snprintf(arg, 64, "%s", name == NULL ? "" : name);
  return SSL_TLSEXT_ERR_OK;
}

TEST(only_names_are_told) {
  static const struct {
    const char *host, *server_name, *told;
  } rows[] = {
      {"localhost", NULL, "localhost"},
      {"localhost.", NULL, "localhost"},
      {"127.0.0.1", NULL, ""},
      {"10.0.0.9", "localhost", "localhost"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char told[64] = "?";
    belay_tls_options_t o = {.server_name = rows[i].server_name};
    ends_t *ends = connect_to(&(settings_t){.host = rows[i].host, .o = &o});
    SSL_CTX_set_tlsext_servername_callback(ends->context, save_name);
    SSL_CTX_set_tlsext_servername_arg(ends->context, told);
    assert_int_equal(shake(ends), 0);
    assert_string_equal(told, rows[i].told);
    hang_up(ends);
  }
}

/* ---- what a server may turn out to be ---------------------------------------------------------------------- */

TEST(certificates_are_refused_each_for_its_reason) {
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
    assert_int_equal(ends->heard_len, 0);
    hang_up(ends);
  }
}

TEST(plain_words_are_no_tls) {
  static const char *const words[] = {"-ERR unknown command\r\n", "+OK\r\n",
                                      "HTTP/1.1 400 Bad Request\r\n\r\n", "\0\0\0\0\0\0"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    ends_t *ends = connect_to(&(settings_t){0});
    assert_int_equal(belay__tunnel_shake(ends->tunnel), UV_READABLE);
    put(&net.to_client, words[i], i == 3 ? 6 : strlen(words[i]));
    assert_int_equal(shake(ends), BELAY_ETLS);
    assert_string_equal(why(ends, BELAY_ETLS), "the server does not speak TLS");
    hang_up(ends);
  }
}

TEST(old_versions_are_refused) {
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
TEST(loss_on_the_way_is_the_networks_fault) {
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
    int wants = belay__tunnel_shake(ends->tunnel);
    if (rows[i].answered) {
      serve(ends);
      net.to_client.end = 100;
    }
    net.read_error = rows[i].read_error;
    net.ended = rows[i].ended;
    if (wants > 0)
      wants = belay__tunnel_shake(ends->tunnel);
    assert_int_equal(wants, BELAY_EUNREACHABLE);
    assert_non_null(strstr(why(ends, BELAY_EUNREACHABLE), "hung up"));
    hang_up(ends);
  }
}

TEST(silence_has_words_of_its_own) {
  ends_t *ends = connect_to(&(settings_t){0});
  assert_null(why(ends, BELAY_EUNREACHABLE)); /* nothing was done yet */
  assert_int_equal(belay__tunnel_shake(ends->tunnel), UV_READABLE);
  assert_non_null(strstr(why(ends, BELAY_EUNREACHABLE), "perhaps it does not speak TLS"));
  serve(ends);
  net.to_client.end -= 10;
  assert_int_equal(belay__tunnel_shake(ends->tunnel), UV_READABLE);
  assert_string_equal(why(ends, BELAY_EUNREACHABLE),
                      "the server stopped in the middle of the TLS handshake");
  hang_up(ends);
}

/* ---- who asks for our certificate --------------------------------------------------------------------------- */

TEST(who_has_no_certificate_is_told_so) {
  char buffer[16];
  ends_t *ends = shaken(&(settings_t){.demands = true});
  assert_true(belay__tunnel_is_doubted(ends->tunnel));
  assert_int_equal(read_once(ends, buffer, sizeof buffer), -1);
  assert_int_equal(errno, EPROTO);
  assert_string_equal(why(ends, BELAY_ETLS), "the server demands a certificate of the client");
  hang_up(ends);

  ends = connect_to(&(settings_t){.demands = true, .max_version = TLS1_2_VERSION});
  assert_int_equal(shake(ends), BELAY_ETLS);
  assert_string_equal(why(ends, BELAY_ETLS), "the server demands a certificate of the client");
  hang_up(ends);
}

TEST(doubts_end_with_the_first_answer) {
  char buffer[16];
  ends_t *ends = connect_to(&(settings_t){.demands = true});
  SSL_set_verify(ends->server, SSL_VERIFY_PEER, NULL); /* without is fine too */
  assert_int_equal(shake(ends), 0);
  assert_true(belay__tunnel_is_doubted(ends->tunnel));
  serve(ends);
  read_tickets(ends);
  assert_true(belay__tunnel_is_doubted(ends->tunnel));
  say(ends, "+PONG\r\n", 7);
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 7);
  assert_false(belay__tunnel_is_doubted(ends->tunnel));
  hang_up(ends);

  ends = shaken(NULL); /* who does not ask has no doubts */
  assert_false(belay__tunnel_is_doubted(ends->tunnel));
  hang_up(ends);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

TEST(small_records_come_with_one_read_of_the_socket) {
  char buffer[RECORD];
  size_t total = 0;
  ends_t *ends = shaken(NULL);
  read_tickets(ends);
  for (int i = 0; i < 100; i++)
    say(ends, "0123456789", 10);
  net.reads = 0;
  belay__tunnel_may_read(ends->tunnel);
  do {
    ssize_t n = belay__tunnel_read(ends->tunnel, buffer, sizeof buffer);
    total += n > 0 ? (size_t)n : 0;
  } while (belay__tunnel_has_more(ends->tunnel));
  assert_int_equal(total, 1000);
  assert_int_equal(net.reads, 1);
  hang_up(ends);
}

TEST(a_socket_is_read_once_at_a_time) {
  enum { LEN = 300000 };
  static char buffer[RECORD], got[LEN];
  char *data = noise(LEN);
  size_t total = 0;
  ends_t *ends = shaken(NULL);
  read_tickets(ends);
  say(ends, data, LEN);
  for (int i = 0; i < 1000 && total < LEN; i++) {
    net.gives = 1 + (size_t)rand() % 20000;
    net.reads = 0;
    belay__tunnel_may_read(ends->tunnel);
    do {
      ssize_t n = belay__tunnel_read(ends->tunnel, buffer, sizeof buffer);
      assert_true(n > 0 || (n < 0 && errno == EAGAIN));
      if (n > 0)
        memcpy(got + total, buffer, (size_t)n);
      total += n > 0 ? (size_t)n : 0;
    } while (belay__tunnel_has_more(ends->tunnel));
    assert_true(net.reads <= 1);
  }
  assert_int_equal(total, LEN);
  assert_memory_equal(got, data, LEN);
  free(data);
  hang_up(ends);
}

TEST(ends_are_told_from_errors) {
  char buffer[16];
  ends_t *ends = shaken(NULL);
  read_tickets(ends);
  say(ends, "bye", 3);
  SSL_shutdown(ends->server);
  drain(ends);
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 3);
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 0);
  hang_up(ends);

  ends = shaken(NULL); /* cut off: it is over all the same */
  read_tickets(ends);
  net.ended = true;
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 0);
  assert_null(why(ends, BELAY_EUNREACHABLE));
  hang_up(ends);

  ends = shaken(NULL);
  read_tickets(ends);
  net.read_error = ECONNRESET;
  assert_int_equal(read_once(ends, buffer, sizeof buffer), -1);
  assert_int_equal(errno, ECONNRESET);
  hang_up(ends);

  ends = shaken(NULL); /* a byte fell over: nothing of that record is told */
  read_tickets(ends);
  say(ends, "hello", 5);
  net.to_client.data[net.to_client.end - 1] ^= 1;
  assert_int_equal(read_once(ends, buffer, sizeof buffer), -1);
  assert_int_equal(errno, EPROTO);
  assert_null(why(ends, BELAY_EUNREACHABLE)); /* it may work the next time */
  hang_up(ends);
}

/* New keys are answered with new keys, which leave before the next data does. */
TEST(keys_may_change_while_the_socket_takes_nothing) {
  char buffer[16];
  ends_t *ends = shaken(NULL);
  read_tickets(ends);
  net.takes = 0;
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(SSL_key_update(ends->server, SSL_KEY_UPDATE_REQUESTED), 1);
    say(ends, "hello", 5);
    assert_int_equal(read_once(ends, buffer, sizeof buffer), 5);
    ssize_t n = -1;
    for (unsigned tries = 0; n < 0; tries++) {
      n = belay__tunnel_write(ends->tunnel, "and you", 7);
      assert_true(n == 7 || (n < 0 && errno == EAGAIN));
      assert_int_equal(belay__tunnel_begun(ends->tunnel), n < 0 && tries > 0 ? 7 : 0);
      net.takes = 5;
      serve(ends);
    }
    assert_int_equal(ends->heard_len, 7 * (i + 1));
    net.takes = 0;
  }
  hang_up(ends);
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

TEST(data_arrives_as_it_was_however_little_is_taken) {
  static const size_t LEN = 600000;
  char *data = noise(LEN);
  size_t total = 0, given = 0; /* what was given once is given again */
  ends_t *ends = shaken(NULL);
  for (int i = 0; i < 10000 && total < LEN; i++) {
    given += (size_t)rand() % (LEN - given + 1);
    net.takes = (size_t)rand() % 40000;
    if (given == total)
      continue;
    ssize_t n = belay__tunnel_write(ends->tunnel, data + total, given - total);
    assert_true(n > 0 || errno == EAGAIN);
    total += n > 0 ? (size_t)n : 0;
    serve(ends);
    assert_int_equal(ends->heard_len, total); /* not a byte of what was not taken whole */
    assert_true(belay__tunnel_begun(ends->tunnel) <= given - total);
  }
  assert_int_equal(total, LEN);
  assert_int_equal(ends->heard_len, LEN);
  assert_memory_equal(ends->heard, data, LEN);
  free(data);
  hang_up(ends);
}

/* What was begun and not taken whole cannot be read by the server, and counts as having left all the same. */
TEST(what_has_left_in_part_is_begun) {
  char *data = noise(3 * RECORD);
  ends_t *ends = shaken(NULL);
  net.takes = 0;
  assert_int_equal(belay__tunnel_write(ends->tunnel, data, 100), -1);
  assert_int_equal(errno, EAGAIN);
  assert_int_equal(belay__tunnel_begun(ends->tunnel), 0); /* not a byte left */
  net.takes = 1;
  assert_int_equal(belay__tunnel_write(ends->tunnel, data, 100), -1);
  assert_int_equal(belay__tunnel_begun(ends->tunnel), 100);
  net.takes = 100; /* all but the end of it */
  assert_int_equal(belay__tunnel_write(ends->tunnel, data, 200), -1);
  assert_int_equal(belay__tunnel_begun(ends->tunnel), 100); /* what came later is not in it */
  serve(ends);
  assert_int_equal(ends->heard_len, 0);
  net.takes = PLENTY;
  assert_int_equal(belay__tunnel_write(ends->tunnel, data, 200), 200);
  assert_int_equal(belay__tunnel_begun(ends->tunnel), 0);
  serve(ends);
  assert_int_equal(ends->heard_len, 200);

  net.takes = RECORD + 1000; /* one record, and some of the next */
  assert_int_equal(belay__tunnel_write(ends->tunnel, data, 3 * RECORD), RECORD);
  assert_int_equal(belay__tunnel_begun(ends->tunnel), RECORD);
  serve(ends);
  assert_int_equal(ends->heard_len, 200 + RECORD);
  free(data);
  hang_up(ends);
}

TEST(who_hangs_up_is_still_heard) {
  char buffer[16];
  ends_t *ends = shaken(NULL);
  read_tickets(ends);
  say(ends, "last words", 10);
  net.ended = true;
  net.write_error = EPIPE;
  assert_int_equal(belay__tunnel_write(ends->tunnel, "hello", 5), -1);
  assert_int_equal(errno, EPIPE);
  assert_int_equal(belay__tunnel_begun(ends->tunnel), 0);
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 10);
  assert_int_equal(read_once(ends, buffer, sizeof buffer), 0);
  hang_up(ends);
}

/* A TLS connection on a socket that the test controls, and an OpenSSL server at the other end. */
#ifndef TEST_UNIT_ADAPTERS_TLS_ENDS_H
#define TEST_UNIT_ADAPTERS_TLS_ENDS_H

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

/* ---- the network ---- */

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

static inline void put(way_t *way, const char *data, size_t len) {
  assert_true(way->end + len <= sizeof way->data);
  memcpy(way->data + way->end, data, len);
  way->end += len;
}

static inline size_t get(way_t *way, char *data, size_t size) {
  size_t n = way->end - way->start;
  n = n < size ? n : size;
  memcpy(data, way->data + way->start, n);
  way->start += n;
  if (way->start == way->end)
    way->start = way->end = 0;
  return n;
}

static inline ssize_t fail_with(int error) {
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

/* ---- both ends ---- */

typedef struct ends {
  certs_t *certs;
  belay__host_t host;
  belay_tls_t *tls;
  belay__tls_connection_t *connection;
  SSL_CTX *context;
  SSL *server;
  char *received; /* the bytes that the server received */
  size_t received_len;
  size_t bytes; /* that belay has */
} ends_t;

static inline bool never_forked(const belay_t *belay) {
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

static inline ends_t *connect_to(const settings_t *settings) {
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
  ends->connection = belay__tls_connection_new(
      ends->tls, -1, settings->host == NULL ? "localhost" : settings->host);

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

static inline void hang_up(ends_t *ends) {
  belay__tls_connection_free(ends->connection);
  belay_tls_close(ends->tls);
  assert_int_equal(ends->host.base.stats.memory_bytes, 0);
  SSL_free(ends->server);
  SSL_CTX_free(ends->context);
  certs_free(ends->certs);
  free(ends->received);
  free(ends);
}

static inline void drain(ends_t *ends) {
  char buffer[4096];
  int n;
  while ((n = BIO_read(SSL_get_wbio(ends->server), buffer, sizeof buffer)) > 0)
    put(&net.to_client, buffer, (size_t)n);
}

/* The server processes all received bytes. */
static inline void serve(ends_t *ends) {
  char buffer[4096];
  size_t n;
  while ((n = get(&net.to_server, buffer, sizeof buffer)) > 0)
    BIO_write(SSL_get_rbio(ends->server), buffer, (int)n);
  ERR_clear_error();
  while (SSL_read_ex(ends->server, buffer, sizeof buffer, &n) == 1) {
    ends->received = realloc(ends->received, ends->received_len + n);
    memcpy(ends->received + ends->received_len, buffer, n);
    ends->received_len += n;
  }
  drain(ends);
}

static inline void say(ends_t *ends, const char *data, size_t len) {
  size_t n = 0;
  assert_int_equal(SSL_write_ex(ends->server, data, len, &n), 1);
  assert_int_equal(n, len);
  drain(ends);
}

/* Shakes hands to the end: 0, or an error. */
static inline int shake(ends_t *ends) {
  for (int i = 0; i < 20000; i++) {
    int wants = belay__tls_connection_handshake(ends->connection);
    if (wants <= 0)
      return wants;
    serve(ends);
  }
  fail_msg("a handshake that never ends");
  return 0;
}

static inline ends_t *handshake_done(const settings_t *settings) {
  ends_t *ends = connect_to(settings == NULL ? &(settings_t){0} : settings);
  assert_int_equal(shake(ends), 0);
  serve(ends);
  return ends;
}

static inline const char *why(const ends_t *ends, int expected) {
  int error;
  const char *words = belay__tls_connection_error(ends->connection, &error);
  assert_int_equal(error, expected);
  return words;
}

/* Reads what has come, as a transport does: the socket once. */
static inline ssize_t read_once(ends_t *ends, char *buffer, size_t size) {
  belay__tls_connection_allow_read(ends->connection);
  return belay__tls_connection_read(ends->connection, buffer, size);
}

/* Reads TLS messages that are no data: session tickets. */
static inline void read_tickets(ends_t *ends) {
  char buffer[16];
  for (int i = 0; i < 100 && net.to_client.end > 0; i++)
    assert_int_equal(read_once(ends, buffer, sizeof buffer), -1);
}

static inline char *noise(size_t len) {
  char *data = malloc(len);
  for (size_t i = 0; i < len; i++)
    data[i] = (char)(rand() >> 7);
  return data;
}

#endif /* TEST_UNIT_ADAPTERS_TLS_ENDS_H */

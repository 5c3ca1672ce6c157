#include "redis/net/tls_connection.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "redis/net/tls_error.h"
#include "redis/net/tls_socket.h"

#define RECORD_MAX SSL3_RT_MAX_PLAIN_LENGTH /* bytes that a record holds */
#define RECORD_TYPES_FIRST 20
#define RECORD_TYPES_LAST 24
#define HANDSHAKE_READS 16 /* of the socket in one step of a handshake */
#define WRITE_RECORDS 16   /* at a time: the others wait for the loop's next turn */

struct belay__tls_connection {
  belay_tls_t *tls;
  SSL *ssl; /* NULL: before the first step */
  belay__tls_socket_t socket;
  char name[BELAY__TLS_NAME_MAX + 1]; /* the name that the certificate must have */

  bool handshake_done;        /* the handshake is complete */
  bool certificate_requested; /* the server asked for a client certificate */
  bool answered;              /* the server has sent data after the handshake */
  bool more;                  /* there may be data that was not read */
  bool failed;
  size_t record;        /* bytes of data in the record that is being written; 0: none */
  uint64_t sent_before; /* bytes that were sent before the write began */
  char error_text[BELAY__TLS_ERROR_MAX]; /* with failed */
};

/* ---- start ---- */

/* Copies a name as certificates have it: without a final dot, an address without its zone. */
static void copy_name(char *out, const char *host) {
  size_t len = strcspn(host, "%");
  if (len > BELAY__TLS_NAME_MAX)
    len = BELAY__TLS_NAME_MAX;
  if (len > 1 && host[len - 1] == '.')
    len--;
  memcpy(out, host, len);
  out[len] = '\0';
}

belay__tls_connection_t *belay__tls_connection_new(belay_tls_t *tls, int fd, const char *host) {
  belay__tls_connection_t *connection = belay__alloc(&tls->host->base, sizeof *connection);
  if (connection == NULL)
    return NULL;
  *connection = (belay__tls_connection_t){.tls = tls, .socket = {.fd = fd, .first = -1}};
  copy_name(connection->name, tls->server_name[0] != '\0' ? tls->server_name : host);
  return connection;
}

void belay__tls_connection_free(belay__tls_connection_t *connection) {
  if (connection == NULL)
    return;
  SSL_free(connection->ssl);
  belay__free(&connection->tls->host->base, connection, sizeof *connection);
}

/* Called if the server asks for a certificate. */
static int on_certificate_request(SSL *ssl, void *arg) {
  (void)ssl;
  ((belay__tls_connection_t *)arg)->certificate_requested = true;
  return 1; /* continue, with the loaded certificate or without one */
}

static bool is_address(const char *name) {
  unsigned char ignored[sizeof(struct in6_addr)];
  return inet_pton(AF_INET, name, ignored) == 1 || inet_pton(AF_INET6, name, ignored) == 1;
}

/* For OpenSSL a name that begins with a dot means all subdomains, and an empty name means any
 * server. */
static bool is_unusable_name(const char *name) {
  return name[0] == '\0' || name[0] == '.';
}

/* Sets the identity that the server must prove. Only names are sent to the server, no addresses
 * (RFC 6066). */
static bool set_expected_name(SSL *ssl, const char *name) {
  if (is_address(name))
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
  SSL_set_hostflags(ssl,
                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static bool start_tls(belay__tls_connection_t *connection) {
  SSL *ssl = connection->ssl = SSL_new(connection->tls->context);
  BIO *bio = ssl == NULL
                 ? NULL
                 : belay__tls_socket_bio(connection->tls->socket_method, &connection->socket);
  if (bio == NULL)
    return false;
  SSL_set_bio(ssl, bio, bio);
  SSL_set_connect_state(ssl);
  SSL_set_cert_cb(ssl, on_certificate_request, connection);
  return set_expected_name(ssl, connection->name);
}

/* ---- end ---- */

static void fail(belay__tls_connection_t *connection) {
  bool tls = connection->socket.first >= RECORD_TYPES_FIRST &&
             connection->socket.first <= RECORD_TYPES_LAST;
  connection->failed = true;
  if (!tls && connection->socket.first >= 0)
    snprintf(connection->error_text, sizeof connection->error_text,
             "the server does not speak TLS");
  else
    belay__tls_error(connection->ssl, connection->name, connection->certificate_requested,
                     connection->error_text);
}

/* Without renegotiation, a read waits for writability, or a write for readability, only if the
 * peer wants new keys while nothing can be written. Such a connection is ended (EIO).
 *
 * Translates an incomplete step of OpenSSL: UV_READABLE or UV_WRITABLE, 0 for the end, or -1 and
 * an errno. EPROTO is a TLS error, all others are network errors. */
static int classify_result(belay__tls_connection_t *connection, int result) {
  int error = SSL_get_error(connection->ssl, result);
  if (error == SSL_ERROR_WANT_READ)
    return UV_READABLE;
  if (error == SSL_ERROR_WANT_WRITE && connection->socket.write_error == 0)
    return UV_WRITABLE;
  if (error == SSL_ERROR_ZERO_RETURN)
    return 0;
  if (error == SSL_ERROR_WANT_WRITE || connection->socket.read_error != 0) {
    errno = connection->socket.read_error != 0 ? connection->socket.read_error
                                               : connection->socket.write_error;
    return -1;
  }
  if (connection->socket.ended)
    return 0;
  fail(connection);
  errno = EPROTO;
  return -1;
}

const char *belay__tls_connection_error(const belay__tls_connection_t *connection, int *error) {
  bool in_use = connection->handshake_done && connection->answered;
  *error = connection->failed && !in_use ? BELAY_ETLS : BELAY_EUNREACHABLE;
  if (in_use)
    return NULL; /* it was verified before: a later fault may be temporary */
  if (connection->failed)
    return connection->error_text;
  if (connection->socket.ended || connection->socket.read_error != 0 ||
      connection->socket.write_error != 0)
    return "the server hung up in the middle of the TLS handshake";
  if (connection->socket.sent > 0 && connection->socket.first < 0)
    return "the server does not answer a TLS handshake: perhaps it does not speak TLS";
  if (connection->socket.sent > 0 && !connection->handshake_done)
    return "the server stopped in the middle of the TLS handshake";
  return NULL;
}

/* ---- the handshake ---- */

int belay__tls_connection_handshake(belay__tls_connection_t *connection) {
  assert(!connection->handshake_done);
  ERR_clear_error();
  if (is_unusable_name(connection->name)) {
    connection->failed = true;
    snprintf(connection->error_text, sizeof connection->error_text,
             "there is no name that the certificate is for");
    return BELAY_ETLS;
  }
  if (connection->ssl == NULL && !start_tls(connection))
    return BELAY_ENOMEM;
  connection->socket.reads = HANDSHAKE_READS;
  int result = SSL_do_handshake(connection->ssl);
  if (result != 1) {
    int wants = classify_result(connection, result);
    return wants > 0 ? wants : (connection->failed ? BELAY_ETLS : BELAY_EUNREACHABLE);
  }
  /* Checks what must hold now, whatever the system's OpenSSL configuration says. */
  X509 *certificate = SSL_get_peer_certificate(connection->ssl);
  bool proved = certificate != NULL && SSL_get_verify_result(connection->ssl) == X509_V_OK;
  X509_free(certificate);
  if (!proved) {
    fail(connection);
    return BELAY_ETLS;
  }
  connection->handshake_done = true;
  connection->answered =
      SSL_version(connection->ssl) < TLS1_3_VERSION || !connection->certificate_requested;
  connection->more = SSL_has_pending(connection->ssl) == 1;
  return 0;
}

bool belay__tls_connection_needs_confirmation(const belay__tls_connection_t *connection) {
  return connection->handshake_done && !connection->answered;
}

/* ---- reading ---- */

void belay__tls_connection_allow_read(belay__tls_connection_t *connection) {
  connection->socket.reads = 1;
}

ssize_t belay__tls_connection_read(belay__tls_connection_t *connection, char *buffer, size_t size) {
  size_t n = 0;
  ERR_clear_error();
  int result = SSL_read_ex(connection->ssl, buffer, size, &n);
  connection->more = false;
  if (result == 1) {
    connection->answered = true;
    connection->more = SSL_has_pending(connection->ssl) == 1;
    return (ssize_t)n;
  }
  int wants = classify_result(connection, result);
  if (wants > 0)
    errno = wants == UV_READABLE ? EAGAIN : EIO;
  return wants == 0 ? 0 : -1;
}

bool belay__tls_connection_has_more(const belay__tls_connection_t *connection) {
  return connection->more;
}

/* ---- writing ---- */

/* TLS sends data in records. OpenSSL keeps a record that the socket took only in part, and
 * continues when it is given the same data again. If it were given the data of several records, it
 * would not report that the first ones are complete. So each call gets the data of one record. */
ssize_t belay__tls_connection_write(belay__tls_connection_t *connection, const char *data,
                                    size_t len) {
  size_t total = 0;
  for (int i = 0; i < WRITE_RECORDS && total < len; i++) {
    size_t n = 0, rest = len - total;
    if (connection->record == 0) {
      connection->record = rest < RECORD_MAX ? rest : RECORD_MAX;
      connection->sent_before = connection->socket.sent;
    }
    assert(connection->record <= rest);
    ERR_clear_error();
    int result = SSL_write_ex(connection->ssl, data + total, connection->record, &n);
    if (result != 1) {
      if (total > 0)
        break;
      int wants = classify_result(connection, result);
      if (wants >= 0)
        errno = wants == UV_WRITABLE ? EAGAIN : EIO;
      return -1;
    }
    connection->record = 0;
    total += n;
  }
  return (ssize_t)total;
}

/* A server processes a TLS record only when it is complete. So a command in an incompletely sent
 * record was certainly not executed. It still counts as begun from the first byte that the
 * socket took, like a partly sent command without TLS. A wrong "not sent" would be the worst
 * error; a wrong "unknown" only costs a query. */
size_t belay__tls_connection_partial_bytes(const belay__tls_connection_t *connection) {
  return connection->socket.sent > connection->sent_before ? connection->record : 0;
}

/* TLS: the identities of server and client. */
#ifndef BELAY_TLS_H
#define BELAY_TLS_H

#include "belay/export.h"
#include "belay/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The TLS settings of clients: authorities, the client's certificate, the server's name. Any
 * number of clients of one belay_t may share them (belay_client_options_t.tls). Their URLs begin
 * with rediss. A client sends no data to a server, in particular no password, before the server
 * has proved its identity:
 *
 * - its certificate is signed by one of the authorities, and valid today;
 * - it names the host of the URL, or its address if the URL has one. A wildcard must be a whole
 *   label: *.example.com matches redis.example.com, r*.example.com matches nothing. Only the
 *   subjectAltName counts, not the common name (CN).
 *
 * Otherwise calls fail with BELAY_ETLS, and belay_detail() and the log have the cause. There is no
 * fallback.
 *
 * All of this runs on the loop. belay_tls_new() and belay_tls_reload() read files; a handshake
 * reads those of a folder (see ca_dir). A handshake costs about 0.5 ms of CPU time, in steps; one
 * turn of the loop spends at most about 1 ms on steps. A client certificate adds a signature:
 * about 0.05 ms with P-256, 0.3 ms with RSA 2048, 4 ms with RSA 4096. Later traffic costs less
 * than 1 ms per MB.
 *
 * @code
 * static belay_tls_t *tls;
 *
 * int connect_safely(belay_t *belay, belay_client_t **client) {
 *   belay_tls_options_t options;
 *   belay_client_options_t client_options;
 *   belay_tls_options_init(&options);
 *   options.ca_file = "/etc/redis/ca.pem";
 *   options.cert_file = "/etc/redis/web.pem"; // the server asks for a client certificate
 *   options.key_file = "/etc/redis/web.key";
 *   int error = belay_tls_new(belay, &options, &tls);
 *   if (error != 0)
 *     return error; // belay_detail(belay) names the file and its fault
 *   belay_client_options_init(&client_options);
 *   client_options.tls = tls;
 *   return belay_connect(belay, "rediss://redis.example.com", &client_options, client);
 * }
 *
 * int certificates_were_renewed(const belay_tls_options_t *options) {
 *   return belay_tls_reload(tls, options); // present connections stay
 * }
 * @endcode */
typedef struct belay_tls belay_tls_t;

/** Versions of the protocol. */
typedef enum belay_tls_version {
  BELAY_TLS_1_2, /**< 1.2 */
  BELAY_TLS_1_3  /**< 1.3 */
} belay_tls_version_t;

/** Options of belay_tls_new(). Everything is copied. Files are PEM. */
typedef struct belay_tls_options {
  /** File of certificate authorities. Default NULL. If ca_dir is NULL, too: the file and the folder
   * of the system. */
  const char *ca_file;
  /** Folder of certificate authorities, prepared by `openssl rehash`. Default NULL.
   *
   * OpenSSL reads an authority when a handshake needs it, and blocks the loop meanwhile: about
   * 0.3 ms once per authority and belay_tls_reload(), or some microseconds each time if the folder
   * does not contain it. A folder on a network blocks for as long as the network takes. */
  const char *ca_dir;
  /** Certificate of the client, for servers that ask for one, followed by the certificates between
   * it and the authority. Default NULL: no certificate. */
  const char *cert_file;
  /** Key of the certificate. Default NULL: the key is in cert_file. A key with a pass phrase, or
   * without cert_file, is BELAY_EINVAL. */
  const char *key_file;
  /** Name or numeric address that the certificate of each server must have, 1 to 255 bytes. Use it
   * for tunnels, and for servers that share a certificate. Default NULL: the host of the
   * connection. */
  const char *server_name;
  /** Lowest version. Default BELAY_TLS_1_2. */
  belay_tls_version_t min_version;
} belay_tls_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_tls_options_init(belay_tls_options_t *options);

/** Make TLS settings. The call reads the files and blocks the loop meanwhile: the authorities of
 * the system, about 140, take 20 to 50 ms. NULL options mean the defaults. On error *out is NULL,
 * and belay_detail() names the option and its fault.
 *
 * Clients with a rediss URL and without TLS settings share one instance with the defaults. The
 * first belay_connect() of such a client makes it, and takes the same time.
 *
 * Returns 0, BELAY_EINVAL (also for a file that cannot be read), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_tls_new(belay_t *belay, const belay_tls_options_t *options, belay_tls_t **out);

/** Replace the settings. New connections use these options; open connections do not change. NULL
 * options mean the defaults. On error the former settings stay. The call blocks the loop for the
 * same time as belay_tls_new().
 *
 * Returns as belay_tls_new(), and BELAY_ESTATE if the belay_t is gone. */
BELAY_API int belay_tls_reload(belay_tls_t *tls, const belay_tls_options_t *options);

/** Release the caller's reference; the pointer is invalid afterwards. NULL is allowed. Clients keep
 * their own references, so this may be called at any time after belay_connect(), but before the
 * callback of belay_close() returns.
 *
 * Returns:
 *
 * - 0: released; the memory is freed with the last client.
 * - BELAY_ESTATE: the belay_t is gone already. The memory is freed by the allocator of
 *   belay_open(). */
BELAY_API int belay_tls_close(belay_tls_t *tls);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_TLS_H */

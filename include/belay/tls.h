/* TLS: the identities of server and client. */
#ifndef BELAY_TLS_H
#define BELAY_TLS_H

#include "belay/export.h"
#include "belay/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The TLS settings of clients: authorities, the client's certificate, the server's name. Any number of
 * clients of one belay_t may share them (belay_client_options_t.tls); their URLs begin with rediss. A
 * client sends nothing to a server, in particular no password, before the server has proved its
 * identity:
 *
 * - its certificate is signed by one of the authorities, and valid today;
 * - it names the host of the URL, or its address if the URL has one. A wildcard must be a whole
 *   label: *.example.com matches redis.example.com, r*.example.com matches nothing. Only the
 *   subjectAltName counts, not the common name (CN).
 *
 * Otherwise calls fail with BELAY_ETLS, and belay_detail() and the log have the cause. There is no
 * fallback.
 *
 * All of it runs on the loop. belay_tls_new() and belay_tls_reload() read files; a handshake reads those
 * of a folder (see ca_dir). A handshake costs about 0.5 ms of CPU time, in steps; one turn of the loop
 * spends at most about 1 ms on steps. A client certificate adds a signature: about 0.05 ms with P-256,
 * 0.3 ms with RSA 2048, 4 ms with RSA 4096. Later traffic costs less than 1 ms per MB.
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
  /** A file of authorities, and a folder of them as `openssl rehash` leaves it; default: NULL
   * both, the system's, which are a file and a folder. In a folder OpenSSL looks for an
   * authority by its hash in the handshake in which a server shows a certificate that needs it,
   * and blocks the loop meanwhile: some 0.3 ms for one that is there, once until the next
   * belay_tls_reload(), and some microseconds each time for one that is not. That is on a disk
   * of this machine; a folder that is reached over a network blocks for as long as the network
   * takes. A file does not. */
  const char *ca_file;
  const char *ca_dir; /**< see ca_file */
  /** Our own certificate, for servers that ask for one, followed by those between it and the
   * authority; default: NULL, we have none */
  const char *cert_file;
  /** Its key, without a pass phrase; default: NULL, it is in cert_file too */
  const char *key_file;
  /** The name, or the numeric address, that a server's certificate must be for, instead of the
   * one that is connected to: for tunnels, and where the servers of a deployment share a
   * certificate. Default: NULL. 1 to 255 bytes. */
  const char *server_name;
  belay_tls_version_t min_version; /**< default BELAY_TLS_1_2 */
} belay_tls_options_t;

/** Fills in the defaults. */
BELAY_API void belay_tls_options_init(belay_tls_options_t *options);

/** Makes one. It reads the files, here and now, and blocks the loop meanwhile: the system's
 * authorities, some 140, take 20 to 50 ms. A NULL options means the defaults. On error *out is
 * NULL, and belay_detail() names the option and says what is wrong with it.
 *
 * A client whose URL begins with rediss, and which is given none, has one with the defaults,
 * which it shares with others like it; the first of them makes it, in belay_connect(), which
 * then takes as long.
 *
 * Returns 0, BELAY_EINVAL (also for a file that cannot be read), BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_tls_new(belay_t *belay, const belay_tls_options_t *options, belay_tls_t **out);

/** Replaces all of it: connections that are made from now on use these options, and those that
 * are open stay as they are. A NULL options means the defaults, not what was there before. On
 * error everything stays as it was. It blocks the loop for as long as belay_tls_new().
 *
 * Returns as belay_tls_new(), and BELAY_ESTATE if the belay_t is gone. */
BELAY_API int belay_tls_reload(belay_tls_t *tls, const belay_tls_options_t *options);

/** Releases the caller's reference; the pointer is invalid afterwards. NULL is allowed. Clients
 * that were made with it keep it as long as they exist: call this any time after they were made,
 * but before the callback of belay_close() returns.
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

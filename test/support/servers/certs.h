/* A temporary certificate authority and its certificates: files in a folder of their own,
 * deleted with the test. */
#ifndef TEST_SUPPORT_SERVERS_CERTS_H
#define TEST_SUPPORT_SERVERS_CERTS_H

#include <stdbool.h>

typedef struct certs certs_t;

typedef struct cert_options {
  /* The names of the certificate, in OpenSSL's form; NULL: "DNS:localhost,IP:127.0.0.1". */
  const char *names;
  int from_day, days; /* first day of validity (today is 0) and number of days; 0: 10 */
  bool self_signed;   /* instead of by the authority */
  const char *usage;  /* "serverAuth" or "clientAuth"; NULL: both */
  const char *pass;   /* the key's pass phrase; NULL: none */
} cert_options_t;

/* Makes a folder with an authority in it: "NAME.crt", "NAME.key". */
certs_t *certs_new(const char *name);
void certs_free(certs_t *certs);

/* Adds an authority, which signs from now on. */
void certs_authority(certs_t *certs, const char *name);

/* Makes a certificate in NAME.crt, followed by that of its authority, and its key in NAME.key;
 * and both in NAME.pem. options NULL: the defaults. */
void certs_make(certs_t *certs, const char *name, const cert_options_t *options);

/* The path of a file in the folder; valid until certs_free(). */
const char *certs_path(certs_t *certs, const char *file);

/* The folder itself, with links by which OpenSSL finds the authorities in it. */
const char *certs_folder(certs_t *certs);

/* Puts text into a file of the folder. */
void certs_write(certs_t *certs, const char *file, const char *text);

#endif /* TEST_SUPPORT_SERVERS_CERTS_H */

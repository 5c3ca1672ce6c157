/* A throwaway authority, and what it signs: files in a folder of their own, gone with the test. */
#ifndef TEST_SUPPORT_SERVERS_CERTS_H
#define TEST_SUPPORT_SERVERS_CERTS_H

#include <stdbool.h>

typedef struct certs certs_t;

typedef struct cert_options {
  /* Whom it is for, as OpenSSL writes that; NULL: "DNS:localhost,IP:127.0.0.1". */
  const char *names;
  int from_day, days; /* valid from that day on, today being 0, for so many; 0: 10 */
  bool self_signed;   /* instead of by the authority */
  const char *usage;  /* "serverAuth" or "clientAuth"; NULL: both */
  const char *pass;   /* the key's pass phrase; NULL: none */
} cert_options_t;

/* Makes a folder with an authority in it: "NAME.crt", "NAME.key". */
certs_t *certs_new(const char *name);
void certs_free(certs_t *certs);

/* One more authority: who signs from now on. */
void certs_authority(certs_t *certs, const char *name);

/* A certificate and its key, in NAME.crt, its authority's behind it if there is one, and NAME.key; and both in
 * NAME.pem. NULL: the defaults. */
void certs_make(certs_t *certs, const char *name, const cert_options_t *options);

/* The path of a file in the folder; valid until certs_free(). */
const char *certs_path(certs_t *certs, const char *file);

/* The folder itself, with links by which OpenSSL finds the authorities in it. */
const char *certs_folder(certs_t *certs);

/* Puts text into a file of the folder. */
void certs_write(certs_t *certs, const char *file, const char *text);

#endif /* TEST_SUPPORT_SERVERS_CERTS_H */

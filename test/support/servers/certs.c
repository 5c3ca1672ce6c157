#include "support/servers/certs.h"

#include <dirent.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/base/unit.h"

#define PATHS_MAX 128
#define DAYS 10
#define DAY_SECONDS 86400L

struct certs {
  char folder[64];
  char *paths[PATHS_MAX];
  size_t count;
  X509 *authority;
  EVP_PKEY *key;
  certs_t *next;
};

static certs_t *all; /* freed at exit after a failed test */

/* ---- files ---- */

static void remove_folder(const certs_t *certs) {
  DIR *dir = opendir(certs->folder);
  for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
    if (entry->d_name[0] != '.')
      unlinkat(dirfd(dir), entry->d_name, 0);
  if (dir != NULL)
    closedir(dir);
  rmdir(certs->folder);
}

static void remove_all(void) {
  for (const certs_t *certs = all; certs != NULL; certs = certs->next)
    remove_folder(certs);
}

const char *certs_path(certs_t *certs, const char *file) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", certs->folder, file);
  for (size_t i = 0; i < certs->count; i++)
    if (strcmp(certs->paths[i], path) == 0)
      return certs->paths[i];
  assert_true(certs->count < PATHS_MAX);
  return certs->paths[certs->count++] = strdup(path);
}

static FILE *open_file(certs_t *certs, const char *name, const char *suffix) {
  char file[128];
  snprintf(file, sizeof file, "%s%s", name, suffix);
  FILE *out = fopen(certs_path(certs, file), "we");
  assert_non_null(out);
  return out;
}

void certs_write(certs_t *certs, const char *file, const char *text) {
  FILE *out = open_file(certs, file, "");
  fputs(text, out);
  fclose(out);
}

static void write_key(FILE *out, EVP_PKEY *key, const char *pass) {
  assert_int_equal(PEM_write_PrivateKey(out, key, pass == NULL ? NULL : EVP_aes_128_cbc(), NULL, 0,
                                        NULL, (void *)(uintptr_t)pass),
                   1);
}

static void write_files(certs_t *certs, const char *name, X509 *cert, EVP_PKEY *key,
                        const char *pass) {
  static const char *const suffixes[] = {".crt", ".key", ".pem"};
  for (size_t i = 0; i < 3; i++) {
    FILE *out = open_file(certs, name, suffixes[i]);
    if (i != 1) {
      assert_int_equal(PEM_write_X509(out, cert), 1);
      if (certs->authority != NULL && certs->authority != cert)
        assert_int_equal(PEM_write_X509(out, certs->authority), 1);
    }
    if (i != 0)
      write_key(out, key, pass);
    fclose(out);
  }
}

const char *certs_folder(certs_t *certs) {
  char link[32];
  snprintf(link, sizeof link, "%08lx.0", X509_NAME_hash(X509_get_subject_name(certs->authority)));
  FILE *out = open_file(certs, link, "");
  PEM_write_X509(out, certs->authority);
  fclose(out);
  return certs->folder;
}

/* ---- certificates ---- */

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
  assert_non_null(extension);
  X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
}

static X509 *blank(const char *name, EVP_PKEY *key, int from_day, int days) {
  X509 *cert = X509_new();
  uint32_t serial;
  RAND_bytes((unsigned char *)&serial, sizeof serial);
  X509_set_version(cert, 2);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial);
  /* an hour earlier: another clock may be behind */
  X509_gmtime_adj(X509_getm_notBefore(cert), from_day * DAY_SECONDS - (from_day > 0 ? 0 : 3600));
  X509_gmtime_adj(X509_getm_notAfter(cert), (from_day + days) * DAY_SECONDS);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                             (const unsigned char *)name, -1, -1, 0);
  X509_set_pubkey(cert, key);
  return cert;
}

void certs_authority(certs_t *certs, const char *name) {
  X509_free(certs->authority);
  EVP_PKEY_free(certs->key);
  certs->key = EVP_EC_gen("P-256");
  X509 *cert = certs->authority = blank(name, certs->key, 0, DAYS);
  X509_set_issuer_name(cert, X509_get_subject_name(cert));
  add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(cert, cert, NID_subject_key_identifier, "hash");
  assert_true(X509_sign(cert, certs->key, EVP_sha256()) > 0);
  write_files(certs, name, cert, certs->key, NULL);
}

void certs_make(certs_t *certs, const char *name, const cert_options_t *options) {
  cert_options_t o = options == NULL ? (cert_options_t){0} : *options;
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *cert = blank(name, key, o.from_day, o.days == 0 ? DAYS : o.days);
  X509 *issuer = o.self_signed ? cert : certs->authority;
  X509_set_issuer_name(cert, X509_get_subject_name(issuer));
  add_extension(cert, issuer, NID_basic_constraints, "CA:FALSE");
  if (o.names == NULL || o.names[0] != '\0')
    add_extension(cert, issuer, NID_subject_alt_name,
                  o.names == NULL ? "DNS:localhost,IP:127.0.0.1" : o.names);
  if (o.usage != NULL)
    add_extension(cert, issuer, NID_ext_key_usage, o.usage);
  assert_true(X509_sign(cert, o.self_signed ? key : certs->key, EVP_sha256()) > 0);
  X509 *authority = certs->authority;
  if (o.self_signed)
    certs->authority = NULL;
  write_files(certs, name, cert, key, o.pass);
  certs->authority = authority;
  X509_free(cert);
  EVP_PKEY_free(key);
}

certs_t *certs_new(const char *name) {
  certs_t *certs = calloc(1, sizeof *certs);
  snprintf(certs->folder, sizeof certs->folder, "/tmp/belay-test-XXXXXX");
  assert_non_null(mkdtemp(certs->folder));
  if (all == NULL)
    atexit(remove_all);
  certs->next = all;
  all = certs;
  certs_authority(certs, name);
  return certs;
}

void certs_free(certs_t *certs) {
  certs_t **at = &all;
  while (*at != certs)
    at = &(*at)->next;
  *at = certs->next;
  remove_folder(certs);
  for (size_t i = 0; i < certs->count; i++)
    free(certs->paths[i]);
  X509_free(certs->authority);
  EVP_PKEY_free(certs->key);
  free(certs);
}

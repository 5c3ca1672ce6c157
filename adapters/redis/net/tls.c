#include "redis/net/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redis/net/tls_socket.h"

void belay_tls_options_init(belay_tls_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_tls_options_t){.min_version = BELAY_TLS_1_2};
}

/* ---- files: each function sets the detail and returns an error ---- */

static int wrong(belay_t *belay, const char *option, const char *why) {
  return belay__invalid(belay, "%s: %s", option, why);
}

/* OpenSSL could not use a file. */
static int unreadable(belay_t *belay, const char *option, const char *why) {
  bool memory = ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE;
  return memory ? BELAY_ENOMEM : wrong(belay, option, why);
}

/* OpenSSL takes a missing folder for an empty one, and does not say why a file cannot be read. */
static int check_path(belay_t *belay, const char *option, const char *path, bool folder) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return wrong(belay, option, strerror(errno));
  int error = fstat(fd, &info) != 0 ? errno : 0;
  close(fd);
  if (error != 0)
    return wrong(belay, option, strerror(error));
  if (S_ISDIR(info.st_mode) != folder)
    return wrong(belay, option, folder ? "is not a folder" : "is a folder");
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) /* reading it might not end */
    return wrong(belay, option, "is a device");
  return 0;
}

static int load_authorities(belay_t *belay, SSL_CTX *context, const belay_tls_options_t *o) {
  int error = 0;
  if (o->ca_file == NULL && o->ca_dir == NULL)
    return SSL_CTX_set_default_verify_paths(context) == 1 ? 0 : BELAY_ENOMEM;
  if (o->ca_file != NULL)
    error = check_path(belay, "ca_file", o->ca_file, false);
  if (error == 0 && o->ca_dir != NULL)
    error = check_path(belay, "ca_dir", o->ca_dir, true);
  if (error == 0 && SSL_CTX_load_verify_locations(context, o->ca_file, o->ca_dir) != 1)
    error = unreadable(belay, "ca_file", "holds no certificate");
  return error;
}

static int load_identity(belay_t *belay, SSL_CTX *context, const belay_tls_options_t *o) {
  if (o->cert_file == NULL)
    return o->key_file == NULL ? 0 : wrong(belay, "key_file", "without a cert_file");
  const char *option = o->key_file != NULL ? "key_file" : "cert_file";
  const char *key = o->key_file != NULL ? o->key_file : o->cert_file;
  int error = check_path(belay, "cert_file", o->cert_file, false);
  if (error == 0)
    error = check_path(belay, option, key, false);
  if (error != 0)
    return error;
  if (SSL_CTX_use_certificate_chain_file(context, o->cert_file) != 1)
    return unreadable(belay, "cert_file", "holds no certificate");
  if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1)
    return 0;
  bool other = ERR_GET_LIB(ERR_peek_error()) == ERR_LIB_X509;
  return unreadable(belay, option,
                    other ? "is not the key of cert_file"
                          : "holds no key that can be read without a pass phrase");
}

/* ---- contexts ---- */

/* Without this function OpenSSL asks on the terminal. */
static int no_pass_phrase(char *buffer, int size, int writing, void *arg) {
  (void)buffer;
  (void)size;
  (void)writing;
  (void)arg;
  return 0;
}

static int check_options(belay_t *belay, const belay_tls_options_t *o) {
  size_t len = o->server_name == NULL ? 1 : strlen(o->server_name);
  if (len < 1 || len > BELAY__TLS_NAME_MAX)
    return wrong(belay, "server_name", "not 1 to 255 bytes");
  return belay__check_range(belay, "min_version", (int64_t)o->min_version, BELAY_TLS_1_2,
                            BELAY_TLS_1_3);
}

/* Makes a context from the files of the options. Sets *out if it returns 0. */
static int make_context(belay_t *belay, const belay_tls_options_t *o, SSL_CTX **out) {
  ERR_clear_error();
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (context == NULL)
    return BELAY_ENOMEM;
  int version = o->min_version == BELAY_TLS_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
  bool ok = SSL_CTX_set_min_proto_version(context, version) == 1;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_default_passwd_cb(context, no_pass_phrase);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1); /* one read of the socket for many small records */
  int error = ok ? load_authorities(belay, context, o) : BELAY_ENOMEM;
  if (error == 0)
    error = load_identity(belay, context, o);
  ERR_clear_error();
  if (error != 0)
    SSL_CTX_free(context);
  else
    *out = context;
  return error;
}

/* True if the belay_t is gone. */
static bool is_late(const belay_tls_t *tls) {
  return belay__list_empty(&tls->node);
}

int belay_tls_reload(belay_tls_t *tls, const belay_tls_options_t *options) {
  if (tls == NULL)
    return BELAY_EINVAL;
  if (is_late(tls))
    return BELAY_ESTATE;
  belay_t *belay = &tls->host->base;
  belay_tls_options_t defaults;
  belay_tls_options_init(&defaults);
  const belay_tls_options_t *o = options == NULL ? &defaults : options;
  SSL_CTX *context = NULL;
  int error = belay__check(belay);
  if (error == 0)
    error = check_options(belay, o);
  if (error == 0)
    error = make_context(belay, o, &context);
  if (error != 0)
    return error;
  SSL_CTX_free(tls->context); /* open TLS connections keep their context */
  tls->context = context;
  const char *name = o->server_name == NULL ? "" : o->server_name;
  memcpy(tls->server_name, name, strlen(name) + 1);
  return 0;
}

/* ---- lifetimes ---- */

int belay_tls_new(belay_t *belay, const belay_tls_options_t *options, belay_tls_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__check(belay);
  if (error != 0)
    return error;
  belay_tls_t *tls = belay__alloc(belay, sizeof *tls);
  if (tls == NULL)
    return BELAY_ENOMEM;
  *tls = (belay_tls_t){.host = (belay__host_t *)belay, .allocator = belay->allocator, .refs = 1};
  belay__list_init(&tls->node);
  belay__list_push(&belay->survivors, &tls->node);
  tls->socket_method = belay__tls_socket_method();
  error = tls->socket_method == NULL ? BELAY_ENOMEM : belay_tls_reload(tls, options);
  if (error != 0)
    belay__tls_release(tls);
  else
    *out = tls;
  return error;
}

int belay__tls_of_system(belay__host_t *host, belay_tls_t **out) {
  if (host->system_tls != NULL) {
    *out = belay__tls_retain(host->system_tls);
    return 0;
  }
  int error = belay_tls_new(&host->base, NULL, out);
  host->system_tls = *out;
  return error;
}

belay_tls_t *belay__tls_retain(belay_tls_t *tls) {
  tls->refs++;
  return tls;
}

void belay__tls_release(belay_tls_t *tls) {
  if (tls == NULL || --tls->refs > 0)
    return;
  SSL_CTX_free(tls->context);
  BIO_meth_free(tls->socket_method);
  if (is_late(tls)) {
    tls->allocator.free(tls->allocator.ctx, tls);
    return;
  }
  if (tls->host->system_tls == tls)
    tls->host->system_tls = NULL;
  belay__list_remove(&tls->node);
  belay__free(&tls->host->base, tls, sizeof *tls);
}

int belay_tls_close(belay_tls_t *tls) {
  int error = tls != NULL && is_late(tls) ? BELAY_ESTATE : 0;
  belay__tls_release(tls);
  return error;
}

#include "support/servers/acl.h"
#include "support/servers/secure.h"

#include <stdio.h>

server_t *secure_server(certs_t *certs, const secure_t *options) {
  secure_t o = options != NULL ? *options : (secure_t){0};
  char cert[64], key[64];
  snprintf(cert, sizeof cert, "%s.crt", o.cert != NULL ? o.cert : "server");
  snprintf(key, sizeof key, "%s.key", o.cert != NULL ? o.cert : "server");
  return server_start(&(server_options_t){
      .address = "127.0.0.1",
      .password = o.password,
      .tls = true,
      .arguments = {"--tls-cert-file", certs_path(certs, cert), "--tls-key-file",
                    certs_path(certs, key), "--tls-ca-cert-file", certs_path(certs, "ca.crt"),
                    "--tls-auth-clients", o.clients != NULL ? o.clients : "no",
                    o.versions != NULL ? "--tls-protocols" : NULL, o.versions}});
}

const char *url_of(const char *scheme, const char *secret, const char *host, int port) {
  static char urls[4][1024];
  static unsigned next;
  char *url = urls[next++ % 4];
  snprintf(url, sizeof *urls, "%s://%s%s:%d", scheme,
           acl_login(&(server_options_t){.password = secret}), host, port);
  return url;
}

int port_of(const char *url) {
  return atoi(strrchr(url, ':') + 1);
}

belay_tls_options_t trust(certs_t *certs, const char *cert) {
  belay_tls_options_t options;
  belay_tls_options_init(&options);
  options.ca_file = certs_path(certs, "ca.crt");
  char file[64];
  snprintf(file, sizeof file, "%s.pem", cert != NULL ? cert : "");
  if (cert != NULL)
    options.cert_file = certs_path(certs, file);
  return options;
}

belay_client_t *secure_connect(env_t *env, const char *url, const belay_tls_options_t *tls,
                               const belay_client_options_t *client) {
  belay_client_options_t o = client != NULL ? *client : client_options();
  int error = belay_tls_new(env->belay, tls, &o.tls);
  if (error != 0)
    fail_msg("belay_tls_new: %s: %s", belay_strerror(error), belay_detail(env->belay));
  belay_client_t *connected = env_connect(env, url, &o);
  belay_tls_close(o.tls);
  return connected;
}

env_t *secure_env(const char *url, const belay_tls_options_t *tls,
                  const belay_client_options_t *client) {
  env_t *env = env_bare();
  env->client = secure_connect(env, url, tls, client);
  return env;
}

static char detail_text[512];

static void keep_detail(env_t *env) {
  snprintf(detail_text, sizeof detail_text, "%s", belay_detail(env->belay));
}

int pong(env_t *env, const char **detail) {
  int before = env->pongs;
  env->then = keep_detail;
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs > before);
  if (detail != NULL)
    *detail = detail_text;
  return env->pong_status;
}

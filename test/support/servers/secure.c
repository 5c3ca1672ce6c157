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

belay_client_t *secure_connect(bed_t *bed, const char *url, const belay_tls_options_t *tls,
                               const belay_client_options_t *client) {
  belay_client_options_t o = client != NULL ? *client : client_options();
  int error = belay_tls_new(bed->belay, tls, &o.tls);
  if (error != 0)
    fail_msg("belay_tls_new: %s: %s", belay_strerror(error), belay_detail(bed->belay));
  belay_client_t *connected = bed_connect(bed, url, &o);
  belay_tls_close(o.tls);
  return connected;
}

bed_t *secure_bed(const char *url, const belay_tls_options_t *tls,
                  const belay_client_options_t *client) {
  bed_t *bed = bed_bare();
  bed->client = secure_connect(bed, url, tls, client);
  return bed;
}

static char detail_text[512];

static void keep_detail(bed_t *bed) {
  snprintf(detail_text, sizeof detail_text, "%s", belay_detail(bed->belay));
}

int pong(bed_t *bed, const char **detail) {
  int before = bed->pongs;
  bed->then = keep_detail;
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs > before);
  if (detail != NULL)
    *detail = detail_text;
  return bed->pong_status;
}

/* belay_connect(): from a URL and options to a client of the right kind. */
#include <openssl/crypto.h>

#include "core/client/lifecycle.h"
#include "redis/deployment/node.h"

static const belay__deployment_t *deployment_of(const belay__url_t *url) {
  return url->kind == BELAY__URL_CLUSTER ? &belay__cluster : &belay__single;
}

/* ---- options ---- */

/* Options replace parts of the URL; false if they contradict it. */
static bool override(belay_t *belay, belay__url_t *url, const belay_client_options_t *o) {
  if (!belay__node_copy_text(belay, "username", o->username, url->username, sizeof url->username) ||
      !belay__node_copy_text(belay, "password", o->password, url->password, sizeof url->password))
    return false;
  if (o->username != NULL)
    url->has_username = o->username[0] != '\0';
  if (o->password != NULL)
    url->has_password = o->password[0] != '\0';
  if (o->db >= 0)
    url->db = o->db;
  return true;
}

/* Options of another kind of deployment are refused, because they would have no effect. */
static bool fits_kind(belay_t *belay, const belay__url_t *url, const belay_client_options_t *o) {
  const char *name = NULL;
  if (url->kind != BELAY__URL_SENTINEL && o->sentinel_username != NULL)
    name = "sentinel_username";
  else if (url->kind != BELAY__URL_SENTINEL && o->sentinel_password != NULL)
    name = "sentinel_password";
  else if (url->kind == BELAY__URL_SINGLE && o->read_from != BELAY_READ_PRIMARY)
    name = "read_from";
  if (name != NULL)
    belay__detail(belay, "%s: not for this kind of deployment", name);
  return name == NULL;
}

static int read_url(belay_t *belay, const char *text, belay__url_t *url) {
  const char *part = "url", *why = "NULL";
  int error = text == NULL ? BELAY_EURL : belay__url_parse(text, url, &part, &why);
  if (error != 0)
    belay__detail(belay, "%s: %s", part, why);
  return error;
}

int belay_connect(belay_t *belay, const char *url, const belay_client_options_t *options,
                  belay_client_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  belay_client_options_t defaults;
  belay_client_options_init(&defaults);
  const belay_client_options_t *o = options == NULL ? &defaults : options;
  belay__url_t parsed = {0};
  int error = belay__check(belay);
  if (error == 0)
    error = read_url(belay, url, &parsed);
  if (error == 0)
    error = belay__client_options_check(belay, o);
  if (error == 0 && (!override(belay, &parsed, o) || !fits_kind(belay, &parsed, o)))
    error = BELAY_EINVAL;
  if (error == 0)
    error = belay__node_make(belay, deployment_of(&parsed), &parsed, o, out);
  OPENSSL_cleanse(&parsed, sizeof parsed); /* the password */
  return error;
}

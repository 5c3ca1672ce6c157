/* Clients that look at one server of a deployment: the port's visit. */
#include <openssl/crypto.h>
#include <string.h>

#include "redis/deployment/node.h"

static bool is_own(const belay__url_t *url, const char *place) {
  char own[BELAY__PLACE_MAX];
  if (url->is_unix)
    return strcmp(url->path, place) == 0;
  belay__place_write(&url->places[0], own, sizeof own);
  return strcmp(own, place) == 0;
}

/* The options of this client that concern connections. */
static belay_client_options_t options_of(const belay__node_t *node) {
  const belay__settings_t *settings = &node->settings;
  belay_client_options_t o;
  belay_client_options_init(&o);
  o.credentials = settings->login.credentials;
  o.credentials_ctx = settings->login.credentials_ctx;
  o.tls = settings->tls;
  o.client_name = settings->client_name;
  o.owner = node->base.owner;
  o.connect_timeout_ms = settings->connect_timeout_ms;
  o.timeout_ms = node->base.timeout_ms;
  o.max_reply = settings->max_reply;
  o.stall_timeout_ms = settings->stall_timeout_ms;
  o.idle_timeout_ms = settings->idle_timeout_ms;
  o.reconnect_min_ms = settings->reconnect_min_ms;
  o.reconnect_max_ms = settings->reconnect_max_ms;
  o.close_timeout_ms = node->base.close_timeout_ms;
  o.tcp_user_timeout_ms = settings->tcp_user_timeout_ms;
  o.keepalive_ms = settings->keepalive_ms;
  return o;
}

int belay__node_visit(belay_client_t *client, const char *place, belay_client_t **out) {
  const belay__node_t *node = BELAY__CONTAINER(client, belay__node_t, base);
  belay__url_t url = node->url;
  belay_client_options_t o = options_of(node);
  int error = 0;
  if (url.kind == BELAY__URL_SINGLE) {
    error = is_own(&url, place) ? 0 : BELAY_ESINGLE;
  } else {
    url.kind = BELAY__URL_SINGLE;
    url.place_count = 1;
    url.master[0] = '\0';
    error = belay__place_read(place, &url.places[0]) ? 0 : BELAY_ERESOLVE;
  }
  if (error == 0)
    error = belay__node_make(client->belay, node->single, node->single, &url, &o, out);
  OPENSSL_cleanse(&url, sizeof url); /* the password */
  if (error == 0)
    BELAY__CONTAINER(*out, belay__node_t, base)->settings.cluster_warned = true; /* that is known */
  return error;
}

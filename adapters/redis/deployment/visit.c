/* The port's visit: a client of one server of a deployment. */
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

/* The options of this client that concern connections; the defaults of the others. */
static belay_client_options_t options_of(const belay__node_t *node) {
  belay_client_options_t o = node->settings.options, defaults;
  belay_client_options_init(&defaults);
  o.tls = node->settings.tls;
  o.owner = node->base.owner;
  o.connections = 1;
  o.read_from = BELAY_READ_PRIMARY;
  o.namespace_parts = defaults.namespace_parts;
  o.namespace_count = defaults.namespace_count;
  o.max_pending = defaults.max_pending;
  o.max_bytes = defaults.max_bytes;
  o.on_full = defaults.on_full;
  o.trace = NULL;
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
    error = belay__node_make(client->belay, &belay__single, &url, &o, out);
  OPENSSL_cleanse(&url, sizeof url); /* the password */
  if (error == 0)
    BELAY__CONTAINER(*out, belay__node_t, base)->settings.cluster_warned = true;
  return error;
}

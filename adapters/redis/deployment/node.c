#include "redis/deployment/node.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/client/lifecycle.h"
#include "redis/conn/connection.h"
#include "redis/conn/outage.h"
#include "redis/conn/server.h"

bool belay__node_copy_text(belay_t *belay, const char *name, const char *from, char *out,
                           size_t size) {
  if (from == NULL)
    return true;
  if (strlen(from) >= size) {
    belay__detail(belay, "%s: too long", name);
    return false;
  }
  snprintf(out, size, "%s", from);
  return true;
}

/* Chooses the TLS settings for the servers; *out stays NULL without TLS. */
static int choose_tls(belay_t *belay, const belay__url_t *url, belay_tls_t *given,
                      belay_tls_t **out) {
  if (given == NULL)
    return url->tls ? belay__tls_of_system((belay__host_t *)belay, out) : 0;
  if (!url->tls)
    belay__detail(belay, "tls: the URL does not begin with rediss");
  else if (&given->host->base != belay)
    belay__detail(belay, "tls: of another belay_t");
  else
    *out = belay__tls_retain(given);
  return *out == NULL ? BELAY_EINVAL : 0;
}

/* ---- making ---- */

/* "host:pid", so that an operator sees in a token where its holder runs. */
static void default_owner(char *out, size_t size) {
  char host[UV_MAXHOSTNAMESIZE];
  size_t len = sizeof host;
  if (uv_os_gethostname(host, &len) != 0)
    snprintf(host, sizeof host, "localhost");
  for (char *p = host; *p != '\0'; p++)
    if (*p <= ' ' || *p > '~')
      *p = '?';
  snprintf(out, size, "%.48s:%ld", host, (long)uv_os_getpid());
}

static void fill_settings(belay__node_t *node, const belay_client_options_t *o) {
  const belay__url_t *url = &node->url;
  node->settings = (belay__settings_t){
      .ops = node->deployment->deployment_ops,
      .client = &node->base,
      .host = (belay__host_t *)node->base.belay,
      /* a named user may have an empty password; the default user without one needs no AUTH */
      .login = {.username = url->has_username ? url->username : NULL,
                .password = url->has_username || url->password[0] != '\0' ? url->password : NULL,
                .credentials = o->credentials,
                .credentials_ctx = o->credentials_ctx},
      .options = *o,
  };
  belay_client_options_t *copy = &node->settings.options;
  copy->client_name = node->client_name;
  copy->db = url->db;
  /* pointers of the program, which may be invalid after belay_connect() */
  copy->username = copy->password = copy->sentinel_username = copy->sentinel_password = NULL;
  copy->owner = NULL;
  copy->namespace_parts = NULL;
  belay__list_init(&node->settings.servers);
}

static uint64_t mix(uint64_t hash, const char *text) {
  for (; *text != '\0'; text++) /* FNV-1a */
    hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return hash;
}

static uint64_t place_of(const belay__url_t *url) {
  uint64_t hash = UINT64_C(14695981039346656037);
  char rest[24];
  for (size_t i = 0; i < url->place_count; i++) {
    snprintf(rest, sizeof rest, ":%u,", url->places[i].port);
    hash = mix(mix(hash, url->places[i].host), rest);
  }
  snprintf(rest, sizeof rest, "/%d", url->db);
  return mix(mix(mix(hash, url->path), url->master), rest);
}

void belay__node_free(belay__node_t *node) {
  size_t size = node->deployment->size;
  belay_t *belay = node->base.belay;
  belay__servers_free(&node->settings);
  if (node->discovery != NULL)
    belay__discovery_deinit(node->discovery);
  belay__tls_release(node->settings.tls);
  OPENSSL_cleanse(&node->url, sizeof node->url); /* the password */
  OPENSSL_cleanse(node->sentinel_password, sizeof node->sentinel_password);
  belay__free(belay, node, size);
}

/* Makes a client with the part that all deployments have. */
static int make_node(belay_t *belay, const belay__deployment_t *deployment, const belay__url_t *url,
                     const belay_client_options_t *o, belay__node_t **out) {
  char owner[BELAY__OWNER_MAX + 1];
  belay__node_t *node = belay__alloc(belay, deployment->size);
  if (node == NULL)
    return BELAY_ENOMEM;
  memset(node, 0, deployment->size);
  default_owner(owner, sizeof owner);
  int error = belay__client_init(&node->base, belay, deployment->ops, o, owner);
  if (error != 0) {
    belay__free(belay, node, deployment->size);
    return error;
  }
  node->deployment = deployment;
  node->url = *url;
  node->base.place = place_of(url);
  node->base.db = url->db;
  *out = node;
  return 0;
}

int belay__node_make(belay_t *belay, const belay__deployment_t *deployment, const belay__url_t *url,
                     const belay_client_options_t *o, belay_client_t **out) {
  belay__node_t *node;
  int error = make_node(belay, deployment, url, o, &node);
  if (error != 0)
    return error;
  snprintf(node->client_name, sizeof node->client_name, "%s", o->client_name);
  bool fits = belay__node_copy_text(belay, "sentinel_username", o->sentinel_username,
                                    node->sentinel_username, sizeof node->sentinel_username) &&
              belay__node_copy_text(belay, "sentinel_password", o->sentinel_password,
                                    node->sentinel_password, sizeof node->sentinel_password);
  fill_settings(node, o);
  error = fits ? choose_tls(belay, url, o->tls, &node->settings.tls) : BELAY_EINVAL;
  if (error == 0)
    error = deployment->init(node);
  if (error != 0) {
    belay__client_fini(&node->base);
    belay__node_free(node);
    return error;
  }
  *out = &node->base;
  return 0;
}

/* ---- calls ---- */

void belay__node_overdue(belay_client_t *client, belay__call_t *call) {
  belay__connection_t *connection = belay__dispatch(call)->at;
  (void)client;
  if (connection != NULL)
    belay__outage_call_overdue(connection, call);
}

void belay__node_distrust(belay_client_t *client, belay__call_t *call) {
  belay__connection_t *connection = belay__dispatch(call)->at;
  (void)client;
  if (connection != NULL)
    belay__connection_distrust(connection, call->epoch);
}

/* ---- all servers ---- */

size_t belay__node_connections_up(const belay_client_t *client) {
  return belay__servers_connections_up(&BELAY__CONTAINER(client, belay__node_t, base)->settings);
}

bool belay__node_can(belay_client_t *client, belay__capability_t what) {
  return belay__servers_can(&BELAY__CONTAINER(client, belay__node_t, base)->settings, what);
}

void belay__node_close(belay__node_t *node) {
  node->closing = true;
  belay__servers_close(&node->settings);
  if (node->discovery != NULL)
    belay__discovery_close(node->discovery);
  belay__node_check_closed(node);
}

void belay__node_check_closed(belay__node_t *node) {
  bool found = node->discovery == NULL || belay__discovery_is_over(node->discovery);
  if (!node->closing || node->gone || !found || !belay__servers_are_closed(&node->settings))
    return;
  node->gone = true;
  belay__client_node_closed(&node->base);
}

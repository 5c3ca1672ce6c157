#include "core/client/client.h"

#include <string.h>

#include "core/call/state.h"

int belay__client_check(belay_client_t *client) {
  if (client == NULL)
    return BELAY_EINVAL;
  int error = belay__check(client->belay);
  return error == 0 && client->closing ? BELAY_ECLOSING : error;
}

bool belay__is_label(const char *text, size_t max) {
  size_t n = strlen(text);
  if (n < 1 || n > max)
    return false;
  for (size_t i = 0; i < n; i++)
    if (text[i] <= ' ' || text[i] > '~')
      return false;
  return true;
}

bool belay__client_can(belay_client_t *client, belay__capability_t what) {
  return client->node_ops->can(client, what);
}

bool belay__client_may_run(const belay_client_t *client, const belay__call_t *answered,
                           uint32_t epoch) {
  if (epoch == 0 || epoch == answered->epoch)
    return false;
  return epoch > client->node_ops->dead_epoch(client, answered->conn_class, answered->route);
}

void belay__client_refused(belay_client_t *client, int error, const char *text, size_t len) {
  belay__redacted_t redacted;
  belay__redacted_init(&redacted, text, len);
  (void)belay__redacted_write(&redacted, client->refused.text);
  client->refused.key_len = 0;
  client->refused.error = error;
}

void belay__client_explain(belay_client_t *client, int status, const char *key, size_t key_len) {
  belay_t *belay = client->belay;
  const belay__refused_t *refused = &client->refused;
  char shown[BELAY__KEY_SHOWN];
  belay->detail[0] = '\0';
  if (status == 0 || status != refused->error)
    return;
  if (status != BELAY_EWRONGTYPE || key == NULL) {
    belay__detail(belay, "%s", refused->text);
    return;
  }
  (void)belay__words(shown, sizeof shown, key, key_len);
  belay__detail(belay, "%s: %s", shown, refused->text + refused->key_len);
}

void belay_client_set_data(belay_client_t *client, void *data) {
  if (client != NULL)
    client->data = data;
}

void *belay_client_data(const belay_client_t *client) {
  return client == NULL ? NULL : client->data;
}

belay_t *belay_client_belay(const belay_client_t *client) {
  return client == NULL ? NULL : client->belay;
}

void belay_client_stats(const belay_client_t *client, belay_client_stats_t *out) {
  *out = (belay_client_stats_t){0};
  if (client == NULL)
    return;
  *out = client->stats;
  out->objects -= out->undo_pending; /* undos are objects too, but the user did not create them */
  out->connections_up = client->node_ops->connections_up(client);
}

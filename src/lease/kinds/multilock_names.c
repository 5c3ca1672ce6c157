/* The names of a multilock, sorted so that every client takes them in the same order.
 *
 * The order is: the deployment, by the address in its URL; the namespace; in a cluster the slot;
 * the bytes of the key. Equal names count once. */
#include <string.h>

#include "core/key/key.h"
#include "core/key/slot.h"
#include "lease/kinds/multilock.h"

#define FAMILY belay__multi_kind.family

int belay__multilock_compare(const char *a, size_t a_len, const char *b, size_t b_len) {
  int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
  if (order != 0)
    return order;
  return (a_len > b_len) - (a_len < b_len);
}

static int compare_clients(const belay_client_t *a, const belay_client_t *b) {
  if (a->place != b->place)
    return a->place < b->place ? -1 : 1;
  return belay__multilock_compare(a->prefix, a->prefix_len, b->prefix, b->prefix_len);
}

static int compare(const belay__multilock_key_t *a, const belay__multilock_key_t *b) {
  int order = compare_clients(a->client, b->client);
  if (order == 0)
    order = a->slot - b->slot;
  return order != 0 ? order : belay__multilock_compare(a->key, a->len, b->key, b->len);
}

/* Puts one where it belongs, if it is not there. */
static void insert(belay__multilock_keys_t *keys, belay__multilock_key_t key) {
  size_t at = keys->count;
  while (at > 0 && compare(&keys->at[at - 1], &key) > 0)
    at--;
  if (at > 0 && compare(&keys->at[at - 1], &key) == 0)
    return;
  memmove(&keys->at[at + 1], &keys->at[at], (keys->count - at) * sizeof key);
  keys->at[at] = key;
  keys->count++;
}

static size_t key_len(const belay_multilock_name_t *name) {
  const belay_client_t *client = name->client;
  return belay__key_build(NULL, client->prefix, client->prefix_len, FAMILY, name->name.data,
                          name->name.len);
}

static int wrong(belay_t *belay, size_t i, const char *what) {
  return belay__invalid(belay, "names[%zu]: %s", i, what);
}

static int check_client(const belay_multilock_name_t *names, size_t i) {
  belay_t *belay = names[0].client->belay;
  if (names[i].client == NULL)
    return wrong(belay, i, "client: NULL");
  int error = belay__client_check(names[i].client);
  if (error != 0)
    return error;
  if (names[i].client->belay != belay)
    return wrong(belay, i, "on another loop than names[0]");
  for (size_t j = 0; j < i; j++)
    if (names[j].client != names[i].client &&
        compare_clients(names[j].client, names[i].client) == 0) {
      belay__detail(belay, "names[%zu]: another client of the same URL than names[%zu]", i, j);
      return BELAY_EDUPLICATE;
    }
  return 0;
}

static int check(const belay_multilock_name_t *names, size_t n) {
  if (names == NULL || n == 0 || names[0].client == NULL)
    return BELAY_EINVAL;
  belay_t *belay = names[0].client->belay;
  if (n > BELAY_MULTILOCK_MAX)
    return belay__invalid(belay, "n: not 1 to %d", BELAY_MULTILOCK_MAX);
  for (size_t i = 0; i < n; i++) {
    int error = check_client(names, i);
    if (error != 0)
      return error;
    if (names[i].name.data == NULL || names[i].name.len < 1 || names[i].name.len > BELAY__NAME_MAX)
      return wrong(belay, i, names[i].name.data == NULL ? "name: NULL" : "not 1 to 1024 bytes");
  }
  return 0;
}

int belay__multilock_keys(const belay_multilock_name_t *names, size_t n,
                          belay__multilock_keys_t *keys) {
  int error = check(names, n);
  if (error != 0)
    return error;
  *keys = (belay__multilock_keys_t){.count = 0};
  for (size_t i = 0; i < n; i++)
    keys->text_len += key_len(&names[i]);
  keys->text = belay__alloc(names[0].client->belay, keys->text_len);
  if (keys->text == NULL)
    return BELAY_ENOMEM;
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    belay_client_t *client = names[i].client;
    size_t len = belay__key_build(keys->text + at, client->prefix, client->prefix_len, FAMILY,
                                  names[i].name.data, names[i].name.len);
    belay__multilock_key_t key = {.client = client, .key = keys->text + at, .len = len};
    if (client->node_ops->by_slots)
      key.slot = belay__slot(key.key, key.len);
    insert(keys, key);
    at += len;
  }
  return 0;
}

size_t belay__multilock_group_end(const belay__multilock_keys_t *keys, size_t from) {
  size_t end = from + 1;
  while (end < keys->count && keys->at[end].client == keys->at[from].client &&
         keys->at[end].slot == keys->at[from].slot)
    end++;
  return end;
}

size_t belay__multilock_list(const belay__multilock_keys_t *keys, size_t from, size_t end,
                             char *out) {
  size_t size = 0;
  for (size_t i = from; i < end; i++) {
    uint16_t len = (uint16_t)keys->at[i].len; /* a namespace and a name are not that long */
    if (out != NULL) {
      memcpy(out + size, &len, sizeof len);
      memcpy(out + size + sizeof len, keys->at[i].key, len);
    }
    size += sizeof len + len;
  }
  return size;
}

int belay__multilock_measure(const belay__multilock_keys_t *keys, size_t *groups,
                             size_t *list_len) {
  for (size_t from = 0, end; from < keys->count; from = end, ++*groups) {
    end = belay__multilock_group_end(keys, from);
    size_t len = belay__multilock_list(keys, from, end, NULL);
    *list_len += len;
    if (len > UINT16_MAX)
      return belay__invalid(keys->at[0].client->belay, "names: too long together");
  }
  return 0;
}

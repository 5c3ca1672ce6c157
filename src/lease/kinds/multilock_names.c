/* Construction of a multilock. Its names are sorted, so that every client takes them in the same
 * order: the deployment, by the address in its URL; the namespace; in a cluster the slot; the bytes
 * of the key. Equal names count once. A group of keys that belong to one member is contiguous. */
#include <string.h>

#include "core/key/key.h"
#include "core/key/slot.h"
#include "lease/kinds/lock.h"
#include "lease/kinds/multilock.h"

/* The key of a name, its client and its slot. */
typedef struct name_key {
  belay_client_t *client;
  const char *key;
  size_t len;
  uint16_t slot; /* 0 without slots */
} name_key_t;

typedef struct keys {
  size_t count; /* of different keys */
  name_key_t at[BELAY_MULTILOCK_MAX];
  char *text; /* memory of the keys */
  size_t text_len;
} keys_t;

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len) {
  int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
  if (order != 0)
    return order;
  return (a_len > b_len) - (a_len < b_len);
}

static int compare_clients(const belay_client_t *a, const belay_client_t *b) {
  if (a->place != b->place)
    return a->place < b->place ? -1 : 1;
  return compare_bytes(a->prefix, a->prefix_len, b->prefix, b->prefix_len);
}

static int compare(const name_key_t *a, const name_key_t *b) {
  int order = compare_clients(a->client, b->client);
  if (order == 0)
    order = a->slot - b->slot;
  return order != 0 ? order : compare_bytes(a->key, a->len, b->key, b->len);
}

bool belay__multilock_common_key(const belay__lease_t *a, const belay__lease_t *b) {
  const char *a_list = belay__lease_key(a), *b_list = belay__lease_key(b);
  size_t a_at = 0, b_at = 0, a_len, b_len;
  const char *one = belay__many_next(a_list, a->key_len, &a_at, &a_len);
  const char *other = belay__many_next(b_list, b->key_len, &b_at, &b_len);
  while (one != NULL && other != NULL) {
    int order = compare_bytes(one, a_len, other, b_len);
    if (order == 0)
      return true;
    if (order < 0)
      one = belay__many_next(a_list, a->key_len, &a_at, &a_len);
    else
      other = belay__many_next(b_list, b->key_len, &b_at, &b_len);
  }
  return false;
}

/* Inserts a key at its place in the order, unless it is there. */
static void insert(keys_t *keys, name_key_t key) {
  size_t at = keys->count;
  while (at > 0 && compare(&keys->at[at - 1], &key) > 0)
    at--;
  if (at > 0 && compare(&keys->at[at - 1], &key) == 0)
    return;
  memmove(&keys->at[at + 1], &keys->at[at], (keys->count - at) * sizeof key);
  keys->at[at] = key;
  keys->count++;
}

/* Writes the key of a name to out (NULL to measure). Returns its length. */
static size_t build_key(char *out, const belay_multilock_name_t *name) {
  const belay_client_t *client = name->client;
  return belay__key_build(out, client->prefix, client->prefix_len, belay__multi_kind.family,
                          name->name.data, name->name.len);
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

/* Makes the keys of n names. Returns 0 or an error with a detail. */
static int make_keys(const belay_multilock_name_t *names, size_t n, keys_t *keys) {
  int error = check(names, n);
  if (error != 0)
    return error;
  for (size_t i = 0; i < n; i++)
    keys->text_len += build_key(NULL, &names[i]);
  keys->text = belay__alloc(names[0].client->belay, keys->text_len);
  if (keys->text == NULL)
    return BELAY_ENOMEM;
  char *text = keys->text;
  for (size_t i = 0; i < n; i++) {
    belay_client_t *client = names[i].client;
    name_key_t key = {.client = client, .key = text, .len = build_key(text, &names[i])};
    if (client->node_ops->by_slots)
      key.slot = belay__slot(key.key, key.len);
    insert(keys, key);
    text += key.len;
  }
  return 0;
}

/* Returns the end of the group that starts at `from`: the position behind its last key. */
static size_t group_end(const keys_t *keys, size_t from) {
  size_t end = from + 1;
  while (end < keys->count && keys->at[end].client == keys->at[from].client &&
         keys->at[end].slot == keys->at[from].slot)
    end++;
  return end;
}

/* Writes the list of the group's keys to out (NULL to measure), for belay__many_next(). Returns its
 * length. */
static size_t put_list(const keys_t *keys, size_t from, char *out) {
  size_t size = 0;
  for (size_t i = from; i < group_end(keys, from); i++) {
    uint16_t len = (uint16_t)keys->at[i].len; /* a namespace and a name are short enough */
    if (out != NULL) {
      memcpy(out + size, &len, sizeof len);
      memcpy(out + size + sizeof len, keys->at[i].key, len);
    }
    size += sizeof len + len;
  }
  return size;
}

/* Counts the members and the bytes of their lists, and makes the configuration of each member.
 * Returns 0 or an error with a detail. *members: number of configurations, also after an error. */
static int make_configs(const keys_t *keys, const belay_lock_options_t *options,
                        const belay__lease_config_t **configs, size_t *members, size_t *list_len) {
  for (size_t from = 0; from < keys->count; from = group_end(keys, from)) {
    belay_client_t *client = keys->at[from].client;
    belay__lease_config_t config;
    size_t len = put_list(keys, from, NULL);
    if (len > UINT16_MAX)
      return belay__invalid(client->belay, "names: too long together");
    int error = belay__lock_config(client, 1, options, &config);
    if (error != 0)
      return error;
    config.kind = &belay__multi_kind;
    configs[*members] = belay__lease_config_share(&client, 1, &config);
    if (configs[*members] == NULL)
      return BELAY_ENOMEM;
    *list_len += len;
    ++*members;
  }
  return 0;
}

static int new_multilock(belay_t *belay, const keys_t *keys, const belay_lock_options_t *options,
                         belay_multilock_t **out) {
  const belay__lease_config_t *configs[BELAY_MULTILOCK_MAX];
  size_t members = 0, list_len = 0, from = 0;
  int error = make_configs(keys, options, configs, &members, &list_len);
  size_t size = sizeof(belay_multilock_t) + members * sizeof(belay__multilock_member_t) + list_len;
  belay_multilock_t *multilock = error == 0 ? belay__alloc(belay, size) : NULL;
  if (multilock == NULL) {
    for (size_t i = 0; i < members; i++, from = group_end(keys, from))
      belay__lease_config_release(configs[i]);
    return error == 0 ? BELAY_ENOMEM : error;
  }
  belay__multilock_init(multilock, belay, members, size);
  multilock->data = options->data;
  char *list = (char *)&multilock->member[members];
  for (size_t i = 0; i < members; i++, from = group_end(keys, from)) {
    size_t len = put_list(keys, from, list);
    belay__multilock_member_t *member = &multilock->member[i];
    member->multilock = multilock;
    member->status = 0;
    member->closed = false;
    member->client = keys->at[from].client;
    member->list = list;
    belay__lease_init(&member->lease, 1, configs[i], len, 0);
    list += len;
  }
  *out = multilock;
  return 0;
}

int belay_multilock_new(const belay_multilock_name_t *names, size_t n,
                        const belay_lock_options_t *options, belay_multilock_lost_cb on_lost,
                        belay_multilock_t **out) {
  static const unsigned without = BELAY__WITHOUT_OWNER | BELAY__WITHOUT_KEY |
                                  BELAY__WITHOUT_FENCING | BELAY__WITHOUT_LABEL |
                                  BELAY__WITHOUT_FAIR | BELAY__WITHOUT_ON_LOST;
  belay_lock_options_t defaults;
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  belay_lock_options_init(&defaults);
  const belay_lock_options_t *o = options == NULL ? &defaults : options;
  keys_t keys = {.count = 0};
  int error = make_keys(names, n, &keys);
  if (error != 0)
    return error;
  belay_t *belay = names[0].client->belay;
  error = belay__lock_refuse(belay, o, without, "a lock on several names");
  if (error == 0)
    error = new_multilock(belay, &keys, o, out);
  belay__free(belay, keys.text, keys.text_len);
  if (error == 0)
    (*out)->on_lost = on_lost;
  return error;
}

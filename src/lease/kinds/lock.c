/* The lock: a lease whose key holds the token as a string. So it excludes, and is excluded by,
 * every other library that does SET key token NX PX. On one node it is the plain lock, on several
 * Redlock. */
#include "lease/kinds/lock.h"

#include <string.h>

#include "core/key/key.h"
#include "lease/machine/deadline.h"
#include "lease/wait/wake.h"
#include "scripts.gen.h"

struct belay_lock {
  belay_lock_cb op_cb;
  belay_lock_close_cb close_cb;
  void *data;
  belay__lease_t lease; /* followed by more members and by the parts that belay__lease_t names */
};

/* Size of a lock without its key, the kind's extra and the label. */
static size_t size_of(size_t members, const belay__lease_config_t *config) {
  return belay__lease_sized(sizeof(belay_lock_t), members) + belay__lease_fence_size(config);
}

static belay_lock_t *lock_of(const belay__lease_t *lease) {
  return BELAY__CONTAINER(lease, belay_lock_t, lease);
}

belay__lease_t *belay__lock_lease(const belay_lock_t *lock) {
  return (belay__lease_t *)(uintptr_t)&lock->lease;
}

/* ---- the kind ---- */

/* True if an attempt without a hand-over uses the native SET NX GET: it is the first attempt of the
 * acquire, the server has the command, and no script must assign a fencing number. Later attempts
 * use the script, because it sets the contention flag, and its reply has the remaining time of the
 * holder. If the client is subscribed already, so does the first one: no other attempt would follow
 * its subscription at once. */
static bool is_native(const belay__lease_t *lease, belay_client_t *client) {
  return lease->active->attempts <= 1 && !belay__wake_is_waiter(lease) &&
         !belay__lease_counts(lease) && belay__client_can(client, BELAY__SET_NX_GET);
}

static void acquire_natively(const belay__lease_t *lease, belay__call_t *call) {
  belay__call_command(call, "SET", 7);
  belay__call_needs(call, BELAY__SET_NX_GET);
  belay__call_arg(call, belay__lease_key(lease), lease->key_len);
  belay__lease_put_token(lease, call);
  belay__call_arg(call, "NX", 2);
  belay__call_arg(call, "GET", 3);
  belay__call_arg(call, "PX", 2);
  belay__call_arg_int(call, lease->ttl);
}

static void receive(const belay__lease_t *lease, belay__call_t *call) {
  bool counts = belay__lease_counts(lease);
  const belay__script_t *script =
      counts ? &belay__script_lock_hand_over_fenced : &belay__script_lock_hand_over;
  belay__lease_begin(lease, call, script, counts, (size_t)3 + counts);
  belay__lease_put_token(lease->active->partner, call);
  belay__lease_put_token(lease, call);
  belay__call_arg_int(call, lease->ttl);
  belay__lease_put_fence_ttl(lease, call);
}

static void acquire(const belay__lease_t *lease, belay__call_t *call) {
  bool counts = belay__lease_counts(lease);
  if (lease->active->partner != NULL) {
    receive(lease, call);
    return;
  }
  if (is_native(lease, call->client)) {
    acquire_natively(lease, call);
    return;
  }
  const belay__script_t *script =
      counts ? &belay__script_lock_acquire_fenced : &belay__script_lock_acquire;
  belay__lease_begin_acquire(lease, call, script, 1);
  belay__wake_put_flag_ttl(lease, call);
  belay__lease_put_fence_ttl(lease, call);
}

/* Returns the status of an acquire that finds its own token in the key. 0 on one node: an earlier
 * send of the same call set the token. BELAY_EDUPLICATE with several nodes: two clients may lead to
 * one server. */
static int own_token_status(const belay__lease_t *lease) {
  return lease->members == 1 ? 0 : BELAY_EDUPLICATE;
}

/* Reads the reply of SET NX GET: nil if the lock was granted, else the token in the key. */
static int read_set(const belay__lease_t *lease, const belay__reply_t *reply) {
  if (reply->type == BELAY__REPLY_NIL)
    return 0;
  if (reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  char token[BELAY__TOKEN_TEXT_MAX];
  return belay__reply_is(reply, token, belay__lease_token(lease, token)) ? own_token_status(lease)
                                                                         : BELAY_EHELD;
}

int belay__lock_acquired(belay__lease_t *lease, const belay__call_t *call,
                         const belay__reply_t *reply, int64_t *holder_ms) {
  int64_t n;
  uint64_t number;
  bool counts = belay__lease_counts(lease);
  if (call->script == NULL)
    return read_set(lease, reply);
  if (counts && belay__reply_number(reply, 1, BELAY__FENCE_MAX, &number)) {
    belay__lease_set_fence(lease, number);
    return 0;
  }
  if (!belay__reply_integer(reply, -2, INT64_MAX, &n))
    return BELAY_EPROTO;
  if (n != 0 && n != -1) {
    *holder_ms = n > 0 && n <= BELAY__TTL_MAX_MS ? n : -1;
    return BELAY_EHELD;
  }
  if (counts)
    return BELAY_EPROTO; /* a grant that is counted has a number */
  return n == 0 ? 0 : own_token_status(lease);
}

/* Sets belay_detail() to the server's error text if the status comes from it. */
static void set_detail(belay_lock_t *lock, int status) {
  const belay__lease_t *lease = &lock->lease;
  for (unsigned i = 0; i < lease->members; i++) {
    belay__client_explain(belay__lease_client(lease, i), status, belay__lease_key(lease),
                          lease->key_len);
    if (belay__lease_belay(lease)->detail[0] != '\0')
      return;
  }
}

static void call_back(belay_lock_t *lock, belay_lock_cb cb, int status) {
  if (cb == NULL)
    return;
  set_detail(lock, status);
  cb(lock, status);
}

void belay__lock_notify(belay__lease_t *lease, belay__notice_t news, int status) {
  belay_lock_t *lock = lock_of(lease);
  belay_lock_cb cb = lock->op_cb;
  switch (news) {
  case BELAY__NOTICE_LOST:
    if (lease->config->on_lost != NULL)
      lease->config->on_lost(lock, (belay_lost_t)status);
    break;
  case BELAY__NOTICE_EXTENDED:
    cb = (belay_lock_cb)lease->active->extend_cb;
    lease->active->extend_cb = NULL;
    call_back(lock, cb, status);
    break;
  case BELAY__NOTICE_ENDED:
    lock->op_cb = NULL;
    call_back(lock, cb, status);
    break;
  case BELAY__NOTICE_CLOSED:
    if (lock->close_cb != NULL)
      lock->close_cb(lock, lock->data);
    belay__free(belay__lease_belay(lease), lock,
                size_of(lease->members, lease->config) + lease->key_len + lease->extra_len +
                    lease->label_len);
    break;
  }
}

const belay__kind_t belay__lock_kind = {
    .family = "lock",
    .extend = &belay__script_lock_extend,
    .release = &belay__script_lock_release,
    .client_queue = true,
    .hands_over = true,
    .acquire = acquire,
    .acquired = belay__lock_acquired,
    .notify_owner = belay__lock_notify,
};

/* ---- construction ---- */

/* Writes the key at out (NULL: measures it); returns its length. */
static size_t put_key(char *out, const belay_client_t *client, const belay__lock_spec_t *spec,
                      belay_bytes_t name) {
  if (spec->key == NULL)
    return belay__key_build(out, client->prefix, client->prefix_len, spec->kind->family, name.data,
                            name.len);
  if (out != NULL)
    memcpy(out, spec->key, spec->key_len);
  return spec->key_len;
}

int belay__lock_make(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                     const belay_lock_options_t *options, const belay__lock_spec_t *spec,
                     belay_lock_t **out) {
  belay_t *belay = clients[0]->belay;
  belay__lease_config_t config;
  int error = 0;
  if (name.data != NULL || name.len > 0 || spec->key == NULL)
    error = belay__check_bytes(belay, "name", name, 1, BELAY__NAME_MAX);
  if (error == 0)
    error = belay__lock_config(clients[0], n, options, &config);
  if (error != 0)
    return error;
  config.kind = spec->kind;
  config.limit = spec->limit;
  config.permits = spec->permits;
  size_t key_len = put_key(NULL, clients[0], spec, name);
  size_t label_len = options->label == NULL ? 0 : strlen(options->label);
  size_t head = size_of(n, &config), size = head + key_len + spec->extra_len + label_len;
  belay_lock_t *lock = belay__alloc(belay, size);
  const belay__lease_config_t *shared =
      lock == NULL ? NULL : belay__lease_config_share(clients, n, &config);
  if (shared == NULL) {
    belay__free(belay, lock, size);
    return BELAY_ENOMEM;
  }
  *lock = (belay_lock_t){.data = options->data};
  char *key = (char *)lock + head;
  put_key(key, clients[0], spec, name);
  if (spec->extra_len > 0)
    memcpy(key + key_len, spec->extra, spec->extra_len);
  belay__lease_init(&lock->lease, n, shared, key_len, spec->extra_len);
  if (label_len > 0) {
    char *label = key + key_len + spec->extra_len;
    memcpy(label, options->label, label_len);
    lock->lease.label_len = (uint8_t)label_len;
  }
  lock->lease.mode = lock->lease.next_mode = spec->mode;
  *out = lock;
  return 0;
}

int belay__lock_refuse(belay_t *belay, const belay_lock_options_t *o, unsigned without,
                       const char *kind) {
  const struct {
    unsigned option;
    bool set;
    const char *name;
  } options[] = {
      {BELAY__WITHOUT_OWNER, belay__is_given(o->owner), "owner"},
      {BELAY__WITHOUT_KEY, belay__is_given(o->key), "key"},
      {BELAY__WITHOUT_FENCING, o->fencing, "fencing"},
      {BELAY__WITHOUT_LABEL, o->label != NULL, "label"},
      {BELAY__WITHOUT_FAIR, o->fair, "fair"},
      {BELAY__WITHOUT_ON_LOST, o->on_lost != NULL, "on_lost"},
  };
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    if ((without & options[i].option) != 0 && options[i].set)
      return belay__invalid(belay, "%s: not for %s", options[i].name, kind);
  return 0;
}

/* ---- operations ---- */

static int check(belay_lock_t *lock) {
  if (lock == NULL)
    return BELAY_EINVAL;
  int error = belay__check(belay__lease_belay(&lock->lease));
  return error == 0 && lock->lease.state >= BELAY__LEASE_CLOSING ? BELAY_ECLOSING : error;
}

int belay_lock_acquire(belay_lock_t *lock, int64_t wait_ms, belay_lock_cb cb) {
  int error = check(lock);
  if (error != 0)
    return error;
  belay__lease_t *lease = &lock->lease;
  if (cb == NULL)
    return belay__invalid(belay__lease_belay(lease), "cb: NULL");
  if (wait_ms == BELAY_DEFAULT)
    wait_ms = lease->config->wait;
  if ((error = belay__check_range(belay__lease_belay(lease), "wait_ms", wait_ms, 0,
                                  BELAY_FOREVER)) != 0)
    return error;
  if ((error = belay__lease_acquire(lease, wait_ms)) != 0)
    return error;
  lock->op_cb = cb;
  return 0;
}

int belay_lock_try(belay_lock_t *lock, belay_lock_cb cb) {
  return belay_lock_acquire(lock, 0, cb);
}

static int check_timeout(const belay__lease_t *lease, int64_t *timeout_ms) {
  if (*timeout_ms == BELAY_DEFAULT)
    *timeout_ms = lease->config->timeout;
  return belay__check_range(belay__lease_belay(lease), "timeout_ms", *timeout_ms, 1, 600000);
}

int belay_lock_release(belay_lock_t *lock, int64_t timeout_ms, belay_lock_cb cb) {
  int error = check(lock);
  if (error == 0)
    error = check_timeout(&lock->lease, &timeout_ms);
  if (error == 0)
    error = belay__lease_release(&lock->lease, timeout_ms);
  if (error == 0)
    lock->op_cb = cb;
  return error;
}

int belay__lock_usable(belay_lock_t *lock, int64_t *timeout_ms) {
  int error = check(lock);
  return error != 0 ? error : check_timeout(&lock->lease, timeout_ms);
}

int belay__lock_extend(belay_lock_t *lock, int64_t ttl_ms, int64_t timeout_ms, belay_lock_cb cb) {
  int error = belay__lease_extend(&lock->lease, ttl_ms, timeout_ms);
  if (error == 0)
    lock->lease.active->extend_cb = (void (*)(void))cb;
  return error;
}

int belay_lock_extend(belay_lock_t *lock, int64_t ttl_ms, int64_t timeout_ms, belay_lock_cb cb) {
  int error = belay__lock_usable(lock, &timeout_ms);
  if (error == 0 && ttl_ms == BELAY_DEFAULT)
    ttl_ms = lock->lease.ttl;
  if (error == 0)
    error = belay__lock_check_ttl(&lock->lease, ttl_ms);
  return error != 0 ? error : belay__lock_extend(lock, ttl_ms, timeout_ms, cb);
}

int belay_lock_cancel(belay_lock_t *lock) {
  int error = check(lock);
  return error != 0 ? error : belay__lease_cancel(&lock->lease);
}

void belay_lock_on_closed(belay_lock_t *lock, belay_lock_close_cb cb) {
  if (lock != NULL)
    lock->close_cb = cb;
}

int belay_lock_close(belay_lock_t *lock, belay_lock_close_cb cb) {
  int error = check(lock);
  if (error != 0)
    return error;
  lock->close_cb = cb;
  return belay__lease_close(&lock->lease);
}

/* ---- questions ---- */

int64_t belay_lock_remaining_us(const belay_lock_t *lock) {
  if (lock == NULL ||
      belay__lease_belay(&lock->lease)->host->forked(belay__lease_belay(&lock->lease)))
    return 0;
  return (int64_t)(belay__lease_remaining(&lock->lease) / 1000);
}

int belay_lock_error(const belay_lock_t *lock) {
  return lock == NULL ? BELAY_EINVAL : lock->lease.error;
}

unsigned belay_lock_holds(const belay_lock_t *lock) {
  if (belay_lock_remaining_us(lock) == 0)
    return 0;
  return lock->lease.active != NULL ? lock->lease.active->holds : 1;
}

uint64_t belay_lock_fence(const belay_lock_t *lock) {
  return belay_lock_remaining_us(lock) > 0 ? belay__lease_fence(&lock->lease) : 0;
}

/* Writes the public token: of a reentrant lock the value of the key, with the owner; otherwise the
 * lease's token. */
static size_t put_token(const belay__lease_t *lease, char out[BELAY__TOKEN_TEXT_MAX]) {
  if (!lease->config->kind->owned)
    return belay__lease_token(lease, out);
  memcpy(out, belay__lease_extra(lease), lease->extra_len);
  return lease->extra_len;
}

size_t belay_lock_token(const belay_lock_t *lock, char *buffer, size_t size) {
  char token[BELAY__TOKEN_TEXT_MAX];
  size_t len = 0;
  if (belay_lock_remaining_us(lock) > 0)
    len = put_token(&lock->lease, token);
  if (size > 0) {
    size_t n = len < size ? len : size - 1;
    memcpy(buffer, token, n);
    buffer[n] = '\0';
  }
  return len;
}

const char *belay_lock_key(const belay_lock_t *lock, size_t *len) {
  if (len != NULL)
    *len = lock == NULL ? 0 : lock->lease.key_len;
  return lock == NULL ? NULL : belay__lease_key(&lock->lease);
}

void belay_lock_ref(belay_lock_t *lock) {
  if (lock != NULL)
    belay__lease_ref(&lock->lease, true);
}

void belay_lock_unref(belay_lock_t *lock) {
  if (lock != NULL)
    belay__lease_ref(&lock->lease, false);
}

void belay_lock_set_data(belay_lock_t *lock, void *data) {
  if (lock != NULL)
    lock->data = data;
}

void *belay_lock_data(const belay_lock_t *lock) {
  return lock == NULL ? NULL : lock->data;
}

/* The plain lock: a lease of one member, whose key holds the token as a string. So it excludes, and is excluded
 * by, every other library that does SET key token NX PX. */
#include "belay/lock.h"

#include <string.h>

#include "core/key.h"
#include "lease/lease.h"
#include "scripts.gen.h"

#define SET_NX_GET_VERSION 70000 /* SET ... NX GET exists since Redis 7.0 */

struct belay_lock {
  belay_lock_cb op_cb, extend_cb;
  belay_lock_lost_cb on_lost;
  belay_lock_close_cb close_cb;
  void *data;
  belay__lease_t lease;
  belay__member_t member;
  char key[];
};

static belay_lock_t *lock_of(const belay__lease_t *lease) {
  return BELAY__CONTAINER(lease, belay_lock_t, lease);
}

/* ---- the kind ------------------------------------------------------------------------------------------ */

/* The first attempt is the native command where the server has it. One that follows a refusal asks by script,
 * which also tells how long the holder may still hold it. */
static void acquire(const belay__lease_t *lease, belay__call_t *call, bool poll) {
  belay_client_t *client = call->client;
  char token[BELAY__TOKEN_TEXT_MAX];
  size_t token_len = belay__token_text(token, &lease->token, client->owner, client->owner_len);
  bool native = !poll && client->node_ops->version(client) >= SET_NX_GET_VERSION;
  if (native)
    belay__call_command(call, "SET", 7);
  else
    belay__call_script(call, &belay__script_lock_acquire, 1, 2);
  belay__call_arg(call, lease->key, lease->key_len);
  belay__call_arg(call, token, token_len);
  if (native) {
    belay__call_arg(call, "NX", 2);
    belay__call_arg(call, "GET", 3);
    belay__call_arg(call, "PX", 2);
  }
  belay__call_arg_int(call, lease->ttl);
}

/* SET NX GET: nil is granted; our own token was granted to an earlier send of the same call. */
static int read_set(const belay__lease_t *lease, const belay_client_t *client,
                    const belay__reply_t *reply) {
  if (reply->type == BELAY__REPLY_NIL)
    return 0;
  if (reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  char token[BELAY__TOKEN_TEXT_MAX];
  size_t token_len = belay__token_text(token, &lease->token, client->owner, client->owner_len);
  return belay__reply_is(reply, token, token_len) ? 0 : BELAY_EHELD;
}

static int acquired(const belay__lease_t *lease, const belay__call_t *call,
                    const belay__reply_t *reply, int64_t *holder_ms) {
  if (call->script == NULL)
    return read_set(lease, call->client, reply);
  int64_t n;
  if (!belay__reply_integer(reply, -2, INT64_MAX, &n))
    return BELAY_EPROTO;
  if (n == 0 || n == -1)
    return 0;
  *holder_ms = n > 0 && n < BELAY__TTL_MAX_MS ? n : -1;
  return BELAY_EHELD;
}

static void free_lock(belay_lock_t *lock);

static void call_back(belay_lock_t *lock, belay_lock_cb *slot, int status) {
  belay_lock_cb cb = *slot;
  *slot = NULL;
  if (cb == NULL)
    return;
  belay__client_explain(lock->member.client, status, lock->key, lock->lease.key_len);
  cb(lock, status);
}

static void tell(belay__lease_t *lease, belay__news_t news, int status) {
  belay_lock_t *lock = lock_of(lease);
  switch (news) {
  case BELAY__NEWS_LOST:
    if (lock->on_lost != NULL)
      lock->on_lost(lock, (belay_lost_t)status);
    break;
  case BELAY__NEWS_EXTENDED:
    call_back(lock, &lock->extend_cb, status);
    break;
  case BELAY__NEWS_ENDED:
    call_back(lock, &lock->op_cb, status);
    break;
  case BELAY__NEWS_CLOSED:
    if (lock->close_cb != NULL)
      lock->close_cb(lock, lock->data);
    free_lock(lock);
    break;
  }
}

static const belay__kind_t kind = {
    .family = "lock",
    .extend = &belay__script_lock_extend,
    .release = &belay__script_lock_release,
    .acquire = acquire,
    .acquired = acquired,
    .tell = tell,
};

/* ---- options ------------------------------------------------------------------------------------------- */

void belay_lock_options_init(belay_lock_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_lock_options_t){
      .ttl_ms = BELAY_DEFAULT,
      .watchdog = BELAY_WATCHDOG_AUTO,
      .renew_after_ms = BELAY_DEFAULT,
      .max_hold_ms = BELAY_FOREVER,
      .wait_ms = 5000,
      .retry_min_ms = 25,
      .retry_max_ms = 75,
      .drift_ms = BELAY_DEFAULT,
      .timeout_ms = BELAY_DEFAULT,
  };
}

static int in_range(belay_t *belay, const char *name, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max)
    return 0;
  belay__detail(belay, "%s: not from %lld to %lld", name, (long long)min, (long long)max);
  return BELAY_EINVAL;
}

static int check_options(belay_client_t *client, const belay_lock_options_t *o) {
  int64_t ttl = o->ttl_ms == BELAY_DEFAULT ? 10000 : o->ttl_ms;
  const struct {
    const char *name;
    int64_t value, min, max;
    bool or_default; /* BELAY_DEFAULT is taken too */
  } ranges[] = {
      {"ttl_ms", ttl, BELAY__TTL_MIN_MS, BELAY__TTL_MAX_MS, false},
      {"watchdog", (int64_t)o->watchdog, BELAY_WATCHDOG_AUTO, BELAY_WATCHDOG_OFF, false},
      {"renew_after_ms", o->renew_after_ms, ttl / 10, ttl / 2, true},
      {"max_hold_ms", o->max_hold_ms, 1, BELAY_FOREVER, false},
      {"wait_ms", o->wait_ms, 0, BELAY_FOREVER, false},
      {"retry_min_ms", o->retry_min_ms, 1, 3600000, false},
      {"retry_max_ms", o->retry_max_ms, o->retry_min_ms, 3600000, false},
      {"drift_ms", o->drift_ms, 2, ttl / 2, true},
      {"timeout_ms", o->timeout_ms, 1, 600000, true},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    if (ranges[i].or_default && ranges[i].value == BELAY_DEFAULT)
      continue;
    if (in_range(client->belay, ranges[i].name, ranges[i].value, ranges[i].min, ranges[i].max) != 0)
      return BELAY_EINVAL;
  }
  if (o->key != NULL)
    return in_range(client->belay, "key_len", o->key_len > INT32_MAX ? 0 : (int64_t)o->key_len, 1,
                    (int64_t)BELAY__NAME_MAX);
  return 0;
}

static belay__terms_t terms_of(const belay_client_t *client, const belay_lock_options_t *o) {
  bool given = o->ttl_ms != BELAY_DEFAULT;
  return (belay__terms_t){
      .ttl = given ? (uint32_t)o->ttl_ms : 10000,
      .renew_after = o->renew_after_ms == BELAY_DEFAULT ? 0 : (uint32_t)o->renew_after_ms,
      .drift = (int32_t)o->drift_ms,
      .retry_min = (uint32_t)o->retry_min_ms,
      .retry_max = (uint32_t)o->retry_max_ms,
      .max_attempts = o->max_attempts,
      .timeout = (uint32_t)(o->timeout_ms == BELAY_DEFAULT ? client->timeout_ms : o->timeout_ms),
      .max_hold = o->max_hold_ms,
      .wait = o->wait_ms,
      .renew = o->watchdog == BELAY_WATCHDOG_ON || (o->watchdog == BELAY_WATCHDOG_AUTO && !given),
  };
}

/* ---- making and freeing -------------------------------------------------------------------------------- */

static void free_lock(belay_lock_t *lock) {
  belay__free(lock->lease.belay, lock, sizeof *lock + lock->lease.key_len);
}

int belay_lock_new(belay_client_t *client, const char *name, size_t name_len,
                   const belay_lock_options_t *options, belay_lock_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  if (name == NULL || name_len < 1 || name_len > BELAY__NAME_MAX) {
    belay__detail(client->belay, name == NULL ? "name: NULL" : "name: not 1 to 1024 bytes");
    return BELAY_EINVAL;
  }
  belay_lock_options_t defaults;
  belay_lock_options_init(&defaults);
  const belay_lock_options_t *o = options == NULL ? &defaults : options;
  if ((error = check_options(client, o)) != 0)
    return error;

  const char *prefix = client->prefix;
  size_t key_len = o->key != NULL ? o->key_len
                                  : belay__key_build(NULL, prefix, client->prefix_len, kind.family,
                                                     name, name_len);
  belay_lock_t *lock = belay__alloc(client->belay, sizeof *lock + key_len);
  if (lock == NULL)
    return BELAY_ENOMEM;
  *lock = (belay_lock_t){.on_lost = o->on_lost, .data = o->data};
  if (o->key != NULL)
    memcpy(lock->key, o->key, key_len);
  else
    belay__key_build(lock->key, prefix, client->prefix_len, kind.family, name, name_len);
  belay__terms_t terms = terms_of(client, o);
  belay__lease_init(&lock->lease, &kind, client, &terms, &lock->member, lock->key, key_len);
  *out = lock;
  return 0;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static int check(belay_lock_t *lock) {
  if (lock == NULL)
    return BELAY_EINVAL;
  int error = belay__check(lock->lease.belay);
  return error == 0 && lock->lease.state >= BELAY__LEASE_CLOSING ? BELAY_ECLOSING : error;
}

int belay_lock_acquire(belay_lock_t *lock, int64_t wait_ms, belay_lock_cb cb) {
  int error = check(lock);
  if (error != 0)
    return error;
  belay__lease_t *lease = &lock->lease;
  if (cb == NULL) {
    belay__detail(lease->belay, "cb: NULL");
    return BELAY_EINVAL;
  }
  if (wait_ms == BELAY_DEFAULT)
    wait_ms = lease->terms.wait;
  if ((error = in_range(lease->belay, "wait_ms", wait_ms, 0, BELAY_FOREVER)) != 0)
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
    *timeout_ms = lease->terms.timeout;
  return in_range(lease->belay, "timeout_ms", *timeout_ms, 1, 600000);
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

int belay_lock_extend(belay_lock_t *lock, int64_t ttl_ms, int64_t timeout_ms, belay_lock_cb cb) {
  int error = check(lock);
  if (error == 0 && ttl_ms == BELAY_DEFAULT)
    ttl_ms = lock->lease.ttl;
  if (error == 0)
    error = in_range(lock->lease.belay, "ttl_ms", ttl_ms, BELAY__TTL_MIN_MS, BELAY__TTL_MAX_MS);
  if (error == 0)
    error = check_timeout(&lock->lease, &timeout_ms);
  if (error == 0)
    error = belay__lease_extend(&lock->lease, ttl_ms, timeout_ms);
  if (error == 0)
    lock->extend_cb = cb;
  return error;
}

int belay_lock_cancel(belay_lock_t *lock) {
  int error = check(lock);
  return error != 0 ? error : belay__lease_cancel(&lock->lease);
}

int belay_lock_close(belay_lock_t *lock, belay_lock_close_cb cb) {
  int error = check(lock);
  if (error != 0)
    return error;
  lock->close_cb = cb;
  return belay__lease_close(&lock->lease);
}

/* ---- questions ----------------------------------------------------------------------------------------- */

int64_t belay_lock_remaining_us(const belay_lock_t *lock) {
  if (lock == NULL || lock->lease.belay->host->forked(lock->lease.belay))
    return 0;
  return (int64_t)(belay__lease_remaining(&lock->lease) / 1000);
}

int belay_lock_error(const belay_lock_t *lock) {
  return lock == NULL ? BELAY_EINVAL : lock->lease.error;
}

size_t belay_lock_token(const belay_lock_t *lock, char *buffer, size_t size) {
  char token[BELAY__TOKEN_TEXT_MAX];
  size_t len = 0;
  const belay_client_t *client = lock == NULL ? NULL : lock->member.client;
  if (belay_lock_remaining_us(lock) > 0)
    len = belay__token_text(token, &lock->lease.token, client->owner, client->owner_len);
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
  return lock == NULL ? NULL : lock->key;
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

const char *belay_lost_name(belay_lost_t reason) {
  switch (reason) {
  case BELAY_LOST_EXPIRED:
    return "expired";
  case BELAY_LOST_TAKEN:
    return "taken";
  case BELAY_LOST_MAX_HOLD:
    return "max-hold";
  }
  return "?";
}

/* Messages that wake a waiting lease, or make a holder check its lease.
 *
 * Releases are published on the channel of the key. A waiter subscribes to this channel on each of
 * its nodes; with a list of keys (`many`), to the channel of each key. A message is only a hint to
 * ask again. A waiter whose last attempt found the lock held asks soon, or in its turn (turns.c).
 * Any other waiter asks within a second. All waiters also poll, because messages can be lost.
 *
 *    message for all, or for our ticket --from a quorum (many keys: one)--+
 *    subscription confirmed, also again --on a quorum (many keys: all)----+--> BELAY__EV_WAKE
 *
 * A plain lock, a member of a Redlock and a lock on several names publish only for waiters.
 * A waiter announces itself by the contention flag, a key beside the lock:
 *
 *    waiter, subscribed:  acquire --held: the same script sets KEY::contended--> WAITING
 *                            ^                                                      |
 *                            +----------- message, poll, first confirmation --------+
 *
 *    holder:  release --one DEL removes the lock and the flag--+--two keys--> publishes
 *                                                              +--one key--> does not
 *
 * So for each waiter one of these holds, until its attempt wins:
 *
 *   - the flag is set since its last attempt found the lock held;
 *   - a release has removed the flag since, and its message is on the way: the waiter asks again,
 *     and then either wins or sets the flag again for the next release;
 *   - its attempt is on the way, or due: the first one after the subscription was confirmed finds a
 *     lock that was released before, and sets the flag if it finds a later holder.
 *
 * Of several waiters, the first one that asks after a release sets the flag for all. A hand-over
 * keeps it. The script renews the flag before half of its ttl is over, which is more than the time
 * between two polls, so that few polls write. A flag that is lost (failover, eviction, an old
 * server) costs its waiters the time until their next poll. A flag that is left over (the waiter
 * died or gave up, the lock expired) costs one message. Neither concerns who holds the lock.
 *
 * Reentrant locks have the same key: their waiters set the flag, and their releases publish always.
 * So do breaks, because holders listen for them; elections, whose observers set no flag; native
 * compare-and-deletes, which see no flag; and a release that cannot reach the flag in a cluster. A
 * fair release publishes if its queue has a waiter; waiters of fair locks set no flag.
 *
 * A holder with notice_break and a watchdog has the same subscriptions. During a hold a message
 * comes from a break, or from a release by another holder. Each message and each confirmed
 * subscription makes the holder check the lease (BELAY__EV_CHECK). */
#include "lease/wait/wake.h"

#include <string.h>

#include "core/call/publish.h"
#include "core/key/key.h"
#include "lease/quorum/command.h"

#define CHANNEL_PART "::wake"

typedef struct listener {
  belay__subscription_t subscription;
  belay__lease_t *lease;
  bool received; /* a waiter's: true if a message or UP came since the last BELAY__EV_WAKE */
  bool was_up;   /* true if the subscription was confirmed before */
} listener_t;

struct belay__wake {
  unsigned count;
  listener_t listeners[];
};

/* ---- messages ---- */

static unsigned needed(const belay__lease_t *lease, bool up) {
  if (lease->config->kind->many)
    return up ? lease->active->wake->count : 1;
  return lease->quorum;
}

static unsigned count_up(const belay__wake_t *wake) {
  unsigned n = 0;
  for (unsigned i = 0; i < wake->count; i++)
    n += belay__subscription_is_up(&wake->listeners[i].subscription);
  return n;
}

static unsigned count_received(const belay__wake_t *wake) {
  unsigned n = 0;
  for (unsigned i = 0; i < wake->count; i++)
    n += wake->listeners[i].received;
  return n;
}

bool belay__wake_is_up(const belay__lease_t *lease) {
  const belay__wake_t *wake = lease->active->wake;
  return wake != NULL && count_up(wake) >= needed(lease, true);
}

/* True if the message is for this lease. An empty message is for all waiters, any other message is
 * the ticket of one waiter. */
static bool is_for(const belay__lease_t *lease, const char *data, size_t len) {
  char ticket[BELAY__TICKET_TEXT_MAX];
  size_t n = belay__ticket_text(lease->active->ticket, ticket);
  return len == 0 || (len == n && memcmp(data, ticket, n) == 0);
}

static void on_waiter_message(belay__subscription_t *base, belay__channel_event_t what,
                              const char *data, size_t len, int status) {
  (void)status;
  listener_t *listener = BELAY__CONTAINER(base, listener_t, subscription);
  belay__lease_t *lease = listener->lease;
  if (what == BELAY__CHANNEL_GAP || (what == BELAY__CHANNEL_MESSAGE && !is_for(lease, data, len)))
    return;
  belay__woken_t by = len > 0 ? BELAY__WOKEN_ALONE : BELAY__WOKEN_ALL;
  if (what == BELAY__CHANNEL_UP && listener->was_up)
    by = BELAY__WOKEN_AGAIN;
  listener->received = listener->was_up = true;
  if (what == BELAY__CHANNEL_MESSAGE ? count_received(lease->active->wake) < needed(lease, false)
                                     : !belay__wake_is_up(lease))
    return;
  belay__wake_t *wake = lease->active->wake;
  for (unsigned i = 0; i < wake->count; i++)
    wake->listeners[i].received = false;
  belay__lease_report(lease, BELAY__EV_WAKE, by);
}

static void on_holder_message(belay__subscription_t *base, belay__channel_event_t what,
                              const char *data, size_t len, int status) {
  belay__lease_t *lease = BELAY__CONTAINER(base, listener_t, subscription)->lease;
  (void)data, (void)len, (void)status;
  if (what != BELAY__CHANNEL_GAP)
    belay__lease_report(lease, BELAY__EV_CHECK, BELAY__CHECK_MESSAGE);
}

/* ---- subscriptions ---- */

static size_t size_of(unsigned count) {
  return sizeof(belay__wake_t) + count * sizeof(listener_t);
}

static size_t channel_of(char out[BELAY__KEY_MAX], const char *key, size_t len) {
  memcpy(out, key, len);
  memcpy(out + len, CHANNEL_PART, sizeof CHANNEL_PART - 1);
  return len + sizeof CHANNEL_PART - 1;
}

/* Writes the name of the i-th channel to `out`, and returns the client that subscribes to it. */
static belay_client_t *channel(const belay__lease_t *lease, unsigned i, char out[BELAY__KEY_MAX],
                               size_t *len) {
  size_t at = 0, n = lease->key_len;
  const char *key = belay__lease_key(lease);
  for (unsigned k = 0; lease->config->kind->many && k <= i; k++)
    key = belay__many_next(belay__lease_key(lease), lease->key_len, &at, &n);
  *len = channel_of(out, key, n);
  return belay__lease_client(lease, lease->config->kind->many ? 0 : i);
}

static unsigned count_channels(const belay__lease_t *lease) {
  size_t at = 0, len;
  unsigned n = 0;
  if (!lease->config->kind->many)
    return lease->members;
  while (belay__many_next(belay__lease_key(lease), lease->key_len, &at, &len) != NULL)
    n++;
  return n;
}

static bool are_known(const belay__lease_t *lease) {
  char name[BELAY__KEY_MAX];
  size_t len;
  for (unsigned i = 0; i < count_channels(lease); i++) {
    belay_client_t *client = channel(lease, i, name, &len);
    if (!belay__channel_is_up(client, name, len))
      return false;
  }
  return true;
}

/* Subscribes to all channels. A failure is ignored, because waiters and holders also poll. holds:
 * for a holder. */
static void open_listeners(belay__lease_t *lease, bool holds) {
  unsigned count = count_channels(lease);
  belay__wake_t *wake = belay__alloc(belay__lease_belay(lease), size_of(count));
  if (wake == NULL)
    return;
  lease->active->wake = wake;
  wake->count = count;
  for (unsigned i = 0; i < count; i++) {
    char name[BELAY__KEY_MAX];
    size_t len;
    wake->listeners[i] =
        (listener_t){.subscription = {.on_event = holds ? on_holder_message : on_waiter_message},
                     .lease = lease};
    belay_client_t *client = channel(lease, i, name, &len);
    (void)belay__listen(client, name, len, &wake->listeners[i].subscription);
    wake->listeners[i].was_up = belay__subscription_is_up(&wake->listeners[i].subscription);
  }
}

void belay__wake_unsubscribe(belay__lease_t *lease) {
  belay__wake_t *wake = lease->active != NULL ? lease->active->wake : NULL;
  if (wake == NULL)
    return;
  lease->active->wake = NULL;
  for (unsigned i = 0; i < wake->count; i++)
    belay__unlisten(&wake->listeners[i].subscription);
  belay__free(belay__lease_belay(lease), wake, size_of(wake->count));
}

void belay__wake_subscribe(belay__lease_t *lease, bool known) {
  if (lease->active->wake == NULL && lease->config->notify && (!known || are_known(lease)))
    open_listeners(lease, false);
}

static bool is_closing(const belay__lease_t *lease) {
  bool closing = false;
  for (unsigned i = 0; i < lease->members; i++)
    closing |= belay__lease_client(lease, i)->closing;
  return closing;
}

void belay__wake_watch(belay__lease_t *lease) {
  if (lease->config->notice_break && lease->config->renew && lease->active->wake == NULL &&
      !is_closing(lease))
    open_listeners(lease, true);
}

/* A member may send an acquire again after the decision. Then a holder may have subscriptions. */
bool belay__wake_is_waiter(const belay__lease_t *lease) {
  return belay__lease_is_acquiring(lease) && lease->active->wake != NULL;
}

void belay__wake_put_flag_ttl(const belay__lease_t *lease, belay__call_t *call) {
  const belay__lease_config_t *config = lease->config;
  int64_t poll = (int64_t)config->backoff_max + config->timeout;
  belay__call_arg_int(call, belay__wake_is_waiter(lease) ? 2 * poll : 0);
}

void belay__wake_build_publish(const belay__lease_t *lease, belay__call_t *call) {
  char name[BELAY__KEY_MAX];
  belay__publish_build(call, name, channel_of(name, belay__lease_key(lease), lease->key_len), "",
                       0);
}

bool belay__wake_is_subscribed(const belay__lease_t *lease) {
  char name[BELAY__KEY_MAX];
  size_t len = channel_of(name, belay__lease_key(lease), lease->key_len);
  return belay__channel_is_up(belay__lease_client(lease, 0), name, len);
}

/* Returns false if the last release notified no other client. Without notifications, and with
 * several nodes, the answer is unknown: then this returns true. */
bool belay__wake_reached_others(const belay__lease_t *lease) {
  if (!lease->config->notify || lease->members > 1)
    return true;
  return lease->active->notified > (belay__wake_is_subscribed(lease) ? 1 : 0);
}

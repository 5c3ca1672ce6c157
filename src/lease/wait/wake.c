/* What wakes a lease that waits, and what makes a holder ask.
 *
 * Releases are published on the channel of the key. A waiter has an ear for that on each of its nodes (or, of many keys,
 * for each of them). A message is only a hint, on which it asks again: at once or in its turn (turns.c) if it had found
 * the lease held, else within a second. Without one it asks as often as it does without ears.
 *
 *   message for everybody, or for our ticket --+
 *   subscription confirmed: first, after a gap -+--> as many ears as make a quorum (of many keys: one) --> BELAY__EV_WAKE
 *
 * A holder with notice_break has the same ears. While the lease is held only a break publishes there, or a release of
 * another that holds it too: whatever it hears, and each confirmed subscription, makes it ask --> BELAY__EV_CHECK */
#include "lease/wait/wake.h"

#include <string.h>

#include "core/call/publish.h"
#include "core/key/key.h"
#include "lease/quorum/command.h"

#define CHANNEL_PART "::wake"
/* A namespace and a name, all of them escaped, and what is around them. */
#define CHANNEL_MAX                                                                                \
  (BELAY__NAMESPACE_PARTS * (3 * BELAY__NAMESPACE_PART_MAX + 2) + 3 * BELAY__NAME_MAX + 64)

typedef struct ear {
  belay__ear_t ear;
  belay__lease_t *lease;
  bool heard;  /* a waiter's: since the last attempt */
  bool was_up; /* the subscription was confirmed before */
} ear_t;

struct belay__wake {
  unsigned count;
  ear_t ears[];
};

/* ---- what is heard ------------------------------------------------------------------------------------- */

static unsigned needed(const belay__lease_t *lease, bool up) {
  if (lease->terms->kind->many)
    return up ? lease->bid->wake->count : 1;
  return lease->quorum;
}

static unsigned count_up(const belay__wake_t *wake) {
  unsigned n = 0;
  for (unsigned i = 0; i < wake->count; i++)
    n += belay__ear_is_up(&wake->ears[i].ear);
  return n;
}

static unsigned count_heard(const belay__wake_t *wake) {
  unsigned n = 0;
  for (unsigned i = 0; i < wake->count; i++)
    n += wake->ears[i].heard;
  return n;
}

bool belay__wake_is_up(const belay__lease_t *lease) {
  return lease->bid->wake != NULL && count_up(lease->bid->wake) >= needed(lease, true);
}

/* '' is for everybody. */
static bool is_for(const belay__lease_t *lease, const char *data, size_t len) {
  char ticket[BELAY__TICKET_TEXT_MAX];
  size_t n = belay__ticket_text(lease->ticket, ticket);
  return len == 0 || (len == n && memcmp(data, ticket, n) == 0);
}

static void hear(belay__ear_t *belay_ear, belay__heard_t what, const char *data, size_t len,
                 int status) {
  (void)status;
  ear_t *ear = BELAY__CONTAINER(belay_ear, ear_t, ear);
  belay__lease_t *lease = ear->lease;
  if (what == BELAY__HEARD_GAP || (what == BELAY__HEARD_MESSAGE && !is_for(lease, data, len)))
    return;
  belay__woken_t by = len > 0 ? BELAY__WOKEN_ALONE : BELAY__WOKEN_ALL;
  if (what == BELAY__HEARD_UP && ear->was_up)
    by = BELAY__WOKEN_AGAIN;
  ear->heard = ear->was_up = true;
  if (what == BELAY__HEARD_MESSAGE ? count_heard(lease->bid->wake) < needed(lease, false)
                                   : !belay__wake_is_up(lease))
    return;
  for (unsigned i = 0; i < lease->bid->wake->count; i++)
    lease->bid->wake->ears[i].heard = false;
  lease->report(lease, BELAY__EV_WAKE, by);
}

/* A holder's. */
static void hear_as_holder(belay__ear_t *belay_ear, belay__heard_t what, const char *data,
                           size_t len, int status) {
  belay__lease_t *lease = BELAY__CONTAINER(belay_ear, ear_t, ear)->lease;
  (void)data, (void)len, (void)status;
  if (what != BELAY__HEARD_GAP)
    lease->report(lease, BELAY__EV_CHECK, BELAY__CHECK_HEARD);
}

/* ---- ears ---------------------------------------------------------------------------------------------- */

static size_t size_of(unsigned count) {
  return sizeof(belay__wake_t) + count * sizeof(ear_t);
}

static size_t channel_of(char out[CHANNEL_MAX], const char *key, size_t len) {
  memcpy(out, key, len);
  memcpy(out + len, CHANNEL_PART, sizeof CHANNEL_PART - 1);
  return len + sizeof CHANNEL_PART - 1;
}

/* The i-th of what is listened to: a channel in a client. */
static belay_client_t *channel(const belay__lease_t *lease, unsigned i, char out[CHANNEL_MAX],
                               size_t *len) {
  size_t at = 0, n = lease->key_len;
  const char *key = lease->key;
  for (unsigned k = 0; lease->terms->kind->many && k <= i; k++)
    key = belay__many_next(lease->key, lease->key_len, &at, &n);
  *len = channel_of(out, key, n);
  return lease->member[lease->terms->kind->many ? 0 : i].client;
}

static unsigned count_channels(const belay__lease_t *lease) {
  size_t at = 0, len;
  unsigned n = 0;
  if (!lease->terms->kind->many)
    return lease->members;
  while (belay__many_next(lease->key, lease->key_len, &at, &len) != NULL)
    n++;
  return n;
}

static bool are_known(const belay__lease_t *lease, unsigned count) {
  char name[CHANNEL_MAX];
  size_t len;
  for (unsigned i = 0; i < count; i++) {
    belay_client_t *client = channel(lease, i, name, &len);
    if (!belay__channel_is_up(client, name, len))
      return false;
  }
  return true;
}

typedef void (*hear_t)(belay__ear_t *ear, belay__heard_t what, const char *data, size_t len,
                       int status);

/* What cannot listen asks now and then. */
static void open_ears(belay__lease_t *lease, belay__wake_t **out, unsigned count, hear_t hear_it) {
  belay__wake_t *wake = belay__alloc(belay__lease_host(lease), size_of(count));
  if (wake == NULL)
    return;
  *out = wake;
  wake->count = count;
  for (unsigned i = 0; i < count; i++) {
    char name[CHANNEL_MAX];
    size_t len;
    wake->ears[i] = (ear_t){.ear = {.hear = hear_it}, .lease = lease};
    belay_client_t *client = channel(lease, i, name, &len);
    (void)belay__listen(client, name, len, &wake->ears[i].ear);
    wake->ears[i].was_up = belay__ear_is_up(&wake->ears[i].ear);
  }
}

static void close_ears(belay__lease_t *lease, belay__wake_t **ears) {
  belay__wake_t *wake = *ears;
  *ears = NULL;
  for (unsigned i = 0; i < wake->count; i++)
    belay__unlisten(&wake->ears[i].ear);
  belay__free(belay__lease_host(lease), wake, size_of(wake->count));
}

void belay__wake_listen(belay__lease_t *lease, bool known) {
  unsigned count = count_channels(lease);
  if (lease->bid->wake == NULL && lease->terms->notify && (!known || are_known(lease, count)))
    open_ears(lease, &lease->bid->wake, count, hear);
}

void belay__wake_stop(belay__lease_t *lease) {
  if (lease->bid != NULL && lease->bid->wake != NULL)
    close_ears(lease, &lease->bid->wake);
}

static bool is_closing(const belay__lease_t *lease) {
  bool closing = false;
  for (unsigned i = 0; i < lease->members; i++)
    closing |= lease->member[i].client->closing;
  return closing;
}

void belay__wake_watch(belay__lease_t *lease) {
  if (lease->watch == NULL && lease->terms->notice_break && lease->terms->renew &&
      !is_closing(lease))
    open_ears(lease, &lease->watch, count_channels(lease), hear_as_holder);
}

void belay__wake_unwatch(belay__lease_t *lease) {
  if (lease->watch != NULL)
    close_ears(lease, &lease->watch);
}

void belay__wake_build(const belay__lease_t *lease, belay__call_t *call) {
  char name[CHANNEL_MAX];
  belay__publish_build(call, name, channel_of(name, lease->key, lease->key_len), "", 0);
}

bool belay__wake_is_subscribed(const belay__lease_t *lease) {
  char name[CHANNEL_MAX];
  size_t len = channel_of(name, lease->key, lease->key_len);
  return belay__channel_is_up(lease->member[0].client, name, len);
}

/* Where nobody is told, others may be waiting all the same. */
bool belay__wake_others(const belay__lease_t *lease) {
  if (!lease->terms->notify || lease->members > 1)
    return true;
  return lease->told > (belay__wake_is_subscribed(lease) ? 1 : 0);
}

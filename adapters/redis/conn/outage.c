/* Whether a server is away, for all connections to it together (a cable), and the cause.
 *
 *            an attempt to connect fails; or it has taken AWAY_MS when the deadline of a call comes
 *         +------------------------------------------------------------------------------> FAILED
 *   HERE -+                                                                                  |
 *    ^    +--a deadline comes, nothing was read for AWAY_MS--> SILENT --an attempt fails-----+
 *    |                                                            |                          |
 *    +--a byte is read on the connection; one is made-------------+                          |
 *    +--a connection is made; no link tries any more-----------------------------------------+
 *
 * FAILED is cable->failed. SILENT is judged for each link: nothing was read on it since
 * cable->silent_since. So a link that hears its server goes on while another one is dead; links
 * that are idle are sent a PING to find out.
 *
 * A call with fail_fast is not queued for a server that is away, and ends when its server goes
 * away before it was sent. The links find out by themselves when the server is back: a link that
 * is not connected tries again, one at a time often, the others seldom until that one succeeds;
 * and a silent server owes answers, the first of which ends the silence. */
#include "redis/conn/outage.h"

#include <stdio.h>
#include <string.h>

#include "redis/conn/batch.h"
#include "redis/conn/cause.h"
#include "redis/conn/liveness.h"

/* Silences and attempts that are shorter are not taken for an outage, even by calls whose
 * timeout is shorter. */
#define AWAY_MS UINT64_C(100)
/* A deadline that is served later tells nothing: the loop was busy, and the answer may lie in
 * the socket. */
#define LATE_MS UINT64_C(50)
/* Time after the last refused call in which links try to connect. */
#define PROBE_MS UINT64_C(3600000)

/* ---- whether it is away ---------------------------------------------------------------------- */

static int judge(const belay__link_t *link) {
  const belay__cable_t *cable = link->cable;
  if (belay__link_is_up(link))
    return link->wire.last_read <= cable->silent_since ? BELAY_EUNREACHABLE : 0;
  if (cable->failed != 0)
    return cable->failed;
  return cable->heard_at <= cable->silent_since && cable->silent_since != 0 ? BELAY_EUNREACHABLE
                                                                            : 0;
}

static void explain_away(const belay__link_t *link, int error) {
  const belay__cable_t *cable = link->cable;
  char cause[64];
  if (!belay__link_is_up(link) && cable->failed != 0) {
    belay__client_refused(cable->trunk->client, error, cable->why, strlen(cable->why));
    return;
  }
  uint64_t ms = (belay__now(belay__cable_loop(cable)) - cable->silent_since) / BELAY__MS;
  (void)snprintf(cause, sizeof cause, "timed out: no answer for %llu ms", (unsigned long long)ms);
  belay__link_refuse_with(link, error, cause);
}

int belay__outage_check(belay__link_t *link) {
  int error = judge(link);
  if (error == 0)
    return 0;
  explain_away(link, error);
  link->cable->probe_until = belay__now(belay__link_loop(link)) + PROBE_MS * BELAY__MS;
  return error;
}

/* ---- it goes away, and comes back ------------------------------------------------------------ */

static void take_fail_fast(belay__list_t *from, belay__list_t *out) {
  for (belay__list_t *node = from->next, *next; node != from; node = next) {
    next = node->next;
    if (!BELAY__CONTAINER(node, belay__call_t, node)->fail_fast)
      continue;
    belay__list_remove(node);
    belay__list_push(out, node);
  }
}

static void refuse_queued(belay__link_t *link, int error) {
  belay__list_t refused;
  belay__list_init(&refused);
  belay__convoy_disperse(link);
  take_fail_fast(&link->urgent, &refused);
  take_fail_fast(&link->queue, &refused);
  for (belay__list_t *node; (node = belay__list_pop(&refused)) != NULL;) {
    link->queue_len--; /* a callback may withdraw others of these */
    explain_away(link, error);
    belay__call_refused(BELAY__CONTAINER(node, belay__call_t, node), error);
  }
}

void belay__outage_on_refuse(belay__timer_t *timer) {
  belay__cable_t *cable = BELAY__CONTAINER(timer, belay__cable_t, refuse);
  for (size_t i = 0; i < cable->count; i++) {
    belay__link_t *link = &cable->links[i];
    int error = link->state == BELAY__LINK_CLOSED || link->queue_len == 0 ? 0 : judge(link);
    if (error != 0)
      refuse_queued(link, error);
  }
}

void belay__outage_refuse_soon(belay__cable_t *cable) {
  belay__timer_set(belay__cable_loop(cable), BELAY__RANK_OTHER, &cable->refuse,
                   belay__now(belay__cable_loop(cable)));
}

/* What concerns a link that listens may concern no other. Without a cause the client has the
 * words of a finder. */
static void fail(belay__link_t *link, int error, const char *cause) {
  belay__cable_t *cable = link->cable;
  const char *found = cable->trunk->client->refused.text;
  char place[BELAY__TARGET_WORDS];
  if (link->listens)
    return;
  cable->failed = belay__link_unsent(error);
  if (cause[0] == '\0')
    (void)snprintf(cable->why, sizeof cable->why, "%s", found);
  else
    (void)snprintf(cable->why, sizeof cable->why, "%s: %s",
                   belay__target_words(&link->target, place), cause);
  belay__outage_refuse_soon(cable);
}

void belay__outage_failed(belay__link_t *link, int error) {
  fail(link, error, link->cause);
  link->attempt_since = 0;
}

bool belay__outage_connected(belay__link_t *link) {
  belay__cable_t *cable = link->cable;
  bool back = cable->failed != 0 && !link->listens;
  link->attempt_since = 0;
  link->cause[0] = '\0';
  link->blamed = false;
  belay__outage_heard(link);
  if (back) {
    cable->failed = 0;
    cable->probe = NULL;
  }
  return back;
}

void belay__outage_heard(belay__link_t *link) {
  if (!link->listens)
    link->cable->heard_at = link->wire.last_read;
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* Links that have read nothing since are asked: they may be alive. */
static void fall_silent(belay__cable_t *cable, uint64_t since) {
  if (cable->silent_since >= since)
    return;
  cable->silent_since = since;
  for (size_t i = 0; i < cable->count; i++)
    if (cable->links[i].wire.last_read <= since)
      belay__link_ping(&cable->links[i]);
  belay__outage_refuse_soon(cable);
}

void belay__outage_overdue(belay__link_t *link, const belay__call_t *call) {
  uint64_t now = belay__now(belay__link_loop(link));
  uint64_t silence = now - link->wire.last_heard, took = now - call->started;
  char cause[64];
  (void)snprintf(cause, sizeof cause, "timed out: no answer within %llu ms",
                 (unsigned long long)(took / BELAY__MS));
  belay__link_refuse_with(link, BELAY_EUNKNOWN, cause);
  bool waits = call->lane == BELAY__LANE_DURABLE; /* WAIT holds the answers up */
  if (!waits && belay__link_is_up(link) && link->wire.owed > 0 && silence >= AWAY_MS * BELAY__MS &&
      now - call->deadline < LATE_MS * BELAY__MS)
    fall_silent(link->cable, link->wire.last_heard);
}

int belay__outage_unsent(belay__link_t *link) {
  belay__cable_t *cable = link->cable;
  int error = belay__link_unsent(link->error);
  uint64_t now = belay__now(belay__cable_loop(cable));
  char cause[64];
  bool trying = link->attempt_since != 0 && link->state != BELAY__LINK_FINDING;
  if (!trying) {
    if (link->cause[0] == '\0' && cable->failed == error)
      belay__client_refused(cable->trunk->client, error, cable->why, strlen(cable->why));
    else if (!belay__link_is_lasting(error))
      belay__link_explain(link, error);
    return error;
  }
  uint64_t took = now - link->attempt_since;
  (void)snprintf(cause, sizeof cause, "timed out: not connected after %llu ms",
                 (unsigned long long)(took / BELAY__MS));
  if (cable->failed == 0 && took >= AWAY_MS * BELAY__MS)
    fail(link, BELAY_EUNREACHABLE, cause);
  belay__link_refuse_with(link, error, link->cause[0] != '\0' ? link->cause : cause);
  return error;
}

/* ---- refusals that may pass ------------------------------------------------------------------ */

bool belay__outage_refuses(const belay__link_t *link, const belay__call_t *call) {
  return call->fail_fast && link->refusing_since != 0 &&
         belay__now(belay__link_loop(link)) - link->refusing_since >= AWAY_MS * BELAY__MS;
}

/* ---- who tries ------------------------------------------------------------------------------- */

static bool is_trying(const belay__link_t *link) {
  return link->state == BELAY__LINK_FINDING || link->state == BELAY__LINK_DIALING ||
         link->state == BELAY__LINK_SHAKING || link->state == BELAY__LINK_BACKOFF;
}

bool belay__outage_spares(belay__link_t *link) {
  belay__cable_t *cable = link->cable;
  if (cable->failed == 0)
    return false;
  if (!link->listens && (cable->probe == NULL || !is_trying(cable->probe)))
    cable->probe = link;
  return cable->probe != NULL && cable->probe != link && is_trying(cable->probe);
}

bool belay__outage_probes(const belay__link_t *link) {
  const belay__cable_t *cable = link->cable;
  return !link->listens && (cable->probe == NULL || cable->probe == link) &&
         belay__now(belay__cable_loop(cable)) < cable->probe_until;
}

void belay__outage_rests(belay__link_t *link) {
  belay__cable_t *cable = link->cable;
  for (size_t i = 0; i < cable->count; i++)
    if (is_trying(&cable->links[i]) || belay__link_is_up(&cable->links[i]))
      return;
  cable->probe = NULL;
  cable->failed = 0;
  cable->silent_since = 0;
}

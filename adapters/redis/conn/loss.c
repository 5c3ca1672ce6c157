#include "redis/conn/loss.h"

#include <string.h>

#include "core/loop/backoff.h"
#include "redis/conn/cause.h"
#include "redis/conn/outage.h"
#include "redis/conn/queue.h"

#define OLD_SERVER_MS UINT64_C(300000)

/* ---- the next attempt ------------------------------------------------------------------------ */

/* The time until the next attempt: random, from 0 (of a lasting reason, and where another link
 * tries for all of them: from half) to half of the time for which nothing has come of it,
 * between reconnect_min_ms and reconnect_max_ms. So a server that was away for a short time is
 * used soon after it is back, and one that is away for long is tried seldom. A server that is
 * too old to be listened to stays so until there is another one: it is asked ever more seldom. */
static uint64_t choose_delay(belay__link_t *link, bool lasting, bool old) {
  belay_t *belay = belay__link_loop(link);
  const belay__trunk_t *trunk = link->cable->trunk;
  uint64_t now = belay__now(belay), most = (uint64_t)trunk->reconnect_max_ms * BELAY__MS;
  bool spares = !lasting && belay__outage_spares(link);
  uint64_t first = lasting || spares ? most : (uint64_t)trunk->reconnect_min_ms * BELAY__MS;
  if (link->failures == 0)
    link->trouble_since = now;
  uint64_t limit = (now - link->trouble_since) / 2;
  if (old && most < OLD_SERVER_MS * BELAY__MS)
    most = OLD_SERVER_MS * BELAY__MS;
  if (limit < first)
    limit = first;
  if (limit > most)
    limit = most;
  uint64_t least = lasting || spares ? limit / 2 : 0;
  return belay__delay_draw(belay, (belay__delay_t){least + 1, limit});
}

/* There is no connection. Calls wait for the next one, or are refused. */
static void back_off(belay__link_t *link, int error) {
  belay_t *belay = belay__link_loop(link);
  if (link->state == BELAY__LINK_CLOSED)
    return;
  bool lasting = belay__link_is_lasting(error);
  bool old = link->listens && error == BELAY_EREFUSED;
  if (old && link->error != error)
    link->failures = 0;
  uint64_t delay = choose_delay(link, lasting, old);
  link->error = error;
  link->failures++;
  link->state = lasting ? BELAY__LINK_REFUSED : BELAY__LINK_BACKOFF;
  belay__timer_set(belay, BELAY__RANK_OTHER, &link->timer, belay__now(belay) + delay);
  if (lasting)
    belay__link_refuse(link, error);
  link->cable->ops->lost(link, error);
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* Makes the cause the client's last refusal; returns whether it is another one than before. What
 * the server or a finder said is that already, and becomes the cause. */
static bool explain(belay__link_t *link, int error) {
  belay_client_t *client = link->cable->trunk->client;
  bool news = error != link->error;
  if (!link->blamed) {
    bool told = client->refused.error == error;
    belay__link_blame(link, "%s", told ? client->refused.text : belay_strerror(error));
  } else if (link->cause[0] == '\0') {
    return news; /* the client has the finder's words */
  } else if (belay__link_is_lasting(error)) {
    news = news || strncmp(link->cause, client->refused.text, sizeof link->cause - 1) != 0;
    belay__client_refused(client, error, link->cause, strlen(link->cause));
  } else {
    belay__link_explain(link, error);
  }
  return news;
}

/* The finder of the server has written its reason to the log already. */
void belay__link_fail(belay__link_t *link, int error) {
  belay_client_t *client = link->cable->trunk->client;
  char place[BELAY__TARGET_WORDS];
  bool told = link->state == BELAY__LINK_FINDING;
  client->stats.connect_errors++;
  bool lasting = belay__link_is_lasting(error), news = explain(link, error);
  belay__target_words(&link->target, place);
  if (!told && lasting && news) /* once for each reason */
    belay__log(client->belay, BELAY_LOG_ERROR, "no connection to %s: %s: %s", place,
               belay_strerror(error), client->refused.text);
  else if (!told && !lasting)
    belay__log(client->belay, BELAY_LOG_WARNING, "no connection to %s: %s", place, link->cause);
  belay__outage_failed(link, error);
  back_off(link, error);
}

/* Those of the calls that the wire gave back which end as unknown. */
static size_t count_unknown(belay__link_t *link) {
  size_t n = 0;
  for (belay__list_t *node = link->dropped.next; node != &link->dropped; node = node->next) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    n += call->state == BELAY__CALL_SENT && belay__trip(call)->offset < link->wire.written;
  }
  return n;
}

void belay__link_lose(belay__link_t *link, int error) {
  belay_t *belay = belay__link_loop(link);
  char place[BELAY__TARGET_WORDS];
  size_t n = count_unknown(link);
  belay__target_words(&link->target, place);
  if (n == 0) {
    belay__log(belay, BELAY_LOG_INFO, "connection to %s lost: %s", place, link->cause);
  } else {
    belay__log(belay, BELAY_LOG_WARNING, "connection to %s lost: %s; %zu call%s as unknown", place,
               link->cause, n, n == 1 ? " ends" : "s end");
    belay__link_explain(link, BELAY_EUNKNOWN);
  }
  back_off(link, error);
}

#include "redis/conn/server.h"

#include <limits.h>
#include <string.h>

#include "core/loop/backoff.h"
#include "redis/conn/connection.h"
#include "redis/conn/handshake.h"
#include "redis/conn/liveness.h"
#include "redis/conn/outage.h"
#include "redis/conn/subscriber.h"

#define PROBE_MS 5000

static void on_role_due(belay__timer_t *timer);
static const belay__cable_ops_t ops;

static size_t size_of(size_t count) {
  return sizeof(belay__cable_t) + sizeof(belay__listener_t) + count * sizeof(belay__link_t);
}

belay__cable_t *belay__cable_new(belay__trunk_t *trunk, size_t lane_links) {
  size_t count = 2 * lane_links + 2;
  _Static_assert(sizeof(belay__cable_t) % _Alignof(belay__listener_t) == 0 &&
                     sizeof(belay__listener_t) % _Alignof(belay__link_t) == 0,
                 "they lie behind each other");
  belay__cable_t *cable = belay__alloc(&trunk->host->base, size_of(count));
  if (cable == NULL)
    return NULL;
  memset(cable, 0, size_of(count));
  *cable = (belay__cable_t){.trunk = trunk,
                            .ops = &ops,
                            .target = {.keepalive_ms = trunk->keepalive_ms,
                                       .tcp_user_timeout_ms = trunk->tcp_user_timeout_ms},
                            .role_timer = {.fire = on_role_due},
                            .refuse = {.fire = belay__outage_on_refuse},
                            .lane_links = lane_links,
                            .count = count};
  cable->listener = (belay__listener_t *)(void *)(cable + 1);
  cable->links = (belay__link_t *)(void *)(cable->listener + 1);
  for (size_t i = 0; i < count; i++)
    belay__link_init(&cable->links[i], cable, i < 2 * lane_links && i % lane_links != 0);
  belay__listener_init(cable->listener, cable);
  belay__list_push(&trunk->cables, &cable->node);
  return cable;
}

/* The i-th of all links: those that carry calls, then, with i = cable->count, the one that listens. */
static belay__link_t *link_at(const belay__cable_t *cable, size_t i) {
  return i < cable->count ? &cable->links[i] : &cable->listener->link;
}

void belay__cable_free(belay__cable_t *cable) {
  belay__list_remove(&cable->node);
  for (size_t i = 0; i <= cable->count; i++)
    belay__link_fini(link_at(cable, i));
  belay__free(belay__cable_loop(cable), cable, size_of(cable->count));
}

/* Ends all its connections at once. */
static void close_links(belay__cable_t *cable) {
  belay__timer_stop(belay__cable_loop(cable), BELAY__RANK_OTHER, &cable->role_timer);
  belay__timer_stop(belay__cable_loop(cable), BELAY__RANK_OTHER, &cable->refuse);
  for (size_t i = 0; i < cable->count; i++)
    belay__link_close(&cable->links[i]);
  belay__listener_close(cable->listener);
}

/* Whether a closed server has no connection and no handle any more. */
static bool is_over(const belay__cable_t *cable) {
  bool over = cable->handles == 0;
  for (size_t i = 0; i <= cable->count && over; i++)
    over = belay__link_is_over(link_at(cable, i));
  return over;
}

bool belay__cable_drain(belay__cable_t *cable) {
  bool all = true;
  for (size_t i = 0; i < cable->count; i++) {
    belay__link_t *link = &cable->links[i];
    if (link->in_flight == 0)
      belay__link_close(link);
    else
      belay__link_drain(link, BELAY_EUNREACHABLE,
                        "the server is not part of the deployment any more");
    all = all && link->state == BELAY__LINK_CLOSED;
  }
  if (all)
    close_links(cable);
  return all && is_over(cable);
}

/* The links stand in the order of the lanes. */
belay__link_t *belay__cable_link(const belay__cable_t *cable, belay__lane_t lane,
                                 uint32_t affinity) {
  size_t n = cable->lane_links, own = (affinity >> 14) % n, i = 0;
  switch (lane) {
  case BELAY__LANE_LEASE:
    i = own;
    break;
  case BELAY__LANE_DATA:
    i = n + own;
    break;
  case BELAY__LANE_BULK:
    i = 2 * n;
    break;
  case BELAY__LANE_DURABLE:
  case BELAY__LANES:
    i = 2 * n + 1;
    break;
  }
  return &cable->links[i];
}

bool belay__cable_owes(const belay__cable_t *cable, uint64_t ms) {
  bool owes = false;
  for (size_t i = 0; i < cable->count; i++)
    owes |= belay__link_owes(&cable->links[i], ms * BELAY__MS);
  return owes;
}

bool belay__cable_is_silent(belay__cable_t *cable) {
  bool silent = false; /* each is asked: it remembers when */
  for (size_t i = 0; i < cable->count; i++)
    silent |= belay__link_is_silent(&cable->links[i], BELAY__SILENCE_MS * BELAY__MS);
  return silent;
}

size_t belay__cable_links_up(const belay__cable_t *cable) {
  size_t n = 0;
  for (size_t i = 0; i <= cable->count; i++)
    n += belay__link_is_up(link_at(cable, i));
  return n;
}

void belay__cable_found(belay__cable_t *cable, int error) {
  for (size_t i = 0; i <= cable->count; i++)
    belay__link_found(link_at(cable, i), error);
}

void belay__cable_hurry(belay__cable_t *cable) {
  for (size_t i = 0; i <= cable->count; i++)
    belay__link_hurry(link_at(cable, i));
}

void belay__cable_leave(belay__cable_t *cable, int error, const char *cause) {
  for (size_t i = 0; i <= cable->count; i++)
    belay__link_leave(link_at(cable, i), error, cause);
}

void belay__cable_renew(belay__cable_t *cable) {
  for (size_t i = 0; i < cable->count; i++)
    belay__link_drain(&cable->links[i], BELAY_EREADONLY, "the server has another role now");
}

/* ---- what it is ---------------------------------------------------------------------------------------- */

/* One that cannot tell at this time, as while a script runs for long, is what it was; and what is wanted of it may have
 * changed since it was asked. */
static void on_role(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__link_t *link = belay__link_of(ac);
  belay__cable_t *cable = link->cable;
  const belay__reply_t *reply = belay__wire_reply(&link->wire, object);
  if (cable->role == BELAY__ROLE_ANY || reply == NULL || reply->type == BELAY__REPLY_ERROR ||
      belay__role_is(reply, cable->role))
    return;
  belay__cable_leave(cable, BELAY_EREADONLY, belay__role_words(cable->role));
}

static void set_role_timer(belay__cable_t *cable) {
  belay_t *belay = belay__cable_loop(cable);
  belay__timer_set(belay, BELAY__RANK_OTHER, &cable->role_timer,
                   belay__now(belay) + belay__period(belay, PROBE_MS * BELAY__MS));
}

/* While there is a connection. */
static void on_role_due(belay__timer_t *timer) {
  belay__cable_t *cable = BELAY__CONTAINER(timer, belay__cable_t, role_timer);
  for (size_t i = 0; i < cable->count; i++) {
    belay__link_t *link = &cable->links[i];
    if (!belay__link_is_up(link) || cable->role == BELAY__ROLE_ANY)
      continue;
    set_role_timer(cable);
    if (link->state != BELAY__LINK_UP)
      continue; /* it may be, the next time */
    belay__wire_command(&link->wire, on_role, NULL, 1, (const char *const[]){"ROLE"});
    belay__link_owed(link);
    return;
  }
}

void belay__cable_want(belay__cable_t *cable) {
  belay__link_want(belay__cable_link(cable, BELAY__LANE_DATA, 0));
}

bool belay__cable_reads(const belay__cable_t *cable, belay__lane_t lane, uint32_t affinity) {
  belay__link_t *link = belay__cable_link(cable, lane, affinity);
  return belay__link_is_up(belay__cable_link(cable, BELAY__LANE_DATA, 0)) &&
         belay__link_admits(link, false, 1) == 0 &&
         !belay__link_is_silent(link, BELAY__SILENCE_MS * BELAY__MS);
}

/* ---- what links tell ---------------------------------------------------------------------------------- */

static void on_up(belay__link_t *link) {
  belay__cable_t *cable = link->cable;
  const belay__trunk_ops_t *owner = cable->trunk->ops;
  if (link->listens)
    belay__listener_up(cable->listener);
  else
    belay__listener_met(cable->listener, link);
  if (owner->up != NULL)
    owner->up(link);
  if (cable->role != BELAY__ROLE_ANY && !belay__timer_is_set(&cable->role_timer))
    set_role_timer(cable);
}

static void on_lost(belay__link_t *link, int error) {
  const belay__trunk_ops_t *owner = link->cable->trunk->ops;
  if (link->listens)
    belay__listener_lost(link->cable->listener, error);
  if (owner->lost != NULL)
    owner->lost(link, error);
}

static const belay__cable_ops_t ops = {.up = on_up, .lost = on_lost, .hurry = belay__cable_hurry};

/* ---- all servers of a client --------------------------------------------------------------------------- */

static belay__cable_t *cable_at(const belay__list_t *node) {
  return BELAY__CONTAINER(node, belay__cable_t, node);
}

size_t belay__trunk_links_up(const belay__trunk_t *trunk) {
  size_t n = 0;
  for (const belay__list_t *node = trunk->cables.next; node != &trunk->cables; node = node->next)
    n += belay__cable_links_up(cable_at(node));
  return n;
}

/* Takes out of *can what the server of one of its connections cannot do; false if there is none. */
static bool reduce(const belay__cable_t *cable, unsigned *can) {
  bool any = false;
  for (size_t i = 0; i < cable->count; i++) {
    const belay__link_t *link = &cable->links[i];
    if (!belay__link_is_up(link))
      continue;
    *can &= link->peer.can;
    any = true;
  }
  return any;
}

bool belay__trunk_can(belay__trunk_t *trunk, belay__capability_t what) {
  const belay__list_t *cables = &trunk->cables;
  if (!trunk->can_known) {
    unsigned all = UINT_MAX;
    bool any = false;
    for (const belay__list_t *node = cables->next; node != cables; node = node->next)
      any |= !cable_at(node)->retired && reduce(cable_at(node), &all);
    trunk->can = any ? all : 0;
    trunk->can_known = true;
  }
  return (trunk->can >> what & 1) != 0;
}

void belay__trunk_close(belay__trunk_t *trunk) {
  for (belay__list_t *node = trunk->cables.next; node != &trunk->cables; node = node->next)
    close_links(cable_at(node));
}

bool belay__trunk_is_over(const belay__trunk_t *trunk) {
  const belay__list_t *cables = &trunk->cables;
  bool over = true;
  for (const belay__list_t *node = cables->next; node != cables && over; node = node->next)
    over = is_over(cable_at(node));
  return over;
}

void belay__trunk_free(belay__trunk_t *trunk) {
  while (!belay__list_empty(&trunk->cables))
    belay__cable_free(cable_at(trunk->cables.next));
}

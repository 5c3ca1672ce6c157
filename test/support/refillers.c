#include "support/refillers.h"

#include <stdio.h>

belay_refiller_options_t refiller_options(const char *label, uint32_t refillers,
                                          uint32_t period_ms) {
  belay_refiller_options_t options;
  belay_refiller_options_init(&options);
  options.name = "main";
  options.name_len = 4;
  options.label = label;
  options.refillers = refillers;
  options.lease_ms = 60000;
  options.period_ms = period_ms;
  return options;
}

/* Callbacks do not come inside a call of ours, nor after the end. */
static void then(hand_t *hand, void (*what)(hand_t *hand)) {
  bed_t *bed = hand->pail->bed;
  unsigned inside = bed->inside;
  bed->wrong += inside > 0 || hand->closed > 1;
  bed->inside = 0;
  if (what != NULL)
    what(hand);
  bed->inside = inside;
}

static void on_change(belay_refiller_t *refiller, belay_refiller_state_t state) {
  hand_t *hand = belay_refiller_data(refiller);
  hand->state = state;
  hand->elected += state == BELAY_REFILLER_ELECTED;
  hand->deposed += state == BELAY_REFILLER_WAITING;
  hand->pail->bed->wrong += hand->closing > 0 || hand->elected - hand->deposed > 1;
  then(hand, hand->then);
}

static void on_round(belay_refiller_t *refiller) {
  hand_t *hand = belay_refiller_data(refiller);
  hand->rounds++;
  hand->pail->bed->wrong += hand->closing > 0 || hand->state != BELAY_REFILLER_ELECTED;
  then(hand, hand->on_round);
}

void hand_new(hand_t *hand, pail_t *pail, const belay_refiller_options_t *options) {
  void (*changed)(hand_t *) = hand->then, (*round)(hand_t *) = hand->on_round;
  *hand =
      (hand_t){.pail = pail, .state = BELAY_REFILLER_WAITING, .then = changed, .on_round = round};
  belay_refiller_options_t o = *options;
  o.on_change = on_change;
  o.on_round = round == NULL ? NULL : on_round;
  o.data = hand;
  pail->bed->inside++;
  int error = belay_refiller_new(pail->bucket, &o, &hand->refiller);
  pail->bed->inside--;
  if (error != 0)
    fail_msg("belay_refiller_new: %s: %s", belay_strerror(error), belay_detail(pail->bed->belay));
}

void hand_add(hand_t *hand, const char *key, int64_t tokens) {
  assert_error(belay_refiller_add(hand->refiller, key, strlen(key), tokens), 0);
}

static void on_closed(belay_refiller_t *refiller, void *data) {
  hand_t *hand = data;
  assert_ptr_equal(refiller, hand->refiller);
  hand->refiller = NULL;
  hand->closed++;
  then(hand, hand->then);
}

int begin_close_hand(hand_t *hand) {
  bed_t *bed = hand->pail->bed;
  bed->inside++;
  int error = belay_refiller_close(hand->refiller, on_closed);
  bed->inside--;
  hand->closing += error == 0;
  return error;
}

void close_hand(hand_t *hand) {
  assert_error(begin_close_hand(hand), 0);
  bed_until(hand->pail->bed, hand->closed == 1);
}

belay_refiller_stats_t hand_stats(const hand_t *hand) {
  belay_refiller_stats_t stats;
  belay_refiller_stats(hand->refiller, &stats);
  return stats;
}

static void on_members(belay_request_t *request, int status, const belay_refiller_member_t *members,
                       size_t n) {
  crew_t *crew = request->data;
  bed_t *bed = crew->hand->pail->bed;
  assert_int_equal(members == NULL, status != 0);
  bed->wrong += bed->inside;
  crew->told++;
  crew->status = status;
  crew->n = n;
  for (size_t i = 0; i < n && i < CREW_MAX; i++) {
    snprintf(crew->member[i].label, sizeof crew->member[i].label, "%s", members[i].label);
    crew->member[i].state = members[i].state;
    crew->member[i].remaining_ms = members[i].remaining_ms;
  }
  if (crew->then != NULL)
    crew->then(crew);
}

int begin_members(hand_t *hand, crew_t *crew) {
  crew->hand = hand;
  crew->request.data = crew;
  hand->pail->bed->inside++;
  int error = belay_refiller_members(hand->refiller, &crew->request, on_members);
  hand->pail->bed->inside--;
  return error;
}

void ask_members(hand_t *hand, crew_t *crew) {
  crew->told = 0;
  assert_error(begin_members(hand, crew), 0);
  bed_until(hand->pail->bed, crew->told == 1);
  assert_error(crew->status, 0);
  assert_true(crew->n <= CREW_MAX);
}

belay_refiller_state_t state_in(const crew_t *crew, const char *label) {
  for (size_t i = 0; i < crew->n; i++)
    if (strcmp(crew->member[i].label, label) == 0)
      return crew->member[i].state;
  return (belay_refiller_state_t)0;
}
